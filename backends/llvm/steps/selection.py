"""Selection: elements by their ranks, and rows divided at one, in a few passes.

The keys of a sample, which are sorted, give two bounds between which those of the ranks are very likely to lie. What is
between them is sorted; where a rank lies outside, all is. The sample depends on the length of a row alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import UINT8, alignment
from srcgrad.backends.llvm.steps.sorts import Rows
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import INT64

SHORT: Final = 512
"""Rows of so many elements are sorted."""
SPREAD: Final = 1.75
"""How far from a rank of the sample its bounds are, in square roots of the sample's size: of a half, 3.5 deviations."""
SCATTER: Final = 0x9E3779B97F4A7C15
"""Odd, and its products with small numbers are spread evenly (Knuth's multiplicative hashing)."""


class Band(NamedTuple):
    """Sorted keys of a row: all that there are from one to another; how many less ones there are."""

    keys: str
    size: Number
    below: Number


def sample_size(size: int) -> int:
    """A power of 2 near ``size ** (2/3)``, for which sorting it and what is between the bounds take as long."""
    return 1 << round(math.log2(size) * 2 / 3)


class Selection(Rows):
    """Rows of which elements are selected."""

    def __init__(self, operation: Operation, name: str, target: Target) -> None:
        super().__init__(operation, name, target)
        floats = self.dtype.kind == "f"
        self.kind = np.dtype(f"i{self.dtype.itemsize}") if floats else UINT8 if self.dtype == BOOL else self.dtype
        """The dtype of keys."""

    def can(self, sorted_as: object = None) -> bool:
        return super().can(self.kind)

    @property
    def compresses(self) -> bool:
        """Whether the elements of a vector that a mask has can be brought together by one instruction."""
        return self.w.target.masked and self.dtype.itemsize in (4, 8)

    def take_room(self) -> None:
        """Scratch memory: for the keys of a row, and for a sample of them."""
        w, itemsize = self.w, self.kind.itemsize
        self.keys = w.take_scratch(self.size * itemsize + w.target.vector_bytes)
        self.sample = w.take_scratch(sample_size(self.size) * itemsize) if self.size > SHORT else "null"

    # --- bounds --------------------------------------------------------------------------------------
    def band(self, low: int, high: int) -> Band:
        """Sorted keys of a row, of which those of the ranks from ``low`` to ``high`` are some."""
        w, e = self.w, self.w.e
        if self.size <= SHORT:
            self.sort_all()
            return Band(self.keys, w.i64(self.size), w.i64(0))
        least, most = self.bounds(low, high)
        below, count = self.keep(least, most)
        inside = e.binary("and", e.compare("sle", below, low), e.compare("sgt", w.plus(below, count), high))
        yes, no, after = (e.label(stem) for stem in ("within", "without", "after"))
        e.branch(inside, yes, no)
        e.start(yes)
        self.call(self.kind, self.keys, count)
        e.jump(after)
        e.start(no)
        self.sort_all()
        last = e.block
        e.jump(after)
        e.start(after)
        size = e.phi((count, yes), (w.i64(self.size), last))
        return Band(self.keys, size, e.phi((below, yes), (w.i64(0), last)))

    def sort_all(self) -> None:
        w, lanes = self.w, self.w.lanes_of(self.kind)
        w.strip(self.size, lanes, lambda k, n: w.store(self.keys, k, self.key(self.row, k, n)))
        self.call(self.kind, self.keys, self.size)

    def bounds(self, low: int, high: int) -> tuple[Number, Number]:
        """Keys between which those of the ranks lie in all likelihood: the ends of all where the sample has none."""
        w, e, count = self.w, self.w.e, sample_size(self.size)
        part = self.size // count

        def pick(k: Number) -> None:
            spread = e.integer("lshr", e.integer("mul", k, w.i64(SCATTER - 2**64)), w.i64(33))
            place = w.plus(w.times(k, part), e.binary("urem", spread, w.i64(part)))
            w.store(self.sample, k, self.key(self.row, place))

        w.each(count, pick)
        self.call(self.kind, self.sample, count)
        margin, limits = math.ceil(SPREAD * math.sqrt(count)), np.iinfo(self.kind)
        first, last = low * count // self.size - margin, high * count // self.size + margin

        def at(k: int, end: int) -> Number:
            return w.load(self.sample, k, self.kind) if 0 <= k < count else e.constant(end, self.kind, 1)

        return at(first, int(limits.min)), at(last, int(limits.max))

    def keep(self, least: Number, most: Number) -> tuple[Number, Number]:
        """The keys from one to another brought together; how many less ones there are, and how many these are."""
        w, e = self.w, self.w.e

        def follow(lanes: int) -> Callable[[Number, list[Number]], list[Number]]:
            ends = [e.splat(bound, lanes) for bound in (least, most)]

            def trip(k: Number, carried: list[Number]) -> list[Number]:
                key = self.key(self.row, k, lanes)
                before, behind = self.less(key, ends[0]), self.less(ends[1], key)
                kept = e.invert(e.binary("or", before, behind))
                if lanes > 1:
                    key = self.brought_together(key, kept)
                w.store(self.keys, carried[1], key)  # what follows those that are kept is written over
                return [w.plus(total, self.count(mask)) for total, mask in zip(carried, (before, kept), strict=True)]

            return trip

        lanes = w.lanes_of(self.kind) if self.compresses else 1
        whole = self.size // lanes * lanes
        state = [w.i64(0), w.i64(0)]
        if lanes > 1:
            state = w.loop(whole, follow(lanes), state, 0, lanes)
        below, count = w.loop(self.size, follow(1), state, whole if lanes > 1 else 0)
        return below, count

    def less(self, a: Number, b: Number) -> Number:
        return self.w.e.compare("slt" if self.kind.kind == "i" else "ult", a, b)

    def count(self, mask: Number) -> Number:
        """In how many lanes it holds."""
        e = self.w.e
        if mask.lanes == 1:
            return e.convert("zext", mask, INT64)
        bits = e.emit(f"bitcast {mask.type} {mask.text} to i{mask.lanes}")
        if mask.lanes < 64:
            bits = e.emit(f"zext i{mask.lanes} {bits} to i64")
        return e.intrinsic("ctpop", Number(bits, INT64, 1))

    def brought_together(self, values: Number, mask: Number) -> Number:
        """The elements that a mask has, side by side from the first lane on."""
        e = self.w.e
        name = f"@llvm.x86.avx512.mask.compress.{vector_suffix(values)}"
        e.declarations.add(f"declare {values.type} {name}({values.type}, {values.type}, {mask.type})")
        given = f"{values.type} {values.text}, {values.type} {values.text}, {mask.type} {mask.text}"
        return values._replace(text=e.emit(f"call {values.type} {name}({given})"))

    # --- by ranks ------------------------------------------------------------------------------------
    def statistics(self, positions: bool) -> Step:
        """The elements of the ranks, or their positions. Near ranks have one band."""
        w, ranks = self.w, self.w.operation.attrs["ranks"]
        self.take_room()

        def row(a: Number, b: Number, work: str) -> None:
            self.row = work or w.address("%in0", self.first(a, b), self.dtype.itemsize)
            for group in grouped(ranks, self.size):
                band = self.band(ranks[group[0]], ranks[group[-1]])
                for k in group:
                    place = w.flat((a, len(ranks) * self.inner), (w.i64(k), self.inner), (b, 1))
                    self.write(band, ranks[k], place, positions)

        self.rows(row, self.dtype.itemsize)
        return w.finish()

    def write(self, band: Band, rank: int, place: Number, positions: bool) -> None:
        """The element of a rank, by its place if that tells more than its key: the sign of a zero, the bits of nan."""
        w, e = self.w, self.w.e
        spot = e.integer("sub", w.i64(rank), band.below)
        key = w.load(band.keys, spot, self.kind)
        if positions:
            w.write(place, self.position(band, key, spot))
            return
        if self.dtype.kind != "f":
            w.write(place, key if self.dtype != BOOL else e.compare("ne", key, 0))
            return
        w.write(place, self.element(key))
        exact = e.binary("or", e.compare("eq", key, 0), e.compare("eq", key, int(np.iinfo(self.kind).max)))
        w.when(exact, lambda: w.write(place, w.load(self.row, self.position(band, key, spot), self.dtype)))

    def element(self, key: Number) -> Number:
        """The float of which this is the key, but for zeros and nan."""
        e = self.w.e
        sign = e.integer("ashr", key, 8 * self.kind.itemsize - 1)
        size = e.integer("sub", e.integer("xor", key, sign), sign)
        return e.from_bits(e.integer("or", size, e.integer("and", sign, int(np.iinfo(self.kind).min))))

    def first_of(self, band: Band, key: Number) -> Number:
        """Where the first of a band's keys is that is no less than this one."""
        w, e = self.w, self.w.e

        def halve(state: list[Number]) -> list[Number]:
            low, high = state
            middle = e.integer("lshr", w.plus(low, high), w.i64(1))
            after = self.less(w.load(band.keys, middle, self.kind), key)
            return [e.select(after, w.plus(middle, 1), low), e.select(after, high, middle)]

        return w.while_([w.i64(0), band.size], lambda state: e.compare("slt", state[0], state[1]), halve)[0]

    def position(self, band: Band, key: Number, spot: Number) -> Number:
        """The position of the element that has this place among the sorted keys: equals are counted in their order."""
        w, e, lanes = self.w, self.w.e, self.w.lanes_of(self.kind)
        wanted = e.integer("sub", spot, self.first_of(band, key))
        whole = self.size // lanes * lanes
        same = e.splat(key, lanes)

        def counted(k: Number, lanes: int) -> Number:
            return self.count(e.compare("eq", self.key(self.row, k, lanes), same if lanes > 1 else key))

        def ahead(state: list[Number]) -> Number:
            """Whether the element is behind the vector at ``state[0]``, which has ``state[2]`` equals."""
            inside = e.compare("slt", state[0], whole)
            return e.binary("and", inside, e.compare("sle", w.plus(state[1], state[2]), wanted))

        def step(state: list[Number]) -> list[Number]:
            following = w.plus(state[0], lanes)
            at = e.select(e.compare("slt", following, whole), following, w.i64(0))
            return [following, w.plus(state[1], state[2]), counted(at, lanes)]

        start, seen = w.i64(0), w.i64(0)
        if whole:
            start, seen, _ = w.while_([start, seen, counted(start, lanes)], ahead, step)

        def goes_on(state: list[Number]) -> Number:
            return e.compare("sle", state[1], wanted)

        def one(state: list[Number]) -> list[Number]:
            return [w.plus(state[0], 1), w.plus(state[1], counted(state[0], 1))]

        behind, _ = w.while_([start, seen], goes_on, one)
        return w.plus(behind, -1)

    # --- partitions ----------------------------------------------------------------------------------
    def divided(self, positions: bool) -> Step:
        """What is less than the pivot, what equals it, and the rest: elements, or positions; of a row, to its place."""
        w, e, kth = self.w, self.w.e, self.w.operation.attrs["kth"]
        self.take_room()
        moved = INT64 if positions else self.dtype
        room = w.take_scratch(self.size * moved.itemsize) if self.inner > 1 else ""

        def row(a: Number, b: Number, work: str) -> None:
            first = self.first(a, b)
            self.row = work or w.address("%in0", first, self.dtype.itemsize)
            band = self.band(kth, kth)
            pivot = w.load(band.keys, e.integer("sub", w.i64(kth), band.below), self.kind)
            start = self.first_of(band, pivot)
            over = self.first_of_greater(band, pivot)
            target = room or w.address("%out0", first, moved.itemsize)
            self.divide(pivot, [w.i64(0), w.plus(band.below, start), w.plus(band.below, over)], target, positions)
            if room:
                w.each(self.size, lambda k: w.write(self.place(first, k), w.load(room, k, moved)))

        self.rows(row, self.dtype.itemsize)
        return w.finish()

    def first_of_greater(self, band: Band, key: Number) -> Number:
        """Where the first of a band's keys is that is greater than this one, which may be the largest of all."""
        w, e = self.w, self.w.e

        def halve(state: list[Number]) -> list[Number]:
            low, high = state
            middle = e.integer("lshr", w.plus(low, high), w.i64(1))
            after = self.less(key, w.load(band.keys, middle, self.kind))
            return [e.select(after, low, w.plus(middle, 1)), e.select(after, middle, high)]

        return w.while_([w.i64(0), band.size], lambda state: e.compare("slt", state[0], state[1]), halve)[0]

    def divide(self, pivot: Number, starts: list[Number], target: str, positions: bool) -> None:
        """Each element, or its position, to the next place of its part."""
        w, e = self.w, self.w.e
        moved = INT64 if positions else self.dtype

        def parts(k: Number, lanes: int) -> tuple[Number, list[Number]]:
            key, value = self.key(self.row, k, lanes), self.counted(k, lanes)
            if not positions:
                value = w.load(self.row, k, self.dtype, lanes)
            bound = e.splat(pivot, lanes)
            less, greater = self.less(key, bound), self.less(bound, key)
            return value, [less, e.invert(e.binary("or", less, greater)), greater]

        def vector(k: Number, places: list[Number]) -> list[Number]:
            value, masks = parts(k, lanes)
            counts = [self.count(mask) for mask in masks]
            for place, mask, count in zip(places, masks, counts, strict=True):
                self.store_first(target, place, self.brought_together(value, mask), count)
            return [w.plus(place, count) for place, count in zip(places, counts, strict=True)]

        def single(k: Number, places: list[Number]) -> list[Number]:
            value, masks = parts(k, 1)
            place = e.select(masks[0], places[0], e.select(masks[1], places[1], places[2]))
            w.store(target, place, value)
            return [w.plus(place, self.count(mask)) for place, mask in zip(places, masks, strict=True)]

        lanes = w.lanes_of(moved, self.kind) if self.compresses else 1
        whole = self.size // lanes * lanes if lanes > 1 else 0
        places = w.loop(whole, vector, starts, 0, lanes)
        w.loop(self.size, single, places, whole)

    def store_first(self, pointer: str, place: Number, value: Number, count: Number) -> None:
        """Write the first ``count`` lanes of a vector."""
        w, e, lanes = self.w, self.w.e, value.lanes
        ones = e.integer("add", e.integer("shl", w.i64(1), count), w.i64(-1))
        bits = e.emit(f"trunc i64 {ones.text} to i{lanes}")
        mask = e.emit(f"bitcast i{lanes} {bits} to <{lanes} x i1>")
        name = f"@llvm.masked.store.{vector_suffix(value)}.p0"
        e.declarations.add(f"declare void {name}({value.type}, ptr, i32, <{lanes} x i1>)")  # as loops do: in one way
        address = w.address(pointer, place, value.dtype.itemsize)
        aligned = alignment(value.dtype.itemsize)
        e.do(f"call void {name}({value.type} {value.text}, ptr {address}, i32 {aligned}, <{lanes} x i1> {mask})")


def vector_suffix(value: Number) -> str:
    return f"v{value.lanes}{'f' if value.dtype.kind == 'f' else 'i'}{8 * value.dtype.itemsize}"


def grouped(ranks: Sequence[int], size: int) -> list[list[int]]:
    """The numbers of the ranks, those of near ones together."""
    groups = [[0]]
    for k in range(1, len(ranks)):
        if ranks[k] - ranks[groups[-1][0]] <= size // 64 or size <= SHORT:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def selected(operation: Operation, name: str, target: Target) -> Step | None:
    """``order_statistics`` and ``order_positions``."""
    found = Selection(operation, name, target)
    if not found.outer * found.inner or not operation.attrs["ranks"]:
        return found.w.finish()
    return found.statistics(operation.op.name == "order_positions") if found.can() else None


def divided(operation: Operation, name: str, target: Target) -> Step | None:
    """``partition`` and ``argpartition``."""
    found = Selection(operation, name, target)
    if not found.outer * found.inner:
        return found.w.finish()
    return found.divided(operation.op.name == "argpartition") if found.can() else None


WRITERS: Final[dict[str, StepWriter]] = {
    "argpartition": divided,
    "order_positions": selected,
    "order_statistics": selected,
    "partition": divided,
}
