"""The Faddeeva function and Voigt's profile: the shapes of spectral lines, with derivatives in all their parameters.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, sections 7.10 and 7.19.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term, Unary
from srcgrad.ir.ops.special import Special, SpecialFamily


class Wofz(Special, Unary):
    """The Faddeeva function w(z) = exp(-z**2) erfc(-i z)."""

    meaning = "scipy.special.wofz"
    kinds = "c"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["wofz_derivative"](operand, n=1)


class WofzDerivative(SpecialFamily):
    """The n-th derivative of wofz, n >= 1, accurate where z is large, where -2 z w(z) + 2i/sqrt(pi) cancels."""

    kinds = "c"
    meaning = "wofz_derivative({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("wofz_derivative",)


class VoigtProfile(Special):
    """Voigt's profile: a normal distribution of deviation sigma convolved with a Cauchy distribution of width gamma."""

    meaning = "scipy.special.voigt_profile"
    arity = 3
    kinds = "f"
    intervals = ((-2.0, 2.0), (0.5, 2.0), (0.3, 2.0))
    points = (0.0, 1.0, float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return profile_partial(index, 0, False, *operands)


class VoigtDerivative(SpecialFamily):
    """The n-th derivative in x, n >= 1, of Voigt's profile, or (``conjugate``) of its harmonic conjugate in (x, gamma).

    They solve the equation of heat in sigma**2/2 and are harmonic in (x, gamma), so all derivatives are such again.
    """

    arity = 3
    kinds = "f"
    intervals = VoigtProfile.intervals
    points = VoigtProfile.points
    meaning = "voigt_derivative({0}, {1}, {2}, {n}, {conjugate})"
    helpers: ClassVar[tuple[str, ...]] = ("voigt_derivative",)

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return profile_partial(index, attrs["n"], attrs["conjugate"], *operands)

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={**sample.attrs, "conjugate": k % 2 == 1})


def profile_partial(index: int, n: int, conjugate: bool, x: Term, sigma: Term, gamma: Term) -> Operand:
    """The derivative in operand ``index`` of the n-th one: F' in x, sigma F'' in sigma, and i F' in gamma."""

    def family(order: int, other: bool = False) -> Term:
        found: Term = REGISTRY["voigt_derivative"](x, sigma, gamma, n=order, conjugate=conjugate is not other)
        return found

    if index == 0:
        return family(n + 1)
    if index == 1:
        return sigma * family(n + 2)
    return family(n + 1, other=True) if conjugate else -family(n + 1, other=True)
