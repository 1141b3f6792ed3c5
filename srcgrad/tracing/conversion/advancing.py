"""Iterators that a loop moves on behind a traced condition which ends it, or not: Python would not have.

``for v in numbers: if v < 0: break`` and ``any(v < 0 for v in numbers)`` are traced to the last item. That is Python's
meaning where an item is only computed, and where nothing reads the iterator afterwards.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from types import FunctionType, GeneratorType
from typing import Any, Final

from srcgrad.tracing.conversion.series import Series
from srcgrad.tracing.conversion.state import Marker, contents, has_effects, reachable
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Tracer

# --- whether anything reads it afterwards ---------------------------------------------------


def references(iterator: Any) -> int:
    """What Python counts for an argument that its caller has not kept."""
    return sys.getrefcount(iterator)


def references_within(iterator: Any) -> int:
    return references(iterator)


UNKEPT: Final = references_within(iter(()))


def require_own(iterable: Any, count: int) -> None:
    """Refuse an iterator that something else has, or that reads such a one. ``count``: its `references`.

    Raises:
        Refused: its place after the loop depends on a traced condition.
    """
    if isinstance(iterable, Iterator) and (count > UNKEPT or excess(iterable) > LEAST):
        raise Refused("a traced condition decides how far a loop moves an iterator on, which is kept")


def excess(iterator: Any) -> int:
    """How many references there are at most to an iterator that this one reads, beside those that these have."""
    inner, edges = inner_iterators(iterator)
    return max((references(inner[k]) - edges[id(inner[k])] for k in range(len(inner))), default=0)


def inner_iterators(iterator: Any) -> tuple[list[Any], Counter[int]]:
    """The iterators that one reads, and how often they and it hold each."""
    found: list[Any] = []
    edges: Counter[int] = Counter()
    known, waiting = {id(iterator)}, [iterator]
    while waiting:
        for x in held_by(waiting.pop()):
            if not isinstance(x, (tuple, Iterator)):
                continue
            edges[id(x)] += 1
            if id(x) not in known:
                known.add(id(x))
                waiting.append(x)
                if not isinstance(x, tuple):
                    found.append(x)
    return found, edges


def held_by(x: Any) -> list[Any]:
    return [x.made, x.parts] if isinstance(x, Series) else gc.get_referents(x)


LEAST: Final = excess(enumerate(iter(())))
"""What `excess` is where nothing else has them."""


END: Final = Marker("end")
"""Stands behind the last item."""

# --- what it does when it is read -----------------------------------------------------------


def advanced(iterator: Iterator[Any]) -> Any:
    """The next item, or `END`, behind a traced condition under which Python asks for none.

    Raises:
        Refused: to give it does something else than to compute: it sets variables, changes lists, arrays or
            attributes, prints, draws or may fail.
    """
    operations, containers = current_trace().builder.operations, reachable(led_to(iterator), iterators=True)
    before, start = held_in(containers), len(operations)
    item = next(iterator, END)
    after = held_in(containers)
    same = len(before) == len(after) and all(x is y for x, y in zip(before, after, strict=True))
    if not same or has_effects(operations[start:]):
        raise Refused("an iterator does more than to give its items, behind a traced condition")
    return item


def led_to(iterator: Any) -> list[Any]:
    """What an iterator may change and others may have: functions, and what generators were given."""
    found: list[Any] = []
    for each in (iterator, *inner_iterators(iterator)[0]):
        if isinstance(each, GeneratorType) and each.gi_frame is not None:
            code, variables = each.gi_code, each.gi_frame.f_locals
            given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            found += [x for x in held_by(each) if isinstance(x, FunctionType)]
            found += [variables.get(name) for name in given]
        elif not isinstance(each, (GeneratorType, Series)):
            found += held_by(each)
    return found


def held_in(containers: Sequence[Any]) -> list[Any]:
    """What containers hold, and which values the memory of arrays among that has."""
    found = [x for container in containers for x in contents(container)[1]]
    overlay = current_trace().overlay
    memory = [x.storage for x in found if isinstance(x, Tracer)]
    return [*found, *(written for storage in memory for written in (storage.value, overlay.get(storage)))]
