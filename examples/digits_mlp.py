"""A neural network with one hidden layer, in plain NumPy, fitted to the 8 x 8 digits with Adam.

The parameters are a dictionary, and so is their gradient. Run it with ``python examples/digits_mlp.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import srcgrad as sg

HERE = Path(__file__).resolve().parent

Array = NDArray[Any]
Parameters = dict[str, Array]


def log_probabilities(parameters: Parameters, images: Array) -> Array:
    """The logarithm of the probability of each digit, one row per image."""
    hidden = np.tanh(images @ parameters["hidden weights"] + parameters["hidden offset"])
    scores = hidden @ parameters["output weights"] + parameters["output offset"]
    scores = scores - np.max(scores, axis=1, keepdims=True)
    return scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))


@sg.value_and_grad
def loss_and_gradient(parameters: Parameters, images: Array, labels: Array) -> Array:
    """The mean negative log-likelihood of the labels, with a penalty on the weights."""
    chosen = log_probabilities(parameters, images)[np.arange(len(labels)), labels]
    penalty = np.sum(parameters["hidden weights"] ** 2) + np.sum(parameters["output weights"] ** 2)
    return 1e-4 * penalty - np.mean(chosen)


def load() -> tuple[Array, Array, Array, Array]:
    """Training images scaled to [0, 1], their labels, held-out images, their labels."""
    table = np.loadtxt(HERE / "data" / "digits.csv", delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    held_out, training = np.split(table, [len(table) // 5])
    return training[:, :-1] / 16, training[:, -1].astype(int), held_out[:, :-1] / 16, held_out[:, -1].astype(int)


def fit(images: Array, labels: Array, epochs: int = 40, batch: int = 125, rate: float = 0.01) -> Parameters:
    """Minibatch Adam (Kingma and Ba, 2015, doi 10.48550/arXiv.1412.6980)."""
    random = np.random.default_rng(1)
    parameters = {
        "hidden weights": random.normal(size=(64, 48)) / np.sqrt(64),
        "hidden offset": np.zeros(48),
        "output weights": random.normal(size=(48, 10)) / np.sqrt(48),
        "output offset": np.zeros(10),
    }
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
    parameters = fit(images, labels)
    score = float(np.mean(np.argmax(log_probabilities(parameters, held_out_images), axis=1) == held_out_labels))
    print(f"Accuracy on the {len(held_out_labels)} held-out digits: {score:.1%}")
    return score


if __name__ == "__main__":
    main()
