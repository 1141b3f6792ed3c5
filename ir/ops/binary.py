"""Functions of two operands: maximum and minimum, angles and lengths, remainders, logaddexp."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    Lin,
    LinearEmitter,
    NonDifferentiable,
    Operand,
    Sample,
    Tangent,
    Term,
    Zero,
)


def share(wins: Term, loses: Term, one: Term, side: int = 1) -> Term:
    """The half of the derivative that one of two has where neither is beyond the other."""
    return REGISTRY["share_of_tie"](wins, loses, side=side, order=0, dtype=one.dtype)


class Extremum(Elementwise, abstract=True):
    """The larger or the smaller operand; tied operands share the derivative equally, and so do nan and any other.

    The tangents are selected, not multiplied by 0 or 1: what is not chosen does not contribute.
    """

    arity = 2
    kinds = "biuf"

    @abstractmethod
    def wins(self, one: Term, other: Term) -> Term:
        """Where ``one`` alone is the result."""

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        (x, y), (tx, ty) = operands, tangents
        if isinstance(tx, Lin) and isinstance(ty, Lin):
            wins, loses = self.wins(x, y), self.wins(y, x)
            shared = s.add(s.scale(tx, share(wins, loses, x)), s.scale(ty, share(wins, loses, y, -1)))
            return (s.select(wins, tx, s.select(loses, ty, shared)),)
        one, other, tangent = (x, y, tx) if isinstance(tx, Lin) else (y, x, ty)
        wins, loses = self.wins(one, other), self.wins(other, one)
        factor = REGISTRY["select"](wins, one.like(1.0), share(wins, loses, one))
        return (s.select(loses, Zero(one.type), s.scale(tangent, factor)),)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([1.0, 2.0, -1.0]), np.array([2.0, 1.0, -1.5])), label="apart")
        yield Sample((np.array([1.0, 0.0, -0.0]), np.array([1.0, -0.0, 0.0])), smooth=False, label="ties")


class Maximum(Extremum):
    """The larger operand; nan if one is nan."""

    meaning = "np.maximum"

    def wins(self, one: Term, other: Term) -> Term:
        return one > other


class Minimum(Extremum):
    """The smaller operand; nan if one is nan."""

    meaning = "np.minimum"

    def wins(self, one: Term, other: Term) -> Term:
        return one < other


class Hypot(Elementwise):
    """sqrt(x**2 + y**2), without overflow; at the kink (0, 0) the derivatives are 0."""

    meaning = "np.hypot"
    arity = 2
    kinds = "f"
    intervals = ((-2.0, 2.0), (0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """x over the length; where that is infinite, the sign of an infinite x, and 0 of another."""
        select, x = REGISTRY["select"], operands[index]
        inner = select(REGISTRY["is_inf"](x), REGISTRY["sign"](x), x / result)
        slope = select(result == 0.0, 0.0, inner)
        return REGISTRY["slope_of_norm"](slope, result, order=0, part=index)


class Arctan2(Elementwise):
    """The angle of the point (x, y), given y then x; at (0, 0) the derivatives are nan."""

    meaning = "np.arctan2"
    arity = 2
    kinds = "f"
    intervals = ((-2.0, 2.0), (0.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """x/(x²+y²) and -y/(x²+y²); dividing twice by the length avoids overflow.

        0 where an operand is infinite, whatever number the other one is.
        """
        y, x = operands
        length = REGISTRY["hypot"](y, x)
        slope = (x if index == 0 else -y) / length / length
        return REGISTRY["select"](REGISTRY["is_inf"](length) & (x == x) & (y == y), 0.0, slope)


class Logaddexp(Elementwise):
    """log(exp(x) + exp(y)), without overflow; equal infinite operands share the derivative equally."""

    meaning = "np.logaddexp"
    arity = 2
    kinds = "f"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """exp(x)/(exp(x) + exp(y)) = expit(x - y)."""
        one, other = operands[index], operands[1 - index]
        equal_infinities = (one == other) & REGISTRY["is_inf"](one)
        return REGISTRY["select"](equal_infinities, 0.5, REGISTRY["expit"](one - other))


class Logaddexp2(Elementwise):
    """log2(2**x + 2**y), without overflow; equal infinite operands share the derivative equally."""

    meaning = "np.logaddexp2"
    arity = 2
    kinds = "f"

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """2**x/(2**x + 2**y) = expit(log(2) (x - y))."""
        one, other = operands[index], operands[1 - index]
        equal_infinities = (one == other) & REGISTRY["is_inf"](one)
        share = REGISTRY["expit"](math.log(2.0) * (one - other))
        return REGISTRY["select"](equal_infinities, 0.5, share)


class FloorDivide(NonDifferentiable, Elementwise):
    """The quotient rounded towards -inf."""

    meaning = "{0} // {1}"
    arity = 2
    kinds = "iuf"
    intervals = ((0.1, 0.4), (0.5, 0.9))
    jvp = NonDifferentiable.jvp


class Remainder(Elementwise):
    """x - y*floor(x/y): it has the sign of the divisor y. At a jump the derivative is that of the smooth pieces."""

    meaning = "{0} % {1}"
    arity = 2
    kinds = "iuf"
    intervals = ((0.1, 0.4), (0.5, 0.9))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return 1 if index == 0 else -REGISTRY["floor_divide"](*operands)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([7.3, -7.3, 7.3, -7.3]), np.array([2.0, 2.0, -2.0, -2.0])), label="signs")


class Fmod(Elementwise):
    """x - y*trunc(x/y): it has the sign of the dividend x. At a jump the derivative is that of the smooth pieces."""

    meaning = "np.fmod"
    arity = 2
    kinds = "iuf"
    intervals = ((0.1, 0.4), (0.5, 0.9))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """The rounding makes (x - result)/y the whole number that it is but for rounding errors."""
        x, y = operands
        return 1 if index == 0 else -REGISTRY["rint"]((x - result) / y)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([7.3, -7.3, 7.3, -7.3]), np.array([2.0, 2.0, -2.0, -2.0])), label="signs")
