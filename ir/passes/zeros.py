"""Zeros that loops put where masks do not hold, and where there are zeros already.

The adjoint of a stencil adds ``select(mask, x, 0.0)`` in each trip: where the mask does not hold, x may be 0 times inf.
Where all that x was multiplied by are finite literals it is 0 there, in each trip, so that neither the choice nor the
mask has to be. This is shown by induction over the trips: a carry is 0 outside another one, which is a mask, if the
first trip finds it so and each trip leaves it so. A zero may be -0.0 then, which shows where -0.0 is added to it.
Of ``select(mask & chosen, x, 0.0)``, as the adjoint of a minimum has it, ``select(chosen, x, 0.0)`` is left.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from srcgrad.ir.core import Function, Literal, Operation, Region, Value, is_splat, literal
from srcgrad.ir.passes.dead_control import given
from srcgrad.ir.passes.rewrite import AnyRegion, Fired, rebuilt, with_operands

NAME: Final = "select(mask, x, 0) -> x, which is 0 outside the mask"
STEPS: Final = 400
"""How many pairs of a value and a mask are looked at for one choice."""
DEEPEST: Final = 60
"""How far back, as each step is two calls of Python's stack."""
LOGIC: Final = frozenset({"logical_or", "logical_and", "logical_not"})
SUMS: Final = frozenset({"add", "sub", "reduce_sum"})
"""What reads 0.0 and -0.0 alike, unless all that it adds is -0.0."""
MOVES: Final = frozenset(
    {
        "slice",
        "reshape",
        "broadcast",
        "transpose",
        "concatenate",
        "gather",
        "slice_set",
        "scatter_set",
        "scatter_add",
    }
)
"""What does to a value and to its mask the same, if it is given the same places."""
Pair = tuple[Value, Value]


def without_zeros(function: Function, fired: list[Fired] | None = None) -> Function:
    """The function with x in place of ``select(mask, x, 0.0)`` where that is the same; itself if there is none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[3]) -> (f64[3]) {
    ...   %y: f64[3], %m: bool[3] = for %x, true:bool[3] {trips=9, carries=2, consts=0, reverse=false}
    ...     body (%k: i64[], %y: f64[3], %m: bool[3]) {
    ...       %0: f64[3] = select %m, %y, 0.0:f64[3]
    ...       %1: f64[3] = add %y, %0
    ...       %2: bool[3] = scatter_set %m, false, %k {axis=0}
    ...       %3: f64[3] = scatter_set %1, 0.0, %k {axis=0}
    ...       yield %3, %2
    ...     }
    ...   return %y
    ... }''')
    >>> [each.op.name for each in without_zeros(function).operations[0].regions[0].operations]
    ['add', 'scatter_set', 'scatter_set']
    """
    homes = Homes(function)
    spared = {operation: spared_masks(homes, operation) for operation in choices(function)}
    spared = {operation: masks for operation, masks in spared.items() if masks}
    if fired is not None:
        fired += [Fired(NAME, operation.span) for operation in spared]
    return chosen_by_others(function, spared, {}) if spared else function


def choices(function: Region, inside: bool = False) -> list[Operation]:
    """The operations of loops that put zeros where a mask does not hold, for sums."""
    found: list[Operation] = []
    readers: dict[Value, list[str]] = {}
    for operation in function.operations:
        for value in operation.operands:
            readers.setdefault(value, []).append(operation.op.name)
    for operation in function.operations:
        if inside and operation.op.name == "select" and is_splat(operation.operands[2], 0):
            result = operation.results[0]
            if result not in function.results and SUMS.issuperset(readers.get(result, ())):
                found.append(operation)
        for region in operation.regions:
            found += choices(region, operation.op.name == "for")
    return found


def spared_masks(homes: Homes, choice: Operation) -> set[Value]:
    """Of the masks by which zeros are put, those outside of which there are zeros anyway: they may as well be True."""
    mask, value, _ = choice.operands
    if Search(homes).is_zero(value, mask):
        return {mask}
    return {each for each in parts_of(mask) if Search(homes).is_zero(value, each)}


def parts_of(mask: Value) -> list[Value]:
    """What a mask is made of by logic, that carries or parts of such may be."""
    found: dict[Value, None] = {}
    seen, pending = {mask}, [mask]
    while pending:
        value = pending.pop()
        made = value.producer
        if made is not None and made.op.name in LOGIC:
            pending += [operand for operand in made.operands if operand not in seen]
            seen.update(made.operands)
        elif not isinstance(value, Literal) and (made is None or made.op.name in MOVES):
            found[value] = None
    return list(found)


def chosen_by_others(region: AnyRegion, spared: dict[Operation, set[Value]], moved: dict[Value, Value]) -> AnyRegion:
    """The region with choices by other masks; ``moved`` are the values in place of those of its operations."""
    operations: list[Operation] = []
    for operation in region.operations:
        operands = tuple([moved.get(value, value) for value in operation.operands])
        if operation in spared:
            mask = without(operation.operands[0], dict.fromkeys(spared[operation]), moved, operations)
            if is_splat(mask, True):
                moved[operation.results[0]] = operands[1]
                continue
            operands = (mask, *operands[1:])
        regions = tuple([chosen_by_others(inner, spared, moved) for inner in operation.regions])
        copy = with_operands(operation, operands, regions)
        moved.update(zip(operation.results, copy.results, strict=True))
        operations.append(copy)
    return rebuilt(region, operations, [moved.get(value, value) for value in region.results])


def without(
    mask: Value, known: dict[Value, Value | None], moved: dict[Value, Value], operations: list[Operation]
) -> Value:
    """A mask with True in place of others, which are None in what is ``known``; ``operations`` makes it."""
    if mask in known:
        return known[mask] or literal(True, mask.type)
    made = mask.producer
    if made is None or made.op.name not in LOGIC:
        return moved.get(mask, mask)
    operands = tuple([without(operand, known, moved, operations) for operand in made.operands])
    copy = with_operands(made, operands, ())
    operations.append(copy)
    known[mask] = copy.results[0]
    return copy.results[0]


class Homes:
    """Of which operation, and at which position, the parameters of regions are."""

    def __init__(self, function: Region) -> None:
        self.of: dict[Value, tuple[Operation, int]] = {}
        for operation in function.walk():
            for region in operation.regions:
                for position, param in enumerate(region.params):
                    self.of[param] = operation, position

    def outside(self, value: Value) -> Value:
        """What a constant of loops is where the outermost of them gets it."""
        while value in self.of:
            operation, position = self.of[value]
            first = operation.attrs.get("carries", 0)
            if operation.op.name != "for" or not first < position <= first + operation.attrs["consts"]:
                break
            value = given(operation, position - 1)
        return value


class Search:
    """Finds out whether a value is 0 wherever a mask does not hold."""

    def __init__(self, homes: Homes) -> None:
        self.homes = homes
        self.steps = STEPS
        self.depth = 0
        self.held: dict[Pair, None] = {}
        """What is shown, or supposed of carries while it is being shown, in this order."""

    def is_zero(self, value: Value, mask: Value) -> bool:
        value, mask = self.homes.outside(value), self.homes.outside(mask)
        if is_splat(value, 0) or is_splat(mask, True) or (value, mask) in self.held:
            return True
        self.steps -= 1
        if self.steps < 0 or self.depth >= DEEPEST or value.type.shape != mask.type.shape:
            return False
        before = len(self.held)
        self.depth += 1
        found = self.by_mask(value, mask) or self.by_value(value, mask)
        self.depth -= 1
        if found:
            self.held[value, mask] = None
        else:
            self.forget(before)
        return found

    def forget(self, count: int) -> None:
        """Forget what has been shown since so much was: it may rest on what was supposed."""
        while len(self.held) > count:
            self.held.popitem()

    def by_mask(self, value: Value, mask: Value) -> bool:
        made = mask.producer
        if made is None or made.op.name not in ("logical_or", "logical_and"):
            return False
        parts = (self.is_zero(value, operand) for operand in made.operands)
        return any(parts) if made.op.name == "logical_or" else all(parts)

    def by_value(self, value: Value, mask: Value) -> bool:
        if value in self.homes.of:
            return self.carried(value, mask)
        made, other = value.producer, mask.producer
        if made is None:
            return False
        name, operands = made.op.name, made.operands
        if name in ("add", "sub"):
            return all(self.is_zero(operand, mask) for operand in operands)
        if name == "neg":
            return self.is_zero(operands[0], mask)
        if name == "mul":
            return any(
                self.is_finite(factor) and self.is_zero(operand, mask)
                for operand, factor in (operands, reversed(operands))
            )
        if name == "select":
            if is_splat(operands[2], 0) and self.homes.outside(operands[0]) is mask:
                return True
            return all(self.is_zero(operand, mask) for operand in operands[1:])
        if other is None:
            return False
        if name == "for" and other is made:
            return self.handed_on(made, made.results.index(value), made.results.index(mask))
        if name == "reduce_sum" and other.op.name == "reduce_or" and made.attrs == other.attrs:
            return self.is_zero(operands[0], other.operands[0])
        return name in MOVES and self.moved(made, other)

    def is_finite(self, value: Value) -> bool:
        """Whether a factor is known, and finite."""
        value = self.homes.outside(value)
        while value.producer is not None and value.producer.op.name in ("broadcast", "reshape", "cast"):
            value = self.homes.outside(value.producer.operands[0])
        return isinstance(value, Literal) and bool(np.all(np.isfinite(value.value)))

    def moved(self, made: Operation, other: Operation) -> bool:
        """Whether two operations do the same to a value and to a mask, which is so of what they are given."""
        if made.op is not other.op or made.attrs != other.attrs or len(made.operands) != len(other.operands):
            return False
        pairs = [tuple(map(self.homes.outside, pair)) for pair in zip(made.operands, other.operands, strict=True)]
        count = values_of(made)
        return all(one is two or same_literal(one, two) for one, two in pairs[count:]) and all(
            self.is_zero(one, two) for one, two in pairs[:count]
        )

    def carried(self, value: Value, mask: Value) -> bool:
        """Whether a carry is 0 outside another one as a trip begins."""
        one, other = self.homes.of.get(value), self.homes.of.get(mask)
        if one is None or other is None or one[0] is not other[0] or one[0].op.name != "for":
            return False
        (loop, position), (_, place) = one, other
        if not all(0 < each <= loop.attrs["carries"] for each in (position, place)):
            return False
        return self.handed_on(loop, position - 1, place - 1)

    def handed_on(self, loop: Operation, position: int, place: int) -> bool:
        """Whether a carry of a loop is 0 outside another one before and after each of its trips."""
        if max(position, place) >= loop.attrs["carries"]:
            return False
        body = loop.regions[0]
        if not self.is_zero(given(loop, position), given(loop, place)):
            return False
        self.held[body.params[1 + position], body.params[1 + place]] = None
        return self.is_zero(body.results[position], body.results[place])


def same_literal(one: Value, other: Value) -> bool:
    """Whether two indices are the same known ones."""
    return (
        isinstance(one, Literal)
        and isinstance(other, Literal)
        and one.type == other.type
        and bool(np.array_equal(one.value, other.value))
    )


def values_of(operation: Operation) -> int:
    """How many operands of a move are arrays, before indices."""
    counts = {"gather": 1, "scatter_set": 2, "scatter_add": 2}
    return counts.get(operation.op.name, len(operation.operands))
