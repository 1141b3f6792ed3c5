"""Special functions against mpmath, at easy points and at those where formulas lose accuracy: value and derivatives.

Each line of the tables is an op, its function in mpmath, and points; derivatives to second order in the operands named
are compared in all mixes of the two modes, to a relative error. mpmath differentiates numerically, with 40 digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
import scipy.special

from srcgrad.ir.errors import DTypeError, MissingRuleError
from tests.ir.ops.derivatives import R, check_slopes, program, slopes
from tests.ir.ops.harness import run

INF, NAN = np.inf, np.nan
RTOL = 1e-12


class Line(NamedTuple):
    op: str
    reference: Callable[..., Any]
    points: list[Any]
    operands: tuple[int, ...] = (0,)
    attrs: tuple[tuple[str, Any], ...] = ()
    inverse: bool = False
    """The reference is the function of which the op is the inverse in its last operand."""


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def dawson(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def carefully(function: Callable[..., Any], digits: int = 400) -> Callable[..., Any]:
    """The function with so many digits that its terms may cancel."""

    def wrapped(*xs: Any) -> Any:
        with mp.workdps(digits):
            return function(*xs)

    return wrapped


NORMAL = [
    Line("erf", mp.erf, [-3.0, -1e-9, 0.3, 5.0]),
    Line("erfc", mp.erfc, [-3.0, 0.3, 5.0, 20.0, 26.0]),
    Line("erfcx", carefully(erfcx), [-5.0, -0.3, 0.0, 1.9, 2.1, 10.0, 300.0]),
    Line("erfi", mp.erfi, [-3.0, 0.3, 5.0, 20.0]),
    Line("dawsn", carefully(dawson), [-30.0, -0.3, 1e-9, 2.0, 5.9, 6.1, 15.0]),
    Line("erfinv", mp.erf, [-0.999999, -0.3, 1e-9, 0.3, 0.9, 1 - 1e-12], inverse=True),
    Line("erfcinv", mp.erfc, [1e-150, 1e-20, 0.1, 0.49, 0.51, 1.3, 1.999], inverse=True),
    Line("ndtr", mp.ncdf, [-37.0, -8.0, -0.3, 0.3, 8.0]),
    Line("log_ndtr", lambda x: mp.log(mp.ncdf(x)), [-1e4, -37.0, -8.0, -0.3, 0.3, 5.0]),
    Line("ndtri", mp.ncdf, [1e-150, 1e-20, 0.1, 0.24, 0.26, 0.7, 0.999999], inverse=True),
    Line("ndtri_exp", lambda y: mp.log(mp.ncdf(y)), [-1e4, -700.0, -3.0, -0.8, -0.3, -1e-3], inverse=True),
]

GAMMA = [
    Line("gamma", mp.gamma, [-2.5, -0.3, 1e-9, 0.5, 3.0, 50.0, 150.0]),
    Line("gammaln", lambda x: mp.log(abs(mp.gamma(x))), [-10.3, -0.3, 1e-9, 0.5, 1.0, 2.0, 50.0, 1e10]),
    Line("loggamma", mp.loggamma, [1e-9, 0.5, 3.0, 1e10]),
    Line("rgamma", mp.rgamma, [-5.0, -3 + 1e-9, -2.5, 0.0, 1e-9, 0.5, 1.0, 3.0, 50.0]),
    Line("digamma", lambda x: mp.psi(0, x), [-3.999999, -2 + 1e-9, -0.3, 1e-9, 0.5, 3.0, 1e10]),
    Line("polygamma", lambda x: mp.psi(2, x), [-300.3, -3.999999, -0.3, 1e-9, 0.5, 3.0, 1e10], attrs=(("n", 2),)),
    Line("zeta", mp.zeta, [(2.5, 0.3), (1.001, 3.0), (3.0, 1e6), (30.0, 1.5)], (0, 1)),
    Line("zeta_derivative", lambda s, q: mp.zeta(s, q, 1), [(2.5, 0.3), (0.5, 1.0), (30.0, 1.5)], (0,), (("n", 1),)),
    Line("betaln", lambda a, b: mp.log(mp.beta(a, b)), [(0.5, 0.3), (1e8, 2.0), (1e-6, 5.0), (30.0, 0.5)], (0, 1)),
    Line("beta", mp.beta, [(0.5, 0.3), (1e3, 2.0), (1e-3, 5.0)], (0, 1)),
    Line("poch", mp.rf, [(0.5, 0.3), (1e6, 0.5), (3.0, 1e-6), (25.0, -24.25)], (0, 1)),
    Line("binom", mp.binomial, [(4.5, 1.3), (20.0, 3.25), (0.5, -0.25)], (0, 1)),
]

REGIMES = [(0.01, 1e-10), (0.5, 0.2), (0.5, 1.4), (0.5, 1.6), (1.0, 0.5), (2.0, 3.0), (9.9, 5.0), (10.1, 12.0),
           (50.0, 48.5), (50.0, 52.0), (50.0, 10.0), (30.0, 100.0), (200.0, 190.0), (5.0, 1e-5),
           (1e-4, 0.9)]  # fmt: skip
INCOMPLETE = [
    Line("gammainc", lambda a, x: mp.gammainc(a, 0, x, regularized=True), REGIMES, (0, 1)),
    Line("gammaincc", lambda a, x: mp.gammainc(a, x, regularized=True),
         [(0.5, 0.2), (2.0, 3.0), (50.0, 52.0), (1e-4, 30.0)], (0, 1)),
    Line("gammaincinv", lambda a, x: mp.gammainc(a, 0, x, regularized=True), [(0.5, 0.2), (5.0, 1e-8), (50.0, 0.9)],
         (1,), inverse=True),
    Line("gammainccinv", lambda a, x: mp.gammainc(a, x, regularized=True), [(0.5, 0.2), (5.0, 1e-8), (50.0, 0.9)],
         (1,), inverse=True),
    Line("betainc", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
         [(0.5, 0.5, 0.3), (2.0, 5.0, 1e-6), (300.0, 200.0, 0.58), (20.0, 30.0, 0.9), (1e-2, 3.0, 0.2),
          (50.0, 0.5, 0.2), (0.5, 1e-2, 0.95), (2e4, 0.5, 0.9999)], (0, 1, 2)),
    Line("betaincc", lambda a, b, x: mp.betainc(b, a, 0, 1 - x, regularized=True), [(2.0, 5.0, 0.9)], (0, 1, 2)),
    Line("betaincinv", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), [(2.0, 5.0, 0.3), (0.5, 0.7, 0.9)],
         (2,), inverse=True),
    Line("stdtr", lambda v, t: 0.5 + t * mp.gamma((v + 1) / 2) * mp.hyp2f1(0.5, (v + 1) / 2, 1.5, -t * t / v)
         / (mp.sqrt(v * mp.pi) * mp.gamma(v / 2)), [(1.0, 0.3), (3.5, -2.0), (50.0, 1.0), (2.5, -3e4), (4.0, 1e-6)],
         (0, 1)),
    Line("chndtr", lambda x, k, c: mp.nsum(lambda j: mp.exp(-c / 2) * (c / 2) ** j / mp.factorial(j)
         * mp.gammainc(k / 2 + j, 0, x / 2, regularized=True), [0, 60]),
         [(2.0, 3.0, 1.5), (0.3, 1.0, 0.2), (9.0, 2.0, 4.0)], (0, 2)),
]  # fmt: skip

BESSEL = [
    Line("jv", mp.besselj, [(0.5, 0.3), (2.5, 1e-3), (0.0, 10.0), (3.0, 50.0)], (1,)),
    Line("yv", mp.bessely, [(0.5, 0.3), (2.5, 1e-3), (0.25, 10.0), (3.0, 5.0)], (1,)),
    Line("iv", mp.besseli, [(0.5, 0.3), (2.5, 1e-3), (0.0, 10.0), (3.0, 50.0)], (1,)),
    Line("kv", mp.besselk, [(0.5, 0.3), (2.5, 1e-3), (0.25, 10.0), (3.0, 5.0)], (1,)),
    Line("ive", lambda v, x: mp.exp(-x) * mp.besseli(v, x),
         [(0.5, 0.3), (0.0, 29.0), (0.5, 31.0), (2.0, 1e4), (10.0, 100.0), (1.0, 1e8)], (1,)),
    Line("kve", lambda v, x: mp.exp(x) * mp.besselk(v, x),
         [(0.5, 0.3), (0.25, 29.0), (0.25, 31.0), (2.0, 1e4), (10.25, 100.0)], (1,)),
    *[Line(f"{kind}{n}", lambda x, f=f, n=n: f(n, x), [1e-3, 0.3, 3.0])
      for kind, f in (("j", mp.besselj), ("y", mp.bessely), ("i", mp.besseli), ("k", mp.besselk)) for n in (0, 1)],
    *[Line(f"i{n}e", lambda x, n=n: mp.exp(-x) * mp.besseli(n, x), [0.3, 3.0, 50.0, 1e6]) for n in (0, 1)],
    *[Line(f"k{n}e", lambda x, n=n: mp.exp(x) * mp.besselk(n, x), [0.3, 3.0, 1e6]) for n in (0, 1)],
    Line("airy_ai", mp.airyai, [-3.0, 0.3, 5.0]),
    Line("struve", mp.struveh, [(0.5, 0.3), (0.0, 1e-3), (-1.5, 2.0), (1.25, 8.0)], (1,)),
    Line("modstruve", mp.struvel, [(0.5, 0.3), (0.0, 1e-3), (1.25, 8.0)], (1,)),
    Line("parabolic_d", mp.pcfd, [(0.5, 0.3), (2.0, -1.5), (-1.5, 3.0)], (1,)),
    Line("parabolic_v", lambda v, x: mp.pcfv(-v - 0.5, x), [(0.5, 0.3), (2.0, 1.5)], (1,)),
    Line("airy_bi", mp.airybi, [-3.0, 0.3, 5.0]),
    Line("ber", lambda x: mp.ber(0, x), [1e-3, 0.3, 3.0, 20.0]),
    Line("bei", lambda x: mp.bei(0, x), [1e-3, 0.3, 3.0, 20.0]),
    Line("ker", lambda x: mp.ker(0, x), [1e-3, 0.3, 3.0, 20.0]),
    Line("kei", lambda x: mp.kei(0, x), [1e-3, 0.3, 3.0, 20.0]),
    Line("parabolic_w", mp.pcfw, [(0.5, 0.3), (-2.0, 1.5)], (1,)),
    Line("integral_struve", lambda x: mp.quad(lambda t: mp.struveh(0, t), [0, x]), [0.3, 2.0]),
    Line("integral_modstruve", lambda x: mp.quad(lambda t: mp.struvel(0, t), [0, x]), [0.3, 2.0]),
]  # fmt: skip

INTEGRALS = [
    Line("exp1", mp.e1, [1e-9, 0.3, 5.0, 50.0]),
    Line("expi", mp.ei, [1e-9, 0.3, 5.0, 50.0, -3.0]),
    Line("expn", mp.expint, [(3.0, 0.3), (1.0, 5.0), (2.0, 1e-6)], (1,)),
    Line("sine_integral", mp.si, [1e-6, 0.3, 5.0, 100.0]),
    Line("cosine_integral", mp.ci, [1e-6, 0.3, 5.0, 100.0]),
    Line("hyperbolic_sine_integral", mp.shi, [1e-6, 0.3, 5.0]),
    Line("hyperbolic_cosine_integral", mp.chi, [1e-6, 0.3, 5.0]),
    Line("fresnel_sine", mp.fresnels, [1e-3, 0.3, 2.7, 30.123]),
    Line("fresnel_cosine", mp.fresnelc, [1e-3, 0.3, 2.7, 30.123]),
    Line("spence", lambda x: mp.polylog(2, 1 - x), [1e-9, 0.3, 0.7, 1 - 1e-9, 1 + 1e-9, 1.9, 50.0]),
    Line("ellipk", mp.ellipk, [-50.0, -0.3, 1e-9, 0.45, 0.9, 1 - 1e-9]),
    Line("ellipkm1", lambda p: mp.ellipk(1 - p), [1e-30, 1e-3, 0.3, 1.2, 20.0]),
    Line("ellipe", mp.ellipe, [-50.0, -0.3, 1e-9, 0.45, 0.9, 1 - 1e-9]),
    Line("ellipkinc", mp.ellipf, [(0.3, 0.5), (1.5, 0.99), (1e-4, 0.3), (4.0, 0.3), (0.7, -50.0), (1.0, 1e-9)], (0, 1)),
    *[
        Line(
            f"jacobi_{kind}",
            lambda u, m, kind=kind: mp.ellipfun(kind, u, m=m),
            [(0.3, 0.5), (-1.5, 0.99), (1e-4, 0.3), (9.0, 0.3), (1.0, 1e-9), (3.0, 0.999)],
            (0, 1),
        )
        for kind in ("sn", "cn", "dn")
    ],
    Line("elliprf", mp.elliprf, [(0.3, 0.5, 2.0), (1e-6, 1.0, 1e6), (1.0, 1.0 + 1e-9, 2.0)], (0, 1, 2)),
    Line("elliprd", mp.elliprd, [(0.3, 0.5, 2.0), (1e-6, 1.0, 1e6), (2.0, 1.0, 1e-4)], (0, 1, 2)),
    Line("elliprg", mp.elliprg, [(0.3, 0.5, 2.0), (1e-3, 1.0, 1e3)], (0, 1, 2)),
    Line("elliprj", mp.elliprj, [(0.3, 0.5, 2.0, 0.7), (1e-3, 1.0, 1e3, 3.0)], (0, 1, 2, 3)),
    Line("elliprc", mp.elliprc, [(0.3, 0.5), (2.0, 1e-3), (1.0, 1.0 + 1e-9), (0.3, -0.7)], (0, 1)),
    Line("agm", mp.agm, [(0.3, 0.5), (1e-20, 3.0), (2.0, 2.0)], (0, 1)),
    Line("integral_j0", lambda x: mp.quad(lambda t: mp.besselj(0, t), [0, x]), [0.3, 2.0]),
    Line("integral_i0", lambda x: mp.quad(lambda t: mp.besseli(0, t), [0, x]), [0.3, 2.0]),
    Line("ellipeinc", mp.ellipe, [(0.3, 0.5), (1.5, 0.99), (1e-4, 0.3), (4.0, 0.3), (0.7, -50.0), (1.0, 1e-9)], (0, 1)),
]

HYPERGEOMETRIC = [
    Line("hyp0f1", mp.hyp0f1, [(0.5, 0.3), (3.0, -5.0)], (1,)),
    Line("hyp1f1", mp.hyp1f1, [(0.5, 1.5, 0.3), (2.0, 3.0, 5.0)], (2,)),
    Line("hyp2f1", mp.hyp2f1, [(0.5, 1.5, 2.5, 0.3), (1.0, 2.0, 3.5, -0.7)], (3,)),
    Line(
        "hyperu", mp.hyperu, [(0.5, 1.5, 0.3), (2.0, 3.5, 5.0), (0.02505010020040077, 1.0, 0.020441677354709423)], (2,)
    ),
    Line(
        "wright_bessel",
        lambda a, b, x: mp.nsum(lambda k: x**k / mp.factorial(k) / mp.gamma(a * k + b), [0, mp.inf]),
        [(0.5, 1.5, 0.3), (1.0, 2.0, 5.0)],
        (2,),
    ),
    Line(
        "besselpoly",
        lambda a, p, v: mp.quad(lambda x: x**p * mp.besselj(v, 2 * a * x), [0, 1]),
        [(0.3, 0.5, 1.0), (2.0, 1.0, 2.5)],
        (0,),
    ),
    Line(
        "lpmv", lambda m, v, x: mp.legenp(v, m, x, type=2), [(0.0, 2.0, 0.3), (2.0, 3.0, -0.9), (1.0, 4.0, 0.999)], (2,)
    ),
    Line("eval_legendre", lambda n, x: mp.legendre(int(n), x), [(5, 0.3), (1, 0.7), (0, 0.7), (20, -0.9)], (1,)),
    Line("eval_chebyt", lambda n, x: mp.chebyt(int(n), x), [(5, 0.3), (1, 0.7), (20, -0.9)], (1,)),
    Line("eval_chebyu", lambda n, x: mp.chebyu(int(n), x), [(5, 0.3), (1, 0.7), (20, -0.9)], (1,)),
    Line("eval_gegenbauer", lambda n, a, x: mp.gegenbauer(int(n), a, x), [(5, 0.7, 0.3), (1, 2.0, 0.7)], (2,)),
    Line("eval_jacobi", lambda n, a, b, x: mp.jacobi(int(n), a, b, x), [(5, 0.7, 1.5, 0.3), (1, 2.0, 1.0, 0.7)], (3,)),
    Line("eval_hermite", lambda n, x: mp.hermite(int(n), x), [(5, 0.3), (1, 0.7), (2, 3.0)], (1,)),
    Line("eval_laguerre", lambda n, x: mp.laguerre(int(n), 0, x), [(5, 0.3), (1, 0.7), (2, 3.0)], (1,)),
    Line("eval_genlaguerre", lambda n, a, x: mp.laguerre(int(n), a, x), [(5, 0.7, 0.3), (2, 1.5, 3.0)], (2,)),
]

OTHERS = [
    Line("logit", lambda x: mp.log(x / (1 - x)), [1e-20, 1e-9, 0.3, 0.7, 1 - 1e-12]),
    Line("expit", lambda x: 1 / (1 + mp.exp(-x)), [-700.0, -40.0, 0.3, 30.0]),
    Line("rel_entr", lambda x, y: x * mp.log(x / y), [(0.3, 0.7), (1e-9, 5.0), (0.5, 0.5 + 1e-9)], (0, 1)),
    Line("kl_div", lambda x, y: x * mp.log(x / y) - x + y, [(0.3, 0.7), (1e-9, 5.0)], (0, 1)),
    Line("log_ratio", lambda x, y: mp.log(x / y), [(0.3, 0.7), (1e-5, 1e5), (0.5, 0.5 + 1e-9)], (0, 1)),
    Line("exprel", lambda x: mp.expm1(x) / x, [-300.0, -10.1, -9.9, -1e-6, 1e-6, 0.3, 9.9, 10.1, 300.0]),
    Line("cosm1", lambda x: mp.cos(x) - 1, [1e-9, 0.3, 3.0]),
    Line("powm1", lambda x, y: x**y - 1, [(1 + 1e-9, 0.3), (0.3, 1e-9), (5.0, 2.5)], (0, 1)),
    Line("boxcox", lambda x, c: (x**c - 1) / c, [(0.3, 1e-6), (1e-20, 1.5), (1e-20, -0.5), (5.0, 2.5)], (0, 1)),
    Line("boxcox1p", lambda x, c: ((1 + x) ** c - 1) / c, [(0.3, 1e-6), (1e-9, 1.5), (5.0, 2.5)], (0, 1)),
    Line("inv_boxcox", lambda y, c: mp.exp(mp.log1p(c * y) / c), [(0.3, 1e-6), (1e-9, 1.5), (5.0, 2.5)], (0, 1)),
    Line("inv_boxcox1p", lambda y, c: mp.expm1(mp.log1p(c * y) / c), [(0.3, 1e-6), (1e-9, 1.5), (5.0, 2.5)], (0, 1)),
    Line("logaddexp2", lambda x, y: mp.log(2**x + 2**y) / mp.log(2),
         [(0.3, 0.7), (-40.0, 3.0), (500.0, 499.0)], (0, 1)),
    Line("owens_t", owens_t, [(0.3, 0.7)], (0, 1)),
]  # fmt: skip


def faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    root = mp.sqrt(2) * sigma
    return mp.re(faddeeva((x + 1j * gamma) / root)) / (mp.sqrt(mp.pi) * root)


def kolmogorov(x: Any) -> Any:
    return 2 * mp.fsum((-1) ** (k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 60))


def airy_scaled(function: Callable[..., Any], sign: int, order: int) -> Callable[[Any], Any]:
    return lambda x: mp.exp(sign * mp.mpf(2) / 3 * mp.sqrt(x) ** 3) * function(x, derivative=order)


PROFILES = [
    Line("kolmogorov", kolmogorov, [0.5, 0.79, 0.81, 1.5, 4.0]),
    Line("kolmogorov_below", lambda x: 1 - kolmogorov(x), [0.3, 0.79, 0.81]),
    Line("airye_ai", airy_scaled(mp.airyai, 1, 0), [0.3, 5.0]),
    Line("airye_ai_prime", airy_scaled(mp.airyai, 1, 1), [0.3, 5.0]),
    Line("airye_bi", airy_scaled(mp.airybi, -1, 0), [0.3, 5.0]),
    Line("airye_bi_prime", airy_scaled(mp.airybi, -1, 1), [0.3, 5.0]),
    Line("voigt_profile", voigt, [(0.3, 1.2, 0.7), (-2.0, 1.5, 0.3), (3.0, 0.2, 0.01), (30.0, 1.5, 2.0),
                                  (0.5, 1e-6, 1.0), (0.7, 1.0, 1e-9)], (0, 1, 2)),
    Line("voigt_profile", lambda x, s, g: mp.exp(-x * x / (2 * s * s)) / (s * mp.sqrt(2 * mp.pi)),
         [(12.0, 1.0, 0.0)], (0, 1)),
    Line("wrightomega", lambda x: mp.lambertw(mp.exp(x)).real, [-30.0, -1.0, 0.3, 1.0, 50.0]),
    Line("betainccinv", lambda a, b, x: mp.betainc(b, a, 0, 1 - x, regularized=True), [(2.0, 5.0, 0.3),
         (0.5, 0.7, 0.9)], (2,), inverse=True),
]  # fmt: skip

LINES = [*PROFILES, *NORMAL, *GAMMA, *INCOMPLETE, *BESSEL, *INTEGRALS, *HYPERGEOMETRIC, *OTHERS]


def point_of(point: Any) -> tuple[Any, ...]:
    return point if isinstance(point, tuple) else (point,)


def references(line: Line, point: tuple[Any, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The value, then the derivatives in the operands, one after the other, to second order."""
    with mp.workdps(40):
        at = [mp.mpf(x) for x in point]
        if line.inverse:
            yield from inverse_references(line, at)
            return
        yield (), mp.re(line.reference(*at))
        for order in (1, 2):
            for chosen in itertools.combinations_with_replacement(line.operands, order):
                counts = tuple(chosen.count(k) for k in range(len(at)))
                found = mp.diff(line.reference, *((at[0], counts[0]) if len(at) == 1 else (tuple(at), counts)))
                yield chosen, mp.re(found)


def inverse_references(line: Line, at: list[Any]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """With F the reference and F(y) = x: y, 1/F'(y) and -F''(y)/F'(y)³."""
    *rest, target = at
    start = run(program(lambda *xs: R[line.op](*xs), *map(float, at)), [np.float64(x) for x in at])[0]
    y = mp.mpf(float(start))
    for _ in range(6):  # Newton: what the op gives is near
        y -= (line.reference(*rest, y) - target) / mp.diff(lambda t: line.reference(*rest, t), y)
    first, second = (mp.diff(lambda t: line.reference(*rest, t), y, n) for n in (1, 2))
    operand = line.operands[-1]
    yield (), y
    yield (operand,), 1 / first
    yield (operand, operand), -second / first**3


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.op)
def test_special_function_against_mpmath(line: Line) -> None:
    def body(*xs: Any) -> Any:
        return R[line.op](*xs, **dict(line.attrs))

    for entry in line.points:
        point = point_of(entry)
        arguments = [np.array(x) for x in point]
        for chosen, expected in references(line, point):
            for modes, found in slopes(body, arguments, chosen):
                wanted = float(expected)
                error = abs(float(found) - wanted)
                assert error <= RTOL * abs(wanted), f"{line.op}{point} in {chosen}, {modes}: {found}, not {wanted}"


# --- limits -----------------------------------------------------------------------------------------------------------

LIMITS: list[tuple[str, list[float], list[int], float]] = [
    ("erf", [INF], [0, 0], 0.0),
    ("erfinv", [1.0], [0], INF),
    ("erfinv", [-1.0], [0], INF),
    ("erfcinv", [0.0], [0], -INF),
    ("ndtri", [0.0], [0], INF),
    ("ndtri", [1.0], [0], INF),
    ("ndtri_exp", [0.0], [0], INF),
    ("log_ndtr", [-INF], [0], INF),
    ("log_ndtr", [INF], [0], 0.0),
    ("logit", [0.0], [0], INF),
    ("logit", [1.0], [0], INF),
    ("rgamma", [-3.0], [0], -6.0),
    ("rgamma", [0.0], [0], 1.0),
    ("rgamma", [0.0], [0, 0], 2 * np.euler_gamma),
    ("gammaln", [0.0], [0], -INF),
    ("exprel", [0.0], [0], 0.5),
    ("exprel", [0.0], [0, 0], 1 / 3),
    ("spence", [1.0], [0], -1.0),
    ("spence", [1.0], [0, 0], 0.5),
    ("spence", [0.0], [0], -INF),
    ("ellipk", [0.0], [0], np.pi / 8),
    ("ellipk", [1.0], [0], INF),
    ("ellipe", [0.0], [0], -np.pi / 8),
    ("sine_integral", [0.0], [0], 1.0),
    ("sine_integral", [0.0], [0, 0], 0.0),
    ("hyperbolic_sine_integral", [0.0], [0], 1.0),
    ("fresnel_cosine", [0.0], [0], 1.0),
    ("j1", [0.0], [0], 0.5),
    ("bei", [0.0], [0, 0], 0.5),
    ("beip", [0.0], [0, 0], 0.0),
    ("berp", [0.0], [0], 0.0),
    ("lpmv", [0.0, 3.0, 1.0], [2], 6.0),
    ("lpmv", [0.0, 3.0, -1.0], [2], 6.0),
    ("stdtr", [3.0, 0.0], [0], 0.0),
    ("stdtr", [3.0, 0.0], [0, 1], 2 / (np.pi * np.sqrt(3)) * (np.log(2) - 2 / 3)),
    ("stdtr", [INF, 0.5], [0], 0.0),
    ("i1", [0.0], [0], 0.5),
    ("i0e", [0.0], [0], 0.0),
    ("expi", [INF], [0], INF),
    ("exp1", [INF], [0], 0.0),
    ("kl_div", [0.0, 2.0], [0], -INF),
    ("kl_div", [0.0, 2.0], [1], 1.0),
    ("rel_entr", [0.0, 0.0], [1], 0.0),
    ("rel_entr", [-1.0, 2.0], [0], 0.0),
    ("boxcox", [0.0, 2.0], [1], 0.25),
    ("boxcox", [0.0, 1.0], [0], 1.0),
    ("boxcox", [3.0, 0.0], [1], np.log(3.0) ** 2 / 2),
    ("inv_boxcox", [0.5, 0.0], [1], -np.exp(0.5) / 8),
    ("powm1", [0.0, 0.0], [0], 0.0),
    ("gammainc", [2.0, 0.0], [0], 0.0),
    ("gammainc", [0.5, 0.0], [1], INF),
    ("gammainc", [1.0, 0.0], [1], 1.0),
    ("gammainc", [1.0, 0.0], [1, 1], -1.0),
    ("gammainc", [2.0, 0.0], [1, 1], 1.0),
    ("gammainc", [2.0, INF], [0], 0.0),
    ("jacobi_sn", [0.7, 0.0], [1], -np.cos(0.7) * (0.7 / 4 - np.sin(1.4) / 8)),
    ("jacobi_sn", [0.7, 1.0], [1], -(np.sinh(0.7) * np.cosh(0.7) - 0.7) / (4 * np.cosh(0.7) ** 2)),
    ("agm", [0.0, 1.0], [0], INF),
    ("agm", [0.0, 1.0], [1], 0.0),
    ("agm", [2e200, 2e200], [1], 0.5),
    ("elliprf", [0.0, 1.0, 2.0], [0], -INF),
    ("elliprf", [INF, 1.0, 2.0], [1], 0.0),
    ("elliprf", [1.0, 1.0, 1.0], [0, 1], 1 / 20),
    ("voigt_profile", [0.7, 0.0, 0.5], [1], 0.0),
    ("voigt_profile", [0.7, 0.0, 0.5], [0], -0.7 / (np.pi * 0.74**2)),
    ("voigt_profile", [0.7, 0.0, 0.5], [2], (0.49 - 0.25) / (np.pi * 0.74**2)),
    ("voigt_profile", [8.0, 1.0, 0.0], [0], -8 * np.exp(-32.0) / np.sqrt(2 * np.pi)),
    ("voigt_profile", [INF, 1.0, 0.5], [0], 0.0),
    ("struve", [0.0, 0.0], [1], 2 / np.pi),
    ("struve", [0.0, 0.0], [1, 1], 0.0),
    ("wrightomega", [-INF], [0], 0.0),
    ("wrightomega", [INF], [0], 1.0),
    ("logaddexp2", [INF, INF], [0], 0.5),
    ("logaddexp2", [-INF, 0.0], [0], 0.0),
    ("nextafter", [1.0, 2.0], [0], 1.0),
    ("nextafter", [1.0, 2.0], [1], 0.0),
]


@pytest.mark.parametrize(("op", "point", "operands", "expected"), LIMITS, ids=lambda part: str(part))
def test_limits_at_singular_points(op: str, point: list[float], operands: list[int], expected: float) -> None:
    check_slopes(lambda *xs: R[op](*xs), [np.array([x]) for x in point], operands, [expected], rtol=1e-13)


@pytest.mark.parametrize(("phi", "logarithm"), [(1.0957, 88.0), (0.2135, 400.0), (8.0, 30.0)])
def test_elliptic_integrals_of_a_large_negative_parameter(phi: float, logarithm: float) -> None:
    """F(phi, -exp(t)) in t, for which mpmath's steps are not lost beside the parameter."""
    for op, reference in (("ellipkinc", mp.ellipf), ("ellipeinc", mp.ellipe)):
        with mp.workdps(40):
            at = mp.mpf(logarithm)
            expected = mp.diff(lambda t, F=reference: F(mp.mpf(phi), -mp.exp(t)), at) / -mp.exp(at)
        check_slopes(
            lambda p, m, op=op: R[op](p, m), [np.array([phi]), -np.exp([logarithm])], [1], [float(expected)], rtol=1e-12
        )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma_far_below_zero_ends(order: int) -> None:
    """By its periodic part, beside which the rest is small; all doubles beyond 2**52 are poles."""
    x = np.array([-1e10 - 0.25, -1e300, -3.0, -np.inf])
    found = run(program(lambda x: R["polygamma"](x, n=order), x), [x])[0]
    with mp.workdps(40):
        periodic = -mp.pi * mp.diff(lambda t: mp.cot(mp.pi * t), mp.mpf(-0.25), order)
    np.testing.assert_allclose(found, [float(periodic), *[(-1.0) ** (order + 1) * INF] * 3], rtol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_polygamma_far_left_and_off_the_axis(order: int) -> None:
    """Where the slope of cot is 0 to rounding, what is reflected is not lost in the terms that cancel in it."""
    z = np.array([-50.3 + 0.1j, -1000.4 + 2.5j, -27.7 - 9.0j, -4e5 + 700.0j])
    found = run(program(lambda z: R["polygamma"](z, n=order), z), [z])[0]
    with mp.workdps(80):
        points = [mp.mpc(each) for each in z]
        cot = [mp.diff(lambda t: mp.cot(mp.pi * t), point, order, h=mp.mpf("1e-8")) for point in points]
        right = [(-1) ** order * mp.polygamma(order, 1 - point) for point in points]
        expected = [complex(one - mp.pi * slope) for one, slope in zip(right, cot, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_logit_at_its_ends_has_one_curvature_in_both_modes() -> None:
    check_slopes(lambda x: R["logit"](x), [np.array([0.0, 0.1, 1.0])], [0, 0], [-INF, -0.8 / 0.09**2, INF], rtol=1e-13)


@pytest.mark.parametrize(("kind", "order"), list(itertools.product("ik", range(1, 5))))
def test_scaled_bessel_functions_are_closed(kind: str, order: int) -> None:
    """The n-th derivative of exp(-x) I(1, x), or of exp(x) K(1, x), on both sides of where the series take over."""
    x = np.array([29.999, 30.001])
    found = run(program(lambda v, x: R["scaled_bessel_derivative"](v, x, n=order, kind=kind), x, x), [np.ones(2), x])[0]
    np.testing.assert_allclose(found[1] / found[0], (x[1] / x[0]) ** (-0.5 - order), rtol=1e-5)


@pytest.mark.parametrize("kind", ["jv", "yv", "iv", "kv", "ive", "kve"])
def test_derivatives_of_bessel_functions_in_their_orders(kind: str) -> None:
    """Against mpmath, to a part of the function: at small and large arguments, whole and negative orders."""
    scale = {"ive": lambda x: mp.exp(-x), "kve": mp.exp}.get(kind, lambda x: mp.mpf(1))
    plain = {"j": mp.besselj, "y": mp.bessely, "i": mp.besseli, "k": mp.besselk}[kind[0]]
    points = [(0.5, 0.3), (2.5, 1e-3), (0.0, 10.0), (3.0, 50.0), (-1.3, 2.0), (12.3, 400.0), (30.0, 5.0), (7.0, 1e-6)]
    for v, x in points:
        with mp.workdps(40):
            reference = lambda v, x: scale(x) * plain(v, x)  # noqa: E731
            size = float(abs(reference(mp.mpf(v), mp.mpf(x))))
            for chosen, tolerance in {(0,): 1e-10, (0, 0): 1e-8, (0, 1): 1e-10}.items():
                at = (mp.mpf(v), mp.mpf(x))
                wanted = float(mp.re(mp.diff(reference, at, tuple(chosen.count(k) for k in range(2)))))
                for modes, found in slopes(lambda *xs: R[kind](*xs), [np.array(v), np.array(x)], chosen):
                    error = abs(float(found) - wanted)
                    limit = tolerance * max(abs(wanted), size / x if 1 in chosen else size)
                    assert error <= limit, f"{kind}({v}, {x}) in {chosen}, {modes}: {found}, not {wanted}"


@pytest.mark.parametrize("order", [2, 3, 4])
def test_derivatives_of_bessel_functions_to_order_four(order: int) -> None:
    """J0 and exp(-x) I0, by their recurrences over the order."""
    x = np.array([0.7, 3.0])
    for modes, found in slopes(lambda x: R["j0"](x), [x], [0] * order):
        np.testing.assert_allclose(found, scipy.special.jvp(0, x, order), rtol=1e-12, err_msg=modes)


def test_ive_below_zero() -> None:
    """exp(-|x|) I(v, x) is even or odd; its slope is odd or even."""
    x = np.array([0.7, 3.0])
    for order, sign in ((0.0, -1.0), (1.0, 1.0), (2.0, -1.0)):
        slope = [found for _, found in slopes(lambda x, v=order: R["ive"](v, x), [np.append(x, -x)], [0])]
        for found in slope:
            np.testing.assert_allclose(found[2:], sign * found[:2], rtol=1e-13)


def test_betaincinv_of_its_parameters_is_the_implicit_function() -> None:
    """I(a, b, x(a, b, p)) = p for all a, b: the derivatives of the composition in a and b are 0, to second order."""
    point = [np.array([2.0, 0.5]), np.array([5.0, 0.7]), np.array([0.3, 0.9])]

    def composed(a: Any, b: Any, p: Any) -> Any:
        return R["betainc"](a, b, R["betaincinv"](a, b, p))

    for chosen in [(0,), (1,), (0, 0), (0, 1), (1, 1)]:
        for modes, found in slopes(composed, point, chosen):
            np.testing.assert_allclose(found, 0.0, atol=1e-13, err_msg=f"{chosen}, {modes}")


def test_stdtrit_of_its_degrees_of_freedom_is_the_implicit_function() -> None:
    """F(v, t(v, p)) = p for all v; in p the slope of t is one over the density, where t is 0 too."""
    point = [np.array([2.0, 0.5, 30.0, 4.0]), np.array([0.3, 0.9, 0.999, 0.5])]

    def composed(v: Any, p: Any) -> Any:
        return R["stdtr"](v, R["stdtrit"](v, p))

    for chosen, expected in [((0,), 0.0), ((1,), 1.0), ((0, 0), 0.0), ((0, 1), 0.0), ((1, 1), 0.0)]:
        for modes, found in slopes(composed, point, chosen):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9, err_msg=f"{chosen}, {modes}")


def test_mathieu_functions_have_the_slopes_of_their_equation() -> None:
    """Of an angle in degrees; the modified functions' own slope is SciPy's other result."""
    m, q = np.array([1.0, 2.0, 3.0]), np.array([0.7, 1.5, 5.0])
    for kind, x in (("cem", 40.0), ("sem", -200.0), ("modcem1", 0.7), ("modcem2", 0.3), ("modsem1", 1.1)):
        ufunc, at, step = getattr(scipy.special, f"mathieu_{kind}"), np.full(3, x), 1e-4 * (1 if "mod" in kind else 60)
        for part in (0, 1):
            ends = [ufunc(m, q, at + sign * step)[part] for sign in (-2, -1, 1, 2)]
            expected = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
            for modes, found in slopes(
                lambda *xs, part=part, kind=kind: R["mathieu_function"](*xs, kind=kind, part=part), [m, q, at], (2,)
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-8, err_msg=f"{kind}, {part}, {modes}")


def test_betainc_has_no_slope_in_its_parameters_at_the_ends() -> None:
    point = [np.array([0.5, 2.0, 2.0]), np.array([2.0, 0.5, 3.0]), np.array([0.0, 1.0, 0.0])]
    for chosen in [(0,), (1,), (0, 1)]:
        for modes, found in slopes(lambda *xs: R["betainc"](*xs), point, chosen):
            np.testing.assert_array_equal(found, 0.0, err_msg=f"{chosen}, {modes}")


@pytest.mark.parametrize(
    ("op", "count", "operand", "word"),
    [
        ("struve", 2, 0, "order"),
        ("hyp2f1", 4, 2, "parameter c"),
        ("eval_legendre", 2, 0, "degree"),
    ],
)
def test_parameters_have_no_derivative(op: str, count: int, operand: int, word: str) -> None:
    arguments = [np.array([0.5])] * count
    with pytest.raises(MissingRuleError, match=f"{op} has no derivative in its {word}"):
        list(slopes(lambda *xs: R[op](*xs), arguments, [operand]))


def test_special_functions_take_real_numbers_to_double_precision() -> None:
    with pytest.raises(DTypeError, match="gamma_density does not take"):
        program(lambda a, x: R["gamma_density"](a, x, n=0), np.array([1j]), np.array([1j]))
    with pytest.raises(DTypeError, match="jv does not take"):
        program(lambda v, x: R["jv"](v, x), np.longdouble([1.0]), np.longdouble([1.0]))
    with pytest.raises(DTypeError, match="ldexp: the exponent"):
        program(lambda x, n: R["ldexp"](x, n), np.array([1.0]), np.array([1.0]))


@pytest.mark.parametrize("z", [0.3 + 0.1j, 2 - 1e-3j, 7 - 0.3j, -20 + 3j, 0.5 - 3j, 8 + 0j, 9j, 0j])
def test_faddeeva_function(z: complex) -> None:
    """Against mpmath, in all regions of the plane: its real part on the real axis is as small as exp(-z²)."""
    with mp.workdps(80):
        expected = [complex(mp.diff(faddeeva, mp.mpmathify(z), order)) for order in (1, 2)]
    for order, wanted in enumerate(expected, start=1):
        for modes, found in slopes(lambda z: R["wofz"](z), [np.array([z])], [0] * order):
            assert abs(found[0] - wanted) <= 1e-12 * abs(wanted), f"{order}, {modes}"
            if not z.imag:
                np.testing.assert_allclose(found[0].real, wanted.real, rtol=1e-12, atol=1e-300, err_msg=modes)


def test_lambert_w() -> None:
    """W' = W/(z (1 + W)), and 1 at z = 0."""
    z = np.array([0.3 + 0.1j, -0.2 + 0j, 5.0 + 0j])
    w = scipy.special.lambertw(z)
    for modes, found in slopes(lambda z: R["lambertw"](z, k=0), [z], [0]):
        np.testing.assert_allclose(found, w / (z * (1 + w)), rtol=1e-12, err_msg=modes)
    for modes, found in slopes(lambda z: R["lambertw"](z, k=0), [np.array([0j])], [0]):
        np.testing.assert_allclose(found, [1.0], rtol=1e-15, err_msg=modes)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
def test_spherical_bessel_functions(name: str) -> None:
    n, x = np.array([0, 1, 4, 2]), np.array([0.3, 2.0, 5.0, 0.01])
    expected = getattr(scipy.special, name)(n, x, derivative=True)
    for modes, found in slopes(lambda n, x: R[name](n, x), [n, x], [1]):
        np.testing.assert_allclose(found, expected, rtol=1e-11, err_msg=modes)
