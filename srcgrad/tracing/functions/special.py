"""Ufuncs of scipy.special, which reach traced arrays as NumPy's own do; loaded when one of them first does.

Its plain Python functions, which do not ask their arguments, have rules in ``special_functions``, by identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from srcgrad.errors import UnsupportedError
from srcgrad.ir.ops.solutions import MATHIEU
from srcgrad.tracing.functions import special_functions
from srcgrad.tracing.tracer import Tracer, emit
from srcgrad.tracing.ufuncs import ELEMENTWISE, UFUNCS, UNTRACED, ufunc_rule

__all__ = ["special_functions"]

OPS = """
    expit logit xlogy xlog1py rel_entr kl_div exprel cosm1 powm1 boxcox boxcox1p inv_boxcox inv_boxcox1p
    erf erfc erfcx erfi dawsn erfinv erfcinv ndtr log_ndtr ndtri ndtri_exp owens_t
    gamma gammaln loggamma gammasgn rgamma digamma beta betaln binom poch stdtr stdtrit chndtr
    gammainc gammaincc gammaincinv gammainccinv betainc betaincc betaincinv betainccinv
    j0 j1 y0 y1 i0 i1 k0 k1 i0e i1e k0e k1e jv yv iv kv ive kve hankel1 hankel1e hankel2 hankel2e
    ber bei ker kei berp beip kerp keip
    exp1 expi spence ellipk ellipkm1 ellipe ellipkinc ellipeinc hyp0f1 hyp1f1 hyp2f1 hyperu
    eval_legendre eval_chebyt eval_chebyu eval_gegenbauer eval_jacobi eval_hermite eval_hermitenorm eval_laguerre
    eval_genlaguerre lpmv besselpoly wright_bessel log_wright_bessel mathieu_a mathieu_b wofz voigt_profile
    elliprc elliprd elliprf elliprg elliprj kolmogorov kolmogi struve modstruve wrightomega agm
    log1p cbrt exp2
"""
"""Ufuncs that are the op of their name."""

for _name in OPS.split():
    _ufunc = getattr(scipy.special, _name, None)
    if isinstance(_ufunc, np.ufunc):
        ELEMENTWISE[_ufunc] = _name
ELEMENTWISE[scipy.special.psi] = "digamma"
ELEMENTWISE[scipy.special.round] = "rint"
ELEMENTWISE[scipy.special.itstruve0] = "integral_struve"
ELEMENTWISE[scipy.special.itmodstruve0] = "integral_modstruve"


def of_order(name: str) -> Callable[..., Any]:
    """An op of a real order, for a ufunc of whole orders: SciPy drops the fractions."""
    return lambda n, x: emit(name, whole(n, x), x)


def whole(n: Any, x: Any) -> Any:
    return n.astype(x.dtype) if n.dtype.kind in "iu" else np.trunc(n)


UFUNCS[scipy.special.yn] = of_order("yv")
UFUNCS[scipy.special.kn] = of_order("kv")


def real(x: Any, name: str) -> Any:
    """The argument of a function whose scale, exp(-abs(x.imag)), is 1.

    Raises:
        UnsupportedError: it is complex.
    """
    if x.dtype.kind == "c":
        raise UnsupportedError(f"scipy.special.{name} has no derivative rule in srcgrad for complex arguments")
    return x


UFUNCS[scipy.special.jve] = lambda v, x: emit("jv", v, real(x, "jve"))
UFUNCS[scipy.special.yve] = lambda v, x: np.where(x == 0, x.dtype.type(np.nan), emit("yv", v, real(x, "yve")))


@ufunc_rule(scipy.special.expn)
def expn(n: Any, x: Any) -> Any:
    """Of negative orders, which derivatives have, SciPy gives nan."""
    order = whole(n, x)
    return np.where(order < 0, x.dtype.type(np.nan), emit("expn", order, x))


def ops(*names: str) -> Callable[..., Any]:
    """A ufunc of several results, each of them an op."""
    return lambda *xs: tuple(emit(name, *xs) for name in names)


UFUNCS[scipy.special.sici] = ops("sine_integral", "cosine_integral")
UFUNCS[scipy.special.shichi] = ops("hyperbolic_sine_integral", "hyperbolic_cosine_integral")
UFUNCS[scipy.special.fresnel] = ops("fresnel_sine", "fresnel_cosine")
UFUNCS[scipy.special.airy] = ops("airy_ai", "airy_ai_prime", "airy_bi", "airy_bi_prime")
UFUNCS[scipy.special.airye] = lambda x: ops("airye_ai", "airye_ai_prime", "airye_bi", "airye_bi_prime")(
    real(x, "airye")
)
UFUNCS[scipy.special.ellipj] = ops("jacobi_sn", "jacobi_cn", "jacobi_dn", "jacobi_amplitude")
UFUNCS[scipy.special.pbdv] = ops("parabolic_d", "parabolic_slope_of_d")
UFUNCS[scipy.special.pbvv] = ops("parabolic_v", "parabolic_slope_of_v")
UFUNCS[scipy.special.pbwa] = ops("parabolic_w", "parabolic_slope_of_w")
UFUNCS[scipy.special.itairy] = ops("integral_ai", "integral_bi", "integral_ai_below", "integral_bi_below")
for _name in MATHIEU:
    UFUNCS[getattr(scipy.special, f"mathieu_{_name}")] = lambda m, q, x, kind=_name: tuple(
        emit("mathieu_function", m, q, x, kind=kind, part=part) for part in (0, 1)
    )
UFUNCS[scipy.special.itj0y0] = ops("integral_j0", "integral_y0")
UFUNCS[scipy.special.iti0k0] = ops("integral_i0", "integral_k0")

# The ufuncs behind functions of scipy.special that leave their arguments as they are.
_ufunc = getattr(getattr(scipy.special, "_ufuncs", None), "_zeta", None)
if isinstance(_ufunc, np.ufunc):
    ELEMENTWISE[_ufunc] = "zeta"
_ufunc = getattr(getattr(scipy.special, "_ufuncs", None), "_ncx2_pdf", None)
if isinstance(_ufunc, np.ufunc):
    ELEMENTWISE[_ufunc] = "noncentral_density"
PRIVATE = {
    "_kolmogc": "kolmogorov_below", "_kolmogp": "kolmogorov_slope", "_kolmogci": "kolmogorov_quantile",
    "_cosine_cdf": "cosine_below", "_cosine_invcdf": "cosine_quantile",
}  # fmt: skip
for _private, _name in PRIVATE.items():
    _ufunc = getattr(getattr(scipy.special, "_ufuncs", None), _private, None)
    if isinstance(_ufunc, np.ufunc):
        ELEMENTWISE[_ufunc] = _name
_ufunc = getattr(getattr(scipy.special, "_ufuncs", None), "_lambertw", None)
if isinstance(_ufunc, np.ufunc):
    UFUNCS[_ufunc] = special_functions.lambertw


@ufunc_rule(scipy.special.kelvin)
def kelvin(x: Any) -> Any:
    return tuple(emit(f"{kind}r{end}", x) + 1j * emit(f"{kind}i{end}", x) for end in ("", "p") for kind in ("be", "ke"))


@ufunc_rule(scipy.special.log_expit)
def log_expit(x: Any) -> Any:
    """log(expit(x)) = -log(1 + exp(-x))."""
    return -np.logaddexp(x.dtype.type(0), -x)


@ufunc_rule(scipy.special.expm1)
def expm1(x: Any) -> Any:
    """Unlike NumPy's it has a limit, of its size, where the real part is infinite and the angle is not known."""
    value = emit("expm1", x)
    if x.dtype.kind != "c":
        return value
    below, above = (x.dtype.type(limit) for limit in (-1.0, complex(np.inf, np.nan)))
    return np.where(np.isinf(x.real) & ~np.isfinite(x.imag), np.where(x.real < 0, below, above), value)


@ufunc_rule(scipy.special.entr)
def entr(x: Any) -> Any:
    """-x log(x), 0 at 0, -inf below."""
    return np.where(x < 0, x.dtype.type(-np.inf), -emit("xlogy", x, x))


@ufunc_rule(scipy.special.exp10)
def exp10(x: Any) -> Any:
    return np.power(x.dtype.type(10), x)


@ufunc_rule(scipy.special.huber)
def huber(delta: Any, r: Any) -> Any:
    """r**2/2 up to delta, and a line beyond; inf if delta is negative."""
    size = np.abs(r)
    value = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0, r.dtype.type(np.inf), value)


@ufunc_rule(scipy.special.pseudo_huber)
def pseudo_huber(delta: Any, r: Any) -> Any:
    """delta**2 (sqrt(1 + (r/delta)**2) - 1) = delta r**2/(delta + hypot(delta, r)); inf if delta is negative.

    So no ratio of the two is squared, of which second derivatives would cancel where delta is small beside r.
    """
    total = delta + np.hypot(delta, r)
    value = delta * (r * (r / np.where(total == 0, r.dtype.type(1), total)))
    return np.where(delta < 0, r.dtype.type(np.inf), value)


# --- distribution functions that are an incomplete gamma or beta function -----------------------------------------


@ufunc_rule(scipy.special.chdtr)
def chdtr(v: Any, x: Any) -> Any:
    return emit("gammainc", v / 2, x / 2)


@ufunc_rule(scipy.special.chdtrc)
def chdtrc(v: Any, x: Any) -> Any:
    return emit("gammaincc", v / 2, x / 2)


@ufunc_rule(scipy.special.chdtri)
def chdtri(v: Any, p: Any) -> Any:
    """nan above 1, where SciPy's gammainccinv gives some number."""
    return 2 * emit("gammainccinv", v / 2, p) * np.where(p > 1, p.dtype.type(np.nan), p.dtype.type(1))


@ufunc_rule(scipy.special.gdtr)
def gdtr(a: Any, b: Any, x: Any) -> Any:
    return unless(x < 0, emit("gammainc", b, a * x))


@ufunc_rule(scipy.special.gdtrc)
def gdtrc(a: Any, b: Any, x: Any) -> Any:
    return unless(x < 0, emit("gammaincc", b, a * x))


def unless(condition: Any, value: Any) -> Any:
    """The value, and nan where the condition holds."""
    return np.where(condition, value.dtype.type(np.nan), value)


@ufunc_rule(scipy.special.pdtr)
def pdtr(k: Any, m: Any) -> Any:
    return np.where(k < 0, k.dtype.type(np.nan), emit("gammaincc", np.floor(k) + 1, m))


@ufunc_rule(scipy.special.pdtrc)
def pdtrc(k: Any, m: Any) -> Any:
    return np.where(k < 0, k.dtype.type(np.nan), emit("gammainc", np.floor(k) + 1, m))


@ufunc_rule(scipy.special.fdtr)
def fdtr(dfn: Any, dfd: Any, x: Any) -> Any:
    share = np.where(x == np.inf, x.dtype.type(1), dfn * x / (dfd + dfn * x))
    return if_positive(dfn, dfd, x, emit("betainc", dfn / 2, dfd / 2, share))


@ufunc_rule(scipy.special.fdtrc)
def fdtrc(dfn: Any, dfd: Any, x: Any) -> Any:
    return if_positive(dfn, dfd, x, emit("betainc", dfd / 2, dfn / 2, dfd / (dfd + dfn * x)))


@ufunc_rule(scipy.special.fdtri)
def fdtri(dfn: Any, dfd: Any, p: Any) -> Any:
    """Of the share that betainc(dfn/2, dfd/2, ·) is p of, and what is left of it, each accurate where it is small."""
    share = emit("betaincinv", dfn / 2, dfd / 2, p)
    rest = emit("betainccinv", dfd / 2, dfn / 2, p)
    return unless((dfn <= 0) | (dfd <= 0) | (p <= 0) | (p > 1), dfd * share / (dfn * rest))


@ufunc_rule(scipy.special.gdtrix)
def gdtrix(a: Any, b: Any, p: Any) -> Any:
    return emit("gammaincinv", b, p) / a


@ufunc_rule(scipy.special.gdtria)
def gdtria(p: Any, b: Any, x: Any) -> Any:
    return unless(x == 0, gdtrix(x, b, p))


@ufunc_rule(scipy.special.nrdtrimn)
def nrdtrimn(p: Any, std: Any, x: Any) -> Any:
    return unless((std <= 0) | (p <= 0) | (p >= 1), x - std * emit("ndtri", p))


@ufunc_rule(scipy.special.bdtr)
def bdtr(k: Any, n: Any, p: Any) -> Any:
    """Of k = n, it is 1 whatever p."""
    successes, rest = trials(k, n, p)
    value = emit("betaincc", successes + 1, rest, p)
    return if_chance(p, np.where((successes >= 0) & (rest == 0), p.dtype.type(1), value))


@ufunc_rule(scipy.special.bdtrc)
def bdtrc(k: Any, n: Any, p: Any) -> Any:
    successes, rest = trials(k, n, p)
    value = np.where(rest == 0, p.dtype.type(0), emit("betainc", successes + 1, rest, p))
    total = whole(n, p)
    surely = (np.floor(k) < 0) & (total >= np.floor(k)) & np.isfinite(total)
    return if_chance(p, np.where(surely, p.dtype.type(1), value))


@ufunc_rule(scipy.special.bdtri)
def bdtri(k: Any, n: Any, y: Any) -> Any:
    successes, rest = trials(k, n, y)
    return emit("betainccinv", successes + 1, rest, y)


def trials(k: Any, n: Any, p: Any) -> tuple[Any, Any]:
    """The whole number of successes, and that of failures beyond them."""
    successes = np.floor(k)
    return counted(successes, p), counted(whole(n, p) - successes, p)


def counted(k: Any, x: Any, least: int = 0) -> Any:
    """A whole number, or nan if it is below the least one or infinite."""
    number = whole(k, x)
    return unless((number < least) | np.isinf(number), number)


def if_chance(p: Any, value: Any) -> Any:
    return np.where((p >= 0) & (p <= 1), value, value.dtype.type(np.nan))


@ufunc_rule(scipy.special.nbdtr)
def nbdtr(k: Any, n: Any, p: Any) -> Any:
    return if_chance(p, emit("betainc", counted(n, p, 1), counted(k, p) + 1, p))


@ufunc_rule(scipy.special.nbdtrc)
def nbdtrc(k: Any, n: Any, p: Any) -> Any:
    return if_chance(p, emit("betaincc", counted(n, p, 1), counted(k, p) + 1, p))


@ufunc_rule(scipy.special.nbdtri)
def nbdtri(k: Any, n: Any, y: Any) -> Any:
    """Without a trial, what SciPy gives: 0 and 1 for themselves."""
    value = emit("betaincinv", counted(n, y, 1), counted(k, y) + 1, y)
    return np.where((n < 1) & (k > -1) & ((y == 0) | (y == 1)), y, value)


@ufunc_rule(scipy.special.pdtri)
def pdtri(k: Any, y: Any) -> Any:
    value = emit("gammainccinv", counted(k, y) + 1, y)
    return np.where((y >= 0) & (y < 1), value, y.dtype.type(np.nan))


def if_positive(dfn: Any, dfd: Any, x: Any, value: Any) -> Any:
    return unless((dfn <= 0) | (dfd <= 0) | (x < 0) | np.isinf(dfn) | np.isinf(dfd), value)


# --- polynomials of a shifted or scaled argument, angles in degrees -------------------------------------------------


def shifted(name: str) -> Callable[..., Any]:
    """A polynomial on [0, 1] as the one on [-1, 1]."""
    return lambda n, x: emit(name, n, 2 * x - 1)


UFUNCS[scipy.special.eval_sh_legendre] = shifted("eval_legendre")
UFUNCS[scipy.special.eval_sh_chebyt] = shifted("eval_chebyt")
UFUNCS[scipy.special.eval_sh_chebyu] = shifted("eval_chebyu")


@ufunc_rule(scipy.special.eval_chebyc)
def eval_chebyc(n: Any, x: Any) -> Any:
    return 2 * emit("eval_chebyt", n, x / 2)


@ufunc_rule(scipy.special.eval_chebys)
def eval_chebys(n: Any, x: Any) -> Any:
    return emit("eval_chebyu", n, x / 2)


@ufunc_rule(scipy.special.eval_sh_jacobi)
def eval_sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Any:
    degree = n.astype(p.dtype)
    return emit("eval_jacobi", n, p - q, q - 1, 2 * x - 1) / emit("binom", 2 * degree + p - 1, degree)


def of_degrees(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A trigonometric function of degrees: of the angle, in radians, that is left of whole right angles, and of these.

    Turns and right angles, -2 to 2, are taken off while they are exact: so the zeros are zeros.
    """

    def rule(x: Tracer) -> Any:
        turn = x - 360 * np.rint(x / 360)
        quarters = np.rint(turn / 90)
        return function((turn - 90 * quarters) * x.dtype.type(np.pi / 180), quarters)

    return rule


def turned(kept: Any, other: Any, quarters: Any, negative: int) -> Any:
    """The first after an even number of right angles, else the second; negative after two and after ``negative``."""
    size = np.abs(quarters)
    value = np.where(size == 1, other, kept)
    return np.where((size == 2) | (quarters == negative), -value, value)


def tangent(angle: Any, quarters: Any, poles: int) -> Any:
    """tan, or its inverse where the number of right angles is odd or even, as that of ``poles`` is; SciPy's are inf."""
    slope = np.tan(angle)
    odd = np.abs(quarters) == 1
    steep = 1 / ((slope if poles == 0 else -slope) + 0)
    return np.where(odd, steep, slope) if poles else np.where(odd, -slope, steep)


UFUNCS[scipy.special.sindg] = of_degrees(lambda angle, quarters: turned(np.sin(angle), np.cos(angle), quarters, -1))
UFUNCS[scipy.special.cosdg] = of_degrees(lambda angle, quarters: turned(np.cos(angle), np.sin(angle), quarters, 1))
UFUNCS[scipy.special.tandg] = of_degrees(lambda angle, quarters: tangent(angle, quarters, 1))
UFUNCS[scipy.special.cotdg] = of_degrees(lambda angle, quarters: tangent(angle, quarters, 0))


@ufunc_rule(scipy.special.radian)
def radian(degrees: Any, minutes: Any, seconds: Any) -> Any:
    return (degrees + minutes / 60 + seconds / 3600) * degrees.dtype.type(np.pi / 180)


@ufunc_rule(scipy.special.zetac)
def zetac(x: Any) -> Any:
    """zeta(x) - 1, of large x without its rounding error."""
    return np.where((x > 1.0) & (x < np.inf), emit("zeta", x, np.full_like(x, 2.0)), special_functions.zeta(x) - 1.0)


# --- what has no rule -----------------------------------------------------------------------------------------------

REASONS = {
    "its derivatives in the parameters that make it a family are not known in closed form": """
        btdtria btdtrib chdtriv chndtridf chndtrinc chndtrix fdtridfd gdtrib nbdtrik nbdtrin
        ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit bdtrik
        bdtrin pdtrik stdtridf tklmbda
    """,
    "it is a function of whole numbers, between which it does not vary smoothly": """
        smirnov smirnovi
    """,
    "SciPy has neither its derivatives nor the functions that they are made of": """
        obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv
        pro_ang1 pro_ang1_cv pro_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv
    """,
    "no rule is written for it": """
        it2i0k0 it2j0y0 it2struve0 modfresnelm modfresnelp nrdtrisd
    """,
}
"""Why a ufunc is not traced -> the ufuncs."""

for _reason, _names in REASONS.items():
    for _name in _names.split():
        _ufunc = getattr(scipy.special, _name, None)
        if isinstance(_ufunc, np.ufunc):
            UNTRACED[_ufunc] = _reason
