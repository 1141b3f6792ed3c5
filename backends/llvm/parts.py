"""Parts that were written into zeros, one after the other or each for itself and then added, as one array.

Such is the gradient of a function of slices. Each part that is written is a pass over the array, and so is each sum.
Where parts do not overlap no two numbers are added: the sum is the parts at their places, and zeros elsewhere. Each
number is added to a zero, which makes 0.0 of -0.0, and so it is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from srcgrad.backends.llvm.kinds import is_plain, is_zero
from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.expand import emitted
from srcgrad.ir.passes.rewrite import AnyRegion
from srcgrad.ir.ranges import apart
from srcgrad.ir.types import ArrayType

MOST: Final = 64
"""The parts of one sum, which are compared with one another."""


class Part(NamedTuple):
    """An array, and the slice of the whole at which it lies; ``added``: to zeros."""

    value: Value
    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    added: bool = False

    @property
    def ranges(self) -> list[range]:
        return list(map(range, self.starts, self.limits, self.strides))

    def is_whole(self, axis: int, size: int) -> bool:
        return (self.starts[axis], self.limits[axis], self.strides[axis]) == (0, size, 1)


def is_apart(a: Part, b: Part) -> bool:
    """Whether two parts have no element in common: along some axis."""
    return any(map(apart, a.ranges, b.ranges))


class Sum(NamedTuple):
    """Parts in zeros that do not overlap, added to ``rest``, if there is one; ``merged``: the operands that are it."""

    parts: list[Part]
    rest: Value | None
    merged: tuple[Value, ...]


def sums_of_parts(region: Region) -> tuple[dict[Value, Sum], set[Value]]:
    """Arrays of two parts and more that do not overlap, with what else is added to them; and what is in these.

    A part of a sum, or a sum that is part of another one, is read there alone. That ``(x + p) + q`` is ``x + (p + q)``
    where p and q do not overlap holds for all bits, as p + q has no -0.0.
    """
    reads = Counter(value for operation in region.operations for value in operation.operands)
    reads.update(region.results)
    found: dict[Value, Sum] = {}
    for operation in region.operations:
        name, operands = operation.op.name, operation.operands
        if name == "slice_set":
            made = written(operation, found.get(operands[0]) if reads[operands[0]] == 1 else None)
            if made is not None:
                found[operation.results[0]] = made
        elif name == "add":
            made = added(operands, [found.get(value) if reads[value] == 1 else None for value in operands])
            if made is not None:
                found[operation.results[0]] = made
    sums: dict[Value, Sum] = {}
    absorbed: set[Value] = set()
    for value, item in reversed(found.items()):
        if len(item.parts) > 1 and item.merged and value not in absorbed:
            sums[value] = item
        if value in sums or value in absorbed:
            absorbed.update(item.merged)
    return sums, absorbed


def written(operation: Operation, known: Sum | None) -> Sum | None:
    """A part that is written into zeros, or into an array of which this is known."""
    target, value = operation.operands
    attrs = operation.attrs
    part = Part(value, attrs["starts"], attrs["limits"], attrs["strides"])
    if is_zeros(target) and is_plain(target.type):
        return Sum([part], None, ())
    if known is None or known.rest is not None or not are_one(known, Sum([part], None, ())):
        return None
    return Sum([*known.parts, part], None, (target,))


def added(operands: Sequence[Value], known: Sequence[Sum | None]) -> Sum | None:
    """A sum of two operands, of which these are known."""
    left, right = known
    if left is not None and right is not None and are_one(left, right):
        parts = [part._replace(added=True) for part in left.parts + right.parts]
        return Sum(parts, right.rest if left.rest is None else left.rest, tuple(operands))
    for place in (1, 0):
        item = known[place]
        if item is not None and item.rest is None:
            return Sum(item.parts, operands[1 - place], (operands[place],))
    return None


def are_one(left: Sum, right: Sum) -> bool:
    if (left.rest is not None and right.rest is not None) or len(left.parts) + len(right.parts) > MOST:
        return False
    return all(is_apart(a, b) for a in left.parts for b in right.parts)


def is_zeros(value: Value) -> bool:
    return isinstance(value, Literal) and is_zero(value)


def joined(region: AnyRegion) -> AnyRegion:
    """The region with sums of parts as one array, in its regions too; itself where there are none."""
    sums, absorbed = sums_of_parts(region)
    if not sums and not any(operation.regions for operation in region.operations):
        return region
    values: dict[Value, Value] = {}
    """What values are in the new region, of which these sums are."""

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        result = operation.results[0] if operation.results else None
        if result in absorbed or result in sums:
            values.update(zip(operation.operands, operands, strict=True))
        if result in absorbed:  # nothing reads it any more
            return operation.results
        if result in sums:
            parts, rest, _ = sums[result]
            found = assembled(builder, [part._replace(value=values[part.value]) for part in parts], result.type)
            return [found if rest is None else builder.emit(REGISTRY["add"], (values[rest], found))]
        regions = tuple([joined(inner) for inner in operation.regions])
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    return emitted(region, emit)


def assembled(builder: Builder, parts: Sequence[Part], type: ArrayType) -> Value:
    """Parts that do not overlap at their places, and zeros elsewhere."""
    values = [Term(builder, part.value) for part in parts]
    if type.dtype.kind in "fc":
        values = [value + 0.0 if part.added else value for part, value in zip(parts, values, strict=True)]
    for axis in range(type.rank):
        if all(part.is_whole(k, size) for part in parts for k, size in enumerate(type.static_shape) if k != axis):
            order = sorted(range(len(parts)), key=lambda number: parts[number].starts[axis])
            found = along(axis, [parts[number] for number in order], [values[number] for number in order], type)
            if found is not None:
                return found.value
    whole: Value = literal(0, type)
    for part, value in zip(parts, values, strict=True):
        places = {"starts": part.starts, "limits": part.limits, "strides": part.strides}
        whole = builder.emit(REGISTRY["slice_set"], (whole, value.value), places)
    return whole


def along(axis: int, parts: Sequence[Part], values: Sequence[Term], type: ArrayType) -> Term | None:
    """Parts that are all there is along an axis: one after the other, or in turns."""
    shape, join = type.static_shape, REGISTRY["concatenate"]
    sizes = [value.type.static_shape[axis] for value in values]
    starts = [part.starts[axis] for part in parts]
    if sum(sizes) != shape[axis]:
        return None
    if all(part.strides[axis] == 1 or size == 1 for part, size in zip(parts, sizes, strict=True)):
        return join(*values, axis=axis)
    in_turns = len(set(sizes)) == 1 and starts == [*range(len(parts))]
    if not in_turns or {part.strides[axis] for part in parts} != {len(parts)}:
        return None
    reshape, one = REGISTRY["reshape"], (*shape[:axis], sizes[0], 1, *shape[axis + 1 :])
    turns = join(*[reshape(value, shape=one) for value in values], axis=axis + 1)
    return reshape(turns, shape=shape)
