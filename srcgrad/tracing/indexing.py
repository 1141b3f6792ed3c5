"""NumPy indexing on traced arrays: basic indices are views, integer and boolean arrays are gathers and scatters."""

from __future__ import annotations

import array
import itertools
import operator
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import DTypeError, IndexingError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.ir.core import Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import INT64, ArrayType, DType
from srcgrad.tracing.affine import affine_of
from srcgrad.tracing.single import require_element
from srcgrad.tracing.trace import Trace, current_trace
from srcgrad.tracing.tracer import (
    Deferring,
    Tracer,
    as_tracer,
    broadcast_tracer,
    cast_value,
    contains_tracer,
    from_value,
)
from srcgrad.tracing.views import ReshapeView, ReverseView, SliceView, View


class Window(NamedTuple):
    """The slice ``start : start + length * step : step`` of an axis, all of which lies on the axis.

    With ``around``, the size of the axis, what would lie beyond an end of it goes on at the other one.
    """

    start: Tracer
    length: int
    step: int
    around: int = 0

    def place(self, trace: Trace, shape: tuple[int, ...], axis: int) -> Value:
        """The indices along an axis of an array of them."""
        first = trace.emit(REGISTRY["broadcast"], [self.start.read()], {"shape": (self.length,), "dims": ()})
        steps = literal(np.arange(self.length) * self.step, ArrayType(INT64, (self.length,)))
        found = trace.emit(REGISTRY["add"], [first, steps])
        if self.around:
            size = literal(np.full(self.length, self.around), ArrayType(INT64, (self.length,)))
            found = trace.emit(REGISTRY["remainder"], [found, size])
        if shape == (self.length,):
            return found
        return trace.emit(REGISTRY["broadcast"], [found], {"shape": shape, "dims": (axis,)})

    def ghost(self) -> slice:
        """A slice of the same length and strides."""
        return slice(None, None, -1) if self.step < 0 else slice(0, self.length * self.step, self.step)

    def same(self, other: Window) -> bool:
        """Whether both surely are the same places."""
        return self[1:] == other[1:] and self.start.read() is other.start.read()


WHOLE: Final = (int, np.integer, Tracer)
"""What bounds of a window may be."""


@dataclass(eq=False, repr=False)
class IndexView(View):
    """``base[..., i, j : j + 3, ...]`` along axes next to each other, some of it traced: a view, as NumPy's is.

    It is one view for all of them: of ``base[i][j]`` one element is read or written, not a row that it is in.
    """

    varies = True
    axis: int
    indices: tuple[Tracer | int | Window, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the windows' axes, which the view has in place of those that are indexed."""
        return tuple(index.length for index in self.indices if isinstance(index, Window))

    def traced(self) -> list[Tracer]:
        numbers = (index.start if isinstance(index, Window) else index for index in self.indices)
        return [number for number in numbers if isinstance(number, Tracer)]

    def places(self, trace: Trace) -> list[Value]:
        found, shape, windows = [], self.shape, 0
        for index in self.indices:
            if isinstance(index, Window):
                found.append(index.place(trace, shape, windows))
                windows += 1
                continue
            place = literal(index, ArrayType(INT64)) if isinstance(index, int) else index.read()
            wide = {"shape": shape, "dims": ()}
            found.append(trace.emit(REGISTRY["broadcast"], [place], wide) if shape else place)
        return found

    def forward(self, trace: Trace, base: Value) -> Value:
        return self.noted(trace, trace.emit(REGISTRY["gather"], [base, *self.places(trace)], {"axis": self.axis}))

    def backward(self, trace: Trace, base: Value, new: Value) -> Value:
        written = trace.emit(REGISTRY["scatter_set"], [base, new, *self.places(trace)], {"axis": self.axis})
        return self.noted(trace, written)

    def noted(self, trace: Trace, value: Value) -> Value:
        """What was read or written, which may fail; a window surely lies on its axis."""
        if not self.shape:
            trace.note_failing(value, [as_tracer(index) for index in self.indices])
        return value

    def apply(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        parts = [index.ghost() if isinstance(index, Window) else 0 for index in self.indices]
        view: np.ndarray[Any, Any] = array[(*[slice(None)] * self.axis, *parts, ...)]
        return view

    def of(self, view: Tracer) -> Tracer:
        """This view of an array; of one that is such a view itself, along the axis before, it is one with that."""
        chain, step, after = view.chain, self, self.axis + len(self.indices)
        last = chain[-1] if chain else None
        if isinstance(last, IndexView) and last.axis + len(last.shape) == self.axis:
            chain, step = chain[:-1], IndexView(last.axis, last.indices + self.indices)
        shape = view.shape[: self.axis] + self.shape + view.shape[after:]
        return Tracer(view.storage, (*chain, step), ArrayType(view.dtype, shape))


class Located(NamedTuple):
    """What an index means: views of the array, then index arrays for consecutive axes starting at ``axis``."""

    view: Tracer
    axis: int
    indices: list[Tracer]
    element: bool
    """Whether the index names one element (NumPy then gives a scalar, not a view)."""

    copied: bool = False
    """Whether NumPy gives a copy although the index is basic: a 0-d array is in it."""


@dataclass(frozen=True, eq=False)
class Whole:
    """A 0-d boolean index: all of the array once, or not at all, along a new axis."""

    places: np.ndarray[Any, Any]


class Entries(NamedTuple):
    """An index, one entry per axis or new axis: slices, ints, None, `Whole`, integer arrays (tracers or ndarrays)."""

    entries: list[Any]
    gap: int | None
    """Before which of them an ellipsis stands that is no axis: NumPy takes the indices around it for separated."""


def normalise(x: Tracer, index: Any) -> Entries:
    given = [
        entry if isinstance(entry, Window) else index_entry(entry)
        for entry in (index if type(index) is tuple else [index])
    ]
    places = spread(given, x.ndim)
    entries: list[Any] = []
    gap = None
    for entry in places:
        if entry is Ellipsis:
            gap = len(entries)
        elif is_mask(entry):
            entries.extend(nonzero(entry, x, sum(map(is_axis, entries))))
        else:
            entries.append(entry)
    return Entries(entries, gap)


def index_entry(entry: Any) -> Any:
    """What stands in an index, read: slices, ints, None, `...`, `Whole`, arrays of integers and masks."""
    if is_array_index(entry):
        places = entry if isinstance(entry, Tracer) else as_index_array(entry)
        if places.dtype == np.bool_ and not places.ndim:
            number = places.concrete("a boolean index") if isinstance(places, Tracer) else places
            return Whole(np.arange(int(number)))
        if places.dtype.kind in "biu":
            return places
        if places.size == 0 and not isinstance(places, Tracer):
            return places.astype(np.int64)
        raise IndexingError("arrays used as indices must be of integer (or boolean) type")
    if isinstance(entry, (int, np.integer)):
        return int(entry)
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    return index_number(entry)


def spread(given: list[Any], ndim: int) -> list[Any]:
    """An index with slices for the axes that it does not name; an ellipsis is kept where there are none of them.

    A mask names as many axes as it has.
    """
    used = sum(entry.ndim if is_mask(entry) else is_axis(entry) for entry in given)
    if used > ndim:
        raise IndexingError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    places = [k for k, entry in enumerate(given) if entry is Ellipsis]
    if len(places) > 1:
        raise IndexingError("an index can only have a single ellipsis ('...')")
    at = places[0] if places else len(given)
    fill: list[Any] = [slice(None)] * (ndim - used)
    return given[:at] + (fill or given[at : at + 1]) + given[at + 1 :]


def is_mask(entry: Any) -> bool:
    return isinstance(entry, (Tracer, np.ndarray)) and entry.dtype == np.bool_ and entry.ndim > 0


def is_axis(entry: Any) -> bool:
    """Whether an entry indexes one axis of the array."""
    return entry is not None and entry is not Ellipsis and not isinstance(entry, Whole)


def as_index_array(entry: Any) -> Any:
    return as_tracer(entry) if contains_tracer(entry) else np.asarray(entry)


def index_number(entry: Any) -> int:
    try:
        return operator.index(entry)
    except TypeError:
        raise IndexingError(
            "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices"
        ) from None


def is_array_index(entry: Any) -> bool:
    if isinstance(entry, Tracer):
        return True
    return isinstance(entry, (list, np.ndarray, bool, np.bool_, tuple, range, array.array, memoryview, deque))


def nonzero(mask: Any, x: Tracer, axis: int) -> list[np.ndarray[Any, Any]]:
    """The indices of a boolean index: their number must be known while tracing."""
    if tuple(mask.shape) != x.shape[axis : axis + mask.ndim]:
        raise mask_mismatch(mask, x, axis)
    number = mask.concrete("a boolean index") if isinstance(mask, Tracer) else mask
    return list(np.nonzero(number))


def mask_mismatch(mask: Any, x: Tracer, axis: int) -> IndexingError:
    return IndexingError(f"boolean index of shape {mask.shape} does not match indexed array {x.shape} at axis {axis}")


def locate(x: Tracer, index: Any) -> Located:
    entries, gap = normalise(x, index)
    if any(isinstance(entry, Whole) for entry in entries):
        x = basic(x, [None if isinstance(entry, Whole) else slice(None) for entry in entries if entry is not None])
        entries = [entry.places if isinstance(entry, Whole) else entry for entry in entries]
    entries = with_windows(x, [known_integer(entry) for entry in entries])
    arrays = [entry for entry in entries if isinstance(entry, (Tracer, np.ndarray))]
    if not any(array.ndim for array in arrays):
        copied = any(not isinstance(array, Tracer) or not array.scalar for array in arrays)
        entries = [int(entry) if isinstance(entry, np.ndarray) else entry for entry in entries]
        given = index if isinstance(index, tuple) else (index,)
        element = not any(entry is Ellipsis for entry in given) and all(
            isinstance(entry, (int, Tracer)) for entry in entries
        )
        return Located(basic(x, entries), 0, [], element, copied)
    picked = [k for k, entry in enumerate(entries) if isinstance(entry, (Tracer, np.ndarray, int))]
    separated = gap is not None and picked[0] < gap <= picked[-1]
    consecutive = picked == list(range(picked[0], picked[-1] + 1)) and not separated
    indices = [index_tracer(entries[k]) for k in picked]
    try:
        shape = np.broadcast_shapes(*[i.shape for i in indices])
    except ValueError:
        raise IndexingError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {[i.shape for i in indices]}"
        ) from None
    view = basic(x, [slice(None) if k in picked else entry for k, entry in enumerate(entries)])
    indices = [broadcast_tracer(i, shape) for i in indices]
    require_bounds(view, picked, indices)
    if consecutive:
        return Located(view, picked[0], indices, False)
    perm = picked + [axis for axis in range(view.ndim) if axis not in picked]
    return Located(view.transpose(perm), 0, indices, False)


def known_integer(entry: Any) -> Any:
    """A traced integer scalar whose number is known is that number."""
    if isinstance(entry, Tracer) and entry.scalar and (number := entry.number()) is not None:
        return int(number)
    return entry


def with_windows(x: Tracer, entries: list[Any]) -> list[Any]:
    """The entries, with windows for slices between traced numbers whose length is known."""
    axes = itertools.count()
    sizes = [0 if entry is None else x.shape[next(axes)] for entry in entries]
    return [
        window_of(entry, size) if isinstance(entry, slice) else entry
        for entry, size in zip(entries, sizes, strict=True)
    ]


def window_of(entry: slice, size: int) -> slice | Window:
    """A slice that surely lies on its axis as a window; others as they are, and known numbers for what is known."""
    start, stop, step = map(known_integer, (entry.start, entry.stop, 1 if entry.step is None else entry.step))
    if not isinstance(start, Tracer) and not isinstance(stop, Tracer):
        return entry if start is entry.start and stop is entry.stop else slice(start, stop, entry.step)
    if not isinstance(start, WHOLE) or not isinstance(stop, WHOLE) or not isinstance(step, int) or step < 1:
        return entry
    first, end = affine_of(start), affine_of(stop)
    if first is None or end is None:
        from srcgrad.tracing.listed import rows_between  # which is written with this module

        rows = rows_between(entry, size)
        return entry if rows is None or rows.counted is not None else rows.window
    length = end.plus(first, -1)
    if length.terms:
        return entry
    count = -(-length.constant // step)
    if first.least() < 0 or end.least() < 0 or (count > 0 and first.most() + (count - 1) * step >= size):
        return entry  # it may be counted from the end, or be cut off there
    return Window(as_tracer(start), count, step) if count > 0 else slice(0, 0)


def index_tracer(entry: Any) -> Tracer:
    tracer = as_tracer(np.asarray(entry)) if not isinstance(entry, Tracer) else entry
    return from_value(cast_value(tracer.read(), INT64))


def place_of(entry: Tracer | Window) -> Tracer | Window:
    """The index of a view: the number that the user has, so that the view lasts as long as it does."""
    whole = isinstance(entry, Window) or (entry.scalar and entry.dtype == INT64)
    return entry if whole else index_tracer(entry)


def require_bounds(view: Tracer, axes: list[int], indices: list[Tracer]) -> None:
    """Indices known while tracing are checked now, at the user's line."""
    for axis, index in zip(axes, indices, strict=True):
        number, size = index.number(), view.shape[axis]
        if number is not None and np.size(number) and not (np.all(number >= -size) and np.all(number < size)):
            bad = np.extract((np.asarray(number) < -size) | (np.asarray(number) >= size), number)[0]
            raise IndexingError(f"index {bad} is out of bounds for axis {axis} with size {size}")


def basic(x: Tracer, entries: list[Any]) -> Tracer:
    """The view of slices, ints (known or traced) and new axes."""
    if any(isinstance(entry, (Tracer, Window)) for entry in entries):
        return with_traced(x, entries)
    starts, limits, strides, reverse, shape = [], [], [], [], []
    axis = 0
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(entry, int):
            if not -size <= entry < size:
                raise IndexingError(f"index {entry} is out of bounds for axis {axis} with size {size}")
            start, count, step = entry % size, 1, 1
        else:
            start, stop, step = slice_bounds(entry, size)
            count = len(range(start, stop, step))
            shape.append(count)
        if step < 0:
            reverse.append(axis)
            start, step = start + (count - 1) * step, -step
        starts.append(start if count else 0)
        limits.append(start + (count - 1) * step + 1 if count else 0)
        strides.append(step if count > 1 else 1)
        axis += 1
    views: list[View] = []
    picked = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
    if picked != x.shape or any(stride != 1 for stride in strides):
        views.append(SliceView(tuple(starts), tuple(limits), tuple(strides)))
    if reverse:
        views.append(ReverseView(tuple(reverse)))
    counts = tuple(len(range(a, b, c)) for a, b, c in zip(starts, limits, strides, strict=True))
    if counts != tuple(shape):
        views.append(ReshapeView(tuple(shape)))
    return Tracer(x.storage, x.chain + tuple(views), ArrayType(x.dtype, tuple(shape)))


def with_traced(x: Tracer, entries: list[Any]) -> Tracer:
    """The view of entries of which some are traced: integers and windows next to each other are one view.

    They come before slices: of ``x[i, 1:-1]`` a part of one row is read or written, not one row of a part.
    """
    runs: list[list[int]] = []
    """Places of integers and windows next to each other."""
    for k, entry in enumerate(entries):
        if isinstance(entry, (int, Tracer, Window)):
            if k and isinstance(entries[k - 1], (int, Tracer, Window)):
                runs[-1].append(k)
            else:
                runs.append([k])
    runs = [run for run in runs if any(isinstance(entries[k], (Tracer, Window)) for k in run)]
    taken, view = {k for run in runs for k in run}, x
    for run in reversed(runs):
        axis = sum(entry is not None for entry in entries[: run[0]])
        indices: list[Tracer | int | Window] = []
        for k, size in zip(run, view.shape[axis:], strict=False):
            index = entries[k]
            if not size or (isinstance(index, int) and not -size <= index < size):
                number = f"index {index}" if isinstance(index, int) else "index"
                raise IndexingError(f"{number} is out of bounds for axis {axis + k - run[0]} with size {size}")
            indices.append(index % size if isinstance(index, int) else place_of(index))
        view = IndexView(axis, tuple(indices)).of(view)
    left = [slice(None) if isinstance(entry, Window) else entry for entry in entries]
    return basic(view, [entry for k, entry in enumerate(left) if k not in taken or isinstance(entries[k], Window)])


def slice_bounds(entry: slice, size: int) -> tuple[int, int, int]:
    try:
        bounds = [None if bound is None else operator.index(bound) for bound in (entry.start, entry.stop, entry.step)]
    except TypeError as error:
        if isinstance(error, SrcgradError):
            raise
        raise UnsupportedError("slice indices must be integers or None or have an __index__ method") from None
    if bounds[2] == 0:
        raise ShapeError("slice step cannot be zero")
    return slice(*bounds).indices(size)


def picking(index: Any) -> bool:
    """Whether one of the indices is an array whose length is not known."""
    return any(isinstance(entry, Deferring) for entry in (index if isinstance(index, tuple) else (index,)))


def ragged_part(x: Tracer, index: Any) -> Any:
    """``x[index]`` where a slice of it has another length in each trip of a loop, else None."""
    entries = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(entry, slice) and holds_tracer(entry) for entry in entries):
        return None
    from srcgrad.tracing.ragged import part_of  # which is written with this module

    return part_of(x, index)


def masked_part(x: Tracer, index: Any) -> Any:
    """What a mask of ``x[index]`` whose value is not known selects, else None."""
    entries = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(entry, Tracer) and entry.dtype == np.bool_ and entry.ndim for entry in entries):
        return None
    from srcgrad.tracing.masks import selection_of  # which is written with this module

    return selection_of(x, index)


def holds_tracer(entry: slice) -> bool:
    return isinstance(entry.start, Tracer) or isinstance(entry.stop, Tracer) or isinstance(entry.step, Tracer)


def at_places(name: str, operands: Sequence[Value], places: Sequence[Tracer], axis: int) -> Value:
    """What the op of this name reads or writes at index arrays; where these may be out of bounds, it may fail."""
    trace = current_trace()
    value = trace.emit(REGISTRY[name], [*operands, *(place.read() for place in places)], {"axis": axis})
    if any(place.number() is None for place in places):
        trace.note_failing(value, places)
    return value


def getitem(self: Tracer, index: Any) -> Any:
    x = from_value(self.read()) if self.scalar else self
    if picking(index):
        from srcgrad.tracing.picked import Picked  # which is written with this module

        return Picked(x, index).elements()
    ragged = ragged_part(x, index)
    if ragged is not None:
        return ragged
    selection = masked_part(x, index)
    if selection is not None:
        return selection.of(selection.view)
    view, axis, indices, element, copied = locate(x, index)
    if not indices:
        if element:
            return from_value(view.read(), scalar=True)
        return view.copy() if copied else view
    return from_value(at_places("gather", [view.read()], indices, axis))


def setitem(self: Tracer, index: Any, value: Any) -> None:
    if self.scalar:
        raise UnsupportedError(f"a NumPy scalar ({self.dtype}) does not support item assignment")
    if picking(index):
        from srcgrad.tracing.picked import Picked  # which is written with this module

        Picked(self, index).write(value)
        return
    ragged = ragged_part(self, index)
    if ragged is not None:
        ragged.write(value)
        return
    if is_unknown_mask(self, index) and not isinstance(value, Deferring):
        new = stored(self, value)
        if new.ndim <= self.ndim - index.ndim:
            mask = index.reshape(index.shape + (1,) * (self.ndim - index.ndim))
            chosen: Any = np.where(mask, leading_broadcast(new, self.shape), self)
            self.write(chosen.read())
            return
    selection = masked_part(self, index)
    if selection is not None:
        selection.write(value)
        return
    new = stored(self, value)
    view, axis, indices, element, _ = locate(self, index)
    if not indices:
        if element:
            require_element(new)
        view.write(leading_broadcast(new, view.shape).read())
        return
    shape = view.shape[:axis] + indices[0].shape + view.shape[axis + len(indices) :]
    if not shape and not any(entry is Ellipsis for entry in (index if isinstance(index, tuple) else (index,))):
        require_element(new)
    operands = [view.read(), leading_broadcast(new, shape).read()]
    view.write(at_places("scatter_set", operands, indices, axis))


def is_unknown_mask(x: Tracer, index: Any) -> bool:
    """Whether the index is a traced mask of x's leading axes whose value is not known."""
    if not isinstance(index, Tracer) or index.dtype != np.bool_:
        return False
    return index.shape == x.shape[: index.ndim] and index.number() is None


def stored(x: Tracer, value: Any) -> Tracer:
    """A value as assignment stores it: cast to the array's dtype."""
    tracer = in_dtype(value, x.dtype)
    if tracer.dtype.kind == "c" and x.dtype.kind != "c":
        raise DTypeError(f"cannot assign a complex value to a {x.dtype} array", hint="assign its real part")
    return from_value(cast_value(tracer.read(), x.dtype))


def in_dtype(value: Any, dtype: DType) -> Tracer:
    """A value that an array of this dtype is to hold; a Python integer as NumPy takes it, and None, which is nan.

    Raises:
        OverflowError: the dtype does not hold the integer.
    """
    numpys = value is None or (type(value) is int and dtype.kind in "iu")
    return as_tracer(np.asarray(value, dtype)[()] if numpys else value)


def leading_broadcast(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Broadcast for assignment: leading axes of size 1 may be dropped."""
    while x.ndim > len(shape) and x.shape[0] == 1:
        x = x.reshape(x.shape[1:])
    return broadcast_tracer(x, shape)


def add_at(target: Tracer, index: Any, value: Any) -> None:
    """``np.add.at(target, index, value)``."""
    if picking(index):
        from srcgrad.tracing.picked import Picked  # which is written with this module

        index, value = Picked(target, index).added(value)
    view, axis, indices, _, _ = locate(target, index)
    if target.dtype.kind in "biu" and as_tracer(value).dtype.kind in "fc":
        raise UnsupportedError(
            f"np.add.at of {as_tracer(value).dtype} values into a {target.dtype} array is not supported",
            hint="NumPy rounds each sum towards 0; make the array one of floats",
        )
    new = stored(target, value)
    if not indices:
        view.write((view + broadcast_tracer(new, view.shape)).read())
        return
    shape = view.shape[:axis] + indices[0].shape + view.shape[axis + len(indices) :]
    operands = [view.read(), broadcast_tracer(new, shape).read()]
    view.write(at_places("scatter_add", operands, indices, axis))


Tracer.__getitem__ = getitem  # type: ignore[method-assign]
Tracer.__setitem__ = setitem  # type: ignore[method-assign]
