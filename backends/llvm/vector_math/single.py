"""Functions of float32 numbers in float32: for machines with fused products, which the reductions need.

The formulas are those of the other modules, with π/2 and log(2) in parts of float32 and the shorter polynomials.
Results are within 2 ULP, most within 1; special values are NumPy's. What is rare (arguments of sin, cos and tan above
2**17, of arcsinh and arccosh above 2**28) is computed in float64, out of line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import F64, Emitter, Number
from srcgrad.backends.llvm.vector_math import exponential, logarithm, trigonometric
from srcgrad.backends.llvm.vector_math.basics import (
    INFINITY,
    NAN,
    at_least,
    at_most,
    avx512,
    has_avx512,
    magnitude,
    negative,
    quick_sum,
    where_rare,
    with_sign,
)

SHIFTER: Final = 1.5 * 2.0**23  # adding it rounds to whole numbers, which are then the low bits
SHIFTER_BITS: Final = 0x4B400000
ONE_BITS: Final = 0x3F800000
THREE_QUARTERS_BITS: Final = 0x3F400000
SMALLEST_NORMAL: Final = 2.0**-126
LIMIT: Final = 2.0**17  # beyond, the quadrant is off by too much
LARGE: Final = 2.0**28
TAN_EIGHTH: Final = math.sqrt(2) - 1
GETMANT: Final = 15


def _parts(value: float, rest: float, *bits: int) -> tuple[float, ...]:
    """A number, given as a sum of two, as a sum of floats of so many bits each."""
    found = []
    for count in bits:
        scale = 2.0 ** (count - 1 - math.floor(math.log2(abs(value))))
        found.append(round(value * scale) / scale)
        value = (value - found[-1]) + rest
        rest = 0.0
    return tuple(found)


LOG2: Final = _parts(sum(c.LOG2), 0.0, 15, 24)  # the product of the first with an exponent is exact
HALF_PI: Final = _parts(c.HALF_PI[0], c.HALF_PI[1], 24, 24, 24)
QUARTER_PI: Final = _parts(c.QUARTER_PI[0], c.QUARTER_PI[1], 24, 24)
THREE_QUARTER_PI: Final = _parts(c.THREE_QUARTER_PI[0], c.THREE_QUARTER_PI[1], 24, 24)
PI: Final = _parts(c.PI[0], c.PI[1], 24, 24)
INVERSE_LOG2: Final = _parts(sum(c.INVERSE_LOG2), 0.0, 24, 24)
INVERSE_LOG10: Final = _parts(sum(c.INVERSE_LOG10), 0.0, 24, 24)
LOG10_2: Final = _parts(sum(c.LOG10_2), 0.0, 15, 24)


# --- powers of two ---------------------------------------------------------------------------------------------------


def nearest(e: Emitter, shifted: Number) -> Number:
    """The whole number that a sum with SHIFTER holds."""
    return e.sub(shifted, SHIFTER)


def two_to_the(e: Emitter, shifted: Number) -> Number:
    """2**n of a sum n + SHIFTER, -126 <= n <= 127."""
    return e.from_bits(e.integer("add", e.integer("shl", e.bits(shifted), 23), ONE_BITS))


def scaled(e: Emitter, a: Number, n: Number) -> Number:
    """a 2**n of a whole number n, |n| <= 250, rounded once where it is subnormal."""
    if has_avx512(e):
        return avx512(e, "scalef", a, n)
    half = e.add(e.mul(n, 0.5), SHIFTER)
    rest = e.add(e.sub(n, nearest(e, half)), SHIFTER)
    return e.mul(e.mul(a, two_to_the(e, half)), two_to_the(e, rest))


def scaled_one(e: Emitter, n: Number) -> Number:
    """2**n, -126 <= n <= 127."""
    return two_to_the(e, e.add(n, SHIFTER))


# --- exp and what is made of it --------------------------------------------------------------------------------------


class Reduced(NamedTuple):
    """x = n log(2) + r and exp(r) - 1; ``shifted`` is n + SHIFTER."""

    shifted: Number
    n: Number
    minus_one: Number


def reduced(e: Emitter, x: Number) -> Reduced:
    """|x| <= 200. The rounding error of r is nothing where n = 0, and little beside 2**n - 1 elsewhere."""
    shifted = e.fma(x, exponential.INVERSE_LOG2, SHIFTER)
    n = nearest(e, shifted)
    r = e.fma(n, -LOG2[1], e.fma(n, -LOG2[0], x))
    return Reduced(shifted, n, e.fma(e.mul(r, r), e.polynomial(r, c.EXP.single), r))


def exp(e: Emitter, x: Number) -> Number:
    part = reduced(e, at_most(e, at_least(e, x, -105.0), 90.0))
    return scaled(e, e.add(part.minus_one, 1.0), part.n)


def exp2(e: Emitter, x: Number) -> Number:
    x = at_most(e, at_least(e, x, -152.0), 130.0)
    n = nearest(e, e.add(x, SHIFTER))
    r = e.sub(x, n)
    return scaled(e, e.fma(r, e.polynomial(r, c.EXP2.single), 1.0), n)


def quarter_expm1(e: Emitter, x: Number) -> Number:
    """(exp(x) - 1)/4, -30 <= x <= 89.7: 2**(n - 2) is a float where 2**n is not."""
    part = reduced(e, x)
    power = two_to_the(e, e.sub(part.shifted, 2.0))
    return e.fma(power, part.minus_one, e.sub(power, 0.25))


def expm1(e: Emitter, x: Number) -> Number:
    result = e.mul(quarter_expm1(e, at_most(e, at_least(e, x, -30.0), 89.4)), 4.0)
    return e.select(e.compare("olt", magnitude(e, x), 2.0**-25), x, result)


def sinh(e: Emitter, x: Number) -> Number:
    """h + h/(2h + 1) with h = (exp(|x|) - 1)/2."""
    a = magnitude(e, x)
    half = e.mul(quarter_expm1(e, at_most(e, a, 89.6)), 2.0)
    whole = at_most(e, e.fma(half, 2.0, 1.0), 1e38)
    result = e.add(half, e.div(half, whole))
    return with_sign(e, e.select(e.compare("olt", a, 2.0**-25), a, result), x)


def cosh(e: Emitter, x: Number) -> Number:
    part = reduced(e, at_most(e, magnitude(e, x), 89.6))
    quarter = two_to_the(e, e.sub(part.shifted, 2.0))
    half = e.mul(e.mul(e.add(part.minus_one, 1.0), quarter), 2.0)
    return e.add(half, e.div(0.25, half))


def tanh(e: Emitter, x: Number) -> Number:
    """m/(m + 2) with m = exp(2|x|) - 1."""
    a = at_most(e, magnitude(e, x), 10.0)
    part = reduced(e, e.add(a, a))
    power = two_to_the(e, part.shifted)
    m = e.fma(power, part.minus_one, e.sub(power, 1.0))
    return with_sign(e, e.div(m, e.add(m, 2.0)), x)


def sech(e: Emitter, x: Number) -> Number:
    """2t/(1 + t²) with t = exp(-|x|)."""
    t = exp(e, e.neg(magnitude(e, x)))
    return e.div(e.add(t, t), e.fma(t, t, 1.0))


def expit(e: Emitter, x: Number) -> Number:
    t = exp(e, e.neg(magnitude(e, x)))
    return e.div(e.select(negative(e, x), t, 1.0), e.add(t, 1.0))


# --- logarithms ------------------------------------------------------------------------------------------------------


def parts_of(e: Emitter, x: Number, subnormal: bool = True) -> logarithm.Parts:
    """As `logarithm.parts_of`."""
    if has_avx512(e):
        m = avx512(e, "getmant", x, immediate=GETMANT)
        return logarithm.Parts(e.sub(avx512(e, "getexp", x), avx512(e, "getexp", m)), m)
    given = x
    small = e.compare("olt", x, SMALLEST_NORMAL) if subnormal else None
    if small is not None:
        x = e.select(small, e.mul(x, 2.0**25), x)
    steps = e.integer("ashr", e.integer("sub", e.bits(x), THREE_QUARTERS_BITS), 23)
    m = e.from_bits(e.integer("sub", e.bits(x), e.integer("shl", steps, 23)))
    k = e.sub(e.from_bits(e.integer("add", steps, SHIFTER_BITS)), SHIFTER)
    if small is not None:
        k = e.select(small, e.sub(k, 25.0), k)
    zero, positive = e.compare("oeq", given, 0.0), e.compare("ogt", given, 0.0)
    finite = e.integer("and", positive, e.compare("olt", given, INFINITY))
    other = e.select(positive, INFINITY, e.select(zero, -INFINITY, e.like(NAN, x)))
    return logarithm.Parts(e.select(finite, k, other), e.select(finite, m, 1.0))


def tail_of(e: Emitter, f: Number) -> Number:
    """log(1 + f) - f = s (h + R) - h, h = f²/2, s = f/(2 + f)."""
    s = e.div(f, e.add(f, 2.0))
    z = e.mul(s, s)
    half = e.mul(e.mul(f, 0.5), f)
    return e.sub(e.mul(s, e.fma(z, e.polynomial(z, c.LOG.single), half)), half)


def log(e: Emitter, x: Number) -> Number:
    k, m = parts_of(e, x)
    f = e.sub(m, 1.0)
    return e.fma(k, LOG2[0], e.add(f, e.fma(k, LOG2[1], tail_of(e, f))))


def _log_to_base(e: Emitter, x: Number, inverse: tuple[float, ...], step: tuple[float, ...]) -> Number:
    """k ``step`` + log(m) ``inverse``; k and f times the first parts, and their sum, are without error."""
    k, m = parts_of(e, x)
    f = e.sub(m, 1.0)
    first = e.mul(f, inverse[0])
    error = e.fma(f, inverse[0], e.neg(first))
    base = e.mul(k, step[0])
    total = e.add(base, first)
    error = e.add(error, e.add(e.sub(base, total), first))
    error = e.fma(f, inverse[1], e.fma(tail_of(e, f), inverse[0], error))
    if len(step) > 1:
        error = e.fma(k, step[1], error)
    infinite = e.compare("oeq", magnitude(e, k), INFINITY)
    return e.select(infinite, e.add(k, f), e.add(total, error))


def log2(e: Emitter, x: Number) -> Number:
    return _log_to_base(e, x, INVERSE_LOG2, (1.0,))


def log10(e: Emitter, x: Number) -> Number:
    return _log_to_base(e, x, INVERSE_LOG10, LOG10_2)


def log1p(e: Emitter, x: Number) -> Number:
    """log(1 + x): 1 + x = 2**k (1 + f), f = x 2**-k + (2**-k - 1) rounded once."""
    k, _ = parts_of(e, e.add(x, 1.0), False)
    less = e.neg(k)
    # Beside 1 no power of a large x counts.
    f = e.add(scaled(e, x, less), e.sub(scaled_one(e, at_least(e, less, -60.0)), 1.0))
    result = e.fma(k, LOG2[0], e.add(f, e.fma(k, LOG2[1], tail_of(e, f))))
    result = e.select(e.compare("olt", magnitude(e, k), INFINITY), result, k)
    return with_sign(e, result, x)


# --- sines -----------------------------------------------------------------------------------------------------------


class Quadrant(NamedTuple):
    """The bits of n, and r = x - n π/2."""

    bits: Number
    r: Number


def quadrant_of(e: Emitter, x: Number) -> Quadrant:
    """Of |x| <= LIMIT: the first difference is exact, and multiples of π/2 are no closer to floats than 2**-30."""
    shifted = e.fma(x, trigonometric.TWO_OVER_PI, SHIFTER)
    n = nearest(e, shifted)
    r = e.fma(n, -HALF_PI[2], e.fma(n, -HALF_PI[1], e.fma(n, -HALF_PI[0], x)))
    return Quadrant(e.bits(shifted), r)


def _sine(e: Emitter, r: Number, z: Number) -> Number:
    return e.fma(e.mul(r, z), e.polynomial(z, c.SIN.single), r)


def _cosine(e: Emitter, z: Number) -> Number:
    """1 - z/2 + z² p, with the rounding error of 1 - z/2."""
    main = e.fma(z, -0.5, 1.0)
    error = e.fma(z, -0.5, e.sub(1.0, main))
    return e.add(main, e.fma(e.mul(z, z), e.polynomial(z, c.COS.single), error))


def _in_double(function: Callable[..., Number]) -> Callable[..., Number]:
    """The function of float64 numbers, on float32 ones."""

    def emit(e: Emitter, x: Number, near: Number) -> Number:
        found = e.convert("fptrunc", function(e, e.convert("fpext", x, F64), single=True), x.dtype)
        return e.select(e.compare("ule", magnitude(e, x), LIMIT), near, found)

    return emit


def _turned(e: Emitter, x: Number, quarters: int, name: str) -> Number:
    """sin(x + quarters π/2)."""
    q = quadrant_of(e, x)
    z = e.mul(q.r, q.r)
    bits = e.integer("add", q.bits, quarters) if quarters else q.bits
    odd = e.compare("ne", e.integer("and", bits, 1), 0)
    found = e.select(odd, _cosine(e, z), _sine(e, q.r, z))
    sign = e.integer("shl", e.integer("and", bits, 2), 30)
    found = e.from_bits(e.integer("xor", e.bits(found), sign))
    return _or_far(e, x, found, name)


def _or_far(e: Emitter, x: Number, found: Number, name: str) -> Number:
    far = e.compare("ogt", magnitude(e, x), LIMIT)
    return where_rare(e, far, f"far_single_{name}", _in_double(getattr(trigonometric, name)), found, x, found)


def sin(e: Emitter, x: Number) -> Number:
    return e.select(e.compare("oeq", x, 0.0), x, _turned(e, x, 0, "sin"))


def cos(e: Emitter, x: Number) -> Number:
    return _turned(e, x, 1, "cos")


def tan(e: Emitter, x: Number) -> Number:
    q = quadrant_of(e, x)
    z = e.mul(q.r, q.r)
    s, co = _sine(e, q.r, z), _cosine(e, z)
    odd = e.compare("ne", e.integer("and", q.bits, 1), 0)
    found = e.div(e.select(odd, e.neg(co), s), e.select(odd, s, co))
    return e.select(e.compare("oeq", x, 0.0), x, _or_far(e, x, found, "tan"))


# --- inverse functions -----------------------------------------------------------------------------------------------


def _root(e: Emitter, x: Number) -> Number:
    return e.intrinsic("sqrt", x)


def _arcsin_parts(e: Emitter, a: Number) -> tuple[Number, Number, Number, Number]:
    """As `inverse._arcsin_parts`: the rounding error of a root is (half - root²)/(2 root), which fma gives."""
    large = e.compare("ogt", a, 0.5)
    half = e.fma(a, -0.5, 0.5)
    z = e.select(large, half, e.mul(a, a))
    root = _root(e, half)
    r = e.select(large, root, a)
    p = e.mul(e.mul(r, z), e.polynomial(z, c.ARCSIN.single))
    error = e.div(e.fma(root, e.neg(root), half), e.add(root, root))
    return large, r, e.select(e.compare("ogt", root, 0.0), error, 0.0), p


def arcsin(e: Emitter, x: Number) -> Number:
    a = magnitude(e, x)
    large, r, error, p = _arcsin_parts(e, a)
    p = e.select(large, e.sub(e.fma(p, -2.0, HALF_PI[1]), e.add(error, error)), p)
    main, rest = quick_sum(e, e.constant(HALF_PI[0], x.dtype, x.lanes), e.mul(r, -2.0))
    found = e.add(e.select(large, main, r), e.add(p, e.select(large, rest, 0.0)))
    return with_sign(e, found, x)


def arccos(e: Emitter, x: Number) -> Number:
    a = magnitude(e, x)
    large, r, error, p = _arcsin_parts(e, a)
    signed, small = with_sign(e, r, x), with_sign(e, p, x)
    quarter, rest = quick_sum(e, e.constant(HALF_PI[0], x.dtype, x.lanes), e.neg(signed))
    middle = e.add(quarter, e.add(rest, e.sub(HALF_PI[1], small)))
    twice, more = e.add(r, r), e.mul(e.add(p, error), 2.0)
    half_turn, lost = quick_sum(e, e.constant(PI[0], x.dtype, x.lanes), e.neg(twice))
    left = e.add(half_turn, e.add(lost, e.sub(PI[1], more)))
    return e.select(large, e.select(negative(e, x), left, e.add(twice, more)), middle)


def _arctan_sum(e: Emitter, t: Number, base: Number, rest: Number) -> Number:
    z = e.mul(t, t)
    p = e.mul(e.mul(t, z), e.polynomial(z, c.ARCTAN.single))
    return e.add(base, e.add(t, e.add(p, rest)))


def arctan(e: Emitter, x: Number) -> Number:
    a = magnitude(e, x)
    middle, large = e.compare("ogt", a, TAN_EIGHTH), e.compare("ogt", a, 1 / TAN_EIGHTH)
    above = e.select(large, -1.0, e.select(middle, e.sub(a, 1.0), a))
    below = e.select(large, a, e.select(middle, e.add(a, 1.0), e.like(1.0, x)))
    zero = e.like(0.0, x)
    base, rest = (
        e.select(large, half, e.select(middle, quarter, zero))
        for quarter, half in zip(QUARTER_PI, HALF_PI[:2], strict=True)
    )
    return with_sign(e, _arctan_sum(e, e.div(above, below), base, rest), x)


def arctan2(e: Emitter, y: Number, x: Number) -> Number:
    """As `inverse.arctan2`."""
    a, b = magnitude(e, y), magnitude(e, x)
    both = e.integer("and", e.compare("oeq", a, INFINITY), e.compare("oeq", b, INFINITY))
    a, b = e.select(both, 1.0, a), e.select(both, 1.0, b)
    most = e.select(e.compare("ogt", a, b), a, b)
    factor = e.select(e.compare("ogt", most, 2.0**124), 0.25, e.like(1.0, x))
    factor = e.select(e.compare("olt", most, 2.0**-60), 2.0**60, factor)
    a, b = e.mul(a, factor), e.mul(b, factor)
    middle = e.compare("ogt", a, e.mul(b, TAN_EIGHTH))
    large = e.compare("ogt", e.mul(a, TAN_EIGHTH), b)
    above = e.select(large, e.neg(b), e.select(middle, e.sub(a, b), a))
    below = e.select(large, a, e.select(middle, e.add(a, b), b))
    below = e.select(e.compare("oeq", below, 0.0), 1.0, below)
    t, left = e.div(above, below), negative(e, x)
    t = e.select(left, e.neg(t), t)
    zero = e.like(0.0, x)
    base, rest = (
        e.select(large, half, e.select(middle, e.select(left, three, e.like(one, x)), e.select(left, whole, zero)))
        for one, half, three, whole in zip(QUARTER_PI, HALF_PI[:2], THREE_QUARTER_PI, PI, strict=True)
    )
    return with_sign(e, _arctan_sum(e, t, base, rest), y)


def _or_large(e: Emitter, a: Number, found: Number) -> Number:
    """``found``, but log(2a) where a is so large that squares lose the rest, or overflow."""

    def with_large(e: Emitter, a: Number, found: Number) -> Number:
        k, m = parts_of(e, a, False)
        f = e.sub(m, 1.0)
        more = e.add(k, 1.0)
        doubled = e.fma(more, LOG2[0], e.add(f, e.fma(more, LOG2[1], tail_of(e, f))))
        return e.select(e.compare("ogt", a, LARGE), doubled, found)

    return where_rare(e, e.compare("ogt", a, LARGE), "log_of_double_single", with_large, found, a, found)


def arcsinh(e: Emitter, x: Number) -> Number:
    """log(1 + u), u = a + a²/(1 + √(1 + a²)), a = |x|."""
    a = magnitude(e, x)
    square = e.mul(a, a)
    u = e.add(a, e.div(square, e.add(_root(e, e.add(square, 1.0)), 1.0)))
    return with_sign(e, _or_large(e, a, log1p(e, u)), x)


def arccosh(e: Emitter, x: Number) -> Number:
    """log(1 + u), u = t + √(t (t + 2)), t = x - 1; nan below 1."""
    t = e.sub(x, 1.0)
    found = _or_large(e, x, log1p(e, e.add(t, _root(e, e.mul(t, e.add(t, 2.0))))))
    return e.select(e.compare("olt", x, 1.0), NAN, found)


def arctanh(e: Emitter, x: Number) -> Number:
    """As `inverse.arctanh`: with one division."""
    a = magnitude(e, x)
    below, above = e.sub(1.0, a), e.add(a, 1.0)
    exponent, m = parts_of(e, below, False)
    k = e.sub(e.select(e.compare("ogt", above, e.mul(m, 1.5)), 1.0, e.like(0.0, x)), exponent)
    below = e.mul(below, scaled_one(e, k))
    numerator = e.select(e.compare("oeq", k, 0.0), e.add(a, a), e.sub(above, below))
    s = e.div(numerator, e.add(above, below))
    z = e.mul(s, s)
    rest = e.fma(e.mul(s, z), e.mul(e.polynomial(z, c.LOG.single), 0.5), e.mul(k, LOG2[1] / 2))
    main, error = quick_sum(e, e.mul(k, LOG2[0] / 2), s)
    found = e.add(main, e.add(error, rest))
    found = e.select(e.compare("olt", a, 1.0), found, k)  # 1 - a is 0 at 1, and negative above
    return with_sign(e, found, x)


def cbrt(e: Emitter, x: Number) -> Number:
    """As `power.cbrt`."""
    a = magnitude(e, x)
    exponent, fraction = _fraction_of(e, a)
    third = e.fma(exponent, 1 / 3, SHIFTER)
    rest = e.fma(nearest(e, third), -3.0, exponent)
    less, more = e.compare("olt", rest, 0.0), e.compare("ogt", rest, 0.0)
    m = e.mul(fraction, e.select(more, 2.0, e.select(less, 0.5, e.like(1.0, x))))
    factor = e.select(more, c.CUBE_ROOTS[2], e.select(less, c.CUBE_ROOTS[0], e.like(c.CUBE_ROOTS[1], x)))
    guess = e.mul(e.polynomial(e.sub(fraction, 1.5), c.CBRT.single), factor)
    # With h = 1 - m y³: m**(-1/3) = y (1 + h/3 + …)
    error = e.fma(e.neg(e.mul(m, guess)), e.mul(guess, guess), 1.0)
    guess = e.fma(e.mul(guess, 1 / 3), error, guess)
    inverse_square = e.mul(guess, guess)
    root = e.mul(m, inverse_square)
    square = e.mul(root, root)
    low = e.fma(root, root, e.neg(square))
    residual = e.fma(low, root, e.fma(square, root, e.neg(m)))
    root = e.fma(residual, e.mul(inverse_square, -1 / 3), root)
    result = e.mul(root, two_to_the(e, third))
    odd = e.integer("and", e.compare("ogt", a, 0.0), e.compare("olt", a, INFINITY))
    return with_sign(e, e.select(odd, result, a), x)


def _fraction_of(e: Emitter, a: Number) -> tuple[Number, Number]:
    """The exponent of a positive finite number, as a float, and its fraction in [1, 2)."""
    if has_avx512(e):
        return avx512(e, "getexp", a), avx512(e, "getmant", a, immediate=0)
    small = e.compare("olt", a, SMALLEST_NORMAL)
    bits = e.bits(e.select(small, e.mul(a, 2.0**25), a))
    steps = e.sub(e.from_bits(e.integer("add", e.integer("lshr", bits, 23), SHIFTER_BITS)), SHIFTER)
    exponent = e.sub(steps, e.select(small, 127.0 + 25.0, e.like(127.0, a)))
    return exponent, e.from_bits(e.integer("or", e.integer("and", bits, (1 << 23) - 1), ONE_BITS))


def erf(e: Emitter, x: Number) -> Number:
    """As `error.erf`."""
    a = magnitude(e, x)
    z = e.mul(x, x)
    inner = e.fma(x, e.polynomial(z, c.ERF.single), x)
    exponent = e.polynomial(e.sub(at_most(e, a, 4.5), 1.0), c.ERF_TAIL.single)
    outer = e.sub(1.0, exp(e, e.neg(exponent)))
    return e.select(e.compare("olt", a, 1.0), inner, with_sign(e, outer, x))


FUNCTIONS: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        exp, exp2, expm1, sinh, cosh, tanh, sech, expit, log, log2, log10, log1p, sin, cos, tan, arcsin, arccos,
        arctan, arctan2, arcsinh, arccosh, arctanh, cbrt, erf,
    )
}  # fmt: skip
"""By the name of the op."""
