"""How (co)tangents cross the border of a region: as a value, as a value with a mask, or not at all.

The state of a tangent says which; where two ways of a program join, so do their states. A structural zero joined with a
number is a number with a mask of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Value, literal, zeros
from srcgrad.ir.opdef import Lin, Tangent, Term, Zero, broadcast_to
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.types import BOOL, ArrayType, TapeType, element_type, stacked

ABSENT, PLAIN, SCALAR, FULL = range(4)
"""No value; a value; a value with a mask of rank 0; a value with a mask of its shape."""


class State(NamedTuple):
    """What stands for a tangent; ``clean``: where its mask is False the value is 0."""

    kind: int
    clean: bool = True


ZERO: Final = State(ABSENT)


def state_of(tangent: Tangent) -> State:
    if isinstance(tangent, Zero):
        return ZERO
    if tangent.mask is None:
        return State(PLAIN)
    return State(FULL if tangent.mask.type.shape else SCALAR, tangent.clean)


def join(one: State, other: State) -> State:
    """The state that stands for either."""
    if one == other:
        return one
    kinds = {one.kind, other.kind}
    kind = SCALAR if kinds == {ABSENT, PLAIN} else max(kinds)
    return State(kind, one.clean and other.clean)


def mask_type(type: ArrayType, state: State) -> ArrayType:
    found = type.with_dtype(BOOL)
    return found if state.kind == FULL else found.with_shape(())


def slot_types(type: ArrayType, state: State) -> list[ArrayType]:
    """The types of the values that stand for a tangent of a type."""
    if state.kind == ABSENT:
        return []
    return [type] if state.kind == PLAIN else [type, mask_type(type, state)]


def slot_params(builder: Builder, type: ArrayType, state: State, name: str | None = None) -> Tangent:
    """Parameters for a tangent."""
    values = [builder.param(slot, name if k == 0 else None) for k, slot in enumerate(slot_types(type, state))]
    return unpack(type, state, iter(values))


def unpack(type: ArrayType, state: State, values: Iterator[Value]) -> Tangent:
    """The tangent that the next values stand for."""
    if state.kind == ABSENT:
        return Zero(type)
    value = next(values)
    return Lin(value) if state.kind == PLAIN else Lin(value, next(values), state.clean)


def pack(s: Masked, tangent: Tangent, state: State) -> list[Value]:
    """The values that stand for a tangent in a state that its own one joins to."""
    if state.kind == ABSENT:
        return []
    type = tangent.type
    if state.kind == PLAIN:
        return [s.materialise(tangent)]
    mask = mask_type(type, state)
    if isinstance(tangent, Zero):
        return [zeros(type), literal(False, mask)]
    value = s.blend(tangent) if state.clean else tangent.value
    if tangent.mask is None:
        return [value, literal(True, mask)]
    return [value, widened(s, tangent.mask, mask)]


def widened(s: Masked, mask: Value, type: ArrayType) -> Value:
    """A mask in the shape of ``type``; in a tape, that of each element."""
    if mask.type.shape == type.shape:
        return mask
    if isinstance(type, TapeType):
        from srcgrad.ir.transforms.structured import map_tapes  # which is written with this module

        element = type.element
        return map_tapes(s.builder, [mask], lambda inner, found: [widened(Masked(inner), found[0], element)])[0]
    return s.masks.full(mask, type.shape)


def nothing(type: ArrayType) -> Value:
    """What changes no bit when it is added to: -0.0."""
    zero = np.zeros((), type.dtype)[()]
    return literal(zero if type.dtype.kind in "biu" else -zero, type)


# --- columns ----------------------------------------------------------------------------------------------------------


def element_state(tangent: Tangent) -> State:
    """The state of the elements of a tangent that is a column."""
    if isinstance(tangent, Zero) or tangent.mask is None:
        return state_of(tangent)
    mask, value = tangent.mask.type, tangent.value.type
    rank = len(mask.shape) if isinstance(value, TapeType) else len(mask.shape) - 1
    return State(FULL if rank > 0 else SCALAR, tangent.clean)


def pack_column(s: Masked, tangent: Tangent, trips: int | None) -> list[Value]:
    """The columns that stand for a tangent that is one."""
    if isinstance(tangent, Zero):
        return []
    if tangent.mask is None:
        return [tangent.value]
    mask = tangent.mask
    if not isinstance(tangent.value.type, TapeType) and not mask.type.shape:
        mask = broadcast_to(Term(s.builder, mask), tangent.value.type.shape[:1]).value
    return [tangent.value, mask]


def unpack_column(s: Masked, type: ArrayType, state: State, trips: int | None, values: Iterator[Value]) -> Tangent:
    """The tangent of a column, given the type and state of its elements: masks of arrays have the array's shape."""
    found = unpack(stacked(type, trips), state, values)
    if isinstance(found, Lin) and found.mask is not None and not isinstance(found.type, TapeType):
        shape = found.type.shape
        if found.mask.type.shape != shape:
            found.mask = broadcast_to(Term(s.builder, found.mask), shape, (0,)).value
    return found


def element_types(columns: Sequence[ArrayType], trips: int | None) -> list[ArrayType]:
    return [element_type(column, trips) for column in columns]
