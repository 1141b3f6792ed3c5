"""Loops whose trips add to something, or write each its own part of an array, for all trips at once.

This is what the rules for functions of eigenvalues read (`spectral`); how large the arrays of all trips are does not
matter, as none is left of what such a rule knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import Elementwise, Term
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.sums import added
from srcgrad.ir.passes.values import full_bounds
from srcgrad.ir.transforms.batch import with_leading_axis
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import INT64, ArrayType

INDEX_ARITHMETIC: Final = {"add": np.add, "mul": np.multiply, "neg": np.negative, "sub": np.subtract}
MOST_TRIPS: Final = 256
"""How many trips are written out one by one."""
Batched = tuple[Value, bool]
"""What a value is for all terms, and whether it has an axis of terms."""


class InOrder(Exception):
    """The trips of a loop are not made at once."""


def added_to(loop: Operation) -> list[int]:
    """The carries of a loop that its trips add to."""
    body = loop.regions[0]
    return [place for place, value in enumerate(body.results[: loop.attrs["carries"]]) if is_sum(value)]


def is_sum(value: Value) -> bool:
    return value.producer is not None and value.producer.op.name == "add"


def all_at_once(builder: Builder, loop: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """The results of a loop whose trips are made at once.

    Raises:
        InOrder: they cannot be.
    """
    return AllTrips(builder, loop, operands).results


def one_by_one(builder: Builder, loop: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """The results of a loop with its trips one after the other.

    Raises:
        InOrder: they are too many, or do something else than compute.
    """
    count, carries, body = loop.attrs["trips"], loop.attrs["carries"], loop.regions[0]
    first = carries + loop.attrs["consts"]
    if not count or count > MOST_TRIPS or loop.attrs.get("lifted") or loop.acts or len(body.results) > carries:
        raise InOrder
    carried = list(operands[:carries])
    for trip in range(count)[:: -1 if loop.attrs["reverse"] else 1]:
        env: Env = {body.params[0]: literal(trip, body.params[0].type)}
        columns = [part_at(builder, column, trip, 0) for column in operands[first:]]
        env.update(zip(body.params[1:], [*carried, *operands[carries:first], *columns], strict=True))
        for operation in body.operations:
            given = [look_up(env, value) for value in operation.operands]
            env.update(zip(operation.results, made_of(builder, operation, given), strict=True))
        carried = [look_up(env, value) for value in body.results]
    return carried


def made_of(builder: Builder, operation: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """An operation in a trip, of which the number is known."""
    place = place_of(operation, [(value, False) for value in operands])
    if place is not None:
        return [place[0]]
    if operation.op.name == "gather" and len(operands) == 2 and isinstance(operands[1], Literal):
        axis, index = operation.attrs["axis"], operands[1]
        if not index.type.rank and isinstance(operands[0].type.shape[axis], int):
            return [part_at(builder, operands[0], int(index.value), axis)]
    return builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results


def part_at(builder: Builder, array: Value, place: int, axis: int) -> Value:
    """The element, row or column at a place of an axis."""
    starts, limits, strides = map(list, full_bounds(array.type.shape))
    starts[axis] = place % array.type.static_shape[axis]
    limits[axis] = starts[axis] + 1
    part = emit(builder, "slice", array, **named([starts, limits, strides]))
    shape = array.type.shape
    return emit(builder, "reshape", part, shape=(*shape[:axis], *shape[axis + 1 :]))


class AllTrips:
    """The results of a loop, each of its trips at once.

    Raises:
        InOrder: a trip reads what another one has made, or does something else than compute.
    """

    def __init__(self, builder: Builder, loop: Operation, operands: Sequence[Value]) -> None:
        self.builder, self.operands = builder, operands
        self.body, self.count, self.carries = loop.regions[0], loop.attrs["trips"], loop.attrs["carries"]
        if not self.count or loop.attrs.get("lifted") or loop.acts:
            raise InOrder
        places = literal(np.arange(self.count), ArrayType(INT64, (self.count,)))
        self.env: dict[Value, Batched] = {self.body.params[0]: (places, True)}
        first = self.carries + loop.attrs["consts"]
        for place, (param, operand) in enumerate(zip(self.body.params[1:], operands, strict=True)):
            if place >= self.carries:
                self.env[param] = operand, place >= first
        self.written: dict[Value, tuple[Operation, int]] = {}
        """Versions of arrays that trips write to, with the write that the version is for, and the carry's place."""
        self.terms = [self.terms_of(place, result) for place, result in enumerate(self.body.results)]
        self.run()
        self.results = [self.result(place, terms) for place, terms in enumerate(self.terms)]

    def terms_of(self, place: int, result: Value) -> list[Value]:
        """What all trips are to make for a result: what is added to it or written into it, or the result itself."""
        if place >= self.carries:
            return [result]
        param = self.body.params[place + 1]
        if result.producer is not None and result.producer.op.name == "scatter_set":
            return [self.write_of(place, result)]
        terms = list(added(result))
        rest = [term for term in terms if term is not param]
        if len(rest) != len(terms) - 1:
            raise InOrder
        return rest

    def write_of(self, place: int, version: Value) -> Value:
        """What a trip writes into an array, in one place only."""
        last = version.producer
        assert last is not None
        while version is not self.body.params[place + 1]:
            write = version.producer
            if write is None or write.op.name != "scatter_set" or not same_place(write, last):
                raise InOrder
            self.written[version] = write, place
            version = write.operands[0]
        self.written[version] = last, place
        return last.operands[1]

    def run(self) -> None:
        needed = {value for terms in self.terms for value in terms}
        for operation in reversed(self.body.operations):
            if not needed.isdisjoint(operation.results):
                needed.update(operation.operands)
        for operation in self.body.operations:
            if needed.isdisjoint(operation.results) or operation.results[0] in self.written:
                continue
            if operation.regions or operation.op.effect or len(operation.results) != 1:
                raise InOrder
            self.env[operation.results[0]] = self.read_back(operation) or self.made(operation)

    def value(self, value: Value) -> Batched:
        if isinstance(value, Literal):
            return value, False
        if value not in self.env:
            raise InOrder
        return self.env[value]

    def read_back(self, operation: Operation) -> Batched | None:
        """What a trip reads of an array in the place that it writes to, which no other trip does."""
        if operation.op.name != "gather" or operation.operands[0] not in self.written:
            return None
        version = operation.operands[0]
        write, place = self.written[version]
        if operation.operands[1:] != write.operands[2:] or operation.attrs["axis"] != write.attrs["axis"]:
            raise InOrder
        if version.producer is not None:
            return self.value(write.operands[1])
        operands = [(self.operands[place], False), *map(self.value, operation.operands[1:])]
        return element_at(self.builder, operation, operands) or applied(self.builder, operation, operands, self.count)

    def made(self, operation: Operation) -> Batched:
        operands = [self.value(value) for value in operation.operands]
        if not any(flag for _, flag in operands):
            given = [value for value, _ in operands]
            return self.builder.emit_operation(operation.op, given, operation.attrs).results[0], False
        return (
            place_of(operation, operands)
            or element_at(self.builder, operation, operands)
            or applied(self.builder, operation, operands, self.count)
        )

    def result(self, place: int, terms: Sequence[Value]) -> Value:
        whole = []
        for value, flag in map(self.value, terms):
            whole.append(value if flag else with_leading_axis(self.builder, value, self.count))
        if place >= self.carries:
            return whole[0]
        param = self.body.params[place + 1]
        if param in self.written:
            return self.written_at_once(place, self.written[param][0], whole[0])
        total = self.operands[place]
        for value in whole:
            one = emit(self.builder, "reduce_sum", value, axes=(0,))
            total = one if is_zero(total) else emit(self.builder, "add", total, one)
        return total

    def written_at_once(self, place: int, write: Operation, value: Value) -> Value:
        """The array with what all trips have written, each in another place."""
        axis = write.attrs["axis"]
        known = [value for value, _ in map(self.value, write.operands[2:]) if isinstance(value, Literal)]
        shape = self.operands[place].type.shape[axis : axis + len(write.operands) - 2]
        if len(known) < len(shape) or not all(isinstance(size, int) for size in shape):
            raise InOrder
        numbers = [numbers_of(index) % size for index, size in zip(known, shape, strict=True)]
        places = np.stack([np.broadcast_to(each, (self.count,)) for each in numbers])
        if np.unique(places, axis=1).shape[1] < self.count:
            raise InOrder
        if axis:
            perm = (*range(1, axis + 1), 0, *range(axis + 1, value.type.rank))
            value = emit(self.builder, "transpose", value, perm=perm)
        if len(numbers) == 1 and shape == (self.count,):
            order = np.argsort(numbers[0])
            if (order == np.arange(self.count)).all():
                return value
            return emit(self.builder, "gather", value, literal(order, ArrayType(INT64, order.shape)), axis=axis)
        index = [literal(each, ArrayType(INT64, (self.count,))) for each in places]
        return emit(self.builder, "scatter_set", self.operands[place], value, *index, axis=axis)


def same_place(write: Operation, other: Operation) -> bool:
    return write.operands[2:] == other.operands[2:] and write.attrs["axis"] == other.attrs["axis"]


def applied(builder: Builder, operation: Operation, operands: Sequence[Batched], count: int) -> Batched:
    """An operation on values of which some have an axis of terms."""
    if isinstance(operation.op, Elementwise) or operation.op.name == "select":
        operands = [each if each[1] else repeated(builder, each[0], count) for each in operands]
    terms = [Term(builder, value) for value, _ in operands]
    (found,) = operation.op.batch_operation(count, terms, [flag for _, flag in operands], operation)
    return found.value, True


def repeated(builder: Builder, value: Value, count: int) -> Batched:
    """One number for all terms as what it is in each, so that it stays known as a number."""
    there = isinstance(value, Literal) and value.splat
    return (with_leading_axis(builder, value, count), True) if there else (value, False)


def numbers_of(value: Value) -> Any:
    """The numbers of a literal, those of one number too."""
    assert isinstance(value, Literal)
    return np.broadcast_to(value.value, value.type.static_shape)


def place_of(operation: Operation, operands: Sequence[Batched]) -> Batched | None:
    """An index that is made of the trip's, for all trips."""
    name, type = operation.op.name, operation.results[0].type
    if type.dtype.kind != "i" or not all(isinstance(value, Literal) for value, _ in operands):
        return None
    numbers = [numbers_of(value) for value, _ in operands]
    if name == "reshape":
        count = numbers[0].shape[:1] if operands[0][1] else ()
        found = numbers[0].reshape(*count, *type.static_shape)
    elif name in INDEX_ARITHMETIC and not type.rank:
        found = np.asarray(INDEX_ARITHMETIC[name](*numbers))
    else:
        return None
    return literal(found, type.with_shape(found.shape)), True


def element_at(builder: Builder, operation: Operation, operands: Sequence[Batched]) -> Batched | None:
    """The elements of an array that all trips read, each another one."""
    array, batched = operands[0]
    index, varies = operands[1] if len(operands) == 2 else (array, False)
    if operation.op.name != "gather" or batched or not varies or not isinstance(index, Literal):
        return None
    axis, count = operation.attrs["axis"], index.type.static_shape[0]
    size = array.type.shape[axis]
    if index.type.size != count or not isinstance(size, int):
        return None
    places = [int(place) % size for place in numbers_of(index).ravel()]
    if len(set(places)) < count:
        return None
    array = in_places(builder, array, [list(each) for each in full_bounds(array.type.shape)], places, axis)
    perm = (axis, *(k for k in range(array.type.rank) if k != axis))
    array = emit(builder, "transpose", array, perm=perm) if axis else array
    return emit(builder, "reshape", array, shape=(count, *operation.results[0].type.shape)), True


def in_places(builder: Builder, array: Value, bounds: list[list[Any]], places: Sequence[int], axis: int) -> Value:
    """The part of an array within the bounds, and at these places of an axis."""
    steps = set(np.diff(places).tolist())
    if len(steps) != 1 or 0 in steps:
        bounds[0][axis], bounds[1][axis], bounds[2][axis] = 0, array.type.shape[axis], 1
        part = emit(builder, "slice", array, **named(bounds))
        return emit(builder, "gather", part, literal(np.array(places), ArrayType(INT64, (len(places),))), axis=axis)
    (step,) = steps
    first, last = min(places), max(places)
    bounds[0][axis], bounds[1][axis], bounds[2][axis] = first, last + 1, abs(step)
    if tuple(map(tuple, bounds)) != full_bounds(array.type.shape):
        array = emit(builder, "slice", array, **named(bounds))
    return emit(builder, "reverse", array, axes=(axis,)) if step < 0 else array


def named(bounds: Sequence[Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    return dict(zip(("starts", "limits", "strides"), map(tuple, bounds), strict=True))
