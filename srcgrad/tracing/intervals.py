"""Between which numbers the elements of a traced integer array lie, by what the operations that made it say.

``np.argmin(d, axis=1)`` is less than the length of that axis, ``k % n`` less than ``n``, whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import DType
from srcgrad.tracing.trace import current_trace

DEEPEST: Final = 64
"""How many operations are followed, one behind the other."""


class Interval(NamedTuple):
    """From ``low`` to ``high``, both included."""

    low: int
    high: int

    def with_(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))


Rule = Callable[[Operation, list[Interval]], Interval | None]
"""The interval of a result, given those of the operands; None where nothing is known."""


def all_of(dtype: DType) -> Interval:
    if dtype.kind == "b":
        return Interval(0, 1)
    info = np.iinfo(dtype)
    return Interval(int(info.min), int(info.max))


def rest(operation: Operation, of: list[Interval]) -> Interval | None:
    """The sign is that of the divisor."""
    return Interval(0, of[1].high - 1) if of[1].low > 0 else None


def quotient(operation: Operation, of: list[Interval]) -> Interval | None:
    if of[1].low <= 0:
        return None
    ends = [end // divisor for end in of[0] for divisor in of[1]]
    return Interval(min(ends), max(ends))


def joined(operation: Operation, of: list[Interval]) -> Interval:
    found = of[0]
    for other in of[1:]:
        found = found.with_(other)
    return found


def position(operation: Operation, of: list[Interval]) -> Interval | None:
    length = operation.operands[0].type.shape[operation.attrs["axis"]]
    return Interval(0, max(length - 1, 0)) if isinstance(length, int) else None


def place(operation: Operation, of: list[Interval]) -> Interval | None:
    """That among the nodes or behind the last of them."""
    count = operation.operands[0].type.shape[0]
    return Interval(0, count) if isinstance(count, int) else None


RULES: Final[dict[str, Rule]] = {
    "argmax": position,
    "argmin": position,
    "searchsorted": place,
    "remainder": rest,
    "floor_divide": quotient,
    "add": lambda operation, of: Interval(of[0].low + of[1].low, of[0].high + of[1].high),
    "sub": lambda operation, of: Interval(of[0].low - of[1].high, of[0].high - of[1].low),
    "maximum": lambda operation, of: Interval(max(of[0].low, of[1].low), max(of[0].high, of[1].high)),
    "minimum": lambda operation, of: Interval(min(of[0].low, of[1].low), min(of[0].high, of[1].high)),
    "select": lambda operation, of: of[1].with_(of[2]),
    "concatenate": joined,
    **dict.fromkeys(
        ("cast", "reshape", "broadcast", "transpose", "slice", "reverse", "gather"), lambda operation, of: of[0]
    ),
}


def interval_of(value: Value) -> Interval:
    """The interval of an array of integers or truth values, in the trace in progress."""
    return Following().interval(value, 0)


class Following:
    """The operations behind one value, each looked at once."""

    def __init__(self) -> None:
        self.known: dict[Value, Interval] = {}

    def interval(self, value: Value, depth: int) -> Interval:
        found = self.known.get(value)
        if found is None:
            whole = all_of(value.type.dtype) if value.type.dtype.kind in "biu" else UNKNOWN
            found = self.known[value] = whole
            if depth < DEEPEST and whole is not UNKNOWN:
                made = self.made(value, depth)
                fits = made is not None and whole.low <= made.low and made.high <= whole.high  # else it overflows
                found = self.known[value] = made if made is not None and fits else whole
        return found

    def made(self, value: Value, depth: int) -> Interval | None:
        if isinstance(value, Literal):
            numbers = np.asarray(value.value)
            return Interval(int(numbers.min()), int(numbers.max())) if numbers.size else None
        operation = value.producer
        if operation is None:
            outer = lifted_from(value)
            return None if outer is None else self.interval(outer, depth + 1)
        rule = RULES.get(operation.op.name)
        return None if rule is None else rule(operation, [self.interval(x, depth + 1) for x in operation.operands])


UNKNOWN: Final = Interval(-(2**80), 2**80)
"""Of numbers that are no integers: more than fits into any."""


def lifted_from(param: Value) -> Value | None:
    """The value of a trace around that a parameter of a block or trip stands for."""
    for trace in current_trace().around():
        for outer, inner in trace.lifted.items():
            if inner is param:
                return outer
    return None
