"""Sorting, and taking and adding elements along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    LinearOperand,
    NonDifferentiable,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
)
from srcgrad.ir.ops.shapes import require_axes, without_axes
from srcgrad.ir.types import INT64, ArrayType, Size

PERMUTATIONS = ("argsort", "argpartition")
"""Ops that give each position along an axis once."""


class AlongAxis(Op, abstract=True):
    """An op along ``axis`` that keeps the shape."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_axes(self.name, types[0], (attrs["axis"],))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f'{self.meaning}({operands[0]}, axis={attrs["axis"]}, kind="stable")'

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5, 2.5], [3.0, 0.25, -1.0, -3.0]])
        for axis in (0, 1):
            yield Sample((values,), {"axis": axis})
        yield Sample((values.astype(np.float32),), {"axis": 1}, label="float32")
        yield Sample((values * (1 - 2j),), {"axis": 1}, label="complex")
        yield Sample((np.array([1.0, 0.0, 1.0, -0.0, 0.0]),), {"axis": 0}, smooth=False, label="ties")
        yield Sample((np.array([np.nan, np.inf, 1.0, -np.inf, np.nan]),), {"axis": 0}, smooth=False, label="nan")
        yield Sample((np.zeros((0, 2)),), {"axis": 0}, label="empty")
        yield Sample((np.array([3, 1, 2, 1]),), {"axis": 0}, label="integers")


class Sort(AlongAxis):
    """The elements along ``axis`` in increasing order, nan last; equal elements and their tangents keep their order."""

    meaning = "np.sort"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        order = REGISTRY["argsort"](operands[0], axis=attrs["axis"])
        return (s.apply(REGISTRY["take_along_axis"], [tangents[0], order], {"axis": attrs["axis"]}),)


class Argsort(NonDifferentiable, AlongAxis):
    """The positions of the elements along ``axis`` in increasing order, int64; equal elements keep their order."""

    meaning = "np.argsort"
    jvp = NonDifferentiable.jvp

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return super().result_type(types, attrs).with_dtype(INT64)


def require_indices(name: str, array: ArrayType, indices: ArrayType, axis: int) -> None:
    """Indices are int64 of the array's shape, but for ``axis``."""
    require_axes(name, array, (axis,))
    if indices.dtype != INT64:
        raise DTypeError(f"{name}: the indices are {indices}, not int64")
    same_rank = indices.rank == array.rank
    if not same_rank or without_axes(indices.shape, (axis,)) != without_axes(array.shape, (axis,)):
        raise ShapeError(f"{name}: {array} and the indices {indices} differ beside axis {axis}")


class TakeAlongAxis(Linear):
    """``result[…, k, …] = operand[…, indices[…, k, …], …]`` along ``axis``; negative indices count from the end."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_indices(self.name, types[0], types[1], attrs["axis"])
        return types[0].with_shape(types[1].shape)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.take_along_axis({operands[0]}, {operands[1]}, axis={attrs['axis']})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        axis, indices = attrs["axis"], operands[1]
        if isinstance(indices, Zero):
            return (None, None)
        add_attrs = {"axis": axis, "size": operands[0].type.shape[axis]}
        return (s.apply(REGISTRY["add_along_axis"], [cotangents[0], indices], add_attrs), None)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.arange(6.0).reshape(3, 2)
        indices = np.array([[2, 0], [2, 1], [0, 0], [-1, -3]])
        yield Sample((values, indices), {"axis": 0}, label="duplicates")
        yield Sample((values, np.array([[1], [0], [1]])), {"axis": 1}, label="one of each row")
        yield Sample((values.astype(np.float32), indices), {"axis": 0}, label="float32")
        yield Sample((values * (1 - 2j), indices), {"axis": 0}, label="complex")
        yield Sample((values, indices[:0]), {"axis": 0}, label="empty")


class AddAlongAxis(Linear):
    """Zeros of length ``size`` along ``axis``, to which the updates are added at the indices; of booleans, disjunction.

    The operands are the updates and the indices, of one shape. It is the transpose of ``take_along_axis``.
    """

    masking = "mix"
    helpers: ClassVar[tuple[str, ...]] = ("add_along_axis",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        updates, indices, axis = types[0], types[1], attrs["axis"]
        require_indices(self.name, updates, indices, axis)
        if updates.shape != indices.shape:
            raise ShapeError(f"{self.name}: the updates {updates} and the indices {indices} differ")
        return updates.with_shape((*updates.shape[:axis], attrs["size"], *updates.shape[axis + 1 :]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"add_along_axis({operands[0]}, {operands[1]}, {attrs['axis']}, {attrs['size']})"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        indices = operands[1]
        if isinstance(indices, Zero):
            return (None, None)
        return (s.apply(REGISTRY["take_along_axis"], [cotangents[0], indices], {"axis": attrs["axis"]}), None)

    def leaves_zeros(self, operands: Sequence[LinearOperand], attrs: Attrs) -> bool:
        """Not those of a permutation, as in the derivative of ``sort``."""
        order = operands[1].value.producer if isinstance(operands[1], Term) else None
        return order is None or order.op.name not in PERMUTATIONS or order.attrs["axis"] != attrs["axis"]

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return self(operands[0], operands[1], **attrs)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), axis=attrs["axis"] + 1, size=attrs["size"])

    def samples(self) -> Iterator[Sample]:
        updates = np.arange(8.0).reshape(4, 2) - 2.5
        indices = np.array([[2, 0], [2, 1], [0, 0], [-1, -3]])
        yield Sample((updates, indices), {"axis": 0, "size": 3}, label="duplicates")
        yield Sample((updates, indices[::-1] % 2), {"axis": 1, "size": 2}, label="last axis")
        yield Sample((updates[:, 0], indices[:, 0]), {"axis": 0, "size": 3}, label="vector")
        yield Sample((updates.astype(np.float32), indices), {"axis": 0, "size": 3}, label="float32")
        yield Sample((updates * (1 - 2j), indices), {"axis": 0, "size": 3}, label="complex")
        yield Sample((updates > 0, indices), {"axis": 0, "size": 4}, label="booleans")
        yield Sample((updates[:0], indices[:0]), {"axis": 0, "size": 3}, label="empty")
