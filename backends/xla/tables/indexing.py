"""Reading and writing parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from jax import lax
from jax.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

from srcgrad.backends.xla.program import Application, on_cpu
from srcgrad.backends.xla.tables import Array, cast, contextual, full_like
from srcgrad.ir.core import Literal

BOOL: Final = np.dtype(np.bool_)
BYTE: Final = np.dtype(np.uint8)
INT64: Final = np.dtype(np.int64)
OUT_OF_BOUNDS: Final = "index {{detail}} is out of bounds for axis {axis} with size {size}"


# --- slices -------------------------------------------------------------------------------------------


def slice_(x: Array, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Array:
    return lax.slice(x, starts, limits, strides)


@contextual
def slice_set(application: Application, x: Array, part: Array) -> Array:
    """Into an array of one number the part is put by padding; so it is with steps, with the mask that says where it is.

    On GPUs a part of half the array and more is selected too: that is done with what comes before and after it in one
    kernel, where an update in place is one of its own, and often a copy before it.
    """
    if not part.size:
        return x
    if part.shape == x.shape:
        return part
    starts, strides = application.attrs["starts"], application.attrs["strides"]
    padding = [
        (start, size - start - (count - 1) * stride - 1, stride - 1)
        for start, size, count, stride in zip(starts, x.shape, part.shape, strides, strict=True)
    ]
    target = application.operation.operands[0]
    if isinstance(target, Literal) and target.splat:
        return lax.pad(part, np.asarray(target.value, part.dtype)[()], padding)
    selected = 2 * part.size >= x.size and not on_cpu()
    if all(stride == 1 for stride in strides) and not selected:
        return lax.dynamic_update_slice(x, part, [np.int32(start) for start in starts])
    spread = lax.pad(part, np.zeros((), part.dtype)[()], padding)
    mask = lax.pad(lax.full(part.shape, True, np.bool_), np.bool_(False), padding)
    return lax.select(mask, spread, x)


# --- index arrays -------------------------------------------------------------------------------------


class Indices:
    """Index arrays of one shape for the axes from ``axis`` on, as the last axis of one int64 array.

    Negative ones count from the end. Those out of bounds are an IndexError: here where they are known, else after the
    call.
    """

    def __init__(self, application: Application, shape: Sequence[int], arrays: Sequence[Array], first: int) -> None:
        self.axis: int = application.attrs["axis"]
        self.count = len(arrays)
        self.rank = len(arrays[0].shape)
        self.size = int(np.prod(arrays[0].shape))
        self.places = tuple(shape[self.axis : self.axis + self.count])
        self.window = tuple(size for k, size in enumerate(shape) if not self.axis <= k < self.axis + self.count)
        self.known: list[np.ndarray[Any, Any]] | None = None
        columns: list[Any] = []
        for k, (array, size) in enumerate(zip(arrays, self.places, strict=True)):
            known = application.known(first + k)
            if known is not None and (not known.size or (-size <= known.min() and known.max() < size)):
                columns.append(np.where(known < 0, known.astype(INT64) + size, known).astype(INT64))
            else:
                columns.append(checked(application, array, self.axis + k, size))
        if all(isinstance(column, np.ndarray) for column in columns):
            self.known = columns
            self.stacked: Any = np.stack(columns, -1)
        else:
            self.stacked = lax.concatenate([lax.expand_dims(column, (self.rank,)) for column in columns], self.rank)

    @property
    def window_dims(self) -> tuple[int, ...]:
        """The axes of the part that are not those of the indices."""
        total = len(self.window) + self.rank
        return tuple(k for k in range(total) if not self.axis <= k < self.axis + self.rank)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(self.axis, self.axis + self.count))

    def gather(self, x: Array) -> Array:
        sizes = [1 if k in self.axes else size for k, size in enumerate(x.shape)]
        numbers = GatherDimensionNumbers(self.window_dims, self.axes, self.axes)
        found: Array = lax.gather(x, self.stacked, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
        return found

    def scatter(self, line: Callable[..., Array], x: Array, part: Array, stacked: Any = None) -> Array:
        """``line`` is one of jax's scatters; what is out of bounds is dropped."""
        numbers = ScatterDimensionNumbers(self.window_dims, self.axes, self.axes)
        where = self.stacked if stacked is None else stacked
        return line(x, where, part, numbers, mode=GatherScatterMode.FILL_OR_DROP)

    def last_writes(self) -> Any:
        """The indices, those of writes that a later one overwrites replaced by ones out of bounds.

        XLA may write equal indices in any order. The last is the one with the largest number.
        """
        if self.size <= 1:
            return self.stacked
        total = int(np.prod(self.places))
        if self.known is not None:
            flat = np.ravel_multi_index([column.ravel() for column in self.known], self.places)
            last = np.full(total, -1)
            last[flat] = np.arange(flat.size)
            wins = (last[flat] == np.arange(flat.size)).reshape(self.known[0].shape)
            return self.stacked if wins.all() else np.where(wins[..., None], self.stacked, np.array(self.places))
        counter = lax.reshape(lax.iota(INT64, self.size), self.stacked.shape[:-1])
        flat_index = full_like(counter, 0)
        for k, size in enumerate(self.places):
            column = lax.index_in_dim(self.stacked, k, self.rank, keepdims=False)
            flat_index = lax.add(lax.mul(flat_index, full_like(counter, size)), column)
        where = lax.expand_dims(flat_index, (self.rank,))
        numbers = ScatterDimensionNumbers((), (0,), (0,))
        found = lax.scatter_max(
            lax.full((total,), np.int64(-1), INT64), where, counter, numbers, mode=GatherScatterMode.FILL_OR_DROP
        )
        at = GatherDimensionNumbers((), (0,), (0,))
        latest = lax.gather(found, where, at, (1,), mode=GatherScatterMode.PROMISE_IN_BOUNDS)
        wins = lax.broadcast_in_dim(lax.eq(latest, counter), self.stacked.shape, tuple(range(self.rank)))
        outside = lax.broadcast_in_dim(np.array(self.places, INT64), self.stacked.shape, (self.rank,))
        return lax.select(wins, self.stacked, outside)


def checked(application: Application, index: Array, axis: int, size: int) -> Array:
    """The index, counted from the start, as int64; that it is within bounds is checked after the call."""
    if index.dtype == np.dtype(np.uint64):  # no larger than the size, and so an int64, where it is within bounds
        application.check(lax.lt(index, full_like(index, size)), message_of(axis, size), "IndexError", index)
        return cast(index, INT64)
    index = cast(index, INT64)
    length, zero = full_like(index, size), full_like(index, 0)
    within = lax.bitwise_and(lax.ge(index, lax.neg(length)), lax.lt(index, length))
    application.check(within, message_of(axis, size), "IndexError", index)
    return lax.select(lax.lt(index, zero), lax.add(index, length), index)


def message_of(axis: int, size: int) -> str:
    return OUT_OF_BOUNDS.format(axis=axis, size=size)


@contextual
def gather(application: Application, x: Array, *arrays: Array) -> Array:
    indices = Indices(application, x.shape, arrays, 1)
    result = application.operation.results[0].type
    if not result.size or not x.size:
        return lax.full(result.static_shape, np.zeros((), x.dtype)[()], x.dtype)
    return indices.gather(x)


@contextual
def scatter_add(application: Application, x: Array, part: Array, *arrays: Array) -> Array:
    indices = Indices(application, x.shape, arrays, 2)
    if not part.size or not x.size:
        return x
    return add_at(indices, x, part)


def add_at(indices: Indices, x: Array, part: Array) -> Array:
    """Sums; of booleans, the disjunction."""
    if x.dtype == BOOL:
        return cast(indices.scatter(lax.scatter_max, cast(x, BYTE), cast(part, BYTE)), BOOL)
    return indices.scatter(lax.scatter_add, x, part)


@contextual
def scatter_set(application: Application, x: Array, part: Array, *arrays: Array) -> Array:
    indices = Indices(application, x.shape, arrays, 2)
    if not part.size or not x.size:
        return x
    return indices.scatter(lax.scatter, x, part, indices.last_writes())


# --- along one axis -----------------------------------------------------------------------------------


class AlongAxis(Indices):
    """An index array of the array's rank for one ``axis``: the other axes are indexed by their own positions."""

    def __init__(self, application: Application, shape: Sequence[int], index: Array, first: int) -> None:
        axis = application.attrs["axis"]
        known = application.known(first)
        size = shape[axis]
        self.axis, self.count, self.rank, self.size = 0, len(shape), len(shape), index.size
        self.places, self.window, self.known = tuple(shape), (), None
        if known is not None and (not known.size or (-size <= known.min() and known.max() < size)):
            column: Any = np.where(known < 0, known + size, known)
        else:
            column = checked(application, index, axis, size)
        columns = [
            column if k == axis else lax.broadcasted_iota(INT64, index.shape, k) for k in range(len(index.shape))
        ]
        self.stacked = lax.concatenate([lax.expand_dims(c, (self.rank,)) for c in columns], self.rank)


@contextual
def take_along_axis(application: Application, x: Array, index: Array) -> Array:
    indices = AlongAxis(application, x.shape, index, 1)
    if not index.size or not x.size:
        return lax.full(index.shape, np.zeros((), x.dtype)[()], x.dtype)
    return indices.gather(x)


@contextual
def add_along_axis(application: Application, part: Array, index: Array) -> Array:
    result = application.operation.results[0].type
    zeros = lax.full(result.static_shape, np.zeros((), part.dtype)[()], part.dtype)
    indices = AlongAxis(application, result.static_shape, index, 1)
    return add_at(indices, zeros, part) if part.size and result.size else zeros


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "add_along_axis": add_along_axis,
    "gather": gather,
    "scatter_add": scatter_add,
    "scatter_set": scatter_set,
    "slice": slice_,
    "slice_set": slice_set,
    "take_along_axis": take_along_axis,
}
