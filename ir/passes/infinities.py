"""Where a square is infinite: what is flat there has the derivative 0, not 0 times the infinite slope of the square.

So has what is constant at infinity beside what it is multiplied by: x*tanh(x) has the slope 1 at inf.

Not in the bodies of loops: there the masks of what is held cost more than the rest of the derivative (an energy of all
pairs took 75 µs, not 43).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from srcgrad.ir.core import Builder, Literal, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import SATURATING, held
from srcgrad.ir.passes.matching import apply, is_known, operand_of, rule
from srcgrad.ir.passes.rewrite import Sweep

LOOKED: Final = 5
"""How many ops a square is looked for through."""
FLAT: Final = 1000.0
"""Beyond which exponentials are 0."""
LOGARITHMS: Final = ("log", "log1p", "log2", "log10")


def grows(value: Value, depth: int = LOOKED) -> bool:
    """Whether this is of squares and higher powers, times and beside numbers: infinite where one of them is.

    Not an exponential, of which a logarithm is not flat.
    """
    made = value.producer
    if made is None or depth == 0:
        return False
    name, operands = made.op.name, made.operands
    if name == "square" or name == "neg":
        return name == "square" or grows(operands[0], depth - 1)
    if name == "integer_pow":
        return bool(made.attrs["y"] > 1)
    if name == "pow":
        return isinstance(operands[1], Literal) and is_known(operands[1]) and float(operands[1].value) > 1.0
    if name == "mul" and is_product_with_itself(operands[0], operands[1]):
        return True
    if name == "add" and all(grows(operand, depth - 1) for operand in operands):
        return True
    if name == "div":
        return isinstance(operands[1], Literal) and grows(operands[0], depth - 1)
    if name not in ("add", "sub", "mul"):
        return False
    left, right = operands if isinstance(operands[1], Literal) else operands[::-1]
    return isinstance(right, Literal) and grows(left, depth - 1)


def is_product_with_itself(left: Value, right: Value) -> bool:
    return left is right or operand_of(left, "neg") is right or operand_of(right, "neg") is left


def has_pole(value: Value, depth: int = LOOKED) -> bool:
    """Whether this is a number over something, times and beside numbers."""
    made = value.producer
    if made is None or depth == 0:
        return False
    name, operands = made.op.name, made.operands
    if name == "neg":
        return has_pole(operands[0], depth - 1)
    if name == "div" and isinstance(operands[0], Literal):
        return True
    if name not in ("add", "sub", "mul", "div"):
        return False
    left, right = operands if isinstance(operands[1], Literal) else operands[::-1]
    return isinstance(right, Literal) and has_pole(left, depth - 1)


def is_inside(builder: Builder) -> bool:
    return isinstance(builder, Sweep) and builder.inside


def held_where_infinite(value: Value, builder: Builder) -> Term:
    term = Term(builder, value)
    return held(apply("is_inf", term), term)


@rule(
    "div(y, square(x)) -> div(y, square(x) held where it is infinite)",
    lambda x, y: y / (1.0 + apply("square", x)),
    lambda x: 1.0 / (2.0 - x * x / 3.0),
    lambda x, y: y / (apply("integer_pow", x, y=3) - 1.0),
    lambda x, y: y / (x * x + apply("square", y)),
    kinds="f",
    limit=True,
)
def quotient_by_square(operation: Operation, builder: Builder) -> Value | None:
    numerator, denominator = operation.operands
    if is_inside(builder) or not grows(denominator):
        return None
    return (Term(builder, numerator) / held_where_infinite(denominator, builder)).value


@rule(
    "exp(square(x)) -> exp(square(x) held where it is -inf)",
    lambda x: apply("exp", -apply("square", x)),
    lambda x: apply("exp", -x * x / 2.0),
    lambda x: apply("exp", -0.5 * apply("integer_pow", x, y=2) + 1.0),
    lambda x: apply("exp", -1.0 / apply("square", x)),
    lambda x: apply("exp", -(1.0 / x)),
    kinds="f",
    limit=True,
)
def exponential_of_square(operation: Operation, builder: Builder) -> Value | None:
    """An exponential vanishes faster than any power grows, that of the distance to a pole too."""
    exponent = operation.operands[0]
    if is_inside(builder) or not (grows(exponent) or has_pole(exponent)):
        return None
    term = Term(builder, exponent)
    return apply("exp", held(term == float("-inf"), term)).value


def slow(name: str) -> None:
    """The rule of a logarithm: that of a power has the slope of 1/x."""

    @rule(
        f"{name}(square(x)) -> {name}(square(x) held where it is infinite)",
        lambda x: apply(name, 1.0 + apply("square", x)),
        lambda x, y: apply(name, x * x + apply("square", y) / 2.0),
        kinds="f",
        limit=True,
    )
    def logarithm_of_square(operation: Operation, builder: Builder) -> Value | None:
        argument = operation.operands[0]
        if is_inside(builder) or not grows(argument):
            return None
        return apply(name, held_where_infinite(argument, builder)).value


for _name in LOGARITHMS:
    slow(_name)


@rule(
    "reciprocal(square(x)) -> reciprocal(square(x) held where it is infinite)",
    lambda x: apply("reciprocal", 1.0 + apply("square", x)),
    kinds="f",
    limit=True,
)
def reciprocal_of_square(operation: Operation, builder: Builder) -> Value | None:
    base = operation.operands[0]
    if is_inside(builder) or not grows(base):
        return None
    return apply("reciprocal", held_where_infinite(base, builder)).value


@rule(
    "integer_pow(square(x), -n) -> integer_pow(square(x) held where it is infinite, -n)",
    lambda x: apply("integer_pow", 1.0 + apply("square", x), y=-1),
    kinds="f",
    limit=True,
)
def negative_power_of_square(operation: Operation, builder: Builder) -> Value | None:
    base, y = operation.operands[0], operation.attrs["y"]
    if is_inside(builder) or y >= 0 or not grows(base):
        return None
    return apply("integer_pow", held_where_infinite(base, builder), y=y).value


@rule(
    "pow(square(x), -c) -> pow(square(x) held where it is infinite, -c)",
    lambda x: apply("pow", 1.0 + apply("square", x), -0.5),
    kinds="f",
    limit=True,
)
def negative_root_of_square(operation: Operation, builder: Builder) -> Value | None:
    base, exponent = operation.operands
    if is_inside(builder) or not is_known(exponent) or float(exponent.value) >= 0.0 or not grows(base):
        return None
    return apply("pow", held_where_infinite(base, builder), Term(builder, exponent)).value


# --- products ---------------------------------------------------------------------------------------------------------


@rule(
    "mul(x, tanh(x)) -> mul(x, tanh(x held where tanh is constant))",
    lambda x: x * apply("tanh", x),
    lambda x: x * apply("expit", 1.702 * x),
    lambda x: 0.5 * x * (1.0 + apply("erf", x / 1.5)),
    lambda x: (1.0 + apply("tanh", x + 0.1 * apply("integer_pow", x, y=3))) * x,
    lambda x: apply("arctan", x) * x,
    kinds="f",
    limit=True,
)
def product_with_saturating(operation: Operation, builder: Builder) -> Value | None:
    """Where x is infinite the slope of tanh is 0, and that of the product is tanh(x), not inf times 0 and it."""
    if is_inside(builder):
        return None
    for factor, other in (operation.operands, operation.operands[::-1]):
        if not isinstance(factor, Literal):
            found = flat_beyond(other, variable(factor), builder, SATURATING)
            if found is not None:
                return (Term(builder, factor) * found).value
    return None


@rule(
    "div(x, exp(x)) -> div(x, exp(x held where it is constant))",
    lambda x: x / (1.0 + apply("exp", -x)),
    lambda x: 2.0 * x / (apply("exp", -x / 3.0) + 1.0),
    kinds="f",
    limit=True,
)
def quotient_with_vanishing(operation: Operation, builder: Builder) -> Value | None:
    """Where the exponential is 0."""
    numerator, denominator = operation.operands
    if is_inside(builder) or isinstance(numerator, Literal):
        return None
    found = flat_beyond(denominator, variable(numerator), builder, ("exp",))
    return None if found is None else (Term(builder, numerator) / found).value


def variable(value: Value, depth: int = LOOKED) -> Value:
    """What a value is a polynomial of, if it is one of one value alone; else itself."""
    made = value.producer
    if made is None or depth == 0:
        return value
    name, operands = made.op.name, made.operands
    if name in ("neg", "square", "integer_pow"):
        return variable(operands[0], depth - 1)
    if name not in ("add", "sub", "mul", "div"):
        return value
    found = {variable(operand, depth - 1) for operand in operands if not isinstance(operand, Literal)}
    return found.pop() if len(found) == 1 else value


def flat_beyond(value: Value, x: Value, builder: Builder, names: Collection[str], depth: int = LOOKED) -> Term | None:
    """A function of a polynomial of x, times and beside numbers, with the polynomial held where that is flat."""
    made = value.producer
    if made is None or depth == 0:
        return None
    if made.op.name in names:
        return flat(made, x, builder)
    if made.op.name not in ("add", "sub", "mul", "div", "neg"):
        return None
    sides = [Term(builder, operand) for operand in made.operands]
    k = next((k for k, operand in enumerate(made.operands) if not isinstance(operand, Literal)), 0)
    if any(not isinstance(operand, Literal) for operand in made.operands[k + 1 :]):
        return None
    found = flat_beyond(made.operands[k], x, builder, names, depth - 1)
    if found is None:
        return None
    sides[k] = found
    return made.op(*sides, **made.attrs)


def flat(made: Operation, x: Value, builder: Builder) -> Term | None:
    """Beyond `FLAT` the slopes of exponentials are 0 to the last bit, and those of a polynomial may overflow."""
    place = Term(builder, made.operands[0])
    if variable(place.value) is not x:
        return None
    if made.op.name == "exp":
        gone = place < -FLAT
    else:
        gone = apply("is_inf", place) if made.op.name == "arctan" else apply("abs", place) > FLAT
    return made.op(held(gone, place))
