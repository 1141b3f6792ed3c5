"""Numbers of which it depends on a traced condition what they are: some uses of them are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srcgrad.tracing.trace import Refused

if TYPE_CHECKING:
    from srcgrad.tracing.tracer import Tracer


def require_number(x: Tracer) -> None:
    """Refuse to change, or to give away as an object, what is a number or an array without axes.

    Raises:
        Refused: it depends on a traced condition.
    """
    if x.scalar and x.storage.doubt is not None and x.storage.doubt.memory:
        raise Refused(f"{named(x.storage.doubt.name)} is an array or a number, depending on a traced condition")


def require_dtype(x: Tracer) -> None:
    """Refuse to give away a number that is Python's, or one of NumPy's that does not hold it.

    Raises:
        Refused: it depends on a traced condition.
    """
    if x.scalar and x.storage.doubt is not None and x.storage.doubt.dtype:
        raise Refused(f"the dtype of {named(x.storage.doubt.name)} depends on a traced condition")


def named(name: str) -> str:
    return "what the function returns" if name.startswith("_sg_") else repr(name)
