"""Common subexpression elimination."""

from __future__ import annotations

from srcgrad.ir.core import Function
from srcgrad.ir.passes.rewrite import rewrite


def cse(function: Function) -> Function:
    """Compute equal pure operations once: the same op, operands and attributes.

    The operands of an op that `commutes` may stand either way round: ``x * c`` and ``c * x`` are equal.

    Literals are equal bit by bit (``0.0`` differs from ``-0.0``). The first of several equal operations serves for all.
    Operations with an effect or with regions, and those that are not ``mergeable``, are never merged.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder, Operation
    >>> from srcgrad.ir.opdef import REGISTRY
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> x = builder.param(ArrayType(FLOAT64), "x")
    >>> twice = [Operation(REGISTRY["sin"], (x,), {}, (), [x.type], None) for _ in range(2)]
    >>> function = Function("f", [x], twice, [operation.results[0] for operation in twice])
    >>> len(cse(function).operations)
    1
    """
    return rewrite(function)
