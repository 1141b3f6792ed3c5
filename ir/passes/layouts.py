"""Arrays that a loop reads and writes by columns are kept by rows while it runs.

A trip that handles ``y[:, k]`` meets one element of each row, each in a cache line of its own, and no two side by side
in a register. Where all that a loop does to an array is of that kind, it is given the array with that axis first, and
what it leaves is turned back: two passes over the array for one in each trip. Results are the same bit by bit.

The arrays that are to have one layout are a *family*: a carry or a constant of the loop, what its trips make of it,
what loops and branches inside are given of it. All of a family is read and written at one axis, by integers of rank 0,
or element by element; else it stays as it is, and loops inside are looked at.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from srcgrad.ir.core import Attrs, Builder, Function, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.dead_control import given
from srcgrad.ir.passes.loops import has_control
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import ArrayType

SMALLEST: Final = 64
"""The elements of an array from which that pays."""
LARGEST: Final = 1 << 27
"""The elements up to which there may be a second array of it."""
SHARE: Final = 0.5
"""Of the columns, how many the trips have to handle."""
THIN: Final = 0.25
"""Of an array, how much may be read or written by slices beside the columns."""
MOST_PARTS: Final = 8
"""Of what is written to a constant before a loop, what is written again in the other layout."""
INDEXED: Final = ("gather", "scatter_set", "scatter_add")
READS: Final = ("gather", "slice")
WRITES: Final = ("scatter_set", "scatter_add", "slice_set")
Axes = tuple[int, int]
"""Where the indices of columns begin, and how many there are."""


class Unlike(Exception):
    """The arrays of a family are not all handled by columns."""


@dataclass
class Family:
    """The arrays of a loop that are to have the axes of columns first."""

    loop: Operation
    members: set[Value] = field(default_factory=set)
    axes: Axes | None = None
    trips: float = 0.0
    """How many trips handle a column, at least."""

    @property
    def perm(self) -> tuple[int, ...]:
        assert self.axes is not None
        first, count = self.axes
        rank = next(iter(self.members)).type.rank
        columns = range(first, first + count)
        return (*columns, *(axis for axis in range(rank) if axis not in columns))


def by_rows(function: Function) -> Function:
    """The function whose loops handle rows where they handled columns; itself if none does.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9,20]) -> (f64[9,20]) {
    ...   %y: f64[9,20] = for %x {trips=19, carries=1, consts=0, reverse=false}
    ...     body (%k: i64[], %y: f64[9,20]) {
    ...       %0: f64[9] = gather %y, %k {axis=1}
    ...       %1: i64[] = add %k, 1
    ...       %2: f64[9,20] = scatter_add %y, %0, %1 {axis=1}
    ...       yield %2
    ...     }
    ...   return %y
    ... }''')
    >>> print(by_rows(function))
    func @f(%x: f64[9,20]) -> (f64[9,20]) {
      %0: f64[20,9] = transpose %x {perm=[1,0]}
      %1: f64[20,9] = for %0 {trips=19, carries=1, consts=0, reverse=false}
        body (%k: i64[], %y: f64[20,9]) {
          %0: f64[9] = gather %y, %k {axis=0}
          %1: i64[] = add %k, 1
          %2: f64[20,9] = scatter_add %y, %0, %1 {axis=0}
          yield %2
        }
      %y: f64[9,20] = transpose %1 {perm=[1,0]}
      return %y
    }
    """
    if not has_control(function):
        return function
    search = Search(function)
    families = list(search.families())
    return dce(Turned(families, search).region(function)) if families else function


class Search:
    """Finds the families of a function."""

    def __init__(self, function: Region) -> None:
        self.function = function
        self.uses: dict[Value, list[tuple[Operation, int]]] = {}
        self.yields: dict[Value, list[tuple[Operation, int]]] = {}
        """The operations in whose regions a value is a result, and which one."""
        self.home: dict[Value, tuple[Operation, int]] = {}
        """Of a parameter, the operation, and the position among the parameters."""
        self.outer: dict[Operation, Operation | None] = {}
        """The operation in whose region another one stands."""
        self.visit(function, None)

    def visit(self, region: Region, owner: Operation | None) -> None:
        for operation in region.operations:
            self.outer[operation] = owner
            for position, value in enumerate(operation.operands):
                if not isinstance(value, Literal):
                    self.uses.setdefault(value, []).append((operation, position))
            for inner in operation.regions:
                for position, param in enumerate(inner.params):
                    self.home[param] = operation, position
                self.visit(inner, operation)
                for position, value in enumerate(inner.results):
                    self.yields.setdefault(value, []).append((operation, position))

    def families(self) -> Iterator[Family]:
        """Of the outermost loops that have them."""
        taken: set[Value] = set()
        for operation in self.function.walk():
            if operation.op.name != "for" or not operation.attrs["trips"]:
                continue
            params = operation.regions[0].params[1:]
            for position in range(operation.attrs["carries"] + operation.attrs["consts"]):
                param = params[position]
                if param in taken or not may_turn(param.type):
                    continue
                found = self.family(operation, param)
                taken.update(found.members)
                if found.axes is not None:
                    yield found

    def family(self, loop: Operation, param: Value) -> Family:
        """What has the layout of a parameter; without axes where that is not to change."""
        found = Family(loop)
        pending = [param]
        try:
            while pending:
                value = pending.pop()
                if value in found.members or isinstance(value, Literal):
                    continue
                found.members.add(value)
                pending += self.made_of(value, found)
                for operation, position in self.uses.get(value, ()):
                    pending += self.used(operation, position, found)
                for operation, position in self.yields.get(value, ()):
                    pending += handed_on(operation, position, found)
        except Unlike:
            return Family(loop, members=found.members & set(loop.regions[0].params))
        if found.axes is not None:
            first, count = found.axes
            columns = math.prod(param.type.static_shape[first : first + count])
            if found.trips < SHARE * columns:
                found.axes = None
        return found

    def made_of(self, value: Value, family: Family) -> Sequence[Value]:
        """What else is of the family for a value to be of it, by how it is made."""
        if value in self.home:
            operation, position = self.home[value]
            if operation.op.name == "cond":
                return [operation.operands[1 + position], *(region.params[position] for region in operation.regions)]
            if operation.op.name != "for":
                raise Unlike
            attrs, place = operation.attrs, position - 1
            if not 0 <= place < attrs["carries"] + attrs["consts"]:
                raise Unlike
            outside = operation is family.loop  # what it is given and gives is turned on the way
            other = [] if outside else [given(operation, place)]
            if place < attrs["carries"]:
                other += [operation.regions[0].results[place], *([] if outside else [operation.results[place]])]
            return other
        operation = value.producer  # type: ignore[assignment]
        if operation.op.name in WRITES:
            self.part(operation, family)
            return [operation.operands[0]]
        position = operation.results.index(value)
        if operation.op.name == "for" and position < operation.attrs["carries"]:
            return [operation.regions[0].params[1 + position]]
        if operation.op.name == "cond":
            return [region.results[position] for region in operation.regions]
        raise Unlike

    def used(self, operation: Operation, position: int, family: Family) -> Sequence[Value]:
        """What is of the family as an operation has a value of it for an operand."""
        name = operation.op.name
        if name == "cond" and position:
            return [region.params[position - 1] for region in operation.regions]
        if name == "for":
            place = position - (operation.attrs["trips"] is None)
            if 0 <= place < operation.attrs["carries"] + operation.attrs["consts"]:
                return [operation.regions[0].params[1 + place]]
        if position == 0 and (name in READS or name in WRITES):
            self.part(operation, family)
            return operation.results if name in WRITES else []
        raise Unlike

    def part(self, operation: Operation, family: Family) -> None:
        """See to it that what an operation reads or writes is a column, an element, or little."""
        if operation.op.name in INDEXED:
            self.indexed(operation, family)
            return
        part = operation.operands[1] if operation.op.name == "slice_set" else operation.results[0]
        if part.type.size > THIN * operation.operands[0].type.size:
            raise Unlike

    def indexed(self, operation: Operation, family: Family) -> None:
        """Note at which axes an operation reads or writes, and how often."""
        indices = indices_of(operation)
        if any(index.type.rank for index in indices):
            raise Unlike
        if len(indices) == operation.operands[0].type.rank:
            return
        axes = operation.attrs["axis"], len(indices)
        if not axes[0] or family.axes not in (None, axes):
            raise Unlike
        family.axes = axes
        trips, owner = 1.0, self.outer[operation]
        while owner is not None and owner is not family.loop:
            trips *= owner.attrs["trips"] or 1 if owner.op.name == "for" else 1
            owner = self.outer[owner]
        family.trips = max(family.trips, trips * family.loop.attrs["trips"])


def may_turn(type: ArrayType) -> bool:
    """Whether an array may have another layout."""
    return (
        isinstance(type, ArrayType)
        and type.rank > 1
        and all(isinstance(size, int) for size in type.shape)
        and SMALLEST <= type.size <= LARGEST
    )


def handed_on(operation: Operation, position: int, family: Family) -> Sequence[Value]:
    """What is of the family as a value of it is a result of a region of an operation."""
    if operation.op.name == "cond":
        return [operation.results[position]]
    if operation.op.name != "for" or position >= operation.attrs["carries"]:
        raise Unlike
    return [operation.regions[0].params[1 + position]]


def indices_of(operation: Operation) -> Sequence[Value]:
    return operation.operands[1 if operation.op.name == "gather" else 2 :]


class Rewriting(ABC):
    """Writes a function again, one operation after the other."""

    def region(self, region: AnyRegion) -> AnyRegion:
        builder = Builder()
        env: Env = {param: param for param in region.params}
        self.run(builder, region.operations, env)
        return rebuilt(region, builder.operations, [look_up(env, value) for value in region.results])

    def run(self, builder: Builder, operations: Sequence[Operation], env: Env) -> None:
        """What stands for operations, at their places in user code; new values take the names of the old ones."""
        outer = builder.span
        for operation in operations:
            builder.span = operation.span or outer
            for old, new in zip(operation.results, self.placed(builder, operation, env), strict=True):
                if new.name is None and new.producer is not None:
                    new.name = old.name
                env[old] = new
        builder.span = outer

    @abstractmethod
    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        """What stands for the results of an operation."""


class Turned(Rewriting):
    """Writes a function again, with families as rows."""

    def __init__(self, families: Sequence[Family], search: Search) -> None:
        self.family = {value: family for family in families for value in family.members}
        self.changed: set[Operation] = set()
        """Those in whose regions something changes."""
        for family in families:
            owners = [search.home[value][0] for value in family.members if value in search.home]
            for owner in owners:
                found: Operation | None = owner
                while found is not None and found not in self.changed:
                    self.changed.add(found)
                    found = search.outer[found]

    def inside(self, operation: Operation, region: Region) -> Region:
        """A region of an operation, with parameters of its own."""
        builder = Builder()
        env: Env = {}
        for param in region.params:
            family = self.family.get(param)
            type = param.type if family is None else turned_type(param.type, family.perm)
            env[param] = builder.param(type, param.name, param.linear)
        self.run(builder, region.operations, env)
        results = []
        for position, value in enumerate(region.results):
            place = taken_as(operation, position)
            family = None if place is None else self.family.get(place)
            turn = family is not None and isinstance(value, Literal)
            results.append(turned(builder, value, family.perm) if turn and family else look_up(env, value))
        return builder.region(results)

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        name, family = operation.op.name, None
        if name in READS or name in WRITES:
            family = self.family.get(operation.operands[0] if name in READS else operation.results[0])
        if family is None:
            return self.emitted(builder, operation, env)
        return (by_index if name in INDEXED else by_slice)(builder, operation, family, env)

    def emitted(self, builder: Builder, operation: Operation, env: Env) -> list[Value]:
        """An operation that has no family for an operand but to hand it on to its regions."""
        operands = []
        for position, value in enumerate(operation.operands):
            param = becomes(operation, position)
            family = None if param is None else self.family.get(param)
            found = look_up(env, value)
            turn = family is not None and (family.loop is operation or isinstance(value, Literal))
            operands.append(turned(builder, found, family.perm) if turn and family else found)
        regions: Sequence[Region] = operation.regions
        if operation in self.changed:
            regions = [self.inside(operation, region) for region in regions]
        results = list(builder.emit_operation(operation.op, operands, operation.attrs, regions).results)
        if operation.op.name == "for":
            for position, param in enumerate(operation.regions[0].params[1 : 1 + operation.attrs["carries"]]):
                family = self.family.get(param)
                if family is not None and family.loop is operation:
                    results[position] = turned(builder, results[position], inverse(family.perm))
        return results


def becomes(operation: Operation, position: int) -> Value | None:
    """The parameter of a loop's body, or of a branch, that has an operand for its value."""
    if operation.op.name == "cond":
        return operation.regions[0].params[position - 1] if position else None
    if operation.op.name != "for":
        return None
    place = position - (operation.attrs["trips"] is None)
    return operation.regions[0].params[1 + place] if place >= 0 else None


def taken_as(operation: Operation, position: int) -> Value | None:
    """What has the layout of a result of a region."""
    if operation.op.name == "cond":
        return operation.results[position]
    if operation.op.name != "for" or position >= operation.attrs["carries"]:
        return None
    return operation.regions[0].params[1 + position]


def by_index(builder: Builder, operation: Operation, family: Family, env: Env) -> list[Value]:
    array, *others = [look_up(env, value) for value in operation.operands]
    if isinstance(array, Literal):
        array = turned(builder, array, family.perm)
    count = len(indices_of(operation))
    indices = others[len(others) - count :]
    if count == len(family.perm):
        indices = [indices[axis] for axis in family.perm]
    operands = [array, *others[: len(others) - count], *indices]
    return [builder.emit(operation.op, operands, {**operation.attrs, "axis": 0})]


def by_slice(builder: Builder, operation: Operation, family: Family, env: Env) -> list[Value]:
    perm = family.perm
    array, *parts = [look_up(env, value) for value in operation.operands]
    if isinstance(array, Literal):
        array = turned(builder, array, perm)
    found = builder.emit(
        operation.op, [array, *(turned(builder, part, perm) for part in parts)], turned_bounds(operation.attrs, perm)
    )
    return [found if parts else turned(builder, found, inverse(perm))]


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    return tuple(perm.index(axis) for axis in range(len(perm)))


def turned_type(type: ArrayType, perm: Sequence[int]) -> ArrayType:
    return type.with_shape(type.shape[axis] for axis in perm)


def turned(builder: Builder, value: Value, perm: Sequence[int]) -> Value:
    """An array with its axes in another order; what was turned the other way is as it was."""
    if isinstance(value, Literal):
        type = turned_type(value.type, perm)
        return Literal(value.value, type) if value.splat else literal(np.transpose(value.value, perm), type)
    producer = value.producer
    if producer is not None and producer.op.name == "transpose":
        whole = tuple(producer.attrs["perm"][axis] for axis in perm)
        value = producer.operands[0]
        return (
            value
            if whole == tuple(range(len(whole)))
            else builder.emit(REGISTRY["transpose"], [value], {"perm": whole})
        )
    parts = written_to_constant(value)
    if parts is not None:
        array = turned(builder, parts[-1].operands[0], perm)
        for operation in reversed(parts):
            part = turned(builder, operation.operands[1], perm)
            array = builder.emit(operation.op, [array, part], turned_bounds(operation.attrs, perm))
        return array
    return builder.emit(REGISTRY["transpose"], [value], {"perm": tuple(perm)})


def turned_bounds(attrs: Attrs, perm: Sequence[int]) -> Attrs:
    return {name: tuple(bounds[axis] for axis in perm) for name, bounds in attrs.items()}


def written_to_constant(value: Value) -> list[Operation] | None:
    """The slices that were written to a constant to make a value, last to first; None if it is not made so."""
    found: list[Operation] = []
    while not isinstance(value, Literal):
        operation = value.producer
        if operation is None or operation.op.name != "slice_set" or len(found) == MOST_PARTS:
            return None
        found.append(operation)
        value = operation.operands[0]
    return found
