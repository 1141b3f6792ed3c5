"""Elements and rows of arrays that are the same ones in all trips of a loop are values of their own while it runs.

In ``for k in range(n): c[i, j] += a[i, k] * b[k, j]`` each trip would read ``c[i, j]`` and write it, and its adjoint
clear this element of a cotangent, and its mask, and add to it. As a carry of the loop it is in a register,
and nothing of that is left; what trips only read, as ``a[i, k]`` where j counts, is read before the loop, and the
numbers that are added to its cotangent are added up first.

The rows of ``for i in range(k + 1, n): a[i] -= a[i, k] / a[k, k] * a[k]`` are read and written whole. What all trips
share, ``a[k]``, is an array of its own, and ``a[k, k]`` an element of that: so the derivative keeps one row for all
trips in place of one for each, and its cotangent is a sum beside the work of a trip.

That holds where the indices are constants of the loop that are within bounds, so that reading early raises nothing
that the trips would not, and where all else that a trip reads or writes of the array is elsewhere (`places`), or within
the row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.ir.core import Builder, Function, Literal, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.layouts import INDEXED, READS, WRITES, Rewriting, indices_of
from srcgrad.ir.passes.places import Place, Places
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import BOOL, ArrayType

MOST_ACCESSES: Final = 64
"""To one array in one body; each pair of them is compared."""
FEWEST_TRIPS: Final = 4
"""From which on a row is copied to and fro for what trips save."""


Loops = Callable[[Function], Collection[Operation]]


class Key(NamedTuple):
    """An element or a row: the first axis that is indexed, and the indices, as values of the body."""

    axis: int
    indices: tuple[Value, ...]

    @property
    def attrs(self) -> dict[str, int]:
        return {"axis": self.axis}

    def part_of(self, type: ArrayType) -> ArrayType:
        """The type of what is there."""
        return type.with_shape((*type.shape[: self.axis], *type.shape[self.axis + len(self.indices) :]))

    def holds(self, operation: Operation) -> bool:
        """Whether an operation, by its first indices, reads or writes something of this row."""
        if operation.op.name not in INDEXED or operation.attrs["axis"] or self.axis:
            return False
        return tuple(indices_of(operation)[: len(self.indices)]) == self.indices


class Access(NamedTuple):
    """A read or a write of an array, where that is, and of which element or row if all trips share it."""

    operation: Operation
    place: Place
    key: Key | None


class Shared(NamedTuple):
    """What the trips of a loop share of one array: elements and rows that they write, and others that they read.

    ``kept``: the trips write to the array at other places too.
    """

    written: tuple[Key, ...]
    read: tuple[Key, ...]
    kept: bool


def elements_as_numbers(function: Function, rows: bool = False, but: Loops | None = None) -> Function:
    """The function with loops that have shared elements as numbers; itself if there are none.

    With ``rows``, rows too, ``but`` in the loops that it gives for the function.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9], %y: f64[4]) -> (f64[9]) {
    ...   %0: f64[9] = for %x, 2, %y {trips=4, carries=1, consts=2, reverse=false}
    ...     body (%k: i64[], %s: f64[9], %i: i64[], %y: f64[4]) {
    ...       %0: f64[] = gather %y, %k {axis=0}
    ...       %1: f64[] = gather %s, %i {axis=0}
    ...       %2: f64[] = add %1, %0
    ...       %3: f64[9] = scatter_set %s, %2, %i {axis=0}
    ...       yield %3
    ...     }
    ...   return %0
    ... }''')
    >>> print(elements_as_numbers(function))
    func @f(%x: f64[9], %y: f64[4]) -> (f64[9]) {
      %0: f64[] = gather %x, 2 {axis=0}
      %1: f64[] = for %0, 2, %y, %x {trips=4, carries=1, consts=3, reverse=false}
        body (%k: i64[], %0: f64[], %i: i64[], %y: f64[4], %s: f64[9]) {
          %1: f64[] = gather %y, %k {axis=0}
          %2: f64[] = add %0, %1
          yield %2
        }
      %2: f64[9] = scatter_set %x, %1, 2 {axis=0}
      return %2
    }
    """
    places = Places(function)
    found: dict[Operation, dict[int, Shared]] = {}
    keys: dict[Operation, Key] = {}
    for operation in function.walk():
        if operation.op.name == "for" and operation.attrs["trips"] != 0 and not operation.attrs.get("lifted"):
            shared = Search(places, operation, rows).shared(keys)
            if shared:
                found[operation] = shared
    if found and but is not None:
        left_out = but(function)
        found = {loop: shared for loop, shared in found.items() if loop not in left_out}
    return Lifted(found, keys).region(function) if found else function


class Search:
    """What the body of a loop reads and writes of the arrays that the loop is given."""

    def __init__(self, places: Places, loop: Operation, rows: bool) -> None:
        self.rows = rows
        self.places, self.body = places, loop.regions[0]
        self.carries = loop.attrs["carries"]
        trips = loop.attrs["trips"]
        self.writes_rows = trips is None or trips >= FEWEST_TRIPS
        end = self.carries + loop.attrs["consts"]
        self.fixed = frozenset(self.body.params[1 + self.carries : 1 + end])
        self.arrays = {
            param: position
            for position, param in enumerate(self.body.params[1 : 1 + end])
            if isinstance(param.type, ArrayType) and param.type.rank
        }
        self.accesses: dict[int, list[Access]] = {}
        self.other: set[int] = set()
        """The arrays of which something else is done."""
        for operation in self.body.operations:
            for place, value in enumerate(operation.operands):
                position = self.arrays.get(value)
                if position is not None and (place or not self.enter(position, operation)):
                    self.other.add(position)
        for place, value in enumerate(self.body.results):
            position = self.arrays.get(value)
            if position is not None and position != place:
                self.other.add(position)
            if place < self.carries and position != place:  # what a trip hands on is another array
                self.other.add(place)

    def enter(self, position: int, operation: Operation) -> bool:
        """Note what an operation does to an array; whether it is known where."""
        name, type = operation.op.name, operation.operands[0].type
        if name not in READS and (name not in WRITES or position >= self.carries):
            return False
        assert isinstance(type, ArrayType)
        key = None
        if name in INDEXED:
            key = Key(operation.attrs["axis"], tuple(indices_of(operation)))
            found = self.places.indexed(type, key.indices, key.axis)
            if found is None:
                return False
            place = found[0]
            known = self.rows or (len(key.indices) == type.rank and (name != "scatter_add" or type.dtype != BOOL))
            key = key if known and self.is_shared(type, key) else None
        else:
            place = self.places.sliced(operation)[0]
        self.accesses.setdefault(position, []).append(Access(operation, place, key))
        if name in WRITES:
            self.arrays[operation.results[0]] = position
        return True

    def is_shared(self, type: ArrayType, key: Key) -> bool:
        """Whether indices show one element or row, the same in all trips, that is there."""
        for index, size in zip(key.indices, type.shape[key.axis :], strict=False):
            if index.type.rank or not (isinstance(index, Literal) or index in self.fixed) or not isinstance(size, int):
                return False
            low, high = self.places.bounds(index)
            if not (low >= 0 and high < size) and not (-size <= low and high < 0):
                return False
        return True

    def shared(self, keys: dict[Operation, Key]) -> dict[int, Shared]:
        """By the positions of arrays, what is shared of them; ``keys`` is given the operations on these elements."""
        found = {}
        for position, accesses in self.accesses.items():
            if position in self.other or len(accesses) > MOST_ACCESSES:
                continue
            places = {access.key: access.place for access in accesses if access.key is not None}
            alone = {key for key, place in places.items() if self.is_alone(key, place, accesses)}
            mine = {access.operation: key for access in accesses for key in alone if is_of(access, key)}
            written = {key for operation, key in mine.items() if operation.op.name in WRITES}
            kept = any(a.operation.op.name in WRITES and a.operation not in mine for a in accesses)
            if alone:
                order = [key for key in places if key in alone]
                split = [tuple(key for key in order if (key in written) == flag) for flag in (True, False)]
                found[position] = Shared(split[0], split[1], kept)
                keys.update(mine)
        return found

    def is_alone(self, key: Key, place: Place, accesses: Sequence[Access]) -> bool:
        """Whether nothing but what is done to an element or a row as such meets it, and it is worth a copy."""
        mine = [access for access in accesses if is_of(access, key)]
        if any(access.operation.op.name in WRITES for access in mine):
            type = mine[0].operation.operands[0].type
            if len(key.indices) < type.rank and not self.writes_rows:
                return False
        return all(access in mine or self.places.apart(place, access.place) for access in accesses)


def is_of(access: Access, key: Key) -> bool:
    """Whether an operation reads or writes an element or a row, or something of the row."""
    return access.key == key or key.holds(access.operation)


class Lifted(Rewriting):
    """Writes a function again, with shared elements and rows as values."""

    def __init__(self, found: Mapping[Operation, Mapping[int, Shared]], keys: Mapping[Operation, Key]) -> None:
        self.found, self.keys = found, keys
        self.numbers: dict[Value, dict[Key, Value]] = {}
        """By an array of a body as it was, what its shared elements and rows are then."""

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        found = self.found.get(operation)
        if found is not None:
            return self.loop(builder, operation, [look_up(env, value) for value in operation.operands], found)
        key = self.keys.get(operation)
        name, operands = operation.op.name, operation.operands
        numbers = self.numbers.get(operands[0]) if name in READS or name in WRITES else None
        if key is not None and numbers is not None:
            within = [look_up(env, index) for index in indices_of(operation)[len(key.indices) :]]
            if name == "gather":
                number = numbers[key]
                return [builder.emit(operation.op, [number, *within], operation.attrs) if within else number]
            value = look_up(env, operands[1])
            if within:
                value = builder.emit(operation.op, [numbers[key], value, *within], operation.attrs)
            elif name == "scatter_add":
                add = "logical_or" if value.type.dtype == BOOL else "add"
                value = builder.emit(REGISTRY[add], [numbers[key], value])
            self.numbers[operation.results[0]] = {**numbers, key: value}
            return [look_up(env, operands[0])]
        if name in WRITES and numbers is not None:
            self.numbers[operation.results[0]] = numbers
        regions = [self.region(region) for region in operation.regions]
        given = [look_up(env, value) for value in operands]
        return builder.emit_operation(operation.op, given, operation.attrs, regions).results

    def loop(
        self, builder: Builder, loop: Operation, operands: Sequence[Value], found: Mapping[int, Shared]
    ) -> Sequence[Value]:
        """A loop, between reads and writes of its shared elements."""
        body, carries = loop.regions[0], loop.attrs["carries"]
        start = int(loop.attrs["trips"] is None)
        given, columns = operands[start:], carries + loop.attrs["consts"]
        outside: Env = dict(zip(body.params[1:], given, strict=True))
        free = [k for k in range(carries) if k in found and not found[k].kept]  # written to at shared places alone
        changing = [k for k in range(carries) if k not in free]
        written = [(k, key) for k, shared in found.items() for key in shared.written]
        read = [(k, key) for k, shared in found.items() for key in shared.read]

        def first(k: int, key: Key) -> Value:
            indices = [look_up(outside, index) for index in key.indices]
            return builder.emit(REGISTRY["gather"], [given[k], *indices], key.attrs)

        inner = Builder()
        env: Env = {body.params[0]: copy_of(inner, body.params[0])}
        numbers: dict[int, dict[Key, Value]] = {k: {} for k in found}

        def arrays(positions: Sequence[int]) -> list[Value]:
            env.update({body.params[1 + k]: copy_of(inner, body.params[1 + k]) for k in positions})
            return [given[k] for k in positions]

        def elements(shared: Sequence[tuple[int, Key]]) -> list[Value]:
            for k, key in shared:
                numbers[k][key] = inner.param(key.part_of(body.params[1 + k].type))
            return [first(k, key) for k, key in shared]

        handed = [*operands[:start], *arrays(changing), *elements(written)]
        handed += [
            *arrays(range(carries, columns)),
            *arrays(free),
            *elements(read),
            *arrays(range(columns, len(given))),
        ]
        self.numbers.update({body.params[1 + k]: known for k, known in numbers.items()})
        self.run(inner, body.operations, env)
        results = [look_up(env, body.results[k]) for k in changing]
        results += [self.numbers[body.results[k]][key] for k, key in written]
        results += [look_up(env, value) for value in body.results[carries:]]
        attrs: dict[str, Any] = dict(loop.attrs)
        attrs["carries"] = len(changing) + len(written)
        attrs["consts"] = columns - carries + len(free) + len(read)
        emitted = builder.emit_operation(loop.op, handed, attrs, [inner.region(results)]).results
        after = {k: given[k] for k in free} | dict(zip(changing, emitted, strict=False))
        for (k, key), number in zip(written, emitted[len(changing) :], strict=False):
            indices = [look_up(outside, index) for index in key.indices]
            after[k] = builder.emit(REGISTRY["scatter_set"], [after[k], number, *indices], key.attrs)
        return [*(after[k] for k in range(carries)), *emitted[attrs["carries"] :]]


def copy_of(builder: Builder, param: Value) -> Value:
    return builder.param(param.type, param.name, param.linear)
