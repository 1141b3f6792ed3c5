"""What stands in a list while a loop that changes it is traced, so that what knows nothing of this is refused."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from srcgrad.tracing.affine import affine_of
from srcgrad.tracing.conversion.state import Passing, Undefined
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer

MOST_READ: Final = 64
"""So many items a slice of such a list may have."""
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


class Pops(Passing):
    """A loop that is being traced takes items from a list; ``each``: how many a trip takes."""

    def __init__(self, owner: Any, items: list[Any], each: int) -> None:
        super().__init__()
        self.owner, self.items, self.each = owner, items, each


class Guard:
    """Stands for the items that a list has where a trip begins, by whatever name the loop knows it.

    Whatever reads them is refused: an index, ``len``, a loop, a function.
    """

    each: Final = 1
    """As of `Filled`: the list grows."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __getitem__(self, index: Any) -> Any:
        self.read()

    def __setitem__(self, index: Any, value: Any) -> None:
        raise Refused(READ)

    def count(self) -> Any:
        self.read()

    def read(self) -> NoReturn:
        """Refuse to be read, but by trips that ask how long the list is, or what trips before them have appended.

        Raises:
            Places: a column may stand for the list.
        """
        from srcgrad.tracing.conversion.placed import append_in_place  # which needs this module

        append_in_place(self.items)
        raise Refused(READ)


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


def places_in(index: slice, count: Any) -> list[Any] | None:
    """The places of a slice of a list, which are as many in each trip; None where they may be others."""
    ends, total = [], affine_of(count)
    for end in (0 if index.start is None else index.start, count if index.stop is None else index.stop):
        number = affine_of(end) if isinstance(end, int) or (isinstance(end, Tracer) and end.scalar) else None
        if number is not None and number.most() < 0:
            end = end + count
            number = affine_of(end)
        ends.append((end, number))
    (start, first), (_, last) = ends
    if first is None or last is None or total is None or index.step not in (None, 1):
        return None
    length = last.plus(first, -1)
    if length.terms or length.constant > MOST_READ or first.least() < 0 or total.plus(last, -1).least() < 0:
        return None
    return [start + k for k in range(length.constant)]


def items_in(stand_in: Any, index: slice) -> list[Any]:
    """A slice of a list for which something stands.

    Raises:
        Refused: it may have another length from trip to trip.
    """
    places = places_in(index, stand_in.count())
    if places is None:
        raise Refused("a slice of a list may have another length from trip to trip of a loop that changes the list")
    return [stand_in[k] for k in places]
