"""Cholesky factors and linear systems, with NumPy's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jax import lax
from jax.lax import linalg

from srcgrad.backends.xla.program import Application
from srcgrad.backends.xla.tables import Array, contextual, full_like, is_complex, is_nan

INT64: Final = np.dtype(np.int64)


def diagonal(x: Array) -> Array:
    """The diagonals of a stack of matrices."""
    rank = x.ndim
    rows, columns = (lax.broadcasted_iota(INT64, x.shape, axis) for axis in (rank - 2, rank - 1))
    kept = lax.select(lax.eq(rows, columns), x, full_like(x, 0))
    return lax.reduce_sum(kept, (rank - 1,))


@contextual
def cholesky(application: Application, x: Array) -> Array:
    if not x.size:
        return x
    found: Array = linalg.cholesky(application.from_lower(x), symmetrize_input=False)
    application.check(lax.bitwise_not(fails(x, found)), "Matrix is not positive definite", "LinAlgError")
    return found


def fails(x: Array, found: Array) -> Array:
    """jax gives nan where LAPACK finds that the matrix is not positive definite; a matrix with nan is no error."""
    rank = x.ndim
    rows, columns = (lax.broadcasted_iota(INT64, x.shape, axis) for axis in (rank - 2, rank - 1))
    was_nan = lax.bitwise_and(is_nan(x), lax.ge(rows, columns))
    return lax.bitwise_and(
        lax.reduce_or(is_nan(found), (rank - 2, rank - 1)),
        lax.bitwise_not(lax.reduce_or(was_nan, (rank - 2, rank - 1))),
    )


def is_indefinite(x: Array) -> Array:
    if not x.size:
        return lax.full(x.shape[:-2], False, np.dtype(np.bool_))
    return fails(x, linalg.cholesky(x, symmetrize_input=False))


@contextual
def solve(application: Application, a: Array, b: Array) -> Array:
    """By an LU decomposition with row exchanges, as LAPACK's gesv; a zero pivot is an error."""
    if not a.size or not b.size:
        return b
    factors, _, order = linalg.lu(a)
    pivots = diagonal(factors)
    application.check(lax.ne(pivots, full_like(pivots, 0)), "Singular matrix", "LinAlgError")
    rank = b.ndim
    rows = lax.broadcast_in_dim(lax.convert_element_type(order, INT64), b.shape, tuple(range(rank - 1)))
    positions = [rows if k == rank - 2 else lax.broadcasted_iota(INT64, b.shape, k) for k in range(rank)]
    where = lax.concatenate([lax.expand_dims(position, (rank,)) for position in positions], rank)
    numbers = lax.GatherDimensionNumbers((), tuple(range(rank)), tuple(range(rank)))
    exchanged = lax.gather(b, where, numbers, (1,) * rank, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    lower = linalg.triangular_solve(factors, exchanged, left_side=True, lower=True, unit_diagonal=True)
    found: Array = linalg.triangular_solve(factors, lower, left_side=True, lower=False)
    return found


SINGULAR: Final = "singular matrix: resolution failed at diagonal {detail}"


@contextual
def triangular_solve(application: Application, a: Array, b: Array) -> Array:
    if not a.size or not b.size:
        return b
    lower, trans, unit = (application.attrs[name] for name in ("lower", "trans", "unit"))
    if not unit:
        pivots = diagonal(a)
        numbers = lax.broadcasted_iota(INT64, pivots.shape, pivots.ndim - 1)
        application.check(lax.ne(pivots, full_like(pivots, 0)), SINGULAR, "LinAlgError", numbers)
    found: Array = linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans != "N",
        conjugate_a=trans == "C" and is_complex(a),
        unit_diagonal=unit,
    )
    return found


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "cholesky": cholesky,
    "is_indefinite": is_indefinite,
    "solve": solve,
    "triangular_solve": triangular_solve,
}
