"""Functions that only rearrange: views where NumPy gives views, copies elsewhere."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from srcgrad.errors import AxisError, DTypeError, ShapeError
from srcgrad.tracing.functions.registry import (
    along_axis,
    as_array,
    axes_of,
    axis_of,
    broadcast_shape,
    concrete_array,
    filled,
    known_nonzeros,
    numpy_rule,
    ordered_axes,
    prefix,
)
from srcgrad.tracing.tracer import Tracer, as_tracer
from srcgrad.tracing.views import BroadcastView


@numpy_rule("reshape")
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tracer:
    return as_tracer(a).reshape(shape, order=order, copy=copy)


@numpy_rule("ravel")
def ravel(a: Any, order: str = "C") -> Tracer:
    return as_tracer(a).ravel(order)


@numpy_rule("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Tracer:
    return as_tracer(a).transpose(axes)


@numpy_rule("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Tracer:
    return as_tracer(x).mT


@numpy_rule("swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Tracer:
    x = as_tracer(a)
    return x.swapaxes(axis_of(axis1, x.ndim), axis_of(axis2, x.ndim))


@numpy_rule("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    x = as_tracer(a)
    taken, places = ordered_axes(source, x.ndim), ordered_axes(destination, x.ndim)
    if len(taken) != len(places):
        raise ShapeError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(x.ndim) if axis not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return x.transpose(order)


@numpy_rule("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Tracer:
    x = as_tracer(a)
    axis, before = axis_of(axis, x.ndim), start + x.ndim * (start < 0)
    if not 0 <= before <= x.ndim:
        raise AxisError(f"'start' arg requires {-x.ndim} <= start < {x.ndim + 1}, but {start} was passed in")
    order = [other for other in range(x.ndim) if other != axis]
    order.insert(before - (axis < before), axis)
    return x.transpose(order)


@numpy_rule("expand_dims")
def expand_dims(a: Any, axis: Any) -> Tracer:
    x = as_array(a)
    rank = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    added = axes_of(axis, rank)
    index = tuple(None if k in added else slice(None) for k in range(rank))
    expanded: Tracer = x[index]
    return expanded


@numpy_rule("squeeze")
def squeeze(a: Any, axis: Any = None) -> Tracer:
    return as_tracer(a).squeeze(axis)


@numpy_rule("broadcast_to")
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tracer:
    x = as_array(array)
    target = tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    offset = len(target) - x.ndim
    if offset < 0 or any(size not in (1, full) for size, full in zip(x.shape, target[offset:], strict=True)):
        raise ShapeError(f"operands could not be broadcast together with remapped shapes {x.shape} and {target}")
    view: Tracer = x.viewed(BroadcastView(target))
    return view


@numpy_rule("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tracer, ...]:
    arrays = [as_array(arg) for arg in args]
    shape = broadcast_shape([array.shape for array in arrays])
    return tuple(array if array.shape == shape else broadcast_to(array, shape) for array in arrays)


def at_least(arrays: tuple[Any, ...], index: dict[int, Any]) -> Any:
    results = tuple(x[index[x.ndim]] if x.ndim in index else x for x in map(as_array, arrays))
    return results[0] if len(results) == 1 else results


@numpy_rule("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    return at_least(arys, {0: (None, ...)})


@numpy_rule("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    return at_least(arys, {0: (None, None, ...), 1: (None, slice(None))})


@numpy_rule("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    full = slice(None)
    return at_least(arys, {0: (None, None, None, ...), 1: (None, full, None), 2: (full, full, None)})


# --- order of elements -----------------------------------------------------------------------------------------------


@numpy_rule("flip")
def flip(m: Any, axis: Any = None) -> Tracer:
    x: Any = as_array(m)
    axes = axes_of(axis, x.ndim)
    flipped: Tracer = x[(*(slice(None, None, -1 if k in axes else None) for k in range(x.ndim)), ...)]
    return flipped


@numpy_rule("fliplr")
def fliplr(m: Any) -> Tracer:
    if as_tracer(m).ndim < 2:
        raise ShapeError("Input must be >= 2-d.")
    return flip(m, 1)


@numpy_rule("flipud")
def flipud(m: Any) -> Tracer:
    if as_tracer(m).ndim < 1:
        raise ShapeError("Input must be >= 1-d.")
    return flip(m, 0)


@numpy_rule("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tracer:
    x: Any = as_tracer(m)
    if len(tuple(axes)) != 2:
        raise ShapeError("len(axes) must be 2.")
    first, second = ordered_axes(tuple(axes), x.ndim)
    k %= 4
    if k == 0:
        return flip(x, ())
    if k == 2:
        return flip(x, (first, second))
    if k == 1:
        return flip(x, second).swapaxes(first, second)
    return flip(x.swapaxes(first, second), second)


@numpy_rule("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    from srcgrad.tracing.functions.joining import concatenate

    x: Any = as_array(a)
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    amounts = list(shift) if isinstance(shift, (list, tuple)) or np.ndim(shift) == 1 else [shift]
    if any(isinstance(amount, Tracer) and amount.number() is None for amount in amounts):
        places = list(axis) if isinstance(axis, (list, tuple)) else [axis]
        most = max(len(amounts), len(places))
        return rolled_by(x, amounts * (most // len(amounts)), places * (most // len(places)))
    shifts, axes = np.broadcast_arrays(concrete_array(shift, "np.roll's shift"), axis)
    for amount, place in zip(shifts.ravel(), axes.ravel(), strict=True):
        k = axis_of(int(place), x.ndim)
        cut = -int(amount) % x.shape[k] if x.shape[k] else 0
        if cut:
            x = concatenate((x[prefix(k, slice(cut, None))], x[prefix(k, slice(0, cut))]), axis=k)
    rolled: Tracer = x if x is not a else x.copy()
    return rolled


def rolled_by(x: Any, amounts: list[Any], axes: list[Any]) -> Tracer:
    """What is rolled by traced numbers is gathered.

    Raises:
        ShapeError: there are so many numbers and not as many axes.
        DTypeError: a number is none of the integers.
    """
    if len(amounts) != len(axes):
        raise ShapeError("shift and axis of np.roll do not broadcast to one length")
    for amount, axis in zip(amounts, axes, strict=True):
        if as_tracer(amount).dtype.kind not in "iub":
            raise DTypeError(f"np.roll takes integers, not {as_tracer(amount).dtype}", hint="round and cast: int(n)")
        place = axis_of(int(axis), x.ndim)
        size = x.shape[place]
        x = np.take(x, (np.arange(size) - amount) % max(size, 1), axis=place)
    rolled: Tracer = x
    return rolled


@numpy_rule("tile")
def tile(A: Any, reps: Any) -> Tracer:
    x = as_array(A)
    counts = [operator.index(count) for count in np.atleast_1d(concrete_array(reps, "np.tile's reps"))]
    rank = max(len(counts), x.ndim)
    counts = [1] * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.shape
    split = x.reshape([size for full in shape for size in (1, full)])
    full = broadcast_to(split, [size for pair in zip(counts, shape, strict=True) for size in pair])
    tiled = full.reshape([count * size for count, size in zip(counts, shape, strict=True)])
    return tiled.copy()


@numpy_rule("repeat", method="repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tracer:
    x, axis = along_axis(as_array(a), axis)
    counts = concrete_array(repeats, "np.repeat's repeats")
    if isinstance(repeats, (list, tuple)):  # an empty list is one of integers too
        counts = counts.astype(np.int64)
    size = x.shape[axis]
    if counts.size == 1:
        count = int(counts.ravel()[0])
        shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
        spread = broadcast_to(x[prefix(axis + 1, None)], shape)
        return spread.reshape((*x.shape[:axis], size * count, *x.shape[axis + 1 :])).copy()
    if counts.shape != (size,):
        raise ShapeError(f"operands could not be broadcast together with shape ({size},) {counts.shape}")
    repeated: Tracer = x[prefix(axis, np.repeat(np.arange(size), counts))]
    return repeated


@numpy_rule("resize")
def resize(a: Any, new_shape: Any) -> Tracer:
    x: Any = as_array(a).ravel()
    shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
    if any(size < 0 for size in shape):
        raise ShapeError("all elements of `new_shape` must be non-negative")
    count = int(np.prod(shape))
    if not x.size:
        return filled(shape, 0, x.dtype)
    taken: Tracer = x[np.arange(count) % x.size]
    return taken.reshape(shape)


# --- splitting: pieces are views -------------------------------------------------------------------------------------


@numpy_rule("split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    x = as_tracer(ary)
    if np.ndim(indices_or_sections) == 0:
        sections = operator.index(indices_or_sections)
        if sections > 0 and x.shape[axis_of(axis, x.ndim)] % sections:
            raise ShapeError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


@numpy_rule("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tracer]:
    x: Any = as_array(ary)
    axis = axis_of(axis, x.ndim)
    size = x.shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *(int(cut) for cut in concrete_array(indices_or_sections, "np.split's indices")), size]
    else:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ShapeError("number sections must be larger than 0.")
        each, extra = divmod(size, sections)
        cuts = [k * each + min(k, extra) for k in range(sections + 1)]
    return [x[prefix(axis, slice(a, b))] for a, b in itertools.pairwise(cuts)]


@numpy_rule("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = as_tracer(ary)
    if not x.ndim:
        raise ShapeError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@numpy_rule("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    if as_tracer(ary).ndim < 2:
        raise ShapeError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@numpy_rule("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    if as_tracer(ary).ndim < 3:
        raise ShapeError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@numpy_rule("unstack")
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tracer, ...]:
    array: Any = as_tracer(x)
    if not array.ndim:
        raise ShapeError("Input array must be at least 1-d.")
    return tuple(moveaxis(array, axis, 0))  # of a vector scalars, which are no views


@numpy_rule("trim_zeros")
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tracer:
    """Without the planes of zeros at the ends of the axes: which these are must be known."""
    x: Any = as_array(filt)
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ShapeError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = axes_of(axis, x.ndim)
    present = np.argwhere(known_nonzeros(x, "np.trim_zeros"))
    index = [slice(None)] * x.ndim
    for k in axes:
        if not len(present):
            index[k] = slice(0, 0)
            continue
        start = int(present[:, k].min()) if "f" in sides else 0
        stop = int(present[:, k].max()) + 1 if "b" in sides else x.shape[k]
        index[k] = slice(start, stop)
    trimmed: Tracer = x[(*index, ...)]
    return trimmed
