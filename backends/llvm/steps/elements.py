"""Operations element by element that no group has, as one loop: what is written is a function of registers."""

from __future__ import annotations

from collections.abc import Callable

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, Emitter, Number
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation

Function = Callable[..., Number]


def elementwise(
    operation: Operation, name: str, target: Target, function: Function, lanes: int | None = None
) -> Step | None:
    """``function(emitter, numbers…)`` at each element; on vectors, unless ``lanes`` is given.

    float16 is computed in float32 and rounded. None where a dtype is no register's.
    """
    w = Body(operation, name, target)
    types = [*w.types, *w.results]
    if not all(scalars.is_register(type.dtype) for type in types):
        return None
    count = lanes or w.lanes_of(*(type.dtype for type in types))

    def place(k: Number, n: int) -> None:
        numbers = [w.read(operand, k, n) for operand in range(len(w.types))]
        w.write(k, widened(w.e, function, numbers, w.results[0].dtype == F16))

    w.strip(w.results[0].size, count, place)
    return w.finish(in_place=next((k for k, type in enumerate(w.types) if type == w.results[0]), None))


def widened(e: Emitter, function: Function, numbers: list[Number], halves: bool) -> Number:
    """The function of numbers, of which float16 ones are widened first."""
    found = function(e, *(e.convert("fpext", x, F32) if x.dtype == F16 else x for x in numbers))
    return e.convert("fptrunc", found, F16) if halves and found.dtype == F32 else found
