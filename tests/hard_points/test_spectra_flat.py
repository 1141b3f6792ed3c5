"""Functions of matrices that are held constant where they overflow, and sums over singular values that are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.linalg as la
import pytest

import srcgrad as sg

BASIS = la.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
TIED = BASIS @ np.diag([1.0, 1.0, 2.0]) @ BASIS.T
FLAT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "1/(1 + w**2)": (lambda w: 1 / (1 + w**2), lambda b: la.inv(np.eye(3) + b @ b)),
    "1/(1 + exp(w))": (lambda w: 1 / (1 + np.exp(w)), lambda b: 0.5 * (np.eye(3) - tanh(b / 2))),
    "w*tanh(w)": (lambda w: w * np.tanh(w), lambda b: b @ tanh(b)),
    "sqrt(w)**2": (lambda w: np.sqrt(w) ** 2, lambda b: b),
}


def tanh(b: Any) -> Any:
    w, v = la.eigh(b)
    return v @ np.diag(np.tanh(w)) @ v.T


@pytest.mark.parametrize("name", FLAT)
def test_equal_eigenvalues_of_functions_that_are_flat_somewhere(name: str) -> None:
    """The constant that they are held at was taken for numbers beside the eigenvalues, of which rounding tells equal
    ones apart: gradients had errors of 0.5."""
    g, matrix = FLAT[name]

    def found(a: Any) -> Any:
        w, v = la.eigh((a + a.T) / 2)
        return np.sum(np.sin(v @ np.diag(g(w)) @ v.T))

    def expected(a: Any) -> Any:
        return np.sum(np.sin(matrix((a + a.T) / 2)))

    for mode in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(mode(found)(TIED), sg.grad(expected)(TIED), rtol=0, atol=1e-13)
    if name.startswith("1/(1 + w"):
        np.testing.assert_allclose(sg.hessian(found)(TIED), sg.hessian(expected)(TIED), rtol=0, atol=1e-12)


LINEAR: dict[str, Callable[[Any], Any]] = {
    "(w**1.5)**(2/3)": lambda w: (w**1.5) ** (2 / 3),
    "cbrt(w)**3": lambda w: np.cbrt(w) ** 3,
    "sqrt(w)**2 on LLVM": lambda w: np.sqrt(w) ** 2,
}


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-7])
@pytest.mark.parametrize("name", LINEAR)
def test_derivatives_that_are_rounding_at_close_eigenvalues(name: str, gap: float) -> None:
    """Differences of slopes that are all 1 to rounding were divided by gaps: Hessians had errors of 0.3."""
    near = BASIS @ np.diag([1.0, 1.0 + gap, 2.0]) @ BASIS.T

    def found(a: Any) -> Any:
        w, v = la.eigh((a + a.T) / 2)
        return np.sum(np.sin((v * LINEAR[name](w)) @ v.T))

    hessian = sg.hessian(found, backend="llvm" if name.endswith("LLVM") else "numpy")(near)
    expected = sg.hessian(lambda a: np.sum(np.sin((a + a.T) / 2)))(near)
    np.testing.assert_allclose(hessian, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("a", [np.zeros((2, 3)), np.ones((3, 2)), np.diag([0.0, 1.0])], ids=["zeros", "ones", "diag"])
def test_smooth_sums_over_singular_values_that_are_0(a: Any, backend: str) -> None:
    """The square of the Frobenius norm had the second derivative 0 where a singular value was 0."""
    hessian = sg.hessian(lambda a: np.sum(la.svd(a, compute_uv=False) ** 2), backend=backend)(a)
    np.testing.assert_allclose(hessian.reshape(a.size, a.size), 2 * np.eye(a.size), rtol=0, atol=1e-13)
    found = sg.hessian(lambda a: np.sum(np.log(1 + la.svd(a, compute_uv=False) ** 2)), backend=backend)(a)
    expected = sg.hessian(lambda a: la.slogdet(np.eye(len(a)) + a @ a.T)[1])(a)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
