"""What a trace had emitted at one moment, so that what comes after it can be taken back."""

from __future__ import annotations

from collections.abc import Iterator

from srcgrad.ir.core import Value
from srcgrad.tracing.storage import Storage
from srcgrad.tracing.trace import Trace


def around(trace: Trace) -> Iterator[Trace]:
    """A trace and those around it."""
    found: Trace | None = trace
    while found is not None:
        yield found
        found = found.parent


def withdraw(trace: Trace, mark: int, sites: int, lifted: dict[Value, Value], overlay: dict[Storage, Value]) -> None:
    """Take back what was emitted into a trace since a mark."""
    del trace.builder.operations[mark:]
    del trace.sites[sites:]
    trace.builder.memo.clear()
    trace.era = object()
    trace.lifted.clear()
    trace.lifted.update(lifted)
    trace.overlay.clear()
    trace.overlay.update(overlay)


class Mark:
    """What a trace had emitted, and been refused, at one moment."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.operations, self.sites = len(trace.builder.operations), len(trace.sites)
        self.lifted, self.overlay = dict(trace.lifted), dict(trace.overlay)
        self.needed = [found.needed for found in around(trace)]

    def withdraw(self) -> None:
        """Take back what was emitted after."""
        withdraw(self.trace, self.operations, self.sites, self.lifted, self.overlay)

    def back(self) -> None:
        """Take back what came after."""
        self.withdraw()
        for found, needed in zip(around(self.trace), self.needed, strict=True):
            found.needed = needed
