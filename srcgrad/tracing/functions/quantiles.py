"""Order statistics: medians, quantiles and percentiles, with and without nan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import DTypeError, IndexingError, ShapeError
from srcgrad.ir.types import INT64, DType
from srcgrad.tracing.functions.reductions import any_, restored
from srcgrad.tracing.functions.reductions import sum as sum_of
from srcgrad.tracing.functions.registry import (
    as_array,
    axes_of,
    cast,
    finish,
    given,
    inexact_dtype,
    numpy_rule,
    prefix,
    require,
    scalar_if_rank0,
)
from srcgrad.tracing.functions.shapes import broadcast_to, moveaxis
from srcgrad.tracing.functions.statistics import mean, nanmean
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer, emit

PLOTTING_POSITIONS: Final = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
"""The constants alpha and beta of the continuous methods (Hyndman and Fan 1996), but for "linear"."""

DISCRETE: Final = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
"""Methods whose results are elements."""

MOST_SELECTED: Final = 6
"""Of how many ranks elements are selected: each that is not near another one takes some passes."""

METHODS: Final = (*DISCRETE, *PLOTTING_POSITIONS, "averaged_inverted_cdf", "linear", "midpoint")


class Position(NamedTuple):
    """Where a quantile lies in the sorted elements: between two places, ``weight`` of the way; None at the first."""

    below: Any
    above: Any
    weight: Any


def moved_last(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The array with the axes that ``axis`` names as one last axis, and these axes."""
    x: Any = as_array(a)
    axes = axes_of(axis, x.ndim)
    kept = x.ndim - len(axes)
    moved: Any = moveaxis(x, axes, tuple(range(kept, x.ndim)))
    return moved.reshape((*moved.shape[:kept], math.prod(moved.shape[kept:]))), axes


def examined_last(a: Any, axis: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """The elements along ``axis`` moved last; whether there is a nan among them; the axes."""
    flat, axes = moved_last(a, axis)
    return flat, any_(np.isnan(flat), -1) if flat.dtype.kind in "fc" else None, axes


def sorted_last(flat: Any) -> Any:
    return emit("sort", flat, axis=flat.ndim - 1)


def at_ranks(flat: Any, ranks: Sequence[int]) -> Any:
    """The elements of the last axis that have these ranks, by selection where they are few."""
    different = sorted(set(ranks))
    if flat.dtype.kind == "c" or len(different) > MOST_SELECTED:
        return sorted_last(flat)[..., different]
    return emit("order_statistics", flat, axis=flat.ndim - 1, ranks=tuple(different))


def with_nan(result: Any, has_nan: Any) -> Any:
    if has_nan is None:
        return result
    return scalar_if_rank0(np.where(has_nan, result.dtype.type(np.nan), result))


@numpy_rule("median")
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    x = as_array(a)
    if not x.size:  # nan, as the mean of no elements
        return mean(x, axis, out=out, keepdims=keepdims)
    flat, has_nan, axes = examined_last(x, axis)
    size = flat.shape[-1]
    middle = at_ranks(flat, ((size - 1) // 2, size // 2))
    result = with_nan(mean(middle, -1), has_nan)
    return finish(restored(result, x.shape, axes, keepdims), out)


# --- where a quantile lies -------------------------------------------------------------------------------------------


def virtual_index(method: str, count: Any, q: Any) -> Any:
    """The position, from 0, as a number with a fraction."""
    if method in PLOTTING_POSITIONS:
        alpha, beta = PLOTTING_POSITIONS[method]
        return count * q + (alpha + q * (1 - alpha - beta)) - 1
    if method in ("averaged_inverted_cdf", "inverted_cdf"):
        return count * q - 1
    if method == "closest_observation":
        return count * q - 1 - 0.5
    place = (count - 1) * q
    return 0.5 * (np.floor(place) + np.ceil(place)) if method == "midpoint" else place


def position(method: str, count: Any, q: Any) -> Position:
    """Between which elements of ``count`` sorted ones the quantile ``q`` lies; arrays of NumPy, or traced ones."""
    place = virtual_index(method, count, q)
    if method in DISCRETE:
        return Position(discrete_index(method, place), None, None)
    if method == "linear" and place.dtype.kind in "iu":
        return Position(place, None, None)
    floor = np.floor(place)
    weight = place - floor
    if method == "averaged_inverted_cdf":
        weight = np.where(weight == 0, 0.5, 1.0)
    elif method == "midpoint":
        weight = np.where(weight == 0, 0.0, 0.5)
    last = count - 1
    below = np.where(place < 0, 0, np.where(place >= last, last, floor))
    above = np.where(place < 0, 0, np.where(place >= last, last, floor + 1))
    return Position(as_index(below), as_index(above), as_dtype(weight, place.dtype))


def discrete_index(method: str, place: Any) -> Any:
    if method in ("lower", "higher", "nearest"):
        rounding: Any = {"lower": np.floor, "higher": np.ceil, "nearest": np.around}[method]
        return as_index(rounding(place))
    floor = np.floor(place)
    stays = place == floor
    if method == "closest_observation":  # halves go to the even order statistic, counted from 1
        stays = stays & (floor % 2 == 1)
    return as_index(np.maximum(np.where(stays, floor, floor + 1), 0))


def as_dtype(x: Any, dtype: DType) -> Any:
    return cast(x, dtype) if isinstance(x, Tracer) else np.asarray(x, dtype)


def as_index(x: Any) -> Any:
    return as_dtype(x, INT64)


def lerp(low: Any, high: Any, weight: Any) -> Any:
    """NumPy's interpolation, exact at both ends."""
    step = high - low
    return np.where(weight >= 0.5, high - step * (1 - weight), low + step * weight)


# --- quantiles -------------------------------------------------------------------------------------------------------


def checked_levels(x: Any, q: Any, method: str, percents: bool = False) -> tuple[Any, bool]:
    """The levels as an array, and whether they are a Python number, whose dtype does not count.

    Traced levels are checked when the program runs. ``percents``: they were that before they were divided.

    Raises:
        ShapeError: a level is not between 0 and 1, or the method has no such name.
        DTypeError: the array is complex.
    """
    bounds = "Percentiles must be in the range [0, 100]" if percents else "Quantiles must be in the range [0, 1]"
    if method not in METHODS:
        raise ShapeError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
    if x.dtype.kind == "c":
        raise DTypeError("a must be an array of real numbers")
    weak = q.weak if isinstance(q, Tracer) else type(q) in (int, float)
    if contains_tracer(q):
        traced: Any = as_array(q)
        require(np.all((traced >= 0) & (traced <= 1)), "ValueError", bounds)
        return traced, weak
    levels = np.asarray(q)
    if not np.all((levels >= 0) & (levels <= 1)):
        raise ShapeError(bounds)
    if levels.ndim > 2:
        raise ShapeError("q must be a scalar or 1d")
    return levels, weak


def picked(ordered: Any, index: Any, rank: int) -> Any:
    """The elements at an index of the last axis; the index's axes come first."""
    found = as_tracer(ordered[prefix(ordered.ndim - 1, index)])
    return moveaxis(found, tuple(range(-rank, 0)), tuple(range(rank))) if rank else found


def at_levels(flat: Any, levels: Any, weak: bool, method: str) -> Any:
    """The quantiles along the last axis; the levels' axes come first."""
    rank = np.ndim(levels)
    below, above, weight = position(method, flat.shape[-1], levels)
    if isinstance(below, Tracer):
        ordered = sorted_last(flat)
    else:
        ranks = np.unique(below if above is None else [below, above])
        ordered = at_ranks(flat, ranks.tolist())
        below = np.searchsorted(ranks, below)
        above = None if above is None else np.searchsorted(ranks, above)
    if rank == 0 and not isinstance(below, Tracer):
        below, above = int(below), None if above is None else int(above)
    first = picked(ordered, below, rank)
    if above is None:
        return scalar_if_rank0(first)
    second = picked(ordered, above, rank)
    if weak:
        weight = as_dtype(weight, inexact_dtype(ordered.dtype))
    weight = weight.reshape(weight.shape + (1,) * (first.ndim - rank))
    return scalar_if_rank0(as_tracer(lerp(first, second, weight)))


def weighted_at_levels(flat: Any, levels: Any, weights: Any, unasked: Any = False) -> Any:
    """The first element at which the weights so far, over all of them, reach the level: method "inverted_cdf".

    The weights may be anything where ``unasked`` holds.
    """
    order: Any = emit("argsort", flat, axis=flat.ndim - 1)
    ordered = emit("take_along_axis", flat, order, axis=flat.ndim - 1)
    spread: Any = broadcast_to(cast(weights, np.float64), flat.shape)
    total: Any = np.cumsum(np.take_along_axis(spread, order, -1), axis=-1)
    usable = np.isfinite(total[..., -1]) & (total[..., -1] != 0)
    require(np.all(unasked | usable), "ValueError", "Weights included NaN, inf or were all zero.")
    total = total / total[..., -1:]
    total = np.where(total == 0, -1.0, total)  # elements of no weight are never chosen
    flat_levels = cast(levels, np.float64).ravel()
    wanted = broadcast_to(flat_levels, (*total.shape[:-1], flat_levels.size))
    found = np.minimum(emit("searchsorted", total, wanted, side="left"), total.shape[-1] - 1)
    result: Any = moveaxis(np.take_along_axis(ordered, found, -1), -1, 0)
    return scalar_if_rank0(result.reshape((*np.shape(levels), *result.shape[1:])))


def moved_weights(x: Any, weights: Any, axis: Any, method: str) -> Any:
    """Weights in the shape of the array whose reduced axes were made the last one."""
    if method != "inverted_cdf":
        raise ShapeError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    w: Any = as_array(weights)
    if w.dtype.kind in "if":
        require(np.all(np.logical_not(w < 0)), "ValueError", "Weights must be non-negative.")
    if w.shape != x.shape:
        if axis is None:
            raise DTypeError("Axis must be specified when shapes of a and weights differ.")
        order = np.argsort(np.array(axes_in_order(axis, x.ndim)))
        axes = axes_of(axis, x.ndim)
        if w.shape != tuple(x.shape[k] for k in axes_in_order(axis, x.ndim)):
            raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
        w = w.transpose(order.tolist()).reshape([size if k in axes else 1 for k, size in enumerate(x.shape)])
        w = broadcast_to(w, x.shape)
    return moved_last(w, axis)[0]


def axes_in_order(axis: Any, ndim: int) -> tuple[int, ...]:
    return tuple(int(one) % ndim for one in np.atleast_1d(axis))


def kept_shape(x: Any, axes: tuple[int, ...], levels: Any, keepdims: Any) -> tuple[int, ...]:
    kept = bool(given(keepdims, False))
    rest = [1 if k in axes else size for k, size in enumerate(x.shape) if kept or k not in axes]
    return (*np.shape(levels), *rest)


def quantiles(
    x: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, weak: bool | None = None
) -> Any:
    """Of all elements; nan where there is one. ``weak``: the levels were a Python number before they were divided."""
    levels, is_weak = checked_levels(x, q, method, percents=weak is not None)
    if not all(x.shape[k] for k in axes_of(axis, x.ndim)):
        raise IndexingError("the quantile of no elements is not defined")
    if weights is None:
        flat, has_nan, axes = examined_last(x, axis)
        result = at_levels(flat, levels, is_weak if weak is None else weak, method)
    else:
        flat, axes = moved_last(x, axis)
        has_nan = any_(np.isnan(flat), -1) if flat.dtype.kind == "f" else None
        result = weighted_at_levels(flat, levels, moved_weights(x, weights, axis, method))
    result = with_nan(result, has_nan)
    result = result if weights is None else as_array(result)  # of rank 0 an array, as in NumPy
    if given(keepdims, False):
        result = result.reshape(kept_shape(x, axes, levels, keepdims))
    return finish(result, out, broadcasts=True)


def nan_quantiles(
    x: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, weak: bool | None = None
) -> Any:
    """Of the elements that are not nan, which are the first ones when sorted; nan where there is none."""
    if not x.size:  # whatever the levels, as in NumPy
        return nanmean(x, axis, None, out, keepdims)
    if x.dtype.kind != "f":
        return quantiles(x, q, axis, out, method, keepdims, weights, weak)
    levels, is_weak = checked_levels(x, q, method, percents=weak is not None)
    if weights is not None:
        flat, axes = moved_last(x, axis)
        part = np.where(np.isnan(flat), 0.0, moved_weights(x, weights, axis, method))
        no_element = np.isnan(flat).all(axis=-1)
        result = as_array(with_nan(weighted_at_levels(flat, levels, part, no_element), no_element))
        return finish(result.reshape(kept_shape(x, axes, levels, keepdims)), out, broadcasts=True)
    flat, axes = moved_last(x, axis)
    ordered = sorted_last(flat)
    count: Any = sum_of(~np.isnan(ordered), -1, None, None, True)
    flat_levels = as_array(levels).ravel()
    if flat_levels.dtype.kind == "f":
        count = cast(count, flat_levels.dtype)
    below, above, weight = position(method, count, flat_levels)
    first: Any = np.take_along_axis(ordered, np.maximum(below, 0), -1)
    if above is not None:
        second = np.take_along_axis(ordered, np.maximum(above, 0), -1)
        first = lerp(first, second, cast(weight, x.dtype) if (is_weak if weak is None else weak) else weight)
    result = moveaxis(first, -1, 0).reshape(kept_shape(x, axes, levels, keepdims))
    return finish(scalar_if_rank0(result), out, broadcasts=True)


def percent(q: Any) -> tuple[Any, bool]:
    """Percents as levels, and whether they are a Python number."""
    weak = q.weak if isinstance(q, Tracer) else type(q) in (int, float)
    return np.true_divide(as_array(q) if contains_tracer(q) and not weak else q, 100), weak


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
    return quantiles(as_array(a), q, axis, out, method, keepdims, weights)


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
    x = as_array(a)
    levels, weak = percent(q)
    return quantiles(x, levels, axis, out, method, keepdims, weights, weak)


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
    return nan_quantiles(as_array(a), q, axis, out, method, keepdims, weights)


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
    x = as_array(a)
    levels, weak = percent(q)
    return nan_quantiles(x, levels, axis, out, method, keepdims, weights, weak)


@numpy_rule("nanmedian")
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = np._NoValue
) -> Any:
    """The mean of the two middle elements that are not nan; nan where there is none."""
    x = as_array(a)
    if x.dtype.kind not in "fc" or not x.size:
        return median(x, axis, out, False, given(keepdims, False))
    flat, axes = moved_last(x, axis)
    ordered = sorted_last(flat)
    count: Any = sum_of(~np.isnan(ordered), -1, None, None, True)
    low, high = np.maximum((count - 1) // 2, 0), np.minimum(count // 2, ordered.shape[-1] - 1)
    pair = np.take_along_axis(ordered, np.concatenate([low, high], axis=-1), -1)
    odd = count[..., 0] % 2 == 1
    result: Any = np.where(odd, pair[..., 0], mean(pair, -1))
    return finish(scalar_if_rank0(result.reshape(kept_shape(x, axes, 0, keepdims))), out, broadcasts=True)
