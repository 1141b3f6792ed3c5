"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import AxisError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, numpy_rule, refuse, scalar_if_rank0
from srcgrad.tracing.tracer import Tracer, as_tracer, emit
from srcgrad.tracing.ufuncs import result_dtype


def along(function: str, op: str, a: Any, axis: Any, order: Any, descending: Any = np._NoValue) -> Any:
    refuse(function, order=(order, None))
    if descending is not np._NoValue and descending:
        raise UnsupportedError(f"{function} with descending=True is not supported", hint="np.flip(np.sort(x))")
    x = as_array(a)
    if axis is None:
        x, axis = x.ravel(), 0
    if not x.ndim:
        raise AxisError(f"{function}: axis {axis} is out of bounds for array of dimension 0")
    return emit(op, x, axis=axis_of(axis, x.ndim))


@numpy_rule("sort")
def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = np._NoValue,
) -> Any:
    return along("np.sort", "sort", a, axis, order, descending)


@numpy_rule("argsort", method="argsort")
def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: Any = np._NoValue,
) -> Any:
    x = as_array(a)
    return along("np.argsort", "argsort", x if x.ndim else x.ravel(), axis, order, descending)


@numpy_rule("partition")
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Sorted: one of the arrangements that a partition may give."""
    return along("np.partition", "sort", a, axis, order)


@numpy_rule("argpartition", method="argpartition")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    return along("np.argpartition", "argsort", a, axis, order)


@numpy_rule("sort_complex")
def sort_complex(a: Any) -> Any:
    x = as_array(a)
    small = x.dtype.kind in "biu" and x.dtype.itemsize <= 2
    dtype = np.dtype(np.complex64) if small else np.result_type(x.dtype, np.complex64)
    return sort(cast(x, dtype))


@numpy_rule("lexsort")
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Stable sorts by each key in turn, the last key last."""
    columns = [as_array(key) for key in keys]
    if not columns:
        raise ShapeError("need sequence of keys with len > 0 in lexsort")
    axis = axis_of(axis, columns[0].ndim)
    order = emit("argsort", columns[0], axis=axis)
    for column in columns[1:]:
        place = emit("argsort", emit("take_along_axis", column, order, axis=axis), axis=axis)
        order = emit("take_along_axis", order, place, axis=axis)
    return order


@numpy_rule("searchsorted", method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The number of elements before each value: nan sorts last."""
    if side not in ("left", "right"):
        raise ShapeError(f"search side must be 'left' or 'right' (got {side!r})")
    nodes: Any = as_tracer(a)
    if nodes.ndim != 1:
        raise ShapeError("object too deep for desired array: np.searchsorted takes a one-dimensional array")
    if sorter is not None:
        nodes = nodes[sorter]
    values: Any = as_tracer(v)
    dtype = result_dtype(nodes, values)
    nodes, column = cast(nodes, dtype), cast(values, dtype)[..., None]
    before = nodes < column if side == "left" else nodes <= column
    if dtype.kind in "fc":
        after_all = np.isnan(column)
        before = before | (after_all & ~np.isnan(nodes) if side == "left" else after_all)
    return scalar_if_rank0(np.sum(before, axis=-1))


@numpy_rule("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges: Any = as_tracer(bins)
    number = edges.number() if isinstance(edges, Tracer) else np.asarray(edges)
    if number is None:
        number = edges.concrete("np.digitize's bins")
    decreasing = len(number) > 1 and number[0] > number[-1]
    side = "left" if right else "right"
    if not decreasing:
        return searchsorted(edges, x, side)
    return len(number) - searchsorted(edges[::-1], x, "right" if right else "left")


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
    """The number of distinct elements must be known: the values are taken at their first places."""
    refuse("np.unique", axis=(axis, None))
    x = as_array(ar)
    number = np.asarray(x.concrete("np.unique"))
    _, first, inverse, counts = np.unique(
        number, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan
    )
    values = x.ravel()[first]
    chosen = [
        as_tracer(found)
        for found, wanted in ((first, return_index), (inverse, return_inverse), (counts, return_counts))
        if wanted
    ]
    return (values, *chosen) if chosen else values
