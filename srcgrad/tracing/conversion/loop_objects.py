"""Lists, records and objects that a loop hands on: each trip has its own, so that nothing else may hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from srcgrad.tracing.conversion.identity import (
    HINT,
    anything_kept_elsewhere,
    changed,
    containers_kept_elsewhere,
    kept_elsewhere,
    shared_among,
    watch_changes,
)
from srcgrad.tracing.conversion.state import Marker, Snapshot, State, contents, reachable, shown
from srcgrad.tracing.conversion.structures import constants_of
from srcgrad.tracing.trace import Refused

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.loop_regions import LoopRegion
    from srcgrad.tracing.conversion.trips import Trip


@contextmanager
def as_at(state: State, snapshot: Snapshot) -> Iterator[None]:
    """Variables and containers as they were at a moment, for a while."""
    now = state.capture()
    state.restore(snapshot)
    try:
        yield
    finally:
        state.restore(now)


def lose_shared(loop: LoopRegion, after: Snapshot) -> bool:
    """Give up variables with objects that something else holds before the loop or at the end of a trip; whether any."""
    carried = {cell: carry.tree for cell, carry in loop.carries.items() if carry.objects and carry.tree is not None}
    found = False
    for held, others in ((loop.start, after), (after, loop.start)) if carried else ():
        with as_at(loop.state, others):  # where no variable holds them
            for cell, tree in carried.items():
                if cell in loop.carries and anything_kept_elsewhere([held.cells()[cell]], constants_of(tree)):
                    found |= loop.lose(cell, after.cells()[cell])
    return found


def require_unread(loop: LoopRegion, trip: Trip, after: Snapshot) -> None:
    """Refuse a loop of known trips that keeps what a variable had before, which nothing is known of: a linked list.

    Raises:
        Refused: ``node = Node(x, node)``.
    """
    if not loop.lost or loop.trips is None:
        return
    cells, ends = trip.seeded.cells(), after.cells()
    unknown = {id(cells[cell]): loop.names[cell] for cell in loop.lost}
    moved = [x for cell, x in enumerate(ends) if x is not cells[cell]]
    for container in reachable(moved):
        moved += contents(container)[1]
    for x in moved:
        if id(x) in unknown:
            raise Refused(f"{shown(unknown[id(x)])} is kept by the next trip of a {loop.label}")


Held = list[tuple[Any, tuple[Any, list[Any]]]]
"""Lists, dicts and attributes of objects, with what they held at one moment."""


def records_of(loop: LoopRegion, snapshot: Snapshot) -> Held:
    """What the lists, records and objects hold that a loop hands on."""
    cells = snapshot.cells()
    values = [cells[cell] for cell, carry in loop.carries.items() if carry.tree is not None]
    return [(x, contents(x)) for x in reachable(values)] if values else []


def hands_on_one_for_several(loop: LoopRegion, trip: Trip, after: Snapshot) -> bool:
    """Whether a loop hands on one list or object by two names, of which each is one of its own then.

    Raises:
        Refused: a trip changes such a one.
    """
    carried = {cell: carry.tree for cell, carry in loop.carries.items() if carry.tree is not None}
    kept = set[int]().union(*map(constants_of, carried.values()))
    found = False
    for snapshot, others in ((loop.start, ()), (after, loop.state.containers)) if carried else ():
        cells = snapshot.cells()
        with as_at(loop.state, snapshot):
            shared = list(shared_among([(loop.names[cell], cells[cell]) for cell in carried], others, kept))
        for name, place in shared:
            found |= snapshot is after or loop.trips is None
            if is_changed(trip, after, place):
                raise Refused(
                    f"{shown(name)} and something else are one object from trip to trip of a {loop.label}, and changed",
                    hint=HINT,
                )
    return found


def is_changed(trip: Trip, after: Snapshot, place: int | None) -> bool:
    """Whether a trip changes what lists, records or objects hold that it has been handed, or a container of a state."""
    if any(is_another(contents(x), then) for x, then in trip.records):
        return True
    return place is not None and any(
        x is not y for x, y in zip(trip.seeded.elements[place], after.elements[place], strict=True)
    )


def is_another(now: tuple[Any, list[Any]], then: tuple[Any, list[Any]]) -> bool:
    return now[0] != then[0] or any(x is not y for x, y in zip(now[1], then[1], strict=True))


def watch(loop: LoopRegion) -> None:
    """Refuse later changes of what carries hold: some are one object, of which each has one of its own."""
    cells = loop.state.capture().cells()
    for cell, carry in loop.carries.items():
        if carry.tree is not None:
            watch_changes(reachable([cells[cell]]), carry.name)


def require_given_up(loop: LoopRegion) -> None:
    """Refuse a loop if the program still holds a list or an object that a variable held before it."""
    for cell, carry in loop.carries.items():
        holder = [loop.start.cells()[cell]]  # which alone may hold it
        if carry.tree is None or isinstance(holder[0], Marker):
            continue
        if carry.objects:
            kept = anything_kept_elsewhere(holder, constants_of(carry.tree))
        elif isinstance(holder[0], tuple):
            kept = containers_kept_elsewhere(holder)
        else:
            kept = kept_elsewhere(holder)
        if kept:
            raise changed(carry.name)
