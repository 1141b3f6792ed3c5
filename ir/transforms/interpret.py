"""Running a region through a builder: the loop that every transform shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Lin, LinearEmitter, LinearOperand, Tangent, Term, Zero

Env = dict[Value, Value]


def look_up(env: Env, value: Value) -> Value:
    return value if isinstance(value, Literal) else env[value]


def adopt(value: Value, name: str | None) -> None:
    """Name the result of an operation that has no name yet: cosmetic."""
    if name is not None and value.name is None and value.producer is not None:
        value.name = name


def inline(builder: Builder, region: Region, arguments: Sequence[Value]) -> list[Value]:
    """Emit a region's operations on the given arguments, and return its results."""
    env: Env = dict(zip(region.params, arguments, strict=True))
    outer = builder.span
    for operation in region.operations:
        builder.span = operation.span or outer
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, emitted.results, strict=True):
            new.name = new.name or old.name
            env[old] = new
    builder.span = outer
    return [look_up(env, value) for value in region.results]


def contributes(tangent: Tangent) -> TypeGuard[Lin]:
    """Whether a tangent has an element that may be other than a structural zero."""
    return isinstance(tangent, Lin) and 0 not in tangent.type.shape


def push_forward(
    builder: Builder, s: LinearEmitter, region: Region, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """Emit a region's operations on ``primals`` into ``builder``, and its linear part on ``tangents`` through ``s``.

    This is jvp when ``s`` emits and linearize when ``s`` records. The tangent of an array without elements is zero:
    what is divided by their number has no other derivative, 0/0, in forward mode alone.

    The matrices that a function is given count as Hermitian: its caller's gradient of what passes one straight on to
    ``cholesky`` is that on Hermitian matrices.
    """
    if isinstance(region, Function):
        s.assume_hermitian(tangents)
    env: Env = dict(zip(region.params, primals, strict=True))
    tangent_of: dict[Value, Tangent] = {
        param: tangent for param, tangent in zip(region.params, tangents, strict=True) if contributes(tangent)
    }
    outer = builder.span
    for operation in region.operations:
        builder.span = operation.span or outer
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        if tangent_of.keys().isdisjoint(operation.operands):
            emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
            for old, new in zip(operation.results, emitted.results, strict=True):
                adopt(new, old.name)
                env[old] = new
            continue
        s.builder.span = builder.span
        terms = [Term(builder, value) for value in operands]
        incoming = [tangent_of.get(value) or Zero(value.type) for value in operation.operands]
        results, outgoing = operation.op.differentiate(s, terms, incoming, operation)
        for old, new, tangent in zip(operation.results, results, outgoing, strict=True):
            new.name = new.name or old.name
            env[old] = new
            if contributes(tangent):
                tangent_of[old] = tangent
                if old.name is not None:
                    adopt(tangent.value, f"{old.name}.dot")
    builder.span = outer
    return (
        [look_up(env, value) for value in region.results],
        [tangent_of.get(value) or Zero(value.type) for value in region.results],
    )


def run_linear(
    s: LinearEmitter, linear: Region, residuals: Sequence[Term], tangents: Sequence[Tangent]
) -> list[Tangent]:
    """Run a linear region forwards: its parameters are the residuals, then the linear values."""
    plain = [param for param in linear.params if not param.linear]
    lin = [param for param in linear.params if param.linear]
    terms: dict[Value, Term] = dict(zip(plain, residuals, strict=True))
    env: dict[Value, Tangent] = dict(zip(lin, tangents, strict=True))
    for operation in linear.operations:
        s.builder.span = operation.span and operation.span.derive("tangent")
        operands = linear_operands(s, operation, terms, env)
        results = s.apply_all(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, results, strict=True):
            env[old] = new
            if isinstance(new, Lin):
                adopt(new.value, old.name)
    return [env.get(value) or Zero(value.type) for value in linear.results]


def linear_operands(
    s: LinearEmitter, operation: Operation, terms: dict[Value, Term], env: Mapping[Value, Tangent]
) -> list[LinearOperand]:
    """Operands of an operation of a linear region: residual terms, tangents, and literal zeros as structural zeros."""
    found: list[LinearOperand] = []
    op, arity = operation.op, len(operation.operands)
    joint = () if op.separate else op.linear_positions(arity, operation.attrs)
    for position, value in enumerate(operation.operands):
        if value in env:
            found.append(env[value])
        elif value in terms:
            found.append(terms[value])
        elif position in joint:
            found.append(Zero(value.type))
        else:
            found.append(Term(s.builder, value))
    return found
