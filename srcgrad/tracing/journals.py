"""What a function writes for its caller and does not read: it appends to captured lists (``self.seen.append(loss)``),
counts with captured numbers (``calls += 1``), does either with items of captured containers, and stores results as
attributes of captured objects.

What these hold decides nothing, so that it is no guard and no input. A program is given their numbers in `JOURNALS` and
changes them when it runs, in the order of the user's code; in a trace something stands for them that only knows how
they are changed.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from srcgrad.ir.locks import new_lock
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Deferring, Tracer

RECENT: Final = 64
"""How many journals are found although no call in progress has them: a device may call back later."""
NUMBERS: Final = frozenset({bool, int, float, complex}) | frozenset(np.sctypeDict.values()) - {np.object_}
"""The exact types of what is counted with. Arrays that derivatives are taken of are left as they are."""
CONSTANTS: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)
Change = Callable[[Any, Any], Any]


class Journal:
    """What a function changes and does not read, as it is passed to a program: a container."""

    __slots__ = ("__weakref__", "target")

    def __init__(self, target: Any) -> None:
        self.target = target

    def read(self, key: Any) -> Any:
        return self.target[key]

    def write(self, key: Any, value: Any) -> None:
        self.target[key] = value

    @staticmethod
    def stand_in(number: Tracer) -> Any:
        return Items(number)


class Appended(Journal):
    """A list to which a function appends."""

    __slots__ = ()

    def read(self, key: Any) -> Any:
        return self.target

    @staticmethod
    def stand_in(number: Tracer) -> Any:
        return Entry(number, None)


class Named(Journal):
    """A number with which a function counts, in a namespace or another dict."""

    __slots__ = ("name",)

    def __init__(self, target: Any, name: Hashable) -> None:
        super().__init__(target)
        self.name = name

    def read(self, key: Any) -> Any:
        return self.target[self.name]

    def write(self, key: Any, value: Any) -> None:
        self.target[self.name] = value

    @staticmethod
    def stand_in(number: Tracer) -> Any:
        return Entry(number, None)


class Celled(Named):
    """A number with which a function counts, in a variable of the function around it."""

    __slots__ = ()

    def __init__(self, target: types.CellType) -> None:
        super().__init__(target, None)

    def read(self, key: Any) -> Any:
        return self.target.cell_contents

    def write(self, key: Any, value: Any) -> None:
        self.target.cell_contents = value


class Owned(Journal):
    """An object whose attributes a function assigns: the stand-in is its number."""

    __slots__ = ()

    def __init__(self, target: Any) -> None:
        super().__init__(weakref.ref(target) if can_be_weak(target) else lambda: target)

    def read(self, key: Any) -> Any:
        target = self.target()
        return vars(target)[key] if type(target).__dictoffset__ else object.__getattribute__(target, key)

    def write(self, key: Any, value: Any) -> None:
        target = self.target()
        if type(target).__dictoffset__:
            vars(target)[key] = value
        else:
            object.__setattr__(target, key, value)

    @staticmethod
    def stand_in(number: Tracer) -> Any:
        return Owner(number)


class Counted(Owned):
    """A number with which a function counts, an attribute of an object."""

    __slots__ = ("name",)

    def __init__(self, target: Any, name: str) -> None:
        super().__init__(target)
        self.name = name

    def read(self, key: Any) -> Any:
        return super().read(self.name)

    def write(self, key: Any, value: Any) -> None:
        super().write(self.name, value)

    @staticmethod
    def stand_in(number: Tracer) -> Any:
        return Entry(number, None)


class Journals:
    """Journals by number: those of calls in progress, and some more."""

    def __init__(self, kept: int) -> None:
        self.lock = new_lock()
        self.numbers = itertools.count(1)
        self.held: weakref.WeakValueDictionary[int, Journal] = weakref.WeakValueDictionary()
        self.recent: deque[Journal] = deque(maxlen=kept)

    def number(self, journal: Journal) -> np.int64:
        with self.lock:
            number = next(self.numbers)
            self.held[number] = journal
            self.recent.append(journal)
        return np.int64(number)

    def find(self, number: Any) -> Journal:
        found = self.held.get(int(number))
        if found is None:
            raise RuntimeError("a list or an object that a program changes was forgotten")
        return found


JOURNALS: Final = Journals(RECENT)


def is_count(value: object) -> bool:
    """Whether ``+=`` of a value is what NumPy and Python know."""
    return type(value) in NUMBERS


def is_own(owner: object, name: str) -> bool:
    """Whether nothing but an object itself looks after an attribute that it has."""
    found = [vars(base)[name] for base in type(owner).__mro__ if name in vars(base)]
    return not any(hasattr(type(member), "__set__") for member in found)


def can_be_weak(target: object) -> bool:
    """Whether there are weak references to an object; namespaces are held as lists are."""
    return type(target).__weakrefoffset__ != 0


# --- when a program runs -----------------------------------------------------------------------------


def append(key: Any, number: Any, value: Any) -> None:
    JOURNALS.find(number).read(key).append(own(value))


def count(change: Change, key: Any, number: Any, value: Any) -> None:
    journal = JOURNALS.find(number)
    journal.write(key, change(journal.read(key), own(value)))


def store(key: Any, number: Any, value: Any) -> None:
    JOURNALS.find(number).write(key, own(value))


def is_store(site: Any) -> bool:
    """Whether a call of a program's stores an attribute."""
    return getattr(getattr(site, "function", None), "func", None) is store


def own(value: Any) -> Any:
    """A value without arrays that the program has: what is in a list or dict is made for this call."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(own, value))
    return {key: own(item) for key, item in value.items()} if type(value) is dict else value


# --- in a trace --------------------------------------------------------------------------------------


def is_written(value: Any) -> bool:
    """Whether a value is known by what it holds; of others the caller would be given another object."""
    from srcgrad.tracing.conversion.placed_texts import PlacedText  # as the next is
    from srcgrad.tracing.conversion.texts import Text  # which is written with this module

    if type(value) in (list, tuple):
        return all(map(is_written, value))
    if type(value) is dict:
        return all(map(is_written, [*value, *value.values()]))
    return isinstance(value, (Tracer, Deferring, Text, PlacedText, *CONSTANTS)) or type(value) is np.ndarray


def written(change: Callable[[Any, Any], None], number: Tracer, value: Any) -> None:
    """Have the program change a journal when it comes to this place.

    Raises:
        Refused: the value is an object of the user's, say.
    """
    from srcgrad.tracing.conversion.texts import HostSite, emit_site  # which is written with this module

    if not is_written(value):
        raise Refused(f"puts a {type(value).__name__} into a captured container or object")
    emit_site(HostSite(change, (number, value), {}))


def note_arrays(value: Any) -> None:
    """Remember the arrays that a list gets: the function may change them afterwards, and Python's list has them."""
    if isinstance(value, Tracer):
        if not value.scalar and not value.weak:
            current_trace().appended.append((value.storage, value.storage.value))
    elif type(value) in (list, tuple, dict):
        for item in value.values() if type(value) is dict else value:
            note_arrays(item)


def require_unchanged_items(trace: Any) -> None:
    """Refuse a function that changes an array which it has appended to a captured list, whose item is a copy.

    Raises:
        Refused: there is one.
    """
    if trace.parent is None and any(storage.value is not value for storage, value in trace.appended):
        raise Refused("changes an array that it has appended to a captured list")


class StandIn:
    """What stands in a trace for what a function changes and does not read."""

    __slots__ = ("_number",)
    __srcgrad_unfinished__ = True

    def __init__(self, number: Tracer) -> None:
        self._number = number

    def __str__(self) -> str:
        raise Refused("what a function only changes is returned or printed")


class Entry(StandIn):
    """For a list to append to, or a number to count with: of a journal, or its item of the given key."""

    __slots__ = ("_key",)

    def __init__(self, number: Tracer, key: Any) -> None:
        super().__init__(number)
        self._key = key

    def append(self, value: Any, /) -> None:
        note_arrays(value)
        written(functools.partial(append, self._key), self._number, value)


def _counting(change: Change) -> Callable[[Entry, Any], Entry]:
    def counted(self: Entry, value: Any) -> Entry:
        written(functools.partial(count, change, self._key), self._number, value)
        return self

    return counted


OPERATORS: Final = tuple(
    getattr(operator, f"i{_name}")
    for _name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
)
"""What counting does."""
for _operator in OPERATORS:
    setattr(Entry, f"__{_operator.__name__.strip('_')}__", _counting(_operator))


class Items(StandIn):
    """For a container of such lists or numbers."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Entry:
        return Entry(self._number, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is not Entry or value._number is not self._number or value._key != key:
            raise Refused("assigns an item of a container that it only counts in")


class Owner(StandIn):
    """For an object, attributes of which are stored."""

    __slots__ = ()

    def store(self, name: str, value: Any) -> None:
        written(functools.partial(store, name), self._number, value)
