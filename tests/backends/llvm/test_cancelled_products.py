"""Products that cancel: their differences are NumPy's zeros, and so is what roots and the like are taken of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

NUMBERS = np.random.default_rng(0).uniform(0.1, 3.0, 40)


def in_a_loop(x: Any, y: Any) -> Any:
    total = 0.0
    for k in range(len(x)):
        total = total + np.sqrt(x[k] * x[k] - y[k] * y[k]) + (3.0 * x[k] * y[k] - 3.0 * y[k] * x[k])
    return total


def of_python(x: Any, y: Any) -> Any:
    total, k = 0.0, 0
    while k < 40:
        total += math.sqrt(float(x[k]) ** 2 - float(y[k]) ** 2)
        k += 1
    return total


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * y - y * x,
        lambda x, y: x**2 - y * y,
        lambda x, y: np.sqrt(x * x - y * y),
        lambda x, y: np.sum(np.sqrt(x**2 - y**2)),
        lambda x, y: np.sqrt(1.0 + (x * x - y * y) - 1.0),
        in_a_loop,
        of_python,
    ],
)
def test_products_that_cancel_are_nothing(f: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_array_equal(f(NUMBERS, NUMBERS), 0.0 * f(NUMBERS, NUMBERS))
    np.testing.assert_array_equal(sg.jit(f, backend="llvm")(NUMBERS, NUMBERS.copy()), f(NUMBERS, NUMBERS))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, square: np.sqrt(square - x * x),
        lambda x, square: np.arccosh(x * x - square + 1.0),
        lambda x, square: np.log2(1.0 + (x * x - square)),
        lambda x, square: (x * x - square) ** 0.5,
    ],
)
def test_domains_end_where_numpys_do(f: Callable[[Any, Any], Any]) -> None:
    """Where the square is given, not computed beside the other."""
    np.testing.assert_array_equal(sg.jit(f, backend="llvm")(NUMBERS, NUMBERS**2), 0.0 * NUMBERS)
    compiled = sg.jit(f, backend="llvm")
    assert [compiled(x, x * x) for x in NUMBERS.tolist()] == [0.0] * len(NUMBERS)
