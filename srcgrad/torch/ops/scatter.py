"""Scatters: elements written to, added at, or reduced at the places that an index tensor names along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import need_tensor, one_axis
from srcgrad.torch.ops.define import fitting, method, number, store
from srcgrad.torch.ops.selection import (
    along,
    bounded,
    corner,
    grid,
    need_index,
    need_places,
    outline,
    same_dtype,
    with_axis,
)
from srcgrad.torch.ops.shapes import FULL
from srcgrad.torch.tensor import Tensor
from srcgrad.torch.writing import refuse_same, refuse_write

__all__ = ["index_reduce", "scatter", "scatter_add", "scatter_reduce"]


def replaced(x: Any, source: Any, index: Any, dim: int) -> Any:
    x = x.copy()
    x[grid(index, dim)] = corner(source, index.shape) if source.ndim else source
    return x


def added(x: Any, source: Any, index: Any, dim: int) -> Any:
    x = x.copy()
    np.add.at(x, grid(index, dim), corner(source, index.shape) if source.ndim else source)
    return x


def filled(x: Any, index: Any, value: Any, dim: int) -> Any:
    return replaced(x, value.reshape(()), index, dim)


def multiplied(x: Any, source: Any, index: Any, dim: int) -> Any:
    """Products along the dimension, one slice of the index after the other: no place occurs in a slice twice."""
    x = x.copy()
    for k in range(index.shape[dim]):
        part = (*FULL[:dim], slice(k, k + 1))
        places = grid(index[part], dim)
        x[places] = x[places] * (corner(source, index.shape)[part] if source.ndim else source)
    return x


SCATTER: Final = Op("scatter", "ScatterBackward0", with_axis(replaced), quiet=True, shown=2)
SCATTER_VALUE: Final = Op("scatter", "ScatterBackward1", with_axis(filled), quiet=True, shown=1)
SCATTER_ADD: Final = Op("scatter_add", "ScatterAddBackward0", with_axis(added), shown=2)
SCATTER_SUMMED: Final = Op("scatter", "NotImplemented", with_axis(added), shown=2)
SCATTER_MULTIPLIED: Final = Op("scatter", "NotImplemented", with_axis(multiplied), shown=2)


def scatter_call(function: str, x: Tensor, dim: int, index: Any, source: Any, reduce: str | None) -> Any:
    """The operation, operands after the tensor, and statics of a scatter."""
    need_tensor(function, x)
    need_index("scatter", index)
    if reduce not in (None, "add", "multiply"):
        raise TensorError("reduce argument must be either add or multiply for scatter()")
    if isinstance(source, (bool, int, float, complex)):
        value = number(fitting(source, x._data.dtype), x._data.dtype)
        axis = outline(x, index, dim, function)
        if reduce is None:
            return SCATTER_VALUE, (index, value), (axis,)
        return (SCATTER_SUMMED if reduce == "add" else SCATTER_MULTIPLIED), (value, index), (axis,)
    need_tensor(function, source, "src", 4)
    same_dtype("scatter", x, source)
    axis = source_outline(x, index, source, dim, function)
    op = SCATTER if reduce is None else SCATTER_SUMMED if reduce == "add" else SCATTER_MULTIPLIED
    return op, (source, index), (axis,)


def source_outline(x: Tensor, index: Tensor, source: Tensor, dim: int, function: str) -> int:
    axis = one_axis(dim, x._data.ndim, function)
    own, shape, given = (t._data.shape or (1,) for t in (x, index, source))
    if not index._data.size:
        return axis
    if not len(own) == len(shape) == len(given):
        raise TensorError("Index tensor must have the same number of dimensions as self tensor and src tensor")
    if any(shape[d] > given[d] or (d != axis and shape[d] > own[d]) for d in range(len(own))):
        raise TensorError(
            f"Expected index {list(shape)} to be no larger than self {list(own)} apart from dimension {axis} and to be "
            f"no larger size than src {list(given)}"
        )
    bounded(index._data, own[axis], axis)
    return axis


def source_of(src: Any, value: Any) -> Any:
    return value if src is None else src


@method("scatter")
def scatter(
    input: Tensor,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Any = None,
) -> Any:
    """A copy with the elements of ``src`` (or one number) at the places of the index; for one place the last counts."""
    op, others, statics = scatter_call("scatter", input, dim, index, source_of(src, value), reduce)
    return store(out, apply(op, (input, *others), statics))


@method("scatter_")
def scatter_inplace(
    self: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`scatter`, written into the tensor."""
    refuse_write(self, source_of(src, value))
    op, others, statics = scatter_call("scatter_", self, dim, index, source_of(src, value), reduce)
    return written(op, self, others, statics)


def written(op: Op, x: Tensor, others: tuple[Tensor, ...], statics: tuple[Any, ...]) -> Tensor:
    refuse_same(x, others)
    return apply_inplace(op, x, others, statics)


@method("scatter_add")
def scatter_add(input: Tensor, dim: int, index: Any, src: Any, *, out: Any = None) -> Any:
    """A copy with the elements of ``src`` added at the places of the index."""
    statics = add_checked(input, dim, index, src, "scatter_add")
    return store(out, apply(SCATTER_ADD, (input, src, index), statics))


@method("scatter_add_")
def scatter_add_inplace(self: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """`scatter_add`, written into the tensor."""
    refuse_write(self, src)
    statics = add_checked(self, dim, index, src, "scatter_add_")
    return written(SCATTER_ADD, self, (src, index), statics)


def add_checked(x: Any, dim: int, index: Any, src: Any, function: str) -> tuple[int]:
    need_tensor(function, x)
    need_index("scatter", index)
    need_tensor(function, src, "src", 4)
    same_dtype("scatter", x, src)
    return (source_outline(x, index, src, dim, function),)


# --- scatter_reduce -----------------------------------------------------------------------------------------


def hits(x: Any, index: Any, dim: int, include_self: bool) -> Any:
    """How many values meet at each place."""
    count = np.zeros_like(x, dtype=np.int64)
    if include_self:
        count = count + 1
    np.add.at(count, grid(index, dim), 1)
    return count


def cleared(x: Any, index: Any, dim: int, value: Any) -> Any:
    """The array with a value at the places of the index."""
    x = x.copy()
    x[grid(index, dim)] = np.asarray(value, x.dtype)
    return x


def reduced_sum(x: Any, source: Any, index: Any, dim: int, include_self: bool) -> Any:
    return added(x if include_self else cleared(x, index, dim, 0), source, index, dim)


def reduced_prod(x: Any, source: Any, index: Any, dim: int, include_self: bool) -> Any:
    return multiplied(x if include_self else cleared(x, index, dim, 1), source, index, dim)


def reduced_mean(x: Any, source: Any, index: Any, dim: int, include_self: bool) -> Any:
    total = reduced_sum(x, source, index, dim, include_self)
    count = np.maximum(hits(x, index, dim, include_self), 1)
    return total // count.astype(x.dtype) if x.dtype.kind in "iu" else total / count.astype(x.dtype)


def extreme(pick: Any) -> Callable[..., Any]:
    """The largest or smallest of the values that meet at a place; those that are equal to it share the derivative."""

    def reduce(x: Any, source: Any, index: Any, dim: int, include_self: bool) -> Any:
        source = corner(source, index.shape)
        places = grid(index, dim)
        start = x.copy()
        if not include_self:
            start[places] = lowest(x.dtype, pick)
        best = start.copy()
        for k in range(index.shape[dim]):
            part = (*FULL[:dim], slice(k, k + 1))
            own = grid(index[part], dim)
            best[own] = pick(best[own], source[part])
        if x.dtype.kind != "f":
            return best
        equal, own = source == best[places], start == best
        count = own.astype(x.dtype)
        np.add.at(count, places, equal.astype(x.dtype))
        shares = np.where(count == 0, np.asarray(1, x.dtype), count)
        total = np.where(own, start / shares, np.zeros_like(x))
        np.add.at(total, places, np.where(equal, source / shares[places], np.zeros_like(source)))
        return np.where(count == 0, best, total)

    return reduce


def lowest(dtype: Any, pick: Any) -> Any:
    if dtype.kind == "f":
        return np.asarray(-np.inf if pick is np.maximum else np.inf, dtype)
    if dtype.kind == "b":
        return np.asarray(pick is not np.maximum)
    return np.asarray(np.iinfo(dtype).min if pick is np.maximum else np.iinfo(dtype).max, dtype)


REDUCTIONS: Final = {
    name: Op("scatter_reduce", "ScatterReduceBackward0", with_axis(function), shown=2)
    for name, function in {
        "sum": reduced_sum,
        "prod": reduced_prod,
        "mean": reduced_mean,
        "amax": extreme(np.maximum),
        "amin": extreme(np.minimum),
    }.items()
}


def reduce_checked(x: Any, dim: int, index: Any, src: Any, reduce: str, function: str) -> tuple[Op, int]:
    if reduce not in REDUCTIONS:
        raise TensorError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return REDUCTIONS[reduce], add_checked(x, dim, index, src, function)[0]


@method("scatter_reduce")
def scatter_reduce(
    input: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True, out: Any = None
) -> Any:
    """A copy where all that meets at a place of the index is reduced: ``sum, prod, mean, amax`` or ``amin``."""
    op, axis = reduce_checked(input, dim, index, src, reduce, "scatter_reduce")
    return store(out, apply(op, (input, src, index), (axis, bool(include_self))))


@method("scatter_reduce_")
def scatter_reduce_inplace(
    self: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter_reduce`, written into the tensor."""
    refuse_write(self, src)
    op, axis = reduce_checked(self, dim, index, src, reduce, "scatter_reduce_")
    return written(op, self, (src, index), (axis, bool(include_self)))


# --- index_reduce -------------------------------------------------------------------------------------------


def along_whole(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction where one vector of indices holds for whole parts of the source."""

    def call(x: Any, source: Any, index: Any, dim: int, include_self: bool) -> Any:
        column = index.reshape((*(1,) * dim, -1, *(1,) * (x.ndim - dim - 1)))
        return reduce(x, source, np.broadcast_to(column, source.shape), dim, include_self)

    return call


INDEX_REDUCTIONS: Final = {
    name: Op("index_reduce", "IndexReduceBackward0", with_axis(along_whole(reduced)), shown=2)
    for name, reduced in {
        "prod": reduced_prod,
        "mean": reduced_mean,
        "amax": extreme(np.maximum),
        "amin": extreme(np.minimum),
    }.items()
}


def parts_checked(x: Any, dim: int, index: Any, source: Any, reduce: str) -> tuple[Op, int]:
    """The operation and the dimension.

    Raises:
        TensorError, TensorIndexError: arguments that do not fit.
    """
    need_tensor("index_reduce", x)
    need_tensor("index_reduce", source, "source", 3)
    if reduce not in INDEX_REDUCTIONS:
        raise TensorError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis = one_axis(dim, x._data.ndim, "index_reduce_")
    need_places(index, "index_reduce_")
    own, given = x._data.shape, source._data.shape
    if x._data.dtype != source._data.dtype:
        raise TensorError(
            f"index_reduce_(): self ({named(x._data.dtype)}) and source ({named(source._data.dtype)}) must have the "
            "same scalar type",
            hint="source.to(x.dtype)",
        )
    if x._data.dtype.kind in "bc":
        raise TensorNotImplementedError(
            f"\"index_func_\" not implemented for '{named(x._data.dtype)}'", hint="use integers or real numbers"
        )
    if own and given and own[:axis] + own[axis + 1 :] != given[:axis] + given[axis + 1 :]:
        raise TensorError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(own)} source.shape = {list(given)}"
        )
    length = given[axis] if given else 1
    if length != index._data.size:
        raise TensorError(
            f"index_reduce_(): Number of indices ({index._data.size}) should be equal to source.size(dim): ({length}), "
            f"for dim: {axis}"
        )
    along(x, dim, index, "index_reduce_")
    return INDEX_REDUCTIONS[reduce], axis


@method("index_reduce")
def index_reduce(
    input: Tensor, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True, out: Any = None
) -> Any:
    """A copy where the parts of ``source`` are reduced at the places of a dimension: ``prod, mean, amax, amin``."""
    op, axis = parts_checked(input, dim, index, source, reduce)
    return store(out, apply(op, (input, source, index), (axis, bool(include_self))))


@method("index_reduce_")
def index_reduce_inplace(
    self: Tensor, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`index_reduce`, written into the tensor."""
    refuse_write(self, source)
    op, axis = parts_checked(self, dim, index, source, reduce)
    return written(op, self, (source, index), (axis, bool(include_self)))
