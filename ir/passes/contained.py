"""Operations whose results are part of what another one computes anyway.

The derivative of eigenvalues takes the vectors too, that of sorted numbers their order: what the primal asked for is
then taken from these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

from srcgrad.ir.core import Attrs, Builder, Function, Operation, Region, Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.expand import emitted
from srcgrad.ir.passes.rewrite import AnyRegion

Whole = tuple[str, Attrs]
"""The op that computes more, and its attributes."""
Taken = Callable[[Builder, Value, Sequence[Value], Attrs], Value]
"""The part, from the operand, the results of that op, and the attributes of the operation that asks for the part."""


def ordered_by(builder: Builder, x: Value, results: Sequence[Value], attrs: Attrs) -> Value:
    return builder.emit(REGISTRY["take_along_axis"], (x, results[0]), {"axis": attrs["axis"]})


PARTS: Final[Mapping[str, tuple[Callable[[Attrs], Whole], Taken]]] = {
    "eigvalsh": (lambda attrs: ("eigh", {}), lambda builder, x, results, attrs: results[0]),
    "order_statistics": (lambda attrs: ("order_positions", attrs), ordered_by),
    "partition": (lambda attrs: ("argpartition", attrs), ordered_by),
    "sort": (lambda attrs: ("argsort", attrs), ordered_by),
    "svdvals": (lambda attrs: ("svd", {"full_matrices": False}), lambda builder, x, results, attrs: results[1]),
}
"""Ops of one operand whose results are parts, by what they are parts of, and how they are taken from it."""


def key_of(name: str, operand: Value, attrs: Attrs) -> Hashable:
    return name, operand, tuple(sorted(attrs.items()))


def has_parts(function: Function) -> bool:
    return any(operation.op.name in PARTS for operation in function.walk())


def taken_from_others(region: AnyRegion) -> AnyRegion:
    """The region with such parts of what it computes anyway; in its regions too.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> x = builder.param(ArrayType(FLOAT64, (5,)), "x")
    >>> values = [builder.emit(REGISTRY[name], [x], {"axis": 0}) for name in ("sort", "argsort")]
    >>> [operation.op.name for operation in taken_from_others(builder.function("f", values)).operations]
    ['argsort', 'take_along_axis']
    """
    known = {
        key_of(operation.op.name, operation.operands[0], operation.attrs)
        for operation in region.operations
        if len(operation.operands) == 1
    }
    wholes: dict[Operation, Whole] = {}
    for operation in region.operations:
        if operation.op.name in PARTS:
            whole = PARTS[operation.op.name][0](operation.attrs)
            if key_of(whole[0], operation.operands[0], whole[1]) in known:
                wholes[operation] = whole
    if not wholes and not any(operation.regions for operation in region.operations):
        return region

    def emit(builder: Builder, operation: Operation, operands: list[Value]) -> Sequence[Value]:
        if operation in wholes:
            name, attrs = wholes[operation]
            results = builder.emit_operation(REGISTRY[name], operands, attrs).results
            return [PARTS[operation.op.name][1](builder, operands[0], results, operation.attrs)]
        regions: tuple[Region, ...] = tuple([taken_from_others(inner) for inner in operation.regions])
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    return emitted(region, emit)
