"""Binary search in sorted arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import NonDifferentiable, Sample, Term, batch_all, require_arity, require_kinds
from srcgrad.ir.types import INT64, ArrayType, Size


class Searchsorted(NonDifferentiable):
    """Where each value belongs in the sorted nodes, int64: before equal nodes for side "left", else after them.

    The operands are the nodes, sorted along their last axis, and the values. Axes of the nodes before the last one are
    the values' first axes: each example is searched in its own nodes. nan sorts last.
    """

    helpers: ClassVar[tuple[str, ...]] = ("searchsorted",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        nodes, values = types
        require_kinds(self, nodes, "biufc")
        if nodes.dtype != values.dtype:
            raise DTypeError(f"searchsorted: the nodes {nodes} and the values {values} differ in dtype")
        examples = nodes.rank - 1
        if examples < 0 or values.shape[:examples] != nodes.shape[:examples]:
            raise ShapeError(f"searchsorted: the values {values} do not fit the nodes {nodes}")
        return ArrayType(INT64, values.shape)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        side = "" if attrs["side"] == "left" else f', "{attrs["side"]}"'
        function = "np.searchsorted" if types[0].rank == 1 else "searchsorted"
        return f"{function}({operands[0]}, {operands[1]}{side})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        nodes, values = operands
        if not batched[0] and nodes.rank == 1:
            return self(nodes, values, **attrs)
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        nodes = np.array([-1.0, 0.5, 0.5, 2.0, np.inf, np.nan])
        values = np.array([[0.5, -2.0, 2.0], [np.nan, np.inf, 7.0]])
        for side in ("left", "right"):
            yield Sample((nodes, values), {"side": side}, smooth=False, label=side)
            yield Sample((nodes[:4], np.array(0.5)), {"side": side}, smooth=False, label="0-d")
            stacked = np.array([[1.0, 2.0], [0.0, 3.0]])
            yield Sample((stacked, stacked[:, :1] + 0.5), {"side": side}, smooth=False, label="examples")
        yield Sample((np.array([1, 3, 3, 7]), np.array([3, 0, 9])), {"side": "left"}, label="integers")
        yield Sample((nodes[:2].astype(np.float32), np.zeros(2, np.float32)), {"side": "left"}, label="float32")
        yield Sample((np.array([1j, 1 + 0j]), np.array([1 - 1j])), {"side": "left"}, smooth=False, label="complex")
        yield Sample((nodes[:0], values), {"side": "right"}, smooth=False, label="no nodes")
        yield Sample((nodes, values[:0]), {"side": "right"}, label="empty")
