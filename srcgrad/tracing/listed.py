"""Slices in loops whose bounds stand in arrays of integers: ``x[ptr[i] : ptr[i + 1]]``, the rows of a sparse matrix.

Where the bounds depend on the numbers of the loops and on arrays that are known, by value or by a question of the path
in progress, they are computed here for all trips. Then a slice is a window of the largest length among them, of which a
part counts, and so many elements are computed in a trip, not the whole axis. So it is where the bounds are sums of the
loops' numbers that are never far from each other, as in a band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.errors import SrcgradError
from srcgrad.ir.core import Builder, Literal, Value
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.types import INT64
from srcgrad.tracing.affine import Affine, affine_of, between
from srcgrad.tracing.guards import LARGEST_INPUT, NEAR, has_effect
from srcgrad.tracing.indexing import Window, index_tracer, known_integer
from srcgrad.tracing.trace import Trace, current_trace
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value
from srcgrad.tracing.ufuncs import call

SHORT: Final = 4
"""How many times as long as its slices between sums of the loops' numbers an axis is, of which they are windows."""
MOST_TRIPS: Final = 2**20
"""For how many trips of loops bounds are computed at most."""


class Far(Exception):
    """What a bound is computed from is not known for each trip, or is too much."""


class Rows(NamedTuple):
    """The window that each trip takes of an axis, and how many of its elements count, if that changes."""

    window: Window
    counted: Tracer | None
    number: Affine
    """How many these are."""


def rows_between(entry: slice, size: int) -> Rows | None:
    """What a slice takes of an axis in each trip, if its bounds are known for all of them and not negative."""
    ends = [known_integer(bound) for bound in (entry.start, entry.stop)]
    bounds = [default if bound is None else bound for bound, default in zip(ends, (0, size), strict=True)]
    trace = current_trace()
    if not trace.region or known_integer(entry.step) not in (None, 1) or not all(map(is_whole, bounds)):
        return None
    sums = [affine_of(bound) for bound in bounds]
    if all(number is not None for number in sums):
        return short_rows(bounds, sums, size)
    table = Table(trace)
    try:
        first, last = table.numbers(bounds)
    except (Far, SrcgradError):
        return None
    if min(first.min(), last.min()) < 0:  # counted from the end
        return None
    start, stop = map(integer, bounds)
    if max(first.max(), last.max()) > size:
        first, last = np.minimum(first, size), np.minimum(last, size)
        start, stop = np.minimum(start, size), np.minimum(stop, size)  # type: ignore[assignment]
    counts = np.maximum(last - first, 0)
    most = int(counts.max())
    if most == 0:
        return None
    around = size if int(first.max()) + most > size else 0  # what lies beyond the end counts nowhere
    window = Window(start, most, 1, around)
    if counts.min() == most:
        return Rows(window, None, Affine({}, most))
    count: Any = stop - start
    if np.any(last < first):
        count = np.maximum(count, 0)
    count = from_value(count.read(), scalar=True, weak=True)
    count.bound, count.affine = most, table.number(counts)
    return Rows(window, count, count.affine)


def short_rows(bounds: Sequence[Any], sums: Sequence[Any], size: int) -> Rows | None:
    """What a slice between sums of the loops' numbers takes, if it is never a great part of the axis.

    Of ``x[max(0, i - 5) : i]`` that is five elements, of which so many count as there are in front of ``i``.
    """
    first, end = sums
    most = end.plus(first, -1).most()
    if min(first.least(), end.least()) < 0 or not 0 < most <= size // SHORT:
        return None
    start, stop = bounds
    if max(first.most(), end.most()) > size:
        start, stop = (call(np.minimum, bound, size, weak=True) for bound in map(as_tracer, bounds))
    count = stop - start
    if known(count).least() < 0:
        count = call(np.maximum, count, 0, weak=True)
    number = known(count)
    around = size if known(start).most() + most > size else 0
    return Rows(Window(integer(start), most, 1, around), count, number) if number.terms else None


def known(x: Any) -> Affine:
    found = affine_of(x)
    assert found is not None
    return found


def is_whole(bound: Any) -> bool:
    return isinstance(bound, int) or (isinstance(bound, Tracer) and not bound.ndim and bound.dtype.kind in "iu")


def integer(bound: Any) -> Tracer:
    """A bound as an index."""
    return bound if isinstance(bound, Tracer) and bound.dtype == INT64 else index_tracer(as_tracer(bound))


class Table:
    """Integers of one trip as a function of the loops' numbers, which is computed for all of these."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.builder = Builder()
        self.indices: dict[Value, Trace] = {}
        """The numbers of loops that are read, and their trips."""
        self.known: dict[Value, Any] = {}
        """What is read besides them, and what it is."""
        self.params: dict[Value, Value] = {}
        self.made: dict[Value, Value] = {}
        self.operations = 0

    def numbers(self, bounds: Sequence[Any]) -> list[Any]:
        """What some integers are in each of the trips.

        Raises:
            Far: that is not known.
        """
        results = [self.of(x.read(), self.trace) if isinstance(x, Tracer) else None for x in bounds]
        trips = [int(trace.loop.trips) for trace in self.indices.values()]
        total = math.prod(trips)
        if not 0 < total <= MOST_TRIPS:
            raise Far
        places = dict(zip(self.indices, np.indices(trips).reshape(len(trips), total), strict=True))
        self.builder.params[:] = [*self.params.values()]
        function = self.builder.function("bounds", [x for x in results if x is not None])
        flags = [x in self.indices for x in self.params]
        given = [places[x] if x in self.indices else self.known[x] for x in self.params]
        found = iter(evaluate(batch(function, flags, total), given))
        return [
            np.full(total, bound) if x is None else np.asarray(next(found)).astype(np.int64)
            for x, bound in zip(results, bounds, strict=True)
        ]

    def number(self, counts: Any) -> Affine:
        """An integer of these values in the trips, the same for the same."""
        inner = max((trace.counter for trace in self.indices.values()), key=lambda affine: affine.key())
        counter = next(iter(inner.terms))
        key = ("listed", tuple(self.indices), counts.tobytes())
        if key not in counter.made:
            counter.made[key] = between(Affine({}, int(counts.min())), Affine({}, int(counts.max())))
        found: Affine = counter.made[key]
        return found

    def of(self, value: Value, trace: Trace) -> Value:
        """A value of a trace as one of the function."""
        if isinstance(value, Literal):
            return value
        if value not in self.made:
            self.made[value] = self.leaf(value, trace) if is_leaf(value, trace) else self.computed(value, trace)
        return self.made[value]

    def leaf(self, value: Value, trace: Trace) -> Value:
        if trace.region:
            trip = getattr(trace.loop, "trip", None)
            if trip is not None and value is trip.index and isinstance(trace.loop.trips, int) and trace.counter:
                self.indices[value] = trace
            else:
                outer = next((outer for outer, inner in trace.lifted.items() if inner is value), None)
                if outer is None or trace.parent is None:
                    raise Far
                return self.of(outer, trace.parent)
        else:
            self.known[value] = self.answer(value, trace)
        self.params[value] = Value(value.type)
        return self.params[value]

    def answer(self, value: Value, trace: Trace) -> Any:
        """The number of a value outside of all loops."""
        number, type = trace.builder.number(value), value.type
        if number is None and trace.guide is not None and type.dtype.kind in "biu" and type.size <= LARGEST_INPUT:
            number = trace.guide.answer(trace, value, "the bounds of slices")
        if number is None:
            raise Far
        return number

    def computed(self, value: Value, trace: Trace) -> Value:
        operation = value.producer
        self.operations += 1
        if operation is None or self.operations > NEAR or operation.regions or has_effect(operation):
            raise Far
        operands = [self.of(operand, trace) for operand in operation.operands]
        emitted = self.builder.emit_operation(operation.op, operands, operation.attrs)
        return emitted.results[operation.results.index(value)]


def is_leaf(value: Value, trace: Trace) -> bool:
    """Whether a value is one that the trips of the innermost loop have in common, or that loop's number."""
    return value.producer is None or not trace.region
