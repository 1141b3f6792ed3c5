"""Regions of loops: what a trip hands to the next one is found by tracing the body until nothing new changes.

A loop's carries are the variables that a trip rebinds and the memory that it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from srcgrad.errors import SrcgradError
from srcgrad.ir.core import Value
from srcgrad.ir.types import INT64, ArrayType
from srcgrad.tracing.conversion.aliases import (
    Leaf,
    Shared,
    Sharing,
    Way,
    array_storage,
    in_progress,
    link,
)
from srcgrad.tracing.conversion.appending import Appending
from srcgrad.tracing.conversion.binding import flag_of, is_pending
from srcgrad.tracing.conversion.carries import Carry, PackedCarry, TextCarry, window_numbers
from srcgrad.tracing.conversion.filled import Filled, growing
from srcgrad.tracing.conversion.loop_objects import (
    as_at,
    hands_on_one_for_several,
    lose_shared,
    require_given_up,
    require_unread,
    watch,
)
from srcgrad.tracing.conversion.marks import around
from srcgrad.tracing.conversion.moving import Moving, take_up
from srcgrad.tracing.conversion.placed import Placed
from srcgrad.tracing.conversion.placed_texts import alphabet
from srcgrad.tracing.conversion.popped import Popped
from srcgrad.tracing.conversion.rounds import Beginning, Place, Scope, begin, keep, scope_of
from srcgrad.tracing.conversion.standing import ITEM, use_of
from srcgrad.tracing.conversion.state import (
    UNBOUND,
    UNSET,
    Kind,
    Marker,
    Raised,
    Snapshot,
    State,
    Undefined,
    entered,
    kind_beneath,
    kind_of,
    may_be_none,
    same_handle,
    shown,
    truth,
    value_as,
)
from srcgrad.tracing.conversion.structures import has_objects, objects_in, structure_of
from srcgrad.tracing.conversion.trips import Trip
from srcgrad.tracing.masks import is_selected
from srcgrad.tracing.refusing import require_told
from srcgrad.tracing.rows import row
from srcgrad.tracing.storage import Pending, Storage
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Tracer

ROUNDS: Final = 12
"""How often a body is traced at most until its carries are known."""
FAILURES: Final = (SrcgradError, TypeError, ValueError, IndexError, KeyError, AttributeError)
"""What tracing a body may raise where no region of it is known."""
NOTHING: Final[Mapping[Leaf, Tracer]] = {}
COUNT: Final = Kind(ArrayType(INT64), True, True)


class LoopRegion:
    """A loop becoming one operation."""

    def __init__(
        self, state: State, label: str, appending: Appending | None = None,
        arrays: Sequence[Filled | Placed | Popped] = (), trips: int | None = None, lenient: bool = True,
        place: Place | None = None, inner: Scope | None = None, refused: Sequence[list[Any]] = (),
    ) -> None:  # fmt: skip
        """``arrays``: what stands for the lists of which a trip assigns items; ``trips``: how many, where known.

        ``lenient``: whether a variable that is None before the loop may be None or have a value in each trip; where the
        first trips set it, it is better that they are written out. ``refused``: the lists that `Placed` is not for.
        """
        self.home, self.refused = current_trace(), refused
        self.state, self.lenient = state, lenient
        self.trips = trips
        self.place, self.inner = place, Scope() if inner is None else inner
        self.label = label
        self.arrays = arrays
        for filled in arrays:
            filled.open(self)
        self.appending = Appending(None) if appending is None else appending
        self.appending.placed = [placed for placed in arrays if isinstance(placed, Placed)]
        self.appending.open()
        state.containers += [x.pairs for x in self.appending.entries if all(x.pairs is not y for y in state.containers)]
        self.start = state.capture()
        self.names = state.cell_names(self.start)
        self.carries: dict[int, Carry] = {}
        self.storages: list[Storage] = []
        self.sharing = Sharing()
        self.trip: Trip | None = None
        """The one that is being traced."""
        self.maybe: list[int] = []
        """Carried variables that may be unbound or None from trip to trip."""
        self.optional: set[int] = set()
        """Those that may be None."""
        self.apart_again: set[int] = set()
        """Lists whose numbers turned out to be of several kinds: these are carried one by one."""
        self.lost: set[int] = set()
        """Variables that have no value from the second trip on: not to be read before they are set."""
        self.apart = True
        """Whether no two carried variables are one list or object."""
        self.written: list[tuple[Storage, Value]] = []
        """Memory that has its value after the loop, and the one before."""

    def before(self, make: Callable[[], Any]) -> Any:
        """Memory that is there before the loop."""
        with entered(self.home):
            return make()

    def settle(self, test: Callable[[], Any] | None, body: Callable[[Any], Any], rebinds: bool) -> Any:
        """Trace test and body until the carries are known; returns both trips, the predicate and the last values."""
        scope = scope_of(current_trace())
        found = self.settled_again(begin(self, scope), test, body, rebinds)
        if found is None:
            found = self.settled(test, body, rebinds)
        keep(self, scope)
        return found

    def settled_again(
        self, beginning: Beginning | None, test: Callable[[], Any] | None, body: Callable[[Any], Any], rebinds: bool
    ) -> Any:
        """`settle` with what the loop handed on when it was traced before; None where it is not that, or no more."""
        if beginning is None:
            return None
        trace = current_trace()
        wanted = [found.needed for found in around(trace)]
        try:
            found = self.settled(test, body, rebinds, False)
            if beginning.needed(self, *found[1:]):
                return found
            found[1].end()
            if found[0] is not None:
                found[0][0].end()
        except FAILURES:
            for around_it, needed in zip(around(trace), wanted, strict=True):
                around_it.needed = needed
        self.clear()
        scope_of(trace).vain.add(beginning.source)
        return None

    def settled(
        self, test: Callable[[], Any] | None, body: Callable[[Any], Any], rebinds: bool, moving: bool = True
    ) -> Any:
        """`settle` from what is known to be carried. ``moving``: whether the first trip may be one as no other."""
        said = len(current_trace().rolled)
        for number in range(ROUNDS):
            del current_trace().rolled[said:]
            asked = None if test is None else self.trace_test(test)
            trip = Trip(self, f"the body of a {self.label}", test is None)
            if asked is not None:
                trip.trace.tables += [asked[0].trace.overlay, asked[0].memory]
            seeded = trip.seed(self)
            wanted = [trace.needed for trace in around(trip.trace)]
            try:
                after = self.trace_body(trip, seeded, test if rebinds else None, body, trip.index)
                early = [*trip.read_early(), *(asked[0].read_early() if asked is not None else ())]
                self.maybe += [cell for cell in dict.fromkeys(early) if cell not in self.maybe]
                wider = self.widened(trip, seeded, after)
                if not wider and not early:
                    wider = lose_shared(self, after)
            except FAILURES:
                if number or not moving or self.trips is None or not self.moves_first(body):
                    raise
                for trace, needed in zip(around(trip.trace), wanted, strict=True):
                    trace.needed = needed
                continue
            if not wider and not early:
                require_unread(self, trip, after)
                self.apart = not hands_on_one_for_several(self, trip, after)
                return asked, trip, after
            trip.end()
            if asked is not None:
                asked[0].end()
        raise Refused(f"what a {self.label} hands from trip to trip does not settle")

    def clear(self) -> None:
        """Begin again with nothing carried."""
        self.appending.restore()
        self.appending.open()
        for found in (self.carries, self.storages, self.maybe, self.optional, self.lost):
            found.clear()
        self.sharing = Sharing()

    def trace_body(
        self, trip: Trip, seeded: Snapshot, test: Callable[[], Any] | None, body: Callable[[Any], Any], index: Any
    ) -> Snapshot:
        """Trace a trip; returns the values at its end. ``test``: one that binds names."""
        self.state.restore(seeded)
        with entered(trip.trace):
            self.trip = trip
            self.appending.begin()
            for filled in self.arrays:
                filled.begin(trip.index)
            try:
                if test is not None:
                    test()
                body(index)
            except Raised:
                raise Refused("every trip of a loop raises an error") from None
            if self.trips:
                self.appending.unnamed(self.state)
            self.appending.require_rows(self.state)
            self.appending.take(trip.trace, trip.index, self.trips)
            for filled in self.arrays:
                filled.end()
            after = self.state.capture()
            if after.structures != self.start.structures and self.trips is not None:
                growing(self, self.start, after)
        if after.structures != self.start.structures:
            raise Refused(
                f"a list, dict or set gets another size or other keys in a {self.label} with traced values",
                hint="fill an array of known size instead",
            )
        return after

    def moves_first(self, body: Callable[[Any], Any]) -> bool:
        """Whether the first trip, traced as no other one, makes an array longer or shorter.

        Where the length of what it meets is that of a slice between numbers of the loop, no trip could be traced with
        the length that the array has before the first.
        """
        if self.arrays:
            return False
        self.clear()
        trip = Trip(self, f"the first trip of a {self.label}", True)
        seeded = trip.seed(self)
        try:
            after = self.trace_body(trip, seeded, None, body, 0)
            return take_up(self.carries, self.names, seeded, after, self.trips)
        except FAILURES:
            return False
        finally:
            trip.end()
            self.appending.restore()
            self.appending.open()

    def trace_test(self, test: Callable[[], Any]) -> tuple[Trip, Value]:
        trip = Trip(self, "the test of a while", False)
        self.state.restore(trip.seed(self))
        with entered(trip.trace):
            answer = test()
            if isinstance(answer, Tracer):
                predicate = truth(answer)
            else:
                predicate = value_as(bool(answer), Kind(ArrayType(np.dtype(np.bool_)), True, False))
        if trip.trace.overlay != trip.memory:
            raise Refused("the test of a while changes an array")
        return trip, predicate

    def widened(self, trip: Trip, seeded: Snapshot, after: Snapshot) -> bool:
        """Take up what the trip changes and is not carried yet; whether there was something."""
        changed = False
        for storage in trip.trace.overlay:
            if storage not in trip.memory:
                self.storages.append(storage)
                changed = True
        if take_up(self.carries, self.names, seeded, after, self.trips):
            return True  # what else this trip has found is of arrays of one length
        for cell, (one, other) in enumerate(zip(seeded.cells(), after.cells(), strict=True)):
            carry = self.carries.get(cell)
            if carry is None:
                if not same_handle(one, other):
                    changed |= self.taken_up(cell, one, other)
                continue
            leaves, tree = structure_of(other, carry.same)
            if other is UNSET:
                continue
            if isinstance(other, (Marker, Undefined)):
                changed |= self.lose(cell, other)
                continue
            if cell in self.optional or other is None or any(map(may_be_none, leaves)):
                changed |= self.joined_optional(cell, carry, other)
                continue
            if isinstance(carry, PackedCarry):
                if not carry.holds(other):
                    self.apart_again.add(cell)
                    changed |= self.taken_up(cell, one, other)
                continue
            if not isinstance(carry, Moving) and (tree != carry.tree or len(leaves) != len(carry.kinds)):
                if carry.objects or has_objects(tree):
                    changed |= self.lose(cell, other)
                    continue
                raise Refused(f"{carry.name!r} changes its structure in a {self.label} with traced values")
            changed |= carry.joined(leaves) | self.may_be_unbound(cell, other)
        for cell in window_numbers(self.state.containers, seeded, self.carries):
            changed |= self.taken_up(cell, seeded.cells()[cell], after.cells()[cell])
        shared = self.sharing.note(self.shared(self.start))
        return self.sharing.note(self.shared(after)) or shared or changed

    def taken_up(self, cell: int, one: Any, other: Any) -> bool:
        """Carry a variable that a trip rebinds."""
        name = self.names[cell]
        if use_of(other) is ITEM:
            return False if isinstance(one, Marker) else self.lose(cell, other)
        if one is None or other is None or may_be_none(one) or may_be_none(other):
            kinds = [kind_beneath(x) for x in (one, other) if x is not None]
            if None not in kinds:
                return self.taken_up_optional(cell, one, other)
        texts = alphabet(one, other)
        if texts is not None:
            self.carries[cell] = TextCarry(name, texts)
            return True
        packed = None if cell in self.apart_again else PackedCarry.of(name, one, other)
        if packed is not None:
            self.carries[cell] = packed
            return True
        assert self.trip is not None
        source, at = (other, None) if isinstance(one, (Marker, Undefined)) else (one, self.trip.seeded)
        same = frozenset(objects_in(one, {}).keys() & objects_in(other, {}).keys())
        with nullcontext() if at is None or kind_beneath(one) is not None else as_at(self.state, at):
            leaves, tree = structure_of(source, same)
        kinds = [kind_of(leaf) for leaf in leaves]
        objects = has_objects(tree)
        if (
            isinstance(other, (Marker, Undefined))
            or isinstance(one, Undefined)
            or None in kinds
            or (objects and isinstance(one, Marker))
        ):
            if isinstance(one, (Marker, Undefined)):
                return False  # a variable of one trip: it has no value after the loop
            return self.lose(cell, other)
        self.carries[cell] = carry = Carry(name, tree, [kind for kind in kinds if kind is not None], same)
        for memory, leaf in zip(carry.memory, leaves, strict=True):
            memory.note_number(leaf)
        if not isinstance(one, Marker):
            others, other_tree = structure_of(other, same)
            if other_tree != tree or len(others) != len(leaves):
                if objects or has_objects(other_tree):
                    return self.lose(cell, other)
                raise Refused(f"{name!r} changes its structure in a {self.label} with traced values")
            if any(map(is_selected, others)):
                return self.lose(cell, other)  # mostly each trip makes its own
            carry.joined(others)
        self.may_be_unbound(cell, one)
        self.may_be_unbound(cell, other)
        return True

    def taken_up_optional(self, cell: int, one: Any, other: Any) -> bool:
        """Carry a variable that is None before the loop or after a trip."""
        name = self.names[cell]
        if one is None and not self.lenient:
            raise Refused(f"{shown(name)} is None before the first trip of a {self.label}")
        first = kind_beneath(other if one is None else one)
        assert first is not None
        self.carries[cell] = Carry(name, None, [first])
        for x in (one, other):
            self.joined_optional(cell, self.carries[cell], x)
        return True

    def joined_optional(self, cell: int, carry: Carry, other: Any) -> bool:
        """Widen a variable that may be None; whether that changed anything."""
        if isinstance(carry, TextCarry) or carry.tree is not None or (is_pending(other) and not may_be_none(other)):
            raise Refused(f"{shown(carry.name)} may be None in a {self.label} with traced values")
        if cell in self.maybe and cell not in self.optional:
            raise Refused(f"{shown(carry.name)} may be unbound or None in a {self.label} with traced values")
        changed = cell not in self.optional
        if changed:
            self.optional.add(cell)
            self.maybe.append(cell)
        return (other is not None and carry.joined([other])) or changed

    def unbound(self) -> list[int]:
        """The carried variables that are unbound before the loop, and that nothing is known of in a trip."""
        cells = self.start.cells()
        return [
            cell
            for cell, carry in self.carries.items()
            if cells[cell] is UNBOUND and carry.tree is None and cell not in self.maybe
        ]

    def may_be_unbound(self, cell: int, value: Any) -> bool:
        """Carry a flag besides the variable, if the value is one that is bound or not; whether that is new."""
        if not is_pending(value) or cell in self.maybe:
            return False
        self.maybe.append(cell)
        return True

    def lose(self, cell: int, other: Any) -> bool:
        """Give up a variable's value from trip to trip; reading it before it is set is refused."""
        name = self.names[cell]
        if name.startswith(("[", "_sg_result", "_sg_returned")):
            if self.label == "while":  # a loop of known trips is tried again behind its first one
                require_told(self.start.cells()[cell])
            raise Refused(
                f"{shown(name)} is another {type(other).__name__} in each trip of a {self.label} with traced values"
            )
        self.carries.pop(cell, None)
        self.maybe = [other for other in self.maybe if other != cell]
        if cell in self.lost:
            return False
        self.lost.add(cell)
        return True

    def undefined(self, cell: int) -> Undefined:
        return Undefined(
            self.names[cell], f"changes in a {self.label} with traced values in a way that has no one type"
        )

    def leaves(self, snapshot: Snapshot) -> dict[Leaf, Tracer]:
        """The arrays that are carried, at one moment."""
        cells = snapshot.cells()
        return {
            (cell, k): leaf
            for cell, carry in self.carries.items()
            if not isinstance(carry, Moving)
            for k, leaf in enumerate(structure_of(cells[cell], carry.same)[0])
            if array_storage(leaf) is not None
        }

    def shared(self, snapshot: Snapshot) -> list[Shared]:
        """The memory that the carried arrays share at one moment."""
        return self.sharing.shared(self.leaves(snapshot))

    def operands(self) -> list[Value]:
        """The carries' values at the start."""
        found = []
        cells = self.start.cells()
        with as_at(self.state, self.start):
            for cell, carry in self.carries.items():
                found += carry.values(cells[cell])
        trace = current_trace()
        found += [trace.content(storage) for storage in self.storages]
        found += self.sharing.values(self.shared(self.start))
        return [*found, *(flag_of(cells[cell]) for cell in self.maybe)]

    def results(self, trip: Trip, after: Snapshot) -> list[Value]:
        """The carries' values at the end of a trip."""
        cells = after.cells()
        shared = self.shared(after)
        with entered(trip.trace):
            found = []
            for cell, carry in self.carries.items():
                found += carry.values(cells[cell])
            found += [trip.trace.content(storage) for storage in self.storages]
            found += self.sharing.values(shared)
            return [*found, *(flag_of(cells[cell]) for cell in self.maybe)]

    def given(self, trip: Trip, after: Snapshot) -> dict[Storage, Leaf]:
        """The memory of carried arrays that a trip neither changes nor hands on.

        What is outside of the loop shares that of the first trip alone.
        """
        handed_on = {x for leaf, target, _ in self.shared(after) for x in (leaf, target)}
        starts, found = self.leaves(self.start), {}
        for leaf, x in self.leaves(trip.seeded).items():
            start = starts.get(leaf)
            kept = x.storage.value is trip.params[leaf[0]][leaf[1]]
            if leaf not in handed_on and kept and start is not None and start.type == x.type:
                found[x.storage] = leaf
        return found

    def unwritten(self, trip: Trip, after: Snapshot, storage: Storage) -> bool:
        """Whether no trip writes into memory, nor into what it may share memory with."""
        aliases = dict(storage.aliases or {})
        family = {storage, *aliases}
        if any(link.ways is None for link in aliases.values()) or not family.isdisjoint(self.storages):
            return False
        joined = (value for found in trip.trace.builder.operations if found.regions for value in found.results)
        if storage.value is not storage.made and storage.value not in {*joined, *trip.front()}:
            return False  # it is not as it was made, or a condition has left it
        ends = self.leaves(after)
        for leaf, x in self.leaves(trip.seeded).items():
            written = x.storage.value is not trip.params[leaf[0]][leaf[1]]
            if written and (x.storage in family or (leaf in ends and ends[leaf].storage in family)):
                return False
        return True

    def link_shared(self, arrays: Sequence[Tracer], after: Snapshot) -> None:
        """A write into rows that may share memory, or into what they may share it with, is to be refused."""
        trace, ends = current_trace(), self.leaves(after)
        for place, storage in self.appending.shared.items():
            column, family = arrays[place].storage, {storage, *(storage.aliases or ())}
            others = [x.storage for leaf, x in self.leaves(self.state.capture()).items()
                      if leaf in ends and ends[leaf].storage in family]  # fmt: skip
            trace.entangled.append(Storage(trace, column.value))
            for other in (*others, *(x for x in family if in_progress(x.trace)), trace.entangled[-1]):
                link(column, other, "an item of a list", None)
            column.decided = True

    def link_first(self, arrays: Sequence[Tracer]) -> None:
        """Note that what was before the loop is the first row of a column, where it was appended."""
        starts = self.leaves(self.start)
        for place, leaf in self.appending.first.items():
            top = self.appending.rows_at_ends(place, self.trips or 1)[0]
            if top is None:
                continue
            start, first = starts[leaf], row(arrays[place], top, False, False)
            way = Way(None, None, first.chain, True)
            link(start.storage, first.storage, self.names[leaf[0]], None if start.chain else (way,))
            first.storage.decided = start.storage.decided = True

    def shared_columns(self, trip: Trip, after: Snapshot) -> dict[Leaf, int]:
        """The carried arrays whose memory is that of what is appended last, and the places of that among the columns.

        Raises:
            Refused: the next trip writes into it, and so into what is in the list.
        """
        found = {}
        starts, ends = trip.seeded.cells(), after.cells()
        for cell, carry in self.carries.items():
            params = structure_of(starts[cell], carry.same)[0]
            for k, leaf in enumerate(structure_of(ends[cell], carry.same)[0]):
                place = self.appending.shared_with(leaf)
                if place is None:
                    continue
                if len(params) != len(carry.kinds):
                    raise Refused(f"{shown(carry.name)} is appended to a list and goes on to the next trip of a loop")
                if params[k].storage.value is not trip.params[cell][k]:
                    raise Refused(f"{shown(carry.name)} is appended to a list and changed in the next trip of a loop")
                found[cell, k] = place
        for place, leaf in list(self.appending.first.items()):
            if leaf in found:  # this trip has appended it too, under another name
                params = structure_of(starts[leaf[0]])[0]
                self.appending.shared[place] = params[leaf[1]].storage
                self.appending.shared[found[leaf]] = structure_of(ends[leaf[0]])[0][leaf[1]].storage
        return found

    def items_read(self, after: Snapshot, trips: int) -> dict[Leaf, Tracer]:
        """The carried arrays that are items of lists, which a trip has read."""
        found: dict[Leaf, Tracer] = {}
        for leaf, x in self.leaves(after).items() if self.appending.placed else ():
            for placed in self.appending.placed:
                item = placed.item_read(x.storage, trips)
                if item is not None:
                    if x.chain or leaf[0] in self.maybe:
                        raise Refused("a part of an item of a list goes on to the next trip of a loop")
                    found[leaf] = item
        return found

    def rows_written(self, carried: Sequence[Value]) -> list[Value]:
        """What the loop leaves in the memory of what some trips append."""
        first = sum(len(carry.kinds) for carry in self.carries.values())
        return [carried[first + self.storages.index(x.storage)] for x in self.appending.written()]

    def leave(
        self, values: Sequence[Value], ran: Value | None, after: Snapshot, appended: Mapping[Leaf, Tracer] = NOTHING
    ) -> None:
        """Give variables and memory their values after the loop. ``ran``: whether there was a trip, if not sure.

        ``appended``: the rows of what a list has got that carried arrays are.
        """
        self.give(values, ran, after, appended)
        require_given_up(self)  # where no variable here holds anything either
        if not self.apart:
            watch(self)

    def give(
        self, values: Sequence[Value], ran: Value | None, after: Snapshot, appended: Mapping[Leaf, Tracer]
    ) -> None:
        """Give variables and memory their values."""
        given = iter(values)
        cells = self.start.cells()
        ends = after.cells()
        for cell, carry in self.carries.items():
            unbound = cells[cell] is UNBOUND
            leaves = carry.handles([next(given) for _ in carry.kinds])
            if unbound and ran is not None:
                for handle in leaves:
                    handle.storage.pending = Pending(carry.name, ran)
            rows = [appended.get((cell, k)) for k in range(len(leaves))]
            for shared in rows if carry.tree is not None else ():
                if shared is not None:
                    shared.storage.decided = True  # by `is` alone could the last item be told from the variable
            cells[cell] = carry.build(
                [leaf if found is None else found for leaf, found in zip(leaves, rows, strict=True)]
            )
        for cell, (before, end) in enumerate(zip(self.start.cells(), ends, strict=True)):
            if cell in self.lost:
                cells[cell] = self.undefined(cell)
            elif cell not in self.carries and isinstance(before, (Marker, Undefined)) and end is not before:
                cells[cell] = Undefined(self.names[cell], f"is set in a {self.label} with traced values only")
        trace = current_trace()
        for storage in self.storages:
            self.written.append((storage, trace.content(storage)))
            trace.write(storage, next(given))
        left = self.state.rebuilt(self.start, cells)
        rest = list(given)
        flags, bound = rest[: len(rest) - len(self.maybe)], rest[len(rest) - len(self.maybe) :]
        for cell, flag in zip(self.maybe, bound, strict=True):
            cells[cell].storage.pending = Pending(self.names[cell], flag, cell in self.optional)
        own = {leaf: x for leaf, x in self.leaves(left).items() if leaf not in appended}  # rows are new memory
        self.sharing.link(self.names, own, flags)
        self.state.restore(left)

    def abandon(self) -> None:
        """Undo what tracing the loop did to variables and memory."""
        for storage, value in self.written:
            current_trace().write(storage, value)
        self.state.restore(self.start)
        self.appending.restore()
        for filled in self.arrays:
            filled.restore()
