"""Sections: runs of operations of a partition that are one native function.

Operations are put in an order in which those with a native form stand together as far as what they read allows. A run
of them is a *section*: ``kernel(inputs) -> outputs`` to what is around it. Where its code cannot go on, the NumPy
program of the same operations runs instead (`Section.program`): operations of a section have no effect but to raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from srcgrad.backends.llvm.expansions import written_out
from srcgrad.backends.llvm.kinds import is_large, is_plain
from srcgrad.backends.llvm.loops import signature
from srcgrad.backends.llvm.natives import ALIAS, fused_kind
from srcgrad.backends.llvm.ordering import arranged, reads_first
from srcgrad.backends.llvm.partition import FUSED, Partition, partitioned, replaced
from srcgrad.ir.core import Function, Literal, Operation, Region, Value


class Section:
    """Operations as one native function, which returns a status."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        operations: Sequence[Operation],
        originals: Callable[[], Sequence[Operation]],
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.operations = operations
        self.originals = originals

    def program(self) -> Function:
        """The same as a function of the language, of those inputs that are no literals."""
        params = [value for value in self.inputs if not isinstance(value, Literal)]
        return Function(self.name, params, self.originals(), self.outputs)

    def text(self) -> str:
        """The section for people: its face, and the operations that it runs."""
        lines = [signature(self.name, self.inputs, self.outputs)]
        return "\n".join([*lines, *described(self.operations, "  ")])


def described(operations: Iterable[Operation], indent: str) -> list[str]:
    lines = []
    for operation in operations:
        types = ", ".join(str(value.type) for value in operation.results)
        lines.append(f"{indent}{operation.attrs.get('kernel', operation.op.name)} -> {types or 'nothing'}")
        for region in operation.regions:
            lines += described(region.operations, indent + "  ")
    return lines


@dataclass
class Sectioned:
    """A function whose groups and sections are operations ``fused``, and its partition before sections were made."""

    function: Function
    partition: Partition
    sections: list[Section]


def sectioned(function: Function) -> Sectioned:
    """The function with all that has a native form in sections, each one operation ``fused``."""
    function = written_out(function)
    found = partitioned(function)
    writer = _Sectioning(found)
    operations = writer.block(found.function.operations, found.function.results)
    if len(operations) == 1 and operations[0].op is FUSED:
        operations = [writer.whole(operations[0], found.function.params, found.function.results)]
    elif not operations and all(is_plain(value.type) and not is_large(value) for value in found.function.results):
        operations = writer.copying(found.function.results)
    made = Function(function.name, function.params, operations, found.function.results)
    return Sectioned(made, found, writer.sections)


def read_within(operation: Operation) -> list[Value]:
    """What an operation reads, and those in its regions, which give some values too."""
    inner = [inner for region in operation.regions for inner in region.operations]
    given = [value for region in operation.regions for value in region.results]
    return [*operation.operands, *given, *(value for other in inner for value in read_within(other))]


class _Sectioning:
    """The state of making sections."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.sections: list[Section] = []

    def block(self, operations: Sequence[Operation], results: Sequence[Value]) -> list[Operation]:
        """The operations with sections."""
        runs = arranged(operations, self.is_native)
        found: list[Operation] = []
        read: set[Value] = set(results)
        for number in reversed(range(len(runs))):
            if number % 2 and runs[number]:
                found.append(self.section(reads_first(runs[number]), read))
            for operation in reversed(runs[number]):
                if number % 2 == 0:
                    found.append(self.with_sections(operation))
                read.update(operation.operands)
        return found[::-1]

    def is_native(self, operation: Operation) -> bool:
        if operation.op is FUSED or operation.op is ALIAS:
            return True
        if fused_kind(operation) != "other":  # a view that NumPy shows
            return False
        return self.partition.natives.is_native(self.partition.originals.get(operation, operation))

    def with_sections(self, operation: Operation) -> Operation:
        """An operation that NumPy runs, with sections in its regions."""
        if not operation.regions or getattr(operation.op, "transparent", False):
            return operation
        regions = [
            Region(region.params, self.block(region.operations, region.results), region.results)
            for region in operation.regions
        ]
        found = replaced(operation, regions)
        self.partition.originals[found] = self.partition.originals.get(operation, operation)
        return found

    def whole(self, operation: Operation, params: Sequence[Value], results: Sequence[Value]) -> Operation:
        """The only operation of a function, as one that gives all results in their order."""
        if set(results) == set(operation.results) and len(results) == len(operation.results):
            return operation
        if any(isinstance(value, Literal) for value in operation.operands):
            return operation
        sections, known = self.sections, set(params)
        section = next((item for item in sections if item.name == operation.attrs["kernel"]), None)
        if section is None:
            operation = self.made([operation], list(operation.operands), list(operation.results))
            section = sections[-1]
        more = [value for value in results if value in known]
        section.inputs = list(dict.fromkeys([*section.inputs, *more]))
        section.outputs = list(results)
        return operation

    def copying(self, results: Sequence[Value]) -> list[Operation]:
        """What gives inputs and constants, of a function that has no operations."""
        inputs = [value for value in dict.fromkeys(results) if not isinstance(value, Literal)]
        return [self.made([], inputs, list(results))] if results else []

    def section(self, operations: Sequence[Operation], read: set[Value]) -> Operation:
        """A run of native operations as one."""
        made = {value for operation in operations for value in operation.results}
        inputs: dict[Value, None] = {}
        for operation in operations:
            for value in operation.operands:
                if value not in made and not isinstance(value, Literal):
                    inputs[value] = None
            inputs.update(dict.fromkeys(filter(is_large, read_within(operation))))
        outputs = [value for operation in operations for value in operation.results if value in read]
        if len(operations) == 1 and operations[0].op is FUSED and "updates" not in operations[0].attrs:
            constants = [value for value in operations[0].operands if isinstance(value, Literal)]
            if not constants or any(map(is_large, constants)):  # in a section what is small lies in the module
                return operations[0]
        return self.made(operations, list(inputs), outputs)

    def made(self, operations: Sequence[Operation], inputs: list[Value], outputs: list[Value]) -> Operation:
        partition = self.partition
        name = f"{partition.prefix}_{next(partition.numbers)}"
        originals = Originals(partition, operations, inputs, outputs)
        self.sections.append(Section(name, inputs, outputs, operations, originals))
        span = next((operation.span for operation in operations if operation.span is not None), None)
        types = [value.type for value in outputs]
        found = Operation(FUSED, tuple(inputs), {"kernel": name}, (), types, span)
        found.results = tuple(outputs)
        return found


class Originals:
    """The operations of the language that a section stands for, found when they are wanted."""

    def __init__(
        self, partition: Partition, operations: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        self.originals = partition.originals
        self.operations = operations
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self) -> list[Operation]:
        known = set(self.inputs)
        found: dict[Operation, None] = {}
        roots = [self.originals.get(op, op) for op in self.operations if op.op.effect or op.regions]
        stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(roots)]
        stack = [(value.producer, False) for value in self.outputs if value.producer is not None] + stack
        while stack:
            operation, ready = stack.pop()
            if operation in found:
                continue
            if ready:
                found[operation] = None
                continue
            stack.append((operation, True))
            for value in operation.operands:
                if value.producer is not None and value not in known:
                    stack.append((value.producer, False))
        return list(found)
