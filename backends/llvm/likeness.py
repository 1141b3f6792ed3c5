"""Which kernels are the same code: the groups of an unrolled loop are, but for the arrays that they are called with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from srcgrad.backends.llvm.access import Place
from srcgrad.backends.llvm.emitter import constant_text
from srcgrad.backends.llvm.loops import Compute, Constant, Group, Statement
from srcgrad.backends.llvm.nests import Nest
from srcgrad.ir.core import Value

LONGEST: Final = 256
"""The statements up to which it is asked: longer groups are hardly ever the same, and that costs."""


class Likenesses:
    """The kinds of the groups of a program: those of one kind differ in their names and in which arrays they have."""

    def __init__(self, groups: Iterable[Group | Nest]) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.kinds: dict[str, int] = {}
        """By the name of a group."""
        for group in groups:
            made = likeness(group)
            if made is not None:
                self.kinds[group.name] = self.numbers.setdefault(made, len(self.numbers))
        self.counts = Counter(self.kinds.values())

    def is_repeated(self, group: Group | Nest) -> bool:
        """Whether there are others like it."""
        return self.counts[self.kinds.get(group.name, -1)] > 1

    def key(self, group: Group | Nest, places: Mapping[Value, Place], over: Mapping[Value, Value]) -> Hashable | None:
        """What kernels that are the same code have in common; None for one that is like no other."""
        if not self.is_repeated(group):
            return None
        numbers = numbered(group)
        return (
            self.kinds[group.name],
            tuple([(numbers[value], place) for value, place in places.items()]),
            tuple([(numbers[output], numbers[operand]) for output, operand in over.items()]),
        )


def numbered(item: Group | Nest) -> dict[Value, int]:
    """The arrays of a group, each with the number of the first of its places among these."""
    found: dict[Value, int] = {}
    for value in (*item.inputs, *item.outputs, *(item.locals if isinstance(item, Nest) else ())):
        found.setdefault(value, len(found))
    return found


def likeness(item: Group | Nest) -> Hashable | None:
    """All that the text of a kernel is made of, but for its name; None for what is too long to be asked."""
    groups = item.phases if isinstance(item, Nest) else [item]
    if sum([len(group.statements) for group in groups]) > LONGEST:
        return None
    numbers = numbered(item)
    return (
        item.outlined,
        (item.outer, item.block) if isinstance(item, Nest) else (),
        tuple([numbers[value] for value in item.inputs]),
        tuple([numbers[value] for value in item.outputs]),
        tuple([value.type for value in numbers]),
        *[likeness_of_group(group, numbers) for group in groups],
    )


def likeness_of_group(group: Group, numbers: Mapping[Value, int]) -> Hashable:
    return (
        group.domain,
        tuple([numbers[value] for value in group.inputs]),
        tuple([numbers[value] for value in group.outputs]),
        tuple([likeness_of_statement(item) for item in group.statements]),
        tuple(group.stores),
        tuple(group.folds),
        tuple([numbers[value] for value in group.updates]),
    )


def likeness_of_statement(item: Statement) -> Hashable:
    if isinstance(item, Compute):
        operation = item.operation
        types = [value.type.dtype for value in (*operation.operands, *operation.results)]
        return operation.op.name, tuple(operation.attrs.items()), tuple(types), item.operands, item.function
    if isinstance(item, Constant):
        return constant_text(item.value, item.dtype), item.dtype
    return item
