"""Derivatives where an argument is infinite and the function flat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg

FLAT: list[Callable[[Any], Any]] = [
    np.arctan,
    np.arcsinh,
    np.tanh,
    np.log,
    np.reciprocal,
    scipy.special.erf,
    scipy.special.expit,
    lambda x: np.arctan2(x, 2.0),
    lambda x: np.arctan2(2.0, x),
    lambda x: 1 / (1 + x**2),
    lambda x: 3.0 / (1 + x * x) + 1 / x**2,
    lambda x: (1 + x**2) ** -1 + (1 + x**2) ** -0.5 + np.reciprocal(2 + np.square(x)),
    lambda x: np.exp(-(x**2)) + np.exp(-x * x / 2) + np.exp(-(((x - 1) / 2) ** 2)),
    lambda x: np.log1p(x**2) + np.log10(np.square(x) + x**4),
    lambda x: np.exp(-1 / x**2) + np.exp(-1 / (1 + x**2)),
    lambda x: np.arctan(np.exp(x) + x),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FLAT)
def test_two_derivatives_at_infinity_are_zero(f: Callable[[Any], Any], backend: str) -> None:
    modes = [sg.jacfwd, sg.jacrev]
    for x in (np.inf, -np.inf):
        for inner in modes:
            if not (np.isneginf(x) and f is FLAT[-1]):
                assert inner(f, backend=backend)(x) == 0.0
                assert [outer(inner(f, backend=backend), backend=backend)(x) for outer in modes] == [0.0, 0.0]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_hypot_has_the_slope_of_what_is_infinite(backend: str) -> None:
    for x, slope in ((np.inf, 1.0), (-np.inf, -1.0)):
        for inner in (sg.jacfwd, sg.jacrev):
            found = inner(lambda v: np.hypot(v[0], v[1]), backend=backend)
            np.testing.assert_array_equal(found(np.array([x, 3.0])), [slope, 0.0])
            np.testing.assert_array_equal(found(np.array([3.0, x])), [0.0, slope])
            for outer in (sg.jacfwd, sg.jacrev):
                np.testing.assert_array_equal(outer(found, backend=backend)(np.array([x, 3.0])), np.zeros((2, 2)))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_angles_of_infinite_points_are_flat_in_both_places(backend: str) -> None:
    def angle(v: Any) -> Any:
        return np.arctan2(v[0], v[1])

    for point in ([1.0, np.inf], [0.0, -np.inf], [np.inf, 1.0], [-np.inf, np.inf]):
        for inner in (sg.jacfwd, sg.jacrev):
            slope = inner(angle, backend=backend)
            np.testing.assert_array_equal(slope(np.array(point)), [0.0, 0.0])
            np.testing.assert_array_equal(sg.jacfwd(slope, backend=backend)(np.array(point)), np.zeros((2, 2)))
    assert np.isnan(sg.grad(angle, backend=backend)(np.array([np.nan, np.inf]))).all()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_second_derivative_of_log_ndtr_far_to_the_left(backend: str) -> None:
    for x in (-1e8, -2e10, -1e154, -1e200, -np.inf):
        for inner in (sg.jacfwd, sg.jacrev):
            slope = inner(scipy.special.log_ndtr, backend=backend)
            np.testing.assert_allclose(slope(x), -x, rtol=1e-15)
            for outer in (sg.jacfwd, sg.jacrev):
                np.testing.assert_allclose(outer(slope, backend=backend)(x), -1.0, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_exponentials_of_poles_are_flat(backend: str) -> None:
    def bump(x: Any) -> Any:
        return np.exp(-1 / (1 - x**2)) + np.exp(-2.0 / x**2)

    for x, expected in ((1.0, 4 * np.exp(-2.0)), (0.0, 0.0)):
        for inner in (sg.jacfwd, sg.jacrev):
            np.testing.assert_allclose(inner(bump, backend=backend)(x), expected, rtol=1e-14)
    np.testing.assert_array_equal(sg.grad(lambda x: np.log(np.exp(x) + 0 * x**2), backend=backend)(1.0), 1.0)
    np.testing.assert_array_equal(
        sg.grad(lambda v: np.sum(np.exp(-(v**2))), backend=backend)(np.array([np.inf, 0.0])), [0.0, 0.0]
    )


def test_loops_hold_nothing_at_infinity() -> None:
    """Their derivatives would carry masks: twice the time for an energy of pairs."""

    def energy(x: Any) -> Any:
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                total = total + 1.0 / ((x[i] - x[j]) ** 2 + 0.1)
        return total

    assert "is_inf" not in sg.explain(sg.grad(energy))(np.arange(40.0))["optimised ir"]


def sech(x: float) -> float:
    return 2.0 / (np.exp(x) + np.exp(-x))


ROUNDED_TO_ONE: list[tuple[Callable[[Any], Any], float, float, float]] = [
    (lambda x: np.arcsin(np.tanh(x)), 20.0, sech(20.0), -sech(20.0)),  # the Gudermannian function
    (lambda x: np.arccos(np.tanh(x)), 20.0, -sech(20.0), sech(20.0)),
    (lambda x: np.arcsin(np.tanh(x)), 0.5, sech(0.5), -sech(0.5) * np.tanh(0.5)),
    (lambda x: np.arcsin(np.tanh(x)), -800.0, 0.0, 0.0),
    (lambda x: np.arctanh(np.tanh(x)), 20.0, 1.0, 0.0),
    (lambda x: np.arcsin(np.sin(x)), np.pi / 2 - 1e-9, 1.0, 0.0),
    (lambda x: np.arctanh(np.sin(x)), 1.57, 1 / np.cos(1.57), np.sin(1.57) / np.cos(1.57) ** 2),  # isometric latitude
    (lambda x: np.arccos(np.cos(x)), 4e-9, 1.0, 0.0),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("f", "x", "first", "second"), ROUNDED_TO_ONE)
def test_inverses_have_their_slopes_where_the_argument_is_rounded_to_one(
    f: Callable[[Any], Any], x: float, first: float, second: float, backend: str
) -> None:
    with np.errstate(all="ignore"):
        for inner in (sg.jacfwd, sg.jacrev):
            np.testing.assert_allclose(inner(f, backend=backend)(x), first, rtol=1e-13, atol=1e-300)
            for outer in (sg.jacfwd, sg.jacrev):
                found = outer(inner(f, backend=backend), backend=backend)(x)
                np.testing.assert_allclose(found, second, rtol=1e-12, atol=1e-15)
