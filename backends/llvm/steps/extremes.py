"""Positions of extremes: of a nan if there is one, else the first of equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, F32, Number
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import UINT8, Body, split
from srcgrad.backends.llvm.steps.ordering import rank
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import INT64

BLOCK: Final = 2048
"""The elements of which only the extreme is found at first, and then where it is in the block that has it."""
_STREAMS: Final = 4


def position(operation: Operation, name: str, target: Target) -> Step | None:
    """``argmax`` and ``argmin``."""
    w = Body(operation, name, target)
    if not scalars.is_register(w.types[0].dtype):
        return None
    outer, (size,), inner = split(w.types[0].static_shape, operation.attrs["axis"])
    find = _Position(w, operation.op.name == "argmax", size, inner)
    if 0 in w.unread:
        w.each(outer * inner, lambda k: w.write(k, w.i64(0)))
    elif inner == 1 and size >= 2 * find.lanes:
        w.each(outer, find.in_row)
    else:
        w.each(outer, find.in_columns)
    return w.finish()


class _Position:
    """The position of the extreme along one axis, before which there are blocks and after which ``inner`` elements."""

    def __init__(self, w: Body, larger: bool, size: int, inner: int) -> None:
        self.w, self.larger, self.size, self.inner = w, larger, size, inner
        self.dtype = w.types[0].dtype
        self.lanes = w.lanes_of(self.dtype if inner == 1 else max(self.dtype, F32, key=lambda x: x.itemsize))
        if 1 < inner < self.lanes:
            self.lanes = 1 << inner.bit_length() - 1

    def read(self, place: Number, lanes: int) -> Number:
        """Numbers that compare as the elements do: bytes of bools, and whole numbers for float16."""
        dtype = UINT8 if self.dtype == BOOL else self.dtype
        found = self.w.load("%in0", place, dtype, lanes)
        return rank(self.w.e, found, self.larger) if dtype == F16 else found

    def wins(self, x: Number, best: Number) -> Number:
        """Whether x stands before the best so far; a nan does, and nothing before a nan."""
        e = self.w.e
        if x.dtype.kind != "f":
            return scalars.TABLE["greater" if self.larger else "less"](e, x, best)
        return e.binary("and", e.compare("ugt" if self.larger else "ult", x, best), e.compare("ord", best, best))

    def in_columns(self, a: Number) -> None:
        """All columns, several vectors of neighbours at once; the last one ends with the row."""
        w, lanes, step = self.w, self.lanes, _STREAMS * self.lanes
        if self.inner == 1:
            self.columns(a, [w.i64(0)], 1)
            return
        whole = self.inner // step * step
        w.each(whole, lambda b: self.columns(a, [w.plus(b, j * lanes) for j in range(_STREAMS)], lanes), 0, step)
        ends = [*range(whole, self.inner - lanes + 1, lanes), *([self.inner - lanes] if self.inner % lanes else [])]
        if ends:
            self.columns(a, [w.i64(end) for end in ends], lanes)

    def columns(self, a: Number, places: Sequence[Number], lanes: int) -> None:
        """Few columns are several stretches of rows at once: one comparison need not wait for the one before."""
        w, e = self.w, self.w.e
        stretches = max(1, min(_STREAMS // len(places), self.size // _STREAMS))
        length = self.size // stretches
        row = w.times(a, self.size * self.inner)
        firsts = [w.plus(w.plus(row, k * length * self.inner), b) for k in range(stretches) for b in places]
        starts = [k * length for k in range(stretches) for _ in places]

        def follow(k: Number, carried: list[Number], first: int = 0) -> list[Number]:
            found = []
            for one, start, where, best in zip(
                firsts[first:], starts[first:], carried[0::2], carried[1::2], strict=True
            ):
                x = self.read(w.plus(one, w.times(k, self.inner)), lanes)
                found += self.better((e.splat(w.plus(k, start), lanes), x), (where, best))
            return found

        state = []
        for start, one in zip(starts, firsts, strict=True):
            state += [e.constant(start, INT64, lanes), self.read(one, lanes)]
        state = w.loop(length, follow, state, 1)
        last, count = len(firsts) - len(places), 2 * len(places)
        left = self.size - (stretches - 1) * length  # the last stretch has what is left
        state[2 * last :] = w.loop(left, lambda k, carried: follow(k, carried, last), state[2 * last :], length)
        for number, b in enumerate(places):
            found = state[2 * number : 2 * number + 2]
            for k in range(2 * number + count, len(state), count):
                found = self.better(state[k : k + 2], found)
            w.write(w.plus(w.times(a, self.inner), b), found[0])

    def better(self, one: Sequence[Number], best: Sequence[Number]) -> list[Number]:
        """The place and the number of the one that stands first, of equal ones those of before."""
        wins = self.wins(one[1], best[1])
        return [self.w.e.select(wins, new, old) for new, old in zip(one, best, strict=True)]

    # --- a row ---------------------------------------------------------------------------------------
    def in_row(self, a: Number) -> None:
        """The block with the extreme, up to the first block with a nan, and the first such element of it."""
        w, e = self.w, self.w.e
        row, whole = w.times(a, self.size), self.size // BLOCK

        def goes_on(state: list[Number]) -> Number:
            return e.binary("and", e.compare("slt", state[0], whole), e.invert(state[3]))

        def following(state: list[Number]) -> list[Number]:
            k, *rest = state
            return [w.plus(k, 1), *self.examined(row, w.times(k, BLOCK), BLOCK, rest)]

        state = [self.read(row, 1), w.i64(0), e.constant(False, BOOL, 1)]
        if whole:
            _, *state = w.while_([w.i64(0), *state], goes_on, following)
        if self.size > whole * BLOCK:
            # After a block with a nan this changes nothing: what follows is not before a nan.
            state = self.examined(row, w.i64(whole * BLOCK), self.size - whole * BLOCK, state)
        w.write(a, self.first_in(row, *state))

    def examined(self, row: Number, start: Number, length: int, state: Sequence[Number]) -> list[Number]:
        """The best so far, the block that has it, and whether that is a nan, after one more block."""
        w, e, lanes = self.w, self.w.e, self.lanes
        best, where, was_nan = state
        first, step = w.plus(row, start), _STREAMS * lanes
        whole = length // step * step
        nothing = e.constant(False, BOOL, lanes)

        def follow(k: Number, carried: list[Number]) -> list[Number]:
            accs, nans = carried[:-1], carried[-1]
            found = [self.read(w.plus(first, w.plus(k, j * lanes)), lanes) for j in range(len(accs))]
            for x, y in zip(found[0::2], found[1::2] or found, strict=True):
                nans = e.binary("or", nans, e.compare("uno", x, y)) if x.dtype.kind == "f" else nans
            return [*(self.extreme(x, acc) for x, acc in zip(found, accs, strict=True)), nans]

        *accs, nans = w.loop(whole, follow, [*[e.splat(best, lanes)] * _STREAMS, nothing], 0, step)
        acc = self.extreme(self.extreme(accs[0], accs[1]), self.extreme(accs[2], accs[3]))
        ends = [*range(whole, length - lanes + 1, lanes), *([length - lanes] if length % lanes else [])]
        for end in ends:  # the last vector ends with the block; what it has of before does not win again
            acc, nans = follow(w.i64(end), [acc, nans])
        most, is_nan = self.of_lanes(acc), e.any(nans)
        better = e.binary("and", e.binary("or", self.wins(most, best), is_nan), e.invert(was_nan))
        return [e.select(better, most, best), e.select(better, start, where), e.binary("or", was_nan, is_nan)]

    def extreme(self, x: Number, acc: Number) -> Number:
        """The larger or the smaller; a nan in x is not kept."""
        e = self.w.e
        if x.dtype.kind == "f":
            return e.select(e.compare("ogt" if self.larger else "olt", x, acc), x, acc)
        return e.select(self.wins(x, acc), x, acc)

    def of_lanes(self, value: Number) -> Number:
        e = self.w.e
        while value.lanes > 1:
            half = value.lanes // 2
            orders = [", ".join(f"i32 {start + k}" for k in range(half)) for start in (0, half)]
            if half == 1:
                texts = [e.emit(f"extractelement {value.type} {value.text}, i64 {k}") for k in range(2)]
            else:
                vector = f"{value.type} {value.text}, {value.type} poison"
                texts = [e.emit(f"shufflevector {vector}, <{half} x i32> <{order}>") for order in orders]
            low, high = (Number(text, value.dtype, half) for text in texts)
            value = self.extreme(high, low)
        return value

    def first_in(self, row: Number, best: Number, where: Number, is_nan: Number) -> Number:
        """The first nan, or the first element that equals the best, from a place on where there is one."""
        w, e, lanes = self.w, self.w.e, self.lanes
        last = self.size - lanes

        def place(k: Number) -> Number:
            return e.select(e.compare("slt", k, last), k, w.i64(last))

        def found(k: Number) -> Number:
            """A bit for each lane."""
            x = self.read(w.plus(row, place(k)), lanes)
            if x.dtype.kind == "f":
                same = e.compare("oeq", x, e.splat(best, lanes))
                same = e.select(e.splat(is_nan, lanes), e.compare("uno", x, x), same)
            else:
                same = e.compare("eq", x, e.splat(best, lanes))
            bits = e.emit(f"bitcast {same.type} {same.text} to i{lanes}")
            return Number(bits if lanes == 64 else e.emit(f"zext i{lanes} {bits} to i64"), INT64, 1)

        def following(state: list[Number]) -> list[Number]:
            k = w.plus(state[0], lanes)
            return [k, found(k)]

        k, bits = w.while_([where, found(where)], lambda state: e.compare("eq", state[1], 0), following)
        e.declarations.add("declare i64 @llvm.cttz.i64(i64, i1)")
        lane = Number(e.emit(f"call i64 @llvm.cttz.i64(i64 {bits.text}, i1 true)"), INT64, 1)
        return w.plus(place(k), lane)


WRITERS: Final[dict[str, StepWriter]] = {"argmax": position, "argmin": position}
