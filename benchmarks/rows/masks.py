"""What carried masks cost: gradients through `where`, beside the same derivative written by hand without masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Row, measured

# isort: split
import numpy as np

import srcgrad as sg


def piecewise(x: Any) -> Any:
    """Where-heavy: three branches, each with a function that the others must not run into."""
    low = np.where(x < -0.5, np.exp(x) * x, np.sin(x))
    return np.sum(np.where(x > 0.5, np.sqrt(x * x + 1.0), low))


def derivative(x: Any) -> Any:
    """The same derivative as a function, so that it is compiled without any mask."""
    low = np.where(x < -0.5, np.exp(x) * (x + 1.0), np.cos(x))
    return np.where(x > 0.5, x / np.sqrt(x * x + 1.0), low)


def row(size: int, rounds: int) -> Row:
    """``numpy`` is the derivative by hand, compiled by srcgrad too."""
    found = Row(f"where-heavy gradient n={size}", "us", bounds={"numpy": 1 / 1.05})
    x = np.random.default_rng(5).normal(size=size)
    ours, plain = sg.grad(piecewise, backend="llvm"), sg.jit(derivative, backend="llvm")
    np.testing.assert_allclose(ours(x), plain(x), rtol=1e-12, atol=1e-14)
    calls: dict[str, Any] = {"srcgrad": partial(ours, x), "numpy": partial(plain, x)}
    measured(found, calls, rounds, 1e6)
    found.notes.append("the column numpy is the derivative by hand, without masks, compiled by srcgrad as well")
    return found


ROWS: dict[str, Callable[[int], Row]] = {f"masks-{size}": partial(row, size) for size in (1_000, 100_000)}
