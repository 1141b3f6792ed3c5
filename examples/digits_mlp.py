"""A neural network of three layers, in plain NumPy, fitted to the 8 x 8 digits with Adam.

The parameters are a dictionary, and so is their gradient. Before the fit one call of `cross_check` compares the
gradient on a few images with differences, and with jax's own where jax is installed. Run it with
``python examples/digits_mlp.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import srcgrad as sg
from srcgrad.testing import CrossCheck, cross_check

HERE = Path(__file__).resolve().parent

Array = NDArray[Any]
Parameters = dict[str, Array]


def log_probabilities(parameters: Parameters, images: Array) -> Array:
    """The logarithm of the probability of each digit, one row per image."""
    hidden = np.tanh(images @ parameters["first weights"] + parameters["first offset"])
    hidden = np.tanh(hidden @ parameters["second weights"] + parameters["second offset"])
    scores = hidden @ parameters["output weights"] + parameters["output offset"]
    scores = scores - np.max(scores, axis=1, keepdims=True)
    return scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))


def loss(parameters: Parameters, images: Array, labels: Array) -> Array:
    """The mean negative log-likelihood of the labels, with a penalty on the weights."""
    chosen = log_probabilities(parameters, images)[np.arange(len(labels)), labels]
    penalty = sum(np.sum(value**2) for name, value in parameters.items() if name.endswith("weights"))
    return 1e-4 * penalty - np.mean(chosen)


loss_and_gradient = sg.value_and_grad(loss)


def load() -> tuple[Array, Array, Array, Array]:
    """Training images scaled to [0, 1], their labels, held-out images, their labels."""
    table = np.loadtxt(HERE / "data" / "digits.csv", delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    held_out, training = np.split(table, [len(table) // 5])
    return training[:, :-1] / 16, training[:, -1].astype(int), held_out[:, :-1] / 16, held_out[:, -1].astype(int)


def drawn(random: np.random.Generator) -> Parameters:
    parameters = {}
    for name, rows, columns in (("first", 64, 48), ("second", 48, 24), ("output", 24, 10)):
        parameters[f"{name} weights"] = random.normal(size=(rows, columns)) / np.sqrt(rows)
        parameters[f"{name} offset"] = np.zeros(columns)
    return parameters


def check(images: Array, labels: Array) -> CrossCheck:
    """The gradient in all 4 546 parameters, by all that can compute it."""
    return cross_check(loss, drawn(np.random.default_rng(2)), images, labels, argnums=0)


def fit(images: Array, labels: Array, epochs: int = 40, batch: int = 125, rate: float = 0.01) -> Parameters:
    """Minibatch Adam (Kingma and Ba, 2015, doi 10.48550/arXiv.1412.6980)."""
    random = np.random.default_rng(1)
    parameters = drawn(random)
    first = {name: np.zeros_like(value) for name, value in parameters.items()}
    second = {name: np.zeros_like(value) for name, value in parameters.items()}
    step = 0
    for epoch in range(epochs):
        order = random.permutation(len(labels))
        total = []
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start : start + batch]
            value, gradient = loss_and_gradient(parameters, images[rows], labels[rows])
            total.append(float(value))
            step += 1
            for name, slope in gradient.items():
                first[name] = 0.9 * first[name] + 0.1 * slope
                second[name] = 0.999 * second[name] + 0.001 * slope**2
                scale = np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8
                parameters[name] = parameters[name] - rate * first[name] / (1 - 0.9**step) / scale
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: mean loss {np.mean(total):.4f}")
    return parameters


def main() -> float:
    """Fit; return the accuracy on the held-out fifth."""
    images, labels, held_out_images, held_out_labels = load()
    print(check(images[:16], labels[:16]))
    parameters = fit(images, labels)
    score = float(np.mean(np.argmax(log_probabilities(parameters, held_out_images), axis=1) == held_out_labels))
    print(f"Accuracy on the {len(held_out_labels)} held-out digits: {score:.1%}")
    return score


if __name__ == "__main__":
    main()
