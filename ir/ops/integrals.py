"""Exponential, trigonometric, Fresnel and elliptic integrals, the dilogarithm, Lambert's W.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 4, 6, 7, 19 and 25.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term, Unary
from srcgrad.ir.ops.bessel import spherical
from srcgrad.ir.ops.elementary import ElementwiseFamily
from srcgrad.ir.ops.special import Parametric, Special, SpecialFamily
from srcgrad.ir.types import ArrayType

INF = float("inf")


class Exp1(Special, Unary):
    """The exponential integral E1, the integral of exp(-t)/t over t > x."""

    meaning = "scipy.special.exp1"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -(REGISTRY["exp"](-operand) / operand)


class Expi(Special, Unary):
    """The exponential integral Ei."""

    meaning = "scipy.special.expi"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        growth = REGISTRY["exp"](operand)
        return REGISTRY["select"](operand == INF, growth, growth / operand)


class Expn(Parametric):
    """The exponential integral E(n, x), the integral of exp(-x t)/t**n over t > 1, of whole n, negative ones too."""

    whole = True
    intervals = ((1.0, 4.0), (0.5, 3.0))
    points = (0.0, 1.0, -1.0, INF, float("nan"))
    meaning = "exponential_integral"
    helpers: ClassVar[tuple[str, ...]] = ("exponential_integral",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return -self(operands[0] - 1.0, operands[1])


class SineIntegral(Special, Unary):
    """The integral of sin(t)/t from 0 to x."""

    meaning = "scipy.special.sici({0})[0]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return REGISTRY["select"](operand == 0.0, 1.0, REGISTRY["sin"](operand) / operand)
        return spherical("spherical_jn", 0, operand)


class CosineIntegral(Special, Unary):
    """The cosine integral Ci, a primitive function of cos(x)/x."""

    meaning = "scipy.special.sici({0})[1]"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["cos"](operand) / operand


class HyperbolicSineIntegral(Special, Unary):
    """The integral of sinh(t)/t from 0 to x."""

    meaning = "scipy.special.shichi({0})[0]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return REGISTRY["select"](operand == 0.0, 1.0, REGISTRY["sinh"](operand) / operand)
        return spherical("spherical_in", 0, operand)


class HyperbolicCosineIntegral(Special, Unary):
    """The hyperbolic cosine integral Chi, a primitive function of cosh(x)/x."""

    meaning = "scipy.special.shichi({0})[1]"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["cosh"](operand) / operand


class FresnelSine(Special, Unary):
    """The integral of sin(pi t**2/2) from 0 to x."""

    meaning = "scipy.special.fresnel({0})[0]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return REGISTRY["sin"]((0.5 * np.pi) * (operand * operand))
        return REGISTRY["fresnel_phase"](operand, turn=0)


class FresnelCosine(Special, Unary):
    """The integral of cos(pi t**2/2) from 0 to x."""

    meaning = "scipy.special.fresnel({0})[1]"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return REGISTRY["cos"]((0.5 * np.pi) * (operand * operand))
        return REGISTRY["fresnel_phase"](operand, turn=1)


class FresnelPhase(Special, ElementwiseFamily, Unary):
    """sin(pi x**2/2 + turn pi/2), the phase reduced before it is rounded; nan beyond 1e8."""

    kinds = "f"
    helpers: ClassVar[tuple[str, ...]] = ("fresnel_phase",)
    meaning = "fresnel_phase({0}, {turn})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return np.pi * (operands[0] * self(operands[0], turn=(attrs["turn"] + 1) % 4))

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={"turn": k % 4})


NEAR_TERMS: Final = 10
"""Of a series in a number below 0.01, so that its second derivative has all digits too."""


class Spence(Special, Unary):
    """The dilogarithm, the integral of log(t)/(1 - t) from 1 to x."""

    meaning = "scipy.special.spence"
    intervals = ((0.6, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """log(x)/(1 - x), and near the removable singularity -log(1 + u)/u, u = x - 1: of complex x as a series."""
        if operand.dtype.kind == "c":
            u = operand - 1.0
            near = REGISTRY["abs"](u) < 0.01
            series: Operand = 0.0
            for k in range(NEAR_TERMS, 0, -1):
                series = (-1.0) ** k / k + u * series
            away = REGISTRY["select"](near, 1.0, u)
            return REGISTRY["select"](near, series, -(REGISTRY["log"](operand) / away))
        far = REGISTRY["log"](operand) / (1.0 - operand)
        return REGISTRY["select"](operand < 0.5, far, -REGISTRY["log1p_ratio"](operand - 1.0, n=0))


class Lambertw(ElementwiseFamily, Unary):
    """Lambert's W, branch k: w with w exp(w) = z."""

    kinds = "c"
    intervals = ((0.5, 3.0),)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        text = f"scipy.special.lambertw({operands[0]}, {attrs['k']})"
        return text if result.dtype.itemsize == 16 else f"np.{result.dtype.name}({text})"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """exp(-w)/(1 + w), which is 1 at z = 0."""
        return REGISTRY["exp"](-result) / (1.0 + result)

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            for k in (0, 1, -1):
                yield replace(sample, attrs={"k": k})
        yield Sample((np.array([0j, -0.2 + 0j, 3 - 1j]),), {"k": 0}, label="principal branch")


# --- elliptic integrals -----------------------------------------------------------------------------


class Ellipk(Special, Unary):
    """The complete elliptic integral of the first kind, of the parameter m."""

    meaning = "scipy.special.ellipk"
    kinds = "f"
    intervals = ((-0.5, 0.8),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["elliptic_derivative"](1.0 - operand, n=1, kind="k")


class Ellipkm1(Special, Unary):
    """ellipk(1 - p), accurate where p is small."""

    meaning = "scipy.special.ellipkm1"
    kinds = "f"
    intervals = ((0.2, 1.5),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["elliptic_derivative"](operand, n=1, kind="k")


class Ellipe(Special, Unary):
    """The complete elliptic integral of the second kind, of the parameter m."""

    meaning = "scipy.special.ellipe"
    kinds = "f"
    intervals = ((-0.5, 0.8),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["elliptic_derivative"](1.0 - operand, n=1, kind="e")


class EllipticDerivative(SpecialFamily):
    """The n-th derivative in p, n >= 1, of ellipk(1 - p) (kind "k") or ellipe(1 - p)."""

    kinds = "f"
    intervals = ((0.2, 1.5),)
    meaning = "elliptic_derivative({0}, {n}, '{kind}')"
    helpers: ClassVar[tuple[str, ...]] = ("elliptic_derivative",)

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            for kind in "ke":
                yield replace(sample, attrs={**sample.attrs, "kind": kind})


class IncompleteElliptic(Special, abstract=True):
    """An elliptic integral up to the amplitude phi, of the parameter m."""

    arity = 2
    kinds = "f"
    intervals = ((-1.2, 1.2), (-0.5, 0.8))
    points = (0.0, 1.0, -1.0, INF, float("nan"))
    kind: ClassVar[str] = "k"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """In phi, the integrand (1 - m sin(phi)**2)**(-1/2) or (…)**(1/2)."""
        if index == 1:
            return REGISTRY["elliptic_incomplete_derivative"](*operands, n=1, kind=self.kind)
        delta = REGISTRY["sqrt"](delta_square(*operands))
        return 1.0 / delta if self.kind == "k" else delta


def delta_square(phi: Term, m: Term) -> Term:
    """1 - m sin(phi)**2; where m is near 1, as cos(phi)**2 + (1 - m) sin(phi)**2, which does not cancel."""
    sines = REGISTRY["square"](REGISTRY["sin"](phi))
    far = REGISTRY["square"](REGISTRY["cos"](phi)) + (1.0 - m) * sines
    return REGISTRY["select"](m > 0.5, far, 1.0 - m * sines)


class Ellipkinc(IncompleteElliptic):
    """The incomplete elliptic integral of the first kind."""

    meaning = "scipy.special.ellipkinc"


class Ellipeinc(IncompleteElliptic):
    """The incomplete elliptic integral of the second kind."""

    meaning = "scipy.special.ellipeinc"
    kind = "e"


class EllipticIncompleteDerivative(SpecialFamily):
    """The n-th derivative in m, n >= 1, of ellipkinc (kind "k") or ellipeinc; the one in phi is the integrand's."""

    arity = 2
    kinds = "f"
    intervals = IncompleteElliptic.intervals
    points = (0.0, 1.0, float("nan"))
    meaning = "elliptic_incomplete_derivative({0}, {1}, {n}, '{kind}')"
    helpers: ClassVar[tuple[str, ...]] = ("elliptic_incomplete_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        if index == 1:
            return super().member_partial(index, attrs, result, *operands)
        n, a = attrs["n"], 0.5 if attrs["kind"] == "k" else -0.5
        factor = float(np.prod([a + k for k in range(n)]))
        sines = REGISTRY["integer_pow"](REGISTRY["sin"](operands[0]), y=2 * n)
        return factor * (sines * REGISTRY["pow"](delta_square(*operands), -a - n))

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            for kind in "ke":
                yield replace(sample, attrs={**sample.attrs, "kind": kind})
