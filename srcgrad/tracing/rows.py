"""Items of a list that are rows of one array, in order: what a loop appends is kept so, and found again.

So are parts of such a list, ``states[2:]``, ``states[::-1]``, and the same view of each, ``[s[:2] for s in states]``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from srcgrad.ir.types import ArrayType
from srcgrad.tracing.tracer import Tracer, emit, from_value
from srcgrad.tracing.views import ReshapeView, ReverseView, SliceView, TransposeView, View

NUMBERS: Final = (bool, int, float, complex)
FEW: Final = 4
"""Pieces are joined one by one where there are fewer."""


def row(source: Tracer, place: int, scalar: bool, weak: bool) -> Tracer:
    """A row of an array that nothing else views: a scalar is read where it is used."""
    rest = source.shape[1:]
    starts, limits = (place, *(0 for _ in rest)), (place + 1, *rest)
    views = (SliceView(starts, limits, (1,) * (len(rest) + 1)), ReshapeView(rest))
    return Tracer(source.storage, (*source.chain, *views), ArrayType(source.dtype, rest), scalar, weak)


class Row(NamedTuple):
    """A row of an array, and its place."""

    source: Tracer
    place: int


def row_of(item: Any) -> Row | None:
    """The array that an item may be a row of."""
    if not isinstance(item, Tracer) or len(item.chain) < 2 or not isinstance(item.chain[-2], SliceView):
        return None
    before, place = item.chain[:-2], item.chain[-2].starts[0]
    if not before:
        source = Tracer(item.storage, (), item.storage.value.type)
    else:
        last = before[-1]
        if isinstance(last, SliceView):
            shape = tuple(len(range(*axis)) for axis in zip(last.starts, last.limits, last.strides, strict=True))
        elif isinstance(last, ReshapeView):
            shape = last.shape
        else:
            return None
        source = Tracer(item.storage, before, ArrayType(item.dtype, shape))
    return Row(source, place) if source.ndim and item.chain == row(source, place, False, False).chain else None


def run_of_rows(items: Sequence[Any], first: int) -> Tracer | None:
    """The rows of one array, forwards or backwards at one distance, that the items from one on are."""
    begin, then = row_of(items[first]), row_of(items[first + 1]) if first + 1 < len(items) else None
    if begin is None:
        return None
    source, place = begin
    step = then.place - place if then is not None and then.source.storage is source.storage else 0
    count = 1
    while step and first + count < len(items):
        other = items[first + count]
        if not isinstance(other, Tracer) or other.storage is not source.storage:
            break
        next_place = place + step * count
        if not 0 <= next_place < len(source) or other.chain != row(source, next_place, False, False).chain:
            break
        count += 1
    return part_of(source, place, step if count > 1 else 1, count)


def part_of(source: Tracer, place: int, step: int, count: int) -> Tracer:
    """So many rows of an array from a place on."""
    low, rest = min(place, place + step * (count - 1)), source.shape[1:]
    views: list[View] = []
    if count != len(source):
        starts, limits = (low, *(0 for _ in rest)), (low + abs(step) * (count - 1) + 1, *rest)
        views.append(SliceView(starts, limits, (abs(step), *(1 for _ in rest))))
    if step < 0:
        views.append(ReverseView((0,)))
    return Tracer(source.storage, (*source.chain, *views), ArrayType(source.dtype, (count, *rest))) if views else source


def source_of(items: Sequence[Any]) -> Tracer | None:
    """The array, or the part of one, that items are all rows of, in order."""
    found = run_of_rows(items, 0) if items else None
    return found if found is not None and len(found) == len(items) else None


def table_of(lists: Sequence[Any]) -> Tracer | None:
    """The array that lists of lists are, row by row."""
    if not lists or any(type(item) not in (list, tuple) for item in lists):
        return None
    found = []
    for item in lists:
        source = source_of(item) if item and isinstance(item[0], Tracer) else table_of(item)
        if source is None:
            return None
        found.append(source)
    return source_of(found)


def columns_of(records: Sequence[Any]) -> list[Any] | None:
    """The arrays that records have at each of their places: known numbers, or all rows of one array, in order."""
    if not records or any(type(record) not in (list, tuple) for record in records):
        return None
    widths = {len(record) for record in records}
    if len(widths) > 1 or 0 in widths:
        return None
    found: list[Any] = []
    for column in zip(*records, strict=True):
        source = known(column) if type(column[0]) in NUMBERS else source_of(column)
        if source is None:
            return None
        found.append(source)
    return found


def known(numbers: Sequence[Any]) -> Any:
    """Numbers of one class of Python's as an array of the dtype that each of them has; None if there is none."""
    array = np.array(numbers) if all(type(number) is type(numbers[0]) for number in numbers) else None
    return None if array is None or array.dtype != np.asarray(numbers[0]).dtype else array


def whole_of(items: Sequence[Any]) -> Tracer | None:
    """The array that items are all rows of, and all of its rows."""
    found = source_of(items)
    return found if found is not None and found.chain == items[0].chain[:-2] else None


def pieces(items: Sequence[Any]) -> list[Any] | None:
    """The items with a new array for each run of rows, and lists of what is between; None without runs."""
    found: list[Any] = []
    k, runs = 0, 0
    while k < len(items):
        run = run_of_rows(items, k)
        if run is not None and len(run) > 1:
            found.append(from_value(run.read()))
            runs += 1
            k += len(run)
            continue
        if not found or isinstance(found[-1], Tracer):
            found.append([])
        found[-1].append(items[k])
        k += 1
    return found if runs else None


def seen_along(rows: Any, view: View) -> Any:
    """The view of each row of an array."""
    count, axes = len(rows), range(1, rows.ndim)
    if isinstance(view, ReshapeView):
        return rows.reshape((count, *view.shape))
    if isinstance(view, TransposeView):
        return rows.transpose((0, *(axes[axis] for axis in view.perm)))
    if isinstance(view, ReverseView):
        return emit("reverse", rows, axes=tuple(axes[axis] for axis in view.axes))
    assert isinstance(view, SliceView)
    return emit("slice", rows, starts=(0, *view.starts), limits=(count, *view.limits), strides=(1, *view.strides))


def is_long(run: Tracer | None) -> TypeGuard[Tracer]:
    return run is not None and len(run) >= FEW


def run_of_views(pieces: Sequence[Tracer], first: int) -> Any | None:
    """What pieces from one on are, as far as they are one view of successive rows of an array: that of all of these."""
    chain = pieces[first].chain
    for end in range(len(chain), 1, -1):
        if end < len(chain) and not isinstance(chain[end], SliceView | ReshapeView | ReverseView | TransposeView):
            return None
        rows: list[Tracer] = []
        for piece in pieces[first:]:
            if len(piece.chain) != len(chain) or piece.chain[end:] != chain[end:]:
                break
            rows.append(Tracer(piece.storage, piece.chain[:end], piece.type))
            if len(rows) == FEW and not is_long(run_of_rows(rows, 0)):
                break
        run = run_of_rows(rows, 0) if rows else None
        if is_long(run):
            return functools.reduce(seen_along, chain[end:], from_value(run.read()))
    return None


def gathered(pieces: Sequence[Tracer], axis: int) -> list[Tracer]:
    """Pieces that are to be joined along an axis, of which those in a row that are rows of one array are one.

    So a list of a thousand arrays that a loop has made is a transposition of the loop's column, not a thousand slices.
    """
    found: list[Tracer] = []
    k = 0
    while k < len(pieces):
        run = run_of_views(pieces, k) if len(pieces) - k >= FEW else None
        if run is None:
            found.append(pieces[k])
            k += 1
            continue
        k += len(run)
        shape = [*run.shape[1 : axis + 1], -1, *run.shape[axis + 2 :]]
        order = [*range(1, axis + 1), 0, *range(axis + 1, run.ndim)]
        found.append(run.transpose(order).reshape(shape))
    return found
