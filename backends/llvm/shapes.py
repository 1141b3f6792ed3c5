"""How the innermost loop of a group is written: lanes, copies, rows, and whether under masks throughout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, DType
from srcgrad.backends.llvm.loops import Compute, Group, Load
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import IN_FLOAT64
from srcgrad.ir.core import Value

if TYPE_CHECKING:
    from srcgrad.backends.llvm.nests import Nest

HEAVY: Final = 200
"""The cost of a body, in additions, from which there is one copy of it, under a mask."""
TILED: Final = 200
"""The cost of all rows of a tile up to which it is written out; dearer bodies gather."""
ROWS: Final = 8
"""How many rows a fold over the axis before the last takes at once."""
FAR: Final = 16 << 20
"""The bytes of all arrays together from which they come from memory, at its own pace."""
SHORT_ROWS: Final = range(256, 4097)
"""The bytes of rows that come from memory one by one. What is fetched ahead follows one row to its end: of eight at
once that are as short as this it fetches little, so their columns are added up at a third of the pace. Accumulators of
longer rows leave the nearest cache, and those of shorter ones are as long as their rows."""

WIDE: Final = range(30, 400)
"""The costs of bodies that compute two vectors side by side; one function is too short, but for a few."""
MEASURED: Final = frozenset({32, 64})
"""The bytes of the registers with which it was measured to pay."""
LONG: Final = frozenset({"arcsinh", "arctanh", "erf", "gammaln", "log1p", "tanh"})
"""Functions that are long enough alone."""
MANY: Final = 4
"""The functions whose constants and vectors, if these are twice as many of 64 bytes, are more than the registers; with
one of `APART` it pays nevertheless."""
APART: Final = frozenset({"sin", "cos", "tan", "pow", "arcsinh", "arccosh"})
"""Functions with a branch to what is rare, before and behind which nothing is moved."""
WORTH_WIDTH: Final = 1 << 12
"""The points of a loop from which that is worth the time to write and generate it."""

LONGEST_OF_SHORT: Final = 4
"""The elements of rows up to which all of them are read for columns of them."""


class Shape(NamedTuple):
    """How a group's innermost loop is written: vectors, copies and rows a trip, and whether under masks throughout.

    ``turned``: what is read in tiles; ``same``: what all rows share; ``wide``: two vectors are
    one of twice the lanes.
    """

    lanes: int
    unroll: int
    rows: int
    heavy: bool
    turned: frozenset[int]
    same: frozenset[int]
    wide: bool = False


NUMBERS: Final = Shape(1, 1, 1, False, frozenset(), frozenset())
"""Number by number."""


def shape_of(group: Group, target: Target, partial: frozenset[int] = frozenset()) -> Shape:
    """The choice for a group; of the axes ``partial`` any part is run over."""
    rank = len(group.domain)
    inside = {item.dtype for item, depth in zip(group.statements, group.depths(), strict=True) if depth == rank}
    sizes = [_element_bytes(dtype) for dtype in inside or group.measure().dtypes] or [1]
    lanes = max(1, target.vector_bytes // max(sizes)) if rank else 1
    if rank and rank - 1 not in partial:  # what is beyond a short row is masks at most
        lanes = min(lanes, 1 << max(group.domain[-1] - 1, 0).bit_length())
    cost = group.cost()
    unroll = 1 if not rank else 4 if cost <= 10 else 2 if cost <= 24 and group.folds else 1
    rows, turned, same = 1, frozenset[int](), frozenset[int]()
    if rank > 1 and rank - 1 not in partial:
        same = frozenset(k for k, axes in enumerate(group.axes()) if rank - 2 not in axes)
        turned = frozenset(k for k, item in enumerate(group.statements) if _is_turned(item))
        if (
            turned
            and rank - 2 not in partial
            and lanes > 1
            and lanes * (cost + 4) <= TILED
            and group.domain[-2] >= lanes
        ):
            return Shape(lanes, 1, lanes, False, turned, same)
        if any(rank - 2 in fold.axes and rank - 1 not in fold.axes for fold in group.folds) and cost <= 10:
            size = group.domain[-1] * max(sizes)
            alone = size in SHORT_ROWS and moved(group) >= FAR
            return Shape(lanes, 1, 1 if alone else rows_at_once(group.domain[-2]), False, frozenset(), same)
    size = group.domain[-1] if rank else 0
    heavy = target.masked and cost > HEAVY and unroll == 1 and size % lanes > 0 and rank - 1 not in partial
    if unroll == 1 and _is_wide(group, target, lanes) and rank - 1 not in partial:
        return Shape(lanes, 2, rows, False, turned, same, True)
    return Shape(lanes, unroll, rows, heavy, turned, same)


def rows_at_once(count: int) -> int:
    """How many rows light bodies take of so many; of few a part of them, if there is one, so that none are left."""
    if count > 4 * ROWS:
        return ROWS
    parts = [rows for rows in range(ROWS // 2, ROWS + 1) if not count % rows]
    return parts[-1] if parts else min(ROWS, max(count, 1))


def _is_wide(group: Group, target: Target, lanes: int) -> bool:
    """Whether two vectors are computed side by side: LLVM makes two instructions of one on twice the lanes.

    Most instructions of a function wait for the one before, and a processor looks ahead over about a hundred. Where
    that is less than two trips, it finds half of what it could do at once. Code that is twice as long takes longer to
    make, which short loops do not earn.
    """
    if target.vector_bytes not in MEASURED or group.outlined or math.prod(group.domain) < WORTH_WIDTH:
        return False
    called = set[str]()
    for item in group.statements:
        if isinstance(item, Compute) and scalars.is_function(item.operation, item.function):
            called.add(item.function or item.operation.op.name)
            if item.dtype == F32 and not IN_FLOAT64.isdisjoint(called):
                return False  # it is two vectors of float64 already
    called -= {"sech_squared"}  # it is a tanh's
    if target.vector_bytes == 64 and APART.isdisjoint(called) and (len(called) >= MANY or "gammaln" in called):
        return False
    cost = group.cost()
    enough = bool(called) if cost in WIDE else cost < WIDE.start and not LONG.isdisjoint(called)
    return enough and group.domain[-1] >= 8 * lanes


def beside(group: Group, target: Target) -> Shape:
    """The choice for what is beside boxes: row by row in vectors where whole rows are, else number by number."""
    last = len(group.domain) - 1
    if last < 1 or group.boxes[last] != ((0, group.domain[last]),):
        return NUMBERS
    return shape_of(group, target, frozenset({last - 1}))._replace(rows=1)


def moved(item: Group | Nest) -> int:
    """The bytes of all arrays that loops read and write; of those written in part, of the part."""
    updates: Mapping[Value, Value] = getattr(item, "updates", {})
    parts = {*updates, *updates.values()}
    found = sum([bytes_of(value.type) for value in (*item.inputs, *item.outputs) if value not in parts])
    points = math.prod(item.domain)
    return found + sum([2 * points * value.type.dtype.itemsize for value in updates])


def columns_of(group: Group) -> dict[int, list[int]]:
    """By statement that reads a column of short rows along the last axis, those that read columns of the same rows."""
    alike: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for number, item in enumerate(group.statements):
        if not isinstance(item, Load) or not item.line.strides or item.bounds:
            continue
        if 1 < item.line.strides[-1] <= LONGEST_OF_SHORT:
            alike.setdefault((item.source, item.line.strides), []).append((item.line.offset, number))
    found: dict[int, list[int]] = {}
    for (_, strides), places in alike.items():
        places.sort()
        first, together = places[0][0], list[int]()
        for offset, number in places:
            if offset - first >= strides[-1]:
                first, together = offset, []
            together.append(number)
            found[number] = together
    return found


def _is_turned(item: Any) -> bool:
    """Whether an element is read whose neighbours are in the next rows."""
    if not isinstance(item, Load) or item.bounds:
        return False
    return item.line.strides[-2] == 1 and item.line.strides[-1] not in (-1, 0, 1)


def _element_bytes(dtype: DType) -> int:
    return 4 if dtype == scalars.F16 else dtype.itemsize
