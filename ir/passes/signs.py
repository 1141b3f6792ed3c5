"""``copysign(g(abs(x)), x)``, smooth at 0 where g(0) is 0: its slope there is g'(0), not g' times the 0 of abs."""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, made_by, operand_of, rule

LOOKED: Final = 32
"""How many ops an absolute value is looked for behind."""


def has_size_of(value: Value, x: Value) -> bool:
    """Whether the absolute value of ``x`` is among what a value is made of, if that is not much."""
    pending, seen = [value], 0
    while pending and seen < LOOKED:
        made, seen = pending.pop().producer, seen + 1
        if made is None:
            continue
        if made.op.name == "abs" and made.operands[0] is x:
            return True
        pending += made.operands
    return False


@rule(
    "select(signs of m and x differ, -m, m) -> select(m == x == 0, sign(x), select(signs are equal, 1, -1)) * m",
    lambda x: copied(apply("sin", apply("abs", x)), x),
    lambda x, y: copied(y * apply("square", apply("abs", x)), x),
    kinds="f",
    limit=True,
)
def size_with_sign(operation: Operation, builder: Builder) -> Value | None:
    """The slope of abs(x), as a sign of an earlier differentiation, times that of the next is 1 (`kinks`)."""
    differ, minus, m = operation.operands
    pair = made_by(differ, "not_equal")
    if pair is None or operand_of(minus, "neg") is not m:
        return None
    bits = [operand_of(side, "sign_bit") for side in pair.operands]
    x = bits[1] if bits[0] is m else bits[0]
    if m not in bits or x is None or not has_size_of(m, x):
        return None
    size, place = Term(builder, m), Term(builder, x)
    same = apply("equal", *[Term(builder, side) for side in pair.operands])
    sign = apply("select", same, size.like(1.0), -1.0)
    return (apply("select", (place == 0.0) & (size == 0.0), apply("slope_of_abs", place, order=1), sign) * size).value


def copied(m: Term, x: Term) -> Term:
    """``copysign(m, x)``, in an example."""
    return apply("select", apply("not_equal", apply("sign_bit", m), apply("sign_bit", x)), -m, m)
