"""Variables that are bound, or not None, where a predicate holds: the question whether they are, and their values."""

from __future__ import annotations

from typing import Any, Final

from srcgrad.ir.core import Value, literal
from srcgrad.tracing.conversion.state import PYTHON_KINDS, UNBOUND, Kind, value_as
from srcgrad.tracing.trace import current_trace
from srcgrad.tracing.tracer import Tracer


class Flag:
    """What stands for the question whether a variable is bound."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable


FLAG: Final = PYTHON_KINDS[bool]


def is_pending(x: Any) -> bool:
    """Whether a value is that of a variable which is bound, or is not None, where a traced predicate holds."""
    return isinstance(x, Tracer) and x.storage.pending is not None


def flag_of(x: Any) -> Value:
    """Whether a variable is bound and not None, as a value of the current trace."""
    if not isinstance(x, Tracer) or x.storage.pending is None:
        return literal(x is not UNBOUND and x is not None, FLAG.type)
    return current_trace().reached(x.storage.pending.predicate, x.storage.trace)


def unchecked(x: Any, kind: Kind) -> Value:
    """`value_as`, of a variable that may be unbound or None too."""
    if not is_pending(x):
        return value_as(x, kind)
    pending, x.storage.pending = x.storage.pending, None
    try:
        return value_as(x, kind)
    finally:
        x.storage.pending = pending
