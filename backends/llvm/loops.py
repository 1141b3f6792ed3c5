"""The loop layer: a list of operations as groups that each run in one pass over one domain.

A *group* computes values at every point of its *domain*, a static shape, and keeps some of them: as arrays (stores) or
folded over axes (reductions). It reads arrays by *lines*: an offset and a stride per axis of the domain, in elements,
into which broadcasts, transposes, slices, reversals and reshapes are folded. `Group.text` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import DType
from srcgrad.backends.llvm.indices import Index, Line, View, flat, strides_of
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.text import attr_text
from srcgrad.ir.types import dtype_name

REDUCTIONS: Final = frozenset({"reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_or", "reduce_and"})


class Load(NamedTuple):
    """An element of an input."""

    source: int
    line: Line
    dtype: DType


class Constant(NamedTuple):
    """The same number at every point."""

    value: Any
    dtype: DType


class Iota(NamedTuple):
    """A whole number that grows along the axes of the domain."""

    line: Line
    dtype: DType


class Compute(NamedTuple):
    """An elementwise operation on earlier statements."""

    operation: Operation
    operands: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return self.operation.results[0].type.dtype


Statement = Load | Constant | Iota | Compute


class Store(NamedTuple):
    """Keep a statement's values as the array of an output."""

    output: int
    statement: int
    line: Line


class Fold(NamedTuple):
    """Keep a statement's values folded over ``axes``; the line has the stride 0 along these."""

    output: int
    statement: int
    line: Line
    name: str
    axes: frozenset[int]


@dataclass(slots=True)
class Group:
    """What one kernel computes: arrays ``inputs`` to arrays ``outputs``."""

    name: str
    domain: tuple[int, ...]
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)

    def lines(self) -> list[Line]:
        found = [item.line for item in self.statements if isinstance(item, Load | Iota)]
        return [*found, *[store.line for store in self.stores], *[fold.line for fold in self.folds]]

    def depths(self) -> list[int]:
        """Per statement, how many of the loops it stands in: those up to the last axis that it varies along."""
        found: list[int] = []
        for item in self.statements:
            if isinstance(item, Compute):
                found.append(max([found[k] for k in item.operands], default=0))
            elif isinstance(item, Constant):
                found.append(0)
            else:
                found.append(max((axis + 1 for axis, stride in enumerate(item.line.strides) if stride), default=0))
        return found

    def text(self) -> str:
        """The group as nested loops, for people."""
        depths = self.depths()
        inputs = ", ".join(f"in{k}: {value.type}" for k, value in enumerate(self.inputs))
        outputs = ", ".join(f"out{k}: {value.type}" for k, value in enumerate(self.outputs))
        shown = [f"{self.name}({inputs}) -> ({outputs})"]
        for depth in range(len(self.domain) + 1):
            indent = "  " * (depth + 1)
            for number, item in enumerate(self.statements):
                if depths[number] == depth and not isinstance(item, Constant):
                    shown.append(f"{indent}%{number}: {dtype_name(item.dtype)} = {self._statement(item)}")
            if depth < len(self.domain):
                shown.append(f"{indent}for i{depth} in 0..{self.domain[depth]}:")
        indent = "  " * (len(self.domain) + 1)
        for store in self.stores:
            shown.append(f"{indent}out{store.output}[{store.line.text()}] = {self._name(store.statement)}")
        for fold in self.folds:
            place = f"out{fold.output}[{fold.line.text()}]"
            shown.append(f"{indent}{place} {fold.name.removeprefix('reduce_')}= {self._name(fold.statement)}")
        return "\n".join(shown)

    def _name(self, number: int) -> str:
        item = self.statements[number]
        return str(item.value) if isinstance(item, Constant) else f"%{number}"

    def _statement(self, item: Statement) -> str:
        if isinstance(item, Load):
            return f"in{item.source}[{item.line.text()}]"
        if isinstance(item, Compute):
            attrs = ", ".join(f"{name}={attr_text(value)}" for name, value in item.operation.attrs.items())
            given = ", ".join(map(self._name, item.operands))
            return f"{item.operation.op.name} {given}{f' {{{attrs}}}' if attrs else ''}"
        assert isinstance(item, Iota)
        return item.line.text()


class GroupWriter:
    """Makes the statements of one group; a value is computed once for each way in which it is read."""

    def __init__(
        self, name: str, domain: tuple[int, ...], views: dict[Value, View], kept: set[Value], own: set[Value]
    ) -> None:
        self.group = Group(name, domain)
        self.identity = tuple(Line(0, tuple(int(a == b) for b in range(len(domain)))) for a in range(len(domain)))
        self.views = views
        self.kept = kept
        self.own = own
        """The kept values that this group itself computes: read in place, they are in registers."""
        self.memo: dict[tuple[Value, Index], int] = {}
        self.loads: dict[tuple[Value, Line], int] = {}
        self.sources: dict[Value, int] = {}
        self.computed: dict[Value, list[int]] = {}

    def add(self, statement: Statement) -> int:
        self.group.statements.append(statement)
        return len(self.group.statements) - 1

    def load(self, value: Value, line: Line) -> int:
        known = self.loads.get((value, line))
        if known is None:
            source = self.sources.setdefault(value, len(self.sources))
            known = self.loads[value, line] = self.add(Load(source, line, value.type.dtype))
        return known

    def leaf(self, value: Value, index: Index) -> int | None:
        """The statement of a value that is not computed in this group."""
        if isinstance(value, Literal) and value.splat:
            return self.add(Constant(value.value, value.type.dtype))
        owned = value in self.own and index == self.identity and value.type.shape == self.group.domain
        producer = value.producer
        if isinstance(value, Literal) or producer is None or (value in self.kept and not owned):
            return self.load(value, flat(index, value.type.static_shape, len(self.group.domain)))
        if producer.op.name == "iota":
            return self.add(Iota(index[producer.attrs["axis"]], value.type.dtype))
        return None

    def resolve(self, value: Value, index: Index) -> tuple[Value, Index] | int:
        """A value through its views: what it shows and where, or the statement that loads it."""
        view, rank = self.views.get(value), len(self.group.domain)
        if view is not None:
            if view.flat is not None:
                return self.load(view.base, view.flat.of(index, rank))
            assert view.places is not None
            return view.base, tuple(line.of(index, rank) for line in view.places)
        return value, index

    def statement(self, value: Value, index: Index) -> int:
        """The number of the statement that computes a value at an index; iterative, as chains may be long."""
        start = self.resolve(value, index)
        if isinstance(start, int):
            return start
        stack = [start]
        while stack:
            key = stack[-1]
            if key in self.memo:
                stack.pop()
                continue
            found = self.leaf(*key)
            if found is None:
                producer = key[0].producer
                assert producer is not None
                operands: list[int] = []
                missing = []
                for operand in producer.operands:
                    target = self.resolve(operand, self.read_index(operand, key[1]))
                    if not isinstance(target, int):
                        if target not in self.memo:
                            missing.append(target)
                            continue
                        target = self.memo[target]
                    operands.append(target)
                if missing:
                    stack += missing
                    continue
                found = self.add(Compute(producer, tuple(operands)))
                self.computed.setdefault(key[0], []).append(found)
            self.memo[key] = found
            stack.pop()
        return self.memo[start]

    def read_index(self, operand: Value, index: Index) -> Index:
        """Elementwise operands are read where the result is; a predicate of rank 0 at its only place."""
        return index if operand.type.rank == len(index) else ()

    def finish(self) -> Group:
        self.group.inputs = list(self.sources)
        return self.group


def add_sink(writer: GroupWriter, value: Value) -> None:
    """Keep a value in the group that is being written."""
    group, producer = writer.group, value.producer
    output = len(group.outputs)
    group.outputs.append(value)
    if producer is not None and producer.op.name in REDUCTIONS and producer.attrs["axes"]:
        operand = producer.operands[0]
        axes = frozenset(producer.attrs["axes"])
        statement = writer.statement(operand, writer.identity)
        places = iter(strides_of(value.type.static_shape))
        line = Line(0, tuple(0 if axis in axes else next(places) for axis in range(len(group.domain))))
        group.folds.append(Fold(output, statement, line, producer.op.name, axes))
    else:
        statement = writer.statement(value, writer.identity)
        group.stores.append(Store(output, statement, Line(0, strides_of(group.domain))))


# --- the order of the loops ------------------------------------------------------------------------------------------


def arranged(group: Group) -> Group:
    """The group with axes of size 1 left out, the innermost axis chosen, and axes merged that can be one loop."""
    group = permuted(group, [axis for axis, size in enumerate(group.domain) if size != 1])
    group.stores += [Store(fold.output, fold.statement, fold.line) for fold in group.folds if not fold.axes]
    group.folds = [fold for fold in group.folds if fold.axes]
    inner = innermost(group)
    if inner is not None and inner != len(group.domain) - 1:
        rest = [axis for axis in range(len(group.domain)) if axis != inner]
        group = permuted(group, [*rest, inner])
    axis = len(group.domain) - 2
    while axis >= 0:
        if mergeable(group, axis):
            group = merged(group, axis)
        axis -= 1
    return group


def innermost(group: Group) -> int | None:
    """The axis along which most arrays are contiguous; stores count twice, and the last axis wins a tie."""
    best, chosen = None, None
    stored = [store.line for store in group.stores]
    for axis, size in enumerate(group.domain):
        score = 0
        for line in (*group.lines(), *stored):
            stride = line.strides[axis]
            score += 2 if stride in (1, -1) else 1 if stride == 0 else -2
        score -= 4 * (size < 4)
        if best is None or score >= best:
            best, chosen = score, axis
    return chosen


def permuted(group: Group, order: Sequence[int]) -> Group:
    """The group with these axes, in this order."""
    if list(order) == list(range(len(group.domain))):
        return group
    place = {axis: position for position, axis in enumerate(order)}

    def moved(line: Line) -> Line:
        return Line(line.offset, tuple(line.strides[axis] for axis in order))

    domain = tuple(group.domain[axis] for axis in order)
    return rebuilt(group, domain, moved, lambda axes: frozenset(place[axis] for axis in axes if axis in place))


def mergeable(group: Group, axis: int) -> bool:
    size = group.domain[axis + 1]
    if any(line.strides[axis] != line.strides[axis + 1] * size for line in group.lines()):
        return False
    return all((axis in fold.axes) == (axis + 1 in fold.axes) for fold in group.folds)


def merged(group: Group, axis: int) -> Group:
    """The group with an axis and the next as one."""
    domain = (*group.domain[:axis], group.domain[axis] * group.domain[axis + 1], *group.domain[axis + 2 :])

    def joined(line: Line) -> Line:
        return Line(line.offset, (*line.strides[:axis], *line.strides[axis + 1 :]))

    return rebuilt(group, domain, joined, lambda axes: frozenset(k if k <= axis else k - 1 for k in axes))


def rebuilt(group: Group, domain: tuple[int, ...], line: Any, axes: Any) -> Group:
    statements: list[Statement] = [
        item._replace(line=line(item.line)) if isinstance(item, Load | Iota) else item for item in group.statements
    ]
    stores = [store._replace(line=line(store.line)) for store in group.stores]
    folds = [fold._replace(line=line(fold.line), axes=axes(fold.axes)) for fold in group.folds]
    return Group(group.name, domain, group.inputs, group.outputs, statements, stores, folds)


def empty_result(name: str, dtype: DType) -> Any:
    """What a reduction of no elements gives."""
    if name in ("reduce_prod", "reduce_and"):
        return np.ones((), dtype)[()]
    return np.zeros((), dtype)[()]
