"""Decompositions of matrices of which one triangle is filled: their derivatives are those of the triangle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.7, 1.3, 2.1])
WEIGHTS = np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])


def fixed() -> Any:
    return np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])


def written(x: Any) -> Any:
    return np.array([[x[0] + 4.0, 0, 0.0], [x[1], x[2] + 5, 0.0], [x[0] * x[1], -x[2], x[1] + 6]]) / 3.0


def filled(x: Any) -> Any:
    a = np.zeros((3, 3))
    a[0, 0], a[1, 1], a[2, 2] = 4.0 + x[0], 5.0, 6.0
    a[1, 0], a[2, 0], a[2, 1] = x
    return a


def one_changed(x: Any) -> Any:
    a = fixed()
    a[2, 0] = 0.1 * x[0] * x[1]
    return a


def never_read(x: Any) -> Any:
    a = fixed()
    a[0, 2], a[1, 1] = x[1], x[2] + 3.0
    return a


def whole(x: Any) -> Any:
    a = fixed() * x[0]
    a[2, 0] = a[0, 2] = 0.3 * x[1]
    return a


MATRICES: list[Callable[[Any], Any]] = [written, filled, one_changed, never_read, whole]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "eigh": lambda a: np.sum(np.linalg.eigh(a)[1][:, 2] ** 2 * [1.0, 2.0, 3.0]),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) * [1.0, 2.0, 3.0]),
    "upper": lambda a: np.sum(np.linalg.eigvalsh(a.T, "U") ** 2 * [1.0, 2.0, 3.0]),
    "a function of the matrix": lambda a: (lambda w, v: np.sum(((v * np.exp(w)) @ v.T)[0]))(*np.linalg.eigh(a)),
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a) * WEIGHTS),
}


@pytest.mark.parametrize("matrix", MATRICES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_reads_a_triangle_has_its_derivative(name: str, matrix: Callable[[Any], Any]) -> None:
    """It had half of what an element below a constant zero adds."""

    def loss(x: Any) -> Any:
        return FUNCTIONS[name](matrix(x))

    np.testing.assert_allclose(sg.jit(loss)(X), loss(X), rtol=1e-12)
    apart = [(loss(X + 1e-6 * e) - loss(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(sg.grad(loss)(X), apart, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sg.jacfwd(loss)(X), apart, rtol=1e-6, atol=1e-9)
