"""Rules of ``scipy.integrate`` for sampled functions, found by the function that is called.

Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate

from srcgrad.errors import ShapeError
from srcgrad.tracing.functions.differences import trapezoid
from srcgrad.tracing.functions.registry import (
    as_array,
    axis_of,
    cast,
    function_rule,
    inexact_dtype,
    prefix,
    scalar_if_rank0,
)


def steps(x: Any, dx: Any, axis: int, y: Any) -> Any:
    """The distances of neighbouring samples along an axis: as many as there are, or one number."""
    if x is None:
        return dx
    places = as_array(x)
    if places.ndim == 1:
        if places.shape[0] != y.shape[axis]:
            raise ShapeError(f"x has {places.shape[0]} places, y has {y.shape[axis]} samples along the axis")
        return np.diff(places).reshape((-1,) + (1,) * (y.ndim - axis - 1))
    return np.diff(places, axis=axis)


@function_rule(scipy.integrate.trapezoid)
def trapezoid_of_samples(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """As NumPy's, in the dtype of the samples."""
    return cast(trapezoid(y, x, dx, axis), inexact_dtype(as_array(y).dtype))


@function_rule(scipy.integrate.cumulative_trapezoid)
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    values = as_array(y)
    axis = axis_of(axis, values.ndim)
    if not values.shape[axis]:
        raise ShapeError("At least one point is required along `axis`.")
    upper, lower = values[prefix(axis, slice(1, None))], values[prefix(axis, slice(None, -1))]
    found = np.cumsum(steps(x, dx, axis, values) * (upper + lower) / 2.0, axis=axis)
    if initial is None:
        return found
    if np.ndim(initial) or initial != 0:
        raise ShapeError("`initial` must be `None` or `0`.")
    begin = np.zeros(tuple(1 if k == axis else size for k, size in enumerate(found.shape)), found.dtype)
    return np.concatenate([begin, found], axis=axis)


def over(a: Any, b: Any) -> Any:
    """The quotient, which SciPy takes for 0 where samples lie at one place."""
    gaps = b == 0.0
    return np.where(gaps, 0.0, a / np.where(gaps, 1.0, b))


@function_rule(scipy.integrate.simpson)
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Parabolas through three samples each; the last interval of an odd number by Cartwright's correction (2017)."""
    values = as_array(y)
    axis = axis_of(axis, values.ndim)
    size = values.shape[axis]
    if x is not None or (values.ndim == 1 and size % 2 == 0 and size > 2):  # SciPy's distances are double precision
        values = cast(values, np.result_type(values.dtype, np.float64))
    h = steps(x, dx, axis, values)

    def at(k: int) -> Any:
        return values[prefix(axis, k)]

    def step(k: int) -> Any:
        return h if x is None else h[prefix(axis if h.ndim > 1 else 0, k)]

    if size < 3:
        return scalar_if_rank0(0.5 * step(0) * (at(0) + at(1))) if size == 2 else scalar_if_rank0(0.0 * at(0))
    last = size - 1 if size % 2 else size - 2
    y0, y1, y2 = (values[prefix(axis, slice(k, last - 1 + k, 2))] for k in range(3))
    if x is None:
        parts: Any = (y0 + 4.0 * y1 + y2) * (dx / 3.0)
    else:
        first, second = (h[prefix(axis if h.ndim > 1 else 0, slice(k, last, 2))] for k in range(2))
        if h.ndim == 1:
            first, second = first.reshape(-1), second.reshape(-1)
        both = first + second
        parts = (
            both
            / 6.0
            * (
                y0 * (2.0 - over(second, first))
                + y1 * (both * over(both, first * second))
                + y2 * (2.0 - over(first, second))
            )
        )
    found = np.sum(parts, axis=axis)
    if size % 2 == 0:
        h0, h1 = step(-2), step(-1)
        found = found + at(-1) * over(2.0 * h1**2 + 3.0 * h0 * h1, 6.0 * (h0 + h1))
        found = found + at(-2) * over(h1**2 + 3.0 * h1 * h0, 6.0 * h0)
        found = found - at(-3) * over(h1**3, 6.0 * h0 * (h0 + h1))
    return scalar_if_rank0(found)


@function_rule(scipy.integrate.romb)
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Richardson's extrapolation of the trapezoidal rule, of 2**k + 1 samples."""
    values = as_array(y)
    axis = axis_of(axis, values.ndim)
    values = cast(values, np.result_type(values.dtype, np.float64))
    intervals = values.shape[axis] - 1
    if intervals < 1 or intervals & (intervals - 1):
        raise ShapeError("Number of samples must be one plus a non-negative power of 2.")
    row: list[Any] = []
    for k in range(intervals.bit_length()):
        stride = intervals >> k
        fresh = [trapezoid(values[prefix(axis, slice(None, None, stride))], None, dx * stride, axis)]
        for order, coarse in enumerate(row, start=1):
            fresh.append(fresh[-1] + (fresh[-1] - coarse) / (4.0**order - 1.0))
        row = fresh
    return scalar_if_rank0(row[-1])
