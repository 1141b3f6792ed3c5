"""Elementwise arithmetic, and the linear ops every derivative is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from srcgrad.ir.core import Attrs, Literal, Value
from srcgrad.ir.errors import DTypeError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Elementwise,
    Linear,
    LinearEmitter,
    LinearOperand,
    Operand,
    Sample,
    Tangent,
    Term,
    Unary,
    Zero,
    batch_all,
    broadcast_to,
    require_arity,
    require_same,
)
from srcgrad.ir.types import BOOL, ArrayType, Size


class LinearElementwise(Linear, Elementwise, abstract=True):
    """Elementwise and linear in some operands."""

    masking = "pointwise"
    kinds = "iufc"
    jvp = Linear.jvp


def spread_literal(operand: LinearOperand) -> Value | None:
    """The value of a residual, or what it is everywhere."""
    value = operand.value if isinstance(operand, Term) else None
    if value is not None and value.producer is not None and value.producer.op.name == "broadcast":
        return value.producer.operands[0]
    return value


def is_finite_number(operand: LinearOperand, nonzero: bool = False) -> bool:
    """Whether a residual is known to be one finite number everywhere."""
    value = spread_literal(operand)
    if value is not None and value.producer is not None and value.producer.op.name == "share_of_tie":
        return True
    if not isinstance(value, Literal) or not value.splat:
        return False
    return bool(np.isfinite(value.value) and (not nonzero or value.value != 0))


def is_unit(operand: LinearOperand) -> bool:
    """Whether a residual is known to be 1 everywhere."""
    value = spread_literal(operand)
    return isinstance(value, Literal) and value.splat and bool(value.value == 1)


class Neg(LinearElementwise):
    """Negation."""

    meaning = "-{0}"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.neg(cotangents[0]),)


class Add(LinearElementwise):
    """Sum; of booleans, their disjunction, as in NumPy."""

    meaning = "{0} + {1}"
    arity = 2
    kinds = "biufc"
    commutes = "biufc"
    linear = (0, 1)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (s.add(tangents[0], tangents[1]),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (cotangents[0], cotangents[0])


class Sub(LinearElementwise):
    """Difference."""

    meaning = "{0} - {1}"
    arity = 2
    linear = (0, 1)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (s.add(tangents[0], s.neg(tangents[1])),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (cotangents[0], s.neg(cotangents[0]))


class Mul(LinearElementwise):
    """Product; of booleans, their conjunction, as in NumPy."""

    meaning = "{0} * {1}"
    arity = 2
    kinds = "biufc"
    commutes = "biuf"  # with fused multiply-adds, the imaginary part of a product depends on the order
    linear = (0, 1)
    separate = True
    keeps_zero = False

    def zero_stays(self, operands: Sequence[LinearOperand]) -> bool:
        return any(is_finite_number(operand) for operand in operands)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        left, right = operands
        if isinstance(right, Term):
            return (s.apply(self, [cotangents[0], right]), None)
        if isinstance(left, Term):
            return (None, s.apply(self, [left, cotangents[0]]))
        return (None, None)


class Div(LinearElementwise):
    """Quotient (true division)."""

    meaning = "{0} / {1}"
    arity = 2
    kinds = "fc"
    linear = (0,)
    keeps_zero = False
    intervals = ((-2.0, 2.0), (0.5, 2.0))
    points = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-300)
    """Not a subnormal denominator: its inverse is inf, and of 0 over it the modes differ, 0 times inf and 0."""

    def zero_stays(self, operands: Sequence[LinearOperand]) -> bool:
        return is_finite_number(operands[1], nonzero=True)

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """d(a/b) = da/b - ((a/b) db)/b, not by the square of b, which overflows and vanishes where b is a number yet.

        A denominator that is spread over more elements is inverted before it is; the inverse of one is the quotient.
        """
        denominator, quotient = operands[1], results[0]
        spread, inverse = denominator.value.producer, None
        if is_unit(operands[0]):
            inverse = quotient
        elif spread is not None and spread.op.name == "broadcast":
            few = Term(denominator.builder, spread.operands[0])
            inverse = REGISTRY["broadcast"](few.like(1) / few, **spread.attrs)
        total: Tangent = Zero(quotient.type)
        for tangent in (tangents[0], s.scale(tangents[1], -quotient)):
            part = s.apply(self, [tangent, denominator]) if inverse is None else s.scale(tangent, inverse)
            total = s.add(total, part)
        return (total,)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        denominator = operands[1]
        if isinstance(denominator, Zero):
            return (None, None)
        return (s.apply(self, [cotangents[0], denominator]), None)


class Select(Linear):
    """``true`` where the predicate holds, else ``false``; a predicate of rank 0 chooses the whole."""

    linear = (1, 2)
    kinds: ClassVar[str] = "biufc"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 3)
        require_same(self, types[1:])
        predicate, result = types[0], types[1]
        if predicate.dtype != BOOL:
            raise DTypeError(f"select: the predicate is {predicate}, not bool")
        if predicate.shape not in ((), result.shape):
            raise ShapeError(f"select: the predicate is {predicate}, the branches are {result}")
        return result

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        predicate, true, false = operands
        if types[0].rank == 0:
            return f"{true} if {predicate} else {false}"
        return f"np.where({predicate}, {true}, {false})"

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return (s.select(operands[0], tangents[1], tangents[2]),)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        predicate, cotangent = operands[0], cotangents[0]
        absent = Zero(cotangent.type)
        if isinstance(predicate, Zero):
            return (None, absent, absent)
        return (None, s.select(predicate, cotangent, absent), s.select(predicate, absent, cotangent))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        predicate, true, _ = operands
        if not batched[0] and predicate.rank == 0:
            return self(predicate, *batch_all(size, operands[1:], batched[1:]))
        shape = (size, *(true.shape[1:] if batched[1] else true.shape))
        if predicate.rank - batched[0] == 0:
            predicate = broadcast_to(predicate, shape, (0,) if batched[0] else ())
            return self(predicate, *batch_all(size, operands[1:], batched[1:]))
        return self(*batch_all(size, operands, batched))

    def samples(self) -> Iterator[Sample]:
        predicate = np.array([[True, False], [False, True], [True, True]])
        left, right = np.arange(6.0).reshape(3, 2), -np.ones((3, 2))
        yield Sample((predicate, left, right), label="full predicate")
        yield Sample((np.array(True), left, right), label="rank-0 predicate")
        yield Sample((np.array(False), np.array(1.5), np.array(np.inf)), smooth=False, label="0-d")
        yield Sample((predicate[:0], left[:0], right[:0]), label="empty")
        yield Sample((predicate, left + 1j, right - 2j), label="complex")
        yield Sample((predicate, left.astype(np.float32), right.astype(np.float32)), label="float32")


class Identity(LinearElementwise):
    """The operand itself."""

    kinds = "biufc"
    meaning = "{0}"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (cotangents[0],)


class StopGradient(Unary):
    """The operand, as a constant: its tangent is a structural zero."""

    kinds = "biufc"
    meaning = "{0}"

    def derivative(self, result: Term, operand: Term) -> Operand:
        return 0
