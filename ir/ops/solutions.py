"""Struve's functions, parabolic cylinder functions and integrals of Bessel functions, by their differential equations.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 10, 11 and 12.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Term, Unary
from srcgrad.ir.ops.special import Parametric, Special


class Struve(Parametric):
    """Struve's function of order v."""

    meaning = "scipy.special.struve"
    intervals = ((0.3, 2.5), (0.5, 3.0))
    points = (0.0, 1.0, float("nan"))
    sign: ClassVar[float] = -1.0

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """Half the sum of (x/2)**v/(sqrt(pi) Gamma(v + 3/2)), the one below, and plus or minus the one above.

        Of order 0 that below is the term plus or minus the one above (DLMF 11.4.23-26): its own slope would cancel.
        """
        v, x = operands
        above = self.sign * self(v + 1.0, x)
        term = REGISTRY["pow"](0.5 * x, v) * REGISTRY["rgamma"](v + 1.5) / np.sqrt(np.pi)
        return REGISTRY["select"](v == 0.0, above + term, 0.5 * (self(v - 1.0, x) + above + term))


class Modstruve(Struve):
    """The modified Struve function of order v."""

    meaning = "scipy.special.modstruve"
    sign = 1.0


class Wrightomega(Special, Unary):
    """Wright's omega function of real numbers: w with w + log(w) = x, whose derivative is w/(1 + w)."""

    meaning = "scipy.special.wrightomega"
    kinds = "f"

    def derivative(self, result: Term, operand: Term) -> Operand:
        """Where w overflows, 1."""
        return REGISTRY["select"](result > 1.0, 1.0 / (1.0 + 1.0 / result), result / (1.0 + result))


# --- parabolic cylinder functions -------------------------------------------------------------------


class Parabolic(Parametric, abstract=True):
    """A parabolic cylinder function of order v."""

    intervals = ((0.3, 2.5), (0.5, 3.0))
    points = (0.0, 1.0, -1.0, float("nan"))
    slope: ClassVar[str] = ""

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        return REGISTRY[self.slope](*operands)


class ParabolicSlope(Parabolic, abstract=True):
    """Its derivative, whose own is (x**2/4 - v - 1/2) times the function (DLMF 12.2.4)."""

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        v, x = operands
        return (0.25 * x * x - v - 0.5) * REGISTRY[self.slope](*operands)


class ParabolicD(Parabolic):
    """The parabolic cylinder function D of order v."""

    meaning = "scipy.special.pbdv({0}, {1})[0]"
    slope = "parabolic_slope_of_d"


class ParabolicSlopeOfD(ParabolicSlope):
    """The derivative of the parabolic cylinder function D."""

    meaning = "scipy.special.pbdv({0}, {1})[1]"
    slope = "parabolic_d"


class ParabolicV(Parabolic):
    """The parabolic cylinder function V of order v."""

    meaning = "scipy.special.pbvv({0}, {1})[0]"
    slope = "parabolic_slope_of_v"


class ParabolicSlopeOfV(ParabolicSlope):
    """The derivative of the parabolic cylinder function V."""

    meaning = "scipy.special.pbvv({0}, {1})[1]"
    slope = "parabolic_v"


# --- integrals of Bessel functions ------------------------------------------------------------------


class BesselIntegral(Special, Unary, abstract=True):
    """The integral of a Bessel function of order 0 from 0 to x."""

    kinds = "f"
    intervals = ((0.5, 3.0),)
    integrand: ClassVar[str] = ""

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY[self.integrand](operand)


class IntegralJ0(BesselIntegral):
    """The integral of j0 from 0 to x."""

    meaning = "scipy.special.itj0y0({0})[0]"
    integrand = "j0"


class IntegralY0(BesselIntegral):
    """The integral of y0 from 0 to x."""

    meaning = "scipy.special.itj0y0({0})[1]"
    integrand = "y0"


class IntegralI0(BesselIntegral):
    """The integral of i0 from 0 to x."""

    meaning = "scipy.special.iti0k0({0})[0]"
    integrand = "i0"


class IntegralK0(BesselIntegral):
    """The integral of k0 from 0 to x."""

    meaning = "scipy.special.iti0k0({0})[1]"
    integrand = "k0"
