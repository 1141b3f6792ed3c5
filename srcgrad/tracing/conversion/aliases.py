"""Memory that may be shared, depending on a traced condition: which, and whether a write into it is seen elsewhere.

The result of a conditional or of a loop is memory of its own; on one of the paths it may have been the memory of
another variable. The two are *linked*. A write into either of them is exact if nothing in the program holds the other.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from srcgrad.tracing.trace import CURRENT, Storage, current_trace
from srcgrad.tracing.tracer import Tracer


def link(one: Storage, other: Storage, name: str) -> None:
    """Note that two memories may be one. ``name``: the variable for which it depends on a condition."""
    if one is other:
        return
    for first, second in ((one, other), (other, one)):
        if first.aliases is None:
            first.aliases = weakref.WeakKeyDictionary()
        first.aliases.setdefault(second, name)


def linked(storage: Storage) -> list[Storage]:
    """What a memory may be one with."""
    return [] if storage.aliases is None else list(storage.aliases)


def may_be_one(one: Storage, other: Storage) -> bool:
    return one is other or (one.aliases is not None and other in one.aliases)


def outside(storage: Storage) -> list[Storage]:
    """Of a memory and what may be one with it, what the traces in progress made: it outlives a block that has ended."""
    found = [storage, *linked(storage)]
    trace = CURRENT.get()
    kept: list[Storage] = []
    while trace is not None:
        kept += [other for other in found if other.trace is trace]
        trace = trace.parent
    return kept


def array_storage(x: Any) -> Storage | None:
    """The memory of a traced array; scalars have none that can be written."""
    return x.storage if isinstance(x, Tracer) and not x.scalar else None


def sharer(storage: Storage) -> str | None:
    """The variable that may see a write into a memory, depending on a condition; None if there is none."""
    if storage.aliases is None:
        return None
    for reference in storage.aliases.keyrefs():
        if held(reference):
            other = reference()
            return None if other is None else storage.aliases[other]
    return None


def held(reference: weakref.ref[Storage]) -> bool:
    """Whether an object of the program holds a view of a memory: not snapshots, and not tables of the traces.

    Python's reference counts tell. A view that snapshots alone hold is one of another path.
    """
    count = memory_references(reference) - NO_REFERENCE
    storage = reference()
    if storage is None:
        return False
    return count - tables(storage) - noted_only(storage) > 0


def noted_only(storage: Storage) -> int:
    """How many views of a memory there are that only snapshots hold."""
    groups = [group for snapshot in list(current_trace().snapshots) for group in snapshot.groups()]
    noted = Counter(id(x) for group in groups for x in group if isinstance(x, Tracer) and x.storage is storage)
    found = set()
    for group in groups:
        for x in group:
            if id(x) in noted and references(x) - noted[id(x)] < ALONE:
                found.add(id(x))
    return len(found)


def tables(storage: Storage) -> int:
    """How many tables of the traces in progress hold a memory."""
    count = 0
    trace = CURRENT.get()
    while trace is not None:
        count += storage in trace.overlay
        for table in trace.tables:
            count += storage in table
        trace = trace.parent
    return count


def references(x: Any) -> int:
    """How many references there are to a handle."""
    return sys.getrefcount(x)


def memory_references(reference: weakref.ref[Any]) -> int:
    storage = reference()
    return sys.getrefcount(storage)


class Held:
    """An object to count the references of."""


def references_of_one() -> int:
    """What `references` gives for what one snapshot alone holds: Python's versions count differently."""
    group = (Held(),)
    for x in group:
        return references(x)
    raise AssertionError


ALONE: Final = references_of_one()


def references_of_none() -> int:
    """What `memory_references` adds to the references that there are."""
    held_once = Held()
    return memory_references(weakref.ref(held_once)) - 1


NO_REFERENCE: Final = references_of_none()


# --- loops -----------------------------------------------------------------------------

Leaf = tuple[int, int]
"""A cell of the state, and which of its leaves."""


class Sharing:
    """Which carried arrays share memory at the start of the loop or at the end of a trip, and with what outside."""

    def __init__(self) -> None:
        self.pairs: set[tuple[Leaf, Leaf]] = set()
        self.outside: dict[Leaf, weakref.WeakSet[Storage]] = {}
        self.now: dict[Leaf, weakref.ref[Storage]] = {}
        """The memory that stands for the carried arrays where the user's code runs on."""

    def note(self, leaves: dict[Leaf, Storage]) -> bool:
        """Take up what shares memory at one moment; whether any of it is new."""
        before = len(self.pairs) + sum(map(len, self.outside.values()))
        found = list(leaves.items())
        for position, (leaf, storage) in enumerate(found):
            self.outside.setdefault(leaf, weakref.WeakSet()).update(outside(storage))
            self.pairs.update((leaf, other) for other, memory in found[position + 1 :] if may_be_one(storage, memory))
        return len(self.pairs) + sum(map(len, self.outside.values())) != before

    def keep(self, cell: int, leaves: Sequence[Tracer]) -> None:
        for k, leaf in enumerate(leaves):
            storage = array_storage(leaf)
            if storage is not None:
                self.now[cell, k] = weakref.ref(storage)

    def link(self, names: Sequence[str]) -> None:
        """Link the memory that stands for the carried arrays now."""
        here = {leaf: storage for leaf, reference in self.now.items() if (storage := reference()) is not None}
        self.now.clear()
        for leaf, storage in here.items():
            for other in self.outside.get(leaf, ()):
                link(storage, other, names[leaf[0]])
        for one, other_leaf in self.pairs:
            if one in here and other_leaf in here:
                link(here[one], here[other_leaf], names[one[0]])
