"""``while len(v) > 1``: loops whose test asks for the length of an array that each trip makes shorter, or longer.

How many trips there are is found after the first one by asking the test of arrays of the lengths that follow, if each
trip changes them by as much. While the others are traced as one region, what the test is made of tells that nothing
else decides: the number of the trip and what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Literal
from srcgrad.tracing.conversion.counting import FAILURES
from srcgrad.tracing.conversion.items import Items
from srcgrad.tracing.conversion.places import of_index
from srcgrad.tracing.trace import Refused, current_trace
from srcgrad.tracing.tracer import Tracer

MOST: Final = 100_000
"""How many trips are counted at most."""


Shapes = tuple[tuple[int, ...] | None, ...]


def shapes_of(values: tuple[Any, ...]) -> Shapes:
    """The shapes of what is an array: a note of these is no reference to them."""
    return tuple(x.shape if isinstance(x, (Tracer, np.ndarray)) else None for x in values)


def trips_left(test: Callable[[], Any], before: Shapes, get: Any, put: Any) -> int:
    """How many trips follow one that has changed the lengths of arrays; 0 where that is not known.

    ``before``: the shapes of the variables before that trip.
    """
    now, mark = get(), len(current_trace().builder.operations)
    changes = {}
    for place, (one, other) in enumerate(zip(before, shapes_of(now), strict=True)):
        if one is not None and other is not None and one != other and len(one) == len(other):
            changes[place] = np.subtract(other, one)
    if not changes:
        return 0
    try:
        for trips in range(1, MOST):
            values = list(now)
            for place, change in changes.items():
                shape = np.array(now[place].shape) + trips * change
                if np.any(shape < 0):
                    return 0
                values[place] = np.broadcast_to(np.zeros((), now[place].dtype), tuple(shape.tolist()))
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
    return 0


def items_of_lengths(trips: int) -> Items:
    """The numbers of the trips."""
    return Items(trips, lambda k: k)


def require_length(answer: Any, index: Any) -> None:
    """Refuse a test, asked where a trip begins, that anything but the number of the trip may decide.

    Raises:
        Refused: it is such a test.
    """
    if not isinstance(answer, Tracer):
        known = bool(answer)
    else:
        value = answer.read()
        known = isinstance(index, Tracer) and (
            isinstance(value, Literal) or value in of_index(current_trace(), index.read())
        )
    if not known:
        raise Refused("the test of a while asks for more than the length of an array")
