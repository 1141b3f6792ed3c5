"""How the linear part of a region gets the residuals of a trip: recomputed where that is cheap, handed on elsewhere.

A residual is a literal, the index, an operand, computed from operands alone (then once, outside a loop), or computed
from what is handed on. What is handed on is either the residuals, or fewer values from which cheap operations compute
them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import TapeType

CHEAP: Final = frozenset(
    {
        "add", "broadcast", "cast", "complex", "conj", "div", "equal", "greater", "greater_equal", "imag",
        "integer_pow", "less", "less_equal", "logical_and", "logical_not", "logical_or", "mul", "neg", "not_equal",
        "real", "reciprocal", "reshape", "select", "share_of_tie", "sqrt", "square", "sub", "transpose",
    }
)  # fmt: skip
"""Ops that take less time than keeping their results in memory does."""

MOVED: Final = CHEAP | {"concatenate", "reverse", "slice", "slice_set"}
"""Ops that do where they spare memory: differences of neighbours are computed from the array that has both."""

SAFE: Final = CHEAP | {
    "concatenate", "dot_general", "iota", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_sum", "reverse", "slice", "slice_set",
}  # fmt: skip
"""Ops besides the elementwise ones that never raise, whatever the values are."""


def is_safe(operation: Operation) -> bool:
    """Whether the operation always ends, and never raises nor does anything else but compute."""
    op = operation.op
    if op.name == "cond" or (op.name == "for" and operation.attrs["trips"] is not None):
        return all(is_safe(inner) for region in operation.regions for inner in region.operations)
    return not op.effect and not operation.regions and (isinstance(op, Elementwise) or op.name in SAFE)


@dataclass
class Plan:
    """``taped``: values of the region that are handed on. ``region`` computes the residuals.

    Its parameters: ``given`` (values of the region, in order), then the taped ones.
    """

    given: list[Value]
    taped: list[Value]
    region: Region


def bytes_of(values: Iterable[Value]) -> float:
    total = 0.0
    for value in values:
        total += float("inf") if isinstance(value.type, TapeType) else value.type.size * value.type.dtype.itemsize
    return total


def invariant(operations: Sequence[Operation], known: Iterable[Value], certain: bool) -> set[Value]:
    """The values that are computed from ``known`` ones alone, by operations that may run where they might not have.

    ``certain``: all operations run at least once, so that those which may raise may run earlier.
    """
    found = set(known)
    for operation in operations:
        if operation.acts or not operation.op.mergeable or not (certain or is_safe(operation)):
            continue
        if all(isinstance(value, Literal) or value in found for value in operation.operands):
            found.update(operation.results)
    return found


def needed(operations: Sequence[Operation], wanted: Iterable[Value], stop: Iterable[Value]) -> list[Operation]:
    """The operations from which the wanted values are computed, in order, where those in ``stop`` are given."""
    live, given, found = set(wanted), set(stop), []
    for operation in reversed(operations):
        if any(result in live and result not in given for result in operation.results):
            found.append(operation)
            live.update(operation.operands)
    return found[::-1]


def emitted(builder: Builder, operations: Iterable[Operation], env: Env) -> None:
    """Emit operations again, at their places; ``env`` maps what they read, and then what they give."""
    outer = builder.span
    for operation in operations:
        operands = [look_up(env, value) for value in operation.operands]
        builder.span = operation.span or outer
        again = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        env.update(zip(operation.results, again.results, strict=True))
    builder.span = outer


def plan(
    operations: Sequence[Operation], residuals: Sequence[Value], free: Sequence[Value],
    derived: Mapping[Value, Region], fixed: Container[Value],
) -> Plan:  # fmt: skip
    """How to get the residuals from values that are ``free`` to have, and what has to be handed on.

    ``derived`` gives values by regions of the free ones. ``fixed``: free ones that all trips of all loops around share.
    """
    free_set = {*free, *derived}
    direct = [value for value in dict.fromkeys(read_for(residuals)) if value not in free_set]
    others = [cheap_leaves(direct, free_set, fixed, cheap) for cheap in (CHEAP, MOVED)]
    taped = min(direct, *others, key=bytes_of)
    builder = Builder()
    env: Env = {value: builder.param(value.type, value.name) for value in free}
    env.update({value: builder.param(value.type, value.name) for value in taped})
    for value, region in derived.items():
        inner: Env = dict(zip(region.params, [env[v] for v in free], strict=True))
        emitted(builder, region.operations, inner)
        env[value] = look_up(inner, region.results[0])
    emitted(builder, needed(operations, residuals, env), env)
    return Plan(list(free), taped, builder.region([look_up(env, value) for value in residuals]))


def read_for(residuals: Iterable[Value]) -> Iterable[Value]:
    """The residuals, or what is handed on in their place: a share of a tie is a number, once all is differentiated."""
    for value in residuals:
        made = value.producer
        if made is not None and made.op.name == "share_of_tie":
            yield from (operand for operand in made.operands if not isinstance(operand, Literal))
        else:
            yield value


def cheap_leaves(
    values: Iterable[Value], free: set[Value], fixed: Container[Value], cheap: Container[str] = CHEAP
) -> list[Value]:
    """The values from which cheap operations compute the given ones, besides the free ones."""
    found: dict[Value, None] = {}
    met: set[Value] = set()
    pending = list(reversed(list(values)))
    while pending:
        value = pending.pop()
        if isinstance(value, Literal) or value in free or value in met:
            continue
        met.add(value)
        producer = value.producer
        if producer is not None and (producer.op.name in cheap or is_read_again(producer, free, fixed)):
            pending.extend(reversed(producer.operands))
        else:
            found[value] = None
    return list(found)


def is_read_again(operation: Operation, free: set[Value], fixed: Container[Value]) -> bool:
    """Whether elements of an array are as well read again: it is there once, and they would be kept in each trip.

    An array that a loop around changes would itself be kept in each of the trips of that one.
    """
    if operation.op.name != "gather" or operation.operands[0] not in fixed:
        return False
    return bytes_of(cheap_leaves(operation.operands[1:], free, fixed)) < bytes_of(operation.results)
