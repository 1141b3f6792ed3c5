"""The error functions and the normal distribution.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term, Unary
from srcgrad.ir.ops.special import Special, SpecialFamily
from srcgrad.ir.types import ArrayType

ROOT_PI = math.sqrt(math.pi)
ROOT_HALF = math.sqrt(0.5)


class Gaussian(SpecialFamily):
    """The n-th derivative of exp(-a x**2), n >= 0; at infinity it is 0."""

    kinds = "f"
    orders = (0, 1, 2)
    helpers: ClassVar[tuple[str, ...]] = ("gaussian_derivative",)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"gaussian_derivative({operands[0]}, {attrs['n']}, {attrs['a']})"

    def samples(self) -> Iterator[Sample]:
        for k, sample in enumerate(super().samples()):
            yield replace(sample, attrs={**sample.attrs, "a": (1.0, 0.5)[k % 2]})


def bell(operand: Term) -> Term:
    """exp(-x**2)."""
    if operand.dtype.kind == "c":
        return REGISTRY["exp"](-(operand * operand))
    return REGISTRY["gaussian"](operand, n=0, a=1.0)


def normal_density(operand: Term) -> Term:
    """exp(-x**2/2)/sqrt(2 pi)."""
    if operand.dtype.kind == "c":
        return REGISTRY["exp"](-0.5 * (operand * operand)) * (ROOT_HALF / ROOT_PI)
    return REGISTRY["gaussian"](operand, n=0, a=0.5) * (ROOT_HALF / ROOT_PI)


class Erf(Special, Unary):
    """The error function."""

    meaning = "scipy.special.erf"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (2.0 / ROOT_PI) * bell(operand)


class Erfc(Special, Unary):
    """1 - erf(x), accurate where x is large."""

    meaning = "scipy.special.erfc"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (-2.0 / ROOT_PI) * bell(operand)


class Erfcx(Special, Unary):
    """exp(x**2) erfc(x)."""

    meaning = "scipy.special.erfcx"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return 2.0 * operand * result - 2.0 / ROOT_PI
        return REGISTRY["erfcx_derivative"](operand, n=1)


class ErfcxDerivative(SpecialFamily):
    """The n-th derivative of erfcx, n >= 1: not 2 x erfcx(x) - 2/sqrt(pi), which cancels where x is large."""

    kinds = "f"
    meaning = "erfcx_derivative({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("erfcx_derivative",)


class Erfi(Special, Unary):
    """The imaginary error function, -i erf(i x)."""

    meaning = "scipy.special.erfi"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (2.0 / ROOT_PI) * REGISTRY["exp"](operand * operand)


class Dawsn(Special, Unary):
    """Dawson's integral, sqrt(pi)/2 exp(-x**2) erfi(x)."""

    meaning = "scipy.special.dawsn"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "c":
            return 1.0 - 2.0 * operand * result
        return REGISTRY["dawsn_derivative"](operand, n=1)


class DawsnDerivative(SpecialFamily):
    """The n-th derivative of dawsn, n >= 1: not 1 - 2 x dawsn(x), which cancels where x is large."""

    kinds = "f"
    meaning = "dawsn_derivative({0}, {n})"
    helpers: ClassVar[tuple[str, ...]] = ("dawsn_derivative",)


class Erfinv(Special, Unary):
    """The inverse of erf; its derivative at -1 and 1 is inf."""

    meaning = "scipy.special.erfinv"
    kinds = "f"
    intervals = ((-0.8, 0.8),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (ROOT_PI / 2.0) * REGISTRY["exp"](result * result)


class Erfcinv(Special, Unary):
    """The inverse of erfc."""

    meaning = "scipy.special.erfcinv"
    kinds = "f"
    intervals = ((0.2, 1.8),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """-sqrt(pi)/2 exp(y**2), y the result; where x is small, exp(y**2) = erfcx(y)/x: exp would magnify errors."""
        select = REGISTRY["select"]
        tail = select(operand == 0.0, 1.0 / operand, REGISTRY["erfcx"](result) / operand)
        return (-ROOT_PI / 2.0) * select(operand < 0.5, tail, REGISTRY["exp"](result * result))


class Ndtr(Special, Unary):
    """The distribution function of the normal distribution, accurate in the left tail."""

    meaning = "scipy.special.ndtr"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return normal_density(operand)


FAR_LEFT: Final = -1e10
"""Where 1/x**2 is nothing beside 1."""


class LogNdtr(Special, Unary):
    """The logarithm of ndtr."""

    meaning = "scipy.special.log_ndtr"

    def derivative(self, result: Term, operand: Term) -> Operand:
        """The density over ndtr; in the left tail as sqrt(2/pi)/erfcx(-x/sqrt(2)), in which nothing underflows.

        Far out it is -x to rounding, which has the slope -1: that of the other form would be infinity times 0.
        """
        if operand.dtype.kind == "c":
            return REGISTRY["exp"](-0.5 * (operand * operand) - result) * (ROOT_HALF / ROOT_PI)
        tail = (math.sqrt(2.0) / ROOT_PI) / REGISTRY["erfcx"](-ROOT_HALF * operand)
        tail = REGISTRY["select"](operand < FAR_LEFT, -operand, tail)
        return REGISTRY["select"](operand < 0.0, tail, normal_density(operand) / REGISTRY["ndtr"](operand))


class Ndtri(Special, Unary):
    """The inverse of ndtr: quantiles of the normal distribution."""

    meaning = "scipy.special.ndtri"
    kinds = "f"
    intervals = ((0.1, 0.9),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """sqrt(2 pi) exp(y**2/2), y the result; in the left tail, exp(y**2/2) = erfcx(-y/sqrt(2))/(2 x)."""
        select = REGISTRY["select"]
        tail = select(operand == 0.0, 1.0 / operand, REGISTRY["erfcx"](-ROOT_HALF * result) / (2.0 * operand))
        middle = REGISTRY["exp"](0.5 * (result * result))
        return (math.sqrt(2.0) * ROOT_PI) * select(operand < 0.25, tail, middle)


class NdtriExp(Special, Unary):
    """The inverse of log_ndtr."""

    meaning = "scipy.special.ndtri_exp"
    kinds = "f"
    intervals = ((-3.0, -0.2),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """One over the derivative of log_ndtr at the result."""
        tail = (ROOT_PI * ROOT_HALF) * REGISTRY["erfcx"](-ROOT_HALF * result)
        right = REGISTRY["exp"](operand + 0.5 * (result * result)) * (math.sqrt(2.0) * ROOT_PI)
        return REGISTRY["select"](result < 0.0, tail, right)


class OwensT(Special):
    """Owen's T function: the probability of X > h and 0 < Y < a X of two normal variables."""

    meaning = "scipy.special.owens_t"
    arity = 2
    kinds = "f"
    points = (0.0, 1.0, -1.0, float("inf"), float("nan"))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """-density(h) erf(a h/sqrt(2))/2 and density(h) density(a h)/(1 + a**2)."""
        h, a = operands
        if index == 0:
            return -0.5 * normal_density(h) * REGISTRY["erf"](ROOT_HALF * (a * h))
        return normal_density(h) * normal_density(a * h) / (1.0 + a * a)
