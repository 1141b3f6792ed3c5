"""Exponentials, logarithms, trigonometric and hyperbolic functions, roots and powers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jax import lax

from srcgrad.backends.xla.program import Application
from srcgrad.backends.xla.tables import (
    Array,
    cast,
    contextual,
    full_like,
    is_complex,
    through_single,
    with_sign,
)
from srcgrad.backends.xla.tables.elementwise import is_inf


def one(x: Array) -> Array:
    return full_like(x, 1)


def scaled(line: Callable[[Array], Array], factor: float) -> Callable[[Array], Array]:
    """A function times a constant: logarithms to another base."""
    return through_single(lambda x: lax.mul(line(x), full_like(x, factor)))


@through_single
def exp2(x: Array) -> Array:
    """2**x as 2**n 2**r with n whole and |r| <= 1/2: exp(x log 2) would lose as many bits as x has before the point."""
    log2 = full_like(x, math.log(2.0))
    if is_complex(x):
        return lax.exp(lax.mul(x, log2))
    bound = full_like(x, 2.0 * np.finfo(x.dtype).maxexp)
    whole = lax.clamp(lax.neg(bound), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), bound)
    rest = lax.exp(lax.mul(lax.sub(x, whole), log2))
    found = whole_power_of_two(rest, whole)
    infinite = lax.select(lax.gt(x, full_like(x, 0)), x, full_like(x, 0))
    return lax.select(is_inf(x), infinite, found)


def whole_power_of_two(x: Array, exponent: Array) -> Array:
    """x 2**exponent, the exponent a whole number: in four steps, of which none overflows before the result does."""
    bits = np.finfo(x.dtype)
    integer = np.dtype(f"int{x.dtype.itemsize * 8}")
    total = cast(exponent, integer)
    quarter = lax.div(total, full_like(total, 4))
    last = lax.sub(total, lax.mul(quarter, full_like(total, 3)))
    for part in (quarter, quarter, quarter, last):
        field = lax.add(part, full_like(part, bits.maxexp - 1))
        power = lax.bitcast_convert_type(lax.shift_left(field, full_like(field, bits.nmant)), x.dtype)
        x = lax.mul(x, power)
    return x


@through_single
def log1p(x: Array) -> Array:
    """log(u) x/(u - 1) with u = 1 + x rounded (W. Kahan): the factor makes good for the rounding.

    Of complex numbers log|1 + x| + i arg(1 + x), where |1 + x|**2 = 1 + a(2 + a) + b**2, a + ib = x.
    """
    if is_complex(x):
        a, b = lax.real(x), lax.imag(x)
        moved = lax.add(one(a), a)
        excess = lax.add(lax.mul(a, lax.add(full_like(a, 2), a)), lax.mul(b, b))
        near = lax.lt(lax.abs(excess), one(a))
        half = lax.mul(full_like(a, 0.5), log1p(lax.select(near, excess, one(a))))
        return lax.complex(lax.select(near, half, lax.log(hypot(moved, b))), lax.atan2(b, moved))
    u = lax.add(one(x), x)
    rounded = lax.sub(u, one(x))
    as_it_is = lax.bitwise_or(lax.eq(u, one(x)), lax.eq(x, full_like(x, np.inf)))
    factor = lax.div(x, lax.select(as_it_is, one(x), rounded))
    return lax.select(as_it_is, x, lax.mul(lax.log(u), factor))


def log(x: Array) -> Array:
    """Of a complex number log|x| + i arg x; near |x| = 1, where a rounded |x| would be too inaccurate, log|x| is
    log1p(|x|**2 - 1)/2.
    """
    if not is_complex(x):
        return lax.log(x)
    real, imag = lax.abs(lax.real(x)), lax.abs(lax.imag(x))
    a, b = lax.max(real, imag), lax.min(real, imag)
    near = lax.bitwise_and(lax.gt(a, full_like(a, 0.5)), lax.lt(a, full_like(a, 3.0)))
    half = lax.mul(full_like(a, 0.5), log1p(lax.select(near, squares_less_one(a, b), one(a))))
    return lax.complex(lax.select(near, half, lax.log(hypot(real, imag))), lax.atan2(lax.imag(x), lax.real(x)))


def squares_less_one(a: Array, b: Array) -> Array:
    """a**2 + b**2 - 1, a >= b, without cancellation of rounded squares: each square is a sum of exact products.

    With x = h + l, h the upper half of the bits of x: x**2 = h**2 + 2hl + l**2 (T. J. Dekker, 1971).
    """
    bits = np.dtype(f"int{a.dtype.itemsize * 8}")
    low = np.finfo(a.dtype).nmant // 2 + 1
    mask = np.array(-(1 << low), bits)

    def products(x: Array) -> tuple[Array, Array, Array]:
        pattern = lax.bitcast_convert_type(x, bits)
        upper = lax.bitcast_convert_type(lax.bitwise_and(pattern, full_like(pattern, mask)), x.dtype)
        lower = lax.sub(x, upper)
        return lax.mul(upper, upper), lax.mul(lax.add(upper, upper), lower), lax.mul(lower, lower)

    parts_a, parts_b = products(a), products(b)
    total = lax.sub(parts_a[0], one(a))
    total = lax.add(total, parts_b[0])
    for part_a, part_b in zip(parts_a[1:], parts_b[1:], strict=True):
        total = lax.add(total, lax.add(part_a, part_b))
    return total


@through_single
def arctanh(x: Array) -> Array:
    """Of floats sign(x) log1p(2|x|/(1 - |x|))/2, in which nothing cancels."""
    if is_complex(x):
        return lax.atanh(x)
    size = lax.abs(x)
    ratio = lax.div(lax.add(size, size), lax.sub(one(x), size))
    return with_sign(lax.mul(full_like(x, 0.5), log1p(ratio)), x)


def sqrt(x: Array) -> Array:
    """Of a complex number the imaginary part has the sign of the operand's, which XLA loses where it is -0.0."""
    root = lax.sqrt(x)
    return lax.complex(lax.real(root), with_sign(lax.imag(root), lax.imag(x))) if is_complex(x) else root


def reciprocal(x: Array) -> Array:
    return lax.div(one(x), x)


@through_single
def one_minus_square(x: Array) -> Array:
    return lax.mul(lax.sub(one(x), x), lax.add(one(x), x))


def half_exponential(x: Array) -> Array:
    """exp(x)/2, the square of exp(x/2) times 1/2: it does not overflow before the result does."""
    root = lax.exp(lax.mul(full_like(x, 0.5), x))
    return lax.mul(lax.mul(full_like(x, 0.5), root), root)


@through_single
def cosh(x: Array) -> Array:
    """(e + 1/e)/2 with e = exp(|x|): exp(x - log 2) would lose as many bits as x has before the point."""
    if is_complex(x):
        return lax.cosh(x)
    size = lax.abs(x)
    e = lax.exp(size)
    found = lax.mul(full_like(x, 0.5), lax.add(e, lax.div(one(x), e)))
    return lax.select(lax.gt(size, full_like(x, 40)), half_exponential(size), found)


@through_single
def sinh(x: Array) -> Array:
    """(t + t/(1 + t))/2 with t = expm1(|x|), and the sign of x."""
    if is_complex(x):
        return lax.sinh(x)
    size = lax.abs(x)
    t = lax.expm1(size)
    found = lax.mul(full_like(x, 0.5), lax.add(t, lax.div(t, lax.add(one(x), t))))
    return with_sign(lax.select(lax.gt(size, full_like(x, 40)), half_exponential(size), found), x)


@through_single
def sech(x: Array) -> Array:
    """2 h**2/(1 + h**4) with h = exp(-|x|/2), whose square is no sooner subnormal than the result: one exponential."""
    if is_complex(x):
        return lax.div(one(x), cosh(x))
    root = lax.exp(lax.mul(full_like(x, -0.5), lax.abs(x)))
    square = lax.mul(root, root)
    return lax.div(lax.mul(lax.add(root, root), root), lax.add(one(x), lax.mul(square, square)))


@through_single
def hypot(x: Array, y: Array) -> Array:
    """m sqrt(1 + (n/m)**2), m the larger and n the smaller absolute value; inf if one is infinite."""
    x, y = lax.abs(x), lax.abs(y)
    larger, smaller = lax.max(x, y), lax.min(x, y)
    zero = full_like(x, 0)
    is_zero = lax.eq(larger, zero)
    ratio = lax.div(smaller, lax.select(is_zero, one(x), larger))
    length = lax.mul(larger, lax.sqrt(lax.add(one(x), lax.mul(ratio, ratio))))
    found = lax.select(is_zero, zero, length)
    return lax.select(lax.bitwise_or(is_inf(x), is_inf(y)), full_like(x, np.inf), found)


@through_single
def logaddexp(x: Array, y: Array) -> Array:
    """max(x, y) + log1p(exp(-|x - y|)); equal infinities have no difference."""
    distance = lax.sub(x, y)
    apart = lax.add(lax.max(x, y), log1p(lax.exp(lax.neg(lax.abs(distance)))))
    return lax.select(lax.eq(x, y), lax.add(x, full_like(x, math.log(2.0))), apart)


# --- powers -------------------------------------------------------------------------------------------


def whole_power(x: Array, y: int) -> Array:
    """x**y by squaring, y >= 0."""
    found = None
    while y:
        if y & 1:
            found = x if found is None else lax.mul(found, x)
        y >>= 1
        if y:
            x = lax.mul(x, x)
    return one(x) if found is None else found


def wrapping_power(x: Array, y: Array) -> Array:
    """x**y of integers modulo the size of their dtype, y >= 0: by squaring, for as long as a bit of y is left."""
    zero = full_like(y, 0)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        return lax.reduce_or(lax.gt(state[2], zero), tuple(range(y.ndim)))

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        found, base, left = state
        odd = lax.ne(lax.bitwise_and(left, full_like(left, 1)), zero)
        found = lax.select(odd, lax.mul(found, base), found)
        return found, lax.mul(base, base), lax.shift_right_logical(left, full_like(left, 1))

    found: Array = lax.while_loop(unfinished, step, (one(x), x, lax.max(y, zero)))[0]
    return found


NEGATIVE_POWER: Final = "Integers to negative integer powers are not allowed."


@contextual
def power(application: Application, x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return complex_power(x, y)
    if x.dtype.kind not in "iu":
        return lax.pow(x, y)
    if x.dtype.kind == "i":
        application.check(lax.ge(y, full_like(y, 0)), NEGATIVE_POWER, "ValueError")
    return wrapping_power(x, y)


def complex_power(x: Array, y: Array) -> Array:
    """x**y, and the limits of NumPy at x = 0 and y = 0: 0 where y has a positive real part, nan elsewhere; 1."""
    zero = full_like(x, 0)
    base_is_zero, exponent_is_zero = lax.eq(x, zero), lax.eq(y, zero)
    safe = lax.select(base_is_zero, one(x), x)
    found = lax.exp(lax.mul(y, log(safe)))
    for k in (1, 2, 3):
        found = lax.select(lax.eq(y, full_like(y, k)), whole_power(safe, k), found)
    positive = lax.gt(lax.real(y), full_like(lax.real(y), 0))
    at_zero = lax.select(positive, zero, full_like(x, complex(np.nan, np.nan)))
    found = lax.select(base_is_zero, at_zero, found)
    return lax.select(exponent_is_zero, one(x), found)


MOST_MULTIPLIED: Final = 4
"""The largest power of floats that is a product: products of more factors are less accurate than a power."""


@contextual
def integer_power(application: Application, x: Array) -> Array:
    y = application.attrs["y"]
    kind = x.dtype.kind
    if kind in "iu":
        if y < 0:
            application.check(lax.full((), not x.size, np.bool_), NEGATIVE_POWER, "ValueError")
        return wrapping_power(x, full_like(x, max(y, 0)))

    def product(x: Array) -> Array:
        return whole_power(x, y) if y >= 0 else reciprocal(whole_power(x, -y))

    if kind == "c" or -1 <= y <= MOST_MULTIPLIED:
        return through_single(product)(x)
    return lax.pow(x, full_like(x, y))


@contextual
def power_log(application: Application, x: Array, y: Array) -> Array:
    n = application.attrs["n"]

    def line(x: Array, y: Array) -> Array:
        """x**y log(x)**n; where x is 0 or infinite and the power is 0, the power wins."""
        found = complex_power(x, y) if is_complex(x) else lax.pow(x, y)
        logarithm = log(x)
        exponent = lax.real(y) if is_complex(y) else y
        nothing = full_like(exponent, 0)
        at_zero = lax.bitwise_and(lax.eq(x, full_like(x, 0)), lax.gt(exponent, nothing))
        at_infinity = lax.bitwise_and(is_inf(x), lax.lt(exponent, nothing))
        product = lax.mul(found, whole_power(logarithm, n))
        return lax.select(lax.bitwise_or(at_zero, at_infinity), full_like(x, 0), product)

    return through_single(line)(x, y)


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "arccos": lax.acos,
    "arccosh": lax.acosh,
    "arcsin": lax.asin,
    "arcsinh": lax.asinh,
    "arctan": lax.atan,
    "arctan2": lax.atan2,
    "arctanh": arctanh,
    "cbrt": lax.cbrt,
    "cos": lax.cos,
    "cosh": cosh,
    "exp": lax.exp,
    "exp2": exp2,
    "expm1": lax.expm1,
    "hypot": hypot,
    "integer_pow": integer_power,
    "kinked_sqrt": sqrt,
    "log": log,
    "log10": scaled(log, 1.0 / math.log(10.0)),
    "log1p": log1p,
    "log2": scaled(log, 1.0 / math.log(2.0)),
    "logaddexp": logaddexp,
    "one_minus_square": one_minus_square,
    "pow": power,
    "pow_log": power_log,
    "reciprocal": reciprocal,
    "sech": sech,
    "sin": lax.sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "square": lambda x: lax.mul(x, x),
    "tan": lax.tan,
    "tanh": lax.tanh,
}
