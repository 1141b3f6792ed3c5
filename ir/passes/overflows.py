"""Logarithms of exponentials that overflow or underflow: their slope is that of the exponent, not inf/inf or 0/0.

log(1 + exp(x)), log(cosh(x)) and log(exp(x)/s) are infinite there, as in NumPy; the exponents of what they are of are
not. Of sums of several exponentials these would cost as much as the sums: they stay as they are.
"""

from __future__ import annotations

import math
from typing import Final

from srcgrad.ir.core import Builder, Literal, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held, is_positive, may_underflow
from srcgrad.ir.passes.log_terms import largest
from srcgrad.ir.passes.matching import apply, rule

DEPTH: Final = 6
"""How many ops an exponential is looked for behind."""
LOG2: Final = math.log(2.0)
SCALES: Final = {"log": 1.0, "log1p": 1.0, "log2": 1.0 / LOG2, "log10": 1.0 / math.log(10.0)}
LARGEST: Final = {"expm1": "inf", "cosh": "inf", "sinh": "inf", "expit": "0"}
"""Where other ops are exponentials to rounding."""
HALVES: Final = frozenset({"cosh", "sinh"})
MOVED: Final = frozenset({"reshape", "broadcast", "transpose", "slice", "gather", "reverse"})


def exponent(value: Value, builder: Builder, where: str, depth: int = DEPTH) -> Term | None:
    """The logarithm of an exponential, times and beside others.

    ``where``: where it is "inf" nothing counts beside it that is no exponential, where it is "0" it is that of the
    exponential which underflows; else "everywhere".
    """
    made = value.producer
    if made is None or not made.operands or depth == 0 or value.type.dtype.kind != "f":
        return None
    name, x = made.op.name, Term(builder, made.operands[0])
    if name == "exp":
        return x
    if name == "exp2":
        return x * LOG2
    if LARGEST.get(name) == where:
        return (apply("abs", x) if name == "cosh" else x) - (LOG2 if name in HALVES else 0.0)
    if name in MOVED:
        found = exponent(made.operands[0], builder, where, depth - 1)
        rest = [Term(builder, operand) for operand in made.operands[1:]]
        return None if found is None else made.op(found, *rest, **made.attrs)
    if name in ("mul", "div"):
        return of_product(made, builder, depth - 1)
    if name in ("add", "sub") and where == "inf":
        left, right = (exponent(side, builder, where, depth - 1) for side in made.operands)
        if right is None:
            return left
        return right if left is None and name == "add" else None
    return None


def of_product(made: Operation, builder: Builder, depth: int) -> Term | None:
    """Also of a factor that is finite where the other is not."""
    found = [exponent(side, builder, "everywhere", depth) for side in made.operands]
    if all(log is None for log in found):
        return None
    left, right = (
        logarithm(side, Term(builder, side)) if log is None else log
        for log, side in zip(found, made.operands, strict=True)
    )
    return left + right if made.op.name == "mul" else left - right


def is_alone(value: Value) -> bool:
    """Whether nothing but the exponential may be what is infinite."""
    made = value.producer
    if made is None or made.op.name not in ("add", "sub"):
        return made is not None and (made.op.name in LARGEST or made.op.name in ("exp", "exp2"))
    number, other = sorted(made.operands, key=lambda operand: not isinstance(operand, Literal))
    return isinstance(number, Literal) and is_alone(other)


def logarithm(value: Value, term: Term) -> Term:
    """Of what is no exponential."""
    if isinstance(value, Literal) and is_positive(value):
        return term.like(math.log(float(value.value)))
    return apply("log", term)


def followed(name: str) -> None:
    """The rule of a logarithm."""

    @rule(
        f"{name}(exp(x)) -> select(exp(x) is 0 or inf, x + {name}(exp(x)) held, {name}(exp(x)))",
        lambda x: apply(name, apply("exp", x)),
        lambda x, y: apply(name, apply("exp", x) / (1.0 + apply("exp", y))),
        lambda x: apply(name, 1.0 + apply("exp", x)),
        lambda x: apply(name, 1.0 + apply("expm1", 1.0 + apply("abs", x))),
        lambda x: apply(name, apply("cosh", x)),
        lambda x, y: apply(name, 2.0 * apply("exp2", x) * (1.0 + apply("square", y))),
        lambda x: apply(name, 2.0 + apply("sinh", apply("abs", x))),
        kinds="f",
        limit=True,
    )
    def logarithm_of_exponential(operation: Operation, builder: Builder) -> Value | None:
        argument = Term(builder, operation.operands[0])
        small = name != "log1p" and may_underflow(argument.value)
        found = exponent(argument.value, builder, "0" if small else "inf")
        if found is None:
            return None
        gone = argument == float("inf")
        if not is_alone(argument.value):
            gone = gone & (found > largest(argument))
        if small:
            gone = gone | (argument == 0.0)
        plain = apply(name, held(gone, argument))
        return apply("select", gone, SCALES[name] * found + apply("stop_gradient", plain), plain).value


for _name in SCALES:
    followed(_name)
