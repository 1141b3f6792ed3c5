"""Evenly spaced numbers between traced ends."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError
from srcgrad.ir.types import DType
from srcgrad.tracing.functions.registry import as_array, cast, filled, inexact_dtype, numpy_rule, require
from srcgrad.tracing.functions.shapes import broadcast_to, moveaxis
from srcgrad.tracing.ragged import sized
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.ufuncs import result_dtype


def ends(start: Any, stop: Any, dtype: DType) -> tuple[Any, Any, DType]:
    """The ends in one shape and dtype."""
    first, last = as_array(start), as_array(stop)
    shape = np.broadcast_shapes(first.shape, last.shape)
    return broadcast_to(cast(first, dtype), shape), broadcast_to(cast(last, dtype), shape), dtype


def spaced(start: Any, stop: Any, num: Any, endpoint: bool) -> tuple[Any, Any]:
    """The numbers along a new first axis, and the step; nan for a single number."""
    first, last, dtype = ends(start, stop, inexact_dtype(result_dtype(start, stop)))
    count = operator.index(num)
    if count < 0:
        raise ShapeError(f"Number of samples, {count}, must be non-negative.")
    intervals = count - 1 if endpoint else count
    steps = np.arange(count, dtype=dtype).reshape((-1,) + (1,) * first.ndim)
    if intervals > 0:
        step: Any = (last - first) / dtype.type(intervals)
        values: Any = steps * step
    else:
        step = filled(first.shape, np.nan, dtype)
        values = steps * (last - first)
    values = values + first
    if endpoint and count > 1:
        values[-1, ...] = last
    return values, step


def spaced_in_part(start: Any, stop: Any, num: Tracer, endpoint: bool) -> Any:
    """So many numbers as the number of a loop says; None where it is not known between which ones that is."""
    first, last, dtype = ends(start, stop, inexact_dtype(result_dtype(start, stop)))
    places: Any = sized(num, lambda size: np.arange(size, dtype=dtype))
    if places is None:
        return None
    intervals = np.maximum(num - 1, 1) if endpoint else num
    values = places * ((last - first) / intervals.astype(dtype)) + first
    return np.where((places == intervals.astype(dtype)) & (num > 1), last, values) if endpoint else values


def laid_out(values: Tracer, dtype: Any, axis: int) -> Any:
    """The numbers along ``axis``; as integers rounded down."""
    result: Any = values if axis == 0 else moveaxis(values, 0, axis)
    if dtype is None:
        return result
    return cast(np.floor(result) if np.dtype(dtype).kind in "iu" else result, dtype)


@numpy_rule("linspace")
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    if isinstance(num, Tracer) and not (retstep or np.ndim(start) or np.ndim(stop)):
        found = spaced_in_part(start, stop, num, endpoint)
        if found is not None:
            return found if dtype is None else laid_out(found, dtype, 0)
    values, step = spaced(start, stop, num, endpoint)
    result = laid_out(values, dtype, axis)
    return (result, step if step.ndim else step[()]) if retstep else result


def with_ndim(x: Any, ndim: int) -> Any:
    """The array with axes of size 1 in front."""
    array = as_array(x)
    return array.reshape((1,) * (ndim - array.ndim) + array.shape)


@numpy_rule("logspace")
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    if np.ndim(base):  # the axis is one of the result's, which has those of the base
        ndim = max(np.ndim(start), np.ndim(stop), np.ndim(base))
        start, stop, base = (with_ndim(x, ndim) for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    values = laid_out(spaced(start, stop, num, endpoint)[0], None, axis)
    result: Any = np.power(base, values)
    return result if dtype is None else cast(result, dtype)


@numpy_rule("geomspace")
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Evenly spaced logarithms; the ends are exact."""
    dtypes = [inexact_dtype(as_array(end).dtype) for end in (start, stop)]  # here NumPy takes no number as weak
    first, last, kind = ends(start, stop, np.result_type(*dtypes))
    require(np.all((first != 0) & (last != 0)), "ValueError", "Geometric sequence cannot include zero")
    sign: Any = np.sign(first)
    values: Any = sign * kind.type(10) ** spaced(np.log10(first / sign), np.log10(last / sign), num, endpoint)[0]
    count = values.shape[0]
    if count:
        values[0, ...] = first
    if endpoint and count > 1:
        values[-1, ...] = last
    return laid_out(values, dtype, axis)
