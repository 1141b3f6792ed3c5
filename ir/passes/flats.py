"""Where exponentials overflow or underflow: what is flat there to rounding has the derivative 0, not 0 times inf."""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Literal, Operation, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.matching import apply, is_known, rule

OVERFLOWING: Final = frozenset({"exp", "expm1", "exp2", "sinh", "cosh", "exprel", "erfcx", "i0", "i1"})
"""Ops that are inf at moderate arguments, and so are their derivatives."""
SUMS: Final = frozenset({"neg", "add", "sub", "mul"})
"""Ops that are infinite where an operand is, whatever finite numbers (but 0) the others are."""
SATURATING: Final = ("tanh", "arctan", "expit", "sech", "erf", "erfc", "ndtr")
"""Ops that are constant, to rounding, at either infinity."""
UNDERFLOWING: Final = frozenset({"exp", "exp2", "expit"})
"""Ops that are positive where they are not rounded to 0."""
MOVES: Final = frozenset({"reshape", "broadcast", "transpose", "slice", "gather", "reduce_sum", "cast", "identity"})
"""Ops that have a positive result of positive elements."""
ADDED, MOVED = 6, 8
"""How many ops a value is looked through: sums have two operands, so that they take twice the time for each."""


def may_overflow(value: Value, depth: int = ADDED) -> bool:
    """Whether this is an exponential, or one with a sign, added to something or multiplied."""
    producer = value.producer
    if producer is None or depth == 0:
        return False
    if producer.op.name in OVERFLOWING:
        return True
    if producer.op.name == "div":
        return may_overflow(producer.operands[0], depth - 1)
    return producer.op.name in SUMS and any(may_overflow(operand, depth - 1) for operand in producer.operands)


def may_underflow(value: Value, depth: int = MOVED) -> bool:
    """Whether this is positive wherever no exponential has been rounded to 0."""
    producer = value.producer
    if producer is None or depth == 0:
        return False
    name, operands = producer.op.name, producer.operands
    if name in UNDERFLOWING:
        return True
    if name in MOVES or name == "div":
        return may_underflow(operands[0], depth - 1)
    if name == "mul":
        return all(is_positive(operand) or may_underflow(operand, depth - 1) for operand in operands) and not all(
            map(is_positive, operands)
        )
    return False


def logarithms(value: Value, depth: int = ADDED) -> list[Value]:
    """Those that are added to something: they are -inf at 0."""
    producer = value.producer
    if producer is None or depth == 0:
        return []
    if producer.op.name in ("log", "log1p", "xlogy", "xlog1py"):
        return [value]
    if producer.op.name not in SUMS:
        return []
    return [each for operand in producer.operands for each in logarithms(operand, depth - 1)]


def is_positive(value: Value) -> bool:
    return isinstance(value, Literal) and value.splat and value.type.dtype.kind == "f" and float(value.value) > 0.0


def held(where: Term, term: Term) -> Term:
    """The term, constant there: its (co)tangents are structurally zero, and its value costs nothing."""
    return REGISTRY["select"](where, REGISTRY["stop_gradient"](term), term)


# --- overflow ---------------------------------------------------------------------------------------------------------


@rule(
    "div(y, exp(x)) -> div(y, exp(x) held where it is infinite)",
    lambda x, y: y / apply("exp", x),
    lambda x, y: y / apply("expm1", x),
    lambda x, y: y / (apply("exp", x) - 1.0),
    lambda x, y: y / apply("sinh", x),
    kinds="f",
    limit=True,
)
def quotient_by_overflow(operation: Operation, builder: Builder) -> Value | None:
    """Where the denominator is infinite the quotient is 0."""
    numerator, denominator = (Term(builder, operand) for operand in operation.operands)
    if not may_overflow(denominator.value):
        return None
    return (numerator / held(apply("is_inf", denominator), denominator)).value


def vanishes(name: str) -> None:
    """The rule of an exponential, which is constant at -inf."""

    @rule(
        f"{name}(neg(exp(x))) -> {name}(neg(exp(x)) held where it is -inf)",
        lambda x: apply(name, -apply("exp", x)),
        lambda x, y: apply(name, -(y * apply("exp", x))),
        lambda x, y: apply(name, apply("exp", x) * y),
        lambda x: apply(name, x - apply("exp", x)),
        lambda x: apply(name, apply("log", x) - apply("exp", x)),
        lambda x: apply(name, -apply("cosh", x)),
        lambda x: apply(name, -(x + apply("exp", -x)) / 2.0),
        lambda x: apply(name, -apply("expm1", x)),
        kinds="f",
        limit=True,
    )
    def exp_of_minus_exp(operation: Operation, builder: Builder) -> Value | None:
        exponent = Term(builder, operation.operands[0])
        if not may_overflow(exponent.value):
            return None
        vanished = exponent == float("-inf")
        for each in logarithms(exponent.value):  # exp(log(t) + c) is t exp(c), which is not flat where t is 0
            vanished = vanished & (Term(builder, each) != float("-inf"))
        return apply(name, held(vanished, exponent)).value


for _name in ("exp", "expm1"):
    vanishes(_name)


def saturates(name: str) -> None:
    """The rule of an op that is constant at both infinities."""

    @rule(
        f"{name}(exp(x)) -> {name}(exp(x) held where it is infinite)",
        lambda x: apply(name, apply("exp", x)),
        lambda x, y: apply(name, 2.0 * apply("sinh", x) - y),
        kinds="f",
        limit=True,
    )
    def saturated(operation: Operation, builder: Builder) -> Value | None:
        argument = Term(builder, operation.operands[0])
        if not may_overflow(argument.value):
            return None
        return apply(name, held(apply("is_inf", argument), argument)).value


for _name in SATURATING:
    saturates(_name)


def incomplete(name: str) -> None:
    """The rule of an incomplete gamma function, which is constant where its second operand is infinite."""

    @rule(
        f"{name}(a, exp(x)) -> {name}(a, exp(x) held where it is infinite)",
        lambda x: apply(name, x.like(1.5), apply("exp", x)),
        lambda x: apply(name, x.like(0.5), apply("exp", -x) / 2.0),
        kinds="f",
        limit=True,
    )
    def complete(operation: Operation, builder: Builder) -> Value | None:
        a, place = (Term(builder, operand) for operand in operation.operands)
        if not may_overflow(place.value):
            return None
        return apply(name, a, held(place == float("inf"), place)).value


for _name in ("gammainc", "gammaincc"):
    incomplete(_name)


# --- underflow --------------------------------------------------------------------------------------------------------


def entropy(name: str) -> None:
    """The rule of an op that is p log p, or has it as a term."""

    @rule(
        f"{name}(exp(x), q) -> {name}(exp(x) held where it is 0, q)",
        lambda x: apply(name, apply("exp", x), apply("exp", x)),
        lambda x, y: apply(name, 2.0 * apply("exp", x) / (1.0 + apply("abs", y)), y),
        kinds="f",
        limit=True,
    )
    def entropy_of_underflow(operation: Operation, builder: Builder) -> Value | None:
        """p log p vanishes with p = exp(x) as fast as x exp(x), but log p is -inf: so entropies of masked softmaxes."""
        p, q = (Term(builder, operand) for operand in operation.operands)
        if not may_underflow(p.value):
            return None
        return apply(name, held(p == 0.0, p), q).value


for _name in ("xlogy", "rel_entr", "kl_div"):
    entropy(_name)


@rule(
    "sqrt(exp(x)) -> sqrt(exp(x) held where it is 0)",
    lambda x: apply("sqrt", apply("exp", x)),
    lambda x, y: apply("sqrt", apply("exp", x) / (1.0 + apply("abs", y))),
    kinds="f",
    limit=True,
)
def root_of_underflow(operation: Operation, builder: Builder) -> Value | None:
    """exp(x)**c vanishes with exp(x), c > 0, but its slope by exp(x) is infinite where c < 1."""
    base = Term(builder, operation.operands[0])
    if not may_underflow(base.value):
        return None
    return apply("sqrt", held(base == 0.0, base)).value


@rule(
    "pow(exp(x), c) -> pow(exp(x) held where it is 0 and c > 0, c)",
    lambda x: apply("pow", apply("exp", x), 0.5),
    lambda x: apply("pow", 3.0 * apply("expit", x), 1.5),
    lambda x, c: apply("pow", apply("exp", x), c),
    kinds="f",
    limit=True,
)
def power_of_underflow(operation: Operation, builder: Builder) -> Value | None:
    base, exponent = (Term(builder, operand) for operand in operation.operands)
    known, positive = is_known(exponent.value), is_positive(exponent.value)
    if not may_underflow(base.value) or (known and not positive):
        return None
    gone = base == 0.0 if known else (base == 0.0) & (exponent > 0.0)
    return apply("pow", held(gone, base), exponent).value
