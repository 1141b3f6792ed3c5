"""The results of two blocks, and the memory that they share on one path or on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from srcgrad.ir.core import Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import BOOL, ArrayType
from srcgrad.tracing.conversion.aliases import Way, Ways, array_storage, between, either, link, outlasting
from srcgrad.tracing.conversion.state import Kind
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import current_trace

SIDES: Final = ("one", "other")
"""The two blocks, as the attributes of a slot."""


class Slot:
    """A result of the two blocks: the objects they give, and the kind that holds both."""

    def __init__(self, name: str, one: Any, other: Any, kind: Kind) -> None:
        self.name, self.one, self.other, self.kind = name, one, other, kind
        self.result: Any = None
        self.flag: Slot | None = None
        """Whether the variable is bound, if it may be unbound or None on a path of a condition inside."""
        self.optional = False
        """Whether it is None where it has no value."""


class Share:
    """Memory that a result and another memory are on one path or both, as the same view."""

    def __init__(self, slot: Slot, other: Slot | Storage, way: Way) -> None:
        self.slot, self.other, self.way = slot, other, way
        self.ways: dict[str, list[Way]] = {}

    @property
    def asked(self) -> bool:
        """Whether more than the condition decides."""
        return any(way.predicate is not None for ways in self.ways.values() for way in ways)

    def predicate(self, side: str) -> Value:
        """Whether it is so at the end of a block, which is the current trace."""
        ways = self.ways.get(side)
        return either(ways) if ways else literal(False, ArrayType(BOOL))


class Shares:
    """The memory that the results of two blocks share."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Share] = {}
        self.unknown: list[tuple[Slot, Slot | Storage]] = []

    def add(self, slot: Slot, other: Slot | Storage, side: str, ways: Ways) -> None:
        if ways is None:
            self.unknown.append((slot, other))
            return
        for way in ways:
            key = (slot, other, way.chain, way.view)
            self.known.setdefault(key, Share(slot, other, way)).ways.setdefault(side, []).append(way)

    def asked(self) -> list[Share]:
        """Those that need results of their own to tell where they are."""
        return [share for share in self.known.values() if share.asked]

    def link(self, condition: Value, answers: Sequence[Value]) -> None:
        """Link the results. ``answers``: the results that tell where those of `asked` are so."""
        given = iter(answers)
        trace = current_trace()
        for share in self.known.values():
            predicate: Value | None = None
            if share.asked:
                predicate = next(given)
            elif len(share.ways) == 1:
                predicate = bound_where(condition, SIDES[0] in share.ways)
            way = share.way._replace(predicate=predicate, home=trace)
            link(share.slot.result.storage, memory_of(share.other), share.slot.name, (way,))
        for slot, other in self.unknown:
            link(slot.result.storage, memory_of(other), slot.name, None)


def memory_of(other: Slot | Storage) -> Storage:
    if isinstance(other, Storage):
        return other
    found: Storage = other.result.storage
    return found


def shares_of(slots: Sequence[Slot]) -> Shares:
    """Which results share memory on one of the paths, with each other or with what is outside."""
    arrays = [slot for slot in slots if not slot.kind.scalar]
    found = Shares()
    for side in SIDES:
        here = [slot for slot in arrays if array_storage(getattr(slot, side)) is not None]
        for position, slot in enumerate(here):
            x = getattr(slot, side)
            for storage, ways in outlasting(x):
                found.add(slot, storage, side, ways)
            for later in here[position + 1 :]:
                found.add(slot, later, side, between(x, getattr(later, side)))
    return found


def bound_where(condition: Value, holds: bool) -> Value:
    if holds:
        return condition
    return current_trace().emit(REGISTRY["logical_not"], [condition])
