"""Norms and distances."""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import axes_of, in_single, need_inexact, need_tensor, numpy_dtype, one_axis
from srcgrad.torch.ops.define import method, pair, store
from srcgrad.torch.tensor import Tensor


def magnitudes(x: Any, order: float) -> Any:
    """The norm of the given order along the last axis.

    Orders below 1 have an infinite slope at an element of 0: PyTorch takes the gradient 0 there.
    """
    if order >= 1 or order in (0, -inf) or not x.shape[-1]:
        return np.linalg.norm(x, ord=order, axis=-1)
    sizes = np.abs(x)
    at_zero = sizes.dtype.type(0 if order > 0 else inf)
    return np.sum(np.where(sizes == 0, at_zero, sizes**order), axis=-1) ** (1 / order)


@in_single
def vector_norm_over(x: Any, order: float, axes: tuple[int, ...], keep: bool) -> Any:
    """The norm over axes."""
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    kept = tuple(1 if k in axes else x.shape[k] for k in range(x.ndim))
    moved = x if axes == tuple(range(x.ndim - len(axes), x.ndim)) else np.transpose(x, (*rest, *axes))
    shape = tuple(x.shape[k] for k in rest)
    count = 1
    for k in axes:
        count *= x.shape[k]
    found = magnitudes(moved.reshape((*shape, count)), order)
    return found.reshape(kept) if keep else found


VECTOR_NORM: Final = Op("linalg.vector_norm", "LinalgVectorNormBackward0", vector_norm_over, saves_result=True)


def vector_norm(
    x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The norm of order ``ord`` of the elements over dimensions (all by default).

    Raises:
        TensorError: an integer tensor; ``dtype`` is narrower than the tensor's; nothing has no largest element.
    """
    need_tensor("linalg.vector_norm", x, "x")
    need_inexact("linalg.vector_norm", x)
    data = x._data
    cast = numpy_dtype(dtype)
    if cast is not None and (not np.can_cast(data.dtype, cast) or cast.kind not in "fc"):
        raise TensorError(
            f"linalg.vector_norm: the dtype of the input ({named(data.dtype)}) should be convertible without narrowing "
            f"to the specified dtype ({named(cast)})"
        )
    axes = axes_of(dim, data.ndim, "linalg.vector_norm")
    order = float(ord)
    if (order < 0 or order == inf) and any(not data.shape[axis] for axis in axes):
        raise TensorError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not "
            "have an identity"
        )
    return store(out, apply(VECTOR_NORM, (x,), (order, axes, keepdim), cast))  # type: ignore[no-any-return]


@method("norm")
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of order ``p`` of the elements; ``"fro"`` is that of order 2, ``"nuc"`` the sum of singular values."""
    need_tensor("norm", input)
    if p == "nuc":
        from srcgrad.torch.ops.matrices import matrix_norm

        axes = axes_of(dim, input._data.ndim, "norm")
        return matrix_norm(input, "nuc", axes, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise TensorError(f"only valid string values are 'fro' and 'nuc', found {p}")
    order = 2.0 if p is None or isinstance(p, str) else p
    return vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


# --- distances ----------------------------------------------------------------------------------------

DIST: Final = Op("dist", "DistBackward0", lambda x, y, order: magnitudes(np.reshape(x - y, -1), order))
CDIST: Final = Op(
    "cdist", "CdistBackward0", lambda x, y, order: magnitudes(x[..., :, None, :] - y[..., None, :, :], order)
)


@method("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order ``p`` of the difference."""
    need_tensor("dist", input)
    need_tensor("dist", other, "other", 2)
    left, right, dtype = pair("dist", input, other)
    return apply(DIST, (left, right), (float(p),), dtype)  # type: ignore[no-any-return]


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distance of order ``p`` of each row of x1 from each row of x2; stacks broadcast.

    Differences are taken before they are squared in every ``compute_mode``.
    """
    need_tensor("cdist", x1, "x1")
    need_tensor("cdist", x2, "x2", 2)
    for name, x in (("X1", x1), ("X2", x2)):
        if x._data.ndim < 2:
            raise TensorError(f"cdist only supports at least 2D tensors, {name} got: {x._data.ndim}D")
        if x._data.dtype.kind != "f":
            raise TensorNotImplementedError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    width, other = x1._data.shape[-1], x2._data.shape[-1]
    if width != other:
        raise TensorError(f"X1 and X2 must have the same number of columns. X1: {width} X2: {other}")
    if p < 0:
        raise TensorError("cdist only supports non-negative p values")
    left, right, dtype = pair("cdist", x1, x2)
    return apply(CDIST, (left, right), (float(p),), dtype)  # type: ignore[no-any-return]


def renormed(x: Any, order: float, axis: int, largest: float) -> Any:
    """Slices whose norm exceeds ``largest`` scaled to it; PyTorch adds 1e-7 to the norm that divides."""
    moved = np.moveaxis(x, axis, 0)
    norms = magnitudes(np.reshape(moved, (moved.shape[0], -1)), order)
    factors = np.where(norms > largest, largest / (norms + 1e-7), 1).astype(x.dtype)
    shape = [1] * x.ndim
    shape[axis] = -1
    return x * factors.reshape(shape)


RENORM: Final = Op("renorm", "RenormBackward0", renormed)


def need_slices(input: Tensor) -> None:
    need_tensor("renorm", input)
    if input._data.ndim < 2:
        raise TensorError(f"renorm: input needs at least 2 dimensions, got {input._data.ndim} dimensions")
    need_inexact("linalg.vector_norm", input)


@method("renorm")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """The tensor with its slices along ``dim`` scaled down to norms of at most ``maxnorm``."""
    need_slices(input)
    statics = (float(p), one_axis(dim, input._data.ndim, "renorm"), maxnorm)
    return store(out, apply(RENORM, (input,), statics))  # type: ignore[no-any-return]


@method("renorm_")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`renorm`, written into the tensor."""
    need_slices(input)
    return apply_inplace(RENORM, input, (), (float(p), one_axis(dim, input._data.ndim, "renorm"), maxnorm))


__all__ = ["cdist", "dist", "norm", "renorm"]
