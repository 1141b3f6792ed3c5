"""Operators between expressions of which one may be an array of NumPy's, and the other a list that holds traced values.

NumPy makes an array of such a list before it asks whether anything in it is traced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.tracer import SEQUENCES, as_tracer, contains_tracer

BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}
"""By the name of the node."""


def meeting(left: Any, right: Any) -> tuple[Any, Any]:
    """The operands, with an array of the trace in place of a list beside an array."""
    if isinstance(left, np.ndarray):
        if isinstance(right, SEQUENCES) and contains_tracer(right):
            return left, as_tracer(right)
    elif isinstance(right, np.ndarray) and isinstance(left, SEQUENCES) and contains_tracer(left):
        return as_tracer(left), right
    return left, right


def binary(name: str, left: Any, right: Any) -> Any:
    return BINARY[name](*meeting(left, right))
