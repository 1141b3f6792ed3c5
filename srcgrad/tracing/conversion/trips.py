"""Trips of loops that become regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srcgrad.ir.core import Value
from srcgrad.ir.types import INT64, ArrayType
from srcgrad.tracing.conversion.aliases import TRUTH
from srcgrad.tracing.conversion.items import index_of
from srcgrad.tracing.conversion.loop_objects import Held, records_of
from srcgrad.tracing.conversion.state import Snapshot, entered
from srcgrad.tracing.storage import Pending
from srcgrad.tracing.trace import Trace, current_trace

if TYPE_CHECKING:
    from srcgrad.tracing.conversion.loop_regions import LoopRegion


class Trip:
    """One tracing of a loop's test or body, with parameters for what is carried."""

    def __init__(self, loop: LoopRegion, label: str, indexed: bool) -> None:
        parent = current_trace()
        self.trace = Trace(parent, False, f"{parent.name}: {label}", region=True)
        self.trace.loop, self.trace.scope = loop, loop.inner
        loop.inner.begin()
        self.index = Value(ArrayType(INT64)) if indexed else None
        self.params: dict[int, list[Value]] = {
            cell: [Value(kind.type) for kind in carry.kinds] for cell, carry in loop.carries.items()
        }
        self.memory = {storage: Value(storage.value.type) for storage in loop.storages}
        self.flags = [Value(TRUTH) for _ in loop.sharing.flags]
        self.bound = [Value(TRUTH) for _ in loop.maybe]
        self.early = {cell: Value(TRUTH) for cell in loop.unbound()}
        """What is asked of variables that are unbound before the loop, if a trip reads them before it sets them."""
        self.seeded = loop.start
        self.records: Held = []
        """What the lists, records and objects hold that it is handed."""
        self.trace.overlay.update(self.memory)
        self.trace.tables += [loop.storages, self.memory]

    def end(self) -> None:
        """The trip's trace is over, and holds no memory any longer."""
        self.trace.alive = False
        self.trace.overlay.clear()

    def front(self) -> list[Value]:
        found = [] if self.index is None else [self.index]
        params = (value for values in self.params.values() for value in values)
        return [*found, *params, *self.memory.values(), *self.flags, *self.bound]

    def read_early(self) -> list[int]:
        """The variables that may be unbound where the trip reads them."""
        read = {operand for operation in self.trace.builder.operations for operand in operation.operands}
        return [cell for cell, flag in self.early.items() if flag in read]

    def seed(self, loop: LoopRegion) -> Snapshot:
        """The variables at the start of a trip."""
        cells = loop.start.cells()
        for cell in loop.lost:
            cells[cell] = loop.undefined(cell)
        with entered(self.trace):
            trips = loop.trips
            index = None if self.index is None or trips is None else index_of(self.index, trips)
            for cell, carry in loop.carries.items():
                cells[cell] = carry.at_start(self.params[cell], index)
            for cell, flag in (*zip(loop.maybe, self.bound, strict=True), *self.early.items()):
                cells[cell].storage.pending = Pending(loop.names[cell], flag, cell in loop.optional)
            found = self.seeded = loop.state.rebuilt(loop.start, cells)
            loop.sharing.link(loop.names, loop.leaves(found), self.flags)
        self.records = records_of(loop, found)
        return found
