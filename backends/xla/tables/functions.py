"""Functions of ``scipy.special`` that are as old as the language, and sinc."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax.scipy.special
import numpy as np
from jax import lax

from srcgrad.backends.numpy.special_helpers import slope_of_cotangent
from srcgrad.backends.xla.program import Application
from srcgrad.backends.xla.tables import (
    Array,
    cast,
    contextual,
    full_like,
    is_complex,
    is_nan,
    through_single,
    with_sign,
)
from srcgrad.backends.xla.tables.elementary import log, log1p, whole_power


def of_floats(line: Callable[..., Array]) -> Callable[..., Array]:
    """A function that jax has of floats: that of complex numbers is called back."""

    @contextual
    def lowered(application: Application, x: Array) -> Array:
        return application.call_back(x)[0] if is_complex(x) else line(x, **application.operation.attrs)

    return lowered


def is_pole(x: Array) -> Array:
    """Whether x is one of 0, -1, -2, …, or -inf."""
    return lax.bitwise_and(lax.le(x, full_like(x, 0)), lax.eq(x, lax.floor(x)))


@through_single
def gammaln(x: Array) -> Array:
    """That of -inf is -inf, as in SciPy."""
    return lax.select(lax.eq(x, full_like(x, -np.inf)), x, lax.lgamma(x))


@through_single
def digamma(x: Array) -> Array:
    """At 0 the sign of the zero says from which side; at the other poles there is no limit."""
    at_zero = with_sign(full_like(x, np.inf), lax.neg(x))
    at_pole = lax.select(lax.eq(x, full_like(x, 0)), at_zero, full_like(x, np.nan))
    return lax.select(is_pole(x), at_pole, lax.digamma(x))


def cotangent_derivative(x: Array, n: int) -> Array:
    """The n-th derivative of pi cot(pi x): a polynomial in c = cot(pi x)."""
    coefficients = slope_of_cotangent(n)
    rest = lax.mul(full_like(x, math.pi), lax.sub(x, lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)))
    c = lax.div(lax.cos(rest), lax.sin(rest))
    total = full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = lax.add(lax.mul(total, c), full_like(x, coefficient))
    return total


@through_single
def polygamma(x: Array, n: int) -> Array:
    """(-1)**(n + 1) n! zeta(n + 1, x), and by reflection (DLMF 5.15.6) where x is negative."""
    negative = lax.lt(x, full_like(x, 0))
    mirrored = lax.select(negative, lax.sub(full_like(x, 1), x), x)
    factor = float(math.factorial(n)) * (-1.0) ** (n + 1)
    zeta: Array = jax.scipy.special.zeta(full_like(x, n + 1), mirrored)
    # zeta(n + 1, x) tends to x**-n/n; jax computes it from x**-(n + 1), which underflows earlier.
    tail = lax.div(whole_power(lax.div(full_like(x, 1), mirrored), n), full_like(x, n))
    zeta = lax.select(lax.gt(mirrored, full_like(x, 1 / np.finfo(x.dtype).eps)), tail, zeta)
    zeta = lax.select(lax.eq(x, full_like(x, 0)), full_like(x, np.inf), zeta)
    found = lax.mul(full_like(x, factor), zeta)
    reflected = lax.sub(lax.mul(full_like(x, (-1.0) ** n), found), cotangent_derivative(x, n))
    at_pole = full_like(x, math.copysign(math.inf, factor))
    return lax.select(lax.bitwise_and(negative, is_pole(x)), at_pole, lax.select(negative, reflected, found))


def sinc(x: Array) -> Array:
    """sin(pi x)/(pi x), and 1 at 0; of float16 each step is rounded, as by NumPy."""
    is_zero = lax.eq(x, full_like(x, 0))
    u = lax.mul(full_like(x, math.pi), lax.select(is_zero, full_like(x, 1), x))
    return lax.select(is_zero, full_like(x, 1), lax.div(lax.sin(u), u))


def sinc_derivative(x: Array, n: int) -> Array:
    """The n-th derivative of sin(u)/u at u = pi x, times pi**n, in double precision.

    With f(u) = sin(u)/u, u f⁽ⁿ⁾ = sin⁽ⁿ⁾(u) - n f⁽ⁿ⁻¹⁾. Near 0, where the division loses accuracy, the Taylor series
    is summed: the sum over 2k >= n of (-1)ᵏ uᵐ / ((2k + 1) m!), m = 2k - n.
    """
    wide = cast(x, np.promote_types(x.dtype, np.float64))
    u = lax.mul(wide, full_like(wide, math.pi))
    size = lax.abs(u)
    near = lax.lt(size, full_like(size, 1 + n / 4))
    zero = full_like(u, 0)
    small, large = lax.select(near, u, zero), lax.select(near, full_like(u, np.inf), u)
    squared = lax.mul(small, small)
    m = n % 2
    k = (n + m) // 2
    power = small if m else full_like(u, 1)
    series = zero
    for _ in range(20 + n):
        series = lax.add(series, lax.mul(full_like(u, (-1.0) ** k / (2 * k + 1)), power))
        power = lax.div(lax.mul(power, squared), full_like(u, (m + 1) * (m + 2)))
        k, m = k + 1, m + 2
    sine, cosine = lax.sin(large), lax.cos(large)
    derivatives = (sine, cosine, lax.neg(sine), lax.neg(cosine))
    closed = lax.div(sine, large)
    for order in range(1, n + 1):
        closed = lax.div(lax.sub(derivatives[order % 4], lax.mul(full_like(u, order), closed)), large)
    found = lax.mul(lax.select(near, series, closed), full_like(u, math.pi**n))
    return cast(found, x.dtype)


def times_logarithm(line: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """x times ``line`` of y, and 0 where x is 0, unless y is nan."""

    @through_single
    def product(x: Array, y: Array) -> Array:
        vanishes = lax.bitwise_and(lax.eq(x, full_like(x, 0)), lax.bitwise_not(is_nan(y)))
        return lax.select(vanishes, full_like(x, 0), lax.mul(x, line(y)))

    return product


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "digamma": of_floats(digamma),
    "erf": of_floats(through_single(lax.erf)),
    "erfc": of_floats(through_single(lax.erfc)),
    "expit": through_single(lax.logistic),
    "gammaln": gammaln,
    "polygamma": of_floats(polygamma),
    "sinc": sinc,
    "sinc_derivative": sinc_derivative,
    "xlog1py": times_logarithm(log1p),
    "xlogy": times_logarithm(log),
}
