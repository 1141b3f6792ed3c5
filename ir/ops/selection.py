"""Selection: elements by their ranks, and arrays divided at the element of a rank; real numbers only.

What they give is a part of what a stable sort gives, or an order that it fixes, and takes the time of a few passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    LinearEmitter,
    NonDifferentiable,
    Op,
    Sample,
    Tangent,
    Term,
    require_arity,
)
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import INT64, ArrayType, Size


class Selection(Op, abstract=True):
    """An op along ``axis`` by ranks, which count from 0 in the order of a stable sort."""

    def require(self, types: Sequence[ArrayType], attrs: Attrs, ranks: Sequence[int]) -> ArrayType:
        require_arity(self, types, 1)
        array, axis = types[0], attrs["axis"]
        require_axes(self.name, array, (axis,))
        if array.dtype.kind == "c":
            raise DTypeError(f"{self.name} takes real numbers, not {array}")
        size = array.shape[axis]
        if not isinstance(size, int) or not all(0 <= rank < size for rank in ranks):
            raise ShapeError(f"{self.name}: axis {axis} of {array} has no elements of ranks {list(ranks)}")
        return array

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **{**attrs, "axis": attrs["axis"] + 1})

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        order = REGISTRY[POSITIONS[self.name]](operands[0], **attrs)
        return (s.apply(REGISTRY["take_along_axis"], [tangents[0], order], {"axis": attrs["axis"]}),)


def sampled(attrs: Sequence[Attrs], tied: Attrs) -> Iterator[Sample]:
    """``tied``: the attributes for rows of five."""
    values = np.array([[1.5, -2.0, 0.5, 2.5], [3.0, 0.25, -1.0, -3.0]])
    for given in attrs:
        yield Sample((values,), given)
    yield Sample((values.astype(np.float32),), attrs[-1], label="float32")
    yield Sample((np.array([1.0, 0.0, 1.0, -0.0, 0.0]),), tied, smooth=False, label="ties")
    yield Sample((np.array([np.nan, np.inf, 1.0, -np.inf, np.nan]),), tied, smooth=False, label="nan")
    yield Sample((np.array([3, 1, 2, 1, 5]),), tied, label="integers")


# --- by ranks -----------------------------------------------------------------------------------------------------


class ByRanks(Selection, abstract=True):
    """One element for each of ``ranks``, which increase."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        ranks, axis = attrs["ranks"], attrs["axis"]
        array = self.require(types, attrs, ranks)
        if any(low >= high for low, high in pairwise(ranks)):
            raise ShapeError(f"{self.name}: the ranks {list(ranks)} do not increase")
        return array.with_shape((*array.shape[:axis], len(ranks), *array.shape[axis + 1 :]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        axis = attrs["axis"]
        ordered = f'{self.meaning}({operands[0]}, axis={axis}, kind="stable")'
        return f"np.take({ordered}, {list(attrs['ranks'])}, axis={axis})"

    def samples(self) -> Iterator[Sample]:
        yield from sampled(
            [{"axis": 0, "ranks": (1,)}, {"axis": 1, "ranks": (1, 2)}, {"axis": 1, "ranks": (0, 3)}],
            {"axis": 0, "ranks": (0, 2, 3)},
        )
        yield Sample((np.zeros((0, 2)),), {"axis": 1, "ranks": (0,)}, label="empty")


class OrderStatistics(ByRanks):
    """The elements of these ranks along ``axis``, nan last; of equal elements, and in tangents, as in a stable sort."""

    meaning = "np.sort"


class OrderPositions(NonDifferentiable, ByRanks):
    """The positions of the elements of these ranks along ``axis``, int64, as in a stable sort."""

    meaning = "np.argsort"
    jvp = NonDifferentiable.jvp

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return super().result_type(types, attrs).with_dtype(INT64)


# --- partitions -----------------------------------------------------------------------------------------------------


class Division(Selection, abstract=True):
    """What is less than the element of rank ``kth``, what equals it, and what is greater: each in its order."""

    helpers: ClassVar[tuple[str, ...]] = ("argpartition",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return self.require(types, attrs, (attrs["kth"],))

    def samples(self) -> Iterator[Sample]:
        yield from sampled([{"axis": 0, "kth": 1}, {"axis": 1, "kth": 0}, {"axis": 1, "kth": 2}], {"axis": 0, "kth": 2})
        yield Sample((np.zeros((0, 2)),), {"axis": 1, "kth": 0}, label="empty")


class Partition(Division):
    """The elements along ``axis``: less than the one of rank ``kth``, equal, greater, nan last; each in its order."""

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        x, axis = operands[0], attrs["axis"]
        return f"np.take_along_axis({x}, argpartition({x}, {attrs['kth']}, {axis}), axis={axis})"


class Argpartition(NonDifferentiable, Division):
    """The positions of the elements along ``axis`` as ``partition`` has them, int64."""

    jvp = NonDifferentiable.jvp

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return super().result_type(types, attrs).with_dtype(INT64)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"argpartition({operands[0]}, {attrs['kth']}, {attrs['axis']})"


POSITIONS = {"order_statistics": "order_positions", "partition": "argpartition"}
"""Where the elements come from that an op gives."""
