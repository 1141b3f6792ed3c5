"""Copies that stand for one of several objects of the user's classes, of which the program holds more than the copy.

What they hold is joined, so that they are the same to all that reads attributes. What asks which object it is, as
``is`` does and ``==`` and a hash of the class ``object``, is refused, and so is a later change of them or of one of the
several. A copy that nothing reads or changes does not matter: each is of a class of its own, which notes that.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Final

from srcgrad.tracing.conversion.classes import is_always_told, original, subclass
from srcgrad.tracing.conversion.identity import gathered_objects, watch_changes
from srcgrad.tracing.conversion.objects import attributes_of
from srcgrad.tracing.conversion.state import kind_beneath, reachable
from srcgrad.tracing.purity import makes_plain_objects
from srcgrad.tracing.storage import Use
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.unasked import STANDS

HINT: Final = "compare what the objects hold, or set a flag where the object is chosen"


ITEM: Final = Use((), ())
"""Of what stands for an item of a list in each trip of a loop."""


def stands_for(name: str, result: Any, sources: list[Any], kept: Container[int]) -> bool:
    """Have a copy stand for one of the sources, if its class lets it. ``kept``: parts that are the same in all."""
    copies = list(objects_in((result,), kept))
    if not all(may_stand(type(x)) for x in copies):
        return False
    try:
        watched = reachable([result, *sources], kept)
    except Refused:  # an iterator is in one
        return False
    several = list(objects_in(sources, kept))
    use = Use(several, [found for x in several if (found := use_of(x)) is not None])
    if is_open(result):
        use.note()
    for x in copies:
        object.__setattr__(x, "__class__", standing(type(x), name, use))
        current_trace().adopted.append(x)
    watch_changes(watched, name, use)
    return True


def objects_in(values: Any, kept: Container[int]) -> Iterator[Any]:
    found: list[Any] = []
    gathered_objects(values, found, [], kept)
    return (x for x in found if attributes_of(x) is not None)


def is_open(x: Any) -> bool:
    """Whether something in a value can be changed without reading an attribute of one of its objects."""
    if isinstance(x, tuple):
        return any(map(is_open, x))
    return kind_beneath(x) is None and attributes_of(x) is None and x is not None and not isinstance(x, (str, bytes))


def may_stand(cls: type) -> bool:
    """Whether objects can be of a subclass for a while."""
    told = is_always_told(original(cls))
    return makes_plain_objects(type(cls)) and not told and original(cls).__module__ != "types"


def use_of(x: Any) -> Use | None:
    found: Use | None = vars(type(x)).get(STANDS)
    return found


def note_read(x: Any) -> None:
    """The attributes of an object are read as Python's own reading of them would not note."""
    use = use_of(x)
    if use is not None:
        use.note()


def standing(cls: Any, name: str, use: Use) -> Any:
    """The class of one copy."""
    why = f"{name!r} is one object or another, depending on a traced condition, and compared by what it is"

    def read(self: Any, attribute: str) -> Any:
        use.note()
        return cls if attribute == "__class__" else object.__getattribute__(self, attribute)

    def put(self: Any, attribute: str, value: Any) -> None:
        use.note()
        object.__setattr__(self, attribute, value)

    def delete(self: Any, attribute: str) -> None:
        use.note()
        object.__delattr__(self, attribute)

    def equal(self: Any, other: Any) -> bool:
        if self is other:
            return True
        raise Refused(why, hint=HINT)

    def hashed(self: Any) -> int:
        raise Refused(why, hint=HINT)

    own: dict[str, Any] = {"__slots__": (), "__srcgrad_original__": original(cls), STANDS: use}
    own.update(__getattribute__=read, __setattr__=put, __delattr__=delete)
    own["__eq__"] = equal if cls.__eq__ is object.__eq__ else cls.__eq__
    own["__hash__"] = hashed if cls.__hash__ is object.__hash__ else cls.__hash__
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return subclass(cls, cls, {**names, **own})
