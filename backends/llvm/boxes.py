"""Groups that read within bounds, as boxes of their domain in each of which bounds are kept to everywhere or nowhere.

The domain is cut where a bound begins or ends. What lies between cuts is a box, in which an array is read everywhere or
not at all, as if there were no bounds: its loops need no masks. What is in no box, since what lies between cuts is
short, are *gaps*: edges of what is padded, say. One loop runs over all of them, number by number, and asks for bounds.
Where they have many rows beside boxes, as at the faces of a small volume, there is one more loop for these, in vectors:
all of a row is within a bound of another axis or out of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from srcgrad.backends.llvm.indices import Bound, Line
from srcgrad.backends.llvm.loops import (
    Compute,
    Constant,
    Group,
    Inside,
    Load,
    Range,
    Statement,
    arranged,
    rebuilt,
    with_lines,
)
from srcgrad.backends.llvm.shapes import shape_of
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType, DType

LEAST: Final = 256
"""The points of a group from which it is cut: of fewer, the masks cost less than calls do."""
DEAREST: Final = 100
"""The cost of a point, in additions, up to which a group is cut: beside more, a mask costs little, and code much."""
MOST: Final = 8
"""The boxes of a group."""
MANY: Final = 128
"""The points in rows beside boxes from which these have a loop of their own."""
LONG: Final = 32
"""The indices of the innermost axis from which a box is worth its loops; of others, an eighth of it, or of the axis."""


def boxes_of(group: Group, target: Target) -> list[Group]:
    """The group as boxes, and last what is in none; nothing where that does not pay, or there is nothing to cut."""
    bounds = group.bounds()
    if not bounds or math.prod(group.domain) < LEAST or group.cost() > DEAREST:
        return []
    lanes, last = shape_of(group, target).lanes, len(group.domain) - 1
    ranges: list[tuple[Range, ...]] = []
    for axis, size in enumerate(group.domain):
        # Beside gaps, what is less than a vector belongs to them, if it is not done under a mask.
        step = lanes if axis == last and not target.masked else 1
        long = LONG if axis == last else min(LONG, size) // 8
        ranges.append(tuple(runs(size, places(axis, bounds), long, step)))
    boxes = list(itertools.product(*ranges))
    covered = sum([math.prod([stop - start for start, stop in box]) for box in boxes])
    if not boxes or len(boxes) > MOST or (len(boxes) == 1 and covered == math.prod(group.domain)):
        return []
    found = [part(group, box) for box in boxes]
    points = math.prod(group.domain)
    along = sum([stop - start for start, stop in ranges[-1]]) * (points // group.domain[-1])
    if along - covered >= MANY:
        found += rows_beside(group, ranges)
        covered, ranges[:-1] = along, [((0, size),) for size in group.domain[:-1]]
    if covered < points:
        found.append(without(group, ranges))
    return found


def rows_beside(group: Group, ranges: Sequence[tuple[Range, ...]]) -> Iterator[Group]:
    """For each innermost range the rows of it that are in no box."""
    outer = [(0, size) for size in group.domain[:-1]]
    for start, stop in ranges[-1]:
        yield without(within(group, (*outer, (start, stop))), (*ranges[:-1], ((0, stop - start),)))


def places(axis: int, bounds: Sequence[Bound]) -> set[int]:
    """Where along an axis bounds begin and end that depend on it alone."""
    found: set[int] = set()
    for (offset, strides), size in bounds:
        stride = strides[axis]
        if stride and sum(map(bool, strides)) == 1:
            # 0 <= offset + stride i < size
            first, last = (-offset, size - offset) if stride > 0 else (offset - size + 1, offset + 1)
            first, last = -(-first // abs(stride)), -(-last // abs(stride))
            found |= {first, last} if first < last else set()
    return found


def runs(size: int, cuts: set[int], long: int, step: int) -> Iterator[Range]:
    """What lies between cuts of an axis and is long, in whole steps; all of it where there is no cut."""
    stops = [*sorted([place for place in cuts if 0 < place < size]), size]
    for start, stop in itertools.pairwise([0, *stops]):
        if len(stops) == 1:
            yield start, stop
        elif stop - start >= max(long, step):
            yield start, stop - (stop - start) % step


def without(group: Group, ranges: Sequence[tuple[Range, ...]]) -> Group:
    """The group but for the boxes that have one of the ranges of each axis; its folds add to what is there."""
    found = rebuilt(group, group.domain, lambda line: line, lambda axes: axes)
    found.added, found.boxes = True, tuple(ranges)
    return found


def part(group: Group, box: Sequence[Range]) -> Group:
    """The group within a box, with its own order of loops."""
    return arranged(within(group, box))


def within(group: Group, box: Sequence[Range]) -> Group:
    """The group within a box, with the axes that it has; its folds add to what is there."""
    domain = tuple([stop - start for start, stop in box])

    def moved(line: Line) -> Line:
        return line._replace(
            offset=line.offset + sum(s * start for s, (start, _) in zip(line.strides, box, strict=True))
        )

    statements: list[Statement] = []
    numbers: list[int] = []
    stored = {store.statement: 0 for store in group.stores}
    """By statement that is kept as an array the one that it has become, at its place: it may be written over others."""
    for item in group.statements:
        item = settled(with_lines(item, moved), domain)
        if isinstance(item, Compute):
            item = item._replace(operands=tuple([numbers[number] for number in item.operands]))
            condition = statements[item.operands[0]]
            if item.operation.op.name == "select" and isinstance(condition, Constant):
                chosen = item.operands[1 if condition.value else 2]
                if len(numbers) in stored:
                    stored[len(numbers)] = len(statements)
                    statements.append(Compute(copy(item.dtype), (chosen,)))
                numbers.append(chosen)
                continue
        if len(numbers) in stored:
            stored[len(numbers)] = len(statements)
        numbers.append(len(statements))
        statements.append(item)
    stores = [store._replace(statement=stored[store.statement], line=moved(store.line)) for store in group.stores]
    folds = [fold._replace(statement=numbers[fold.statement], line=moved(fold.line)) for fold in group.folds]
    found = Group(group.name, domain, group.inputs, group.outputs, statements, stores, folds)
    found.outlined, found.separate, found.added, found.updates = group.outlined, group.separate, True, group.updates
    return found.needed()


@lru_cache(maxsize=64)
def copy(dtype: DType) -> Operation:
    """A number as it is."""
    type = ArrayType(dtype, ())
    return Operation(REGISTRY["identity"], (literal(0, type),), {}, (), [type], None)


def settled(item: Statement, domain: Sequence[int]) -> Statement:
    """A statement without the bounds that are kept to in all of a domain; a constant where one is nowhere."""
    if not isinstance(item, Load | Inside) or not item.bounds:
        return item
    known = [(bound, bound.holds(domain)) for bound in item.bounds]
    if any(holds is False for _, holds in known):
        return Constant(0, item.dtype)
    item = item._replace(bounds=tuple([bound for bound, holds in known if holds is None]))
    return item if item.bounds or isinstance(item, Load) else Constant(True, item.dtype)
