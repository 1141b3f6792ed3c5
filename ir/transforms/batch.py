"""Batching (vmap): a function on one example becomes a function on a leading axis of examples."""

from __future__ import annotations

from collections.abc import Sequence

from srcgrad.ir.core import Builder, Function, Literal, Region, Value
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.transforms.interpret import adopt, inline
from srcgrad.ir.types import INT64, ArrayType, Size, TapeType


def batch_region(
    builder: Builder, region: Region, arguments: Sequence[Value], batched: Sequence[bool], size: Size
) -> tuple[list[Value], list[bool]]:
    """Emit a region on arguments of which the batched ones have a leading axis; say which results have it."""
    env: dict[Value, Value] = dict(zip(region.params, arguments, strict=True))
    is_batched: dict[Value, bool] = dict(zip(region.params, batched, strict=True))
    outer = builder.span
    for operation in region.operations:
        builder.span = operation.span or outer
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        flags = [is_batched.get(value, False) for value in operation.operands]
        if not any(flags):
            emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
            for old, value in zip(operation.results, emitted.results, strict=True):
                adopt(value, old.name)
                env[old] = value
            continue
        terms = [Term(builder, value) for value in operands]
        results = operation.op.batch_operation(size, terms, flags, operation)
        for old, new in zip(operation.results, results, strict=True):
            adopt(new.value, old.name)
            env[old] = new.value
            is_batched[old] = new.value.type != old.type  # the trip count of a loop may be the same for all examples
    builder.span = outer
    return (
        [value if isinstance(value, Literal) else env[value] for value in region.results],
        [is_batched.get(value, False) for value in region.results],
    )


def batch(function: Function, batched: Sequence[bool], size: Size) -> Function:
    """Parameters that are ``batched`` get a leading axis of ``size``; every result has one."""
    builder = Builder()
    arguments = [
        builder.param(param.type.with_shape((size, *param.type.shape)) if flag else param.type, param.name)
        for param, flag in zip(function.params, batched, strict=True)
    ]
    results, flags = batch_region(builder, function, arguments, batched, size)
    return builder.function(
        f"{function.name}.batch",
        [
            value if flag else with_leading_axis(builder, value, size)
            for value, flag in zip(results, flags, strict=True)
        ],
    )


def each_example(
    builder: Builder, region: Region, arguments: Sequence[Value], batched: Sequence[bool], size: int
) -> list[Value]:
    """Emit a region as a loop over the examples, each after the one before: for what has an effect.

    Every result has a leading axis of examples.
    """
    inner = Builder()
    inner.span = builder.span
    inner.param(ArrayType(INT64), "example")
    params: dict[int, Value] = {}
    for wanted in (False, True):  # what is the same for all examples comes first
        for position, (param, flag) in enumerate(zip(region.params, batched, strict=True)):
            if flag == wanted:
                params[position] = inner.param(param.type, param.name)
    body = inner.region(inline(inner, region, [params[position] for position in range(len(region.params))]))
    consts = len(batched) - sum(batched)
    attrs = {"trips": size, "carries": 0, "consts": consts, "reverse": False}
    return list(
        builder.emit_operation(REGISTRY["for"], [arguments[position] for position in params], attrs, [body]).results
    )


def with_leading_axis(builder: Builder, value: Value, size: Size) -> Value:
    """The same value for all examples; of a tape, each element."""
    type = value.type
    if isinstance(value, Literal) and value.splat:
        return Literal(value.value, type.with_shape((size, *type.shape)))
    if isinstance(type, TapeType):
        from srcgrad.ir.transforms.structured import map_tapes  # which is written with this module's neighbours

        return map_tapes(builder, [value], lambda inner, found: [with_leading_axis(inner, found[0], size)])[0]
    shape = value.type.shape
    return broadcast_to(Term(builder, value), (size, *shape), tuple(range(1, len(shape) + 1))).value
