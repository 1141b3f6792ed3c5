"""Integers of loops as sums of the loops' indices: so a slice between two of them has a length that is known.

An index runs between two numbers, which may be sums of indices of loops around it. ``x[i - 1 : i + 2]`` has three
elements if ``i - 1`` is never below 0 and ``i + 2`` never beyond the end, whatever ``i`` is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.tracer import Tracer

_NUMBERS: Final = itertools.count()
MOST_CASES: Final = 4
"""Each takes three times as long. Of what is left is known between which numbers it lies."""


class Counter:
    """An integer of which is known between which others it lies: those of loops around its own."""

    __slots__ = ("high", "low", "made", "number", "of", "pick")

    def __init__(self, low: Affine, high: Affine) -> None:
        self.low, self.high = low, high
        self.number = next(_NUMBERS)
        """Later ones are of inner loops."""
        self.of: tuple[Affine, ...] = ()
        """What it is the larger or the smaller of, if it is that."""
        self.pick: Callable[[int, int], int] = max
        self.made: dict[Any, Affine] = {}
        """What was made of it by operations that are no sums, so that the same again is the same integer."""


class Affine(NamedTuple):
    """``constant + Σ factor · counter``; no factor is 0."""

    terms: Mapping[Counter, int]
    constant: int

    def plus(self, other: Affine, times: int = 1) -> Affine:
        terms = dict(self.terms)
        for counter, factor in other.terms.items():
            terms[counter] = terms.get(counter, 0) + times * factor
        return Affine(
            {counter: factor for counter, factor in terms.items() if factor}, self.constant + times * other.constant
        )

    def key(self) -> tuple[Any, ...]:
        return (*sorted((counter.number, factor) for counter, factor in self.terms.items()), self.constant)

    def least(self) -> int:
        """A number that it surely is not below: the smallest that it can be, or less."""
        return self.bound(MOST_CASES)

    def bound(self, cases: int) -> int:
        """As `least`, with so many numbers that are the larger or the smaller of two looked at as either."""
        found = self
        while found.terms:
            inner = max(found.terms, key=lambda counter: counter.number)
            factor = found.terms[inner]
            rest = found.plus(Affine({inner: 1}, 0), -factor)
            plain = rest.plus(inner.low if factor > 0 else inner.high, factor)
            if cases and inner.of:
                one, other = (rest.plus(part, factor).bound(cases - 1) for part in inner.of)
                # max(a, b) is at least either, and one of them: what it is added to is at least the better of two
                # bounds, what it is taken from at least the worse.
                either = max if (inner.pick is max) == (factor > 0) else min
                return max(either(one, other), plain.bound(0))
            found = plain
        return found.constant

    def most(self) -> int:
        """The largest number that it can be."""
        return -ZERO.plus(self, -1).least()


ZERO: Final = Affine({}, 0)
_RULES: Final[dict[np.ufunc, Callable[..., Affine | None]]] = {
    np.positive: lambda a: a,
    np.negative: lambda a: ZERO.plus(a, -1),
    np.add: lambda a, b: a.plus(b),
    np.subtract: lambda a, b: a.plus(b, -1),
    np.multiply: lambda a, b: (
        None if a.terms and b.terms else ZERO.plus(a, b.constant) if a.terms else ZERO.plus(b, a.constant)
    ),
    np.maximum: lambda a, b: extreme(a, b, max),
    np.minimum: lambda a, b: extreme(a, b, min),
    np.floor_divide: lambda a, b: divided(a, b, "quotient"),
    np.remainder: lambda a, b: divided(a, b, "rest"),
}


def extreme(a: Affine, b: Affine, pick: Callable[[int, int], int]) -> Affine:
    """The larger or the smaller of two: one of them where that is sure, else an integer of its own."""
    distance = b.plus(a, -1)
    if distance.least() >= 0:
        return b if pick is max else a
    if distance.most() <= 0:
        return a if pick is max else b
    low, high = pick(a.least(), b.least()), pick(a.most(), b.most())
    found = made_of(a, b, pick.__name__, low, high)
    (counter,) = found.terms
    counter.of, counter.pick = (a, b), pick
    return found


def divided(a: Affine, b: Affine, part: str) -> Affine | None:
    if b.terms or b.constant <= 0:
        return None
    if not any(factor % b.constant for factor in a.terms.values()):  # floor((b m + c) / b) = m + floor(c / b)
        if part == "rest":
            return Affine({}, a.constant % b.constant)
        terms = {counter: factor // b.constant for counter, factor in a.terms.items()}
        return Affine(terms, a.constant // b.constant)
    if part == "rest":
        return made_of(a, b, part, 0, b.constant - 1)
    return made_of(a, b, part, a.least() // b.constant, a.most() // b.constant)


def made_of(a: Affine, b: Affine, how: str, low: int, high: int) -> Affine:
    """What an operation that is no sum makes of two, an integer between these numbers."""
    key = (how, a.key(), b.key())
    inner = max((*a.terms, *b.terms), key=lambda counter: counter.number, default=None)
    known = {} if inner is None else inner.made
    if key not in known:
        known[key] = between(Affine({}, low), Affine({}, high))
    return known[key]


def between(low: Affine, high: Affine) -> Affine:
    """A new integer that lies between two."""
    return Affine({Counter(low, high): 1}, 0)


def affine_of(x: Any) -> Affine | None:
    """An integer as a sum, if that is known."""
    if isinstance(x, Tracer):
        number = x.number() if x.affine is None and x.scalar else None
        return x.affine if number is None else Affine({}, int(number))
    return Affine({}, int(x))


def combined(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Affine | None:
    """The result of an operation on integers as a sum."""
    rule = _RULES.get(ufunc)
    parts = [affine_of(x) for x in inputs] if rule is not None else []
    if rule is None or None in parts:
        return None
    return rule(*parts)


_ORDERS: Final[dict[np.ufunc, Callable[[int, int], bool | None]]] = {
    np.less: lambda least, most: True if least > 0 else False if most <= 0 else None,
    np.less_equal: lambda least, most: True if least >= 0 else False if most < 0 else None,
    np.greater: lambda least, most: True if most < 0 else False if least >= 0 else None,
    np.greater_equal: lambda least, most: True if most <= 0 else False if least > 0 else None,
    np.equal: lambda least, most: False if least > 0 or most < 0 else True if least == most == 0 else None,
    np.not_equal: lambda least, most: True if least > 0 or most < 0 else False if least == most == 0 else None,
}
"""What a comparison of two integers gives, of which is known between which numbers the second less the first lies."""


def decided(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> bool | None:
    """What a comparison gives in every trip of the loops around it; None where that is not known."""
    rule = _ORDERS.get(ufunc)
    if rule is None or not any(isinstance(x, Tracer) and x.affine is not None for x in inputs):
        return None
    first, second = map(affine_of, inputs)
    if first is None or second is None:
        return None
    distance = second.plus(first, -1)
    return rule(distance.least(), distance.most())
