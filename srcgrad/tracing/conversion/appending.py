"""Lists that a loop does nothing to but append, and of which it reads the last item at most.

So ``states.append(h)`` in a long loop is a column of the loop that the trips fill, and the loop stays one. Its source
says whether that is all that a trip does with the variable; nothing but the variable may hold the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Literal, Value
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.conversion.aliases import Leaf
from srcgrad.tracing.conversion.classes import adopt_records
from srcgrad.tracing.conversion.identity import containers_kept_elsewhere, held
from srcgrad.tracing.conversion.state import Kind, kind_of, tree_of
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.rows import row, source_of
from srcgrad.tracing.trace import Refused, Storage, Trace, current_trace
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.views import ReshapeView

MOST: Final = 16
"""Of so many arrays and numbers a trip may append at most: each is a column."""


HELD: Final = "an array that is appended to a list in a loop is held in another way too"


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
    source = source_of(added) if len(added) > 1 else None
    if source is not None:
        return [Item(None, [source], [kind_of(source)], kind_of(added[0]), True)]
    return [item_of(item) for item in added]


def item_of(x: Any) -> Item:
    source = source_of(x) if type(x) is list else None
    if source is not None:
        return Item(None, [source], [kind_of(source)], kind_of(x[0]))
    leaves, tree = tree_of(x)
    kinds = [kind_of(leaf) if isinstance(leaf, Tracer) else None for leaf in leaves]
    for leaf, kind in zip(leaves, kinds, strict=True):
        if kind is None and not isinstance(leaf, (bool, int, float, complex, str, type(None))):
            raise Refused(f"a {type(leaf).__name__} is appended to a list in a loop")
    return Item(tree, leaves, kinds)


class Appending:
    """The lists of one loop: while a trip is traced they hold their last item, if it is read, or nothing."""

    def __init__(self, given: Callable[[], tuple[tuple[Any, bool], ...]] | None) -> None:
        self.lists: list[list[Any]] = []
        self.kept: list[list[Any]] = []
        self.added: list[list[Item]] = []
        self.start: list[int] = []
        """How many items each has where a trip begins."""
        self.first: dict[int, Leaf] = {}
        """The columns whose first row is the memory that a variable has before the loop."""
        self.shared: dict[int, Storage] = {}
        """The columns whose rows may share memory: one trip may append what the trip before has."""
        if given is None:
            return
        pairs = [pair for pair in given() if type(pair[0]) is list]
        holder, last = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        del pairs
        for k, reads in enumerate(last):
            if held(holder, k) == 1:  # by the variable
                self.lists.append(holder[k])
                self.start.append(1 if reads and holder[k] else 0)
        self.containers = self.lists
        current_trace().states.add(self)  # which tells what the program holds from what this does

    def open(self) -> None:
        self.kept = []
        for x, count in zip(self.lists, self.start, strict=True):
            self.kept.append(list(x))
            x[:] = x[-1:] if count else []

    def take(self) -> None:
        """Note what a trip has added, and leave the last item in its place.

        Raises:
            Refused: it adds what has no one type, or too much.
        """
        self.added = []
        for x, count in zip(self.lists, self.start, strict=True):
            items = x[count:]
            last = x[-1:] if count else []
            x.clear()
            if not last and containers_kept_elsewhere(items):
                raise Refused("a list or an object that is appended to a list in a loop is held in another way too")
            self.added.append(items_of_trip(items))
            if last and any(item.tree is not None or item.rows is not None for item in self.added[-1]):
                raise Refused("the last one of lists or objects that are appended to a list in a loop is read")
            x += last
        if sum(kind is not None for items in self.added for item in items for kind in item.kinds) > MOST:
            raise Refused("more arrays and numbers are appended in each trip of a loop than may be columns")

    def restore(self) -> None:
        for x, kept in zip(self.lists, self.kept, strict=True):
            x[:] = kept
        self.added = []

    def leaves(self) -> list[Tracer]:
        return [leaf for items in self.added for item in items for leaf in item.leaves if isinstance(leaf, Tracer)]

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
        leaves = self.leaves()
        if not leaves:
            return []
        known = of_index(trace, index)
        values = [leaf.read() for leaf in leaves]
        for leaf, value in zip(leaves, values, strict=True):
            if (leaf.scalar and leaf.dtype.kind in "biu") or isinstance(value, Literal) or value in known:
                raise Refused("numbers that are known are appended to a list in a loop")
        seen: set[Storage] = set()
        self.first, self.shared = {}, {}
        for place, leaf in enumerate(leaves):
            if leaf.scalar:
                continue
            storage = leaf.storage
            if storage.trace is not trace or storage in seen or not leaf.in_c_order():
                raise Refused(HELD)
            if storage.aliases is not None:
                if leaf.chain:
                    raise Refused(HELD)
                if storage in given and all(other.trace is not trace for other in storage.aliases):
                    self.first[place] = given[storage]
                elif unwritten(storage):
                    self.shared[place] = storage
                else:
                    raise Refused(HELD)
            seen.add(storage)
        return values

    def shared_with(self, leaf: Any) -> int | None:
        """The place among the columns of what has its memory in common with a carried array, if any is.

        Raises:
            Refused: it is another part of that memory.
        """
        if not isinstance(leaf, Tracer) or leaf.scalar:
            return None
        for k, other in enumerate(self.leaves()):
            if not other.scalar and other.storage is leaf.storage:
                if other.chain or leaf.chain:
                    raise Refused("a part of an array that is appended to a list goes on to the next trip of a loop")
                return k
        return None

    def leave(self, columns: Sequence[Tracer], trips: int) -> None:
        """Give the lists what all trips have added."""
        left = iter(columns)
        for x, kept, items in zip(self.lists, self.kept, self.added, strict=True):
            arrays = [[None if kind is None else next(left) for kind in item.kinds] for item in items]
            x[:] = kept
            if items and items[0].spread:
                x += spread(items[0], arrays[0][0], trips)
                continue
            for place in range(trips):
                x += [built(item, rows, place) for item, rows in zip(items, arrays, strict=True)]
        self.added = []  # the memory of a trip that is over is nobody's


def of_index(trace: Trace, index: Value | None) -> set[Value]:
    """The values of a block that are made of the index of the loop and of literals alone."""
    known = set() if index is None else {index}
    for operation in trace.builder.operations:
        if not operation.regions and all(isinstance(x, Literal) or x in known for x in operation.operands):
            known.update(operation.results)
    return known


def spread(item: Item, rows: Tracer | None, trips: int) -> list[Any]:
    """The rows of all trips, one after the other."""
    assert rows is not None and item.rows is not None
    shape = (trips * rows.shape[1], *rows.shape[2:])
    flat = Tracer(rows.storage, (ReshapeView(shape),), ArrayType(rows.dtype, shape))
    return [row(flat, k, item.rows.scalar, item.rows.weak) for k in range(shape[0])]


def built(item: Item, arrays: Sequence[Tracer | None], place: int) -> Any:
    """What a trip has added."""
    leaves = [
        leaf if array is None or kind is None else row(array, place, kind.scalar, kind.weak)
        for leaf, array, kind in zip(item.leaves, arrays, item.kinds, strict=True)
    ]
    if item.rows is not None:
        (source,) = leaves
        return [row(source, k, item.rows.scalar, item.rows.weak) for k in range(len(source))]
    return leaves[0] if item.tree is None else adopt_records(item.tree.unflatten(leaves))
