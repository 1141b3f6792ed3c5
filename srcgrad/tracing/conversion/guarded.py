"""What stands in a list while a loop that changes it is traced, so that what knows nothing of this is refused."""

from __future__ import annotations

from typing import Any, Final

from srcgrad.tracing.conversion.state import Passing, Undefined
from srcgrad.tracing.trace import Refused

READ: Final = "a list to which a loop appends arrays is read or changed in another way in the loop"


class Held(Undefined):
    """An item of a list for which something stands, and its place in both."""

    filled: Any
    place: int

    def __init__(self, filled: Any, place: int) -> None:
        super().__init__("an item of a list", "is used in a loop that assigns others of them")
        object.__setattr__(self, "filled", filled)
        object.__setattr__(self, "place", place)


class Grows(Passing):
    """A loop that is being traced appends to a list of which its source does not say that it does no more."""

    def __init__(self, owner: Any, items: list[Any]) -> None:
        super().__init__()
        self.owner, self.items = owner, items


class Guard:
    """Stands for the items that a list has where a trip begins, by whatever name the loop knows it.

    Whatever reads them is refused: an index, ``len``, a loop, a function.
    """

    each: Final = 1
    """As of `Filled`: the list grows."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def refuse(self, *args: Any) -> Any:
        raise Refused(READ)

    __getitem__ = __setitem__ = count = refuse


def guard(items: list[Any]) -> None:
    """Let a list hold nothing but what refuses to be read."""
    items[:] = [Held(Guard(items), 0)]


def is_spoken_for(items: Any) -> bool:
    """Whether an array stands for a list, which guards do not."""
    return bool(items) and type(items[0]) is Held and type(items[0].filled) is not Guard


def require_guard(items: list[Any]) -> None:
    """Refuse a trip that has done more with a list than to append."""
    first = items[0] if items else None
    if type(first) is not Held or type(first.filled) is not Guard or any(type(x) is Held for x in items[1:]):
        raise Refused(READ)
