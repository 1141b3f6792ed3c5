"""exp and what is made of it: exp2, expm1, the hyperbolic functions, expit.

exp(x) = 2**n exp(r) with x = n log(2) + r, |r| <= log(2)/2, in float64 r held as a pair.
"""

from __future__ import annotations

from typing import NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    DOUBLE,
    Format,
    at_least,
    at_most,
    avx512,
    corrected_quotient,
    has_avx512,
    left_of,
    looked_up,
    magnitude,
    nearest,
    negative,
    scaled,
    two_to_the,
    with_sign,
)

INVERSE_LOG2 = c.INVERSE_LOG2.double[0]
NO_MORE_THAN_MINUS_ONE = -60.0  # from here down exp(x) - 1 is -1 in every format


class Reduced(NamedTuple):
    """x = n log(2) + r + low, where ``shifted`` holds n.

    With a table n is a multiple of 1/16: ``base`` is 2**(n - floor(n)) rounded, and ``low`` counts for what it lacks.
    """

    shifted: Number
    n: Number
    r: Number
    low: Number | None
    base: Number | None


def reduced(e: Emitter, x: Number, form: Format, low: Number | None = None, paired: bool = False) -> Reduced:
    """The reduction of x + ``low``, |x| <= 1500 (200 for float32); ``paired``: for differences with exp(r) - 1.

    With AVX-512 there is a table, which is one instruction. The rounding error of r is kept in float64; in float32,
    whose products are fused, it is nothing where n = 0, and little beside 2**n - 1 elsewhere.
    """
    table = has_avx512(e)
    shifter = form.shifter / 16 if table else form.shifter
    shifted = e.fma(x, INVERSE_LOG2, shifter)
    n = e.sub(shifted, shifter)
    first, second = form.parts(c.LOG2)
    whole = e.fma(n, -first, x)  # without error: the product is exact
    r = e.fma(n, -second, whole) if low is None else e.sub(whole, e.fma(n, second, e.neg(low)))
    lost = None
    if form is DOUBLE and (paired or (low is not None and not table)):
        lost = e.fma(n, -second, e.sub(whole, r))
        lost = lost if low is None else e.add(lost, low)
    if not table:
        return Reduced(shifted, n, r, lost, None)
    base, lack = powers(e, shifted, form)
    if not paired and low is None:
        return Reduced(shifted, n, r, None, base)
    return Reduced(shifted, n, r, lack if lost is None else e.add(lack, lost), base)


def powers(e: Emitter, shifted: Number, form: Format) -> tuple[Number, Number]:
    """2**(i/16) of the last four bits i, rounded; and the relative error of that."""
    index = e.bits(shifted)
    return (
        looked_up(e, "srcgrad_powers", form.parts(c.POWERS), index),
        looked_up(e, "srcgrad_powers_low", form.parts(c.POWERS_LOW), index),
    )


def exp_minus_one(e: Emitter, part: Reduced, form: Format, beside_one: bool = False) -> Number:
    """exp(r + low) - 1; ``beside_one``: its errors count beside 1, not beside itself."""
    fit = c.EXP if part.base is None else c.EXP_SHORTER if beside_one else c.EXP_SHORT
    square, p = e.mul(part.r, part.r), e.polynomial(part.r, form.terms(fit))
    if part.low is None:
        return e.fma(square, p, part.r)
    return e.add(part.r, e.fma(square, p, part.low))


def exp_of(e: Emitter, part: Reduced, form: Format) -> Number:
    """exp(r + low) 2**n."""
    rest = exp_minus_one(e, part, form, beside_one=True)
    if part.base is not None:
        return avx512(e, "scalef", left_of(e, e.fma(part.base, rest, part.base), part.n, form), part.n)
    return _scaled_in(form, e, e.add(rest, 1.0), part.n, part.shifted)


def _scaled_in(form: Format, e: Emitter, power: Number, n: Number, shifted: Number) -> Number:
    if form.spare:
        return e.mul(left_of(e, power, n, form), two_to_the(e, shifted))
    return scaled(e, power, n, shifted)


def power_of(e: Emitter, part: Reduced, quarter: bool = False) -> Number:
    """2**n, or a quarter of it, a normal number."""
    if part.base is not None:
        return avx512(e, "scalef", part.base, e.sub(part.n, 2.0) if quarter else part.n)
    return two_to_the(e, e.sub(part.shifted, 2.0) if quarter else part.shifted)


def exp(e: Emitter, x: Number, form: Format, low: Number | None = None) -> Number:
    """exp(x + low)."""
    return exp_of(e, reduced(e, at_most(e, at_least(e, x, form.smallest), form.largest), form, low), form)


def decay(e: Emitter, x: Number, form: Format) -> Number:
    """exp(-|x|), with a table within 0.75 ULP, for quotients."""
    part = reduced(e, at_least(e, e.neg(magnitude(e, x)), form.smallest), form)
    if part.base is not None:
        part = part._replace(low=powers(e, part.shifted, form)[1])
    return exp_of(e, part, form)


def exp_within(e: Emitter, x: Number, low: Number) -> Number:
    """exp(x + low) of float64 numbers where |x| <= 700; anything elsewhere."""
    return exp_of(e, reduced(e, x, DOUBLE, low), DOUBLE)


def exp2(e: Emitter, x: Number, form: Format) -> Number:
    x = at_most(e, at_least(e, x, form.smallest * INVERSE_LOG2), form.largest * INVERSE_LOG2)
    shifted = e.add(x, form.shifter)
    n = nearest(e, shifted)
    r = e.sub(x, n)
    power = e.fma(r, e.polynomial(r, form.terms(c.EXP2)), 1.0)
    return _scaled_in(form, e, power, n, shifted)


def quarter_expm1(e: Emitter, x: Number, form: Format) -> Number:
    """(exp(x) - 1)/4, -60 <= x <= the format's largest: 2**(n - 2) is a number where 2**n is not."""
    part = reduced(e, x, form, paired=True)
    power = power_of(e, part, quarter=True)
    return e.fma(power, exp_minus_one(e, part, form), e.sub(power, 0.25))


def expm1(e: Emitter, x: Number, form: Format) -> Number:
    inner = at_most(e, at_least(e, x, NO_MORE_THAN_MINUS_ONE), form.largest)
    result = e.mul(quarter_expm1(e, inner, form), 4.0)
    return e.select(e.compare("olt", magnitude(e, x), form.tiny), x, result)


def half_exp(e: Emitter, x: Number, form: Format) -> Number:
    """exp(x)/2, 0 <= x <= the format's largest."""
    part = reduced(e, x, form)
    quarter = power_of(e, part, quarter=True)
    return e.mul(e.fma(quarter, exp_minus_one(e, part, form, beside_one=True), quarter), 2.0)


def sinh(e: Emitter, x: Number, form: Format) -> Number:
    """h + h/(2h + 1) with h = (exp(|x|) - 1)/2, which loses nothing near 0."""
    a = magnitude(e, x)
    half = e.mul(quarter_expm1(e, at_most(e, a, form.largest), form), 2.0)
    whole = at_most(e, e.fma(half, 2.0, 1.0), 2.0**form.bias)
    result = e.add(half, e.div(half, whole))
    return with_sign(e, e.select(e.compare("olt", a, form.tiny), a, result), x)


def cosh(e: Emitter, x: Number, form: Format) -> Number:
    half = half_exp(e, at_most(e, magnitude(e, x), form.largest), form)
    return e.add(half, e.div(0.25, half))


class Growth(NamedTuple):
    """Of exp(2|x|) = 2**(n - held) (1 + m): n, what of it the power of m has at most, m and m + 2.

    Without a table ``held`` is shifted.
    """

    n: Number
    held: Number
    m: Number
    more: Number


def _growth(e: Emitter, x: Number, form: Format) -> Growth:
    """|x| = n log(2)/2 + r, where with a table the step is rounded once: log(1 + m) is off by n times its error."""
    a, most = at_most(e, magnitude(e, x), 2.0 - form.smallest / 2), float(form.bias - 3)  # 1/(m + 2) is normal
    if has_avx512(e):
        shifter = form.shifter / 16
        shifted = e.fma(a, 2 * INVERSE_LOG2, shifter)
        n = e.sub(shifted, shifter)
        r = e.fma(n, -form.parts(c.LOG2_ROUNDED)[0] / 2, a)
        base, lack = powers(e, shifted, form)
        terms = [term * 2.0 ** (k + 2) for k, term in enumerate(form.terms(c.EXP_SHORT))]
        rest = e.fma(r, 2.0, e.fma(e.mul(r, r), e.polynomial(r, terms), lack))
        held = at_most(e, n, most)
        power = avx512(e, "scalef", base, held)
    else:
        part = reduced(e, e.add(a, a), form, paired=True)
        n, rest, held = part.n, exp_minus_one(e, part, form), at_most(e, part.shifted, form.shifter + most)
        power = two_to_the(e, held)
    m = e.fma(power, rest, e.sub(power, 1.0))
    return Growth(n, held, m, e.add(m, 2.0))


def tanh(e: Emitter, x: Number, form: Format) -> Number:
    """m/(m + 2) with m = exp(2|x|) - 1; beyond some power of 2 it is 1."""
    part = _growth(e, x, form)
    if not (e.slopes and has_avx512(e)):
        return with_sign(e, e.div(part.m, part.more), x)
    # The derivative needs the reciprocal, and the divider takes as long for another quotient as ten or more products.
    return with_sign(e, corrected_quotient(e, part.m, part.more, e.div(1.0, part.more)), x)


def sech_squared(e: Emitter, x: Number, form: Format) -> Number:
    """z (2 - z), z = 2/(m + 2) = 1 - tanh|x|, m = exp(2|x|) - 1: the derivative of tanh, whose instructions it has."""
    part = _growth(e, x, form)
    rest = e.div(1.0, part.more)
    rest = e.add(rest, rest)
    found = e.mul(rest, e.sub(2.0, rest))
    found = e.select(e.compare("ult", part.n, 3.0 - form.nothing), found, 0.0)  # 4/exp(2|x|) far out
    if has_avx512(e):
        found = e.fma(found, e.mul(part.n, form.parts(c.LOG2_ROUNDED)[1]), found)
        # scalef takes the floor, and held may be n without its fraction.
        return scaled(e, found, e.add(e.sub(part.held, part.n), 15 / 16))
    return e.mul(found, two_to_the(e, e.sub(part.held, part.n)))


def sech(e: Emitter, x: Number, form: Format) -> Number:
    """2t/(1 + t²) with t = exp(-|x|)."""
    t = decay(e, x, form)
    return e.div(e.add(t, t), e.fma(t, t, 1.0))


def expit(e: Emitter, x: Number, form: Format) -> Number:
    """1/(1 + t), and t/(1 + t) of a negative x, with t = exp(-|x|): nothing overflows."""
    t = decay(e, x, form)
    return e.div(e.select(negative(e, x), t, 1.0), e.add(t, 1.0))
