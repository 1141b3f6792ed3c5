"""Products that cancel: their differences are NumPy's zeros, and so is what roots and the like are taken of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.target import TARGET

HAS_FMA = "fma" in TARGET.features
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
        lambda x, square: np.log1p(x * x - square),
        lambda x, square: np.log2(1.0 + (x * x - square)),
        lambda x, square: (x * x - square) ** 0.5,
    ],
)
def test_domains_end_where_numpys_do(f: Callable[[Any, Any], Any]) -> None:
    """Where the square is given, not computed beside the other."""
    np.testing.assert_array_equal(sg.jit(f, backend="llvm")(NUMBERS, NUMBERS**2), 0.0 * NUMBERS)
    compiled = sg.jit(f, backend="llvm")
    assert [compiled(x, x * x) for x in NUMBERS.tolist()] == [0.0] * len(NUMBERS)


SPLITTER = 134217729.0
"""Dekker's for float64: 2**27 + 1."""


def split(a: Any) -> tuple[Any, Any]:
    t = SPLITTER * a
    high = t - (t - a)
    return high, a - high


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    p, (ah, al), (bh, bl) = a * b, split(a), split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def times(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Of double-double numbers."""
    p, e = two_product(a[0], b[0])
    e = e + (a[0] * b[1] + a[1] * b[0])
    s = p + e
    return s, e - (s - p)


def remainder(x: Any, y: Any) -> Any:
    return x - np.floor(x / y) * y


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "split": lambda x, y: split(x * y)[1],
    "two products": lambda x, y: two_product(x, y)[1],
    "two sums": lambda x, y: two_sum(x * y, 3.0 * x)[1],
    "double-double": lambda x, y: times((x, 1e-17 * x), (y, 1e-17 * y))[1],
    "the same product": lambda x, y: x * y - np.maximum(x * y, 0.1),
    "with signs": lambda x, y: x * y + y * (-x) + ((-x) * y + x * y) + (-1.0 * x * y + y * x),
    "of the same factors": lambda x, y: (x + y) ** 2 - x * x - 2.0 * x * y - y * y,
    "of sums": lambda x, y: (x * x - y * y) - (x - y) * (x + y),
    "multiples": lambda x, y: 3.0 * x - x - x - x,
    "tenths": lambda x, y: x * 0.1 - x / 10.0,
    "remainder": remainder,
    "compared": lambda x, y: np.where(x * 0.1 - y > 0.0, 1.0, 0.0),
    "far from compared": lambda x, y: np.where(np.maximum(np.abs(x * 0.1 - y), 0.0) == 0.0, 1.0, 0.0),
}


def at_each(f: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    found = np.zeros(len(x))
    for k in range(len(x)):
        found[k] = f(x[k], y[k])
    return found


def while_there_are(f: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    found, k = np.zeros(len(x)), 0
    while k < len(x):
        found[k] = f(x[k], y[k])
        k += 1
    return found


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_errors_of_sums_and_products_are_numpys(name: str) -> None:
    """Bit by bit, in arrays, in single numbers and in loops."""
    f, generator = TRANSFORMS[name], np.random.default_rng(1)
    x, y = generator.uniform(0.1, 3.0, (2, 60))
    y[:10] = x[:10] * 0.1
    np.testing.assert_array_equal(sg.jit(f, backend="llvm")(x, y), f(x, y))
    compiled = sg.jit(f, backend="llvm")
    assert [compiled(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)] == at_each(f, x, y).tolist()
    for way in (at_each, while_there_are):
        found = sg.jit(lambda x, y, way=way: way(f, x, y), backend="llvm")(x, y)
        np.testing.assert_array_equal(found, at_each(f, x, y))


def kahan(x: Any, y: Any) -> Any:
    total, rest, k = 0.0, 0.0, 0
    while k < len(x):
        term = x[k] - rest
        longer = total + term
        rest = (longer - total) - term
        total = longer
        k += 1
    return total, rest


def neumaier(x: Any, y: Any) -> Any:
    total = rest = 0.0
    for k in range(len(x)):
        term = x[k] * y[k]
        longer = total + term
        rest += (total - longer) + term if abs(total) >= abs(term) else (term - longer) + total
        total = longer
    return total, rest


def dot(x: Any, y: Any) -> Any:
    """Ogita, Rump and Oishi's."""
    total = rest = 0.0
    for k in range(len(x)):
        p, e = two_product(x[k], y[k])
        total, r = two_sum(total, p)
        rest = rest + (r + e)
    return total, rest


def powers(x: Any, y: Any) -> Any:
    found, count = (1.0, 0.0), 0
    while found[0] < 1e3 and count < 200:
        found = times(found, (1.0 + 0.01 * x[0], 1e-18 * y[0]))
        count += 1
    return found


def signs(x: Any, y: Any) -> Any:
    count = 0
    for k in range(len(x)):
        p = x[k] * y[k]
        if x[k] * 0.1 - y[k] > 0:
            count += 1
        if x[k] * y[k] - p != 0:
            count += 100
    return count


@pytest.mark.parametrize("f", [kahan, neumaier, dot, powers, signs])
def test_compensated_sums_are_numpys(f: Callable[[Any, Any], Any]) -> None:
    x, y = np.random.default_rng(2).uniform(0.1, 3.0, (2, 60))
    y[:10] = x[:10] * 0.1
    assert np.array_equal(sg.jit(f, backend="llvm")(x, y), f(x, y))


def test_errors_that_other_loops_compute_are_numpys() -> None:
    """The error of the sum is computed in other loops than the sum, the product in both."""

    def f(x: Any, y: Any) -> Any:
        p = x * y
        s = p + x
        return (p - (s - x)) * np.max(s), s

    x, y = np.random.default_rng(1).uniform(0.1, 3.0, (2, 60))
    for found, known in zip(sg.jit(f, backend="llvm")(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w, b: x * w + b,
        lambda x, w, b: x * w - b,
        lambda x, w, b: b - x * w,
        lambda x, w, b: x * x + w * w,
        lambda x, w, b: ((0.3 * x - 0.7) * x + 0.1) * x - 0.9,
        lambda x, w, b: (b * x - b) * w - b,
    ],
)
def test_sums_that_are_no_differences_hold_their_products(f: Callable[[Any, Any, Any], Any]) -> None:
    """Polynomials, sums of squares and the like have one rounding."""
    x, w, b = np.random.default_rng(3).uniform(0.1, 3.0, (3, 2000))
    assert np.any(sg.jit(f, backend="llvm")(x, w, b) != f(x, w, b)) == HAS_FMA
