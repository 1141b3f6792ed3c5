"""Which operations run together: from a function to one whose loops are groups, each one operation ``fused``.

Values are *kept* (arrays in memory) or computed inside the groups that read them, again in each. What is kept is what
something other than a group reads, what is a reduction, and what costs more to compute again than to load. Groups are
formed by time: a value's time is one more than that of the arrays that it reads, or the time of a value that is
computed in the same group and read in place. Sinks of one time and one domain share a group; so the order by time is a
valid order, and no cycle of groups can arise.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.classified import Classified
from srcgrad.backends.llvm.complexes import PARTS
from srcgrad.backends.llvm.loops import REDUCTIONS, Compute, Group, Load, arranged, attrs_of, before_short_loops
from srcgrad.backends.llvm.natives import ALIAS, Natives
from srcgrad.backends.llvm.nests import Nest, is_straight, nested
from srcgrad.backends.llvm.ordering import reads_first
from srcgrad.backends.llvm.placing import Placing
from srcgrad.backends.llvm.rounding import rounded_of
from srcgrad.backends.llvm.shapes import moved, shape_of
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.llvm.writing import GroupWriter, folded, is_fold
from srcgrad.ir.core import Attrs, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Op
from srcgrad.ir.source import Span
from srcgrad.ir.types import ArrayType

RECOMPUTED: Final = 12
"""The cost (in additions) up to which a value is computed again rather than kept."""
_GENEROUS: Final = 100
"""The same, where what is computed at several places is much the same at all of them, if all of it takes less so."""
_LESS: Final = 0.95
_TEXT: Final = 1.25
"""How many times as long it may be."""
_TRIED: Final = 100
"""The statements up to which it is written both ways."""
_ROUNDS: Final = 12
_ONE_BY_ONE: Final = 4
"""The cost from which that is computed in loops of its own, where it is in vectors."""
_AGAIN: Final = 16
"""How often an array of numbers is computed again by a loop around it, from which only what is cheap is."""
_MANY: Final = 1 << 10
"""The points from which that counts."""
_CHEAP: Final = 3
"""The cost of that: less than a quotient's."""
_OFTEN: Final = 4
"""How often a value may be computed again through views before all is written."""
NONE: Final[Mapping[Value, int]] = MappingProxyType({})
_FEW: Final = 16
"""The number of groups up to which all is written to see what several of them compute."""
_LARGEST: Final = 1 << 20
INLINED: Final = 24
"""The number of calls of functions up to which each is written out where it stands."""
LONG_PROGRAM: Final = 1024
"""The statements from which straight kernels are modules of their own, ready before all is written."""
MANY_POINTS: Final = 1 << 14
"""The points from which a product and its sum are one instruction in long straight bodies too.

At LLVM's level 0 it takes 24 µs to compile, ten times as long as both apart, and saves 0.05 ns at each point.
"""
TURNED_FROM: Final = 1 << 12
"""The points of a group from which a transpose is an array for it."""
TURNED_BYTES: Final = 1 << 22
"""The bytes of all arrays of a group from which tiles come too late to it."""
TURNED_COST: Final = 12
"""The cost of a point from which tiles of arrays in memory are read too late: a processor looks ahead over few."""
Key = tuple[int, tuple[int, ...], int]


Plan = tuple[dict[Key, GroupWriter], dict[Operation, int]]
"""Groups, and when the operations that are left run."""


class Fused(Op, abstract=True):
    """A group of operations that one kernel runs: called by its name, as the generated program does."""

    name: ClassVar[str] = "fused"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise NotImplementedError("the results of a group have the types that its operation is made with")

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{attrs['kernel']}({', '.join(operands)})"


FUSED: Final = Fused()


@dataclass
class Partition:
    """A function of which some operations are ``fused``: groups, or sections, each with its name."""

    function: Function
    groups: list[Group | Nest] = field(default_factory=list)
    natives: Natives = field(default_factory=Natives)
    originals: dict[Operation, Operation] = field(default_factory=dict)
    """What operations were that have groups or sections in their regions."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    prefix: str = "kernel"
    """What kernels are called, before a number: no name of the user's begins so."""

    def length(self) -> int:
        """The statements of all groups."""
        return sum([len(group.statements) for group in self.groups])


def length(plan: Plan) -> int:
    """The statements of all groups."""
    return sum([len(writer.group.statements) for writer in plan[0].values()])


def efforts(plan: Plan) -> int:
    """About how many additions all groups take."""
    return sum([writer.group.effort(TARGET.registers) for writer in plan[0].values()])


def free_prefix(function: Function) -> str:
    names = {value.name for value in function.params if value.name}
    for operation in function.walk():
        for value in operation.results:
            if value.name:
                names.add(value.name)
        for region in operation.regions:
            names.update(param.name for param in region.params if param.name)
    prefix = "kernel"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def partitioned(function: Function, natives: Natives | None = None) -> Partition:
    """The function with its elementwise operations and reductions in groups, in its regions too."""
    found = Partition(function, prefix=free_prefix(function), natives=natives or Natives())
    found.natives.prefix = found.prefix.replace("kernel", "step")
    operations, results = found.natives.flatten(function)
    operations = _Planner(operations, results, found, True, function.params).operations()
    found.function = Function(function.name, function.params, operations, results)
    outline(found.groups)
    if found.length() >= LONG_PROGRAM:
        separate(found.groups)
    return found


def outline(groups: Sequence[Group | Nest]) -> None:
    """Let a program with many calls of functions of `vector_math` call them, rather than hold a copy of each."""
    computed = (item for group in groups for item in group.statements if isinstance(item, Compute))
    calls = (item for item in computed if scalars.is_function(item.operation, item.function))
    if next(itertools.islice(calls, INLINED, None), None) is not None:
        for group in groups:
            group.outlined = True


def separate(groups: Sequence[Group | Nest]) -> None:
    """Let long straight bodies over few points round products and sums one by one."""
    for group in groups:
        phases = group.phases if isinstance(group, Nest) else [group]
        if is_straight(group, TARGET) and max([math.prod(phase.domain) for phase in phases]) < MANY_POINTS:
            for phase in phases:
                phase.separate = True


def partitioned_region(region: Region, partition: Partition, native: bool) -> Region:
    operations, results = partition.natives.flatten(region)
    planned = _Planner(operations, results, partition, native).operations()
    return Region(region.params, reads_first(planned) if native else planned, results)


def replaced(operation: Operation, regions: Sequence[Region]) -> Operation:
    """The operation with other regions; its results are the same values."""
    types = [value.type for value in operation.results]
    found = Operation(operation.op, operation.operands, operation.attrs, tuple(regions), types, operation.span)
    found.results = operation.results
    return found


def operation_of(group: Group, span: Span | None) -> Operation:
    """The operation of a group."""
    types = [value.type for value in group.outputs]
    operation = Operation(FUSED, tuple(group.inputs), attrs_of(group), (), types, span)
    operation.results = tuple(group.outputs)
    return operation


def is_transpose(value: Value) -> bool:
    return value.producer is not None and value.producer.op.name == "transpose"


def operands_of(value: Value) -> Sequence[Value]:
    return () if value.producer is None else value.producer.operands


class _Planner(Classified):
    """The state of partitioning one straight list of operations."""

    def __init__(
        self, operations: Sequence[Operation], results: Sequence[Value], partition: Partition, native: bool,
        given: Collection[Value] = (),
    ) -> None:  # fmt: skip
        super().__init__(operations, results, partition.natives, native, given)
        self.places = {operation: place for place, operation in enumerate(operations)}
        self.rounded = rounded_of(operations)
        self.partition = partition
        self.apart: set[Value] = set()
        """Views that other groups read as arrays."""
        self.groups: list[Group | Nest] = []

    # --- when it is computed -----------------------------------------------------------------------
    def times(self) -> tuple[dict[Value, int], dict[Operation, int]]:
        """Per value the time at which it is computed, and per operation that is left the time at which it runs."""
        inside: dict[Value, int] = {}
        """The time of a value, where it is read in place by what is in the same group."""
        outside: dict[Value, int] = {}
        """The time of a value that is computed in another group than what it reads."""
        runs: dict[Operation, int] = {}
        left, effects = set(self.left), 0
        for operation in self.all:
            if operation.results and operation.results[0] in self.inlined:
                self.time_computed(operation, inside, outside)
            elif operation.results and operation.results[0] in self.shown:
                bases = self.views[operation.results[0]].bases
                inside[operation.results[0]] = max([inside.get(base, 0) for base in bases]) + 1
            elif operation in left:
                alias = self.aliases.get(operation)
                read = operation.operands if alias is None else alias[:1]
                base = max([inside.get(value, 0) for value in read], default=0)
                view = operation.op is PARTS or (bool(operation.results) and operation.results[0] in self.views)
                time = base if view else base + 1
                if operation.op.effect or operation.regions:
                    time = effects = max(time, effects)
                runs[operation] = time
                for value in operation.results:
                    inside[value] = outside[value] = time
        return inside, runs

    def time_computed(self, operation: Operation, inside: dict[Value, int], outside: dict[Value, int]) -> None:
        result = operation.results[0]
        shape = operation.operands[0].type.shape if operation.op.name in REDUCTIONS else result.type.shape
        time_in = time_out = 1
        for operand in operation.operands:
            bases: tuple[Value, ...] = (operand,)
            in_place = operand.type.shape == shape
            if operand in self.apart:
                in_place = False
            elif operand in self.views:
                bases, in_place = self.views[operand].bases, False
            for base in bases:
                if base not in self.inlined:
                    if isinstance(base, Literal):
                        continue
                    here = there = inside.get(base, 0) + 1
                elif base in self.kept:
                    is_array = is_fold(base) or not in_place or self.parts[base] != self.parts[result]
                    here, there = inside[base] + is_array, inside[base] + 1
                else:
                    there = outside[base]
                    here = inside[base] if in_place else there
                if here > time_in:
                    time_in = here
                if there > time_out:
                    time_out = there
        inside[result], outside[result] = time_in, time_out

    # --- groups -------------------------------------------------------------------------------------
    def sinks(self, times: dict[Value, int]) -> dict[Key, list[Value]]:
        """The kept values that groups compute, by time, domain and part, in the order of the program."""
        found: dict[Key, list[Value]] = {}
        for operation in self.all:
            if not operation.results or operation.results[0] not in self.kept:
                continue
            value = operation.results[0]
            if value in self.inlined:
                shown = folded(value) if is_fold(value) else value
                time = times[value]
            elif value in self.shown:
                shown, time = value, times[value]
            else:
                continue
            part = max([self.parts.get(base, 0) for base in self.bases(value)])
            found.setdefault((time, shown.type.static_shape, part), []).append(value)
        return found

    def write(self, sinks: dict[Key, list[Value]]) -> dict[Key, GroupWriter]:
        others = {value: view for value, view in self.views.items() if value not in self.apart} if self.apart else {}
        found = {}
        for key, values in sinks.items():
            own = self.apart.intersection(values)
            views = others | {value: self.views[value] for value in own} if self.apart else self.views
            found[key] = GroupWriter(key[1], values, views, self.kept, self.places, self.rounded)
        return found

    def operations(self) -> list[Operation]:
        """The operations of the program: those that are left, and one per group."""
        self.kept |= self.dear(dict.fromkeys(self.often_read(), RECOMPUTED))
        always = set(self.kept)
        written, runs = self.chosen()
        self.apart = self.dearly_turned(written.values())
        if self.apart:
            self.shown |= self.apart
            self.kept = always | self.apart
            written, runs = self.chosen()
        order: list[tuple[int, int, int, Operation]] = []
        for position, (key, writer) in enumerate(written.items()):
            order.append((key[0], 0, position, self.fused(writer)))
        for position, operation in enumerate(self.left):
            order.append((runs[operation], 1, position, self.with_groups(operation)))
        ordered = [item[-1] for item in sorted(order, key=lambda item: item[:3])]
        groups = {group.name: group for group in self.groups if isinstance(group, Group)}
        ordered = Placing(ordered, self.results, groups, operation_of).operations()
        found = nested(ordered, self.results, self.groups)
        self.partition.groups += self.groups
        return found

    def dearly_turned(self, writers: Iterable[GroupWriter]) -> set[Value]:
        """Transposes of which so much is computed that tiles are read too late, or not at all: exp(x.T) of a large x.

        Each is an array first, which is written in tiles.
        """
        found: set[Value] = set()
        if not self.native or not any(map(is_transpose, self.views)):
            return found
        for writer in writers:
            if writer.group.cost() < TURNED_COST or math.prod(writer.group.domain) < TURNED_FROM:
                continue
            group = arranged(writer.group)
            shape = shape_of(group, TARGET)
            if not shape.turned or (shape.rows > 1 and moved(group) < TURNED_BYTES):
                continue
            items = [group.statements[number] for number in shape.turned]
            sources = {group.inputs[item.source] for item in items if isinstance(item, Load)}
            read = {operand for value in writer.computed for operand in operands_of(value)}
            found |= {x for x in read if x in self.views and is_transpose(x) and not sources.isdisjoint(self.bases(x))}
        return found

    def chosen(self) -> Plan:
        """The groups, and when the operations that are left run: the lesser of two efforts.

        Neighbouring points of a stencil share most of what they are computed from: four differences of five Laplacians
        at each point are less than two arrays of differences, written and read again.
        """
        always = set(self.kept)
        found, kept = self.settled(RECOMPUTED), self.kept
        shown = {base for view in self.views.values() for base in view.bases}
        if shown.isdisjoint(kept - always) or length(found) > _TRIED:
            return found
        self.kept = always
        other = self.settled(_GENEROUS)
        if length(other) <= _TEXT * length(found) and efforts(other) < _LESS * efforts(found):
            return other
        self.kept = kept
        return found

    def settled(self, limit: int) -> Plan:
        """Groups in which no value is computed more than once that costs more than a limit."""
        for number in range(_ROUNDS + 1):
            sinks, runs = self.ends(limit)
            written = self.write(sinks)
            more = self.too_dear(written.values(), 0 if number == _ROUNDS else limit)
            if not more:
                break
            self.kept |= more
        return written, runs

    def ends(self, limit: int) -> tuple[dict[Key, list[Value]], dict[Operation, int]]:
        """What each group is to keep, and when the operations that are left run."""
        for number in range(_ROUNDS + 1):
            times, runs = self.times()
            sinks = self.sinks(times)
            more = self.scattered(sinks, limit) if len(sinks) > _FEW and number < _ROUNDS else set[Value]()
            if not more:
                break
            self.kept |= more
        return sinks, runs

    def often_read(self) -> set[Value]:
        """Values that are read through many views of views: written at each of these, they would be most of all text.

        A value is computed once for all that read it in place, and for each view; so the numbers multiply.
        """
        costs = self.costs() if self.views else {}
        times: dict[Value, dict[Value | None, int]] = {}
        """By value and view, or None in place, how often it is computed for that."""
        found: set[Value] = set()
        for operation, value, _ in reversed(self.computed if costs else ()):
            count = sum(times.pop(value, {}).values()) or 1
            if count > _OFTEN and costs[value] > RECOMPUTED and value not in self.kept:
                found.add(value)
            if count > _OFTEN or value in self.kept:
                count = 1
            for operand in operation.operands:
                way = operand if operand in self.views else None
                for base in self.bases(operand):
                    if base in self.inlined:
                        ways = times.setdefault(base, {})
                        ways[way] = max(ways.get(way, 0), count)
        return found

    def scattered(self, sinks: dict[Key, list[Value]], limit: int) -> set[Value]:
        """Values that are not kept and should be, found without writing the groups: several of these compute them.

        What is computed more than once within one group is not found. Where there are many groups, what all of them
        compute again can be far more than the program.
        """
        where: dict[Value, Key | None] = {}
        """The group that computes a value, or None for several."""
        for key, values in sinks.items():
            for value in values:
                where[value] = key
                for base in self.bases(value):
                    if base not in self.kept:
                        where[base] = key if where.get(base, key) == key else None
        found: set[Value] = set()
        for _, value, bases in reversed(self.computed):
            if value not in where:
                continue
            place = where[value]
            if place is None and value not in self.kept:
                found.add(value)
            for base in bases:
                if base in self.inlined and base not in self.kept:
                    where[base] = place if where.get(base, place) == place else None
        return self.dear(dict.fromkeys(found, limit))

    def too_dear(self, writers: Iterable[GroupWriter], limit: int) -> set[Value]:
        """Values that are not kept and should be: computed in several places, at more than the cost of a load."""
        places: dict[Value, int] = {}
        repeated, again = set[Value](), set[Value]()
        single: set[Value] = set()
        for writer in writers:
            depths = writer.group.depths()
            trips = list(itertools.accumulate(writer.group.domain, operator.mul, initial=1))
            alone = before_short_loops(writer.group, depths, trips)
            type, size = None, 0
            for value, statements in writer.computed.items():
                places[value] = places.get(value, 0) + len(statements)
                if value.type is not type:
                    type, size = value.type, value.type.size
                for number in statements:
                    points = trips[depths[number]]
                    if points > size:
                        (again if size and points >= max(_AGAIN * size, _MANY) else repeated).add(value)
                    elif number in alone:
                        single.add(value)
        several = {value for value, count in places.items() if count > 1} | repeated | again
        limits = dict.fromkeys(single - self.kept, _ONE_BY_ONE)
        limits |= dict.fromkeys(self.outermost(several - self.kept, places), limit)
        limits |= dict.fromkeys(self.outermost(again - self.kept, dict.fromkeys(again, 1)), min(limit, _CHEAP))
        return self.dear(limits)

    def outermost(self, values: Collection[Value], places: Mapping[Value, int]) -> set[Value]:
        """Those that are computed in more places than what reads them: others are where their readers are.

        Once these are arrays, what they are computed from may be needed in one place.
        """
        most: dict[Value, int] = {}
        if not values:
            return set()
        for _, value, bases in self.computed:
            if value in values:
                for base in bases:
                    most[base] = max(most.get(base, 0), places[value])
        return {value for value in values if places[value] > most.get(value, 0)}

    def dear(self, limits: Mapping[Value, int]) -> set[Value]:
        """Which of these values cost more than that to compute from arrays, of which those found before are some."""
        found: set[Value] = set()
        if limits:
            self.costs(limits, found)
        return found

    def costs(self, limits: Mapping[Value, int] = NONE, found: set[Value] | None = None) -> dict[Value, int]:
        """What it costs to compute values from arrays; ``found``: those of more than the limit, which become such."""
        dear: set[Value] = set() if found is None else found
        costs: dict[Value, int] = {}
        kept, inlined = self.kept, self.inlined
        for operation, value, bases in self.computed:
            total = scalars.cost(operation)
            for base in bases:
                total += 1 if base in kept or base in dear or base not in inlined else costs[base]
            costs[value] = min(total, _LARGEST)
            if value in limits and total > limits[value]:
                dear.add(value)
        return costs

    # --- the program --------------------------------------------------------------------------------
    def fused(self, writer: GroupWriter) -> Operation:
        group = writer.group
        group.name = f"{self.partition.prefix}_{next(self.partition.numbers)}"
        span = next((value.producer.span for value in group.outputs if value.producer is not None), None)
        self.groups.append(group)
        return operation_of(group, span)

    def with_groups(self, operation: Operation) -> Operation:
        """The operation with groups in its regions; views that are aliases as such."""
        if operation in self.aliases or operation.op is PARTS:
            base, offset = self.aliases.get(operation, (operation.operands[0], 0))
            alias = Operation(ALIAS, (base,), {"offset": offset}, (), [operation.results[0].type], operation.span)
            alias.results = operation.results
            return alias
        if not operation.regions or getattr(operation.op, "transparent", False):
            return operation
        native = self.is_native(operation)
        found = replaced(
            operation, [partitioned_region(region, self.partition, native) for region in operation.regions]
        )
        self.partition.originals[found] = operation
        return found
