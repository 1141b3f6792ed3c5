"""Linearisation of control flow: the op with what its linear part needs as further results, and a linear op.

The linear op holds two regions per branch or body: one that gets the residuals of a trip (see ``residuals.py``), and
the linear program of a trip.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY, Lin, LinearOperand, Tangent, Term, Zero
from srcgrad.ir.transforms.interpret import inline, push_forward
from srcgrad.ir.transforms.linear import Recorder
from srcgrad.ir.transforms.linearize import linear_inputs, live_part
from srcgrad.ir.transforms.push_control import Loop, Pushed
from srcgrad.ir.transforms.residuals import Plan, emitted, invariant, needed, plan
from srcgrad.ir.transforms.segments import is_segmented, segmented
from srcgrad.ir.transforms.structured import inside
from srcgrad.ir.types import INT64, ArrayType, DType, TapeType

INDEX = ArrayType(INT64)
MANY: Final = 128
"""So many small values of a dtype at most are handed on by a branch as they are, in registers."""
MOST_PACKED: Final = 4096
"""Arrays of so many elements at most are copied into what is handed on as one."""


@dataclass
class Recorded:
    """A region that was run once: its primal part in ``builder``, and what was recorded of its linear part."""

    builder: Builder
    recorder: Recorder
    inputs: list[Value]
    """The linear parameters."""
    results: list[Value]
    outgoing: list[Tangent]

    def linear(self, outputs: Sequence[Tangent]) -> tuple[Region, list[Value]]:
        """The linear region, whose first parameters are residuals; and these as values of the primal part."""
        values = [zeros(t.type) if isinstance(t, Zero) else t.value for t in outputs]
        operations, kept = live_part(self.recorder, values)
        return Region([*(param for _, param in kept), *self.inputs], operations, values), [value for value, _ in kept]


def record_region(
    outer: Builder,
    region: Region,
    perturbed: Sequence[bool],
    s: Recorder,
    shared: Sequence[Value | None],
    hermitian: Sequence[bool],
) -> Recorded:
    """``shared``: the values outside, of which ``s`` knows, that the parameters are whenever the region runs;
    ``hermitian``: which parameters have tangents of Hermitian matrices.
    """
    inputs, tangents = linear_inputs(region.params, perturbed)
    builder, recorder = inside(outer), Recorder(itertools.compress(tangents, hermitian))
    recorder.builder.span = outer.span
    primals = [builder.param(param.type, param.name) for param in region.params]
    recorder.fixed = {
        primal
        for primal, value in zip(primals, shared, strict=True)
        if value is not None and (s.fixed is None or value in s.fixed)
    }
    results, outgoing = push_forward(builder, recorder, region, primals, tangents)
    return Recorded(builder, recorder, inputs, results, outgoing)


# --- loops ------------------------------------------------------------------------------------------------------------


def record_loop(
    s: Recorder, builder: Builder, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
) -> Pushed:
    loop = Loop.of(operation)
    values = [operand.value for operand in operands]
    if is_segmented(operation):
        return record_segments(s, builder, values, tangents, operation)
    rest, given = loop.rest(values), list(tangents[1:] if loop.has_count else tangents)
    perturbed = [isinstance(tangent, Lin) for tangent in given]
    skipped = [False] if loop.counted else []
    consts = loop.split(rest)[1]
    shared = [*(None for _ in skipped), *(value if k in consts else None for k, value in enumerate(rest))]
    hermitian = [k < loop.carries + loop.consts and s.stays_hermitian(tangent) for k, tangent in enumerate(given)]
    while True:
        found = record_region(builder, loop.body, [*skipped, *perturbed], s, shared, [*skipped, *hermitian])
        reached = [
            flag or isinstance(tangent, Lin)
            for flag, tangent in zip(perturbed, found.outgoing[: loop.carries], strict=False)
        ]
        kept = [
            flag and found.recorder.stays_hermitian(tangent)
            for flag, tangent in zip(hermitian, found.outgoing[: loop.carries], strict=False)
        ]
        if reached == perturbed[: loop.carries] and kept == hermitian[: loop.carries]:
            break
        perturbed[: loop.carries], hermitian[: loop.carries] = reached, kept
    columns = found.outgoing[loop.carries :]
    live_columns = [k for k, tangent in enumerate(columns) if isinstance(tangent, Lin)]
    linear_carries = [k for k in range(loop.carries) if perturbed[k]]
    linear, residuals = found.linear([found.outgoing[k] for k in linear_carries] + [columns[k] for k in live_columns])
    handed = Handed.of(loop, builder, found, rest, residuals)
    body = found.builder.region([*found.results, *handed.plan.taped])
    regions = (body,) if loop.counted else (operation.regions[0], body)
    emitted_loop = builder.emit_operation(operation.op, values, operation.attrs, regions)
    results = list(emitted_loop.results)
    cut = len(results) - len(handed.plan.taped)
    results, tapes = results[:cut], results[cut:]
    count = None if loop.trips is not None else values[0] if loop.counted else results[loop.carries]
    starts = [given[k] for k in linear_carries]
    linear_consts = [given[k] for k in consts if perturbed[k]]
    elements = [given[k] for k in loop.split(given)[2] if perturbed[k]]
    plain = [*([] if count is None else [count]), *handed.consts, *handed.columns, *tapes]
    linear_attrs = {
        "trips": loop.trips,
        "carries": len(starts),
        "consts": len(linear_consts),
        "plain_consts": len(handed.consts),
        "plain_columns": len(handed.columns) + len(tapes),
        "reverse": bool(operation.attrs.get("reverse", False)),
        "lifted": bool(operation.attrs.get("lifted", False)),
    }
    terms = [Term(builder, value) for value in plain]
    mixed: list[LinearOperand] = [*terms, *starts, *linear_consts, *elements]
    outgoing = s.apply_all(REGISTRY["linear_for"], mixed, linear_attrs, (handed.plan.region, linear))
    found_tangents = placed(loop, results, outgoing, linear_carries, live_columns)
    s.assume_hermitian(itertools.compress(found_tangents, hermitian[: loop.carries]))
    return results, found_tangents


def record_segments(
    s: Recorder, builder: Builder, values: Sequence[Value], tangents: Sequence[Tangent], operation: Operation
) -> Pushed:
    """The loop by segments. A `while` runs first, to know its trip count."""
    region = segmented(operation)
    if operation.op.name == "for":
        return push_forward(builder, s, region, values, tangents)
    results = builder.emit_operation(operation.op, values, operation.attrs, operation.regions).results
    count = results[operation.attrs["carries"]]
    _, outgoing = push_forward(builder, s, region, [count, *values], [Zero(count.type), *tangents])
    return results, [*outgoing, Zero(count.type)]


def placed(
    loop: Loop, results: Sequence[Value], outgoing: Sequence[Tangent], carries: Sequence[int], columns: Sequence[int]
) -> list[Tangent]:
    """The tangents of all results, given those of some carries and columns."""
    found: list[Tangent] = [Zero(value.type) for value in results]
    first = loop.carries if loop.counted else loop.carries + 1
    for tangent, position in zip(outgoing, [*carries, *(first + k for k in columns)], strict=True):
        found[position] = tangent
    return found


@dataclass
class Handed:
    """What a linear loop reads: constants and columns that exist, besides those that the plan adds."""

    plan: Plan
    consts: list[Value]
    columns: list[Value]

    @classmethod
    def of(
        cls, loop: Loop, builder: Builder, found: Recorded, rest: Sequence[Value], residuals: Sequence[Value]
    ) -> Handed:
        params = found.builder.params
        index, own = (params[0], params[1:]) if loop.counted else (None, params)
        _, consts, columns = loop.split(own)
        const_of = {own[k]: rest[k] for k in consts}
        operations = found.builder.operations
        fixed = invariant(operations, const_of, bool(loop.trips))
        outer = dict(const_of)
        hoisted = [value for value in residuals if value in fixed and value not in outer]
        emitted(builder, needed(operations, hoisted, outer), outer)
        inductions = find_inductions(loop, found, own)
        counter = index if index is not None else Value(INDEX, None, "index")
        known = [value for value in residuals if value in outer]
        known += [own[k] for k in consts if own[k] not in known]
        derived: dict[Value, Region] = {}
        starts: dict[Value, Value] = {}
        for carry in inductions:
            starts[carry] = Value(INDEX, None, carry.name and f"{carry.name}.start")
        free = [counter, *known, *starts.values(), *(own[k] for k in columns)]
        for carry, step in inductions.items():
            derived[carry] = induction(free, counter, starts[carry], step)
        found_plan = plan(operations, residuals, free, derived, found.recorder.fixed or ())
        given = [outer[value] for value in known] + [rest[own.index(carry)] for carry in inductions]
        return cls(found_plan, given, [rest[k] for k in columns]).trimmed(len(free), len(columns))

    def trimmed(self, free: int, columns: int) -> Handed:
        """Without the constants and columns that are not read."""
        region = self.plan.region
        read = {value for operation in region.operations for value in operation.operands} | set(region.results)
        params = region.params
        index, consts = params[0], params[1 : free - columns]
        own, taped = params[free - columns : free], params[free:]
        kept = [k for k, param in enumerate(consts) if param in read]
        kept_columns = [k for k, param in enumerate(own) if param in read]
        self.consts = [self.consts[k] for k in kept]
        self.columns = [self.columns[k] for k in kept_columns]
        region = Region(
            [index, *(consts[k] for k in kept), *(own[k] for k in kept_columns), *taped],
            region.operations,
            region.results,
        )
        self.plan = Plan(self.plan.given, self.plan.taped, region)
        return self


def find_inductions(loop: Loop, found: Recorded, own: Sequence[Value]) -> dict[Value, int]:
    """Integer carries to which each trip adds a literal, with what it adds."""
    if loop.operation.attrs.get("reverse", False):
        return {}
    steps: dict[Value, int] = {}
    for carry, result in zip(own[: loop.carries], found.results, strict=False):
        producer = result.producer
        if carry.type != INDEX or producer is None or producer.op.name not in ("add", "sub"):
            continue
        left, right = producer.operands
        sign = 1 if producer.op.name == "add" else -1
        if left is carry and isinstance(right, Literal):
            steps[carry] = sign * int(right.value)
        elif right is carry and isinstance(left, Literal) and sign == 1:
            steps[carry] = int(left.value)
    return steps


def induction(free: Sequence[Value], index: Value, start: Value, step: int) -> Region:
    """The value of an integer carry in a trip: where it starts, and a step per trip."""
    builder = Builder()
    params = {value: builder.param(value.type, value.name) for value in free}
    counter, first = Term(builder, params[index]), Term(builder, params[start])
    moved = counter if step == 1 else counter * literal_term(builder, step)
    return builder.region([(first + moved).value])


def literal_term(builder: Builder, number: int) -> Term:
    return Term(builder, literal(np.int64(number), INDEX))


# --- cond -------------------------------------------------------------------------------------------------------------


def record_cond(
    s: Recorder, builder: Builder, operands: Sequence[Term], tangents: Sequence[Tangent], operation: Operation
) -> Pushed:
    """Both branches return what their linear parts need: in slots that they share where the types are equal."""
    values = [operand.value for operand in operands]
    perturbed = [isinstance(tangent, Lin) for tangent in tangents[1:]]
    hermitian = list(map(s.stays_hermitian, tangents[1:]))
    branches = [record_region(builder, region, perturbed, s, values[1:], hermitian) for region in operation.regions]
    count = len(operation.results)
    live = [k for k in range(count) if any(isinstance(branch.outgoing[k], Lin) for branch in branches)]
    slots: list[list[Value | None]] = []
    types: list[ArrayType] = []
    linear_parts, plans, places = [], [], []
    for branch in branches:
        linear, residuals = branch.linear([branch.outgoing[k] for k in live])
        linear_parts.append(linear)
        fixed = branch.recorder.fixed or ()
        plans.append(plan(branch.builder.operations, residuals, branch.builder.params, {}, fixed))
    packs = [Pack(dtype, [found.taped for found in plans]) for dtype in many([found.taped for found in plans])]
    for number, found in enumerate(plans):
        others = [value for value in found.taped if all(value not in pack.places[number] for pack in packs)]
        places.append(dict(zip(others, shared_slots(slots, types, others, number), strict=True)))
    regions = []
    for number, branch in enumerate(branches):
        filled = [found or zeros(type) for found, type in zip([s[number] for s in slots], types, strict=True)]
        filled += [pack.of(branch.builder, number) for pack in packs]
        regions.append(branch.builder.region([*branch.results, *filled]))
    emitted_cond = builder.emit_operation(operation.op, values, operation.attrs, regions)
    results = list(emitted_cond.results)
    plain = [*values, *results[count:]]
    inner_regions = []
    for number, (linear, found) in enumerate(zip(linear_parts, plans, strict=True)):
        inner_regions += [spread(found, plain[1:], len(values) - 1, places[number], packs, number), linear]
    terms = [Term(builder, value) for value in plain]
    mixed: list[LinearOperand] = [*terms, *(tangent for tangent in tangents[1:] if isinstance(tangent, Lin))]
    outgoing = s.apply_all(REGISTRY["linear_cond"], mixed, {"plain": len(plain)}, inner_regions)
    placed_tangents: list[Tangent] = [Zero(value.type) for value in results[:count]]
    for position, tangent in zip(live, outgoing, strict=True):
        placed_tangents[position] = tangent
    s.assume_hermitian(
        tangent
        for k, tangent in enumerate(placed_tangents)
        if all(branch.recorder.stays_hermitian(branch.outgoing[k]) for branch in branches)
    )
    return results[:count], placed_tangents


def shared_slots(
    slots: list[list[Value | None]], types: list[ArrayType], taped: Sequence[Value], number: int
) -> list[int]:
    """The slot of each value of one branch; tapes share none, since they differ in length."""
    free: dict[ArrayType, deque[int]] = {}
    for place, type in enumerate(types):
        if slots[place][number] is None:
            free.setdefault(type, deque()).append(place)
    places = []
    for value in taped:
        left = None if isinstance(value.type, TapeType) else free.get(value.type)
        if left:
            place = left.popleft()
        else:
            place = len(slots)
            slots.append([None, None])
            types.append(value.type)
        slots[place][number] = value
        places.append(place)
    return places


def is_packed(type: ArrayType) -> bool:
    known = not isinstance(type, TapeType) and all(isinstance(size, int) for size in type.shape)
    return known and type.size <= MOST_PACKED


def many(taped: Sequence[Sequence[Value]]) -> list[DType]:
    """The dtypes of which a branch hands on so many small values that they are packed in one array."""
    found: dict[DType, None] = {}
    for values in taped:
        counts = Counter(value.type.dtype for value in values if is_packed(value.type))
        found.update(dict.fromkeys(dtype for dtype, count in counts.items() if count > MANY))
    return list(found)


class Pack:
    """One array for the small values of a dtype that each branch of a `cond` hands on.

    Branches in branches hand on what those inside of them do: as values of their own they would be so many at each
    level, and a recursion of ten levels would take minutes to compile.
    """

    def __init__(self, dtype: DType, taped: Sequence[Sequence[Value]]) -> None:
        self.dtype = dtype
        self.places: list[dict[Value, int]] = []
        """Of each branch, where its values begin."""
        self.size = 0
        for values in taped:
            own, end = dict[Value, int](), 0
            for value in values:
                if is_packed(value.type) and value.type.dtype == dtype and value not in own:
                    own[value], end = end, end + value.type.size
            self.places.append(own)
            self.size = max(self.size, end)

    def of(self, builder: Builder, number: int) -> Value:
        """The array of a branch."""
        parts = [
            builder.emit(REGISTRY["reshape"], [value], {"shape": (value.type.size,)}) for value in self.places[number]
        ]
        rest = self.size - sum(value.type.size for value in self.places[number])
        if rest or not parts:
            parts.append(zeros(ArrayType(self.dtype, (rest,))))
        return parts[0] if len(parts) == 1 else builder.emit(REGISTRY["concatenate"], parts, {"axis": 0})

    def read(self, builder: Builder, array: Value, number: int, value: Value) -> Value:
        """A value of a branch out of its array."""
        start = self.places[number][value]
        attrs = {"starts": (start,), "limits": (start + value.type.size,), "strides": (1,)}
        part = builder.emit(REGISTRY["slice"], [array], attrs)
        return builder.emit(REGISTRY["reshape"], [part], {"shape": value.type.shape})


def spread(
    found: Plan, plain: Sequence[Value], operands: int, places: Mapping[Value, int], packs: Sequence[Pack], number: int
) -> Region:
    """A region of operands and what one branch hands on as one of operands, all slots and all packs."""
    builder = Builder()
    params = [builder.param(value.type, value.name) for value in plain]
    arrays = dict(zip(packs, params[len(params) - len(packs) :], strict=True))
    arguments = params[:operands]
    for value in found.taped:
        pack = next((pack for pack in packs if value in pack.places[number]), None)
        arguments.append(
            params[operands + places[value]] if pack is None else pack.read(builder, arrays[pack], number, value)
        )
    return builder.region(inline(builder, found.region, arguments))
