"""Where to begin with a loop that has been traced before: with what its trips handed on then.

The carries of a loop are found by tracing its body until nothing new changes, at least twice. A loop inside of it is
met in each of these rounds, so that a body in ``d`` loops would be traced ``2**d`` times. From round to round carries
only widen, those of the loops inside too: what they were in the round before is no more than what they will be, and
most often all of it, which one tracing shows. So there are about ``2 * d`` of them.

No value rests on that. What a loop begins with is tried like what a round has found, and given up where the loop turns
out not to need all of it, by its start and the end of a trip: then it begins with nothing. That a kind could hold
itself, as a float that is wider than before the loop and is handed on as it is, the rounds alone exclude: a loop that
is met again behind the first time, and not in the next round, begins with what started with the same kinds.
"""

from __future__ import annotations

import weakref
from collections import Counter
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from srcgrad.tracing.conversion.aliases import Leaf, Memory, array_storage
from srcgrad.tracing.conversion.binding import is_pending
from srcgrad.tracing.conversion.carries import Carry, PackedCarry, TextCarry
from srcgrad.tracing.conversion.marks import around
from srcgrad.tracing.conversion.state import (
    UNBOUND,
    Kind,
    Marker,
    Snapshot,
    State,
    Undefined,
    join_kinds,
    kind_beneath,
    may_be_none,
    same_handle,
)
from srcgrad.tracing.conversion.structures import structure_of
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Trace, current_trace

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.loop_regions import LoopRegion
    from srcgrad.tracing.conversion.trips import Trip

Place = tuple[CodeType, int]
"""A loop of the source, and how many times it was met before in the same trip."""


class Scope:
    """The loops that are met while the rounds of one loop, or a function, are traced."""

    def __init__(self) -> None:
        self.met: Counter[CodeType] = Counter()
        self.found: dict[Place, Settled] = {}
        self.last: dict[CodeType, Settled] = {}
        self.vain: set[Place | CodeType] = set()
        """What loops have begun with in vain, and do not begin with again."""

    def begin(self) -> None:
        """A trip begins, which meets them anew."""
        self.met.clear()

    def place(self, state: State) -> Place | None:
        """That of a loop that is met now; None of one that is no statement."""
        code = code_of(state)
        if code is None:
            return None
        self.met[code] += 1
        return code, self.met[code] - 1

    def was_region(self, state: State, trips: int) -> bool:
        """Whether all trips of the loop that is met next were one region."""
        code = code_of(state)
        known = None if code is None else self.found.get((code, self.met[code]))
        return known is not None and known.trips == trips

    def note(self, place: Place, settled: Settled) -> None:
        self.found[place] = self.last[place[0]] = settled


def code_of(state: State) -> CodeType | None:
    """What tells one statement from others."""
    return getattr(state.get, "__code__", None)


def scope_of(trace: Trace) -> Scope:
    """That of the innermost loop around, or of the function."""
    while trace.scope is None and trace.region and trace.parent is not None:
        trace = trace.parent
    if trace.scope is None:
        trace.scope = Scope()
    found: Scope = trace.scope
    return found


class Carried(NamedTuple):
    """A variable that trips handed on: its kinds before the loop, and what it was carried as."""

    start: tuple[Kind | None, ...]
    kinds: tuple[Kind, ...]
    memory: tuple[Memory, ...]
    bare: bool
    """Whether it was a number or an array itself, not a container of some."""
    unsure: bool
    """Whether it was unbound before the loop on some path, or on all."""
    maybe: bool
    """Whether a trip may hand it on unbound."""

    def again(self, name: str, start: Any) -> Carry | None:
        """The same of a variable that begins as it does now, if that is possible."""
        leaves, tree = structure_of(start)
        if start is UNBOUND and self.bare:
            leaves, tree = [], None
        elif isinstance(start, Marker) or len(leaves) != len(self.kinds) or (tree is None) != self.bare:
            return None
        carry = Carry(name, tree, list(self.kinds))
        carry.memory = [memory.copy() for memory in self.memory]
        for k, leaf in enumerate(leaves):
            carry.memory[k].note_number(leaf)
            kind = kind_beneath(leaf)
            found = "" if kind is None else join_kinds(name, carry.kinds[k], kind)
            if isinstance(found, str):
                return None
            carry.kinds[k] = found
        return carry


class Settled:
    """What the trips of a loop handed on.

    No object of the program's is held: it is asked how many hold one.
    """

    def __init__(self, loop: LoopRegion) -> None:
        self.names, self.inner, self.trips = loop.names, loop.inner, loop.trips
        cells = loop.start.cells()
        self.carried = {
            cell: Carried(
                kinds_at(cells[cell]),
                tuple(carry.kinds),
                tuple(x.copy() for x in carry.memory),
                carry.tree is None,
                is_unsure(cells[cell]),
                cell in loop.maybe,
            )
            for cell, carry in loop.carries.items()
            if not isinstance(carry, (PackedCarry, TextCarry))
        }
        leaves = memory_of(loop) if loop.storages else {}
        self.storages = [(weakref.ref(storage), leaves.get(storage)) for storage in loop.storages]

    def begin(self, loop: LoopRegion, alike: bool) -> bool:
        """Begin a loop with it; whether there is anything. ``alike``: if its variables are of the same kinds."""
        cells = loop.start.cells()
        if loop.names != self.names:
            return False
        found: dict[int, Carry] = {}
        for cell, carried in self.carried.items():
            start = cells[cell]
            if isinstance(start, Undefined) or start is None or may_be_none(start):
                return False
            carry = carried.again(loop.names[cell], start)
            if carry is None or (alike and (kinds_at(start), is_unsure(start)) != (carried.start, carried.unsure)):
                return False
            found[cell] = carry
        loop.carries.update(found)
        loop.storages += self.memory(loop)
        for cell in found:
            if not loop.may_be_unbound(cell, cells[cell]) and self.carried[cell].maybe:
                loop.maybe.append(cell)
        loop.sharing.note(loop.shared(loop.start))  # which the first trip would be traced for, and then once more
        return bool(loop.carries or loop.storages)

    def memory(self, loop: LoopRegion) -> list[Storage]:
        """The memory that its trips wrote; that of a variable which is carried around it is another one now."""
        now = {leaf: storage for storage, leaf in memory_of(loop).items()} if self.storages else {}
        known = set(around(current_trace()))
        found: dict[Storage, None] = {}
        for reference, leaf in self.storages:
            for storage in (reference(), None if leaf is None else now.get(leaf)):
                if storage is not None and storage.trace in known:
                    found[storage] = None
                    break
        return list(found)


def is_unsure(x: Any) -> bool:
    return x is UNBOUND or is_pending(x)


def kinds_at(x: Any) -> tuple[Kind | None, ...]:
    return tuple(map(kind_beneath, structure_of(x)[0]))


def memory_of(loop: LoopRegion) -> dict[Storage, Leaf]:
    """The memory of the variables before a loop and of those that it reads, and where each is found first."""
    found: dict[Storage, Leaf] = {}
    for cell, x in enumerate(loop.start.cells()):
        for k, leaf in enumerate(structure_of(x)[0]):
            storage = array_storage(leaf)
            if storage is not None:
                found.setdefault(storage, (cell, k))
    for k, reference in enumerate(loop.state.arrays):
        storage = None if reference is None else reference()
        if storage is not None:
            found.setdefault(storage, (-1, k))
    return found


class Beginning:
    """What one loop begins with."""

    def __init__(self, loop: LoopRegion, source: Place | CodeType) -> None:
        self.carries, self.storages, self.maybe = list(loop.carries), list(loop.storages), list(loop.maybe)
        self.source = source

    def needed(self, loop: LoopRegion, trip: Trip, after: Snapshot) -> bool:
        """Whether the loop hands all of it on, and as what, by what its start and its last trip say alone."""
        if any(trip.trace.overlay.get(storage) in (None, trip.memory.get(storage)) for storage in self.storages):
            return False
        starts, seeded, ends = loop.start.cells(), trip.seeded.cells(), after.cells()
        for cell in self.carries:
            carry = loop.carries.get(cell)
            if carry is None or same_handle(seeded[cell], ends[cell]):
                return False
            if not is_least(carry, starts[cell], ends[cell]):
                return False
        return all(is_pending(starts[cell]) or is_pending(ends[cell]) for cell in self.maybe)


def is_least(carry: Carry, start: Any, end: Any) -> bool:
    """Whether a carry holds these values and no more."""
    firsts = [] if isinstance(start, Marker) else structure_of(start, carry.same)[0]
    lasts = structure_of(end, carry.same)[0]
    if len(lasts) != len(carry.kinds):
        return False
    for k, (kind, memory) in enumerate(zip(carry.kinds, carry.memory, strict=True)):
        fresh, found = Memory(), kind_beneath(lasts[k])
        fresh.note(lasts[k])
        for first in firsts[k : k + 1]:
            fresh.note_number(first)
            one = kind_beneath(first)
            joined = "" if one is None or found is None else join_kinds(carry.name, one, found)
            found = None if isinstance(joined, str) else joined
        if found != kind or not fresh.holds(memory):
            return False
    return True


def begin(loop: LoopRegion, scope: Scope) -> Beginning | None:
    """Let a loop that has been traced before begin with what it handed on then, if that is possible."""
    if loop.arrays or loop.place is None:
        return None
    known = scope.found.get(loop.place)
    if known is not None:
        loop.inner = known.inner
        begins = loop.place not in scope.vain and known.begin(loop, False)
        return Beginning(loop, loop.place) if begins else None
    code = loop.place[0]
    other = scope.last.get(code)
    if other is None or code in scope.vain or not other.begin(loop, True):
        return None
    loop.inner = other.inner
    return Beginning(loop, code)


def keep(loop: LoopRegion, scope: Scope) -> None:
    """Remember what a loop has handed on, where that can be begun with."""
    plain = all(type(carry) is Carry for carry in loop.carries.values())
    if loop.place is not None and plain and not loop.optional and not loop.arrays:
        scope.note(loop.place, Settled(loop))
