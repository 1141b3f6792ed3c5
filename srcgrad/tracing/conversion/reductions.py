"""Comprehensions and generators: loops that hand on their items, to a list or to a reduction.

What filters by traced values is a conditional step for each item.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.conversion.branches import choose, closure_values, if_
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.comprehended import Filling, ignored, varying_items
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.loops import for_
from srcgrad.tracing.conversion.numbers import bool_, pick
from srcgrad.tracing.conversion.state import UNSET, unknown
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer

Step = Callable[[Any, Any], Any]
NAMES: Final = ("_sg_value", "_sg_taken")
"""The variables of a reduction, in messages."""
GENERATORS: Final = frozenset({sum, max, min, any, all, math.fsum, math.prod})
"""Reductions that take a generator."""
ONE_BY_ONE: Final = frozenset({sum, math.fsum, math.prod})
"""Those that take one item after the other where nothing is filtered too."""
QUANTIFIERS: Final = frozenset({any, all})
GATHERERS: Final = frozenset({list, tuple, sorted, max, min})
"""Functions of a generator to which a list of its items is the same."""


class Reduction(NamedTuple):
    """How a reduction takes one more item; ``start`` is `UNSET` where the first item is the result so far."""

    start: Any
    step: Step
    of_arrays: Any = None
    """NumPy's function: its result is no Python number, and an item that is an array is reduced too."""


def counted(count: Any, item: Any) -> Any:
    return count + 1


def numpy_extreme(function: Any) -> Step:
    return lambda best, item: function(best, item)


REDUCTIONS: Final[dict[Any, Reduction]] = {
    sum: Reduction(0, operator.add),
    math.fsum: Reduction(0.0, operator.add),
    math.prod: Reduction(1, operator.mul),
    len: Reduction(0, counted),
    max: Reduction(UNSET, lambda best, item: pick(best, item, operator.gt)),
    min: Reduction(UNSET, lambda best, item: pick(best, item, operator.lt)),
    any: Reduction(False, lambda found, item: np.logical_or(found, bool_(item))),
    all: Reduction(True, lambda found, item: np.logical_and(found, bool_(item))),
    np.sum: Reduction(0, operator.add, np.sum),
    np.prod: Reduction(1, operator.mul, np.prod),
    np.max: Reduction(UNSET, numpy_extreme(np.maximum), np.max),
    np.min: Reduction(UNSET, numpy_extreme(np.minimum), np.min),
}


def reduced(
    function: Any, flow: Callable[[Any], Any], python: Callable[[], Any], filtered: bool, is_list: bool,
    *rest: Any, **options: Any,
) -> Any:  # fmt: skip
    """``function(items, *rest, **options)``: ``flow`` hands the items on, ``python`` has them as Python does."""
    trace = CURRENT.get()
    if trace is None or trace.concrete or not isinstance(function, Hashable):
        return call(function, python(), *rest, **options)
    reduction = REDUCTIONS.get(function)
    fits = reduction is not None and (is_list or function in GENERATORS) and accepted(function, rest, options)
    if fits and reduction is not None and (filtered or function in ONE_BY_ONE):
        if rest or "start" in options:
            reduction = reduction._replace(start=rest[0] if rest else options["start"])
        taker = Accumulation(reduction, function in QUANTIFIERS and not is_list)
        flow(taker)
        return taker.found(function, options)
    gathers = function in GATHERERS and not filtered and not is_list
    return call(function, gathered(flow) if gathers else python(), *rest, **options)


def listed(flow: Callable[[Any], Any], python: Callable[[], list[Any]]) -> Any:
    """``[element for item in iterable ...]``."""
    trace = CURRENT.get()
    return python() if trace is None or trace.concrete else gathered(flow)


def gathered(flow: Callable[[Any], Any]) -> Any:
    taker = Gathering()
    flow(taker)
    return taker.items


class Gathering:
    """A list of the items in progress."""

    __slots__ = ("filling", "inside", "items")  # not an object of the program's, whose attributes loops may change

    def __init__(self) -> None:
        self.items: Any = []
        self.inside = False
        """Whether a loop hands on its items."""
        self.filling: Filling | None = None
        """What takes them in a loop whose number says how many there are."""

    def take(self, item: Any) -> None:
        (self.items.append if self.filling is None else self.filling.take)(item)

    def where(self, test: Any, then: Callable[[], Any]) -> None:
        if_(test, then, lambda: None, tuple, ignored, (), lambda: (self.items, *closure_values(then)))

    def over(self, iterable: Any, trip: Callable[[Any], Any]) -> None:
        items = None if self.inside else varying_items(iterable)
        outermost, self.inside = not self.inside, True
        if items is not None:
            self.filling = Filling(items)
            self.items = self.filling.made(trip, lambda: closure_values(trip))
        else:
            for_(
                iterable, trip, None, tuple, ignored, (), lambda: (self.items, *closure_values(trip)),
                appended=lambda: ((self.items, False),),
            )  # fmt: skip
        self.inside = not outermost


def accepted(function: Any, rest: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether the other arguments of the call have a meaning here."""
    if function is sum and len(rest) + len(options) <= 1:
        return len(rest) == 1 or set(options) <= {"start"}
    allowed = {max: {"default"}, min: {"default"}, math.prod: {"start"}}.get(function, set())
    return not rest and set(options) <= allowed


class Accumulation:
    """A reduction in progress: the result so far, and whether an item was taken."""

    __slots__ = ("reduction", "result", "stops", "taken")

    def __init__(self, reduction: Reduction, stops: bool) -> None:
        """``stops``: whether no more items are asked for once the result is known."""
        self.reduction, self.stops = reduction, stops
        self.result: Any = reduction.start
        self.taken: Any = reduction.start is not UNSET

    def get(self) -> tuple[Any, Any]:
        return self.result, self.taken

    def put(self, values: tuple[Any, Any]) -> None:
        self.result, self.taken = values

    def take(self, value: Any) -> None:
        whole = self.reduction.of_arrays
        if whole is not None and isinstance(value, (Tracer, np.ndarray)) and value.ndim:
            value = whole(value)
        before = self.result
        self.result = choose(self.taken, lambda: self.reduction.step(before, value), lambda: value)
        if self.taken is not True:
            self.taken = True

    def where(self, test: Any, then: Callable[[], Any]) -> None:
        if_(test, then, lambda: None, self.get, self.put, NAMES, lambda: closure_values(then))

    def open(self) -> Any:
        """Whether ``any`` or ``all`` asks for another item."""
        return unknown(self.result) or bool(self.result) is self.reduction.start

    def over(self, iterable: Any, trip: Callable[[Any], Any]) -> None:
        go_on = self.open if self.stops else None
        for_(iterable, trip, go_on, self.get, self.put, NAMES, lambda: closure_values(trip))

    def found(self, function: Any, options: dict[str, Any]) -> Any:
        if self.taken is True:
            result = self.result
        elif "default" in options:
            result = choose(self.taken, lambda: self.result, lambda: options["default"])
        elif unknown(self.taken):
            emit_check(self.taken, "ValueError", empty_message(function))
            result = self.result
        else:
            result = function([])  # which raises the error
        return as_tracer(result) if self.reduction.of_arrays is not None and contains_tracer(result) else result


def empty_message(function: Any) -> str:
    """What a function says of a sequence without items."""
    try:
        function([])
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{function} has a value for no items")
