"""Sizes and extremes of what is bounded already: abs(cosh(x) - 1), minimum(cos(x), 1), clip(erf(x), -1, 1).

Where the bound is reached there is a tie, but no kink: the slope is 0, and the second derivative that of what reaches
the bound, not its half. A choice takes the place of the extreme, so that no value changes, not where rounding leaves
the bound either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, is_known, rule
from srcgrad.ir.passes.powers import LENGTHS, even_power, is_sum_of_squares

INF: Final = math.inf
DEPTH: Final = 6
"""How many ops a value is looked through."""


class Bounds(NamedTuple):
    """What no number of a value is less than, and what none is larger than."""

    low: float = -INF
    high: float = INF


ANY: Final = Bounds()
POSITIVE: Final = Bounds(0.0, INF)
OF_OPS: Final = {
    **dict.fromkeys(("sin", "cos", "tanh", "erf"), Bounds(-1.0, 1.0)),
    **dict.fromkeys(("expit", "ndtr", "sech"), Bounds(0.0, 1.0)),
    **dict.fromkeys(("exp", "exp2", "sqrt"), POSITIVE),
    "expm1": Bounds(-1.0, INF),
    "cosm1": Bounds(-2.0, 0.0),
    "cosh": Bounds(1.0, INF),
    "erfc": Bounds(0.0, 2.0),
}
INCREASING: Final[dict[str, Callable[[float], float]]] = {
    "exp": math.exp,
    "log": lambda x: math.log(x) if x > 0.0 else -INF,
    "log1p": lambda x: math.log1p(x) if x > -1.0 else -INF,
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "tanh": math.tanh,
}
MOVES: Final = frozenset(
    {"reshape", "broadcast", "transpose", "slice", "reverse", "gather", "reduce_max", "reduce_min", "stop_gradient"}
)


def bounds(value: Value, depth: int = DEPTH) -> Bounds:
    """What is known of the numbers of a value that are not nan."""
    made = value.producer
    if made is None or depth == 0 or value.type.dtype.kind != "f":
        number = float(value.value) if is_known(value) and value.type.dtype.kind == "f" else math.nan
        return ANY if math.isnan(number) else Bounds(number, number)
    if is_not_negative(value):
        return POSITIVE
    name, operands = made.op.name, made.operands
    if name in INCREASING:
        low, high = (increased(INCREASING[name], each) for each in bounds(operands[0], depth - 1))
        least, most = OF_OPS.get(name, ANY)
        return Bounds(max(low, least), min(high, most))
    if name in OF_OPS:
        return OF_OPS[name]
    if name in MOVES:
        return bounds(operands[0], depth - 1)
    return of_several(name, [bounds(operand, depth - 1) for operand in operands])


def increased(f: Callable[[float], float], x: float) -> float:
    try:
        return f(x)
    except OverflowError:
        return INF


def of_several(name: str, found: list[Bounds]) -> Bounds:
    """Of sums and of products with numbers, and of what is chosen of several.

    Not of extremes: where they reach the bound that they make they have a kink.
    """
    if name == "reduce_sum" and found[0].low == 0.0:
        return POSITIVE
    if name == "select":
        return Bounds(min(each.low for each in found[1:]), max(each.high for each in found[1:]))
    if name in ("neg", "sub"):
        found[-1] = Bounds(-found[-1].high, -found[-1].low)
    if name == "neg":
        return found[0]
    if name in ("add", "sub"):
        return Bounds(*[a + b if abs(a) < INF and abs(b) < INF else end for a, b, end in zip(*found, ANY, strict=True)])
    if name == "mul" and found[0].low == found[0].high:
        found.reverse()
    if name in ("mul", "div") and found[1].low == found[1].high:
        return scaled(found[0], found[1].low, name == "div")
    if name in ("mul", "div") and all(each.low >= 0.0 for each in found):
        return POSITIVE
    return ANY


def scaled(found: Bounds, factor: float, inverse: bool) -> Bounds:
    if factor == 0.0 or math.isinf(factor):
        return ANY
    ends = sorted(end / factor if inverse else end * factor for end in found)
    return Bounds(*ends)


def is_not_negative(value: Value) -> bool:
    """Whether it is 0 or more, also as it is rounded, and 0.0 where it is 0."""
    made = value.producer
    if made is None:
        return False
    return made.op.name in LENGTHS or even_power(value) is not None or is_sum_of_squares(value, quotients=False)


@rule(
    "abs(x) -> x, x >= 0",
    lambda x: apply("abs", apply("square", x)),
    lambda x: apply("abs", apply("integer_pow", x, y=4)),
    lambda x, y: apply("abs", x * x + apply("square", y)),
    lambda x: apply("abs", apply("hypot", x, 2.0 * x)),
    lambda x: apply("abs", apply("cosh", x) - 1.0),
    lambda x: apply("abs", apply("cos", x) - 1.0),
    kinds="f",
    limit=True,
)
def size_of_bounded(operation: Operation, builder: Builder) -> Value | None:
    x = operation.operands[0]
    if is_not_negative(x):
        return x
    low, high = bounds(x)
    term = Term(builder, x)
    if low >= 0.0:
        return apply("select", term < 0.0, -term, term + 0.0).value
    return apply("select", term > 0.0, term, 0.0 - term).value if high <= 0.0 else None


@rule(
    "maximum(x, c) -> select(x < c, c, x), x >= c",
    lambda x: apply("maximum", apply("square", x), 0.0),
    lambda x: apply("maximum", x.like(0.0), apply("abs", x)),
    lambda x, y: apply("maximum", x * x + apply("square", y), -1.0),
    lambda x: apply("maximum", apply("cosh", x), 1.0),
    lambda x: apply("maximum", 2.0 * apply("cos", x), 2.0),
    kinds="f",
    limit=True,
)
def larger_of_bounded(operation: Operation, builder: Builder) -> Value | None:
    return extreme(operation, builder, larger=True)


@rule(
    "minimum(x, c) -> select(x > c, c, x), x <= c",
    lambda x: apply("minimum", apply("cos", x), 1.0),
    lambda x: apply("minimum", x.like(1.0), apply("cosh", x)),
    lambda x: apply("minimum", apply("square", x), 0.0),
    kinds="f",
    limit=True,
)
def smaller_of_bounded(operation: Operation, builder: Builder) -> Value | None:
    return extreme(operation, builder, larger=False)


def extreme(operation: Operation, builder: Builder, larger: bool) -> Value | None:
    for value, bound in (operation.operands, operation.operands[::-1]):
        number = float(bound.value) if is_known(bound) else math.nan
        if math.isnan(number):
            continue
        if larger and number <= 0.0 and is_not_negative(value):
            return value
        x, c = Term(builder, value), Term(builder, bound)
        low, high = bounds(value)
        if low >= number:  # the larger one is x, the smaller one c
            return apply("select", x < c if larger else x >= c, c, x).value
        if high <= number:
            return apply("select", x <= c if larger else x > c, c, x).value
    return None
