"""Writing out the ops that no backend runs, before a function runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt


def is_expanded(operation: Operation) -> bool:
    return operation.op.expanded


def needs_expansion(function: Region) -> bool:
    return any(is_expanded(operation) for operation in function.walk())


def expand(function: Function) -> Function:
    """The function without ops that are `expanded`, in regions too; itself if it has none.

    Equal decompositions are computed once.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.opdef import REGISTRY
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
    return expanded(function)


def emitted(region: AnyRegion, emit: Callable[[Builder, Operation, list[Value]], Sequence[Value]]) -> AnyRegion:
    """The region with what ``emit`` makes of each operation, given its operands in the new one; names are kept."""
    builder = Builder()
    env: dict[Value, Value] = {param: param for param in region.params}

    def read(value: Value) -> Value:
        return value if isinstance(value, Literal) else env[value]

    for operation in region.operations:
        builder.span = operation.span
        results = emit(builder, operation, [read(value) for value in operation.operands])
        for old, new in zip(operation.results, results, strict=True):
            if new.name is None and new.producer is not None:
                new.name = old.name
            env[old] = new
    return rebuilt(region, builder.operations, [read(value) for value in region.results])


def expanded(region: AnyRegion) -> AnyRegion:
    """The region with the ops that are `expanded` written out, in its regions too."""

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        if is_expanded(operation):
            terms = [Term(builder, value) for value in operands]
            return [term.value for term in operation.op.expand(terms, operation.attrs, operation.regions)]
        regions = tuple([expanded(inner) for inner in operation.regions])
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    return emitted(region, emit)
