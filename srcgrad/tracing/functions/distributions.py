"""Rules of the distributions of ``scipy.stats``: densities, distribution functions and quantiles.

A distribution is an object whose methods do not dispatch: a call is known by the object's class and the method's name.
Draws are not here. Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.special as sc
import scipy.stats

from srcgrad.errors import ArgumentError, ConcretizationError, MissingRuleError, UnsupportedError
from srcgrad.tracing.functions.fits import FITS, fitted
from srcgrad.tracing.functions.joint_distributions import MULTIVARIATE
from srcgrad.tracing.functions.laws import (
    FURTHER,
    INF,
    LOG_2PI,
    SQRT_2,
    Formula,
    Law,
    doubled,
    log_scaled_i0,
    settled,
    t_quantile,
    undefined,
)
from srcgrad.tracing.functions.laws_at_ends import AT_ENDS
from srcgrad.tracing.functions.laws_pearson import PEARSON
from srcgrad.tracing.functions.own_laws import asked, law_of, own, statistic
from srcgrad.tracing.functions.registry import scalar_if_rank0
from srcgrad.tracing.trace import NeedsConcrete
from srcgrad.tracing.tracer import as_tracer


def laplace_below(y: Any) -> Any:
    return np.where(y > 0, 1.0 - 0.5 * np.exp(-y), 0.5 * np.exp(y))  # with a slope at 0, where abs has none


def logistic_log_density(y: Any) -> Any:
    return sc.log_expit(y) + sc.log_expit(-y)


def t_log_density(y: Any, df: Any) -> Any:
    """The normal one of infinite degrees of freedom."""
    normal: Any = np.isposinf(df)
    df = np.where(normal, 1.0, df)
    ratio = np.log(sc.poch(df / 2, 0.5))  # of two gamma functions: their logarithms are large beside it
    found = ratio - 0.5 * np.log(df * np.pi) - (df + 1) / 2 * np.log1p(y * y / df)
    return np.where(normal, -(y * y + LOG_2PI) / 2.0, found)


def beta_log_density(y: Any, a: Any, b: Any) -> Any:
    return sc.xlog1py(b - 1.0, -y) + sc.xlogy(a - 1.0, y) - sc.betaln(a, b)


def beta_powers(y: Any, a: Any, b: Any) -> Any:
    return y ** (a - 1.0) * (1.0 - y) ** (b - 1.0) * np.exp(-sc.betaln(a, b))


def chi2_powers(y: Any, df: Any) -> Any:
    return y ** (df / 2.0 - 1.0) * np.exp(-y / 2.0 - sc.gammaln(df / 2.0) - np.log(2.0) * df / 2.0)


def chi2_log_density(y: Any, df: Any) -> Any:
    return sc.xlogy(df / 2.0 - 1, y) - y / 2.0 - sc.gammaln(df / 2.0) - np.log(2.0) * df / 2.0


def log_ways(k: Any, n: Any) -> Any:
    return sc.gammaln(n + 1) - (sc.gammaln(k + 1) + sc.gammaln(n - k + 1))


def is_count(n: Any) -> Any:
    """Whether there may be so many trials, also none; where there are none nothing has happened, surely."""
    return (n >= 0) & (np.floor(n) == n)


def binomial_log_density(k: Any, n: Any, p: Any) -> Any:
    return log_ways(k, n) + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)


def binomial_powers(k: Any, n: Any, p: Any) -> Any:
    return np.exp(log_ways(k, n)) * p**k * (1.0 - p) ** (n - k)


def binomial_below(k: Any, n: Any, p: Any) -> Any:
    rest = np.where(k < n, n - k, 1.0)
    return np.where(k < n, sc.betainc(rest, k + 1.0, 1.0 - p), 1.0)


def binomial_above(k: Any, n: Any, p: Any) -> Any:
    rest = np.where(k < n, n - k, 1.0)
    return np.where(k < n, sc.betainc(k + 1.0, rest, p), 0.0)


def negative_binomial_log_density(k: Any, n: Any, p: Any) -> Any:
    return sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n) + n * np.log(p) + sc.xlog1py(k, -p)


def negative_binomial_powers(k: Any, n: Any, p: Any) -> Any:
    return np.exp(sc.gammaln(n + k) - sc.gammaln(k + 1) - sc.gammaln(n)) * p**n * (1.0 - p) ** k


def wrapped_cauchy_width(y: Any, c: Any) -> Any:
    """log((1 + c**2 - 2 c cos(y))/(1 - c)), of squares: c near 1 has no digits of the difference."""
    return np.log((1 - c) + 4 * c / (1 - c) * np.sin(y / 2) ** 2)


def wrapped_cauchy_below(y: Any, c: Any) -> Any:
    """By thirds of the circle, as the tangent has a pole: of half of the place, or of what is left to the pole."""
    first, last = y < np.pi / 2, y > 3 * np.pi / 2
    ratio = (1 + c) / (1 - c)
    side = np.arctan(ratio * np.tan(np.where(first, y, np.where(last, 2 * np.pi - y, 1.0)) / 2)) / np.pi
    middle = 0.5 + np.arctan(np.tan(np.where(first | last, 0.0, y - np.pi) / 2) / ratio) / np.pi
    return np.where(first, side, np.where(last, 1.0 - side, middle))


def wrapped_cauchy_quantile(q: Any, c: Any) -> Any:
    """The inverse, by the same parts."""
    first, last = q < 0.25, q > 0.75
    ratio = (1 + c) / (1 - c)
    side = 2 * np.arctan(np.tan(np.pi * np.where(first, q, np.where(last, 1 - q, 0.1))) / ratio)
    middle = np.pi + 2 * np.arctan(ratio * np.tan(np.pi * np.where(first | last, 0.0, q - 0.5)))
    return np.where(first, side, np.where(last, 2 * np.pi - side, middle))


def normal_mass(low: Any, high: Any) -> tuple[Any, Any]:
    """The mass of the standard normal between two places, from the tail in which they lie: the logarithm of what lies
    beyond the nearer one, and of the part of it that lies beyond the farther one too."""
    right = low > 0
    lower, upper = np.where(right, -high, low), np.where(right, -low, high)
    more = sc.log_ndtr(upper)
    return more, sc.log_ndtr(lower) - more


def log_normal_mass(low: Any, high: Any) -> Any:
    more, part = normal_mass(low, high)
    return more + np.log1p(-np.exp(part))


def normal_share(low: Any, high: Any, a: Any, b: Any) -> Any:
    """Of the mass between a and b, that between two places, which may be one."""
    more, part = normal_mass(low, high)
    return -np.expm1(part) * np.exp(more - log_normal_mass(a, b))


def log_normal_share(low: Any, high: Any, a: Any, b: Any, left: Any) -> Any:
    """The logarithm of that, by what is left where that is less: a sum, as a product is 0 times infinity at an end."""
    more, part = normal_mass(low, high)
    return by_less(np.log(0.0 - np.expm1(part)) + more - log_normal_mass(a, b), left)


def by_less(logarithm: Any, left: Any) -> Any:
    """The logarithm of a probability: by what it leaves to 1, where that is the smaller."""
    return np.where(left < 0.5, np.log1p(-left), logarithm)


def cauchy_quantile(q: Any) -> Any:
    """From the pole of the tangent in the lower tail, and from the median elsewhere."""
    tail = q < 0.25
    return np.where(tail, -1.0 / np.tan(np.pi * np.where(tail, q, 0.1)), np.tan(np.pi * np.where(tail, 0.0, q - 0.5)))


def beta_binomial_log_density(k: Any, n: Any, a: Any, b: Any) -> Any:
    return -np.log(n + 1) - sc.betaln(n - k + 1, k + 1) + sc.betaln(k + a, n - k + b) - sc.betaln(a, b)


GAMMA: Final = Law(
    ("a",), 0.0, INF, 1.0, lambda y, a: sc.xlogy(a - 1.0, y) - y - sc.gammaln(a), lambda y, a: sc.gammainc(a, y),
    lambda y, a: sc.gammaincc(a, y), lambda q, a: sc.gammaincinv(a, q),
    upper_quantile=lambda q, a: sc.gammainccinv(a, q),
    powers=lambda y, a: y ** (a - 1.0) * np.exp(-y - sc.gammaln(a)),
)  # fmt: skip
WEIBULL: Final = Law(
    ("c",), 0.0, INF, 1.0, lambda y, c: np.log(c) + sc.xlogy(c - 1, y) - y**c, lambda y, c: -np.expm1(-(y**c)),
    lambda y, c: np.exp(-(y**c)), lambda q, c: (-np.log1p(-q)) ** (1.0 / c), None, lambda y, c: -(y**c),
    powers=lambda y, c: c * y ** (c - 1.0) * np.exp(-(y**c)), upper_quantile=lambda q, c: (-np.log(q)) ** (1.0 / c),
)  # fmt: skip
LAWS: Final[dict[str, Law]] = {
    "norm": Law(
        (), -INF, INF, 0.0, lambda y: -(y**2) / 2.0 - LOG_2PI / 2, sc.ndtr, lambda y: sc.ndtr(-y), sc.ndtri,
        sc.log_ndtr, lambda y: sc.log_ndtr(-y),
    ),
    "t": Law(("df",), -INF, INF, 0.0, t_log_density, lambda y, df: sc.stdtr(df, y), lambda y, df: sc.stdtr(df, -y)),
    "gamma": GAMMA,
    "chi2": Law(
        ("df",), 0.0, INF, 1.0, chi2_log_density, lambda y, df: sc.gammainc(df / 2, y / 2),
        lambda y, df: sc.gammaincc(df / 2, y / 2), lambda q, df: 2 * sc.gammaincinv(df / 2, q), powers=chi2_powers,
    ),
    "beta": Law(
        ("a", "b"), 0.0, 1.0, 0.5, beta_log_density, lambda y, a, b: sc.betainc(a, b, y),
        lambda y, a, b: sc.betainc(b, a, 1.0 - y), lambda q, a, b: sc.betaincinv(a, b, q), powers=beta_powers,
    ),
    "expon": Law(
        (), 0.0, INF, 1.0, lambda y: -y, lambda y: -np.expm1(-y), lambda y: np.exp(-y), lambda q: -np.log1p(-q),
        None, lambda y: -y,
    ),
    "uniform": Law((), 0.0, 1.0, 0.5, lambda y: 0.0 * y, lambda y: y, lambda y: 1.0 - y, lambda q: q),
    "laplace": Law(
        (), -INF, INF, 1.0, lambda y: np.log(0.5) - np.abs(y), laplace_below, lambda y: laplace_below(-y),
        lambda q: np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q)),
    ),
    "logistic": Law(
        (), -INF, INF, 1.0, logistic_log_density, sc.expit, lambda y: sc.expit(-y), sc.logit, sc.log_expit,
        lambda y: sc.log_expit(-y),
    ),
    "cauchy": Law(
        (), -INF, INF, 0.0, lambda y: -np.log(np.pi) - np.log1p(y * y), lambda y: np.arctan2(1.0, -y) / np.pi,
        lambda y: np.arctan2(1.0, y) / np.pi, cauchy_quantile,
        upper_quantile=lambda q: -cauchy_quantile(q),
    ),
    "lognorm": Law(
        ("s",), 0.0, INF, 1.0, lambda y, s: -(np.log(y) ** 2) / (2 * s**2) - np.log(s * y) - LOG_2PI / 2,
        lambda y, s: sc.ndtr(np.log(y) / s), lambda y, s: sc.ndtr(-np.log(y) / s),
        lambda q, s: np.exp(s * sc.ndtri(q)), lambda y, s: sc.log_ndtr(np.log(y) / s),
        lambda y, s: sc.log_ndtr(-np.log(y) / s), positive=True,
    ),
    "weibull_min": WEIBULL,
    "dgamma": doubled(GAMMA),
    "dweibull": doubled(WEIBULL),
    "rayleigh": Law(
        (), 0.0, INF, 1.0, lambda y: np.log(y) - 0.5 * y * y, lambda y: -np.expm1(-0.5 * y**2),
        lambda y: np.exp(-0.5 * y * y), lambda q: np.sqrt(-2 * np.log1p(-q)), None, lambda y: -0.5 * y * y,
        powers=lambda y: y * np.exp(-0.5 * y * y),
    ),
    "halfnorm": Law(
        (), 0.0, INF, 1.0, lambda y: 0.5 * np.log(2.0 / np.pi) - y * y / 2.0, lambda y: sc.erf(y / SQRT_2),
        lambda y: sc.erfc(y / SQRT_2), lambda q: sc.ndtri((1 + q) / 2.0),
    ),
    "invgamma": Law(
        ("a",), 0.0, INF, 1.0, lambda y, a: -(a + 1) * np.log(y) - sc.gammaln(a) - 1.0 / y,
        lambda y, a: sc.gammaincc(a, 1.0 / y), lambda y, a: sc.gammainc(a, 1.0 / y),
        positive=True,
    ),
    "pareto": Law(
        ("b",), 1.0, INF, 2.0, lambda y, b: np.log(b) - (b + 1) * np.log(y), lambda y, b: 1 - y ** (-b),
        lambda y, b: y ** (-b), lambda q, b: (1 - q) ** (-1.0 / b), None, lambda y, b: -b * np.log(y),
    ),
    "gumbel_r": Law(
        (), -INF, INF, 0.0, lambda y: -y - np.exp(-y), lambda y: np.exp(-np.exp(-y)),
        lambda y: -np.expm1(-np.exp(-y)), lambda q: -np.log(-np.log(q)), lambda y: -np.exp(-y),
    ),
    "poisson": Law(
        ("mu",), 0.0, INF, 1.0, lambda k, mu: sc.xlogy(k, mu) - sc.gammaln(k + 1) - mu,
        lambda k, mu: sc.gammaincc(k + 1.0, mu), lambda k, mu: sc.gammainc(k + 1.0, mu), discrete=True,
        allowed=lambda mu: mu >= 0, powers=lambda k, mu: mu**k * np.exp(-mu - sc.gammaln(k + 1)),
    ),
    "bernoulli": Law(
        ("p",), 0.0, 1.0, 0.0, lambda k, p: binomial_log_density(k, 1, p), lambda k, p: binomial_below(k, 1, p),
        lambda k, p: binomial_above(k, 1, p), discrete=True,
        powers=lambda k, p: binomial_powers(k, 1, p),
    ),
    "binom": Law(
        ("n", "p"), 0.0, INF, 0.0, binomial_log_density, binomial_below, binomial_above, discrete=True, bounded=True,
        powers=binomial_powers, allowed=lambda n, p: is_count(n) & (p >= 0) & (p <= 1),
    ),
    "geom": Law(
        ("p",), 1.0, INF, 1.0, lambda k, p: sc.xlog1py(k - 1, -p) + np.log(p),
        lambda k, p: -np.expm1(np.log1p(-p) * k), lambda k, p: np.exp(np.log1p(-p) * k), discrete=True,
        powers=lambda k, p: (1.0 - p) ** (k - 1.0) * p, allowed=lambda p: (p > 0) & (p <= 1),
    ),
    "nbinom": Law(
        ("n", "p"), 0.0, INF, 1.0, negative_binomial_log_density, lambda k, n, p: sc.betainc(n, k + 1.0, p),
        lambda k, n, p: sc.betainc(k + 1.0, n, 1.0 - p), discrete=True, powers=negative_binomial_powers,
        allowed=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    ),
    "betabinom": Law(
        ("n", "a", "b"), 0.0, INF, 0.0, beta_binomial_log_density, None, None, discrete=True, bounded=True,
        allowed=lambda n, a, b: is_count(n) & (a > 0) & (b > 0),
    ),
    "gumbel_l": Law(
        (), -INF, INF, 0.0, lambda y: y - np.exp(y), lambda y: -np.expm1(-np.exp(y)), lambda y: np.exp(-np.exp(y)),
        lambda q: np.log(-np.log1p(-q)), None, lambda y: -np.exp(y),
    ),
    "skewnorm": Law(
        ("a",), -INF, INF, 0.0, lambda y, a: np.log(2.0) - (y**2 + LOG_2PI) / 2.0 + sc.log_ndtr(a * y),
        lambda y, a: sc.ndtr(y) - 2.0 * sc.owens_t(y, a), lambda y, a: sc.ndtr(-y) + 2.0 * sc.owens_t(y, a),
        allowed=lambda a: np.isfinite(a),
    ),
    "truncnorm": Law(
        ("a", "b"), -INF, INF, 0.0, lambda y, a, b: -(y**2 + LOG_2PI) / 2.0 - log_normal_mass(a, b),
        lambda y, a, b: normal_share(a, y, a, b), lambda y, a, b: normal_share(y, b, a, b), None,
        lambda y, a, b: log_normal_share(a, y, a, b, normal_share(y, b, a, b)),
        lambda y, a, b: log_normal_share(y, b, a, b, normal_share(a, y, a, b)), allowed=lambda a, b: a < b,
        support=lambda a, b: (a, b),
    ),
    "vonmises": Law(
        ("kappa",), -INF, INF, 0.0,
        lambda y, kappa: kappa * sc.cosm1(y) - LOG_2PI - log_scaled_i0(kappa), None, None,
        allowed=lambda kappa: kappa >= 0,
    ),
    "wrapcauchy": Law(
        ("c",), 0.0, 2 * np.pi, 1.0,
        lambda y, c: np.log1p(c) - LOG_2PI - wrapped_cauchy_width(y, c), wrapped_cauchy_below,
        lambda y, c: 1.0 - wrapped_cauchy_below(y, c), wrapped_cauchy_quantile, allowed=lambda c: (c > 0) & (c < 1),
    ),
    "pearson3": PEARSON,
    **FURTHER,
}  # fmt: skip
PROBABILITIES: Final = frozenset({"p"})
"""Shapes that lie between 0 and 1; the others are positive."""
METHODS: Final = frozenset({"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"})
STATISTICS: Final = frozenset({"mean", "var", "std", "entropy"})


class Standard(NamedTuple):
    """The operands of a call: the place, moved and scaled to the standard distribution, and what goes with it."""

    place: Any
    shapes: tuple[Any, ...]
    scale: Any
    proper: Any
    """Whether the parameters are allowed."""
    loc: Any


def parameters(law: Law, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The shapes, ``loc`` and ``scale``, by name, as SciPy takes them.

    Raises:
        ArgumentError: there are too few or too many.
    """
    names = (*law.shapes, "loc") if law.discrete else (*law.shapes, "loc", "scale")
    if len(args) > len(names):
        raise ArgumentError(f"scipy.stats.{name} takes the parameters {', '.join(names)}, not {len(args)} of them")
    found = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names or key in found:
            raise ArgumentError(f"scipy.stats.{name} got an unexpected or repeated parameter {key!r}")
        found[key] = value
    missing = [shape for shape in law.shapes if shape not in found]
    if missing:
        raise ArgumentError(f"scipy.stats.{name} misses the parameter {missing[0]!r}")
    return {"loc": 0.0, "scale": 1.0, **found}


def standard(law: Law, name: str, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Standard:
    given = {key: as_tracer(value) for key, value in parameters(law, name, args, kwargs).items()}
    given = {key: value.astype(np.result_type(value.dtype, 1.0)) for key, value in given.items()}
    shapes = tuple(given[shape] for shape in law.shapes)
    proper: Any = given["scale"] > 0
    for shape in law.shapes if law.allowed is None else ():
        inside = given[shape] > 0 if shape not in PROBABILITIES else (given[shape] >= 0) & (given[shape] <= 1)
        proper = proper & inside
    if law.allowed is not None:
        proper = proper & law.allowed(*shapes)
    return Standard(as_tracer(x), shapes, given["scale"], proper, given["loc"])


def evaluated(law: Law, kind: str, name: str, x: Any, /, *args: Any, **kwargs: Any) -> Any:
    """One of `METHODS` at ``x``: outside of the support what SciPy says, nan where the parameters are not allowed."""
    given = standard(law, name, x, args, kwargs)
    if kind in ("ppf", "isf"):
        return quantile(law, kind, name, given)
    y: Any = (given.place - given.loc) / given.scale
    nowhere = undefined(y, *given.shapes)
    low, high = (law.low, law.high) if law.support is None else law.support(*given.shapes)
    high = given.shapes[0] if law.bounded else high
    mass = kind in ("pmf", "logpmf", "pdf", "logpdf")
    if law.discrete and not mass:
        y = np.floor(y)
    within: Any = (y >= low) & (y <= high) & np.isfinite(y)
    if law.discrete and mass:
        within = within & (np.floor(y) == y)
    if law.positive:
        within = within & (y > law.low) & (y < law.high)
    safe = np.where(within & given.proper, y, law.inside)
    shapes = tuple(np.where(given.proper, shape, 0.5) for shape in given.shapes)
    if mass:
        found = density(law, kind, safe, shapes, np.where(given.proper, given.scale, 1.0))
        below = above = -INF if kind.startswith("log") else 0.0
    else:
        found, below, above = cumulative(law, kind, safe, shapes)
    beyond = y > law.inside if law.support is None else y >= high
    found = np.where(within, found, np.where(beyond, above, below))
    return scalar_if_rank0(np.where(given.proper & ~np.isnan(y), found, nowhere))


def density(law: Law, kind: str, y: Any, shapes: tuple[Any, ...], scale: Any) -> Any:
    """The density or its logarithm; where that is infinite, the density as a product of powers."""
    logarithm: Any = law.log_density(y, *shapes) - np.log(scale)
    if kind.startswith("log"):
        return logarithm
    found = np.exp(logarithm)
    return found if law.powers is None else np.where(np.isinf(logarithm), law.powers(y, *shapes) / scale, found)


def cumulative(law: Law, kind: str, y: Any, shapes: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """``cdf``, ``sf`` or the logarithm of one, and its values below and above the support."""
    upper, log = kind.endswith("sf"), kind.startswith("log")
    plain, logarithm = (law.above, law.log_above) if upper else (law.below, law.log_below)
    if plain is None:
        raise UnsupportedError(f"this distribution's {kind} has no derivative rule in srcgrad")
    if log:
        logarithm = near_one(plain, law.below if upper else law.above) if logarithm is None else logarithm
        found = logarithm(y, *shapes)
        return found, 0.0 if upper else -INF, -INF if upper else 0.0
    return plain(y, *shapes), float(upper), float(not upper)


def near_one(plain: Formula, rest: Formula | None) -> Formula:
    """The logarithm of a probability: by what it leaves to 1, where that is the smaller."""

    def logarithm(*operands: Any) -> Any:
        found = np.log(plain(*operands))
        return found if rest is None else by_less(found, rest(*operands))

    return logarithm


def described(distribution: Any, kind: str, law: Law, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """One of `STATISTICS`, nan where the parameters are not allowed."""
    given = standard(law, name, 0.0, args, kwargs)
    found: Any = statistic(distribution, kind, given)
    nowhere = undefined(given.loc, given.scale, *given.shapes)
    return scalar_if_rank0(np.where(given.proper & ~np.isnan(found), found, nowhere))


def interval(rule: Formula, confidence: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The quantiles between which so much of the distribution lies."""
    left: Any = (1.0 - as_tracer(confidence)) / 2.0
    return rule(left, *args, **kwargs), rule(1.0 - left, *args, **kwargs)


def median(rule: Formula, law: Law, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """The quantile of 1/2; of a symmetric law the location, where its density may have a cusp that varies with it."""
    if not law.symmetric:
        return rule(0.5, *args, **kwargs)
    given = standard(law, name, 0.5, args, kwargs)
    nowhere = undefined(given.loc, given.scale, *given.shapes)
    return scalar_if_rank0(np.where(given.proper, given.loc, nowhere))


AT_EDGES: Final = frozenset(
    {
        "arcsine", "chi2", "dgamma", "expon", "gamma", "halflogistic", "halfnorm", "johnsonsu", "laplace",
        "logistic", "loguniform", "lomax", "norm", "pareto", "powerlaw", "truncexpon", "uniform", "wrapcauchy",
    }
)  # fmt: skip
"""The laws of which the formulas of quantiles hold at the chances 0 and 1 too, and have the one-sided slopes there.

Those of others are 0 times infinity there, and are passed over: the edge is a constant.
"""


def quantile(law: Law, kind: str, name: str, given: Standard) -> Any:
    """Where the distribution function, or what it leaves, has this value."""
    formula, q = law.quantile, given.place
    if kind == "isf" and law.upper_quantile is not None:
        formula = law.upper_quantile
    if kind == "isf" and law.upper_quantile is None:
        q = 1.0 - q
    within = (q >= 0) & (q <= 1) if name in AT_EDGES else (q > 0) & (q < 1)
    shapes = tuple(np.where(given.proper, shape, 0.5) for shape in given.shapes)
    found = at_chance(law, formula, name, kind, np.where(within, q, 0.5), shapes)
    low, high = (law.low, law.high) if law.support is None else law.support(*shapes)
    if kind == "isf" and law.upper_quantile is not None:
        low, high = high, low
    found = np.where(within, found, np.where(q == 0, low, high)) * given.scale + given.loc
    nowhere = undefined(given.place, given.loc, given.scale, *given.shapes)
    known: Any = given.proper & (given.loc == given.loc) & (q >= 0) & (q <= 1)
    return scalar_if_rank0(np.where(known, found, nowhere))


def at_chance(law: Law, formula: Formula | None, name: str, kind: str, q: Any, shapes: tuple[Any, ...]) -> Any:
    """By the formula, or where there is none that can be followed as SciPy finds it, by a search or in C."""
    if law.discrete or law.below is None:
        if formula is None:
            raise UnsupportedError(f"scipy.stats.{name}.{kind} has no derivative rule in srcgrad")
        return formula(q, *shapes)
    if formula is not None:
        try:
            return formula(q, *shapes)
        except NeedsConcrete:  # which the trace remembers
            raise
        except (UnsupportedError, ConcretizationError, MissingRuleError):
            pass
    upper = kind == "isf" and law.upper_quantile is not None
    return settled(law, asked(getattr(scipy.stats, name), upper), upper)(q, *shapes)


# --- which call is which ---------------------------------------------------------------------------------------------

NAMES: Final[dict[type, str]] = {type(getattr(scipy.stats, name)): name for name in (*LAWS, *MULTIVARIATE)}
"""The classes of the distributions with rules, of which each has one object, and one more for each frozen one."""


def name_of(distribution: Any) -> str | None:
    """The name in ``scipy.stats`` of a distribution, also of one without rules; None for anything else."""
    kind = type(distribution)
    if kind in NAMES:
        return NAMES[kind]
    if not isinstance(distribution, (scipy.stats.rv_continuous, scipy.stats.rv_discrete)):
        return None
    name: str = distribution.name
    return name if kind is type(getattr(scipy.stats, name, None)) else None


def named(rule: Formula, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """A rule that SciPy's own code stands for; what that cannot do is said of the user's call."""
    try:
        return rule(*args, **kwargs)
    except NeedsConcrete:
        raise
    except (UnsupportedError, ConcretizationError, MissingRuleError) as error:
        raise UnsupportedError(f"scipy.stats.{name} has no derivative rule in srcgrad", hint=str(error)) from None


def mirrored(quantile: Formula, q: Any, a: Any, b: Any) -> Any:
    return -quantile(q, -b, -a)


@functools.lru_cache(maxsize=256)
def law_by_name(name: str) -> Law | None:
    """The law of a distribution of ``scipy.stats``: one of those here, or SciPy's own."""
    distribution = getattr(scipy.stats, name)
    found = LAWS.get(name)
    if found is None:
        return law_of(distribution)
    found = AT_ENDS[name](found) if name in AT_ENDS else found
    if found.discrete or found.below is None:
        return found
    lower, upper = own(distribution, "_ppf"), own(distribution, "_isf")
    if name == "t":
        lower, upper = t_quantile, lambda q, df: -t_quantile(q, df)
    if name == "truncnorm" and lower is not None:  # by the mirror image: SciPy's formula has 1 - q in it
        upper = functools.partial(mirrored, lower)
    if found.quantile is None and lower is not None:
        upper = None if upper is None else settled(found, upper, upper=True)
        found = found._replace(quantile=settled(found, lower))
    return found._replace(upper_quantile=upper) if found.upper_quantile is None else found


def rule_of(distribution: Any, kind: str) -> Formula | None:
    """What stands for a method of a distribution, or of one with frozen parameters; None where nothing does."""
    frozen = getattr(distribution, "dist", None)
    if frozen is not None and name_of(frozen) is not None and name_of(frozen) not in MULTIVARIATE:
        rule = rule_of(frozen, kind)
        return None if rule is None else lambda x: rule(x, *distribution.args, **distribution.kwds)
    name = name_of(distribution)
    if name is None or name in MULTIVARIATE:
        return MULTIVARIATE[name].get(kind) if name is not None else None
    if kind == "fit" and name in FITS:
        return functools.partial(fitted, name)
    law = law_by_name(name)
    if law is None or kind in (("pdf", "logpdf") if law.discrete else ("pmf", "logpmf")):
        return None
    found: Formula
    if kind in STATISTICS:
        found = functools.partial(described, distribution, kind, law, name)
    elif kind in ("interval", "median"):
        found = functools.partial(evaluated, law, "ppf", name)
        if kind == "interval":
            found = functools.partial(interval, found)
        else:
            found = functools.partial(median, found, law, name)
    elif kind in METHODS:
        found = functools.partial(evaluated, law, kind, name)
    else:
        return None
    return functools.partial(named, found, f"{name}.{kind}")


class Frozen:
    """A distribution with traced parameters."""

    def __init__(self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, kind: str) -> Any:
        rule = rule_of(self.dist, kind)
        if rule is None:
            raise UnsupportedError(f"scipy.stats.{name_of(self.dist)}(…).{kind} has no derivative rule in srcgrad")
        if kind in STATISTICS or kind == "median":
            return lambda: rule(*self.args, **self.kwds)
        return lambda x: rule(x, *self.args, **self.kwds)
