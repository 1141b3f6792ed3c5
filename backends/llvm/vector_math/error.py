"""The error function, its complement, scaled too, and the exponential of a square, which is the derivative of both."""

from __future__ import annotations

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    Format,
    at_most,
    exact_product,
    magnitude,
    negative,
    with_sign,
)
from srcgrad.backends.llvm.vector_math.exponential import exp, exp_minus_one, power_of, reduced


def erf(e: Emitter, x: Number, form: Format) -> Number:
    """x + x p(x²) up to 1; 1 - exp(-p(|x|)) above, where 1 - erf is at most 0.16 and so is what its errors count."""
    a = magnitude(e, x)
    z = e.mul(x, x)
    inner = e.fma(x, e.polynomial(z, form.terms(c.ERF)), x)
    exponent = e.polynomial(e.sub(at_most(e, a, 6.0), 1.0), form.terms(c.ERF_TAIL))
    part = reduced(e, e.neg(exponent), form)
    power = power_of(e, part)
    outer = e.fma(e.neg(power), exp_minus_one(e, part, form), e.sub(1.0, power))
    return e.select(e.compare("olt", a, 1.0), inner, with_sign(e, outer, x))


def erfc(e: Emitter, x: Number, form: Format) -> Number:
    """1 - erf(x) up to 1/2 in magnitude; exp(-x²) q/(1 + 2|x|) above, 2 minus that below."""
    a = magnitude(e, x)
    inner = e.sub(1.0, e.fma(x, e.polynomial(e.mul(x, x), form.terms(c.ERF)), x))
    far = at_most(e, a, 30.0)
    q = e.horner(e.div(e.sub(far, 4.0), e.add(far, 4.0)), form.terms(c.ERFC))
    # The quotient first: the product may be subnormal.
    tail = e.mul(e.div(q, e.fma(far, 2.0, 1.0)), exp_of_square(e, far, form))
    tail = e.select(negative(e, x), e.sub(2.0, tail), tail)
    return e.select(e.compare("olt", a, 0.5), inner, tail)


def erfcx(e: Emitter, x: Number, form: Format) -> Number:
    """exp(x²) erfc(x): q/(1 + 2x), and 2 exp(x²) less that of -x where x is negative."""
    a = magnitude(e, x)
    near = at_most(e, a, 1e30)
    q = e.horner(e.div(e.sub(near, 4.0), e.add(near, 4.0)), form.terms(c.ERFC))
    found = e.div(e.mul(q, 0.5), e.add(a, 0.5))
    square = exp_of_square(e, at_most(e, a, 30.0), form, -1.0)
    return e.select(negative(e, x), e.sub(e.add(square, square), found), found)


def bell(e: Emitter, x: Number, form: Format) -> Number:
    """exp(-x²)."""
    return exp_of_square(e, at_most(e, magnitude(e, x), 60.0), form)


def half_bell(e: Emitter, x: Number, form: Format) -> Number:
    """exp(-x²/2)."""
    return exp_of_square(e, at_most(e, magnitude(e, x), 60.0), form, 0.5)


def exp_of_square(e: Emitter, x: Number, form: Format, factor: float = 1.0) -> Number:
    """exp(-factor x²) of small x and a power of 2: the exponential magnifies the rounding error of the square."""
    if form.spare:
        return exp(e, e.mul(e.mul(x, x), -factor), form)
    square, low = exact_product(e, x, x)
    return exp(e, e.mul(square, -factor), form, e.mul(low, -factor))
