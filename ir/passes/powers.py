"""Powers of norms and of squares at 0, where what the parts make of it is 0 times infinity or a kink that is none."""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, is_zero, made_by, operand_of, rule
from srcgrad.ir.passes.movement import scaled_by, size, squared_norm
from srcgrad.ir.passes.roots import is_held

SUMMED: Final = frozenset({"add", "reduce_sum", "reshape", "broadcast", "transpose", "reverse", "slice"})
"""What is made of sums of squares where its operands are."""
LENGTHS: Final = frozenset({"abs", "hypot", "reduce_norm", "kinked_sqrt"})
TERMS: Final = 16
"""How many sums and squares a sum of squares may be made of."""


@rule(
    "pow(abs(x), c) -> select(abs(x) == 0 and c == 2, x * x, pow(abs(x), c)), c not known",
    lambda x, c: apply("pow", size(x), c),
    lambda x, c: apply("pow", apply("hypot", x, 2.0 * x), c),
    lambda x, c: apply("pow", apply("reverse", size(x), axes=(0,)), c),
    kinds="f",
    limit=True,
)
def power_of_norm(operation: Operation, builder: Builder) -> Value | None:
    """The square is smooth at 0, as it is where the exponent is known; there, x**2 log(x) and its slope are 0."""
    base, exponent = operation.operands
    if base.type.dtype.kind != "f" or is_known(exponent):
        return None
    square = squared_norm(base, builder)
    if square is None:
        return None
    length, c = Term(builder, base), Term(builder, exponent)
    at = (length == 0.0) & (c == 2.0)
    return apply("select", at, Term(builder, square), apply("pow", apply("select", at, 1.0, length), c)).value


@rule(
    "pow(integer_pow(x, 2), c) -> pow(abs(x), 2c), c > 1/2 and not whole",
    lambda x: apply("pow", apply("integer_pow", x, y=2), 1.5),
    lambda x: apply("pow", apply("square", x), 1.25),
    lambda x: apply("pow", apply("square", x), 0.75),
    lambda x: apply("pow", apply("reduce_sum", apply("integer_pow", x, y=2), axes=(0,)), 1.5),
    lambda x, y: apply("pow", x * x + apply("square", y), 1.5),
    lambda x, c: apply("pow", apply("square", x), c),
    kinds="f",
    limit=True,
)
def power_of_square(operation: Operation, builder: Builder) -> Value | None:
    """At 0 the inner power of a derivative would be infinite, and times 0. The root of a sum of squares is a norm."""
    base, exponent = operation.operands
    if base.type.dtype.kind != "f" or not is_sum_of_squares(base):
        return None
    inner = squared_value(base)
    length = apply("kinked_sqrt" if inner is None else "abs", Term(builder, base if inner is None else inner))
    if not is_known(exponent):
        return power_of_square_at_zero(Term(builder, base), length, Term(builder, exponent)).value
    literal = float(exponent.value)
    if not 0.5 < literal < float("inf") or literal.is_integer():
        return None
    return apply("pow", length, 2.0 * literal).value


@rule("hypot(x, 0.0) -> abs(x)", lambda x: apply("hypot", x, 0.0), kinds="f", limit=True)
def length_along_an_axis(operation: Operation, builder: Builder) -> Value | None:
    """That of a square has no kink."""
    for value, other in (operation.operands, operation.operands[::-1]):
        if is_zero(other):
            return apply("abs", Term(builder, value)).value
    return None


@rule(
    "xlogy(r**2, r) -> select(r == 0, -pow(r, 3/2), xlogy(r**2, r) held there), of a norm r",
    lambda x: apply("xlogy", x * x, apply("abs", x)),
    lambda x, y: with_log(x * x + apply("square", y)),
    kinds="f",
    limit=True,
)
def square_with_logarithm(operation: Operation, builder: Builder) -> Value | None:
    """r**2 log(r) ends with the slope 0 at 0, and an infinite second derivative: so does the power beside it."""
    square, length = operation.operands
    if square.type.dtype.kind != "f" or is_held(square):
        return None
    p, r = Term(builder, square), Term(builder, length)
    if (square is length or operand_of(length, "sqrt") is square) and is_sum_of_squares(square):
        inner = squared_value(square)
        root = apply("kinked_sqrt", p) if inner is None else apply("abs", Term(builder, inner))
    elif squared_norm(length, builder) is square:
        root = r
    else:
        return None
    zero = root == 0.0
    there = 0.0 - apply("pow", root, 1.5)
    return apply("select", zero, there, operation.op(held(zero, p), held(zero, r))).value


def with_log(x: Term) -> Term:
    """``xlogy(x, x)``, in an example."""
    return apply("xlogy", x, x)


def even_power(value: Value) -> tuple[Value, int] | None:
    """The base and the exponent of an even power that is no square, or of the square of a square."""
    inner = squared_value(value)
    base = None if inner is None else squared_value(inner)
    made = value.producer
    if base is not None or made is None or made.op.name not in ("pow", "integer_pow"):
        return None if base is None else (base, 4)
    exponent = made.operands[1] if made.op.name == "pow" else None
    power = float(exponent.value) if exponent is not None and is_known(exponent) else made.attrs.get("y", 0)
    return (made.operands[0], int(power)) if 4 <= power < 2**31 and power % 2 == 0 else None


def is_sum_of_squares(value: Value, quotients: bool = True) -> bool:
    """Whether the value is of squares and their sums only, and of few: it is 0 where they are.

    ``quotients``: also divided by something, of whatever sign.
    """
    pending, seen = [value], 0
    while pending and seen < TERMS:
        value, seen = pending.pop(), seen + 1
        if squared_value(value) is not None or is_product_with_itself(value):
            continue
        made = value.producer
        if made is None:
            return False
        scale = scaled_by(made)
        if made.op.name in SUMMED:
            pending += made.operands
        elif made.op.name == "div" and quotients:
            pending.append(made.operands[0])
        elif scale is not None and scale[2] > 0.0:
            pending.append(scale[0])
        else:
            return False
    return not pending


def squared_value(value: Value) -> Value | None:
    """The x of x**2, in any spelling."""
    made = value.producer
    if made is None:
        return None
    twice = made.op.name == "mul" and made.operands[0] is made.operands[1]
    return made.operands[0] if twice or made.op.name == "square" or made.attrs.get("y") == 2 else None


def is_product_with_itself(value: Value) -> bool:
    """Whether the value is ``x @ x``, or a stack of such sums."""
    made = made_by(value, "dot_general")
    if made is None or made.operands[0] is not made.operands[1]:
        return False
    contract, batch = made.attrs["contract"], made.attrs["batch"]
    paired = contract[0] == contract[1] and batch[0] == batch[1]
    return paired and len(contract[0]) + len(batch[0]) == len(made.operands[0].type.shape)


def power_of_square_at_zero(square: Term, length: Term, c: Term) -> Term:
    """The power of the square, of which at 0 the exponent says what it is: of the length, the square itself, or this.

    Of c = 1 the derivative in x and c, 2 x (1 + log(x**2)), has the limit 0, which it would not find.
    """
    zero = square == 0.0
    itself = zero & (c == 1.0)
    apart = zero & (c > 0.5) & ~(c == apply("rint", c))
    base = apply("select", apart, length, apply("select", itself, 1.0, square))
    return apply("select", itself, square, apply("pow", base, apply("select", apart, 2.0 * c, c)))
