"""The gamma function and its relatives: digamma, beta, the incomplete functions and their inverses, zeta.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 5, 8 and 25.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, NonDifferentiable, Operand, Sample, Term, Unary
from srcgrad.ir.ops.special import Parametric, Special, SpecialFamily

POSITIVE = ((0.5, 3.0),)
NORMAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"))
FEW = (0.0, 1.0, float("inf"), float("nan"))


class Gamma(Special, Unary):
    """The gamma function."""

    meaning = "scipy.special.gamma"
    intervals = POSITIVE

    def derivative(self, result: Term, operand: Term) -> Operand:
        return result * REGISTRY["digamma"](operand)


class Gammaln(Special, Unary):
    """The logarithm of the absolute value of the gamma function."""

    meaning = "scipy.special.gammaln"
    kinds = "f"
    intervals = POSITIVE

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["digamma"](operand)


class Loggamma(Special, Unary):
    """The logarithm of the gamma function; of real numbers nan where they are negative."""

    meaning = "scipy.special.loggamma"
    intervals = POSITIVE

    def derivative(self, result: Term, operand: Term) -> Operand:
        slope = REGISTRY["digamma"](operand)
        return slope if operand.dtype.kind == "c" else REGISTRY["select"](operand < 0.0, float("nan"), slope)


class Gammasgn(NonDifferentiable, Special):
    """The sign of the gamma function."""

    meaning = "scipy.special.gammasgn"
    kinds = "f"
    intervals = POSITIVE
    jvp = NonDifferentiable.jvp


class Rgamma(Special, Unary):
    """1/Gamma(x), 0 at the poles of Gamma."""

    meaning = "scipy.special.rgamma"

    def derivative(self, result: Term, operand: Term) -> Operand:
        """Of complex numbers by digamma: they are next to no pole but a few of them."""
        if operand.dtype.kind == "c":
            return -(result * REGISTRY["digamma"](operand))
        return REGISTRY["rgamma_derivative"](operand, n=1)


class RgammaDerivative(SpecialFamily):
    """The n-th derivative of 1/Gamma(x), n >= 1: not by digamma, which is infinite where 1/Gamma(x) is 0."""

    kinds = "f"
    meaning = "rgamma_derivative({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("rgamma_derivative",)


class Digamma(Special, Unary):
    """The derivative of gammaln, accurate near its poles too."""

    meaning = "digamma"
    intervals = POSITIVE
    helpers: ClassVar[tuple[str, ...]] = ("digamma",)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["polygamma"](operand, n=1)


class Polygamma(SpecialFamily):
    """The n-th derivative of digamma, n >= 1: (-1)**(n+1) n! zeta(n+1, x)."""

    intervals = POSITIVE
    meaning = "polygamma({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("polygamma",)


class Zeta(Special):
    """Hurwitz's zeta function of exponent s and argument q: the sum of (k + q)**-s."""

    meaning = "scipy.special.zeta"
    arity = 2
    kinds = "f"
    intervals = ((1.5, 4.0), (0.5, 3.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        s, q = operands
        if index == 0:
            return REGISTRY["zeta_derivative"](s, q, n=1)
        return -(s * self(s + 1.0, q))


class ZetaDerivative(SpecialFamily):
    """The n-th derivative of Hurwitz's zeta function in its exponent, n >= 0, of exponents down to -1."""

    arity = 2
    kinds = "f"
    orders = (0, 1, 2)
    intervals = ((1.5, 4.0), (0.5, 3.0))
    meaning = "zeta_derivative({0}, {1}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("zeta_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """In q that of -s zeta(s + 1, q)."""
        if index == 0:
            return super().member_partial(index, attrs, result, *operands)
        s, q = operands
        n = attrs["n"]
        slope = -(s * self(s + 1.0, q, n=n))
        return slope - n * self(s + 1.0, q, n=n - 1) if n else slope


# --- beta functions ---------------------------------------------------------------------------------


class DigammaDifference(SpecialFamily):
    """The n-th derivative of digamma at a less that at a + b, n >= 0, accurate where b is small beside a."""

    arity = 2
    kinds = "f"
    orders = (0, 1, 2)
    intervals = POSITIVE
    meaning = "digamma_difference({0}, {1}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("digamma_difference",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index == 0:
            return super().member_partial(index, attrs, result, *operands)
        return -REGISTRY["polygamma"](operands[0] + operands[1], n=attrs["n"] + 1)


def digamma_difference(a: Term, b: Term) -> Term:
    return REGISTRY["digamma_difference"](a, b, n=0)


class Betaln(Special):
    """The logarithm of the absolute value of the beta function."""

    meaning = "scipy.special.betaln"
    arity = 2
    kinds = "f"
    intervals = POSITIVE

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return digamma_difference(operands[index], operands[1 - index])


class Beta(Special):
    """The beta function Gamma(a) Gamma(b)/Gamma(a + b)."""

    meaning = "scipy.special.beta"
    arity = 2
    kinds = "f"
    points = NORMAL
    intervals = POSITIVE

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return result * digamma_difference(operands[index], operands[1 - index])


class Binom(Special):
    """The binomial coefficient of real n and k, Gamma(n + 1)/(Gamma(k + 1) Gamma(n - k + 1))."""

    meaning = "scipy.special.binom"
    arity = 2
    kinds = "f"
    intervals = ((3.0, 5.0), (0.5, 2.5))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        n, k = operands
        digamma = REGISTRY["digamma"]
        if index == 0:
            slope = -(result * digamma_difference(n - k + 1.0, k))
        else:
            slope = result * (digamma(n - k + 1.0) - digamma(k + 1.0))
        return REGISTRY["select"](result == 0.0, self.slope_at_zero(index, n, k), slope)

    def slope_at_zero(self, index: int, n: Term, k: Term) -> Term:
        """Of Gamma(n + 1) r(k + 1) r(n - k + 1), with r = 1/Gamma: digamma is infinite where r is 0."""
        gamma, r, slope = REGISTRY["gamma"], REGISTRY["rgamma"], REGISTRY["rgamma_derivative"]
        high, low, rest = n + 1.0, k + 1.0, n - k + 1.0
        if index == 0:
            return gamma(high) * r(low) * (REGISTRY["digamma"](high) * r(rest) + slope(rest, n=1))
        return gamma(high) * (slope(low, n=1) * r(rest) - r(low) * slope(rest, n=1))


class Poch(Special):
    """The rising factorial Gamma(z + m)/Gamma(z)."""

    meaning = "scipy.special.poch"
    arity = 2
    kinds = "f"
    points = NORMAL
    intervals = POSITIVE

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """Where 1/Gamma(z) is 0, digamma(z) is infinite, but the slope of Gamma(z + m)/Gamma(z) is not."""
        z, m = operands
        if index == 1:
            return result * REGISTRY["digamma"](z + m)
        inner = REGISTRY["digamma"](z + m) * REGISTRY["rgamma"](z) + REGISTRY["rgamma_derivative"](z, n=1)
        slope = -(result * digamma_difference(z, m))
        return REGISTRY["select"](result == 0.0, REGISTRY["gamma"](z + m) * inner, slope)


# --- incomplete functions ---------------------------------------------------------------------------


class GammaDensity(SpecialFamily):
    """The n-th derivative in a, n >= 0, of x**(a-1) exp(-x)/Gamma(a)."""

    arity = 2
    kinds = "f"
    orders = (0, 1, 2)
    intervals = POSITIVE
    points = FEW
    meaning = "gamma_density({0}, {1}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("gamma_density",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """In x, with f the density: f(a - 1) - f(a) = ((a - 1)/x - 1) f(a), and what follows in a; at 0 the first."""
        if index == 0:
            return super().member_partial(index, attrs, result, *operands)
        (a, x), n = operands, attrs["n"]
        slope = result * ((a - 1.0 - x) / x)
        if n:
            slope = slope + float(n) * self(a, x, n=n - 1) / x
        return REGISTRY["select"](x == 0.0, self(a - 1.0, x, n=n) - result, slope)


class Gammainc(Special):
    """The regularised lower incomplete gamma function P(a, x)."""

    points = FEW
    meaning = "scipy.special.gammainc"
    arity = 2
    kinds = "f"
    intervals = POSITIVE

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        if index == 0:
            return REGISTRY["gammainc_derivative"](*operands, n=1)
        return REGISTRY["gamma_density"](*operands, n=0)


class Gammaincc(Special):
    """The regularised upper incomplete gamma function, 1 - P(a, x)."""

    points = FEW
    meaning = "scipy.special.gammaincc"
    arity = 2
    kinds = "f"
    intervals = POSITIVE

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        if index == 0:
            return -REGISTRY["gammainc_derivative"](*operands, n=1)
        return -REGISTRY["gamma_density"](*operands, n=0)


class GammaincDerivative(SpecialFamily):
    """The n-th derivative of gammainc in a, n >= 1; its derivative in x is the n-th one of the density."""

    arity = 2
    kinds = "f"
    intervals = POSITIVE
    points = FEW
    meaning = "gammainc_derivative({0}, {1}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("gammainc_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index == 0:
            return super().member_partial(index, attrs, result, *operands)
        return REGISTRY["gamma_density"](*operands, n=attrs["n"])


class Gammaincinv(Special):
    """The x of which gammainc(a, x) is p."""

    points = FEW
    meaning = "scipy.special.gammaincinv"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 3.0), (0.2, 0.8))
    sign: ClassVar[float] = 1.0

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """Of an implicit function: -dP/da and 1 (or -1), over the density. 0 is that place of every a."""
        density = REGISTRY["gamma_density"](operands[0], result, n=0)
        if index == 0:
            slope = -(REGISTRY["gammainc_derivative"](operands[0], result, n=1) / density)
            return REGISTRY["select"](result == 0.0, 0.0 * operands[0], slope)
        return self.sign / density


class Gammainccinv(Gammaincinv):
    """The x of which gammaincc(a, x) is q."""

    meaning = "scipy.special.gammainccinv"
    sign = -1.0


class BetaFamily(SpecialFamily, abstract=True):
    """Derivatives of a function of a, b and x: the ``n``-th in a and ``m``-th in b."""

    arity = 3
    kinds = "f"
    intervals = ((0.5, 3.0), (0.5, 3.0), (0.2, 0.8))
    points = (0.0, 1.0, 12.0, float("nan"))
    members: ClassVar[tuple[tuple[int, int], ...]]
    """The orders of the samples."""

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        word = "nm"[index]
        return self(*operands, **{**attrs, word: attrs[word] + 1})

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            n, m = self.members[k % len(self.members)]
            yield replace(sample, attrs={"n": n, "m": m})


class BetaDensity(BetaFamily):
    """The n-th derivative in a and m-th in b of x**(a-1) (1-x)**(b-1)/B(a, b)."""

    members = ((0, 0), (1, 0), (0, 2), (1, 1))
    meaning = "beta_density({0}, {1}, {2}, {n}, {m})"
    helpers: ClassVar[tuple[str, ...]] = ("beta_density",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """In x, the logarithmic derivative (a - 1)/x - (b - 1)/(1 - x) times the density, and what follows in a, b."""
        if index < 2:
            return super().member_partial(index, attrs, result, *operands)
        (a, b, x), n, m = operands, attrs["n"], attrs["m"]
        slope = result * ((a - 1.0) * (1.0 - x) - (b - 1.0) * x) / (x * (1.0 - x))
        if not n and not m:
            return REGISTRY["select"]((x == 0.0) | (x == 1.0), self.slope_at_end(a, b, x), slope)
        if n:
            slope = slope + float(n) * self(a, b, x, n=n - 1, m=m) / x
        if m:
            slope = slope - float(m) * self(a, b, x, n=n, m=m - 1) / (1.0 - x)
        return slope

    def slope_at_end(self, a: Term, b: Term, x: Term) -> Term:
        """With f the density, (a + b - 1) (f(a - 1, b) - f(a, b - 1)), of which f(0, b) and f(a, 0) are 0."""
        select = REGISTRY["select"]
        left = select(a == 1.0, 0.0, self(a - 1.0, b, x, n=0, m=0))
        right = select(b == 1.0, 0.0, self(a, b - 1.0, x, n=0, m=0))
        return (a + b - 1.0) * (left - right)


class BetaincDerivative(BetaFamily):
    """The n-th derivative in a and m-th in b of betainc, n + m >= 1; that in x is the same one of the density."""

    members = ((1, 0), (0, 1), (1, 1), (0, 2))
    meaning = "betainc_derivative({0}, {1}, {2}, {n}, {m})"
    helpers: ClassVar[tuple[str, ...]] = ("betainc_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index < 2:
            return super().member_partial(index, attrs, result, *operands)
        return REGISTRY["beta_density"](*operands, **attrs)


class Betainc(Special):
    """The regularised incomplete beta function I(a, b, x)."""

    arity = 3
    kinds = "f"
    intervals = BetaFamily.intervals
    points = BetaFamily.points
    meaning = "scipy.special.betainc"
    sign: ClassVar[float] = 1.0

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return self.sign * beta_partial(index, *operands)


def beta_partial(index: int, a: Term, b: Term, x: Term) -> Term:
    """The derivative of betainc in operand ``index``."""
    if index == 2:
        return REGISTRY["beta_density"](a, b, x, n=0, m=0)
    return REGISTRY["betainc_derivative"](a, b, x, n=1 - index, m=index)


class Betaincc(Betainc):
    """1 - I(a, b, x)."""

    meaning = "scipy.special.betaincc"
    sign = -1.0


class Betaincinv(Betainc):
    """The x of which betainc(a, b, x) is p."""

    meaning = "scipy.special.betaincinv"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """Of an implicit function: 1 in p and -dI/da, -dI/db in the parameters, over the density."""
        a, b, _ = operands
        density = beta_partial(2, a, b, result)
        return 1.0 / density if index == 2 else -(beta_partial(index, a, b, result) / density)


class Betainccinv(Betaincinv):
    """The x of which betaincc(a, b, x) is p."""

    meaning = "scipy.special.betainccinv"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        partial = super().partial(index, result, *operands)
        return -partial if index == 2 else partial


# --- distributions that are made of them ------------------------------------------------------------


class Stdtr(Special):
    """The distribution function of Student's t distribution with v degrees of freedom."""

    meaning = "scipy.special.stdtr"
    arity = 2
    kinds = "f"
    intervals = ((1.0, 6.0), (-2.0, 2.0))
    points = (0.0, 1.0, -1.0, float("inf"), float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return student_density(*operands) if index else REGISTRY["student_slope"](*operands)


def student_density(v: Term, t: Term) -> Term:
    """(1 + t**2/v)**(-(v + 1)/2)/(sqrt(v) B(v/2, 1/2)); the normal density of infinite v."""
    normal = REGISTRY["exp"](-0.5 * (t * t)) / math.sqrt(2.0 * math.pi)
    power = REGISTRY["exp"](-0.5 * (v + 1.0) * REGISTRY["log1p"](t / v * t))
    density = power / (REGISTRY["sqrt"](v) * REGISTRY["beta"](0.5 * v, v.like(0.5)))
    return REGISTRY["select"](v == float("inf"), normal, density)


class StudentSlope(Special):
    """The derivative of stdtr in v."""

    meaning = "student_slope({0}, {1})"
    helpers: ClassVar[tuple[str, ...]] = ("student_slope",)
    arity = 2
    kinds = "f"
    intervals = Stdtr.intervals
    points = Stdtr.points

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """In t the derivative of the density in v, and in v that of what the helper computes, term by term."""
        v, t = operands
        select, square = REGISTRY["select"], t * t
        density, total = student_density(v, t), v + square
        terms = square * (v + 1.0) / total - 1.0 - v * REGISTRY["log1p"](square / v)
        logarithmic = 0.5 * (terms / v - digamma_difference(0.5 * v, v.like(0.5)))
        slope = select(v == float("inf"), 0.0, density * logarithmic)
        if index:
            return slope
        x, y, half = v / total, square / total, v.like(0.5)
        near = (
            0.5 * beta_slope(half, 0.5 * v, y, m=2) - REGISTRY["beta_density"](half, 0.5 * v, y, n=0, m=1) * y / total
        )
        far = 0.5 * beta_slope(0.5 * v, half, x, n=2) + REGISTRY["beta_density"](0.5 * v, half, x, n=1, m=0) * y / total
        part = select(square < v, near, -far)
        signed = 0.25 * select(t > 0.0, part, -part) + 0.5 * (t / v) * (density / v - slope)
        return select(t == 0.0, 0.0, signed)


def beta_slope(a: Term, b: Term, x: Term, n: int = 0, m: int = 0) -> Term:
    return REGISTRY["betainc_derivative"](a, b, x, n=n, m=m)


class Stdtrit(Special):
    """The t of which stdtr(v, t) is p."""

    meaning = "scipy.special.stdtrit"
    arity = 2
    kinds = "f"
    intervals = ((1.0, 6.0), (0.1, 0.9))
    points = (0.0, 0.5, 1.0, float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """Of an implicit function: 1 in p and minus the slope in v, over the density."""
        density = student_density(operands[0], result)
        return 1.0 / density if index else -(REGISTRY["student_slope"](operands[0], result) / density)


class Chndtr(Parametric):
    """The distribution function of the noncentral chi-squared distribution: of x, degrees of freedom, noncentrality."""

    meaning = "scipy.special.chndtr"
    arity = 3
    parameters: ClassVar[dict[int, str]] = {1: "degrees of freedom"}
    intervals = ((0.5, 4.0), (1.0, 5.0), (0.2, 3.0))
    points = (0.0, 1.0, 4.0, float("nan"))

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """The density; in the noncentrality minus that of two more degrees of freedom."""
        x, df, nc = operands
        density = REGISTRY["noncentral_density"]
        return -density(x, df + 2.0, nc) if index else density(x, df, nc)


class NoncentralDensity(Chndtr):
    """The density of the noncentral chi-squared distribution."""

    meaning = "noncentral_density({0}, {1}, {2})"
    helpers: ClassVar[tuple[str, ...]] = ("noncentral_density",)

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return True

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """By the density of two more degrees of freedom, as that of the function 0F1 (DLMF 16.3.1).

        In these degrees by the order of the Bessel function that it is made of (DLMF 10.39.9), or without noncentrality
        by the gamma function.
        """
        x, df, nc = operands
        if index == 1:
            select, log = REGISTRY["select"], REGISTRY["log"]
            order, root = 0.5 * df - 1.0, REGISTRY["sqrt"](select(nc > 0.0, nc * x, 1.0))
            turned = REGISTRY["bessel_order_derivative"](order, root, n=1, kind="ive") / REGISTRY["ive"](order, root)
            off = 0.25 * log(x / select(nc > 0.0, nc, 1.0)) + 0.5 * turned
            central = 0.5 * (log(0.5 * x) - REGISTRY["digamma"](0.5 * df))
            return select(x > 0.0, result * select(nc > 0.0, off, central), 0.0)
        more = self(x, df + 2.0, nc)
        if index:
            return 0.5 * (more - result)
        slope = result * ((0.5 * df - 1.0) / x - 0.5) + 0.5 * nc * more / x
        return REGISTRY["select"](x == 0.0, 0.5 * (self.less(x, df, nc, result, more) - result), slope)

    def less(self, x: Term, df: Term, nc: Term, result: Term, more: Term) -> Term:
        """The density of two degrees of freedom less, at 0; of none by a recurrence (DLMF 10.29.1)."""
        none = df == 2.0
        most = self(x, df + 4.0, nc)
        of_none = nc * (result / 2.0 - nc * (more / 8.0 - nc * most / 48.0))
        return REGISTRY["select"](none, of_none, self(x, REGISTRY["select"](none, df, df - 2.0), nc))
