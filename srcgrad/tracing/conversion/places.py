"""What a trip of a loop knows by its number alone: in which trips a condition holds, and which numbers it makes.

So ``if k % 100 == 0: states.append(x)`` appends in trips that are known before the loop runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Literal, Operation, Value
from srcgrad.ir.transforms.batch import batch
from srcgrad.tracing.trace import Trace

MOST_TRIPS: Final = 1_000_000
"""Of so many trips at most it is written down what they know."""


def traces_of_trip(trace: Trace) -> list[Trace]:
    """A block in a trip of a loop and the blocks around it, up to the trip; empty outside of loops."""
    found: list[Trace] = []
    for around in trace.around():
        found.append(around)
        if around.loop is not None:
            return found
        if not around.region:
            break
    return []


def trips_where(traces: Sequence[Trace], index: Value, trips: int) -> Any:
    """Whether each trip comes to the innermost of its blocks; None where values say so.

    Only whole numbers and truth values are looked at: they are the same on every backend.
    """
    found = np.ones(trips, np.bool_)
    for k, inner in enumerate(traces[:-1]):
        if inner.under is None:
            return None
        condition, holds = inner.under
        answers = by_trip(condition, traces[k + 1 :], index, trips, "biu")
        if answers is None:
            return None
        found &= answers == holds
    return found


def by_trip(value: Value, traces: Sequence[Trace], index: Value, trips: int, kinds: str = "biufc") -> Any:
    """The number that a value of the first of some traces is in each trip; None where more decides than the index."""
    if trips > MOST_TRIPS or value.type.shape:
        return None
    found = operations_behind(value, traces, index)
    if found is None:
        return None
    operations, stands_for = found
    if any(x.type.dtype.kind not in kinds for operation in operations for x in operation.results):
        return None
    builder = Builder()
    env = {index: builder.param(index.type)}

    def of(x: Value) -> Value:
        while x in stands_for:
            x = stands_for[x]
        return x if isinstance(x, Literal) else env[x]

    for operation in operations:
        made = builder.emit_operation(operation.op, [of(x) for x in operation.operands], operation.attrs)
        env.update(zip(operation.results, made.results, strict=True))
    function = builder.function("by_trip", [of(value)])
    (answers,) = evaluate(batch(function, [True], trips), [np.arange(trips, dtype=np.int64)])
    return answers


def operations_behind(
    value: Value, traces: Sequence[Trace], index: Value
) -> tuple[list[Operation], dict[Value, Value]] | None:
    """What computes a value out of the index and literals, and which values stand for those of the traces around."""
    needed = {value}
    found: list[Operation] = []
    stands_for: dict[Value, Value] = {}
    for trace in traces:
        for operation in reversed(trace.builder.operations):
            if needed.isdisjoint(operation.results):
                continue
            if operation.regions or operation.op.effect:
                return None
            needed.difference_update(operation.results)
            needed.update(operation.operands)
            found.append(operation)
        if trace is not traces[-1]:
            for outer, inner in trace.lifted.items():
                if inner in needed:
                    needed.discard(inner)
                    needed.add(outer)
                    stands_for[inner] = outer
    if any(x is not index and not isinstance(x, Literal) for x in needed):
        return None
    return found[::-1], stands_for


def of_index(trace: Trace, index: Value | None) -> set[Value]:
    """The values of a block that are made of the index of the loop and of literals alone."""
    known = set() if index is None else {index}
    for operation in trace.builder.operations:
        if not operation.regions and all(isinstance(x, Literal) or x in known for x in operation.operands):
            known.update(operation.results)
    return known
