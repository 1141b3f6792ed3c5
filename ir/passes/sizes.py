"""Sizes of even powers of a complex number: |z conj(z)| and |z**2| are |z|**2, and smooth where z is 0.

The size of the product has a kink there, of which it is not seen that it is reached as a square is. At 0 the sum of
squares of both parts takes its place, so that no value changes.
"""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, rule

DEPTH: Final = 6
"""How many ops a power may be made of, one behind the other."""


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
