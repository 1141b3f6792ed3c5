"""Sizes of what is 0 as a square is: |z conj(z)| of a complex z, |x exp(y) abs(x)|, |x sin(x)|, |copysign(x**2, x)|.

Of the whole the size has a kink there, of which it is not seen how it is reached. So it is that of the parts that have
one, or what it is on both sides. No value changes.
"""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.bounds import bounds
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, made_by, operand_of, rule
from srcgrad.ir.passes.same_kinks import SCALED, oriented, place_of, signed_part

DEPTH: Final = 6
"""How many ops a power may be made of, one behind the other."""
COMPOSED: Final = frozenset({"abs", "mul", "div", "neg", "square", "integer_pow", "maximum", "minimum", "select"})
"""Ops whose sizes are those of parts, or are smooth."""


def power(value: Value, depth: int = DEPTH) -> tuple[Value, int]:
    """The number of which a value has the size of a power, and the exponent: itself and 1, if nothing else."""
    made = value.producer
    if made is None or not made.operands or depth == 0:
        return value, 1
    name, first = made.op.name, made.operands[0]
    if name in ("conj", "neg"):
        return power(first, depth - 1)
    if name == "square" or (name == "integer_pow" and made.attrs["y"] > 0):
        base, exponent = power(first, depth - 1)
        return base, exponent * (2 if name == "square" else made.attrs["y"])
    if name == "mul":
        (base, one), (other, exponent) = (power(operand, depth - 1) for operand in made.operands)
        if base is other:
            return base, one + exponent
    return value, 1


# --- complex ----------------------------------------------------------------------------------------------------------


@rule(
    "abs(z**n) -> select(z == 0, (re z**2 + im z**2)**(n/2), abs(z**n held there)), n even",
    lambda z: apply("abs", z * apply("conj", z)),
    lambda z: apply("abs", apply("square", z)),
    lambda z: apply("abs", apply("conj", z) * apply("integer_pow", -z, y=3)),
    kinds="c",
    limit=True,
)
def size_of_power(operation: Operation, builder: Builder) -> Value | None:
    base, exponent = power(operation.operands[0])
    if exponent % 2:
        return None
    z, product = Term(builder, base), Term(builder, operation.operands[0])
    there = apply("square", apply("real", z)) + apply("square", apply("imag", z))
    zero = there == 0.0
    if exponent > 2:
        there = apply("integer_pow", there, y=exponent // 2)
    return apply("select", zero, there, apply("abs", held(zero, product))).value


# --- real -------------------------------------------------------------------------------------------------------------


@rule(
    "abs(sign(x)*y) -> abs(y), y = 0 where x is",
    lambda x: apply("abs", apply("sign", x) * apply("square", x)),
    lambda x, y: apply("abs", y * apply("sinh", x) * apply("sign", 2.0 * x)),
    lambda x, y: apply("abs", apply("sign", x - y) * apply("square", y - x)),
    kinds="f",
    limit=True,
)
def size_of_signed(operation: Operation, builder: Builder) -> Value | None:
    """Not of any y: where x is 0 the product is 0 along y too."""
    made = made_by(operation.operands[0], "mul")
    if made is None:
        return None
    for sign, size in (made.operands, made.operands[::-1]):
        x = operand_of(sign, "sign")
        if x is not None and vanishes(size, place_of(x)):
            return apply("abs", Term(builder, size)).value
    return None


def vanishes(value: Value, where: frozenset[Value | None], depth: int = DEPTH) -> bool:
    """Whether it is 0 wherever what is said by this place is."""
    if place_of(value) == where:
        return True
    made = value.producer
    if made is None or depth == 0:
        return False
    name = made.op.name
    if name in ("neg", "abs", "square", "div") or (name == "integer_pow" and made.attrs["y"] > 0):
        return vanishes(made.operands[0], where, depth - 1)
    return name == "mul" and any(vanishes(operand, where, depth - 1) for operand in made.operands)


def signs(value: Value, depth: int = DEPTH) -> tuple[bool, bool]:
    """Whether a value is known to be never negative, and never positive; also of extremes."""
    low, high = bounds(value)
    made = value.producer
    if made is None or made.op.name not in ("maximum", "minimum") or depth == 0:
        return low >= 0.0, high <= 0.0
    found = zip(*[signs(operand, depth - 1) for operand in made.operands], strict=True)
    one, other = (any, all) if made.op.name == "maximum" else (all, any)
    never_negative, never_positive = found
    return one(never_negative), other(never_positive)


def is_plain(value: Value) -> bool:
    """Whether it is 0 where one number is that no kink and no product is seen in, as x exp(y) is: its kink is the one
    of that number, and a program with sizes of all parts would be several times as slow."""
    for _ in range(SCALED):
        found = signed_part(value)
        if found is None:
            break
        value = found[0]
    return value.producer is None or value.producer.op.name not in COMPOSED


def size_of_parts(name: str) -> None:
    """The rule of a product or a quotient of which one part has a sign that is known."""

    @rule(
        f"abs({name}(x, y)) -> {name}(abs(x), abs(y)), x >= 0 or y >= 0",
        lambda x: apply("abs", apply(name, x, apply("abs", x))),
        lambda x, y: apply("abs", apply(name, x * apply("sin", x), apply("exp", y))),
        lambda x, y: apply("abs", apply(name, apply("square", x), y)),
        lambda x, y: apply("abs", apply(name, apply("maximum", x, y), -apply("hypot", y, 1.0))),
        kinds="f",
        limit=True,
    )
    def size_of_one_part(operation: Operation, builder: Builder) -> Value | None:
        made = made_by(operation.operands[0], name)
        if made is None or any(map(is_known, made.operands)):
            return None
        if is_plain(operation.operands[0]) or not any(any(signs(operand)) for operand in made.operands):
            return None
        return made.op(*[apply("abs", Term(builder, operand)) for operand in made.operands]).value


for _name in ("mul", "div"):
    size_of_parts(_name)


@rule(
    "abs(f(x)*g(x)) -> select(x == 0, f(x)*g(x), abs(f(x)*g(x) held there)), f and g of the sign of x",
    lambda x: apply("abs", x * apply("sin", x)),
    lambda x: apply("abs", apply("expm1", x) * apply("sinh", -x)),
    kinds="f",
    limit=True,
)
def size_of_even_product(operation: Operation, builder: Builder) -> Value | None:
    made = made_by(operation.operands[0], "mul")
    if made is None or any(map(is_known, made.operands)):
        return None
    (one, sign), (other, order) = map(oriented, made.operands)
    if one is not other:
        return None
    product = Term(builder, operation.operands[0])
    zero = Term(builder, one) == 0.0
    there = (product if sign == order else -product) + 0.0
    return apply("select", zero, there, apply("abs", held(zero, product))).value


@rule(
    "abs(maximum(x, y)) -> maximum(x, y), y >= 0",
    lambda x: apply("abs", apply("maximum", x, 0.0)),
    lambda x, y: apply("abs", apply("minimum", apply("maximum", x, 0.0), apply("exp", y))),
    lambda x: apply("abs", apply("minimum", apply("maximum", x, -1.0), 0.0)),
    kinds="f",
    limit=True,
)
def size_of_extreme(operation: Operation, builder: Builder) -> Value | None:
    """It has the kink of the extreme, and no other: not half of its slope times 0."""
    x = operation.operands[0]
    if x.producer is None or x.producer.op.name not in ("maximum", "minimum"):
        return None
    never_negative, never_positive = signs(x)
    if not (never_negative or never_positive):
        return None
    term = Term(builder, x)
    known = [signs(operand) for operand in x.producer.operands if is_known(operand)]
    bounded = x.producer.op.name == ("maximum" if never_negative else "minimum")
    if bounded and any(sign[0 if never_negative else 1] for sign in known):
        return (term + 0.0 if never_negative else 0.0 - term).value
    if never_negative:  # but for rounding
        return apply("select", term < 0.0, -term, term + 0.0).value
    return apply("select", term > 0.0, term, 0.0 - term).value


@rule(
    "abs(select(p, -x, x)) -> abs(x)",
    lambda p, x: apply("abs", apply("select", p, -x, x)),
    lambda p, x: apply("abs", apply("select", p, x, -x)),
    kinds="f",
    limit=True,
)
def size_of_either_sign(operation: Operation, builder: Builder) -> Value | None:
    made = made_by(operation.operands[0], "select")
    if made is None:
        return None
    one, other = made.operands[1:]
    if operand_of(one, "neg") is other:
        return apply("abs", Term(builder, other)).value
    return apply("abs", Term(builder, one)).value if operand_of(other, "neg") is one else None
