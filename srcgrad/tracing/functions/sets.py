"""Sets of elements: their number decides shapes, so that the elements must be known; the results are differentiable."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.tracing.functions.registry import as_array, axis_of, cast, numpy_rule, prefix
from srcgrad.tracing.tracer import as_tracer, emit


@numpy_rule("unique")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The distinct elements, or slices along ``axis``; equal ones share the derivative."""
    x = as_array(ar)
    wanted = (True, return_index, return_inverse, return_counts)
    if axis is None and x.dtype.kind == "f" and x.size and x.number() is None:
        parts = [part for part, asked in zip(distinct(x, equal_nan), wanted, strict=True) if asked]
        return tuple(parts) if len(parts) > 1 else parts[0]
    number = np.asarray(x.concrete("np.unique"))
    _, first, inverse, counts = np.unique(
        number, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan
    )
    along = 0 if axis is None else axis_of(axis, x.ndim)
    values = shared(x.ravel() if axis is None else x, along, first, inverse.reshape(-1), counts)
    parts = [part for part, asked in zip((values, first, inverse, counts), wanted, strict=True) if asked]
    return tuple(map(as_tracer, parts)) if len(parts) > 1 else values


def shared(x: Any, axis: int, first: Any, inverse: Any, counts: Any) -> Any:
    """The slices that are first of their kind, to which the mean difference from all of the kind is added: 0, but for
    its derivative. What is not finite has no difference from itself, and counts where it stands first.
    """
    values = x[prefix(axis, first)]
    if x.dtype.kind not in "fc" or len(first) == len(inverse):
        return values
    away = values[prefix(axis, inverse)] - x
    away = np.where(np.isfinite(away), away, x.dtype.type(0))
    order = np.argsort(inverse, kind="stable")
    total = np.add.reduceat(away[prefix(axis, order)], np.cumsum(counts) - counts, axis)
    share = counts.reshape((-1,) + (1,) * (x.ndim - axis - 1)).astype(np.real(np.zeros(0, x.dtype)).dtype)
    return values - total / share


def distinct(x: Any, equal_nan: bool) -> tuple[Any, Any, Any, Any]:
    """The distinct of numbers that are not known, which a mask selects of them in their order: the values, their first
    places, which of them each number is, and how often each stands there.
    """
    flat = x.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    before, behind = ordered[:-1], ordered[1:]
    same = (behind == before) | (np.isnan(behind) & np.isnan(before)) if equal_nan else behind == before
    new = np.concatenate([np.full(1, True), ~same])
    group = np.cumsum(new) - 1
    inverse = np.zeros_like(group)
    inverse[order] = group
    begin = np.searchsorted(group, group)
    counts = np.searchsorted(group, group, "right") - begin
    extremes: Any = emit(
        "restarting_cummax", ordered, as_tracer(new), axis=0
    )  # those that are equal share its derivative
    last = np.concatenate([new[1:], np.full(1, True)])
    return extremes[last], order[begin][last], inverse.reshape(x.shape), counts[last]


@numpy_rule("unique_values")
def unique_values(x: Any, /) -> Any:
    """Sorted, which is one of the orders that NumPy may give."""
    return unique(x, equal_nan=False)


@numpy_rule("unique_counts")
def unique_counts(x: Any, /) -> Any:
    found = np.unique_counts(np.zeros(0))
    return type(found)(*unique(x, return_counts=True, equal_nan=False))


@numpy_rule("unique_inverse")
def unique_inverse(x: Any, /) -> Any:
    found = np.unique_inverse(np.zeros(0))
    return type(found)(*unique(x, return_inverse=True, equal_nan=False))


@numpy_rule("unique_all")
def unique_all(x: Any, /) -> Any:
    found = np.unique_all(np.zeros(0))
    return type(found)(*unique(x, True, True, True, equal_nan=False))


def flat_pair(left: Any, right: Any, what: str) -> tuple[Any, Any, Any, Any]:
    """Two arrays as vectors of one dtype, traced and as numbers."""
    x, y = as_array(left).ravel(), as_array(right).ravel()
    dtype = np.result_type(x.dtype, y.dtype)
    x, y = cast(x, dtype), cast(y, dtype)
    return x, y, np.asarray(x.concrete(what)), np.asarray(y.concrete(what))


@numpy_rule("union1d")
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(np.concatenate([as_array(ar1).ravel(), as_array(ar2).ravel()]))


@numpy_rule("intersect1d")
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The common elements, as those of the first array."""
    x, _, left, right = flat_pair(ar1, ar2, "np.intersect1d")
    _, first, second = np.intersect1d(left, right, assume_unique=assume_unique, return_indices=True)
    return (x[first], as_tracer(first), as_tracer(second)) if return_indices else x[first]


@numpy_rule("setdiff1d")
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x = as_array(ar1).ravel()
    _, _, left, right = flat_pair(ar1, ar2, "np.setdiff1d")
    places = np.arange(left.size) if assume_unique else np.unique(left, return_index=True)[1]
    return x[places[~np.isin(left[places], right)]]


@numpy_rule("setxor1d")
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x, y, left, right = flat_pair(ar1, ar2, "np.setxor1d")
    if not assume_unique:
        places = [np.unique(number, return_index=True)[1] for number in (left, right)]
        x, y, left, right = x[places[0]], y[places[1]], left[places[0]], right[places[1]]
    both = np.concatenate([left, right])
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    differs = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return np.concatenate([x, y])[order[differs[1:] & differs[:-1]]]
