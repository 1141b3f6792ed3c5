"""Emitting `cond` and `for` around linear code: the states of (co)tangents at their borders are fixed points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from srcgrad.ir.core import Builder, Value, literal, zeros
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Lin, Tangent, Zero
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.states import (
    PLAIN,
    ZERO,
    State,
    element_state,
    element_types,
    join,
    nothing,
    pack,
    pack_column,
    slot_params,
    state_of,
    unpack,
    unpack_column,
)
from srcgrad.ir.types import BOOL, INT64, ArrayType, element_type


def inside(builder: Builder) -> Builder:
    """A builder for a region of an operation that is about to be emitted."""
    found = Builder()
    found.span = builder.span
    return found


class Trip(NamedTuple):
    """What the body of a loop is given: its index, (co)tangents of each sort, and plain values."""

    counter: Value
    carries: list[Tangent]
    consts: list[Tangent]
    elements: list[Tangent]
    plain_consts: list[Value]
    plain_elements: list[Value]


Body = Callable[[Masked, Trip], tuple[list[Tangent], list[Tangent]]]
"""Emits one trip: the carries and the columns that it gives."""


@dataclass
class LinearLoop:
    """A `for` whose carries, constants and columns are (co)tangents, besides plain constants and columns.

    The last ``accumulators`` carries start at zero, and each trip adds to them: so they are always clean.
    """

    s: Masked
    trips: int | None
    count: Value | None
    reverse: bool
    carries: Sequence[Tangent]
    consts: Sequence[Tangent] = ()
    columns: Sequence[Tangent] = ()
    plain_consts: Sequence[Value] = ()
    plain_columns: Sequence[Value] = ()
    accumulators: int = 0
    lifted: bool = False
    states: list[State] = field(default_factory=list)

    def emit(self, body: Body) -> tuple[list[Tangent], list[Tangent]]:
        """The carries after the last trip, and the columns.

        Masked carries begin clean, if the trips leave them so: cleared once, a trip adds a part to them and not all.
        """
        self.states = [state_of(tangent)._replace(clean=True) for tangent in self.carries]
        while True:
            inner, trip = self.open()
            carries, columns = body(inner, trip)
            states = self.joined(carries)
            if states == self.states:
                break
            self.states = states
        return self.close(inner, carries, columns)

    def open(self) -> tuple[Masked, Trip]:
        """The parameters of the body, in order."""
        builder = inside(self.s.builder)
        index = builder.param(ArrayType(INT64), "index")
        carries = [
            slot_params(builder, tangent.type, state) for tangent, state in zip(self.carries, self.states, strict=True)
        ]
        consts = [slot_params(builder, tangent.type, state_of(tangent)) for tangent in self.consts]
        plain_consts = [builder.param(value.type, value.name) for value in self.plain_consts]
        types = element_types([tangent.type for tangent in self.columns], self.trips)
        elements = [
            slot_params(builder, type, element_state(tangent))
            for tangent, type in zip(self.columns, types, strict=True)
        ]
        plain = [builder.param(element_type(value.type, self.trips), value.name) for value in self.plain_columns]
        return Masked(builder, repeated=True), Trip(index, carries, consts, elements, plain_consts, plain)

    def joined(self, carries: Sequence[Tangent]) -> list[State]:
        first = len(carries) - self.accumulators
        found = []
        for position, (old, tangent) in enumerate(zip(self.states, carries, strict=True)):
            new = state_of(tangent)
            if position < first:
                found.append(join(old, new))
            else:  # the zero it starts at needs no mask: it is there if there was no trip
                found.append(State((new if old == ZERO else join(old, new)).kind))
        return found

    def close(
        self, inner: Masked, carries: Sequence[Tangent], columns: Sequence[Tangent]
    ) -> tuple[list[Tangent], list[Tangent]]:
        s = self.s
        results: list[Value] = []
        operands: list[Value] = [] if self.count is None else [self.count]
        for initial, tangent, state in zip(self.carries, carries, self.states, strict=True):
            results += pack(inner, tangent, state)
            start = [nothing(initial.type)] if isinstance(initial, Zero) and state.kind == PLAIN else None
            operands += start or pack(s, initial, state)
        count = len(results)
        states = [state_of(tangent) for tangent in columns]
        for tangent, state in zip(columns, states, strict=True):
            results += pack(inner, tangent, state)
        consts = [value for tangent in self.consts for value in pack(s, tangent, state_of(tangent))]
        operands += [*consts, *self.plain_consts]
        for tangent in self.columns:
            operands += pack_column(s, tangent, self.trips)
        operands += self.plain_columns
        attrs: dict[str, Any] = {
            "trips": self.trips,
            "carries": count,
            "consts": len(consts) + len(self.plain_consts),
            "reverse": self.reverse,
        }
        if self.lifted:
            attrs["lifted"] = True
        emitted = s.builder.emit_operation(REGISTRY["for"], operands, attrs, [inner.builder.region(results)])
        values = iter(emitted.results)
        return self.carried(values), [
            unpack_column(s, tangent.type, state, self.trips, values)
            for tangent, state in zip(columns, states, strict=True)
        ]

    def carried(self, values: Iterator[Value]) -> list[Tangent]:
        found: list[Tangent] = []
        first = len(self.states) - self.accumulators
        for position, (tangent, state) in enumerate(zip(self.carries, self.states, strict=True)):
            carry = unpack(tangent.type, state, values)
            if position >= first and isinstance(carry, Lin) and carry.mask is None:
                carry = Lin(carry.value, self.any_trip())
            found.append(carry)
        return found

    def any_trip(self) -> Value | None:
        """The mask of what each trip adds to: whether there was a trip."""
        if self.count is None:
            return None if self.trips else literal(False, ArrayType(BOOL))
        return self.s.builder.emit(REGISTRY["greater"], [self.count, zeros(self.count.type)])


def map_tapes(
    builder: Builder, tapes: Sequence[Value], body: Callable[[Builder, list[Value]], list[Value]]
) -> tuple[Value, ...]:
    """The tapes of what ``body`` gives for the elements of tapes of one length."""
    inner = inside(builder)
    inner.param(ArrayType(INT64), "index")
    elements = [inner.param(element_type(tape.type, None)) for tape in tapes]
    results = body(inner, elements)
    count = builder.emit(REGISTRY["tape_length"], tapes)
    attrs = {"trips": None, "carries": 0, "consts": 0, "reverse": False, "lifted": True}
    return builder.emit_operation(REGISTRY["for"], [count, *tapes], attrs, [inner.region(results)]).results


def add_tapes(s: Masked, left: Lin, right: Lin) -> Lin:
    """The sum of two tangents that are tapes."""
    count = s.builder.emit(REGISTRY["tape_length"], [left.value, right.value])
    loop = LinearLoop(s, None, count, False, (), (), (left, right), lifted=True)
    _, (found,) = loop.emit(lambda inner, trip: ([], [inner.add(*trip.elements)]))
    if isinstance(found, Zero):
        raise InternalError("the sum of two tapes of numbers is none")
    return found


def blend_tape(s: Masked, tangent: Lin) -> Value:
    """A tape with zeros where its mask is False."""
    count = s.builder.emit(REGISTRY["tape_length"], [tangent.value])
    loop = LinearLoop(s, None, count, False, (), (), (tangent,), lifted=True)
    _, (found,) = loop.emit(lambda inner, trip: ([], [Lin(inner.materialise(trip.elements[0]))]))
    return s.materialise(found)


Branch = Callable[[Masked, list[Value], list[Tangent]], tuple[list[Value], list[Tangent]]]
"""Emits one branch on plain operands and (co)tangents."""


def emit_cond(
    s: Masked, predicate: Value, operands: Sequence[Value], tangents: Sequence[Tangent], branches: Sequence[Branch]
) -> tuple[list[Value], list[Tangent]]:
    """A `cond` whose branches give plain values and (co)tangents."""
    states = [state_of(tangent) for tangent in tangents]
    hermitian = list(map(s.stays_hermitian, tangents))
    found = []
    for branch in branches:
        inner = inside(s.builder)
        plain = [inner.param(value.type, value.name) for value in operands]
        given = [slot_params(inner, tangent.type, state) for tangent, state in zip(tangents, states, strict=True)]
        emitter = Masked(inner, s.repeated, itertools.compress(given, hermitian))
        found.append((emitter, *branch(emitter, plain, given)))
    (_, one_values, one), (_, _, other) = found
    joined = [join(state_of(left), state_of(right)) for left, right in zip(one, other, strict=True)]
    regions = []
    for emitter, values, outgoing in found:
        packed = [
            value for tangent, state in zip(outgoing, joined, strict=True) for value in pack(emitter, tangent, state)
        ]
        regions.append(emitter.builder.region([*values, *packed]))
    given_values = [value for t, state in zip(tangents, states, strict=True) for value in pack(s, t, state)]
    emitted = s.builder.emit_operation(REGISTRY["cond"], [predicate, *operands, *given_values], {}, regions)
    count = len(one_values)
    values_left = iter(emitted.results[count:])
    incoming = [unpack(tangent.type, state, values_left) for tangent, state in zip(one, joined, strict=True)]
    kept = [all(emitter.stays_hermitian(outgoing[k]) for emitter, _, outgoing in found) for k in range(len(incoming))]
    s.assume_hermitian(itertools.compress(incoming, kept))
    return list(emitted.results[:count]), incoming
