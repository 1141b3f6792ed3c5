"""What containers and objects hold, as two blocks have left it; objects of the user's classes that stand for two.

Of two new objects of one class with the same attributes an object is made that has each attribute joined. That is
exact where the program holds neither of them in another way: then nothing can tell it from them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any, Final

from srcgrad.tracing.conversion.classes import ACCESS, adopt, original
from srcgrad.tracing.conversion.state import Slots, Snapshot, State, refill, slots_of, tree_of
from srcgrad.tracing.purity import makes_plain_objects
from srcgrad.tracing.pytree import TreeDef, is_registered, record_fields
from srcgrad.tracing.tracer import Tracer
from srcgrad.tracing.unasked import attribute

UNSEEN: Final = ACCESS | {"__getattr__", "__del__", "__next__"}
"""Methods with which an object is more than its attributes."""
KEPT: Final = 256
"""How many classes are remembered."""


class Attributes:
    """What an object holds: the attributes of its own and those in slots."""

    def __init__(self, cls: type, own: dict[str, Any], slots: dict[str, Any]) -> None:
        self.cls, self.own, self.slots = cls, own, slots

    def values(self) -> list[Any]:
        return [*self.own.values(), *self.slots.values()]

    def alike(self, other: Attributes) -> bool:
        """Whether both are of one class and have the same attributes, in the same order."""
        return self.cls is other.cls and all(
            tuple(one) == tuple(two) for one, two in ((self.own, other.own), (self.slots, other.slots))
        )

    def made(self, values: Sequence[Any]) -> Any:
        """An object that has these values."""
        instance: Any = self.cls() if self.cls is types.SimpleNamespace else object.__new__(self.cls)
        count = len(self.own)
        if self.own:
            instance.__dict__.update(zip(self.own, values[:count], strict=True))
        if self.slots:
            refill(Slots(instance, list(self.slots)), tuple(self.slots), values[count:])
        adopt(instance)
        return instance


@functools.lru_cache(KEPT)
def is_all_attributes(cls: type) -> bool:
    """Whether objects of a class are their attributes and nothing else."""
    from srcgrad.tracing.users_classes import is_user_class  # which is written with this module

    if cls is types.SimpleNamespace:
        return True
    if is_registered(cls) or record_fields(cls) is not None or not is_user_class(cls):
        return False
    return not any(UNSEEN.intersection(vars(base)) or may_be_in_c(base) for base in cls.__mro__[:-1])


def may_be_in_c(cls: Any) -> bool:
    """Whether objects of a class may hold what C code alone sees."""
    members = vars(cls)
    pythons = "__slots__" in members or any(isinstance(x, types.FunctionType) for x in members.values())
    return not pythons and cls.__basicsize__ > cls.__base__.__basicsize__


def attributes_of(x: Any) -> Attributes | None:
    """What an object of one of the user's classes holds now; None of anything else."""
    cls = original(type(x))
    if not makes_plain_objects(type(cls)) or not is_all_attributes(cls):
        return None
    own = attribute(x, "__dict__")
    slots = {name: getattr(x, name) for name in slots_of(cls) if hasattr(x, name)}
    return Attributes(cls, dict(own) if type(own) is dict else {}, slots)


Parts = tuple[list[Any], TreeDef] | Attributes


class Left:
    """What containers and objects hold at the end of a block, of those that are other ones at the end of another."""

    def __init__(self, state: State, snapshot: Snapshot, other: Snapshot) -> None:
        self.found: dict[int, Parts] = {}
        pairs = zip(snapshot.cells(), other.cells(), strict=True)
        cells = [x for x, y in pairs if x is not y and not isinstance(x, Tracer)]
        if cells and not state.holds(snapshot):  # they are as they were before the block
            now = state.capture()
            state.restore(snapshot)
            for x in cells:
                self.note(x)
            state.restore(now)

    def note(self, x: Any) -> None:
        waiting = [x]
        while waiting:
            x = waiting.pop()
            parts = None if id(x) in self.found else apart(x)
            if parts is not None:
                self.found[id(x)] = parts
                waiting += parts.values() if isinstance(parts, Attributes) else parts[0]

    def tree(self, x: Any) -> tuple[list[Any], TreeDef | None]:
        found = self.found.get(id(x))
        return found if isinstance(found, tuple) else tree_of(x)

    def attributes(self, x: Any) -> Attributes | None:
        found = self.found.get(id(x))
        return found if isinstance(found, Attributes) else attributes_of(x)


def apart(x: Any) -> Parts | None:
    if isinstance(x, Tracer):
        return None
    leaves, tree = tree_of(x)
    return attributes_of(x) if tree is None else (leaves, tree)
