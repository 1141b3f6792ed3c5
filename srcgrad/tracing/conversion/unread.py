"""Errors of what nobody reads: ``np.linalg.cholesky(k)`` alone asks whether there is a factor, by its error, and
``x[k]`` whether there is such an element.

What no result needs is not computed. Where it is the user's own and may raise an error, the program asks for the error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from srcgrad.ir.core import Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.tracing.conversion.attempts import FAILING
from srcgrad.tracing.conversion.state import truth
from srcgrad.tracing.trace import Trace
from srcgrad.tracing.tracer import from_value


def keep_failures(trace: Trace, results: Sequence[Value]) -> None:
    """At the end of a trace, checks for the errors of factors, solutions and elements that nothing reads."""
    if trace.concrete or not trace.failing:
        return
    builder = trace.builder
    for operation in unread(builder.operations, results, set(trace.failing)):
        builder.span = operation.span
        places = trace.failing[operation.results[0]]
        operands = [from_value(operand) for operand in operation.operands[: len(operation.operands) - len(places)]]
        operands += places
        for condition, error in FAILING[operation.op.name](operands, operation.attrs):
            if type(condition) is not bool:
                attrs = {"message": str(error), "kind": type(error).__name__}
                builder.emit_operation(REGISTRY["check"], [truth(np.logical_not(condition))], attrs)
    trace.failing.clear()


def unread(operations: Sequence[Operation], results: Sequence[Value], values: set[Value]) -> list[Operation]:
    """The operations of some values that no result and no effect needs; one with regions needs all that it takes."""
    live, found = set(results), list[Operation]()
    for operation in reversed(operations):
        if operation.op.effect or operation.regions or not live.isdisjoint(operation.results):
            live.update(operation.operands)
        elif not values.isdisjoint(operation.results):
            found.append(operation)
            live.update(operation.operands)
    return found[::-1]
