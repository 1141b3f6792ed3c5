"""Lists of numbers whose items a loop assigns at places that are known in its trips only: ``x[i] = v``.

While the loop is traced, an array stands for such a list: a trip writes one element of it. In the list itself are
`Held` items, so that what knows nothing of this is refused, and the loop unrolled. Afterwards the list has the rows of
the array.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.ir.types import ArrayType
from srcgrad.tracing.conversion.state import Kind, Passing, Undefined, join_kinds, kind_of
from srcgrad.tracing.rows import row, source_of
from srcgrad.tracing.trace import CURRENT, Refused, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value

SHORT: Final = 8
"""Lists of so many items are carried item by item: numbers in registers."""
FEW: Final = 16
"""So many items that are traced are written into an array of numbers; where there are more, all are stacked."""


class Fills(Passing):
    """A loop that is being traced assigns an item of a list at a place that is not known, of this kind from now on."""

    def __init__(self, owner: Any, items: list[Any], kind: Kind) -> None:
        super().__init__()
        self.owner, self.items, self.kind = owner, items, kind


class Held(Undefined):
    """An item of a list for which an array stands, and its place in both."""

    filled: Filled
    place: int

    def __init__(self, filled: Filled, place: int) -> None:
        super().__init__("an item of a list", "is used in a loop that assigns others of them")
        object.__setattr__(self, "filled", filled)
        object.__setattr__(self, "place", place)


class Filled:
    """One list, and the array that stands for it while a loop is traced."""

    def __init__(self, items: list[Any], kind: Kind) -> None:
        self.items, self.kind = items, kind
        self.owner: Any = None
        """The loop that is being traced."""
        self.kept: list[Any] = []

    def open(self, owner: Any) -> None:
        self.owner, self.kept = owner, list(self.items)
        self.array = array_of(self.kept, self.kind.type.dtype)
        self.items[:] = [Held(self, k) for k in range(len(self.kept))]

    def require_held(self) -> None:
        """Refuse a trip that has changed the list in another way."""
        own = [type(x) is Held and x.filled is self and x.place == k for k, x in enumerate(self.items)]
        if len(own) != len(self.kept) or not all(own):
            raise Refused("a loop that assigns items of a list changes it in another way too")

    def restore(self) -> None:
        self.items[:] = self.kept

    def leave(self) -> None:
        """Give the list what the loop has left in the array."""
        self.items[:] = [row(self.array, k, True, self.kind.weak) for k in range(len(self.kept))]

    def __getitem__(self, index: Any) -> Any:
        return from_value(self.array[self.place(index)].copy().read(), True, self.kind.weak)

    def __setitem__(self, index: Any, value: Any) -> None:
        kind = joined(self.kind, kind_of(value))
        if kind != self.kind:
            raise Fills(self.owner, self.items, kind)
        self.array[self.place(index)] = value

    def place(self, index: Any) -> Any:
        """An index as one of a list, for which truth values are numbers."""
        if isinstance(index, (int, np.integer, np.bool_)):
            return int(index)
        if not isinstance(index, Tracer) or index.dtype.kind not in "iub" or index.size != 1:
            raise Refused("a list is indexed by more than a number in a loop that assigns its items")
        return index.astype(np.int64).reshape(())


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


def filled_of(container: Any) -> Filled | None:
    """What stands for a list in the loop that is being traced, if anything does."""
    if type(container) is list and container and type(container[0]) is Held:
        found: Filled = container[0].filled
        return found
    return None


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
    kinds = [kind_of(item) for item in {id(item): item for item in (value, *items)}.values()]
    found = kinds[0]
    for kind in kinds:
        both = "" if found is None or kind is None else join_kinds("[k]", found, kind)
        found = both if isinstance(both, Kind) else None
    if found is not None and found.type == ArrayType(found.type.dtype) and found.type.dtype.kind in "fc":
        raise Fills(owner, items, found._replace(scalar=True))
