"""Native code of single operations that are no loop group: one function each, called on buffers.

A *step* takes one pointer per operand, one per result and one to scratch memory. Operands and results are C-contiguous,
aligned to 8, of static shapes, and do not overlap but for `Step.in_place`; a number is the buffer of its one element,
and a boolean one byte. It returns 0, or 1 where the NumPy line must run instead, as that raises what must be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import TapeType


@dataclass(frozen=True)
class Step:
    """One operation as a native function ``define internal i32 @NAME(ptr %in0, …, ptr %out0, …, ptr %scratch)``.

    ``declarations``: what the module declares for it. ``definitions``: helper functions that it calls, by name; equal
    names are equal functions. ``symbols``: addresses that it calls, by the name to register with ``llvm.add_symbol``.
    ``scratch``: the bytes that it needs at ``%scratch``, aligned to 64. ``in_place``: the operand whose memory may be
    that of result 0. ``unread``: operands whose pointers it does not read, as they are literals written in its code.
    """

    text: str
    declarations: frozenset[str] = frozenset()
    definitions: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, int] = field(default_factory=dict)
    scratch: int = 0
    in_place: int | None = None
    unread: frozenset[int] = frozenset()


StepWriter = Callable[[Operation, str, Target], Step | None]
"""Writes an operation as a function of that name, or finds that it has no native form."""


@cache
def writers() -> dict[str, tuple[StepWriter, ...]]:
    """The writers of each op that may be a step: of those for several kinds of operands, the first that can.

    Each module has a table ``WRITERS``, from the name of an op to its `StepWriter`.
    """
    from srcgrad.backends.llvm.steps import (
        banded,
        blas,
        cofactors,
        convolution,
        cumulative,
        decompositions,
        determinants,
        exponential_derivatives,
        extremes,
        factors,
        formulas,
        indexing,
        integers,
        movement,
        ordering,
        reductions,
        schur_forms,
        selection,
        sorts,
        special,
        systems,
        transforms,
        ufuncs,
    )

    elements = (indexing, movement, cumulative, extremes, sorts, selection, ordering, integers, special)
    found: dict[str, tuple[StepWriter, ...]] = {}
    for module in (
        *elements,
        reductions,
        ufuncs,
        formulas,
        transforms,
        convolution,
        blas,
        decompositions,
        determinants,
        cofactors,
        systems,
        banded,
        factors,
        exponential_derivatives,
        schur_forms,
    ):
        for name, writer in module.WRITERS.items():
            found[name] = (*found.get(name, ()), writer)
    return found


def step_for(operation: Operation, name: str, target: Target) -> Step | None:
    """The operation as a native function ``@name``; None where it has no native form, as for its dtypes or shapes."""
    for value in (*operation.operands, *operation.results):
        if isinstance(value.type, TapeType) or not all(isinstance(size, int) for size in value.type.shape):
            return None
    steps = (writer(operation, name, target) for writer in writers().get(operation.op.name, ()))
    return next((step for step in steps if step is not None), None)
