"""The larger and the smaller of two that stand in an array, as ``maximum`` and ``minimum`` of both.

Shares of a tie among many say nothing of which element is which. Of two elements they are the slopes of one kink
(`kinks`), so that what is smooth although it is written in them has its Hessian: ``max(x)*min(x)``, ``ptp(x)**2`` and
``max(x)**2 + min(x)**2``. Of more elements nothing is that is written in the largest and the smallest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from srcgrad.ir.core import Builder, Operation, Value
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, rule

OF_TWO: Final = {"reduce_max": "maximum", "reduce_min": "minimum"}


def extreme_of_two(operation: Operation, builder: Builder) -> Value | None:
    x, axes = Term(builder, operation.operands[0]), operation.attrs["axes"]
    sizes = [x.shape[axis] for axis in axes]
    if not all(isinstance(size, int) for size in sizes) or math.prod(sizes) != 2:
        return None
    axis, shape = axes[sizes.index(2)], operation.results[0].type.shape
    sides = []
    for k in range(2):
        starts, limits = [0] * x.rank, list(x.shape)
        starts[axis], limits[axis] = k, k + 1
        part = apply("slice", x, starts=tuple(starts), limits=tuple(limits), strides=(1,) * x.rank)
        sides.append(apply("reshape", part, shape=shape))
    return apply(OF_TWO[operation.op.name], *sides).value


def example(name: str) -> Callable[[Term], Term]:
    return lambda x: apply(name, x, axes=(0,))


for _name, _other in OF_TWO.items():
    rule(f"{_name}([x, y]) -> {_other}(x, y)", example(_name), shape=(2,), kinds="f", limit=True)(extreme_of_two)
