"""How much of short loops is written out, and what to do where it is too much."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType
from typing import TYPE_CHECKING, Final, NamedTuple

from srcgrad.ir.core import Operation
from srcgrad.ir.source import internal
from srcgrad.tracing.conversion.state import Passing, State
from srcgrad.tracing.trace import Trace

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.loops import Outermost

MOST_WRITTEN_OUT: Final = 256
"""The operations of all trips of a short loop, beyond which those after the first are one region.

The trips of loops around it that are written out count too. A call of what has more is no faster than one of a loop,
and takes several times as long to compile.
"""

OFTEN: Final = 8
"""After so many attempts in vain a statement is not tried as a region any more, but for more trips."""


class Refusals(NamedTuple):
    """How often in a row a statement was no region for one reason, and of how many trips at most.

    A function that calls itself comes to it so often that attempts in vain would take most of the time of its trace. In
    a loop around it variables may have other kinds in the next round, so that what is refused there does not count.
    """

    times: int
    why: str
    trips: int

    def again(self, why: str, trips: int) -> Refusals:
        if why != self.why:
            return Refusals(1, why, trips)
        return Refusals(self.times + 1, why, max(self.trips, trips))

    def are_enough(self, trips: int) -> bool:
        return self.times >= OFTEN and trips <= self.trips


NEVER: Final = Refusals(0, "", 0)


def statement_of(state: State) -> CodeType | None:
    """What tells one of the user's statements from others; None of a loop in what is done for them, as of all sums."""
    code = getattr(state.get, "__code__", None)
    return None if code is None or internal(code) else code


def size_of(operations: Iterable[Operation]) -> int:
    """The number of operations with those in their regions."""
    return sum(1 + sum(size_of(region.operations) for region in found.regions) for found in operations)


class Much(Passing):
    """There is more to write out than there may be, in the first trip of the outermost of short loops in each other.

    ``size``: so many operations at least all trips have of the loop that is left.
    """

    def __init__(self, loop: Outermost, size: int) -> None:
        super().__init__()
        self.loop, self.size = loop, size


class Growing:
    """A short loop of which the first trip is small: later ones may not be, as those of ``for k in range(i)`` inside.

    Each is taken to be as large as the one before.
    """

    def __init__(self, count: int, trace: Trace) -> None:
        """``count``: its trips."""
        self.count, self.trace = count, trace
        self.copies, self.first = trace.copies, len(trace.builder.operations)

    def is_much(self, position: int, start: int) -> bool:
        """Whether, after the trip of that place, the others are too much to write out, and worth a region.

        In the first trip of the outermost of loops in each other that one is asked behind its trip.
        """
        left = self.count - position - 1
        if left < 2 or self.trace.outermost is not None:
            return False
        operations = self.trace.builder.operations
        total = size_of(operations[self.first :]) + left * size_of(operations[start:])
        return total * self.copies > MOST_WRITTEN_OUT
