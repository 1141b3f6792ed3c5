"""exp(log(t) + c) and its like where t is 0: t exp(c), of which the slope is exp(c) and not 0 times inf.

So are exp(p log(t) + c) and exp(xlogy(p, t) + c), as densities are written: t**p exp(c), of p > 0. The product of
several t may underflow where the sum of their logarithms does not: what is taken for 0 is where the exponential is 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.flats import held, is_positive, may_overflow
from srcgrad.ir.passes.matching import apply, is_known, rule
from srcgrad.ir.passes.roots import is_held

DEPTH: Final = 6
"""How many sums and movements a logarithm is looked for behind."""


class Logs(NamedTuple):
    """How sums of logarithms are read.

    ``any_power``: also those times what is no number, as in xlogy(a - 1, x). The power costs more than the rest of a
    program, so that it is for those who know that it is needed.
    """

    builder: Builder
    any_power: bool = False

    def read(self, value: Value, depth: int = DEPTH) -> tuple[Term, Term | None] | None:
        """The t and the c of log(t) + c; where t is 0 its logarithm is -inf."""
        made = value.producer
        if made is None or depth == 0 or value.type.dtype.kind != "f":
            return None
        name = made.op.name
        if name in ("log", "log1p"):
            operand = Term(self.builder, made.operands[0])
            return operand if name == "log" else 1.0 + operand, None
        if is_held(value):
            return self.read(made.operands[2], depth - 1)
        if name in OTHERS:
            return OTHERS[name](self, made, depth - 1)
        if name not in ("add", "sub", "broadcast", "reshape"):
            return None
        operands = [Term(self.builder, operand) for operand in made.operands]
        left = self.read(made.operands[0], depth - 1)
        if name == "add":
            right = self.read(made.operands[1], depth - 1)
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

    def power(self, made: Operation, depth: int) -> tuple[Term, Term | None] | None:
        """Of a positive number times a logarithm."""
        p, base = (Term(self.builder, operand) for operand in made.operands)
        if not (is_positive(p.value) or (self.any_power and not is_known(p.value))):
            return None
        return apply("pow", base if made.op.name == "xlogy" else 1.0 + base, p), None

    def multiple(self, made: Operation, depth: int) -> tuple[Term, Term | None] | None:
        for factor, other in (made.operands, made.operands[::-1]):
            fits = is_positive(factor) or (self.any_power and not is_known(factor))
            found = self.read(other, depth) if fits else None
            if found is not None:
                p = Term(self.builder, factor)
                return apply("pow", found[0], p), None if found[1] is None else p * found[1]
        return None

    def chosen(self, made: Operation, depth: int) -> tuple[Term, Term | None] | None:
        """A logarithm where something holds, and else that of 0."""
        where, value, other = made.operands
        found = self.read(value, depth) if is_known(other) and float(other.value) == float("-inf") else None
        if found is None:
            return None
        p, (t, rest) = Term(self.builder, where), found
        return apply("select", p, t, 0.0), None if rest is None else apply("select", p, rest, 0.0)

    def parts(self, made: Operation, depth: int) -> tuple[Term, Term | None] | None:
        """Parts that are no logarithm are log(1) and themselves."""
        found = [self.read(operand, depth) for operand in made.operands]
        if found == [None] * len(found):
            return None
        ones, rests = [], []
        for operand, each in zip(made.operands, found, strict=True):
            part = Term(self.builder, operand)
            t, rest = (part.like(1.0), part) if each is None else each
            ones.append(t)
            rests.append(part.like(0.0) if rest is None else rest)
        return made.op(*ones, **made.attrs), made.op(*rests, **made.attrs)


OTHERS: Final = {
    "xlogy": Logs.power,
    "xlog1py": Logs.power,
    "mul": Logs.multiple,
    "select": Logs.chosen,
    "concatenate": Logs.parts,
}


def largest(like: Term) -> float:
    """Where exp is still finite."""
    return float(np.log(np.finfo(like.dtype).max)) - 1.0


def smallest(like: Term) -> float:
    """Where exp is 0 already."""
    return float(np.log(np.finfo(like.dtype).smallest_subnormal)) - 1.0


@rule(
    "exp(log(t) + c) -> select(t == 0, t * exp(c), exp(log(t) + c)) where both are 0",
    lambda t, c: apply("exp", apply("log", t) + c),
    lambda t, c: apply("exp", c + apply("log1p", -t) - 2.0 * c),
    lambda t: apply("exp", apply("log", t)),
    lambda t, c: apply("exp", c - apply("square", t) + 2.0 * apply("log", t)),
    lambda t: apply("exp", apply("xlogy", t.like(1.5), t) - t),
    lambda t: apply("exp", apply("xlog1py", t.like(0.5), -t) + 1.0),
    kinds="f",
    limit=True,
)
def exponential_of_log(operation: Operation, builder: Builder) -> Value | None:
    exponent = operation.operands[0]
    found = vanishing(exponent, Logs(builder))
    if found is None:
        return None
    gone, t, rest = found
    power = apply("exp", apply("select", gone, rest, Term(builder, exponent)))
    return apply("select", gone, t * power + 0.0, power).value


def vanishing(exponent: Value, logs: Logs) -> tuple[Term, Term, Term] | None:
    """Where exp(log(t) + c) is 0 because t is, that t, and c; None of what has no logarithm in it."""
    found = logs.read(exponent)
    if found is None:
        return None
    x, (t, rest) = Term(logs.builder, exponent), found
    gone = (x < smallest(x)) & (t == 0.0)
    if rest is None:
        return gone, t, t.like(0.0)
    if may_overflow(rest.value):
        rest = held(rest == float("-inf"), rest)
    return gone & (rest < largest(rest)), t, rest


@rule(
    "logaddexp(log(t) + c, y) -> select(log(t) + c == -inf, y + log1p(t * exp(c - y)), logaddexp(log(t) + c, y))",
    lambda t, c, y: apply("logaddexp", apply("log", t) + c, y),
    lambda t, c: apply("logaddexp", apply("log", t) + c, apply("log1p", -t) - c),
    kinds="f",
    limit=True,
)
def sum_with_log(operation: Operation, builder: Builder) -> Value | None:
    sides = [Term(builder, operand) for operand in operation.operands]
    found = [Logs(builder).read(operand) for operand in operation.operands]
    if found == [None, None]:
        return None
    limits, kept = [], list(sides)
    for k, each in enumerate(found):
        if each is None:
            continue
        (t, rest), y = each, sides[1 - k]
        exponent = -y if rest is None else rest - y
        gone = (sides[k] == float("-inf")) & (t == 0.0) & (exponent < largest(y)) & (y < float("inf"))
        small = t * apply("exp", apply("select", gone, exponent, 0.0))
        limits.append((gone, y + apply("log1p", apply("select", gone, small, 0.0))))
        kept[k] = held(gone, sides[k])
    result = apply("logaddexp", *kept)
    for gone, limit in limits:
        result = apply("select", gone, limit, result)
    return result.value
