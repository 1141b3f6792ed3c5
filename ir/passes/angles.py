"""``arccos(cos(x))`` and ``arcsin(cos(x))`` at 0, where they have the kink of an absolute value.

Their slope is that of the cosine over its own size there, 0/0; elsewhere no rounded x has a sine of 0.
"""

from __future__ import annotations

import math

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, operand_of, rule
from srcgrad.ir.passes.roots import is_held


def at_zero(operation: Operation, builder: Builder) -> Value | None:
    """As what is smooth although it is written in them is found where it is written in ``abs`` (`kinks`, `bounds`)."""
    angle = operand_of(operation.operands[0], "cos")
    if angle is None or is_known(angle) or is_held_at_zero(angle):
        return None
    x = Term(builder, angle)
    zero = x == 0.0
    size = apply("abs", apply("select", zero, x, 0.0))
    there = size if operation.op.name == "arccos" else 0.5 * math.pi - size
    return apply("select", zero, there, operation.op(apply("cos", held(zero, x)))).value


def is_held_at_zero(value: Value) -> bool:
    made = value.producer
    return made is not None and is_held(value) and operand_of(made.operands[0], "equal") is made.operands[2]


def angle_of(name: str, x: Term) -> Term:
    """In an example."""
    return apply(name, apply("cos", x))


rule(
    "arccos(cos(x)) -> select(x == 0, abs(x), arccos(cos(x)) of x held there)",
    lambda x: angle_of("arccos", x),
    lambda x: angle_of("arccos", apply("square", x)),
    kinds="f",
    limit=True,
)(at_zero)
rule(
    "arcsin(cos(x)) -> select(x == 0, pi/2 - abs(x), arcsin(cos(x)) of x held there)",
    lambda x: angle_of("arcsin", x),
    lambda x: angle_of("arcsin", 2.0 * x),
    kinds="f",
    limit=True,
)(at_zero)
