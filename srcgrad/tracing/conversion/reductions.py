"""Comprehensions that filter by traced values, where a reduction takes them: a conditional step for each item."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.tracing.conversion.branches import choose, closure_values, if_
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.loops import for_
from srcgrad.tracing.conversion.numbers import bool_, pick
from srcgrad.tracing.conversion.state import UNSET, emit_check, unknown
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer

Step = Callable[[Any, Any], Any]
GENERATORS: Final = frozenset({sum, max, min, any, all, math.fsum, math.prod})
"""Reductions that take a generator."""


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
    function: Any, iterable: Any, test: Callable[[Any], Any], element: Callable[[Any], Any], is_list: bool,
    *rest: Any, **options: Any,
) -> Any:  # fmt: skip
    """``function([element(item) for item in iterable if test(item)], *rest, **options)``, or of a generator."""
    trace = CURRENT.get()
    reduction = REDUCTIONS.get(function) if isinstance(function, Hashable) else None
    fits = reduction is not None and (is_list or function in GENERATORS)
    if reduction is None or not fits or trace is None or trace.concrete or not accepted(function, rest, options):
        kept = (element(item) for item in iterable if test(item))
        return call(function, list(kept) if is_list else kept, *rest, **options)
    if rest:
        reduction = reduction._replace(start=rest[0])
    elif "start" in options:
        reduction = reduction._replace(start=options["start"])
    return Accumulation(reduction, test, element).over(iterable, function, is_list, options)


def listed(iterable: Any, element: Callable[[Any], Any]) -> list[Any]:
    """``[element(item) for item in iterable]``."""
    trace = CURRENT.get()
    if trace is None or trace.concrete:
        return [element(item) for item in iterable]
    found: list[Any] = []

    def take(item: Any) -> None:
        found.append(element(item))

    state = (lambda: (), lambda values: None, (), lambda: closure_values(element))
    for_(iterable, take, None, *state, appended=lambda: ((found, False),))
    return found


def accepted(function: Any, rest: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether the other arguments of the call have a meaning here."""
    if function is sum and len(rest) + len(options) <= 1:
        return len(rest) == 1 or set(options) <= {"start"}
    allowed = {max: {"default"}, min: {"default"}, math.prod: {"start"}}.get(function, set())
    return not rest and set(options) <= allowed


class Accumulation:
    """A reduction in progress: the result so far, and whether an item was taken."""

    def __init__(self, reduction: Reduction, test: Callable[[Any], Any], element: Callable[[Any], Any]) -> None:
        self.reduction, self.test, self.element = reduction, test, element
        self.result: Any = reduction.start
        self.taken: Any = reduction.start is not UNSET

    def get(self) -> tuple[Any, Any]:
        return self.result, self.taken

    def put(self, values: tuple[Any, Any]) -> None:
        self.result, self.taken = values

    def visible(self) -> tuple[Any, ...]:
        return closure_values(self.test, self.element)

    def take(self, item: Any) -> None:
        value = self.element(item)
        whole = self.reduction.of_arrays
        if whole is not None and isinstance(value, (Tracer, np.ndarray)) and value.ndim:
            value = whole(value)
        before = self.result
        self.result = choose(self.taken, lambda: self.reduction.step(before, value), lambda: value)
        if self.taken is not True:
            self.taken = True

    def trip(self, item: Any) -> None:
        state = (self.get, self.put, ("_sg_value", "_sg_taken"), self.visible)
        if_(self.test(item), lambda: self.take(item), lambda: None, *state)

    def open(self) -> Any:
        """Whether ``any`` or ``all`` asks for another item."""
        return unknown(self.result) or bool(self.result) is self.reduction.start

    def over(self, iterable: Any, function: Any, is_list: bool, options: dict[str, Any]) -> Any:
        go_on = self.open if function in (any, all) and not is_list else None
        names = ("_sg_value", "_sg_taken")
        for_(iterable, self.trip, go_on, self.get, self.put, names, self.visible)
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
