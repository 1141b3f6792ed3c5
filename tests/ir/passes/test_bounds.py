"""What reaches a bound that it has anyway has no kink there: its second derivative is not halved, no value changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg

AT_ZERO: dict[str, tuple[Any, float]] = {
    "the larger of cosh and its bound": (lambda x: np.maximum(np.cosh(x), 1), 1.0),
    "the smaller of cosh and its bound": (lambda x: np.minimum(np.cosh(x), 1), 0.0),
    "cos within its bounds": (lambda x: np.clip(np.cos(x), -1, 1), -1.0),
    "twice cos within its bounds": (lambda x: np.clip(2 - 2 * np.cos(x), 0, 4), 2.0),
    "a sum of what is bounded": (lambda x: np.minimum(np.cos(x) + np.cos(2 * x), 2), -5.0),
    "the larger of cos and its bound": (lambda x: np.maximum(np.cos(x), 1), 0.0),
    "a size": (lambda x: np.abs(np.cosh(x) - 1), 1.0),
    "the size of what is not positive": (lambda x: abs(np.cos(x) - 1), 1.0),
    "the size of a logarithm": (lambda x: np.abs(np.log1p(x**2)), 2.0),
    "a product of what is not negative": (lambda x: np.maximum(x**2 * np.exp(x), 0), 2.0),
    "a length along an axis": (lambda x: np.hypot(x**2, 0), 2.0),
    "a bound that is a tie": (lambda x: np.maximum(np.cos(x), 1 - x**2 / 4), -0.75),
    "a kink of its own": (lambda x: np.maximum(np.abs(x), 0) ** 2, 2.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_second_derivatives_where_a_bound_is_reached(name: str, backend: str) -> None:
    f, second = AT_ZERO[name]
    for inner in (sg.jacfwd, sg.jacrev):
        assert inner(f, backend=backend)(0.0) == 0.0
        for outer in (sg.jacfwd, sg.jacrev):
            np.testing.assert_allclose(outer(inner(f), backend=backend)(0.0), second, rtol=1e-14)


PLACES = np.array([-np.inf, -800.0, -3.0, -1e-9, -0.0, 0.0, 1e-300, 2.0, 800.0, np.inf, np.nan])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_values_are_those_of_numpy(name: str, backend: str) -> None:
    f = AT_ZERO[name][0]
    with np.errstate(all="ignore"):
        found, expected = sg.vjp(f, PLACES, backend=backend)[0], f(PLACES)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-300)
    assert np.array_equal(np.signbit(found)[found == 0], np.signbit(expected)[expected == 0])


def test_a_bound_within_reach_is_a_kink() -> None:
    f = sg.grad(lambda x: np.clip(scipy.special.expit(x), 0.25, 0.75))
    assert f(5.0) == 0.0
    assert f(0.0) == 0.25
    assert sg.grad(lambda x: np.abs(np.cosh(x) - 2))(0.5) < 0.0
    assert sg.grad(lambda x: np.minimum(1 - np.cosh(x), -1.0))(0.5) == 0.0
    assert sg.grad(lambda x: np.clip(x, 1.0, 1.0))(1.0) == 0.25
