"""Linear systems of sparse matrices, whose elements are listed: a number, a row and a column for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    LinearEmitter,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
)
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.ops.indexing import moved
from srcgrad.ir.ops.linalg import LAPACK_DTYPES, Solver
from srcgrad.ir.types import ArrayType, Size


class SparseSolve(Solver):
    """x with A x = b for stacks of sparse matrices A and b; nan where A is singular.

    The operands are the elements of A, b, and their rows and columns, which the matrices of a stack share. Elements at
    one place add up.
    """

    helpers: ClassVar[tuple[str, ...]] = ("sparse_solve",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 4)
        elements, right, rows, columns = types
        if right.dtype != elements.dtype or elements.dtype.name not in LAPACK_DTYPES:
            raise DTypeError(f"{self.name}: {elements} and {right} are not of one dtype that LAPACK has")
        if any(index.dtype.kind not in "iu" for index in (rows, columns)):
            raise DTypeError(f"{self.name}: {rows} and {columns} are not integers")
        fits = right.rank == elements.rank + 1 and right.shape[:-2] == elements.shape[:-1]
        if not fits or rows.shape != elements.shape[-1:] or columns.shape != rows.shape:
            raise ShapeError(f"{self.name}: {elements}, {right}, {rows} and {columns} do not fit")
        return right

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"sparse_solve({', '.join(operands)})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """x' = A^-1 (b' - A' x)."""
        elements, right, rows, columns = operands
        change, axis = tangents[0], right.rank - 2
        total = tangents[1]
        if not isinstance(change, Zero):
            met = REGISTRY["gather"](results[0], columns, axis=axis)
            dims = tuple(range(axis + 1))
            spread = s.apply(REGISTRY["broadcast"], [change], {"shape": met.shape, "dims": dims})
            part = s.apply(REGISTRY["mul"], [spread, met])
            moved = s.apply(REGISTRY["scatter_add"], [Zero(right.type), part, rows], {"axis": axis})
            total = s.add(total, s.neg(moved))
        return (s.apply(self, [elements, total, rows, columns]),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        elements, _, rows, columns = operands
        if isinstance(elements, Zero) or isinstance(rows, Zero) or isinstance(columns, Zero):
            return (None, None, None, None)
        return (None, s.apply(self, [elements, cotangents[0], columns, rows]), None, None)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        if batched[2] or batched[3]:
            return self.side_by_side(batch_all(size, operands, batched))
        if not batched[0]:
            return super().batch(size, operands, batched, attrs)
        return self(*batch_all(size, operands[:2], batched[:2]), *operands[2:])

    def side_by_side(self, operands: Sequence[Term]) -> Term:
        """Examples with their elements at different places, as the blocks of one matrix."""
        elements, right, *places = operands
        examples, *stack, height, width = right.type.static_shape
        count = examples * places[0].type.static_shape[-1]
        rank, reshape = right.rank, REGISTRY["reshape"]
        shift = iota(right.builder, places[0].type, 0) * height
        places = [reshape(place + shift, shape=(count,)) for place in places]
        elements, columns = moved(elements, 0, rank - 3), moved(right, 0, rank - 3)
        joined = reshape(elements, shape=(*stack, count))
        merged = reshape(columns, shape=(*stack, examples * height, width))
        return moved(reshape(self(joined, merged, *places), shape=columns.shape), rank - 3, 0)

    def samples(self) -> Iterator[Sample]:
        rows, columns = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 1, 0, 2, 2])
        elements = np.array([2.0, -0.5, 1.5, 1.0, 3.0, 0.25])
        right = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]])
        yield Sample((elements, right, rows, columns), label="matrix")
        stack = np.stack([elements, 2.0 - 0.3 * elements])
        yield Sample((stack, np.stack([right, right - 1.0]), rows, columns), label="stack")
        yield Sample((elements.astype(np.float32), right.astype(np.float32), rows, columns), label="float32")
        yield Sample((elements * (1 + 0.5j), right * (1 - 2j), rows, columns), label="complex")
        none = np.zeros(0, np.int64)
        yield Sample((np.zeros(0), np.zeros((0, 2)), none, none), label="empty")
        yield Sample((elements[:3], right, rows[:3], columns[:3]), smooth=False, label="singular")
