"""Where kernels read and write: places in arrays, vectors of any stride, loads and stores under masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, DType, Emitter, Number, scalar_name
from srcgrad.backends.llvm.indices import Bound, Bounds, Line

INT64: Final = np.dtype(np.int64)
STREAM: Final = "!9000"
"""What marks stores past the caches; every module defines it."""
ARENA: Final = "%arena"
"""The memory of a section, in which kernels know the places of arrays where there are many."""


class Place(NamedTuple):
    """Where an array lies in `ARENA`: after so many elements, which are a multiple of 64 bytes.

    ``alone``: up to the next such multiple after its end there is nothing else.
    """

    start: int
    alone: bool


def memory_name(dtype: DType) -> str:
    """The type of a number in memory: bool is a byte."""
    return "i8" if dtype == BOOL else scalar_name(dtype)


Bases = dict[tuple[int, tuple[int, ...]] | Bound, Number]


class Access:
    """Reads and writes of lines, at the indices of the loops that are entered."""

    def __init__(self, emitter: Emitter, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.e = emitter
        self.inputs = inputs
        self.outputs = outputs
        self.bases: Bases = {}
        """Offsets by what is known of a line: its offset and the strides of the loops that are entered.

        And whether bounds are kept to, which the loops that are entered decide.
        """
        self.insides: dict[Bounds, Number] = {}
        """Whether bounds are kept to, at the innermost index."""
        self.indices: list[Number] = []
        self.streamed: frozenset[int] = frozenset()
        """Outputs that begin at a multiple of 64 bytes and are written past the caches, where vectors lie so too."""
        self.parts: frozenset[int] = frozenset()
        """Outputs of which a part is written: what lies beyond the end of a line is theirs."""
        self.moved: frozenset[str] = frozenset()
        """Pointers to where the first element of an array would be, of which only a part is there."""
        self.fixed: Mapping[str, Place] = {}
        """What stands for pointers to known places in `ARENA`."""
        self.heres: dict[tuple[str, str, str], str] = {}
        """Pointers into the arena by block, type and index, of code of level 0: one is loaded again after each call."""
        self.whole = False
        """Whether all vectors of the innermost loop begin at a multiple of their length."""

    def address(self, pointer: str, name: str, place: Number, anywhere: bool = False) -> str:
        """The address of an element, whose type is ``name``; or, ``anywhere``, of what may not be one."""
        fixed = self.fixed.get(pointer)
        if fixed is not None and self.e.plain:
            key = (self.e.block, name, place.text)
            if key not in self.heres:
                here = self.e.emit(f"getelementptr {name}, ptr {ARENA}, i64 {place.text}")
                self.heres[key] = self.e.emit(f'call ptr asm "", "=r,0"(ptr {here})')  # or the index is added each time
            return self.e.emit(f"getelementptr {name}, ptr {self.heres[key]}, i64 {fixed.start}")
        if fixed is not None:
            return self.e.emit(f"getelementptr [1 x {name}], ptr {ARENA}, i64 {fixed.start}, i64 {place.text}")
        step = "getelementptr" if anywhere or pointer in self.moved else "getelementptr inbounds"
        return self.e.emit(f"{step} {name}, ptr {pointer}, i64 {place.text}")

    def base(self, line: Line, depth: int) -> Number:
        """What the loops that are entered give to the place, computed once in each."""
        key = (line.offset, line.strides[:depth])
        found = self.bases.get(key)
        if found is None:
            if not depth:
                found = self.e.constant(line.offset, INT64, 1)
            else:
                found = self.base(line, depth - 1)
                stride = line.strides[depth - 1]
                if stride:
                    index = self.indices[depth - 1]
                    part = index if stride == 1 else self.e.integer("mul", index, stride)
                    found = self.e.integer("add", found, part)
            self.bases[key] = found
        return found

    def place(self, line: Line, index: Number | None) -> Number:
        """The place of a line, at the innermost index where that is known."""
        base = self.base(line, len(self.indices))
        stride = line.strides[-1] if line.strides and index is not None else 0
        if not stride or index is None:
            return base
        part = index if stride == 1 else self.e.integer("mul", index, stride)
        return part if base.text == "0" else self.e.integer("add", base, part)

    def is_padded(self, pointer: str, line: Line) -> bool:
        """Whether vectors along a line, which have 64 bytes at most, may go beyond its end: nothing else is there.

        LLVM chooses loads and stores without masks in half the time at level 0, where it is quick, and else in twice.
        """
        fixed = self.fixed.get(pointer) if self.e.plain and self.whole and line.strides == (1,) else None
        return fixed is not None and fixed.alone and not line.offset

    def load_at(
        self, pointer: str, line: Line, dtype: DType, index: Number | None, lanes: int, mask: Number | None,
        ahead: int = 0,
    ) -> Number:  # fmt: skip
        """What is read at an index; memory is asked for what is so many bytes ``ahead`` of a vector, if any."""
        e, name = self.e, memory_name(dtype)
        stride = line.strides[-1] if line.strides and index is not None else 0
        place = self.place(line, index)
        address = self.address(pointer, name, place)
        if lanes == 1 or not stride:
            text = e.emit(f"load {name}, ptr {address}, align {dtype.itemsize}")
            return e.splat(self.from_memory(text, dtype, 1), lanes)
        if stride == 1:
            if mask is not None and self.is_padded(pointer, line):
                mask = None
            if ahead:
                self.ask_for(address, ahead)
            return self.from_memory(self.load_vector(address, name, dtype, lanes, mask), dtype, lanes)
        if stride == -1 and mask is None:
            first = e.emit(f"getelementptr inbounds {name}, ptr {address}, i64 {1 - lanes}")
            text = e.emit(f"load <{lanes} x {name}>, ptr {first}, align {dtype.itemsize}")
            order = ", ".join(f"i32 {k}" for k in reversed(range(lanes)))
            vector = f"<{lanes} x {name}>"
            text = e.emit(f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{order}>")
            return self.from_memory(text, dtype, lanes)
        return self.from_memory(self.gathered_from(address, name, dtype, stride, lanes, mask), dtype, lanes)

    def gathered_from(
        self, address: str, name: str, dtype: DType, stride: int, lanes: int, mask: Number | None
    ) -> str:  # fmt: skip
        e, pointers = self.e, self.pointers(address, name, stride, lanes)
        vector, suffix = f"<{lanes} x {name}>", f"v{lanes}{self.suffix(name)}.v{lanes}p0"
        e.declarations.add(
            f"declare {vector} @llvm.masked.gather.{suffix}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})"
        )
        return e.emit(
            f"call {vector} @llvm.masked.gather.{suffix}(<{lanes} x ptr> {pointers}, i32 {dtype.itemsize}, "
            f"<{lanes} x i1> {self.mask_text(mask)}, {vector} zeroinitializer)"
        )

    def ask_for(self, address: str, ahead: int, writing: bool = False) -> None:
        """Have memory begin to read so many bytes after an address, which may be beyond the end of the array."""
        self.e.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        place = self.e.emit(f"getelementptr i8, ptr {address}, i64 {ahead}")
        self.e.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(writing)}, i32 3, i32 1)")

    def load_vector(self, address: str, name: str, dtype: DType, lanes: int, mask: Number | None) -> str:
        e, vector = self.e, f"<{lanes} x {name}>"
        if mask is None:
            return e.emit(f"load {vector}, ptr {address}, align {dtype.itemsize}")
        suffix = f"v{lanes}{self.suffix(name)}.p0"
        e.declarations.add(f"declare {vector} @llvm.masked.load.{suffix}(ptr, i32, <{lanes} x i1>, {vector})")
        return e.emit(
            f"call {vector} @llvm.masked.load.{suffix}(ptr {address}, i32 {dtype.itemsize}, "
            f"<{lanes} x i1> {mask.text}, {vector} zeroinitializer)"
        )

    def store_at(
        self, output: int, line: Line, value: Number, index: Number, lanes: int, mask: Number | None, ahead: int = 0
    ) -> None:  # fmt: skip
        stride = line.strides[-1] if line.strides else 0
        streams = output in self.streamed and not any(k % lanes for k in (line.offset, *line.strides[:-1]))
        value = self.e.splat(value, lanes)
        if mask is not None and output not in self.parts and self.is_padded(self.outputs[output], line):
            mask = None
        if ahead and stride == 1 and not streams:
            address = self.address(self.outputs[output], memory_name(value.dtype), self.place(line, index))
            self.ask_for(address, ahead, writing=True)
        self.store(output, self.place(line, index), stride, value, value.dtype, mask, streams=streams)

    def store_pairs(
        self, output: int, line: Line, values: Sequence[Number], index: Number, lanes: int, mask: Number | None
    ) -> None:
        """Two vectors as one of pairs, from the place of the first part on."""
        real, imag = (self.e.splat(value, lanes) for value in values)
        streams = output in self.streamed and not any(k % lanes for k in (line.offset, *line.strides[:-1]))
        place = self.place(line, index)
        for half in range(2):
            rows = [half * lanes // 2 + k // 2 for k in range(lanes)]
            text = self.shuffled(real.type, real.text, imag.text, [row + lanes * (k % 2) for k, row in enumerate(rows)])
            at = self.e.integer("add", place, lanes) if half else place
            part = real._replace(text=text)
            self.store(output, at, 1, part, part.dtype, self.spread_mask(mask, rows), streams=streams)

    def store(
        self, output: int, place: Number, stride: int, value: Number, dtype: DType, mask: Number | None,
        streams: bool = False,
    ) -> None:  # fmt: skip
        e, name, lanes = self.e, memory_name(dtype), value.lanes
        value = self.to_memory(value)
        vector = name if lanes == 1 else f"<{lanes} x {name}>"
        address = self.address(self.outputs[output], name, place)
        if lanes == 1 or (stride == 1 and mask is None):
            size = lanes * dtype.itemsize
            past = streams and stride == 1 and size in (16, 32, 64)
            how = f"align {size}, !nontemporal {STREAM}" if past else f"align {dtype.itemsize}"
            e.do(f"store {vector} {value.text}, ptr {address}, {how}")
            return
        flags = f"<{lanes} x i1>"
        if stride == 1:
            function, target, given = f"@llvm.masked.store.v{lanes}{self.suffix(name)}.p0", "ptr", address
        else:
            function = f"@llvm.masked.scatter.v{lanes}{self.suffix(name)}.v{lanes}p0"
            target, given = f"<{lanes} x ptr>", self.pointers(address, name, stride, lanes)
        e.declarations.add(f"declare void {function}({vector}, {target}, i32, {flags})")
        e.do(
            f"call void {function}({vector} {value.text}, {target} {given}, i32 {dtype.itemsize}, "
            f"{flags} {self.mask_text(mask)})"
        )

    def pointers(self, address: str, name: str, stride: int, lanes: int) -> str:
        steps = ", ".join(f"i64 {k * stride}" for k in range(lanes))
        return self.e.emit(f"getelementptr inbounds {name}, ptr {address}, <{lanes} x i64> <{steps}>")

    @staticmethod
    def mask_text(mask: Number | None) -> str:
        return "splat (i1 true)" if mask is None else mask.text

    @staticmethod
    def suffix(name: str) -> str:
        return {"half": "f16", "float": "f32", "double": "f64"}.get(name, name)

    def from_memory(self, text: str, dtype: DType, lanes: int) -> Number:
        if dtype != BOOL:
            return Number(text, dtype, lanes)
        byte = Number(text, np.dtype(np.int8), lanes)
        return self.e.compare("ne", byte, 0)

    def to_memory(self, value: Number) -> Number:
        return self.e.convert("zext", value, np.dtype(np.uint8)) if value.dtype == BOOL else value

    # --- within bounds -----------------------------------------------------------------------------
    def decide(self, bounds: Bounds) -> None:
        """Find whether bounds are kept to, which the loops that are entered decide."""
        depth = len(self.indices)
        for bound in bounds:
            if bound not in self.bases and not any(bound.line.strides[depth:]):
                place = self.base(bound.line, depth)
                self.bases[bound] = self.e.compare("ult", place, bound.size)  # what is below 0 is large then

    def inside(self, bounds: Bounds, index: Number | None, lanes: int) -> Number:
        """Whether bounds are kept to; in so many lanes if that depends on the innermost index."""
        e = self.e
        found = self.insides.get(bounds) if index is not None else None
        if found is not None:
            return found
        for bound in bounds:
            here = self.bases.get(bound)
            if here is None:
                place, stride = self.place(bound.line, index), bound.line.strides[-1]
                if lanes > 1:
                    steps = ", ".join(f"i64 {k * stride}" for k in range(lanes))
                    place = e.integer("add", e.splat(place, lanes), Number(f"<{steps}>", INT64, lanes))
                here = e.compare("ult", place, bound.size)
            if found is None:
                found = here
            else:
                most = max(found.lanes, here.lanes)
                found = e.integer("and", e.splat(found, most), e.splat(here, most))
        assert found is not None
        if index is not None:
            self.insides[bounds] = found
        return found

    def load_inside(
        self, pointer: str, line: Line, dtype: DType, bounds: Bounds, size: int, index: Number | None, lanes: int,
        mask: Number | None, ahead: int = 0,
    ) -> Number:  # fmt: skip
        """What is read at an index of an array of so many elements, or zero where bounds are not kept to.

        Then the place may be none of the array's; it is not touched.
        """
        e, name = self.e, memory_name(dtype)
        inside, place = self.inside(bounds, index, lanes), self.place(line, index)
        stride = line.strides[-1] if line.strides and index is not None else 0
        if lanes > 1 and stride:
            # Masked loads are slow where there is no memory, so no place is far from the array.
            if stride == 1:
                place = e.intrinsic("smin", e.intrinsic("smax", place, e.like(-lanes, place)), e.like(size, place))
            inside = e.splat(inside, lanes)
            inside = inside if mask is None else e.integer("and", inside, mask)
            address = self.address(pointer, name, place, anywhere=True)
            if stride != 1:
                text = self.gathered_from(address, name, dtype, stride, lanes, inside)
                return self.from_memory(text, dtype, lanes)
            if ahead:
                self.ask_for(address, ahead)
            return self.from_memory(self.load_vector(address, name, dtype, lanes, inside), dtype, lanes)
        place = e.select(e.compare("ult", place, size), place, 0)
        text = e.emit(f"load {name}, ptr {self.address(pointer, name, place)}, align {dtype.itemsize}")
        value = e.splat(self.from_memory(text, dtype, 1), max(lanes, inside.lanes))
        return e.select(e.splat(inside, value.lanes), value, 0)

    # --- columns of short rows ---------------------------------------------------------------------
    def columns(
        self, pointer: str, lines: Sequence[Line], dtype: DType, index: Number, lanes: int, mask: Number | None,
        ahead: int,
    ) -> list[Number]:  # fmt: skip
        """What is read along lines that are one but for offsets, less than their stride apart: columns of short rows.

        All vectors from the first element to the last are read, and sorted in registers: several times as fast as
        gathering numbers. Nothing is read that lies before the first or behind the last: what lies between the columns
        of two rows goes with the second of these.
        """
        e, name = self.e, memory_name(dtype)
        least = min(lines, key=lambda line: line.offset)
        stride, spread = least.strides[-1], max(line.offset for line in lines) - least.offset
        length = stride * (lanes - 1) + spread + 1
        starts = [*range(0, length - lanes, lanes), length - lanes]
        address = self.address(pointer, name, self.place(least, index))
        if ahead:
            self.ask_for(address, ahead)
        vectors = []
        for start in starts:
            place = e.emit(f"getelementptr {name}, ptr {address}, i64 {start}") if start else address
            rows = [place // stride + (place % stride > spread) for place in range(start, start + lanes)]
            vectors.append(self.load_vector(place, name, dtype, lanes, self.spread_mask(mask, rows)))
        found = []
        for line in lines:
            places = [stride * lane + line.offset - least.offset for lane in range(lanes)]
            homes = [min(place // lanes, len(starts) - 1) for place in places]
            text = vectors[0]  # of which the first shuffle takes what it has; the others leave that where it is
            for number in range(1, len(starts)):
                order = [
                    lanes + place - starts[number] if home == number else place if number == 1 else lane
                    for lane, (place, home) in enumerate(zip(places, homes, strict=True))
                ]
                text = self.shuffled(f"<{lanes} x {name}>", text, vectors[number], [k % (2 * lanes) for k in order])
            found.append(self.from_memory(text, dtype, lanes))
        return found

    def spread_mask(self, mask: Number | None, lanes: Sequence[int]) -> Number | None:
        """These lanes of a mask."""
        if mask is None:
            return None
        if mask.text[0] == "<":
            there = mask.text[1:-1].split(", ")
            return mask._replace(text=f"<{', '.join([there[lane] for lane in lanes])}>", lanes=len(lanes))
        text = self.shuffled(mask.type, mask.text, "poison", lanes)
        return mask._replace(text=text, lanes=len(lanes))

    # --- tiles -------------------------------------------------------------------------------------
    def tile(self, pointer: str, line: Line, dtype: DType, index: Number, lanes: int, count: int) -> list[Number]:
        """What as many rows as there are lanes read along a line whose places are contiguous from row to row.

        Vectors along the rows, of the first ``count`` lanes' columns, are transposed: one vector a row.
        """
        e, name = self.e, memory_name(dtype)
        first, stride = self.place(line, index), line.strides[-1]
        columns = []
        for lane in range(count):
            place = e.integer("add", first, lane * stride) if lane else first
            address = self.address(pointer, name, place)
            columns.append(e.emit(f"load <{lanes} x {name}>, ptr {address}, align {dtype.itemsize}"))
        columns += ["zeroinitializer"] * (lanes - count)
        return [self.from_memory(text, dtype, lanes) for text in self.transposed(columns, name)]

    def transposed(self, rows: list[str], name: str) -> list[str]:
        """A square of vectors transposed: halves, then quarters and so on change places across the diagonal."""
        lanes, rows = len(rows), list(rows)
        vector, half = f"<{lanes} x {name}>", lanes // 2
        while half:
            for low in range(lanes):
                if low & half:
                    continue
                a, b = rows[low], rows[low + half]
                upper = [k if not k & half else lanes + k - half for k in range(lanes)]
                lower = [k + half if not k & half else lanes + k for k in range(lanes)]
                rows[low], rows[low + half] = (self.shuffled(vector, a, b, order) for order in (upper, lower))
            half //= 2
        return rows

    def shuffled(self, vector: str, a: str, b: str, order: Sequence[int]) -> str:
        places = ", ".join(f"i32 {k}" for k in order)
        return self.e.emit(f"shufflevector {vector} {a}, {vector} {b}, <{len(order)} x i32> <{places}>")
