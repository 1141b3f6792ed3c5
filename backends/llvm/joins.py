"""Operations that are one function together with what makes their operands, where these are computed beside them.

The derivative of a tanh is the square of a sech, with which it has the exponential and the quotient in common; those of
roots, arcsin and arccosh are reciprocals of roots, that of arcsinh is one of a hypot, and those of arctan2 are by its
square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import F32, F64
from srcgrad.ir.core import Literal, Operation, Value, literal

Made = Callable[[Value], Operation | None]
"""What makes a value that is computed where it is read."""
Joined = tuple[tuple[Value, ...], str] | None
"""The operands of a function, and its name."""
MOST: Final = 32
"""The largest exponent of a power of two over a root, with which no result is subnormal or infinite for it."""


def made_by(name: str, value: Value, made: Made) -> Operation | None:
    operation = value.producer
    return made(value) if operation is not None and operation.op.name == name else None


def power_of_two(value: Value) -> int | None:
    """The exponent of a literal that is a power of two, or minus one."""
    if not isinstance(value, Literal) or not value.splat or value.type.dtype not in (F32, F64):
        return None
    fraction, exponent = np.frexp(value.value)
    return int(exponent) - 1 if abs(fraction) == 0.5 else None


def square(operands: Sequence[Value], made: Made) -> Joined:
    inner = made_by("sech", operands[0], made)
    return None if inner is None else (inner.operands, "sech_squared")


def div(operands: Sequence[Value], made: Made) -> Joined:
    """By a power of two it is a product: that has an exact reciprocal. Else a power of two over a root or a hypot.

    Twice by a hypot, as the derivatives of arctan2 are, it is once by its square.
    """
    above, below = operands
    exponent = power_of_two(below)
    if exponent is not None and isinstance(below, Literal):
        if abs(exponent + 1) < np.finfo(below.type.dtype).maxexp - 2:
            return (above, literal(np.reciprocal(below.value), below.type)), "mul"
        return None
    inner, length = made_by("div", above, made), made_by("hypot", below, made)
    if inner is not None and length is not None and inner.operands[1] is below:
        return (inner.operands[0], *length.operands), "over_square_of_hypot"
    exponent = power_of_two(above)
    if exponent is None or abs(exponent) > MOST:
        return None
    root = made_by("sqrt", below, made)
    if root is not None:
        return (above, *root.operands), "inverse_root"
    assert isinstance(above, Literal)
    return hypot_with_one(below, made) if above.value == 1.0 else None


def reciprocal(operands: Sequence[Value], made: Made) -> Joined:
    root = made_by("sqrt", operands[0], made)
    if root is None:
        return hypot_with_one(operands[0], made)
    x = root.operands[0]
    return (literal(x.type.dtype.type(1), x.type), x), "inverse_root"


def hypot_with_one(value: Value, made: Made) -> Joined:
    inner = made_by("hypot", value, made)
    if inner is None or power_of_two(inner.operands[1]) != 0:
        return None
    return inner.operands[:1], "arcsinh_slope"


def mul(operands: Sequence[Value], made: Made) -> Joined:
    """The product of two reciprocals of roots."""
    inner: list[Value] = []
    for operand in operands:
        quotient = made_by("reciprocal", operand, made)
        root = None if quotient is None else made_by("sqrt", quotient.operands[0], made)
        if root is None:
            return None
        inner += root.operands
    return tuple(inner), "inverse_root_of_product"


JOINED: Final[dict[str, Callable[[Sequence[Value], Made], Joined]]] = {
    "div": div,
    "mul": mul,
    "reciprocal": reciprocal,
    "square": square,
}
"""By op, the function and its operands; none where it stays as it is."""
