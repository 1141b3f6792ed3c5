"""``while`` loops that a clock ends: ``while t < end`` where trips change ``t`` in a way that no traced value decides.

The body is traced as that of a loop, and of what comes out the part is run, trip by trip, that the test and such
numbers are computed by. So it is known before the second trip how many there are, and what the numbers are at the end.
Only operations whose results are the same in Python, in NumPy and on every backend are run; where the numbers need
another one, the loop stays one of Python's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Operation, Region, Value
from srcgrad.tracing.conversion.carries import Carry
from srcgrad.tracing.conversion.loop_operations import attempted
from srcgrad.tracing.conversion.loop_regions import LoopRegion
from srcgrad.tracing.conversion.state import Kind, Snapshot, State, kind_of, truth
from srcgrad.tracing.conversion.trips import Trip
from srcgrad.tracing.tracer import Tracer

MOST_TRIPS: Final = 20_000
MOST_RUN: Final = 1_000_000
"""How many operations are run at most to find the trips."""
NUMBERS: Final = ("float64", "int64", "bool")


def least(one: Any, other: Any) -> Any:
    return number_of(min(one, other), one, other)


def most(one: Any, other: Any) -> Any:
    return number_of(max(one, other), one, other)


def number_of(found: Any, one: Any, other: Any) -> Any:
    """What is one of two numbers of which none is nan, as these are ordered otherwise in Python than in NumPy."""
    if one != one or other != other:
        raise ArithmeticError
    return found


def whole(run: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """An operation on integers alone: of floats NumPy rounds it in its own way."""

    def checked(one: Any, other: Any) -> Any:
        if type(one) is not int or type(other) is not int:
            raise ArithmeticError
        return run(one, other)

    return checked


EXACT: Final[Mapping[str, Callable[..., Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "abs": operator.abs, "sqrt": math.sqrt, "minimum": least, "maximum": most,
    "remainder": whole(operator.mod), "floor_divide": whole(operator.floordiv),
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne, "logical_not": operator.not_,
    "logical_and": lambda one, other: one and other, "logical_or": lambda one, other: one or other,
    "select": lambda predicate, one, other: one if predicate else other,
}  # fmt: skip
"""By operation, on Python's numbers."""
CASTS: Final[Mapping[str, Callable[[Any], Any]]] = {"float64": float, "int64": int, "bool": bool}
MADE: Final[Mapping[str, Callable[[Any], Any]]] = {"float64": np.float64, "int64": np.int64, "bool": np.bool_}


class Clock(NamedTuple):
    """How often a loop makes a trip, and the variables at its end that no traced value decides."""

    trips: int
    end: dict[int, Any]
    """By place."""


class _Found(BaseException):
    """The clock of a loop is known, which ends its trace."""

    def __init__(self, clock: Clock | None) -> None:
        self.clock = clock


def clock_of(test: Callable[[], Any], body: Callable[[], Any], state: State) -> Clock | None:
    """The clock of a loop at its first test; what tracing it did is the caller's to undo.

    Raises:
        what a body raises of which no region can be made.
    """

    def make(loop: LoopRegion) -> None:
        predicate: Value | None = None

        def trip(_: Any) -> None:
            nonlocal predicate
            answer = test()
            predicate = truth(answer) if isinstance(answer, Tracer) else None
            body()

        _, traced, after = loop.settle(None, trip, False)
        found = None if predicate is None else run(loop, traced, after, predicate)
        traced.end()
        raise _Found(found)

    try:
        attempted(make, state, "while", None, MOST_TRIPS, False)
    except _Found as found:
        return found.clock
    return None


def run(loop: LoopRegion, trip: Trip, after: Snapshot, predicate: Value) -> Clock | None:
    """Run the clock's part of a trip until the test does not hold."""
    results = loop.results(trip, after)
    part = Part(trip.trace.builder.operations)
    clocks = numbers(loop, trip, results, part)
    if not any(type(number.start) in (float, np.float64) for number in needed([predicate], clocks, part).values()):
        return None
    if not part.known([predicate], {number.before for number in clocks.values()}):
        return None
    steps = part.steps([predicate, *(number.after for number in clocks.values())])
    values = {number.before: plain(number.start) for number in clocks.values()}
    for trips in range(min(MOST_TRIPS, MOST_RUN // (1 + len(steps)))):
        try:
            computed(steps, values)
            if not number_in(values, predicate):
                variables = len(loop.state.names)
                return Clock(trips, {cell: x.end(values) for cell, x in clocks.items() if cell < variables})
            values = {number.before: number_in(values, number.after) for number in clocks.values()}
        except (ArithmeticError, ValueError):
            return None
    return None


class Number(NamedTuple):
    """A carried number: its value before the loop, and what stands for it before and after a trip."""

    start: Any
    before: Value
    after: Value
    kind: Kind

    def end(self, values: Mapping[Value, Any]) -> Any:
        """The number as Python has it, of NumPy's type where it is one of NumPy's."""
        name = self.kind.type.dtype.name
        return (CASTS if self.kind.weak else MADE)[name](values[self.before])


def plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def numbers(loop: LoopRegion, trip: Trip, results: Sequence[Value], part: Part) -> dict[int, Number]:
    """The carried numbers, by place, that are known before the loop and computed of each other alone."""
    found: dict[int, Number] = {}
    cells, given = loop.start.cells(), iter(results)
    for cell, carry in loop.carries.items():
        values = [next(given) for _ in carry.kinds]
        if type(carry) is not Carry or carry.tree is not None or isinstance(cells[cell], Tracer):
            continue
        start, kind = cells[cell], carry.kinds[0]
        if kind_of(start) == kind and kind.scalar and kind.type.dtype.name in NUMBERS:
            found[cell] = Number(start, trip.params[cell][0], values[0], kind)
    while True:
        before = {number.before for number in found.values()}
        kept = {cell: number for cell, number in found.items() if part.known([number.after], before)}
        if len(kept) == len(found):
            return found
        found = kept


def needed(values: Sequence[Value], clocks: Mapping[int, Number], part: Part) -> dict[int, Number]:
    """The numbers that values are computed of, over all trips."""
    found: dict[int, Number] = {}
    waiting = list(values)
    while waiting:
        read = part.read(waiting.pop())
        for cell, number in clocks.items():
            if number.before in read and cell not in found:
                found[cell] = number
                waiting.append(number.after)
    return found


Step = tuple[Callable[..., Any] | None, Operation, list["Steps"]]
Steps = list[Step]


class Part:
    """What values of a trip are computed by."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.makers = {result: found for found in operations for result in found.results}
        self.order = {found: k for k, found in enumerate(operations)}

    def makers_of(self, values: Sequence[Value]) -> tuple[list[Operation], set[Value]]:
        """The operations that compute values, in order, and what these read that no operation of the trip gives."""
        found: set[Operation] = set()
        read: set[Value] = set()
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            maker = self.makers.get(value)
            if isinstance(value, Literal) or maker in found:
                continue
            if maker is None:
                read.add(value)
                continue
            found.add(maker)
            waiting += maker.operands
        return sorted(found, key=self.order.__getitem__), read

    def read(self, value: Value) -> set[Value]:
        return self.makers_of([value])[1]

    def known(self, values: Sequence[Value], given: set[Value]) -> bool:
        """Whether values are computed exactly of given ones."""
        makers, read = self.makers_of(values)
        return read <= given and all(map(exact, makers)) and all(map(is_number, values))

    def steps(self, values: Sequence[Value]) -> Steps:
        return steps_of(self.makers_of(values)[0])


def is_number(value: Value) -> bool:
    return value.type.rank == 0 and value.type.dtype.name in NUMBERS


def exact(operation: Operation) -> bool:
    """Whether an operation gives the same wherever it runs."""
    if not all(map(is_number, (*operation.operands, *operation.results))):
        return False
    if operation.op.name == "cond":
        return all(exact(found) for region in operation.regions for found in region.operations)
    return operation.op.name in EXACT or operation.op.name == "cast"


def steps_of(operations: Sequence[Operation]) -> Steps:
    def function(found: Operation) -> Callable[..., Any] | None:
        return CASTS[found.results[0].type.dtype.name] if found.op.name == "cast" else EXACT.get(found.op.name)

    return [(function(found), found, [steps_of(region.operations) for region in found.regions]) for found in operations]


def number_in(values: Mapping[Value, Any], value: Value) -> Any:
    return value.value.item() if isinstance(value, Literal) else values[value]


def computed(steps: Steps, values: dict[Value, Any]) -> None:
    """Run steps, which give what values stand for."""
    for function, operation, inner in steps:
        operands = [number_in(values, operand) for operand in operation.operands]
        if function is not None:
            values[operation.results[0]] = function(*operands)
            continue
        place = 0 if operands[0] else 1
        results = branch(operation.regions[place], inner[place], operands[1:])
        values.update(zip(operation.results, results, strict=True))


def branch(region: Region, steps: Steps, operands: Sequence[Any]) -> Iterator[Any]:
    """The results of one side of a condition."""
    values = dict(zip(region.params, operands, strict=True))
    computed(steps, values)
    return (number_in(values, result) for result in region.results)
