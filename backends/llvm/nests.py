"""Groups in one outer loop: what several passes over the rows of an array need is done while the rows are in cache.

A *nest* is a list of groups, its phases, whose first axes are the same, and in which what one phase reads of another's
arrays is of the same index of these. It runs all phases for one block of rows, then for the next. Arrays that only its
phases read are *local*: there is room for one block of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.indices import Line, strides_of
from srcgrad.backends.llvm.loops import (
    Compute,
    Constant,
    Group,
    Load,
    Statement,
    arranged,
    attrs_of,
    is_of_pairs,
    mergeable,
    merged,
    signature,
)
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation, Value

IN_CACHE: Final = 32 << 10
"""The bytes that all arrays of a block of rows have together, where a row has no more."""
_LONGEST_ROW: Final = 256 << 10
"""The bytes of a row from which nothing of it would be in cache for the next phase."""
_WAITING: Final = 48
"""How many operations may be put after a nest that is growing."""
_PHASES: Final = 24
_DEAREST: Final = 4000
"""The cost of a point of all phases from which machine code would take long to make."""
_IN_COLUMNS: Final = 1 << 20
"""The bytes of an array from which its columns, read one by one, are not in the nearer caches for the next one."""
STRAIGHT_COST: Final = 300
"""The cost of a body, in additions, from which what is done once per trip does not matter."""
_STEP: Final = 16
_VECTOR: Final = 64
"""The bytes of the longest vectors."""


@dataclass(slots=True)
class Nest:
    """Phases over the same ``outer`` axes; ``block``: how many indices of the last of these run together."""

    name: str
    phases: list[Group]
    outer: int
    block: int
    inputs: list[Value]
    outputs: list[Value]
    locals: list[Value]
    outlined: bool = False

    @property
    def statements(self) -> list[Statement]:
        return [item for phase in self.phases for item in phase.statements]

    @property
    def domain(self) -> tuple[int, ...]:
        """The axes that all phases have."""
        return self.phases[0].domain[: self.outer]

    def work(self) -> int:
        return sum(phase.work() for phase in self.phases)

    def row_size(self, value: Value) -> int:
        """The elements of a local array that one row has."""
        return value.type.size // math.prod(self.domain)

    def text(self) -> str:
        names = {value: f"in{k}" for k, value in enumerate(self.inputs)}
        names |= {value: f"out{k}" for k, value in enumerate(self.outputs)}
        names |= {value: f"local{k}" for k, value in enumerate(self.locals)}
        shown = [signature(self.name, self.inputs, self.outputs)]
        shown += [f"  local{k}: {value.type}, {self.block} rows of it" for k, value in enumerate(self.locals)]
        for axis, size in enumerate(self.domain[:-1]):
            shown.append(f"{'  ' * (axis + 1)}for i{axis} in 0..{size}:")
        axis, indent = self.outer - 1, "  " * self.outer
        shown.append(f"{indent}for each {self.block} of i{axis} in 0..{self.domain[-1]}:")
        outer = [f"for i{k} in 0..{size}:" for k, size in enumerate(self.domain[:-1])]
        for phase in self.phases:
            lines = [line for line in phase.loops(names, names) if line.strip() not in outer]
            shown += [
                "  " + line.replace(f"for i{axis} in 0..{self.domain[-1]}:", f"for i{axis} of these:") for line in lines
            ]
        return "\n".join(shown)


def is_straight(group: Group | Nest, target: Target) -> bool:
    """Whether nearly all the work is in long bodies of which little waits at once.

    Of these LLVM's level 0 makes code as fast as other levels do, in a third of their time: there is nothing to move
    out of loops, and there are registers for what waits. Short loops and bodies with much alive are far slower so.
    """
    if "neon" in target.features:  # LLVM has another way to choose instructions at level 0 there
        return False
    phases = group.phases if isinstance(group, Nest) else [group]
    for phase in phases:  # level 0 has no quick way to sort pairs
        if any(value.type.dtype.kind == "c" for value in phase.outputs) or any(map(is_of_pairs, phase.inputs)):
            return False
    costs = [phase.cost() for phase in phases]
    short = sum([cost for cost in costs if cost < STRAIGHT_COST])
    crowded = sum([phase.crowded(target.registers) for phase in phases])
    return 10 * short <= sum(costs) and 4 * crowded <= len(group.statements)


@dataclass(slots=True)
class _Growing:
    """A nest that is being put together, of the operations of its groups."""

    operations: list[Operation] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    outer: int = 0
    made: dict[Value, Group] = field(default_factory=dict)
    read: set[Value] = field(default_factory=set)
    cost: int = 0
    """Of a point of all groups."""
    partial: set[Value] = field(default_factory=set)
    """What is folded over the outer axes."""
    sizes: dict[Value, int] = field(default_factory=dict)
    """The bytes that one index of the outer axes reads and writes, by array."""
    row: int = 0
    """The sum of these."""

    def admits(self, group: Group) -> int:
        """The number of outer axes with this group too; 0 where it cannot belong here."""
        if 0 in group.domain or group.updates or group.bounds():  # what has bounds is cut where these are
            return 0
        if is_turned_copy(group):  # written in tiles, for loops that would read it too late
            return 0
        if not self.groups:
            return len(group.domain)
        if len(self.groups) >= _PHASES or not any(v in self.made or v in self.read for v in group.inputs):
            return 0
        if self.cost + group.cost() > _DEAREST:
            return 0
        found = 0
        for a, b in zip(self.groups[0].domain[: self.outer], group.domain, strict=False):
            if a != b:
                break
            found += 1
        while found and not self.is_local(group, found):
            found -= 1
        if math.prod(group.domain[:found]) < 2 or self.row_bytes(group, found) > _LONGEST_ROW:
            return 0
        news = [group] if found == self.outer else [*self.groups, group]
        return 0 if any(reads_columns(other, found) for other in news) else found

    def is_local(self, group: Group, outer: int) -> bool:
        """Whether what is read of others is there by then: of the same outer indices, and not folded over these."""
        same = outer == self.outer  # then all is as it should be in the others, which read nothing of this one
        groups = (group,) if same else (*self.groups, group)
        partial = self.partial if same else folded_over((*self.groups, group), outer)
        for other in groups:
            for item in other.statements:
                if isinstance(item, Load):
                    value = other.inputs[item.source]
                    if value in partial:
                        return False
                    if value in self.made and not of_the_same_row(value, item.line, other.domain, outer):
                        return False
        return True

    def row_bytes(self, group: Group, outer: int) -> int:
        if outer != self.outer:
            return sum(row_sizes((*self.groups, group), outer).values())
        found = row_sizes((group,), outer)
        return self.row + sum([max(size - self.sizes.get(value, 0), 0) for value, size in found.items()])

    def add(self, operation: Operation, group: Group, outer: int) -> None:
        self.operations.append(operation)
        self.groups.append(group)
        self.cost += group.cost()
        news = [group] if outer == self.outer else self.groups
        if outer != self.outer:
            self.partial, self.sizes, self.outer = set(), {}, outer
        self.partial |= folded_over(news, outer)
        for value, size in row_sizes(news, outer).items():
            self.sizes[value] = max(self.sizes.get(value, 0), size)
        self.row = sum(self.sizes.values())
        self.made.update(dict.fromkeys(group.outputs, group))
        self.read.update(value for value in group.inputs if value.type.size >= math.prod(group.domain))


def reads_columns(group: Group, outer: int) -> bool:
    """Whether a group would read a large array along one of these outer axes, of which a trip has one index."""
    inner = range(outer, len(group.domain)) or range(outer - 1, outer)
    for item in group.statements:
        if not isinstance(item, Load) or bytes_of(group.inputs[item.source].type) < _IN_COLUMNS:
            continue
        along = [axis for axis, size in enumerate(group.domain) if size > 1 and abs(item.line.strides[axis]) == 1]
        if along and not any(axis in inner for axis in along) and any(item.line.strides[axis] for axis in inner):
            return True
    return False


def is_turned_copy(group: Group) -> bool:
    """Whether all that a group does is to turn a large array."""
    first = group.statements[0] if len(group.statements) == 1 and not group.folds else None
    return (
        isinstance(first, Load) and abs(first.line.strides[-1]) > 1 and bytes_of(group.outputs[0].type) >= _IN_COLUMNS
    )


def of_the_same_row(value: Value, line: Line, domain: Sequence[int], outer: int) -> bool:
    """Whether a line reads, of an array with these outer axes, what is of the indices at which it stands."""
    shape = value.type.static_shape
    if shape[:outer] != tuple(domain[:outer]):
        return False
    strides = strides_of(shape)
    if any(line.strides[axis] != strides[axis] for axis in range(outer) if domain[axis] > 1):
        return False
    least = most = line.offset
    for stride, size in zip(line.strides[outer:], domain[outer:], strict=True):
        least, most = least + min(stride * (size - 1), 0), most + max(stride * (size - 1), 0)
    return least >= 0 and most < math.prod(shape[outer:])


def folded_over(groups: Iterable[Group], outer: int) -> set[Value]:
    """What groups fold over some of the first axes."""
    return {group.outputs[fold.output] for group in groups for fold in group.folds if min(fold.axes) < outer}


def row_sizes(groups: Iterable[Group], outer: int) -> dict[Value, int]:
    """About how many bytes of each array one index of the outer axes reads and writes."""
    found: dict[Value, int] = {}
    for group in groups:
        for item in group.statements:
            if isinstance(item, Load):
                sizes = [size for k, size in enumerate(group.domain) if k >= outer and item.line.strides[k]]
                value = group.inputs[item.source]
                found[value] = max(found.get(value, 0), math.prod(sizes) * item.dtype.itemsize)
        for value in group.outputs:
            found[value] = bytes_of(value.type) // math.prod(group.domain[:outer])
    return found


def nested(operations: Sequence[Operation], results: Sequence[Value], groups: list[Group | Nest]) -> list[Operation]:
    """The operations with groups that share an outer loop as one, in an order that is valid for that.

    In ``groups`` those of operations that are ``fused``, which are not arranged yet, give way to what they become.
    """
    names = {operation.attrs["kernel"] for operation in operations if operation.op.name == "fused"}
    known = {group.name: group for group in groups if isinstance(group, Group) and group.name in names}
    used = Counter(value for operation in operations for value in operation.operands)
    used.update(results)
    groups[:] = [group for group in groups if group.name not in known]
    return _ordered(without_dead(operations, known, used), known, used, groups)


def without_dead(operations: Sequence[Operation], known: dict[str, Group], used: Counter[Value]) -> list[Operation]:
    """The operations without what groups keep and nothing reads, which is what others were to read and now compute.

    ``known`` and ``used``, the groups by name and how often each value is read, change with it.
    """
    found: list[Operation] = []
    for operation in reversed(operations):
        if _is_group(operation, known) and not all(used[value] for value in operation.results):
            for value in operation.operands:
                used[value] -= 1
            group = known[operation.attrs["kernel"]] = known[operation.attrs["kernel"]].with_outputs(used)
            if not group.outputs:
                del known[group.name]
                continue
            operation = _fused(operation, group)
            used.update(operation.operands)
        found.append(operation)
    return found[::-1]


def _ordered(
    operations: list[Operation], known: dict[str, Group], used: Counter[Value], made: list[Group | Nest]
) -> list[Operation]:
    order: list[Operation] = []
    while operations:
        before, nest, operations = _grown(operations, known)
        if nest.operations:
            order += _ordered(before, known, used, made)
        else:
            order += before
            made += [arranged(known[operation.attrs["kernel"]]) for operation in before if _is_group(operation, known)]
        if len(nest.operations) == 1:
            made.append(arranged(nest.groups[0]))
            order.append(nest.operations[0])
        elif nest.operations:
            built = _finished(nest, used)
            made.append(built)
            order.append(_fused(nest.operations[0], built))
    return order


def _is_group(operation: Operation, known: dict[str, Group]) -> bool:
    return operation.op.name == "fused" and operation.attrs["kernel"] in known


def _grown(operations: list[Operation], known: dict[str, Group]) -> tuple[list[Operation], _Growing, list[Operation]]:
    """The first nest of some operations: what must run before it, the nest, and the others, in their order."""
    before: list[Operation] = []
    after: list[Operation] = []
    late: dict[Value, Operation] = {}
    stays: set[Value] = set()
    """What operations give that cannot run before the nest: they need it, or have effects, whose order would change."""
    nest = _Growing()
    for position, operation in enumerate(operations):
        group = known[operation.attrs["kernel"]] if _is_group(operation, known) else None
        outer = nest.admits(group) if group is not None and stays.isdisjoint(operation.operands) else 0
        if group is not None and outer:
            needed = _needed(operation, late)
            nest.add(operation, group, outer)
            before += [other for other in after if other in needed]
            after = [other for other in after if other not in needed]
            for other in needed:
                for value in other.results:
                    del late[value]
        elif nest.operations:
            after.append(operation)
            late.update(dict.fromkeys(operation.results, operation))
            fixed = operation.op.effect or operation.regions
            if fixed or any(value in stays or value in nest.made for value in operation.operands):
                stays.update(operation.results)
        else:
            before.append(operation)
        if len(after) > _WAITING:
            return before, nest, [*after, *operations[position + 1 :]]
    return before, nest, after


def _needed(operation: Operation, late: dict[Value, Operation]) -> set[Operation]:
    """Which of the operations that wait an operation needs."""
    found: set[Operation] = set()
    stack = [late[value] for value in operation.operands if value in late]
    while stack:
        other = stack.pop()
        if other in found:
            continue
        found.add(other)
        stack += [late[value] for value in other.operands if value in late]
    return found


def _finished(nest: _Growing, used: Counter[Value]) -> Group | Nest:
    groups = _together(nest.groups, used)
    if len(groups) == 1:
        return arranged(groups[0])
    made = [value for group in groups for value in group.outputs]
    inside = Counter(value for group in groups for value in group.inputs)
    inputs = dict.fromkeys(value for group in groups for value in group.inputs if value not in nest.made)
    outputs = [value for value in made if inside[value] < used[value]]
    phases = [arranged(group, nest.outer) for group in groups]
    outer = nest.outer
    for axis in reversed(range(nest.outer - 1)):
        if all(mergeable(phase, axis) for phase in phases):
            phases = [merged(phase, axis) for phase in phases]
            outer -= 1
    rows = max(1, IN_CACHE // max(nest.row, 1))
    if all(len(phase.domain) == outer for phase in phases):  # rows are numbers: whole vectors of them
        dtypes = frozenset().union(*[phase.measure().dtypes for phase in phases])
        rows = max(rows, _VECTOR // min(dtype.itemsize for dtype in dtypes))
    step = _STEP if rows > _STEP else _STEP // 2
    rows = rows // step * step if rows > step else rows
    block = min(rows, phases[0].domain[outer - 1])
    local = [value for value in made if inside[value] >= used[value]]
    return Nest(nest.groups[0].name, phases, outer, block, list(inputs), outputs, local)


def _together(groups: Sequence[Group], used: Counter[Value]) -> list[Group]:
    """The groups of a nest, with those in one pass that can be: what stood between them runs before the nest.

    ``used``, how often each value is read, changes with it.
    """
    found: list[Group] = []
    for group in groups:
        place = len(found) - 1
        while place >= 0 and not _is_one_pass(found[place], group):
            place = place - 1 if set(found[place].outputs).isdisjoint(group.inputs) else -1
        if place < 0:
            found.append(group)
            continue
        first = found[place]
        shared = set(group.inputs) & {*first.inputs, *first.outputs}
        used.subtract(shared)
        found[place] = _joined(first, group).with_outputs(used)
    return found


def _is_one_pass(first: Group, second: Group) -> bool:
    """Whether the second group can be computed where the first one is, point by point."""
    if first.domain != second.domain or first.outlined != second.outlined or first.separate != second.separate:
        return False
    if any(group.added or group.updates or group.boxes for group in (first, second)):
        return False
    if first.cost() + second.cost() > STRAIGHT_COST:
        return False
    stored = {first.outputs[store.output]: store.line for store in first.stores}
    made = set(first.outputs)
    for item in second.statements:
        if isinstance(item, Load):
            value = second.inputs[item.source]
            if value in made and (item.bounds or stored.get(value) != item.line):
                return False
    return True


def _joined(first: Group, second: Group) -> Group:
    """Two groups of one domain as one: what both read or compute is there once, and no array of the first is read."""
    inputs = list(dict.fromkeys([*first.inputs, *[v for v in second.inputs if v not in first.outputs]]))
    sources = {value: k for k, value in enumerate(inputs)}
    stored = {first.outputs[store.output]: store.statement for store in first.stores}
    statements, numbers = list(first.statements), dict[Any, int]()
    for number, item in enumerate(statements):
        numbers.setdefault(_identity(item), number)
    places: list[int] = []
    for item in second.statements:
        if isinstance(item, Load):
            value = second.inputs[item.source]
            if value in stored:
                places.append(stored[value])
                continue
            item = item._replace(source=sources[value])
        elif isinstance(item, Compute):
            item = item._replace(operands=tuple([places[k] for k in item.operands]))
        number = numbers.setdefault(_identity(item), len(statements))
        if number == len(statements):
            statements.append(item)
        places.append(number)
    found = Group(first.name, first.domain, inputs, [*first.outputs, *second.outputs], statements)
    found.outlined, found.separate = first.outlined, first.separate
    more = len(first.outputs)
    stores = [item._replace(output=item.output + more, statement=places[item.statement]) for item in second.stores]
    folds = [item._replace(output=item.output + more, statement=places[item.statement]) for item in second.folds]
    found.stores, found.folds = [*first.stores, *stores], [*first.folds, *folds]
    return found


def _identity(item: Statement) -> Any:
    """What two statements have in common that are the same: a constant is told by its bits."""
    if isinstance(item, Constant):
        return Constant, np.asarray(item.value).tobytes(), item.dtype
    return type(item), item


def _fused(like: Operation, group: Group | Nest) -> Operation:
    types = [value.type for value in group.outputs]
    made = Operation(like.op, tuple(group.inputs), attrs_of(group), (), types, like.span)
    made.results = tuple(group.outputs)
    return made
