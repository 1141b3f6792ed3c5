"""Comprehensions and generators: loops that hand on their items, to a list or to a reduction.

What filters by traced values is a conditional step for each item.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Sized
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.conversion.advancing import END, advanced, references
from srcgrad.tracing.conversion.branches import and_, choose, closure_values, if_, not_, or_
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.comprehended import Filling, ignored, varying_items
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.conversion.items import items_of
from srcgrad.tracing.conversion.loops import for_
from srcgrad.tracing.conversion.numbers import UNROLLED, bool_, pick
from srcgrad.tracing.conversion.state import UNSET, unknown
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, contains_tracer

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
    if function in QUANTIFIERS and not (is_list or rest or options):
        quantifier = Quantification(function is any)
        flow(quantifier)
        return quantifier.found
    reduction = REDUCTIONS.get(function)
    fits = reduction is not None and (is_list or function in GENERATORS) and accepted(function, rest, options)
    if fits and reduction is not None and (filtered or function in ONE_BY_ONE):
        if rest or "start" in options:
            reduction = reduction._replace(start=rest[0] if rest else options["start"])
        taker = Accumulation(reduction)
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

    def over(self, iterable: Any, trip: Callable[[Any], Any], count: int | None = None) -> None:
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

    __slots__ = ("reduction", "result", "taken")

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
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

    def over(self, iterable: Any, trip: Callable[[Any], Any], count: int | None = None) -> None:
        for_(iterable, trip, None, self.get, self.put, NAMES, lambda: closure_values(trip))

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


class Quantification:
    """``any`` or ``all`` of a generator: an item is evaluated only where none before it has decided."""

    __slots__ = ("found", "which")

    def __init__(self, which: bool) -> None:
        """``which``: the truth that decides."""
        self.which = which
        self.found: Any = not which

    def get(self) -> tuple[Any]:
        return (self.found,)

    def put(self, values: tuple[Any]) -> None:
        (self.found,) = values

    def take(self, value: Any) -> None:
        self.found = bool_(value) if unknown(value) else bool(value)

    def where(self, test: Any, then: Callable[[], Any]) -> None:
        if_(test, then, lambda: None, self.get, self.put, NAMES[:1], lambda: closure_values(then))

    def over(self, iterable: Any, trip: Callable[[Any], Any], count: int | None = None) -> None:
        count, short = references(iterable) if count is None else count, is_few(iterable)

        def ask(item: Any) -> None:
            self.found = (or_ if self.which else and_)(self.found, lambda: self.answer(trip, item))

        def go_on() -> Any:
            if unknown(self.found):
                return True if short else not_(self.found) if self.which else self.found
            return bool(self.found) is not self.which

        for_(iterable, ask, go_on, self.get, self.put, NAMES[:1], lambda: (trip,), None, count)

    def answer(self, trip: Callable[[Any], Any], item: Any) -> Any:
        self.found = not self.which
        trip(item)
        return self.found


def is_few(iterable: Any) -> bool:
    """Whether there are so few items that the question after each is written out."""
    items = items_of(iterable)
    count = items.count if items is not None else len(iterable) if isinstance(iterable, Sized) else None
    return isinstance(count, int) and count <= UNROLLED


def empty_message(function: Any) -> str:
    """What a function says of a sequence without items."""
    try:
        function([])
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{function} has a value for no items")


def quantifier(builtin: Any, combine: Any) -> Any:
    def rule(iterable: Any, /) -> Any:
        whole: Any = np.any if builtin is any else np.all
        if isinstance(iterable, Deferring) and iterable.ndim == 1:
            return bool_(whole(iterable))
        if isinstance(iterable, Tracer) and iterable.ndim == 1:
            return bool_(combine.reduce(iterable != 0))
        found: Any = None
        items: Any = iter(iterable)
        while (item := next(items, END) if found is None else advanced(items)) is not END:
            if unknown(item):
                truth = bool_(item)
                found = truth if found is None else combine(found, truth)
            elif bool(item) is (builtin is any):
                return builtin is any
        return (builtin is not any) if found is None else found

    return rule


call_rule(any)(quantifier(any, np.logical_or))
call_rule(all)(quantifier(all, np.logical_and))
