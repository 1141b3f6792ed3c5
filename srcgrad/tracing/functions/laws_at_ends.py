"""What SciPy's own formulas of some laws leave undefined at the ends of their support, where their slopes are finite.

A power of 0 times one that is infinite there is one power. Elsewhere the formulas are SciPy's, where no name says else.
Importing this module imports SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special as sc

from srcgrad.ir.passes.log_terms import Logs, vanishing
from srcgrad.tracing.functions import laws_truncated
from srcgrad.tracing.functions.laws import Formula, Law
from srcgrad.tracing.trace import current_span, current_trace
from srcgrad.tracing.tracer import as_tracer, from_value


def of_logarithm(logarithm: Formula, mass: Formula) -> Formula:
    """A density ``mass``; where its logarithm is -inf because of powers of 0, as the product with these."""

    def formula(*operands: Any) -> Any:
        exponent, found = as_tracer(logarithm(*operands)), mass(*operands)
        builder = current_trace().builder
        builder.span = current_span()
        parts = vanishing(exponent.read(), Logs(builder, any_power=True))
        if parts is None:
            return found
        gone, t, power = (from_value(part.value, exponent.scalar, exponent.weak) for part in parts)
        return np.where(gone, t * np.exp(np.where(gone, power, 0.0)) + 0.0, found)

    return formula


def at_zero(near: Formula, elsewhere: Formula | None) -> Formula:
    """A formula for the place 0, of which nothing is asked elsewhere."""

    def formula(y: Any, *shapes: Any) -> Any:
        assert elsewhere is not None
        zero = y == 0.0
        return np.where(zero, near(np.where(zero, y, 0.0), *shapes), elsewhere(np.where(zero, 1.0, y), *shapes))

    return formula


def rest(formula: Formula) -> Formula:
    return lambda *operands: 1.0 - formula(*operands)


def powers(y: Any, least: Any, step: Any, second: Any, third: Any) -> Any:
    """y**least (1 + second y**step + third y**(2 step)) where y is 0, each term one power: none is 0 times infinity.

    With what is left out, derivatives are right up to the second. Terms after one that has infinite ones by then would
    be infinity less infinity, and after a square they are 0.
    """
    further = (least == 0) | (least == 1)
    after = np.where(further, second, 0.0) * y ** np.where(further, least + step, 1.0)
    last = further & (step >= 1)
    return y**least + after + np.where(last, third, 0.0) * y ** np.where(last, least + 2 * step, 1.0)


# --- laws -------------------------------------------------------------------------------------------------------------


def burr_below(y: Any, c: Any, d: Any) -> Any:
    """(1 + y**-c)**-d, below 1 as y**(c d) (1 + y**c)**-d."""
    near = y < 1
    small, large = np.where(near, y, 1.0), np.where(near, 1.0, y)
    return np.where(near, small ** (c * d) * (1 + small**c) ** -d, (1 + large**-c) ** -d)


def burr_above(y: Any, c: Any, d: Any) -> Any:
    near = y < 1
    large = np.where(near, 1.0, y)
    return np.where(near, 1 - burr_below(np.where(near, y, 0.5), c, d), -np.expm1(-d * np.log1p(large**-c)))


def burr_near(y: Any, c: Any, d: Any) -> Any:
    return powers(y, c * d, c, -d, d * (d + 1) / 2)


def burr_density_near(y: Any, c: Any, d: Any) -> Any:
    return c * d * powers(y, c * d - 1, c, -d - 1, (d + 1) * (d + 2) / 2)


def mielke_near(y: Any, k: Any, s: Any) -> Any:
    return powers(y, k, s, -k / s, k / s * (k / s + 1) / 2)


def mielke_density_near(y: Any, k: Any, s: Any) -> Any:
    return k * powers(y, k - 1, s, -1 - k / s, (1 + k / s) * (2 + k / s) / 2)


def mielke_log_density(y: Any, k: Any, s: Any) -> Any:
    return np.log(k) + sc.xlogy(k - 1, y) - np.log1p(y**s) * (1 + k / s)


def exponentiated_weibull_near(y: Any, a: Any, c: Any) -> Any:
    """The power a of 1 - exp(-y**c)."""
    return powers(y, a * c, c, -a / 2, a / 6 + a * (a - 1) / 8)


def exponentiated_weibull_density_near(y: Any, a: Any, c: Any) -> Any:
    m = a - 1
    return a * c * powers(y, a * c - 1, c, -m / 2 - 1, m / 6 + m * (m - 1) / 8 + (m + 1) / 2)


def generalized_gamma_near(y: Any, a: Any, c: Any) -> Any:
    """Where c is negative it is flat there."""
    positive = c > 0
    c = np.where(positive, c, 1.0)
    return np.where(positive, gamma_near(y, a, a * c, c), 0.0)


def generalized_gamma_density_near(y: Any, a: Any, c: Any) -> Any:
    positive = c > 0
    c = np.where(positive, c, 1.0)
    return np.where(positive, c / sc.gamma(a) * powers(y, a * c - 1, c, -1.0, 0.5), 0.0)


def gamma_near(y: Any, a: Any, least: Any, step: Any) -> Any:
    """gammainc(a, y**step), of which a is least/step (DLMF 8.7.1)."""
    return powers(y, least, step, -a / (a + 1), a / (2 * a + 4)) / sc.gamma(a + 1)


def half_generalized_normal_near(y: Any, beta: Any) -> Any:
    return gamma_near(y, 1 / beta, 1.0, beta)


def semicircle_below(y: Any) -> Any:
    """Its formula is the difference of two that are nearly equal, of which nothing is left near an end."""
    left = y < 0
    tail = sc.betainc(1.5, 1.5, (1 - np.where(left, -y, y)) / 2)
    return np.where(left, tail, 1 - tail)


def argus_above(y: Any, chi: Any) -> Any:
    return sc.gammainc(1.5, chi**2 * (1 - y) * (1 + y) / 2) / sc.gammainc(1.5, chi**2 / 2)


def double_pareto_power(less: float, u: Any, s: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The distribution function, or its slope if ``less`` is 1, as a factor and a power of y: what differs from it is
    the tail of a normal law of log y. And whether it is 0 at 0: SciPy has 0 there also where it is not."""
    steep = b > less
    return a * b**less / (a + b) * np.exp(b * (b * s**2 / 2 - u)), np.where(steep, b - less, 1.0), steep


def double_pareto_near(less: float) -> Formula:
    def formula(y: Any, *shapes: Any) -> Any:
        factor, power, steep = double_pareto_power(less, *shapes)
        return np.where(steep, factor * y**power, 0.0)

    return formula


def double_pareto_log_near(less: float) -> Formula:
    def formula(y: Any, *shapes: Any) -> Any:
        factor, power, steep = double_pareto_power(less, *shapes)
        return np.where(steep, np.log(factor) + power * np.log(y), -np.inf)

    return formula


def near_zero(mass: Formula | None, below: Formula) -> Callable[[Law], Law]:
    """What puts a density and a distribution function in the place of a law's, where its place is 0."""

    def corrected(law: Law) -> Law:
        above = at_zero(rest(below), law.above)
        return law._replace(
            powers=law.powers if mass is None else at_zero(mass, law.powers),
            below=at_zero(below, law.below), above=above, log_above=lambda *given: np.log(above(*given)),
        )  # fmt: skip

    return corrected


def burr(law: Law) -> Law:
    return near_zero(burr_density_near, burr_near)(law._replace(below=burr_below, above=burr_above))


def double_pareto(law: Law) -> Law:
    """The logarithm of its density is -inf at 0 alone."""
    found = near_zero(None, double_pareto_near(0.0))(law)

    def log_below(*given: Any) -> Any:
        below, above = law.below(*given), law.above(*given)  # type: ignore[misc]
        return np.where(above < 0.5, np.log1p(-above), np.log(below))

    return found._replace(
        log_density=at_zero(double_pareto_log_near(1.0), law.log_density),
        powers=at_zero(double_pareto_near(1.0), lambda y, *shapes: 0.0 * y),
        log_below=at_zero(double_pareto_log_near(0.0), log_below), log_above=None, positive=False,
    )  # fmt: skip


def mielke(law: Law) -> Law:
    return near_zero(mielke_density_near, mielke_near)(law._replace(log_density=mielke_log_density))


def semicircle(law: Law) -> Law:
    return law._replace(
        below=semicircle_below, above=lambda y: semicircle_below(-y), log_below=None, log_above=None,
    )  # fmt: skip


def skew_cauchy(law: Law) -> Law:
    """Each side by what is left in its tail."""

    def below(y: Any, a: Any) -> Any:
        left: Any = y <= 0
        size = np.where(left, 1 - a, 1 + a)
        tail = size * np.arctan2(1.0, np.where(left, -y, y) / size) / np.pi
        return np.where(left, tail, 1 - tail)

    def above(y: Any, a: Any) -> Any:
        return below(-y, -a)

    def quantile(q: Any, a: Any) -> Any:
        left = q < (1 - a) / 2
        size = np.where(left, 1 - a, 1 + a)
        t = np.where(left, q, 1 - q) / size
        far: Any = t < 0.25
        tangent = np.tan(np.pi * np.where(far, t, 0.5 - t))
        return np.where(left, -size, size) * np.where(far, 1 / tangent, tangent)

    return law._replace(
        below=below, above=above, log_below=None, log_above=None, quantile=quantile,
        upper_quantile=lambda q, a: -quantile(q, -a),
    )  # fmt: skip


def trapezium(law: Law) -> Law:
    def above(y: Any, c: Any, d: Any) -> Any:
        rising, falling = y < c, y > d
        rise = 1 - y**2 / np.where(rising, c, 1.0) / (d - c + 1)
        fall = (1 - y) ** 2 / np.where(falling, 1 - d, 1.0) / (d - c + 1)
        return np.where(rising, rise, np.where(falling, fall, (1 + d - 2 * y) / (d - c + 1)))

    return law._replace(above=above, log_below=None, log_above=None)


def log_power_below(z: Any, c: Any) -> Any:
    """log(1 - (1 - p)**c) of the normal law's p = ndtr(z): by logarithms of p alone far to the left, where p is 0."""
    p = sc.ndtr(z)
    small: Any = p < 1e-8
    ratio = np.where(small, 1 + p / 2, sc.log_ndtr(-np.where(small, 0.0, z)) / -np.where(small, 1.0, p))
    exponent = c * sc.log_ndtr(-z)
    likely = exponent < -0.7
    found = np.log(c) + sc.log_ndtr(z) + np.log(ratio) + np.log(sc.exprel(np.where(likely, 0.0, exponent)))
    return np.where(likely, np.log1p(-np.exp(exponent)), found)


def power_normal(law: Law) -> Law:
    return law._replace(log_below=log_power_below)


def power_lognormal(law: Law) -> Law:
    return law._replace(log_below=lambda y, c, s: log_power_below(np.log(y) / s, c))


def argus(law: Law) -> Law:
    below = rest(argus_above)
    return law._replace(
        below=below, above=argus_above, log_below=lambda *given: np.log(below(*given)),
        log_above=lambda *given: np.log(argus_above(*given)),
    )  # fmt: skip


AT_ENDS: Final[dict[str, Callable[[Law], Law]]] = {
    "burr": burr,
    "dpareto_lognorm": double_pareto,
    "exponweib": near_zero(exponentiated_weibull_density_near, exponentiated_weibull_near),
    "gengamma": near_zero(generalized_gamma_density_near, generalized_gamma_near),
    "halfgennorm": near_zero(None, half_generalized_normal_near),
    "powerlognorm": power_lognormal,
    "powernorm": power_normal,
    "semicircular": semicircle,
    "skewcauchy": skew_cauchy,
    "trapezoid": trapezium,
    "argus": argus,
    "boltzmann": laws_truncated.boltzmann,
    "truncexpon": laws_truncated.exponential,
    "truncpareto": laws_truncated.pareto,
    "truncweibull_min": laws_truncated.weibull,
    "mielke": mielke,
    "recipinvgauss": lambda law: law._replace(positive=True),
}
"""By the names of the laws in ``scipy.stats``, what is put in the place of SciPy's formulas."""
