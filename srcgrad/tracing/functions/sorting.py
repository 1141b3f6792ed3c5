"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, numpy_rule, refuse, require, scalar_if_rank0
from srcgrad.tracing.tracer import as_tracer, contains_tracer, emit


def along(function: str, op: str, a: Any, axis: Any, order: Any, descending: Any = np._NoValue) -> Any:
    if descending is not np._NoValue and descending:
        raise UnsupportedError(f"{function} with descending=True is not supported", hint="np.flip(np.sort(x))")
    x, axis = with_axis(function, a, axis, order)
    return emit(op, x, axis=axis)


def with_axis(function: str, a: Any, axis: Any, order: Any) -> tuple[Any, int]:
    """The array and the axis along which it is sorted."""
    refuse(function, order=(order, None))
    x = as_array(a)
    if axis is None:
        x, axis = x.ravel(), 0
    if not x.ndim:
        raise AxisError(f"{function}: axis {axis} is out of bounds for array of dimension 0")
    return x, axis_of(axis, x.ndim)


def divided(function: str, a: Any, kth: Any, axis: Any, order: Any) -> Any:
    """At the element of one rank, or sorted where there are several: one of the arrangements that there may be."""
    x, axis = with_axis(f"np.{function}", a, axis, order)
    ranks = ranks_of(kth, x.shape[axis])
    if len(ranks) == 1 and x.size and x.dtype.kind != "c":
        return emit(function, x, axis=axis, kth=ranks.pop())
    return emit("sort" if function == "partition" else "argsort", x, axis=axis)


def require_kind(kind: Any, stable: Any) -> None:
    """NumPy's errors where no way of sorting is meant; all ways give one result here."""
    if kind is not None or stable is not None:
        try:
            np.sort(np.zeros(0), kind=kind, stable=stable)
        except (TypeError, ValueError) as error:
            raise (DTypeError if isinstance(error, TypeError) else ArgumentError)(str(error)) from None


def require_selection(kind: Any) -> None:
    if kind != "introselect":
        raise ArgumentError(f"select kind must be 'introselect' (got {kind!r})")


def ranks_of(kth: Any, size: Any) -> set[int]:
    """The ranks that ``kth`` names, counted from 0; none where they or the size are not known.

    Raises:
        DTypeError: they are no whole numbers.
        ShapeError: one is out of bounds.
    """
    if contains_tracer(kth) or not isinstance(size, int):
        return set()
    numbers = np.asarray(kth)
    if numbers.dtype.kind == "b":
        raise ShapeError("Booleans unacceptable as partition index")
    if numbers.dtype.kind not in "iu":
        raise DTypeError("Partition index must be integer")
    if numbers.ndim > 1:
        raise ShapeError("kth must be a number or a sequence of numbers")
    ranks = [int(rank) for rank in numbers.ravel()]
    for rank in ranks:
        if not -size <= rank < size and size:
            raise ShapeError(f"kth(={rank}) out of bounds ({size})")
    return {rank % size for rank in ranks} if size else set()


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
    require_kind(kind, stable)
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
    require_kind(kind, stable)
    x = as_array(a)
    return along("np.argsort", "argsort", x if x.ndim else x.ravel(), axis, order, descending)


@numpy_rule("partition")
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    require_selection(kind)
    return divided("partition", a, kth, axis, order)


@numpy_rule("argpartition", method="argpartition")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    require_selection(kind)
    return divided("argpartition", a, kth, axis, order)


@numpy_rule("sort_complex")
def sort_complex(a: Any) -> Any:
    x = as_array(a)
    if x.dtype.kind == "c":
        return sort(x)
    return cast(sort(x), np.dtype(np.complex64 if x.dtype.char in "bhBH" else np.complex128))


@numpy_rule("lexsort")
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Stable sorts by each key in turn, the last key last."""
    columns = [as_array(key) for key in keys]
    if not columns:
        raise ShapeError("need sequence of keys with len > 0 in lexsort")
    if not columns[0].ndim and axis in (0, -1):
        return np.int64(0)
    axis = axis_of(axis, columns[0].ndim)
    order = emit("argsort", columns[0], axis=axis)
    for column in columns[1:]:
        place = emit("argsort", emit("take_along_axis", column, order, axis=axis), axis=axis)
        order = emit("take_along_axis", order, place, axis=axis)
    return order


@numpy_rule("searchsorted", method="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where each value belongs among the sorted elements, by binary search: nan sorts last."""
    name = {"l": "left", "r": "right"}.get(side[:1].lower()) if isinstance(side, str) else None
    if name is None:
        raise ShapeError(f"search side must be 'left' or 'right' (got {side!r})")
    nodes: Any = as_array(a)
    if nodes.ndim != 1:
        raise ShapeError("object too deep for desired array: np.searchsorted takes a one-dimensional array")
    if sorter is not None:
        nodes = nodes[sorting(sorter, nodes.size)]
    values: Any = as_tracer(v)
    dtype = np.result_type(nodes.dtype, values.dtype)
    return scalar_if_rank0(emit("searchsorted", cast(nodes, dtype), cast(values, dtype), side=name))


def sorting(sorter: Any, size: int) -> Any:
    """The order in which a sorter puts elements: unlike an index it counts none from the end."""
    order: Any = as_array(sorter)
    if order.dtype.kind not in "iu":
        raise DTypeError("sorter must only contain integers")
    if order.ndim != 1:
        raise ShapeError("object too deep for desired array: the sorter of np.searchsorted has one dimension")
    if order.size != size:
        raise ShapeError("sorter.size must equal a.size")
    require(np.all((order >= 0) & (order < size)), "ValueError", "Sorter index out of range.")
    return order


@numpy_rule("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Unknown bins are searched in the order that their ends show, and checked where the program runs."""
    values, edges = as_tracer(x), as_array(bins)
    if "c" in (values.dtype.kind, edges.dtype.kind):
        raise DTypeError("x and bins may not be complex")
    side = "left" if right else "right"
    number = edges.number()
    if number is None:
        if edges.size < 2:
            return searchsorted(edges, values, side)
        decreasing = edges[0] > edges[-1]
        lower, upper = edges[:-1], edges[1:]
        monotonic = np.where(decreasing, np.all(lower >= upper), np.all(lower <= upper))
        require(monotonic, "ValueError", "bins must be monotonically increasing or decreasing")
        above = edges.size - searchsorted(edges[::-1], values, side)
        return scalar_if_rank0(np.where(decreasing, above, searchsorted(edges, values, side)))
    steps = np.diff(number)
    if not (np.all(steps >= 0) or np.all(steps <= 0)):
        raise ShapeError("bins must be monotonically increasing or decreasing")
    if np.all(steps >= 0):
        return searchsorted(edges, values, side)
    return edges.size - searchsorted(edges[::-1], values, side)
