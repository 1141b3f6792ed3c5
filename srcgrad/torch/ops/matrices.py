"""Functions of matrices: determinants, inverses, powers, norms."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, named
from srcgrad.torch.errors import LinAlgError, TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import (
    axes_of,
    in_single,
    named_result,
    need_inexact,
    need_tensor,
    numpy_dtype,
    one_axis,
    scipy_linalg,
)
from srcgrad.torch.ops.define import method, pair, store
from srcgrad.torch.ops.norms import VECTOR_NORM, vector_norm
from srcgrad.torch.ops.products import BMM, MM, STACKS
from srcgrad.torch.tensor import Tensor, wrapped

scipy_lu: Final = scipy_linalg("lu")


def need_matrices(name: str, A: Any, argument: str = "A", *, takes_half: bool = False) -> None:
    """Raise what PyTorch says of what is no floating or complex matrix, or stack of them."""
    need_tensor(name, A, argument)
    data = A._data
    if data.ndim < 2:
        raise TensorError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    need_inexact(name, A)
    if data.dtype == np.float16 and not takes_half:
        raise TensorNotImplementedError(f"{name}: Low precision dtypes not supported. Got Half")


def need_square(name: str, A: Any, argument: str = "A") -> None:
    need_matrices(name, A, argument)
    rows, columns = A._data.shape[-2:]
    if rows != columns:
        raise TensorError(f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices")


def singular_place(x: Any) -> str:
    """Where in a stack a singular matrix is, and its first pivot that is 0."""
    for k, matrix in enumerate(x.reshape(-1, *x.shape[-2:])):
        pivots = scipy_lu(matrix)[2].diagonal()
        zeros = np.flatnonzero(pivots == 0)
        if len(zeros):
            batch = f"(Batch element {k}): " if x.ndim > 2 else ""
            return f"{batch}The diagonal element {zeros[0] + 1} is zero"
    return "A pivot is zero"


def inverted(x: Any) -> Any:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"linalg.inv: {singular_place(x)}, the inversion could not be completed because the input matrix is "
            "singular."
        ) from None


def log_of_determinant(x: Any) -> Any:
    sign, magnitude = np.linalg.slogdet(x)
    if x.dtype.kind == "c":
        return np.log(sign) + magnitude
    return np.where(sign < 0, x.dtype.type(np.nan), magnitude)


DET: Final = Op("linalg.det", "LinalgDetBackward0", np.linalg.det, saves_result=True)
SLOGDET: Final = Op(
    "linalg.slogdet", "LinalgSlogdetBackward0", lambda x: tuple(np.linalg.slogdet(x)), saves_result=True
)
LOGDET: Final = Op("logdet", "WhereBackward0", log_of_determinant)
COMPLEX_LOGDET: Final = Op("logdet", "AddBackward0", log_of_determinant)
INV: Final = Op("linalg.inv", "LinalgInvExBackward0", inverted, saves_result=True)
MATRIX_EXP: Final = Op("linalg.matrix_exp", "LinalgMatrixExpBackward0", scipy_linalg("expm"))


def square_function(name: str, op: Op, complex_op: Op | None = None) -> Callable[..., Tensor]:
    """A function of square matrices with one result."""

    def call(A: Tensor, *, out: Any = None) -> Tensor:
        need_square(name, A)
        chosen = op if complex_op is None or A._data.dtype.kind != "c" else complex_op
        return store(out, apply(chosen, (A,)))  # type: ignore[no-any-return]

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"`torch.{name}` of a square matrix, or of each of a stack."
    return call


det = square_function("linalg.det", DET)
logdet = square_function("logdet", LOGDET, COMPLEX_LOGDET)
inv = square_function("linalg.inv", INV)
matrix_exp = square_function("linalg.matrix_exp", MATRIX_EXP)
inverse = inv
for _name, _function in (("det", det), ("logdet", logdet), ("inverse", inv), ("matrix_exp", matrix_exp)):
    setattr(Tensor, _name, _function)


def slogdet_function(name: str) -> Callable[..., Any]:
    result = named_result(name, "sign", "logabsdet")

    def slogdet(A: Tensor, *, out: Any = None) -> Any:
        """The sign of the determinant, and the logarithm of its absolute value."""
        need_square("linalg.slogdet", A)
        found = result(*apply(SLOGDET, (A,)))
        return found if out is None else result(*map(store, out, found))

    return slogdet


slogdet = slogdet_function("slogdet")
linalg_slogdet = slogdet_function("linalg_slogdet")
method("slogdet")(slogdet)

INV_EX: Final = named_result("linalg_inv_ex", "inverse", "info")


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverse, and 0, or the number of the pivot that is 0 (then the inverse is nan)."""
    need_square("linalg.inv_ex", A)
    info = np.zeros(A._data.shape[:-2], np.int32)
    try:
        return INV_EX(inv(A), wrapped(info))
    except LinAlgError:
        if check_errors:
            raise
    for index in np.ndindex(info.shape):
        zeros = np.flatnonzero(scipy_lu(A._data[index])[2].diagonal() == 0)
        info[index] = zeros[0] + 1 if len(zeros) else 0
    return INV_EX(wrapped(np.full_like(A._data, np.nan)), wrapped(info))


# --- powers -------------------------------------------------------------------------------------------


def power_of(x: Any, n: int) -> Any:
    if n == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape) + 0
    if n == 1:
        return np.copy(x)
    return np.linalg.matrix_power(inverted(x) if n < 0 else x, abs(n))


POWERS: Final = {
    node: Op("linalg.matrix_power", node, power_of)
    for node in ("CloneBackward0", "torch::autograd::CopyBackwards", "LinalgInvExBackward0")
} | {str(op.node): Op("linalg.matrix_power", op.node, power_of) for op in (MM, BMM, STACKS)}


@method("matrix_power")
def matrix_power(A: Tensor, n: int, *, out: Any = None) -> Tensor:
    """The n-th power of a square matrix, by repeated squaring; of its inverse for n < 0."""
    if n < 0 or not isinstance(A, Tensor) or A._data.dtype.kind in "fc":
        need_square("linalg.matrix_power", A)
    elif A._data.ndim < 2 or A._data.shape[-1] != A._data.shape[-2]:
        raise TensorError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are of size {list(A._data.shape)}"
        )
    product = "MmBackward0" if A._data.ndim == 2 else "UnsafeViewBackward0"
    special = {0: "torch::autograd::CopyBackwards", 1: "CloneBackward0", -1: "LinalgInvExBackward0"}
    return store(out, apply(POWERS[special.get(n, product)], (A,), (n,)))  # type: ignore[no-any-return]


# --- pseudo-inverses and ranks ------------------------------------------------------------------------


def pseudo_inverse(x: Any, cutoffs: tuple[float, ...], hermitian: bool) -> Any:
    """``cutoffs``: one for all matrices of a stack, or one for each."""
    if len(set(cutoffs)) <= 1:
        return np.linalg.pinv(x, max(cutoffs, default=0.0), hermitian)
    found = [np.linalg.pinv(m, c, hermitian) for m, c in zip(x.reshape(-1, *x.shape[-2:]), cutoffs, strict=True)]
    return np.stack(found).reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])


PINV: Final = Op("linalg.pinv", "LinalgPinvBackward0", pseudo_inverse, saves_result=True)


def default_cutoff(x: Any) -> float:
    return float(max(x.shape[-2:]) * np.finfo(x.dtype).eps)


def tolerances(x: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The absolute and the relative bound, each a number or one for each matrix of a stack."""
    absolute, relative = (t._data.astype(np.float64) if isinstance(t, Tensor) else t for t in (atol, rtol))
    absolute = np.asarray(0.0 if absolute is None else absolute, np.float64)
    if relative is None:
        relative = np.where(absolute > 0.0, 0.0, default_cutoff(x))
    return absolute, np.asarray(relative, np.float64)


def relative_cutoffs(x: Any, atol: Any, rtol: Any) -> Any:
    """The bounds below which singular values count as 0, in terms of the largest: a number, or one for each matrix."""
    absolute, relative = tolerances(x, atol, rtol)
    if not absolute.any():
        return relative
    largest = np.max(np.linalg.svd(x, compute_uv=False), axis=-1, initial=0.0)
    return np.maximum(relative, absolute / np.where(largest > 0.0, largest, 1.0))


def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    """The pseudo-inverse; its derivative is that at constant rank."""
    need_matrices("linalg.pinv", A)
    if isinstance(rcond, bool):
        rcond, hermitian = None, rcond
    cutoffs = relative_cutoffs(A._data, atol, rcond if rtol is None else rtol)
    if cutoffs.ndim:
        batch = np.broadcast_shapes(A._data.shape[:-2], cutoffs.shape)
        A, cutoffs = A.expand(*batch, *A._data.shape[-2:]), np.broadcast_to(cutoffs, batch)
    return store(out, apply(PINV, (A,), (tuple(cutoffs.ravel().tolist()), hermitian)))  # type: ignore[no-any-return]


@method("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`torch.linalg.pinv`, with a cutoff of 1e-15."""
    return pinv(input, rcond)


def rank_of(x: Any, absolute: Any, relative: Any, hermitian: bool) -> Any:
    values = np.abs(np.linalg.eigvalsh(x)) if hermitian else np.linalg.svd(x, compute_uv=False)
    bound = np.maximum(absolute, relative * np.max(values, axis=-1, initial=0.0))
    return np.sum(values > bound[..., None], axis=-1)


RANK: Final = Op("linalg.matrix_rank", None, rank_of)


def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest one)."""
    need_matrices("linalg.matrix_rank", A)
    bounds = map(wrapped, tolerances(A._data, atol if tol is None else tol, rtol))
    return store(out, apply(RANK, (A, *bounds), (hermitian,)))  # type: ignore[no-any-return]


# --- norms --------------------------------------------------------------------------------------------


@in_single
def matrix_norm_over(x: Any, ord: Any, axes: tuple[int, int], keep: bool) -> Any:
    return np.linalg.norm(x, ord, axis=axes, keepdims=keep)


def condition(x: Any, p: Any) -> Any:
    if p in (2, -2):
        values = np.linalg.svd(x, compute_uv=False)
        return values[..., 0] / values[..., -1] if p == 2 else values[..., -1] / values[..., 0]
    return matrix_norm_over(x, p, (-2, -1), False) * matrix_norm_over(inverted(x), p, (-2, -1), False)


def node_of_norm(ord: Any) -> str:
    if ord == "nuc":
        return "SumBackward1"
    return "AmaxBackward0" if ord > 0 else "AminBackward0"


MATRIX_NORMS: Final = {
    node: Op("linalg.matrix_norm", node, matrix_norm_over)
    for node in ("SumBackward1", "AmaxBackward0", "AminBackward0")
}
COND: Final = Op("linalg.cond", "SqueezeBackward1", condition)
COND_BY_INVERSE: Final = Op("linalg.cond", "MulBackward0", condition)


def check_order(name: str, ord: Any) -> None:
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise TensorError(f"{name}: Order {ord} not supported.")
    elif ord not in (1, -1, 2, -2, inf, -inf):
        raise TensorError(f"{name}: Order {ord} not supported.")


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The norm of matrices that lie in two dimensions: "fro", "nuc", 2, -2, 1, -1, inf or -inf."""
    need_matrices("linalg.matrix_norm", A, takes_half=ord not in (2, -2, "nuc"))
    check_order("linalg.matrix_norm", ord)
    axes = axes_of(dim, A._data.ndim, "linalg.matrix_norm")
    if len(axes) != 2:
        raise TensorError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dim)}")
    cast = numpy_dtype(dtype)
    if ord == "fro":
        return store(out, apply(VECTOR_NORM, (A,), (2.0, axes, keepdim), cast))  # type: ignore[no-any-return]
    return store(out, apply(MATRIX_NORMS[node_of_norm(ord)], (A,), (ord, axes, keepdim), cast))  # type: ignore[no-any-return]


def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Tensor:
    """A norm of vectors or of matrices, by the number of dimensions (or of those in ``dim``)."""
    need_tensor("linalg.norm", A)
    rank = A._data.ndim
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    count = rank if dim is None else 1 if isinstance(dim, int) else len(dim)
    if count == 1 and not isinstance(ord, str):
        return vector_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if count != 2:
        raise TensorError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " + f"{rank}D."
            if dim is None
            else f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
        )
    return matrix_norm(A, ord, (0, 1) if dim is None else tuple(dim), keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number: the norm of order ``p`` times that of the inverse; by singular values for 2 and -2."""
    need_matrices("linalg.cond", A)
    p = 2 if p is None else p
    check_order("linalg.cond", p)
    if p in (2, -2):
        return store(out, apply(COND, (A,), (p,)))  # type: ignore[no-any-return]
    need_square("linalg.cond", A)
    return store(out, apply(COND_BY_INVERSE, (A,), (p,)))  # type: ignore[no-any-return]


# --- others -------------------------------------------------------------------------------------------

CROSS: Final = Op("linalg.cross", "LinalgCrossBackward0", lambda x, y, axis: np.cross(x, y, axis=axis))
VECDOT: Final = Op("linalg.vecdot", "SumBackward1", lambda x, y, axis: np.sum(np.conjugate(x) * y, axis=axis))


def powers(x: Any, count: int, descending: bool = False) -> Any:
    """Whole numbers are multiplied as int64, as products of theirs are."""
    x = x.astype(np.int64) if x.dtype.kind in "biu" else x
    exponents = np.arange(count, dtype=x.dtype)
    return x[..., None] ** (exponents[::-1] if descending else exponents)


VANDER: Final = Op("linalg.vander", "CatBackward0", powers)
FALLING, RISING = Op("vander", "FlipBackward0", powers), Op("vander", "CopySlices", powers)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """The cross product of vectors of 3 along a dimension; the other dimensions broadcast."""
    need_tensor("linalg.cross", input)
    need_tensor("linalg.cross", other, "other", 2)
    a, b = input._data, other._data
    if a.ndim != b.ndim:
        raise TensorError("linalg.cross: inputs must have the same number of dimensions.")
    axis = one_axis(dim, a.ndim, "linalg.cross")
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise TensorError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[axis]} and {b.shape[axis]}"
        )
    left, right, dtype = pair("linalg.cross", input, other)
    return store(out, apply(CROSS, (left, right), (axis,), dtype))  # type: ignore[no-any-return]


@method("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """`torch.linalg.cross`; along the first dimension of length 3 unless ``dim`` is given."""
    need_tensor("cross", input)
    if dim is None:
        dim = next((k for k, length in enumerate(input._data.shape) if length == 3), None)
        if dim is None:
            raise TensorError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim, out=out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """The sums of products of vectors along a dimension, the first ones conjugated."""
    need_tensor("linalg.vecdot", x, "x")
    need_tensor("linalg.vecdot", y, "y", 2)
    need_inexact("linalg.vecdot", x)
    if x._data.dtype != y._data.dtype:
        raise TensorError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {named(x._data.dtype)} and y "
            f"of type {named(y._data.dtype)} instead"
        )
    shape = np.broadcast_shapes(x._data.shape, y._data.shape)
    axis = one_axis(dim, len(shape), "linalg.vecdot") - len(shape)
    return store(out, apply(VECDOT, (x, y), (axis,)))  # type: ignore[no-any-return]


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dimension."""
    need_tensor("linalg.vander", x, "x")
    if not x._data.ndim:
        raise TensorError("linalg.vander: Expected dim > 0")
    count = x._data.shape[-1] if N is None else N
    if count <= 1:
        raise TensorError("N must be greater than 1.")
    return apply(VANDER, (x,), (count,))  # type: ignore[no-any-return]


def torch_vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 to 0 of each element of a vector, as rows; 0 to N - 1 if ``increasing``."""
    need_tensor("vander", x, "x")
    if x._data.ndim != 1:
        raise TensorError("x must be a one-dimensional tensor.")
    count = x._data.size if N is None else N
    if count < 0:
        raise TensorError("N must be non-negative.")
    return apply(RISING if increasing else FALLING, (x,), (count, not increasing))  # type: ignore[no-any-return]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices: a view."""
    need_tensor("linalg.diagonal", A)
    return A.diagonal(offset, dim1, dim2)  # type: ignore[no-any-return]


__all__ = [
    "cross", "det", "inverse", "logdet", "matrix_exp", "matrix_power", "pinverse", "slogdet",
]  # fmt: skip
