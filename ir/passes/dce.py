"""Dead code elimination."""

from __future__ import annotations

from srcgrad.ir.core import Function, Operation, Region, Value
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt, with_operands


def dce(function: Function) -> Function:
    """Leave out the operations of which no result is used, in regions too.

    Operations with an effect, and those with an effect inside a region, stay, in order. An operation with several
    results stays if one is used. Parameters stay: they are the function's interface.

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
    kept: list[Operation] = []
    pruned: dict[Operation, tuple[Region, ...]] = {}
    effect = False
    for operation in reversed(region.operations):
        has_effect = operation.op.effect
        if operation.regions:
            found = [eliminate(inner) for inner in operation.regions]
            has_effect = has_effect or any(inner_effect for _, inner_effect in found)
            if any(new is not old for (new, _), old in zip(found, operation.regions, strict=True)):
                pruned[operation] = tuple([new for new, _ in found])
        if has_effect:
            effect = True
        elif operation not in needed:
            continue
        kept.append(operation)
        for value in operation.operands:
            needed.add(value.producer)
    kept.reverse()
    if pruned:
        return replace_regions(region, kept, pruned), effect
    return region if len(kept) == len(region.operations) else rebuilt(region, kept, region.results), effect


def replace_regions(
    region: AnyRegion, operations: list[Operation], pruned: dict[Operation, tuple[Region, ...]]
) -> AnyRegion:
    """Rebuild the operations whose regions changed, and those that use their results."""
    moved: dict[Value, Value] = {}
    rebuilt_operations = []
    for operation in operations:
        operands = tuple([moved.get(value, value) for value in operation.operands])
        regions = pruned.get(operation, operation.regions)
        if regions is not operation.regions or operands != operation.operands:
            copy = with_operands(operation, operands, regions)
            moved.update(zip(operation.results, copy.results, strict=True))
            operation = copy
        rebuilt_operations.append(operation)
    return rebuilt(region, rebuilt_operations, [moved.get(value, value) for value in region.results])
