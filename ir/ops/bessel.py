"""Bessel functions and their relatives: differentiable in the argument, to any order, and most in real orders.

The derivative of each is a combination of those of the neighbouring orders (NIST Digital Library of Mathematical
Functions, https://dlmf.nist.gov, 10.6.1, 10.29.1, 10.51.2 and 9.2.1), which does not cancel. The derivative in the
order is a function of its own, which satisfies the derivative of these recurrences in the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term, Unary
from srcgrad.ir.ops.special import Parametric, Special, SpecialFamily, scaled
from srcgrad.ir.types import ArrayType


class BesselFunction(Parametric, abstract=True):
    """A Bessel function of any real order; the derivative is a times the order below and b times the one above."""

    kinds = "fc"
    intervals = ((0.3, 2.5), (0.5, 3.0))
    neighbours: ClassVar[tuple[float, float]] = (0.5, -0.5)

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return self.kinds == "fc" and operands[1].dtype.kind == "f"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        v, x = operands
        if index == 0:
            return REGISTRY["bessel_order_derivative"](v, x, n=1, kind=self.name)
        below, above = self.neighbours
        return below * self(v - 1.0, x) + above * self(v + 1.0, x)


class BesselOrderDerivative(Parametric):
    """The n-th derivative in the order v of the function that ``kind`` names: jv, yv, iv, kv, ive or kve; n >= 1."""

    intervals = ((0.3, 2.5), (0.5, 3.0))
    helpers: ClassVar[tuple[str, ...]] = ("bessel_order_derivative",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"bessel_order_derivative({operands[0]}, {operands[1]}, {attrs['n']}, {attrs['kind']!r})"

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return True

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        v, x = operands
        n, kind = attrs["n"], attrs["kind"]
        if index == 0:
            return self(v, x, n=n + 1, kind=kind)
        below, above = NEIGHBOURS[kind]
        slope = below * self(v - 1.0, x, n=n, kind=kind) + above * self(v + 1.0, x, n=n, kind=kind)
        return slope - SCALED[kind] * result if kind in SCALED else slope

    def samples(self) -> Iterator[Sample]:
        kinds = list(NEIGHBOURS)
        for k, sample in enumerate(super().samples()):
            for shift in range(2):
                yield replace(sample, attrs={"n": 1 + k % 2, "kind": kinds[(2 * k + shift) % len(kinds)]})


NEIGHBOURS: Final[dict[str, tuple[float, float]]] = {
    "jv": (0.5, -0.5), "yv": (0.5, -0.5), "iv": (0.5, 0.5), "kv": (-0.5, -0.5), "ive": (0.5, 0.5), "kve": (-0.5, -0.5),
}  # fmt: skip
"""How often the derivative in x > 0 has the function of the order below, and of that above."""
SCALED: Final = {"ive": 1.0, "kve": -1.0}
"""How often it has the function itself taken off, whose scale is exp(-x) or exp(x)."""


class Jv(BesselFunction):
    """The Bessel function of the first kind, of order v."""

    meaning = "scipy.special.jv"


class Yv(BesselFunction):
    """The Bessel function of the second kind, of order v."""

    meaning = "scipy.special.yv"


class Iv(BesselFunction):
    """The modified Bessel function of the first kind, of order v."""

    meaning = "scipy.special.iv"
    neighbours = (0.5, 0.5)


class Kv(BesselFunction):
    """The modified Bessel function of the second kind, of order v."""

    meaning = "scipy.special.kv"
    neighbours = (-0.5, -0.5)


class Hankel1(BesselFunction):
    """The Hankel function of the first kind, of order v."""

    kinds = "c"
    meaning = "scipy.special.hankel1"


class Hankel2(BesselFunction):
    """The Hankel function of the second kind, of order v."""

    kinds = "c"
    meaning = "scipy.special.hankel2"


class Hankel1e(BesselFunction):
    """exp(-i x) times hankel1(v, x)."""

    kinds = "c"
    meaning = "scipy.special.hankel1e"
    turn: ClassVar[complex] = -1j

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return super().member_partial(index, attrs, result, *operands) + self.turn * result


class Hankel2e(Hankel1e):
    """exp(i x) times hankel2(v, x)."""

    meaning = "scipy.special.hankel2e"
    turn = 1j


class ScaledBesselDerivative(Parametric):
    """The n-th derivative of ive (kind "i") or kve (kind "k"), n >= 1: accurate where x is large, where they cancel."""

    intervals = ((0.3, 2.5), (0.5, 3.0))
    helpers: ClassVar[tuple[str, ...]] = ("scaled_bessel_derivative",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"scaled_bessel_derivative({operands[0]}, {operands[1]}, {attrs['n']}, {attrs['kind']!r})"

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return True

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        v, x = operands
        n, kind = attrs["n"], attrs["kind"]
        if index:
            return self(v, x, n=n + 1, kind=kind)
        total: Operand = 0.0  # the difference over the orders that this function is, of their derivatives
        for j in range(2 * n + 1):
            share = (-1.0) ** j * math.comb(2 * n, j) * (0.5 if kind == "i" else -0.5) ** n
            total = share * REGISTRY["bessel_order_derivative"](v + float(n - j), x, n=1, kind=f"{kind}ve") + total
        return total

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"n": 1 + k % 2, "kind": "ik"[k % 2]})
            yield replace(sample, attrs={"n": 1 + k % 3, "kind": "ki"[k % 2]})


class Ive(Parametric):
    """exp(-abs(x)) times iv(v, x); at its kink 0 the derivative is the mean of both sides'."""

    meaning = "scipy.special.ive"
    intervals = ((0.3, 2.5), (0.5, 3.0))
    kind: ClassVar[str] = "i"

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return True

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index == 0:
            return REGISTRY["bessel_order_derivative"](*operands, n=1, kind=self.name)
        return REGISTRY["scaled_bessel_derivative"](*operands, n=1, kind=self.kind)


class Kve(Ive):
    """exp(x) times kv(v, x); of complex x differentiated in x alone."""

    kinds = "fc"
    meaning = "scipy.special.kve"
    kind = "k"

    def varies(self, index: int, operands: Sequence[Term]) -> bool:
        return operands[1].dtype.kind == "f"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        v, x = operands
        if x.dtype.kind == "c":
            return result - 0.5 * (self(v - 1.0, x) + self(v + 1.0, x))
        return super().member_partial(index, attrs, result, *operands)


# --- of order 0 and 1 -------------------------------------------------------------------------------


class BesselOfOrder(Special, Unary, abstract=True):
    """One of the functions above for a fixed order."""

    kinds = "f"
    intervals = ((0.5, 3.0),)


class J0(BesselOfOrder):
    """jv of order 0."""

    meaning = "scipy.special.j0"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["j1"](operand)


class J1(BesselOfOrder):
    """jv of order 1."""

    meaning = "scipy.special.j1"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0.5 * REGISTRY["j0"](operand) - 0.5 * REGISTRY["jv"](2.0, operand)


class Y0(BesselOfOrder):
    """yv of order 0."""

    meaning = "scipy.special.y0"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["y1"](operand)


class Y1(BesselOfOrder):
    """yv of order 1."""

    meaning = "scipy.special.y1"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0.5 * REGISTRY["y0"](operand) - 0.5 * REGISTRY["yv"](2.0, operand)


class I0(BesselOfOrder):
    """iv of order 0."""

    meaning = "scipy.special.i0"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["i1"](operand)


class I1(BesselOfOrder):
    """iv of order 1."""

    meaning = "scipy.special.i1"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0.5 * REGISTRY["i0"](operand) + 0.5 * REGISTRY["i2"](operand)


class I2(BesselOfOrder):
    """iv of order 2; SciPy's is nan of the smallest numbers."""

    meaning = "second_bessel({0})"
    helpers: ClassVar[tuple[str, ...]] = ("second_bessel",)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0.5 * REGISTRY["i1"](operand) + 0.5 * REGISTRY["iv"](3.0, operand)


class K0(BesselOfOrder):
    """kv of order 0."""

    meaning = "scipy.special.k0"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["k1"](operand)


class K1(BesselOfOrder):
    """kv of order 1."""

    meaning = "scipy.special.k1"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -0.5 * REGISTRY["k0"](operand) - 0.5 * REGISTRY["kv"](2.0, operand)


class ScaledBesselOfOrder(BesselOfOrder, abstract=True):
    """ive or kve for a fixed order."""

    kind: ClassVar[str] = "i"
    order: ClassVar[int] = 0

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["bessel_slope"](operand, n=1, order=self.order, kind=self.kind)


class BesselSlope(SpecialFamily):
    """`scaled_bessel_derivative` for a fixed order."""

    kinds = "f"
    intervals = ((0.5, 3.0),)
    meaning = "scaled_bessel_derivative({order}.0, {0}, {n}, {kind!r})"
    helpers: ClassVar[tuple[str, ...]] = ("scaled_bessel_derivative",)

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"n": 1 + k % 2, "order": k // 2 % 2, "kind": "i"})
            yield replace(sample, attrs={"n": 1 + k % 2, "order": k // 2 % 2, "kind": "k"})


class I0e(ScaledBesselOfOrder):
    """ive of order 0."""

    meaning = "scipy.special.i0e"


class I1e(ScaledBesselOfOrder):
    """ive of order 1."""

    meaning = "scipy.special.i1e"
    order = 1


class K0e(ScaledBesselOfOrder):
    """kve of order 0."""

    meaning = "scipy.special.k0e"
    kind = "k"


class K1e(ScaledBesselOfOrder):
    """kve of order 1."""

    meaning = "scipy.special.k1e"
    kind = "k"
    order = 1


# --- Kelvin functions -------------------------------------------------------------------------------


class Kelvin(Special, Unary, abstract=True):
    """The real or imaginary part of a solution f of f'' + f'/x = i f, or of its derivative (DLMF 10.61.3)."""

    kinds = "f"
    intervals = ((0.5, 3.0),)
    points = (0.0, 1.0, float("nan"))
    slope: ClassVar[str] = ""
    """The op of the derivative; of the derivatives, that of the other part of f."""
    sign: ClassVar[float] = 0.0
    """How often the other part is in f'': -1 of the real one, 1 of the imaginary one, 0 of f itself."""

    def derivative(self, result: Term, operand: Term) -> Operand:
        """f' of f, and of f' what the equation says; f'(x)/x is f''(x) at 0, where f is regular."""
        other = REGISTRY[self.slope](operand)
        if not self.sign:
            return other
        return REGISTRY["select"](operand == 0.0, 0.5 * self.sign * other, self.sign * other - result / operand)


class Ber(Kelvin):
    """The real part of jv(0, x exp(3 pi i/4))."""

    meaning = "scipy.special.ber"
    slope = "berp"


class Bei(Kelvin):
    """The imaginary part of jv(0, x exp(3 pi i/4))."""

    meaning = "scipy.special.bei"
    slope = "beip"


class Ker(Kelvin):
    """The real part of kv(0, x exp(pi i/4))."""

    meaning = "scipy.special.ker"
    slope = "kerp"


class Kei(Kelvin):
    """The imaginary part of kv(0, x exp(pi i/4))."""

    meaning = "scipy.special.kei"
    slope = "keip"


class Berp(Kelvin):
    """The derivative of ber."""

    meaning = "scipy.special.berp"
    slope = "bei"
    sign = -1.0


class Beip(Kelvin):
    """The derivative of bei."""

    meaning = "scipy.special.beip"
    slope = "ber"
    sign = 1.0


class Kerp(Kelvin):
    """The derivative of ker."""

    meaning = "scipy.special.kerp"
    slope = "kei"
    sign = -1.0


class Keip(Kelvin):
    """The derivative of kei."""

    meaning = "scipy.special.keip"
    slope = "ker"
    sign = 1.0


# --- spherical Bessel functions ---------------------------------------------------------------------


class SphericalBessel(Parametric, abstract=True):
    """A spherical Bessel function of whole order n: (2n + 1) f' is a n times the order below, b (n+1) times that above.

    It is regular at 0 where the function is. Of order 0, the one below does not count.
    """

    degree = "iu"
    intervals = ((0.0, 4.0), (0.5, 3.0))
    neighbours: ClassVar[tuple[float, float]] = (1.0, -1.0)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        n, x = operands
        below, above = self.neighbours
        lower = scaled(below * REGISTRY["cast"](n, dtype=x.dtype), self(REGISTRY["maximum"](n - 1, 0), x))
        upper = scaled(above * REGISTRY["cast"](n + 1, dtype=x.dtype), self(n + 1, x))
        total = REGISTRY["select"](n == 0, upper, lower + upper)
        return total / REGISTRY["cast"](2 * n + 1, dtype=x.dtype)


class SphericalJn(SphericalBessel):
    """The spherical Bessel function of the first kind; of order 0, sin(x)/x."""

    meaning = "scipy.special.spherical_jn"


class SphericalYn(SphericalBessel):
    """The spherical Bessel function of the second kind; of order 0, -cos(x)/x."""

    meaning = "scipy.special.spherical_yn"


class SphericalIn(SphericalBessel):
    """The modified spherical Bessel function of the first kind; of order 0, sinh(x)/x."""

    meaning = "scipy.special.spherical_in"
    neighbours = (1.0, 1.0)


class SphericalKn(SphericalBessel):
    """The modified spherical Bessel function of the second kind; of order 0, pi/2 exp(-x)/x."""

    meaning = "scipy.special.spherical_kn"
    neighbours = (-1.0, -1.0)


def spherical(op: str, n: int, x: Term) -> Term:
    """A spherical Bessel function of an order that is known."""
    return REGISTRY[op](x.like(n, np.dtype(np.int64)), x)


# --- Airy functions ---------------------------------------------------------------------------------


class AiryAi(Special, Unary):
    """The Airy function Ai."""

    meaning = "scipy.special.airy({0})[0]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["airy_ai_prime"](operand)


class AiryAiPrime(Special, Unary):
    """The derivative of Ai; its own is x Ai(x)."""

    meaning = "scipy.special.airy({0})[1]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return operand * REGISTRY["airy_ai"](operand)


class AiryBi(Special, Unary):
    """The Airy function Bi."""

    meaning = "scipy.special.airy({0})[2]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["airy_bi_prime"](operand)


class AiryBiPrime(Special, Unary):
    """The derivative of Bi; its own is x Bi(x)."""

    meaning = "scipy.special.airy({0})[3]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return operand * REGISTRY["airy_bi"](operand)


class ScaledAiry(Special, Unary, abstract=True):
    """exp(z) times Ai or its derivative, or exp(-abs(z.real)) times Bi or its, for z = 2/3 x sqrt(x).

    Of Ai it is nan below 0.
    """

    kinds = "f"
    intervals = ((0.5, 3.0),)
    slope: ClassVar[str] = ""
    """The op of the derivative without the scale; of a derivative, that of the function, which it has x times."""
    is_slope: ClassVar[bool] = False
    sign: ClassVar[float] = 1.0

    def derivative(self, result: Term, operand: Term) -> Operand:
        """The scale's logarithm has the slope sqrt(x), and below 0 none."""
        other = REGISTRY[self.slope](operand)
        rise = REGISTRY["select"](operand > 0.0, REGISTRY["sqrt"](operand) * result, 0.0)
        return (operand * other if self.is_slope else other) + self.sign * rise


class AiryeAi(ScaledAiry):
    """exp(z) Ai(x)."""

    meaning = "scipy.special.airye({0})[0]"
    slope = "airye_ai_prime"


class AiryeAiPrime(ScaledAiry):
    """exp(z) times the derivative of Ai."""

    meaning = "scipy.special.airye({0})[1]"
    slope = "airye_ai"
    is_slope = True


class AiryeBi(ScaledAiry):
    """exp(-abs(z.real)) Bi(x)."""

    meaning = "scipy.special.airye({0})[2]"
    slope = "airye_bi_prime"
    sign = -1.0


class AiryeBiPrime(ScaledAiry):
    """exp(-abs(z.real)) times the derivative of Bi."""

    meaning = "scipy.special.airye({0})[3]"
    slope = "airye_bi"
    is_slope = True
    sign = -1.0
