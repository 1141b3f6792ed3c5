"""Answers to Python's questions after traced values, and what a later call must answer alike.

A trace of one *path* is abstract, but has a `Guide`: where Python asks for a truth value, an integer, an index or a
mask, the guide computes it for the call in progress and remembers the question. The program that is traced is valid
wherever all questions have the same answers. Floats are never answered: a program would hold for one number only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Function, Literal, Operation, Value
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.expand import expand
from srcgrad.ir.source import Span, user_span
from srcgrad.ir.transforms.interpret import inline

if TYPE_CHECKING:
    from srcgrad.tracing.trace import Trace
    from srcgrad.tracing.tracer import Tracer

LARGEST = 4096
"""The most elements of an array (a boolean mask) that is compared as a whole."""
MOST_GUARDS = 64
"""The most questions of one path: code that asks more often is traced again at each call."""


class Guard(NamedTuple):
    """A question, and the answer with which the path goes on."""

    value: Value
    answer: Any
    what: str
    span: Span | None


class Guide:
    """The arguments of the call that is traced, and the questions so far."""

    def __init__(self, numbers: Sequence[Any]) -> None:
        self.numbers = tuple(numbers)
        self.guards: list[Guard] = []

    def answer(self, root: Trace, value: Value, what: str) -> Any:
        """The number of a value of the outermost trace, from now on a guard; None if there are too many, or it depends
        on what the program draws or reads when it runs.
        """
        known = root.builder.number(value)
        if known is not None:
            return known
        if len(self.guards) >= MOST_GUARDS:
            return None
        asked = dce(Function("guard", root.builder.params, without_effects(root.builder.operations), [value]))
        if not is_closed(asked):
            return None
        (number,) = evaluate(expand(asked), self.numbers)
        number = np.array(number)[()]
        root.builder.known[value] = number
        self.guards.append(Guard(value, number, what, user_span(2)))
        return number

    def close(self) -> None:
        """Forget the arguments."""
        self.numbers = ()


def without_effects(operations: Sequence[Operation]) -> list[Operation]:
    """The operations of a program that do nothing besides computing: a guard does nothing else."""
    return [
        operation
        for operation in operations
        if not operation.op.effect
        and not any(inner.op.effect for region in operation.regions for inner in region.walk())
    ]


def is_closed(function: Function) -> bool:
    """Whether a function computes all that it reads."""
    known: set[Value] = {*function.params}
    for operation in function.operations:
        if any(operand not in known and not isinstance(operand, Literal) for operand in operation.operands):
            return False
        known.update(operation.results)
    return all(isinstance(value, Literal) or value in known for value in function.results)


def guided(trace: Trace | None) -> list[Trace]:
    """The traces from this one to the outermost if that has a guide; none inside a region, which may run or not."""
    chain: list[Trace] = []
    while trace is not None and not trace.concrete and not trace.region:
        chain.append(trace)
        if trace.guide is not None:
            return chain
        trace = trace.parent
    return []


def answer(x: Tracer, what: str) -> Any:
    """The number that Python asks of a traced value, as a guard of the path in progress; None if there is none."""
    from srcgrad.tracing.trace import CURRENT  # which has guides

    trace = CURRENT.get()
    chain = guided(trace)
    if not chain or x.size > LARGEST:
        return None
    if x.dtype.kind not in "biu":
        if what == "bool()":
            x = x != 0
        elif what == "int()" and x.dtype.kind == "f":
            x = np.trunc(x)  # type: ignore[assignment]
        else:
            return None
    value: Value | None = x.read()
    for inner in chain[:-1]:
        value = outward(inner, value)
        if value is None:
            return None
    root = chain[-1]
    assert root.guide is not None
    number = None if value is None else root.guide.answer(root, value, what)
    if number is not None:
        chain[0].builder.known[x.read()] = number
    return number


def outward(trace: Trace, value: Value | None) -> Value | None:
    """A value of an inlined function, computed in the trace around it; None where that does not know its inputs."""
    if value is None or trace.parent is None:
        return None
    outer = {**trace.origins, **{param: source for source, param in trace.lifted.items()}}
    params = [*trace.builder.params, *trace.lifted.values()]
    if any(param not in outer for param in params):
        return None
    function = dce(Function("guard", params, trace.builder.operations, [value]))
    return inline(trace.parent.builder, function, [outer[param] for param in params])[0]
