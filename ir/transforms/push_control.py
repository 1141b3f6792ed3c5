"""Forward mode of control flow: one op in, one op out, with the tangents as further carries, constants and columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from srcgrad.ir.core import Builder, Operation, Region, Value
from srcgrad.ir.opdef import Tangent, Term, Zero
from srcgrad.ir.transforms.interpret import inline, push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.states import (
    State,
    element_state,
    join,
    pack,
    pack_column,
    slot_params,
    slot_types,
    state_of,
    unpack,
    unpack_column,
)
from srcgrad.ir.transforms.structured import Branch, emit_cond, inside
from srcgrad.ir.types import INT64, ArrayType

Pushed = tuple[Sequence[Value], Sequence[Tangent]]


class Loop(NamedTuple):
    """A `while` or a `for`, taken apart: ``values`` are operands, or what stands for them, by their sort."""

    operation: Operation
    counted: bool
    """Whether it is a `for`, whose body takes an index first."""
    trips: int | None
    has_count: bool
    carries: int
    consts: int

    @classmethod
    def of(cls, operation: Operation) -> Loop:
        attrs, carries = operation.attrs, operation.attrs["carries"]
        if operation.op.name == "while":
            return cls(operation, False, None, False, carries, len(operation.operands) - carries)
        return cls(operation, True, attrs["trips"], attrs["trips"] is None, carries, attrs["consts"])

    @property
    def body(self) -> Region:
        return self.operation.regions[-1]

    @property
    def body_params(self) -> tuple[Value, ...]:
        """The parameters of the body but for the index."""
        return self.body.params[1:] if self.counted else self.body.params

    def split(self, items: Sequence[object]) -> tuple[list[int], list[int], list[int]]:
        """The positions of carries, constants and columns among the operands but for the trip count."""
        first, second = self.carries, self.carries + self.consts
        return list(range(first)), list(range(first, second)), list(range(second, len(items)))

    def rest(self, operands: Sequence[Value]) -> Sequence[Value]:
        """The operands but for the trip count."""
        return operands[1:] if self.has_count else operands

    def attrs_for(self, carries: int, consts: int) -> dict[str, object]:
        attrs = dict(self.operation.attrs)
        attrs["carries"] = carries
        if self.counted:
            attrs["consts"] = consts
        return attrs


def push_cond(s: Masked, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation) -> Pushed:
    def branch(region: Region) -> Branch:
        return lambda inner, plain, given: push_forward(inner.builder, inner, region, plain, given)

    predicate, *values = [operand.value for operand in operands]
    branches = [branch(region) for region in operation.regions]
    return emit_cond(s, predicate, values, tangents[1:], branches)


def push_loop(s: Masked, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation) -> Pushed:
    """The loop over primals and tangents: which carries have a tangent, and which tangents a mask, is a fixed point."""
    loop = Loop.of(operation)
    values = [operand.value for operand in operands]
    given = list(tangents[1:] if loop.has_count else tangents)
    carries, consts, columns = loop.split(given)
    states = [state_of(tangent) for tangent in given]
    for position in columns:
        states[position] = element_state(given[position])
    hermitian = [k not in columns and s.stays_hermitian(tangent) for k, tangent in enumerate(given)]
    while True:
        inner = inside(s.builder)
        primals, incoming = body_params(inner, loop, states)
        trip = Masked(inner, True, itertools.compress(incoming[loop.counted :], hermitian))
        results, outgoing = push_forward(inner, trip, loop.body, primals, incoming)
        found = [join(states[k], state_of(outgoing[k])) for k in carries]
        kept = [hermitian[k] and trip.stays_hermitian(outgoing[k]) for k in carries]
        if found == states[: len(carries)] and kept == hermitian[: len(carries)]:
            break
        states[: len(carries)], hermitian[: len(carries)] = found, kept
    emitter = Masked(inner)
    primal_slots = results[: loop.carries]
    tangent_slots = [v for k in carries for v in pack(emitter, outgoing[k], states[k])]
    column_states = [state_of(tangent) for tangent in outgoing[loop.carries :]]
    column_slots = [
        v for t, state in zip(outgoing[loop.carries :], column_states, strict=True) for v in pack(emitter, t, state)
    ]
    body = inner.region([*primal_slots, *tangent_slots, *results[loop.carries :], *column_slots])
    rest = loop.rest(values)
    packed_carries = [v for k in carries for v in pack(s, given[k], states[k])]
    packed_consts = [v for k in consts for v in pack(s, given[k], states[k])]
    packed_columns = [v for k in columns for v in pack_column(s, given[k], loop.trips)]
    flat = [
        *values[: len(values) - len(rest)],
        *[rest[k] for k in carries],
        *packed_carries,
        *[rest[k] for k in consts],
        *packed_consts,
        *[rest[k] for k in columns],
        *packed_columns,
    ]
    regions = [body]
    if not loop.counted:
        regions.insert(0, wider_condition(loop, states, carries, consts))
    attrs = loop.attrs_for(len(carries) + len(packed_carries), len(consts) + len(packed_consts))
    emitted = s.builder.emit_operation(operation.op, flat, attrs, regions)
    found_values, tangents = unpacked(s, loop, emitted, outgoing, states, column_states)
    s.assume_hermitian(itertools.compress(tangents, hermitian[: loop.carries]))
    return found_values, tangents


def body_params(builder: Builder, loop: Loop, states: Sequence[State]) -> tuple[list[Value], list[Tangent]]:
    """Parameters for the primals, and for the tangents, of each sort in turn."""
    index = [builder.param(ArrayType(INT64), loop.body.params[0].name)] if loop.counted else []
    primals, tangents = list(index), [Zero(value.type) for value in index]
    params = loop.body_params
    found: list[Tangent] = list(tangents)
    for group in loop.split(params):
        primals += [builder.param(params[k].type, params[k].name) for k in group]
        for k in group:
            name = params[k].name
            found.append(slot_params(builder, params[k].type, states[k], name and f"{name}.dot"))
    return primals, found


def wider_condition(loop: Loop, states: Sequence[State], carries: Sequence[int], consts: Sequence[int]) -> Region:
    """The condition, with parameters for the tangents, which it does not read."""
    condition, builder = loop.operation.regions[0], Builder()
    arguments = []
    for group in (carries, consts):
        arguments += [builder.param(condition.params[k].type, condition.params[k].name) for k in group]
        for k in group:
            for type in slot_types(condition.params[k].type, states[k]):
                builder.param(type)
    return builder.region(inline(builder, condition, arguments))


def unpacked(
    s: Masked,
    loop: Loop,
    emitted: Operation,
    outgoing: Sequence[Tangent],
    states: Sequence[State],
    column_states: Sequence[State],
) -> Pushed:
    """The results of the wider loop as those of the loop, and their tangents."""
    values: Iterator[Value] = iter(emitted.results)
    primals = [next(values) for _ in range(loop.carries)]
    tangents = [unpack(outgoing[k].type, states[k], values) for k in range(loop.carries)]
    if not loop.counted:
        primals.append(next(values))
        tangents.append(Zero(primals[-1].type))
    columns = [next(values) for _ in outgoing[loop.carries :]]
    for tangent, state in zip(outgoing[loop.carries :], column_states, strict=True):
        tangents.append(unpack_column(s, tangent.type, state, loop.trips, values))
    return [*primals, *columns], tangents
