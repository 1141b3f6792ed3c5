"""Products over axes and cumulative products, with derivatives that are right where elements are zero.

The derivative of a product is not the product divided by the element: it is the derivative of a tree of
multiplications, which has as many levels as the logarithm of the number of elements; of cumulative products it is a
linear recurrence. Nothing is divided, at any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.opdef import REGISTRY, LinearEmitter, Op, Sample, Tangent, Term, Zero, require_arity, require_kinds
from srcgrad.ir.ops.recurrences import cut, from_second
from srcgrad.ir.ops.reductions import Reduction, axis_argument, exact_dtype
from srcgrad.ir.ops.shapes import require_axes
from srcgrad.ir.types import ArrayType, Size

Pair = tuple[Term, Tangent]


class PairAlgebra:
    """Slices, joins and products along ``axis`` of terms with their tangents."""

    def __init__(self, s: LinearEmitter, axis: int) -> None:
        self.s = s
        self.axis = axis

    def cut(self, pair: Pair, start: int, limit: int) -> Pair:
        term, tangent = pair
        shape, axis = term.type.static_shape, self.axis
        attrs = {
            "starts": tuple(start if k == axis else 0 for k in range(len(shape))),
            "limits": tuple(limit if k == axis else size for k, size in enumerate(shape)),
            "strides": (1,) * len(shape),
        }
        return self.same(REGISTRY["slice"], [(term, tangent)], attrs)

    def join(self, *pairs: Pair) -> Pair:
        return self.same(REGISTRY["concatenate"], pairs, {"axis": self.axis})

    def same(self, op: Op, pairs: Sequence[Pair], attrs: Attrs) -> Pair:
        """A linear op on the terms, and on the tangents."""
        return op(*(term for term, _ in pairs), **attrs), self.s.apply(op, [tangent for _, tangent in pairs], attrs)

    def multiply(self, left: Pair, right: Pair) -> Pair:
        (x, tx), (y, ty) = left, right
        return x * y, self.s.add(self.s.scale(tx, y), self.s.scale(ty, x))


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
        """Multiply the first half of each axis by the second until one element is left."""
        pair: Pair = (operands[0], tangents[0])
        if operands[0].type.size == 0:
            return (Zero(results[0].type),)
        for axis in attrs["axes"]:
            algebra = PairAlgebra(s, axis)
            while (size := pair[0].type.static_shape[axis]) > 1:
                half = size // 2
                rest = algebra.cut(pair, 2 * half, size) if size % 2 else None
                pair = algebra.multiply(algebra.cut(pair, 0, half), algebra.cut(pair, half, 2 * half))
                pair = pair if rest is None else algebra.join(pair, rest)
        tangent = pair[1]
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
        """Of y[k] = x[k] y[k - 1] it is dx[k] y[k - 1] + x[k] dy[k - 1]."""
        axis, y = attrs["axis"], results[0]
        if y.type.static_shape[axis] < 2:
            return (tangents[0],)
        before = REGISTRY["slice"](y, **cut(y, axis, 0, y.type.static_shape[axis] - 1))
        own = from_second(s, tangents[0], before, axis)
        return (s.apply(REGISTRY["linear_recurrence"], [own, operands[0]], {"axis": axis, "reverse": False}),)

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
