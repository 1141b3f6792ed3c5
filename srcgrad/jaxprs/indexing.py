"""Gathers, scatters and dynamic slices: XLA's general forms as elements at integer index arrays.

An operand's axes are of three kinds: those that are *located* (by a start, or by a batch index), those of them that
keep a window, and those that are taken whole. Located axes come first, their index arrays have the shape of the batch
followed by the windows, and the axes that are taken whole follow (Operation Semantics of XLA, "Gather" and "Scatter").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.jaxprs.arrays import part
from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import Equation, filled, known, permuted, rule, select, sizes, traced
from srcgrad.tracing.tracer import Tracer, emit

INT64 = np.dtype(np.int64)
AT: Final = {"scatter_mul": np.multiply, "scatter_max": np.maximum, "scatter_min": np.minimum}
"""What combines an update with what is there, where that is no sum."""


class Access(NamedTuple):
    """Which elements of an operand are read or written."""

    perm: tuple[int, ...]
    """Located axes, then whole ones."""
    indices: list[Tracer]
    """One array per located axis, of the shape of the batch and the windows."""
    valid: Tracer | None
    """Where in the batch all starts are within bounds; None where they are known to be, or are clamped."""
    batch: tuple[int, ...]
    order: tuple[int, ...]
    """The axes of (batch, windows, whole axes) as the other array has them: axis i of it is axis ``order[i]``."""


def locate(
    shape: Sequence[int],
    window: Sequence[int],
    starts: dict[int, Any],
    batching: dict[int, int],
    collapsed: Sequence[int],
    offsets: Sequence[int],
    batch: tuple[int, ...],
    drops: bool,
) -> Access:
    """The access to windows of size ``window`` of an operand of this shape.

    Args:
        starts: by axis, the first index of each window of the batch. Clamped, unless ``drops``.
        batching: by axis, the axis of the batch that goes with it.
        collapsed: axes that do not appear in the other array.
        offsets: where the other axes appear there.
        drops: windows that are not within bounds are left out.
    """
    kept = [axis for axis in range(len(shape)) if axis not in collapsed and axis not in batching]
    whole = [axis for axis in kept if axis not in starts]
    located = [axis for axis in range(len(shape)) if axis not in whole]
    windows = [axis for axis in located if axis in kept]
    full = batch + tuple(window[axis] for axis in windows)
    indices: list[Tracer] = []
    valid: Tracer | None = None
    for axis in located:
        if axis in batching:
            place = batching[axis]
            number = np.arange(shape[axis]).reshape([-1 if k == place else 1 for k in range(len(batch))])
            first: Any = traced(np.broadcast_to(number, batch))
        else:
            last = shape[axis] - window[axis]
            within = None if not drops else bounds(starts[axis], last)
            if within is not None:
                valid = within if valid is None else emit("logical_and", valid, within)
            first = clamped(starts[axis], last)
        index = emit("broadcast", first, shape=full, dims=tuple(range(len(batch)))) if full != batch else first
        if axis in windows:
            place = len(batch) + windows.index(axis)
            offset = np.arange(window[axis]).reshape([-1 if k == place else 1 for k in range(len(full))])
            index = emit("add", index, traced(np.broadcast_to(offset, full)))
        indices.append(index)
    rank = len(batch) + len(kept)
    at = dict(zip(sizes(offsets), kept, strict=True))
    rest = iter(range(len(batch)))
    place_of = {axis: len(batch) + k for k, axis in enumerate([*windows, *whole])}
    order = tuple(place_of[at[k]] if k in at else next(rest) for k in range(rank))
    return Access((*located, *whole), indices, valid, batch, order)


def bounds(start: Any, last: int) -> Tracer | None:
    """Where a start is in 0..last; None if it is known to be everywhere."""
    number = known(start)
    if number is not None and np.all((number >= 0) & (number <= last)):
        return None
    x = traced(start)
    low, high = filled(0, x.shape, x.dtype), filled(last, x.shape, x.dtype)
    return emit("logical_and", emit("greater_equal", x, low), emit("less_equal", x, high))


def clamped(start: Any, last: int) -> Tracer:
    """The start, forced into 0..last, as int64."""
    number = known(start)
    if number is not None:
        return traced(np.clip(np.asarray(number, INT64), 0, last))
    x = converted(traced(start), INT64)
    return emit("minimum", emit("maximum", x, filled(0, x.shape, INT64)), filled(last, x.shape, INT64))


def take(x: Tracer, access: Access) -> Tracer:
    """The elements, their axes as the result has them."""
    moved = permuted(x, access.perm)
    if access.indices:
        found = emit("gather", moved, *access.indices, axis=0)
    else:
        shape = access.batch + moved.shape
        found = emit("broadcast", moved, shape=shape, dims=tuple(range(len(access.batch), len(shape))))
    return permuted(found, access.order)


def put(op: str, x: Tracer, updates: Tracer, access: Access) -> Tracer:
    """The operand with the elements replaced by the updates, or the updates added to them."""
    moved = permuted(x, access.perm)
    values = permuted(updates, np.argsort(access.order))
    at = AT.get(op)
    if not access.indices:
        if at is not None:
            return permuted(
                traced(at(moved, at.reduce(values, axis=tuple(range(len(access.batch)))))), np.argsort(access.perm)
            )
        if op == "scatter_set":  # one update, or none: of several, the last
            return values_of_all(x, values, access, moved)
        total = emit("reduce_sum", values, axes=tuple(range(len(access.batch)))) if access.batch else values
        return permuted(emit("add", moved, total), np.argsort(access.perm))
    indices, size = access.indices, moved.shape[0]
    if access.valid is not None:  # what is left out goes to one more place, which is cut off again
        room = emit("concatenate", moved, filled(0, (1, *moved.shape[1:]), moved.dtype), axis=0)
        shape = indices[0].shape
        valid = emit("broadcast", access.valid, shape=shape, dims=tuple(range(len(access.batch))))
        indices = [select(valid, indices[0], filled(size, shape, INT64)), *indices[1:]]
        written = written_at(op, room, values, indices)
        found = part(written, [0] * written.ndim, moved.shape)
    else:
        found = written_at(op, moved, values, indices)
    return permuted(found, np.argsort(access.perm))


def written_at(op: str, x: Tracer, values: Tracer, indices: Sequence[Tracer]) -> Tracer:
    """``x`` with the values put into the places of its first axes, added to what is there, or combined with it."""
    if op not in AT:
        return emit(op, x, values, *indices, axis=0)
    found = x.copy()
    AT[op].at(found, tuple(indices), values)
    return traced(found)


def values_of_all(x: Tracer, values: Tracer, access: Access, moved: Tracer) -> Tracer:
    """The last of the updates that replace a whole operand; the operand if there is none."""
    if 0 in access.batch:
        return x
    count = len(access.batch)
    starts = [size - 1 for size in access.batch] + [0] * moved.ndim
    last = part(values, starts, values.shape)
    return permuted(emit("reshape", last, shape=moved.shape) if count else last, np.argsort(access.perm))


def split_starts(value: Any, axes: Sequence[Any]) -> dict[int, Any]:
    """The starts of each axis: the last axis of the index array counts the axes."""
    number = known(value)
    if number is not None:
        return {int(axis): number[..., k] for k, axis in enumerate(axes)}
    x = traced(value)
    found = {}
    for k, axis in enumerate(axes):
        one = part(x, [0] * (x.ndim - 1) + [k], [*x.shape[:-1], k + 1])
        found[int(axis)] = emit("reshape", one, shape=x.shape[:-1])
    return found


@rule("gather")
def gather(e: Equation) -> Tracer:
    numbers, window = e.params["dimension_numbers"], sizes(e.params["slice_sizes"])
    starts = split_starts(e.operands[1], numbers.start_index_map)
    x, mode = e.x, e.params["mode"].name
    batching = paired(numbers.operand_batching_dims, numbers.start_indices_batching_dims)
    limits = [n if k in starts or k in batching else window[k] for k, n in enumerate(x.shape)]
    x = part(x, [0] * x.ndim, limits)
    batch = tuple(np.shape(e.operands[1]))[:-1]
    access = locate(
        x.shape, window, starts, batching, sizes(numbers.collapsed_slice_dims), numbers.offset_dims, batch,
        mode == "FILL_OR_DROP",
    )  # fmt: skip
    found = take(x, access)
    if access.valid is None:
        return found
    fill = e.params["fill_value"]
    if fill is None:
        kind = e.dtype.kind
        fill = np.nan if kind in "fc" else True if kind == "b" else np.iinfo(e.dtype).max
        fill = np.iinfo(e.dtype).min if kind == "i" else fill
    dims = [k for k, axis in enumerate(access.order) if axis < len(batch)]
    valid = emit("broadcast", access.valid, shape=found.shape, dims=tuple(dims))
    return select(valid, found, filled(fill, found.shape, e.dtype))


def paired(axes: Sequence[Any], batch: Sequence[Any]) -> dict[int, int]:
    return dict(zip(sizes(axes), sizes(batch), strict=True))


@rule(
    "scatter", "scatter-add", "scatter_add", "scatter-sub", "scatter_sub", "scatter_mul", "scatter-mul", "scatter_max",
    "scatter-max", "scatter_min", "scatter-min",
)  # fmt: skip
def scatter(e: Equation) -> Tracer:
    numbers, mode = e.params["dimension_numbers"], e.params["mode"].name
    x, updates = e.x, traced(e.operands[2])
    starts = split_starts(e.operands[1], numbers.scatter_dims_to_operand_dims)
    batching = paired(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    inserted = sizes(numbers.inserted_window_dims)
    kept = [axis for axis in range(x.ndim) if axis not in inserted and axis not in batching]
    offsets = sizes(numbers.update_window_dims)
    window = [1] * x.ndim
    for axis, place in zip(kept, offsets, strict=True):
        window[axis] = updates.shape[place]
        if axis not in starts and window[axis] != x.shape[axis]:
            starts[axis] = np.zeros(np.shape(e.operands[1])[:-1], INT64)
    batch = tuple(np.shape(e.operands[1]))[:-1]
    access = locate(x.shape, window, starts, batching, inserted, offsets, batch, mode == "FILL_OR_DROP")
    if "sub" in e.name:
        updates = emit("neg", updates)
    how = e.name.replace("-", "_")
    op = "scatter_set" if how == "scatter" else how if how in AT else "scatter_add"
    return put(op, x, updates, access)


@rule("dynamic_slice")
def dynamic_slice(e: Equation) -> Tracer:
    x, window = e.x, sizes(e.params["slice_sizes"])
    starts = whole_starts(e.operands[1:], x.shape, window)
    if all(isinstance(start, int) for start in starts.values()):
        first = [starts.get(axis, 0) for axis in range(x.ndim)]
        return part(x, first, [a + w for a, w in zip(first, window, strict=True)])
    return take(x, locate(x.shape, window, starts, {}, (), range(x.ndim), (), False))


@rule("dynamic_update_slice")
def dynamic_update_slice(e: Equation) -> Tracer:
    x, update = e.tracers[:2]
    starts = whole_starts(e.operands[2:], x.shape, update.shape)
    if not all(isinstance(start, int) for start in starts.values()):
        return put("scatter_set", x, update, locate(x.shape, update.shape, starts, {}, (), range(x.ndim), (), False))
    first = [starts.get(axis, 0) for axis in range(x.ndim)]
    if not x.ndim or update.shape == x.shape:
        return update
    limits = sizes([a + w for a, w in zip(first, update.shape, strict=True)])
    return emit("slice_set", x, update, starts=sizes(first), limits=limits, strides=(1,) * x.ndim)


def whole_starts(starts: Sequence[Any], shape: Sequence[int], window: Sequence[int]) -> dict[int, Any]:
    """By axis that is not taken whole, its start: an int where it is known."""
    found: dict[int, Any] = {}
    for axis, start in enumerate(starts):
        if window[axis] != shape[axis]:
            number = known(start)
            found[axis] = start if number is None else int(np.clip(number, 0, shape[axis] - window[axis]))
    return found
