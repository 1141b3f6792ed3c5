"""What loops have kept for a pullback, as a value that a trace can be given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srcgrad.errors import ArgumentError
from srcgrad.ir.types import TapeType


class KeptTape:
    """A tape as a backend hands it out, and its type: a function that calls a pullback reads it as a hidden input."""

    __slots__ = ("type", "value")

    def __init__(self, type: TapeType, value: Any) -> None:
        self.type = type
        self.value = value


class PaddedTape(KeptTape):
    """One of the XLA backend: an array with more room than the loop had trips, which other backends cannot read."""

    __slots__ = ()


KEPT = frozenset({KeptTape, PaddedTape})


def kept_tape(type: TapeType, value: Any) -> KeptTape:
    """The tape that a program gave: a sequence of as many elements as there were trips, or an array with more room."""
    return KeptTape(type, value) if isinstance(value, Sequence) or hasattr(value, "fills") else PaddedTape(type, value)


def require_readable(values: Sequence[Any], backend: str) -> None:
    """
    Raises:
        ArgumentError: one of the values is a tape that programs of this backend cannot read.
    """
    for value in values:
        if type(value) in KEPT and isinstance(value, PaddedTape) != (backend == "xla"):
            maker = "xla" if isinstance(value, PaddedTape) else "numpy or llvm"
            raise ArgumentError(
                f"this pullback keeps what its loops left as the backend {maker} does, which {backend} cannot read",
                hint="call vjp or linearize on the backend that calls the pullback, or inside the function that does",
            )
