"""Folds in registers: accumulators, compensated sums, and the order in which they are added up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.access import INT64, Access, memory_name
from srcgrad.backends.llvm.emitter import BOOL, F32, DType, Number
from srcgrad.backends.llvm.loops import Fold, Group, empty_result
from srcgrad.backends.llvm.shapes import Shape
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.trips import Trip, counted_loop
from srcgrad.ir.core import Value

BLOCK: Final = 4096
"""Elements after which the sums so far are added up with compensation; longer sums lose no digits to their length."""
ROUNDS: Final = 128
"""The most numbers of float32 that are added to one accumulator before: there are few accumulators where vectors are
narrow, and each rounding may err to the same side."""
MASKS: Final = 6
"""The most accumulators of an innermost loop beside which there is room for a mask each."""
State = list[Number]
"""What a fold has so far: one vector, or a sum and what its rounding has lost."""
Accumulator = list[Number]
"""What an innermost loop carries of a fold: one vector, or an extreme that forgets nan, and the lanes without any."""


class Rows(NamedTuple):
    """What a fold has of some rows of a trip; of an extreme, where no row was nan, and a row not looked at yet."""

    value: Number
    mask: Number | None = None
    loose: Number | None = None


class Folding(Access):
    """The folds of one group."""

    group: Group
    target: Target
    rank: int
    lanes: int
    shape: Shape
    first: int = 0
    """The first axis whose loop is written here."""
    blocked: frozenset[int] = frozenset()
    """Axes of which there is a part only, and results of other parts are there already."""
    targets: Sequence[tuple[int, Fold]] = ()
    """The rows of an innermost loop, each with a fold."""
    widths: Sequence[int] = ()
    """Of how many numbers the accumulators of an innermost loop are."""

    # --- before the loops --------------------------------------------------------------------------
    def is_empty(self) -> bool:
        """Whether there are no points; then what folds give is written."""
        if 0 not in self.group.domain:
            return False
        for fold in self.group.folds:
            dtype = self.dtype_of(fold)
            self.fill(fold.output, empty_result(fold.name, dtype), dtype)
        return True

    def begin(self, folds: Sequence[Fold]) -> None:
        """Write the identity to where these folds add to."""
        for fold in folds:
            self.fill(fold.output, scalars.identity(fold.name, self.dtype_of(fold)), self.dtype_of(fold))

    def begin_rows(self, first: Number, last: Number, row_size: Callable[[Value], int]) -> None:
        """The same for what is added up within each of some rows of a nest."""
        for fold in self.group.folds:
            if self.accumulates(fold) and min(fold.axes) > self.first:
                size = row_size(self.group.outputs[fold.output])
                start, stop = (self.e.integer("mul", row, size) for row in (first, last))
                self.loop(start, stop, 1, [], self.filling(fold.output, self.identity(fold, 1)))

    def fill(self, output: int, value: Any, dtype: DType) -> None:
        """Write one number everywhere into an output; one whose bytes are all the same, byte by byte."""
        byte = set(np.array(value).astype(dtype).tobytes())
        if len(byte) == 1:
            e, size = self.e, self.group.outputs[output].type.size * dtype.itemsize
            e.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            start = self.address(self.outputs[output], memory_name(dtype), e.constant(0, INT64, 1))
            e.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 {byte.pop()}, i64 {size}, i1 false)")
            return
        size, lanes = self.group.outputs[output].type.size, self.target.vector_bytes // dtype.itemsize
        whole = size // lanes * lanes
        if whole:
            self.loop(0, whole, lanes, [], self.filling(output, self.e.constant(value, dtype, lanes)))
        if size > whole:
            self.loop(whole, size, 1, [], self.filling(output, self.e.constant(value, dtype, 1)))

    def filling(self, output: int, value: Number) -> Trip:
        def trip(index: Number, carried: list[Number]) -> list[Number]:
            self.store(output, index, 1, value, value.dtype, None)
            return carried

        return trip

    def loop(
        self, start: Number | int, stop: Number | int, step: int, carried: list[Number], trip: Trip
    ) -> list[Number]:
        return counted_loop(self.e, start, stop, step, carried, trip)

    # --- folds -------------------------------------------------------------------------------------
    def run_of(self, fold: Fold) -> int:
        """The first of the last axes that all are folded, and whose loops are written here."""
        axis = self.rank
        while axis > self.first and axis - 1 in fold.axes:
            axis -= 1
        return axis

    def accumulates(self, fold: Fold) -> bool:
        """Whether the output is added to, rather than written once."""
        return self.group.added or any(axis < self.run_of(fold) or axis in self.blocked for axis in fold.axes)

    def compensated(self, fold: Fold) -> bool:
        count = 1
        for axis in range(self.run_of(fold), self.rank):
            count *= self.group.domain[axis]
        if fold.name != "reduce_sum" or self.dtype_of(fold).kind != "f":
            return False
        return count > self.block(self.dtype_of(fold), self.lanes * self.shape.unroll)

    @staticmethod
    def block(dtype: DType, step: int) -> int:
        """After how many elements sums are added up, of which so many have accumulators of their own."""
        block = BLOCK // step * step
        return min(block, ROUNDS * step) if dtype == F32 else block

    def dtype_of(self, fold: Fold) -> DType:
        return self.group.statements[fold.statement].dtype

    def identity(self, fold: Fold, lanes: int) -> Number:
        dtype = self.dtype_of(fold)
        return self.e.constant(scalars.identity(fold.name, dtype), dtype, lanes)

    def beginning(self, fold: Fold, lanes: int) -> State:
        """The state of a fold of nothing."""
        start = self.identity(fold, lanes)
        return [start, self.e.constant(0, start.dtype, lanes)] if self.compensated(fold) else [start]

    def combine(self, fold: Fold, a: Number, b: Number) -> Number:
        if a.dtype.kind != "f" and a.text == self.identity(fold, a.lanes).text:  # 0.0 changes the sign of -0.0
            return b
        return scalars.combine(self.e, fold.name, a, b)

    # --- extremes of floats --------------------------------------------------------------------------
    # An extreme that is nan where one of its operands is takes three instructions, each of which waits for the one
    # before. So loops find what a single comparison gives, which forgets a nan, and aside whether there was one.
    def started(self, fold: Fold, lanes: int, width: int) -> Accumulator:
        """The accumulator of nothing, of so many numbers."""
        start = self.identity(fold, lanes)
        if width == 1:
            return [start]
        return [start, self.in_mask(Number("true" if lanes == 1 else "splat (i1 true)", BOOL, lanes), start.dtype)]

    def gather(self, fold: Fold, accumulator: Accumulator, value: Number) -> Accumulator:
        """An accumulator with one more number."""
        if len(accumulator) == 1:
            return [self.combine(fold, accumulator[0], value)]
        return self.merged(fold, accumulator, [value, self.ordered(value, value)])

    def merged(self, fold: Fold, a: Accumulator, b: Accumulator) -> Accumulator:
        if len(a) == 1:
            return [self.combine(fold, a[0], b[0])]
        return [self.further(fold, a[0], b[0]), self.e.binary("and", a[1], b[1])]

    def further(self, fold: Fold, a: Number, b: Number) -> Number:
        """The larger or the smaller of what is no nan, the second of equal ones."""
        return self.e.select(self.e.compare("ogt" if fold.name == "reduce_max" else "olt", a, b), a, b)

    def with_row(self, fold: Fold, rows: Rows | None, value: Number) -> Rows:
        """One more row; two rows are looked at for nan by one comparison."""
        if not self.group.is_extreme(fold):
            return Rows(value if rows is None else self.combine(fold, rows.value, value))
        if rows is None:
            return Rows(value, None, value)
        return self.looked_at(rows._replace(value=self.further(fold, rows.value, value)), value)

    def looked_at(self, rows: Rows, value: Number) -> Rows:
        if rows.loose is None:
            return rows._replace(loose=value)
        pair = self.ordered(rows.loose, value)
        return Rows(rows.value, pair if rows.mask is None else self.e.binary("and", rows.mask, pair))

    def after_rows(self, fold: Fold, before: Number, rows: Rows | None, value: Number) -> Number:
        """What was there before with all rows, of which this one is the last."""
        if rows is None:
            return self.combine(fold, before, value)
        rows = self.with_row(fold, rows, value)
        if not self.group.is_extreme(fold):
            return self.combine(fold, before, rows.value)
        rows = self.looked_at(rows._replace(value=self.further(fold, before, rows.value)), before)
        if rows.loose is not None:
            rows = self.looked_at(rows, rows.loose)
        assert rows.mask is not None
        return self.as_one([rows.value, rows.mask])

    def as_one(self, accumulator: Accumulator) -> Number:
        """What was gathered, as one vector."""
        if len(accumulator) == 1:
            return accumulator[0]
        value, mask = accumulator
        return self.e.select(mask if mask.dtype == BOOL else self.e.compare("ne", mask, 0), value, math.nan)

    def ordered(self, a: Number, b: Number) -> Number:
        """Where neither is nan, as a mask."""
        return self.in_mask(self.e.compare("ord", a, b), a.dtype)

    def in_mask(self, condition: Number, dtype: DType) -> Number:
        """A condition as loops carry it: without registers for masks, in lanes of the numbers' width."""
        if self.target.masked or condition.lanes == 1:
            return condition
        like = Number("", np.dtype(f"i{dtype.itemsize}"), condition.lanes)
        return like._replace(text=self.e.emit(f"sext {condition.type} {condition.text} to {like.type}"))

    def absorb(self, fold: Fold, state: State, value: Number) -> State:
        """A state with accumulators added: a number, or a sum and what its rounding has lost (Neumaier's two-sum)."""
        if len(state) == 1:
            return [self.combine(fold, state[0], value)]
        total, lost = state
        with self.e.strict():
            after = self.combine(fold, total, value)
            gained = self.e.sub(after, total)
            error = self.e.add(self.e.sub(total, self.e.sub(after, gained)), self.e.sub(value, gained))
            return [after, self.e.add(lost, error)]

    def settled(self, state: State) -> Number:
        """A state as one vector; what was lost counts where it is a number other than 0, so that -0.0 and inf stay."""
        if len(state) == 1:
            return state[0]
        e, (total, lost) = self.e, state
        counts = e.binary("and", e.compare("une", lost, 0.0), e.compare("ord", lost, lost))
        return e.select(counts, e.add(total, lost), total)

    # --- accumulators and states as lists of numbers -----------------------------------------------
    def identities(self, lanes: int) -> list[Number]:
        """The accumulators of one copy of the innermost body, of nothing."""
        pairs = zip(self.targets, self.widths, strict=True)
        return self.flat([self.started(fold, lanes, width) for (_, fold), width in pairs])

    def accumulators(self, flat: Sequence[Number]) -> list[Accumulator]:
        """Those of one copy, from all their numbers."""
        found, position = [], 0
        for width in self.widths:
            found.append(list(flat[position : position + width]))
            position += width
        return found

    def gathered(self, flat: Sequence[Number]) -> list[Number]:
        """What the accumulators of all copies have, in one number for each target."""
        count = sum(self.widths)
        found = self.accumulators(flat[:count])
        for start in range(count, len(flat), max(count, 1)):
            more = self.accumulators(flat[start : start + count])
            found = [self.merged(fold, a, b) for (_, fold), a, b in zip(self.targets, found, more, strict=True)]
        return [self.as_one(accumulator) for accumulator in found]

    def absorbed(self, states: list[State], values: Sequence[Number]) -> list[State]:
        return [
            self.absorb(fold, state, value)
            for (_, fold), state, value in zip(self.targets, states, values, strict=True)
        ]

    def in_lanes(self, flat: Sequence[Number]) -> list[Number]:
        """What accumulators of single numbers have, in the first lanes."""
        values = self.gathered(flat)
        return [self.in_lane(fold, value) for (_, fold), value in zip(self.targets, values, strict=True)]

    @staticmethod
    def flat(states: list[State]) -> list[Number]:
        return [value for state in states for value in state]

    def unflat(self, values: list[Number]) -> list[State]:
        found, position = [], 0
        for _, fold in self.targets:
            width = 1 + self.compensated(fold)
            found.append(values[position : position + width])
            position += width
        return found

    # --- lanes ---------------------------------------------------------------------------------------
    def in_lane(self, fold: Fold, value: Number) -> Number:
        """A vector of the identity, with one number in the first lane."""
        if self.lanes == 1:
            return value
        start = self.identity(fold, self.lanes)
        text = self.e.emit(f"insertelement {start.type} {start.text}, {value.type} {value.text}, i64 0")
        return start._replace(text=text)

    def lanes_combined(self, fold: Fold, value: Number) -> Number:
        """The lanes added up by halves; of bools, all bits of a number are looked at together."""
        if value.dtype == BOOL:
            return (self.e.any if fold.name in ("reduce_or", "reduce_max") else self.e.every)(value)
        while value.lanes > 1:
            half = value.lanes // 2
            low, high = (self.part(value, start, half) for start in (0, half))
            value = self.combine(fold, low, high)
        return value

    def part(self, value: Number, start: int, count: int) -> Number:
        if count == 1:
            text = self.e.emit(f"extractelement {value.type} {value.text}, i64 {start}")
        else:
            order = ", ".join(f"i32 {start + k}" for k in range(count))
            text = self.e.emit(
                f"shufflevector {value.type} {value.text}, {value.type} poison, <{count} x i32> <{order}>"
            )
        return Number(text, value.dtype, count)

    def joined(self, low: Number, high: Number) -> Number:
        """Two vectors as one of twice the lanes."""
        order = ", ".join(f"i32 {k}" for k in range(2 * low.lanes))
        text = f"shufflevector {low.type} {low.text}, {high.type} {high.text}, <{2 * low.lanes} x i32> <{order}>"
        return Number(self.e.emit(text), low.dtype, 2 * low.lanes)

    def write_result(self, fold: Fold, value: Number) -> None:
        """One number to where the result is, or added to what is there."""
        place = self.base(fold.line, len(self.indices))
        if self.accumulates(fold):
            before = self.load_numbers(self.outputs[fold.output], place, value.dtype, 1)
            value = self.combine(fold, before, value)
        self.store(fold.output, place, 0, value, value.dtype, None)

    # --- folds that are added up in memory ---------------------------------------------------------
    def slot(self, fold: Fold) -> str:
        return self.e.room(Number("", self.dtype_of(fold), self.lanes).type, 64)

    def load_slots(self, fold: Fold, slots: Sequence[str]) -> State:
        like = Number("", self.dtype_of(fold), self.lanes)
        return [like._replace(text=self.e.emit(f"load {like.type}, ptr {slot}, align 64")) for slot in slots]

    def store_slots(self, slots: Sequence[str], state: State) -> None:
        for slot, value in zip(slots, state, strict=True):
            self.e.do(f"store {value.type} {value.text}, ptr {slot}, align 64")

    def load_numbers(self, pointer: str, place: Number, dtype: DType, lanes: int) -> Number:
        name = memory_name(dtype)
        address = self.address(pointer, name, place)
        vector = name if lanes == 1 else f"<{lanes} x {name}>"
        return self.from_memory(self.e.emit(f"load {vector}, ptr {address}, align {dtype.itemsize}"), dtype, lanes)
