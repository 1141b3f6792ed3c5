"""The function of a step over elements as it is written: loops, branches, memory, operands that are literals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, F32, DType, Emitter, Number, scalar_name
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Literal, Operation
from srcgrad.ir.types import INT64, real_dtype

UINT8: Final = np.dtype(np.uint8)
RAW: Final = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "<2 x i64>", 32: "<4 x i64>"}
"""The type as which an element of so many bytes is moved."""
Loop = Callable[[Number, list[Number]], list[Number]]
"""What a loop does, from its index and the carried values to those after it."""


class Body:
    """The body of a step being written, into the function ``@name``.

    Places count elements. Loops over a size that is known and 0 write nothing, and of size 1 no loop.
    """

    def __init__(self, operation: Operation, name: str, target: Target) -> None:
        self.operation = operation
        self.name = name
        self.target = target
        self.e = Emitter(1, target.features)
        self.scratch = 0
        self.symbols: dict[str, int] = {}
        self.fails = False
        self.types = [value.type for value in operation.operands]
        self.results = [value.type for value in operation.results]
        self.unread = {k for k, value in enumerate(operation.operands) if isinstance(value, Literal) and value.splat}

    def finish(self, in_place: int | None = None) -> Step:
        """The step; a splat literal has no memory to be written over."""
        inputs = [f"ptr %in{k}" for k in range(len(self.types))]
        outputs = [f"ptr %out{k}" for k in range(len(self.results))]
        parameters = ", ".join([*inputs, *outputs, "ptr %scratch"])
        lines = [
            f"define internal i32 @{self.name}({parameters}) {self.attributes} {{",
            "entry:",
            *self.e.lines,
            "  ret i32 0",
            *(["fail:", "  ret i32 1"] if self.fails else []),
            "}",
            "",
        ]
        return Step(
            "\n".join(lines),
            frozenset(self.e.declarations),
            dict(self.e.definitions),
            dict(self.symbols),
            self.scratch,
            None if in_place in self.unread else in_place,
            frozenset(self.unread),
        )

    @property
    def attributes(self) -> str:
        width = 8 * self.target.vector_bytes
        return f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'

    def helper(self, parameters: str) -> str:
        """The text of a function that steps call, in place of a step."""
        head = f"define internal void @{self.name}({parameters}) noinline {self.attributes} {{"
        return "\n".join([head, "entry:", *self.e.lines, "  ret void", "}", ""])

    def take_scratch(self, size: int) -> str:
        """The address of so many bytes of scratch memory, aligned to 64."""
        offset = self.scratch
        self.scratch += -(-size // 64) * 64
        return self.address("%scratch", offset, 1)

    # --- whole numbers -----------------------------------------------------------------------------
    def i64(self, value: int) -> Number:
        return Number(str(value), INT64, 1)

    @staticmethod
    def known(value: Number | int) -> int | None:
        """The number, where it is a constant."""
        if isinstance(value, int):
            return value
        return int(value.text) if value.text.lstrip("-").isdigit() else None

    def plus(self, a: Number | int, b: Number | int) -> Number:
        return self.folded("add", operator.add, 0, a, b)

    def times(self, a: Number | int, b: Number | int) -> Number:
        if 0 in (self.known(a), self.known(b)):
            return self.i64(0)
        return self.folded("mul", operator.mul, 1, a, b)

    def folded(
        self, op: str, of_ints: Callable[[int, int], int], neutral: int, a: Number | int, b: Number | int
    ) -> Number:
        """What an op gives: a constant of two, and the other operand of what is ``neutral``."""
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None:
            return self.i64(of_ints(x, y))
        if neutral in (x, y):
            found = b if x == neutral else a
            return found if isinstance(found, Number) else self.i64(found)
        first, second = (a, b) if isinstance(a, Number) else (b, a)
        assert isinstance(first, Number)
        return self.e.integer(op, first, second)

    def flat(self, *pairs: tuple[Number | int, int]) -> Number:
        """The sum of index times stride."""
        total = self.i64(0)
        for index, stride in pairs:
            total = self.plus(total, self.times(index, stride))
        return total

    # --- control -----------------------------------------------------------------------------------
    def loop(
        self, stop: Number | int, body: Loop, carried: Sequence[Number] = (), start: Number | int = 0, step: int = 1
    ) -> list[Number]:
        """``body(index, carried)`` for each index from ``start`` to ``stop``: the carried values after it."""
        e, values = self.e, list(carried)
        first, last = self.known(start), self.known(stop)
        if first is not None and last is not None and first >= last:
            return values
        if first is not None and last is not None and first + step >= last:
            return body(self.i64(first), values)
        begin = start if isinstance(start, Number) else self.i64(start)
        end = stop if isinstance(stop, Number) else self.i64(stop)
        before, head, inside, after = e.block, e.label("head"), e.label("loop"), e.label("after")
        e.jump(head)
        e.start(head)
        index = Number(e.fresh(), INT64, 1)
        phis = [value._replace(text=e.fresh()) for value in values]
        position = len(e.lines)
        e.branch(e.compare("slt", index, end), inside, after)
        e.start(inside)
        found = body(index, phis)
        following = e.integer("add", index, self.i64(step))
        lines = [f"  {index.text} = phi i64 [ {begin.text}, %{before} ], [ {following.text}, %{e.block} ]"]
        for phi, value, result in zip(phis, values, found, strict=True):
            lines.append(f"  {phi.text} = phi {phi.type} [ {value.text}, %{before} ], [ {result.text}, %{e.block} ]")
        e.jump(head)
        e.lines[position:position] = lines
        e.start(after)
        return phis

    def each(
        self, stop: Number | int, body: Callable[[Number], object], start: Number | int = 0, step: int = 1
    ) -> None:
        """A loop that carries nothing."""

        def run(index: Number, carried: list[Number]) -> list[Number]:
            body(index)
            return carried

        self.loop(stop, run, (), start, step)

    def nest(self, sizes: Sequence[int], body: Callable[[list[Number]], object]) -> None:
        """``body(indices)`` at each point of a box, in C order."""

        def enter(indices: list[Number]) -> None:
            if len(indices) == len(sizes):
                body(indices)
            else:
                self.each(sizes[len(indices)], lambda index: enter([*indices, index]))

        if 0 not in sizes:
            enter([])

    def while_(
        self, carried: Sequence[Number], condition: Callable[[list[Number]], Number],
        body: Callable[[list[Number]], list[Number]],
    ) -> list[Number]:  # fmt: skip
        """``body`` as long as the condition on the carried values holds: the values for which it does not."""
        e, values = self.e, list(carried)
        before, head, inside, after = e.block, e.label("while"), e.label("loop"), e.label("after")
        e.jump(head)
        e.start(head)
        phis = [value._replace(text=e.fresh()) for value in values]
        position = len(e.lines)
        e.branch(condition(phis), inside, after)
        e.start(inside)
        found = body(phis)
        lines = [
            f"  {phi.text} = phi {phi.type} [ {value.text}, %{before} ], [ {result.text}, %{e.block} ]"
            for phi, value, result in zip(phis, values, found, strict=True)
        ]
        e.jump(head)
        e.lines[position:position] = lines
        e.start(after)
        return phis

    def when(self, condition: Number, body: Callable[[], object]) -> None:
        """``body`` where the condition holds."""
        e = self.e
        inside, after = e.label("then"), e.label("after")
        e.branch(condition, inside, after)
        e.start(inside)
        body()
        e.jump(after)
        e.start(after)

    def require(self, condition: Number) -> None:
        """Leave with status 1 where the condition does not hold."""
        following = self.e.label("fine")
        self.fails = True
        self.e.branch(condition, following, "fail")
        self.e.start(following)

    def strip(
        self, stop: Number | int, lanes: int, body: Callable[[Number, int], object], start: Number | int = 0
    ) -> None:
        """``body(place, lanes)`` along a row: so many at a time, a power of 2, and what is left one by one."""
        first, last = self.known(start), self.known(stop)
        whole: Number | int
        if lanes == 1:
            whole = start
        elif first is not None and last is not None:
            whole = last - max(last - first, 0) % lanes
        else:
            length = self.plus(stop, self.times(start, -1))
            length = self.e.select(self.e.compare("slt", length, 0), self.i64(0), length)
            whole = self.plus(start, self.e.integer("and", length, self.i64(-lanes)))
        self.e.lanes = lanes
        self.each(whole, lambda k: body(k, lanes), start, lanes)
        self.e.lanes = 1
        self.each(stop, lambda k: body(k, 1), whole)

    def lanes_of(self, *dtypes: DType) -> int:
        """How many of the widest numbers a register holds."""
        return self.target.vector_bytes // max(dtype.itemsize for dtype in dtypes)

    # --- memory ------------------------------------------------------------------------------------
    def address(self, pointer: str, place: Number | int, itemsize: int) -> str:
        if self.known(place) == 0:
            return pointer
        text = place.text if isinstance(place, Number) else str(place)
        return self.e.emit(f"getelementptr inbounds [{itemsize} x i8], ptr {pointer}, i64 {text}")

    def load(self, pointer: str, place: Number | int, dtype: DType, lanes: int = 1) -> Number:
        """Numbers in memory, in registers: of a bool, whether its byte is not 0."""
        e = self.e
        name = "i8" if dtype == BOOL else scalar_name(dtype)
        name = name if lanes == 1 else f"<{lanes} x {name}>"
        address = self.address(pointer, place, dtype.itemsize)
        text = e.emit(f"load {name}, ptr {address}, align {alignment(dtype.itemsize)}")
        if dtype == BOOL:
            return e.compare("ne", Number(text, UINT8, lanes), 0)
        return Number(text, dtype, lanes)

    def store(self, pointer: str, place: Number | int, value: Number) -> None:
        e, itemsize = self.e, value.dtype.itemsize
        if value.dtype == BOOL:
            value = e.convert("zext", value, UINT8)
        address = self.address(pointer, place, itemsize)
        e.do(f"store {value.type} {value.text}, ptr {address}, align {alignment(itemsize)}")

    def read(self, operand: int, place: Number | int, lanes: int = 1) -> Number:
        """Numbers of an operand: from memory, or the literal's."""
        value = self.operation.operands[operand]
        if isinstance(value, Literal) and value.splat:
            return self.e.constant(value.value, value.type.dtype, lanes)
        return self.load(f"%in{operand}", place, value.type.dtype, lanes)

    def write(self, place: Number | int, value: Number, result: int = 0) -> None:
        self.store(f"%out{result}", place, value)

    def read_parts(self, operand: int, place: Number | int) -> list[Number]:
        """A number of an operand, complex ones as their real and imaginary part."""
        dtype = self.types[operand].dtype
        if dtype.kind != "c":
            return [self.read(operand, place)]
        part, value = real_dtype(dtype), self.operation.operands[operand]
        if isinstance(value, Literal) and value.splat:
            return [self.e.constant(x, part, 1) for x in (value.value.real, value.value.imag)]
        first = self.times(place, 2)
        return [self.load(f"%in{operand}", self.plus(first, k), part) for k in range(2)]

    def write_parts(self, place: Number | int, values: Sequence[Number], result: int = 0) -> None:
        first = self.times(place, len(values))
        for k, value in enumerate(values):
            self.write(self.plus(first, k), value, result)

    # --- elements as they are ----------------------------------------------------------------------
    def raw(self, operand: int, place: Number | int) -> str:
        """The bits of an element of an operand, as one of the types in `RAW`."""
        value = self.operation.operands[operand]
        itemsize = value.type.dtype.itemsize
        if isinstance(value, Literal) and value.splat:
            return raw_text(value)
        address = self.address(f"%in{operand}", place, itemsize)
        return self.e.emit(f"load {RAW[itemsize]}, ptr {address}, align {alignment(itemsize)}")

    def put(self, place: Number | int, bits: str, itemsize: int, pointer: str = "%out0") -> None:
        """Store the bits of an element."""
        address = self.address(pointer, place, itemsize)
        self.e.do(f"store {RAW[itemsize]} {bits}, ptr {address}, align {alignment(itemsize)}")

    def copy(self, target: str, source: str, size: Number | int) -> None:
        """So many bytes from one address to another, which do not overlap."""
        if self.known(size) == 0:
            return
        self.e.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        text = size.text if isinstance(size, Number) else str(size)
        self.e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {text}, i1 false)")

    def zero(self, target: str, size: int) -> None:
        """Bytes of zeros."""
        if size:
            self.e.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            self.e.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")

    def transfer(self, operand: int, source: Number | int, target: Number | int, count: int, result: int = 0) -> None:
        """``count`` consecutive elements of an operand to a result."""
        value, itemsize = self.operation.operands[operand], self.types[operand].dtype.itemsize
        pointer = f"%out{result}"
        if operand not in self.unread and count > 1:
            places = self.address(pointer, target, itemsize), self.address(f"%in{operand}", source, itemsize)
            self.copy(*places, count * itemsize)
        elif isinstance(value, Literal) and value.splat and not any(value.value.tobytes()):
            self.zero(self.address(pointer, target, itemsize), count * itemsize)
        else:
            self.each(
                count,
                lambda k: self.put(self.plus(target, k), self.raw(operand, self.plus(source, k)), itemsize, pointer),
            )

    def begin_in_place(self, operand: int) -> None:
        """Make result 0 the operand, unless it is its memory already."""
        count = self.types[operand].size
        if operand in self.unread:
            self.transfer(operand, 0, 0, count)
            return
        apart = Number(self.e.emit(f"icmp ne ptr %in{operand}, %out0"), BOOL, 1)
        self.when(apart, lambda: self.transfer(operand, 0, 0, count))


def alignment(itemsize: int) -> int:
    return min(itemsize, 8)


def raw_text(value: Literal) -> str:
    """A constant of the bits of a splat."""
    data = value.value.tobytes()
    if len(data) <= 8:
        return str(int.from_bytes(data, "little", signed=True))
    words = [int.from_bytes(data[k : k + 8], "little", signed=True) for k in range(0, len(data), 8)]
    return f"<{', '.join(f'i64 {word}' for word in words)}>"


def can_move(itemsize: int) -> bool:
    return itemsize in RAW


def rounded(e: Emitter, function: Callable[..., Number], *operands: Number) -> Number:
    """A function of numbers; that of float16 is made in float32 and rounded, as NumPy does."""
    if operands[-1].dtype != F16:
        return function(e, *operands)
    found = function(e, *(e.convert("fpext", a, F32) if a.dtype == F16 else a for a in operands))
    return e.convert("fptrunc", found, F16) if found.dtype == F32 else found


def parts_of(dtype: DType) -> int:
    """Of how many real numbers a number consists."""
    return 2 if dtype.kind == "c" else 1


def split(shape: Sequence[int], axis: int, count: int = 1) -> tuple[int, list[int], int]:
    """The number of elements before ``count`` axes from ``axis`` on, the sizes of these, and the elements after."""
    return math.prod(shape[:axis]), list(shape[axis : axis + count]), math.prod(shape[axis + count :])
