"""Which functions are not analysed again for some calls, as they read much and something that cannot be watched."""

from __future__ import annotations

import functools
import types
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.capture import Uncacheable
from srcgrad.tracing.lookups import is_unbound_cell
from srcgrad.tracing.unasked import attribute

MUCH: Final = 400
"""From how many reads on it is not at each call that a function is analysed in vain."""
LONGEST: Final = 256
MOST_OTHERS: Final = 4
"""After so many refused in a row that read other objects, those of the same code wait whatever they read."""
MOST_READ: Final = 64
"""The most functions and objects that are looked at, the nearest first."""
INCIDENTAL: Final = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic, types.ModuleType)
"""What may be another at each call of the same function, and is no reason to refuse one."""


class About:
    """What a function reads that was analysed, by which others of its code are told apart from it."""

    __slots__ = ("others", "same")

    def __init__(self, function: Any, others: int = 0) -> None:
        self.same = [the_very(thing) for thing in read_by(function)]
        self.others = others
        """How many before it read other objects, and were analysed to no other end."""

    def is_about(self, function: Any) -> bool:
        if self.others >= MOST_OTHERS:
            return True
        things = read_by(function)
        return len(things) == len(self.same) and all(is_it(x) for is_it, x in zip(self.same, things, strict=True))


class Waiting(About):
    """That a function of this code reads so much, and something that cannot be watched, that it is not analysed again
    for some calls, each time for twice as many. Until then it is traced at each call, as if it were analysed. One that
    reads other objects does not wait for it, as they may be small or can be watched.
    """

    __slots__ = ("calls", "found", "left")

    def __init__(self, function: Any, found: Uncacheable, before: Waiting | None) -> None:
        super().__init__(function, 0 if before is None else before.others + (not before.is_about(function)))
        self.found = found
        self.calls: int = 1 if before is None else min(2 * before.calls, LONGEST)
        self.left = self.calls

    def waits(self, function: Any) -> bool:
        if not self.is_about(function):
            return False
        self.left -= 1
        return self.left >= 0


def the_very(thing: Any) -> Callable[[Any], bool]:
    """Whether something is this object, which is not kept alive: what is there in its place later is taken for it
    where nothing can refer to it weakly, and waits in vain.
    """
    try:
        kept = weakref.ref(thing)
    except TypeError:
        number = id(thing)
        return lambda other: id(other) == number
    return lambda other: kept() is other


def read_by(function: Any) -> list[Any]:
    """The objects, containers and classes that a function is bound to, or has under names in its code and in that of
    the functions it has so: hints, by which functions of one code are told apart.
    """
    found: list[Any] = []
    pending, seen = deque([function]), set[int]()
    while pending and len(seen) < MOST_READ:
        thing = pending.popleft()
        if id(thing) in seen or isinstance(thing, INCIDENTAL):
            continue
        seen.add(id(thing))
        inner = held_by(thing)
        pending += inner
        if not inner and not isinstance(thing, (types.FunctionType, types.BuiltinFunctionType)):
            found.append(thing)
    return found


def held_by(thing: Any) -> list[Any]:
    """What a function leads to, through partials, methods and transforms."""
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if not is_unbound_cell(cell)]
        names = thing.__globals__
        return [
            *cells,
            *(thing.__defaults__ or ()),
            *[names[name] for name in thing.__code__.co_names if name in names],
        ]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.MethodType):
        return [thing.__self__, thing.__func__]
    if type(thing) is np.vectorize:
        return [thing.pyfunc]
    wrapped: Hashable = attribute(thing, "__srcgrad_wrapped__")
    return [*wrapped] if isinstance(wrapped, tuple) else [] if wrapped is None else [wrapped]
