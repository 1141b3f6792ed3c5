"""What is known of a distribution of ``scipy.stats``, and this of those beside the most usual ones.

Importing this module imports SciPy.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.special as sc

from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.tracer import as_tracer

Formula = Callable[..., Any]
INF: Final = float("inf")
LOG_2PI: Final = float(np.log(2 * np.pi))
SQRT_2: Final = float(np.sqrt(2.0))


class Law(NamedTuple):
    """A standard distribution, of location 0 and scale 1; the functions take the place and the shapes."""

    shapes: tuple[str, ...]
    low: float
    high: float
    inside: float
    """A place where all functions are smooth."""
    log_density: Formula
    below: Formula | None
    """The distribution function, where there is one in closed form."""
    above: Formula | None
    quantile: Formula | None = None
    log_below: Formula | None = None
    log_above: Formula | None = None
    discrete: bool = False
    bounded: bool = False
    """Whether the first shape is the largest place: the number of trials."""
    positive: bool = False
    """Whether the lowest place is outside."""
    allowed: Formula | None = None
    """Which shapes there may be; else positive ones, and probabilities between 0 and 1."""
    support: Formula | None = None
    """The lowest and the highest place, where the shapes say them."""
    powers: Formula | None = None
    """The density as a product of powers, where its logarithm may be infinite: its derivatives are finite there."""
    upper_quantile: Formula | None = None
    """Where so much is left above, if that is not the quantile of the rest."""
    symmetric: bool = False
    """Whether the law is that of its mirror image at 0, so that 0 is the median whatever the shapes."""


def f_log_density(y: Any, n: Any, m: Any) -> Any:
    powers = sc.xlogy(n / 2, n) + sc.xlogy(m / 2, m) + sc.xlogy(n / 2 - 1, y)
    return powers - (n + m) / 2 * np.log(m + n * y) - sc.betaln(n / 2, m / 2)


def f_powers(y: Any, n: Any, m: Any) -> Any:
    return (n / m) ** (n / 2) * y ** (n / 2 - 1) * (1 + n * y / m) ** (-(n + m) / 2) / sc.beta(n / 2, m / 2)


def f_quantile(q: Any, n: Any, m: Any) -> Any:
    share = sc.betaincinv(n / 2, m / 2, q)
    return m * share / (n * (1 - share))


def f_upper_quantile(q: Any, n: Any, m: Any) -> Any:
    """By what the place leaves to 1 in the beta law, which 1 - q has no digits of."""
    rest = sc.betaincinv(m / 2, n / 2, q)
    return m * (1 - rest) / (n * rest)


def inverse_gaussian_log_below(y: Any, mu: Any) -> Any:
    first, second = inverse_gaussian_parts(y, mu, 1.0)
    return first + np.log1p(np.exp(second - first))


def inverse_gaussian_log_above(y: Any, mu: Any) -> Any:
    first, second = inverse_gaussian_parts(y, mu, -1.0)
    return first + np.log1p(-np.exp(second - first))


def inverse_gaussian_parts(y: Any, mu: Any, sign: float) -> tuple[Any, Any]:
    root = np.sqrt(y)
    return sc.log_ndtr(sign * (y / mu - 1) / root), 2 / mu + sc.log_ndtr(-(y / mu + 1) / root)


def bent(y: Any, c: Any) -> Any:
    """log(1 + c y)/c, and y where c is 0: by its series near there, of which the next term is less than rounding."""
    small = np.abs(c * y) < 1e-3
    t = np.where(small, c * y, 0.0)
    series = y * (1 - t * (1 / 2 - t * (1 / 3 - t * (1 / 4 - t * (1 / 5 - t * (1 / 6 - t / 7))))))
    return np.where(small, series, np.log1p(c * y) / np.where(small, 1.0, c))


def bent_log_density(y: Any, c: Any) -> Any:
    """-bent(y, c) - log(1 + c y): also at the end of the support, where both are infinite."""
    flat = np.abs(c) < 1e-3
    return np.where(flat, -bent(y, c) - np.log1p(c * y), -sc.xlog1py(1 / np.where(flat, 1.0, c) + 1, c * y))


def extreme_log_density(y: Any, c: Any) -> Any:
    z: Any = bent(y, -c)
    power = np.where(at_end(y, -c), end_power(y, -c, 0.0), np.exp(-z))
    return np.where(np.isneginf(z), -INF, bent_log_density(y, -c) - power)


def at_start(y: Any, c: Any) -> Any:
    """Whether this is the lowest place of a law of extremes, where it is flat: exp(-inf)."""
    return (c * y == 1.0) & (c < 0)


def started(y: Any, c: Any) -> Any:
    return np.where(at_start(y, c), 0.0, y)


def extreme_below(y: Any, c: Any) -> Any:
    return np.where(at_start(y, c), 0.0, np.exp(-decayed(started(y, c), -c)))


def at_end(y: Any, c: Any) -> Any:
    """Whether this is the end of the support, where 1 + c y is 0."""
    return (c * y == -1.0) & (c < 0)


def end_power(y: Any, c: Any, less: float) -> Any:
    """(1 + c y)**(-1/c - less) at the end of the support, and elsewhere 0."""
    end = at_end(y, c)
    base, exponent = np.where(end, 1 + c * y, 1.0), -1 / np.where(end, c, -1.0) - less
    return np.where(end, base**exponent, 0.0)


def inside(y: Any, c: Any) -> Any:
    return np.where(at_end(y, c), 0.0, y)


def decayed(y: Any, c: Any) -> Any:
    """exp(-bent(y, c)): at the end of the support the power that it is, of which the logarithm is infinite."""
    return np.where(at_end(y, c), end_power(y, c, 0.0), np.exp(-bent(inside(y, c), c)))


def rest_of_decayed(y: Any, c: Any) -> Any:
    return np.where(at_end(y, c), 1.0 - end_power(y, c, 0.0), -np.expm1(-bent(inside(y, c), c)))


def unbent(z: Any, c: Any) -> Any:
    """(exp(c z) - 1)/c, and z where c is 0."""
    return z * sc.exprel(c * z)


def one_less_exp(x: Any) -> Any:
    return -np.expm1(x)


def log_scaled_i0(kappa: Any) -> Any:
    """log(I0(kappa) exp(-kappa)), whose slope at 0 is -1: ``i0e`` has the absolute value of its argument."""
    near = kappa < 1.0
    return np.where(near, np.log(sc.i0(np.where(near, kappa, 0.0))) - kappa, np.log(sc.i0e(np.where(near, 1.0, kappa))))


def below_square(y: Any, a: Any, s: Any) -> Any:
    """gammainc(a, s y**2)."""
    zero, power = at_lowest(y, a, s)
    return np.where(zero, power, sc.gammainc(a, s * np.where(zero, 1.0, y) ** 2))


def above_square(y: Any, a: Any, s: Any) -> Any:
    zero, power = at_lowest(y, a, s)
    return np.where(zero, 1.0 - power, sc.gammaincc(a, s * np.where(zero, 1.0, y) ** 2))


def at_lowest(y: Any, a: Any, s: Any) -> tuple[Any, Any]:
    """Where y is 0, and gammainc(a, s y**2) by its series there (DLMF 8.7.1)."""
    zero = y == 0.0
    y = np.where(zero, y, 0.0)
    square = s * y**2
    series = 1 / a - square * (1 / (a + 1) - square * (1 / (2 * a + 4) - square / (6 * a + 18)))
    return zero, s**a * y ** (2 * a) * series / sc.gamma(a)


LEAST_EXPONENT: Final = float(np.log(np.finfo(np.float64).tiny))


def log_gamma_mass(y: Any, c: Any, plain: Formula, near: Formula) -> Any:
    """A gamma function's tail at exp(y); where that underflows, by the lower one's power exp(c y)/Gamma(c + 1)."""
    far = y < LEAST_EXPONENT
    power = c * np.where(far, y, 2.0 * LEAST_EXPONENT) - sc.gammaln(c + 1.0)
    return np.where(far, near(power), plain(c, np.exp(np.where(far, 0.0, y))))


def log_gamma_quantile(place: Any, power: Any, c: Any) -> Any:
    """The inverse of that."""
    far = place < np.finfo(np.float64).tiny
    return np.where(far, (power + sc.gammaln(c + 1.0)) / c, np.log(np.where(far, 1.0, place)))


def generalized_hyperbolic_log_density(y: Any, p: Any, a: Any, b: Any) -> Any:
    rest = (a + b) * (a - b)
    root, size = np.sqrt(rest), np.hypot(1.0, y)
    norming = p / 2 * np.log(rest) - LOG_2PI / 2 - (p - 0.5) * np.log(a) - np.log(sc.kve(p, root)) + root
    return norming + (p - 0.5) * np.log(size) + np.log(sc.kve(p - 0.5, a * size)) - a * size + b * y


def triangle(y: Any, c: Any) -> Any:
    rising = (y < c) | (c == 1)
    return 2 * np.where(rising, y / np.where(rising, c, 1.0), (1 - y) / np.where(rising, 1.0, 1 - c))


def triangle_below(y: Any, c: Any) -> Any:
    rising = (y < c) | (c == 1)
    falling = (1 - y) ** 2 / np.where(rising, 1.0, 1 - c)
    return np.where(rising, y**2 / np.where(rising, c, 1.0), 1 - falling)


def triangle_above(y: Any, c: Any) -> Any:
    rising = (y < c) | (c == 1)
    falling = (1 - y) ** 2 / np.where(rising, 1.0, 1 - c)
    return np.where(rising, 1 - y**2 / np.where(rising, c, 1.0), falling)


def exponential_part(y: Any, k: Any) -> Any:
    """The logarithm of what an exponential tail adds to a normal distribution."""
    return (0.5 / k - y) / k + sc.log_ndtr(y - 1 / k)


def log_logistic_below(y: Any, c: Any) -> Any:
    """y^c/(1 + y^c), where neither this power nor its inverse overflows."""
    far = y > 1
    power, inverse = np.where(far, 1.0, y) ** c, np.where(far, y, 1.0) ** -c
    return np.where(far, 1 / (1 + inverse), power / (1 + power))


def even(formula: Formula) -> Formula:
    """A function of the size of a place. At 0 its derivatives are the mean of those from both sides: the ones of
    abs(y) are lost in a power of it from the second order on."""

    def both(y: Any, *shapes: Any) -> Any:
        return (formula(np.where(y > 0, y, -y), *shapes) + formula(np.where(y < 0, -y, y), *shapes)) / 2

    return both


def doubled(law: Law) -> Law:
    """The symmetric law of a number whose size has this one."""
    beyond: Formula = law.above  # type: ignore[assignment]

    def below(y: Any, *shapes: Any) -> Any:
        right, left = beyond(np.where(y > 0, y, -y), *shapes) / 2, beyond(np.where(y < 0, -y, y), *shapes) / 2
        return (np.where(y > 0, 1 - right, right) + np.where(y < 0, left, 1 - left)) / 2

    def quantile(q: Any, *shapes: Any) -> Any:
        size, tail = law.quantile, law.upper_quantile
        lower: Any = np.where(q < 0.25, tail(2 * q, *shapes), size(1 - 2 * q, *shapes))  # type: ignore[misc]
        return np.where(q > 0.5, size(2 * q - 1, *shapes), -lower)  # type: ignore[misc]

    powers = law.powers
    return Law(
        law.shapes, -INF, INF, 1.0, even(lambda u, *shapes: law.log_density(u, *shapes) - np.log(2.0)),
        below, lambda y, *shapes: below(-y, *shapes), None if law.quantile is None else quantile,
        powers=None if powers is None else even(lambda u, *shapes: powers(u, *shapes) / 2),
        upper_quantile=None if law.quantile is None else lambda q, *shapes: -quantile(q, *shapes),
        symmetric=True,
    )  # fmt: skip


def half_normal_above(u: Any, beta: Any) -> Any:
    """gammaincc(1/beta, u^beta): by a series near 0, of which the next term is less than rounding."""
    power = u**beta
    near = power < 1e-6
    below = u - u ** (beta + 1) / (beta + 1) + u ** (2 * beta + 1) / (4 * beta + 2)
    return np.where(near, 1 - below / sc.gamma(1 + 1 / beta), sc.gammaincc(1 / beta, np.where(near, 1.0, power)))


def mixed_below(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    """Of the normal distribution of log x and the exponential tails that are added to it on both sides."""
    z = (np.log(x) - u) / s
    return sc.ndtr(z) + mixed_tails(z, s, a, b)


def mixed_above(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    z = (np.log(x) - u) / s
    return sc.ndtr(-z) - mixed_tails(z, s, a, b)


def mixed_tails(z: Any, s: Any, a: Any, b: Any) -> Any:
    """What they add below z: of products of the normal density and Mills ratios, each one exponential."""
    right, left = np.exp(tail_exponent(z, a * s)), np.exp(tail_exponent(-z, b * s))
    return (a * left - b * right) / (a + b)


def tail_exponent(z: Any, rate: Any) -> Any:
    return rate * (rate / 2 - z) + sc.log_ndtr(z - rate)


def mixed_log_density(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    z = (np.log(x) - u) / s
    tails = np.logaddexp(tail_exponent(z, a * s), tail_exponent(-z, b * s))
    return np.log(a) + np.log(b) - np.log(a + b) - np.log(x) + tails


def beta_prime_quantile(q: Any, a: Any, b: Any) -> Any:
    share = sc.betaincinv(a, b, q)
    return share / (1 - share)


def t_quantile(q: Any, df: Any) -> Any:
    """From the side on which the place lies, by the share of the beta law that is small: in a tail of few degrees of
    freedom what is left to 1, in one of many that itself."""
    tail: Any = np.minimum(q, 1.0 - q)
    far, middle = sc.betaincinv(df / 2, 0.5, 2.0 * tail), sc.betaincinv(0.5, df / 2, 1.0 - 2.0 * tail)
    near = np.where(tail < 0.25, sc.betainccinv(0.5, df / 2, 2.0 * tail), middle)
    square = np.where(far < 0.5, (1.0 - far) / far, near / (1.0 - near))
    return np.sign(q - 0.5) * np.sqrt(df * square)


def settled(law: Law, values: Formula, upper: bool = False) -> Formula:
    """A quantile with the derivatives of the distribution function, by steps from where it is with the density there.

    Each step gives the derivatives of one more order: of the first ones nothing but the distribution function's is
    needed, as the density may have none (those of `gennorm` have a cusp at the median). Where the density is rounded
    to 0, in a tail, the steps are those of the logarithms.
    """
    share, sign = (law.above, -1.0) if upper else (law.below, 1.0)

    def formula(q: Any, *shapes: Any) -> Any:
        place = x = held(as_tracer(values(q, *shapes)))
        logarithm = law.log_density(place, *shapes)
        faint = np.exp(logarithm) == 0
        slope = held(as_tracer(sign * np.exp(logarithm - np.where(faint, np.log(q), 0.0))))
        for _ in range(3):
            found: Any = share(x, *shapes)  # type: ignore[misc]
            ratio = np.where(faint, found, 1.0) / np.where(faint, q, 1.0)
            x = x - np.where(faint, np.log(ratio), found - q) / slope
        return place + (x - held(x))

    return formula


FURTHER: Final[dict[str, Law]] = {
    "f": Law(
        ("dfn", "dfd"), 0.0, INF, 1.0, f_log_density, lambda y, n, m: sc.betainc(n / 2, m / 2, n * y / (m + n * y)),
        lambda y, n, m: sc.betainc(m / 2, n / 2, m / (m + n * y)), f_quantile, powers=f_powers,
        upper_quantile=f_upper_quantile,
    ),
    "maxwell": Law(
        (), 0.0, INF, 1.0, lambda y: 0.5 * np.log(2 / np.pi) + sc.xlogy(2.0, y) - y**2 / 2,
        lambda y: below_square(y, 1.5, 0.5), lambda y: above_square(y, 1.5, 0.5),
        lambda q: np.sqrt(2 * sc.gammaincinv(1.5, q)), powers=lambda y: np.sqrt(2 / np.pi) * y**2 * np.exp(-(y**2) / 2),
    ),
    "nakagami": Law(
        ("nu",), 0.0, INF, 1.0,
        lambda y, nu: np.log(2.0) + sc.xlogy(nu, nu) - sc.gammaln(nu) + sc.xlogy(2 * nu - 1, y) - nu * y**2,
        lambda y, nu: below_square(y, nu, nu), lambda y, nu: above_square(y, nu, nu),
        lambda q, nu: np.sqrt(sc.gammaincinv(nu, q) / nu),
        powers=lambda y, nu: 2 * nu**nu * y ** (2 * nu - 1) * np.exp(-nu * y**2 - sc.gammaln(nu)),
    ),
    "invgauss": Law(
        ("mu",), 0.0, INF, 1.0, lambda y, mu: -LOG_2PI / 2 - 1.5 * np.log(y) - (y / mu - 1) ** 2 / (2 * y),
        lambda y, mu: np.exp(inverse_gaussian_log_below(y, mu)),
        lambda y, mu: np.exp(inverse_gaussian_log_above(y, mu)), None,
        inverse_gaussian_log_below, inverse_gaussian_log_above, positive=True,
    ),
    "lomax": Law(
        ("c",), 0.0, INF, 1.0, lambda y, c: np.log(c) - (c + 1) * np.log1p(y), lambda y, c: -np.expm1(-c * np.log1p(y)),
        lambda y, c: np.exp(-c * np.log1p(y)), lambda q, c: np.expm1(-np.log1p(-q) / c), None,
        lambda y, c: -c * np.log1p(y),
    ),
    "genpareto": Law(
        ("c",), 0.0, INF, 0.0, bent_log_density, rest_of_decayed, decayed,
        lambda q, c: unbent(-np.log1p(-q), c), None, lambda y, c: -bent(y, c), powers=lambda y, c: end_power(y, c, 1.0),
        allowed=lambda c: c == c, support=lambda c: (0.0 * c, np.where(c < 0, -1 / np.where(c < 0, c, -1.0), INF)),
    ),
    "genextreme": Law(
        ("c",), -INF, INF, 0.0, extreme_log_density,
        extreme_below, lambda y, c: np.where(at_start(y, c), 1.0, -np.expm1(-decayed(started(y, c), -c))),
        lambda q, c: unbent(-np.log(-np.log(q)), -c), lambda y, c: -decayed(y, -c), allowed=lambda c: c == c,
        upper_quantile=lambda q, c: unbent(-np.log(-np.log1p(-q)), -c),
        powers=lambda y, c: end_power(y, -c, 1.0) * np.exp(-end_power(y, -c, 0.0)),
        support=lambda c: (
            np.where(c < 0, 1 / np.where(c < 0, c, 1.0), -INF), np.where(c > 0, 1 / np.where(c > 0, c, 1.0), INF)
        ),
    ),
    "moyal": Law(
        (), -INF, INF, 0.0, lambda y: -(y + np.exp(-y) + LOG_2PI) / 2, lambda y: sc.erfc(np.exp(-y / 2) / SQRT_2),
        lambda y: sc.erf(np.exp(-y / 2) / SQRT_2), lambda q: -np.log(2 * sc.erfcinv(q) ** 2),
    ),
    "levy": Law(
        (), 0.0, INF, 1.0, lambda y: -LOG_2PI / 2 - 1.5 * np.log(y) - 0.5 / y, lambda y: sc.erfc(np.sqrt(0.5 / y)),
        lambda y: sc.erf(np.sqrt(0.5 / y)), lambda q: 0.5 / sc.erfcinv(q) ** 2, positive=True,
    ),
    "foldnorm": Law(
        ("c",), 0.0, INF, 1.0, lambda y, c: np.logaddexp(-((y - c) ** 2) / 2, -((y + c) ** 2) / 2) - LOG_2PI / 2,
        lambda y, c: 0.5 * (sc.erf((y - c) / SQRT_2) + sc.erf((y + c) / SQRT_2)),
        lambda y, c: sc.ndtr(c - y) + sc.ndtr(-y - c), allowed=lambda c: c >= 0,
    ),
    "johnsonsu": Law(
        ("a", "b"), -INF, INF, 0.0,
        lambda y, a, b: np.log(b) - np.log1p(y**2) / 2 - LOG_2PI / 2 - (a + b * np.arcsinh(y)) ** 2 / 2,
        lambda y, a, b: sc.ndtr(a + b * np.arcsinh(y)), lambda y, a, b: sc.ndtr(-a - b * np.arcsinh(y)),
        lambda q, a, b: np.sinh((sc.ndtri(q) - a) / b), lambda y, a, b: sc.log_ndtr(a + b * np.arcsinh(y)),
        lambda y, a, b: sc.log_ndtr(-a - b * np.arcsinh(y)), allowed=lambda a, b: (b > 0) & (a == a),
    ),
    "powerlaw": Law(
        ("a",), 0.0, 1.0, 0.5, lambda y, a: np.log(a) + sc.xlogy(a - 1, y), lambda y, a: y**a,
        lambda y, a: -sc.powm1(y, a), lambda q, a: q ** (1 / a), lambda y, a: sc.xlogy(a, y),
        powers=lambda y, a: a * y ** (a - 1),
    ),
    "triang": Law(
        ("c",), 0.0, 1.0, 0.5, lambda y, c: np.log(triangle(y, c)), triangle_below,
        triangle_above,
        lambda q, c: np.where(q < c, np.sqrt(c * q), 1 - np.sqrt((1 - c) * (1 - q))),
        allowed=lambda c: (c >= 0) & (c <= 1), powers=triangle,
    ),
    "exponnorm": Law(
        ("K",), -INF, INF, 0.0, lambda y, k: exponential_part(y, k) - np.log(k),
        lambda y, k: sc.ndtr(y) - np.exp(exponential_part(y, k)),
        lambda y, k: sc.ndtr(-y) + np.exp(exponential_part(y, k)),
    ),
    "loggamma": Law(
        ("c",), -INF, INF, 0.0, lambda y, c: c * y - np.exp(y) - sc.gammaln(c),
        lambda y, c: log_gamma_mass(y, c, sc.gammainc, np.exp),
        lambda y, c: log_gamma_mass(y, c, sc.gammaincc, one_less_exp),
        lambda q, c: log_gamma_quantile(sc.gammaincinv(c, q), np.log(q), c),
        upper_quantile=lambda q, c: log_gamma_quantile(sc.gammainccinv(c, q), np.log1p(-q), c),
    ),
    "halfcauchy": Law(
        (), 0.0, INF, 1.0, lambda y: np.log(2 / np.pi) - np.log1p(y * y), lambda y: 2 / np.pi * np.arctan(y),
        lambda y: 2 / np.pi * np.arctan2(1.0, y), lambda q: np.tan(np.pi / 2 * q),
    ),
    "halflogistic": Law(
        (), 0.0, INF, 1.0, lambda y: np.log(2.0) - y - 2 * np.log1p(np.exp(-y)), lambda y: np.tanh(y / 2),
        lambda y: 2 * sc.expit(-y), lambda q: 2 * np.arctanh(q),
    ),
    "hypsecant": Law(
        (), -INF, INF, 0.0, lambda y: np.log(2 / np.pi) - np.logaddexp(y, -y),
        lambda y: 2 / np.pi * np.arctan(np.exp(y)), lambda y: 2 / np.pi * np.arctan(np.exp(-y)),
        lambda q: np.log(np.tan(np.pi / 2 * q)),
    ),
    "fisk": Law(
        ("c",), 0.0, INF, 1.0, lambda y, c: np.log(c) + sc.xlogy(c - 1, y) - 2 * np.log1p(y**c), log_logistic_below,
        lambda y, c: 1 / (1 + y**c), lambda q, c: (q / (1 - q)) ** (1 / c), None, lambda y, c: -np.log1p(y**c),
        powers=lambda y, c: c * y ** (c - 1) / (1 + y**c) ** 2,
    ),
    "invweibull": Law(
        ("c",), 0.0, INF, 1.0, lambda y, c: np.log(c) - (c + 1) * np.log(y) - y**-c, lambda y, c: np.exp(-(y**-c)),
        lambda y, c: -np.expm1(-(y**-c)), lambda q, c: (-np.log(q)) ** (-1 / c), lambda y, c: -(y**-c), positive=True,
    ),
    "loguniform": Law(
        ("a", "b"), 0.0, INF, 1.0, lambda y, a, b: -np.log(y) - np.log(np.log(b) - np.log(a)),
        lambda y, a, b: (np.log(y) - np.log(a)) / (np.log(b) - np.log(a)),
        lambda y, a, b: (np.log(b) - np.log(y)) / (np.log(b) - np.log(a)),
        lambda q, a, b: np.exp(np.log(a) + q * (np.log(b) - np.log(a))),
        allowed=lambda a, b: (a > 0) & (b > a), support=lambda a, b: (a, b),
    ),
    "gompertz": Law(
        ("c",), 0.0, INF, 1.0, lambda y, c: np.log(c) + y - c * np.expm1(y), lambda y, c: -np.expm1(-c * np.expm1(y)),
        lambda y, c: np.exp(-c * np.expm1(y)), lambda q, c: np.log1p(-np.log1p(-q) / c), None,
        lambda y, c: -c * np.expm1(y),
    ),
    "chi": Law(
        ("df",), 0.0, INF, 1.0,
        lambda y, df: (1 - df / 2) * np.log(2.0) - sc.gammaln(df / 2) + sc.xlogy(df - 1, y) - y**2 / 2,
        lambda y, df: below_square(y, df / 2, 0.5), lambda y, df: above_square(y, df / 2, 0.5),
        lambda q, df: np.sqrt(2 * sc.gammaincinv(df / 2, q)),
        powers=lambda y, df: y ** (df - 1) * np.exp((1 - df / 2) * np.log(2.0) - sc.gammaln(df / 2) - y**2 / 2),
    ),
    "genlogistic": Law(
        ("c",), -INF, INF, 0.0, lambda y, c: np.log(c) - y + (c + 1) * sc.log_expit(y),
        lambda y, c: np.exp(c * sc.log_expit(y)), lambda y, c: -np.expm1(c * sc.log_expit(y)),
        lambda q, c: -np.log(np.expm1(-np.log(q) / c)), lambda y, c: c * sc.log_expit(y),
    ),
    "betaprime": Law(
        ("a", "b"), 0.0, INF, 1.0, lambda y, a, b: sc.xlogy(a - 1, y) - sc.xlog1py(a + b, y) - sc.betaln(a, b),
        lambda y, a, b: sc.betainc(a, b, y / (1 + y)), lambda y, a, b: sc.betainc(b, a, 1 / (1 + y)),
        beta_prime_quantile, powers=lambda y, a, b: y ** (a - 1) * (1 + y) ** -(a + b) / sc.beta(a, b),
    ),
    "burr12": Law(
        ("c", "d"), 0.0, INF, 1.0,
        lambda y, c, d: np.log(c) + np.log(d) + sc.xlogy(c - 1, y) - (d + 1) * np.log1p(y**c),
        lambda y, c, d: -np.expm1(-d * np.log1p(y**c)), lambda y, c, d: np.exp(-d * np.log1p(y**c)),
        lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c), None, lambda y, c, d: -d * np.log1p(y**c),
        powers=lambda y, c, d: c * d * y ** (c - 1) * (1 + y**c) ** -(d + 1),
    ),
    "arcsine": Law(
        (), 0.0, 1.0, 0.5, lambda y: -np.log(np.pi) - (np.log(y) + np.log1p(-y)) / 2,
        lambda y: 2 / np.pi * np.arcsin(np.sqrt(y)), lambda y: 2 / np.pi * np.arccos(np.sqrt(y)),
        lambda q: np.sin(np.pi / 2 * q) ** 2,
    ),
    "truncexpon": Law(
        ("b",), 0.0, INF, 0.1, lambda y, b: -y - np.log(-np.expm1(-b)), lambda y, b: np.expm1(-y) / np.expm1(-b),
        lambda y, b: (np.exp(-b) - np.exp(-y)) / np.expm1(-b), lambda q, b: -np.log1p(q * np.expm1(-b)),
        support=lambda b: (0.0, b),
    ),
    "rice": Law(
        ("b",), 0.0, INF, 1.0, lambda y, b: np.log(y) - (y - b) ** 2 / 2 + log_scaled_i0(y * b),
        lambda y, b: sc.chndtr(y**2, 2.0, b**2), lambda y, b: 1.0 - sc.chndtr(y**2, 2.0, b**2),
        allowed=lambda b: b >= 0, powers=lambda y, b: y * np.exp(log_scaled_i0(y * b) - (y - b) ** 2 / 2),
    ),
    "gibrat": Law(
        (), 0.0, INF, 1.0, lambda y: -(np.log(y) ** 2) / 2 - np.log(y) - LOG_2PI / 2, lambda y: sc.ndtr(np.log(y)),
        lambda y: sc.ndtr(-np.log(y)), lambda q: np.exp(sc.ndtri(q)), lambda y: sc.log_ndtr(np.log(y)),
        lambda y: sc.log_ndtr(-np.log(y)), positive=True,
    ),
    "gennorm": doubled(
        Law(
            ("beta",), 0.0, INF, 1.0, lambda u, b: np.log(b) - sc.gammaln(1.0 / b) - u**b,
            lambda u, b: 1 - half_normal_above(u, b), half_normal_above,
        )
    ),
    "dpareto_lognorm": Law(
        ("u", "s", "a", "b"), 0.0, INF, 1.0, mixed_log_density, mixed_below, mixed_above, positive=True,
        allowed=lambda u, s, a, b: (s > 0) & (a > 0) & (b > 0) & (u == u),
    ),
    "planck": Law(
        ("lambda_",), 0.0, INF, 1.0, lambda k, rate: np.log(-np.expm1(-rate)) - rate * k,
        lambda k, rate: -np.expm1(-rate * (k + 1)), lambda k, rate: np.exp(-rate * (k + 1)), None, None,
        lambda k, rate: -rate * (k + 1), discrete=True,
    ),
    "genhyperbolic": Law(
        ("p", "a", "b"), -INF, INF, 0.0, generalized_hyperbolic_log_density, None, None,
        allowed=lambda p, a, b: ((np.abs(b) < a) & (p >= 0)) | ((np.abs(b) <= a) & (p < 0)),
    ),
    "logser": Law(
        ("p",), 1.0, INF, 1.0, lambda k, p: sc.xlogy(k, p) - np.log(k) - np.log(-np.log1p(-p)), None, None,
        discrete=True, allowed=lambda p: (p > 0) & (p < 1),
    ),
}  # fmt: skip
"""Distributions by their names in ``scipy.stats``."""


def undefined(*operands: Any) -> Any:
    """nan, as are all of its derivatives, of every order: those of a constant would be 0."""
    return 1.0 / (np.nan * functools.reduce(operator.add, operands))
