"""Lists of numbers whose items a loop assigns, ``x[i] = v``, or to which it appends and whose items it reads.

While the loop is traced, an array stands for such a list: a trip writes one element of it, and those that are appended
are behind the others, as many in each trip. In the list itself are `Held` items, so that what knows nothing of this is
refused, and the loop unrolled. Afterwards the list has the rows of the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Literal, Value, zeros
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.affine import affine_of
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.guarded import Grows, Guard, Held, Pops, is_spoken_for, items_in
from srcgrad.tracing.conversion.places import of_index
from srcgrad.tracing.conversion.state import Kind, Passing, Snapshot, join_kinds, kind_of
from srcgrad.tracing.rows import row, source_of
from srcgrad.tracing.trace import CURRENT, Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value

SHORT: Final = 8
"""Lists of so many items are carried item by item: numbers in registers."""
FEW: Final = 16
"""So many items that are traced are written into an array of numbers; where there are more, all are stacked."""


class Fills(Passing):
    """A loop that is being traced assigns an item of a list at a place that is not known, or appends some to it.

    ``kind``: of what kind its items are from now on; ``each``: how many a trip appends.
    """

    def __init__(self, owner: Any, items: list[Any], kind: Kind, each: int = 0) -> None:
        super().__init__()
        self.owner, self.items, self.kind, self.each = owner, items, kind, each


class Filled:
    """One list, and the array that stands for it while a loop is traced."""

    def __init__(self, items: list[Any], kind: Kind, each: int, trips: int) -> None:
        """``each``: how many items each of the ``trips`` appends."""
        self.items, self.kind, self.each, self.trips = items, kind, each, trips
        self.owner: Any = None
        """The loop that is being traced."""
        self.trace: Trace | None = None
        """The trip."""
        self.kept: list[Any] = []
        self.shown = 0
        """How many items the list has where a trip begins: one at least, which says that this stands for it."""
        self.before: Any = 0
        """How many items there are where a trip begins."""
        self.appended = 0
        """How many the trip has appended so far."""
        self.index: Value | None = None
        """The number of the trip."""
        self.values: list[Value] = []
        """What the trip has appended so far."""

    def open(self, owner: Any) -> None:
        self.owner, self.kept = owner, list(self.items)
        self.array = array_of(self.kept, self.kind.type.dtype)
        if self.each:
            room = from_value(zeros(ArrayType(self.array.dtype, (self.each * self.trips,))))
            whole: Any = np.concatenate([self.array, room])
            self.array = from_value(whole.read())
        self.shown = max(1, len(self.kept))
        self.items[:] = [Held(self, k) for k in range(self.shown)]

    def begin(self, index: Value | None) -> None:
        """A trip begins."""
        from srcgrad.tracing.conversion.items import index_of  # which is written with this module

        self.trace, self.appended, self.before = current_trace(), 0, len(self.kept)
        self.index, self.values = index, []
        if self.each:
            assert index is not None
            self.before = self.before + self.each * index_of(index, self.trips)

    def end(self) -> None:
        """A trip ends.

        Raises:
            Refused: it has changed the list in another way.
            Fills: it appends another number of items than was thought.
        """
        self.take()
        own = [type(x) is Held and x.filled is self and x.place == k for k, x in enumerate(self.items)]
        if len(own) != self.shown or not all(own):
            raise Refused("a loop that assigns items of a list changes it in another way too")
        if self.appended != self.each:
            raise Fills(self.owner, self.items, self.kind, self.appended)

    def require_unknown(self) -> None:
        """Refuse a trip that has appended nothing but what is known in Python, and would not be any longer."""
        if self.values:
            known = of_index(current_trace(), self.index)
            if all(isinstance(value, Literal) or value in known for value in self.values):
                raise Refused("numbers that are known are appended to a list in a loop")

    def restore(self) -> None:
        self.items[:] = self.kept

    def leave(self) -> None:
        """Give the list what the loop has left in the array."""
        self.items[:] = [row(self.array, k, True, self.kind.weak) for k in range(len(self.array))]

    def take(self) -> None:
        """Write what was appended to the list into the array."""
        new = self.items[self.shown :]
        if not new:
            return
        if CURRENT.get() is not self.trace:
            raise Refused("a list gets another size in a block or in a loop inside of a loop")
        del self.items[self.shown :]
        for item in new:
            place = self.before + self.appended
            self.require_kind(item)
            self.appended += 1
            if self.appended <= self.each:
                self.array[place] = item
                self.values.append(as_tracer(item).read())

    def count(self) -> Any:
        """How many items there are: a traced number where each trip appends some."""
        self.take()
        return self.before + self.appended

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return items_in(self, index)
        return from_value(self.array[self.place(index)].copy().read(), True, self.kind.weak)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.require_kind(value)
        self.array[self.place(index)] = value

    def require_kind(self, value: Any) -> None:
        kind = joined(self.kind, kind_of(value))
        if kind != self.kind:
            raise Fills(self.owner, self.items, kind, self.each)

    def place(self, index: Any) -> Any:
        """An index as one of a list, for which truth values are numbers."""
        self.take()
        if isinstance(index, (int, np.integer, np.bool_)):
            found: Any = int(index)
        elif isinstance(index, Tracer) and index.dtype.kind in "iub" and index.size == 1:
            found = index if index.scalar and index.dtype == np.int64 else index.astype(np.int64).reshape(())
        else:
            raise Refused("a list is indexed by more than a number in a loop that assigns its items")
        return self.inside(found) if self.each else found

    def inside(self, index: Any) -> Any:
        """A place in a list that grows, of whose array the end is not filled yet."""
        count = self.before + self.appended
        number = affine_of(index)
        if number is None or number.least() < 0:
            below = number is not None and number.most() < 0
            index = index + count if below else np.where(index < 0, index + count, index)[()]
        number, rest = affine_of(index), affine_of(count - 1 - index)
        if number is None or rest is None or min(number.least(), rest.least()) < 0:
            emit_check(np.logical_and(index >= 0, index < count), "IndexError", "list index out of range")
        return index


def array_of(items: list[Any], dtype: Any) -> Tracer:
    """New memory that holds numbers."""
    source = source_of(items)
    if source is not None:
        return from_value(source.astype(dtype).read())
    traced = [k for k, item in enumerate(items) if isinstance(item, Tracer)]
    if len(traced) > FEW:
        stacked: Any = np.stack([as_tracer(item).astype(dtype) for item in items])
        return from_value(stacked.read())
    numbers = np.array([0 if isinstance(item, Tracer) else item for item in items], dtype)
    found = from_value(current_trace().constant(numbers))
    for k in traced:
        found[k] = items[k]
    return found


def joined(one: Kind, other: Kind | None) -> Kind:
    """The kind of items that are of both.

    Raises:
        Refused: there is none, or it is one of numbers that Python knows.
    """
    found = "a list" if other is None else join_kinds("[k]", one, other)
    if isinstance(found, str) or not found.scalar or found.type.shape:
        raise Refused("items of different kinds are assigned to a list in a loop")
    return found


def filled_of(container: Any) -> Filled | Guard | None:
    """What stands for a list in the loop that is being traced, if anything does.

    Raises:
        Refused: it is a copy of such a list.
    """
    if type(container) is not list or not container or type(container[0]) is not Held:
        return None
    found: Filled | Guard = container[0].filled
    if found.items is not container:
        raise Refused("a list of which a loop assigns items is copied in it")
    return found


def require_fixed(container: Any) -> None:
    """Refuse what asks for all items of a list that grows in the loop that is being traced."""
    found = filled_of(container)
    if found is not None and found.each:
        raise Refused("a list is read or changed as a whole in a loop that appends to it")


def fill(items: list[Any], value: Any) -> None:
    """Before an item is assigned at a place that is not known: let an array stand for the list, if it may.

    Raises:
        Fills: it may; the outermost loop that has the list is to be traced again.
    """
    owner, trace = None, CURRENT.get()
    while trace is not None:
        if trace.loop is not None and any(x is items for x in trace.loop.state.containers):
            owner = trace.loop
        trace = trace.parent
    if owner is None or len(items) <= SHORT:
        return
    found = kind_of_all([value, *items])
    if found is not None:
        raise Fills(owner, items, found)


def read_beyond(items: list[Any]) -> None:
    """Where a trip reads places of a list that it has not got yet: let an array stand for it, if it may grow.

    Raises:
        Fills: it may; the loop is to be traced again.
    """
    trace = CURRENT.get()
    loop = None if trace is None else trace.loop
    if loop is not None and loop.trips is not None and any(x is items for x in loop.state.containers):
        found = kind_of_all(items) if items else None
        if found is not None:
            raise Fills(loop, items, found, 1)


def kind_of_all(items: Sequence[Any]) -> Kind | None:
    """The kind of numbers that all items are; None where there is none, or where Python may know them: integers.

    An array without axes is no number: other variables may hold it too.
    """
    kinds = [kind_of(item) for item in {id(item): item for item in items}.values()]
    found = kinds[0]
    for kind in kinds:
        both = "" if found is None or kind is None else join_kinds("[k]", found, kind)
        found = both if isinstance(both, Kind) else None
    if (
        found is None
        or found.type.dtype.kind not in "fc"
        or not all(kind is not None and kind.scalar for kind in kinds)
    ):
        return None
    return found


def growing(loop: Any, before: Snapshot, after: Snapshot) -> None:
    """Let an array stand for a list to which a trip has appended numbers, and columns for what others get.

    And for a list from which it has taken items.

    Raises:
        Fills, Grows, Pops: they may; the loop is to be traced again.
    """
    each = zip(loop.state.containers, before.elements, after.elements, strict=True)
    for container, old, new in each:
        count = len(new) - len(old)
        if type(container) is not list or count == 0 or is_spoken_for(old):
            continue
        if count < 0:
            raise Pops(loop, container, -count)
        found = None if old and type(old[0]) is Held else kind_of_all(new)
        if found is not None:
            raise Fills(loop, container, found, count)
        raise Grows(loop, container)
