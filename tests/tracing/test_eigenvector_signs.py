"""Eigenvectors of symmetric matrices have the signs that NumPy's and SciPy's routines of LAPACK give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg


def last(a: Any) -> tuple[int, int]:
    return max(len(a) - 2, 0), len(a) - 1


def bands(a: Any) -> Any:
    """The diagonals from the second above the main one on, as `eig_banded` takes them, of a Hermitian matrix."""
    return np.stack([np.concatenate([np.zeros(k), np.diag(a, k)]) for k in range(min(2, len(a) - 1), -1, -1)])


CASES: dict[str, Callable[[Any], Any]] = {
    "NumPy's of the lower triangle": np.linalg.eigh,
    "NumPy's of the upper triangle": lambda a: np.linalg.eigh(a, UPLO="U"),
    "SciPy's of the lower triangle": scipy.linalg.eigh,
    "SciPy's of the upper triangle": lambda a: scipy.linalg.eigh(a, lower=False),
    "SciPy's by another routine": lambda a: scipy.linalg.eigh(a, driver="evd"),
    "of a pencil": lambda a: scipy.linalg.eigh(a, np.diag(np.arange(2.0, len(a) + 2.0))),
    "of a pencil whose upper triangles are read": lambda a: scipy.linalg.eigh(
        a, np.diag(np.arange(2.0, len(a) + 2.0)), lower=False
    ),
    "some of a pencil": lambda a: scipy.linalg.eigh(a, np.eye(len(a)) + 0.1, subset_by_index=last(a)),
    "SciPy's by QR": lambda a: scipy.linalg.eigh(a, driver="ev"),
    "SciPy's by bisection": lambda a: scipy.linalg.eigh(a, driver="evx", lower=False),
    "the last": lambda a: scipy.linalg.eigh(a, subset_by_index=last(a)),
    "the last by bisection": lambda a: scipy.linalg.eigh(a, subset_by_index=last(a), driver="evx", lower=False),
    "the positive": lambda a: scipy.linalg.eigh(a, subset_by_value=[0.0, np.inf]),
    "of bands": lambda a: scipy.linalg.eig_banded(bands(a)),
    "of lower bands": lambda a: scipy.linalg.eig_banded(bands(a)[::-1], lower=True),
    "the last of bands": lambda a: scipy.linalg.eig_banded(bands(a), select="i", select_range=last(a)),
    "the positive of bands": lambda a: scipy.linalg.eig_banded(bands(a), select="v", select_range=(0.0, 99.0)),
    "the last of a tridiagonal matrix": lambda a: scipy.linalg.eigh_tridiagonal(
        np.diag(a).real, np.diag(a, 1).real, select="i", select_range=last(a)
    ),
    "of a tridiagonal matrix": lambda a: scipy.linalg.eigh_tridiagonal(np.diag(a).real, np.diag(a, 1).real),
    "of one by another routine": lambda a: scipy.linalg.eigh_tridiagonal(
        np.diag(a).real, np.diag(a, 1).real, lapack_driver="stemr"
    ),
}


def hermitian(size: int, kind: str, seed: int, apart: float = 0.5) -> Any:
    """With numbers in both triangles that do not agree, so that it matters which of them is read."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(size, size))
    if kind == "complex":
        a = a + 1j * rng.normal(size=(size, size))
    return a + a.conj().T + apart * np.tril(rng.normal(size=(size, size)), -1)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", CASES)
def test_vectors_are_those_of_the_same_routine(name: str, kind: str, backend: str) -> None:
    """Of SciPy's eigh most had other signs, and so had those of upper triangles."""
    f = CASES[name]
    compiled = sg.jit(f, backend=backend)
    for size in (1, 2, 3, 5, 8, 30):
        for seed in range(3):
            a = hermitian(size, kind, seed)
            for found, expected in zip(compiled(a), f(a), strict=True):
                assert found.shape == expected.shape
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_their_derivatives(name: str, backend: str) -> None:
    f = CASES[name]
    a, direction = hermitian(4, "real", 7, 0.0), hermitian(4, "real", 8, 0.0)
    weights = np.cos(np.arange(16.0)).reshape(4, 4)

    reference = f(a)[1]

    def loss(a: Any) -> Any:
        """The signs jump between matrices that are next to each other."""
        w, v = f(a)
        v = v * np.sign(np.sum(v * reference, axis=0))
        return np.sum(v * weights[:, : len(w)]) + np.sum(np.sin(w))

    slope = (loss(a + 1e-6 * direction) - loss(a - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(sg.grad(loss, backend=backend)(a) * direction), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jvp(loss, (a,), (direction,), backend=backend)[1], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_vectors_of_a_batch_are_those_of_each(backend: str) -> None:
    stack = np.stack([hermitian(5, "real", seed) for seed in range(6)])
    for name in ("SciPy's of the lower triangle", "SciPy's of the upper triangle", "NumPy's of the upper triangle"):
        found = sg.vmap(lambda a, f=CASES[name]: f(a)[1], backend=backend)(stack)
        expected = np.stack([CASES[name](a)[1] for a in stack])
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_numbers_that_are_not_finite_are_the_same_errors() -> None:
    for a in (np.full((3, 3), np.nan), np.array([[1.0, np.inf], [np.inf, 1.0]])):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            sg.jit(scipy.linalg.eigh)(a)
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            sg.grad(lambda a: np.sum(scipy.linalg.eigh(a)[1]))(a)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_functions_of_some_have_derivatives_where_eigenvalues_are_equal(backend: str) -> None:
    """The routine that is asked for signs changes nothing in what is recognised as a function of the matrix."""

    def part(a: Any) -> Any:
        w, v = scipy.linalg.eigh(a, subset_by_index=[1, 2])
        return np.sum((v * np.sqrt(w)) @ v.T * np.arange(9.0).reshape(3, 3))

    a, direction = np.diag([1.0, 4.0, 4.0]), np.array([[0.3, 0.1, 0.2], [0.1, -0.4, 0.5], [0.2, 0.5, 0.7]])
    slope = (part(a + 1e-6 * direction) - part(a - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(sg.grad(part, backend=backend)(a) * direction), slope, rtol=1e-6)
