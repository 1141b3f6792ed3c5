"""Lists that a loop does nothing to but append, and of which it reads the last item at most.

So ``states.append(h)`` in a long loop is a column of the loop that the trips fill, and the loop stays one. Its source
says whether that is all that a trip does with the variable; nothing but the variable may hold the list. Another
list that is found to grow, ``log["x"].append(h)``, holds a `Guard` meanwhile. What some trips append: `sites`.
"""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Value
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.conversion.aliases import Leaf
from srcgrad.tracing.conversion.appends import FRONT
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.conversion.classes import rebuilt
from srcgrad.tracing.conversion.entries import Entries, only_filled, pairs_of
from srcgrad.tracing.conversion.guarded import guard, require_guard
from srcgrad.tracing.conversion.identity import containers_kept_elsewhere, held
from srcgrad.tracing.conversion.marks import around
from srcgrad.tracing.conversion.objects import attributes_of
from srcgrad.tracing.conversion.places import by_trip, of_index
from srcgrad.tracing.conversion.state import Kind, State, Undefined, contents, kind_of, reachable, tree_of
from srcgrad.tracing.conversion.structures import constants_in, structure_of
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.rows import row, whole_of
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Refused, Trace, current_trace
from srcgrad.tracing.tracer import Tracer, from_value
from srcgrad.tracing.views import ReshapeView

MOST: Final = 16
"""Of so many arrays and numbers a trip may append at most: each is a column."""


CONSTANT: Final = (str, bytes, type, enum.Enum, types.FunctionType)
"""What the objects of all trips may have in common: a trip cannot make one of its numbers, but for functions inside."""
NUMBERS: Final = (bool, int, float, complex, np.generic)
HELD: Final = "an array that is appended to a list in a loop is held in another way too"


@call_rule(list.insert)
def insert(items: list[Any], index: Any, value: Any, /) -> None:
    """``items.insert(index, value)``: an ``append`` in a loop that does no more than to insert items at the front."""
    for trace in around(current_trace()):
        appending = trace.loop.appending if trace.loop is not None else None
        if appending is not None and any(appending.lists[which] is items for which in appending.fronts):
            items.append(value)
            return
    items.insert(index, value)


class Numbers:
    """A number of an item that Python knows, of each trip."""

    def __init__(self, numbers: Any, weak: bool) -> None:
        self.numbers, self.weak = numbers, weak

    def at(self, trip: int) -> Any:
        return self.numbers[trip].item() if self.weak else self.numbers[trip]


class Item(NamedTuple):
    """What one ``append`` of a trip adds: a container of leaves, or one; numbers that are known stand in it."""

    tree: TreeDef | None
    leaves: list[Any]
    kinds: list[Kind | None]
    rows: Kind | None = None
    """What the items of a list are that is the rows of the one leaf."""
    spread: bool = False
    """Whether these are what is appended, one by one, by a loop inside, and not their list."""


def items_of_trip(added: list[Any]) -> list[Item]:
    source = whole_of(added) if len(added) > 1 else None
    if source is not None:
        return [Item(None, [source], [kind_of(source)], kind_of(added[0]), True)]
    return [item_of(item) for item in added]


def item_of(x: Any) -> Item:
    source: Any = whole_of(x) if type(x) is list else None
    if type(x) is list and x and source is None and isinstance(x[0], Tracer) and x[0].scalar:
        turned: Any = whole_of(x[::-1])  # they were inserted at the front
        source = None if turned is None else from_value(turned[::-1].read())
    if source is not None:
        return Item(None, [source], [kind_of(source)], kind_of(x[0]))
    leaves, tree = structure_of(x)
    for constant in constants_in(tree):
        if not isinstance(constant, CONSTANT) or getattr(constant, "__closure__", None) is not None:
            raise Refused(f"a {type(constant).__name__} is appended to a list in a loop")
    kinds = [kind_of(leaf) if isinstance(leaf, Tracer) else None for leaf in leaves]
    for leaf, kind in zip(leaves, kinds, strict=True):
        if kind is None and not isinstance(leaf, (bool, int, float, complex, str, type(None))):
            raise Refused(f"a {type(leaf).__name__} is appended to a list in a loop")
    return Item(tree, leaves, kinds)


def numbered(item: Item, traces: Sequence[Trace], index: Value | None, trips: int | None) -> Item:
    """An item with the numbers that the index alone decides: Python knows them."""
    if index is None or trips is None:
        return item
    leaves, kinds = list(item.leaves), list(item.kinds)
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, Tracer) and leaf.scalar:
            numbers = by_trip(leaf.read(), traces, index, trips)
            if numbers is not None:
                leaves[k], kinds[k] = Numbers(numbers, leaf.weak), None
    return item._replace(leaves=leaves, kinds=kinds)


class Appending:
    """The lists of one loop: while a trip is traced they hold their last item, if it is read, or nothing."""

    def __init__(self, given: Callable[[], tuple[tuple[Any, bool | str | None], ...]] | None) -> None:
        self.lists: list[list[Any]] = []
        self.guarded: list[bool] = []
        """Which of them may be read by another name: a guard is in their place."""
        self.fronts: set[int] = set()
        """Which of them get items at their front: while the loop is traced they are appended."""
        self.kept: list[list[Any]] = []
        self.added: list[list[Item]] = []
        self.start: list[int] = []
        """How many items each has where a trip begins."""
        self.first: dict[int, Leaf] = {}
        """The columns whose first row is the memory that a variable has before the loop."""
        self.shared: dict[int, Storage] = {}
        """The columns whose rows may share memory: one trip may append what the trip before has."""
        self.sites: list[Any] = []
        """The `Site`s of a trip: what only some trips append."""
        self.placed: list[Any] = []
        """The `Placed` lists, of which each trip assigns an item: a column too, or memory that the trips write."""
        self.joined: dict[int, Tracer] = {}
        """The lists whose items are the rows of one array, of which each trip appends several."""
        self.buffers: dict[tuple[int, int], Tracer] = {}
        """The memory of their rows, which is there before the loop."""
        self.buffered = 0
        """How many of a trip have any."""
        self.containers = self.lists
        self.named: dict[int, tuple[int, int]] = {}
        """The variables that hold a list which a trip appends: to which one, and the place from its end."""
        self.rows: set[int] = set()
        """Which of them have a row of numbers as their last item, which the list alone holds."""
        self.given: dict[int, list[Any]] = {}
        """What these rows hold where a trip begins."""
        self.entries: list[Entries] = []
        """The dicts that get pairs, whose lists are among the others."""
        if given is None:
            return
        pairs = [pair for pair in given() if only_filled(*pair)]
        holder, last = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        del pairs
        for k, reads in enumerate(last):
            if held(holder, k) != 1 or (reads is None and pairs_of(holder[k]) is not None):  # by the variable
                continue
            if reads is None:
                self.entries.append(Entries(holder[k]))
            if reads == FRONT:
                self.fronts.add(len(self.lists))
            self.lists.append(holder[k] if reads is not None else self.entries[-1].pairs)
            self.guarded.append(False)
            self.start.append(1 if reads is True and holder[k] else 0)
            if self.start[-1] and has_row_alone(holder[k]):
                self.rows.add(len(self.lists) - 1)
        current_trace().states.add(self)  # which tells what the program holds from what this does

    def watch(self, items: list[Any]) -> None:
        """From now on take one more list for one that a trip appends to."""
        self.lists.append(items)
        self.guarded.append(True)
        self.start.append(1)

    def unwatch(self, items: list[Any]) -> None:
        """Leave a list to what else stands for it."""
        for which in [k for k, x in enumerate(self.lists) if x is items]:
            del self.lists[which], self.guarded[which], self.start[which]

    def kept_of(self, items: list[Any]) -> list[Any] | None:
        """What a list that is watched holds before the loop."""
        pairs = zip(self.lists, self.kept, self.guarded, strict=True)
        return next((kept for x, kept, guarded in pairs if x is items and guarded), None)

    def open(self) -> None:
        self.kept, self.buffers = [], {}
        for x, count, guarded in zip(self.lists, self.start, self.guarded, strict=True):
            self.kept.append(list(x))
            x[:] = x[-1:] if count else []
            if len(self.kept) - 1 in self.rows:
                x[:] = map(copied_row, x)
            if guarded:
                guard(x)
        for filled in self.entries:
            filled.open()

    def begin(self) -> None:
        """A trip begins."""
        self.sites, self.buffered, self.given = [], 0, {}
        for which, x in enumerate(self.lists):
            if which in self.rows:
                self.given[which] = numbers_of(x[0]) or []

    def unnamed(self, state: State) -> None:
        """Take the lists that a trip has appended from the variables that hold them too: ``row``, of ``rows``.

        A trip that has not made another one must not read them. Behind the loop they are what was appended last.
        """
        self.named = {}
        variables = list(state.get())
        held = [cell for cell, x in enumerate(variables) if type(x) in (list, dict) or attributes_of(x) is not None]
        for cell in held:
            for which, (x, count, guarded) in enumerate(zip(self.lists, self.start, self.guarded, strict=True)):
                first = 0 if which in self.given else count
                places = [k for k in range(first, len(x)) if x[k] is variables[cell]]
                if len(places) == 1 and not guarded and not any(site.which == which for site in self.sites):
                    self.named[cell] = which, places[0] - len(x)
        for cell in self.named:
            variables[cell] = Undefined(state.names[cell], "is what the trip before has appended to a list")
        if self.named:
            state.put(tuple(variables))

    def name(self, state: State) -> None:
        """Give the variables what was appended last."""
        variables = list(state.get())
        for cell, (which, place) in self.named.items():
            variables[cell] = self.lists[which][-place - 1 if which in self.fronts else place]
        if self.named:
            state.put(tuple(variables))

    def take(self, trace: Trace, index: Value | None, trips: int | None) -> None:
        """Note what a trip has added, and leave the last item in its place.

        Raises:
            Refused: it adds what has no one type, or too much.
        """
        self.added = []
        for which, (x, count, guarded) in enumerate(zip(self.lists, self.start, self.guarded, strict=True)):
            if guarded:
                require_guard(x)
            rows = which in self.given
            items = x[count:]
            last = x[:1] if guarded else x[-1:] if count and not rows else []
            before = x[0] if rows and not items else None
            x.clear()
            if (guarded or not last) and containers_kept_elsewhere(items):
                raise Refused("a list or an object that is appended to a list in a loop is held in another way too")
            if rows:
                last = items[-1:] or [before]
                rows = all(numbers_of(item) is not None for item in items)
            self.added.append([numbered(item, [trace], index, trips) for item in items_of_trip(items)])
            if last and not guarded and not rows and any(map(is_composed, self.added[-1])):
                raise Refused("the last one of lists or objects that are appended to a list in a loop is read")
            x += last
        given = [item for items in self.added for item in items] + [site.item for site in self.sites]
        if sum(kind is not None for item in given for kind in item.kinds) > MOST:
            raise Refused("more arrays and numbers are appended in each trip of a loop than may be columns")

    def require_rows(self, state: State) -> None:
        """A row of the trip before is what it was, and in its list alone: behind the loop another list is the row.

        Raises:
            Refused: the trip has changed it, or keeps it.
        """
        for which, numbers in self.given.items():
            x = self.lists[which]
            found = numbers_of(x[0])
            if found is None or len(found) != len(numbers) or any(map(operator.is_not, found, numbers)):
                raise Refused("the last one of the lists that are appended to a list in a loop is changed")
            own = {id(part) for part in reachable(x[:1])}
            others = [part for container in state.containers if container is not x for part in contents(container)[1]]
            kept = {id(items) for items in self.lists}
            if any(id(part) in own for part in reachable([*state.get(), *others, *x[1:]], kept, iterators=True)):
                raise Refused("the last one of the lists that are appended to a list in a loop is kept")

    def restore(self) -> None:
        for x, kept in zip(self.lists, self.kept, strict=True):
            x[:] = kept
        for filled in self.entries:
            filled.restore()
        self.added = []

    def leaves(self) -> list[Tracer]:
        found = [leaf for items in self.added for item in items for leaf in item.leaves if isinstance(leaf, Tracer)]
        return found + [placed.assigned.item for placed in self.assigned(False)]

    def assigned(self, read: bool) -> list[Any]:
        """The `Placed` lists of which trips read what others have assigned, or the rest."""
        return [placed for placed in self.placed if (placed.room is not None) == read]

    def arrays(self) -> list[tuple[Tracer, Any]]:
        """What a trip appends that is traced: the columns, then what it writes, with its `Site` or `Placed` list."""
        leaves, columns = self.leaves(), self.assigned(False)
        found: list[tuple[Tracer, Any]] = [(leaf, None) for leaf in leaves[: len(leaves) - len(columns)]]
        found += [(placed.assigned.item, placed) for placed in columns]
        found += [
            (leaf, site) for site in self.sites for leaf, buffer in zip(site.item.leaves, site.buffers, strict=True)
            if buffer is not None
        ]  # fmt: skip
        return found + [(placed.assigned.item, placed) for placed in self.assigned(True)]

    def written(self) -> list[Tracer]:
        """The memory that the trips write what some of them append into, and what they assign and read."""
        found = [buffer for site in self.sites for buffer in site.buffers if buffer is not None]
        return found + [placed.room for placed in self.assigned(True)]

    def memory(self, values: Sequence[Value], trips: int) -> list[Tracer]:
        """What stands for `arrays` behind the loop, given the columns and what was written."""
        given = zip(self.arrays(), values, strict=True)
        found = [
            from_value(source.in_order(value, trips) if source in self.placed else value)
            for (_, source), value in given
        ]
        self.join(found, trips)
        return found

    def join(self, arrays: list[Tracer], trips: int) -> None:
        """Make the columns of what is appended to one list parts of one array, the rows of which are its items."""
        self.joined, first = {}, 0
        for which, items in enumerate(self.added):
            places = range(first, first + sum(kind is not None for item in items for kind in item.kinds))
            first = places.stop
            kinds = {kind for item in items for kind in item.kinds}
            known = any(place in self.first or place in self.shared for place in places)
            if not 1 < len(items) == len(places) or len(kinds) > 1 or known or not all(map(is_bare, items)):
                continue
            if any(site.which == which for site in self.sites):
                continue
            stacked: Any = np.stack([arrays[place] for place in places], axis=1)
            whole: Any = from_value(stacked.read())
            for k, place in enumerate(places):
                arrays[place] = whole[:, k]
            self.joined[which] = flattened(whole, trips * len(items))

    def columns(
        self, trace: Trace, index: Value | None, given: Mapping[Storage, Leaf], unwritten: Callable[[Storage], bool]
    ) -> list[Value]:
        """What each trip adds to the columns.

        ``given``: the memory that a trip has of the one before alone; ``unwritten``: whether no trip writes into memory
        nor into what it may share.

        Raises:
            Refused: an array that is appended may be changed later, or is another one's memory; or what is appended
                is known in Python, and would not be any longer.
        """
        leaves, known = self.leaves(), of_index(trace, index)
        values = [leaf.read() for leaf in leaves]
        for leaf, value in zip(leaves, values, strict=True):
            if (leaf.scalar and leaf.dtype.kind in "biu") or isinstance(value, Literal) or value in known:
                raise Refused("numbers that are known are appended to a list in a loop")
        seen: set[Storage] = set()
        self.first, self.shared = {}, {}
        for place, (leaf, site) in enumerate(self.arrays()):
            if leaf.scalar:
                continue
            storage = leaf.storage
            own = storage.trace is trace if site is None else site.owns(leaf, trace)
            if not own or storage in seen or not leaf.in_c_order():
                raise Refused(HELD)
            if storage.aliases is not None:
                if leaf.chain:
                    raise Refused(HELD)
                if storage in given and all(other.trace is not trace for other in storage.aliases):
                    self.first[place] = given[storage]
                elif (site is None or site in self.placed) and unwritten(storage):
                    self.shared[place] = storage
                else:
                    raise Refused(HELD)
            seen.add(storage)
        return values

    def rows_at_ends(self, place: int, trips: int) -> tuple[int | None, int | None]:
        """The rows of what the first trip appends, and of what the last does, if they do."""
        site = self.arrays()[place][1]
        ends: tuple[int | None, int | None] = (0, trips - 1) if site is None else site.ends(trips)
        return ends

    def shared_with(self, leaf: Any) -> int | None:
        """The place among the columns of what has its memory in common with a carried array, if any is.

        Raises:
            Refused: it is another part of that memory.
        """
        if not isinstance(leaf, Tracer) or leaf.scalar:
            return None
        for k, (other, _) in enumerate(self.arrays()):
            if not other.scalar and other.storage is leaf.storage:
                if other.chain or leaf.chain:
                    raise Refused("a part of an array that is appended to a list goes on to the next trip of a loop")
                return k
        return None

    def take_memory(self, arrays: Sequence[Tracer]) -> None:
        """Tell the `Placed` lists what stands for them."""
        for (_, source), array in zip(self.arrays(), arrays, strict=True):
            if source in self.placed:
                source.rows = array

    def leave(self, columns: Sequence[Tracer], trips: int) -> None:
        """Give the lists what all trips have added."""
        left = iter(columns)
        arrays_of = [
            [[None if kind is None else next(left) for kind in item.kinds] for item in items] for items in self.added
        ]
        for _ in self.assigned(False):
            next(left)
        rows_of = {site: [None if buffer is None else next(left) for buffer in site.buffers] for site in self.sites}
        for which, (x, kept, items) in enumerate(zip(self.lists, self.kept, self.added, strict=True)):
            arrays = arrays_of[which]
            x[:] = kept
            if items and items[0].spread:
                x += spread(items[0], arrays[0][0], trips)
                continue
            if which in self.joined:
                kind, whole = items[0].kinds[0], self.joined[which]
                assert kind is not None
                x += [row(whole, place, kind.scalar, kind.weak) for place in range(len(whole))]
                continue
            if not any(site.which == which for site in self.sites):
                for place in range(trips):
                    x += [built(item, rows, place, place) for item, rows in zip(items, arrays, strict=True)]
                continue
            found = [(trip, k, 1, item, rows, trip) for k, (item, rows) in enumerate(zip(items, arrays, strict=True))
                     for trip in range(trips)]  # fmt: skip
            for site, rows in rows_of.items():
                if site.which == which:
                    found += [(trip, site.place, 0, site.item, rows, k) for k, trip in enumerate(site.trips.tolist())]
            found.sort(key=lambda entry: entry[:3])
            x += [built(item, rows, place, trip) for trip, _, _, item, rows, place in found]
        for which in self.fronts:
            x, count = self.lists[which], len(self.kept[which])
            x[:] = x[: count - 1 : -1] + x[:count] if count else x[::-1]
        for filled in self.entries:
            filled.leave()
        self.added, self.sites = [], []  # the memory of a trip that is over is nobody's


def spread(item: Item, rows: Tracer | None, trips: int) -> list[Any]:
    """The rows of all trips, one after the other."""
    assert rows is not None and item.rows is not None
    flat = flattened(rows, trips * rows.shape[1])
    return [row(flat, k, item.rows.scalar, item.rows.weak) for k in range(len(flat))]


def flattened(rows: Tracer, count: int) -> Tracer:
    """A view of an array in which its first two axes are one."""
    shape = (count, *rows.shape[2:])
    return Tracer(rows.storage, (ReshapeView(shape),), ArrayType(rows.dtype, shape))


def is_composed(item: Item) -> bool:
    return item.tree is not None or item.rows is not None


def numbers_of(x: Any) -> list[Any] | None:
    """What a row of a table holds, which is a list, tuple or dict of numbers, or of such; None of what is no row."""
    if type(x) not in (list, tuple, dict):
        return None
    leaves, tree = tree_of(x)
    if tree is None or tree.node_types():
        return None
    numbers = [leaf.scalar if isinstance(leaf, Tracer) else isinstance(leaf, NUMBERS) for leaf in leaves]
    return leaves if all(numbers) else None


def has_row_alone(items: list[Any]) -> bool:
    """Whether the last item of a list is a row of numbers that nothing else holds."""
    if numbers_of(items[-1]) is None:
        return False
    row = [items.pop()]
    kept = containers_kept_elsewhere(row)
    items += row
    return not kept


def copied_row(x: Any) -> Any:
    """Another one that holds the same, which the trips may have for the first one's."""
    leaves, tree = tree_of(x)
    return x if tree is None else tree.unflatten(leaves)


def is_bare(item: Item) -> bool:
    """Whether an item is one array or number, and nothing around it."""
    return item.rows is None and not item.spread and (item.tree is None or item.tree.kind is None)


def built(item: Item, arrays: Sequence[Tracer | None], place: int, trip: int) -> Any:
    """What a trip has added, in a row of the arrays."""
    leaves = [
        leaf.at(trip)
        if isinstance(leaf, Numbers)
        else leaf
        if array is None or kind is None
        else row(array, place, kind.scalar, kind.weak)
        for leaf, array, kind in zip(item.leaves, arrays, item.kinds, strict=True)
    ]
    if item.rows is not None:
        (source,) = leaves
        return [row(source, k, item.rows.scalar, item.rows.weak) for k in range(len(source))]
    return rebuilt(item.tree, leaves)
