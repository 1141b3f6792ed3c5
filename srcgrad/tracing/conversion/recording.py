"""A ``while`` whose trips append to lists as values say so: one region, and the lists are `Recorded` from then on.

That is so where nothing else makes a program of the loop: of lists that have as many items at each call Python knows
the length.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.attempts import Before
from srcgrad.tracing.conversion.histories import READERS
from srcgrad.tracing.conversion.loop_operations import while_region
from srcgrad.tracing.conversion.loops import while_
from srcgrad.tracing.conversion.marks import Mark
from srcgrad.tracing.conversion.recorded import Recorded, Widened, widened
from srcgrad.tracing.conversion.records import LISTED
from srcgrad.tracing.conversion.state import Kind, State, kind_of
from srcgrad.tracing.conversion.trust import may_trust
from srcgrad.tracing.trace import CURRENT, Refused, current_span, current_trace

KNOWN: Final = (builtins.len, *(getattr(np, name) for name in sorted(READERS) if hasattr(np, name)))
"""Functions of which it is known what they do with a list."""
MOST_WIDENED: Final = 16
"""So often a loop begins again with wider rows at most."""


def recording_while_(
    groups: tuple[tuple[str, ...], ...], readers: Callable[[], tuple[Any, ...]], test: Callable[[], Any],
    body: Callable[[], Any], get: Any, put: Any, names: tuple[str, ...], visible: Any, plain: bool,
    counter: tuple[Any, ...] | None,
) -> None:  # fmt: skip
    """The statement ``while``. ``groups``: the lists, together those to which the same statements append.

    ``readers``: the functions that read them, as the source names them.
    """
    trace = CURRENT.get()
    if trace is None or trace.concrete or not may_trust(trace) or not read_by_known(readers):
        while_(test, body, get, put, names, visible, plain, counter)
        return
    mark, said = Mark(trace), len(trace.rolled)
    before = Before(trace, get, put, names, visible)
    try:
        while_(test, body, get, put, names, visible, plain, counter)
        return
    except Refused as error:
        if before.refused is not None:
            raise
        refused = error
        before.restore()
        mark.back()
        del trace.rolled[said:]
    finally:
        before.end()
    if not recorded_region(groups, test, body, get, put, names, visible):
        raise refused


def read_by_known(readers: Callable[[], tuple[Any, ...]]) -> bool:
    """Whether those are Python's and NumPy's functions."""
    try:
        found = readers()
    except (NameError, AttributeError):
        return False
    return all(any(x is known for known in KNOWN) for x in found)


def recorded_region(
    groups: Sequence[Sequence[str]], test: Callable[[], Any], body: Callable[[], Any], get: Any, put: Any,
    names: tuple[str, ...], visible: Any,
) -> bool:  # fmt: skip
    """Try to make the loop one region, with rows in the place of the lists."""
    start = get()
    variables = dict(zip(names, start, strict=True))
    lists = {name: x for name, x in variables.items() if type(x) is list and any(name in group for group in groups)}
    trace = current_trace()
    mark = Mark(trace)
    made: list[Recorded] = []
    try:
        kinds = {name: kind_of_items(name, items) for name, items in lists.items()}
        for _ in range(MOST_WIDENED):
            made = recorded(groups, lists, kinds)
            by_name = {one.name: one for one in made}
            put(tuple(by_name.get(name, x) for name, x in zip(names, start, strict=True)))
            try:
                while_region(test, lambda _: body(), State(get, put, names, visible), False, "while")
            except Widened as error:
                if all(error.owner is not one for one in made):
                    raise
                put(start)
                mark.back()
                kinds[error.owner.name] = error.kind
                continue
            close(made, lists, get, put, names)
            return True
    except Refused:
        pass
    for one in made:
        one.opened = False
    put(start)
    mark.back()
    return False


def kind_of_items(name: str, items: Sequence[Any]) -> Kind | None:
    """The kind of rows that hold the items that a list begins with.

    Raises:
        Refused: there is none.
    """
    found: Kind | None = None
    for item in items:
        kind = kind_of(item)
        if kind is None:
            raise Refused(f"{name!r} has other items than numbers and arrays")
        found = kind if found is None else widened(name, found, kind)
    return found


def recorded(
    groups: Sequence[Sequence[str]], lists: dict[str, list[Any]], kinds: dict[str, Kind | None]
) -> list[Recorded]:
    """What stands for the lists of a loop that is tried."""
    made: list[Recorded] = []
    for group in groups:
        leader: Recorded | None = None
        for name in group:
            if name in lists:
                alike = leader if leader is not None and leader.least == len(lists[name]) else None
                made.append(Recorded(name, lists[name], kinds[name], alike))
                leader = made[-1] if leader is None else leader
    return made


def close(made: list[Recorded], lists: dict[str, list[Any]], get: Any, put: Any, names: tuple[str, ...]) -> None:
    """What a loop leaves; a list to which no trip may append stays one."""
    left = {one.name: lists[one.name] for one in made if one.kind is None}
    put(tuple(left.get(name, x) for name, x in zip(names, get(), strict=True)))
    place, room = current_span(), min((one.room for one in made if one.kind is not None), default=0)
    for one in made:
        one.opened = False
    where = "" if place is None else f" at {place.label()}"
    shown = " and ".join(one.name.removesuffix(LISTED) for one in made if one.kind is not None)
    current_trace().rolled.append(
        f"the items of {shown}{where}: this program is for calls with no more than {room}, others are made another way"
    )
