"""Lists, dicts and objects of which a variable holds one or another, depending on a traced condition.

A copy stands for them. That is exact as long as neither it nor one of them is changed later; what nothing else holds
may be changed. Python's reference counts tell.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.tracing.conversion.state import Mistaken, Slots, State, Undefined, contents, reachable, shown, slots_of
from srcgrad.tracing.storage import Use
from srcgrad.tracing.trace import Refused, Trace, current_trace
from srcgrad.tracing.unasked import attribute

HINT: Final = "make a copy where it is chosen: list(x), dict(x), copy.copy(x)"


class Choice(NamedTuple):
    """An object that stands for one or another."""

    name: str
    result: Any
    sources: list[Any]
    kept: set[int] | None
    """Where objects of the user's classes are in it: the parts that all of the sources have, which it has too."""


def references(holder: list[Any], k: int) -> int:
    return sys.getrefcount(holder[k])


IN_A_LIST: Final = references([State.__new__(State)], 0)
"""What `references` gives for what the list alone holds."""


def parts(x: Any) -> Iterator[Any]:
    """What a container or record holds."""
    if isinstance(x, dict):
        yield from x.values()
    elif isinstance(x, (list, tuple, deque)):
        yield from x
    else:
        if type(attributes := attribute(x, "__dict__")) is dict:
            yield from attributes.values()
        yield from contents(Slots(x, slots_of(type(x))))[1]


def gathered(x: Any, holder: list[Any], counts: list[int], kept: Container[int] = ()) -> None:
    """The mutable containers and records in a value, each once, and how often others of them hold it.

    ``kept``: parts that are not copied with it.
    """
    for part in parts(x):
        if id(part) in kept:
            continue
        found = next((k for k, known in enumerate(holder) if known is part), None)
        if found is not None:
            counts[found] += 1
        elif isinstance(part, (list, dict, deque)) or is_object(part):
            holder.append(part)
            counts.append(1)
            gathered(part, holder, counts, kept)
        elif isinstance(part, tuple):
            gathered(part, holder, counts, kept)


def kept_elsewhere(holder: list[Any]) -> bool:
    """Whether the program holds one of the objects in the list, or one inside of them, in another way too.

    Not counted are what the list holds, snapshots and the states of blocks.
    """
    roots = len(holder)
    counts = [0] * roots
    for k in range(roots):
        gathered(holder[k], holder, counts)
    found = False
    for k, count in enumerate(counts):
        found |= held(holder, k) > count
    del holder[roots:]
    return found


def anything_kept_elsewhere(holder: list[Any], kept: Container[int]) -> bool:
    """`kept_elsewhere` of what nothing may be known by: a tuple with objects, and what is there twice, count too.

    ``kept``: parts that are not copied.
    """
    counts = [0] * len(holder)
    for x in list(holder):
        gathered_objects(x, holder, counts, kept)
    del x
    return any(count > 1 or held(holder, k) > count for k, count in enumerate(counts))


def gathered_objects(x: Any, holder: list[Any], counts: list[int], kept: Container[int]) -> bool:
    """`gathered` of all that is copied with a value, tuples with such things in them too; whether there is anything."""
    found = False
    for part in parts(x):
        if id(part) in kept:
            continue
        known = next((k for k, other in enumerate(holder) if other is part), None)
        mutable = isinstance(part, (list, dict, deque)) or is_object(part)
        if known is not None:
            counts[known] += 1
        elif mutable or (isinstance(part, tuple) and gathered_objects(part, holder, counts, kept)):
            holder.append(part)
            counts.append(1)
            if mutable:
                gathered_objects(part, holder, counts, kept)
        else:
            continue
        found = True
    return found


def is_object(x: Any) -> bool:
    return type(attribute(x, "__dict__")) is dict or bool(slots_of(type(x)))


def containers_kept_elsewhere(items: list[Any]) -> bool:
    """Whether a mutable container in one of the items is held by anything besides it and the list of the items."""
    holder: list[Any] = []
    counts: list[int] = []
    gathered(items, holder, counts)
    return any(held(holder, k) > count for k, count in enumerate(counts))


def shared_among(
    values: Iterable[tuple[str, Any]], others: Sequence[Any], kept: Container[int]
) -> Iterator[tuple[str, int | None]]:
    """The names of values with a mutable container or record in it that is there twice, or is among ``others``: where.

    So is one that may be another one, by a traced condition. ``kept``: what is the same in each trip.
    """
    known = {id(x.holder if isinstance(x, Slots) else x): place for place, x in enumerate(others)}
    chosen = {id(x.holder if isinstance(x, Slots) else x) for x, *_ in outermost(current_trace()).chosen}
    holder: list[Any] = []
    counts: list[int] = []
    for name, value in values:
        start = len(holder)
        gathered((value,), holder, counts, kept)
        if any(count > 1 for count in counts):
            yield name, None
        for x in holder[start:]:
            names = {id(x), id(attribute(x, "__dict__"))}
            places = [known[k] for k in names if k in known]
            if places or not names.isdisjoint(chosen):
                yield name, places[0] if places else None


def held(holder: list[Any], k: int) -> int:
    """How often the program holds an object in a list, beside the list, snapshots and the states of blocks."""
    trace = current_trace()
    number, place = references(holder, k) - IN_A_LIST, id(holder[k])
    number -= sum(id(x) == place for noted in list(trace.snapshots) for group in noted.groups() for x in group)
    number -= sum(id(x) == place for x in trace.adopted)
    containers = [x for state in list(trace.states) for x in state.containers]
    return number - sum(id(x.holder if isinstance(x, Slots) else x) == place for x in containers)


def note_choices(choices: list[Choice], state: State) -> None:
    """From now on watch the objects of which the program holds more than the copy that stands for them.

    Of objects of the user's classes there may be no copy then: they may be compared by what they are.
    """
    from srcgrad.tracing.conversion.standing import stands_for  # which needs this module

    while choices:
        name, result, sources, kept = choices.pop()
        if kept is not None:
            if anything_kept_elsewhere(sources, kept) and not stands_for(name, result, sources, kept):
                lose(name, result, state)
        elif kept_elsewhere(sources):
            watch_changes(reachable([result, *sources]), name)


def watch_changes(containers: Iterable[Any], name: str, use: Use | None = None) -> None:
    """Refuse the function if one of these holds something else at its end. ``name``: of a variable for one of them.

    ``use``: whether what stands for them has been read, without which it does not matter.
    """
    outermost(current_trace()).chosen += [(x, contents(x), name, use) for x in containers]


class Picked(Use):
    """Of a copy that stands for one of several containers at a traced place: it has to be exact."""

    def __init__(self) -> None:
        super().__init__((), ())
        self.happened = True


def pick(result: Any, sources: Sequence[Any]) -> None:
    """Note a copy that stands for one of several containers, by a traced place."""
    outermost(current_trace()).picked.add(id(result))
    watch_changes(reachable([result, *sources]), "_sg_value", Picked())


def require_no_pick(container: Any) -> None:
    """Refuse what changes such a copy, where a loop can still be written out."""
    if id(container) in outermost(current_trace()).picked:
        raise Mistaken("a list at a traced place is changed")


def outermost(trace: Trace) -> Trace:
    """The trace of the function."""
    while trace.region and trace.parent is not None:
        trace = trace.parent
    return trace


def lose(name: str, result: Any, state: State) -> None:
    """Have no variable hold what was made of two objects that the program holds.

    Raises:
        Refused: it is the result of an expression or function, or in a container.
    """
    why = f"is another {type(result).__name__} depending on a traced condition"
    variables = state.get()
    if name.startswith(("_sg_", "[")) or all(x is not result for x in variables):
        raise Refused(f"{shown(name)} {why}")
    state.put(tuple(Undefined(name, why) if x is result else x for x in variables))


def require_unchanged_choices(trace: Trace) -> None:
    """Refuse a function that changes one of several objects, depending on a traced condition.

    Raises:
        Refused: it does; the trace has changed a copy.
    """
    for container, (structure, values), name, use in trace.chosen:
        if use is not None and not use.happened:
            continue
        now, held = contents(container)
        if now != structure or any(one is not other for one, other in zip(held, values, strict=True)):
            raise Mistaken("a copy of a list is changed") if type(use) is Picked else changed(name)


def changed(name: str) -> Refused:
    return Refused(f"{shown(name)} is one of several objects, depending on a traced condition, and changed", hint=HINT)
