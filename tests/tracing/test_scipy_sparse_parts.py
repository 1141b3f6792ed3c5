"""Sparse matrices that are put together, taken apart and solved: values, derivatives, what is traced once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import srcgrad as sg

SIZE = 12
X = np.cos(np.arange(SIZE) ** 1.5)
FIXED = sp.csr_array(np.where(np.sin(np.arange(SIZE * SIZE) ** 1.3).reshape(SIZE, SIZE) > 0.6, 1.5, 0.0))
SQUARE = FIXED @ FIXED.T + sp.eye(SIZE)
ROWS, COLUMNS = np.array([0, 0, 3, 3, 3, 7]), np.array([1, 1, 2, 5, 2, 0])
Program = Callable[[Any], Any]


def tridiagonal(x: Any) -> Any:
    return sp.diags([x[1:] * 0.1, 10 + x**2, x[:-1] * 0.2], [-1, 0, 1], format="csr")


def symmetric(x: Any) -> Any:
    return sp.diags([x[1:] * 0.1, 10 + x**2, x[1:] * 0.1], [-1, 0, 1])


def array_of(x: Any) -> Any:
    return sp.diags_array([x[1:] * 0.1, 10 + x**2], offsets=[-1, 0])


PARTS: dict[str, Program] = {
    "kron": lambda x: sp.kron(tridiagonal(x), sp.eye(3)) @ np.tile(x, 3),
    "kron of dense": lambda x: sp.kron(FIXED[:2, :3], x[:6].reshape(2, 3)).toarray(),
    "kronsum": lambda x: sp.kronsum(tridiagonal(x), FIXED[:3, :3]) @ np.repeat(x, 3),
    "a Laplacian": lambda x: (
        (sp.kron(sp.eye(3), sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(4, 4))) - sp.diags(x)) @ x
    ),
    "vstack": lambda x: sp.vstack([tridiagonal(x), FIXED, tridiagonal(x).T]) @ x,
    "hstack": lambda x: sp.hstack([tridiagonal(x), FIXED]) @ np.tile(x, 2),
    "bmat": lambda x: sp.bmat([[tridiagonal(x), None], [FIXED, symmetric(x)]], format="csr") @ np.tile(x, 2),
    "block_diag": lambda x: sp.block_diag((tridiagonal(x), x[:4].reshape(2, 2), FIXED)) @ np.tile(x, 3)[:26],
    "tril": lambda x: sp.tril(tridiagonal(x), -1) @ x,
    "triu": lambda x: sp.triu(array_of(x)) @ x,
    "spdiags": lambda x: sp.spdiags([x, x**2], [0, 1], SIZE, SIZE - 1) @ x[1:],
    "rows": lambda x: tridiagonal(x)[2:9:2] @ x,
    "columns": lambda x: tridiagonal(x)[:, [3, 3, 1]] @ x[:3],
    "a row": lambda x: tridiagonal(x)[3] @ x,
    "a row of an array": lambda x: array_of(x).tocsr()[3] @ x,
    "an element": lambda x: tridiagonal(x)[3, 4] * x + tridiagonal(x)[0, 9],
    "by masks": lambda x: tridiagonal(x)[X > 0] @ x,
    "getcol": lambda x: tridiagonal(x).getcol(2).toarray(),
    "reshape": lambda x: tridiagonal(x).reshape((SIZE // 2, 2 * SIZE)) @ np.tile(x, 2),
    "abs": lambda x: abs(tridiagonal(x)) @ x,
    "a power of a sum": lambda x: (tridiagonal(x) + sp.eye(SIZE)).power(3) @ x,
    "a power of equal places": lambda x: sp.coo_array((x[:6], (ROWS, COLUMNS)), shape=(9, 9)).power(2) @ x[:9],
    "elements of a sum": lambda x: (tridiagonal(x) + symmetric(x)).multiply(tridiagonal(x) + FIXED) @ x,
}
SOLVED: dict[str, Program] = {
    **{
        solve.__name__: (lambda x, solve=solve: solve(symmetric(x), x, rtol=1e-13)[0])
        for solve in (sl.bicg, sl.bicgstab, sl.cg, sl.cgs, sl.gmres, sl.minres, sl.tfqmr)
    },
    "cg of a dense matrix": lambda x: sl.cg(symmetric(x).toarray(), x, rtol=1e-13, maxiter=100)[0],
    "cg of a fixed one": lambda x: sl.cg(SQUARE, x, x0=0 * x, rtol=1e-13)[0],
    "triangle": lambda x: sl.spsolve_triangular(sp.tril(tridiagonal(x)).tocsr(), x),
    "unit triangle": lambda x: sl.spsolve_triangular(unit(x), x, lower=False, unit_diagonal=True),
    "inv": lambda x: sl.inv(tridiagonal(x).tocsc()) @ x,
    "norm": lambda x: sl.norm(tridiagonal(x) + symmetric(x)) * x,
    "norm of columns": lambda x: sl.norm(tridiagonal(x), 1) * x,
    **{
        f"eigsh {which}": (lambda x, which=which: sl.eigsh(symmetric(x), 3, which=which, return_eigenvectors=False))
        for which in ("LM", "SM", "LA", "SA")
    },
    "eigsh near a number": lambda x: sl.eigsh(symmetric(x).tocsc(), 3, sigma=10.5)[0],
    "eigsh near a number, alone": lambda x: sl.eigsh(symmetric(x).tocsc(), 4, sigma=10.5, return_eigenvectors=False),
    "eigsh, projector": lambda x: projector(sl.eigsh(sp.diags(3.0 * np.arange(SIZE)) + symmetric(x), 2)[1]) @ x,
    "svds": lambda x: sl.svds(tridiagonal(x), 3, return_singular_vectors=False),
    "svds, product": lambda x: product(*sl.svds(tridiagonal(x), 3)) @ x,
}


def unit(x: Any) -> Any:
    return (sp.triu(tridiagonal(x), 1) + sp.eye(SIZE)).tocsr()


def projector(v: Any) -> Any:
    return v @ v.T


def product(u: Any, s: Any, vh: Any) -> Any:
    return (u * s) @ vh


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", [*PARTS, *SOLVED])
def test_a_program_of_sparse_matrices(name: str) -> None:
    program = {**PARTS, **SOLVED}[name]
    expected = program(X)
    found = sg.jit(program)(X)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)

    def loss(x: Any) -> Any:
        return np.sum(program(x) ** 2)

    step = np.sin(1.0 + np.arange(SIZE))
    slope = np.sum(sg.grad(loss)(X) * step)
    np.testing.assert_allclose(slope, (loss(X + 1e-5 * step) - loss(X - 1e-5 * step)) / 2e-5, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jvp(loss, (X,), (step,))[1], slope, rtol=1e-9)


def test_a_plane_of_ten_thousand_places() -> None:
    """Diffusion with a coefficient of each place, as textbooks put it together."""
    side = 100
    line = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(side, side))
    plane = sp.kron(line, sp.eye(side)) + sp.kron(sp.eye(side), line)
    coefficients = 1 + 0.5 * np.cos(np.arange(side**2))

    def total(k: Any) -> Any:
        matrix = sp.eye(side**2) - sp.diags(k) @ plane
        return np.sum(sl.spsolve(matrix.tocsc(), np.ones(side**2)))

    slope = sg.grad(total)(coefficients)
    step = np.sin(np.arange(side**2))
    expected = (total(coefficients + 1e-5 * step) - total(coefficients - 1e-5 * step)) / 2e-5
    np.testing.assert_allclose(np.sum(slope * step), expected, rtol=1e-6)


REFUSED: dict[str, Program] = {
    "maxiter=3": lambda x: sl.cg(symmetric(x), x, maxiter=3)[0],
    "callback": lambda x: sl.cg(symmetric(x), x, callback=print)[0],
    "which='BE'": lambda x: sl.eigsh(symmetric(x), 2, which="BE")[0],
    "eigsh: k must satisfy 0 < k < 12": lambda x: sl.eigsh(symmetric(x), 14)[0],
    "svds: k must satisfy 0 < k < 12": lambda x: sl.svds(symmetric(x), 12)[1],
    "which must be 'LM' or 'SM'": lambda x: sl.svds(symmetric(x), 2, which="LA")[1],
    "not triangular": lambda x: sl.spsolve_triangular(tridiagonal(x), x),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused_says_so(words: str) -> None:
    with pytest.raises(sg.SrcgradError, match=words):
        sg.grad(lambda x: np.sum(REFUSED[words](x)))(X)


def test_a_singular_matrix_has_no_solution_by_steps() -> None:
    """SciPy gives one of many, which has no derivative."""
    with pytest.raises(np.linalg.LinAlgError, match="no one solution"):
        sg.jit(lambda x: sl.cg(sp.diags([x - x[0]], [0]), x)[0])(X)
