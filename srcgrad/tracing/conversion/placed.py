"""Lists of which each trip of a loop assigns one item, where the number of the trip says which: ``states[t] = h``.

What a trip assigns is a row of a column, as what it appends is (`appending`): behind the loop the list has the rows
in the places that were assigned, and elsewhere what it had. So the items may have been None before, or anything. A
trip may read what trips before it have assigned, out of an array that stands for the list as in `filled`, and what it
has assigned itself. Where it is not sure that an item was there, or that none which is read is changed in place, the
loop is traced as if this were not known.

A list to which each trip appends one array is such a list, if the trips read it: behind the items that it has before
the loop each trip assigns the next place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Value, literal, zeros
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.affine import ZERO, Affine, affine_of
from srcgrad.tracing.conversion.aliases import TRUTH, array_storage, link
from srcgrad.tracing.conversion.guarded import Held, is_spoken_for, items_in
from srcgrad.tracing.conversion.places import of_index
from srcgrad.tracing.conversion.state import Kind, Passing, join_kinds, kind_of, value_as
from srcgrad.tracing.rows import row, source_of
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import CURRENT, Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value

FEW: Final = 16
"""So many items that are traced are written into an array of numbers; where there are more, all are stacked."""
OTHERWISE: Final = "items of a list are assigned or read in a loop in an order that is not known"


class Places(Passing):
    """A loop that is being traced assigns an item of a list in each trip; ``kind``: of what kind those are.

    ``grows``: whether it appends them.
    """

    def __init__(self, owner: Any, items: list[Any], kind: Kind, grows: bool = False) -> None:
        super().__init__()
        self.owner, self.items, self.kind, self.grows = owner, items, kind, grows


class Assigned(NamedTuple):
    """What a trip assigns, and where."""

    index: Any
    place: Affine
    item: Tracer


class Read(NamedTuple):
    """What a trip reads that it has not assigned."""

    place: Affine
    storage: Storage


class Placed:
    """One list, while a loop is traced of which each trip assigns one of its items."""

    def __init__(self, items: list[Any], kind: Kind, grows: bool = False) -> None:
        self.items, self.kind = items, kind
        self.each = int(grows)
        """As of `Filled`: how many items a trip appends."""
        self.owner: Any = None
        """The loop that is being traced."""
        self.trace: Trace | None = None
        """The trip."""
        self.kept: list[Any] = []
        """What it holds before the loop, and None for what is appended."""
        self.size = 0
        """How many of these are items."""
        self.shown = 0
        """How many items the list seems to have while the loop is traced: one at least, which tells of this."""
        self.before: Any = 0
        """How many there are where a trip begins."""
        self.room: Tracer | None = None
        """The array that stands for the list, where a trip reads what others have assigned."""
        self.held: Storage | None = None
        """Linked with what was read: it is not to be changed in place."""
        self.assigned: Assigned | None = None
        self.reads: list[Read] = []
        self.rows: Tracer | None = None
        """Behind the loop: what the trips have assigned, in the order of the places."""

    def open(self, owner: Any) -> None:
        self.owner, self.kept, self.room = owner, list(self.items), None
        self.size = len(self.kept)
        self.kept += [None] * (self.each * (owner.trips or 0))
        self.held = Storage(current_trace(), literal(True, TRUTH))
        current_trace().entangled.append(self.held)
        self.shown = max(1, self.size)
        self.items[:] = [Held(self, k) for k in range(self.shown)]

    def begin(self, index: Value | None) -> None:
        """A trip begins."""
        from srcgrad.tracing.conversion.items import index_of  # which is written with this module

        self.trace, self.assigned, self.reads, self.before = current_trace(), None, [], self.size
        if self.each:
            assert index is not None
            self.before = self.before + index_of(index, self.owner.trips)

    def end(self) -> None:
        """A trip ends.

        Raises:
            Refused: it has changed the list in another way, or reads what may not be there.
        """
        self.take()
        own = [type(x) is Held and x.filled is self and x.place == k for k, x in enumerate(self.items)]
        if len(own) != self.shown or not all(own) or self.assigned is None:
            raise Refused(OTHERWISE)
        for read in self.reads:
            self.require_there(read.place)
        if self.room is not None:
            self.room[self.assigned.index] = self.assigned.item

    def take(self) -> None:
        """Assign what was appended to the list."""
        new = self.items[self.shown :]
        if not new:
            return
        del self.items[self.shown :]
        if len(new) > 1 or self.assigned is not None or not self.each:
            raise Refused("a trip of a loop appends several arrays to a list that it reads")
        self[self.before] = new[0]

    def count(self) -> Any:
        self.take()
        return self.before + (self.each if self.assigned is not None else 0)

    # --- items ---------------------------------------------------------------------------------
    def __setitem__(self, index: Any, value: Any) -> None:
        self.take()
        kind, place = kind_of(value), self.place(index)
        here = current_trace() is self.trace and moves(place, current_trace())
        if not here or kind is None or not isinstance(value, Tracer):
            raise Refused(OTHERWISE)
        if self.assigned is not None and self.assigned.place != place:
            raise Refused("a trip of a loop assigns several items of a list of arrays")
        if kind != self.kind:
            both = join_kinds("[k]", self.kind, kind)
            if not isinstance(both, Kind) or not both.scalar or not kind.scalar or both == self.kind:
                raise Refused("items of different kinds are assigned to a list in a loop")
            raise Places(self.owner, self.items, both, bool(self.each))
        if not value.scalar and (value.storage.doubt is not None or not value.in_c_order()):
            raise Refused("an array that is assigned to an item of a list in a loop is not laid out in C order")
        self.assigned = Assigned(index, place, value)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return items_in(self, index)
        if self.each:
            index = from_end(index, self.count())
        place = self.place(index)
        if self.assigned is not None:
            distance = place.plus(self.assigned.place, -1)
            if not distance.terms and not distance.constant:
                return self.assigned.item
            if distance.least() <= 0 <= distance.most():
                raise Refused(OTHERWISE)
        if self.room is None:
            assert self.owner is not None
            self.room = self.owner.before(lambda: array_of(self.kept, self.kind))
        found = from_value(self.room[index].copy().read(), self.kind.scalar, self.kind.weak)
        self.reads.append(Read(place, found.storage))
        found.storage.decided = True  # by `is` alone could it be told from the item
        if not self.kind.scalar:
            assert self.held is not None
            link(found.storage, self.held, "an item of a list", None)
        return found

    def place(self, index: Any) -> Affine:
        """A place from the beginning of the list, which surely is one."""
        number = None
        if isinstance(index, (int, np.integer)) or (isinstance(index, Tracer) and index.scalar):
            number = affine_of(index)
        if number is None or number.least() < 0 or number.most() >= len(self.kept):
            raise Refused(OTHERWISE)
        return number

    def require_there(self, place: Affine) -> None:
        """Refuse a place that is read where neither a trip before nor what is before the loop surely has an item."""
        assert self.assigned is not None
        there = [self.is_there(k) for k in range(len(self.kept))]
        if all(there[place.least() : place.most() + 1]):
            return
        own = self.assigned.place
        (step,) = own.terms.values()
        first = self.place_in(0)
        while 0 <= first - step < len(there) and there[first - step]:
            first -= step  # what is there before the loop, next to the first place that is assigned
        since, until = place.plus(Affine({}, first), -1), own.plus(place, -1)
        if step < 0:
            since, until = ZERO.plus(since, -1), ZERO.plus(until, -1)
        if since.least() < 0 or until.least() < 1:
            raise Refused("an item of a list is read in a loop that may not be there yet")

    def is_there(self, k: int) -> bool:
        """Whether the list had an item of the kind at a place before the loop."""
        return is_of(self.kind, self.kept[k])

    def place_in(self, trip: int) -> int:
        """The place that a trip assigns."""
        assert self.assigned is not None
        (step,) = self.assigned.place.terms.values()
        return self.assigned.place.constant + step * trip

    # --- behind the trips ------------------------------------------------------------------------
    def require_unknown(self) -> None:
        """Refuse numbers that are known in Python, and what may be changed while the array stands for the list."""
        assert self.assigned is not None
        value = self.assigned.item.read()
        if isinstance(value, Literal) or value in of_index(current_trace(), self.owner.trip.index):
            raise Refused("numbers that are known are assigned to items of a list in a loop")
        kept = {array_storage(x) for x in self.kept} if self.reads else set()
        if any(storage in kept for storage in self.owner.storages):
            raise Refused("an item of a list is changed in place in a loop that reads it")

    def owns(self, leaf: Tracer, trip: Trace) -> bool:
        return leaf.storage.trace is trip

    def ends(self, trips: int) -> tuple[int, int]:
        """The rows of what the first trip assigns, and of what the last does."""
        first, last = self.place_in(0), self.place_in(trips - 1)
        return first - min(first, last), last - min(first, last)

    def in_order(self, column: Value, trips: int) -> Value:
        """What the loop leaves, as the rows from the first place that is assigned to the last."""
        low, high = sorted((self.place_in(0), self.place_in(trips - 1)))
        rows: Any = from_value(column)
        if self.room is not None:
            return as_tracer(rows[low : high + 1]).read()
        return as_tracer(rows[:: 1 if self.place_in(0) == low else -1]).read()

    def item_read(self, storage: Storage, trips: int) -> Any:
        """What a variable holds behind the loop that holds what a trip has read; None if it holds nothing such.

        Raises:
            Refused: it is not known which item.
        """
        read = next((read for read in self.reads if read.storage is storage), None)
        if read is None or self.kind.scalar:
            return None
        assert self.assigned is not None and self.rows is not None and self.trace is not None
        step = factor(read.place, self.trace)
        if len(read.place.terms) > (step != 0):
            raise Refused("an item of a list that a loop assigns is one of several behind it")
        place = read.place.constant + step * (trips - 1)
        low, last = min(self.place_in(0), self.place_in(trips - 1)), self.place_in(trips - 1)
        if place != last and low <= place < low + trips:
            return row(self.rows, place - low, False, False)
        if not isinstance(self.kept[place], Tracer):
            raise Refused("an item that a list has before a loop is held behind it")
        return self.kept[place]

    def restore(self) -> None:
        self.items[:] = self.kept[: self.size]
        self.let_go()

    def leave(self) -> None:
        """Give the list what the trips have assigned."""
        assert self.rows is not None
        self.items[:] = self.kept[: self.size]
        count, places = len(self.rows), self.owner.trips
        low = min(self.place_in(0), self.place_in(places - 1))
        self.items[low : low + count] = [row(self.rows, k, self.kind.scalar, self.kind.weak) for k in range(count)]
        self.let_go()
        self.assigned, self.reads, self.rows = None, [], None

    def let_go(self) -> None:
        entangled = self.owner.home.entangled
        entangled[:] = [storage for storage in entangled if storage is not self.held]
        self.held = None


def moves(place: Affine, trace: Trace) -> bool:
    """Whether a place is another one in each trip, one more or one less."""
    return len(place.terms) == 1 and abs(factor(place, trace)) == 1


def factor(place: Affine, trace: Trace) -> int:
    """How much a place moves from trip to trip."""
    counter: Affine | None = trace.counter
    return 0 if counter is None else sum(place.terms.get(x, 0) for x in counter.terms)


def is_of(kind: Kind, x: Any) -> bool:
    """Whether something may be an item of a list of this kind."""
    found = kind_of(x)
    return found is not None and (found == kind or (kind.scalar and join_kinds("[k]", kind, found) == kind))


def array_of(items: Sequence[Any], kind: Kind) -> Tracer:
    """New memory that holds the items of a kind, and zeros for others."""
    size = next((k for k, item in enumerate(items) if item is None), len(items))
    source = source_of(items[:size])
    if source is not None and is_of(kind, items[0]) and all(item is None for item in items[size:]):
        if size == len(items):
            return from_value(source.read())
        room = zeros(ArrayType(source.dtype, (len(items) - size, *source.shape[1:])))
        whole: Any = np.concatenate([source, from_value(room)])
        return from_value(whole.read())
    there = dict.fromkeys(k for k, item in enumerate(items) if is_of(kind, item))
    traced = [k for k in there if isinstance(items[k], Tracer)]
    if len(traced) > FEW:
        parts = [from_value(value_as(items[k] if k in there else None, kind)) for k in range(len(items))]
        stacked: Any = np.stack(parts)
        return from_value(stacked.read())
    numbers = np.zeros((len(items), *kind.type.static_shape), kind.type.dtype)
    for k in there:
        if k not in traced:
            numbers[k] = items[k]
    found = from_value(current_trace().constant(numbers))
    for k in traced:
        found[k] = items[k]
    return found


def put_in_place(items: list[Any], index: Any, value: Any) -> None:
    """Before an item is assigned at a place that is not known: let a column stand for what the trips assign, if it may.

    Raises:
        Places: it may; the loop is to be traced again.
    """
    kind, trace = kind_of(value), CURRENT.get()
    number = affine_of(index) if index.scalar else None
    if trace is None or number is None or kind is None or not isinstance(value, Tracer):
        return
    if moves(number, trace) and may_place(trace.loop, items) and may_be_unknown(kind):
        raise Places(trace.loop, items, kind)


def read_in_place(items: list[Any]) -> None:
    """`put_in_place` where an item of a list with items of no one kind is read, before one is assigned."""
    kinds = [kind for kind in map(kind_of, {id(x): x for x in items}.values()) if kind is not None]
    kind = next(iter([kind for kind in kinds if not kind.scalar] or kinds), None)
    if kind is None or not may_be_unknown(kind):
        return
    for trace in current_trace().around():
        if trace.counter is not None and may_place(trace.loop, items):
            raise Places(trace.loop, items, kind)


def append_in_place(items: list[Any]) -> None:
    """Where a loop reads a list to which it appends arrays: let a column stand for what the trips append, if it may.

    Raises:
        Places: it may; the loop is to be traced again.
    """
    for trace in current_trace().around():
        kept = None if trace.loop is None else [*(trace.loop.appending.kept_of(items) or ()), *items]
        kind = next((kind_of(x) for x in kept or () if type(x) is not Held), None)
        if kind is not None and not kind.scalar and may_place(trace.loop, items):
            raise Places(trace.loop, items, kind, True)


def from_end(index: Any, count: Any) -> Any:
    """A place from the beginning, where one from the end surely is meant."""
    whole = isinstance(index, (int, np.integer)) or (isinstance(index, Tracer) and index.scalar)
    number = affine_of(index) if whole else None
    return index + count if number is not None and number.most() < 0 else index


def may_place(loop: Any, items: list[Any]) -> bool:
    """Whether a column may stand for what a loop assigns to a list."""
    return (
        loop is not None
        and loop.trips is not None
        and not is_spoken_for(items)
        and any(x is items for x in loop.state.containers)
        and all(x is not items for x in loop.refused)
    )


def may_be_unknown(kind: Kind) -> bool:
    """Whether items of a kind are arrays, or numbers that Python need not know."""
    return not kind.scalar or kind.type.dtype.kind in "fc"
