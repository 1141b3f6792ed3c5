"""Convolution and correlation, sliding windows."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError
from srcgrad.ir.ops.convolution import native_window
from srcgrad.tracing.functions.products import conjugated, promoted
from srcgrad.tracing.functions.registry import as_array, axis_of, numpy_rule
from srcgrad.tracing.tracer import emit
from srcgrad.tracing.views import WindowsView

MODES = ("valid", "same", "full")


def mode_name(mode: Any) -> str:
    """NumPy's modes are also known by their numbers.

    Raises:
        ShapeError: there is no such mode.
    """
    if isinstance(mode, (int, np.integer)) and 0 <= mode < len(MODES):
        return MODES[mode]
    if mode in MODES:
        return str(mode)
    raise ShapeError(f"mode {mode!r} is none of 'full', 'same' and 'valid'")


def sequences(a: Any, v: Any, function: str) -> list[Any]:
    """Two vectors in their common dtype."""
    x, y = (part.reshape(1) if not part.ndim else part for part in map(as_array, (a, v)))
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"{function} takes one-dimensional arrays, not {x.type} and {y.type}")
    if not x.size or not y.size:
        raise ShapeError("a cannot be empty" if not x.size else "v cannot be empty")
    return promoted(x, y)


@numpy_rule("convolve")
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = sequences(a, v, "np.convolve")
    start, size = native_window(mode_name(mode), x.size, y.size)
    return emit("convolve", x, y, starts=(start,), sizes=(size,))


@numpy_rule("correlate")
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """A convolution with the conjugate of the reversed second operand; a longer one counts from the other end."""
    if not np.ndim(a) or not np.ndim(v):  # which np.convolve takes for vectors of one element
        raise ShapeError("object of too small depth for desired array")
    x, y = sequences(a, v, "np.correlate")
    start, size = native_window(mode_name(mode), x.size, y.size)
    if y.size > x.size:
        start = x.size + y.size - 1 - start - size
    return emit("convolve", x, conjugated(y)[::-1], starts=(start,), sizes=(size,))


@numpy_rule("lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """The windows, along new last axes: a view, read-only even where ``writeable`` would let NumPy write into it."""
    array: Any = as_array(x)
    sizes = tuple(map(operator.index, window_shape)) if np.iterable(window_shape) else (operator.index(window_shape),)
    if axis is None:
        axes = tuple(range(array.ndim))
        if len(sizes) != array.ndim:
            raise ShapeError(f"Since axis is None, must provide window_shape for all dimensions of `x`; got {sizes}")
    else:
        axes = tuple(axis_of(one, array.ndim) for one in (axis if np.iterable(axis) else (axis,)))
        if len(sizes) != len(axes):
            raise ShapeError(f"Must provide matching length window_shape and axis; got {sizes} and {axes}")
    if any(size < 0 for size in sizes):
        raise ShapeError("`window_shape` cannot contain negative values")
    shape = list(array.shape)
    for size, place in zip(sizes, axes, strict=True):
        count = shape[place] - size + 1
        if count < 1:
            raise ShapeError("window shape cannot be larger than input array shape")
        shape[place] = count
    return array.viewed(WindowsView(sizes, axes))
