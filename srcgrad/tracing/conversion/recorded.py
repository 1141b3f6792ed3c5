"""Lists of which it is not known how many items a loop appends: rows of an array with room for so many, and a count.

An adaptive solver appends what each accepted step gives. Of such a list the function reads no more than an array of all
its items, the length and items by constant index (`histories`), and the rows that count are parts of an array of
one size (`ragged`). The program is for calls in which there is room; others say so, and are made in another way.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from srcgrad.tracing.affine import Affine, between
from srcgrad.tracing.conversion.calls import call_rule, deferring, traced_among
from srcgrad.tracing.conversion.marks import around
from srcgrad.tracing.conversion.state import Kind, MustRetrace, Passing, join_kinds, kind_of
from srcgrad.tracing.conversion.trust import emit_trust
from srcgrad.tracing.functions.registry import require
from srcgrad.tracing.magnitude import grows
from srcgrad.tracing.ragged import Ragged
from srcgrad.tracing.storage import Doubt
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import FUNCTIONS, Deferring, Tracer, as_tracer, from_value

ROOM, LEAST_ROOM = 4096, 64
"""So many rows there are where it is not known how many are needed; calls that need more are made in another way."""
MOST_KEPT: Final = 1 << 20
"""So many numbers these hold at most."""
RANGE: Final = "list index out of range"


def room_for(size: int) -> int:
    """How many rows of so many numbers there may be; none where these would be few."""
    found = min(ROOM, MOST_KEPT // max(size, 1))
    return found if found >= LEAST_ROOM else 0


class Widened(Passing):
    """A trip appends what the rows of a list do not hold: the loop begins again with rows of this kind."""

    def __init__(self, owner: Recorded, kind: Kind) -> None:
        super().__init__()
        self.owner, self.kind = owner, kind


class Recorded(Deferring):
    """A list, as its rows and their number; the attributes are these alone, which trips hand on."""

    __slots__ = ("__dict__", "constants", "kind", "leader", "least", "name", "opened", "room", "trusted")
    __srcgrad_unfinished__ = True
    __hash__ = None  # type: ignore[assignment]
    rows: Any
    count: Any

    def __init__(self, name: str, items: list[Any], kind: Kind | None, leader: Recorded | None) -> None:
        """``leader``: a list to which the same trips append, as far as their source shows."""
        self.name, self.kind, self.leader = name, kind, leader
        self.least = len(items)
        self.constants: tuple[tuple[Any, Any], ...] = ()
        """Arrays that are known, and what they were: their memory is not the trace's, which would notice a write."""
        self.trusted: tuple[Any, Any, Any] = (None, None, None)
        """The count that a trace has asked for, this trace, and the same integer with what is known of it there."""
        self.opened = True
        """Whether the loop may begin again."""
        self.rows, self.count, self.room = None, 0, 0
        if kind is None:
            return
        self.room = room_for(kind.type.size)
        if self.least >= self.room:
            raise Refused("a list of large arrays to which a loop appends as values say so")
        self.rows = as_tracer(np.zeros((self.room, *kind.type.shape), kind.type.dtype)).copy()
        for item in items:
            self.append(item)

    # --- what it is --------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return 1

    @property
    def shape(self) -> tuple[Any, ...]:
        """Of its items as objects: ``len`` asks for it."""
        return (self.count,)

    def append(self, value: Any, /) -> None:
        kind = kind_of(value)
        if kind is None:
            raise Refused(f"{self.name!r} gets other items than numbers and arrays in a loop with a traced end")
        wider = kind if self.kind is None else widened(self.name, self.kind, kind)
        if wider != self.kind:
            if not self.opened:
                raise Refused(f"{self.name!r} gets items of another kind than in a loop before")
            raise Widened(self, wider)
        if grows(value):
            raise Refused(f"an item of {self.name!r} is an integer that may exceed 64 bits", hint="use floats")
        if isinstance(value, np.ndarray):
            self.constants += ((value, value.copy()),)
        give_up(value, self.name)
        count = self.count
        place: Any = np.minimum(count, self.room - 1) if isinstance(count, Tracer) else min(count, self.room - 1)
        self.rows[place] = value
        self.count = count + 1

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int or self.kind is None or index >= self.room:
            raise Refused(f"an item of {self.name!r}, to which a loop with a traced end appends")
        self.require_unchanged()
        needed = index + 1 if index >= 0 else -index
        if needed > self.least:
            require(self.count >= needed, "IndexError", RANGE)
        place: Any = index
        if index == -1:  # the last row is the last item's, whether or not all had room
            place = np.minimum(self.count, self.room) - 1
        elif index < 0:
            self.fits()
            place = self.count + index
        found = from_value(self.rows[place].read(), self.kind.scalar, self.kind.weak)
        give_up(found, self.name)
        return found

    def copy(self) -> Any:
        """The array of its items."""
        self.require_unchanged()
        if self.kind is None:
            raise Refused(f"an array of {self.name!r}, which has no items yet")
        return self.rows[: self.counted()].copy()

    def counted(self) -> Any:
        """The number of items: the same integer as the leader's, where both are as many."""
        if self.leader is None:
            return self.fits()
        count = self.leader.fits()
        if not (isinstance(self.count, Tracer) or isinstance(count, Tracer)):
            return self.fits() if self.count != count else count
        emit_trust(np.equal(self.count, count), False)
        return count

    def fits(self) -> Any:
        """The number of items, of which from here on there is at least one, and no more than there is room for."""
        count, trace = self.count, current_trace()
        if not isinstance(count, Tracer) or count.number() is not None:
            return count
        asked, where, _ = self.trusted
        if asked is not count or all(where is not found for found in around(trace)):
            enough: Any = np.logical_and(count >= 1, count <= self.room)
            emit_trust(enough, False)
            known = from_value(count.read(), scalar=True, weak=True)  # on another path it is not known
            known.affine = between(Affine({}, max(self.least, 1)), Affine({}, self.room))
            self.trusted = (count, trace, known)
        return self.trusted[2]

    def require_unchanged(self) -> None:
        if any(not np.array_equal(array, before, equal_nan=True) for array, before in self.constants):
            raise MustRetrace(f"an array that is an item of {self.name!r} is changed")

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Refused(f"{self.name!r}, to which a loop with a traced end appends, is used as a whole")

    __array_ufunc__ = __array_function__ = __array__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse
    __setitem__ = __eq__ = __ne__ = __add__ = __radd__ = __mul__ = __rmul__ = _refuse


def widened(name: str, one: Kind, other: Kind) -> Kind:
    """The kind of rows that hold both, if an array of such items has their dtype.

    Raises:
        Refused: there is none.
    """
    found = join_kinds(name, one, other)
    if isinstance(found, str):
        raise Refused(found)
    if found.type.dtype != np.result_type(one.type.dtype, other.type.dtype):
        raise Refused(f"the items of {name!r} have dtypes of which an array would have another one")
    return found


def give_up(value: Any, name: str) -> None:
    """Refuse later writes into an array that is an item of a list, whose row would not see them."""
    if isinstance(value, Tracer) and not value.scalar:
        for storage in (value.storage, *(value.storage.aliases or ())):
            storage.decided = True  # by `is` could it be told from the row
            storage.doubt = (storage.doubt or Doubt(name, dtype=False, layout=False))._replace(listed=True)


def whole(x: Any) -> Any:
    """What stands for a list where a function of NumPy's makes an array of it."""
    return x.copy() if isinstance(x, Recorded) else x


@call_rule(np.stack)
def stack(arrays: Any, *args: Any, **options: Any) -> Any:
    if isinstance(arrays, Ragged) and not args and not options:
        return arrays.copy()
    if deferring((arrays,)) or not traced_among((arrays, *args), options):
        return np.stack(arrays, *args, **options)
    return FUNCTIONS[np.stack](arrays, *args, **options)
