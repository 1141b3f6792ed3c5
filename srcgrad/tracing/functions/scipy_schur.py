"""Schur, Hessenberg and LDL^H forms of ``scipy.linalg``: found by SciPy when the program runs, with their derivatives.

Of A = Z T Z^H with unitary Z let dZ = Z W, where W is skew-Hermitian: then dT = Z^H dA Z - (W T - T W), and what is
zero in every T, below its diagonal, or below the one beside it, says what W is. In two equal eigenvalues of a normal
matrix nothing does; there W has zeros. The equations for W are dense: n⁴/4 numbers for n rows. Importing this module
imports SciPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions.linear_algebra import linalg_dtype, square_matrices
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.scipy_linalg import adjoint, scipy_rule
from srcgrad.tracing.hosts import ask

EQUAL: Final = 1e-14
"""Equations whose numbers are this part of the matrix's or less say nothing."""


@functools.cache
def with_tangents(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Parts that SciPy has found of a matrix, as a function of it: ``rule(dA, whole numbers, *parts)`` has tangents."""
    from srcgrad.custom import custom_jvp  # which is written with the modules of tracing

    @custom_jvp
    def found(a: Any, whole: Any, *parts: Any) -> Any:
        return parts

    def tangents_of(primals: Any, tangents: Any) -> Any:
        parts = found(*primals)
        return parts, rule(tangents[0], primals[1], *parts)

    found.defjvp(tangents_of)
    return found


def one_matrix(a: Any, name: str) -> Any:
    matrix = square_matrices(a)
    if matrix.ndim != 2:
        raise UnsupportedError(f"scipy.linalg.{name} of a stack is not supported on traced arrays")
    return cast(matrix, linalg_dtype(matrix))


def turn(form: Any, change: Any, free: Any, equations: Callable[[Any], Any]) -> Any:
    """The skew-Hermitian W for which the equations of ``change`` - (W T - T W) are zero.

    ``free`` are the places below the diagonal in which W is unknown; of complex W the equations are in these alone.
    """
    rows, columns = free
    count, size = len(rows), form.shape[-1]
    basis = np.zeros((count, size, size), form.dtype)
    basis[np.arange(count), rows, columns] = 1.0
    skew = basis - np.swapaxes(basis, 1, 2) if form.dtype.kind == "f" else basis
    system = equations(skew @ form - form @ skew).T
    known: Any = np.max(np.abs(system), axis=1, keepdims=True) > EQUAL * np.max(np.abs(form))
    given = np.where(known, equations(change[None]).T, 0.0)
    w = np.linalg.solve(np.where(known, system, np.eye(count)), given)[:, 0]
    lower = np.zeros((size, size), form.dtype) + np.zeros_like(form)
    lower[rows, columns] = w
    return lower - adjoint(lower)


def schur_tangents(da: Any, _: Any, t: Any, z: Any) -> Any:
    """LAPACK gives the two numbers on the diagonal of a real block of two complex eigenvalues the same value."""
    rows, columns = np.tril_indices(t.shape[-1], -1)
    change = adjoint(z) @ da @ z
    blocks = (rows == columns + 1) & (t[rows, columns] != 0)

    def equations(x: Any) -> Any:
        return np.where(blocks, x[:, columns, columns] - x[:, rows, rows], x[:, rows, columns])

    w = turn(t, change, (rows, columns), equations)
    moved = change - (w @ t - t @ w)
    return np.where(np.tri(t.shape[-1], k=-1, dtype=bool) & (t == 0), 0.0, moved), z @ w


@scipy_rule(scipy.linalg.schur, finite="a", one=True)
def schur(
    a: Any, output: str = "real", lwork: Any = None, overwrite_a: bool = False, sort: Any = None,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """Phases of complex vectors, which nothing defines, are held."""
    if output not in ("real", "complex", "r", "c"):
        raise ShapeError("argument must be 'real', or 'complex'")
    matrix = one_matrix(a, "schur")
    if output[0] == "c" and matrix.dtype.kind == "f":
        matrix = cast(matrix, np.result_type(matrix.dtype, np.complex64))

    def site(a: Any) -> Any:
        solver: Any = scipy.linalg.schur
        t, z, *more = solver(a, output, sort=sort, check_finite=False)
        return (t, z, np.int64(more[0] if more else 0))

    like = np.zeros(matrix.shape, matrix.dtype)
    t, z, count = ask(site, (matrix,), (like, like, np.int64(0)), "scipy.linalg.schur")
    found = tuple(with_tangents(schur_tangents)(matrix, count, t, z))
    return found if sort is None else (*found, count)


def hessenberg_tangents(da: Any, _: Any, h: Any, q: Any) -> Any:
    """The first vector is the first of the unit matrix, and stays."""
    size = h.shape[-1]
    rows, columns = np.tril_indices(size, -2)
    change = adjoint(q) @ da @ q
    w = turn(h, change, (rows, columns + 1), lambda x: x[:, rows, columns])
    return np.triu(change - (w @ h - h @ w), -1), q @ w


@scipy_rule(scipy.linalg.hessenberg, finite="a", one=True)
def hessenberg(a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    matrix = one_matrix(a, "hessenberg")
    if matrix.dtype.kind == "c":
        raise UnsupportedError(
            "scipy.linalg.hessenberg of complex matrices is not supported on traced arrays",
            hint="scipy.linalg.schur(a, output='complex') is a form of complex matrices that has derivatives",
        )
    if matrix.shape[-1] < 3:
        return (matrix, np.eye(matrix.shape[-1], dtype=matrix.dtype)) if calc_q else matrix
    like = np.zeros(matrix.shape, matrix.dtype)
    parts = ask(lambda a: scipy.linalg.hessenberg(a, True, check_finite=False), (matrix,), (like, like), "hessenberg")
    h, q = with_tangents(hessenberg_tangents)(matrix, np.int64(0), *parts)
    return (h, q) if calc_q else h


def ldl_rule(lower: bool, hermitian: bool) -> Callable[..., Any]:
    def turned(x: Any) -> Any:
        return adjoint(x) if hermitian else x.mT

    def tangents(da: Any, order: Any, factor: Any, d: Any) -> Any:
        """With L the factor's rows in order and S = L^-1 dA L^-H, of dL = L X and dD: X D + D X^H + dD = S, where X is
        zero in the blocks of D, and beyond."""
        size = d.shape[-1]
        triangle = np.tril(da, -1) if lower else np.triu(da, 1)
        diagonal = np.diag(da)
        read = triangle + turned(triangle) + np.diag(np.real(diagonal) if hermitian else diagonal)
        rows = factor[order]
        s = np.linalg.solve(rows, turned(np.linalg.solve(rows, turned(read[order][:, order]))))
        within = np.eye(size, dtype=bool) | (d != 0)
        beside = np.tri(size, k=-1, dtype=bool) if lower else np.tri(size, k=-1, dtype=bool).T
        moved = rows @ np.where(beside & ~within, s, 0.0) @ np.linalg.inv(d)
        return moved[np.argsort(order)], np.where(within, s, 0.0)

    return tangents


RULES: Final = {
    (lower, hermitian): ldl_rule(lower, hermitian) for lower in (True, False) for hermitian in (True, False)
}


@scipy_rule(scipy.linalg.ldl, finite="A", one=True)
def ldl(
    A: Any, lower: bool = True, hermitian: bool = True, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Of the matrix of which one triangle is read; which rows are exchanged, and where D has blocks, stays."""
    matrix = one_matrix(as_array(A), "ldl")

    def site(a: Any) -> Any:
        factor, d, order = scipy.linalg.ldl(a, lower, hermitian, check_finite=False)
        return factor, d, np.asarray(order, np.int64)

    like = np.zeros(matrix.shape, matrix.dtype)
    *parts, order = ask(site, (matrix,), (like, like, np.zeros(matrix.shape[0], np.int64)), "scipy.linalg.ldl")
    rule = RULES[bool(lower), bool(hermitian) or matrix.dtype.kind == "f"]
    factor, d = with_tangents(rule)(matrix, order, *parts)
    return factor, d, order
