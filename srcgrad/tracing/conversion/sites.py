"""What a loop appends to a list in some of its trips, where the number of the trip alone says in which.

``if k % 100 == 0: states.append(x)`` is an array of as many rows as there are such trips: the branch writes the next
row. Afterwards the list has the rows where Python would have appended them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.ir.core import Value, zeros
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.affine import ZERO, Affine, between
from srcgrad.tracing.conversion.aliases import array_storage
from srcgrad.tracing.conversion.appending import HELD, Appending, Item, item_of, numbered
from srcgrad.tracing.conversion.guarded import Grows, is_spoken_for
from srcgrad.tracing.conversion.identity import containers_kept_elsewhere
from srcgrad.tracing.conversion.places import traces_of_trip, trips_where
from srcgrad.tracing.conversion.state import Snapshot, State, entered, tree_of
from srcgrad.tracing.trace import Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value


class Site:
    """An ``append`` of one item in some of the trips of a loop."""

    def __init__(self, which: int, place: int, item: Item, trips: Any, trace: Trace) -> None:
        """``which``: the number of the list; ``place``: how many items a trip has appended to it before in any case."""
        self.which, self.place, self.item = which, place, item
        self.trips: Any = np.flatnonzero(trips)
        self.trace = trace
        """The block."""
        self.buffers: list[Tracer | None] = [None for _ in item.leaves]
        self.contents: list[Value | None] = [None for _ in item.leaves]
        """What the arrays held where they were appended."""

    def arrays(self) -> list[Tracer]:
        """What is traced in the item and no number, where any trip appends it."""
        leaves = self.item.leaves if len(self.trips) else []
        return [leaf for leaf in leaves if isinstance(leaf, Tracer) and not leaf.scalar]

    def place_of(self, index: Any, trips: int) -> Tracer:
        """The row that a trip writes: a quotient where the trips are evenly spaced, else out of a table."""
        count, first = len(self.trips), int(self.trips[0])
        steps = np.diff(self.trips)
        if count < 2 or (steps == steps[0]).all():
            found = (index - first) // int(steps[0] if count > 1 else 1)
        else:
            table = np.zeros(trips, np.int64)
            table[self.trips] = np.arange(count)
            rows: Any = as_tracer(table)
            found = rows[index]
        place = from_value(found.read(), scalar=True, weak=True)
        place.bound, place.affine = count, between(ZERO, Affine({}, count - 1))
        return place

    def owns(self, leaf: Tracer, trip: Trace) -> bool:
        """Whether an array is one of the block's or of the trip's, in which nothing was written behind the block."""
        if leaf.storage.trace is self.trace:
            return True
        place = next(k for k, x in enumerate(self.item.leaves) if x is leaf)
        return leaf.storage.trace is trip and self.contents[place] is trip.content(leaf.storage)

    def ends(self, trips: int) -> tuple[int | None, int | None]:
        """The rows of what the first trip appends, and of what the last does, if they do."""
        return 0 if self.trips[0] == 0 else None, len(self.trips) - 1 if self.trips[-1] == trips - 1 else None

    def write(self, appending: Appending, home: Trace, index: Callable[[], Any], trips: int) -> None:
        """Write the next row, in the block."""
        trace, count = current_trace(), len(self.trips)
        if not count:
            return
        place: Any = None
        for k, (leaf, kind) in enumerate(zip(self.item.leaves, self.item.kinds, strict=True)):
            if kind is None:
                continue
            key = (appending.buffered, k)
            known = appending.buffers.get(key)
            type = ArrayType(kind.type.dtype, (count, *kind.type.shape))
            if known is None or known.type != type:
                with entered(home):
                    known = appending.buffers[key] = from_value(zeros(type))
            if place is None:
                place = self.place_of(index(), trips)
            self.buffers[k] = known
            if leaf.storage.trace is not trace:
                self.contents[k] = leaf.storage.trace.content(leaf.storage)
                if trace.overlay.get(leaf.storage) is not None:
                    raise Refused(HELD)
            known[place] = leaf
        appending.buffered += 1


def take(state: State, before: Snapshot) -> None:
    """Take from the lists what a block has appended to them, if it does so in trips that are known.

    Raises:
        Grows: the loop around the block is to be traced again, as one that appends to a list.
    """
    trace = current_trace()
    grown = [
        container
        for container, structure in zip(state.containers, before.structures, strict=True)
        if type(container) is list and len(container) > structure
    ]
    traces = traces_of_trip(trace) if grown else []
    if len(traces) < 2 or traces[-1].loop.trips is None or any(around.attempts for around in traces):
        return
    loop, home = traces[-1].loop, traces[-1].parent
    trip = loop.trip
    where = trips_where(traces, trip.index, loop.trips)
    if where is None or home is None:
        return
    appending: Appending = loop.appending
    for container in grown:
        which = next((k for k, x in enumerate(appending.lists) if x is container), None)
        if which is None:
            if is_spoken_for(container) or not any(x is container for x in loop.state.containers):
                continue
            raise Grows(loop, container)
        if appending.start[which] and not appending.guarded[which]:
            raise Refused("the last one of what is appended to a list in some trips of a loop is read")
        first = before.structures[next(k for k, x in enumerate(state.containers) if x is container)]
        items = container[first:]
        del container[first:]
        if containers_kept_elsewhere(items):
            raise Refused("a list or an object that is appended to a list in a loop is held in another way too")
        made = []
        for x in items:
            item = numbered(item_of(x), traces, trip.index, loop.trips)
            made.append(Site(which, first, item, where, trace))
        del items
        require_own(made, traces[-1], state.capture())
        for site in made:
            site.write(appending, home, lambda: index_of(trace.reached(trip.index, traces[-1]), loop.trips), loop.trips)
        weave(appending, which, first, made)


def index_of(value: Value, trips: int) -> Tracer:
    index = from_value(value, scalar=True, weak=True)
    index.bound, index.affine = trips, between(ZERO, Affine({}, trips - 1))
    return index


def weave(appending: Appending, which: int, first: int, made: Sequence[Site]) -> None:
    """Put sites in order with those of blocks inside of this one, and of those before it."""
    before = [site for site in appending.sites if site.which == which and site.place >= first]
    others = [site for site in appending.sites if site not in before]
    for k, site in enumerate(made):
        others += [inner for inner in before if inner.place == first + k]
        others.append(site)
    others += [inner for inner in before if inner.place >= first + len(made)]
    for site in before:
        site.place = first
    appending.sites = others


def require_own(made: Sequence[Site], trip: Trace, after: Snapshot) -> None:
    """Refuse an array that was made in a block and that more than the list has afterwards."""
    trace = current_trace()
    arrays = [leaf for site in made for leaf in site.arrays()]
    kept = [array_storage(leaf) for cell in after.cells() for leaf in tree_of(cell)[0]]
    for leaf in arrays:
        storage = leaf.storage
        if storage.trace is not trip and (
            storage.trace is not trace or storage.aliases is not None or any(storage is x for x in kept)
        ):
            raise Refused(HELD)


def mark(trace: Trace) -> Callable[[], None]:
    """What takes back the sites that are found from here on."""
    traces = traces_of_trip(trace)
    if not traces:
        return lambda: None
    appending, before = traces[-1].loop.appending, [(site, site.place) for site in traces[-1].loop.appending.sites]

    def take_back() -> None:
        appending.sites = [site for site, _ in before]
        for site, place in before:
            site.place = place

    return take_back
