"""Products of powers of one value, a root among them: sqrt(x)**2, x*sqrt(x), sqrt(x)**3, cbrt(x**3), sqrt(x**4 + x**4).

At 0 the slope of the root is infinite, and times 0; that of the product is a number. It is taken from the power that
the product is, there alone, so that elsewhere nothing is computed in another way.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, is_known, made_by, operand_of, rule

DEPTH: Final = 4
"""How many ops a product may be made of, one behind the other."""
NEAR: Final = 1e-12
"""Sums of exponents as 1/3 and 2/3 are whole to rounding."""


class Monomial(NamedTuple):
    """``scale * abs(base)**power``: of the sign of the base where it is ``odd``, of no negative base where ``half``."""

    base: Value
    power: float = 1.0
    odd: bool = True
    half: bool = False
    scale: float = 1.0
    rooted: bool = False

    def raised(self, exponent: float) -> Monomial | None:
        """None where the factor has no such power, or one that overflows or is 0."""
        whole = exponent.is_integer()
        with np.errstate(all="ignore"):
            scale = float(np.float64(self.scale) ** exponent)
        if not 0.0 < abs(scale) < float("inf"):
            return None
        return self._replace(
            power=rounded(self.power * exponent),
            odd=self.odd and exponent % 2 == 1,
            half=self.half or (self.odd and not whole),
            scale=scale,
            rooted=self.rooted or not whole,
        )

    def times(self, other: Monomial) -> Monomial | None:
        if self.base is not other.base:
            return None
        return Monomial(
            self.base,
            rounded(self.power + other.power),
            self.odd is not other.odd,
            self.half or other.half,
            self.scale * other.scale,
            self.rooted or other.rooted,
        )

    def beside(self, other: Monomial, scale: float) -> Monomial | None:
        """Two of one power of one value, put together to one of this scale."""
        same = self.base is other.base and self.power == other.power and self.odd is other.odd
        if not same or self.power == 1.0 or not 0.0 < abs(scale) < float("inf"):
            return None
        return self._replace(half=self.half or other.half, scale=scale, rooted=self.rooted or other.rooted)

    def at_zero(self, base: Term) -> Term | None:
        """As one power of the base, with the derivatives that the monomial has at 0; None where it is a kink."""
        power = self.power
        if power == 1.0 and not (self.half or self.odd):
            return None
        if self.half and power.is_integer():
            base = base + 0.0  # the square of the root of -0.0 is 0.0
        found = base
        if not power.is_integer():
            found = apply("pow", base, power)
        elif self.half or self.odd is (power % 2 == 1):
            found = base if power == 1.0 else apply("integer_pow", base, y=int(power))
        else:
            rest = base if power == 2.0 else apply("integer_pow", base, y=int(power) - 1)
            found = apply("abs", base) * rest
        return found if self.scale == 1.0 else self.scale * found


def rounded(power: float) -> float:
    return float(round(power)) if abs(power - round(power)) < NEAR else power


def number(value: Value) -> float | None:
    """One real number that a value is everywhere."""
    return float(value.value) if isinstance(value, Literal) and is_known(value) else None


def monomial(value: Value, depth: int = DEPTH) -> Monomial:
    """What a value is a monomial of: itself, if nothing else."""
    found = made_of_powers(value, depth) if depth else None
    return Monomial(value) if found is None else found


def made_of_powers(value: Value, depth: int) -> Monomial | None:
    made = value.producer
    if made is None or not made.operands:
        return None
    name, first = made.op.name, made.operands[0]
    if name == "mul":
        factors = [number(operand) for operand in made.operands]
        for factor, other in zip(factors, made.operands[::-1], strict=True):
            if factor:
                inner = monomial(other, depth - 1)
                return inner._replace(scale=inner.scale * factor)
        left, right = (monomial(operand, depth - 1) for operand in made.operands)
        return left.times(right)
    if name == "add" and number(made.operands[1]) == 0.0:
        return monomial(first, depth - 1)
    if name in ("add", "sub", "hypot"):
        left = monomial(first, depth - 1)
        return None if left.power == 1.0 else put_together(made, left, depth)
    if name == "div":
        divisor = number(made.operands[1])
        inner = monomial(first, depth - 1)
        scale = inner.scale / divisor if divisor else 0.0
        return inner._replace(scale=scale) if 0.0 < abs(scale) < float("inf") else None
    if name == "abs":
        if first.type.dtype.kind != "f":
            return None
        inner = monomial(first, depth - 1)
        return inner._replace(odd=False, scale=abs(inner.scale))
    if name == "cbrt":
        inner = monomial(first, depth - 1)
        scale = abs(inner.scale) ** (1 / 3) * (1.0 if inner.scale > 0.0 else -1.0)
        return inner._replace(power=rounded(inner.power / 3.0), scale=scale, rooted=True)
    exponent = exponent_of(made)
    if exponent is not None:
        return monomial(first, depth - 1).raised(exponent)
    if name == "select":
        return known_at_zero(made, depth)
    return None


def put_together(made: Operation, left: Monomial, depth: int) -> Monomial | None:
    """A sum, a difference or a hypotenuse of two powers."""
    right = monomial(made.operands[1], depth - 1)
    if made.op.name == "hypot":
        left, right = (each._replace(odd=False, rooted=True) for each in (left, right))
        return left.beside(right, math.hypot(left.scale, right.scale))
    return left.beside(right, left.scale + (right.scale if made.op.name == "add" else -right.scale))


def exponent_of(made: Operation) -> float | None:
    """Of an op that raises to a positive power."""
    exponent = {"square": 2.0, "sqrt": 0.5}.get(made.op.name)
    if made.op.name == "integer_pow":
        exponent = float(made.attrs["y"])
    elif made.op.name == "pow":
        exponent = number(made.operands[1])
    return exponent if exponent is not None and 0.0 < exponent < 2.0**31 else None


def known_at_zero(made: Operation, depth: int) -> Monomial | None:
    """Of what this module has made, or `bounds`."""
    where, there, elsewhere = made.operands
    if made_by(where, "less") is not None:
        return size_at_zero(made, depth)
    test = made_by(where, "equal")
    if test is None or number(test.operands[1]) != 0.0 or isinstance(elsewhere, Literal):
        return None
    found = monomial(there, depth - 1)
    return found._replace(rooted=True) if found.base is test.operands[0] else None


def size_at_zero(made: Operation, depth: int) -> Monomial | None:
    """Of select(x < 0, -x, x + 0.0)."""
    where, below, above = made.operands
    value = where.producer.operands[0] if where.producer is not None else where
    if operand_of(below, "neg") is not value or operand_of(above, "add") is not value:
        return None
    inner = monomial(value, depth - 1)
    return inner._replace(odd=False, scale=abs(inner.scale))


def away_from_zero(value: Value, base: Value, place: Term) -> Term:
    """A monomial of another place than its base."""
    if value is base:
        return place
    made = value.producer
    if made is None:
        return Term(place.builder, value)
    if made.op.name == "select" and made_by(made.operands[0], "equal") is not None:
        return Term(place.builder, made.operands[2])
    return made.op(*[away_from_zero(operand, base, place) for operand in made.operands], **made.attrs)


def is_held(value: Value) -> bool:
    made = value.producer
    return made is not None and made.op.name == "select" and made_by(made.operands[1], "stop_gradient") is not None


def is_scaled(operation: Operation) -> bool:
    return any(isinstance(operand, Literal) for operand in operation.operands)


def as_power(operation: Operation, builder: Builder) -> Value | None:
    value, first = operation.results[0], operation.operands[0]
    found = made_of_powers(value, DEPTH)
    if found is None or not found.rooted or is_held(found.base):
        return None
    infinite = found.power < 1.0 and (exponent_of(operation) or 0.0) < 1.0
    if first is found.base or infinite if operation.op.name != "mul" else is_scaled(operation):
        return None  # the slope is infinite, or that of one power, which knows it
    base = Term(builder, found.base)
    there = found.at_zero(base)
    if there is None or there.value is value:
        return None
    zero = base == 0.0
    return apply("select", zero, there, away_from_zero(value, found.base, held(zero, base))).value


_EXAMPLES: Final = {
    "mul": (
        lambda x: x * apply("sqrt", x),
        lambda x: apply("sqrt", x) * apply("square", x),
        lambda x: apply("square", apply("cbrt", x)) * (2.0 * x),
        lambda x: x * apply("sqrt", apply("abs", x)),
    ),
    "integer_pow": (
        lambda x: apply("integer_pow", apply("sqrt", x), y=3),
        lambda x: apply("integer_pow", apply("cbrt", x), y=4),
    ),
    "square": (
        lambda x: apply("square", apply("sqrt", x)),
        lambda x: apply("square", x * apply("sqrt", x)),
        lambda x: apply("square", x * apply("cbrt", x)),
        lambda x: apply("square", apply("sqrt", apply("sqrt", x))),
    ),
    "pow": (
        lambda x: apply("pow", apply("sqrt", x), 2.5),
        lambda x: apply("pow", apply("integer_pow", x, y=3), 0.5),
    ),
    "sqrt": (
        lambda x: apply("sqrt", apply("integer_pow", x, y=4)),
        lambda x: apply("sqrt", apply("pow", x, 6.0)),
        lambda x: apply("sqrt", apply("square", apply("square", x))),
        lambda x: apply("sqrt", x * apply("square", x)),
        lambda x: apply("sqrt", apply("pow", x, 4.0) + 3.0 * apply("integer_pow", x, y=4)),
    ),
    "hypot": (
        lambda x: apply("hypot", apply("square", x), apply("square", x)),
        lambda x: apply("hypot", 2.0 * apply("integer_pow", x, y=3), x * apply("square", x)),
    ),
    "cbrt": (
        lambda x: apply("cbrt", apply("integer_pow", x, y=3)),
        lambda x: apply("cbrt", x * apply("square", x)),
    ),
}
for _name, _examples in _EXAMPLES.items():
    rule(
        f"{_name}(x**p, …) -> select(x == 0, x**q, {_name}(x**p, …) of x held there)", *_examples, kinds="f", limit=True
    )(as_power)


# --- logarithms -------------------------------------------------------------------------------------------------------


@rule(
    "xlogy(x**p, x**q) -> select(x == 0, -pow(x, p), xlogy(x**p, x**q) of x held there)",
    lambda x: apply("xlogy", apply("square", x), x),
    lambda x: apply("xlogy", apply("integer_pow", x, y=3), 2.0 * apply("abs", x)),
    kinds="f",
    limit=True,
)
def power_with_logarithm(operation: Operation, builder: Builder) -> Value | None:
    """Derivatives of x**p log(x) at 0 are 0 below the p-th, which is infinite: as those of a power just below it."""
    left, right = (monomial(operand) for operand in operation.operands)
    if left.base is not right.base:
        return None
    if left.power <= 1.0 or right.scale <= 0.0 or is_held(left.base) or isinstance(left.base, Literal):
        return None
    base = Term(builder, left.base)
    zero = base == 0.0
    there = 0.0 - left.scale * apply("pow", base, math.ceil(left.power) - 0.5)
    sides = [away_from_zero(operand, left.base, held(zero, base)) for operand in operation.operands]
    return apply("select", zero, there, operation.op(*sides)).value
