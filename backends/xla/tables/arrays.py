"""Shapes, products, reductions, cumulative operations and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from jax import lax

from srcgrad.backends.xla.program import Application, on_cpu
from srcgrad.backends.xla.tables import HALF, SINGLE, Array, cast, contextual, full_like, is_complex, is_nan
from srcgrad.backends.xla.tables import through_single as widened
from srcgrad.backends.xla.tables.elementwise import parts
from srcgrad.ir.core import Literal

Axes = tuple[int, ...]
BOOL: Final = np.dtype(np.bool_)
BYTE: Final = np.dtype(np.uint8)
DOUBLE: Final = np.dtype(np.float64)
INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)


# --- shapes -------------------------------------------------------------------------------------------


def iota(shape: Axes, axis: int, dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "cb":
        return cast(lax.broadcasted_iota(INT64, shape, axis), dtype)
    return lax.broadcasted_iota(dtype, shape, axis)


@contextual
def dot_general(application: Application, left: Array, right: Array) -> Array:
    """In full precision on every device; float16 is summed in float32; of booleans, whether any pair is true."""
    contract, batch = application.attrs["contract"], application.attrs["batch"]
    dtype = left.dtype
    for position, other in ((0, right), (1, left)):
        value = application.operation.operands[position]
        if isinstance(value, Literal) and value.splat and dtype in (SINGLE, DOUBLE) and not batch[0]:
            return times_a_number(value, other, position, contract)
    if dtype == BOOL:
        left, right = cast(left, INT32), cast(right, INT32)
    if left.size and all(left.shape[axis] == 1 for axis in contract[0]):
        return cast(outer(left, right, contract, batch), dtype)
    found = lax.dot_general(
        left,
        right,
        (contract, batch),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=SINGLE if dtype == HALF else left.dtype,
    )
    return cast(found, dtype)


def times_a_number(value: Literal, other: Array, position: int, contract: tuple[Axes, Axes]) -> Array:
    """The product with an array of one number: sums over the contracted axes, times the number."""
    free = [size for axis, size in enumerate(value.type.static_shape) if axis not in contract[position]]
    sums = lax.mul(lax.reduce_sum(other, contract[1 - position]), np.asarray(value.value))
    shape = (*free, *sums.shape) if position == 0 else (*sums.shape, *free)
    first = len(free) if position == 0 else 0
    return lax.broadcast_in_dim(sums, shape, range(first, first + sums.ndim))


def outer(left: Array, right: Array, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> Array:
    """The product over axes of size 1, without a call of a matrix product, which costs some microseconds."""
    free = [
        [axis for axis in range(x.ndim) if axis not in contracted and axis not in shared]
        for x, contracted, shared in zip((left, right), contract, batch, strict=True)
    ]
    shared, own, other = len(batch[0]), len(free[0]), len(free[1])
    turned = [
        lax.squeeze(lax.transpose(x, (*axes, *rest, *contracted)), range(len(axes) + len(rest), x.ndim))
        for x, axes, rest, contracted in zip((left, right), batch, free, contract, strict=True)
    ]
    shape = (*turned[0].shape, *turned[1].shape[shared:])
    places = (tuple(range(shared + own)), (*range(shared), *range(shared + own, shared + own + other)))
    spread = [lax.broadcast_in_dim(x, shape, dims) for x, dims in zip(turned, places, strict=True)]
    return lax.mul(*spread)


# --- reductions ---------------------------------------------------------------------------------------


@contextual
def reduce_sum(application: Application, x: Array) -> Array:
    """The sum, which begins with 0.0: no sum is -0.0."""
    axes = application.attrs["axes"]
    if not axes:  # XLA takes x + 0.0 for x
        x, axes = lax.expand_dims(x, (x.ndim,)), (x.ndim,)

    def line(x: Array) -> Array:
        found: Array = lax.reduce_sum(x, axes=axes)
        if not application.program.rules and not on_cpu():
            found = without_negative_zeros(found)
        return apart(found) if found.dtype == SINGLE and not found.ndim and not application.program.rules else found

    return widened(line)(x)


def without_negative_zeros(x: Array) -> Array:
    """The same numbers, with 0.0 for -0.0. GPUs begin a sum with its first element, and take x + 0.0 for x."""
    if is_complex(x):
        return lax.complex(*(without_negative_zeros(part) for part in parts(x)))
    if x.dtype.kind != "f":
        return x
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))
    sign = full_like(bits, 1 << (8 * x.dtype.itemsize - 1))
    return lax.bitcast_convert_type(lax.select(lax.eq(bits, sign), full_like(bits, 0), bits), x.dtype)


def apart(x: Array) -> Array:
    """The same number, in an operation of its own: bit by bit, twice negated.

    XLA for CPUs makes one kernel of a sum of float32, what is summed and what is done with the sum, as far as all of it
    is elementwise; such kernels use one thread and take longer than their parts. It makes none past this operation.
    """
    return lax.neg(lax.neg(x))


def reduce_prod(x: Array, axes: Axes) -> Array:
    return widened(lax.reduce_prod)(x, axes=axes)


@widened
def reduce_norm(x: Array, axes: Axes) -> Array:
    size = lax.abs(x)
    return lax.sqrt(lax.reduce_sum(lax.mul(size, size), axes))


def extreme_index(line: Callable[..., Array], extreme: Callable[..., Array]) -> Callable[..., Array]:
    """The first position of an extreme; booleans are compared as numbers.

    GPUs compare in any order, of which the first nan is the first one only by luck, and fail to compile a search of one
    element. There it is the least position at which the extreme is, or nan if the extreme is nan.
    """

    def found(x: Array, axis: int) -> Array:
        x = cast(x, BYTE) if x.dtype == BOOL else x
        if on_cpu():
            return line(x, axis, INT64)
        kept = [k for k in range(x.ndim) if k != axis]
        best = lax.broadcast_in_dim(extreme(x, (axis,)), x.shape, kept)
        there = lax.bitwise_or(lax.eq(x, best), lax.bitwise_and(lax.ne(x, x), lax.ne(best, best)))
        places = lax.broadcasted_iota(INT64, x.shape, axis)
        first: Array = lax.reduce_min(lax.select(there, places, full_like(places, x.shape[axis])), (axis,))
        return first

    return found


def cumsum(x: Array, axis: int, reverse: bool) -> Array:
    if x.dtype == BOOL:
        return cast(lax.cummax(cast(x, BYTE), axis=axis, reverse=reverse), BOOL)
    return widened(lax.cumsum)(x, axis=axis, reverse=reverse)


def cumprod(x: Array, axis: int) -> Array:
    return widened(lax.cumprod)(x, axis=axis)


# --- sorting ------------------------------------------------------------------------------------------


def sort_keys(x: Array) -> list[Array]:
    """Arrays by which elements are ordered as NumPy orders them: nan last, complex numbers by their parts.

    Complex numbers with a nan come after all others, first those whose imaginary part is nan.
    """
    if not is_complex(x):
        return [x]
    real, imag = parts(x)
    nan_real, nan_imag = cast(is_nan(real), INT32), cast(is_nan(imag), INT32)
    return [lax.add(lax.add(nan_real, nan_real), nan_imag), real, imag]


def in_order(axis: int, keys: Sequence[Array], *others: Array) -> Sequence[Array]:
    """All these arrays in the order of the keys. Single elements are in order: XLA for GPUs ends the process there."""
    if keys[0].shape[axis] == 1:
        return (*keys, *others)
    found: Sequence[Array] = lax.sort((*keys, *others), dimension=axis, is_stable=True, num_keys=len(keys))
    return found


def argsort(x: Array, axis: int) -> Array:
    return in_order(axis, sort_keys(x), lax.broadcasted_iota(INT64, x.shape, axis))[-1]


def sort(x: Array, axis: int) -> Array:
    found = in_order(axis, sort_keys(x))
    return lax.complex(found[1], found[2]) if is_complex(x) else found[0]


def at_ranks(ordered: Array, axis: int, ranks: Sequence[int]) -> Array:
    return lax.concatenate([lax.slice_in_dim(ordered, rank, rank + 1, axis=axis) for rank in ranks], axis)


def sides(x: Array, axis: int, kth: int) -> Array:
    """0 for what is less than the element of rank ``kth``, 1 for its equals, 2 for the rest; nan is last."""
    pivot = at_ranks(sort(x, axis), axis, [kth])
    pivot = lax.broadcast_in_dim(pivot, x.shape, tuple(range(x.ndim)))
    nan, last = lax.ne(x, x), lax.ne(pivot, pivot)
    equal = lax.bitwise_or(lax.eq(x, pivot), lax.bitwise_and(nan, last))
    less = lax.bitwise_or(lax.lt(x, pivot), last)
    numbers = [lax.full(x.shape, k, np.int32) for k in range(3)]
    return lax.select(equal, numbers[1], lax.select(less, numbers[0], numbers[2]))


def partition(x: Array, axis: int, kth: int) -> Array:
    return in_order(axis, [sides(x, axis, kth)], x)[1]


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "argmax": extreme_index(lax.argmax, lax.reduce_max),
    "argmin": extreme_index(lax.argmin, lax.reduce_min),
    "argpartition": lambda x, axis, kth: argsort(sides(x, axis, kth), axis),
    "argsort": argsort,
    "broadcast": lambda x, shape, dims: lax.broadcast_in_dim(x, shape, dims),
    "concatenate": lambda *operands, axis: lax.concatenate(operands, axis),
    "cumprod": cumprod,
    "cumsum": cumsum,
    "dot_general": dot_general,
    "iota": iota,
    "order_positions": lambda x, axis, ranks: at_ranks(argsort(x, axis), axis, ranks),
    "order_statistics": lambda x, axis, ranks: at_ranks(sort(x, axis), axis, ranks),
    "partition": partition,
    "reduce_and": lambda x, axes: lax.reduce_and(x, axes),
    "reduce_max": lambda x, axes: lax.reduce_max(x, axes),
    "reduce_min": lambda x, axes: lax.reduce_min(x, axes),
    "reduce_norm": reduce_norm,
    "reduce_or": lambda x, axes: lax.reduce_or(x, axes),
    "reduce_prod": reduce_prod,
    "reduce_sum": reduce_sum,
    "reshape": lambda x, shape: lax.reshape(x, shape),
    "reverse": lambda x, axes: lax.rev(x, axes),
    "sort": sort,
    "transpose": lambda x, perm: lax.transpose(x, perm),
}
