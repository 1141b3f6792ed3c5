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
    SINGLE,
    Format,
    at_least,
    magnitude,
    negative,
    quick_sum,
    root_pair,
    where_rare,
    with_sign,
)
from srcgrad.backends.llvm.vector_math.logarithm import log1p_of_exponent, log_of_parts, parts_of

TAN_EIGHTH = math.sqrt(2) - 1  # tan(π/8)
SMALLEST = 2.0**-149  # of float32
LARGE = 2.0**28  # above, 1 is nothing beside the square


def _root(e: Emitter, x: Number) -> Number:
    return e.intrinsic("sqrt", x)


def _arcsin_parts(e: Emitter, a: Number, form: Format) -> tuple[Number, Number, Number, Number]:
    """Whether a > 1/2; r, which is a, or √((1 - a)/2) above; its rounding error in float64; and arcsin(r) - r."""
    large = e.compare("ogt", a, 0.5)
    half = e.fma(a, -0.5, 0.5)
    z = e.select(large, half, e.mul(a, a))
    root, error = (_root(e, half), e.like(0.0, a)) if form.short else root_pair(e, half)
    r = e.select(large, root, a)
    p = e.mul(e.mul(r, z), e.polynomial(z, form.terms(c.ARCSIN)))
    return large, r, error, p


def arcsin(e: Emitter, x: Number, form: Format) -> Number:
    """r + p up to 1/2; above π/2 - 2 (r + error + p)."""
    a, half_pi = magnitude(e, x), form.parts(c.HALF_PI)
    large, r, error, p = _arcsin_parts(e, a, form)
    p = e.select(large, e.sub(e.fma(p, -2.0, half_pi[1]), e.add(error, error)), p)
    main, rest = quick_sum(e, e.like(half_pi[0], x), e.mul(r, -2.0))
    found = e.add(e.select(large, main, r), e.add(p, e.select(large, rest, 0.0)))
    return with_sign(e, found, x)


def arccos(e: Emitter, x: Number, form: Format) -> Number:
    """π/2 - (r + p) up to 1/2 in magnitude; 2 (r + error + p) above, π minus that below."""
    a, half_pi, pi = magnitude(e, x), form.parts(c.HALF_PI), form.parts(c.PI)
    large, r, error, p = _arcsin_parts(e, a, form)
    below = negative(e, x)
    if form.short:
        found = e.add(r, p)
        middle = e.sub(half_pi[0], e.sub(with_sign(e, found, x), half_pi[1]))
        twice = e.add(found, found)
        return e.select(large, e.select(below, e.sub(pi[0], e.sub(twice, pi[1])), twice), middle)
    # The middle: x has its sign.
    signed, small = with_sign(e, r, x), with_sign(e, p, x)
    quarter, rest = quick_sum(e, e.like(half_pi[0], x), e.neg(signed))
    middle = e.add(quarter, e.add(rest, e.sub(half_pi[1], small)))
    twice, more = e.add(r, r), e.mul(e.add(p, error), 2.0)
    half_turn, lost = quick_sum(e, e.like(pi[0], x), e.neg(twice))
    left = e.add(half_turn, e.add(lost, e.sub(pi[1], more)))
    return e.select(large, e.select(below, left, e.add(twice, more)), middle)


def arctan(e: Emitter, x: Number, form: Format) -> Number:
    """Of a = |x|: arctan a, π/4 + arctan((a - 1)/(a + 1)), or π/2 + arctan(-1/a)."""
    a = magnitude(e, x)
    middle, large = e.compare("ogt", a, TAN_EIGHTH), e.compare("ogt", a, 1 / TAN_EIGHTH)
    above = e.select(large, -1.0, e.select(middle, e.sub(a, 1.0), a))
    below = e.select(large, a, e.select(middle, e.add(a, 1.0), e.like(1.0, x)))
    base, rest = (
        e.select(large, half, e.select(middle, quarter, e.like(0.0, x)))
        for quarter, half in zip(form.parts(c.QUARTER_PI), form.parts(c.HALF_PI)[:2], strict=True)
    )
    return with_sign(e, _arctan_sum(e, e.div(above, below), base, rest, form), x)


def _arctan_sum(e: Emitter, t: Number, base: Number, rest: Number, form: Format) -> Number:
    """base + rest + arctan(t), |t| <= tan(π/8)."""
    z = e.mul(t, t)
    p = e.fma(e.mul(t, z), e.polynomial(z, form.terms(c.ARCTAN)), rest)
    return e.add(base, e.add(t, p))


def arctan2(e: Emitter, y: Number, x: Number, form: Format) -> Number:
    """As arctan of |y|/|x|, with one division; π minus that where x is negative."""
    if form is SINGLE:
        return _arctan2_of_quotient(e, y, x)
    a, b = magnitude(e, y), magnitude(e, x)
    both = e.integer("and", e.compare("oeq", a, INFINITY), e.compare("oeq", b, INFINITY))
    a, b = e.select(both, 1.0, a), e.select(both, 1.0, b)
    if not form.spare:
        # A sum may overflow, and products with subnormal numbers are too coarse to choose by.
        most = e.select(e.compare("ogt", a, b), a, b)
        high, low = 2.0 ** (form.bias - 2), 2.0 ** -(form.bias // 2)
        factor = e.select(e.compare("ogt", most, high), 0.25, e.like(1.0, x))
        factor = e.select(e.compare("olt", most, low), 1 / low, factor)
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
    angles = (form.parts(angle)[:2] for angle in (c.QUARTER_PI, c.HALF_PI, c.THREE_QUARTER_PI, c.PI))
    zero = e.like(0.0, x)
    base, rest = (
        e.select(large, half, e.select(middle, e.select(left, three, e.like(one, x)), e.select(left, whole, zero)))
        for one, half, three, whole in zip(*angles, strict=True)
    )
    return with_sign(e, _arctan_sum(e, t, base, rest, form), y)


def _arctan2_of_quotient(e: Emitter, y: Number, x: Number) -> Number:
    """Of float32 numbers: arctan(q), q the smaller of |y| and |x| over the larger, taken from π/2 and from π."""
    a, b = magnitude(e, y), magnitude(e, x)
    swap = e.compare("ogt", a, b)
    above, below = e.select(swap, b, a), at_least(e, e.select(swap, a, b), SMALLEST)
    # 0/0 is 0 here, and infinity over infinity 1; nan is kept, by either.
    q = e.select(e.compare("oeq", above, below), 1.0, e.div(above, below))
    z = e.mul(q, q)
    t = e.fma(e.mul(q, z), e.polynomial(z, SINGLE.terms(c.ARCTAN_OF_QUOTIENT)), q)
    (half, half_low, _), (pi, pi_low) = SINGLE.parts(c.HALF_PI), SINGLE.parts(c.PI)
    t = e.select(swap, e.add(e.sub(half, t), half_low), t)
    t = e.select(negative(e, x), e.add(e.sub(pi, t), pi_low), t)
    return with_sign(e, t, y)


def _or_large(e: Emitter, a: Number, found: Number, form: Format) -> Number:
    """``found``, but log(2a) where a is so large that squares lose the rest, or overflow."""

    def with_large(e: Emitter, a: Number, found: Number) -> Number:
        k, m = parts_of(e, a, False)
        doubled = log_of_parts(e, e.add(k, 1.0), e.sub(m, 1.0), form)
        return e.select(e.compare("ogt", a, LARGE), doubled, found)

    name = "log_of_double_short" if form.short else "log_of_double"
    return where_rare(e, e.compare("ogt", a, LARGE), name, with_large, found, a, found)


def arcsinh(e: Emitter, x: Number, form: Format) -> Number:
    """log(1 + u), u = a + a²/(1 + √(1 + a²)), a = |x|; 1 + u is also a + √(1 + a²)."""
    a = magnitude(e, x)
    square = e.mul(a, a)
    root = _root(e, e.add(square, 1.0))
    u = e.add(a, e.div(square, e.add(root, 1.0)))
    found = log1p_of_exponent(e, u, parts_of(e, e.add(a, root), False).k, form)
    return with_sign(e, _or_large(e, a, found, form), x)


def arccosh(e: Emitter, x: Number, form: Format) -> Number:
    """log(1 + u), u = t + √(t (t + 2)), t = x - 1; nan below 1."""
    t = e.sub(x, 1.0)
    root = _root(e, e.mul(t, e.add(t, 2.0)))
    found = log1p_of_exponent(e, e.add(t, root), parts_of(e, e.add(x, root), False).k, form)
    return e.select(e.compare("olt", x, 1.0), NAN, _or_large(e, x, found, form))


def arctanh(e: Emitter, x: Number, form: Format) -> Number:
    """log((1 + a)/(1 - a))/2, a = |x|: k log(2)/2 + artanh(s), the quotient being 2**k (1 + s)/(1 - s), |s| <= 1/5.

    s = (1 + a - 2**k (1 - a))/(1 + a + 2**k (1 - a)): its numerator is 2a where k = 0.
    """
    a = magnitude(e, x)
    below, above = e.sub(1.0, a), e.add(a, 1.0)
    exponent, m = parts_of(e, below, False)
    less = e.compare("ogt", above, e.mul(m, 1.5))
    k = e.sub(e.select(less, 1.0, e.like(0.0, x)), exponent)
    below = e.select(less, e.add(m, m), m)
    numerator = e.select(e.compare("oeq", k, 0.0), e.add(a, a), e.sub(above, below))
    s = e.div(numerator, e.add(above, below))
    z = e.mul(s, s)
    half, small = (part / 2 for part in form.parts(c.LOG2))
    rest = e.fma(e.mul(s, z), e.mul(e.polynomial(z, form.terms(c.LOG)), 0.5), e.mul(k, small))
    main, error = quick_sum(e, e.mul(k, half), s)
    found = e.add(main, e.add(error, rest))
    # 1 - a is 0 at 1, and negative above.
    found = e.select(e.compare("olt", a, 1.0), found, k)
    return with_sign(e, found, x)
