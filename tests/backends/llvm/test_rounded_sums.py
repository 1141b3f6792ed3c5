"""A sum that is rounded to a whole number holds no product: one digit more would make it another one than NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

COUNTS = np.arange(1.0, 40.0)
X, Y = (array.ravel() for array in np.meshgrid(COUNTS, COUNTS))
Y = Y / X
"""Numbers whose products round to whole ones, or beside them."""
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
LEVELS = np.round(np.arange(0.0, 1.01, 0.05), 2)


def in_a_loop(x: Any, y: Any) -> Any:
    total = 0.0
    for k in range(len(x)):
        total = total + k * np.floor(x[k] * y[k] - 1.0)
    return total


def of_python(x: Any, y: Any) -> Any:
    total, k = 0.0, 0
    while k < len(x):
        total += k * (int(x[k] * y[k] - 1.0) + math.floor(2.0 - x[k] * y[k]))
        k += 1
    return total


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: np.floor(x * y - 1.0),
        lambda x, y: np.ceil(3.0 - x * y),
        lambda x, y: np.trunc(0.5 + (x * y + 0.5)),
        lambda x, y: np.rint(x * x * y - 0.5),
        lambda x, y: (x * y - 1.0).astype(np.int32),
        lambda x, y: (x * y - 1.0) - np.floor(x * y - 1.0),
        in_a_loop,
        of_python,
    ],
)
def test_a_sum_that_is_rounded_is_numpys(f: Callable[[Any, Any], Any]) -> None:
    np.testing.assert_array_equal(sg.jit(f, backend="llvm")(X, Y), f(X, Y))


def test_a_number_that_is_rounded_is_numpys() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.floor(x * y - 1.0)

    compiled = sg.jit(f, backend="llvm")
    assert all(compiled(x, y) == f(x, y) for x, y in zip(X[::7], Y[::7], strict=True))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("method", METHODS)
def test_quantiles_lie_where_numpys_do(method: Any, backend: str) -> None:
    """Of elements among which are nans, so that their number is counted, or of levels that are arguments."""
    random = np.random.default_rng(0)

    def counted(x: Any) -> Any:
        return np.nanquantile(x, LEVELS, axis=-1, method=method), np.nanpercentile(x.T, 40, axis=0, method=method)

    def given(x: Any, levels: Any) -> Any:
        return np.quantile(x, levels, axis=-1, method=method)

    count, pick = sg.jit(counted, backend=backend), sg.jit(given, backend=backend)
    for size in (5, 10, 20):
        x = random.standard_normal((4, size))
        x[1, 2] = x[2, :3] = np.nan
        for found, wanted in zip(count(x), counted(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        np.testing.assert_allclose(pick(x[3], LEVELS), given(x[3], LEVELS), rtol=1e-12)
        np.testing.assert_allclose(pick(x[3], 0.4), given(x[3], 0.4), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("method", METHODS)
def test_slopes_of_quantiles_are_of_the_elements_that_numpy_takes(method: Any, backend: str) -> None:
    """The quantile is homogeneous and shifts with its elements: slope · x is it, and the slopes add up to 1."""

    def f(x: Any) -> Any:
        return np.sum(np.nanquantile(x, [0.2, 0.4, 0.8], method=method) * np.array([1.0, 3.0, 5.0]))

    x = np.random.default_rng(1).standard_normal((3, 6))
    x[:2, 4] = np.nan
    slopes = sg.vmap(sg.grad(f), backend=backend)(x)
    np.testing.assert_allclose(np.nansum(slopes * x, axis=1), [f(row) for row in x], rtol=1e-12)
    np.testing.assert_allclose(np.sum(slopes, axis=1), 9.0, rtol=1e-12)
