"""Pearson's law of the third type: a gamma law of shape 4/skew**2, moved and scaled; near skewness 0 the normal one.

There its places and the shape grow without bound and what they say cancels: the slopes in the skewness lose all digits.
Temme's expansion (DLMF 8.12) is smooth in it through 0. Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.special as sc

from srcgrad.tracing.functions.laws import INF, LOG_2PI, Formula, Law, settled
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.tracer import as_tracer

NOT_SKEW: Final = 0.000016
"""Below this skewness SciPy takes the law for the normal one."""
HARDLY_SKEW: Final = 0.05
"""Below this one the expansion has all digits, and above it the gamma functions have eight of second derivatives."""
TEMME: Final = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
        0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
        -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
        1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
        0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
        -1.6120900894563446e-06, 4.647127802807434e-09,
    ),
    (
        0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
        -0.0001073665322636516, 5.2923448829120125e-05,
    ),
    (
        0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
    ),
)  # fmt: skip
"""The Taylor coefficients of c_0 to c_3: c_0 = 1/mu - 1/eta, c_k = c'_(k-1)/eta + (-1)**k g_k/mu with Stirling's g_k
(DLMF 8.12.11), in eta, of which mu - log(1 + mu) = eta**2/2."""


def skewed(formula: Formula, nearly: Formula) -> Formula:
    """A formula of a place of the gamma law, its shape and the skewness, or ``nearly`` of the place and the skewness.

    Where SciPy has the normal law, ``nearly`` is taken at skewness 0, with what the skewness is away from its number.
    """

    def chosen(y: Any, skew: Any) -> Any:
        small = np.abs(skew) < HARDLY_SKEW
        s = np.where(small, 1.0, skew)
        return np.where(small, nearly(y, hardly(skew)), formula(y, 4.0 / s**2, s))

    return chosen


def hardly(skew: Any) -> Any:
    size = np.abs(skew)
    return np.where(size < NOT_SKEW, skew - held(as_tracer(skew)), np.where(size < HARDLY_SKEW, skew, 0.0))


def gamma_log_density(u: Any, a: Any) -> Any:
    return sc.xlogy(a - 1.0, u) - u - sc.gammaln(a)


def on_gamma(formula: Formula) -> Formula:
    """Of the place that a place of the law is in its gamma law."""
    return lambda y, a, s: formula(np.where(y * s + 2.0 > 0, 2.0 * (y * s + 2.0), 0.0) / s**2, a, s)


def either(first: Formula, second: Formula) -> Formula:
    """For positive skewness, and for negative one."""
    return lambda u, a, s: np.where(s > 0, first(a, u), second(a, u))


def normal_place(y: Any, s: Any) -> tuple[Any, Any, Any]:
    """Whether a place is in the support, mu = y s/2, which is what its gamma law's is beside the mean, and the place z
    of a normal law with this density but for factors: z**2/2 = (mu - log(1 + mu)) 4/s**2."""
    within = y * s > -2.0
    mu = np.where(within, y * s / 2, 0.0)
    near = np.abs(mu) < 0.1
    m, far = np.where(near, mu, 0.0), np.where(near, 1.0, mu)
    ratio = np.polynomial.polynomial.polyval(m, [(-1) ** k * 2 / (k + 2) for k in range(16)])
    return within, mu, y * np.sqrt(np.where(near, ratio, 2 * (far - np.log1p(far)) / far**2))


def nearly_normal_log_density(y: Any, s: Any) -> Any:
    within, mu, z = normal_place(y, s)
    w = s**2 / 4  # the inverse of the gamma law's shape, with Stirling's series in it
    stirling = w * (1 / 12 - w**2 * (1 / 360 - w**2 / 1260))
    return np.where(within, -(z**2 + LOG_2PI) / 2 - np.log1p(mu) - stirling, -INF)


def nearly_normal_mass(y: Any, s: Any, side: float) -> Any:
    """Below, or above where ``side`` is -1."""
    within, _, z = normal_place(y, s)
    eta, total = s * z / 2, 0.0
    for row in reversed(TEMME):
        total = total * s**2 / 4 + np.polynomial.polynomial.polyval(eta, row)
    found = sc.ndtr(side * z) - side * s / 2 * np.exp(-(z**2 + LOG_2PI) / 2) * total
    return np.where(within, found, np.where(side * y > 0, 1.0, 0.0))


def nearly_normal_quantile(q: Any, s: Any) -> Any:
    law = Law(
        ("skew",), -INF, INF, 0.0, nearly_normal_log_density, lambda y, s: nearly_normal_mass(y, s, 1.0),
        lambda y, s: nearly_normal_mass(y, s, -1.0),
    )  # fmt: skip

    def place(q: Any, s: Any) -> Any:
        other = np.where(s == 0, 1.0, s)
        return np.where(s == 0, sc.ndtri(q), gamma_quantile(q, 4.0 / other**2, other))

    return settled(law, place)(q, s)


def gamma_quantile(q: Any, a: Any, s: Any) -> Any:
    return s / 2.0 * either(sc.gammaincinv, sc.gammainccinv)(q, a, s) - 2.0 / s


quantile: Final = skewed(gamma_quantile, nearly_normal_quantile)
PEARSON: Final = Law(
    ("skew",), -INF, INF, 0.0,
    skewed(
        on_gamma(lambda u, a, s: np.where(u > 0, np.log(np.abs(2.0 / s)) + gamma_log_density(u, a), -INF)),
        nearly_normal_log_density,
    ),
    skewed(on_gamma(either(sc.gammainc, sc.gammaincc)), lambda y, s: nearly_normal_mass(y, s, 1.0)),
    skewed(on_gamma(either(sc.gammaincc, sc.gammainc)), lambda y, s: nearly_normal_mass(y, s, -1.0)),
    quantile, upper_quantile=lambda q, skew: -quantile(q, -skew),  # the mirror image: 1 - q has no digits of a small q
    allowed=lambda skew: np.isfinite(skew),
)  # fmt: skip
