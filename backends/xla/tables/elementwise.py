"""Arithmetic, comparisons, logic, roundings and the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jax import lax

from srcgrad.backends.xla.tables import Array, cast, full_like, is_complex, is_nan, through_single, with_sign

BOOL: Final = np.dtype(np.bool_)


def add(x: Array, y: Array) -> Array:
    return lax.bitwise_or(x, y) if x.dtype == BOOL else lax.add(x, y)


def mul(x: Array, y: Array) -> Array:
    return lax.bitwise_and(x, y) if x.dtype == BOOL else lax.mul(x, y)


# --- division with a remainder ----------------------------------------------------------------------


def unless_zero(y: Array, line: Callable[[Array], Array]) -> Array:
    """Of integers: ``line`` of the divisor where that is not 0, and 0 there."""
    is_zero = lax.eq(y, full_like(y, 0))
    found = line(lax.select(is_zero, full_like(y, 1), y))
    return lax.select(is_zero, full_like(found, 0), found)


def signs_differ(remainder: Array, y: Array) -> Array:
    """Where a remainder is not 0 and has not the sign of the divisor."""
    zero = full_like(y, 0)
    differ = lax.ne(lax.lt(remainder, zero), lax.lt(y, zero))
    return lax.bitwise_and(differ, lax.ne(remainder, zero))


@through_single
def floor_divide(x: Array, y: Array) -> Array:
    """The quotient rounded down; of integers, 0 where the divisor is 0.

    Of floats, as Python does it: (x - x mod y)/y is a whole number but for rounding errors, and is rounded to it.
    """
    if x.dtype.kind == "f":
        zero = full_like(x, 0)
        rest = lax.rem(x, y)
        quotient = lax.div(lax.sub(x, rest), y)
        quotient = lax.sub(quotient, lax.select(signs_differ(rest, y), full_like(x, 1), zero))
        floored = lax.floor(quotient)
        too_low = lax.gt(lax.sub(quotient, floored), full_like(x, 0.5))
        floored = lax.select(too_low, lax.add(floored, full_like(x, 1)), floored)
        plain = lax.div(x, y)
        found = lax.select(lax.eq(quotient, zero), with_sign(zero, plain), floored)
        return lax.select(lax.eq(y, zero), plain, found)

    def quotient_of(divisor: Array) -> Array:
        quotient = lax.div(x, divisor)
        if x.dtype.kind == "u":
            return quotient
        rounded_up = signs_differ(lax.rem(x, divisor), divisor)
        return lax.sub(quotient, cast(rounded_up, x.dtype))

    return unless_zero(y, quotient_of)


@through_single
def remainder(x: Array, y: Array) -> Array:
    """x - y*floor(x/y), with the sign of y where it is 0; of integers, 0 where the divisor is 0."""
    if x.dtype.kind != "f":

        def remainder_of(divisor: Array) -> Array:
            found = lax.rem(x, divisor)
            return lax.select(signs_differ(found, divisor), lax.add(found, divisor), found)

        return unless_zero(y, remainder_of)
    found = lax.rem(x, y)
    shifted = lax.select(signs_differ(found, y), lax.add(found, y), found)
    return lax.select(lax.eq(found, full_like(x, 0)), with_sign(full_like(x, 0), y), shifted)


def fmod(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return lax.rem(x, y)
    return unless_zero(y, lambda divisor: lax.rem(x, divisor))


# --- comparisons --------------------------------------------------------------------------------------


def less(x: Array, y: Array) -> Array:
    return ordered(x, y, lax.lt)


def less_equal(x: Array, y: Array) -> Array:
    return ordered(x, y, lax.le)


def ordered(x: Array, y: Array, compare: Callable[[Array, Array], Array]) -> Array:
    """Complex numbers are compared by their real parts, and where those are equal by their imaginary ones."""
    if not is_complex(x):
        return compare(x, y)
    (a, b), (c, d) = parts(x), parts(y)
    ordinary = lax.bitwise_not(lax.bitwise_or(is_nan(b), is_nan(d)))
    first = lax.bitwise_and(lax.lt(a, c), ordinary)
    return lax.bitwise_or(first, lax.bitwise_and(lax.eq(a, c), compare(b, d)))


def is_finite(x: Array) -> Array:
    if is_complex(x):
        return lax.bitwise_and(*map(lax.is_finite, parts(x)))
    return lax.is_finite(x) if x.dtype.kind == "f" else full_like(lax.ne(x, x), True)


def is_inf(x: Array) -> Array:
    if is_complex(x):
        return lax.bitwise_or(*map(is_inf, parts(x)))
    if x.dtype.kind != "f":
        return lax.full(x.shape, False, np.bool_)
    return lax.eq(lax.abs(x), full_like(x, np.inf))


# --- roundings, signs and parts -----------------------------------------------------------------------


def parts(x: Array) -> tuple[Array, Array]:
    return lax.real(x), lax.imag(x)


def trunc(x: Array) -> Array:
    return lax.select(lax.lt(x, full_like(x, 0)), lax.ceil(x), lax.floor(x))


def rint(x: Array) -> Array:
    if is_complex(x):
        return lax.complex(*map(rint, parts(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def absolute(x: Array) -> Array:
    """Infinite where a part is, whatever the other one."""
    if x.dtype.kind == "u":
        return x
    size = lax.abs(x)
    return lax.select(is_inf(x), full_like(size, np.inf), size) if is_complex(x) else size


def sign(x: Array) -> Array:
    """-1, 0 or 1, nan of nan; of a complex number z/|z|."""
    zero, one = full_like(x, 0), full_like(x, 1)
    if is_complex(x):
        size = lax.abs(x)
        return lax.select(lax.eq(size, full_like(size, 0)), zero, lax.div(x, lax.complex(size, full_like(size, 0))))
    if x.dtype.kind == "f":  # one comparison: the bits of 1 with the sign's; x - x is 0 of zeros and nan of nan
        word = np.dtype(f"u{x.dtype.itemsize}")
        minus, bits = (np.array(number, x.dtype).view(word)[()] for number in (-0.0, 1.0))
        signed = lax.bitwise_or(lax.bitwise_and(lax.bitcast_convert_type(x, word), minus), bits)
        return lax.select(lax.gt(lax.abs(x), zero), lax.bitcast_convert_type(signed, x.dtype), lax.sub(x, x))
    positive = lax.select(lax.gt(x, zero), one, zero)
    if x.dtype.kind == "u":
        return positive
    return lax.select(lax.lt(x, zero), lax.neg(one), positive)


def complex_of(real: Array, imag: Array) -> Array:
    if real.dtype.itemsize < 4:
        real, imag = (cast(part, np.dtype(np.float32)) for part in (real, imag))
    return lax.complex(real, imag)


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "abs": absolute,
    "add": add,
    "cast": cast,
    "ceil": lax.ceil,
    "complex": complex_of,
    "conj": lax.conj,
    "div": lax.div,
    "equal": lax.eq,
    "floor": lax.floor,
    "floor_divide": floor_divide,
    "fmod": fmod,
    "greater": lambda x, y: less(y, x),
    "greater_equal": lambda x, y: less_equal(y, x),
    "identity": lambda x: x,
    "imag": lax.imag,
    "is_finite": is_finite,
    "is_inf": is_inf,
    "is_nan": is_nan,
    "less": less,
    "less_equal": less_equal,
    "logical_and": lax.bitwise_and,
    "logical_not": lax.bitwise_not,
    "logical_or": lax.bitwise_or,
    "logical_xor": lax.bitwise_xor,
    "maximum": lax.max,
    "minimum": lax.min,
    "mul": mul,
    "neg": lax.neg,
    "not_equal": lax.ne,
    "real": lax.real,
    "remainder": remainder,
    "rint": rint,
    "select": lax.select,
    "sign": sign,
    "share_of_tie": lambda wins, loses, order=0, side=1, dtype=np.float64: lax.full(wins.shape, 0.5, dtype),
    "slope_of_abs": lambda x, order=0: sign(x),
    "slope_of_norm": lambda slope, norm, order=0, part=0: slope,
    "stop_gradient": lax.stop_gradient,
    "sub": lax.sub,
    "trunc": trunc,
}
