"""The methods of ufuncs on traced arrays: ``reduce``, ``accumulate``, ``reduceat`` and ``at``.

A method that is a NumPy function is that function. For the others the ufunc itself is applied: element after element
along the axis (a fold), or, where it is associative, in a logarithmic number of steps. Ties of ``maximum`` and
``minimum`` are then shared between the two operands of each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from srcgrad.errors import ArgumentError, AxisError, DTypeError, IndexingError, ShapeError, UnsupportedError
from srcgrad.tracing.trace import current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, broadcast_tracer, emit, from_value
from srcgrad.tracing.ufuncs import REDUCTIONS, call, require_no_objects, require_traced_out, store

ASSOCIATIVE = frozenset(
    {
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.logical_and,
        np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.hypot,
    }
)  # fmt: skip
"""Ufuncs whose operands may be bracketed in any way, but for rounding."""
MAGNITUDES = (np.hypot, np.gcd)
"""Ufuncs of which the fold of one number is its magnitude: what they make of it and their identity."""

MANY_LENGTHS = 4
"""More lengths of segments than these are not folded length by length: each is a pass over all elements backwards."""
SHORT = 1024
"""The longest segments whose sums are one row added to another: those of longer ones would be less exact."""

RUNNING: dict[np.ufunc, tuple[str, str]] = {
    np.maximum: ("cummax", "biuf"),
    np.minimum: ("cummin", "biuf"),
    np.logaddexp: ("cumlogsumexp", "f"),
}
"""Ufuncs whose ``accumulate`` is an op, for dtypes of these kinds."""
RESTARTING = {np.maximum: "restarting_cummax", np.minimum: "restarting_cummin"}
"""Ufuncs whose ``accumulate`` that starts anew at marks is an op."""


def apply_method(
    ufunc: np.ufunc,
    method: str,
    inputs: Sequence[Any],
    outs: tuple[Any, ...],
    where: Any,
    dtype: Any,
    options: dict[str, Any],
) -> Any:
    """One of the methods; NumPy gives all arguments but the first two by name.

    Raises:
        UnsupportedError: the method of this ufunc has no meaning here.
    """
    require_no_objects(ufunc)
    if method == "at":
        return apply_at(ufunc, *inputs)
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise UnsupportedError(f"np.{ufunc.__name__}.{method} is not supported on traced arrays")
    if method == "reduce":
        if ufunc in (np.add, np.multiply) and outs:  # which say in what dtype is summed
            return reduce(ufunc, inputs[0], where, dtype, {**options, "out": outs})
        result = reduce(ufunc, inputs[0], where, dtype, options)
    elif method == "accumulate":
        result = accumulate(ufunc, inputs[0], dtype, **options)
    else:
        result = reduceat(ufunc, inputs[0], dtype, *inputs[1:], **options)
    return store(result, outs, True, broadcasts=False)


def prepared(ufunc: np.ufunc, array: Any, dtype: Any) -> Any:
    """The array in the dtype in which the ufunc applied to its own results computes.

    Raises:
        DTypeError: it cannot be applied to its own results.
    """
    x = as_tracer(array)
    try:
        return x.astype(ufunc.reduce(np.ones(1, x.dtype), dtype=dtype).dtype, copy=False)
    except TypeError as error:
        raise DTypeError(str(error)) from None


def axis_index(axis: Any, ndim: int) -> int:
    try:
        return normalize_axis_index(axis, ndim)
    except np.exceptions.AxisError as error:
        raise AxisError(str(error)) from None


# --- reduce ----------------------------------------------------------------------------------------------------------


def reduce(ufunc: np.ufunc, array: Any, where: Any, dtype: Any, options: dict[str, Any]) -> Any:
    given = {name: value for name, value in options.items() if value is not np._NoValue}
    axis = given.pop("axis", 0)
    reduction = REDUCTIONS.get(ufunc)
    if reduction is not None and not unlike(ufunc, where, given):
        if where is not True:
            given["where"] = where
        if ufunc in (np.add, np.multiply):
            return reduction(as_tracer(array), axis=axis, dtype=dtype, **given)
        return reduction(prepared(ufunc, array, dtype), axis=axis, **given)
    found = fold(ufunc, prepared(ufunc, array, dtype), axis, where, **given)
    return np.abs(found) if ufunc in MAGNITUDES and given.get("initial") is None else found


def unlike(ufunc: np.ufunc, where: Any, options: dict[str, Any]) -> bool:
    """Whether the NumPy function that is the ufunc's ``reduce`` lacks what is asked for."""
    return ("initial" in options and ufunc in STARTLESS) or (where is not True and ufunc is np.logaddexp)


STARTLESS = (np.logical_and, np.logical_or, np.logaddexp)


def reduced(ufunc: np.ufunc, x: Any, axis: Any) -> list[int]:
    """The axes that a fold is along.

    Raises:
        ShapeError: the order of several axes matters, or one is given twice.
    """
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not x.ndim and axis in (0, -1):
        return []
    chosen = sorted(axis_index(one, x.ndim) for one in axes)
    if len(set(chosen)) < len(chosen):
        raise ShapeError("duplicate value in 'axis'")
    try:
        ufunc.reduce(np.ones((1,) * len(chosen), x.dtype), tuple(range(len(chosen))))
    except ValueError as error:
        raise ShapeError(str(error)) from None
    return chosen


def fold(
    ufunc: np.ufunc, x: Any, axis: Any, where: Any, keepdims: bool = False, initial: Any = np._NoValue
) -> Any:  # fmt: skip
    """The ufunc between all elements along the axes, from ``initial``, or the ufunc's identity where it needs one."""
    chosen = reduced(ufunc, x, axis)
    kept = [k for k in range(x.ndim) if k not in chosen]
    shape = tuple(x.shape[k] for k in kept)
    size = int(np.prod([x.shape[k] for k in chosen], dtype=int))
    rows = x.transpose([*chosen, *kept]).reshape((size, *shape))
    needed = where is not True or not size
    identity = None if ufunc.identity is None else ufunc.reduce(np.empty(0, x.dtype))  # -1 as an unsigned one
    start = initial if initial is not np._NoValue else identity if needed else None
    if start is None and needed:
        what = "with where=" if size else "of no elements"
        raise ShapeError(f"np.{ufunc.__name__}.reduce {what} needs a number to begin with", hint="pass initial=")
    if start is not None:
        start = as_tracer(start if isinstance(start, Tracer) else x.dtype.type(start)).astype(x.dtype)
    taken = None
    if where is not True:
        taken = broadcast_tracer(as_tracer(where), x.shape).transpose([*chosen, *kept]).reshape(rows.shape)
    if taken is not None and ufunc in ASSOCIATIVE:
        rows = np.where(taken, rows, start if identity is None else identity)
        taken = None
    if start is not None:
        rows = np.concatenate([broadcast_tracer(start, (1, *shape)), rows])
    full = tuple(1 if k in chosen else x.shape[k] for k in range(x.ndim))
    result = bracketed(ufunc, rows, taken)
    result = result.reshape(full) if keepdims else result
    return from_value(result.read(), scalar=not result.ndim)


def bracketed(ufunc: np.ufunc, rows: Any, taken: Any = None) -> Any:
    """The ufunc between all rows; halves at a time if it is associative.

    Otherwise ``taken`` may say which elements after the first row take part.
    """
    if ufunc not in ASSOCIATIVE:
        result = rows[0]
        for k in range(1, len(rows)):
            following = call(ufunc, result, rows[k])
            result = following if taken is None else np.where(taken[k - 1], following, result)
        return result
    while len(rows) > 1:
        half = len(rows) // 2
        paired = call(ufunc, rows[:half], rows[half : 2 * half])
        rows = paired if len(rows) == 2 * half else np.concatenate([paired, rows[2 * half :]])
    return rows[0]


# --- accumulate and reduceat -----------------------------------------------------------------------------------------


def accumulate(ufunc: np.ufunc, array: Any, dtype: Any, axis: Any = 0) -> Any:
    """The folds of the first element, the first two, the first three, …"""
    if not as_tracer(array).ndim:
        raise ArgumentError("cannot accumulate on a scalar")
    if ufunc in (np.add, np.multiply):
        return (np.cumsum if ufunc is np.add else np.cumprod)(array, axis=axis, dtype=dtype)
    x = prepared(ufunc, array, dtype)
    axis = axis_index(axis, x.ndim)
    op, kinds = RUNNING.get(ufunc, ("", ""))
    if x.dtype.kind in kinds:
        return emit(op, x, axis=axis)
    rows = np.moveaxis(x, axis, 0)
    if ufunc in ASSOCIATIVE:
        step = 1
        while step < len(rows):  # after each round a row is the fold of the last 2 * step
            rows = np.concatenate([rows[:step], call(ufunc, rows[:-step], rows[step:])])
            step *= 2
    elif len(rows):
        found = [rows[0]]
        for k in range(1, len(rows)):
            found.append(call(ufunc, found[-1], rows[k]))
        rows = np.stack(found)
    result = np.moveaxis(rows, 0, axis)
    return result.copy() if result is x or result.storage is x.storage else result


def reduceat(ufunc: np.ufunc, array: Any, dtype: Any, indices: Any, axis: Any = 0) -> Any:
    """The folds of the slices from each index to the next; where that is none, the one element."""
    x = prepared(ufunc, array, dtype)
    axis = axis_index(0 if axis is None and x.ndim == 1 else axis, x.ndim)
    length = x.shape[axis]
    if ufunc is np.add and isinstance(indices, Tracer) and are_short_segments(indices, length):
        return np.moveaxis(segments_added(np.moveaxis(x, axis, 0), indices), 0, axis)
    starts = np.asarray(indices.concrete("ufunc.reduceat") if isinstance(indices, Tracer) else indices)
    if starts.size and not (starts.min() >= 0 and starts.max() < length):
        raise IndexingError(f"index {starts.max()} out-of-bounds in {ufunc.__name__}.reduceat [0, {length})")
    if not starts.size:
        return x[(slice(None),) * axis + (slice(0, 0),)]
    folded: Any = segments_folded(ufunc, np.moveaxis(x, axis, 0), starts.astype(int))
    return np.moveaxis(folded, 0, axis).astype(x.dtype, copy=False)


def are_short_segments(starts: Tracer, length: int) -> bool:
    """Whether these are the starts of short segments, one after the other: the one thing that Python asks of them."""
    if starts.number() is not None or starts.ndim != 1 or not starts.size or starts.dtype.kind not in "iu":
        return False
    ends = np.append(starts[1:], length)
    sizes = ends.astype(np.int64) - starts.astype(np.int64)
    known = (np.min(starts) >= 0) & (np.min(sizes) > 0) & (np.max(sizes) <= SHORT)
    return bool(as_tracer(known).concrete("ufunc.reduceat"))


def segments_added(rows: Any, starts: Tracer) -> Any:
    """The sums of short segments that begin where the program is told, as those of `segments_folded`."""
    nothing, ones = as_tracer(np.zeros(len(rows), np.int64)), as_tracer(np.ones(starts.size, np.int64))
    begins = emit("scatter_set", nothing, ones, starts, axis=0)
    sums = np.full((starts.size + 1, *rows.shape[1:]), rows.dtype.type(-0.0))  # the first is of what no segment has
    return emit("scatter_add", as_tracer(sums), rows, as_tracer(np.cumsum(begins)), axis=0)[1:]


def segments_folded(ufunc: np.ufunc, rows: Any, starts: Any) -> Any:
    """The folds of the rows from each start to the next, those of one length together: all lengths are known.

    Segments of many lengths, one after the other, are folded together, in as many operations whatever they are.
    """
    lengths = np.maximum(np.append(starts[1:], len(rows)) - starts, 1)
    different = np.unique(lengths)
    if len(different) > MANY_LENGTHS and np.all(np.diff(starts) > 0) and ufunc in ASSOCIATIVE:
        rows = rows[starts[0] :]
        if ufunc is np.add:
            return long_segments_added(rows, lengths)
        if ufunc is np.multiply:
            return long_segments_multiplied(rows, lengths)
        if ufunc in RESTARTING and rows.dtype.kind in "biuf":
            marks = np.zeros((len(rows), *(1,) * (rows.ndim - 1)), bool)
            marks[starts - starts[0]] = True
            running = emit(RESTARTING[ufunc], rows, as_tracer(np.broadcast_to(marks, rows.shape)), axis=0)
            return running[np.cumsum(lengths) - 1]
        return segments_paired(ufunc, rows, lengths)
    parts, places = [], []
    for length in different:
        chosen = np.flatnonzero(lengths == length)
        first = starts[chosen]
        if np.all(np.diff(first) == length):
            found = rows[first[0] : first[-1] + length].reshape((len(chosen), length, *rows.shape[1:]))
        else:
            found = rows[first[:, None] + np.arange(length)]
        parts.append(reduce(ufunc, found, True, None, {"axis": 1}) if length > 1 else found[:, 0])
        places.append(chosen)
    order = np.argsort(np.concatenate(places))
    joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return joined if np.array_equal(order, np.arange(len(order))) else joined[order]


def long_segments_added(rows: Any, lengths: Any) -> Any:
    """Sums of parts of up to `SHORT` rows, one added to another, and then the sums of these."""
    while True:
        pieces = -(-lengths // SHORT)
        ends = np.repeat(np.cumsum(lengths), pieces)
        begins = np.repeat(np.cumsum(lengths) - lengths, pieces) + SHORT * ranks(pieces)
        sums = np.full((len(ends), *rows.shape[1:]), rows.dtype.type(-0.0))
        numbers = np.repeat(np.arange(len(ends)), np.minimum(ends - begins, SHORT))
        rows = emit("scatter_add", as_tracer(sums), rows, as_tracer(numbers), axis=0)
        if len(ends) == len(lengths):
            return rows
        lengths = pieces


def long_segments_multiplied(rows: Any, lengths: Any) -> Any:
    """Products of parts of equal numbers of rows, of which the last of a segment holds ones, and then of these."""
    while len(rows) > len(lengths):
        width = int(np.clip(2 ** np.ceil(np.log2(len(rows) / len(lengths))), 8, SHORT))
        pieces = -(-lengths // width)
        begins = np.repeat(np.cumsum(lengths) - lengths, pieces) + width * ranks(pieces)
        places = begins[:, None] + np.arange(width)
        places[places >= np.repeat(np.cumsum(lengths), pieces)[:, None]] = len(rows)
        ones = np.ones((1, *rows.shape[1:]), rows.dtype)
        rows = reduce(np.multiply, np.concatenate([rows, ones])[places], True, None, {"axis": 1})
        lengths = pieces
    return rows


def segments_paired(ufunc: np.ufunc, rows: Any, lengths: Any) -> Any:
    """Neighbours in a segment are joined until each is one row; the last of an odd number waits."""
    while len(rows) > len(lengths):
        place = ranks(lengths)
        paired = np.flatnonzero((place % 2 == 0) & (place + 1 < np.repeat(lengths, lengths)))
        alone = np.flatnonzero((place % 2 == 0) & (place + 1 == np.repeat(lengths, lengths)))
        joined = np.concatenate([call(ufunc, rows[paired], rows[paired + 1]), rows[alone]])
        rows = joined[np.argsort(np.concatenate([paired, alone]))]
        lengths = (lengths + 1) // 2
    return rows


def ranks(lengths: Any) -> Any:
    """0, 1, 2, … in each segment."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


# --- at --------------------------------------------------------------------------------------------------------------


def apply_at(ufunc: np.ufunc, target: Any, index: Any, *values: Any) -> None:
    """``ufunc.at(x, i, v)``: unbuffered, so that duplicate indices count each time, in their order."""
    require_traced_out(target)
    if ufunc in (np.add, np.subtract):
        from srcgrad.tracing.indexing import add_at  # indexing is built on the operators

        add_at(target, index, -as_tracer(values[0]) if ufunc is np.subtract else values[0])
        return
    parts = index if isinstance(index, tuple) else (index,)
    unknown = any(isinstance(part, Tracer) and part.dtype.kind in "iu" for part in parts)
    if unknown and not current_trace().concrete and values:
        apply_in_a_loop(ufunc, target, index, values)
        return
    known = tuple(part.concrete("ufunc.at") if isinstance(part, Tracer) else part for part in parts)
    places = np.arange(target.size).reshape(target.shape)[known]
    updates = [broadcast_tracer(as_tracer(value), places.shape).reshape(-1) for value in values]
    places = places.ravel()
    elements = target.flat
    for chosen in occurrences(places):
        found = call(ufunc, elements[places[chosen]], *[update[chosen] for update in updates])
        if not np.can_cast(found.dtype, target.dtype, "same_kind"):
            raise DTypeError(f"cannot cast ufunc {ufunc.__name__!r} output from {found.dtype} to {target.dtype}")
        elements[places[chosen]] = found


def apply_in_a_loop(ufunc: np.ufunc, target: Tracer, index: Any, values: Sequence[Any]) -> None:
    """``ufunc.at`` of indices that are known when the program runs."""
    from srcgrad.tracing.conversion.calls import followed  # which is written with the rules
    from srcgrad.tracing.functions.written_loops import apply_each

    places = as_tracer(np.arange(target.size).reshape(target.shape))[index]
    given = [broadcast_tracer(as_tracer(value), places.shape).reshape(-1) for value in values]
    dtype = call(ufunc, target.reshape(-1)[:0], *[value[:0] for value in given]).dtype
    if not np.can_cast(dtype, target.dtype, "same_kind"):
        raise DTypeError(f"cannot cast ufunc {ufunc.__name__!r} output from {dtype} to {target.dtype}")
    elements = target.reshape(-1).copy()
    followed(apply_each)(ufunc, elements, places.reshape(-1), *given)
    target[...] = elements.reshape(target.shape)


def occurrences(places: Any) -> list[Any]:
    """The positions of the first occurrences of each place, of the second ones, and so on."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]
    fresh = np.ones(len(places), bool)
    fresh[1:] = sorted_places[1:] != sorted_places[:-1]
    starts = np.flatnonzero(fresh)
    rank = np.arange(len(places)) - np.repeat(starts, np.diff(np.append(starts, len(places))))
    return [np.sort(order[rank == count]) for count in range(int(rank.max(initial=-1)) + 1)]
