"""Eigenvalues and singular values, of ``np.linalg``, and what NumPy computes from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.linear_algebra import emit_all, rectangular_matrices, square_matrices
from srcgrad.tracing.functions.registry import as_array, numpy_rule
from srcgrad.tracing.tracer import Tracer, as_tracer, emit

EighResult: Any = type(np.linalg.eigh(np.eye(1)))
EigResult: Any = type(np.linalg.eig(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))


def lower(x: Any, uplo: Any) -> Any:
    """Hermitian matrices whose lower triangle is the one that is read."""
    a = square_matrices(x)
    side = str(uplo).upper()
    if side not in ("L", "U"):
        raise ShapeError("UPLO argument must be 'L' or 'U'")
    return a if side == "L" else np.conjugate(a.mT)


@numpy_rule("linalg.eigh")
def eigh(a: Any, UPLO: Any = "L") -> Any:
    return eigenvectors(lower(a, UPLO), str(UPLO).upper() == "U")


def eigenvectors(matrix: Any, upper: bool, **attrs: Any) -> Any:
    """Of a matrix whose lower triangle is read; ``upper``: LAPACK reads the upper one of the matrix that it is of."""
    if upper:
        attrs["upper"] = True
    return EighResult(*emit_all("eigh", matrix, **attrs))


@numpy_rule("linalg.eigvalsh")
def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return emit("eigvalsh", lower(a, UPLO))


@numpy_rule("linalg.eig")
def eig(a: Any) -> Any:
    """Always complex, as NumPy's since 2.5: before, its dtype depends on the numbers."""
    return EigResult(*emit_all("eig", square_matrices(a)))


@numpy_rule("linalg.eigvals")
def eigvals(a: Any) -> Any:
    """Always complex, as `eig`."""
    return emit("eigvals", square_matrices(a))


@numpy_rule("linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        return hermitian_svd(a, compute_uv)
    matrix = rectangular_matrices(a)
    if not compute_uv:
        return emit("svdvals", matrix)
    full = bool(full_matrices) and matrix.shape[-1] != matrix.shape[-2]
    return SVDResult(*emit_all("svd", matrix, full_matrices=full))


def hermitian_svd(a: Any, compute_uv: bool) -> Any:
    """From the eigenvalues, as NumPy: their absolute values in descending order, the signs with V^H."""
    matrix = square_matrices(a)
    if not compute_uv:
        size: Any = np.abs(eigvalsh(matrix))
        return np.sort(size, axis=-1)[..., ::-1]
    w, u = eigh(matrix)
    order = np.argsort(np.abs(w), axis=-1)[..., ::-1]
    w, u = np.take_along_axis(w, order, -1), np.take_along_axis(u, order[..., None, :], -1)
    sign = np.where(w < 0, -1.0, 1.0).astype(w.dtype)  # of 0 as well, so that V is unitary
    vh = np.conjugate((u * sign[..., None, :]).mT)
    return SVDResult(u, np.abs(w), vh)


@numpy_rule("linalg.svdvals")
def svdvals(x: Any, /) -> Any:
    return emit("svdvals", rectangular_matrices(x))


@numpy_rule("linalg.matrix_rank")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """How many singular values are above the tolerance: an integer, which has no derivative."""
    a = as_tracer(A)
    if tol is not None and rtol is not None:
        raise ShapeError("`tol` and `rtol` can't be both set.")
    if a.ndim < 2:
        return np.any(a != 0).astype(int)
    if not a.size:
        return np.zeros(a.shape[:-2], int)[()]
    s = svd(a, compute_uv=False, hermitian=hermitian)
    if tol is None:
        factor = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else as_array(rtol)[..., None]
        tol = np.max(s, axis=-1, keepdims=True) * factor
    else:
        tol = np.asarray(tol)[..., None] if not isinstance(tol, Tracer) else as_array(tol)[..., None]
    return np.sum(s > tol, axis=-1)


def spectral_norm_along(a: Any, ord: Any, axes: tuple[int, int], keepdims: Any) -> Any:
    """The matrix norms that are made of singular values: ``'nuc'``, 2 and -2; 0 is a kink, at which slopes are 0."""
    s = svdvals(np.moveaxis(a, axes, (-2, -1)))
    reduce = np.min if ord == -2 else np.sum if ord == "nuc" or not s.shape[-1] else np.max
    found: Any = np.abs(reduce(s, axis=-1))
    return np.expand_dims(found, axes) if keepdims else found


def spectral_cond(x: Any, p: Any) -> Any:
    """The condition number in the norms 2 (or None) and -2."""
    s: Any = svdvals(x)
    return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
