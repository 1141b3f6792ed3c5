"""log|Γ|, digamma and its derivative.

Near the zeros of positive arguments polynomials that have them keep the relative error small; the zeros of negative
arguments are differences, and there the error is small beside the terms only. Source: DLMF chapter 5.
"""

from __future__ import annotations

import math

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import INFINITY, NAN, Format, magnitude, negative
from srcgrad.backends.llvm.vector_math.logarithm import log

STIRLING_FROM = 4.5


def lgamma(e: Emitter, x: Number, form: Format) -> Number:
    """Stirling's series from 9/2 on; below, the argument is brought next to 2 by factors; reflected where negative."""
    a = magnitude(e, x)
    large = e.compare("oge", a, STIRLING_FROM)
    one = e.like(1.0, x)
    # log Γ(a) = log Γ(2 + t) + log(factor), or - log(factor) where a is small.
    small, three, four = e.compare("olt", a, 1.0), e.compare("oge", a, 2.5), e.compare("oge", a, 3.5)
    whole = e.select(four, 4.0, e.select(three, 3.0, e.select(small, 1.0, e.like(2.0, x))))
    t = e.sub(a, whole)
    above = e.select(three, e.sub(a, 1.0), one)
    above = e.select(four, e.mul(above, e.sub(a, 2.0)), above)
    argument = e.select(e.integer("or", large, small), a, above)
    logarithm = log(e, argument, form)
    # 1 + t is a where a is small, and rounded once elsewhere.
    after = e.select(small, a, e.add(t, 1.0))
    middle = e.mul(e.mul(t, after), e.horner(t, form.terms(c.LGAMMA)))
    middle = e.add(middle, e.select(small, e.neg(logarithm), logarithm))
    inverse = e.div(1.0, a)
    series = e.mul(inverse, e.polynomial(e.mul(inverse, inverse), form.terms(c.STIRLING)))
    # (a - 1/2) (log a - 1) + (log(2π) - 1)/2 + series
    half = (math.log(2 * math.pi) - 1) / 2
    stirling = e.fma(e.sub(a, 0.5), e.sub(logarithm, 1.0), e.add(series, half))
    stirling = e.select(e.compare("olt", a, INFINITY), stirling, a)
    found = e.select(large, stirling, middle)
    mirrored = e.sub(log(e, _reflection(e, a, form), form), found)
    found = e.select(e.integer("and", negative(e, x), e.compare("ogt", a, 0.0)), mirrored, found)
    pole = e.integer("and", e.compare("ole", x, 0.0), e.compare("oeq", e.intrinsic("floor", x), x))
    found = e.select(pole, INFINITY, found)
    return e.select(e.compare("oeq", x, -INFINITY), -INFINITY, found)


def _reflection(e: Emitter, a: Number, form: Format) -> Number:
    """Γ(a) |Γ(-a)| = π/(a |sin(π a)|)."""
    r = e.sub(a, e.intrinsic("rint", a))
    sine = e.mul(r, e.polynomial(e.mul(r, r), form.terms(c.SINPI)))
    return e.div(math.pi, magnitude(e, e.mul(a, sine)))


def digamma(e: Emitter, x: Number, form: Format) -> Number:
    """The asymptotic series from 3 on; a polynomial with the root on [1, 2], reached by one step; reflected below 0."""
    left = e.compare("olt", x, 0.0)
    a = magnitude(e, x)
    large = e.compare("oge", a, 3.0)
    small, beyond = e.compare("olt", a, 1.0), e.compare("oge", a, 2.0)
    shifted = e.sub(a, 1.0)
    near = e.select(small, a, e.select(beyond, e.sub(a, 2.0), shifted))
    # near = position - 1: the position is a + 1, a or a - 1.
    t = e.sub(near, 0.5)
    distance = e.sub(e.sub(near, c.DIGAMMA_ROOT[0] - 1.0), c.DIGAMMA_ROOT[1])
    middle = e.mul(distance, e.polynomial(t, form.terms(c.DIGAMMA)))
    inverse = e.div(1.0, e.select(e.integer("and", beyond, e.invert(large)), shifted, a))
    step = e.select(small, e.neg(inverse), e.select(beyond, inverse, e.like(0.0, x)))
    z = e.mul(inverse, inverse)
    series = e.fma(z, e.polynomial(z, form.terms(c.DIGAMMA_TAIL)), e.mul(inverse, 0.5))
    found = e.select(large, e.sub(log(e, a, form), series), e.add(middle, step))
    # psi(-a) = psi(a) + 1/a + π cot(π a)
    r = e.sub(a, e.intrinsic("rint", a))
    mirrored = e.add(found, e.add(e.div(1.0, a), _cotangent(e, r, form)))
    # At 1/a large both are -1/a + …; there psi(1 + a) is the polynomial itself.
    close = e.add(middle, _cotangent(e, r, form))
    found = e.select(left, e.select(small, close, mirrored), found)
    found = e.select(e.integer("and", left, e.compare("oeq", r, 0.0)), NAN, found)
    infinite = e.select(negative(e, x), INFINITY, e.like(-INFINITY, x))
    return e.select(e.compare("oeq", x, 0.0), infinite, found)


def trigamma(e: Emitter, x: Number, form: Format) -> Number:
    """The derivative of digamma: a polynomial on [1, 2], the asymptotic series from 2 on; reflected below 0."""
    left = e.compare("olt", x, 0.0)
    a = magnitude(e, x)
    large, small = e.compare("oge", a, 2.0), e.compare("olt", a, 1.0)
    t = e.sub(a, e.select(small, 0.5, e.like(1.5, x)))
    middle = e.polynomial(e.select(large, 0.0, t), form.terms(c.TRIGAMMA))
    inverse = e.div(1.0, a)
    z = e.mul(inverse, inverse)
    series = e.fma(z, e.fma(e.polynomial(e.select(large, z, 0.25), form.terms(c.TRIGAMMA_TAIL)), inverse, 0.5), inverse)
    beyond = e.select(large, series, middle)
    # psi'(a) = psi'(1 + a) + 1/a²
    found = e.select(small, e.add(middle, z), beyond)
    # psi'(-a) = (π/sin(π a))² - psi'(1 + a)
    r = e.sub(a, e.intrinsic("rint", a))
    sine = e.mul(r, e.polynomial(e.mul(r, r), form.terms(c.SINPI)))
    cosecant = e.div(math.pi, sine)
    after = e.select(small, middle, e.sub(beyond, z))
    mirrored = e.sub(e.mul(cosecant, cosecant), after)
    found = e.select(left, mirrored, found)
    return e.select(e.compare("oeq", x, -INFINITY), INFINITY, found)


def _cotangent(e: Emitter, r: Number, form: Format) -> Number:
    """π cot(π r), |r| <= 1/2: by sines of π r and of π (1/2 - |r|)."""
    rest = e.sub(0.5, magnitude(e, r))
    sine = e.mul(r, e.polynomial(e.mul(r, r), form.terms(c.SINPI)))
    cosine = e.mul(rest, e.polynomial(e.mul(rest, rest), form.terms(c.SINPI)))
    return e.div(e.mul(cosine, math.pi), sine)
