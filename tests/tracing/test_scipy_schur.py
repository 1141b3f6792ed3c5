"""Schur, Hessenberg and LDL^H forms: SciPy's values and slopes to second order, of real and complex eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg

import srcgrad as sg
from srcgrad.errors import UnsupportedError

RNG = np.random.default_rng(1)
A = RNG.normal(size=(4, 4))
"""Two of its eigenvalues are complex."""
REAL = A + A.T + 6.0 * np.eye(4) + 0.3 * A
HOLLOW = A + A.T - np.diag(np.diag(2.0 * A)) + 0.01 * np.diag(np.diag(A))
"""Its LDL^T form has blocks of two rows, and exchanged ones."""
CYCLE = np.array([[0.0, -0.6, -0.1, -2.2], [-0.6, 0.0, 0.0, 0.7], [-0.1, 0.0, 0.0, -1.2], [-2.2, 0.7, -1.2, 0.0]])
"""Its rows are exchanged in a cycle, whose inverse is another one."""
WEIGHTS = RNG.normal(size=(3, 4, 4))


def weighed(*parts: Any) -> Any:
    return sum(np.sum(np.real(part) * w) for part, w in zip(parts, WEIGHTS, strict=False))


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "schur of real eigenvalues": (lambda a: weighed(*linalg.schur(a)), REAL),
    "schur with a block": (lambda a: weighed(*linalg.schur(a)), A),
    "complex schur": (lambda a: weighed(np.abs(linalg.schur(a, output="complex")[0])), A),
    "sorted schur": (lambda a: weighed(*linalg.schur(a, sort="lhp")[:2]), A),
    "hessenberg": (lambda a: weighed(*linalg.hessenberg(a, calc_q=True)), A),
    "hessenberg of two rows": (lambda a: np.sum(linalg.hessenberg(a)[0] * a), A[:2, :2]),
    "ldl": (lambda a: weighed(*linalg.ldl(a)[:2]), REAL),
    "ldl with blocks": (lambda a: weighed(*linalg.ldl(a)[:2]), HOLLOW),
    "ldl with blocks of rows in a cycle": (lambda a: weighed(*linalg.ldl(a)[:2]), CYCLE),
    "ldl of the upper triangle": (lambda a: weighed(*linalg.ldl(a, lower=False)[:2]), HOLLOW),
    "ldl of a complex matrix": (lambda a: weighed(*linalg.ldl(a + 1j * (a - a.T))[:2]), HOLLOW),
    "ldl of a symmetric one": (lambda a: weighed(*linalg.ldl(a + 1j * np.sin(a), hermitian=False)[:2]), HOLLOW),
    "ldl by its order": (lambda a: (lambda f, d, p: weighed(f[p], d))(*linalg.ldl(a)), HOLLOW),
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name: str) -> None:
    f, point = CASES[name]
    np.testing.assert_allclose(sg.jit(f)(point), f(point), rtol=1e-12)
    sg.testing.check_grads(f, (point,), order=2, rtol=1e-5)


def test_schur_of_equal_eigenvalues_of_a_normal_matrix() -> None:
    """Nothing says how the vectors turn; the eigenvalues' sum of squares does not depend on it."""
    point = np.eye(3)
    slope = sg.grad(lambda a: np.sum(np.diag(linalg.schur(a)[0]) ** 2))(point)
    np.testing.assert_allclose(slope, 2.0 * point)


def test_ldl_reads_one_triangle() -> None:
    slope = sg.grad(lambda a: weighed(*linalg.ldl(a)[:2]))(REAL)
    np.testing.assert_array_equal(np.triu(slope, 1), 0.0)


def test_complex_hessenberg_forms_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="hessenberg of complex"):
        sg.grad(lambda a: np.sum(np.abs(linalg.hessenberg(a + 1j * a.T))))(A)
