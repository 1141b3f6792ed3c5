"""Values that are pieces of arrays, which loops read where these are: concatenations, and arrays written into zeros.

Written as arrays of their own, they cost two passes each: one that sets them together, and one that reads them. Read
within bounds they cost a mask for each of these. So a few long pieces are read so, and many or short ones copied.
"""

from __future__ import annotations

import math
from typing import Final

from srcgrad.backends.llvm.indices import Bound, Piece, View, unit
from srcgrad.backends.llvm.kinds import is_loop_type, is_zero
from srcgrad.ir.core import Literal, Operation, Value

PIECED: Final = frozenset({"concatenate", "slice_set"})
FEW: Final = 4
"""The pieces of a concatenation up to which all are read at each point."""
RUN: Final = 32
"""The elements from which rows that have several pieces are loops of their own."""


def pieces_of(operation: Operation) -> View | None:
    """What an operation shows, if it is that and no more."""
    type = operation.results[0].type
    if not is_loop_type(type) or not type.size:
        return None
    return joined(operation) if operation.op.name == "concatenate" else padded(operation)


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
    whole, part = operation.operands
    attrs, shape = operation.attrs, operation.results[0].type.static_shape
    if not isinstance(whole, Literal) or not is_zero(whole) or not part.type.size:
        return None
    sizes = part.type.static_shape
    if any(stride != 1 and size > 1 for stride, size in zip(attrs["strides"], sizes, strict=True)):
        return None
    last = max([axis for axis, size in enumerate(shape) if sizes[axis] != size], default=0)
    if math.prod(shape[last:]) < RUN:
        return None
    return View((piece_at(part, attrs["starts"], shape),), (part,), padded=True)


def piece_at(value: Value, starts: tuple[int, ...], shape: tuple[int, ...]) -> Piece:
    """An array that lies in another one of this shape, from ``starts`` on."""
    rank = len(shape)
    places = tuple([unit(axis, rank, 1, -start) for axis, start in enumerate(starts)])
    pairs = zip(places, value.type.static_shape, shape, strict=True)
    return Piece(value, places, None, tuple([Bound(line, size) for line, size, whole in pairs if size != whole]))
