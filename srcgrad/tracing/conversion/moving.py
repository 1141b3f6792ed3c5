"""Variables of loops whose arrays get another length in each trip: ``v = p * v[1:] + q * v[:-1]``.

Where a trip leaves an array that is longer or shorter by as much as each other trip does, the length before a trip is
known in terms of its number. So is the place, and the loop hands on an array of the largest length of which a part
counts (`ragged`). What lies outside of it counts nowhere, in derivatives too; it is 0 at each hand-over, so that it
does not shrink from trip to trip to numbers with which processors are slow. A variable that is a slice of itself,
``v = v[1:]``, is that array from the start, of which another part counts in each trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.ir.core import Value
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.affine import ZERO, Affine
from srcgrad.tracing.conversion.carries import Carry
from srcgrad.tracing.conversion.filled import array_of
from srcgrad.tracing.conversion.state import Kind, Snapshot, join_kinds, kind_of, shown, value_as
from srcgrad.tracing.conversion.varying import VARYING, Settled, Varying, item_kind, kind_among, rows_of
from srcgrad.tracing.ragged import Extent, Ragged, known, moved, same_part, same_view
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.loop_regions import LoopRegion
    from srcgrad.tracing.conversion.trips import Trip


class Along:
    """The part of one axis that counts before trip ``k``: ``drift * k`` to ``length + (drift + change) * k``."""

    def __init__(self, length: int, change: int, trips: int) -> None:
        self.length, self.change, self.trips = length, change, trips
        self.drift = 0
        self.size = max(length, length + change * trips)

    @property
    def varies(self) -> bool:
        return self.change != 0 or self.drift != 0

    def start(self, k: Any) -> Any:
        return self.drift * k if self.drift else 0

    def stop(self, k: Any) -> Any:
        slope = self.drift + self.change
        return self.length + slope * k if slope else self.length

    def part(self, k: Any) -> Extent | None:
        if not self.varies:
            return None
        start, stop = self.start(k), self.stop(k)
        return Extent(start, stop, self.size, known(start), known(stop))

    def follow(self, first: Affine) -> bool:
        """Begin where trips leave the part, if they move it by as much each time; whether that is anything new."""
        if self.drift or first.terms or not 0 < first.constant <= -self.change:
            return False
        self.drift = first.constant
        return True


class Moving(Carry):
    """A variable whose array has another length in each trip. ``parts``: of its axes."""

    def __init__(self, name: str, start: Any, parts: list[Along], kind: Kind, slides: bool) -> None:
        """``slides``: whether each trip makes it a slice of itself, so that nothing is handed on but its bounds."""
        self.start, self.parts, self.slides = start, parts, slides
        shape = tuple(part.size for part in parts)
        super().__init__(name, None, [] if slides else [kind._replace(type=ArrayType(kind.type.dtype, shape))])
        self.seed: Ragged | None = None
        """What it is in the trip that is being traced, and the number of that."""
        self.index: Tracer | None = None
        self.wanted: tuple[Extent | None, ...] = ()
        """The parts that are to count when that ends."""
        self.constant: Value | None = None
        """What the memory of that holds when the trip begins."""

    def at_start(self, values: Sequence[Value], index: Tracer | None) -> Any:
        assert index is not None
        base = as_tracer(self.start) if self.slides else from_value(values[0])
        self.constant = base.storage.value
        self.index = index
        self.seed = Ragged(base, tuple(part.part(index) for part in self.parts))
        self.wanted = tuple(part.part(index + 1) for part in self.parts)
        return self.seed

    def joined(self, leaves: Sequence[Any]) -> bool:
        (found,) = leaves
        moves = self.followed(found)
        if self.slides:
            return moves
        before = self.kinds[0]
        kind = join_kinds(self.name, before, before._replace(type=ArrayType(found.dtype, before.type.shape)))
        if isinstance(kind, str):
            raise Refused(kind)
        self.kinds[0] = kind
        return moves or kind != before

    def followed(self, found: Any) -> bool:
        """Let the parts begin where a trip leaves them; whether that is anything new."""
        extents = self.extents_of(found)
        moves = [self.parts[axis].follow(extent.first) for axis, extent in enumerate(extents) if extent]
        return any(moves)

    def extents_of(self, found: Any) -> list[Extent | None]:
        """The parts of what a trip leaves, if they have the lengths that they are to have.

        Raises:
            Refused: they may have others.
        """
        if isinstance(found, Ragged) and found.ndim == len(self.parts):
            extents = []
            for axis, part in enumerate(self.parts):
                extent, size = found.extents[axis], found.base.shape[axis]
                wanted = self.wanted[axis]
                if (extent is None) != (wanted is None) or (extent is None and size != part.size):
                    break
                if extent is not None and not (isinstance(extent, Extent) and wanted and extent.alike(wanted)):
                    break
                extents.append(extent)
            else:
                return extents
        raise Refused(f"{shown(self.name)} does not get longer or shorter by as much in each trip of a loop")

    def values(self, x: Any) -> list[Value]:
        if self.slides:
            return []
        kind = self.kinds[0]
        if not isinstance(x, Ragged):
            rest = [(0, size - given) for size, given in zip(kind.type.static_shape, np.shape(x), strict=True)]
            padded: Any = np.pad(as_tracer(x), rest) if any(size for _, size in rest) else x
            return [value_as(padded, kind)]
        base = x.base
        for axis, (extent, place) in enumerate(zip(x.extents, self.wanted, strict=True)):
            if extent is not None and place is not None:
                base = moved(base, axis, extent, place)
        return [value_as(Ragged(base, self.wanted).filled(0), kind)]

    def handles(self, values: Sequence[Value]) -> list[Tracer]:
        places = tuple(slice(part.start(part.trips), part.stop(part.trips)) for part in self.parts)
        if self.slides:
            return [self.start[places]]
        (found,) = super().handles([from_value(values[0])[places].read()])
        return [found]

    def require_own(
        self, found: Ragged, params: Sequence[Value], handed_on: Sequence[Storage], written: Sequence[Storage],
        rebound: Sequence[Storage],
    ) -> None:  # fmt: skip
        """Refuse memory that others may share, where a write would be seen in both.

        ``handed_on``: the memory that trips leave in variables and lists, this one's too; ``written``: that from
        outside which they write into; ``rebound``: that of variables which they rebind and write into.
        """
        assert self.seed is not None
        start = self.start.storage if isinstance(self.start, Tracer) else None
        memory, seed = found.base.storage, self.seed.base
        if start in rebound or (start is not None and start.aliases is not None):
            raise Refused(f"{shown(self.name)} gets another length in a loop and may share memory that it changes")
        if self.slides:
            same = memory is seed.storage and len(found.base.chain) == len(seed.chain)
            same = same and all(map(same_view, found.base.chain, seed.chain))
            if not same or not all(map(same_part, found.extents, self.wanted)):
                raise Refused(f"{shown(self.name)} is another slice of itself in each trip of a loop")
            if start is None and seed.storage.value is not self.constant:
                raise Refused(f"{shown(self.name)} is an array that Python knows and that a loop changes")
            return
        own = memory.trace is seed.storage.trace and memory is not seed.storage and memory.aliases is None
        if not own or sum(other is memory for other in handed_on) > 1:
            raise Refused(f"{shown(self.name)} gets another length in a loop and may share memory")
        if seed.storage.value is not params[0] or start in written:
            raise Refused(f"{shown(self.name)} gets another length in a loop that changes it in place")


class MovingList(Moving):
    """A variable that is a list, or a tuple, of another length in each trip."""

    def __init__(self, name: str, start: Any, change: int, trips: int, item: Kind) -> None:
        """``change``: by how many items each trip makes it longer."""
        array = Kind(ArrayType(item.type.dtype, (len(start),)), False, False)
        super().__init__(name, start, [Along(len(start), change, trips)], array, False)
        self.item, self.made = item, type(start)

    def at_start(self, values: Sequence[Value], index: Tracer | None) -> Any:
        seed = super().at_start(values, index)
        return VARYING[self.made](Settled(seed.base, seed.extents), self.item)

    def joined(self, leaves: Sequence[Any]) -> bool:
        (found,) = leaves
        if not isinstance(found, Varying) or found.stands_for is not self.made:
            raise Refused(f"{shown(self.name)} does not get longer or shorter by as much in each trip of a loop")
        item = kind_among([self.item, found.item])
        if item is None:
            raise Refused(f"{shown(self.name)} gets numbers of another kind in a loop that gives it another length")
        changed, self.item = item != self.item, item
        self.kinds[0] = self.kinds[0]._replace(type=ArrayType(item.type.dtype, self.kinds[0].type.shape))
        return self.followed(found.part) or changed

    def values(self, x: Any) -> list[Value]:
        if not isinstance(x, Varying):
            return super().values(array_of(list(x), self.item.type.dtype))
        (extent,), (wanted,) = x.part.extents, self.wanted
        start = ZERO if wanted is None else wanted.first
        if isinstance(x.part, Settled) and isinstance(extent, Extent) and extent.first == start:
            return [value_as(x.part.base, self.kinds[0])]
        return super().values(x.part)

    def build(self, leaves: Sequence[Any]) -> Any:
        return self.made(rows_of(leaves[0], self.item))


def moving_list_of(name: str, one: Any, other: Any, trips: int) -> MovingList | None:
    """A variable of which the first trip has made a list, or a tuple, of another length, if it may go on so.

    Raises:
        Refused: that was no trip as the first one, or the list may have any length.
    """
    if type(one) not in VARYING or type(other) not in (type(one), VARYING[type(one)]):
        return None
    if isinstance(other, Varying):
        raise Refused(f"{shown(name)} is a list whose length a loop's number decides")
    change = len(other) - len(one)
    if not change or len(one) + change * trips < 0:
        return None
    item = kind_among([item_kind(x) for x in (one, other) if x])
    return None if item is None else MovingList(name, one, change, trips, item)


def moving_of(name: str, one: Any, other: Any, trips: int) -> Moving | None:
    """A variable of which the first trip has made an array of another length, if it may go on so."""
    first, second = kind_of(one), kind_of(other)
    if first is None or second is None or not all(isinstance(x, (Tracer, np.ndarray)) for x in (one, other)):
        return None
    before, after = one.shape, other.shape
    if before == after or len(before) != len(after):
        return None
    parts = [Along(size, new - size, trips) for size, new in zip(before, after, strict=True)]
    if any(part.length + part.change * trips < 0 for part in parts):
        return None
    joined = join_kinds(name, first, second._replace(type=ArrayType(other.dtype, before)))
    if isinstance(joined, str):
        return None
    slides = (
        other.storage is one.storage if isinstance(one, Tracer) and isinstance(other, Tracer) else is_part(other, one)
    )
    return Moving(name, one, parts, joined, slides)


def is_part(other: Any, one: Any) -> bool:
    """Whether an array that Python knows is a slice of another one."""
    known = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return known and bool(np.shares_memory(one, other))


def take_up(carries: dict[int, Carry], names: Sequence[str], before: Snapshot, after: Snapshot, trips: Any) -> bool:
    """Carry the variables whose arrays a trip has made longer or shorter; whether there are any."""
    found = False
    for cell, (one, other) in enumerate(zip(before.cells(), after.cells(), strict=True)):
        if cell not in carries and trips is not None and one is not other:
            moving = moving_of(names[cell], one, other, trips) or moving_list_of(names[cell], one, other, trips)
            if moving is not None:
                carries[cell] = moving
                found = True
    return found


def require_own(loop: LoopRegion, trip: Trip, after: Snapshot) -> None:
    """Refuse arrays of other lengths whose memory others may share, where a write would be seen in both.

    And lists that two variables hold, of which each has one of its own behind the loop.
    """
    cells = after.cells()
    lists = [cells[cell] for cell, carry in loop.carries.items() if isinstance(carry, MovingList)]
    if len(set(map(id, lists))) < len(lists):
        raise Refused("two variables hold one list that gets another length in a loop")
    moving = {cell: x for cell, x in loop.carries.items() if isinstance(x, Moving) and not isinstance(x, MovingList)}
    if not moving:
        return
    starts, ends = loop.leaves(loop.start), loop.leaves(after)
    handed_on = [x.storage for x in (*ends.values(), *loop.appending.leaves())]
    handed_on += [cells[cell].base.storage for cell in moving]
    rebound = [
        starts[leaf].storage
        for leaf, x in loop.leaves(trip.seeded).items()
        if leaf in starts and x.storage.value is not trip.params[leaf[0]][leaf[1]]
    ]
    for cell, carry in moving.items():
        carry.require_own(cells[cell], trip.params[cell], handed_on, loop.storages, rebound)
