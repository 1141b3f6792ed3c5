"""Transposed products as products of the operands in the other order, for backends whose matrices have a layout."""

from __future__ import annotations

from collections import Counter

from srcgrad.ir.core import Builder, Function, Operation, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.transforms.interpret import Env, look_up


def turned_products(function: Function) -> Function:
    """``transpose(dot_general(a, b))`` becomes ``dot_general(b, a)``, if nothing else reads the product.

    The numbers are the same: each element is the same sum.
    """
    uses: Counter[Value] = Counter(function.results)
    for operation in function.operations:
        uses.update(operation.operands)
    if not any(is_turned(operation, uses) for operation in function.operations):
        return function
    builder = Builder()
    env: Env = {param: builder.param(param.type, param.name, param.linear) for param in function.params}
    for operation in function.operations:
        builder.span = operation.span
        product = operation.operands[0].producer if operation.operands else None
        if product is not None and is_turned(operation, uses):
            operands = [look_up(env, value) for value in reversed(product.operands)]
            attrs = {name: (axes[1], axes[0]) for name, axes in product.attrs.items()}
            env[operation.results[0]] = builder.emit(product.op, operands, attrs)
            continue
        operands = [look_up(env, value) for value in operation.operands]
        emitted = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, emitted.results, strict=True):
            new.name = new.name or old.name
            env[old] = new
    return dce(builder.function(function.name, [look_up(env, value) for value in function.results]))


def is_turned(operation: Operation, uses: Counter[Value]) -> bool:
    """Whether this exchanges the free axes of the left operand with those of the right one, in a product of its own."""
    if operation.op is not REGISTRY["transpose"]:
        return False
    value = operation.operands[0]
    product = value.producer
    if product is None or product.op is not REGISTRY["dot_general"] or uses[value] != 1:
        return False
    batch = len(product.attrs["batch"][0])
    left = product.operands[0].type.rank - len(product.attrs["contract"][0])
    rank = value.type.rank
    return tuple(operation.attrs["perm"]) == (*range(batch), *range(left, rank), *range(batch, left))
