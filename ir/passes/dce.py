"""Dead code elimination."""

from __future__ import annotations

from srcgrad.ir.core import Function, Operation, Region, Value
from srcgrad.ir.passes.dead_control import CONTROL, Shrunk, shrunk
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt, with_operands


def dce(function: Function) -> Function:
    """Leave out the operations of which no result is used, in regions too.

    Operations with an effect, and those with an effect inside a region, stay, in order. An operation with several
    results stays if one is used; of control flow, only the results, carries, constants and columns that are needed.
    Parameters stay: they are the function's interface.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.opdef import Term
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> x = Term(builder, builder.param(ArrayType(FLOAT64), "x"))
    >>> unused, used = x + 1.0, x * 2.0
    >>> [operation.op.name for operation in dce(builder.function("f", [used.value])).operations]
    ['mul']
    """
    return eliminate(function)[0]


def eliminate(region: AnyRegion) -> tuple[AnyRegion, bool]:
    """The region without its dead operations, and whether it has an effect."""
    needed: set[Operation | None] = {value.producer for value in region.results}
    live: set[Value] = set(region.results)
    kept: list[Operation] = []
    pruned: dict[Operation, Shrunk] = {}
    effect = False
    for operation in reversed(region.operations):
        has_effect, left = operation.op.effect, None
        if operation.regions:
            has_effect = operation.acts
            if has_effect or operation in needed:
                left = narrowed(operation, live)
        if has_effect:
            effect = True
        elif operation not in needed:
            continue
        kept.append(operation)
        operands = operation.operands
        if left is not None:
            pruned[operation] = left
            operands = tuple([operands[position] for position in left.operands])
        for value in operands:
            needed.add(value.producer)
            if value.producer is not None and value.producer.regions:
                live.add(value)
    kept.reverse()
    if pruned:
        return replace_regions(region, kept, pruned), effect
    return region if len(kept) == len(region.operations) else rebuilt(region, kept, region.results), effect


def narrowed(operation: Operation, live: set[Value]) -> Shrunk | None:
    """What is left of an operation with regions; None if all is."""
    if operation.op.name in CONTROL:
        left = shrunk(operation, live, lambda inner: eliminate(inner)[0])
    else:
        regions = tuple([eliminate(inner)[0] for inner in operation.regions])
        every = tuple(range(len(operation.operands)))
        left = Shrunk(every, tuple(range(len(operation.results))), dict(operation.attrs), regions)
    smaller = len(left.operands) < len(operation.operands) or len(left.results) < len(operation.results)
    if smaller or any(map(is_changed, left.regions, operation.regions)):
        return left
    return None


def is_changed(new: Region, old: Region) -> bool:
    return len(new.operations) != len(old.operations) or any(
        one is not other for one, other in zip(new.operations, old.operations, strict=True)
    )


def replace_regions(region: AnyRegion, operations: list[Operation], pruned: dict[Operation, Shrunk]) -> AnyRegion:
    """Rebuild the operations of which something is left out, and those that use their results."""
    moved: dict[Value, Value] = {}
    rebuilt_operations = []
    for operation in operations:
        operands = tuple([moved.get(value, value) for value in operation.operands])
        left = pruned.get(operation)
        if left is not None:
            operation = reduced(operation, operands, left, moved)
        elif operands != operation.operands:
            copy = with_operands(operation, operands, operation.regions)
            moved.update(zip(operation.results, copy.results, strict=True))
            operation = copy
        rebuilt_operations.append(operation)
    return rebuilt(region, rebuilt_operations, [moved.get(value, value) for value in region.results])


def reduced(operation: Operation, operands: tuple[Value, ...], left: Shrunk, moved: dict[Value, Value]) -> Operation:
    """What is left of an operation; ``moved`` is told its results."""
    kept = [operation.results[position] for position in left.results]
    given = tuple([operands[position] for position in left.operands])
    linear = any(value.linear for value in kept)
    copy = Operation(
        operation.op, given, left.attrs, left.regions, [value.type for value in kept], operation.span, linear
    )
    for old, new in zip(kept, copy.results, strict=True):
        new.name = old.name
        moved[old] = new
    return copy
