"""Least squares between bounds: SciPy's solutions, and slopes where the same unknowns stay at their bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

import srcgrad as sg
from srcgrad.errors import UnsupportedError

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(6, 3)), RNG.normal(size=6)
ACROSS = np.arange(1.0, 4.0)

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "nnls of the right side": (lambda b: np.sum(optimize.nnls(A, b)[0] ** 2) + optimize.nnls(A, b)[1], B),
    "nnls of the matrix": (lambda a: np.sum(optimize.nnls(a, B)[0] * ACROSS), A),
    "lsq_linear of the matrix": (lambda a: np.sum(optimize.lsq_linear(a, B, (-0.1, 0.3), "bvls").x * ACROSS), A),
    "lsq_linear of its bounds": (lambda t: np.sum(optimize.lsq_linear(A, B, (-0.1 * t, 0.3 * t)).x * ACROSS), 1.0),
    "its residuals": (lambda b: np.sum(optimize.lsq_linear(A, b, optimize.Bounds([-0.1] * 3, [0.3] * 3)).fun[:3]), B),
    "bounds that are traced": (
        lambda t: np.sum(
            optimize.lsq_linear(A, B, optimize.Bounds(-0.1 * t * np.ones(3), 0.3 * t * np.ones(3))).x * ACROSS
        ),
        1.0,
    ),
    "its cost": (lambda b: optimize.lsq_linear(A, b, (-0.1, 0.3)).cost, B),
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name: str) -> None:
    f, point = CASES[name]
    np.testing.assert_allclose(sg.jit(f)(point), f(point), rtol=1e-9)
    sg.testing.check_grads(f, (point,), order=1, rtol=1e-5)


def test_some_unknowns_meet_their_bounds() -> None:
    assert 0 < np.sum(optimize.nnls(A, B)[0] > 0) < 3
    assert 0 < np.sum(optimize.lsq_linear(A, B, (-0.1, 0.3)).active_mask != 0) < 3


def test_second_derivatives_of_a_solution() -> None:
    slope = sg.grad(lambda a: np.sum(optimize.nnls(a, B)[0] ** 2))
    direction, step = np.cos(np.arange(18.0)).reshape(6, 3), 1e-5
    expected = (slope(A + step * direction) - slope(A - step * direction)) / (2 * step)
    found = sg.hvp(lambda a: np.sum(optimize.nnls(a, B)[0] ** 2), (A,), (direction,))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_bounds_of_one_number_are_an_error_as_in_scipy() -> None:
    for call in (lambda f: f(B), lambda f: sg.grad(f)(B)):
        with pytest.raises(ValueError, match="Bounds have wrong shape"):
            call(lambda b: optimize.lsq_linear(A, b, optimize.Bounds(-0.1, 0.3)).cost)


def test_sparse_matrices_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="takes arrays"):
        sg.grad(lambda b: optimize.lsq_linear(sparse.csr_array(A), b).cost)(B)
