"""Values that are pieces of arrays, which loops read where these are: concatenations, and arrays written into others.

Written as arrays of their own, they cost two passes each: one that sets them together, and one that reads them. Read
within bounds they cost a mask for each of these. So a few long pieces are read so, and many or short ones copied. What
is written into an array that is no more needed costs one short pass in place: that is left so, where it is short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence, Set
from typing import Final

from srcgrad.backends.llvm.indices import Bound, Piece, View, unit, view_index
from srcgrad.backends.llvm.kinds import is_loop_type, is_zero
from srcgrad.ir.core import Literal, Operation, Value

PIECED: Final = frozenset({"concatenate", "slice_set"})
FEW: Final = 4
"""The pieces of a concatenation up to which all are read at each point."""
RUN: Final = 8
"""The elements from which rows that have several pieces are read as these."""
LONG_RUN: Final = 16
"""The same for rows of which a part is written over: what is left of them would be copied."""

_LOOKED_AT: Final = 256
"""The values that a part is computed from up to which it is asked whether it can be written in place."""
SHORT: Final = 4
"""What is shorter by this factor than the array that it is written into is written in place."""


def pieces_of(operation: Operation, below: View | None = None) -> View | None:
    """What an operation shows, if it is that and no more; ``below`` is what its first operand shows."""
    type = operation.results[0].type
    if not is_loop_type(type) or not type.size:
        return None
    if operation.op.name == "concatenate":
        return joined(operation)
    return padded(operation) if is_in_zeros(operation) else updated(operation, below)


def is_update(operation: Operation) -> bool:
    """Whether an operation writes a part of an array that is not zero everywhere."""
    return operation.op.name == "slice_set" and not is_in_zeros(operation)


def wanted_updates(
    operations: Sequence[Operation], results: Sequence[Value], kind_of: Callable[[Operation], str],
    given: Collection[Value] = (),
) -> Set[Operation]:  # fmt: skip
    """Updates of arrays that something other than a loop reads: these are done in place, one after the other.

    ``kind_of``: whether an operation is computed in loops, shows what others are, or neither, as `fused_kind` says.
    ``given``: arrays of the caller's, which are never written over.
    """
    if not any(map(is_update, operations)):
        return frozenset()
    found: set[Operation] = set()
    parts = {operation.operands[1] for operation in operations if is_update(operation)}
    wanted = set(results)
    for operation in reversed(operations):
        kind = kind_of(operation)
        if kind == "compute":
            continue
        if wanted.isdisjoint(operation.results) and kind == "view":
            if view_index(operation) is None or operation.results[0].type.size > operation.operands[0].type.size:
                wanted.update(operation.operands)
        elif not wanted.isdisjoint(operation.results) or operation.op.name not in PIECED or kind == "view":
            wanted.update(operation.operands)
            if is_update(operation) and (
                not is_mostly_computed(operation, kind_of)
                or (operation.operands[0] not in given and is_apart(operation, parts, kind_of))
            ):
                found.add(operation)
    return found


def is_mostly_computed(update: Operation, kind_of: Callable[[Operation], str]) -> bool:
    """Whether half of a row is computed anew: that is one pass over all of it, rather than one more to copy.

    Of several axes the ends of all rows cost as much as that.
    """
    whole, part = update.operands
    if part.producer is None or whole.type.rank != 1 or 2 * part.type.size < whole.type.size:
        return False
    return kind_of(part.producer) == "compute"


def is_apart(update: Operation, parts: Set[Value], kind_of: Callable[[Operation], str]) -> bool:
    """Whether what computes the part reads the array at most where it writes it: a loop can, then, in place.

    ``parts`` are those of all updates, which are read from the arrays that they are written into.
    """
    whole, part = update.operands
    stack, seen = [part], {part}
    while stack and len(seen) <= _LOOKED_AT:
        value = stack.pop()
        if value is whole:
            return False
        producer = value.producer
        if producer is None or (value in parts and value is not part):
            continue
        kind = kind_of(producer)
        if (kind == "other" and producer.op.name != "concatenate") or is_same_place(producer, update):
            continue
        for operand in producer.operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return not stack


def is_same_place(view: Operation, update: Operation) -> bool:
    """Whether a view shows what an update writes over."""
    return view.op.name == "slice" and view.operands[0] is update.operands[0] and view.attrs == update.attrs


def is_in_zeros(operation: Operation) -> bool:
    """Whether an array is written into zeros."""
    whole = operation.operands[0]
    return isinstance(whole, Literal) and is_zero(whole)


def joined(operation: Operation) -> View | None:
    """Each operand within its bounds along the axis."""
    axis, type = operation.attrs["axis"], operation.results[0].type
    operands = [value for value in operation.operands if value.type.size]
    if len(operands) > FEW or math.prod(type.static_shape[axis:]) < RUN:
        return None
    pieces, start = [], 0
    for value in operands:
        pieces.append(piece_at(value, tuple(start * (k == axis) for k in range(type.rank)), type.static_shape))
        start += value.type.static_shape[axis]
    return View(tuple(pieces), tuple(operands))


def padded(operation: Operation) -> View | None:
    """The part that is written into zeros."""
    part = written(operation)
    return None if part is None else View((part,), (part.base,), padded=True)


def updated(operation: Operation, below: View | None) -> View | None:
    """The part that is written, and elsewhere the array, or its pieces."""
    whole, part = operation.operands[0], written(operation, LONG_RUN)
    few = below is not None and below.padded and len(below.pieces) < FEW
    if part is None or (not few and part.base.type.size * SHORT < whole.type.size):
        return None
    rank = whole.type.rank
    rest = Piece(whole, tuple([unit(axis, rank) for axis in range(rank)]))
    return View((part, rest), (part.base, whole))


def written(operation: Operation, run: int = RUN) -> Piece | None:
    """The part that is written, if its rows are long and in one piece."""
    part, attrs, shape = operation.operands[1], operation.attrs, operation.results[0].type.static_shape
    sizes = part.type.static_shape
    if not part.type.size or any(
        stride != 1 and size > 1 for stride, size in zip(attrs["strides"], sizes, strict=True)
    ):
        return None
    last = max([axis for axis, size in enumerate(shape) if sizes[axis] != size], default=0)
    return None if math.prod(shape[last:]) < run else piece_at(part, attrs["starts"], shape)


def piece_at(value: Value, starts: tuple[int, ...], shape: tuple[int, ...]) -> Piece:
    """An array that lies in another one of this shape, from ``starts`` on."""
    rank = len(shape)
    places = tuple([unit(axis, rank, 1, -start) for axis, start in enumerate(starts)])
    pairs = zip(places, value.type.static_shape, shape, strict=True)
    return Piece(value, places, None, tuple([Bound(line, size) for line, size, whole in pairs if size != whole]))
