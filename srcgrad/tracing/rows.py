"""Items of a list that are the rows of one array, in order: what a loop appends is kept so, and found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.types import ArrayType
from srcgrad.tracing.tracer import Tracer, from_value
from srcgrad.tracing.views import ReshapeView, SliceView

NUMBERS: Final = (bool, int, float, complex)


def row(source: Tracer, place: int, scalar: bool, weak: bool) -> Tracer:
    """A row of an array that nothing else views: a scalar is read where it is used."""
    rest = source.shape[1:]
    starts, limits = (place, *(0 for _ in rest)), (place + 1, *rest)
    views = (SliceView(starts, limits, (1,) * (len(rest) + 1)), ReshapeView(rest))
    return Tracer(source.storage, (*source.chain, *views), ArrayType(source.dtype, rest), scalar, weak)


def viewed(item: Any) -> Tracer | None:
    """The array that an item may be a row of."""
    if not isinstance(item, Tracer) or len(item.chain) < 2 or not isinstance(item.chain[-2], SliceView):
        return None
    before = item.chain[:-2]
    if not before:
        return Tracer(item.storage, (), item.storage.value.type)
    last = before[-1]
    if not isinstance(last, ReshapeView):
        return None
    return Tracer(item.storage, before, ArrayType(item.dtype, last.shape))


def run_of_rows(items: Sequence[Any], first: int, backwards: bool = False) -> int:
    """How many items from one on are all rows of one array, in order or the last one first; 0 if they are not."""
    source = viewed(items[first])
    count = source.shape[0] if source is not None and source.ndim else 0
    if source is None or first + count > len(items):
        return 0
    for k in range(count):
        other = items[first + k]
        if not isinstance(other, Tracer) or other.storage is not source.storage:
            return 0
        if other.chain != row(source, count - 1 - k if backwards else k, False, False).chain:
            return 0
    return count


def source_of(items: Sequence[Any]) -> Tracer | None:
    """The array that items are all rows of, in order."""
    if not items or run_of_rows(items, 0) != len(items):
        return None
    return viewed(items[0])


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


def pieces(items: Sequence[Any]) -> list[Any] | None:
    """The items with a new array for each run of rows, and lists of what is between; None without runs."""
    found: list[Any] = []
    k, runs = 0, 0
    while k < len(items):
        count = run_of_rows(items, k)
        turned = 0 if count else run_of_rows(items, k, True)
        source: Any = viewed(items[k])
        if max(count, turned) > 1:
            count = count or turned
            found.append(from_value((source[::-1] if turned else source).read()))
            runs += 1
            k += count
            continue
        if not found or isinstance(found[-1], Tracer):
            found.append([])
        found[-1].append(items[k])
        k += 1
    return found if runs else None
