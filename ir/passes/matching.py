"""What rules are written with: the registration, and the questions they ask about values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeGuard
from typing import Literal as OneOf

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Builder, Literal, Operation, Value, literal
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.rewrite import Rule
from srcgrad.ir.types import DType

RuleFunction = Callable[[Operation, Builder], Value | None]

RULES: Final[list[Rule]] = []
"""All rules, in the order in which those of one op are tried."""


def rule(
    name: str,
    *examples: Callable[..., Term],
    kinds: str = "biufc",
    shape: tuple[int, ...] | None = None,
    limit: bool = False,
    final: bool = False,
    early: bool = False,
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a rule under its equation; the op is what the equation starts with (see `Rule`)."""
    stage: OneOf["exact", "limit", "final"] = "limit" if limit else "final" if final else "exact"

    def register(function: RuleFunction) -> RuleFunction:
        RULES.append(Rule(name, name.partition("(")[0], kinds, function, examples, shape, stage, early))
        return function

    return register


# --- questions --------------------------------------------------------------------------------------------------------


def made_by(value: Value, op: str) -> Operation | None:
    """The operation that gives the value, if it is an application of this op."""
    producer = value.producer
    return producer if producer is not None and producer.op.name == op else None


def operand_of(value: Value, op: str) -> Value | None:
    """The first operand of the application of this op that gives the value, if one does."""
    producer = made_by(value, op)
    return None if producer is None else producer.operands[0]


def is_filled(value: Value, number: complex) -> bool:
    """Whether the value is a splat of this number; 0 is 0.0 and not -0.0."""
    return isinstance(value, Literal) and value.splat and bits(value.value) == bits(number, value.type.dtype)


def is_known(value: Value) -> TypeGuard[Literal]:
    """Whether it is one number that the program says."""
    return isinstance(value, Literal) and value.splat


def bits(number: Any, dtype: DType | None = None) -> bytes:
    return np.asarray(number, dtype).tobytes()


def is_nothing(value: Value) -> bool:
    """Whether adding the value changes no bit: -0.0 (in both parts, if complex), 0 or False."""
    return isinstance(value, Literal) and value.splat and value.key[2] == bits(nothing(value.type.dtype))


def nothing(dtype: DType) -> Any:
    zero: Any = np.zeros((), dtype)[()]
    return zero if dtype.kind in "biu" else -zero


def is_zero(value: Value) -> bool:
    """Whether it is 0 everywhere, of either sign."""
    return isinstance(value, Literal) and value.splat and bool(value.value == 0)


def is_one(value: Value) -> bool:
    return isinstance(value, Literal) and value.splat and bool(value.value == 1)


def is_minus_one(value: Value) -> bool:
    return isinstance(value, Literal) and value.splat and bool(value.value == -1)


def negated(value: Literal) -> Literal:
    return literal(np.negative(value.value), value.type)


def complements(left: Value, right: Value) -> bool:
    """Whether one is the logical_not of the other."""
    return operand_of(left, "logical_not") is right or operand_of(right, "logical_not") is left


def emit(builder: Builder, op: str, *operands: Value, **attrs: Any) -> Value:
    return builder.emit(REGISTRY[op], operands, attrs or NO_ATTRS)


def apply(op: str, *operands: Any, **attrs: Any) -> Term:
    """An application in an example."""
    return REGISTRY[op](*operands, **attrs)
