"""Products of arrays summed over shared axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import AxisError, DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    Sample,
    Tangent,
    Term,
    Zero,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.indexing import moved, ramp
from srcgrad.ir.types import BOOL, ArrayType, Size

Axes = tuple[int, ...]


class Side(NamedTuple):
    """The axes of one operand: batched, summed over, and free."""

    batch: Axes
    contract: Axes
    free: Axes


def side(rank: int, batch: Axes, contract: Axes) -> Side:
    return Side(batch, contract, tuple(axis for axis in range(rank) if axis not in batch and axis not in contract))


def sides(left: int, right: int, attrs: Attrs) -> tuple[Side, Side]:
    """The axes of the operands, whose ranks are given."""
    batch, contract = attrs["batch"], attrs["contract"]
    return side(left, batch[0], contract[0]), side(right, batch[1], contract[1])


def shifted(axes: Axes) -> Axes:
    """Axes of an operand that gets a leading axis."""
    return tuple(axis + 1 for axis in axes)


class DotGeneral(Linear):
    """The sum of products over the axes ``contract``, for each index of the axes ``batch``.

    Both attributes hold the axes of the left operand, then those of the right one, in pairs. The axes of the result are
    the batched ones, the left operand's other axes, the right operand's other axes. Linear in each operand; complex
    operands are not conjugated; of booleans, the disjunction of conjunctions. Structural zeros are kept from result to
    result; within one sum, a structural zero times an inf or nan of the other operand is nan.
    """

    linear = (0, 1)
    separate = True
    masking = "mix"
    keeps_zero = False

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        left, right = types
        if left.dtype != right.dtype:
            raise DTypeError(f"dot_general: operands differ, {left} and {right}")
        for name in ("batch", "contract"):
            pairs = attrs[name]
            if len(pairs[0]) != len(pairs[1]):
                raise AxisError(f"dot_general: the {name} axes {pairs} are not pairs")
        for type, batch, contract in zip(types, attrs["batch"], attrs["contract"], strict=True):
            axes = (*batch, *contract)
            if len(set(axes)) < len(axes) or any(not 0 <= axis < type.rank for axis in axes):
                raise AxisError(f"dot_general: axes {axes} do not fit {type}")
        for name in ("batch", "contract"):
            for i, j in zip(*attrs[name], strict=True):
                if left.shape[i] != right.shape[j]:
                    raise ShapeError(f"dot_general: axis {i} of {left} and axis {j} of {right} differ")
        lhs, rhs = sides(left.rank, right.rank, attrs)
        shape = [left.shape[axis] for axis in lhs.batch + lhs.free] + [right.shape[axis] for axis in rhs.free]
        return left.with_shape(shape)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        lhs, rhs = sides(types[0].rank, types[1].rank, attrs)
        if not lhs.batch:
            return plain_text(operands, types, lhs, rhs)
        standard = tuple(range(len(lhs.batch)))
        simple = len(lhs.contract) == 1 and lhs.batch == rhs.batch == standard
        if simple and len(lhs.free) <= 1 and len(rhs.free) <= 1 and (lhs.free or rhs.free):
            return matmul_text(operands, lhs, rhs)
        return einsum_text(operands, types, lhs, rhs)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """Any over the contracted axes of the operand that is a mask, repeated along the other's free axes."""
        left, right = operands
        lhs, rhs = sides(left.rank, right.rank, attrs)
        which = 0 if left.dtype == BOOL else 1
        mask, own = (left, lhs) if which == 0 else (right, rhs)
        kept = tuple(axis for axis in range(mask.rank) if axis not in own.contract)
        if own.contract:
            mask = REGISTRY["reduce_or"](mask, axes=tuple(sorted(own.contract)))
        order = tuple(kept.index(axis) for axis in own.batch + own.free)
        mask = permuted(mask, order)
        count = len(lhs.batch)
        first = count if which == 0 else count + len(lhs.free)
        shape = self.result_type([ArrayType(BOOL, left.shape), ArrayType(BOOL, right.shape)], attrs).shape
        return broadcast_to(mask, shape, (*range(count), *range(first, first + len(own.free))))

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        left, right = operands
        lhs, rhs = sides(left.type.rank, right.type.rank, attrs)
        count = len(lhs.batch)
        leading, middle = tuple(range(count)), tuple(range(count, count + len(lhs.free)))
        if isinstance(right, Term):
            free = tuple(range(count + len(lhs.free), cotangents[0].type.rank))
            found = s.apply(self, [cotangents[0], right], {"contract": (free, rhs.free), "batch": (leading, rhs.batch)})
            paired = sorted(zip(rhs.contract, lhs.contract, strict=True))
            return (self.ordered(s, found, lhs.batch + lhs.free + tuple(axis for _, axis in paired)), None)
        if isinstance(left, Term):
            found = s.apply(
                self, [left, cotangents[0]], {"contract": (lhs.free, middle), "batch": (lhs.batch, leading)}
            )
            paired = sorted(zip(lhs.contract, rhs.contract, strict=True))
            return (None, self.ordered(s, found, rhs.batch + tuple(axis for _, axis in paired) + rhs.free))
        return (None, None)

    def ordered(self, s: LinearEmitter, tangent: Tangent, axes: Axes) -> Tangent:
        """The tangent with its k-th axis moved to ``axes[k]``."""
        if axes == tuple(range(len(axes))):
            return tangent
        perm = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        return s.apply(REGISTRY["transpose"], [tangent], {"perm": perm})

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        (left_batch, right_batch), (left_contract, right_contract) = attrs["batch"], attrs["contract"]
        if batched[0]:
            left_batch, left_contract = shifted(left_batch), shifted(left_contract)
        if batched[1]:
            right_batch, right_contract = shifted(right_batch), shifted(right_contract)
        contract = (left_contract, right_contract)
        if all(batched):
            return self(*operands, contract=contract, batch=((0, *left_batch), (0, *right_batch)))
        found = self(*operands, contract=contract, batch=(left_batch, right_batch))
        lhs, _ = sides(operands[0].rank, operands[1].rank, {"contract": contract, "batch": (left_batch, right_batch)})
        return moved(found, len(lhs.batch) + (0 if batched[0] else len(lhs.free)), 0)

    def samples(self) -> Iterator[Sample]:
        for left, right, contract, batch in SAMPLES:
            attrs = {"contract": contract, "batch": batch}
            yield Sample((ramp(left) / 4, 1 - ramp(right) / 2), attrs, label="float64")
        left, right, contract, batch = SAMPLES[0]
        for dtype in (np.float32, np.complex128, np.int32, np.bool_):
            attrs = {"contract": contract, "batch": batch}
            yield Sample((ramp(left, dtype), ramp(right, dtype)), attrs, label=np.dtype(dtype).name)
        attrs = {"contract": ((1,), (1,)), "batch": ((0,), (0,))}
        special = np.array([[np.inf], [2.0], [np.nan]]), np.array([[1.0], [-np.inf], [0.0]])
        yield Sample(special, attrs, smooth=False, label="infinite")


def permuted(term: Term, perm: Axes) -> Term:
    return term if perm == tuple(range(term.rank)) else REGISTRY["transpose"](term, perm=perm)


def plain_text(operands: Sequence[str], types: Sequence[ArrayType], lhs: Side, rhs: Side) -> str:
    """Without batched axes: ``a @ b`` for vectors and matrices, else a tensor product."""
    left, right = operands
    if not lhs.contract:
        scalar = not types[0].rank or not types[1].rank
        return f"{left} * {right}" if scalar else f"np.multiply.outer({left}, {right})"
    if len(lhs.contract) == 1 and types[0].rank <= 2 and types[1].rank <= 2:
        left = left if lhs.contract == (types[0].rank - 1,) else f"{left}.T"
        right = right if rhs.contract == (0,) else f"{right}.T"
        return f"{left} @ {right}"
    return f"np.tensordot({left}, {right}, axes=({lhs.contract}, {rhs.contract}))"


def matmul_text(operands: Sequence[str], lhs: Side, rhs: Side) -> str:
    """Products of stacked matrices, or of stacked matrices and vectors."""
    left, right = operands
    if not lhs.free:
        right = right if rhs.contract < rhs.free else f"{right}.mT"
        return f"({left}[..., None, :] @ {right})[..., 0, :]"
    left = left if lhs.contract > lhs.free else f"{left}.mT"
    if not rhs.free:
        return f"({left} @ {right}[..., None])[..., 0]"
    right = right if rhs.contract < rhs.free else f"{right}.mT"
    return f"{left} @ {right}"


def einsum_text(operands: Sequence[str], types: Sequence[ArrayType], lhs: Side, rhs: Side) -> str:
    letters = ascii_lowercase[: types[0].rank + len(rhs.free)]
    left = letters[: types[0].rank]
    right = [""] * types[1].rank
    for own, other in zip(rhs.batch + rhs.contract, lhs.batch + lhs.contract, strict=True):
        right[own] = left[other]
    for axis, letter in zip(rhs.free, letters[types[0].rank :], strict=True):
        right[axis] = letter
    result = [left[axis] for axis in lhs.batch + lhs.free] + [right[axis] for axis in rhs.free]
    return f'np.einsum("{left},{"".join(right)}->{"".join(result)}", {operands[0]}, {operands[1]})'


SAMPLES: list[tuple[Axes, Axes, tuple[Axes, Axes], tuple[Axes, Axes]]] = [
    ((2, 3), (3, 2), ((1,), (0,)), ((), ())),
    ((2, 3), (2, 3), ((1,), (1,)), ((), ())),
    ((3, 2), (3, 2), ((0,), (0,)), ((), ())),
    ((3, 2), (2, 3), ((0,), (1,)), ((), ())),
    ((3,), (3,), ((0,), (0,)), ((), ())),
    ((2, 3), (3,), ((1,), (0,)), ((), ())),
    ((3,), (2, 3), ((0,), (1,)), ((), ())),
    ((2,), (3,), ((), ()), ((), ())),
    ((), (3,), ((), ()), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((2, 3, 2), (2, 2, 3), ((2, 1), (0, 2)), ((), ())),
    ((2, 3, 2), (2, 2, 3), ((1, 2), (2, 1)), ((), ())),
    ((2, 2, 3), (3, 2), ((2,), (0,)), ((), ())),
    ((2, 2, 3), (2, 3, 2), ((2,), (1,)), ((0,), (0,))),
    ((2, 3, 2), (2, 2, 3), ((1,), (2,)), ((0,), (0,))),
    ((2, 2, 3), (2, 3), ((2,), (1,)), ((0,), (0,))),
    ((2, 3), (2, 3, 2), ((1,), (1,)), ((0,), (0,))),
    ((2, 3), (2, 2, 3), ((1,), (2,)), ((0,), (0,))),
    ((2, 3), (2, 3), ((1,), (1,)), ((0,), (0,))),
    ((3, 2), (2, 2, 3), ((0,), (2,)), ((1,), (0,))),
    ((2, 3), (2, 2), ((), ()), ((0,), (1,))),
    ((2, 0), (0, 2), ((1,), (0,)), ((), ())),
    ((0, 2), (2, 2), ((1,), (0,)), ((), ())),
]
"""Shapes of the operands, then the attributes ``contract`` and ``batch``."""
