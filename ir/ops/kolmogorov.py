"""Distribution functions that SciPy has in C: Kolmogorov's, of how far an empirical distribution is from its own, and
the cosine's.

SciPy has the values. The derivative of Kolmogorov's density is one of two theta series, which are equal (W. Feller, On
the Kolmogorov-Smirnov limit theorems, 1948): each has few terms on its side of `BETWEEN`, and so have its derivatives.
"""

from __future__ import annotations

import math
from typing import Final

from srcgrad.ir.opdef import REGISTRY, Operand, Term, Unary
from srcgrad.ir.ops.special import Special

BETWEEN: Final = 0.8
"""Where both series have errors below 1e-30 after `TERMS` terms."""
TERMS: Final = 6


class PrivateFunction(Special, Unary, abstract=True):
    """One of real numbers."""

    kinds = "f"
    intervals = ((0.4, 1.6),)


class Kolmogorov(PrivateFunction):
    """The probability of a distance above x."""

    meaning = "scipy.special.kolmogorov"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return REGISTRY["kolmogorov_slope"](operand)


class KolmogorovBelow(PrivateFunction):
    """The probability of a distance below x."""

    meaning = "scipy.special._ufuncs._kolmogc"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -REGISTRY["kolmogorov_slope"](operand)


class KolmogorovSlope(PrivateFunction):
    """The density, negative."""

    meaning = "scipy.special._ufuncs._kolmogp"

    def derivative(self, result: Term, operand: Term) -> Operand:
        """Terms c exp(-r/x²)/x below, and ±2 exp(-2k²x²) above, twice differentiated."""
        select, exp = REGISTRY["select"], REGISTRY["exp"]
        near = select((operand > 0.0) & (operand < BETWEEN), operand, BETWEEN)
        far = select(operand < BETWEEN, BETWEEN, operand)
        square, below, above = near * near, 0.0 * near, 0.0 * far
        for k in range(1, TERMS + 1):
            rate = ((2 * k - 1) * math.pi) ** 2 / 8
            term = math.sqrt(2 * math.pi) * exp(-rate / square) / near
            steep = (2 * rate / square - 1.0) / near
            below = below + term * (steep * steep + (1.0 - 6 * rate / square) / square)
            curve = 4.0 * k * k
            above = above + (2.0 if k % 2 else -2.0) * curve * exp(-0.5 * curve * far * far) * (1.0 - curve * far * far)
        return select(operand > 0.0, -select(operand < BETWEEN, below, above), 0.0)


class Kolmogi(PrivateFunction):
    """The distance that is exceeded with probability p."""

    meaning = "scipy.special.kolmogi"
    intervals = ((0.1, 0.9),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 1.0 / REGISTRY["kolmogorov_slope"](result)


class KolmogorovQuantile(PrivateFunction):
    """The distance below which one is with probability p."""

    meaning = "scipy.special._ufuncs._kolmogci"
    intervals = ((0.1, 0.9),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        return -1.0 / REGISTRY["kolmogorov_slope"](result)


class CosineBelow(PrivateFunction):
    """The mass below x of the density (1 + cos(x))/2pi on -pi to pi, accurate where it is small."""

    meaning = "scipy.special._ufuncs._cosine_cdf"
    intervals = ((-2.0, 2.0),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        inside = REGISTRY["abs"](operand) <= math.pi
        half = REGISTRY["cos"](0.5 * operand)
        return REGISTRY["select"](inside, half * half / math.pi, 0.0)


class CosineQuantile(PrivateFunction):
    """The place below which that mass is p."""

    meaning = "scipy.special._ufuncs._cosine_invcdf"
    intervals = ((0.1, 0.9),)

    def derivative(self, result: Term, operand: Term) -> Operand:
        half = REGISTRY["cos"](0.5 * result)
        return math.pi / (half * half)
