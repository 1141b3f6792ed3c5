"""exp(log(t) + c) and its like where t is 0: t exp(c), of which the slope is exp(c) and not 0 times inf."""

from __future__ import annotations

from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held
from srcgrad.ir.passes.matching import apply, rule

DEPTH: Final = 6
"""How many sums and movements a logarithm is looked for behind."""


def as_log(value: Value, builder: Builder, depth: int = DEPTH) -> tuple[Term, Term | None] | None:
    """The t and the c of log(t) + c."""
    made = value.producer
    if made is None or depth == 0 or value.type.dtype.kind != "f":
        return None
    name, operands = made.op.name, [Term(builder, operand) for operand in made.operands]
    if name == "log":
        return operands[0], None
    if name == "log1p":
        return 1.0 + operands[0], None
    if name == "concatenate":
        return parts_as_log(made, builder, depth - 1)
    if name not in ("add", "sub", "broadcast", "reshape"):
        return None
    left = as_log(made.operands[0], builder, depth - 1)
    if name == "add":
        right = as_log(made.operands[1], builder, depth - 1)
        if left is not None and right is not None:
            rests = [rest for _, rest in (left, right) if rest is not None]
            return left[0] * right[0], sum(rests[1:], rests[0]) if rests else None
        found, other = (left, operands[1]) if right is None else (right, operands[0])
        return None if found is None else (found[0], other if found[1] is None else found[1] + other)
    if left is None:
        return None
    t, rest = left
    if name == "sub":
        return t, -operands[1] if rest is None else rest - operands[1]
    t = made.op(t, **made.attrs)
    return t, None if rest is None else made.op(rest, **made.attrs)


def parts_as_log(made: Operation, builder: Builder, depth: int) -> tuple[Term, Term | None] | None:
    """Parts that are no logarithm are log(1) and themselves."""
    found = [as_log(operand, builder, depth) for operand in made.operands]
    if found == [None] * len(found):
        return None
    ones, rests = [], []
    for operand, each in zip(made.operands, found, strict=True):
        part = Term(builder, operand)
        t, rest = (part.like(1.0), part) if each is None else each
        ones.append(t)
        rests.append(part.like(0.0) if rest is None else rest)
    return made.op(*ones, **made.attrs), made.op(*rests, **made.attrs)


def largest(like: Term) -> float:
    """Where exp is still finite."""
    return float(np.log(np.finfo(like.dtype).max)) - 1.0


@rule(
    "exp(log(t) + c) -> select(t == 0, t * exp(c), exp(log(t) + c))",
    lambda t, c: apply("exp", apply("log", t) + c),
    lambda t, c: apply("exp", c + apply("log1p", -t) - 2.0 * c),
    lambda t: apply("exp", apply("log", t)),
    kinds="f",
    limit=True,
)
def exponential_of_log(operation: Operation, builder: Builder) -> Value | None:
    found = as_log(operation.operands[0], builder)
    if found is None:
        return None
    x, (t, rest) = Term(builder, operation.operands[0]), found
    gone = t == 0.0 if rest is None else (t == 0.0) & (rest < largest(rest))
    power = apply("exp", apply("select", gone, 0.0 if rest is None else rest, x))
    return apply("select", gone, t * power, power).value


@rule(
    "logaddexp(log(t) + c, y) -> select(t == 0, y + log1p(t * exp(c - y)), logaddexp(log(t) + c, y))",
    lambda t, c, y: apply("logaddexp", apply("log", t) + c, y),
    lambda t, c: apply("logaddexp", apply("log", t) + c, apply("log1p", -t) - c),
    kinds="f",
    limit=True,
)
def sum_with_log(operation: Operation, builder: Builder) -> Value | None:
    sides = [Term(builder, operand) for operand in operation.operands]
    found = [as_log(operand, builder) for operand in operation.operands]
    if found == [None, None]:
        return None
    limits, kept = [], list(sides)
    for k, each in enumerate(found):
        if each is None:
            continue
        (t, rest), y = each, sides[1 - k]
        exponent = -y if rest is None else rest - y
        gone = (t == 0.0) & (exponent < largest(y)) & (y < float("inf"))
        small = t * apply("exp", apply("select", gone, exponent, 0.0))
        limits.append((gone, y + apply("log1p", apply("select", gone, small, 0.0))))
        kept[k] = held(gone, sides[k])
    result = apply("logaddexp", *kept)
    for gone, limit in limits:
        result = apply("select", gone, limit, result)
    return result.value
