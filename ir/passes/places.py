"""Where in an array an index of a loop stands, and whether two such places meet, are one, or cover each other.

Indices are linear in the numbers of the trips round them, as a `Sum`; what else they hold counts as any number of its
range. Whether places differ in all pairs of trips is the test of dependences between array accesses by bounds
and by common divisors (Banerjee; Allen and Kennedy, *Optimizing Compilers for Modern Architectures*, chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from srcgrad.ir.core import Literal, Operation, Region, Value
from srcgrad.ir.passes.dead_control import given
from srcgrad.ir.ranges import ranges_of
from srcgrad.ir.types import INT64, ArrayType

COUNT: Final = ArrayType(INT64)
Interval = tuple[float, float]
EVERY: Final[Interval] = (-math.inf, math.inf)
DEEPEST: Final = 8
"""How many operations back an integer is looked into; what lies further back counts as any number."""
MOST_TERMS: Final = 16
"""The numbers that a sum depends on; with more it counts as any number, so that each takes a constant time."""


class Key(NamedTuple):
    """A number that an index depends on; those of different ``trip`` are the same number in different trips."""

    value: Value
    trip: int = 0


class Sum(NamedTuple):
    """``constant + sum(factor * key)``."""

    constant: int
    factors: Mapping[Key, int] = {}

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """``self + times * other``.

        >>> Sum(3).plus(Sum(1), -1).constant
        2
        """
        factors = dict(self.factors)
        for key, factor in other.factors.items():
            factors[key] = factors.get(key, 0) + times * factor
        return Sum(self.constant + times * other.constant, {key: factor for key, factor in factors.items() if factor})

    def moved(self, replace: Callable[[Key], Sum | None]) -> Sum:
        """With sums in place of some of its keys."""
        found = Sum(self.constant)
        for key, factor in self.factors.items():
            found = found.plus(replace(key) or Sum(0, {key: 1}), factor)
        return found


class Part(NamedTuple):
    """Along one axis: ``length`` elements from ``start`` on."""

    start: Sum
    length: int


Place = tuple[Part, ...]
"""A box of an array, by axes."""


def whole(type: ArrayType) -> Place | None:
    """All of an array; None if a size of it is not known."""
    if not all(isinstance(size, int) for size in type.shape):
        return None
    return tuple(Part(Sum(0), size) for size in type.static_shape)


class Places:
    """The indices of a function: where its values are made, and what its integers are.

    Loops are those of `for`; ``fixed`` are numbers that a caller knows for a while.
    """

    def __init__(self, function: Region) -> None:
        self.within: dict[Value, tuple[Operation, ...]] = {}
        """The operations in whose regions a value is made, outermost first."""
        self.home: dict[Value, tuple[Operation, int, int]] = {}
        """The operation, the region and the position of a parameter."""
        self.sums: dict[Value, Sum] = {}
        self.fixed: dict[Key, int] = {}
        self.depth = 0
        self.visit(function, ())

    def visit(self, region: Region, outer: tuple[Operation, ...]) -> None:
        for param in region.params:
            self.within[param] = outer
        for operation in region.operations:
            for result in operation.results:
                self.within[result] = outer
            for number, inner in enumerate(operation.regions):
                for position, param in enumerate(inner.params):
                    self.home[param] = (operation, number, position)
                self.visit(inner, (*outer, operation))

    def inside(self, value: Value, operation: Operation) -> bool:
        """Whether a value is made in a region of an operation."""
        return operation in self.within.get(value, ())

    def outside(self, value: Value) -> Value:
        """What a constant of loops is where the outermost of them gets it."""
        while value in self.home:
            operation, _, position = self.home[value]
            first = operation.attrs.get("carries", 0)
            if operation.op.name != "for" or not first < position <= first + operation.attrs["consts"]:
                break
            value = given(operation, position - 1)
        return value

    @contextmanager
    def in_trip(self, key: Key, number: int | None) -> Iterator[None]:
        """While the number of a trip is known, if it is."""
        before = self.fixed
        if number is not None:
            self.fixed = {**before, key: number}
        try:
            yield
        finally:
            self.fixed = before

    @contextmanager
    def of_any_trip(self) -> Iterator[None]:
        """While no number of a trip is known."""
        before, self.fixed = self.fixed, {}
        try:
            yield
        finally:
            self.fixed = before

    # --- integers -----------------------------------------------------------------------------------------------------

    def sum(self, value: Value) -> Sum:
        """What an integer of rank 0 is; one of another dtype than int64, which may wrap round, is any number."""
        if isinstance(value, Literal):
            return Sum(int(value.value))
        found = self.sums.get(value)
        if found is not None:
            return found
        if self.depth < DEEPEST and value.type == COUNT:
            with self.deeper():
                found = self.sum_of_param(value) if value in self.home else self.sum_of_result(value)
        if found is None or len(found.factors) > MOST_TERMS:
            found = Sum(0, {Key(value): 1})
        self.sums[value] = found
        return found

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def sum_of_result(self, value: Value) -> Sum | None:
        operation = value.producer
        if operation is None:
            return None
        name, operands = operation.op.name, operation.operands
        if name in ("add", "sub"):
            return self.sum(operands[0]).plus(self.sum(operands[1]), 1 if name == "add" else -1)
        if name == "neg":
            return Sum(0).plus(self.sum(operands[0]), -1)
        if name == "mul":
            left, right = map(self.sum, operands)
            for one, other in ((left, right), (right, left)):
                if not one.factors:
                    return Sum(0).plus(other, one.constant)
        return None

    def sum_of_param(self, param: Value) -> Sum | None:
        operation, _, position = self.home[param]
        if operation.op.name == "cond":
            return self.sum(operation.operands[1 + position])
        if operation.op.name != "for" or position <= operation.attrs["carries"]:
            return None
        found = given(operation, position - 1)
        if position <= operation.attrs["carries"] + operation.attrs["consts"]:
            return self.sum(found)
        return self.element(found, operation.regions[0].params[0])

    def element(self, column: Value, index: Value) -> Sum | None:
        """An element of a column that an earlier loop gives: what its body has in the trip of the same number."""
        producer = column.producer
        if producer is None or producer.op.name != "for":
            return None
        position, body = producer.results.index(column), producer.regions[0]
        if position < producer.attrs["carries"]:
            return None
        found = self.sum(body.results[position])
        found = found.moved(lambda key: Sum(0, {Key(index): 1}) if key.value is body.params[0] else None)
        return None if any(self.inside(key.value, producer) for key in found.factors) else found

    # --- ranges -------------------------------------------------------------------------------------------------------

    def last(self, loop: Operation) -> Sum | None:
        """The number of the last trip of a loop."""
        trips = loop.attrs["trips"]
        return Sum(trips - 1) if trips is not None else self.sum(loop.operands[0]).plus(Sum(-1))

    def range_of_key(self, key: Key) -> Interval:
        known = self.fixed.get(key)
        if known is not None:
            return known, known
        if not key.trip:
            return self.range_in_trip(key.value)
        with self.of_any_trip():  # what is known of this trip says nothing of another one
            return self.range_in_trip(key.value)

    def range_in_trip(self, value: Value) -> Interval:
        if value in self.home:
            operation, _, position = self.home[value]
            if operation.op.name != "for" or position:
                return EVERY
            trips = operation.attrs["trips"]
            return 0, trips - 1 if trips is not None else self.range_of(operation.operands[0])[1] - 1
        return self.range_of_result(value)

    def range_of_result(self, value: Value) -> Interval:
        operation = value.producer
        if operation is None or self.depth >= DEEPEST or value.type != COUNT:
            return EVERY
        with self.deeper():
            return self.range_of_operation(operation)

    def range_of_operation(self, operation: Operation) -> Interval:
        name = operation.op.name
        if name in ("maximum", "minimum"):
            (low, high), (other_low, other_high) = map(self.range_of, operation.operands)
            choose = max if name == "maximum" else min
            return choose(low, other_low), choose(high, other_high)
        if name == "floor_divide" and isinstance(operation.operands[1], Literal):
            divisor = int(operation.operands[1].value)
            low, high = self.range_of(operation.operands[0])
            if divisor > 0:
                return (low if math.isinf(low) else low // divisor, high if math.isinf(high) else high // divisor)
        return EVERY

    def range_of(self, value: Value) -> Interval:
        return self.interval(self.sum(value))

    def interval(self, total: Sum) -> Interval:
        """Between which numbers a sum is."""
        low: float = total.constant
        high: float = total.constant
        for key, factor in total.factors.items():
            ends = [factor * end for end in self.range_of_key(key)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def bounds(self, value: Value) -> Interval:
        """Between which numbers an integer is, in the trips that are: ``j`` is below n in ``for j in range(i + 1, n)``.

        There it is ``i + 1`` and the number of a trip, which is at most ``n - i - 2``; so i is gone from the sum.
        """
        total = self.sum(value)
        low, high = self.interval(total)
        return max(low, self.interval(self.extreme(total, -1))[0]), min(high, self.interval(self.extreme(total, 1))[1])

    def extreme(self, total: Sum, sign: int) -> Sum:
        """A sum that is no smaller (``sign`` 1) or no larger (-1), with the last trips of loops counted late."""
        for _ in range(DEEPEST):
            for key, factor in total.factors.items():
                last = self.late(key) if factor * sign > 0 else None
                if last is not None:
                    total = Sum(total.constant, {k: f for k, f in total.factors.items() if k != key}).plus(last, factor)
                    break
            else:
                break
        return total

    def late(self, key: Key) -> Sum | None:
        """The last number of the trips of which this is one, if that is known as they begin alone."""
        operation, _, position = self.home.get(key.value, (None, 0, 0))
        if (
            operation is None
            or key.trip
            or operation.op.name != "for"
            or position
            or operation.attrs["trips"] is not None
        ):
            return None
        trips = operation.operands[0]
        for _ in range(DEEPEST):  # as there is a trip, the larger of its number and 0 is the number
            found = self.origin(trips)
            if found is None:
                break
            trips = found
        return self.sum(trips).plus(Sum(-1))

    def origin(self, trips: Value) -> Value | None:
        """The value that is the same number, where that is 1 or more."""
        if trips in self.home:
            operation, _, position = self.home[trips]
            if operation.op.name != "for" or position <= operation.attrs["carries"]:
                return None
            is_const = position <= operation.attrs["carries"] + operation.attrs["consts"]
            return given(operation, position - 1) if is_const else None
        producer = trips.producer
        if producer is None or trips.type != COUNT or producer.op.name not in ("maximum", "floor_divide"):
            return None
        number, other = producer.operands
        if isinstance(number, Literal) and producer.op.name == "maximum":
            number, other = other, number
        known = int(other.value) if isinstance(other, Literal) else None
        same = known is not None and (known <= 0 if producer.op.name == "maximum" else known == 1)
        return number if same else None

    # --- places -------------------------------------------------------------------------------------------------------

    def indexed(self, type: ArrayType, indices: Sequence[Value], axis: int) -> tuple[Place, bool] | None:
        """The box in which a gather or a scatter reads or writes an array, and whether it does so in all of it."""
        found = whole(type)
        if found is None:
            return None
        parts, dense = list(found), True
        for k, index in enumerate(indices, axis):
            low, high = EVERY if index.type.shape else self.range_of(index)
            if low >= 0:
                parts[k] = Part(self.sum(index), 1)
            elif high < 0:  # counted from the end
                parts[k] = Part(self.sum(index).plus(Sum(parts[k].length)), 1)
            else:
                dense = False
        return tuple(parts), dense

    def sliced(self, operation: Operation) -> tuple[Place, bool]:
        """The box round a slice, and whether the slice is all of it."""
        ranges = ranges_of(operation.attrs)
        box = tuple(Part(Sum(each.start), each[-1] + 1 - each.start if each else 0) for each in ranges)
        return box, all(each.step == 1 for each in ranges)

    def of_all_trips(self, place: Place, loop: Operation) -> Place | None:
        """A box that holds a place in all trips of a loop, and of those in it; None if there is none."""
        found = []
        for part in place:
            here = {key: factor for key, factor in part.start.factors.items() if self.inside(key.value, loop)}
            low, high = self.interval(Sum(0, here))
            if not math.isfinite(low) or not math.isfinite(high):
                return None
            start = part.start.plus(Sum(-int(low), here), -1)
            found.append(Part(start, part.length + int(high - low)))
        return tuple(found)

    def swept(self, place: Place, loop: Operation, trips: int) -> Place | None:
        """The box that is, to the last element, the places of all trips of a loop; None if they are no box.

        So each trip is a step along one axis, no longer than its place, or all are at one place.
        """
        number, found = Key(loop.regions[0].params[0]), list(place)
        moved = [axis for axis, part in enumerate(place) if number in part.start.factors]
        if len(moved) > 1 or any(
            key != number and self.inside(key.value, loop) for part in place for key in part.start.factors
        ):
            return None
        for axis in moved:
            start, length = place[axis]
            step = start.factors[number]
            if abs(step) > length:
                return None
            first = 0 if step > 0 else trips - 1
            start = start.plus(Sum(0, {number: 1}), -step).plus(Sum(step * first))
            found[axis] = Part(start, length + abs(step) * (trips - 1))
        return tuple(found)

    def apart(self, one: Place, other: Place) -> bool:
        """Whether two places have no element in common, whatever the numbers that they depend on."""
        return any(self.parts_apart(left, right) for left, right in zip(one, other, strict=True))

    def parts_apart(self, one: Part, other: Part) -> bool:
        if not one.length or not other.length:
            return True
        difference = one.start.plus(other.start, -1)
        low, high = self.interval(difference)
        if low >= other.length or high <= -one.length:
            return True
        divisor = math.gcd(*difference.factors.values())
        return one.length == other.length == 1 and divisor > 0 and difference.constant % divisor != 0

    def covers(self, outer: Place, inner: Place) -> bool:
        """Whether a place holds all of another one, whatever the numbers that they depend on."""
        return all(map(self.part_covers, outer, inner))

    def part_covers(self, outer: Part, inner: Part) -> bool:
        low, high = self.interval(inner.start.plus(outer.start, -1))
        return low >= 0 and high + inner.length <= outer.length
