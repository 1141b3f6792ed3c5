"""Which elements along an axis count: what the parts of arrays whose length is not known are made of (`ragged`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcgrad.tracing.tracer import Tracer, from_value


class Part(ABC):
    """Which elements along an axis count."""

    size: int
    """Of the axis."""

    @abstractmethod
    def alike(self, other: Part) -> bool:
        """Whether two parts surely have as many elements."""

    @abstractmethod
    def length(self) -> Any:
        """A Python integer."""

    @abstractmethod
    def least(self) -> int:
        """A length that it surely has."""

    @abstractmethod
    def mask(self) -> Any:
        """Whether each place of the axis is in the part."""

    @abstractmethod
    def within(self, place: Any) -> Any:
        """A place on the axis as one in the part."""


@dataclass(frozen=True, eq=False)
class Chosen(Part):
    """The elements where a mask holds."""

    holds: Tracer
    size: int

    def alike(self, other: Part) -> bool:
        """Whether both masks are the same: a comparison that is written twice is computed once."""
        return isinstance(other, Chosen) and other.holds.read() is self.holds.read()

    def length(self) -> Any:
        return from_value(np.sum(self.holds).read(), scalar=True, weak=True)

    def least(self) -> int:
        return 0

    def mask(self) -> Any:
        return self.holds

    def within(self, place: Any) -> Any:
        return np.cumsum(self.holds)[place] - 1
