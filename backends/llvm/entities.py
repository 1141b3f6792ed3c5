"""What stands for a value while native code is written."""

from __future__ import annotations

from dataclasses import dataclass

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.planning import Plan
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import ArrayType, TapeType


@dataclass(frozen=True)
class Tape:
    """Elements of one type, one after another in memory: ``length`` of them; -1 says the same one at every index.

    ``exact``: the length is known not to be -1.
    """

    data: str
    length: Number
    element: ArrayType
    exact: bool


Entity = Number | Tape | str | Literal
"""What stands for a value: a register, a tape, a pointer, or a constant."""


class Scope:
    """The state of writing one straight list of operations: its memory begins at ``base`` in the arena."""

    def __init__(self, plan: Plan, base: int, homes: dict[str, str]) -> None:
        self.plan = plan
        self.base = base + plan.base
        self.homes = homes
        self.env: dict[Value, Entity] = {}
        self.indices: dict[tuple[Value, int], Number] = {}
        """Indices that are known to be within an axis of a size, from its start."""


def writes_tapes(operation: Operation) -> bool:
    """Whether running it may make a tape."""
    return any(isinstance(value.type, TapeType) for inner in walk(operation) for value in inner.results)


def walk(operation: Operation) -> list[Operation]:
    found = [operation]
    for region in operation.regions:
        for inner in region.walk():
            found.append(inner)
    return found
