"""Struve's, Mathieu's and parabolic cylinder functions, integrals of Bessel functions, by their differential equations.

Source: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, chapters 9 to 12 and 28.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError
from srcgrad.ir.opdef import REGISTRY, Operand, Sample, Term, Unary
from srcgrad.ir.ops.special import Parametric, Special
from srcgrad.ir.types import ArrayType


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
    """Wright's omega function: w with w + log(w) = x, whose derivative is w/(1 + w)."""

    meaning = "scipy.special.wrightomega"

    def derivative(self, result: Term, operand: Term) -> Operand:
        """Where w overflows, 1; of complex numbers w is not compared."""
        if operand.dtype.kind == "c":
            return result / (1.0 + result)
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


class ParabolicW(Parabolic):
    """The parabolic cylinder function W of parameter a."""

    parameters: ClassVar[dict[int, str]] = {0: "parameter"}
    meaning = "scipy.special.pbwa({0}, {1})[0]"
    slope = "parabolic_slope_of_w"


class ParabolicSlopeOfW(ParabolicW):
    """The derivative of the parabolic cylinder function W, whose own is (a - x**2/4) times the function."""

    meaning = "scipy.special.pbwa({0}, {1})[1]"
    slope = "parabolic_w"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, x = operands
        return (a - 0.25 * x * x) * REGISTRY[self.slope](*operands)


# --- Mathieu functions ------------------------------------------------------------------------------


class MathieuA(Parametric):
    """The value at which Mathieu's equation has its even solution of whole order m."""

    whole = True
    parameters: ClassVar[dict[int, str]] = {0: "order", 1: "parameter q"}
    intervals = ((1.0, 4.0), (0.5, 3.0))
    points = (1.0, 2.0, float("nan"))
    meaning = "scipy.special.mathieu_a"

    def samples(self) -> Iterator[Sample]:
        """It is differentiated in neither operand."""
        for sample in super().samples():
            yield replace(sample, smooth=False)


class MathieuB(MathieuA):
    """The value at which Mathieu's equation has its odd solution of whole order m."""

    meaning = "scipy.special.mathieu_b"


class MathieuFunction(Parametric):
    """A solution of Mathieu's equation (``part`` 0) or its derivative (1): f'' = -(a - 2 q cos(2 x)) f.

    ``kind`` is SciPy's name. The angle is in degrees, and the derivative that SciPy gives is one by radians; modified
    functions have the equation f'' = (a - 2 q cosh(2 x)) f.
    """

    arity = 3
    whole = True
    parameters: ClassVar[dict[int, str]] = {0: "order", 1: "parameter q"}
    intervals = ((1.0, 4.0), (0.5, 3.0), (0.2, 1.2))
    points = (1.0, float("nan"))
    meaning = "mathieu_function({0}, {1}, {2}, {kind!r}, {part})"
    helpers: ClassVar[tuple[str, ...]] = ("mathieu_function",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        result = super().result_type(types, attrs)
        if result.dtype.itemsize < 8:
            raise DTypeError(f"{self.name} does not take {result}", hint="SciPy's are nan there: convert to float64")
        return result

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        order, q, x = operands
        kind, part = attrs["kind"], attrs["part"]
        modified = kind.startswith("mod")
        other = self(*operands, kind=kind, part=1 - part)
        unit = 1.0 if modified else np.pi / 180
        if part == 0:
            return unit * other
        a = REGISTRY["mathieu_a" if "ce" in kind else "mathieu_b"](order, q)
        if modified:
            return (a - 2.0 * q * REGISTRY["cosh"](2.0 * x)) * other
        return unit * ((2.0 * q * REGISTRY["cos"](2.0 * unit * x) - a) * other)

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            for kind in MATHIEU if sample.label != "float32" else ():
                for part in (0, 1):
                    yield replace(sample, attrs={"kind": kind, "part": part})


MATHIEU = ("cem", "sem", "modcem1", "modcem2", "modsem1", "modsem2")
"""Mathieu's functions as SciPy calls them, but for ``mathieu_``."""


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


class IntegralOfStruve(Special, Unary, abstract=True):
    """The integral of a Struve function of order 0 from 0 to x."""

    kinds = "f"
    intervals = ((0.5, 3.0),)
    integrand: ClassVar[str] = "struve"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY[self.integrand](operand.like(0.0), operand)


class IntegralStruve(IntegralOfStruve):
    """The integral of struve(0, x) from 0 to x."""

    meaning = "scipy.special.itstruve0"


class IntegralModstruve(IntegralOfStruve):
    """The integral of modstruve(0, x) from 0 to x."""

    meaning = "scipy.special.itmodstruve0"
    integrand = "modstruve"


class IntegralAi(BesselIntegral):
    """The integral of Ai from 0 to x; SciPy's is right to 7 digits farther from 0 than the samples are."""

    meaning = "scipy.special.itairy({0})[0]"
    integrand = "airy_ai"
    intervals = ((0.1, 0.5),)
    direction: ClassVar[float] = 1.0

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY[self.integrand](self.direction * operand)


class IntegralBi(IntegralAi):
    """The integral of Bi from 0 to x."""

    meaning = "scipy.special.itairy({0})[1]"
    integrand = "airy_bi"


class IntegralAiBelow(IntegralAi):
    """The integral of Ai from -x to 0."""

    meaning = "scipy.special.itairy({0})[2]"
    direction = -1.0


class IntegralBiBelow(IntegralBi):
    """The integral of Bi from -x to 0."""

    meaning = "scipy.special.itairy({0})[3]"
    direction = -1.0
