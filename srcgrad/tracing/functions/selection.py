"""Choosing between arrays and picking elements, and functions of each element that are no ufuncs."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, DTypeError, IndexingError, ShapeError, UnsupportedError
from srcgrad.ir.types import INT64
from srcgrad.tracing.functions.registry import (
    along_axis,
    as_array,
    axis_of,
    broadcast_shape,
    cast,
    concrete_array,
    finish,
    given,
    known_nonzeros,
    method_rule,
    numpy_rule,
    prefix,
    refuse,
    require,
    require_cast,
    scalar_if_rank0,
)
from srcgrad.tracing.ragged import Ragged
from srcgrad.tracing.tracer import Tracer, as_tracer, broadcast_tracer, contains_tracer, emit, from_value
from srcgrad.tracing.ufuncs import as_bool, operand, result_dtype
from srcgrad.tracing.views import DiagonalView


@numpy_rule("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ShapeError("either both or neither of x and y should be given")
    dtype = result_dtype(x, y)
    predicate = as_bool(as_tracer(condition))
    branches = [operand(branch, dtype) for branch in (x, y)]
    shape = broadcast_shape([predicate.shape, *(branch.shape for branch in branches)])
    full = [broadcast_tracer(x, shape) for x in (predicate, *branches)]
    return emit("select", *full, scalar=False).like_ufunc(predicate, *branches)


@numpy_rule("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ShapeError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ShapeError("select with an empty condition list is not possible")
    for number, condition in enumerate(condlist):
        if as_tracer(condition).dtype != np.bool_:
            raise DTypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    result = default
    dtype = result_dtype(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, operand(choice, dtype), operand(result, dtype))
    return result


@numpy_rule("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function is given the elements where its condition holds; of conditions that hold, the last one counts.

    NumPy does not call a function for no elements: what it would raise of them is not raised.
    """
    from srcgrad.tracing.conversion.calls import invoke  # which is written with the modules of tracing
    from srcgrad.tracing.conversion.effects import checked_where

    shape = as_tracer(x).shape
    array = as_array(x) if shape else as_array(x).reshape(1)
    conditions = [condition_of(condition, array) for condition in conditions_of(condlist, as_tracer(x))]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~reduce(np.logical_or, conditions))
    if len(funclist) != len(conditions):
        raise ShapeError(f"with {len(conditions)} condition(s), either that many or one more functions are expected")
    result = np.zeros_like(array)
    for condition, value in zip(conditions, funclist, strict=True):
        if not callable(value):
            result[condition] = value
            continue
        chosen = array[condition]
        if isinstance(chosen, Ragged):
            with checked_where(np.any(condition)):
                result[condition] = invoke(value, chosen, *args, **kw)
        elif chosen.size:
            result[condition] = invoke(value, chosen, *args, **kw)
    return result.reshape(shape)


def conditions_of(condlist: Any, x: Any) -> list[Any]:
    """The conditions; truth values in place of them are one condition, unless the array is a number."""
    if not isinstance(condlist, (list, tuple)) and not np.ndim(condlist):
        return [condlist]
    first = condlist[0]
    stands_alone = x.ndim and not isinstance(first, list) and not np.ndim(first)
    return [condlist] if stands_alone else list(condlist)


def condition_of(condition: Any, array: Any) -> Any:
    """A condition as an array of truth values: of a number one axis, or as the array for one of several."""
    found: Any = as_bool(as_tracer(condition)) if contains_tracer(condition) else np.asarray(condition, bool)
    return found if found.ndim else np.broadcast_to(found, array.shape)


@numpy_rule("choose", method="choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index: Any = as_tracer(a)
    if not np.can_cast(index.dtype, np.intp):
        raise DTypeError(
            f"np.choose takes an array of integers, not of {index.dtype}", hint="convert it: a.astype(int)"
        )
    options = [as_tracer(choice) for choice in choices]
    count = len(options)
    dtype = result_dtype(*choices)
    if mode == "clip":
        index = np.clip(index, 0, count - 1)
    elif mode == "wrap":
        index = index % count
    else:
        require(np.all((index >= 0) & (index < count)), "ValueError", "invalid entry in choice array")
    result = operand(options[-1], dtype)
    for k in range(count - 2, -1, -1):
        result = where(index == k, operand(options[k], dtype), result)
    shape = broadcast_shape([index.shape, *(option.shape for option in options)])
    return finish(scalar_if_rank0(broadcast_tracer(result, shape)), out)


# --- functions of each element ---------------------------------------------------------------------------------------


@numpy_rule("clip")
def clip(
    a: Any,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
    **kwargs: Any,
) -> Any:
    """``minimum(maximum(x, low), high)``: at a bound, x and the bound share the derivative equally."""
    refuse("np.clip", **{name: (value, None) for name, value in kwargs.items()})
    if (a_min is np._NoValue) != (a_max is np._NoValue):
        raise ArgumentError("np.clip takes both a_min and a_max, or none of them", hint="pass min= or max=")
    if a_min is not np._NoValue and not (min is max is np._NoValue):
        raise ShapeError("np.clip takes a_min and a_max, or min= and max=, not both")
    low = given(min, given(a_min, None))
    high = given(max, given(a_max, None))
    result = as_tracer(a)
    if result.dtype.kind in "iu":  # a Python number at an end of the dtype's range or beyond it is no bound
        ends = np.iinfo(result.dtype)
        low = None if type(low) is int and low <= ends.min else low
        high = None if type(high) is int and high >= ends.max else high
    dtype = result_dtype(*[part for part in (result, low, high) if part is not None])
    result = cast(result, dtype)
    if low is not None:
        result = np.maximum(result, low)
    if high is not None:
        result = np.minimum(result, high)
    return finish(result if result is not a else +as_tracer(a), out, broadcasts=True)


@method_rule("clip")
def clip_method(self: Any, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    return clip(self, min, max, out, **kwargs)


@numpy_rule("nan_to_num")
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    a = as_tracer(x)
    if a.dtype.kind not in "fc":
        result: Any = a if not copy else a.copy()
    elif a.dtype.kind == "c":
        result = emit("complex", *(finite(part, nan, posinf, neginf) for part in (a.real, a.imag)), scalar=False)
    else:
        result = finite(a, nan, posinf, neginf)
    if not copy and a is x and not a.scalar:
        a.write(result.read())
        return a
    return scalar_if_rank0(result)


def finite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    limits = np.finfo(x.dtype)
    for number in (nan, posinf, neginf):
        if number is not None:
            require_cast(as_tracer(number).dtype, x.dtype, "same_kind")
    result = where(np.isnan(x), nan, x)
    result = where(np.isposinf(x), limits.max if posinf is None else posinf, result)
    return cast(where(np.isneginf(x), limits.min if neginf is None else neginf, result), x.dtype)


@numpy_rule("round", "around", method="round")
def round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    x: Any = as_tracer(a)
    if isinstance(decimals, Tracer):
        decimals = int(decimals)
    if x.dtype.kind == "b":
        raise UnsupportedError("np.round of booleans is not supported on traced arrays")
    if x.dtype.kind == "c":
        return finish(emit("complex", round(x.real, decimals), round(x.imag, decimals)), out)
    if x.dtype.kind in "iu":
        if decimals >= 0:
            return finish(+x, out)
        unit = 10**-decimals
        return finish(cast(np.rint(x / unit) * unit, x.dtype), out)
    if decimals == 0:
        return finish(np.rint(x), out)
    unit = x.dtype.type(10.0 ** abs(decimals))
    return finish(np.rint(x * unit) / unit if decimals > 0 else np.rint(x / unit) * unit, out)


@numpy_rule("fix")
def fix(x: Any, out: Any = None) -> Any:
    return finish(np.trunc(x), out, broadcasts=True)


@numpy_rule("real")
def real(val: Any) -> Any:
    return as_tracer(val).real


@numpy_rule("imag")
def imag(val: Any) -> Any:
    return as_tracer(val).imag


@method_rule("conj")
def conj_method(self: Any) -> Any:
    return np.conjugate(self) if self.dtype.kind == "c" else self


method_rule("conjugate")(conj_method)


@numpy_rule("angle")
def angle(z: Any, deg: bool = False) -> Any:
    x: Any = as_tracer(z)
    result = np.arctan2(x.imag, x.real) if x.dtype.kind == "c" else np.arctan2(0, x)
    return result * (180 / np.pi) if deg else result


@numpy_rule("real_if_close")
def real_if_close(a: Any, tol: Any = 100) -> Any:
    x: Any = as_array(a)
    if x.dtype.kind != "c":
        return x
    bound = tol if tol <= 1 else tol * np.finfo(x.dtype).eps
    close: Any = np.all(np.absolute(x.imag) < bound)
    return x.real if close.concrete("np.real_if_close") else x


@numpy_rule("sinc")
def sinc(x: Any) -> Any:
    array = as_tracer(x)
    return emit("sinc", cast(array, np.float64) if array.dtype.kind in "biu" else array)


# --- picking elements ------------------------------------------------------------------------------------------------


@numpy_rule("take", method="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    x, axis = along_axis(as_array(a), axis)
    index: Any = positions(indices)
    size = x.shape[axis]
    if mode == "wrap":
        index = index % size
    elif mode == "clip":
        index = np.minimum(np.maximum(index, 0), size - 1)
    elif mode != "raise":
        raise UnsupportedError(f"np.take with mode={mode!r} is not supported", hint="use 'raise', 'wrap' or 'clip'")
    number = None if index.ndim else index.number()
    picked: Any = x[prefix(axis, from_value(index.read()) if number is None else int(number))]
    return finish(scalar_if_rank0(from_value(picked.read())), out)  # which is no view


def positions(indices: Any) -> Any:
    """Indices as ``np.take`` reads them: truth values are 0 and 1, and what is no array is rounded towards 0."""
    index = as_tracer(indices)
    if index.dtype.kind == "f" and (isinstance(indices, np.ndarray) or (index is indices and not index.scalar)):
        raise DTypeError(f"Cannot cast array data from {index.dtype} to int64 according to the rule 'same_kind'")
    return cast(index, np.intp) if index.dtype.kind in "bf" else index


@numpy_rule("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    x, index = as_array(arr), as_array(indices)
    if index.dtype.kind not in "iu":
        raise IndexingError("`indices` must be an integer array")
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    if index.ndim != x.ndim:
        raise ShapeError("`indices` and `arr` must have the same number of dimensions")
    try:
        outer = broadcast_shape([(*x.shape[:axis], 1, *x.shape[axis + 1 :]), index.shape])
    except ShapeError as error:
        raise IndexingError(f"shape mismatch: {error.message}") from None
    x = broadcast_tracer(x, (*outer[:axis], x.shape[axis], *outer[axis + 1 :]))
    return emit("take_along_axis", x, broadcast_tracer(cast(index, INT64), outer), axis=axis)


@numpy_rule("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    if axis is None:
        arr.flat[as_array(indices).ravel()] = values
        return
    if as_tracer(indices).dtype.kind not in "iu":
        raise IndexingError("`indices` must be an integer array")
    axis = axis_of(axis, arr.ndim)
    grid = [
        np.arange(size).reshape([-1 if k == other else 1 for other in range(arr.ndim)])
        for k, size in enumerate(arr.shape)
    ]
    arr[tuple(indices if k == axis else counter for k, counter in enumerate(grid))] = values


@numpy_rule("compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x: Any = as_array(a)
    if np.ndim(condition) != 1:
        raise ShapeError("condition must be a 1-d array")
    if axis is None:
        x, axis = x.ravel(), 0
    places = np.flatnonzero(concrete_array(condition, "np.compress's condition"))
    return finish(x[prefix(axis_of(axis, x.ndim), places)], out)


@method_rule("compress")
def compress_method(self: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return compress(condition, self, axis, out)


@numpy_rule("extract")
def extract(condition: Any, arr: Any) -> Any:
    places = np.flatnonzero(concrete_array(condition, "np.extract's condition"))
    array: Any = as_array(arr)
    return array.ravel()[places]


@numpy_rule("nonzero", method="nonzero")
def nonzero(a: Any) -> Any:
    return tuple(as_tracer(index) for index in np.nonzero(known_nonzeros(as_tracer(a), "np.nonzero")))


@numpy_rule("argwhere")
def argwhere(a: Any) -> Any:
    return as_tracer(np.argwhere(known_nonzeros(as_tracer(a), "np.argwhere")))


@numpy_rule("flatnonzero")
def flatnonzero(a: Any) -> Any:
    return as_tracer(np.flatnonzero(known_nonzeros(as_tracer(a), "np.flatnonzero")))


@numpy_rule("diagonal", method="diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A read-only view."""
    x = as_tracer(a)
    if x.ndim < 2:
        raise ShapeError("diag requires an array of at least two dimensions")
    first, second = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    if first == second:
        raise ShapeError("axis1 and axis2 cannot be the same")
    return x.viewed(DiagonalView(int(offset), first, second))


@numpy_rule("linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@numpy_rule("trace", method="trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return finish(np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype), out)


@numpy_rule("linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@numpy_rule("unravel_index")
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """The digits of the index: traced arithmetic."""
    rest: Any = position(indices)
    sizes = tuple(shape) if np.iterable(shape) else (shape,)
    count = math.prod(sizes)
    message = f"an index is out of bounds for array with size {count}"
    require(np.all((rest >= 0) & (rest < count)), "ValueError", message)
    digits = []
    for size in sizes if order == "F" else reversed(sizes):
        digits.append(rest % size)
        rest = rest // size
    return tuple(digits if order == "F" else reversed(digits))


@numpy_rule("ravel_multi_index")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """The index that the digits make: traced arithmetic."""
    sizes = tuple(dims) if np.iterable(dims) else (dims,)
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    digits = [position(index) for index in multi_index]
    if all(digit.size for digit in digits):  # of no index nothing is asked
        if 0 in sizes and "raise" not in modes:
            raise ShapeError("cannot unravel if shape has zero entries (is empty).")
        digits = [in_bounds(digit, size, how) for digit, size, how in zip(digits, sizes, modes, strict=True)]
    total: Any = 0
    pairs = list(zip(digits, sizes, strict=True))
    for digit, size in reversed(pairs) if order == "F" else pairs:
        total = total * size + digit
    return total


def position(index: Any) -> Any:
    """An integer in the dtype of NumPy's positions, in which products of sizes do not wrap around."""
    found = as_tracer(index)
    if found.dtype.kind not in "iu":
        raise DTypeError("only int indices permitted")
    return cast(found, np.intp)


def in_bounds(index: Any, size: int, mode: str) -> Any:
    if mode == "wrap":
        return index % size
    if mode == "clip":
        return np.minimum(np.maximum(index, 0), size - 1)
    if mode != "raise":
        raise ShapeError(f"mode {mode!r} is none of 'raise', 'wrap' and 'clip'")
    require(np.all((index >= 0) & (index < size)), "ValueError", "invalid entry in coordinates array")
    return index
