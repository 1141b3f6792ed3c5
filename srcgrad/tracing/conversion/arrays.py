"""Functions of NumPy that make arrays and do not dispatch: intercepted where converted code calls them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.errors import IndexingError, ShapeError, UnsupportedError
from srcgrad.tracing.asked import Asked
from srcgrad.tracing.conversion.asked_objects import complex_of, float_of
from srcgrad.tracing.conversion.calls import CALLS, call, call_rule, traced_among
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.fresh_arrays import lifted
from srcgrad.tracing.conversion.varying import array_for
from srcgrad.tracing.flags import taken_as_writeable
from srcgrad.tracing.functions.options import refuse_unless, require_options
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.shapes import broadcast_to
from srcgrad.tracing.layout import order_name
from srcgrad.tracing.ragged import sized
from srcgrad.tracing.tracer import FUNCTIONS, Deferring, Tracer, as_tracer, contains_tracer
from srcgrad.tracing.views import StridedView


def made(function: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result the user may write traced values into: a constant of the trace."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tracer) and function not in LIKE:
            found = sized(args[0], lambda size: run(size, *args[1:], **kwargs))
            if found is not None:
                return found
        return lifted(run(*args, **kwargs))

    return rule


def unwritten(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, but the new array holds zeros: whatever its memory held would be a constant of the program, another
    one in each process, and as large as the array."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if type(found) is np.ndarray and found.base is None and not found.dtype.hasobject:
            found[...] = np.zeros((), found.dtype)
        return found

    return rule


LIKE: Final = (np.zeros_like, np.ones_like, np.empty_like)
for _function in (np.zeros, np.ones, *LIKE[:2]):
    call_rule(_function)(made(_function, _function))
for _maker in (np.empty, np.empty_like, np.ndarray):
    call_rule(_maker)(made(_maker, unwritten(_maker)))


def require_keywords(function: Callable[..., Any], given: dict[str, Any], **named: Any) -> None:
    """Refuse keywords that NumPy's function does not take, and values of them that it refuses."""
    require_options(function, named)
    refuse_unless(lambda options: function(*[1] * (2 if function is np.full else 1), **options), given)


@call_rule(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    if not contains_tracer(fill_value):
        return lifted(np.full(shape, fill_value, dtype, order, **options))  # type: ignore[call-overload]
    value: Any = as_array(fill_value)
    require_keywords(np.full, options, order=order)
    size = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return broadcast_to(value if dtype is None else cast(value, dtype), size).copy()


@call_rule(np.ndenumerate)
def ndenumerate(arr: Any) -> Any:
    if not isinstance(arr, Tracer):
        return np.ndenumerate(arr)
    return ((place, arr[place]) for place in np.ndindex(arr.shape))


class Broadcast:
    """``np.broadcast`` of traced arrays, as far as shapes go."""

    def __init__(self, shape: tuple[int, ...], count: int) -> None:
        self.shape, self.numiter = shape, count
        self.nd = self.ndim = len(shape)
        self.size = math.prod(shape)

    def __iter__(self) -> Any:
        raise UnsupportedError(
            "the elements of np.broadcast(...) of traced arrays are not supported",
            hint="run over the arrays that np.broadcast_arrays makes",
        )


@call_rule(np.broadcast)
def broadcast(*arrays: Any) -> Any:
    if not traced_among(arrays, {}):
        return np.broadcast(*arrays)
    return Broadcast(np.broadcast_shapes(*map(np.shape, arrays)), len(arrays))


@call_rule(np.kaiser)
def kaiser(M: Any, beta: Any) -> Any:
    if not contains_tracer(beta):
        return np.kaiser(M, beta)
    count: Any = 0 if M < 1 else operator.index(M)
    if count < 2:
        return np.ones(count)
    middle = (count - 1) / 2
    rises = np.sqrt(1 - ((np.arange(count) - middle) / middle) ** 2)
    return np.i0(as_array(beta) * rises) / np.i0(as_array(beta))


@call_rule(np.full_like)
def full_like(a: Any, fill_value: Any, *args: Any, **options: Any) -> Any:
    if contains_tracer(fill_value) or isinstance(a, Tracer):
        return FUNCTIONS[np.full_like](a, fill_value, *args, **options)
    return lifted(np.full_like(a, fill_value, *args, **options))


@call_rule(np.array)
def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0,
    **options: Any,
) -> Any:  # fmt: skip
    object, copy = array_for(object), copying(copy)
    if isinstance(object, Deferring) and is_of(object, dtype) and not ndmin:
        return object.copy() if copy else object
    if not contains_tracer(object):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, **options)  # type: ignore[call-overload]
    require_keywords(np.array, options, dtype=dtype, order=order, copy=copy, subok=subok)
    found = as_real_array(object, dtype, order, copy)
    while found.ndim < ndmin:
        found = found[None]
    return found


def copying(copy: Any) -> Any:
    """What ``copy=`` says: by NumPy's enumeration, which has no truth, as the array API's namespaces do."""
    return {0: False, 1: True}.get(copy.value) if type(copy) is np._CopyMode else copy


def is_of(array: Any, dtype: Any) -> bool:
    """Whether an array has the dtype that is asked for, if one is."""
    return dtype is None or np.dtype(dtype) == array.dtype


def as_real_array(x: Any, dtype: Any, order: str | None = "K", copy: bool | None = None) -> Any:
    """What ``np.array`` makes of traced values: an array, never a scalar, and a copy where NumPy makes one.

    Raises:
        ShapeError: it would be a copy, and ``copy`` is false.
    """
    own = isinstance(x, Tracer) and not x.scalar
    array: Any = as_array(x)
    target = np.dtype(dtype or array.dtype)
    name = order_name(order)
    if own and not copy and target == array.dtype and name == "A":  # any order will do
        name = "K"
    found = array.astype(target, name, copy=copy if own else not array.stands_in(name))
    if copy is not None and not copy and (found is not array or not own):
        raise ShapeError("Unable to avoid creating a copy while creating an array as requested.")
    return found


@call_rule(np.asarray)
def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **options: Any) -> Any:
    a, copy = array_for(a), copying(copy)
    if isinstance(a, Deferring) and is_of(a, dtype):
        return a.copy() if copy else a
    if not contains_tracer(a):
        return np.asarray(a, dtype, order, copy=copy, **options)
    require_keywords(np.asarray, options, dtype=dtype, order=order, copy=copy)
    return as_real_array(a, dtype, order, copy)


@call_rule(Asked.__array__)
def as_numpy_asks(x: Any, dtype: Any = None, copy: Any = None) -> Any:
    """``x.__array__()`` in the user's code."""
    return as_real_array(x, dtype, copy=copy)


@call_rule(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None, order: Any = None, **options: Any) -> Any:
    if not (contains_tracer(a) or isinstance(a, Deferring)):
        return np.asanyarray(a, dtype, order, **options)
    return asarray(a, dtype, order, **options)


@call_rule(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    if not (contains_tracer(a) or isinstance(a, Deferring)):
        return np.asarray_chkfinite(a, dtype, order)
    found = asarray(a, dtype, order)
    if isinstance(found, Tracer) and found.dtype.kind in "fc":
        emit_check(np.all(np.isfinite(found)), "ValueError", "array must not contain infs or NaNs")
    return found


@call_rule(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    found = asarray(a, dtype, "C", **options)
    return found if found.ndim else found.reshape(1)


@call_rule(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, **options: Any) -> Any:
    found = asarray(a, dtype, "F", **options)
    return found if found.ndim else found.reshape(1)


@call_rule(np.arange)
def arange(*args: Any, dtype: Any = None, **options: Any) -> Any:
    if not traced_among(args, {}):
        return np.arange(*args, dtype=dtype, **options)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    bounds = [bound.number() if isinstance(bound, Tracer) else bound for bound in (start, stop, step)]
    if any(bound is None for bound in bounds):  # the size depends on a value
        found = None if options else arange_of_size(as_whole(start), as_whole(stop), as_whole(bounds[2]), dtype)
        if found is not None:
            return found
        if not any(isinstance(bound, Tracer) and bound.dtype.kind == "f" for bound in (start, stop, step)):
            bounds = [int(bound) if isinstance(bound, Tracer) and bound.dtype.kind in "iu" else bound for bound in args]
            return np.arange(*bounds, dtype=dtype, **options)
        count = int(many((stop - start) / step, stop - start))  # where one path is traced, this is asked
    else:
        count = len(np.arange(*bounds))
    values: Any = start + (step * np.arange(count) if count > 1 else np.zeros(count, np.int64))  # 0 inf is nan
    if dtype is None:  # also of what decides the length alone
        dtype = np.result_type(*[as_tracer(bound).dtype for bound in (start, stop, step, values)])
    return values.astype(dtype, copy=False)


def as_whole(bound: Any) -> tuple[Any, bool]:
    """A number, a whole one where a float is that, and whether it is a float."""
    if isinstance(bound, (float, np.floating)):
        return (int(bound) if np.isfinite(bound) and bound == int(bound) else None), True
    whole = isinstance(bound, (int, np.integer)) or (isinstance(bound, Tracer) and bound.dtype.kind == "i")
    return (bound if whole else None), False


def arange_of_size(start: tuple[Any, bool], stop: tuple[Any, bool], step: tuple[Any, bool], dtype: Any) -> Any:
    """``np.arange`` between whole numbers, floats among them, if it is known between which numbers its size is."""
    (first, last, by), inexact = zip(start, stop, step, strict=True)
    if first is None or last is None or isinstance(by, Tracer) or not by:
        return None
    if any(inexact):
        if dtype is not None and np.dtype(dtype).kind != "f":
            return None
        dtype = dtype or np.dtype(np.float64)
    span, size = (last - first, int(by)) if by > 0 else (first - last, -int(by))
    found: Any = sized(span if size == 1 else (span + (size - 1)) // size, lambda size: np.arange(size, dtype=dtype))
    if found is None:
        return None
    found = found if by == 1 else found * int(by)
    return found if isinstance(first, int) and not first else found + first


def many(ratio: Any, span: Any) -> Any:
    """How many numbers ``np.arange`` has: one where the step is so large that its share of the span is 0.

    Raises:
        ValueError: nan or infinity, when the program runs.
    """
    emit_check(np.isfinite(ratio), "ValueError", "arange: cannot compute length")
    return np.where((ratio == 0) & ~np.signbit(ratio) & (span != 0), 1, np.ceil(ratio)).astype(np.int64)


def scalar_type(kind: type[np.generic]) -> Callable[..., Any]:
    """``np.float64(x)`` and its kin, ``np.complex128(real, imag)`` among them."""
    of = (
        complex_of
        if issubclass(kind, np.complexfloating)
        else float_of
        if issubclass(kind, np.floating)
        else lambda x: x
    )

    def rule(*args: Any) -> Any:
        args = tuple(map(of, args))
        if not contains_tracer(args):
            return kind(*args)
        found: Any = as_tracer(args[0] if len(args) == 1 else CALLS[complex](*args))
        result = found.astype(kind)
        return result.as_scalar(True) if not result.ndim else result

    return rule


for _kind in (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
):  # fmt: skip
    CALLS.setdefault(_kind, scalar_type(_kind))


@call_rule(np.fromfunction)
def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **options: Any) -> Any:
    return call(function, *np.indices(shape, dtype=dtype), **options)


@call_rule(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    items = list(iter if count < 0 else itertools.islice(iter, count))
    if not contains_tracer(items):
        return np.fromiter(items, dtype, count, **options)
    if len(items) < count:
        raise ShapeError("iterator too short")
    return as_real_array(items, dtype)


@call_rule(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """
    Raises:
        UnsupportedError: it asks for an array that owns its memory: of an argument that is not known.
    """
    if not contains_tracer(a):
        return np.require(a, dtype, requirements)
    asked = {str(name).upper() for name in requirements or ()}
    order = "C" if asked & CONTIGUOUS else "F" if asked & FORTRAN else "A" if asked else "K"
    if asked & CONTIGUOUS and asked & FORTRAN:
        raise ShapeError('Cannot specify both "C" and "F" order')
    found = as_real_array(a, dtype, order)
    if isinstance(a, Tracer) and found.storage is a.storage:
        if asked & {"O", "OWNDATA"}:
            raise UnsupportedError(
                "np.require of an array that owns its memory is not supported on traced arrays",
                hint="make a copy: x.copy()",
            )
        if asked & {"W", "WRITEABLE"} and not taken_as_writeable(found):
            return found.copy(order)
    return found


CONTIGUOUS: Final = {"C", "C_CONTIGUOUS", "CONTIGUOUS"}
FORTRAN: Final = {"F", "F_CONTIGUOUS", "FORTRAN"}


def offsets(shape: Sequence[int], strides: Sequence[int]) -> Any:
    """How far in memory, in bytes, each element is from the first."""
    total: Any = np.zeros((), np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        total = total + (np.arange(size) * stride).reshape((size,) + (1,) * (len(shape) - axis - 1))
    return total


@call_rule(np.lib.stride_tricks.as_strided)
def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """A view, but one that is not written through.

    Raises:
        IndexingError: it would show memory outside of the array.
    """
    if not isinstance(x, Tracer):
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    x.require_layout()
    sizes = x.shape if shape is None else tuple(map(operator.index, shape))
    steps = x.strides if strides is None else tuple(map(operator.index, strides))
    own, asked = offsets(x.shape, x.strides).ravel(), offsets(sizes, steps)
    order = np.argsort(own, kind="stable")
    places = order[np.minimum(np.searchsorted(own[order], asked), max(own.size - 1, 0))] if own.size else asked
    if asked.size and (not own.size or not np.array_equal(own[places], asked)):
        raise IndexingError(
            "as_strided shows memory that is not the array's own",
            hint="strides are in bytes: multiply by x.itemsize; or use np.lib.stride_tricks.sliding_window_view",
        )
    return as_array(x).viewed(StridedView(sizes, steps, places))


@call_rule(np.isscalar)
def isscalar(element: Any) -> bool:
    return element.scalar if isinstance(element, Tracer) else np.isscalar(element)


@call_rule(np.iterable)
def iterable(y: Any) -> bool:
    return y.ndim > 0 if isinstance(y, (Tracer, Deferring)) else np.iterable(y)
