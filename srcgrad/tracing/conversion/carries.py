"""What a trip of a loop hands to the next one: the kinds of a variable's values."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Value, literal
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.conversion.aliases import Memory
from srcgrad.tracing.conversion.binding import unchecked
from srcgrad.tracing.conversion.classes import rebuilt
from srcgrad.tracing.conversion.placed_texts import PlacedText, alphabet, place_among, text_among
from srcgrad.tracing.conversion.state import (
    PYTHON_KINDS,
    Kind,
    Marker,
    Snapshot,
    join_kinds,
    joined,
    kind_beneath,
    kind_of,
    shown,
    tree_of,
)
from srcgrad.tracing.conversion.structures import has_objects, structure_of
from srcgrad.tracing.magnitude import grows
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.rows import row, row_of, source_of
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value

TEXTS: Final = 32
"""The texts that a variable of a loop may be."""
PACKED: Final = 17
"""The numbers of a list from which they are handed on as one array."""
NOWHERE: Final[Any] = None
"""The place of a text of which only is asked which ones it may be."""


class Carry:
    """A variable that a trip hands to the next one."""

    def __init__(self, name: str, tree: TreeDef | None, kinds: list[Kind], same: Container[int] = ()) -> None:
        """``same``: objects in it that are the same ones in each trip."""
        self.name, self.tree, self.kinds, self.same = name, tree, kinds, same
        self.memory = [Memory() for _ in kinds]
        self.objects = has_objects(tree)
        """Whether objects of plain classes are in it."""

    def joined(self, leaves: Sequence[Any]) -> bool:
        """Widen the kinds to hold these leaves too; whether that changed them."""
        before = list(self.kinds)
        changed = False
        for k, leaf in enumerate(leaves):
            changed |= self.memory[k].note(leaf)
            if grows(leaf):
                raise Refused(f"{shown(self.name)} is an integer that may exceed 64 bits", hint="use floats")
            kind = kind_beneath(leaf)
            if kind is None:
                raise Refused(f"{self.name!r} becomes a {type(leaf).__name__} in a loop with a traced end")
            self.kinds[k] = joined(self.name, self.kinds[k], kind)
        return changed or self.kinds != before

    def handles(self, values: Sequence[Value]) -> list[Tracer]:
        """New memory that holds the values."""
        found = []
        for value, kind, memory in zip(values, self.kinds, self.memory, strict=True):
            found.append(from_value(value, kind.scalar, kind.weak))
            memory.settle(found[-1], self.name)
        return found

    def at_start(self, values: Sequence[Value], index: Tracer | None) -> Any:
        """The variable at the start of a trip. ``index``: the number of the trip."""
        return self.build(self.handles(values))

    def values(self, x: Any) -> list[Value]:
        """What is handed on of the variable, in the current trace."""
        leaves = [x] * len(self.kinds) if isinstance(x, Marker) else structure_of(x, self.same)[0]
        return [unchecked(leaf, kind) for leaf, kind in zip(leaves, self.kinds, strict=True)]

    def build(self, leaves: Sequence[Any]) -> Any:
        return rebuilt(self.tree, leaves)


class TextCarry(Carry):
    """A variable that is one of a few texts in each trip: its place among them is handed on."""

    def __init__(self, name: str, texts: tuple[str, ...]) -> None:
        super().__init__(name, None, [PYTHON_KINDS[int]])
        self.texts = texts

    def joined(self, leaves: Sequence[Any]) -> bool:
        (found,) = leaves
        known = alphabet(PlacedText(self.texts, NOWHERE), found)
        if known is None or len(known) > TEXTS:
            raise Refused(f"{shown(self.name)} becomes another text in each trip of a loop, or none")
        changed, self.texts = known != self.texts, known
        return changed

    def values(self, x: Any) -> list[Value]:
        return [unchecked(place_among(x, self.texts), self.kinds[0])]

    def build(self, leaves: Sequence[Any]) -> Any:
        (place,) = leaves
        return text_among(self.texts, place)


class PackedCarry(Carry):
    """A list of many numbers of one kind, or lists in each other: an array is handed on, whose rows they are.

    As values of their own they are as many parameters, and as many results, of each trip. That is better where a trip
    computes each of them on its own: they stay in registers.
    """

    def __init__(self, name: str, tree: TreeDef, count: int, item: Kind) -> None:
        super().__init__(name, tree, [Kind(ArrayType(item.type.dtype, (count,)), False, False)])
        self.count, self.item = count, item

    @classmethod
    def of(cls, name: str, one: Any, other: Any) -> PackedCarry | None:
        """What hands on a variable that is this before a trip and that behind it; None if not so."""
        leaves, tree = tree_of(one)
        if tree is None or len(leaves) < PACKED or isinstance(one, Marker):
            return None
        ends = tree_of(other)[0]
        kinds = [kind_of_all(leaves), kind_of_all(ends)]
        item = join_kinds(name, *kinds) if None not in kinds else ""  # type: ignore[arg-type]
        if isinstance(item, str) or not item.scalar or item.type.dtype.kind not in "fc":
            return None
        alone = sum(isinstance(leaf, Tracer) and row_of(leaf) is None for leaf in ends)
        if 2 * alone > len(ends):
            return None
        found = cls(name, tree, len(leaves), item)
        return found if found.holds(one) and found.holds(other) else None

    def holds(self, x: Any) -> bool:
        """Whether something is of this structure, and its numbers of this kind."""
        leaves, tree = tree_of(x)
        kind = kind_of_all(leaves)
        return tree == self.tree and kind is not None and kind.type == self.item.type and (
            join_kinds(self.name, self.item, kind) == self.item
        )  # fmt: skip

    def joined(self, leaves: Sequence[Any]) -> bool:
        return False

    def values(self, x: Any) -> list[Value]:
        leaves, dtype = tree_of(x)[0], self.item.type.dtype
        if not any(isinstance(leaf, Tracer) for leaf in leaves):
            return [literal(np.array(leaves, dtype), self.kinds[0].type)]
        source = source_of(leaves)
        found: Any = np.stack([as_tracer(leaf) for leaf in leaves]) if source is None else source
        return [found.read()]

    def build(self, leaves: Sequence[Any]) -> Any:
        (array,) = leaves
        return rebuilt(self.tree, [row(array, k, True, self.item.weak) for k in range(self.count)])


def kind_of_all(leaves: Sequence[Any]) -> Kind | None:
    """The kind of numbers of which nothing depends on a condition, if it is one."""
    kinds = {kind_of(leaf) if is_settled(leaf) else None for leaf in leaves}
    return kinds.pop() if len(kinds) == 1 else None


def is_settled(leaf: Any) -> bool:
    """Whether it does not depend on a condition of what kind a number is, or whether there is one."""
    return not isinstance(leaf, Tracer) or (leaf.storage.pending is None and leaf.storage.doubt is None)


def window_numbers(containers: Sequence[Any], seeded: Snapshot, carried: Container[int]) -> list[int]:
    """The numbers of a deque of which one is carried that are not.

    A window hands each to the place before it: one more place would be found to change each time.
    """
    found, end = [], len(seeded.variables)
    for container, held in zip(containers, seeded.elements, strict=True):
        start, end = end, end + len(held)
        if not isinstance(container, deque) or not any(cell in carried for cell in range(start, end)):
            continue
        kinds = [kind_of(x) for x in held]
        found += [
            start + k
            for k, kind in enumerate(kinds)
            if start + k not in carried and kind is not None and kind.scalar and kind.type.dtype.kind in "fc"
        ]
    return found
