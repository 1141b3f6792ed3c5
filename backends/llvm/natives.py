"""Which operations have a native form: as loops, as a step, as control flow over such, as an access to elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.complexes import PARTS
from srcgrad.backends.llvm.indices import VIEWS, window_index
from srcgrad.backends.llvm.kinds import is_large, is_loop_type, is_plain, is_static
from srcgrad.backends.llvm.loops import REDUCTIONS
from srcgrad.backends.llvm.pieces import PIECED, pieces_of
from srcgrad.backends.llvm.steps import Step, step_for
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.numpy.chunks import flatten
from srcgrad.ir.core import Attrs, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Op
from srcgrad.ir.types import ArrayType

CONTROL: Final = frozenset({"cond", "for", "while"})


class Alias(Op, abstract=True):
    """The bytes of an array from ``offset`` on, as another type: a view that needs no loop."""

    name: ClassVar[str] = "alias"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise NotImplementedError("an alias has the type that its operation is made with")


ALIAS: Final = Alias()
Flat = tuple[Sequence[Operation], Sequence[Value]]
Flats = dict[int, tuple[Region, Flat]]
"""By the identity of regions, these and their straight lists of operations."""


def fused_kind(operation: Operation) -> str:
    """``compute`` and ``view`` for what groups do, ``other`` for the rest."""
    name = operation.op.name
    if operation.regions or len(operation.results) != 1:
        return "other"
    type = operation.results[0].type
    if not is_loop_type(type) and (name != "complex" or not is_static(type)):
        return "other"
    for value in operation.operands:
        if value.type is not type and not is_loop_type(value.type):
            return "other"
    if name in VIEWS or (name == "gather" and is_static(type) and window_index(operation) is not None):
        return "view"
    if name == "iota":
        return "compute" if scalars.supports_iota(type.dtype) else "other"
    if name == "complex":
        return "compute" if operation.operands[0].type.dtype != scalars.F16 else "other"
    if name in REDUCTIONS:
        return "compute" if scalars.supports_fold(operation) else "other"
    return "compute" if scalars.supports(operation) else "other"


def is_element(operation: Operation) -> bool:
    """Whether an indexing operation reads or writes what one index per leading axis shows."""
    name, operands = operation.op.name, operation.operands
    if name not in ("gather", "scatter_set", "scatter_add") or operation.attrs["axis"] != 0:
        return False
    indices = operands[1:] if name == "gather" else operands[2:]
    if any(index.type.rank or not scalars.is_register(index.type.dtype) for index in indices):
        return False
    dtype = operands[0].type.dtype
    if name == "scatter_add":
        return not operands[1].type.rank and scalars.is_register(dtype) and dtype != scalars.F16
    return True


def role_of(operation: Operation) -> str:
    """How a section runs an operation: as a group, an alias, control flow, a check, an element or a step."""
    if operation.op.name == "fused":
        return "group"
    if operation.op is ALIAS:
        return "alias"
    name = operation.op.name
    if name == "host_call":  # one that only raises an error
        return "check"
    if name in CONTROL or name in ("check", "tape_length"):
        return name
    return "element" if is_element(operation) else "step"


class Natives:
    """The native forms of the operations of one function."""

    def __init__(self) -> None:
        self.flats: Flats = {}
        self.steps: dict[Operation, tuple[str, Step]] = {}
        self.names: dict[Any, tuple[str, Step] | None] = {}
        self.known: dict[Operation, bool] = {}
        self.prefix = "step"

    def flatten(self, region: Region) -> Flat:
        """The region as a straight list of operations, the same ones each time."""
        found = self.flats.get(id(region))
        if found is None:
            found = self.flats[id(region)] = (region, flatten(region))
        return found[1]

    def is_native(self, operation: Operation) -> bool:
        known = self.known.get(operation)
        if known is None:
            known = self.known[operation] = self.find(operation)
        return known

    def find(self, operation: Operation) -> bool:
        if fused_kind(operation) != "other":
            return True
        types = [value.type for value in (*operation.operands, *operation.results)]
        if not all(is_plain(type) for type in types):
            return False
        name = operation.op.name
        if name in ("check", "tape_length") or operation.op is PARTS:
            return True
        if operation.regions:
            return name in CONTROL and all(map(self.is_native_region, operation.regions))
        if operation.op.effect:
            return "raises" in operation.attrs
        if name in PIECED and pieces_of(operation) is not None:  # a loop reads the pieces, or a step copies them
            return True
        return is_element(operation) or self.find_step(operation)

    def is_native_region(self, region: Region) -> bool:
        operations, results = self.flatten(region)
        if not all(is_plain(value.type) for value in (*region.params, *results)):
            return False
        for operation in operations:
            if not self.is_native(operation) or any(map(is_large, operation.operands)):
                return False
        return not any(map(is_large, results))

    def find_step(self, operation: Operation) -> bool:
        """Equal operations on equal types are one function."""
        key = (
            operation.op,
            tuple(operation.attrs.items()),
            tuple([value if isinstance(value, Literal) else value.type for value in operation.operands]),
            tuple([value.type for value in operation.results]),
        )
        found = self.names.get(key)
        if found is None and key not in self.names:
            name = f"{self.prefix}_{len(self.names) + 1}"
            step = step_for(operation, name, TARGET)
            found = self.names[key] = None if step is None else (name, step)
        if found is None:
            return False
        self.steps[operation] = found
        return True
