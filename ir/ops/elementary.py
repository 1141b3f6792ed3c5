"""Elementary functions: one derivative each, from which forward and reverse mode both come.

The derivatives are written so that they lose no accuracy where the function does not: they avoid differences of nearly
equal numbers and squares that overflow. Source: Abramowitz and Stegun, Handbook of Mathematical Functions, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import MissingRuleError
from srcgrad.ir.opdef import REGISTRY, Elementwise, Lin, LinearEmitter, Operand, Tangent, Term, Unary, Zero


class ElementwiseFamily(Elementwise, abstract=True):
    """Elementwise ops indexed by attributes, on which the partial derivatives depend too."""

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """The partial derivative in operand ``index`` of the member that ``attrs`` names."""
        raise MissingRuleError(f"op {self.name!r} has no derivative: write {type(self).__name__}.member_partial")

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        total: Tangent = Zero(results[0].type)
        for index, tangent in enumerate(tangents):
            if isinstance(tangent, Lin):
                total = s.add(total, s.scale(tangent, self.member_partial(index, attrs, results[0], *operands)))
        return (total,)


def held_at_infinity(operand: Term) -> Term:
    """The operand, constant where it is infinite: for derivatives that are flat there, and would be 0 times inf."""
    if operand.dtype.kind != "f":
        return operand
    return REGISTRY["select"](REGISTRY["is_inf"](operand), REGISTRY["stop_gradient"](operand), operand)


# --- exponentials and logarithms ------------------------------------------------------------------


class Exp(Unary):
    """The exponential."""

    meaning = "np.exp"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return result


class Expm1(Unary):
    """exp(x) - 1, accurate near 0. The derivative is exp(x): result + 1 would be 0 where x is far below 0."""

    meaning = "np.expm1"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["exp"](operand)


class Exp2(Unary):
    """2**x."""

    meaning = "np.exp2"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return result * math.log(2.0)


class Log(Unary):
    """The natural logarithm."""

    meaning = "np.log"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 1.0 / operand


class Log1p(Unary):
    """log(1 + x), accurate near 0."""

    meaning = "np.log1p"
    intervals = ((-0.5, 2.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 1.0 / (1.0 + operand)


class Log2(Unary):
    """The logarithm to base 2."""

    meaning = "np.log2"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (1.0 / math.log(2.0)) / operand


class Log10(Unary):
    """The logarithm to base 10."""

    meaning = "np.log10"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return (1.0 / math.log(10.0)) / operand


# --- powers and roots -----------------------------------------------------------------------------


class Square(Unary):
    """The square."""

    meaning = "np.square"
    kinds = "iufc"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 2.0 * operand


class Reciprocal(Unary):
    """1/x."""

    meaning = "np.reciprocal"
    intervals = ((0.5, 2.0),)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """-(1/x)**2 t, by one factor after the other: the square may overflow or vanish."""
        return (s.scale(s.scale(tangents[0], -results[0]), results[0]),)


class Sqrt(Unary):
    """The square root; its derivative at 0 is inf."""

    meaning = "np.sqrt"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0.5 / result


class KinkedSqrt(Unary):
    """The square root of what is the square of a length; at the kink 0 the derivative is 0."""

    meaning = "np.sqrt"
    kinds = "f"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["select"](result == 0.0, 0.0, 0.5 / result)


class Cbrt(Unary):
    """The real cube root; its derivative at 0 is inf."""

    meaning = "np.cbrt"
    kinds = "f"
    intervals = ((0.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """1/3 x**(-2/3) as a square of a reciprocal: its own derivatives at 0 and inf are the limits."""
        return (1.0 / 3.0) * REGISTRY["square"](REGISTRY["reciprocal"](result))


# --- trigonometric functions ----------------------------------------------------------------------


class Sin(Unary):
    """The sine."""

    meaning = "np.sin"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["cos"](operand)


class Cos(Unary):
    """The cosine."""

    meaning = "np.cos"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["sin"](operand)


class Tan(Unary):
    """The tangent."""

    meaning = "np.tan"
    intervals = ((-1.0, 1.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 1.0 + result * result


class OneMinusSquare(Unary):
    """1 - x**2 without cancellation near 1 and -1; neither is there any in its derivative, as a product would have."""

    meaning = "(1.0 - {0}) * (1.0 + {0})"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -2.0 * operand


def _one_minus_square(operand: Term) -> Operand:
    """1 - z**2, under a root: the sign of a zero imaginary part of z says on which side of the cut it lies.

    1.0 - z loses it, as does z + 1.0 of a negative one; z - 1.0 and z - (-1.0) keep it (Kahan, "Branch cuts for complex
    elementary functions", 1987). Of real numbers the plain product is right, and its zero has the right sign.
    """
    if operand.dtype.kind == "c":
        return -((operand - 1.0) * (operand - (-1.0)))
    return REGISTRY["one_minus_square"](operand)


def _root_of_complement(operand: Term) -> Operand:
    """sqrt(1 - z**2), of a tangent, sine or cosine by the function that it is of the same argument: 1 - z**2 is 0 where
    z has been rounded to 1, and the slope of arcsin(tanh(x)), which is sech(x), would be inf.
    """
    made = operand.value.producer
    function = None if made is None or operand.dtype.kind != "f" else COMPLEMENTS.get(made.op.name)
    if made is None or function is None:
        return REGISTRY["sqrt"](_one_minus_square(operand))
    found = REGISTRY[function](Term(operand.builder, made.operands[0]))
    # Not 0 where sech has been rounded to it: 1/sech(x) * sech(x)**2 would be nan.
    least = np.finfo(operand.dtype).tiny
    return REGISTRY["maximum"](found if function == "sech" else REGISTRY["abs"](found), least)


COMPLEMENTS: Final = {"tanh": "sech", "sin": "cos", "cos": "sin"}
"""f to g where f(x)**2 + g(x)**2 is 1."""


class Arcsin(Unary):
    """The inverse sine."""

    meaning = "np.arcsin"
    intervals = ((-0.6, 0.6),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 1.0 / _root_of_complement(operand)


class Arccos(Unary):
    """The inverse cosine."""

    meaning = "np.arccos"
    intervals = ((-0.6, 0.6),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -1.0 / _root_of_complement(operand)


class Arctan(Unary):
    """The inverse tangent."""

    meaning = "np.arctan"

    def derivative(self, result: Term, operand: Term) -> Operand:
        held = held_at_infinity(operand)
        return 1.0 / (1.0 + held * held)


# --- hyperbolic functions -------------------------------------------------------------------------


class Sinh(Unary):
    """The hyperbolic sine."""

    meaning = "np.sinh"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["cosh"](operand)


class Cosh(Unary):
    """The hyperbolic cosine."""

    meaning = "np.cosh"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["sinh"](operand)


class Tanh(Unary):
    """The hyperbolic tangent. Its derivative is not 1 - tanh(x)**2, which is 0 where tanh(x) has been rounded to 1."""

    meaning = "np.tanh"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["square"](REGISTRY["sech"](operand))


class Sech(Unary):
    """The hyperbolic secant 1/cosh(x), accurate in both tails, and so are its derivatives."""

    meaning = "1.0 / np.cosh({0})"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -(result * REGISTRY["tanh"](operand))


class Arcsinh(Unary):
    """The inverse hyperbolic sine; of reals, the derivative does not overflow."""

    meaning = "np.arcsinh"

    def derivative(self, result: Term, operand: Term) -> Operand:
        if operand.dtype.kind == "f":
            return 1.0 / REGISTRY["hypot"](held_at_infinity(operand), 1.0)
        return 1.0 / REGISTRY["sqrt"](operand * operand - (-1.0))


class Arccosh(Unary):
    """The inverse hyperbolic cosine."""

    meaning = "np.arccosh"
    intervals = ((1.5, 3.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        """A product of reciprocals: that of the root of x**2 - 1 would be nan at 1, at second order."""
        sqrt, reciprocal = REGISTRY["sqrt"], REGISTRY["reciprocal"]
        return reciprocal(sqrt(operand - 1.0)) * reciprocal(sqrt(operand - (-1.0)))


class Arctanh(Unary):
    """The inverse hyperbolic tangent."""

    meaning = "np.arctanh"
    intervals = ((-0.6, 0.6),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        made = operand.value.producer
        if operand.dtype.kind == "f" and made is not None and made.op.name in COMPLEMENTS:
            root = 1.0 / _root_of_complement(operand)
            return root * root
        return 1.0 / REGISTRY["one_minus_square"](operand)
