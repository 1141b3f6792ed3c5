"""Elements that a trip of a loop writes and the next one reads, handed on as numbers.

``y[i] = f(x[i], y[i - 1])`` reads what the trip before has written: from memory, as soon as it is there, that takes
longer than most of what is computed of it. So the loop carries it as a number of its own::

    for %x, %y {carries=1}: body (%k, %y) { gather %y, %k; ...; scatter_set %y, %new, %k + 1; yield %y }
    for %x, %y, %y[0] {carries=2}: body (%k, %y, %e) { ...; scatter_set %y, %new, %k + 1; yield %y, %new }

So does what one trip reads and the next one reads again, one place further back. An element that a trip adds to, as the
adjoint of such a loop does, is what was there and the sum. Elements are told apart by `places`; the one that the first
trip reads is read before the loop, where that is known to be in bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Function, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.layouts import Rewriting, indices_of
from srcgrad.ir.passes.places import COUNT, Key, Part, Place, Places, Sum
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import BOOL, ArrayType

WRITES: Final = ("scatter_set", "scatter_add")
COUNTED: Final = ("add", "sub", "mul", "neg")
"""What indices are made by that can be made before the loop."""
MOST: Final = 32
"""The writes to one array that are looked through for one element."""
F16: Final = np.dtype(np.float16)
FEWEST: Final = 2
"""The trips from which on it is done."""


class Element(NamedTuple):
    """A read of an array that a loop carries, and what it finds in the next trip: what is written or read in this."""

    read: Operation
    position: int
    source: Operation


def elements_handed_on(function: Function) -> Function:
    """The function with loops that hand elements on; itself if there are none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[9]) -> (f64[9]) {
    ...   %0: f64[9] = for %x {trips=8, carries=1, consts=0, reverse=false}
    ...     body (%k: i64[], %y: f64[9]) {
    ...       %0: f64[] = gather %y, %k {axis=0}
    ...       %1: f64[] = exp %0
    ...       %i: i64[] = add %k, 1
    ...       %2: f64[9] = scatter_set %y, %1, %i {axis=0}
    ...       yield %2
    ...     }
    ...   return %0
    ... }''')
    >>> print(elements_handed_on(function))
    func @f(%x: f64[9]) -> (f64[9]) {
      %0: f64[] = gather %x, 0 {axis=0}
      %1: f64[9], %2: f64[] = for %x, %0 {trips=8, carries=2, consts=0, reverse=false}
        body (%k: i64[], %y: f64[9], %0: f64[]) {
          %1: f64[] = exp %0
          %i: i64[] = add %k, 1
          %2: f64[9] = scatter_set %y, %1, %i {axis=0}
          yield %2, %1
        }
      return %1
    }
    """
    loops = [operation for operation in function.walk() if may_hand_on(operation)]
    if not loops:
        return function
    places = Places(function)
    found = {loop: elements for loop in loops if (elements := Search(places, loop).elements())}
    return HandedOn(found).region(function) if found else function


def may_hand_on(loop: Operation) -> bool:
    """Whether a loop reads an element of an array that it carries, and hands on what it has written to it."""
    attrs = loop.attrs
    if loop.op.name != "for" or attrs.get("lifted") or (attrs["trips"] or FEWEST) < FEWEST:
        return False
    if attrs["trips"] is None and attrs["reverse"]:
        return False
    body = loop.regions[0]
    arrays = {
        param
        for param, result in zip(body.params[1 : 1 + attrs["carries"]], body.results, strict=False)
        if result.producer is not None and result.producer.op.name in WRITES
    }
    return any(is_element(operation) and operation.operands[0] in arrays for operation in body.operations)


def is_element(operation: Operation) -> bool:
    """Whether one real number of an array is read or written."""
    if operation.op.name != "gather" and operation.op.name not in WRITES:
        return False
    type, indices = operation.operands[0].type, indices_of(operation)
    if not isinstance(type, ArrayType) or type.dtype.kind not in "biuf" or type.dtype == F16:
        return False
    return len(indices) == type.rank and not any(index.type.shape for index in indices)


class Search:
    """What the trips of a loop read that the trips before them had."""

    def __init__(self, places: Places, loop: Operation) -> None:
        self.places, self.loop, self.body = places, loop, loop.regions[0]
        self.index = Key(self.body.params[0])
        self.first = loop.attrs["trips"] - 1 if loop.attrs["reverse"] else 0
        self.step = -1 if loop.attrs["reverse"] else 1

    def elements(self) -> list[Element]:
        found = []
        for position, param in enumerate(self.body.params[1 : 1 + self.loop.attrs["carries"]]):
            writes = self.writes(position, param)
            reads = list(self.reads(param)) if writes else []
            for read, place in reads:
                following = self.following(place)
                source = None if following is None else self.source(writes, following, reads)
                if source is not None:
                    found.append(Element(read, position, source))
        return found

    def reads(self, param: Value) -> Iterator[tuple[Operation, Place]]:
        """What is read of an array as a trip finds it."""
        for operation in self.body.operations:
            if operation.op.name == "gather" and operation.operands[0] is param:
                place = self.place(operation)
                if place is not None and self.is_there(operation):
                    yield operation, place

    def writes(self, position: int, param: Value) -> list[tuple[Operation, Place]]:
        """What a trip writes to an array, last to first; nothing if that is not done by elements alone."""
        found: list[tuple[Operation, Place]] = []
        value = self.body.results[position]
        while value is not param and len(found) < MOST:
            write = value.producer
            place = self.place(write) if write is not None and write.op.name in WRITES else None
            if write is None or place is None:
                return []
            found.append((write, place))
            value = write.operands[0]
        return found if value is param else []

    def place(self, operation: Operation) -> Place | None:
        """The place of one element, if it is known."""
        type = operation.operands[0].type
        found = self.places.indexed(type, indices_of(operation), 0) if is_element(operation) else None
        return found[0] if found is not None and found[1] else None

    def following(self, place: Place) -> Place | None:
        """A place in the next trip, if it is another one and depends on the number of the trip alone."""
        moved, parts = False, []
        for start, length in place:
            if any(key != self.index and self.places.inside(key.value, self.loop) for key in start.factors):
                return None
            factor = start.factors.get(self.index, 0)
            moved = moved or factor != 0
            parts.append(Part(start.plus(Sum(self.step * factor)), length))
        return tuple(parts) if moved else None

    def source(
        self, writes: Sequence[tuple[Operation, Place]], following: Place, reads: Sequence[tuple[Operation, Place]]
    ) -> Operation | None:
        """What writes last in a trip where the next one reads, or reads there, if nothing writes there."""
        for write, place in writes:
            if is_same(place, following):
                return write
            if not self.places.apart(place, following):
                return None
        return next((read for read, place in reads if is_same(place, following)), None)

    def is_there(self, read: Operation) -> bool:
        """Whether what the first trip reads is in bounds for certain, and can be read before the loop."""
        type = read.operands[0].type
        with self.places.in_trip(self.index, self.first):
            for index, size in zip(indices_of(read), type.static_shape, strict=True):
                low, high = self.places.range_of(index)
                if not (low >= 0 and high < size) and not (-size <= low and high < 0):
                    return False
        return all(self.is_made_before(index) for index in indices_of(read))

    def is_made_before(self, index: Value) -> bool:
        """Whether an index is made of the number of the trip and of constants of the loop alone."""
        params = self.body.params
        if isinstance(index, Literal) or index is params[0]:
            return True
        if index in self.places.home:
            first = 1 + self.loop.attrs["carries"]
            return index in params[first : first + self.loop.attrs["consts"]]
        made = index.producer
        return made is not None and made.op.name in COUNTED and all(map(self.is_made_before, made.operands))


def is_same(one: Place, other: Place) -> bool:
    return all(left.start.plus(right.start, -1) == Sum(0, {}) for left, right in zip(one, other, strict=True))


class HandedOn(Rewriting):
    """Writes a function again, with loops that hand elements on."""

    def __init__(self, found: Mapping[Operation, Sequence[Element]]) -> None:
        self.found = found
        self.begun: dict[Operation, Value] = {}
        """By read of an element, what that is when a trip begins."""
        self.written: dict[Operation, Value] = {}
        """By write of an element that is handed on, what it is then."""
        self.sources = {element.source for elements in found.values() for element in elements}

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        if operation in self.begun:
            return [self.begun[operation]]
        given = [look_up(env, value) for value in operation.operands]
        if operation in self.found:
            return self.loop(builder, operation, given)
        if operation not in self.sources or operation.op.name not in WRITES:
            regions = [self.region(region) for region in operation.regions]
            return builder.emit_operation(operation.op, given, operation.attrs, regions).results
        array, value, *indices = given
        if operation.op.name == "scatter_add":
            before = builder.emit(REGISTRY["gather"], [array, *indices], operation.attrs)
            value = builder.emit(REGISTRY["logical_or" if value.type.dtype == BOOL else "add"], [before, value])
        self.written[operation] = value
        return [builder.emit(REGISTRY["scatter_set"], [array, value, *indices], operation.attrs)]

    def loop(self, builder: Builder, loop: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        """A loop with elements as further carries."""
        body, carries, elements = loop.regions[0], loop.attrs["carries"], self.found[loop]
        start = int(loop.attrs["trips"] is None)
        given = operands[start:]
        number = loop.attrs["trips"] - 1 if loop.attrs["reverse"] else 0
        outside: Env = dict(zip(body.params[1:], given, strict=True))
        outside[body.params[0]] = literal(number, COUNT)
        first = [self.before(builder, element.read, given[element.position], outside) for element in elements]
        inner = Builder()
        env: Env = {param: inner.param(param.type, param.name, param.linear) for param in body.params[: 1 + carries]}
        for element in elements:
            self.begun[element.read] = inner.param(element.read.results[0].type)
        env.update({p: inner.param(p.type, p.name, p.linear) for p in body.params[1 + carries :]})
        self.run(inner, body.operations, env)
        results = [look_up(env, value) for value in body.results]
        results[carries:carries] = [self.handed(element.source, env) for element in elements]
        attrs: dict[str, Any] = {**loop.attrs, "carries": carries + len(elements)}
        handed = [*operands[: start + carries], *first, *given[carries:]]
        emitted = builder.emit_operation(loop.op, handed, attrs, [inner.region(results)]).results
        return [*emitted[:carries], *emitted[attrs["carries"] :]]

    def handed(self, source: Operation, env: Env) -> Value:
        """What a trip writes, or reads, where the next one reads."""
        return self.written[source] if source in self.written else look_up(env, source.results[0])

    def before(self, builder: Builder, read: Operation, array: Value, outside: Env) -> Value:
        """What the first trip reads."""
        indices = [made_before(builder, index, outside) for index in indices_of(read)]
        return builder.emit(REGISTRY["gather"], [array, *indices], read.attrs)


def made_before(builder: Builder, index: Value, outside: Env) -> Value:
    """An index of the first trip."""
    if isinstance(index, Literal) or index in outside:
        return look_up(outside, index)
    made = index.producer
    assert made is not None
    given = [made_before(builder, operand, outside) for operand in made.operands]
    if all(isinstance(operand, Literal) for operand in given):
        numbers = [int(operand.value) for operand in given if isinstance(operand, Literal)]
        return literal(folded(made.op.name, numbers), COUNT)
    return builder.emit(made.op, given, made.attrs)


def folded(name: str, numbers: Sequence[int]) -> int:
    left, right = numbers[0], numbers[-1]
    return {"add": left + right, "sub": left - right, "mul": left * right, "neg": -left}[name]
