"""What slopes at kinks are marked with: numbers in a derivative, whose products `ir/passes/kinks.py` knows.

Each has an attribute ``order``, by which the slopes of different differentiations are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import ShapeError
from srcgrad.ir.opdef import (
    Elementwise,
    LinearEmitter,
    NonDifferentiable,
    Sample,
    Tangent,
    Term,
    batch_all,
    require_arity,
    require_kinds,
)
from srcgrad.ir.types import FLOAT64, ArrayType, Size


class SlopeOfAbs(NonDifferentiable, Elementwise):
    """The sign as the derivative of abs."""

    meaning = "np.sign"
    kinds = "f"
    jvp = NonDifferentiable.jvp

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            yield replace(sample, attrs={"order": 0})


class SlopeOfNorm(Elementwise):
    """The first operand, the derivative of the norm that is the second: 0 where it is 0.

    ``part``: which operand of the norm, if it has several.
    """

    arity = 2
    kinds = "f"

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return operands[0]

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (tangents[0],)

    def samples(self) -> Iterator[Sample]:
        for sample in super().samples():
            yield replace(sample, attrs={"order": 0, "part": 0})


class ShareOfTie(NonDifferentiable):
    """1/2, of ``dtype``: what one of two that tie has in the derivative. The operands say where it is beyond the other,
    and where the other is; ``side`` is 1 if it has all of the derivative in the first case, else -1.
    """

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        for type in types:
            require_kinds(self, type, "b")
        if types[0] != types[1]:
            raise ShapeError(f"{self.name}: operands differ, {types[0]} and {types[1]}")
        return types[0].with_dtype(attrs["dtype"])

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        number = f"np.{result.dtype.name}(0.5)"
        return f"np.full({result.static_shape}, {number})" if result.rank else number

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        attrs = {"order": 0, "side": 1, "dtype": FLOAT64}
        yield Sample((np.array([True, False]), np.array([False, False])), attrs)
        yield Sample((np.array(False), np.array(False)), attrs, label="0-d")
