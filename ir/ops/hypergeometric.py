"""Hypergeometric functions and orthogonal polynomials: differentiable in the argument, not in parameters and degrees.

Derivatives are functions of the same kind (NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov,
10.46, 13.3.15, 13.3.22, 14.6.1, 15.5.1, 16.3.1 and 18.9). Degrees are integers, for which SciPy has recurrences, or
real numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, Operand, Term
from srcgrad.ir.ops.special import Parametric, beside, scaled
from srcgrad.ir.types import real_dtype

Points = tuple[float, ...]
Intervals = tuple[tuple[float, float], ...]

FEW: Points = (0.0, 1.0, float("nan"))


class Hypergeometric(Parametric, abstract=True):
    """A hypergeometric function of a few parameters, the last operand the argument."""

    points: ClassVar[Points] = FEW
    intervals: ClassVar[Intervals] = ((0.5, 2.0), (-0.8, 0.8))


class Hyp0f1(Hypergeometric):
    """The confluent hypergeometric limit function 0F1(; b; x)."""

    kinds = "fc"
    meaning = "scipy.special.hyp0f1"
    parameters: ClassVar[dict[int, str]] = {0: "parameter b"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        b, x = operands
        return self(b + 1.0, x) / beside(b, x)


class Hyp1f1(Hypergeometric):
    """The confluent hypergeometric function 1F1(a; b; x)."""

    kinds = "fc"
    meaning = "scipy.special.hyp1f1"
    arity = 3
    intervals = ((0.5, 2.0), (0.5, 2.0), (-0.8, 0.8))
    parameters: ClassVar[dict[int, str]] = {0: "parameter a", 1: "parameter b"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, b, x = operands
        return beside(a / b, x) * self(a + 1.0, b + 1.0, x)


class Hyp2f1(Hypergeometric):
    """Gauss's hypergeometric function 2F1(a, b; c; x)."""

    kinds = "fc"
    meaning = "scipy.special.hyp2f1"
    arity = 4
    points = (1.0, float("nan"))
    intervals = ((0.5, 2.0), (0.5, 2.0), (0.5, 2.0), (-0.6, 0.6))
    parameters: ClassVar[dict[int, str]] = {0: "parameter a", 1: "parameter b", 2: "parameter c"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, b, c, x = operands
        return beside(a * b / c, x) * self(a + 1.0, b + 1.0, c + 1.0, x)


class Hyperu(Hypergeometric):
    """Tricomi's confluent hypergeometric function U(a, b, x)."""

    meaning = "scipy.special.hyperu"
    arity = 3
    intervals = ((0.5, 2.0), (0.5, 2.0), (0.5, 3.0))
    parameters: ClassVar[dict[int, str]] = {0: "parameter a", 1: "parameter b"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, b, x = operands
        return -(a * REGISTRY["hyperu_integral"](a + 1.0, b + 1.0, x))


class HyperuIntegral(Hyperu):
    """Tricomi's function as its derivatives have it: for b + 1 = 2 SciPy's own may be wrong by many powers of ten."""

    meaning = "hyperu_integral({0}, {1}, {2})"
    helpers: ClassVar[tuple[str, ...]] = ("hyperu_integral",)


class WrightBessel(Hypergeometric):
    """Wright's generalised Bessel function, the sum of x**k/(k! Gamma(a k + b)), of arguments that are not negative."""

    meaning = "scipy.special.wright_bessel"
    arity = 3
    intervals = ((0.5, 2.0), (0.5, 2.0), (0.1, 2.0))
    points = (1.0, float("nan"))
    parameters: ClassVar[dict[int, str]] = {0: "parameter a", 1: "parameter b"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, b, x = operands
        return self(a, a + b, x)


class LogWrightBessel(WrightBessel):
    """The logarithm of Wright's generalised Bessel function."""

    meaning = "scipy.special.log_wright_bessel"

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, b, x = operands
        return REGISTRY["exp"](self(a, a + b, x) - result)


class Besselpoly(Hypergeometric):
    """The integral of x**l jv(v, 2 a x) over 0 < x < 1, differentiable in a: under the integral."""

    meaning = "scipy.special.besselpoly"
    arity = 3
    intervals = ((0.5, 2.0), (0.5, 2.0), (1.5, 2.5))
    points = (1.0, float("nan"))
    parameters: ClassVar[dict[int, str]] = {1: "power", 2: "order"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        a, power, order = operands
        return self(a, power + 1.0, order - 1.0) - self(a, power + 1.0, order + 1.0)


class Lpmv(Hypergeometric):
    """The associated Legendre function of whole order m and degree v, of -1 <= x <= 1 (DLMF 14.6.1)."""

    meaning = "scipy.special.lpmv"
    arity = 3
    whole = True
    intervals = ((0.0, 3.0), (2.0, 5.0), (-0.8, 0.8))
    points = (0.0, 0.5, float("nan"))
    parameters: ClassVar[dict[int, str]] = {0: "order", 1: "degree"}

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """Of (1 - x**2)**(m/2) times a polynomial; at 1 and -1 that of the order 0 is v (v + 1)/2 there."""
        m, v, x = operands
        sine = (1.0 - x) * (1.0 + x)
        inside = -(self(m + 1.0, v, x) / REGISTRY["sqrt"](sine)) - scaled(m * x, result / sine)
        end = 0.5 * v * (v + 1.0) * x * result
        return REGISTRY["select"]((sine == 0.0) & (m == 0.0), end, inside)


class OrthogonalPolynomial(Parametric, abstract=True):
    """A classical polynomial of degree n; the derivative is a factor times one of degree n - 1, and 0 for n = 0."""

    kinds = "fc"
    degree = "iuf"
    parameters: ClassVar[dict[int, str]] = {0: "degree"}
    intervals: ClassVar[Intervals] = ((0.0, 4.0), (-0.8, 0.8))
    points: ClassVar[Points] = FEW
    mirror: ClassVar[int | None] = None
    """The sum of two degrees whose polynomials are the same (DLMF 14.9.5, 18.5.1), but for `mirrored`."""
    mirrored: ClassVar[float] = 1.0

    def member_partial(self, index: int, attrs: Attrs, result: Term, *operands: Term) -> Operand:
        """Of a degree below 0 that of the one across the mirror: the rule would lead away from 0."""
        select, (n, *rest) = REGISTRY["select"], operands
        if self.mirror is None or n.dtype.kind == "u":
            return select(n == 0, 0.0, self.lowered(n - 1, n, *rest))
        below = 2 * n < self.mirror
        n = select(below, self.mirror - n, n)
        slope = self.lowered(n - 1, n, *rest)
        if self.mirrored == 1.0:
            return select(n == 0, 0.0, slope)
        return select((n == 0) | (2 * n == self.mirror), 0.0, select(below, self.mirrored * slope, slope))

    @abstractmethod
    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        """The derivative for n > 0; ``below`` is n - 1."""


def parameter(x: Term, value: float) -> Term:
    """A known parameter beside an argument."""
    return x.like(value, real_dtype(x.dtype))


class EvalLegendre(OrthogonalPolynomial):
    """Legendre's polynomial."""

    meaning = "scipy.special.eval_legendre"
    mirror = -1

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        (x,) = rest
        return REGISTRY["eval_gegenbauer"](below, parameter(x, 1.5), x)


class EvalChebyt(OrthogonalPolynomial):
    """Chebyshev's polynomial of the first kind."""

    meaning = "scipy.special.eval_chebyt"
    mirror = 0

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        return scaled(n, REGISTRY["eval_chebyu"](below, *rest))


class EvalChebyu(OrthogonalPolynomial):
    """Chebyshev's polynomial of the second kind."""

    meaning = "scipy.special.eval_chebyu"
    mirror = -2
    mirrored = -1.0

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        (x,) = rest
        return 2.0 * REGISTRY["eval_gegenbauer"](below, parameter(x, 2.0), x)


class EvalGegenbauer(OrthogonalPolynomial):
    """Gegenbauer's polynomial of parameter a."""

    meaning = "scipy.special.eval_gegenbauer"
    arity = 3
    intervals = ((0.0, 4.0), (0.6, 2.0), (-0.8, 0.8))
    parameters: ClassVar[dict[int, str]] = {0: "degree", 1: "parameter"}

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        a, x = rest
        return beside(2.0 * a, x) * self(below, a + 1.0, x)


class EvalJacobi(OrthogonalPolynomial):
    """Jacobi's polynomial of parameters a and b."""

    meaning = "scipy.special.eval_jacobi"
    arity = 4
    points = (1.0, float("nan"))
    intervals = ((0.0, 4.0), (0.6, 2.0), (0.6, 2.0), (-0.8, 0.8))
    parameters: ClassVar[dict[int, str]] = {0: "degree", 1: "parameter a", 2: "parameter b"}

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        a, b, x = rest
        factor = scaled(n, a.like(1.0)) + a + b + 1.0
        return beside(0.5 * factor, x) * self(below, a + 1.0, b + 1.0, x)


class EvalHermite(OrthogonalPolynomial):
    """Hermite's polynomial, orthogonal under exp(-x**2)."""

    meaning = "scipy.special.eval_hermite"
    kinds = "f"
    degree = "iu"

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        return scaled(2 * n, self(below, *rest))


class EvalHermitenorm(OrthogonalPolynomial):
    """Hermite's polynomial, orthogonal under exp(-x**2/2)."""

    meaning = "scipy.special.eval_hermitenorm"
    kinds = "f"
    degree = "iu"

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        return scaled(n, self(below, *rest))


class EvalLaguerre(OrthogonalPolynomial):
    """Laguerre's polynomial."""

    meaning = "scipy.special.eval_laguerre"

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        (x,) = rest
        return -REGISTRY["eval_genlaguerre"](below, parameter(x, 1.0), x)


class EvalGenlaguerre(OrthogonalPolynomial):
    """Laguerre's generalised polynomial of parameter a."""

    meaning = "scipy.special.eval_genlaguerre"
    arity = 3
    intervals = ((0.0, 4.0), (0.6, 2.0), (-0.8, 0.8))
    parameters: ClassVar[dict[int, str]] = {0: "degree", 1: "parameter"}

    def lowered(self, below: Term, n: Term, *rest: Term) -> Term:
        a, x = rest
        return -self(below, a + 1.0, x)
