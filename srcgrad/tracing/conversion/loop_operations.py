"""Loops as operations, by their regions: a `while` of a test and a body, a `for` of a number of trips."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srcgrad.ir.core import Value
from srcgrad.ir.opdef import REGISTRY
from srcgrad.tracing.conversion.appending import Appending
from srcgrad.tracing.conversion.effects import innermost_attempt, is_conditional
from srcgrad.tracing.conversion.filled import Filled, Fills
from srcgrad.tracing.conversion.guarded import Grows, Pops
from srcgrad.tracing.conversion.loop_regions import COUNT, FAILURES, LoopRegion
from srcgrad.tracing.conversion.marks import Mark
from srcgrad.tracing.conversion.moving import require_own
from srcgrad.tracing.conversion.placed import Placed, Places
from srcgrad.tracing.conversion.popped import Popped
from srcgrad.tracing.conversion.rounds import Scope, scope_of
from srcgrad.tracing.conversion.state import (
    Inside,
    State,
    emit_region,
    entered,
    has_effects,
    lifted_by,
    region_of,
    value_as,
)
from srcgrad.tracing.rows import row
from srcgrad.tracing.trace import Refused, current_trace


def attempted(
    make: Callable[[LoopRegion], None], state: State, label: str, appending: Appending | None = None,
    trips: int | None = None, lenient: bool = True,
) -> None:  # fmt: skip
    """Make a loop a region; once more for each list of which it turns out to assign items, as one array."""
    arrays, refused = list[Filled | Placed | Popped](), list[list[Any]]()
    mark = Mark(current_trace())
    place, inner = scope_of(mark.trace).place(state), Scope()
    while True:
        loop = LoopRegion(state, label, appending, arrays, trips, lenient, place, inner, refused)
        try:
            make(loop)
        except BaseException as error:
            loop.abandon()
            if is_conditional(error):
                raise Inside(innermost_attempt()) from None
            if isinstance(error, FAILURES) and loop.appending.placed:
                mark.back()
                refused += [placed.items for placed in loop.appending.placed]
                arrays = [filled for filled in arrays if isinstance(filled, Filled)]
                continue
            if not isinstance(error, (Fills, Grows, Places, Pops)) or error.owner is not loop:
                raise
            mark.withdraw()
            inner = loop.inner
            if isinstance(error, Grows):
                loop.appending.watch(error.items)
                appending = loop.appending
                continue
            loop.appending.unwatch(error.items)
            arrays = [filled for filled in arrays if filled.items is not error.items]
            if isinstance(error, Places):
                arrays.append(Placed(error.items, error.kind, error.grows))
            elif isinstance(error, Pops):
                arrays.append(Popped(error.items, error.each, trips or 0))
            else:
                arrays.append(Filled(error.items, error.kind, error.each, trips or 0))
            continue
        for filled in arrays:
            filled.leave()
        return


def while_region(
    test: Callable[[], Any], body: Callable[[Value | None], Any], state: State, rebinds: bool, label: str
) -> None:
    """A loop as long as a traced test holds."""

    def make(loop: LoopRegion) -> None:
        asked, trip, after = loop.settle(test, body, rebinds)
        checked, predicate = asked
        if rebinds and has_effects(checked.trace.builder.operations):
            raise Refused("the test of a while binds a name and has an effect")
        results = loop.results(trip, after)
        outer = lifted_by(checked.trace, trip.trace)
        condition = region_of(checked.trace, checked.front(), outer, [predicate])
        regions = [condition, region_of(trip.trace, trip.front(), outer, results)]
        starts = loop.operands()
        operation = emit_region("while", [*starts, *outer], {"carries": len(starts)}, regions)
        trips = operation.results[len(starts)]
        trace = current_trace()
        zero = value_as(0, COUNT)
        ran = trace.emit(REGISTRY["greater"], [trips, zero])
        checked.end()
        trip.end()
        loop.leave(operation.results[: len(starts)], ran, after)

    attempted(make, state, label)
    if rebinds:
        test()


def for_region(
    trips: int | Value, body: Callable[[Value | None], Any], state: State, label: str = "for",
    appending: Appending | None = None, lenient: bool = True,
) -> None:  # fmt: skip
    """A loop of a number of trips."""

    def make(loop: LoopRegion) -> None:
        _, trip, after = loop.settle(None, body, False)
        require_own(loop, trip, after)
        results, given = loop.results(trip, after), loop.given(trip, after)
        with entered(trip.trace):
            columns = loop.appending.columns(
                trip.trace, trip.index, given, lambda storage: loop.unwritten(trip, after, storage)
            )
            for filled in loop.arrays:
                filled.require_unknown()
        shared = loop.shared_columns(trip, after)
        outer = lifted_by(trip.trace)
        region = region_of(trip.trace, trip.front(), outer, [*results, *columns])
        starts = loop.operands()
        attrs = {"trips": None, "carries": len(starts), "consts": len(outer), "reverse": False}
        operands = [*starts, *outer]
        ran = None
        if isinstance(trips, int):
            attrs["trips"] = trips
        else:
            operands.insert(0, trips)
            ran = current_trace().emit(REGISTRY["greater"], [trips, value_as(0, COUNT)])
        operation = emit_region("for", operands, attrs, [region])
        trip.end()
        carried, stacked = operation.results[: len(starts)], operation.results[len(starts) :]
        last = trips - 1 if isinstance(trips, int) else 0
        arrays = loop.appending.memory([*stacked, *loop.rows_written(carried)], last + 1)
        ends = {leaf: (arrays[k], loop.appending.rows_at_ends(k, last + 1)[1]) for leaf, k in shared.items()}
        rows = {leaf: row(x, place, False, False) for leaf, (x, place) in ends.items() if place is not None}
        loop.appending.take_memory(arrays)
        rows.update(loop.items_read(after, last + 1))
        loop.leave(carried, ran, after, rows)
        loop.link_first(arrays)
        loop.link_shared(arrays, after)
        loop.appending.leave(arrays, last + 1)
        loop.appending.name(state)

    attempted(make, state, label, appending, trips if isinstance(trips, int) else None, lenient)
