"""The loop layer: a list of operations as groups that each run in one pass over one domain.

A *group* computes values at every point of its *domain*, a static shape, and keeps some of them: as arrays (stores) or
folded over axes (reductions). It reads arrays by *lines*: an offset and a stride per axis of the domain, in elements,
into which broadcasts, transposes, slices, reversals and reshapes are folded. `Group.text` prints it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, F64, DType
from srcgrad.backends.llvm.indices import Index, Line, View, flat, strides_of
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.text import attr_text
from srcgrad.ir.types import dtype_name

LONG_ROW: Final = 512
"""The elements from which rows are read in the order in which they lie, even if what they fold to is touched often."""
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
    """An elementwise operation on earlier statements.

    ``function``: one of the vector functions, which is the operation together with what its operand is.
    """

    operation: Operation
    operands: tuple[int, ...]
    function: str = ""

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
    outlined: bool = False
    """Whether functions of `vector_math` are called, not written out."""
    costed: tuple[int, int] = (0, 0)
    """The cost that is known, of so many statements."""
    deep: list[int] = field(default_factory=list)
    """What `depths` has found: to be read, not changed."""

    def lines(self) -> list[Line]:
        found = [item.line for item in self.statements if isinstance(item, Load | Iota)]
        return [*found, *[store.line for store in self.stores], *[fold.line for fold in self.folds]]

    def depths(self) -> list[int]:
        """Per statement, how many of the loops it stands in: those up to the last axis that it varies along."""
        if len(self.deep) == len(self.statements):
            return self.deep
        found: list[int] = []
        for item in self.statements:
            depth = 0
            if isinstance(item, Compute):
                for operand in item.operands:
                    if found[operand] > depth:
                        depth = found[operand]
            elif not isinstance(item, Constant):
                depth = max([axis + 1 for axis, stride in enumerate(item.line.strides) if stride], default=0)
            found.append(depth)
        self.deep = found
        return found

    def axes(self) -> list[frozenset[int]]:
        """Per statement, the axes that it varies along."""
        found: list[frozenset[int]] = []
        for item in self.statements:
            if isinstance(item, Compute):
                found.append(frozenset().union(*[found[k] for k in item.operands]))
            elif isinstance(item, Constant):
                found.append(frozenset())
            else:
                found.append(frozenset(axis for axis, stride in enumerate(item.line.strides) if stride))
        return found

    def is_extreme(self, fold: Fold) -> bool:
        """Whether a fold is a minimum or a maximum of floats, which is nan where one of them is."""
        return fold.name in ("reduce_max", "reduce_min") and self.statements[fold.statement].dtype.kind == "f"

    def cost(self) -> int:
        """About how many additions one point costs."""
        count, total = self.costed
        if count != len(self.statements):
            computed = [item for item in self.statements if isinstance(item, Compute)]
            total = sum([scalars.cost(item.operation, item.function) for item in computed])
            self.costed = len(self.statements), total
        return total

    def work(self) -> int:
        """About how many additions all of it costs."""
        return math.prod(self.domain) * (self.cost() + sum(isinstance(item, Compute) for item in self.statements))

    def crowded(self, registers: int) -> int:
        """At how many statements more numbers than so many wait for what reads them."""
        waits = [not isinstance(item, Constant) for item in self.statements]
        read, changes = [False] * len(waits), [0] * len(waits)
        for number in range(len(waits) - 1, -1, -1):
            item = self.statements[number]
            if isinstance(item, Compute):
                for operand in item.operands:  # the first that is seen is the last that reads it
                    if not read[operand] and waits[operand]:
                        read[operand] = True
                        changes[number] -= 1
            changes[number] += read[number]
        return sum([waiting > registers for waiting in itertools.accumulate(changes)])

    def with_outputs(self, used: Mapping[Value, int]) -> Group:
        """The group without the outputs that are not used, and without what only these need."""
        stores = [store for store in self.stores if used[self.outputs[store.output]]]
        folds = [fold for fold in self.folds if used[self.outputs[fold.output]]]
        live = self.needed_by([*[store.statement for store in stores], *[fold.statement for fold in folds]])
        place = {number: k for k, number in enumerate(live)}
        items = [self.statements[number] for number in live]
        inputs = sorted({item.source for item in items if isinstance(item, Load)})
        outputs = sorted([*[store.output for store in stores], *[fold.output for fold in folds]])
        found = Group(self.name, self.domain, [self.inputs[k] for k in inputs], [self.outputs[k] for k in outputs])
        for item in items:
            if isinstance(item, Compute):
                item = Compute(item.operation, tuple([place[k] for k in item.operands]), item.function)
            elif isinstance(item, Load):
                item = item._replace(source=inputs.index(item.source))
            found.statements.append(item)
        found.stores = [Store(outputs.index(output), place[number], line) for output, number, line in stores]
        for fold in folds:
            found.folds.append(fold._replace(output=outputs.index(fold.output), statement=place[fold.statement]))
        if self.deep:
            found.deep = [self.deep[number] for number in live]
        return found

    def needed_by(self, numbers: Sequence[int]) -> list[int]:
        """These statements and all that they need, in order."""
        live: set[int] = set()
        stack = list(numbers)
        while stack:
            number = stack.pop()
            if number not in live:
                live.add(number)
                item = self.statements[number]
                stack += item.operands if isinstance(item, Compute) else ()
        return sorted(live)

    def text(self) -> str:
        """The group as nested loops, for people."""
        names = {value: f"in{k}" for k, value in enumerate(self.inputs)}
        kept = {value: f"out{k}" for k, value in enumerate(self.outputs)}
        return "\n".join([signature(self.name, self.inputs, self.outputs), *self.loops(names, kept)])

    def loops(self, names: Mapping[Value, str], kept: Mapping[Value, str]) -> list[str]:
        """The loops as text, with what the inputs and the outputs are called."""
        depths, shown = self.depths(), []
        for depth in range(len(self.domain) + 1):
            indent = "  " * (depth + 1)
            for number, item in enumerate(self.statements):
                if depths[number] == depth and not isinstance(item, Constant):
                    shown.append(f"{indent}%{number}: {dtype_name(item.dtype)} = {self._statement(item, names)}")
            if depth < len(self.domain):
                shown.append(f"{indent}for i{depth} in 0..{self.domain[depth]}:")
        indent = "  " * (len(self.domain) + 1)
        for store in self.stores:
            place = f"{kept[self.outputs[store.output]]}[{store.line.text()}]"
            shown.append(f"{indent}{place} = {self._name(store.statement)}")
        for fold in self.folds:
            place = f"{kept[self.outputs[fold.output]]}[{fold.line.text()}]"
            shown.append(f"{indent}{place} {fold.name.removeprefix('reduce_')}= {self._name(fold.statement)}")
        return shown

    def _name(self, number: int) -> str:
        item = self.statements[number]
        return str(item.value) if isinstance(item, Constant) else f"%{number}"

    def _statement(self, item: Statement, names: Mapping[Value, str]) -> str:
        if isinstance(item, Load):
            return f"{names[self.inputs[item.source]]}[{item.line.text()}]"
        if isinstance(item, Compute):
            attrs = ", ".join(f"{name}={attr_text(value)}" for name, value in item.operation.attrs.items())
            given = ", ".join(map(self._name, item.operands))
            return f"{item.function or item.operation.op.name} {given}{f' {{{attrs}}}' if attrs else ''}"
        assert isinstance(item, Iota)
        return item.line.text()


def signature(name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> str:
    given = ", ".join(f"in{k}: {value.type}" for k, value in enumerate(inputs))
    made = ", ".join(f"out{k}: {value.type}" for k, value in enumerate(outputs))
    return f"{name}({given}) -> ({made})"


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
        self.known: dict[Index, dict[Value, int]] = {}
        """The statements of values, by where these are read."""
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
        stack, views, kept, statements = [start], self.views, self.kept, self.group.statements
        here, known = start[1], self.known.setdefault(start[1], {})
        while stack:
            value, index = stack[-1]
            if index is not here:
                here, known = index, self.known.setdefault(index, {})
            if value in known:
                stack.pop()
                continue
            producer, rank, number = value.producer, len(index), None
            if producer is None or value in kept or producer.op.name == "iota":
                number = self.leaf(value, index)
            if number is None:
                assert producer is not None
                given: Sequence[Value] = producer.operands
                function = ""
                if producer.op.name == "square":
                    given, function = self.joined(producer)
                operands: list[int] = []
                missing = []
                for operand in given:
                    # Elementwise operands are read where the result is; a predicate of rank 0 at its only place.
                    found = known.get(operand)
                    if found is None:
                        base, place = operand, index if len(operand.type.shape) == rank else ()
                        if operand in views:
                            target = self.resolve(operand, place)
                            if isinstance(target, int):
                                operands.append(target)
                                continue
                            base, place = target
                        found = (known if place is here else self.known.setdefault(place, {})).get(base)
                        if found is None:
                            missing.append((base, place))
                            continue
                    operands.append(found)
                if missing:
                    stack += missing
                    continue
                number = len(statements)
                statements.append(Compute(producer, tuple(operands), function))
                self.computed.setdefault(value, []).append(number)
            known[value] = number
            stack.pop()
        return self.known[start[1]][start[0]]

    def joined(self, operation: Operation) -> tuple[Sequence[Value], str]:
        """The operands of an operation, or those of its operand where one function is both, and that function.

        The square of a sech is the derivative of a tanh, with which it has the exponential and the quotient in common.
        """
        operand = operation.operands[0]
        if operand.type.dtype in (F32, F64) and operand not in self.kept:
            inner = operand.producer
            if inner is not None and inner.op.name == "sech":
                return inner.operands, "sech_squared"
        return operation.operands, ""

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


def arranged(group: Group, outer: int = 0) -> Group:
    """The group with axes of size 1 left out, in the order of its loops, and with axes merged that can be one loop.

    The first ``outer`` axes stay where they are.
    """
    group = permuted(group, [axis for axis, size in enumerate(group.domain) if size != 1 or axis < outer])
    group.stores += [Store(fold.output, fold.statement, fold.line) for fold in group.folds if not fold.axes]
    group.folds = [fold for fold in group.folds if fold.axes]
    group = contracted(group, outer)
    return contracted(permuted(group, [*range(outer), *order_of_loops(group, outer)]), outer)


def contracted(group: Group, outer: int) -> Group:
    """The group with axes from ``outer`` on as one, where every array goes on from one to the next."""
    axis = len(group.domain) - 2
    while axis >= outer:
        if mergeable(group, axis):
            group = merged(group, axis)
        axis -= 1
    return group


def order_of_loops(group: Group, outer: int) -> list[int]:
    """The axes from ``outer`` on: those that are folded last, unless rows are long, and then the vectors' axis.

    Where there are no folds, the axis before the last is one along which arrays are contiguous that are not along the
    last: these are read in tiles.
    """
    inner = innermost(group, outer)
    if inner is None:
        return []
    rest = [axis for axis in range(outer, len(group.domain)) if axis != inner]
    if group.folds and group.domain[inner] >= LONG_ROW:
        return [*rest, inner]
    if group.folds:
        folded = frozenset().union(*[fold.axes for fold in group.folds])
        rest.sort(key=lambda axis: axis in folded)
    else:
        lines = [item.line for item in group.statements if isinstance(item, Load)]
        turned = [line for line in lines if line.strides[inner] not in (-1, 0, 1)]
        counts = {axis: sum(line.strides[axis] == 1 for line in turned) for axis in rest}
        best = max(rest, key=lambda axis: counts[axis], default=inner)
        if counts.get(best, 0):
            rest = [*[axis for axis in rest if axis != best], best]
    return [*rest, inner]


def innermost(group: Group, outer: int = 0) -> int | None:
    """The axis along which most arrays are contiguous; stores count twice, and the last axis wins a tie."""
    best, chosen = None, None
    stored = [store.line for store in group.stores]
    for axis, size in enumerate(group.domain):
        if axis < outer:
            continue
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


def overwritable(group: Group) -> list[tuple[Value, Value]]:
    """Outputs, each with an input that it may be written over: elements are read where they are written, and before."""
    lines: dict[int, Line | None] = {}
    last: dict[int, int] = {}
    for number, item in enumerate(group.statements):
        if isinstance(item, Load):
            same = lines.setdefault(item.source, item.line) == item.line
            lines[item.source], last[item.source] = (item.line if same else None), number
    sources: dict[tuple[Line, int], list[int]] = {}
    for source, line in lines.items():
        if line is not None:
            sources.setdefault((line, group.inputs[source].type.dtype.itemsize), []).append(source)
    found = []
    for store in group.stores:
        output = group.outputs[store.output]
        for source in sources.get((store.line, output.type.dtype.itemsize), ()):
            if group.inputs[source].type.size == output.type.size and last[source] <= store.statement:
                found.append((output, group.inputs[source]))
    return found


def empty_result(name: str, dtype: DType) -> Any:
    """What a reduction of no elements gives."""
    if name in ("reduce_prod", "reduce_and"):
        return np.ones((), dtype)[()]
    return np.zeros((), dtype)[()]
