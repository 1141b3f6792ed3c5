"""The error function and its complement."""

from __future__ import annotations

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import at_most, exact_product, magnitude, negative, two_to_the, with_sign
from srcgrad.backends.llvm.vector_math.exponential import exp, reduced


def erf(e: Emitter, x: Number, single: bool) -> Number:
    """x + x p(x²) up to 1; 1 - exp(-p(|x|)) above, where 1 - erf is at most 0.16 and so is what its errors count."""
    a = magnitude(e, x)
    z = e.mul(x, x)
    inner = e.fma(x, e.polynomial(z, c.ERF.of(single)), x)
    exponent = e.polynomial(e.sub(at_most(e, a, 6.0), 1.0), c.ERF_TAIL.of(single))
    part = reduced(e, e.neg(exponent), single)
    power = two_to_the(e, part.shifted)
    outer = e.sub(e.sub(1.0, power), e.mul(power, part.minus_one))
    return e.select(e.compare("olt", a, 1.0), inner, with_sign(e, outer, x))


def erfc(e: Emitter, x: Number, single: bool) -> Number:
    """1 - erf(x) up to 1/2 in magnitude; exp(-x²) q/(1 + 2|x|) above, 2 minus that below."""
    a = magnitude(e, x)
    inner = e.sub(1.0, e.fma(x, e.polynomial(e.mul(x, x), c.ERF.of(single)), x))
    far = at_most(e, a, 30.0)
    q = e.horner(e.div(e.sub(far, 4.0), e.add(far, 4.0)), c.ERFC.of(single))
    if single:
        decay = exp(e, e.neg(e.mul(far, far)), single)
    else:
        square, low = exact_product(e, far, far)
        decay = exp(e, e.neg(square), single, e.neg(low))
    # The quotient first: the product may be subnormal.
    tail = e.mul(e.div(q, e.fma(far, 2.0, 1.0)), decay)
    tail = e.select(negative(e, x), e.sub(2.0, tail), tail)
    return e.select(e.compare("olt", a, 0.5), inner, tail)
