"""What reads a value of a block: followed from one array of a loop of thousands, without looking at the others."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Final

from srcgrad.ir.core import Operation, Region, Value

_NOWHERE: Final[tuple[int, ...]] = ()


class Readers:
    """By value, the places of the operations of a block that read it, and which of the block's results it is."""

    def __init__(self, region: Region) -> None:
        self.operations = region.operations
        self.reads: dict[Value, list[int]] = {}
        self.gives: dict[Value, list[int]] = {}
        self.made: dict[Value, int] = {}
        for place, operation in enumerate(region.operations):
            for value in dict.fromkeys(operation.operands):
                self.reads.setdefault(value, []).append(place)
            self.made.update(dict.fromkeys(operation.results, place))
        for place, value in enumerate(region.results):
            self.gives.setdefault(value, []).append(place)

    def of(self, value: Value) -> list[Operation]:
        """The operations that read a value, in their order."""
        return [self.operations[place] for place in self.reads.get(value, _NOWHERE)]

    def is_given(self, value: Value, but: int) -> bool:
        """Whether a value is a result of the block, ``but`` one of them."""
        return any(place != but for place in self.gives.get(value, _NOWHERE))

    def following(self, values: set[Value]) -> Iterator[Operation]:
        """The operations that read one of some values, in their order; to what follows is added on the way.

        What the set is given after an operation has come is read by later ones.
        """
        waiting = [place for value in values for place in self.reads.get(value, _NOWHERE)]
        heapq.heapify(waiting)
        last = -1
        while waiting:
            place = heapq.heappop(waiting)
            if place == last:
                continue
            last, operation = place, self.operations[place]
            yield operation
            for result in operation.results:
                if result in values:
                    for later in self.reads.get(result, _NOWHERE):
                        heapq.heappush(waiting, later)

    def depending(self, values: Iterable[Value]) -> set[Value]:
        """Some values, and what is made of them."""
        found = {*values}
        for operation in self.following(found):
            found.update(operation.results)
        return found
