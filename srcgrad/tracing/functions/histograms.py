"""Counting: histograms and bins. Counts have no derivative; sums of weights are differentiable in the weights.

Where an element falls is found by binary search among the edges, and what falls there is added up: the number of bins
must be known, the elements need not.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.tracing.functions.ranges import linspace
from srcgrad.tracing.functions.registry import as_array, cast, filled, numpy_rule, require, require_cast
from srcgrad.tracing.functions.sorting import searchsorted
from srcgrad.tracing.intervals import interval_of
from srcgrad.tracing.tracer import as_tracer, contains_tracer
from srcgrad.tracing.ufuncs import result_dtype


@numpy_rule("bincount")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """The largest element decides the length, so that alone must be known."""
    places: Any = as_array(x)
    least = operator.index(minlength)
    np.bincount(np.zeros(places.shape, places.dtype), minlength=minlength)  # raises what depends on no element
    w: Any = None if weights is None else as_array(weights)
    if w is not None and w.shape != places.shape:
        raise ShapeError("The weights and list don't have the same length.")
    if w is not None:
        require_cast(w.dtype, np.float64)
    largest = largest_place(places, least) if places.size else -1
    shares = np.ones(places.shape, np.int64) if w is None else cast(w, np.float64)
    return added(largest + 1, cast(places, np.int64), as_tracer(shares), least)


def largest_place(places: Any, least: int) -> int:
    """The largest element of a vector, or ``least - 1`` beyond that; if one is negative, NumPy's error.

    So there is one answer, and one program, where the caller says how many bins there are. Nothing is asked where the
    elements surely are such places, as the results of ``argmin`` along an axis are.
    """
    number = places.number()
    if number is None:
        if places.dtype.kind in "biu":
            surely = interval_of(places.read())
            if surely.low >= 0 and surely.high < least:
                return least - 1
        known = np.where(np.min(places) < 0, -1, np.maximum(np.max(places).astype(np.int64), least - 1))
        number = as_tracer(known).concrete("np.bincount")
    elif number.min() < 0:
        number = -1
    largest = int(np.max(number))
    if largest < 0:
        np.bincount([largest])  # raises
    return largest


def added(size: int, places: Any, weights: Any, least: int = 0) -> Any:
    """Zeros to which the weights are added at their places."""
    result: Any = filled((max(size, least),), 0, weights.dtype)
    np.add.at(result, places, weights)
    return result


# --- edges -----------------------------------------------------------------------------------------------------------


def checked(predicate: Any, message: str) -> None:
    """Raise NumPy's error where the predicate does not hold, or when the program runs and it does not.

    Raises:
        ShapeError: it is known not to hold.
    """
    if not contains_tracer(predicate) and not predicate:
        raise ShapeError(message)
    require(predicate, "ValueError", message)


def outer_edges(x: Any, range: Any) -> tuple[Any, Any]:
    """The ends of the bins, which must not be equal."""
    if range is not None:
        first, last = range
        checked(np.logical_not(first > last), "max must be larger than min in range parameter.")
        checked(np.isfinite(first) & np.isfinite(last), "the supplied range is not finite")
    elif not x.size:
        first, last = 0, 1
    else:
        first, last = x.min(), x.max()
        checked(np.isfinite(first) & np.isfinite(last), "the autodetected range is not finite")
    if not contains_tracer([first, last]):
        return (first - 0.5, last + 0.5) if first == last else (first, last)
    same = as_tracer(first == last)
    known = same.number()
    if known is not None:
        return (first - 0.5, last + 0.5) if known else (first, last)
    return np.where(same, first - 0.5, first)[()], np.where(same, last + 0.5, last)[()]


def bin_edges(x: Any, bins: Any, range: Any, weights: Any) -> Any:
    """The edges of the bins of a vector: a tracer, or an array if nothing in them is traced."""
    if isinstance(bins, str):
        if weights is not None:
            raise DTypeError("Automated estimation of the number of bins is not supported for weighted data")
        number = np.asarray(x.concrete("the number of bins of a histogram"))
        bins = len(np.histogram_bin_edges(number, bins, range)) - 1
    if np.ndim(bins) == 0:
        count = operator.index(bins)
        if count < 1:
            raise ShapeError("`bins` must be positive, when an integer")
        first, last = outer_edges(x, range)
        dtype = result_dtype(as_tracer(first), as_tracer(last), x)
        if dtype.kind in "iu":
            dtype = np.result_type(dtype, float)
        if not contains_tracer([first, last]):
            return np.linspace(first, last, count + 1, dtype=dtype)
        return linspace(first, last, count + 1, dtype=dtype)
    edges = as_array(bins) if contains_tracer(bins) else np.asarray(bins)
    if edges.ndim != 1:
        raise ShapeError("`bins` must be 1d, when an array")
    falls = np.any(edges[:-1] > edges[1:])
    checked(np.logical_not(falls), "`bins` must increase monotonically, when an array")
    return edges


@numpy_rule("histogram_bin_edges")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    array: Any = as_array(a)
    return bin_edges(array.ravel(), bins, range, matching_weights(weights, array.shape))


# --- histograms ------------------------------------------------------------------------------------------------------


def sums_in_bins(places: Any, inside: Any, size: int, weights: Any) -> Any:
    """How many elements, or how much weight, fall into each bin; what is not ``inside`` counts nowhere.

    Weights are added up in double precision, and the sums have their dtype.
    """
    if weights is None:
        shares: Any = np.ones(as_tracer(places).shape, np.int64)
    else:
        shares = cast(weights, np.complex128 if weights.dtype.kind == "c" else np.float64)
    sums = added(size, np.where(inside, places, 0), as_tracer(np.where(inside, shares, shares.dtype.type(0))))
    return sums if weights is None else cast(sums, weights.dtype)


def matching_weights(weights: Any, shape: tuple[int, ...]) -> Any:
    if weights is None:
        return None
    w: Any = as_array(weights)
    if w.shape != shape:
        raise ShapeError("weights should have the same shape as a.")
    return w.ravel()


@numpy_rule("histogram")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Any, Any]:
    array = as_array(a)
    w = matching_weights(weights, array.shape)
    x: Any = array.ravel()
    x = cast(x, np.uint8) if x.dtype.kind == "b" else x
    edges: Any = bin_edges(x, bins, range, w)
    size = edges.shape[0] - 1
    places = searchsorted(edges, x, "right") - 1
    places = np.where(x == edges[-1], size - 1, places)  # the last bin holds its right edge
    counts = sums_in_bins(places, (places >= 0) & (places < size), size, w)
    if density:
        return counts / cast(np.diff(edges), np.float64) / counts.sum(), edges
    return counts, edges


def is_several(bins: Any) -> bool:
    """Whether this is no number. A number beside edges makes no array: ``[2, [0.0, 1.0]]``."""
    return isinstance(bins, (list, tuple)) or np.ndim(bins) > 0


@numpy_rule("histogramdd")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, list[Any]]:
    columns = columns_of(sample)
    rank = len(columns)
    w = matching_weights(weights, columns[0].shape) if columns else None
    per_axis = list(bins) if is_several(bins) else [bins] * rank
    ranges = [None] * rank if range is None else list(range)
    if len(per_axis) != rank:
        raise ShapeError("The dimension of bins must be equal to the dimension of the sample x.")
    if len(ranges) != rank:
        raise ShapeError("range argument must have one entry per dimension")
    edges = [axis_edges(x, b, r) for x, b, r in zip(columns, per_axis, ranges, strict=True)]
    flat, inside = flat_places(columns, edges)
    sizes = [edge.shape[0] - 1 for edge in edges]
    counts = sums_in_bins(flat, inside, int(np.prod(sizes)), None if w is None else cast(w, np.float64))
    counts = cast(counts.reshape(sizes), np.float64)
    if density:
        total = counts.sum()
        for axis, edge in enumerate(edges):
            counts = counts / np.diff(edge).reshape([-1 if k == axis else 1 for k in np.arange(rank)])
        counts = counts / total
    return counts, edges


def columns_of(sample: Any) -> list[Any]:
    """The coordinates: of an (N, D) array its columns, of a sequence of vectors each one of them."""
    if isinstance(sample, (list, tuple)) or not hasattr(sample, "shape"):
        return [as_array(x) for x in sample]
    array: Any = as_array(sample)
    if array.ndim == 1:
        return [array]
    return [array[:, k] for k in np.arange(array.shape[1]).tolist()]


def axis_edges(x: Any, bins: Any, range: Any) -> Any:
    """As for one axis, but that the edges of a number of bins keep the dtype of the sample's ends."""
    if np.ndim(bins) == 0:
        count = operator.index(bins)
        if count < 1:
            raise ShapeError("`bins` must be positive, when an integer")
        first, last = outer_edges(x, range)
        make = linspace if contains_tracer([first, last]) else np.linspace
        return make(first, last, count + 1)
    return bin_edges(x, bins, None, None)


def flat_places(columns: Sequence[Any], edges: Sequence[Any]) -> tuple[Any, Any]:
    """The bin of each element, counted in C order, and whether it is in one."""
    flat: Any = 0
    inside: Any = True
    for x, edge in zip(columns, edges, strict=True):
        size = edge.shape[0] - 1
        place = searchsorted(edge, x, "right")
        place = np.where(x == edge[-1], place - 1, place) - 1
        inside = inside & (place >= 0) & (place < size)
        flat = flat * size + place
    return flat, inside


@numpy_rule("histogram2d")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    if len(x) != len(y):
        raise ShapeError("x and y must have the same length.")
    shared = is_several(bins) and len(bins) not in (1, 2)
    counts, (first, second) = histogramdd([x, y], [bins, bins] if shared else bins, range, density, weights)
    return counts, first, second
