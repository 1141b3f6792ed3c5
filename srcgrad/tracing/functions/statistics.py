"""Means, variances, order statistics, and correlation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.ir.types import DType, real_dtype
from srcgrad.tracing.functions.reductions import any_, restored, without_nan
from srcgrad.tracing.functions.reductions import sum as sum_of
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    cast,
    filled,
    finish,
    given,
    inexact_dtype,
    numpy_rule,
    prefix,
    refuse,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.shapes import broadcast_to, moveaxis
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer, emit

FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)


def mean_dtypes(x: Tracer, dtype: Any) -> tuple[DType, DType]:
    """The dtype a mean is computed in, and the one it is returned in: float16 is summed in float32."""
    if given(dtype, None) is not None:
        return np.dtype(dtype), np.dtype(dtype)
    result = inexact_dtype(x.dtype)
    return (FLOAT32 if result == FLOAT16 else result), result


def number_of(x: Tracer, axes: tuple[int, ...], keepdims: Any, where: Any) -> Any:
    """How many elements are reduced: an int, or with ``where=`` an array."""
    if given(where, True) is True:
        return math.prod(x.shape[axis] for axis in axes)
    return sum_of(broadcast_to(as_tracer(where), x.shape), axes, np.int_, None, keepdims)


def quotient(total: Any, count: Any, dtype: DType) -> Any:
    """``total / count`` in the total's dtype, as NumPy divides with ``casting="unsafe"``."""
    divisor = total.dtype.type(count) if isinstance(count, int) else cast(count, total.dtype)
    return cast(total / divisor if total.dtype.kind in "fc" else total // divisor, dtype)


@numpy_rule("mean", method="mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
) -> Any:
    x = as_tracer(a)
    inner, result = mean_dtypes(x, dtype)
    axes = axes_of(axis, x.ndim)
    total = sum_of(x, axes, inner, None, keepdims, where=where)
    return finish(quotient(total, number_of(x, axes, keepdims, where), result), out)


def deviation(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, known_mean: Any, correction: Any
) -> tuple[Any, tuple[int, ...], Any, DType]:
    """The deviations from the mean, 0 where ``where`` is false; the axes, the divisor, the dtype of the result."""
    if given(correction, None) is not None:
        if ddof != 0:
            raise ShapeError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = as_tracer(a)
    inner, result = mean_dtypes(x, dtype)
    axes = axes_of(axis, x.ndim)
    count = number_of(x, axes, keepdims, where)
    centre = given(known_mean, None)
    if centre is None:
        total = sum_of(x, axes, inner, None, True, where=where)
        full = number_of(x, axes, True, where)
        centre = quotient(total, full, total.dtype)
    difference = cast(cast(x, inner) - centre, inner)
    if given(where, True) is not True:
        difference = np.where(where, difference, inner.type(0))
    divisor = float(np.maximum(count - ddof, 0)) if isinstance(count, int) else np.maximum(count - ddof, 0)
    return difference, axes, divisor, real_dtype(result)


@numpy_rule("var", method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Any:
    difference, axes, divisor, dtype = deviation(a, axis, dtype, ddof, keepdims, where, mean, correction)
    square = (difference * np.conjugate(difference)).real if difference.dtype.kind == "c" else difference * difference
    total = sum_of(square, axes, None, None, keepdims)
    return finish(cast(total / cast(divisor, total.dtype), dtype), out)


@numpy_rule("std", method="std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Any:
    """A norm divided by a number: at equal elements its derivative is 0, the policy at the kink of a norm."""
    difference, axes, divisor, dtype = deviation(a, axis, dtype, ddof, keepdims, where, mean, correction)
    norm = restored(emit("reduce_norm", difference, axes=axes), difference.shape, axes, keepdims)
    return finish(cast(norm / cast(np.sqrt(divisor), norm.dtype), dtype), out)


@numpy_rule("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = np._NoValue
) -> Any:
    x = as_tracer(a)
    axes = axes_of(axis, x.ndim)
    if weights is None:
        result = mean(x, axes, None, None, keepdims)
        scale: Any = result.dtype.type(x.size / result.size)
    else:
        w: Any = as_tracer(weights)
        dtype = np.result_type(x.dtype, w.dtype, "f8") if x.dtype.kind in "biu" else np.result_type(x.dtype, w.dtype)
        if w.shape != x.shape:
            w = aligned_weights(x, w, axis)
        scale = sum_of(w, axes, dtype, None, keepdims) if w.shape == x.shape else None
        result = sum_of(x * w, axes, dtype, None, keepdims) / scale
    if returned:
        return result, np.broadcast_to(scale, result.shape).copy() if result.ndim else scale
    return result


def aligned_weights(x: Tracer, weights: Any, axis: Any) -> Any:
    """Weights along ``axis``, broadcast to the array's shape."""
    if axis is None:
        raise ShapeError("Axis must be specified when shapes of a and weights differ.")
    axes = axes_of(axis, x.ndim)
    if weights.shape != tuple(x.shape[k] for k in axes):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    shape = tuple(size if k in axes else 1 for k, size in enumerate(x.shape))
    return broadcast_to(weights.reshape(shape), x.shape)


@numpy_rule("nanmean")
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
) -> Any:
    return mean(a, axis, dtype, out, keepdims, where=present(a, where))


def present(a: Any, where: Any) -> Any:
    """``where=`` without the nan elements."""
    x = as_tracer(a)
    valid = ~np.isnan(x)
    return valid if given(where, True) is True else np.logical_and(valid, where)


@numpy_rule("nanvar")
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Any:
    valid = present(a, where)
    return var(without_nan(a, 0), axis, dtype, out, ddof, keepdims, where=valid, mean=mean, correction=correction)


@numpy_rule("nanstd")
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = np._NoValue,
    *,
    where: Any = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Any:
    valid = present(a, where)
    return std(without_nan(a, 0), axis, dtype, out, ddof, keepdims, where=valid, mean=mean, correction=correction)


# --- order statistics ------------------------------------------------------------------------------------------------


def sorted_last(a: Any, axis: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """The elements along ``axis`` sorted and moved last; whether there is a nan among them."""
    x: Any = as_array(a)
    axes = axes_of(axis, x.ndim)
    moved: Any = moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim)))
    flat = moved.reshape((*moved.shape[: x.ndim - len(axes)], -1)) if x.size else moved
    if not x.size:
        raise ShapeError("the median or quantile of no elements is not supported on traced arrays")
    has_nan = any_(np.isnan(flat), -1) if x.dtype.kind in "fc" else None
    return emit("sort", flat, axis=flat.ndim - 1), has_nan, axes


def with_nan(result: Any, has_nan: Any) -> Any:
    if has_nan is None:
        return result
    return scalar_if_rank0(np.where(has_nan, result.dtype.type(np.nan), result))


@numpy_rule("median")
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    x = as_array(a)
    ordered, has_nan, axes = sorted_last(x, axis)
    size = ordered.shape[-1]
    middle = ordered[..., (size - 1) // 2 : size // 2 + 1]
    result = with_nan(mean(middle, -1), has_nan)
    return finish(restored(result, x.shape, axes, keepdims), out)


@numpy_rule("quantile")
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    refuse("np.quantile", weights=(weights, None))
    if method not in QUANTILE_METHODS:
        raise UnsupportedError(
            f"np.quantile with method={method!r} is not supported on traced arrays",
            hint=f"the methods are {', '.join(QUANTILE_METHODS)}",
        )
    x = as_array(a)
    x = cast(x, inexact_dtype(x.dtype))
    if not contains_tracer(q) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ShapeError("Quantiles must be in the range [0, 1]")
    levels = as_tracer(q) if contains_tracer(q) else np.asarray(q)
    ordered, has_nan, axes = sorted_last(x, axis)
    result = with_nan(at_levels(ordered, levels, method), has_nan)
    if given(keepdims, False):
        kept = tuple(1 if k in axes else size for k, size in enumerate(x.shape))
        result = result.reshape((*np.shape(levels), *kept))
    return finish(result, out)


QUANTILE_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def at_levels(ordered: Any, levels: Any, method: str) -> Any:
    """The values at positions ``q (n - 1)`` of the sorted elements; NumPy's lerp, exact at both ends."""
    last = ordered.shape[-1] - 1
    rank = np.ndim(levels)
    place: Any = last * levels
    low = np.floor(place)
    if method == "nearest":
        low = np.rint(place)
    elif method == "higher":
        low = np.ceil(place)
    below = cast(low, np.int64) if isinstance(low, Tracer) else np.asarray(low).astype(np.int64)
    ahead = np.minimum(below + 1, last)
    first = picked(ordered, below, rank)
    if method in ("lower", "higher", "nearest"):
        return scalar_if_rank0(first)
    second = picked(ordered, ahead, rank)
    weight: Any = (place - low) if method == "linear" else np.where(place == low, 0.0, 0.5)
    weight = cast(weight, ordered.dtype)
    weight = weight.reshape(weight.shape + (1,) * (first.ndim - rank))
    step = second - first
    lerp = np.where(weight >= 0.5, second - step * (1 - weight), first + step * weight)
    return scalar_if_rank0(lerp)


def picked(ordered: Any, index: Any, rank: int) -> Any:
    """The elements at an index of the last axis; the index's axes come first."""
    found = as_tracer(ordered[prefix(ordered.ndim - 1, index)])
    return moveaxis(found, tuple(range(-rank, 0)), tuple(range(rank))) if rank else found


@numpy_rule("percentile")
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    x = as_tracer(a)
    levels = as_tracer(q) if contains_tracer(q) else np.asarray(q)
    hundred: Any = np.float16(100) if x.dtype == FLOAT16 else (np.float32(100) if x.dtype == FLOAT32 else 100)
    return quantile(x, levels / hundred, axis, out, overwrite_input, method, keepdims, weights=weights)


# --- order statistics that leave nan out -----------------------------------------------------------------------------


@numpy_rule("nanquantile")
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = np._NoValue,
    *,
    weights: Any = None,
) -> Any:
    """The sorted elements have nan last, so that the others are the first; nan where there is none."""
    refuse("np.nanquantile", method=(method, "linear"), weights=(weights, None))
    x = as_array(a)
    x = cast(x, inexact_dtype(x.dtype))
    levels = as_array(q) if contains_tracer(q) else np.asarray(q)
    if not contains_tracer(q) and not np.all((levels >= 0) & (levels <= 1)):
        raise ShapeError("Quantiles must be in the range [0, 1]")
    ordered, _, axes = sorted_last(x, axis)
    last: Any = sum_of(~np.isnan(ordered), -1, None, None, True) - 1
    place: Any = cast(last, x.dtype) * cast(levels, x.dtype).reshape((1,) * (ordered.ndim - 1) + (-1,))
    below = np.maximum(cast(np.floor(place), np.int64), 0)
    first = np.take_along_axis(ordered, below, -1)
    second = np.take_along_axis(ordered, np.minimum(below + 1, np.maximum(last, 0)), -1)
    weight, step = place - np.floor(place), second - first
    result: Any = np.where(weight >= 0.5, second - step * (1 - weight), first + step * weight)
    result = moveaxis(result, -1, 0)
    kept = tuple(1 if k in axes else size for k, size in enumerate(x.shape))
    shape = kept if given(keepdims, False) else ordered.shape[:-1]
    return finish(scalar_if_rank0(result.reshape((*np.shape(levels), *shape))), out)


@numpy_rule("nanpercentile")
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = np._NoValue,
    *,
    weights: Any = None,
) -> Any:
    levels = as_array(q) if contains_tracer(q) else np.asarray(q)
    return nanquantile(a, levels / 100, axis, out, overwrite_input, method, keepdims, weights=weights)


@numpy_rule("nanmedian")
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = np._NoValue
) -> Any:
    return nanquantile(a, 0.5, axis, out, keepdims=keepdims)


# --- correlation -----------------------------------------------------------------------------------------------------


@numpy_rule("cov")
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    refuse("np.cov", fweights=(fweights, None), aweights=(aweights, None))
    rows = [observations(part, rowvar) for part in (m, y) if part is not None]
    if dtype is None:
        dtype = np.result_type(*[row.dtype for row in rows], np.float64)
    x: Any = cast(np.concatenate(rows, axis=0), dtype)
    count = x.shape[1]
    freedom = (0 if bias else 1) if ddof is None else ddof
    centred = x - mean(x, 1, None, None, True)
    result = np.matmul(centred, np.conjugate(centred.T)) * np.true_divide(1, max(count - freedom, 0))
    return np.squeeze(result)


def observations(part: Any, rowvar: bool) -> Any:
    x: Any = as_array(part)
    if x.ndim > 2:
        raise ShapeError("m has more than 2 dimensions")
    if x.ndim < 2:
        return x.reshape((1, -1))
    return x if rowvar or x.shape[0] == 1 else x.T


@numpy_rule("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviations = np.sqrt(c.diagonal().real)
    c = c / deviations[:, None] / deviations[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    return np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)


@numpy_rule("bincount")
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    if isinstance(x, Tracer):
        x = np.asarray(x.concrete("np.bincount"))
    size = max(int(np.max(x, initial=-1)) + 1, minlength)
    if weights is None:
        return as_tracer(np.bincount(x, minlength=minlength))
    result: Any = filled((size,), 0.0, np.float64)
    np.add.at(result, np.asarray(x), weights)
    return result
