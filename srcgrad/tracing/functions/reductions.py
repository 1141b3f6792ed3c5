"""Sums, products, extremes, logical reductions, and cumulative ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.ir.types import DType
from srcgrad.tracing.functions.registry import (
    along_axis,
    as_array,
    axis_of,
    cast,
    filled,
    finish,
    given,
    numpy_rule,
    reduced_axes,
    require,
    require_cast,
    scalar_if_rank0,
)
from srcgrad.tracing.tracer import Tracer, as_tracer, emit
from srcgrad.tracing.ufuncs import REDUCTIONS, as_bool, require_mask, require_traced_out


def accumulator(dtype: DType, requested: Any, out: Any = None) -> DType:
    """The dtype of a sum or product: one that holds ``out=`` too; else small integers get the default one."""
    if given(requested, None) is not None:
        asked: DType = np.dtype(requested)
        return asked
    target = out[0] if isinstance(out, tuple) else out
    if isinstance(target, Tracer):
        return np.result_type(dtype, target.dtype)
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize < np.dtype(np.int_).itemsize):
        return np.dtype(np.int_)
    if dtype.kind == "u" and dtype.itemsize < np.dtype(np.uint).itemsize:
        return np.dtype(np.uint)
    return dtype


def restored(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: Any) -> Any:
    """Put the reduced axes back with size 1 if ``keepdims``."""
    if not given(keepdims, False):
        return result
    return result.reshape(tuple(1 if axis in axes else size for axis, size in enumerate(shape)))


def masked(x: Any, where: Any, identity: Any) -> Any:
    """The elements that take part; the identity elsewhere."""
    if given(where, True) is True:
        return x
    require_mask(where)
    replacement = identity if isinstance(identity, Tracer) else np.asarray(identity, x.dtype)[()]
    chosen = np.where(where, x, replacement)
    if chosen.shape != x.shape:
        raise ShapeError(f"where= of shape {np.shape(where)} does not broadcast to the operand's shape {x.shape}")
    return chosen


def fold(
    op: str,
    ufunc: np.ufunc,
    identity: Any,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Any:
    """A reduction that has an identity."""
    x = as_tracer(a)
    x = masked(cast(x, accumulator(x.dtype, dtype, out)), where, identity)
    axes = reduced_axes(axis, x.ndim)
    if initial is None and (given(where, True) is not True or not all(x.shape[axis] for axis in axes)):
        raise ShapeError(f"reduction operation '{ufunc.__name__}' does not have an identity where initial is None")
    if x.dtype.kind == "b":  # asked for with dtype=bool: a disjunction or conjunction
        op = "reduce_or" if op == "reduce_sum" else "reduce_and"
    result = restored(emit(op, x, axes=axes), x.shape, axes, keepdims)
    if given(initial, None) is not None:
        result = cast(ufunc(result, first_of(initial, x.dtype)), x.dtype)
    return put(result, out)


def put(result: Any, out: Any) -> Any:
    """What a sum or product gives with ``out=``: NumPy casts it by any rule, so that floats go into integers too."""
    target = out[0] if isinstance(out, tuple) else out
    if isinstance(target, Tracer) and result.dtype.kind != "c":
        result = cast(result, target.dtype)
    return finish(result, out)


def first_of(initial: Any, dtype: DType) -> Any:
    """The number that a reduction begins with."""
    if np.ndim(initial):
        raise ShapeError("initial= takes one number, not an array")
    if as_tracer(initial).dtype.kind == "c" and dtype.kind != "c":
        raise DTypeError(f"initial= is complex, and the result is of {dtype}")
    return cast(initial, dtype)


@numpy_rule("sum", method="sum")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return fold("reduce_sum", np.add, 0, a, axis, dtype, out, keepdims, initial, where)


@numpy_rule("prod", method="prod")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return fold("reduce_prod", np.multiply, 1, a, axis, dtype, out, keepdims, initial, where)


# --- extremes --------------------------------------------------------------------------------------------------------


def extreme(name: str, ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    x = as_tracer(a)
    start = given(initial, None)
    if start is None and given(where, True) is not True:
        raise ShapeError(f"reduction operation '{ufunc.__name__}' does not have an identity: where= takes initial=")
    axes = reduced_axes(axis, x.ndim)
    empty = any(x.shape[axis] == 0 for axis in axes)
    if start is None:
        if empty:
            raise ShapeError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    else:
        start = first_of(start, x.dtype)
        x = masked(x, where, start)
    if empty:
        shape = tuple(size for k, size in enumerate(x.shape) if k not in axes)
        result: Any = np.broadcast_to(start, shape).copy() if shape else start
    else:
        result = complex_extreme(name, x, axes) if x.dtype.kind == "c" else emit(f"reduce_{name}", x, axes=axes)
        result = result if start is None else ufunc(result, start)
    return finish(restored(result, x.shape, axes, keepdims), out)


def complex_extreme(name: str, x: Any, axes: tuple[int, ...]) -> Any:
    """Complex numbers are ordered by their real parts, and where those are equal by their imaginary ones."""
    order = [k for k in range(x.ndim) if k not in axes] + list(axes)
    moved = np.transpose(x, order)
    kept = moved.shape[: x.ndim - len(axes)]
    flat = moved.reshape((*kept, math.prod(moved.shape[len(kept) :])))
    chosen, last = extremal(name, flat), flat.ndim - 1
    worst = flat.real.dtype.type(-np.inf if name == "max" else np.inf)
    among: list[Any] = [np.where(chosen, part, worst) for part in (flat.real, flat.imag)]
    return emit("complex", *[emit(f"reduce_{name}", part, axes=(last,)) for part in among])


def extremal(name: str, x: Any) -> Any:
    """Where in each row of complex numbers the extremes stand; if there is a nan, where the first one stands."""
    last = x.ndim - 1
    worst = x.real.dtype.type(-np.inf if name == "max" else np.inf)

    def best(part: Any, among: Any) -> Any:
        candidates: Any = np.where(among, part, worst)
        return among & (part == as_array(emit(f"reduce_{name}", candidates, axes=(last,)))[..., None])

    is_nan = np.isnan(x)
    first = np.arange(x.shape[-1]) == as_array(emit("argmax", is_nan, axis=last))[..., None]
    has_nan = as_array(emit("reduce_or", is_nan, axes=(last,)))[..., None]
    return np.where(has_nan, first, best(x.imag, best(x.real, ~is_nan)))


@numpy_rule("max", "amax", method="max")
def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return extreme("max", np.maximum, a, axis, out, keepdims, initial, where)


@numpy_rule("min", "amin", method="min")
def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return extreme("min", np.minimum, a, axis, out, keepdims, initial, where)


@numpy_rule("ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue) -> Any:
    return finish(max(a, axis, None, keepdims) - min(a, axis, None, keepdims), out)


def finite_constant(maxima: Any) -> Any:
    """The maxima as constants, 0 where they are not finite."""
    return np.where(np.isfinite(maxima), emit("stop_gradient", maxima), maxima.dtype.type(0))


def logaddexp_reduce(a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """``np.logaddexp.reduce``: the logarithm of a sum of exponentials, none of which overflows.

    Their common factor is a constant, which leaves the derivatives as they are. An infinite one is the largest element,
    so that those that tie share the derivative, as in logaddexp.
    """
    x: Any = as_tracer(a) if dtype is None else cast(a, dtype)
    dtype = np.result_type(x.dtype, np.float16) if x.dtype.kind in "biu" else x.dtype
    x = cast(x, np.float64) if x.dtype.kind in "biu" else x
    least = np._NoValue if x.size else -np.inf  # the logarithm of no terms
    maxima: Any = as_array(max(x, axis, None, True, least))
    shift = finite_constant(maxima)
    total = np.where(np.isinf(maxima), maxima, np.log(sum(np.exp(x - shift), axis, None, None, True)) + shift)
    found = total if keepdims else scalar_if_rank0(total.squeeze(axis))
    return finish(cast(found, dtype), out)


REDUCTIONS[np.logaddexp] = logaddexp_reduce


def position(op: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x: Any = as_array(a)
    axes = reduced_axes(axis, x.ndim)
    shape = x.shape
    if out is not None:
        require_cast(getattr(out, "dtype", np.dtype(np.intp)), np.intp)
        require_traced_out(out)
    if axis is None or not x.ndim:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    if not x.shape[axis]:
        raise ShapeError(f"attempt to get {op} of an empty sequence")
    if x.dtype.kind == "c":
        x, op = np.moveaxis(extremal(op.removeprefix("arg"), np.moveaxis(x, axis, -1)), -1, axis), "argmax"
    return finish(restored(emit(op, x, axis=axis), shape, axes, keepdims), out)


@numpy_rule("argmax", method="argmax")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
    return position("argmax", a, axis, out, keepdims)


@numpy_rule("argmin", method="argmin")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
    return position("argmin", a, axis, out, keepdims)


# --- logic -----------------------------------------------------------------------------------------------------------


@numpy_rule("all", method="all")
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, *, where: Any = np._NoValue) -> Any:
    x = masked(as_bool(as_tracer(a)), where, True)
    axes = reduced_axes(axis, x.ndim)
    return finish(restored(emit("reduce_and", x, axes=axes), x.shape, axes, keepdims), out)


@numpy_rule("any", method="any")
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, *, where: Any = np._NoValue) -> Any:
    x = masked(as_bool(as_tracer(a)), where, False)
    axes = reduced_axes(axis, x.ndim)
    return finish(restored(emit("reduce_or", x, axes=axes), x.shape, axes, keepdims), out)


@numpy_rule("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return sum(as_bool(as_tracer(a)), axis, np.int_, None, keepdims)


# --- cumulative ------------------------------------------------------------------------------------------------------


def cumulate(op: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    x, axis = along_axis(as_array(a), axis)
    x = cast(x, accumulator(x.dtype, dtype, out))
    if x.dtype.kind == "b":  # asked for with dtype=bool: disjunctions or conjunctions
        return finish(as_bool(cumulate(op, cast(x, np.int_), axis, None, None)), out)
    if op == "cumsum":
        return put(emit("cumsum", x, axis=axis, reverse=False), out)
    return put(emit("cumprod", x, axis=axis), out)


@numpy_rule("cumsum", method="cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumulate("cumsum", a, axis, dtype, out)


@numpy_rule("cumprod", method="cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumulate("cumprod", a, axis, dtype, out)


def cumulative(op: str, identity: int, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> Any:
    array = as_array(x)
    if axis is None:
        if array.ndim > 1:
            raise ShapeError(f"For arrays which have more than one dimension ``axis`` argument is required ({op}).")
        axis = 0
    if not array.ndim:
        array = array.ravel()
    axis = axis_of(axis, array.ndim)
    result = cumulate(op, array, axis, dtype, None)
    if include_initial:
        first = filled(tuple(1 if k == axis else size for k, size in enumerate(result.shape)), identity, result.dtype)
        result = np.concatenate([first, result], axis=axis)
    return finish(result, out)


@numpy_rule("cumulative_sum")
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return cumulative("cumsum", 0, x, axis, dtype, out, include_initial)


@numpy_rule("cumulative_prod")
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return cumulative("cumprod", 1, x, axis, dtype, out, include_initial)


# --- reductions that leave nan out -----------------------------------------------------------------------------------


def without_nan(a: Any, number: Any) -> Any:
    x = as_tracer(a)
    return np.where(np.isnan(x), np.asarray(number, x.dtype)[()], x) if x.dtype.kind in "fc" else x


@numpy_rule("nansum")
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return sum(without_nan(a, 0), axis, dtype, out, keepdims, initial, where)


@numpy_rule("nanprod")
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return prod(without_nan(a, 1), axis, dtype, out, keepdims, initial, where)


def nan_extreme(rule: Any, worst: float, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """An extreme of what is not nan; nan where nothing else is."""
    x = as_tracer(a)
    result = rule(without_nan(x, worst), axis, None, keepdims, initial, where)
    if x.dtype.kind in "fc" and given(initial, None) is None:
        result = np.where(all(np.isnan(x), axis, None, keepdims), x.dtype.type(np.nan), result)
        result = result if result.ndim else result[()]
    return finish(result, out)


@numpy_rule("nanmax")
def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return nan_extreme(max, -np.inf, a, axis, out, keepdims, initial, where)


@numpy_rule("nanmin")
def nanmin(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = np._NoValue,
    initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:
    return nan_extreme(min, np.inf, a, axis, out, keepdims, initial, where)


@numpy_rule("nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumsum(without_nan(a, 0), axis, dtype, out)


@numpy_rule("nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumprod(without_nan(a, 1), axis, dtype, out)


@numpy_rule("nanargmax")
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
    require_numbers(a, axis)
    return argmax(without_nan(a, -np.inf), axis, out, keepdims=keepdims)


@numpy_rule("nanargmin")
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
    require_numbers(a, axis)
    return argmin(without_nan(a, np.inf), axis, out, keepdims=keepdims)


def require_numbers(a: Any, axis: Any) -> None:
    """NumPy's error where nothing but nan stands along the axis, when the program runs."""
    x = as_tracer(a)
    if x.dtype.kind in "fc":
        require(~np.any(all(np.isnan(x), axis)), "ValueError", "All-NaN slice encountered")
