"""Operators of which one operand may be an array, and the other a list or an object that holds traced values.

NumPy makes an array of these before it asks whether anything in it is traced. And texts, whose operator is ``%``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.conversion.array_likes import as_array
from srcgrad.tracing.conversion.calls import invoke
from srcgrad.tracing.conversion.classes import original
from srcgrad.tracing.conversion.scipy_rules import is_own_operator
from srcgrad.tracing.conversion.texts import percent
from srcgrad.tracing.frames import as_plain
from srcgrad.tracing.operators import is_sparse, of_sparse
from srcgrad.tracing.tracer import SEQUENCES, Tracer, as_tracer, contains_tracer
from srcgrad.tracing.unasked import defers

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


REFLECTED: Final = {
    "Add": "__radd__", "Sub": "__rsub__", "Mult": "__rmul__", "Div": "__rtruediv__", "FloorDiv": "__rfloordiv__",
    "Mod": "__rmod__", "Pow": "__rpow__", "MatMult": "__rmatmul__", "Eq": "__eq__", "NotEq": "__ne__",
    "Lt": "__gt__", "LtE": "__ge__", "Gt": "__lt__", "GtE": "__le__",
}  # fmt: skip
"""The methods that the right operand's class has for them."""


PRODUCTS: Final = {"Mult": np.multiply, "MatMult": np.matmul}


def meeting(name: str, left: Any, right: Any) -> tuple[Any, Any]:
    """The operands, with an array of the trace in place of a list or an object beside an array."""
    if isinstance(left, Tracer) or isinstance(right, Tracer):
        left, right = as_plain(left), as_plain(right)
    if isinstance(left, (np.ndarray, Tracer)) and not defers(right, REFLECTED[name]):
        right = as_array(right, invoke)
    if isinstance(left, np.ndarray):
        if isinstance(right, SEQUENCES) and contains_tracer(right):
            return left, as_tracer(right)
    elif isinstance(right, np.ndarray) and isinstance(left, SEQUENCES) and contains_tracer(left):
        return as_tracer(left), right
    return left, right


def binary(name: str, left: Any, right: Any) -> Any:
    if name == "Mod" and isinstance(left, str):
        return percent(left, right)
    if isinstance(left, type) and isinstance(right, type):
        left, right = original(left), original(right)
    if name in PRODUCTS:
        if isinstance(right, Tracer) and is_sparse(left):  # of which an array multiplies by NumPy's rules
            return of_sparse(PRODUCTS[name], left, right)
        if is_own_operator(left):
            return of_sparse(PRODUCTS[name], left, right)
    return BINARY[name](*meeting(name, left, right))
