"""The loop layer: a list of operations as groups that each run in one pass over one domain.

A *group* computes values at every point of its *domain*, a static shape, and keeps some of them: as arrays (stores) or
folded over axes (reductions). It reads arrays by *lines*: an offset and a stride per axis of the domain, in elements,
into which broadcasts, transposes, slices, reversals and reshapes are folded. Arrays that are pieces of others are read
within bounds. `Group.text` prints it.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, DType
from srcgrad.backends.llvm.indices import Bound, Bounds, Line
from srcgrad.ir.core import Operation, Value
from srcgrad.ir.text import attr_text
from srcgrad.ir.types import dtype_name

_MOVED: Final = 4
"""The additions that take as long as to read or write a number."""
_ROOTS: Final = frozenset({"inverse_root", "arcsinh_slope"})
_DIVIDING: Final = 16
"""The additions that take as long as a root and a quotient take longer than an estimate and its steps."""
_REPEATED: Final = 16
"""How often an inner loop computes again what is noticed to be computed outside of it."""
_SHORT: Final = 32
"""The trips of inner loops up to which what is computed for each start of them, number by number, counts."""
LONG_ROW: Final = 512
"""The elements from which rows are read in the order in which they lie, even if what they fold to is touched often."""
REDUCTIONS: Final = frozenset({"reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_or", "reduce_and"})


Range = tuple[int, int]
"""The indices from one number up to another."""


class Load(NamedTuple):
    """An element of an input; zero where it is not within the bounds."""

    source: int
    line: Line
    dtype: DType
    bounds: Bounds = ()


class Inside(NamedTuple):
    """Whether a point is within bounds."""

    bounds: Bounds

    @property
    def dtype(self) -> DType:
        return BOOL


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


Statement = Load | Inside | Constant | Iota | Compute


def lines_of(item: Statement) -> Sequence[Line]:
    """The lines that a statement has itself."""
    if isinstance(item, Load):
        return (item.line, *[bound.line for bound in item.bounds]) if item.bounds else (item.line,)
    if isinstance(item, Inside):
        return [bound.line for bound in item.bounds]
    return (item.line,) if isinstance(item, Iota) else ()


def with_lines(item: Statement, change: Callable[[Line], Line]) -> Statement:
    """A statement with other lines."""
    if isinstance(item, Load | Inside) and item.bounds:
        item = item._replace(bounds=tuple([bound._replace(line=change(bound.line)) for bound in item.bounds]))
    return item._replace(line=change(item.line)) if isinstance(item, Load | Iota) else item


def varies_along(line: Line) -> Iterable[int]:
    return [axis for axis, stride in enumerate(line.strides) if stride]


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


class Measure(NamedTuple):
    """What is counted of so many statements of a group: those that compute, their cost, and the dtypes."""

    statements: int
    computed: int
    cost: int
    dtypes: frozenset[DType]


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
    separate: bool = False
    """Whether the product that a sum holds is rounded before it is added."""
    added: bool = False
    """Whether what is folded is added to what the outputs have."""
    updates: dict[Value, Value] = field(default_factory=dict)
    """Outputs of which a part is written, each with the array that it is elsewhere: it is there before."""
    boxes: tuple[tuple[Range, ...], ...] = ()
    """Parts of the domain that are left out: all boxes that have one of these ranges of each axis."""
    measured: Measure | None = None
    crowds: tuple[int, int, int] = (0, 0, 0)
    """What `crowded` has found, of so many statements and registers."""
    deep: list[int] = field(default_factory=list)
    """What `depths` has found: to be read, not changed."""

    def lines(self) -> list[Line]:
        found = [line for item in self.statements for line in lines_of(item)]
        return [*found, *[store.line for store in self.stores], *[fold.line for fold in self.folds]]

    def bounds(self) -> Bounds:
        """All bounds within which is read, each once."""
        found: dict[Bound, None] = {}
        for item in self.statements:
            if isinstance(item, (Load, Inside)):  # a union would be made anew for each
                found.update(dict.fromkeys(item.bounds))
        return tuple(found)

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
            else:
                depth = max([axis + 1 for line in lines_of(item) for axis in varies_along(line)], default=0)
            found.append(depth)
        self.deep = found
        return found

    def axes(self) -> list[frozenset[int]]:
        """Per statement, the axes that it varies along."""
        found: list[frozenset[int]] = []
        for item in self.statements:
            if isinstance(item, Compute):
                found.append(frozenset().union(*[found[k] for k in item.operands]))
            else:
                found.append(frozenset([axis for line in lines_of(item) for axis in varies_along(line)]))
        return found

    def is_extreme(self, fold: Fold) -> bool:
        """Whether a fold is a minimum or a maximum of floats, which is nan where one of them is."""
        return fold.name in ("reduce_max", "reduce_min") and self.statements[fold.statement].dtype.kind == "f"

    def measure(self) -> Measure:
        """What is counted of the statements, counted once for as many of them."""
        found = self.measured
        if found is None or found.statements != len(self.statements):
            cost = computed = 0
            last, dtypes = None, set[DType]()
            for item in self.statements:
                if isinstance(item, Compute):
                    cost += scalars.cost(item.operation, item.function)
                    computed += 1
                dtype = item.dtype
                if dtype is not last:
                    dtypes.add(dtype)
                    last = dtype
            found = self.measured = Measure(len(self.statements), computed, cost, frozenset(dtypes))
        return found

    def cost(self) -> int:
        """About how many additions one point costs."""
        return self.measure().cost

    def work(self) -> int:
        """About how many additions all of it costs."""
        return math.prod(self.domain) * (self.cost() + self.measure().computed)

    def divides(self) -> bool:
        """Whether other work takes about as long as the divider takes for reciprocals of roots, or longer."""
        inner, roots, others = len(self.domain), 0, 0
        for item, depth in zip(self.statements, self.depths(), strict=True):
            if isinstance(item, Compute) and depth == inner:
                if item.function in _ROOTS:
                    roots += 1
                elif not scalars.is_quotient(item.operation, item.function):
                    others += scalars.cost(item.operation, item.function)
        return roots > 0 and others >= _DIVIDING * roots

    def slopes(self) -> bool:
        """Whether a tanh and its derivative are computed at the same points."""
        found: dict[str, set[tuple[int, ...]]] = {"tanh": set(), "sech_squared": set()}
        for item in self.statements:
            if isinstance(item, Compute):
                found.get(item.function or item.operation.op.name, set()).add(tuple(item.operands))
        return not found["tanh"].isdisjoint(found["sech_squared"])

    def effort(self, registers: int) -> int:
        """About how many additions all of it takes: what is read or written takes as long as four of them."""
        inner = len(self.domain)
        loads = [
            isinstance(item, Load) and depth == inner
            for item, depth in zip(self.statements, self.depths(), strict=True)
        ]
        moved = sum(loads) + len(self.stores) + len(self.folds) + self.crowded(registers)
        return math.prod(self.domain) * (self.cost() + _MOVED * moved)

    def crowded(self, registers: int) -> int:
        """At how many statements more numbers than so many wait for what reads them."""
        if self.crowds[:2] == (len(self.statements), registers):
            return self.crowds[2]
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
        found = sum([waiting > registers for waiting in itertools.accumulate(changes)])
        self.crowds = len(self.statements), registers, found
        return found

    def with_outputs(self, used: Mapping[Value, int]) -> Group:
        """The group without the outputs that are not used, and without what only these need."""
        stores = [store for store in self.stores if used[self.outputs[store.output]]]
        folds = [fold for fold in self.folds if used[self.outputs[fold.output]]]
        found = replace(self, stores=stores, folds=folds).needed()
        items = found.statements
        outputs = sorted({*[store.output for store in stores], *[fold.output for fold in folds]})
        found.outputs = [self.outputs[k] for k in outputs]
        found.updates = {value: whole for value, whole in self.updates.items() if value in found.outputs}
        read = {item.source for item in items if isinstance(item, Load)}
        written = set(found.updates.values())
        inputs = [k for k, value in enumerate(self.inputs) if k in read or value in written]
        found.inputs = [self.inputs[k] for k in inputs]
        found.statements = [
            item._replace(source=inputs.index(item.source)) if isinstance(item, Load) else item for item in items
        ]
        found.stores = [store._replace(output=outputs.index(store.output)) for store in found.stores]
        found.folds = [fold._replace(output=outputs.index(fold.output)) for fold in found.folds]
        return found

    def needed(self) -> Group:
        """The group without statements that no store and no fold needs."""
        live = self.needed_by([*[store.statement for store in self.stores], *[fold.statement for fold in self.folds]])
        place = {number: k for k, number in enumerate(live)}
        statements = [self.statements[number] for number in live]
        return replace(
            self,
            statements=[
                item._replace(operands=tuple([place[k] for k in item.operands])) if isinstance(item, Compute) else item
                for item in statements
            ],
            stores=[store._replace(statement=place[store.statement]) for store in self.stores],
            folds=[fold._replace(statement=place[fold.statement]) for fold in self.folds],
            deep=[self.deep[number] for number in live] if self.deep else [],
            measured=None,
            crowds=(0, 0, 0),
        )

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
        parts = [f"  {kept[value]} is {names.get(whole, whole)} elsewhere" for value, whole in self.updates.items()]
        return "\n".join([signature(self.name, self.inputs, self.outputs), *parts, *self.loops(names, kept)])

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
            place = f"{names[self.inputs[item.source]]}[{item.line.text()}]"
            return f"{place} where {bounds_text(item.bounds)}" if item.bounds else place
        if isinstance(item, Inside):
            return bounds_text(item.bounds)
        if isinstance(item, Compute):
            attrs = ", ".join(f"{name}={attr_text(value)}" for name, value in item.operation.attrs.items())
            given = ", ".join(map(self._name, item.operands))
            return f"{item.function or item.operation.op.name} {given}{f' {{{attrs}}}' if attrs else ''}"
        assert isinstance(item, Iota)
        return item.line.text()


def bounds_text(bounds: Bounds) -> str:
    return " and ".join([f"0 <= {bound.line.text()} < {bound.size}" for bound in bounds])


def signature(name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> str:
    given = ", ".join(f"in{k}: {value.type}" for k, value in enumerate(inputs))
    made = ", ".join(f"out{k}: {value.type}" for k, value in enumerate(outputs))
    return f"{name}({given}) -> ({made})"


# --- the order of the loops ------------------------------------------------------------------------------------------


def arranged(group: Group, outer: int = 0) -> Group:
    """The group with axes of size 1 left out, in the order of its loops, and with axes merged that can be one loop.

    The first ``outer`` axes stay where they are.
    """
    stays = frozenset(range(outer)).union(*[fold.axes for fold in group.folds if group.added])
    group = permuted(group, [axis for axis, size in enumerate(group.domain) if size != 1 or axis in stays])
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
    stored = [store.line for store in group.stores if group.outputs[store.output].type.dtype.kind != "c"]
    stored += [halved(store.line) for store in group.stores if group.outputs[store.output].type.dtype.kind == "c"]
    read = [item.line for item in group.statements if isinstance(item, Iota)]
    for item in group.statements:
        if isinstance(item, Load):
            read.append(halved(item.line) if is_of_pairs(group.inputs[item.source]) else item.line)
    lines = [*read, *stored, *stored, *[fold.line for fold in group.folds]]
    outside = computed_outside(group)
    for axis, size in enumerate(group.domain):
        if axis < outer:
            continue
        score = -outside.get(axis, 0)
        for line in lines:
            stride = line.strides[axis]
            score += 2 if stride in (1, -1) else 1 if stride == 0 else -2
        score -= 4 * (size < 4)
        if best is None or score >= best:
            best, chosen = score, axis
    return chosen


def computed_outside(group: Group) -> dict[int, int]:
    """By axis what is computed outside of inner loops and would not be, were the axis the last one, in arrays read.

    A slope for each column of a matrix that the Jacobian has many times over is computed for all of them but once.
    """
    found: dict[int, int] = {}
    inner, depths = len(group.domain), group.depths()
    trips = list(itertools.accumulate(group.domain, operator.mul, initial=1))
    dear = {
        number: scalars.cost(item.operation, item.function)
        for number, item in enumerate(group.statements)
        if isinstance(item, Compute) and trips[inner] >= _REPEATED * trips[depths[number]]
    }
    dear = {number: cost for number, cost in dear.items() if cost >= _MOVED}
    if not dear:
        return found
    axes = group.axes()
    for number, cost in dear.items():
        for axis in axes[number]:
            found[axis] = found.get(axis, 0) + cost // _MOVED
    return found


def halved(line: Line) -> Line:
    """Where a pair is, in pairs, of the line of one of its parts."""
    return Line(line.offset // 2, tuple([stride // 2 for stride in line.strides]))


def is_of_pairs(value: Value) -> bool:
    """Whether an array is complex numbers, as pairs of real ones."""
    return value.producer is not None and value.producer.op.name == "parts"


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
    statements = [with_lines(item, line) for item in group.statements]
    stores = [store._replace(line=line(store.line)) for store in group.stores]
    folds = [fold._replace(line=line(fold.line), axes=axes(fold.axes)) for fold in group.folds]
    found = Group(group.name, domain, group.inputs, group.outputs, statements, stores, folds)
    found.outlined, found.separate, found.added, found.boxes = group.outlined, group.separate, group.added, group.boxes
    found.updates = group.updates
    return found


def before_short_loops(group: Group, depths: Sequence[int], trips: Sequence[int]) -> Set[int]:
    """The statements that short inner loops read from outside: single numbers there, in vectors where they are kept."""
    if len(trips) < 3 or trips[-1] > _SHORT * trips[-2]:
        return frozenset()
    found: set[int] = set()
    for number, item in enumerate(group.statements):
        if isinstance(item, Compute):
            for operand in item.operands:
                depth = depths[operand]
                if 0 < depth < depths[number] and trips[-1] <= _SHORT * trips[depth]:
                    found.add(operand)
    return found


def attrs_of(group: Group | Any) -> dict[str, Any]:
    """What the operation of a group, or of several, says of it: its name, and the operands that it may write over."""
    found: dict[str, Any] = {"kernel": group.name}
    if isinstance(group, Group) and group.updates:
        written = set(group.updates.values())
        found["updates"] = tuple([k for k, value in enumerate(group.inputs) if value in written])
    return found


def overwritable(group: Group) -> dict[Value, list[Value]]:
    """Outputs, each with inputs that it may be written over: elements are read where they are written, and before.

    An output of which a part is written goes over the array that it is elsewhere, whose elements are read so
    (``placing.py``).
    """
    lines: dict[int, Line | None] = {}
    last: dict[int, int] = {}
    for number, item in enumerate(group.statements):
        if isinstance(item, Load):
            same = lines.setdefault(item.source, item.line) == item.line
            lines[item.source], last[item.source] = (item.line if same else None), number
    whole = set(group.updates.values())
    sources: dict[tuple[Line, int, int], list[tuple[int, Value]]] = {}
    for source, line in lines.items():
        value = group.inputs[source]
        if line is not None and value not in whole:
            key = line, value.type.dtype.itemsize, value.type.size
            sources.setdefault(key, []).append((last[source], value))
    given = set(group.inputs)
    found = {output: [value] for output, value in group.updates.items() if value in given}
    for store in group.stores:
        output = group.outputs[store.output]
        alike = sources.get((store.line, output.type.dtype.itemsize, output.type.size))
        if alike is not None and output not in group.updates:
            found[output] = [value for place, value in alike if place <= store.statement]
    return found


def empty_result(name: str, dtype: DType) -> Any:
    """What a reduction of no elements gives."""
    if name in ("reduce_prod", "reduce_and"):
        return np.ones((), dtype)[()]
    return np.zeros((), dtype)[()]
