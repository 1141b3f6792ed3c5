"""``np.linalg``: norms, solves and factorisations."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.ir.types import DType
from srcgrad.tracing.functions.products import matmul
from srcgrad.tracing.functions.reductions import restored
from srcgrad.tracing.functions.registry import as_array, axes_of, cast, finish, numpy_rule, ordered_axes
from srcgrad.tracing.functions.shapes import broadcast_to, expand_dims
from srcgrad.tracing.tracer import Tracer, as_tracer, emit
from srcgrad.tracing.ufuncs import result_dtype


def linalg_dtype(*operands: Tracer) -> DType:
    """float64 for integers; float16 is no dtype of linear algebra, as in NumPy."""
    dtype = result_dtype(*operands)
    if dtype == np.float16:
        raise UnsupportedError("array type float16 is unsupported in linalg", hint="use x.astype(np.float32)")
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def require_square(x: Tracer) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{x.ndim}-dimensional array given. Array must be at least two-dimensional")
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError("Last 2 dimensions of the array must be square")


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
        return np.max(size, axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axes, keepdims=keepdims)
    return np.sum(size**ord, axis=axes, keepdims=keepdims) ** (1.0 / ord)


def matrix_norm_along(a: Any, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    row, column = axes
    if row == column:
        raise ShapeError("Duplicate axes given.")
    if ord in (None, "f", "fro"):
        both = tuple(sorted(axes))
        return restored(emit("reduce_norm", a, axes=both), a.shape, both, keepdims)
    if isinstance(ord, str) or abs(ord) not in (1, np.inf):
        raise UnsupportedError(
            f"np.linalg.norm of a matrix with ord={ord!r} is not supported on traced arrays",
            hint="the orders of matrix norms are None, 'fro', 1, -1, inf and -inf",
        )
    inner, outer = (row, column) if abs(ord) == 1 else (column, row)
    sums = np.sum(np.abs(a), axis=inner, keepdims=True)
    extreme = np.max if ord > 0 else np.min
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
    """The solution of A X = I."""
    matrix = as_tracer(a)
    require_square(matrix)
    dtype = linalg_dtype(matrix)
    identity = as_tracer(np.eye(matrix.shape[-1], dtype=dtype))
    return emit("solve", cast(matrix, dtype), broadcast_to(identity, matrix.shape))


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
        raise ShapeError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return solve(tensor.reshape((right.size, -1)), right.ravel()).reshape(shape)


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
