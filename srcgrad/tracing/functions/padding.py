"""``np.pad`` in all its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.joining import concatenate
from srcgrad.tracing.functions.ranges import linspace
from srcgrad.tracing.functions.registry import (
    as_array,
    axis_of,
    cast,
    concrete_array,
    filled,
    numpy_rule,
    prefix,
)
from srcgrad.tracing.functions.shapes import broadcast_to, flip
from srcgrad.tracing.tracer import as_tracer, contains_tracer

OPTIONS: Final[dict[str, str | None]] = {
    "constant": "constant_values",
    "edge": None,
    "empty": None,
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
}
"""The modes, and the option that each takes."""

STATISTICS: Final[dict[str, Callable[..., Any]]] = {
    "maximum": np.max,
    "minimum": np.min,
    "mean": np.mean,
    "median": np.median,
}
Side = tuple[int, int]


@numpy_rule("pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Elements of mode "empty" are zeros. Where a mean or median is padded to integers, it is rounded, as in NumPy."""
    x = as_array(array)
    if callable(mode):
        raise UnsupportedError(
            "np.pad with a function for its mode is not supported on traced arrays",
            hint="the function would write into its argument; pad with zeros and write into the result",
        )
    if mode not in OPTIONS:
        raise ShapeError(f"mode {mode!r} is not supported", hint=f"the modes are {', '.join(OPTIONS)}")
    unknown = set(kwargs) - {OPTIONS[mode]}
    if unknown:
        raise ShapeError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    widths = pad_widths(x, pad_width)
    if mode in ("constant", "empty"):
        return pad_constant(x, widths, **kwargs)
    if not x.size:
        for axis, width in enumerate(widths):
            if x.shape[axis] == 0 and any(width):
                raise ShapeError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        return pad_constant(x, widths)
    option = kwargs.get(OPTIONS[mode] or "")
    original = x
    for axis, width in enumerate(widths):
        if any(width):
            x = padded(x, axis, width, mode, option)
    return x if x is not array and x is not original else x.copy()


def pad_widths(x: Any, pad_width: Any) -> list[Side]:
    if isinstance(pad_width, dict):
        pairs = np.zeros((x.ndim, 2), int)
        for axis, width in pad_width.items():
            pairs[axis_of(axis, x.ndim)] = width
        pad_width = pairs
    widths = concrete_array(pad_width, "np.pad's widths")
    if widths.dtype.kind not in "iu":
        raise DTypeError("`pad_width` must be of integral type.")
    if np.any(widths < 0):
        raise ShapeError("index can't contain negative values")
    try:
        pairs = np.broadcast_to(widths, (x.ndim, 2))
    except ValueError:
        raise ShapeError(
            f"a `pad_width` of shape {widths.shape} does not fit an array of {x.ndim} axes",
            hint="give one number, one pair (before, after), or such a pair for each axis",
        ) from None
    return [(int(before), int(after)) for before, after in pairs]


def padded(x: Any, axis: int, width: Side, mode: str, option: Any) -> Any:
    """The array with one axis padded."""
    if mode in ("edge", "wrap"):
        return picked(x, axis, width, mode)
    if mode in ("reflect", "symmetric"):
        if option not in (None, "even", "odd"):
            raise ShapeError(f"reflect_type {option!r} is neither 'even' nor 'odd'")
        if x.shape[axis] == 1:
            return picked(x, axis, width, "edge")
        return reflected(x, axis, width, mode) if option == "odd" else picked(x, axis, width, mode)
    if mode == "linear_ramp":
        before, after = ramps(x, axis, width, 0 if option is None else option)
    else:
        before, after = statistics(x, axis, width, mode, option)
    return concatenate([before, x, after], axis)


def picked(x: Any, axis: int, width: Side, mode: Any) -> Any:
    """Modes in which every new element is an old one: parts that are joined, where the pads are no longer than it."""
    size, (before, after) = x.shape[axis], width
    if mode == "edge":
        ends = [
            broadcast_to(end(x, axis, side), (*x.shape[:axis], width[side], *x.shape[axis + 1 :])) for side in (0, 1)
        ]
        return concatenate([ends[0], x, ends[1]], axis)
    skipped = mode == "reflect"
    if max(width) <= size - skipped:
        if mode == "wrap":
            parts = [slice(size - before, size), slice(0, after)]
        else:
            parts = [slice(skipped, skipped + before), slice(size - skipped - after, size - skipped)]
        sides = [x[prefix(axis, part)] for part in parts]
        sides = sides if mode == "wrap" else [flip(side, axis) for side in sides]
        return concatenate([sides[0], x, sides[1]], axis)
    return x[prefix(axis, np.pad(np.arange(x.shape[axis]), width, mode=mode))]


def end(x: Any, axis: int, side: int) -> Any:
    """The first or last element along an axis, which stays."""
    return x[prefix(axis, slice(0, 1) if side == 0 else slice(x.shape[axis] - 1, None))]


def reflected(x: Any, axis: int, width: Side, mode: str) -> Any:
    """Reflected through the edges: twice the edge minus what is reflected, piece by piece while the pads are longer."""
    left, right = width
    repeats_edge = mode == "symmetric"
    period = x.shape[axis] if repeats_edge else x.shape[axis] - 1
    while left or right:
        size = x.shape[axis]
        chunk = size // period * period if repeats_edge else (size - 1) // period * period
        skipped = 0 if repeats_edge else 1
        pieces = [x]
        count = min(chunk, left)
        if count:
            mirror = flip(x[prefix(axis, slice(skipped, skipped + count))], axis)
            pieces.insert(0, cast(2 * end(x, axis, 0) - mirror, x.dtype))
            left -= count
        count = min(chunk, right)
        if count:
            mirror = flip(x[prefix(axis, slice(size - skipped - count, size - skipped))], axis)
            pieces.append(cast(2 * end(x, axis, 1) - mirror, x.dtype))
            right -= count
        x = concatenate(pieces, axis)
    return x


def ramps(x: Any, axis: int, width: Side, end_values: Any) -> tuple[Any, Any]:
    values = pairs_of(end_values, x.ndim)
    found = []
    for side in (0, 1):
        edge: Any = end(x, axis, side)
        edge = edge.reshape(edge.shape[:axis] + edge.shape[axis + 1 :])
        ramp = linspace(values[axis, side], edge, width[side], endpoint=False, dtype=x.dtype, axis=axis)
        found.append(flip(ramp, axis) if side else ramp)
    return found[0], found[1]


def pairs_of(values: Any, rank: int) -> Any:
    return broadcast_to(as_tracer(values), (rank, 2)) if contains_tracer(values) else np.broadcast_to(values, (rank, 2))


def statistics(x: Any, axis: int, width: Side, mode: str, stat_length: Any) -> tuple[Any, Any]:
    """The statistic of the elements next to each side, repeated."""
    lengths = np.broadcast_to(np.array(stat_length, dtype=object), (x.ndim, 2))[axis]
    size = x.shape[axis]
    found = []
    for side in (0, 1):
        length = size if lengths[side] is None else min(int(np.round(lengths[side])), size)
        if length < 0:
            raise ShapeError("index can't contain negative values")
        if not length and mode in ("maximum", "minimum"):
            raise ShapeError("stat_length of 0 yields no value for padding")
        near = slice(0, length) if side == 0 else slice(size - length, size)
        value: Any = STATISTICS[mode](x[prefix(axis, near)], axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and value.dtype.kind == "f":
            value = np.rint(value)
        shape = (*x.shape[:axis], width[side], *x.shape[axis + 1 :])
        found.append(broadcast_to(cast(value, x.dtype), shape))
    return found[0], found[1]


def pad_constant(x: Any, widths: list[Side], constant_values: Any = 0) -> Any:
    """One write into an array of the constant; several constants are joined on axis by axis."""
    if not contains_tracer(constant_values) and np.ndim(constant_values) == 0:
        shape = tuple(size + before + after for size, (before, after) in zip(x.shape, widths, strict=True))
        result: Any = filled(shape, constant_values, x.dtype)
        inner = (slice(before, before + size) for size, (before, _) in zip(x.shape, widths, strict=True))
        result[(*inner, ...)] = x
        return result
    values: Any = broadcast_to(cast(as_tracer(constant_values), x.dtype), (x.ndim, 2))
    for axis, width in enumerate(widths):
        pieces = [
            broadcast_to(values[axis, side], (*x.shape[:axis], width[side], *x.shape[axis + 1 :])) for side in (0, 1)
        ]
        x = concatenate([pieces[0], x, pieces[1]], axis)
    return x
