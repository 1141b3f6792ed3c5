"""Where kinks are one kink: those of abs(x), maximum(-2*x, 0), abs(sinh(x)) and clip(x, -1, 0) are where x is 0.

What is smooth although it is written in several of them, as max(x, 0)**2 + max(-x, 0)**2 + 2 max(x, 0) max(-x, 0), is
seen to be so if their slopes are slopes of one kink, with the sign that each has where x is larger.
"""

from __future__ import annotations

import math
from typing import Final

from srcgrad.ir.core import Operation, Value
from srcgrad.ir.passes.bounds import bounds
from srcgrad.ir.passes.flats import UNDERFLOWING
from srcgrad.ir.passes.matching import is_known, operand_of

SCALED: Final = 8
"""How many ops a kink is looked for behind."""
ODD: Final = frozenset(
    {"arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh"}
)
"""Ops that are 0 at 0 only, of the numbers that there are, and have the sign of their operand there."""


def scaled(value: Value) -> tuple[Value, float]:
    """What a value is a multiple of, and by what: x and -1 of -x, so that what has kinks in both has them in x."""
    scale = 1.0
    for _ in range(SCALED):
        found = multiple(value)
        if found is None or not 0.0 < abs(scale * found[1]) < math.inf:
            break
        value, scale = found[0], scale * found[1]
    return value, scale


def number_of(value: Value) -> float | None:
    """One number that a value is everywhere, also where it is repeated for each example of `vmap`."""
    repeated = operand_of(value, "broadcast")
    value = value if repeated is None else repeated
    return float(value.value) if is_known(value) else None


def multiple(value: Value) -> tuple[Value, float] | None:
    """The operand that one operation makes a multiple of, and by what."""
    made = value.producer
    if made is None or made.op.name not in ("neg", "mul", "div", "add", "sub"):
        return None
    if made.op.name == "neg":
        return made.operands[0], -1.0
    inner, number = made.operands
    if made.op.name == "mul" and number_of(inner) is not None:
        inner, number = number, inner
    factor = number_of(number)
    if factor is None:
        return None
    if made.op.name in ("add", "sub"):
        return (inner, 1.0) if factor == 0.0 else None
    if made.op.name == "div":
        factor = 1.0 / factor if factor else 0.0
    return inner, factor


def compared(first: Value, second: Value | None) -> tuple[Value, Value | None, float]:
    """Two values, or one and 0, that are equal where these are, and 1, or -1 if they are in the other order then."""
    if second is None or number_of(second) == 0.0:
        value, sign = oriented(first)
    elif number_of(first) == 0.0:
        value, sign = oriented(second)
        sign = -sign
    else:
        one, other, order = differing(first, second)
        if other is not None:
            return one, other, order
        value, sign = oriented(one)
        sign *= order
    made = value.producer
    if made is None or made.op.name != "sub":
        return value, None, sign
    one, other, order = differing(*made.operands)
    return one, other, sign * order


def place_of(value: Value) -> frozenset[Value | None]:
    """What says where a value is 0."""
    return frozenset(compared(value, None)[:2])


def differing(first: Value, second: Value) -> tuple[Value, Value | None, float]:
    """The same of two values of which neither may be 0."""
    levels = number_of(second), number_of(first)
    first, second = (
        value if level is None else unbounded(value, level)
        for value, level in zip((first, second), levels, strict=True)
    )
    (one, scale), (other, factor) = scaled(first), scaled(second)
    if one is other and scale != factor:
        return one, None, math.copysign(1.0, scale - factor)
    return (one, other, math.copysign(1.0, scale)) if scale == factor else (first, second, 1.0)


def unbounded(value: Value, level: float) -> Value:
    """What a value is where it is near a number: that of which it is the larger or smaller beside another number."""
    for _ in range(SCALED):
        made = value.producer
        if made is None or made.op.name not in ("maximum", "minimum", "select"):
            break
        inner, bound = made.operands[-1], number_of(made.operands[-2])
        if bound is None:
            inner, bound = made.operands[-2], number_of(made.operands[-1])
        name = made.op.name if made.op.name != "select" else extreme_of_choice(made)
        if bound is None or name is None or not (bound < level if name == "maximum" else bound > level):
            break
        value = inner
    return value


def extreme_of_choice(made: Operation) -> str | None:
    """The extreme that a choice is, as `bounds` writes it: select(x < c, c, x)."""
    test, bound, inner = made.operands
    compared = test.producer
    if compared is None or compared.operands != (inner, bound):
        return None
    return {"less": "maximum", "less_equal": "maximum", "greater": "minimum", "greater_equal": "minimum"}.get(
        compared.op.name
    )


def oriented(value: Value) -> tuple[Value, float]:
    """What is 0 where a value is, as x where sinh(-2*x) is, and 1, or -1 if it has the other sign."""
    sign = 1.0
    for _ in range(SCALED):
        before = value
        value, scale = scaled(unbounded(value, 0.0))
        sign *= math.copysign(1.0, scale)
        made = value.producer
        if made is not None and made.op.name in ODD:
            value = made.operands[0]
        elif (beside := signed_part(value)) is not None:
            value, sign = beside[0], sign * beside[1]
        if value is before:
            break
    return value, sign


def signed_part(value: Value) -> tuple[Value, float] | None:
    """The part of a product or a quotient that is beside one with a sign that is known, and that sign."""
    made = value.producer
    if made is None or made.op.name not in ("mul", "div"):
        return None
    for part, other in (made.operands, made.operands[::-1])[: 1 + (made.op.name == "mul")]:
        known = sign_of(other)
        if known:
            return part, known
    return None


def sign_of(value: Value) -> float:
    """The sign that a value has everywhere; 0 if it is not known to have one."""
    if value.producer is not None and value.producer.op.name in UNDERFLOWING:
        return 1.0
    low, high = bounds(value)
    return 1.0 if low > 0.0 else -1.0 if high < 0.0 else 0.0
