"""Products over axes and cumulative products, with derivatives that are right where elements are zero.

The derivative of a product is not the product divided by the element: it is that of the running product, a linear
recurrence. Nothing is divided, at any order, and nothing is multiplied but what is a product of neighbours: in pairs of
distant ones, 1e-200 and 1e200 in turns would vanish and overflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, Op, Sample, Tangent, Term, Zero, require_arity, require_kinds
from srcgrad.ir.ops.recurrences import cut, running_product
from srcgrad.ir.ops.reductions import Reduction, axis_argument, exact_dtype
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import ArrayType, Size


class ReduceProd(Reduction):
    """The product over ``axes``."""

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.prod({operands[0]}{axis_argument(types[0], attrs['axes'])}{exact_dtype(types[0])})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """Axis by axis, in the order of NumPy's product, that of the running product, at its end."""
        term, tangent = operands[0], tangents[0]
        if term.type.size == 0:
            return (Zero(results[0].type),)
        for axis in reversed(attrs["axes"]):
            size = term.type.static_shape[axis]
            if size > 1:
                running = REGISTRY["cumprod"](term, axis=axis)
                tangent = running_product(s, term, running, tangent, axis)
                end = cut(running, axis, size - 1, size)
                term, tangent = REGISTRY["slice"](running, **end), s.apply(REGISTRY["slice"], [tangent], end)
        if tangent.type.shape != results[0].shape:
            tangent = s.apply(REGISTRY["reshape"], [tangent], {"shape": results[0].shape})
        return (tangent,)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        for zeros in ((), (1,), (0, 3), (0, 1, 2)):
            values = np.array([1.5, -2.0, 0.5, 3.0, 0.25])
            values[list(zeros)] = 0.0
            yield Sample((values,), {"axes": (0,)}, label=f"{len(zeros)} zeros")
        yield Sample((np.zeros((0, 2)),), {"axes": (0,)}, label="empty")
        yield Sample((np.array(1.5),), {"axes": ()}, label="0-d")
        yield Sample((np.array([100, 100], np.int8),), {"axes": (0,)}, label="small integers")


class Cumprod(Op):
    """The cumulative product along ``axis``."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        require_axes(self.name, types[0], (attrs["axis"],))
        require_kinds(self, types[0], "iufc")
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.cumprod({operands[0]}, axis={attrs['axis']}{exact_dtype(types[0])})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (running_product(s, operands[0], results[0], tangents[0], attrs["axis"]),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], axis=attrs["axis"] + 1)

    def samples(self) -> Iterator[Sample]:
        values = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]])
        for axis in (0, 1):
            yield Sample((values,), {"axis": axis})
        yield Sample((values.astype(np.float32),), {"axis": 1}, label="float32")
        yield Sample((values * (1 - 2j),), {"axis": 1}, label="complex")
        yield Sample((np.array([1.5, 0.0, 2.0, 0.0, -3.0]),), {"axis": 0}, label="zeros")
        yield Sample((np.zeros((0, 2)),), {"axis": 0}, label="empty")
        yield Sample((np.array([100, 100], np.int8),), {"axis": 0}, label="small integers")
