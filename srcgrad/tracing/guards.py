"""Answers to Python's questions after traced values, and what a later call must answer alike.

A trace of one *path* is abstract, but has a `Guide`: where Python asks for a truth value, an integer, an index or a
mask, the guide computes it for the call in progress and remembers the question. The program that is traced is valid
wherever all questions have the same answers. Floats are never answered: a program would hold for one number only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.ir.core import Function, Literal, Operation, Value
from srcgrad.ir.passes.dce import dce
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
        self.computed: dict[Value, Any] = {}
        """What values of the outermost trace are, as far as questions have needed them: each is computed once."""

    def answer(self, root: Trace, value: Value, what: str) -> Any:
        """The number of a value of the outermost trace, from now on a guard; None if there are too many, or it depends
        on what the program draws or reads when it runs.
        """
        known = root.builder.number(value)
        if known is not None:
            return known
        if len(self.guards) >= MOST_GUARDS:
            return None
        number = self.number(root, value)
        if number is None:
            return None
        number = np.array(number)[()]
        root.builder.known[value] = number
        self.guards.append(Guard(value, number, what, user_span(2)))
        return number

    def number(self, root: Trace, value: Value) -> Any:
        """What the program computes for a value; None if that takes more than its parameters."""
        if not self.computed:
            self.computed.update(zip(root.builder.params, self.numbers, strict=True))
        for operation in self.missing(value):
            if has_effect(operation):
                return None
            numbers = [self.known(root, operand) for operand in operation.operands]
            if any(number is None for number in numbers):
                return None
            types = [operand.type for operand in operation.operands]
            found = [result.type for result in operation.results]
            results = evaluate_operation(operation.op, numbers, operation.attrs, types, found, operation.regions)
            self.computed.update(zip(operation.results, results, strict=True))
        return self.known(root, value)

    def missing(self, value: Value) -> list[Operation]:
        """The operations by which a value is computed and that have not been run, each behind those it reads of."""
        found: dict[Operation, None] = {}
        waiting = [value]
        while waiting:
            producer = waiting[-1].producer
            if producer is None or producer in found or waiting[-1] in self.computed:
                waiting.pop()
                continue
            before = [x for x in producer.operands if x.producer is not None and x not in self.computed]
            before = [x for x in before if x.producer not in found]
            if before:
                waiting += before
            else:
                found[producer] = None
        return list(found)

    def known(self, root: Trace, value: Value) -> Any:
        return root.builder.number(value) if isinstance(value, Literal) else self.computed.get(value)

    def close(self) -> None:
        """Forget the arguments."""
        self.numbers = ()
        self.computed.clear()


def has_effect(operation: Operation) -> bool:
    """Whether an operation does anything besides computing: a guard does nothing else."""
    return operation.op.effect or any(inner.op.effect for region in operation.regions for inner in region.walk())


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
