"""Riccati equations of ``scipy.linalg``: second derivatives, equations whose modes coincide, what has no solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg

import srcgrad as sg

A = np.random.default_rng(0).normal(size=(4, 4))
B = np.random.default_rng(1).normal(size=(4, 2))
Q, R = A @ A.T + np.eye(4), np.eye(2)
CHAIN = np.eye(4, k=1), np.eye(4)[:, 3:], np.eye(4), np.eye(1)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("solve", [linalg.solve_continuous_are, linalg.solve_discrete_are], ids=["care", "dare"])
def test_second_derivatives_of_solutions(solve: Callable[..., Any], backend: str) -> None:
    def cost(a: Any) -> Any:
        return np.sum(solve(a, B, Q, R) ** 2)

    slope, step = sg.grad(cost, backend=backend), np.random.default_rng(2).normal(size=A.shape)
    expected = (slope(A + 1e-5 * step) - slope(A - 1e-5 * step)) / 2e-5
    found = sg.hvp(cost, (A,), (step,), backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.max(np.abs(expected)))


@pytest.mark.parametrize("solve", [linalg.solve_continuous_are, linalg.solve_discrete_are], ids=["care", "dare"])
def test_a_chain_of_integrators_has_a_solution_to_the_last_digits(solve: Callable[..., Any]) -> None:
    """Its matrix has one eigenvalue four times, and one eigenvector."""
    found = sg.jit(lambda a: solve(a, *CHAIN[1:]), strict=True)(CHAIN[0])
    np.testing.assert_allclose(found, solve(*CHAIN), rtol=1e-11, atol=1e-12)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "what cannot be made stable": lambda a: linalg.solve_continuous_are(a, 0.0 * B, Q, R),
    "weights that are not symmetric": lambda a: linalg.solve_continuous_are(a, B, A, R),
    "a singular weight": lambda a: linalg.solve_continuous_are(a, B, Q, 0.0 * R),
    "a weight of another shape": lambda a: linalg.solve_discrete_are(a, B, Q, np.eye(3)),
    "nan": lambda a: linalg.solve_discrete_are(a * np.nan, B, Q, R),
    "a kind of problem that is not there": lambda a: linalg.eigh(a, Q, type=4),
    "eigenvalues between no bounds": lambda a: linalg.eigh(a, subset_by_value=(2.0, 1.0)),
    "a selection that is not there": lambda a: linalg.eigvals_banded(a, select="q"),
    "a mode of RQ": lambda a: linalg.rq(a, mode="all"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_scipy_refuses_is_refused(name: str) -> None:
    with pytest.raises(ValueError) as expected:  # LinAlgError is one
        REFUSED[name](A)
    with pytest.raises(type(expected.value)):
        sg.jvp(REFUSED[name], (A,), (A,))


def test_eigenvalues_between_bounds_are_a_path_each() -> None:
    slope = sg.grad(lambda a: np.sum(linalg.eigh(a + a.T, subset_by_value=(0.0, 3.0))[0] ** 2))
    for matrix in (A, 0.1 * A):
        step = np.random.default_rng(3).normal(size=A.shape)
        ends = [
            np.sum(linalg.eigh(x + x.T, subset_by_value=(0.0, 3.0))[0] ** 2)
            for x in (matrix + 1e-6 * step, matrix - 1e-6 * step)
        ]
        np.testing.assert_allclose(np.sum(slope(matrix) * step), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
