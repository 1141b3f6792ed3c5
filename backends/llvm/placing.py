"""Parts of arrays that groups write at their places: updates that need no pass of their own.

An update (`slice_set`) of what a group computes is otherwise two passes over the part: one that writes it as an array,
and one that copies this to its place. The group writes it there instead: its output is then the array after the update,
whose memory is that of the array before it, if nothing else reads that, or a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping, Sequence, Set
from typing import Final

from srcgrad.backends.llvm.indices import Line, strides_of
from srcgrad.backends.llvm.kinds import is_loop_type
from srcgrad.backends.llvm.loops import Group, Load, Store
from srcgrad.backends.llvm.natives import fused_kind
from srcgrad.backends.llvm.pieces import wanted_updates
from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.expand import emitted
from srcgrad.ir.passes.rewrite import AnyRegion
from srcgrad.ir.source import Span

_MOST: Final = 16
"""The arrays that one group writes in part."""


def line_of(update: Operation) -> Line | None:
    """Where the points of a part lie in the array; None where there is no such line, or nothing is written."""
    whole, part = (value.type for value in update.operands)
    attrs = update.attrs
    if not whole.rank or not is_loop_type(whole) or not part.size or part.dtype != whole.dtype:
        return None
    if any(stride != 1 and size > 1 for stride, size in zip(attrs["strides"], part.static_shape, strict=True)):
        return None
    strides = strides_of(whole.static_shape)
    return Line(sum(map(int.__mul__, attrs["starts"], strides)), strides)


def is_in_the_way(group: Group, store: Store, whole: Value, line: Line) -> bool:
    """Whether a group reads elements of an array after they may have been written over, or elsewhere."""
    for number, item in enumerate(group.statements):
        if not isinstance(item, Load) or group.inputs[item.source] is not whole:
            continue
        if item.line != line or item.bounds or number > store.statement:
            return True
    return False


class Placing:
    """The operations of a block, of which updates become outputs of groups; ``groups`` by name."""

    def __init__(
        self, operations: Sequence[Operation], results: Sequence[Value], groups: MutableMapping[str, Group],
        made: Callable[[Group, Span | None], Operation],
    ) -> None:  # fmt: skip
        self.found: list[Operation | None] = list(operations)
        self.groups = groups
        self.made = made
        """The operation of a group."""
        self.used = Counter(value for operation in operations for value in operation.operands)
        self.used.update(results)
        self.places = {value: place for place, item in enumerate(operations) for value in item.results}
        for place, operation in enumerate(operations):
            if operation.op.name == "slice_set":
                self.place(place, operation)

    def operations(self) -> list[Operation]:
        return [operation for operation in self.found if operation is not None]

    def place(self, here: int, update: Operation) -> None:
        """Let the group that computes the part write it into the array, if it can."""
        whole, part = update.operands
        there = self.places.get(part, -1)
        home = self.found[there] if there >= 0 else None
        group = self.groups.get(home.attrs["kernel"]) if home is not None and home.op.name == "fused" else None
        line = line_of(update)
        if home is None or group is None or line is None or len(group.updates) >= _MOST:
            return
        store = next((store for store in group.stores if group.outputs[store.output] is part), None)
        if store is None or part in group.updates or part.type.static_shape != group.domain:
            return
        if is_in_the_way(group, store, whole, line):
            return
        alone = self.used[part] == 1
        if self.places.get(whole, -1) >= there:  # the group must wait for it
            if not alone or len(group.outputs) > 1:
                return
            self.found[there], there = None, here
        if there != here:
            self.found[here] = None
        self.used[part] -= 1
        self.write(group, store, update, line, alone)
        self.found[there] = self.made(group, home.span)
        self.places.update(dict.fromkeys(group.outputs, there))

    def write(self, group: Group, store: Store, update: Operation, line: Line, alone: bool) -> None:
        """The output of a group, instead of the part where nothing else reads that."""
        (result,), whole = update.results, update.operands[0]
        output = store.output if alone else len(group.outputs)
        if alone:
            group.stores.remove(store)
            group.outputs[output] = result
        else:
            group.outputs.append(result)
        group.stores.append(Store(output, store.statement, line))
        group.updates[result] = whole
        if not isinstance(whole, Literal) and whole not in group.inputs:
            group.inputs.append(whole)


def read_in_place(region: AnyRegion) -> AnyRegion:
    """The region in which what comes after an update reads the part from the array, in its regions too.

    Nothing but the update then needs it as an array of its own.
    """
    given = region.params if isinstance(region, Function) else ()
    updates = wanted_updates(region.operations, region.results, fused_kind, given)
    if not updates and not any(operation.regions for operation in region.operations):
        return region
    wanted: Set[Value] = set(region.results)
    shown: dict[Value, Value] = {}
    """By part, what shows it in the array."""

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        if shown and fused_kind(operation) != "other":
            operands = [shown.get(old, new) for old, new in zip(operation.operands, operands, strict=True)]
        regions: tuple[Region, ...] = tuple([read_in_place(inner) for inner in operation.regions])
        results = builder.emit_operation(operation.op, operands, operation.attrs, regions).results
        if operation in updates and line_of(operation) is not None:
            part = operation.operands[1]
            if part.producer is not None and fused_kind(part.producer) == "compute" and part not in wanted:
                places = {name: operation.attrs[name] for name in ("starts", "limits", "strides")}
                shown[part] = builder.emit(REGISTRY["slice"], results, places)
        return results

    return emitted(region, emit)
