"""What masks are whatever the arguments are, element by element.

What `masks.Search` follows are single boxes. The adjoint of a stencil fills again what it has cleared by several boxes
that overlap, and boundary values move rows and columns about: where all of these have known places, two arrays of truth
values say of each element of a mask whether it is surely True and whether it is surely False. Of what a loop carries
these are the largest sets that hold when the loop begins and that each trip leaves: an induction over the trips.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Function, Literal, Operation, Region, Value, literal
from srcgrad.ir.passes.dead_control import given
from srcgrad.ir.types import ArrayType, TapeType

LARGEST: Final = 1 << 20
"""The elements of a mask up to which each is looked at."""
WORK: Final = 1 << 24
"""The elements that are looked at in all; an operation counts as a hundred."""
ROUNDS: Final = 8
"""How often the trips of a loop are looked at; where they still take something away then, nothing is known."""

Truth = np.ndarray[Any, Any]
"""The elements that are surely True, and those that are surely False, along a first axis."""


class Exhausted(Exception):
    """There is too much to look at."""


class Surely:
    """What is known of the masks of a function."""

    def __init__(self, function: Function) -> None:
        self.known: dict[Value, Truth | None] = {}
        """None: nothing is known."""
        self.left = WORK
        try:
            self.region(function)
        except Exhausted:
            self.known.clear()

    def pay(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise Exhausted

    def literal_of(self, value: Value) -> Literal | None:
        """What a mask is, if that is known of all of its elements."""
        found = self.known.get(value)
        if found is None or not found.any(axis=0).all():
            return None
        first = found[0].reshape(-1)[:1]
        return literal(first.all() if (found[0] == first).all() else found[0], value.type)

    def everywhere(self, value: Value, truth: bool = True) -> bool:
        found = self.of(value)
        return found is not None and bool(found[int(not truth)].all())

    def of(self, value: Value) -> Truth | None:
        if isinstance(value, Literal) and is_looked_at(value.type):
            array = np.broadcast_to(value.value, value.type.static_shape)
            return np.stack([array, ~array])
        return self.known.get(value)

    def region(self, region: Region) -> list[Truth | None]:
        self.pay(100 * len(region.operations))
        for operation in region.operations:
            if operation.regions or any(value.type.dtype.kind == "b" for value in operation.results):
                for value, found in zip(operation.results, self.results(operation), strict=True):
                    self.known[value] = found
        return [self.of(value) for value in region.results]

    def results(self, operation: Operation) -> list[Truth | None]:
        unknown: list[Truth | None] = [None] * len(operation.results)
        name = operation.op.name
        if name == "for":
            return self.loop(operation)
        if name == "cond":
            return self.branches(operation)
        if operation.regions or len(operation.results) != 1:
            return unknown
        type = operation.results[0].type
        if not is_looked_at(type):
            return unknown
        self.pay(type.size)
        rule = getattr(self, name, None) if name in RULES else None
        if rule is not None:
            return [rule(operation, *map(self.of, operation.operands))]
        truths = [truth for truth in (True, False) if name in MOVED and self.everywhere(operation.operands[0], truth)]
        return [constant(truths[0], type)] if truths else unknown

    def slice(self, operation: Operation, whole: Truth | None) -> Truth | None:
        return None if whole is None else whole[:, *box(operation)]

    def slice_set(self, operation: Operation, whole: Truth | None, part: Truth | None) -> Truth | None:
        if whole is None and part is None:
            return None
        shape = operation.results[0].type.static_shape
        found = np.zeros((2, *shape), bool) if whole is None else whole.copy()
        found[:, *box(operation)] = False if part is None else part
        return found

    def scatter_set(self, operation: Operation, whole: Truth | None, *rest: Truth | None) -> Truth | None:
        truths = [self.everywhere(operation.operands[1], truth) for truth in (True, False)]
        return None if whole is None else np.stack([plane & truth for plane, truth in zip(whole, truths, strict=True)])

    def scatter_add(self, operation: Operation, whole: Truth | None, *rest: Truth | None) -> Truth | None:
        return None if whole is None else np.stack([whole[0], whole[1] & self.everywhere(operation.operands[1], False)])

    def logical_or(self, operation: Operation, first: Truth | None, second: Truth | None) -> Truth | None:
        if first is None or second is None:
            known = second if first is None else first
            return None if known is None else np.stack([known[0], np.zeros_like(known[0])])
        return np.stack([first[0] | second[0], first[1] & second[1]])

    def logical_not(self, operation: Operation, one: Truth | None) -> Truth | None:
        return None if one is None else one[::-1]

    def logical_and(self, operation: Operation, first: Truth | None, second: Truth | None) -> Truth | None:
        turned = [self.logical_not(operation, one) for one in (first, second)]
        return self.logical_not(operation, self.logical_or(operation, *turned))

    def select(self, operation: Operation, which: Truth | None, *chosen: Truth | None) -> Truth | None:
        return both(*chosen)

    def branches(self, cond: Operation) -> list[Truth | None]:
        found: list[list[Truth | None]] = []
        for region in cond.regions:
            self.known.update(
                {param: self.of(value) for param, value in zip(region.params, cond.operands[1:], strict=True)}
            )
            found.append(self.region(region))
        return [both(*sides) for sides in zip(*found, strict=True)]

    def loop(self, loop: Operation) -> list[Truth | None]:
        body, trips = loop.regions[0], loop.attrs["trips"]
        carries, consts = loop.attrs["carries"], loop.attrs["consts"]
        begins: list[Any] = [self.of(given(loop, position)) for position in range(len(body.params) - 1)]
        for position in range(carries + consts, len(begins)):
            column = begins[position]
            begins[position] = None if trips is None or column is None else np.all(column, axis=1)
        found = begins
        for _ in range(ROUNDS):
            self.known.update(zip(body.params[1:], found, strict=True))
            ends = self.region(body)
            after = [both(first, last) for first, last in zip(found, ends[:carries], strict=False)] + found[carries:]
            if all(map(same, found, after)):
                break
            found = after
        else:
            self.known.update(dict.fromkeys(body.params[1 : 1 + carries]))
            ends = self.region(body)
        last = ends[:carries] if trips else [both(*pair) for pair in zip(begins, ends[:carries], strict=False)]
        return [*last, *[None] * (len(loop.results) - carries)]


RULES: Final = frozenset(
    {"slice", "slice_set", "scatter_set", "scatter_add", "logical_or", "logical_and", "logical_not", "select"}
)
"""The operations of which a method says what is known of their result."""
MOVED: Final = frozenset({"reshape", "broadcast", "transpose", "gather"})
"""Those that are one truth value everywhere where all of what they read is."""


def is_looked_at(type: ArrayType) -> bool:
    known = type.dtype.kind == "b" and not isinstance(type, TapeType)
    return known and all(isinstance(size, int) for size in type.shape) and type.size <= LARGEST


def constant(truth: bool, type: ArrayType) -> Truth:
    planes = [np.full(type.static_shape, value) for value in (truth, not truth)]
    return np.stack(planes)


def box(operation: Operation) -> tuple[slice, ...]:
    attrs = operation.attrs
    return tuple(map(slice, attrs["starts"], attrs["limits"], attrs["strides"]))


def both(first: Truth | None, second: Truth | None) -> Truth | None:
    return None if first is None or second is None else first & second


def same(first: Truth | None, second: Truth | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))
