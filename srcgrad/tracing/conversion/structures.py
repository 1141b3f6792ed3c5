"""The structure of what a loop hands from trip to trip: containers, objects of plain classes, and what stays the same.

An object is rebuilt of its attributes in each trip. That is exact where nothing else holds it, so that none can tell it
from the one before. What is no number, array or container among them has to be the same in each trip.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from srcgrad.tracing.conversion.objects import Attributes, attributes_of
from srcgrad.tracing.conversion.standing import note_read
from srcgrad.tracing.conversion.state import Marker, Undefined, kind_beneath, same_handle, tree_of
from srcgrad.tracing.pytree import TreeDef, flatten, register_pytree_node
from srcgrad.tracing.tracer import Tracer

LEAF: Final = flatten(0.0)[1]


class Held:
    """An object of a plain class, as a node of a structure."""


class Constant:
    """What has no parts that a loop could hand on, as a node of a structure."""


class Same:
    """A constant in a structure: it equals itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and same_handle(self.value, other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))


def object_of(auxiliary: Any, values: Sequence[Any]) -> Any:
    cls, own, slots = auxiliary
    return Attributes(cls, dict.fromkeys(own), dict.fromkeys(slots)).made(values)


register_pytree_node(Held, lambda x: ((), None), object_of)
register_pytree_node(Constant, lambda x: ((), None), lambda same, _: same.value)


def structure_of(x: Any, same: Container[int] = ()) -> tuple[list[Any], TreeDef | None]:
    """`tree_of`, with the attributes of objects of plain classes as parts too, and constants beside them.

    ``same``: objects inside of it that are constants.
    """
    leaves, tree = tree_of(x)
    if all(kind_beneath(leaf) is not None for leaf in leaves) or (tree is None and attributes_of(x) is None):
        return leaves, tree
    found: list[Any] = []
    return found, parts_of(x, found, (), same)


def parts_of(x: Any, leaves: list[Any], around: tuple[int, ...], same: Container[int]) -> TreeDef:
    """The structure of a value. ``around``: the objects that it is in, which are no parts of it."""
    parts, tree = tree_of(x)
    if tree is not None:
        return grafted(tree, iter([parts_of(part, leaves, around, same) for part in parts]))
    attributes = None if id(x) in around or (around and id(x) in same) else attributes_of(x)
    if attributes is not None:
        note_read(x)
        start = len(leaves)
        children = tuple([parts_of(value, leaves, (*around, id(x)), same) for value in attributes.values()])
        named = attributes.cls, tuple(attributes.own), tuple(attributes.slots)
        return TreeDef(Held, named, children, len(leaves) - start)
    if x is None:
        return flatten(x)[1]
    if kind_beneath(x) is None and id(x) not in around and not isinstance(x, (Marker, Undefined, Tracer)):
        return TreeDef(Constant, Same(x), (), 0)
    leaves.append(x)
    return LEAF


def grafted(tree: TreeDef, parts: Iterator[TreeDef]) -> TreeDef:
    """A structure with others at its leaves."""
    if tree is LEAF:
        return next(parts)
    children = tuple([grafted(child, parts) for child in tree.children])
    return TreeDef(tree.kind, tree.auxiliary, children, sum([child.num_leaves for child in children]))


def has_objects(tree: TreeDef | None) -> bool:
    """Whether objects of plain classes are in it, or constants."""
    return tree is not None and not tree.node_types().isdisjoint((Held, Constant))


def objects_in(x: Any, found: dict[int, Any]) -> dict[int, Any]:
    """The objects of plain classes in a value, with it."""
    for part in tree_of(x)[0]:
        attributes = None if id(part) in found or kind_beneath(part) is not None else attributes_of(part)
        if attributes is not None:
            found[id(part)] = part
            for value in attributes.values():
                objects_in(value, found)
    return found


def constants_in(tree: TreeDef | None) -> list[Any]:
    """What is the same in each trip."""
    if tree is None:
        return []
    if isinstance(tree.auxiliary, Same):
        return [tree.auxiliary.value]
    return [value for child in tree.children for value in constants_in(child)]


def constants_of(tree: TreeDef) -> set[int]:
    """`constants_in`, by identity."""
    return set(map(id, constants_in(tree)))
