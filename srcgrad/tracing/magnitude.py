"""How large traced Python integers can become: Python's have no bound, those of a program have 64 bits.

A bound is attached to each; where it is not known it is taken to be `USUAL`, more than counters reach. What may leave
64 bits is refused, as are carries of loops that grow from trip to trip by more than addition.

Sums, halves and multiples of integers of which nothing is known keep the share that each has: ``(low + high) // 2`` and
``low + ((high - low) >> 1)`` are halves of both, no larger than the larger one, so that a bisection may hand them on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.ir.types import INT64
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, cast_value, from_value

USUAL: Final = 2**31
TRIPS: Final = 2**24
"""What the index of a loop is taken to reach whose trips are not known."""
MOST: Final = 2**62
BOUNDS: Final[dict[np.ufunc, Callable[[int, int], int]]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a + b,
    np.multiply: lambda a, b: a * b,
    np.power: lambda a, b: a**b if a < 2 or b < 64 else MOST + 1,
    np.left_shift: lambda a, b: a << b if b < 64 else MOST + 1,
    np.floor_divide: lambda a, b: a,
    np.remainder: lambda a, b: b,
    np.right_shift: lambda a, b: a,
    np.bitwise_and: max,
    np.bitwise_or: lambda a, b: 2 * max(a, b),
    np.bitwise_xor: lambda a, b: 2 * max(a, b),
    np.maximum: max,
    np.minimum: max,
}


class Shares(NamedTuple):
    """``Σ share · value``, and no more than ``rest`` beside it."""

    terms: Mapping[Value, Fraction]
    rest: int

    def plus(self, other: Shares, sign: int) -> Shares:
        terms = dict(self.terms)
        for value, share in other.terms.items():
            terms[value] = terms.get(value, Fraction(0)) + sign * share
        return Shares(terms, self.rest + other.rest)

    def times(self, factor: Fraction) -> Shares:
        """Rounded to an integer."""
        terms = {value: factor * share for value, share in self.terms.items()}
        rest = abs(factor) * self.rest
        return Shares(terms, int(rest) + (factor.denominator > 1))

    def sum(self) -> Fraction:
        return sum((abs(share) for share in self.terms.values()), Fraction(0))


def shares_of(x: Any) -> Shares | None:
    """The shares of an integer, if it is a sum of such as nothing is known of."""
    if not isinstance(x, Tracer) or x.number() is not None or (x.bound is not None and x.bound < USUAL):
        return Shares({}, bound_of(x))
    if x.bound is None:
        return Shares({x.read(): Fraction(1)}, 0)
    return x.shares


def factor_of(x: Any) -> int | None:
    """An integer that is known, but 0."""
    number = x.number() if isinstance(x, Tracer) else x
    return int(number) if number else None


def shared(ufunc: np.ufunc, inputs: Sequence[Any]) -> Shares | None:
    """The shares of the result of an operation on Python integers, where they are known."""
    if ufunc is np.negative:
        found = shares_of(inputs[0])
        return None if found is None else found.times(Fraction(-1))
    if ufunc not in (np.add, np.subtract, np.multiply, np.floor_divide, np.right_shift):
        return None
    one, other = inputs
    factor = factor_of(other)
    if ufunc is np.multiply and factor is None:
        one, factor = other, factor_of(one)
    first, second = shares_of(one), shares_of(other)
    if first is None:
        return None
    if ufunc in (np.add, np.subtract):
        return None if second is None else first.plus(second, 1 if ufunc is np.add else -1)
    if factor is None or (ufunc is np.right_shift and not 0 < factor < 64):
        return None
    if ufunc is np.multiply:
        return first.times(Fraction(factor))
    return first.times(Fraction(1, factor if ufunc is np.floor_divide else 2**factor))


def bound_of(x: Any) -> int:
    """The largest magnitude that an integer can have."""
    if isinstance(x, Tracer):
        number = x.number()
        if number is None:
            return USUAL if x.bound is None else x.bound
        x = number
    return abs(int(x))


def bounded(ufunc: np.ufunc, inputs: Sequence[Any], result: Any) -> Any:
    """The result of an operation on Python integers, with its bound.

    Raises:
        Refused: it may not have 64 bits.
    """
    rule = BOUNDS.get(ufunc)
    if isinstance(result, Tracer) and result.weak:
        bounds = [bound_of(x) for x in inputs]
        result.bound = bounds[0] if rule is None or len(bounds) < 2 else rule(bounds[0], bounds[1])
        result.shares = shared(ufunc, inputs)
        if result.shares is not None:
            result.bound = min(result.bound, int(result.shares.sum() * USUAL) + 1 + result.shares.rest)
        if result.bound > MOST:
            raise Refused("a traced Python integer may exceed 64 bits", hint="use floats: 1.0 in place of 1")
    return result


def grows(x: Any) -> bool:
    """Whether an integer at the end of a trip may be more than a sum of what it was and something usual."""
    if not isinstance(x, Tracer) or not x.weak or x.bound is None:
        return False
    if x.shares is None:
        return x.bound >= 2 * USUAL
    return x.shares.sum() > 1 or x.shares.rest >= USUAL


COUNTING: Final = frozenset({np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.power})
"""Operators for which Python's truth values are the integers 0 and 1, while NumPy's stay truth values."""


def counted(x: Any) -> Any:
    """A number of Python's as an operand of arithmetic."""
    if not isinstance(x, Tracer):
        return int(x) if type(x) is bool else x
    if x.dtype.kind != "b":
        return x
    found = from_value(cast_value(x.read(), INT64), scalar=True, weak=True)
    found.bound = 1
    return found
