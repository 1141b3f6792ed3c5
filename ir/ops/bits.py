"""Integers bit by bit, their common divisors, and floating numbers by their exponents.

Shifts by the width of the type or more shift everything out, and so do negative ones, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    Elementwise,
    LinearEmitter,
    NonDifferentiable,
    Operand,
    Sample,
    Tangent,
    Term,
    Zero,
    require_arity,
    require_kinds,
)
from srcgrad.ir.ops.arithmetic import LinearElementwise
from srcgrad.ir.types import ArrayType


class IntegerOp(NonDifferentiable, Elementwise, abstract=True):
    """An operation on integers of one type."""

    arity = 2
    kinds = "iu"
    jvp = NonDifferentiable.jvp

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        left, right = np.array([[250, 1, 12], [7, 0, 255]], np.uint8), np.array([[3, 9, 8], [2, 5, 1]], np.uint8)
        yield Sample((left, right)[: self.arity], smooth=False, label="unsigned")
        yield Sample((np.int32(-12), np.int32(3))[: self.arity], smooth=False, label="0-d")


class BitwiseAnd(IntegerOp):
    """The bits that both operands have; negative numbers are in two's complement."""

    meaning = "{0} & {1}"
    commutes = "iu"


class BitwiseOr(IntegerOp):
    """The bits that either operand has."""

    meaning = "{0} | {1}"
    commutes = "iu"


class BitwiseXor(IntegerOp):
    """The bits that one operand alone has."""

    meaning = "{0} ^ {1}"
    commutes = "iu"


class BitwiseNot(IntegerOp):
    """The bits that the operand has not: -x - 1 in two's complement."""

    meaning = "~{0}"
    arity = 1


class LeftShift(IntegerOp):
    """The bits moved to the left: x * 2**n."""

    meaning = "{0} << {1}"


class RightShift(IntegerOp):
    """The bits moved to the right: x / 2**n, rounded down."""

    meaning = "{0} >> {1}"


class BitwiseCount(IntegerOp):
    """How many bits of the absolute value are set, as uint8."""

    meaning = "np.bitwise_count"
    arity = 1

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return super().result_type(types, attrs).with_dtype(np.dtype(np.uint8))


class Gcd(IntegerOp):
    """The greatest common divisor; of 0 and 0 it is 0."""

    meaning = "np.gcd"
    commutes = "iu"


class Lcm(IntegerOp):
    """The least common multiple; 0 if an operand is 0."""

    meaning = "np.lcm"
    commutes = "iu"


class Ldexp(LinearElementwise):
    """x * 2**n, n integers: exact unless the result is subnormal or too large."""

    meaning = "np.ldexp"
    arity = 2
    kinds = "f"
    linear: ClassVar[tuple[int, ...]] = (0,)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_kinds(self, types[0], self.kinds)
        if types[1].dtype.kind != "i":
            raise DTypeError(f"ldexp: the exponent is {types[1]}", hint="it takes integer exponents")
        if types[0].shape != types[1].shape:
            raise ShapeError(f"ldexp: operands differ in shape, {types[0]} and {types[1]}")
        return types[0]

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        exponent = operands[1]
        if isinstance(exponent, Zero):
            return (None, None)
        return (s.apply(self, [cotangents[0], exponent]), None)

    def samples(self) -> Iterator[Sample]:
        x, n = np.array([[1.5, -0.25], [3.0, 0.5]]), np.array([[3, -2], [0, 5]])
        yield Sample((x, n), label="smooth")
        yield Sample((x[0].astype(np.float32), n[0].astype(np.int32)), label="float32")
        yield Sample((np.array(1.5), np.array(-3)), label="0-d")
        yield Sample((x[:0], n[:0]), label="empty")
        special = np.array([0.0, -0.0, np.inf, np.nan, 1e300, 5e-324, 1.0])
        yield Sample((special, np.array([5000, -5000, -3, 2, 2000, 1074, -1074])), smooth=False, label="special points")


class FrexpExponent(NonDifferentiable, Elementwise):
    """The exponent n of x = m * 2**n with 0.5 <= abs(m) < 1, as int32; 0 of 0, and NumPy's choice of inf and nan."""

    meaning = "np.frexp({0})[1]"
    kinds = "f"
    intervals = ((0.6, 0.9),)
    jvp = NonDifferentiable.jvp

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return super().result_type(types, attrs).with_dtype(np.dtype(np.int32))


class Spacing(NonDifferentiable, Elementwise):
    """The distance to the neighbour that is farther from 0, with the sign of x: piecewise constant."""

    meaning = "np.spacing"
    kinds = "f"
    intervals = ((0.6, 0.9),)
    jvp = NonDifferentiable.jvp


class Nextafter(Elementwise):
    """The neighbour of x on the way to y: x but for a rounding error, so its derivatives in x and y are 1 and 0."""

    meaning = "np.nextafter"
    arity = 2
    kinds = "f"
    intervals = ((0.5, 1.0), (1.5, 2.0))

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return 1 - index
