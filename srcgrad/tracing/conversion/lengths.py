"""``while len(v) > 1``: loops whose test asks for the length of an array that each trip makes shorter, or longer.

``while stack``: or of a list that each trip makes shorter; ``while len(self.history) < n``: or longer.

How many trips there are is found after the first one by asking the test of arrays of the lengths that follow, if each
trip changes them by as much. While the others are traced as one region, what the test is made of tells that nothing
else decides: the number of the trip and what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.conversion.counting import FAILURES, Counter
from srcgrad.tracing.conversion.filled import filled_of
from srcgrad.tracing.conversion.items import Items
from srcgrad.tracing.conversion.places import by_trip
from srcgrad.tracing.conversion.popped import Popped
from srcgrad.tracing.conversion.state import reachable, same_handle
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Tracer

MOST: Final = 100_000
"""How many trips are counted at most."""


class Shapes(NamedTuple):
    """What is noted of arrays and lists is no reference to them."""

    arrays: tuple[tuple[int, ...] | None, ...] = ()
    """The shapes of the variables that are arrays, or lists."""
    lists: Mapping[int, int] = {}
    """The lengths of lists by their ids."""


def shapes_of(values: tuple[Any, ...], visible: Callable[[], tuple[Any, ...]]) -> Shapes:
    return Shapes(shapes_of_arrays(values), {id(x): len(x) for x in lists_of([*values, *visible()])})


def shapes_of_arrays(values: tuple[Any, ...]) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(
        x.shape if isinstance(x, (Tracer, np.ndarray)) else (len(x),) if type(x) is list else None for x in values
    )


def lists_of(values: Sequence[Any]) -> list[list[Any]]:
    """Those that values lead to."""
    return [x for x in reachable(values, iterators=True) if type(x) is list]


def trips_left(
    test: Callable[[], Any], before: Shapes, get: Any, put: Any, visible: Callable[[], tuple[Any, ...]]
) -> int:
    """How many trips follow one that has changed the lengths of arrays; 0 where that is not known.

    ``before``: the shapes of the variables before that trip.
    """
    now, mark = get(), len(current_trace().builder.operations)
    changes: dict[int, Any] = {}
    moved = moved_lists(now, visible, before)
    kept = [list(x) for x in moved]
    steps = [len(x) - before.lists[id(x)] for x in moved]
    now_shapes: Any = shapes_of_arrays(now)
    for place, (one, other) in enumerate(zip(before.arrays, now_shapes, strict=True)):
        if one is not None and other is not None and one != other and len(one) == len(other):
            changes[place] = np.subtract(other, one)
    if not changes and not moved:
        return 0
    lists = {place: [0.0] * len(now[place]) for place in changes if type(now[place]) is list}
    try:
        longer = len(lists) == len(changes) and min([*steps, *(change[0] for change in changes.values())]) >= 0
        if longer and goes_on(test, now, put, changes, moved):
            return 0
        for trips in range(1, MOST):
            values = list(now)
            for place, change in changes.items():
                shape = np.add(now_shapes[place], trips * change)
                if np.any(shape < 0):
                    return 0
                values[place] = of_shape(lists.get(place, now[place]), shape.tolist())
            for x, items, step in zip(moved, kept, steps, strict=True):
                if len(items) + trips * step < 0:
                    return 0
                of_shape(x, (len(items) + trips * step,))
            put(tuple(values))
            answer = test()
            if isinstance(answer, Tracer) or len(current_trace().builder.operations) > mark:
                return 0
            if not answer:
                return trips
    except FAILURES:
        pass
    finally:
        put(now)
        for x, items in zip(moved, kept, strict=True):
            x[:] = items
    return 0


def moved_lists(now: tuple[Any, ...], visible: Callable[[], tuple[Any, ...]], before: Shapes) -> list[list[Any]]:
    """The lists that a trip has made shorter, and of those that are no variables of the loop the ones made longer."""
    own = {id(x) for x in now}
    there = [x for x in lists_of([*now, *visible()]) if id(x) in before.lists]
    return [x for x in there if len(x) < before.lists[id(x)] or (len(x) > before.lists[id(x)] and id(x) not in own)]


def of_shape(x: Any, shape: Sequence[int]) -> Any:
    """An array of another shape, or a list made as long."""
    if type(x) is not list:
        return np.broadcast_to(np.zeros((), x.dtype), tuple(shape))
    x += [0.0] * (shape[0] - len(x))
    del x[shape[0] :]
    return x


def goes_on(
    test: Callable[[], Any], now: tuple[Any, ...], put: Any, changes: Mapping[int, Any], moved: Sequence[list[Any]]
) -> bool:
    """Whether a loop whose lists all get longer would do so beyond all bounds, as one that a clock ends."""
    put(tuple([[0.0] * MOST if place in changes else x for place, x in enumerate(now)]))
    for x in moved:
        of_shape(x, (MOST,))
    return bool(test())


def items_of_lengths(trips: int) -> Items:
    """The numbers of the trips."""
    return Items(trips, lambda k: k)


def require_length(answer: Any, index: Any, trips: int) -> None:
    """Refuse a test, asked where a trip begins, that does not hold in each of the trips, whatever the values.

    Raises:
        Refused: it is such a test.
    """
    if not isinstance(answer, Tracer):
        known = bool(answer)
    else:
        trace = current_trace()
        answers = by_trip(answer.read(), [trace], index.read(), trips) if isinstance(index, Tracer) else None
        known = answers is not None and bool(np.all(answers))
    if not known:
        raise Refused("the test of a while asks for more than the length of an array")


def require_lengths_left_alone(counter: Counter, seen: tuple[Any, ...], values: Sequence[Any]) -> None:
    """Refuse a loop whose test asks how long a list is from which its trips take items: while it is traced, it has all.

    Raises:
        Refused: it is such a loop.
    """
    for items in lists_of(values):
        if isinstance(filled_of(items), Popped):
            last = items.pop()
            changed = not same_handle(counter.seen(), seen)
            items.append(last)
            if changed:
                raise Refused("a while changes a number that its test or its counter is made of")
