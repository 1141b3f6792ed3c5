"""Modified Bessel functions of the orders 0, 1 and 2, and what exp(-|x|) makes of them, with their derivatives.

Up to 8 the power series, whose terms are all positive, as a polynomial in (x/2)²; above, a polynomial in 1/x of what
exp(x)/√x leaves of them. The derivatives of the scaled ones are differences of terms that are nearly equal: they have
polynomials of their own. Source: DLMF 10.25.2, 10.29, 10.40.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.coefficients import Fit
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import INFINITY, NAN, Format, at_most, magnitude, with_sign
from srcgrad.backends.llvm.vector_math.exponential import exp

FROM = 8.0
"""Where the series ends."""
FINITE = 700.0
"""exp is finite up to there, and a little beyond: there the functions are products of its parts."""


def modified(order: int, scaled: bool) -> Callable[..., Number]:
    """The function of an order, or exp(-|x|) times it."""
    series, tail = ((c.I0, c.I0_TAIL), (c.I1, c.I1_TAIL), (c.I2, c.I2_TAIL))[order]

    def function(e: Emitter, x: Number, form: Format) -> Number:
        a = magnitude(e, x)
        small = e.compare("olt", a, FROM)
        half = e.mul(at_most(e, a, FROM), 0.5)
        z = e.mul(half, half)
        near = e.fma(z, e.polynomial(z, form.terms(series)), 1.0)
        if order:
            near = e.mul(near, half if order == 1 else e.mul(z, 0.5))
        far = _of_large(e, a, tail, form)
        if scaled:
            near = e.mul(near, exp(e, e.neg(at_most(e, a, FROM)), form))
        else:
            # Beyond FINITE in two factors, as the function is finite a little longer than exp.
            beyond = e.compare("ogt", a, FINITE)
            far = e.mul(far, exp(e, e.select(beyond, e.sub(a, 64.0), a), form))
            far = e.select(beyond, e.mul(far, math.exp(64.0)), far)
            far = e.select(e.compare("olt", a, INFINITY), far, NAN)  # as SciPy's
        found = e.select(small, near, far)
        # 0, and not -0, of -0 as SciPy's.
        return with_sign(e, found, e.select(e.compare("oeq", x, 0.0), 0.0, x)) if order == 1 else found

    return function


def slope(order: int) -> Callable[..., Number]:
    """The derivative of exp(-|x|) times the function of order 0 or 1; the mean of both sides' at the kink."""
    near_fit, tail = ((c.I0E_SLOPE, c.I0E_SLOPE_TAIL), (c.I1E_SLOPE, c.I1E_SLOPE_TAIL))[order]

    def function(e: Emitter, x: Number, form: Format) -> Number:
        a = magnitude(e, x)
        small = e.compare("olt", a, FROM)
        inner = at_most(e, a, FROM)
        more = e.add(inner, 1.0)
        p = e.horner(e.div(e.sub(inner, 2.0), e.add(inner, 4.0)), form.terms(near_fit))
        if order:
            p = e.mul(e.sub(e.sub(inner, c.I1E_SLOPE_ROOT[0]), c.I1E_SLOPE_ROOT[1]), p)
        near = e.div(p, e.mul(more, e.intrinsic("sqrt", more)))
        far = e.div(_of_large(e, a, tail, form), e.select(small, 1.0, a))
        found = e.neg(e.select(small, near, far))
        if order:
            return found
        opposite = e.neg(x)
        return e.select(e.compare("oeq", x, 0.0), opposite, with_sign(e, found, opposite))

    return function


def _of_large(e: Emitter, a: Number, tail: Fit, form: Format) -> Number:
    """p(16/a - 1)/√a; of small numbers something finite."""
    safe = e.select(e.compare("olt", a, FROM), FROM, a)
    p = e.polynomial(e.sub(e.div(16.0, safe), 1.0), form.terms(tail))
    return e.div(p, e.intrinsic("sqrt", safe))
