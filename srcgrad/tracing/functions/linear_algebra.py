"""``np.linalg``: norms, solves and factorisations."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from srcgrad.errors import MatrixError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import DType
from srcgrad.tracing.functions.products import matmul
from srcgrad.tracing.functions.reductions import restored
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    cast,
    concrete_array,
    filled,
    finish,
    numpy_rule,
    ordered_axes,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.shapes import broadcast_to, expand_dims
from srcgrad.tracing.trace import current_span, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, emit, from_value
from srcgrad.tracing.ufuncs import result_dtype

QRResult: Any = type(np.linalg.qr(np.eye(1)))
SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def emit_all(name: str, *operands: Tracer, **attrs: Any) -> list[Any]:
    """The results of an op that has several; those of rank 0 are NumPy scalars."""
    builder = current_trace().builder
    builder.span = current_span()
    operation = builder.emit_operation(REGISTRY[name], [operand.read() for operand in operands], attrs)
    return [from_value(value, scalar=not value.type.shape) for value in operation.results]


def linalg_dtype(*operands: Tracer) -> DType:
    """float64 for integers; float16 is no dtype of linear algebra, as in NumPy."""
    dtype = result_dtype(*operands)
    if dtype == np.float16:
        raise UnsupportedError("array type float16 is unsupported in linalg", hint="use x.astype(np.float32)")
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def require_matrices(x: Tracer) -> None:
    if x.ndim < 2:
        raise MatrixError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")


def require_square(x: Tracer) -> None:
    require_matrices(x)
    if x.shape[-1] != x.shape[-2]:
        raise MatrixError("Last 2 dimensions of the array must be square")


def square_matrices(x: Any) -> Any:
    """A stack of square matrices in a dtype of linear algebra."""
    a = as_array(x)
    require_square(a)
    return cast(a, linalg_dtype(a))


def rectangular_matrices(x: Any) -> Any:
    """A stack of matrices in a dtype of linear algebra."""
    a = as_array(x)
    require_matrices(a)
    return cast(a, linalg_dtype(a))


# --- norms -----------------------------------------------------------------------------------------------------------


@numpy_rule("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    a = as_tracer(x)
    a = cast(a, np.float64) if a.dtype.kind in "biu" else a
    if axis is None and (ord is None or (ord in ("f", "fro") and a.ndim == 2) or (ord == 2 and a.ndim == 1)):
        axes = tuple(range(a.ndim))
        return restored(emit("reduce_norm", a, axes=axes), a.shape, axes, keepdims)
    axes = tuple(range(a.ndim)) if axis is None else ordered_axes(axis, a.ndim)
    if len(axes) == 1:
        return vector_norm_along(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return matrix_norm_along(a, ord, axes, keepdims)
    raise ShapeError("Improper number of dimensions to norm.")


def vector_norm_along(a: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    axes = tuple(sorted(axes))
    if isinstance(ord, str):
        raise ShapeError(f"Invalid norm order '{ord}' for vectors")
    if ord == 2:
        return restored(emit("reduce_norm", a, axes=axes), a.shape, axes, keepdims)
    if ord == 0:
        return np.sum((a != 0).astype(np.abs(a).dtype), axis=axes, keepdims=keepdims)
    size = np.abs(a)
    if ord == np.inf:
        return (np.max if size.size else np.sum)(size, axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axes, keepdims=keepdims)
    total: Any = np.sum(size**ord, axis=axes, keepdims=keepdims)
    apart = np.isinf(total) if ord < 0 else total == 0  # the kink, where the norm and its derivative are 0
    one, zero = total.dtype.type(1), total.dtype.type(0)
    return scalar_if_rank0(np.where(apart, zero, np.where(apart, one, total) ** (1.0 / ord)))


def matrix_norm_along(a: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    row, column = axes
    if row == column:
        raise ShapeError("Duplicate axes given.")
    if ord in (None, "f", "fro"):
        both = tuple(sorted(axes))
        return restored(emit("reduce_norm", a, axes=both), a.shape, both, keepdims)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        from srcgrad.tracing.functions.decompositions import spectral_norm_along

        return spectral_norm_along(a, ord, (row, column), keepdims)
    if isinstance(ord, str) or abs(ord) not in (1, np.inf):
        raise ShapeError(
            f"Invalid norm order {ord!r} for matrices",
            hint="the orders of matrix norms are None, 'fro', 'nuc', 1, -1, 2, -2, inf and -inf",
        )
    inner, outer = (row, column) if abs(ord) == 1 else (column, row)
    sums = np.sum(np.abs(a), axis=inner, keepdims=True)
    extreme: Any = np.min if ord < 0 else np.max if a.size else np.sum
    result: Any = extreme(sums, axis=outer, keepdims=True)
    return result if keepdims else result.squeeze(axes)[()]


@numpy_rule("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    a = as_tracer(x)
    a = cast(a, np.float64) if a.dtype.kind in "biu" else a
    return vector_norm_along(a, ord, axes_of(axis, a.ndim), keepdims)


@numpy_rule("linalg.matrix_norm")
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    a = as_tracer(x)
    return norm(a, ord, (-2, -1), keepdims)


# --- solves and factorisations ---------------------------------------------------------------------------------------


@numpy_rule("linalg.solve")
def solve(a: Any, b: Any) -> Any:
    """A right-hand side of rank 1 is a vector, any other a stack of matrices, as in NumPy 2."""
    matrix, right = as_array(a), as_array(b)
    require_square(matrix)
    dtype = linalg_dtype(matrix, right)
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    is_vector = right.ndim == 1
    if is_vector:
        right = expand_dims(right, -1)
    if right.ndim < 2 or right.shape[-2] != matrix.shape[-1]:
        raise ShapeError(f"solve: the right-hand side {right.type} does not fit the matrices {matrix.type}")
    stack = np.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    matrix = broadcast_to(matrix, stack + matrix.shape[-2:])
    right = broadcast_to(right, stack + right.shape[-2:])
    solution: Any = emit("solve", matrix, right)
    return solution[..., 0] if is_vector else solution


@numpy_rule("linalg.inv")
def inv(a: Any) -> Any:
    return emit("inv", square_matrices(a), strict=True)


@numpy_rule("linalg.det")
def det(a: Any) -> Any:
    return emit("det", square_matrices(a))


@numpy_rule("linalg.slogdet")
def slogdet(a: Any) -> Any:
    return SlogdetResult(*emit_all("slogdet", square_matrices(a)))


@numpy_rule("linalg.cond")
def cond(x: Any, p: Any = None) -> Any:
    """norm(x) norm(inv(x)); inf for a singular matrix, nan only where x has a nan."""
    a = as_array(x)
    if not a.size and a.ndim >= 2 and 0 in a.shape[-2:]:
        raise MatrixError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        from srcgrad.tracing.functions.decompositions import spectral_cond

        found = spectral_cond(a, p)
    else:
        a = square_matrices(a)
        found = norm(a, p, (-2, -1)) * norm(emit("inv", a, strict=False), p, (-2, -1))
    turned: Any = np.isnan(found) & ~np.any(np.isnan(a), axis=(-2, -1))
    result: Any = np.where(turned, found.dtype.type(np.inf), found)
    return result if result.ndim else result[()]


@numpy_rule("linalg.tensorinv")
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of the tensor as a matrix from its last axes to its first ``ind``."""
    tensor: Any = as_tracer(a)
    if ind <= 0:
        raise ShapeError("Invalid ind argument.")
    rows = math.prod(tensor.shape[:ind])
    return inv(tensor.reshape((rows, -1))).reshape(tensor.shape[ind:] + tensor.shape[:ind])


@numpy_rule("linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The solution of ``tensordot(a, x, x.ndim) = b``."""
    tensor, right = as_array(a), as_array(b)
    if axes is not None:
        moved = list(ordered_axes(axes, tensor.ndim))
        tensor = tensor.transpose([k for k in range(tensor.ndim) if k not in moved] + moved)
    shape = tensor.shape[right.ndim :]
    if math.prod(shape) != right.size:
        raise MatrixError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return solve(tensor.reshape((right.size, right.size)), right.ravel()).reshape(shape)


@numpy_rule("linalg.cholesky")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    matrix: Any = as_tracer(a)
    require_square(matrix)
    matrix = cast(matrix, linalg_dtype(matrix))
    factor = emit("cholesky", np.conjugate(matrix.mT) if upper else matrix)
    return np.conjugate(factor.mT) if upper else factor


@numpy_rule("linalg.matrix_power")
def matrix_power(a: Any, n: Any) -> Any:
    matrix: Any = as_tracer(a)
    require_square(matrix)
    power = operator.index(n)
    if power == 0:
        return broadcast_to(as_tracer(np.eye(matrix.shape[-1], dtype=matrix.dtype)), matrix.shape).copy()
    if power < 0:
        matrix, power = inv(matrix), -power
    if power == 1:
        return matrix
    if power == 3:  # in NumPy's order of multiplications
        return matmul(matmul(matrix, matrix), matrix)
    square, result = None, None
    while power:
        square = matrix if square is None else matmul(square, square)
        power, bit = divmod(power, 2)
        if bit:
            result = square if result is None else matmul(result, square)
    return result


@numpy_rule("linalg.multi_dot")
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """In the order that takes the fewest multiplications (Cormen et al., chapter on matrix chains)."""
    matrices: list[Any] = [as_array(array) for array in arrays]
    if len(matrices) < 2:
        raise ShapeError("Expecting at least two arrays.")
    first, last = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if first:
        matrices[0] = matrices[0][None, :]
    if last:
        matrices[-1] = matrices[-1][:, None]
    if any(matrix.ndim != 2 for matrix in matrices):
        raise ShapeError("multi_dot takes matrices, and vectors at both ends")
    split = chain_order([matrix.shape[0] for matrix in matrices] + [matrices[-1].shape[1]])

    def product(i: int, j: int) -> Any:
        return matrices[i] if i == j else matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    result = product(0, len(matrices) - 1)
    if first:
        result = result[0]
    if last:
        result = result[..., 0]
    return finish(result if result.ndim else result[()], out)


def chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to split the chain of matrices i to j."""
    count = len(sizes) - 1
    cost = [[0.0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            best = min(range(len(options)), key=options.__getitem__)
            cost[i][j], split[i][j] = options[best], i + best
    return split


# --- orthogonal factors and least squares ----------------------------------------------------------------------------


@numpy_rule("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    mode = "reduced" if mode in ("full", "f") else mode
    if mode not in ("reduced", "complete", "r"):
        raise UnsupportedError(
            f"np.linalg.qr with mode={mode!r} is not supported on traced arrays",
            hint="the modes are 'reduced', 'complete' and 'r'",
        )
    found = emit_all("qr", rectangular_matrices(a), mode=mode)
    return found[0] if mode == "r" else QRResult(*found)


def cutoff(given: Any, what: str) -> float:
    """A relative cut-off for singular values, which must be one known number."""
    number = concrete_array(given, what)
    if number.size != 1:
        raise UnsupportedError(f"{what} is an array on traced arrays", hint="call it for each matrix")
    return float(number.ravel()[0])


@numpy_rule("linalg.pinv")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    matrix = square_matrices(a) if hermitian else rectangular_matrices(a)
    if rcond is not None and rtol is not np._NoValue:
        raise ShapeError("`rtol` and `rcond` can't be both set.")
    if rcond is None and rtol is None:
        rcond = max(matrix.shape[-2:]) * float(np.finfo(matrix.dtype).eps)
    elif rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    return emit("pinv", matrix, rcond=cutoff(rcond, "rcond= of np.linalg.pinv"), hermitian=bool(hermitian))


def least_squares(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The solution, the sums of squared residuals, whether they are there, the rank and the singular values.

    The sums are there if the matrix has full column rank and more rows than columns, which may depend on its numbers.
    """
    matrix, right = as_array(a), as_array(b)
    if matrix.ndim != 2 or right.ndim not in (1, 2):
        raise MatrixError(
            f"least squares of {matrix.type} and {right.type}: a matrix, and a vector or matrix are needed"
        )
    if matrix.shape[0] != right.shape[0]:
        raise MatrixError(f"Incompatible dimensions: {matrix.type} and {right.type}")
    dtype = linalg_dtype(matrix, right)
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    rows, columns = matrix.shape
    eps = float(np.finfo(dtype).eps)
    limit = eps * max(rows, columns) if rcond is None else cutoff(rcond, "rcond= of a least squares problem")
    limit = eps / 2 if limit < 0 else limit  # LAPACK's own, the half of NumPy's
    stack = right[:, None] if right.ndim == 1 else right
    x: Any = emit("lstsq", matrix, stack, rcond=limit)
    s: Any = np.linalg.svd(matrix, compute_uv=False)
    rank: Any = np.sum(s > limit * s[:1], dtype=np.int32)
    square = np.abs(stack - matmul(matrix, x)) ** 2
    sums = np.sum(square, axis=0)
    return (x[:, 0] if right.ndim == 1 else x), sums, rank == columns, rank, s


@numpy_rule("linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """As NumPy's, but where the numbers are not known while tracing and a matrix with more rows than columns has
    dependent columns, the residuals are nan, not absent.
    """
    x, sums, is_full, rank, s = least_squares(a, b, rcond)
    return x, present_sums(sums, is_full, as_array(a)), rank, s


def present_sums(sums: Any, is_full: Any, matrix: Any) -> Any:
    """The sums of squares, an empty array where there are none, or nan."""
    rows, columns = matrix.shape
    known = is_full.number()
    if rows <= columns or (known is not None and not known):
        return filled((0,), 0, sums.dtype)
    return sums if known is not None else np.where(is_full, sums, sums.dtype.type(np.nan))
