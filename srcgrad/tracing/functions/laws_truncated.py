"""Laws that are an exponential one cut off, on another scale: where they are flat the usual formulas are 0 over 0, and
where they are far from 0 all of their exponentials underflow.

The exponential law has a rate r, negative where it rises, and its places are those from 0 to v: a place is u, and
``rest`` is what is left of it to v, which has digits of its own. Importing this module imports SciPy.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import scipy.special as sc

from srcgrad.tracing.functions.laws import Formula, Law, bent
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.tracer import as_tracer


def parts_of_mass(u: Any, r: Any) -> tuple[Any, Any, Any]:
    """Whether (1 - exp(-r u))/r, of a rate of 0 or more, is to be found of u and a factor that is 1 at 0, that, and
    what it is elsewhere."""
    short, endless = r * u < 1.0, np.isposinf(u)
    factor = sc.exprel(-r * np.where(short, u, 0.0))
    far = -np.expm1(-r * np.where(short | endless, 1.0, u))
    return short, factor, np.where(endless, 1.0, far) / np.where(short, 1.0, r)


def mass(u: Any, r: Any) -> Any:
    short, factor, far = parts_of_mass(u, r)
    return np.where(short, np.where(short, u, 0.0) * factor, far)


def log_mass(u: Any, r: Any) -> Any:
    """A sum, as a product is infinity times 0 where u is 0."""
    short, factor, far = parts_of_mass(u, r)
    return np.where(short, np.log(np.where(short, u, 1.0)) + np.log(factor), np.log(far))


def below(u: Any, rest: Any, v: Any, r: Any) -> Any:
    size = np.abs(r)
    rising = np.exp(-size * np.where(r < 0, rest, 0.0))
    return rising * mass(u, size) / mass(v, size)


def above(u: Any, rest: Any, v: Any, r: Any) -> Any:
    return below(rest, u, v, -r)


def log_below(u: Any, rest: Any, v: Any, r: Any) -> Any:
    """By what is left above where that is less."""
    size, left = np.abs(r), above(u, rest, v, r)
    found = log_mass(u, size) - log_mass(v, size) - size * np.where(r < 0, rest, 0.0)
    return np.where(left < 0.5, np.log1p(-left), found)


def log_above(u: Any, rest: Any, v: Any, r: Any) -> Any:
    return log_below(rest, u, v, -r)


def log_density(u: Any, rest: Any, v: Any, r: Any) -> Any:
    size = np.abs(r)
    return -size * np.where(r < 0, rest, u) - log_mass(v, size)


def place(q: Any, v: Any, r: Any) -> Any:
    whole = np.exp(np.where(r < 0, -r * v, 0.0)) * mass(v, np.abs(r))
    return bent(q * whole, -r)


def place_above(q: Any, v: Any, r: Any) -> Any:
    steep, endless = r * v > 1.0, np.isposinf(v)
    rate = np.where(steep, r, 1.0)
    beyond = np.where(endless, 0.0, np.exp(-rate * np.where(steep & ~endless, v, 1.0)))
    likely: Any = q > 0.5
    left = np.where(likely, 1.0, q + (1 - q) * beyond)
    gone = left == 0  # as it underflows
    logarithm = np.where(likely, np.log1p((q - 1) * (1 - beyond)), np.log(np.where(gone, 1.0, left)))
    length = np.where(steep, 1.0, v)
    found = np.where(steep, -logarithm / rate, length - place(q, length, -np.where(steep, 1.0, r)))
    return np.where(gone, v, found)


# --- laws -------------------------------------------------------------------------------------------------------------


def distance(x: Any, y: Any) -> Any:
    """log(y/x), with its digits where they are close."""
    close = y < 2 * x
    return np.where(close, np.log1p((np.where(close, y, x) - x) / x), np.log(y) - np.log(x))


def pareto(law: Law) -> Law:
    """The rate is b, on the scale of log y."""

    def parts(y: Any, b: Any, c: Any) -> tuple[Any, ...]:
        return np.log1p(y - 1), distance(y, c), np.log(c), b

    def logarithm(y: Any, b: Any, c: Any) -> Any:
        return log_density(*parts(y, b, c)) - np.log(y)

    return law._replace(
        log_density=logarithm, powers=None,
        below=lambda *given: below(*parts(*given)), above=lambda *given: above(*parts(*given)),
        log_below=lambda *given: log_below(*parts(*given)), log_above=lambda *given: log_above(*parts(*given)),
        quantile=lambda q, b, c: np.exp(place(q, np.log(c), b)),
        upper_quantile=lambda q, b, c: np.exp(place_above(q, np.log(c), b)),
    )  # fmt: skip


def exponential(law: Law) -> Law:
    def parts(y: Any, b: Any) -> tuple[Any, ...]:
        return y, b - y, b, 1.0

    return law._replace(
        above=lambda *given: above(*parts(*given)), log_above=lambda *given: log_above(*parts(*given)),
        quantile=lambda q, b: np.where(q > 0.5, place_above(1.0 - q, b, 1.0), place(q, b, 1.0)),
        upper_quantile=lambda q, b: place_above(q, b, 1.0),
    )  # fmt: skip


def not_below(x: Any) -> Any:
    """What is 0 at an end, with its slope also where rounding makes it negative."""
    x = as_tracer(x)
    return np.where(x < 0, x - held(x), x)


def weibull(law: Law) -> Law:
    """The rate is 1, on the scale of the power c."""

    def parts(y: Any, c: Any, a: Any, b: Any) -> tuple[Any, ...]:
        low, high, at = a**c, b**c, y**c
        return not_below(at - low), not_below(high - at), high - low, 1.0

    def logarithm(y: Any, c: Any, a: Any, b: Any) -> Any:
        return np.log(c) + sc.xlogy(c - 1, y) + log_density(*parts(y, c, a, b))

    def powers(y: Any, c: Any, a: Any, b: Any) -> Any:
        return c * y ** (c - 1) * np.exp(log_density(*parts(y, c, a, b)))

    return law._replace(
        log_density=logarithm, powers=powers,
        below=lambda *given: below(*parts(*given)), above=lambda *given: above(*parts(*given)),
        log_below=lambda *given: log_below(*parts(*given)), log_above=lambda *given: log_above(*parts(*given)),
        quantile=lambda q, c, a, b: (a**c + place(q, b**c - a**c, 1.0)) ** (1 / c),
        upper_quantile=lambda q, c, a, b: (a**c + place_above(q, b**c - a**c, 1.0)) ** (1 / c),
    )  # fmt: skip


def boltzmann(law: Law) -> Law:
    """Of the counts below N: its steps are those of a law that goes on between them."""

    def parts(k: Any, rate: Any, n: Any) -> tuple[Any, ...]:
        return k + 1, n - k - 1, n, rate

    def logarithm(k: Any, rate: Any, n: Any) -> Any:
        return log_mass(1.0, rate) + log_density(k, n - k, n, rate)

    return law._replace(
        log_density=logarithm, powers=None,
        below=lambda *given: below(*parts(*given)), above=lambda *given: above(*parts(*given)),
        log_below=lambda *given: log_below(*parts(*given)), log_above=lambda *given: log_above(*parts(*given)),
    )  # fmt: skip


# --- means, variances and entropies -----------------------------------------------------------------------------------

BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The numbers B_2, B_4 and so on, of w/(exp(w) - 1)."""
FLAT: Final = 1.0
"""Below this rate on a length of 1 means and variances are found by series."""


def mean_of_unit(w: Any) -> Any:
    """1/w - 1/(exp(w) - 1): the mean of the law of the rate w on the length 1."""
    flat = np.abs(w) < FLAT
    near, far = np.where(flat, w, 0.0), np.where(flat, 1.0, w)
    series = [0.0] * (2 * len(BERNOULLI))
    series[0] = 0.5
    series[1::2] = [-b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI)]
    return np.where(flat, np.polynomial.polynomial.polyval(near, series), 1 / far - 1 / np.expm1(far))


def variance_of_unit(w: Any) -> Any:
    """What it falls by with w."""
    flat = np.abs(w) < FLAT
    near, size = np.where(flat, w, 0.0), np.where(flat, 1.0, np.where(w < 0, -w, w))
    series = [0.0] * (2 * len(BERNOULLI) - 1)
    series[0::2] = [b * (2 * k + 1) / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI)]
    far = 1 / size**2 - np.exp(-size) / np.expm1(-size) ** 2
    return np.where(flat, np.polynomial.polynomial.polyval(near, series), far)


def spread_of_exponential(v: Any) -> Any:
    """The variance of exp(v u) where u lies anywhere between 0 and 1."""
    h = v / 2
    flat = h < FLAT
    near, far = np.where(flat, h, 0.0), np.where(flat, 1.0, h)
    series = [0.0 if k % 2 else k / math.factorial(k + 1) for k in range(17)]
    rest = np.where(flat, np.polynomial.polynomial.polyval(near, series), np.cosh(far) - np.sinh(far) / far)
    return sc.exprel(v) * np.exp(h) * rest


def pareto_entropy(b: Any, c: Any) -> Any:
    v = np.log(c)
    return (1 + b) * v * mean_of_unit(b * v) + log_mass(v, np.abs(b)) + np.where(b < 0, -b * v, 0.0)


def boltzmann_mean(rate: Any, n: Any) -> Any:
    """That of the counts without end, less what the end takes; where the rate is low both are large."""
    low = rate < FLAT
    near, far = np.where(low, rate, 0.0), np.where(low, 1.0, rate)
    apart = 1 / np.expm1(far) - n / np.expm1(n * far)
    return np.where(low, n * mean_of_unit(near * n) - mean_of_unit(near), apart)


def boltzmann_variance(rate: Any, n: Any) -> Any:
    low = rate < FLAT
    near, far = np.where(low, rate, 0.0), np.where(low, 1.0, rate)
    apart = np.exp(-far) / np.expm1(-far) ** 2 - n**2 * np.exp(-n * far) / np.expm1(-n * far) ** 2
    return np.where(low, n**2 * variance_of_unit(near * n) - variance_of_unit(near), apart)


LOG_UNIFORM: Final = (
    lambda a, b: a * sc.exprel(distance(a, b)),
    lambda a, b: a**2 * spread_of_exponential(distance(a, b)),
)
MOMENTS: Final[dict[str, tuple[Formula, Formula]]] = {
    "truncexpon": (lambda b: b * mean_of_unit(b), lambda b: b**2 * variance_of_unit(b)),
    "boltzmann": (boltzmann_mean, boltzmann_variance),
    "loguniform": LOG_UNIFORM,
    "reciprocal": LOG_UNIFORM,
}
"""Mean and variance."""
ENTROPIES: Final[dict[str, Formula]] = {
    "truncexpon": lambda b: b * mean_of_unit(b) + log_mass(b, 1.0),
    "truncpareto": pareto_entropy,
}
