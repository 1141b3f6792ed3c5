"""Rules of ``scipy.linalg``: solves, factorisations, least squares, matrices of a given structure.

These functions do not dispatch on their arguments: a rule is found in the table by the function that is called. The
options that say what memory may be overwritten change nothing here. Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions import linear_algebra
from srcgrad.tracing.functions.linear_algebra import (
    cutoff,
    emit_all,
    inv,
    least_squares,
    linalg_dtype,
    norm,
    present_sums,
    rectangular_matrices,
    square_matrices,
)
from srcgrad.tracing.functions.registry import Rule, as_array, broadcast_shape, cast, filled, require
from srcgrad.tracing.functions.shapes import broadcast_to
from srcgrad.tracing.tracer import FUNCTIONS, as_tracer, contains_tracer, emit

SINCE_1_18: Final = np.lib.NumpyVersion(scipy.__version__) >= "1.18.0"
"""What SciPy changed in 1.18, the rules do as the SciPy that is there."""


BLAS: Final = frozenset(map(np.dtype, "fdFD"))


def scipy_rule(function: Callable[..., Any], finite: str = "", one: bool = False) -> Callable[[Rule], Rule]:
    """Register the rule of a SciPy function, which has its signature; arguments named ``finite`` are checked to be.

    With ``one`` it takes no stacks: where this SciPy's function does, it is called for each of one.
    """

    def register(rule: Rule) -> Rule:
        checked = of_finite(rule, finite.split()) if finite else rule
        ranks = ranks_of_stacks(function) if one else {}
        if ranks:
            checked = of_stacks(function.__name__, checked, ranks, list if hasattr(function, "__wrapped__") else tuple)
        FUNCTIONS[function] = checked
        return rule

    return register


def ranks_of_stacks(function: Callable[..., Any]) -> dict[str, int | str]:
    """For each argument of which SciPy's function takes stacks the rank of one; nothing where it takes none."""
    known = inspect.getclosurevars(function).nonlocals if hasattr(function, "__wrapped__") else {}
    if "names" in known and "ndims" in known:  # SciPy's own decorator
        return dict(zip(known["names"], known["ndims"], strict=True))
    return {"a": 2, "b": "1|2"} if SINCE_1_18 and function is scipy.linalg.lstsq else {}


MOST: Final = 256
"""Of a stack, whose program has the operations of each."""


def of_stacks(
    name: str, rule: Callable[..., Any], ranks: dict[str, int | str], several: type[list[Any]] | type[tuple[Any, ...]]
) -> Callable[..., Any]:
    """The rule for stacks of the arguments that ``ranks`` names, which are broadcast; several results are a list where
    SciPy's decorator makes one.
    """
    parameters = inspect.signature(rule).parameters

    @functools.wraps(rule)
    def call(*args: Any, **kwargs: Any) -> Any:
        values = {**dict(zip(parameters, args, strict=False)), **kwargs}
        arrays = {key: as_array(values[key]) for key in ranks if values.get(key) is not None}
        ends = {key: own_rank(array, ranks[key]) for key, array in arrays.items()}
        stack = broadcast_shape([array.shape[: array.ndim - ends[key]] for key, array in arrays.items()])
        if len(args) > len(parameters) or not stack:
            return rule(*args, **kwargs)
        require(bool(math.prod(stack)), "ValueError", f"`{name}` does not support zero-size batches.")
        if math.prod(stack) > MOST:
            raise UnsupportedError(
                f"scipy.linalg.{name} of a stack of {math.prod(stack)} is not supported on traced arrays",
                hint=f"take one by srcgrad.vmap, or stacks of at most {MOST}",
            )
        full = {
            key: broadcast_to(array, stack + array.shape[array.ndim - ends[key] :]) for key, array in arrays.items()
        }
        found = [rule(**{**values, **{key: x[index] for key, x in full.items()}}) for index in np.ndindex(stack)]
        parts = [np.stack(each) for each in (zip(*found, strict=True) if isinstance(found[0], tuple) else [found])]
        shaped = [part.reshape(stack + part.shape[1:]) for part in parts]
        return shaped[0] if len(shaped) == 1 else several(shaped)

    return call


def own_rank(array: Any, rank: int | str) -> int:
    """Of one argument, not of a stack: a number, or SciPy's word for a right side, which is a vector or a matrix."""
    return rank if isinstance(rank, int) else min(array.ndim, 2)


def of_finite(rule: Rule, names: list[str]) -> Callable[..., Any]:
    """The rule, for which an infinite number or nan in an argument is SciPy's ValueError unless ``check_finite=False``.

    The rules call each other by their own names, so that an array is checked once. Without a check LAPACK's singular
    value decomposition of a matrix with an infinite number does not end.
    """
    parameters = inspect.signature(rule).parameters
    checks = parameters["check_finite"].default if "check_finite" in parameters else True

    @functools.wraps(rule)
    def checked(*args: Any, **kwargs: Any) -> Any:
        values = {**dict(zip(parameters, args, strict=False)), **kwargs}
        if values.get("check_finite", checks):
            for value in map(values.get, names):
                for array in value if isinstance(value, tuple) else (value,):
                    require_finite(array)
        return rule(*args, **kwargs)

    return checked


def require_finite(array: Any) -> None:
    array = as_array(array) if contains_tracer(array) else np.asarray(array)
    if array.dtype.kind in "fc":
        require(np.all(np.isfinite(array)), "ValueError", "array must not contain infs or NaNs")


def adjoint(x: Any) -> Any:
    return np.conjugate(x.mT) if x.dtype.kind == "c" else x.mT


def system(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Square matrices, and as many stacks of columns in the same dtype; whether these were one vector."""
    matrix, right = as_array(a), as_array(b)
    linear_algebra.require_square(matrix)
    dtype = linalg_dtype(matrix, right)
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    is_vector = right.ndim == 1
    right = right[:, None] if is_vector else right
    if right.ndim < 2 or right.shape[-2] != matrix.shape[-1]:
        raise ShapeError(f"the right-hand side {right.type} does not fit the matrices {matrix.type}")
    stack = broadcast_shape([matrix.shape[:-2], right.shape[:-2]])
    matrix, right = broadcast_to(matrix, stack + matrix.shape[-2:]), broadcast_to(right, stack + right.shape[-2:])
    return matrix, right, is_vector


def triangular(matrix: Any, right: Any, lower: bool, trans: str = "N", unit: bool = False) -> Any:
    return emit("triangular_solve", matrix, right, lower=bool(lower), trans=trans, unit=bool(unit))


# --- systems ---------------------------------------------------------------------------------------------------------


@scipy_rule(scipy.linalg.solve, finite="a b")
def structured_solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Any:
    """The solution for a matrix of which only what ``assume_a`` says is read; the derivative is in what is read.

    For ``pos`` it is that of ``cholesky``, on Hermitian matrices.
    """
    matrix, right, is_vector = system(a, b)
    if transposed:
        if matrix.dtype.kind == "c":
            raise UnsupportedError("scipy.linalg.solve with transposed=True takes real matrices", hint="pass a.T")
        matrix, lower = matrix.mT, not lower
        assume_a = {"upper triangular": "lower triangular", "lower triangular": "upper triangular"}.get(
            assume_a, assume_a
        )
    found = solved(matrix, right, bool(lower), assume_a)
    return found[..., 0] if is_vector else found


def solved(matrix: Any, right: Any, lower: bool, assume_a: Any) -> Any:
    """The columns of the solution, by the structure assumed."""
    if assume_a in (None, "gen", "general", "banded"):
        return emit("solve", matrix, right)
    if assume_a == "tridiagonal":
        bands: Any = np.stack([of_diagonal(matrix, k) for k in (1, 0, -1)], -2)
        return emit("banded_solve", bands, right, below=1, above=1, definite=False, strict=True)
    if assume_a == "diagonal":
        return triangular(np.tril(np.triu(matrix)), right, lower=True)
    if assume_a in ("upper triangular", "lower triangular"):
        return triangular(matrix, right, lower=assume_a == "lower triangular")
    if assume_a in ("sym", "symmetric", "her", "hermitian"):
        return emit("solve", mirrored(matrix, lower, assume_a in ("her", "hermitian")), right)
    if assume_a in ("pos", "positive definite"):
        return solve_with_factor(cholesky(matrix, lower=lower), right, lower)
    raise ShapeError(f"{assume_a} is not a recognized matrix structure")


def of_diagonal(matrix: Any, k: int) -> Any:
    """A diagonal of square matrices, as a band: with zeros for what lies outside."""
    found = np.diagonal(matrix, k, -2, -1)
    size = matrix.shape[-1] - found.shape[-1]
    return np.pad(found, [(0, 0)] * (found.ndim - 1) + [(size, 0) if k > 0 else (0, size)])


def mirrored(matrix: Any, lower: bool, hermitian: bool) -> Any:
    """The symmetric or Hermitian matrix of which one triangle is given; a Hermitian one has a real diagonal."""
    triangle = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.tril(np.triu(matrix))
    if hermitian and matrix.dtype.kind == "c":
        diagonal = cast(np.real(diagonal), matrix.dtype)
    return triangle + (adjoint(triangle) if hermitian else triangle.mT) + diagonal


@scipy_rule(scipy.linalg.solve_triangular, finite="a b")
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    matrix, right, is_vector = system(a, b)
    letter = {0: "N", 1: "T", 2: "C"}.get(trans, trans)
    found = triangular(matrix, right, bool(lower), letter, bool(unit_diagonal))
    return found[..., 0] if is_vector else found


@scipy_rule(scipy.linalg.inv, finite="a")
def structured_inv(
    a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False
) -> Any:
    matrix = square_matrices(a)
    if assume_a in (None, "gen", "general"):
        return inv(matrix)
    identity = as_tracer(np.eye(matrix.shape[-1], dtype=matrix.dtype))
    return solved(matrix, broadcast_to(identity, matrix.shape), bool(lower), assume_a)


@scipy_rule(scipy.linalg.det, finite="a")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """In double precision, as SciPy's."""
    matrix = square_matrices(a)
    return emit("det", cast(matrix, np.complex128 if matrix.dtype.kind == "c" else np.float64))


@scipy_rule(scipy.linalg.norm, finite="a")
def scipy_norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """NumPy's, but of a vector that of BLAS, whose squares neither overflow nor vanish."""
    array = as_array(a)
    if array.dtype in BLAS and array.size and array.ndim == 1 and axis is None and not keepdims and ord in (None, 2):
        scale = power_near(array)
        return norm(array * scale) / scale
    return norm(a, ord, axis, keepdims)


def power_near(vector: Any) -> Any:
    """A power of 2 that takes numbers of which squares overflow, or all vanish, to others: 1 of most vectors."""
    parts = (vector.real, vector.imag) if vector.dtype.kind == "c" else (vector,)
    largest = functools.reduce(np.maximum, [np.max(np.abs(emit("stop_gradient", as_array(part)))) for part in parts])
    most = np.finfo(largest.dtype).maxexp
    edge, step = 2.0 ** (most // 2 - 12), 2.0 ** (most * 3 // 4)
    small = (largest > 0) & (largest < 1 / edge)
    return np.where(largest > edge, 1 / step, np.where(small, step, 1.0)).astype(largest.dtype)


@scipy_rule(scipy.linalg.solve_sylvester, finite="a b")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """X with a X + X b = q."""
    operands = [as_array(x) for x in (a, b, q)]
    dtype = linalg_dtype(*operands)
    return emit("sylvester", *[cast(x, dtype) for x in operands])


# --- Cholesky factors ------------------------------------------------------------------------------------------------


@scipy_rule(scipy.linalg.cholesky, finite="a")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return linear_algebra.cholesky(square_matrices(a), upper=not lower)


@scipy_rule(scipy.linalg.cho_factor, finite="a")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The factor in one triangle; the other one is that of the matrix, as SciPy leaves it, and 0 since SciPy 1.18."""
    matrix = square_matrices(a)
    factor: Any = cholesky(matrix, lower)
    if SINCE_1_18:
        return factor, lower
    rest = np.triu(matrix, 1) if lower else np.tril(matrix, -1)
    return factor + rest, lower


@scipy_rule(scipy.linalg.cho_solve, finite="c_and_lower b")
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    factor, lower = c_and_lower
    factor, right, is_vector = system(factor, b)
    found = solve_with_factor(factor, right, bool(np.all(lower)))  # SciPy has the same bool for each matrix of a stack
    return found[..., 0] if is_vector else found


def solve_with_factor(factor: Any, right: Any, lower: bool) -> Any:
    """Solve L L^H X = B, or U^H U X = B."""
    first, second = ("N", "C") if lower else ("C", "N")
    return triangular(factor, triangular(factor, right, lower, first), lower, second)


# --- LU --------------------------------------------------------------------------------------------------------------


@scipy_rule(scipy.linalg.lu_factor, finite="a")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return tuple(emit_all("lu", rectangular_matrices(a)))


@scipy_rule(scipy.linalg.lu_solve, finite="b")
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The solution for the matrix (``trans`` 1: its transpose, 2: its conjugate transpose) whose factors are given."""
    packed, pivots = lu_and_piv
    packed, right, is_vector = system(packed, b)
    order: Any = emit("permutation_of_pivots", cast(as_array(pivots), np.int32), size=packed.shape[-1])
    order = broadcast_to(order, packed.shape[:-1])
    if trans == 0:
        right = rows_taken(right, order)
        found = triangular(packed, triangular(packed, right, lower=True, unit=True), lower=False)
    else:
        letter = "T" if trans == 1 else "C"
        found = triangular(packed, right, lower=False, trans=letter)
        found = triangular(packed, found, lower=True, trans=letter, unit=True)
        found = rows_taken(found, np.argsort(order, axis=-1))
    return found[..., 0] if is_vector else found


def rows_taken(matrix: Any, order: Any) -> Any:
    """The rows of each matrix in the order given."""
    places: Any = broadcast_to(order[..., None], matrix.shape)
    return np.take_along_axis(matrix, places, axis=-2)


@scipy_rule(scipy.linalg.lu, finite="a")
def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> Any:
    """P, L and U with P L U = a; P L and U if ``permute_l``; p with L[p] U = a if ``p_indices``.

    Where ``a`` has no element SciPy orders no row either.
    """
    matrix = rectangular_matrices(a)
    rows, columns = matrix.shape[-2:]
    count = min(rows, columns)
    packed, pivots = emit_all("lu", matrix)
    lower: Any = np.tril(packed[..., :count], -1) + np.eye(rows, count, dtype=matrix.dtype)
    upper: Any = np.triu(packed[..., :count, :])
    order: Any = emit("permutation_of_pivots", pivots, size=rows)
    places: Any = np.argsort(order, axis=-1)
    if permute_l:
        return rows_taken(lower, places), upper
    if p_indices:
        return (
            cast(places if count else places[..., :0], np.int32 if matrix.shape[-2:] != (1, 1) else np.int64),
            lower,
            upper,
        )
    if not count:
        places, rows = places[..., :0], 0
    real = np.empty(0, matrix.dtype).real.dtype if matrix.shape[-2:] != (1, 1) else matrix.dtype
    return cast(places[..., None] == np.arange(rows), real), lower, upper


# --- orthogonal factors and least squares ----------------------------------------------------------------------------


@scipy_rule(scipy.linalg.qr, finite="a")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    modes = {"full": "complete", "qr": "complete", "economic": "reduced", "r": "r"}
    if mode not in modes:
        raise UnsupportedError(
            f"scipy.linalg.qr with {mode=} is not supported on traced arrays",
            hint="the modes are 'full', 'economic' and 'r'",
        )
    matrix = rectangular_matrices(a)
    if pivoting:
        from srcgrad.tracing.conversion.convert import convert  # which needs the rules

        if matrix.ndim != 2:
            raise UnsupportedError(
                "scipy.linalg.qr with pivoting of a stack is not supported on traced arrays",
                hint="call it for each matrix",
            )
        order = convert(pivots_of)(emit("stop_gradient", matrix))  # type: ignore[arg-type]
        return (*qr(np.take(matrix, order, axis=1), mode=mode), order.astype(np.int32))
    found = emit_all("qr", matrix, mode=modes[mode])
    if mode != "r":
        return tuple(found)
    missing = matrix.shape[-2] - found[0].shape[-2]
    below = filled((*matrix.shape[:-2], missing, matrix.shape[-1]), 0, matrix.dtype)
    return (np.concatenate([found[0], below], axis=-2) if missing else found[0],)


def pivots_of(a: Any) -> Any:
    """The columns in the order in which LAPACK's geqp3 takes them: each time the one that is longest then.

    What is left of the columns is kept orthogonal to those that were taken; a column changes places with the one that
    it comes before, so that of equally long ones LAPACK's is taken.
    """
    count = a.shape[1]
    rest, order, places = a.copy(), np.arange(count), np.arange(count)
    sizes = np.sqrt(np.sum(np.abs(rest) ** 2, axis=0))
    for k in range(min(a.shape)):
        chosen = np.argmax(np.where(places >= k, sizes, -1.0))
        swapped = np.where(places == k, chosen, np.where(places == chosen, k, places))
        rest, order, sizes = rest[:, swapped], order[swapped], sizes[swapped]
        direction = rest[:, k] / np.where(sizes[k] > 0, sizes[k], 1.0)
        rest = rest - np.outer(direction, np.conj(direction) @ rest)
        sizes = np.sqrt(np.sum(np.abs(rest) ** 2, axis=0))
    return order


@scipy_rule(scipy.linalg.rq, finite="a", one=True)
def rq(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", check_finite: bool = True) -> Any:
    """R and Q with R Q = a: read from its last element to its first, a^H = Q^H R^H is the factorisation of `qr`."""
    if mode not in ("full", "r", "economic"):
        raise ShapeError("Mode argument should be one of ['full', 'r', 'economic']")
    matrix = as_array(a)
    if matrix.ndim != 2:
        raise ShapeError("expected matrix")
    matrix = rectangular_matrices(matrix)
    turned = emit_all("qr", adjoint(matrix[::-1, ::-1]), mode="reduced" if mode == "economic" else "complete")
    q, r = (adjoint(part)[::-1, ::-1] for part in turned)
    return r if mode == "r" else (r, q)


@scipy_rule(scipy.linalg.pinv, finite="a")
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    matrix = rectangular_matrices(a)
    default = max(matrix.shape[-2:]) * float(np.finfo(matrix.dtype).eps)
    if atol is not None and not (isinstance(atol, (int, float)) and atol == 0):
        return above(matrix, as_array(atol), as_array(default if rtol is None else rtol), return_rank)
    limit = default if rtol is None else cutoff(rtol, "rtol= of scipy.linalg.pinv")
    found = emit("pinv", matrix, rcond=limit, hermitian=False)
    if not return_rank:
        return found
    s: Any = np.linalg.svd(matrix, compute_uv=False)
    return found, np.sum(s > limit * s[..., :1], axis=-1)


def above(matrix: Any, atol: Any, rtol: Any, return_rank: bool) -> Any:
    """The inverse on the singular values above atol + rtol times the largest one, which are chosen by what they are."""
    require((atol >= 0) & (rtol >= 0), "ValueError", "atol and rtol values must be positive.")
    u, s, vh = np.linalg.svd(matrix, full_matrices=False)
    largest: Any = np.max(s, axis=-1, keepdims=True, initial=0.0)
    kept = s > emit("stop_gradient", as_array(atol + rtol * largest))
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0).astype(s.dtype)
    found = np.conj(vh.mT * inverse[..., None, :]) @ np.conj(u.mT)
    return (found, np.sum(kept, axis=-1)) if return_rank else found


@scipy_rule(scipy.linalg.lstsq, finite="a b", one=True)
def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
) -> Any:
    """As SciPy's; where the columns are dependent the residuals are nan (before SciPy 1.18: where numbers that are not
    known decide whether they are; else they are absent then).
    """
    if lapack_driver not in (None, "gelsd", "gelsy", "gelss"):
        raise ShapeError(f'LAPACK driver "{lapack_driver}" is not found')
    matrix, right = rectangular_matrices(a), as_array(b)
    limit = float(np.finfo(linalg_dtype(matrix, right)).eps) if cond is None else cond
    x, sums, is_full, rank, s = least_squares(matrix, right, limit)
    rank = cast(rank, np.int64) if SINCE_1_18 else rank
    if not (SINCE_1_18 or matrix.size):  # LAPACK is not asked
        left = np.linalg.norm(right, axis=0) ** 2 if not matrix.shape[1] else filled((0,), 0, np.float64)
        return x, left, 0, filled((0,), 0, np.float64)
    if lapack_driver == "gelsy":
        return x, filled((0,), 0, x.dtype), rank, None
    if SINCE_1_18 and (matrix.shape[0] > matrix.shape[1] or not matrix.shape[1]):
        found = cast(np.where(is_full, sums, sums.dtype.type(np.nan)), x.dtype)
        return x, found[..., 0] if right.ndim == 1 else found, rank, s
    found = present_sums(sums, is_full, matrix)
    found = found if found.size else cast(found, x.dtype)
    return x, found[0] if right.ndim == 1 and found.shape == (1,) else found, rank, s


# --- matrices of a given structure -----------------------------------------------------------------------------------


@scipy_rule(scipy.linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    """First column ``c``, first row ``r`` (its first element is not read)."""
    column: Any = np.atleast_1d(as_array(c))
    row: Any = np.conjugate(column) if r is None else np.atleast_1d(as_array(r))
    size = column.shape[-1]
    numbers = np.concatenate([column[..., ::-1], row[..., 1:]], axis=-1)
    rows, columns = np.ogrid[:size, : row.shape[-1]]
    return numbers[..., size - 1 - rows + columns]


@scipy_rule(scipy.linalg.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    """First column ``c``, last row ``r`` (its first element is not read)."""
    column: Any = np.atleast_1d(as_array(c))
    row: Any = np.zeros_like(column) if r is None else np.atleast_1d(as_array(r))
    rows, columns = np.ogrid[: column.shape[-1], : row.shape[-1]]
    return np.concatenate([column, row[..., 1:]], axis=-1)[..., rows + columns]


@scipy_rule(scipy.linalg.circulant)
def circulant(c: Any) -> Any:
    """First column ``c``; each further column is the one before, rotated."""
    column: Any = np.atleast_1d(as_array(c))
    size = column.shape[-1]
    rows, columns = np.ogrid[:size, :size]
    return column[..., (rows - columns) % size]


@scipy_rule(scipy.linalg.block_diag)
def block_diag(*arrs: Any) -> Any:
    """The matrices along the diagonal, zeros elsewhere."""
    blocks: list[Any] = [np.atleast_2d(as_array(block)) for block in arrs]
    stack = broadcast_shape([block.shape[:-2] for block in blocks])
    shape = tuple(sum(block.shape[axis] for block in blocks) for axis in (-2, -1))
    result: Any = filled((*stack, *shape), 0, np.result_type(*[block.dtype for block in blocks])).copy()
    row = column = 0
    for block in blocks:
        rows, columns = block.shape[-2:]
        result[..., row : row + rows, column : column + columns] = block
        row, column = row + rows, column + columns
    return result
