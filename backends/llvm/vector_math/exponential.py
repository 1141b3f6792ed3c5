"""exp and what is made of it: exp2, expm1, the hyperbolic functions, expit.

exp(x) = 2**n exp(r) with x = n log(2) + r, |r| <= log(2)/2, r held as a pair. ``single`` says that the float64 operands
come from float32 and the results go there: lower degrees and fewer corrections do.
"""

from __future__ import annotations

from typing import NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    SHIFTER,
    at_least,
    at_most,
    magnitude,
    nearest,
    negative,
    quarter_of_two_to_the,
    scaled,
    scaled_one,
    two_to_the,
    with_sign,
)

INVERSE_LOG2 = 1.4426950408889634
TINY = 2.0**-54  # below, x is the nearest float to what begins with x


class Reduced(NamedTuple):
    """x = n log(2) + r + low, and exp(r + low) - 1; ``shifted`` is n + SHIFTER."""

    shifted: Number
    n: Number
    minus_one: Number


def reduced(e: Emitter, x: Number, single: bool, low: Number | None = None, paired: bool = False) -> Reduced:
    """The reduction of x + ``low``, |x| <= 1500; ``paired`` keeps the rounding error of r."""
    shifted = e.fma(x, INVERSE_LOG2, SHIFTER)
    n = nearest(e, shifted)
    first = e.fma(n, -c.LOG2[0], x)  # without error: the product is exact
    small = e.mul(n, c.LOG2[1])
    if low is not None:
        small = e.sub(small, low)
    r = e.sub(first, small)
    p = e.mul(e.mul(r, r), e.polynomial(r, c.EXP.of(single)))
    if (paired or low is not None) and not single:
        p = e.add(p, e.sub(e.sub(first, r), small))
    return Reduced(shifted, n, e.add(r, p))


def exp(e: Emitter, x: Number, single: bool, low: Number | None = None) -> Number:
    """exp(x + low)."""
    if single:
        x = at_most(e, at_least(e, x, -200.0), 200.0)
        part = reduced(e, x, single, low)
        return e.mul(e.add(part.minus_one, 1.0), two_to_the(e, part.shifted))
    x = at_most(e, at_least(e, x, -746.0), 710.0)
    part = reduced(e, x, single, low)
    return scaled(e, e.add(part.minus_one, 1.0), part.n)


def exp_within(e: Emitter, x: Number, low: Number) -> Number:
    """exp(x + low) where |x| <= 700; anything elsewhere."""
    part = reduced(e, x, False, low)
    return scaled(e, e.add(part.minus_one, 1.0), part.n)


def exp2(e: Emitter, x: Number, single: bool) -> Number:
    x = at_most(e, at_least(e, x, -1080.0 if not single else -200.0), 1030.0 if not single else 200.0)
    shifted = e.add(x, SHIFTER)
    n = nearest(e, shifted)
    r = e.sub(x, n)
    power = e.fma(r, e.polynomial(r, c.EXP2.of(single)), 1.0)
    return e.mul(power, two_to_the(e, shifted)) if single else scaled(e, power, n)


def quarter_expm1(e: Emitter, x: Number, single: bool) -> Number:
    """(exp(x) - 1)/4, -60 <= x <= 710.5: 2**(n - 2) is a float where 2**n is not."""
    part = reduced(e, x, single, paired=True)
    power = quarter_of_two_to_the(e, part.shifted, part.n)
    return e.fma(power, part.minus_one, e.sub(power, 0.25))


def expm1(e: Emitter, x: Number, single: bool) -> Number:
    inner = at_most(e, at_least(e, x, -60.0), 710.0)
    result = e.mul(quarter_expm1(e, inner, single), 4.0)
    return e.select(e.compare("olt", magnitude(e, x), TINY), x, result)


def half_exp(e: Emitter, x: Number, single: bool) -> Number:
    """exp(x)/2, 0 <= x <= 710.5."""
    part = reduced(e, x, single)
    quarter = quarter_of_two_to_the(e, part.shifted, part.n)
    return e.mul(e.mul(e.add(part.minus_one, 1.0), quarter), 2.0)


def sinh(e: Emitter, x: Number, single: bool) -> Number:
    """h + h/(2h + 1) with h = (exp(|x|) - 1)/2, which loses nothing near 0."""
    a = magnitude(e, x)
    half = e.mul(quarter_expm1(e, at_most(e, a, 710.5), single), 2.0)
    whole = at_most(e, e.fma(half, 2.0, 1.0), 1e308)
    result = e.add(half, e.div(half, whole))
    return with_sign(e, e.select(e.compare("olt", a, TINY), a, result), x)


def cosh(e: Emitter, x: Number, single: bool) -> Number:
    half = half_exp(e, at_most(e, magnitude(e, x), 710.5), single)
    return e.add(half, e.div(0.25, half))


def tanh(e: Emitter, x: Number, single: bool) -> Number:
    """m/(m + 2) with m = exp(2|x|) - 1."""
    a = at_most(e, magnitude(e, x), 20.0)
    part = reduced(e, e.add(a, a), single, paired=True)
    power = scaled_one(e, part.shifted, part.n)
    m = e.fma(power, part.minus_one, e.sub(power, 1.0))
    return with_sign(e, e.div(m, e.add(m, 2.0)), x)


def sech(e: Emitter, x: Number, single: bool) -> Number:
    """2t/(1 + t²) with t = exp(-|x|)."""
    t = exp(e, e.neg(magnitude(e, x)), single)
    return e.div(e.add(t, t), e.fma(t, t, 1.0))


def expit(e: Emitter, x: Number, single: bool) -> Number:
    """1/(1 + t), and t/(1 + t) of a negative x, with t = exp(-|x|): nothing overflows."""
    t = exp(e, e.neg(magnitude(e, x)), single)
    return e.div(e.select(negative(e, x), t, 1.0), e.add(t, 1.0))
