"""Means, variances, order statistics, and correlation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, DTypeError, ShapeError
from srcgrad.ir.types import DType, real_dtype
from srcgrad.tracing.functions.reductions import put, restored, without_nan
from srcgrad.tracing.functions.reductions import sum as sum_of
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    cast,
    finish,
    given,
    inexact_dtype,
    numpy_rule,
    ordered_axes,
    reduced_axes,
    refuse_list,
    require,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.shapes import broadcast_to
from srcgrad.tracing.tracer import Tracer, as_tracer, emit

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
    """``total / count`` in the total's dtype, as NumPy divides with ``casting="unsafe"``: integers are truncated."""
    if total.dtype.kind not in "fc":
        return cast(total / count, dtype)
    divisor = total.dtype.type(count) if isinstance(count, (int, float)) else cast(count, total.dtype)
    return cast(total / divisor, dtype)


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
    refuse_list(axis)
    axes = axes_of(axis, x.ndim)
    target = out[0] if isinstance(out, tuple) else out
    if isinstance(target, Tracer) and given(dtype, None) is None and (x.dtype.kind != "c" or target.dtype.kind == "c"):
        # As NumPy, which writes the sum into the output, and then the quotient.
        total = sum_of(x, axes, np.result_type(inner, target.dtype), None, keepdims, where=where)
        total, result = (
            cast(total, target.dtype),
            np.result_type(target.dtype, 0.0 if target.dtype.kind in "biu" else 0),
        )
    else:
        total = sum_of(x, axes, inner, None, keepdims, where=where)
    return put(quotient(total, number_of(x, axes, keepdims, where), result), out)


def deviation(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, known_mean: Any, correction: Any
) -> tuple[Any, tuple[int, ...], Any, DType]:
    """The deviations from the mean, 0 where ``where`` is false; the axes, the divisor, the dtype of the result.

    A dtype that is asked for is that of the sums: the elements themselves are not cast.
    """
    if given(correction, None) is not None:
        if ddof != 0:
            raise ShapeError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = as_tracer(a)
    inner, result = mean_dtypes(x, dtype)
    refuse_list(axis)
    axes = axes_of(axis, x.ndim)
    count = number_of(x, axes, keepdims, where)
    centre = given(known_mean, None)
    if centre is None:
        total = sum_of(x, axes, inner, None, True, where=where)
        full = number_of(x, axes, True, where)
        centre = quotient(total, full, total.dtype)
    asked = given(dtype, None) is not None
    difference: Any = as_tracer(x - centre) if asked else cast(cast(x, inner) - centre, inner)
    if given(where, True) is not True:
        difference = np.where(where, difference, difference.dtype.type(0))
    divisor: Any = np.maximum(count - ddof, 0)
    if not isinstance(divisor, Tracer):
        divisor = float(divisor)
    return difference, axes, divisor, result if asked else real_dtype(result)


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
    sums = given(dtype, None)
    difference, axes, divisor, dtype = deviation(a, axis, dtype, ddof, keepdims, where, mean, correction)
    square = (difference * np.conjugate(difference)).real if difference.dtype.kind == "c" else difference * difference
    total = sum_of(square, axes, sums, None, keepdims)
    return finish(quotient(total, divisor, dtype), out)


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
    if given(dtype, None) is not None and np.dtype(dtype).kind not in "fc":  # the root of an integer
        found: Any = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
        return finish(cast(np.sqrt(cast(found, np.float64)), dtype), out)
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
        scale = sum_of(w, axes, dtype, None, keepdims)
        require(np.all(scale != 0), "ZeroDivisionError", "Weights sum to zero, can't be normalized")
        result = sum_of(x * w, axes, dtype, None, keepdims) / scale
    if returned:
        return result, np.broadcast_to(scale, result.shape).copy() if result.ndim else scale
    return result


def aligned_weights(x: Tracer, weights: Any, axis: Any) -> Any:
    """Weights along ``axis``, in the order of the axes given, broadcast to the array's shape."""
    if axis is None:
        raise ArgumentError("Axis must be specified when shapes of a and weights differ.")
    axes = ordered_axes(axis, x.ndim)
    if weights.shape != tuple(x.shape[k] for k in axes):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    shape = tuple(size if k in axes else 1 for k, size in enumerate(x.shape))
    return broadcast_to(weights.transpose(np.argsort(np.array(axes))).reshape(shape), x.shape)


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
    require_inexact(a, dtype, out)
    return mean(a, axis_of_numbers(a, axis), dtype, out, keepdims, where=present(a, where))


def require_inexact(a: Any, dtype: Any, out: Any) -> None:
    """Where nan may be among the elements, no integers take what they give.

    Raises:
        DTypeError: a dtype or an output of integers.
    """
    if as_tracer(a).dtype.kind not in "fc":
        return
    if given(dtype, None) is not None and np.dtype(dtype).kind not in "fc":
        raise DTypeError("If a is inexact, then dtype must be inexact")
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and target.dtype.kind not in "fc":
        raise DTypeError("If a is inexact, then out must be inexact")


def axis_of_numbers(a: Any, axis: Any) -> Any:
    """The axis of a function that leaves nan out: of a 0-d array, unlike ``np.mean``'s, it may be 0."""
    x = as_tracer(a)
    return reduced_axes(axis, x.ndim) if x.dtype.kind in "fc" else axis


def present(a: Any, where: Any) -> Any:
    """``where=`` without the nan elements."""
    x = as_tracer(a)
    valid = ~np.isnan(x)
    return valid if given(where, True) is True else np.logical_and(valid, where)


def with_freedom(result: Any, a: Any, valid: Any, axis: Any, ddof: Any, keepdims: Any) -> Any:
    """nan where no more elements than ``ddof`` are left."""
    x = as_tracer(a)
    if x.dtype.kind not in "fc":
        return result
    too_few = number_of(x, axes_of(axis, x.ndim), keepdims, valid) - ddof <= 0
    return scalar_if_rank0(np.where(too_few, result.dtype.type(np.nan), result))


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
    require_inexact(a, dtype, out)
    valid, axis = present(a, where), axis_of_numbers(a, axis)
    found = var(without_nan(a, 0), axis, dtype, None, ddof, keepdims, where=valid, mean=mean, correction=correction)
    return finish(with_freedom(found, a, valid, axis, given(correction, ddof), keepdims), out)


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
    require_inexact(a, dtype, out)
    valid, axis = present(a, where), axis_of_numbers(a, axis)
    found = std(without_nan(a, 0), axis, dtype, None, ddof, keepdims, where=valid, mean=mean, correction=correction)
    return finish(with_freedom(found, a, valid, axis, given(correction, ddof), keepdims), out)


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
    rows = [observations(m, rowvar)] + ([] if y is None else [observations(y, rowvar or np.shape(y)[:1] == (1,))])
    if dtype is None:
        dtype = np.result_type(*[row.dtype for row in rows], np.float64)
    x: Any = cast(np.concatenate(rows, axis=0), dtype)
    freedom = (0 if bias else 1) if ddof is None else ddof
    if freedom != int(freedom):
        raise ShapeError("ddof must be integer")
    kinds = (("fweights", fweights), ("aweights", aweights))
    weights = [cov_weights(name, part, x.shape[1]) for name, part in kinds if part is not None]
    if not weights:
        divisor: Any = max(x.shape[1] - freedom, 0)
        centred = x - mean(x, 1, None, None, True)
        spread: Any = centred
    else:
        w = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = w.sum()
        if freedom == 0:
            divisor = total
        elif aweights is None:
            divisor = total - freedom
        else:
            divisor = total - freedom * (w * weights[-1]).sum() / total
        centred = cast(x - average(x, 1, w, keepdims=True), x.dtype)
        spread = centred * w
    products = np.matmul(centred, np.conjugate(spread.T))
    return np.squeeze(cast(products * np.true_divide(1, divisor), products.dtype))


def cov_weights(name: str, weights: Any, size: int) -> Any:
    """The weights of the observations: none is negative, and those that count are whole numbers."""
    w = as_array(weights)
    require(w.ndim < 2, "RuntimeError", f"cannot handle multidimensional {name}")
    require(w.shape == (size,), "RuntimeError", f"incompatible numbers of samples and {name}")
    if name == "fweights":
        require(np.all(w == np.round(w)), "TypeError", "fweights must be integer")
    require(np.all(w >= 0), "ValueError", f"{name} cannot be negative")
    return cast(w, np.float64)


def observations(part: Any, rowvar: bool) -> Any:
    x: Any = as_array(part)
    if x.ndim > 2:
        raise ShapeError("m has more than 2 dimensions")
    if x.ndim < 2:
        return x.reshape((1, -1))
    return x if rowvar else x.T


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
