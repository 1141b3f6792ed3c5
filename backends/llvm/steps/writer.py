"""The text of one step: loops, places in memory, and calls of BLAS and LAPACK."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import DType, Emitter, Number
from srcgrad.backends.llvm.steps import Step
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation

INT64: Final = np.dtype(np.int64)
INT32: Final = np.dtype(np.int32)
MOST: Final = 2**31 - 1
"""The largest size that BLAS and LAPACK take."""
LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""What the routines for a dtype begin with."""


@cache
def routine(name: str) -> int:
    """The address of a routine of BLAS or LAPACK, as SciPy has them: Fortran's, with 32-bit integers."""
    from scipy.linalg import cython_blas, cython_lapack  # what a program without products need not wait for

    modules: tuple[ModuleType, ...] = (cython_blas, cython_lapack)
    capsule: Any = next(module.__pyx_capi__[name] for module in modules if name in module.__pyx_capi__)
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    return int(pointer_of(capsule, name_of(capsule)))


class Writer(Emitter):
    """The body of a step, in scalar control flow; all places are in bytes."""

    def __init__(self, target: Target) -> None:
        super().__init__(1, target.features)
        self.target = target
        self.symbols: dict[str, int] = {}
        self.scratch = 0
        self.allocated: list[str] = []
        self.failure = "failed"
        self.may_fail = False

    def step(self, name: str, operation: Operation, in_place: int | None = None) -> Step:
        """The step, when all of its body is written."""
        names = [f"%in{k}" for k in range(len(operation.operands))]
        names += [f"%out{k}" for k in range(len(operation.results))]
        params = ", ".join(f"ptr {text}" for text in (*names, "%scratch"))
        width = 8 * self.target.vector_bytes
        attributes = f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        lines = [f"define internal i32 @{name}({params}) {attributes} {{", "entry:", *self.allocated, *self.lines]
        lines += ["  ret i32 0"]
        lines += ["failed:", "  ret i32 1"] if self.may_fail else []
        text = "\n".join([*lines, "}", ""])
        declarations = frozenset(self.declarations)
        return Step(text, declarations, dict(self.definitions), dict(self.symbols), self.scratch, in_place)

    # --- memory ------------------------------------------------------------------------------------
    def reserve(self, size: int) -> str:
        """A pointer to so many bytes of scratch memory, aligned to 64."""
        start = self.scratch
        self.scratch += -(-size // 64) * 64
        return self.at("%scratch", start)

    def variable(self, type: str) -> str:
        """A pointer to memory on the stack, for one number or array of LLVM's ``type``."""
        name = self.fresh()
        self.allocated.append(f"  {name} = alloca {type}, align 64")
        return name

    def at(self, pointer: str, offset: int = 0, *moves: tuple[Number, int]) -> str:
        """The pointer moved by ``offset`` bytes, and for each index and number of bytes by their product."""
        for index, stride in moves:
            if index.text.isdigit():
                offset += int(index.text) * stride
            elif stride:
                part = index if stride == 1 else self.integer("mul", index, stride)
                pointer = self.emit(f"getelementptr i8, ptr {pointer}, i64 {part.text}")
        return self.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def load(self, pointer: str, dtype: DType, lanes: int = 1) -> Number:
        like = Number("", dtype, lanes)
        return like._replace(text=self.emit(f"load {like.type}, ptr {pointer}, align {dtype.itemsize}"))

    def store(self, value: Number, pointer: str) -> None:
        self.do(f"store {value.type} {value.text}, ptr {pointer}, align {value.dtype.itemsize}")

    def load_some(self, pointer: str, dtype: DType, mask: Number) -> Number:
        """A vector with zeros in the other lanes."""
        like = Number("", dtype, mask.lanes)
        function = f"@llvm.masked.load.v{mask.lanes}f{8 * dtype.itemsize}.p0"
        self.declarations.add(f"declare {like.type} {function}(ptr, i32, {mask.type}, {like.type})")
        given = f"ptr {pointer}, i32 {dtype.itemsize}, {mask.type} {mask.text}, {like.type} zeroinitializer"
        return like._replace(text=self.emit(f"call {like.type} {function}({given})"))

    def store_some(self, value: Number, pointer: str, mask: Number) -> None:
        size = value.dtype.itemsize
        function = f"@llvm.masked.store.v{mask.lanes}f{8 * size}.p0"
        self.declarations.add(f"declare void {function}({value.type}, ptr, i32, {mask.type})")
        self.do(f"call void {function}({value.type} {value.text}, ptr {pointer}, i32 {size}, {mask.type} {mask.text})")

    def prefetch(self, pointer: str, writing: bool = False) -> None:
        """Have a line brought near that will be read, or written to; there may be none."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(writing)}, i32 3, i32 1)")

    def copy(self, target: str, source: str, size: int) -> None:
        """Copy bytes between places that are equal or apart."""
        if size:
            self.declarations.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            self.do(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def clear(self, target: str, size: int) -> None:
        if size:
            self.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            self.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")

    # --- control -----------------------------------------------------------------------------------
    def index(self, value: int) -> Number:
        return self.constant(value, INT64, 1)

    def least(self, a: Number, b: int) -> Number:
        """The smaller of two indices."""
        return self.select(self.compare("slt", a, b), a, b)

    def fold(
        self,
        count: int | Number,
        carried: Sequence[Number],
        body: Callable[[Number, list[Number]], Sequence[Number]],
        start: int | Number = 0,
        step: int = 1,
    ) -> list[Number]:
        """Carry numbers through ``body`` for the indices from ``start`` to before ``count``.

        Nothing is written for no trips, and no loop for one, where their number is known.
        """
        first = self.index(start) if isinstance(start, int) else start
        known = isinstance(start, int) and isinstance(count, int)
        if known and start >= count:  # type: ignore[operator]
            return list(carried)
        if known and start + step >= count:  # type: ignore[operator]
            return list(body(first, list(carried)))
        before, head, inside, after = self.block, self.label("loop"), self.label("inside"), self.label("after")
        self.jump(head)
        self.start(head)
        index = Number(self.fresh(), INT64, 1)
        values = [value._replace(text=self.fresh()) for value in carried]
        position = len(self.lines)
        if not known:
            self.branch(self.compare("slt", index, count), inside, after)
            self.start(inside)
        found = list(body(index, values))
        following = self.integer("add", index, step)
        end = self.block
        lines = [f"  {index.text} = phi i64 [ {first.text}, %{before} ], [ {following.text}, %{end} ]"]
        for value, old, new in zip(values, carried, found, strict=True):
            lines.append(f"  {value.text} = phi {value.type} [ {old.text}, %{before} ], [ {new.text}, %{end} ]")
        self.lines[position:position] = lines
        if known:
            self.branch(self.compare("slt", following, count), head, after)
        else:
            self.jump(head)
        self.start(after)
        return found if known else values

    def loop(self, count: int | Number, body: Callable[[Number], None], start: int | Number = 0, step: int = 1) -> None:
        def carry(index: Number, carried: list[Number]) -> list[Number]:
            body(index)
            return carried

        self.fold(count, (), carry, start, step)

    def nest(self, sizes: Sequence[int], body: Callable[[list[Number]], None]) -> None:
        """Loops over all indices in C order."""
        if 0 in sizes:
            return

        def enter(indices: list[Number]) -> None:
            if len(indices) == len(sizes):
                body(indices)
            else:
                self.loop(sizes[len(indices)], lambda index: enter([*indices, index]))

        enter([])

    def require(self, condition: Number) -> None:
        """Give up, with status 1 unless within `attempt`, if the condition does not hold."""
        self.may_fail |= self.failure == "failed"
        going_on = self.label("fine")
        self.branch(condition, going_on, self.failure)
        self.start(going_on)

    def attempt(self, body: Callable[[], None]) -> None:
        """All of the step in another way: what is written after this runs if ``body`` gives up."""
        self.failure = self.label("otherwise")
        body()
        self.do("ret i32 0")
        self.start(self.failure)
        self.failure = "failed"

    def otherwise(self, body: Callable[[], None], other: Callable[[], None]) -> None:
        """``body``, and ``other`` where it gives up."""
        outer, after = self.failure, self.label("after")
        self.failure = self.label("otherwise")
        body()
        self.jump(after)
        self.start(self.failure)
        self.failure = outer
        other()
        self.jump(after)
        self.start(after)

    # --- BLAS and LAPACK ---------------------------------------------------------------------------
    def integer_at(self, value: int) -> str:
        """A pointer to a constant integer."""
        return self.constant_at(f"blas_int_{value}", f"i32 {value}")

    def letter_at(self, letter: str) -> str:
        """A pointer to a constant letter."""
        return self.constant_at(f"blas_letter_{letter}", f"i8 {ord(letter)}")

    def number_at(self, value: int, dtype: DType) -> str:
        """A pointer to a constant number of a dtype of BLAS."""
        part = {"s": "float", "d": "double", "c": "float", "z": "double"}[LETTERS[dtype.name]]
        text = f"{part} {float(value)}"
        if dtype.kind == "c":
            text = f"{{ {part}, {part} }} {{ {text}, {part} 0.0 }}"
        return self.constant_at(f"blas_{dtype.name}_{value}", text)

    def constant_at(self, name: str, text: str) -> str:
        name = name.replace("-", "minus_")
        self.definitions[name] = f"@{name} = internal constant {text}"
        return f"@{name}"

    def call(self, name: str, *pointers: str, result: DType | None = None) -> Number | None:
        """Call a routine; ``result``: the dtype of what it returns."""
        symbol = f"scipy_{name}"
        self.symbols[symbol] = routine(name)
        type = "void" if result is None else Number("", result, 1).type
        self.declarations.add(f"declare {type} @{symbol}({', '.join(['ptr'] * len(pointers))})")
        text = f"call {type} @{symbol}({', '.join(f'ptr {pointer}' for pointer in pointers)})"
        if result is None:
            self.do(text)
            return None
        return Number(self.emit(text), result, 1)
