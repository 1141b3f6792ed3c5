"""Lists of which each trip of a loop takes as many items from one end, ``st.pop()`` or ``queue.pop(0)``: a stack.

Which item a trip takes is known from its number. So the loop reads the items as one over the list does, and behind it
the list has those that are left. While the loop is traced there are `Held` items in the list, so that whatever else is
done with it is refused, and the loop unrolls.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.filled import filled_of
from srcgrad.tracing.conversion.guarded import Held
from srcgrad.tracing.conversion.items import Items, index_of, listed_items
from srcgrad.tracing.trace import CURRENT, Refused, Trace, current_trace

OTHERWISE: Final = "a list of which each trip of a loop takes items is read or changed in another way in the loop"


class Popped:
    """One list, while a loop is traced that takes items from it."""

    def __init__(self, items: list[Any], each: int, trips: int) -> None:
        """``each``: how many items each of the ``trips`` takes."""
        self.items, self.each, self.trips = items, each, trips
        self.owner: Any = None
        """The loop that is being traced."""
        self.trace: Trace | None = None
        """The trip."""
        self.kept: list[Any] = []
        self.found: Items | None = None
        self.gone: Any = 0
        """How many items trips before have taken."""
        self.taken = 0
        """How many the trip has taken so far."""
        self.front: bool | None = None
        """Whether they are taken from the front."""

    def open(self, owner: Any) -> None:
        self.owner, self.kept, self.front, self.found = owner, list(self.items), None, None
        self.items[:] = [Held(self, k) for k in range(len(self.kept))]

    def begin(self, index: Value | None) -> None:
        """A trip begins."""
        assert index is not None
        self.trace, self.taken = current_trace(), 0
        self.gone = self.each * index_of(index, self.trips)

    def end(self) -> None:
        """A trip ends.

        Raises:
            Refused: it has changed the list in another way.
        """
        own = [type(x) is Held and x.filled is self and x.place == k for k, x in enumerate(self.items)]
        if len(own) != len(self.kept) or not all(own) or self.taken != self.each:
            raise Refused(OTHERWISE)

    def require_unknown(self) -> None:
        """As of `Filled`: nothing is assigned."""

    def count(self) -> Any:
        return len(self.kept) - self.taken - self.gone

    def pop(self, index: Any) -> Any:
        at_end = isinstance(index, (int, np.integer)) and index in (0, -1)
        if not at_end or CURRENT.get() is not self.trace or self.front not in (None, index == 0):
            raise Refused(OTHERWISE)
        self.front = bool(index == 0)
        if self.found is None:
            self.found = self.owner.before(lambda: listed_items(self.parts()[0]))
        if self.found is None or self.each * self.trips > len(self.kept) or self.taken == self.each:
            raise Refused(OTHERWISE)
        place = self.taken + self.gone
        self.taken += 1
        return self.found.at(place if self.front else self.each * self.trips - 1 - place)

    def parts(self) -> tuple[list[Any], list[Any]]:
        """The items that the trips take, and those that they leave."""
        place = self.each * self.trips
        if self.front:
            return self.kept[:place], self.kept[place:]
        return self.kept[len(self.kept) - place :], self.kept[: len(self.kept) - place]

    def refuse(self, *args: Any) -> Any:
        raise Refused(OTHERWISE)

    __getitem__ = __setitem__ = refuse

    def restore(self) -> None:
        self.items[:] = self.kept

    def leave(self) -> None:
        """Leave the list what no trip has taken."""
        self.items[:] = self.parts()[1]


@call_rule(list.pop)
def pop(items: list[Any], index: Any = -1, /) -> Any:
    found = filled_of(items)
    return found.pop(index) if isinstance(found, Popped) else items.pop(index)
