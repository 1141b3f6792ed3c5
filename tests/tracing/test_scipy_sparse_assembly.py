"""Sparse matrices whose elements a program assigns: ``lil_matrix`` and ``dok_matrix``, in loops and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl

import srcgrad as sg
from srcgrad.errors import SrcgradError

RNG = np.random.default_rng(11)
N = 30
X = RNG.uniform(0.5, 1.5, N)
ENDS = np.stack([np.arange(N - 1), np.arange(1, N)], 1)
STIFFNESS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def differences(x: Any, make: Any = sp.lil_matrix) -> Any:
    """A finite-difference matrix, element by element, with conditions at its ends."""
    h = 1.0 / (N - 1)
    A = make((N, N))
    for i in range(1, N - 1):
        A[i, i - 1] = -x[i] / h**2
        A[i, i] = (x[i] + x[i + 1]) / h**2
        A[i, i + 1] = -x[i + 1] / h**2
    A[0, 0] = 1.0
    A[-1, -1] = 1
    return spl.spsolve(A.tocsr(), np.ones(N))


def branches(x: Any) -> Any:
    A = sp.dok_matrix((N, N))
    for i in range(N):
        A[i, i] = 2.0 + x[i]
        if i > 0:
            A[i, i - 1] = -x[i - 1]
        if i < N - 1:
            A[i, i + 1] = -1.0
    A[0, :] = 0
    A[0, 0] = 1
    return spl.spsolve(A.tocsc(), x)


def elements(x: Any) -> Any:
    """A finite-element matrix, block by block."""
    A = sp.lil_matrix((N, N))
    for e in range(N - 1):
        A[np.ix_(ENDS[e], ENDS[e])] += x[e] * STIFFNESS
    for i in range(N):
        A[i, i] += 1
    return spl.spsolve(A.tocsr(), x)


def elements_one_by_one(x: Any) -> Any:
    A = sp.lil_matrix((N, N))
    for e in range(N - 1):
        nodes, block = [e, e + 1], x[e] * STIFFNESS
        for a in range(2):
            for b in range(2):
                A[nodes[a], nodes[b]] += block[a, b]
    A = A.tocsr() + sp.eye(N)
    return A @ x


def grid(x: Any) -> Any:
    m = 5
    A = sp.lil_matrix((m * m, m * m))
    for i in range(m):
        for j in range(m):
            p = i * m + j
            A[p, p] = 4.0 + x[p]
            if i > 0:
                A[p, p - m] = -x[i]
            if i < m - 1:
                A[p, p + m] = -1.0
            if j > 0:
                A[p, p - 1] = -1.0
            if j < m - 1:
                A[p, p + 1] = -x[j]
    return spl.spsolve(A.tocsr(), np.ones(m * m))


def parts(x: Any) -> Any:
    A = sp.lil_matrix((5, 6))
    A[1, :] = x[:6]
    A[:, 2] = x[:5, None]
    A[[0, 3], [1, 1]] = x[6:8]
    A[2:4, 3:5] = np.outer(x[:2], x[:2])
    A[[True, False, False, True, False], 0] = x[:2]
    A[4] = 2.0 * x[:6]
    A[-1, -2] = 7.0
    return A.toarray()


def changes(x: Any) -> Any:
    """What is read where it is written."""
    A = sp.lil_matrix((4, 4))
    A[0, 1] = x[0]
    A[0, 1] = A[0, 1] + x[1]
    A[0, 1] += 3.0
    A[0, 1] -= x[2]
    A[0, 1] *= x[3]
    A[1, 1] += x[4]
    A[1, 1] /= x[5]
    A[1, 1] **= 2
    A[2, 2] = 5.0
    A[2, 2] -= 5.0
    A[2, 3] = x[6]
    A[2, 3] = 0
    A[[0, 1], [0, 0]] += x[:2]
    A[3, 3] = A[0, 1] * A[1, 1]
    B = A.copy()
    B[0, 0] = 9.0
    return np.append((A @ A.T).toarray(), [B[0, 0] * x[0], A[0, 0]])


def diagonals(x: Any) -> Any:
    A = sp.lil_matrix((N, N))
    A.setdiag(2.0 + x)
    A.setdiag(-x[1:], 1)
    A.setdiag(-0.5, k=-1)
    return spl.spsolve(sp.csc_matrix(A), x) + A.diagonal() + A.T @ x + np.asarray((A * 2).sum(axis=0))[0]


def conditions(x: Any) -> Any:
    """Rows of another matrix are replaced, of one with traced elements and of one of numbers."""
    K = (sp.diags([x, -x[1:]], [0, 1]) + sp.eye(N)).tolil()
    K[0, :] = 0
    K[0, 0] = x[3]
    M = sp.csr_matrix(np.diag(np.arange(1.0, N + 1.0))).tolil()
    M[2, :] = x
    M[2, 2] = 40.0
    return spl.spsolve(K.tocsr() + M.tocsr(), x)


def tables(x: Any) -> Any:
    """Of an array of whole numbers that is captured."""
    A = sp.dok_array((N, N))
    for e in range(len(ENDS)):
        i, j = ENDS[e]
        A[i, j] = -x[e]
        A[j, i] = x[e] ** 2
        A[i, i] = 3.0
    A[N - 1, N - 1] = x[0]
    return spl.spsolve(A.tocsc(), x)


CASES: dict[str, Callable[[Any], Any]] = {
    "differences": differences,
    "differences in a dict": lambda x: differences(x, sp.dok_matrix),
    "differences in an array": lambda x: differences(x, sp.lil_array),
    "branches": branches,
    "elements": elements,
    "elements one by one": elements_one_by_one,
    "grid": grid,
    "parts": parts,
    "changes": changes,
    "diagonals": diagonals,
    "conditions": conditions,
    "tables": tables,
}


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    f = CASES[name]
    expected = np.asarray(f(X))
    weights = np.cos(np.arange(expected.size) + 0.2).reshape(expected.shape)
    direction, h = RNG.normal(size=N), 1e-3

    def loss(x: Any) -> Any:
        return np.sum(f(x) * weights)

    def slope(g: Callable[[Any], Any]) -> Any:
        first, second = ((g(X + k * h * direction) - g(X - k * h * direction)) / (2 * k * h) for k in (1, 2))
        return (4 * first - second) / 3

    with sg.use_backend(backend):
        found = sg.jit(f)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
        assert found.dtype == expected.dtype
        gradient = sg.grad(loss)
        np.testing.assert_allclose(gradient(X) @ direction, slope(loss), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(sg.jvp(loss, (X,), (direction,))[1], gradient(X) @ direction, rtol=1e-9)
        curvature = direction @ sg.hvp(loss, (X,), (direction,))
        np.testing.assert_allclose(curvature, slope(lambda x: gradient(x) @ direction), rtol=1e-5, atol=1e-7)


def test_a_loop_that_assigns_elements_stays_one() -> None:
    """The program of ten times as many trips is no longer."""

    def solved(x: Any, n: int) -> Any:
        A = sp.lil_matrix((n, n))
        for i in range(n):
            A[i, i] = 2.0 + x[i]
            if i > 0:
                A[i, i - 1] = -x[i]
        return np.sum(spl.spsolve(A.tocsr(), np.ones(n)))

    sizes = [len(str(sg.explain(sg.grad(solved))(np.ones(n), n)["ir"])) for n in (50, 500)]
    assert sizes[1] < 20 * sizes[0]  # the places are listed
    assert "for" in str(sg.explain(sg.jit(solved))(np.ones(50), 50)["ir"])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")  # a list outside is appended to
def test_a_matrix_of_known_elements_is_scipys_own() -> None:
    kinds = []

    def f(x: Any) -> Any:
        A = sp.lil_matrix((N, N), dtype=np.float32)
        for i in range(N):
            A[i, i] = 2.0 + i
        A[0, 0] -= 2.0
        kinds.append((type(A.tocsr()), A.nnz, A.dtype))
        return A.tocsr() @ x

    np.testing.assert_allclose(sg.jit(f)(X), np.append(0.0, 2.0 + np.arange(1, N)) * X)
    assert kinds[-1] == (sp.csr_matrix, N - 1, np.float32)


def test_dtypes() -> None:
    for dtype in (np.float32, np.complex128, np.int64):

        def f(x: Any, dtype: Any = dtype) -> Any:
            A = sp.lil_matrix((3, 3), dtype=dtype)
            for i in range(3):
                A[i, i] = 10 * x[i]
            A[0, 2] = 3.9
            return A.toarray()

        found = sg.jit(f)(X)
        assert found.dtype == f(X).dtype == dtype
        np.testing.assert_array_equal(found, f(X))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_cannot_be_assigned_is_an_error() -> None:
    def outside(x: Any) -> Any:
        A = sp.lil_matrix((3, 3))
        A[0, 3] = x[0]
        return A.tocsr() @ x[:3]

    def shapes(x: Any) -> Any:
        A = sp.lil_matrix((3, 3))
        A[0, :] = x[:2]
        return A.tocsr() @ x[:3]

    def imaginary(x: Any) -> Any:
        A = sp.lil_matrix((3, 3))
        A[0, 0] = 1j * x[0]
        return A.tocsr() @ x[:3]

    def compressed(x: Any) -> Any:
        A = sp.csr_matrix(np.diag(x))
        A[0, 0] = 1.0
        return A @ x

    for f, error, text in (
        (outside, IndexError, "out of bounds"),
        (shapes, ValueError, "shape"),
        (imaginary, TypeError, "complex"),
        (compressed, SrcgradError, "tolil"),
    ):
        with pytest.raises(error, match=text):
            sg.grad(lambda x, f=f: np.sum(f(x)))(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")  # places in a captured array
def test_examples() -> None:
    points = RNG.uniform(0.5, 1.5, (3, N))
    for f in (differences, elements):
        np.testing.assert_allclose(sg.vmap(f)(points), [f(x) for x in points], rtol=1e-10)
