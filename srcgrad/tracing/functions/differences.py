"""Differences, numerical derivatives and integrals, interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, DTypeError, ShapeError
from srcgrad.tracing.functions.reductions import sum as sum_of
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    axis_of,
    cast,
    inexact_dtype,
    numpy_rule,
    prefix,
    require_cast,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.sorting import searchsorted
from srcgrad.tracing.tracer import as_tracer, contains_tracer, emit


@numpy_rule("diff")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    x: Any = as_tracer(a)
    if not x.ndim:
        raise ShapeError("diff requires input that is at least one dimensional")
    axis = axis_of(axis, x.ndim)
    ends = [end_piece(x, end, axis) for end in (prepend, append)]
    pieces = [*ends[0], x, *ends[1]]
    if len(pieces) > 1:
        x = np.concatenate(pieces, axis=axis)
    subtract = np.not_equal if x.dtype == np.bool_ else np.subtract
    for _ in range(n):
        x = subtract(x[prefix(axis, slice(1, None))], x[prefix(axis, slice(None, -1))])
    return x


def end_piece(x: Any, end: Any, axis: int) -> list[Any]:
    if end is np._NoValue:
        return []
    piece: Any = as_array(end)
    return [np.broadcast_to(piece, (*x.shape[:axis], 1, *x.shape[axis + 1 :])) if not piece.ndim else piece]


@numpy_rule("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x: Any = as_array(ary).ravel()
    pieces = [x[1:] - x[:-1]]
    for name, end, at in (("to_begin", to_begin, 0), ("to_end", to_end, len(pieces) + 1)):
        if end is not None:
            joined: Any = as_array(end)
            if not np.can_cast(joined.dtype, x.dtype, casting="same_kind"):
                raise DTypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
            pieces.insert(at, cast(joined.ravel(), x.dtype))
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


@numpy_rule("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x: Any = as_array(f)
    axes = axes_of(axis, x.ndim) if axis is None else tuple(axis_of(k, x.ndim) for k in np.atleast_1d(axis))
    if edge_order not in (1, 2):
        raise ShapeError("'edge_order' greater than 2 not supported")
    spacings = list(varargs) if varargs else [1.0]
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise ArgumentError("invalid number of arguments: np.gradient takes a spacing for each axis")
    x = cast(x, inexact_dtype(x.dtype))
    results = tuple(gradient_along(x, spacing, k, edge_order) for k, spacing in zip(axes, spacings, strict=True))
    return results[0] if len(axes) == 1 else results


def gradient_along(x: Any, spacing: Any, axis: int, edge_order: int) -> Any:
    """Second-order central differences inside, one-sided ones of ``edge_order`` at the ends."""
    size = x.shape[axis]
    if size < edge_order + 1:
        raise ShapeError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )

    def at(start: int, stop: int | None) -> Any:
        return x[prefix(axis, slice(start, stop))]

    h = as_tracer(spacing) if contains_tracer(spacing) else np.asarray(spacing)
    column = (-1,) + (1,) * (x.ndim - axis - 1)
    if h.ndim:
        if h.ndim != 1 or h.shape[0] != size:
            raise ShapeError("when 1d, distances must match the length of the corresponding dimension")
        steps: Any = np.diff(h.astype(np.float64) if h.dtype.kind in "iu" else h)
    else:
        steps = h
    if not h.ndim:
        inner = (at(2, None) - at(0, -2)) / (2.0 * h)
    else:
        left, right = (part.reshape(column) for part in (steps[:-1], steps[1:]))
        inner = (
            -right / (left * (left + right)) * at(0, -2)
            + (right - left) / (left * right) * at(1, -1)
            + left / (right * (left + right)) * at(2, None)
        )

    def step(k: int) -> Any:
        return steps[k] if h.ndim else h

    if edge_order == 1:
        first = (at(1, 2) - at(0, 1)) / step(0)
        last = (at(size - 1, size) - at(size - 2, size - 1)) / step(-1)
    else:
        first, last = second_order_ends(at, size, step)
    result = np.concatenate([first, inner, last], axis=axis)
    return cast(result, x.dtype)


def second_order_ends(at: Any, size: int, step: Any) -> tuple[Any, Any]:
    """The derivative at the ends of the parabola through the three points next to them."""
    d1, d2 = step(0), step(1)
    first = (
        -(2.0 * d1 + d2) / (d1 * (d1 + d2)) * at(0, 1)
        + (d1 + d2) / (d1 * d2) * at(1, 2)
        - d1 / (d2 * (d1 + d2)) * at(2, 3)
    )
    d1, d2 = step(-2), step(-1)
    last = (
        d2 / (d1 * (d1 + d2)) * at(size - 3, size - 2)
        - (d2 + d1) / (d1 * d2) * at(size - 2, size - 1)
        + (2.0 * d2 + d1) / (d2 * (d1 + d2)) * at(size - 1, size)
    )
    return first, last


@numpy_rule("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values: Any = as_tracer(y)
    axis = axis_of(axis, values.ndim)
    if x is None:
        d: Any = dx
    else:
        places: Any = as_tracer(x)
        d = np.diff(places, axis=axis if places.ndim > 1 else -1)
        if places.ndim == 1:
            d = d.reshape((-1,) + (1,) * (values.ndim - axis - 1))
    upper, lower = values[prefix(axis, slice(1, None))], values[prefix(axis, slice(None, -1))]
    return sum_of(d * (upper + lower) / 2.0, axis)


@numpy_rule("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear; the nodes must increase. Differentiable in ``x``, ``xp`` and ``fp``.

    The interval is found by binary search. At a node the derivative is that of the interval which begins there; at the
    last one, of the interval which ends there.
    """
    for operand in (x, xp):
        require_cast(as_tracer(operand).dtype, np.float64)
    places: Any = cast(x, np.float64)
    nodes: Any = cast(as_array(xp), np.float64)
    values: Any = as_array(fp)
    values = cast(values, np.complex128 if values.dtype.kind == "c" else np.float64)
    if nodes.ndim != 1 or values.shape != nodes.shape:
        raise ShapeError(f"fp and xp are not of the same length: {values.shape} and {nodes.shape}")
    if not nodes.size:
        raise ShapeError("array of sample points is empty")
    if values.dtype.kind == "c":  # each part of its own, as infinity times 0 is in a product of complex numbers
        real, imag = (
            interp(places, nodes, part(values), part_of(left, part), part_of(right, part), period)
            for part in (np.real, np.imag)
        )
        return emit("complex", real, as_tracer(np.where(np.isnan(places), 0.0, imag)), scalar=not places.ndim)
    for end in (left, right):
        if end is not None and as_tracer(end).dtype.kind == "c":
            raise DTypeError("left= and right= of np.interp must be real numbers where fp is real")
    if period is not None:
        places, nodes, values = periodic(places, nodes, values, period)
        left = right = None
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    if nodes.size == 1:
        inside: Any = np.broadcast_to(values[0], places.shape)
    else:
        inside = between_nodes(places, nodes, values)
    return with_ends(places, inside, (nodes[0], low), (nodes[-1], high))


def part_of(end: Any, part: Callable[[Any], Any]) -> Any:
    return None if end is None else part(end)


def with_ends(places: Any, inside: Any, low: tuple[Any, Any], high: tuple[Any, Any]) -> Any:
    """What is inside of the nodes, and beyond the first and the last of them, given with what is there."""
    result = np.where(places < low[0], low[1], np.where(places > high[0], high[1], inside))
    result = cast(np.where(np.isnan(places), places, result), inside.dtype)
    return scalar_if_rank0(result) if not places.ndim else result


def periodic(places: Any, nodes: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """Everything within one period, the nodes sorted, with one of the neighbouring periods on each side."""
    length: Any = abs(period)
    if not contains_tracer(period) and period == 0:
        raise ShapeError("period must be a non-zero value")
    places, nodes = places % length, nodes % length
    order = np.argsort(nodes)
    nodes, values = nodes[order], values[order]
    nodes = np.concatenate([nodes[-1:] - length, nodes, nodes[:1] + length])
    return places, nodes, np.concatenate([values[-1:], values, values[:1]])


def between_nodes(places: Any, nodes: Any, values: Any) -> Any:
    """The line through the node before and the one after; where that is no number, what NumPy takes instead."""
    k = np.minimum(np.maximum(searchsorted(nodes, places, "right") - 1, 0), nodes.size - 2)
    return on_line(places, (nodes[k], nodes[k + 1]), (values[k], values[k + 1]), places == nodes[-1])


def on_line(places: Any, nodes: tuple[Any, Any], values: tuple[Any, Any], is_last: Any) -> Any:
    """The line through two nodes. ``is_last``: where a place is the last node of all."""
    (start, end), (before, after) = nodes, values
    slope = (after - before) / (end - start)
    line: Any = slope * (places - np.where(is_last, end, start)) + np.where(is_last, after, before)
    line = np.where(np.isnan(line) & is_last, after, line)
    line = np.where(np.isnan(line), slope * (places - end) + after, line)
    return np.where(np.isnan(line) & ((before == after) | (places == start)), before, line)


@numpy_rule("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    x: Any = as_array(p)
    axis = axis_of(axis, x.ndim)
    steps = diff(x, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = np.result_type(steps.dtype, np.asarray(period).dtype if not isinstance(period, (int, float)) else period)
    if dtype.kind in "iu":
        high, remainder = divmod(period, 2)
        ambiguous = remainder == 0
    else:
        high, ambiguous = period / 2, True
    low = -high
    reduced = np.mod(steps - low, period) + low
    if ambiguous:
        reduced = np.where((reduced == low) & (steps > 0), high, reduced)
    correction = np.where(np.abs(steps) < discont, 0, reduced - steps)
    moved = x[prefix(axis, slice(1, None))] + np.cumsum(correction, axis=axis)
    return np.concatenate([cast(x[prefix(axis, slice(0, 1))], dtype), cast(moved, dtype)], axis=axis)
