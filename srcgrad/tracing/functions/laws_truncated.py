"""Laws that are an exponential one cut off, on another scale: where they are flat the usual formulas are 0 over 0, and
where they are far from 0 all of their exponentials underflow.

The exponential law has a rate r, negative where it rises, and its places are those from 0 to v: a place is u, and
``rest`` is what is left of it to v, which has digits of its own. Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc

from srcgrad.tracing.functions.laws import Law, bent


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
    logarithm = np.where(likely, np.log1p((q - 1) * (1 - beyond)), np.log(np.where(likely, 1.0, q + (1 - q) * beyond)))
    length = np.where(steep, 1.0, v)
    return np.where(steep, -logarithm / rate, length - place(q, length, -np.where(steep, 1.0, r)))


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
        upper_quantile=lambda q, b: place_above(q, b, 1.0),
    )  # fmt: skip


def weibull(law: Law) -> Law:
    """The rate is 1, on the scale of the power c."""

    def parts(y: Any, c: Any, a: Any, b: Any) -> tuple[Any, ...]:
        low, high, at = a**c, b**c, y**c
        return at - low, high - at, high - low, 1.0

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
