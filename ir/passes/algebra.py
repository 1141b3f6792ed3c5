"""Equations of arithmetic, of select and of booleans."""

from __future__ import annotations

from typing import Any

from srcgrad.ir.core import Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import (
    apply,
    complements,
    emit,
    is_filled,
    is_minus_one,
    is_nothing,
    is_one,
    made_by,
    negated,
    nothing,
    operand_of,
    rule,
)
from srcgrad.ir.types import BOOL

# --- arithmetic -------------------------------------------------------------------------------------------------------


def logistic(x: Term, *, swapped: bool = False) -> Term:
    """The denominator of a logistic function as people write it, in an example."""
    power = apply("exp", x)
    return power + 1.0 if swapped else 1.0 + power


@rule(
    "div(y, add(1, exp(x))) -> mul(y, expit(neg(x)))",
    lambda x, y: y / logistic(x),
    lambda x, y: y / logistic(-x, swapped=True),
    lambda x: 1.0 / logistic(-x),
    kinds="f",
    limit=True,
)
def logistic_quotient(operation: Operation, builder: Builder) -> Value | None:
    """Where exp(x) is inf, or its square is, the quotient is 0 to rounding; its derivative would be inf times 0."""
    numerator, denominator = operation.operands
    exponent = one_more_than_exp(denominator)
    if exponent is None:
        return None
    value = emit(builder, "expit", emit(builder, "neg", exponent))
    return value if is_one(numerator) else emit(builder, "mul", numerator, value)


@rule("reciprocal(add(1, exp(x))) -> expit(neg(x))", lambda x: apply("reciprocal", logistic(x)), kinds="f", limit=True)
def logistic_reciprocal(operation: Operation, builder: Builder) -> Value | None:
    exponent = one_more_than_exp(operation.operands[0])
    return None if exponent is None else emit(builder, "expit", emit(builder, "neg", exponent))


@rule(
    "integer_pow(add(1, exp(x)), -1) -> expit(neg(x))",
    lambda x: apply("integer_pow", logistic(x), y=-1),
    kinds="f",
    limit=True,
)
def logistic_power(operation: Operation, builder: Builder) -> Value | None:
    return logistic_reciprocal(operation, builder) if operation.attrs["y"] == -1 else None


@rule("div(y, cosh(x)) -> mul(y, sech(x))", lambda x, y: y / apply("cosh", x), kinds="f", limit=True)
def quotient_by_cosh(operation: Operation, builder: Builder) -> Value | None:
    numerator, denominator = operation.operands
    argument = operand_of(denominator, "cosh")
    if argument is None:
        return None
    value = emit(builder, "sech", argument)
    return value if is_one(numerator) else emit(builder, "mul", numerator, value)


def one_more_than_exp(value: Value) -> Value | None:
    """The x of 1 + exp(x), or of exp(x) + 1."""
    total = made_by(value, "add")
    if total is None:
        return None
    left, right = total.operands
    return operand_of(right, "exp") if is_one(left) else operand_of(left, "exp") if is_one(right) else None


@rule("neg(neg(x)) -> x", lambda x: apply("neg", -x), kinds="iufc")
def neg_neg(operation: Operation, builder: Builder) -> Value | None:
    return operand_of(operation.operands[0], "neg")


@rule("neg(mul(x, c)) -> mul(x, -c)", lambda x: -(x * 3.0), lambda x: -(-0.0 * x), kinds="f")
def neg_scaled(operation: Operation, builder: Builder) -> Value | None:
    inner = made_by(operation.operands[0], "mul")
    if inner is None:
        return None
    left, right = inner.operands
    if isinstance(right, Literal):
        return emit(builder, "mul", left, negated(right))
    if isinstance(left, Literal):
        return emit(builder, "mul", negated(left), right)
    return None


def nothing_like(x: Term) -> Term:
    return x.like(nothing(x.dtype))


@rule("add(x, -0.0) -> x", lambda x: x + nothing_like(x), lambda x: nothing_like(x) + x)
def add_nothing(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_nothing(right):
        return left
    return right if is_nothing(left) else None


@rule("add(a, neg(b)) -> sub(a, b)", lambda a, b: a + (-b), lambda a, b: (-b) + a, kinds="iufc")
def add_neg(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    inner = operand_of(right, "neg")
    if inner is not None:
        return emit(builder, "sub", left, inner)
    inner = operand_of(left, "neg")
    return None if inner is None else emit(builder, "sub", right, inner)


@rule("sub(x, 0.0) -> x", lambda x: x - 0, kinds="iufc")
def sub_nothing(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0] if is_filled(operation.operands[1], 0) else None


@rule("sub(a, neg(b)) -> add(a, b)", lambda a, b: a - (-b), kinds="iufc")
def sub_neg(operation: Operation, builder: Builder) -> Value | None:
    inner = operand_of(operation.operands[1], "neg")
    return None if inner is None else emit(builder, "add", operation.operands[0], inner)


@rule("sub(-0.0, x) -> neg(x)", lambda x: nothing_like(x) - x, kinds="iufc")
def sub_from_nothing(operation: Operation, builder: Builder) -> Value | None:
    return emit(builder, "neg", operation.operands[1]) if is_nothing(operation.operands[0]) else None


@rule("mul(x, 1) -> x", lambda x: x * 1, lambda x: 1 * x, kinds="biuf")
def mul_one(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_one(right):
        return left
    return right if is_one(left) else None


@rule("mul(x, -1) -> neg(x)", lambda x: x * -1, lambda x: -1 * x, kinds="if")
def mul_minus_one(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_minus_one(right):
        return emit(builder, "neg", left)
    return emit(builder, "neg", right) if is_minus_one(left) else None


@rule("mul(neg(a), neg(b)) -> mul(a, b)", lambda a, b: (-a) * (-b), kinds="iuf")
def mul_neg_neg(operation: Operation, builder: Builder) -> Value | None:
    left, right = operand_of(operation.operands[0], "neg"), operand_of(operation.operands[1], "neg")
    if left is None or right is None:
        return None
    return emit(builder, "mul", left, right)


@rule("mul(neg(a), c) -> mul(a, -c)", lambda a: (-a) * 3.0, lambda a: -0.0 * (-a), kinds="f")
def mul_neg(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if isinstance(right, Literal):
        inner = operand_of(left, "neg")
        return None if inner is None else emit(builder, "mul", inner, negated(right))
    if isinstance(left, Literal):
        inner = operand_of(right, "neg")
        return None if inner is None else emit(builder, "mul", negated(left), inner)
    return None


@rule("div(x, 1) -> x", lambda x: x / 1, kinds="f")
def div_one(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0] if is_one(operation.operands[1]) else None


@rule("div(x, -1) -> neg(x)", lambda x: x / -1, kinds="f")
def div_minus_one(operation: Operation, builder: Builder) -> Value | None:
    return emit(builder, "neg", operation.operands[0]) if is_minus_one(operation.operands[1]) else None


@rule("div(neg(a), neg(b)) -> div(a, b)", lambda a, b: (-a) / (-b), kinds="f")
def div_neg_neg(operation: Operation, builder: Builder) -> Value | None:
    left, right = operand_of(operation.operands[0], "neg"), operand_of(operation.operands[1], "neg")
    if left is None or right is None:
        return None
    return emit(builder, "div", left, right)


@rule("identity(x) -> x", lambda x: apply("identity", x))
def identity(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0]


@rule("stop_gradient(x) -> x", lambda x: apply("stop_gradient", x), final=True)
def stop_gradient(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0]


# --- select -----------------------------------------------------------------------------------------------------------


@rule("select(p, x, x) -> x", lambda p, x: apply("select", p, x, x))
def select_same(operation: Operation, builder: Builder) -> Value | None:
    _, true, false = operation.operands
    return true if true == false else None


@rule(
    "select(true, a, b) -> a",
    lambda a, b: apply("select", a.like(True, BOOL), a, b),
    lambda a, b: apply("select", a.like(False, BOOL), b, a),
)
def select_known(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    if isinstance(predicate, Literal) and predicate.splat:
        return true if predicate.value else false
    return None


@rule("select(not(p), a, b) -> select(p, b, a)", lambda p, a, b: apply("select", ~p, a, b))
def select_not(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    inner = operand_of(predicate, "logical_not")
    return None if inner is None else emit(builder, "select", inner, false, true)


@rule(
    "select(p, a, select(p, b, c)) -> select(p, a, c)",
    lambda p, a, b, c: apply("select", p, a, apply("select", p, b, c)),
    lambda p, a, b, c: apply("select", p, apply("select", p, a, b), c),
)
def select_nested(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    inner = made_by(false, "select")
    if inner is not None and inner.operands[0] == predicate:
        return emit(builder, "select", predicate, true, inner.operands[2])
    inner = made_by(true, "select")
    if inner is not None and inner.operands[0] == predicate:
        return emit(builder, "select", predicate, inner.operands[1], false)
    return None


def choice(p: Term, true: Any, false: Any) -> Term:
    """A select between booleans, in an example."""
    return apply("select", p, *[side if isinstance(side, Term) else p.like(side) for side in (true, false)])


@rule("select(p, true, false) -> p", lambda p: choice(p, True, False), kinds="b")
def select_predicate(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    return predicate if is_filled(true, True) and is_filled(false, False) and predicate.type == true.type else None


@rule("select(p, false, true) -> not(p)", lambda p: choice(p, False, True), kinds="b")
def select_complement(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    if is_filled(true, False) and is_filled(false, True) and predicate.type == true.type:
        return emit(builder, "logical_not", predicate)
    return None


@rule("select(p, q, false) -> and(p, q)", lambda p, q: choice(p, q, False), kinds="b")
def select_and(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    if is_filled(false, False) and predicate.type == true.type:
        return emit(builder, "logical_and", predicate, true)
    return None


@rule("select(p, true, q) -> or(p, q)", lambda p, q: choice(p, True, q), kinds="b")
def select_or(operation: Operation, builder: Builder) -> Value | None:
    predicate, true, false = operation.operands
    if is_filled(true, True) and predicate.type == true.type:
        return emit(builder, "logical_or", predicate, false)
    return None


@rule("integer_pow(x, 1) -> x", lambda x: apply("integer_pow", x, y=1), kinds="iuf")
def integer_pow_one(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0] if operation.attrs["y"] == 1 else None


@rule("pow(x, 1) -> x", lambda x: apply("pow", x, 1), kinds="iuf")
def pow_one(operation: Operation, builder: Builder) -> Value | None:
    return operation.operands[0] if is_one(operation.operands[1]) else None


@rule("conj(conj(x)) -> x", lambda x: apply("conj", apply("conj", x)), kinds="c")
def conj_conj(operation: Operation, builder: Builder) -> Value | None:
    return operand_of(operation.operands[0], "conj")


# --- booleans ---------------------------------------------------------------------------------------------------------


@rule("logical_not(not(p)) -> p", lambda p: ~(~p))
def not_not(operation: Operation, builder: Builder) -> Value | None:
    return operand_of(operation.operands[0], "logical_not")


@rule("logical_and(p, true) -> p", lambda p: p & True, lambda p: p.like(True) & p)
def and_true(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_filled(right, True):
        return left
    return right if is_filled(left, True) else None


@rule("logical_and(p, false) -> false", lambda p: p & False, lambda p: p.like(False) & p)
def and_false(operation: Operation, builder: Builder) -> Value | None:
    return next((value for value in operation.operands if is_filled(value, False)), None)


@rule("logical_and(p, p) -> p", lambda p: p & p)
def and_same(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    return left if left == right else None


@rule("logical_and(p, not(p)) -> false", lambda p: p & ~p, lambda p: ~p & p)
def and_complement(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    return literal(False, left.type) if complements(left, right) else None


@rule("logical_or(p, false) -> p", lambda p: p | False, lambda p: p.like(False) | p)
def or_false(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_filled(right, False):
        return left
    return right if is_filled(left, False) else None


@rule("logical_or(p, true) -> true", lambda p: p | True, lambda p: p.like(True) | p)
def or_true(operation: Operation, builder: Builder) -> Value | None:
    return next((value for value in operation.operands if is_filled(value, True)), None)


@rule("logical_or(p, p) -> p", lambda p: p | p)
def or_same(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    return left if left == right else None


@rule("logical_or(p, not(p)) -> true", lambda p: p | ~p, lambda p: ~p | p)
def or_complement(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    return literal(True, left.type) if complements(left, right) else None


@rule(
    "logical_xor(p, false) -> p",
    lambda p: apply("logical_xor", p, False),
    lambda p: apply("logical_xor", p.like(False), p),
)
def xor_false(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_filled(right, False):
        return left
    return right if is_filled(left, False) else None


@rule(
    "logical_xor(p, true) -> not(p)",
    lambda p: apply("logical_xor", p, True),
    lambda p: apply("logical_xor", p.like(True), p),
)
def xor_true(operation: Operation, builder: Builder) -> Value | None:
    left, right = operation.operands
    if is_filled(right, True):
        return emit(builder, "logical_not", left)
    return emit(builder, "logical_not", right) if is_filled(left, True) else None
