"""``i0e(x)`` and ``ive(0, x)``, which have the absolute value of x in it: ``exp(-abs(x)) * i0(x)``.

Its kink at 0 is that of the absolute value, so that what is smooth in spite of it is found as in others (`kinks`,
`bounds`): ``log(i0e(x)) + abs(x)``, ``i0e(x**2)``. At 0, and nowhere else, its series takes its place.
"""

from __future__ import annotations

from math import factorial
from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, is_zero, rule
from srcgrad.ir.passes.roots import is_held

SERIES: Final = [(-0.5) ** k * factorial(2 * k) / factorial(k) ** 3 for k in range(5)]
"""Of exp(-t) I0(t): derivatives at 0 are right up to the fourth."""


@rule(
    "i0e(x) -> select(x == 0, series of i0e in abs(x), i0e(x))",
    lambda x: apply("i0e", x),
    lambda x: apply("i0e", apply("square", x)),
    kinds="f",
    limit=True,
)
def scaled_at_zero(operation: Operation, builder: Builder) -> Value | None:
    return with_series(operation, operation.operands[0], builder)


@rule(
    "ive(0.0, x) -> select(x == 0, series of i0e in abs(x), ive(0.0, x))",
    lambda x: apply("ive", x.like(0.0), x),
    kinds="f",
    limit=True,
)
def scaled_of_order_zero(operation: Operation, builder: Builder) -> Value | None:
    order, operand = operation.operands
    return with_series(operation, operand, builder) if is_zero(order) else None


def with_series(operation: Operation, operand: Value, builder: Builder) -> Value | None:
    if is_known(operand) or is_held(operand):
        return None
    x = Term(builder, operand)
    zero = x == 0.0
    size = apply("abs", apply("select", zero, x, 0.0))
    total = x.like(SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        total = coefficient + size * total
    orders = [Term(builder, order) for order in operation.operands[:-1]]
    return apply("select", zero, total, operation.op(*orders, held(zero, x))).value
