"""Answers to Python's questions after traced values, and what a later call must answer alike.

A trace of one *path* is abstract, but has a `Guide`: where Python asks for a truth value, an integer, an index or a
mask, the guide computes it for the call in progress and remembers the question. The program that is traced is valid
wherever all questions have the same answers. Floats are never answered: a program would hold for one number only.
Inputs that say how something is laid out, of which many elements are asked for, are asked for as wholes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
MOST_GUARDS = 256
"""The most questions of one path: code that asks more often is traced again at each call."""
MANY: Final = 64
"""After so many questions whole arrays of integers are asked for, whatever is asked of them."""
LARGEST_INPUT: Final = 65536
"""The most elements of an array of integers or truth values among the inputs that is asked for as a whole."""
FEW: Final = 8
"""How many elements of such an array are asked for one by one: after these all of it is one question."""
NEAR: Final = 64
"""How many operations are followed from a value to what it is computed from."""
MOVES: Final = frozenset({"broadcast", "cast", "gather", "reshape", "reverse", "slice", "transpose"})
"""Ops whose results are elements of the first operand."""


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
        self.settled: set[Value] = set()
        """Those that are asked for, or follow from these."""
        self.elements: Counter[Value] = Counter()
        """How many elements of an input have been asked for."""

    def answer(self, root: Trace, value: Value, what: str) -> Any:
        """The number of a value of the outermost trace, from now on a guard; None if there are too many, or it depends
        on what the program draws or reads when it runs.
        """
        known = root.builder.number(value)
        if known is not None:
            return known
        number = self.number(root, value)
        if number is None:
            return None
        for whole in self.inputs_for(root, value):
            self.ask(root, whole, "all elements of an array", np.array(self.computed[whole]))
            self.guards = [guard for guard in self.guards if guard.value is whole or self.open(root, guard.value)]
        number = np.array(number)[()]
        if not self.open(root, value):  # it follows from other answers
            root.builder.known[value] = number
        elif len(self.guards) < MOST_GUARDS:
            self.ask(root, value, what, number)
        else:
            return None
        return number

    def ask(self, root: Trace, value: Value, what: str, number: Any) -> None:
        root.builder.known[value] = number
        self.settled.add(value)
        self.guards.append(Guard(value, number, what, user_span(3)))

    def inputs_for(self, root: Trace, value: Value) -> Sequence[Value]:
        """The inputs that are asked for as wholes in place of a value.

        Code that goes through a tree, a graph or the rows of a sparse matrix asks for element after element of arrays
        that say how it is laid out, and would come to more questions than there may be.
        """
        source = self.element_of(root, value)
        if source is not None:
            self.elements[source] += value.type.size
        if len(self.guards) >= MANY:
            wanted = self.open(root, value)
        else:
            wanted = [] if source is None or self.elements[source] <= FEW else [source]
        return wanted if all(map(is_layout, wanted)) else []

    def element_of(self, root: Trace, value: Value) -> Value | None:
        """The input that a value is an element of, as an index that is known says."""
        while value.producer is not None:
            first, *rest = value.producer.operands or (None,)
            if first is None or value.producer.op.name not in MOVES or any(self.open(root, x) for x in rest):
                return None
            value = first
        return value if is_layout(value) and value in self.computed and value not in self.settled else None

    def open(self, root: Trace, value: Value) -> list[Value]:
        """What a value depends on besides the answers that there are: inputs, or itself where these are far away."""
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        waiting = [value]
        while waiting:
            x = waiting.pop()
            if x in seen or x in self.settled or isinstance(x, Literal):
                continue
            seen.add(x)
            if len(seen) > NEAR:
                return [value]
            if x.producer is None:
                found[x] = None
            else:
                waiting += x.producer.operands
        if not found:
            self.settled.add(value)
        return list(found)

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


def is_layout(value: Value) -> bool:
    """Whether this is an input that may be asked for as a whole."""
    return value.producer is None and value.type.dtype.kind in "biu" and value.type.size <= LARGEST_INPUT


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
