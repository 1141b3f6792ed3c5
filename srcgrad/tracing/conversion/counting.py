"""``while`` loops that count, while they are traced: how often one runs is known before its first trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import SrcgradError
from srcgrad.tracing.conversion.items import Items, along

MOST_COUNTED: Final = 10_000_000
"""How many trips are counted at most by asking the test for each."""
MOST_SEARCHED: Final = 2**40
"""How many are found at most by bisection."""
NUMBERS: Final = (int, float, np.integer, np.floating)
FAILURES: Final = (NameError, AttributeError, LookupError, TypeError, ValueError, ArithmeticError, SrcgradError)
"""What reading numbers may raise: the loop's own test raises it again, at its place."""


class Counter(NamedTuple):
    """What a ``while`` that counts says of itself."""

    name: str
    test: Callable[[Any], Any]
    step: Callable[[], Any]
    seen: Callable[[], tuple[Any, ...]]
    ordered: bool


class Counted(NamedTuple):
    """A counting loop at its first test: its trips, and the counter before and behind them."""

    trips: int
    start: Any
    step: Any
    end: Any

    def items(self) -> Items:
        """The counter's values by index; none for floats, which the body hands from trip to trip."""
        whole = type(self.start) is int and type(self.step) is int
        return Items(self.trips, lambda k: along(self.start, self.step, k) if whole else None)


def counted(counter: Counter, start: Any) -> Counted | None:
    """The loop from its counter's value on; None where what it reads is no Python number, or it has no end."""
    if type(start) is bool or not isinstance(start, (int, float)):
        return None
    try:
        step = counter.step()
        if type(step) is bool or not all(isinstance(x, NUMBERS) for x in (step, *counter.seen())):
            return None
        if counter.ordered and type(start) is int and type(step) is int:
            trips = searched(lambda k: counter.test(start + step * k))
            return None if trips is None else Counted(trips, start, step, start + step * trips)
        end = start
        for trips in range(MOST_COUNTED):
            if not counter.test(end):
                return Counted(trips, start, step, end)
            end += step
    except FAILURES:
        pass
    return None


def searched(holds: Callable[[int], Any]) -> int | None:
    """The first number for which a test does not hold that holds for none after it."""
    high = 1
    while holds(high - 1):
        high *= 2
        if high > MOST_SEARCHED:
            return None
    low = high // 2  # all below hold
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle - 1) else (low, middle)
    return low
