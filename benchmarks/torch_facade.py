"""The PyTorch facade against PyTorch itself: eager forward and backward, interleaved in one process on one thread.

    python benchmarks/torch_facade.py [--rounds 2000]

Printed are the medians in microseconds and their ratio. PyTorch must be installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout that is not installed measures itself

from benchmarks.measure import interleaved  # and sets one thread, before NumPy is imported

# isort: split
import numpy as np

Step = Callable[[], Any]


def chain(torch: Any, n: int) -> Step:
    """Twenty small operations, forwards and backwards."""
    x = torch.tensor(np.linspace(0.1, 1.0, n).tolist(), requires_grad=True)
    w = torch.tensor(np.linspace(1.0, 0.5, n).tolist())

    def step() -> Any:
        y = x
        for _ in range(5):
            y = torch.sin(y) * w + x
            y = torch.tanh(y)
        x.grad = None
        y.sum().backward()
        return x.grad

    return step


def perceptron(torch: Any, n: int) -> Step:
    """A step of stochastic gradient descent: 64 examples, 784 -> 256 -> 10."""
    rng = np.random.default_rng(0)
    inputs = torch.from_numpy(rng.standard_normal((64, 784)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(0, 10, 64))
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            values = rng.standard_normal(tuple(parameter.shape)).astype(np.float32) * 0.05
            parameter.copy_(torch.from_numpy(values))
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def recurrent(torch: Any, n: int) -> Step:
    """A step on eight rows of eight numbers through an LSTM of 32."""
    rng = np.random.default_rng(0)
    inputs = torch.from_numpy(rng.standard_normal((32, 8, 8)).astype(np.float32))
    labels = torch.from_numpy(rng.integers(0, 10, 32))
    lstm, head = torch.nn.LSTM(8, 32, batch_first=True), torch.nn.Linear(32, 10)
    parameters = [*lstm.parameters(), *head.parameters()]
    with torch.no_grad():
        for parameter in parameters:
            values = rng.standard_normal(tuple(parameter.shape)).astype(np.float32) * 0.2
            parameter.copy_(torch.from_numpy(values))
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(lstm(inputs)[0][:, -1]), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


CASES: list[tuple[str, Callable[[Any, int], Step], int]] = [
    ("chain", chain, 10),
    ("chain", chain, 10_000),
    ("perceptron", perceptron, 64),
    ("lstm", recurrent, 32),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    import torch

    import srcgrad.torch as facade

    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, NumPy {np.__version__}, one thread")
    print(f"{'case':12} {'n':>6} {'PyTorch':>10} {'facade':>10} {'ratio':>6}")
    for name, make, n in CASES:
        steps = [make(torch, n), make(facade, n)]
        for _ in range(5):
            for step in steps:
                step()
        assert np.allclose(*[float(np.asarray(step().detach()).sum()) for step in steps], rtol=1e-3), name
        times = interleaved(dict(zip(("theirs", "ours"), steps, strict=True)), rounds, {"theirs": 1, "ours": 1})
        theirs, ours = 1e6 * times["theirs"], 1e6 * times["ours"]
        print(f"{name:12} {n:6} {theirs:10.1f} {ours:10.1f} {ours / theirs:6.2f}")


if __name__ == "__main__":
    main()
