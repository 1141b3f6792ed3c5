"""Functions that join arrays, and those that insert or remove elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, IndexingError, ShapeError
from srcgrad.tracing import rows
from srcgrad.tracing.functions.registry import (
    as_array,
    axis_of,
    cast,
    concrete_array,
    filled,
    finish,
    numpy_rule,
    prefix,
)
from srcgrad.tracing.functions.shapes import atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand_dims, moveaxis
from srcgrad.tracing.layout import corner, strides_of_whole
from srcgrad.tracing.tracer import Tracer, as_tracer, emit, from_value
from srcgrad.tracing.ufuncs import result_dtype


def common(arrays: Sequence[Any], dtype: Any, casting: str, weak: bool = False) -> list[Any]:
    """The arrays as tracers of one dtype: that of the promotion, in which Python numbers may be weak, or ``dtype``."""
    tracers = [as_array(array) for array in arrays]
    if not tracers:
        raise ShapeError("need at least one array to concatenate")
    target = result_dtype(*(arrays if weak else tracers)) if dtype is None else np.dtype(dtype)
    for tracer in tracers:
        if not np.can_cast(tracer.dtype, target, casting):  # type: ignore[arg-type]
            raise DTypeError(f"cannot cast {tracer.dtype} to {target} with casting={casting!r}")
    return [cast(tracer, target) for tracer in tracers]


@numpy_rule("concatenate", "concat")
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    pieces = common(arrays, dtype, casting, weak=axis is None)
    if axis is None:
        pieces, axis = [piece.ravel() for piece in pieces], 0
    first = pieces[0]
    if not first.ndim:
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    axis = axis_of(axis, first.ndim)
    for piece in pieces[1:]:
        if piece.ndim != first.ndim:
            raise ShapeError(
                "all the input array dimensions must match exactly in number, "
                f"but one array has {first.ndim} dimensions and another {piece.ndim}"
            )
        if piece.shape[:axis] != first.shape[:axis] or piece.shape[axis + 1 :] != first.shape[axis + 1 :]:
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly: "
                f"{first.shape} and {piece.shape} do not, axis {axis}"
            )
    parts = rows.gathered(pieces, axis)
    joined = parts[0].copy() if len(parts) == 1 else emit("concatenate", *parts, axis=axis)
    return finish(laid_out(joined, pieces, axis), out)


def laid_out(joined: Any, pieces: Sequence[Any], axis: int) -> Any:
    """The result in the memory layout that NumPy gives it: the order of axes that all pieces share."""
    if joined.ndim < 2 or not any(piece.chain or piece.storage.strides for piece in pieces):
        return joined
    small = np.concatenate([corner(piece.ghost()) for piece in pieces], axis=axis)
    joined.storage.strides = strides_of_whole(small, joined.shape, joined.dtype)
    return joined


@numpy_rule("stack")
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    runs = rows.pieces(arrays) if axis == 0 and isinstance(arrays, (list, tuple)) else None
    if runs is not None:
        found = [run if isinstance(run, Tracer) else stack(run) for run in runs]
        if all(run.shape[1:] == found[0].shape[1:] for run in found):
            return concatenate(found, 0, out, dtype=dtype, casting=casting)
    pieces = common(arrays, dtype, casting)
    if any(piece.shape != pieces[0].shape for piece in pieces):
        raise ShapeError(f"all input arrays must have the same shape, not {[piece.shape for piece in pieces]}")
    axis = axis_of(axis, pieces[0].ndim + 1)
    return concatenate([expand_dims(piece, axis) for piece in pieces], axis, out)


def listed(arrays: Any, at_least: Any, axis: int, rank: int) -> list[Any]:
    """The arrays with enough axes; numbers that are all of a vector, or of a part of one, as one array."""
    numbers = rows.source_of(arrays) if isinstance(arrays, (list, tuple)) else None
    if numbers is not None and numbers.ndim == 1:
        return [from_value(numbers.read()).reshape([-1 if k == axis else 1 for k in range(rank)])]
    pieces = at_least(*arrays)
    return list(pieces) if isinstance(pieces, tuple) else [pieces]


@numpy_rule("vstack", "row_stack")
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return concatenate(listed(tup, atleast_2d, 0, 2), 0, dtype=dtype, casting=casting)


@numpy_rule("hstack")
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    pieces = listed(tup, atleast_1d, 0, 1)
    return concatenate(pieces, 0 if pieces and pieces[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@numpy_rule("dstack")
def dstack(tup: Any) -> Any:
    return concatenate(listed(tup, atleast_3d, 2, 3), 2)


@numpy_rule("column_stack")
def column_stack(tup: Any) -> Any:
    pieces = [as_array(piece) for piece in listed(tup, lambda *given: given, 1, 2)]
    return concatenate([atleast_2d(piece).T if piece.ndim < 2 else piece for piece in pieces], 1)


@numpy_rule("block")
def block(arrays: Any) -> Any:
    def depth(part: Any) -> int:
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def join(part: Any, axis: int, rank: int) -> Any:
        if isinstance(part, list):
            if not part:
                raise ShapeError("List depths are mismatched or empty: np.block takes no empty lists")
            return concatenate([join(piece, axis + 1, rank) for piece in part], axis)
        array = as_array(part)
        return array[(None,) * (rank - array.ndim) + (...,)]

    def leaves(part: Any) -> list[Any]:
        return [leaf for piece in part for leaf in leaves(piece)] if isinstance(part, list) else [part]

    levels = depth(arrays)
    rank = max([levels, *(as_tracer(leaf).ndim for leaf in leaves(arrays))])
    result = join(arrays, rank - levels, rank)
    return result if levels else result.copy()


@numpy_rule("append")
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        return concatenate([as_array(arr).ravel(), as_array(values).ravel()])
    return concatenate([arr, values], axis)


@numpy_rule("insert")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    x = as_array(arr)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    size = x.shape[axis]
    if is_traced_place(obj) and size:
        front = obj < 0
        place = (1 - front) * placed(np.maximum(obj, 0), size + 1) + front * placed(np.minimum(obj, -1), size)
        return insert_anywhere(x, place, cast(as_array(values), x.dtype), axis)
    places = np.arange(size)[obj] if isinstance(obj, slice) else concrete_array(obj, "np.insert's obj")
    if places.dtype == np.bool_:
        places = np.flatnonzero(places)
    if places.ndim > 1:
        raise ShapeError("index array argument obj to insert must be one dimensional or scalar")
    if places.size and not (-size <= places.min() and places.max() <= size):
        raise IndexingError(f"index {obj} is out of bounds for axis {axis} with size {size}")
    places = np.where(places < 0, places + size, places).astype(np.int64)
    new = cast(as_array(values), x.dtype)
    if places.size == 1:
        return insert_at(x, int(places.ravel()[0]), new, axis, places.ndim == 0)
    order = np.argsort(places, kind="stable")
    places[order] += np.arange(places.size)  # where the new elements stand in the result
    total = size + places.size
    result: Any = filled((*x.shape[:axis], total, *x.shape[axis + 1 :]), 0, x.dtype)
    result[prefix(axis, places)] = new
    result[prefix(axis, np.setdiff1d(np.arange(total), places))] = x
    return result


def insert_at(x: Any, place: int, new: Any, axis: int, is_scalar: bool) -> Any:
    """Insert at one place. For a scalar place the first axis of the values runs along ``axis``, as in NumPy."""
    if new.ndim < x.ndim:
        new = new.reshape((1,) * (x.ndim - new.ndim) + new.shape)
    if is_scalar:
        new = moveaxis(new, 0, axis)
    shape = (*x.shape[:axis], new.shape[axis], *x.shape[axis + 1 :])
    while new.ndim > x.ndim and new.shape[0] == 1:  # an assignment, as NumPy's is, leaves these out
        new = new[0]
    new = broadcast_to(new, shape)
    return concatenate([x[prefix(axis, slice(None, place))], new, x[prefix(axis, slice(place, None))]], axis)


def insert_anywhere(x: Any, place: Any, new: Any, axis: int) -> Any:
    """Insert at one traced place: what stands behind it is read one place further to the front."""
    wide = insert_at(x, 0, new, axis, is_scalar=True)
    count = wide.shape[axis] - x.shape[axis]
    at = np.arange(wide.shape[axis])
    before, behind = at < place, at >= place + count
    return wide[prefix(axis, at + before * count - (1 - before - behind) * place)]


def is_traced_place(obj: Any) -> bool:
    return isinstance(obj, Tracer) and not obj.ndim and obj.dtype.kind == "i"


def placed(index: Any, size: int) -> Any:
    """A traced index of an axis, counted from its beginning; an IndexError where it is none."""
    return as_array(np.arange(size))[index]


@numpy_rule("delete")
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x = as_array(arr)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    if is_traced_place(obj):
        at = np.arange(x.shape[axis] - 1)
        return x[prefix(axis, at + (at >= placed(obj, x.shape[axis])))]
    removed: Any = obj if isinstance(obj, slice) else concrete_array(obj, "np.delete's obj")
    if not isinstance(obj, (slice, np.ndarray, Tracer)) and not removed.size:  # an array of an empty list is of floats
        removed = removed.astype(np.intp)
    return x[prefix(axis, np.delete(np.arange(x.shape[axis]), removed))]


@numpy_rule("vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    array: Any = as_tracer(x)
    if array.ndim != 1:
        raise ShapeError("x must be a one-dimensional array or sequence.")
    count = array.size if N is None else operator.index(N)
    dtype = np.promote_types(array.dtype, int)
    base = cast(array, dtype)
    columns = [cast(filled(array.shape, 1, dtype), dtype)]
    for _ in range(count - 1):
        columns.append(columns[-1] * base)
    columns = columns[:count]
    if not columns:
        return filled((array.size, 0), 0, dtype)
    return stack(columns if increasing else columns[::-1], 1)


@numpy_rule("meshgrid")
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ShapeError("Valid values for `indexing` are 'xy' and 'ij'.")
    count = len(xi)
    arrays = []
    for k, x in enumerate(xi):
        place = {0: 1, 1: 0}.get(k, k) if indexing == "xy" and count > 1 else k
        arrays.append(as_array(x).reshape([-1 if axis == place else 1 for axis in range(count)]))
    if not sparse:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        arrays = [broadcast_to(array, shape) for array in arrays]
    return tuple(array.copy() for array in arrays) if copy else tuple(arrays)


@numpy_rule("ix_")
def ix_(*args: Any) -> tuple[Any, ...]:
    count = len(args)
    arrays = [as_array(x) for x in args]
    if any(x.ndim != 1 for x in arrays):
        raise ShapeError("Cross index must be 1 dimensional")
    places: list[Any] = [np.nonzero(x)[0] if x.dtype == np.bool_ else x for x in arrays]
    return tuple(x.reshape([-1 if axis == k else 1 for axis in range(count)]) for k, x in enumerate(places))


@numpy_rule("apply_along_axis")
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_tracer(arr)
    axis = axis_of(axis, x.ndim)
    moved: Any = moveaxis(x, axis, -1)
    outer = moved.shape[:-1]
    if 0 in outer:
        raise ShapeError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [as_array(func1d(moved[place], *args, **kwargs)) for place in np.ndindex(outer)]
    inner = results[0].shape
    joined: Any = stack(results).reshape(outer + inner)
    rank = len(outer)
    return moveaxis(joined, tuple(range(rank, rank + len(inner))), tuple(range(axis, axis + len(inner))))


@numpy_rule("apply_over_axes")
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = as_array(a)
    rank = x.ndim
    for axis in np.atleast_1d(axes):
        place = int(axis) + rank if axis < 0 else int(axis)
        result = as_array(func(x, place))
        x = result if result.ndim == x.ndim else expand_dims(result, place)
    return x
