"""Large captured containers of floats, which are one input: an array that each call reads out of them.

An input for each float is an argument of the program for each, and LLVM takes quadratic time for these. The array is
unpacked when a trace is given a copy of the container: its items are rows of that array (`rows.py`), so that
``np.array(container)`` and loops over it find the array again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.alike import addresses, items_of, same_items
from srcgrad.tracing.purity import STATIC_TYPES
from srcgrad.tracing.rows import row
from srcgrad.tracing.tracer import Tracer

MANY: Final = 128
"""The floats or constants in a container from which they are read together."""
FEW: Final = 16
"""The same for floats where there would be more than so many inputs: machine code that is called has 128 arguments."""
CROWDED: Final = 96
RECORDS: Final = (list, tuple)
FLOATS: Final[frozenset[type]] = frozenset({float, np.float64})
"""What is packed, of one of the types: Python's floats, and the items of ``list(array)``."""


class Packing(NamedTuple):
    """What a container is like: it holds floats and constants, or records of as many items each."""

    kinds: tuple[type, ...]
    """The types of its items."""
    width: int
    """The items of each of its records; 0 if it has none."""
    floats: Mapping[int, type]
    """The places of floats in records, in order, and of which type they are; those at the others are constants."""
    static: Callable[[Any], Hashable | None]
    constants: tuple[Any, ...]
    keys: tuple[Hashable, ...]
    """The keys of the constants."""
    last: list[tuple[tuple[Any, ...], Hashable, np.ndarray[Any, Any]]] | None
    """What was read last: the items, where they are, and the floats in them; None if records can change."""

    def read(self, container: Any) -> np.ndarray[Any, Any] | None:
        """The floats, those of records by their place in these; None if the container is another one."""
        items = items_of(container)
        if self.last is None:
            return self.read_items(items)
        places = addresses(items)
        for _, before, floats in tuple(self.last):
            if places == before:
                return floats
        found = self.read_items(items)
        if found is not None:
            self.last[:] = [(items, places, found)]
        return found

    def read_items(self, items: tuple[Any, ...]) -> np.ndarray[Any, Any] | None:
        """The same of the items, whatever was read before."""
        if tuple(map(type, items)) != self.kinds:
            return None
        if not self.width:
            floats, held = split(items) if self.constants else (items, ())
            return np.fromiter(floats, float, len(floats)) if self.has(held) else None
        if set(map(len, items)) != {self.width} or not are_apart(items):
            return None
        columns = list(zip(*items, strict=True))
        if any(set(map(type, columns[k])) != {kind} for k, kind in self.floats.items()):
            return None
        if not self.has(self.others(columns)):
            return None
        given = itertools.chain.from_iterable([columns[k] for k in self.floats])
        return np.fromiter(given, float, len(self.floats) * len(items)).reshape(len(self.floats), len(items))

    def has(self, held: tuple[Any, ...]) -> bool:
        """Whether these are the constants."""
        return same_items(held, self.static, self.constants, self.keys)

    def others(self, columns: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """What records have at the places of constants."""
        return tuple(item for k, column in enumerate(columns) if k not in self.floats for item in column)

    def unpacked(self, floats: Any, container: Any) -> list[Any]:
        """The items of a copy, of numbers or traced floats."""
        items = items_of(container)
        if not self.width:
            (kind,) = FLOATS.intersection(self.kinds)
            left = iter(rows_of(floats, kind, len(floats)))
            return [next(left) if type(item) in FLOATS else item for item in items]
        columns = list(zip(*items, strict=True))
        for number, (k, kind) in enumerate(self.floats.items()):
            column = row(floats, number, False, False) if isinstance(floats, Tracer) else floats[number]
            columns[k] = tuple(rows_of(column, kind, len(items)))
        return [kind(record) for kind, record in zip(self.kinds, zip(*columns, strict=True), strict=True)]


def rows_of(floats: Any, kind: type, count: int) -> list[Any]:
    """The numbers of an array, of one type, which of a traced one are its rows."""
    if not isinstance(floats, Tracer):
        return [kind(number) for number in floats]
    return [row(floats, k, True, kind is float) for k in range(count)]


def are_apart(items: Sequence[Any]) -> bool:
    """Whether no two are one object: a copy for each would tell ``is`` otherwise."""
    return len(set(map(id, items))) == len(items)


def split(items: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The floats, and what else there is."""
    floats = [item for item in items if type(item) in FLOATS]
    return tuple(floats), tuple(item for item in items if type(item) not in FLOATS)


def packing(items: Sequence[Any], static: Callable[[Any], Hashable | None], hidden: int) -> Packing | None:
    """How the items of a container are read together; None if they are few, or others than floats and constants.

    ``static``: the key of a constant; None if it is none. ``hidden``: how many inputs there are already.
    """
    kinds = tuple(map(type, items))
    if items and set(kinds) <= set(RECORDS) and len(set(map(len, items))) == 1 and are_apart(items):
        found = records(items, kinds, static, hidden)
        if found is not None:
            return found
    if len(FLOATS.intersection(kinds)) > 1:
        return None
    floats, constants = split(items)
    if len(items) < least(len(floats), hidden) or not all(map(is_constant, constants)):
        return None
    keys = tuple(map(static, constants))
    return None if None in keys else Packing(kinds, 0, {}, static, constants, keys, [])


def least(floats: int, hidden: int) -> int:
    """From how many items these are read together, of which so many are floats."""
    return FEW if floats and hidden + floats > CROWDED else MANY


def is_constant(item: Any) -> bool:
    return type(item) is tuple or type(item) in STATIC_TYPES


def records(
    items: Sequence[Any], kinds: tuple[type, ...], static: Callable[[Any], Hashable | None], hidden: int
) -> Packing | None:
    """How records of as many items each are read, if those at each place are all floats or all constants."""
    columns = list(zip(*items, strict=True))
    types = [set(map(type, column)) for column in columns]
    floats = {k: kind for k, found in enumerate(types) for kind in FLOATS if found == {kind}}
    count = len(floats) * len(items)
    if not floats or count < least(count, hidden):
        return None
    found = Packing(kinds, len(columns), floats, static, (), (), None if list in kinds else [])
    constants = found.others(columns)
    if not all(map(is_constant, constants)):
        return None
    keys = tuple(map(static, constants))
    return None if None in keys else found._replace(constants=constants, keys=keys)
