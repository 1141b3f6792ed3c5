"""Writing out the ops that no backend runs, before a function runs."""

from __future__ import annotations

from typing import Final

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt

WHOLE: Final = {"eigvalsh": ("eigh", 0, {}), "svdvals": ("svd", 1, {"full_matrices": False})}
"""The decompositions without their vectors: with them, which result of those, and with which attributes."""


def is_expanded(operation: Operation) -> bool:
    return operation.op.expanded


def needs_expansion(function: Region) -> bool:
    return any(is_expanded(operation) for operation in function.walk())


def expand(function: Function) -> Function:
    """The function without ops that are `expanded`, in regions too; itself if it has none.

    Equal decompositions are computed once, and values alone are taken from a decomposition of the same matrix that is
    computed anyway.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> scalar = Builder()
    >>> w = Term(scalar, scalar.param(ArrayType(FLOAT64)))
    >>> region = scalar.region([REGISTRY["log"](w).value])
    >>> a = builder.param(ArrayType(FLOAT64, (3, 3)), "a")
    >>> trace = builder.emit(REGISTRY["spectral_sum"], [a], {"indexed": ()}, [region])
    >>> [operation.op.name for operation in expand(builder.function("f", [trace])).operations]
    ['eigvalsh', 'log', 'reduce_sum']
    """
    if not needs_expansion(function):
        return function
    return merged(expanded(function))


def expanded(region: AnyRegion) -> AnyRegion:
    builder = Builder()
    env: dict[Value, Value] = {param: param for param in region.params}

    def read(value: Value) -> Value:
        return value if isinstance(value, Literal) else env[value]

    for operation in region.operations:
        builder.span = operation.span
        operands = [read(value) for value in operation.operands]
        if is_expanded(operation):
            terms = [Term(builder, value) for value in operands]
            results = [term.value for term in operation.op.expand(terms, operation.attrs, operation.regions)]
        else:
            regions = tuple([expanded(inner) for inner in operation.regions])
            results = list(builder.emit_operation(operation.op, operands, operation.attrs, regions).results)
        for old, new in zip(operation.results, results, strict=True):
            if new.name is None and new.producer is not None:
                new.name = old.name
            env[old] = new
    return rebuilt(region, builder.operations, [read(value) for value in region.results])


def merged(region: AnyRegion) -> AnyRegion:
    """Values alone, where a decomposition of the same matrix is computed too, become its values."""
    known = {(operation.op.name, operation.operands[0]) for operation in region.operations if operation.operands}
    chosen = {
        operation: WHOLE[operation.op.name]
        for operation in region.operations
        if operation.op.name in WHOLE and (WHOLE[operation.op.name][0], operation.operands[0]) in known
    }
    if not chosen:
        return region
    builder = Builder()
    env: dict[Value, Value] = {param: param for param in region.params}

    def read(value: Value) -> Value:
        return value if isinstance(value, Literal) else env[value]

    for operation in region.operations:
        builder.span = operation.span
        operands = [read(value) for value in operation.operands]
        if operation in chosen:
            name, position, attrs = chosen[operation]
            found = builder.emit_operation(REGISTRY[name], operands, attrs).results[position : position + 1]
        else:
            found = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results
        for old, new in zip(operation.results, found, strict=True):
            new.name = new.name or old.name
            env[old] = new
    return rebuilt(region, builder.operations, [read(value) for value in region.results])
