"""Inverse functions: of sine, cosine and tangent, and of the hyperbolic ones.

The formulas for the inverse hyperbolic ones are those that end in log(1 + u), whose relative error is no larger than
that of u. Source: Abramowitz and Stegun, 4.4 and 4.6.
"""

from __future__ import annotations

import math

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    INFINITY,
    NAN,
    SHIFTER,
    magnitude,
    negative,
    quick_sum,
    truncated,
    two_to_the,
    where_rare,
    with_sign,
)
from srcgrad.backends.llvm.vector_math.logarithm import log, log1p, parts_of

TAN_EIGHTH = math.sqrt(2) - 1  # tan(π/8)
LARGE = 2.0**28  # above, 1 is nothing beside the square


def _root(e: Emitter, x: Number) -> Number:
    return e.intrinsic("sqrt", x)


def _arcsin_parts(e: Emitter, a: Number, single: bool) -> tuple[Number, Number, Number, Number]:
    """Whether a > 1/2; r, which is a, or √((1 - a)/2) above; its rounding error; and arcsin(r) - r."""
    large = e.compare("ogt", a, 0.5)
    half = e.fma(a, -0.5, 0.5)
    z = e.select(large, half, e.mul(a, a))
    root = _root(e, half)
    r = e.select(large, root, a)
    p = e.mul(e.mul(r, z), e.polynomial(z, c.ARCSIN.of(single)))
    if single:
        return large, r, e.constant(0.0, a.dtype, a.lanes), p
    # half - root², over the sum of root and what is nearly root.
    high = truncated(e, root, 27)
    low = e.div(e.sub(half, e.mul(high, high)), e.add(root, high))
    error = e.sub(low, e.sub(root, high))
    return large, r, e.select(e.compare("ogt", root, 0.0), error, 0.0), p


def arcsin(e: Emitter, x: Number, single: bool) -> Number:
    """r + p up to 1/2; above π/2 - 2 (r + error + p)."""
    a = magnitude(e, x)
    large, r, error, p = _arcsin_parts(e, a, single)
    p = e.select(large, e.sub(e.fma(p, -2.0, c.HALF_PI[1]), e.add(error, error)), p)
    main, rest = quick_sum(e, e.constant(c.HALF_PI[0], x.dtype, x.lanes), e.mul(r, -2.0))
    found = e.add(e.select(large, main, r), e.add(p, e.select(large, rest, 0.0)))
    return with_sign(e, found, x)


def arccos(e: Emitter, x: Number, single: bool) -> Number:
    """π/2 - (r + p) up to 1/2 in magnitude; 2 (r + error + p) above, π minus that below."""
    a = magnitude(e, x)
    large, r, error, p = _arcsin_parts(e, a, single)
    below = negative(e, x)
    # The middle: x has its sign.
    signed, small = with_sign(e, r, x), with_sign(e, p, x)
    quarter, rest = quick_sum(e, e.constant(c.HALF_PI[0], x.dtype, x.lanes), e.neg(signed))
    middle = e.add(quarter, e.add(rest, e.sub(c.HALF_PI[1], small)))
    twice, more = e.add(r, r), e.mul(e.add(p, error), 2.0)
    half_turn, lost = quick_sum(e, e.constant(c.PI[0], x.dtype, x.lanes), e.neg(twice))
    left = e.add(half_turn, e.add(lost, e.sub(c.PI[1], more)))
    return e.select(large, e.select(below, left, e.add(twice, more)), middle)


def arctan(e: Emitter, x: Number, single: bool) -> Number:
    """Of a = |x|: arctan a, π/4 + arctan((a - 1)/(a + 1)), or π/2 + arctan(-1/a)."""
    a = magnitude(e, x)
    middle, large = e.compare("ogt", a, TAN_EIGHTH), e.compare("ogt", a, 1 / TAN_EIGHTH)
    above = e.select(large, -1.0, e.select(middle, e.sub(a, 1.0), a))
    below = e.select(large, a, e.select(middle, e.add(a, 1.0), e.constant(1.0, x.dtype, x.lanes)))
    base = _choose(e, middle, large, c.QUARTER_PI[0], c.HALF_PI[0], x)
    rest = _choose(e, middle, large, c.QUARTER_PI[1], c.HALF_PI[1], x)
    return with_sign(e, _arctan_sum(e, e.div(above, below), base, rest, single), x)


def _choose(e: Emitter, middle: Number, large: Number, quarter: float, half: float, like: Number) -> Number:
    zero = e.constant(0.0, like.dtype, like.lanes)
    return e.select(large, half, e.select(middle, quarter, zero))


def _arctan_sum(e: Emitter, t: Number, base: Number, rest: Number, single: bool) -> Number:
    """base + rest + arctan(t), |t| <= tan(π/8)."""
    z = e.mul(t, t)
    p = e.mul(e.mul(t, z), e.polynomial(z, c.ARCTAN.of(single)))
    return e.add(base, e.add(t, e.add(p, rest)))


def arctan2(e: Emitter, y: Number, x: Number, single: bool) -> Number:
    """As arctan of |y|/|x|, with one division; π minus that where x is negative."""
    a, b = magnitude(e, y), magnitude(e, x)
    both = e.integer("and", e.compare("oeq", a, INFINITY), e.compare("oeq", b, INFINITY))
    a, b = e.select(both, 1.0, a), e.select(both, 1.0, b)
    if not single:
        # A sum may overflow, and products with subnormal numbers are too coarse to choose by.
        most = e.select(e.compare("ogt", a, b), a, b)
        factor = e.select(e.compare("ogt", most, 2.0**1021), 0.25, e.like(1.0, x))
        factor = e.select(e.compare("olt", most, 2.0**-500), 2.0**500, factor)
        a, b = e.mul(a, factor), e.mul(b, factor)
    # Products with the smaller constant: the larger would overflow.
    middle = e.compare("ogt", a, e.mul(b, TAN_EIGHTH))
    large = e.compare("ogt", e.mul(a, TAN_EIGHTH), b)
    above = e.select(large, e.neg(b), e.select(middle, e.sub(a, b), a))
    below = e.select(large, a, e.select(middle, e.add(a, b), b))
    # 0/0 is 0 here; nan is kept.
    below = e.select(e.compare("oeq", below, 0.0), 1.0, below)
    t, left = e.div(above, below), negative(e, x)
    t = e.select(left, e.neg(t), t)
    zero = e.constant(0.0, x.dtype, x.lanes)
    base, rest = (
        e.select(large, half, e.select(middle, e.select(left, three, e.like(one, x)), e.select(left, whole, zero)))
        for one, half, three, whole in zip(c.QUARTER_PI, c.HALF_PI[:2], c.THREE_QUARTER_PI, c.PI, strict=True)
    )
    return with_sign(e, _arctan_sum(e, t, base, rest, single), y)


def _or_large(e: Emitter, a: Number, found: Number) -> Number:
    """``found``, but log(2a) where a is so large that squares lose the rest, or overflow."""

    def with_large(e: Emitter, a: Number, found: Number) -> Number:
        k, m = parts_of(e, a, False)
        doubled = log(e, m, False)
        doubled = e.fma(e.add(k, 1.0), sum(c.LOG2), doubled)
        return e.select(e.compare("ogt", a, LARGE), doubled, found)

    return where_rare(e, e.compare("ogt", a, LARGE), "log_of_double", with_large, found, a, found)


def arcsinh(e: Emitter, x: Number, single: bool) -> Number:
    """log(1 + u), u = a + a²/(1 + √(1 + a²)), a = |x|."""
    a = magnitude(e, x)
    square = e.mul(a, a)
    u = e.add(a, e.div(square, e.add(_root(e, e.add(square, 1.0)), 1.0)))
    return with_sign(e, _or_large(e, a, log1p(e, u, single)), x)


def arccosh(e: Emitter, x: Number, single: bool) -> Number:
    """log(1 + u), u = t + √(t (t + 2)), t = x - 1; nan below 1."""
    t = e.sub(x, 1.0)
    found = _or_large(e, x, log1p(e, e.add(t, _root(e, e.mul(t, e.add(t, 2.0)))), single))
    return e.select(e.compare("olt", x, 1.0), NAN, found)


def arctanh(e: Emitter, x: Number, single: bool) -> Number:
    """log((1 + a)/(1 - a))/2, a = |x|: k log(2)/2 + artanh(s), the quotient being 2**k (1 + s)/(1 - s), |s| <= 1/5.

    s = (1 + a - 2**k (1 - a))/(1 + a + 2**k (1 - a)): its numerator is 2a where k = 0.
    """
    a = magnitude(e, x)
    below, above = e.sub(1.0, a), e.add(a, 1.0)
    exponent, m = parts_of(e, below, False)
    less = e.compare("ogt", above, e.mul(m, 1.5))
    k = e.sub(e.select(less, 1.0, e.like(0.0, x)), exponent)
    below = e.mul(below, two_to_the(e, e.add(k, SHIFTER)))
    numerator = e.select(e.compare("oeq", k, 0.0), e.add(a, a), e.sub(above, below))
    s = e.div(numerator, e.add(above, below))
    z = e.mul(s, s)
    rest = e.mul(e.mul(s, z), e.mul(e.polynomial(z, c.LOG.of(single)), 0.5))
    rest = e.fma(k, c.LOG2[1] / 2, rest)
    main, error = quick_sum(e, e.mul(k, c.LOG2[0] / 2), s)
    found = e.add(main, e.add(error, rest))
    # 1 - a is 0 at 1, and negative above.
    found = e.select(e.compare("olt", a, 1.0), found, k)
    return with_sign(e, found, x)
