"""The function by which Python calls a kernel, in IR: it checks the arguments, allocates the results, runs the loops.

It has the signature of ``METH_FASTCALL``. Arguments that are not exactly the arrays and NumPy scalars that the kernel
takes go to ``self``, a Python function that converts them. References: a result belongs to the caller, an array's dtype
to the array; on failure what was made so far is given back.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import DType
from srcgrad.backends.llvm.loops import Group
from srcgrad.ir.types import ArrayType, dtype_name

TYPE: Final = 8
DATA: Final = 16
RANK: Final = 24
DIMS: Final = 32
DESCR: Final = 56
FLAGS: Final = 64
NUMBER: Final = 16
ITEMS: Final = 24
"""Offsets in objects, arrays, scalars and tuples; ``native.py`` checks them before it uses this."""
_CONTIGUOUS_ALIGNED: Final = 0x101
_F64: Final = np.dtype(np.float64)

DECLARATIONS: Final = """\
declare ptr @PyTuple_New(i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
@PyFloat_Type = external global i8
@PyArray_Type = external global i8
"""
"""What entry functions call and compare with, beside the dtypes and their scalar types."""


def dtype_symbols(dtype: DType) -> tuple[str, str]:
    """The names under which a dtype and its scalar type are known to LLVM."""
    name = dtype_name(dtype)
    return f"@srcgrad_dtype_{name}", f"@srcgrad_scalar_{name}"


def entry_text(group: Group, arity: int, params: list[int], results: list[int], releases: bool, as_tuple: bool) -> str:
    """``@NAME``, and ``@NAME_block`` that takes a block of pointers: of the inputs, then of the outputs.

    ``arity``: the number of arguments; ``params``: the argument of each input; ``results``: the output of each result.
    ``releases``: whether other threads run meanwhile. ``as_tuple``: whether one result is a tuple too.
    """
    return _Entry(group, arity, params, results, releases, as_tuple).text() + block_text(group)


def block_text(group: Group) -> str:
    count = len(group.inputs) + len(group.outputs)
    lines = [f"define void @{group.name}_block(ptr %block) {{"]
    for k in range(count):
        lines.append(f"  %p{k} = getelementptr ptr, ptr %block, i64 {k}")
        lines.append(f"  %a{k} = load ptr, ptr %p{k}, align 8")
    given = ", ".join(f"ptr %a{k}" for k in range(count))
    return "\n".join([*lines, f"  call void @{group.name}_loops({given})", "  ret void", "}", ""])


class _Entry:
    """The state of writing one entry function."""

    def __init__(
        self, group: Group, arity: int, params: list[int], results: list[int], releases: bool, as_tuple: bool
    ) -> None:
        self.group = group
        self.arity = arity
        self.params = params
        self.results = results
        self.releases = releases
        self.tupled = as_tuple or len(results) != 1
        self.lines: list[str] = []
        self.count = 0
        self.shapes: dict[str, str] = {}

    def set(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {instruction}")
        return f"%t{self.count}"

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def field(self, pointer: str, offset: int, type: str = "ptr") -> str:
        place = self.set(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.set(f"load {type}, ptr {place}, align {4 if type == 'i32' else 8}")

    def require(self, condition: str, name: str) -> None:
        """Go on where the condition holds, or else to the slow way."""
        self.do(f"br i1 {condition}, label %{name}, label %slow")
        self.label(name)

    def text(self) -> str:
        name = self.group.name
        self.label("entry")
        self.require(self.set(f"icmp eq i64 %nargs, {self.arity}"), "counted")
        inputs = zip(self.group.inputs, self.params, strict=True)
        pointers = [self.argument(value.type, param) for value, param in inputs]
        pointers += self.outputs()
        self.call(pointers)
        self.label("slow")
        self.do(f"ret ptr {self.set('call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr null)')}")
        shapes = [f"{symbol} = internal constant {text}" for text, symbol in self.shapes.items()]
        head = f"define ptr @{name}(ptr %self, ptr %args, i64 %nargs) {{"
        return "\n".join([*shapes, head, *self.lines, "}", ""])

    # --- arguments ---------------------------------------------------------------------------------
    def argument(self, type: ArrayType, number: int) -> str:
        """The pointer to an argument's numbers."""
        place = self.set(f"getelementptr ptr, ptr %args, i64 {number}")
        object = self.set(f"load ptr, ptr {place}, align 8")
        kind = self.field(object, TYPE)
        dtype, scalar = dtype_symbols(type.dtype)
        if not type.rank:
            fits = self.set(f"icmp eq ptr {kind}, {scalar}")
            if type.dtype == _F64:
                fits = self.set(f"or i1 {fits}, {self.set(f'icmp eq ptr {kind}, @PyFloat_Type')}")
            self.require(fits, f"number{number}")
            return self.set(f"getelementptr i8, ptr {object}, i64 {NUMBER}")
        self.require(self.set(f"icmp eq ptr {kind}, @PyArray_Type"), f"array{number}")
        fits = self.set(f"icmp eq ptr {self.field(object, DESCR)}, {dtype}")
        ranked = self.set(f"icmp eq i32 {self.field(object, RANK, 'i32')}, {type.rank}")
        flags = self.set(f"and i32 {self.field(object, FLAGS, 'i32')}, {_CONTIGUOUS_ALIGNED}")
        plain = self.set(f"icmp eq i32 {flags}, {_CONTIGUOUS_ALIGNED}")
        self.require(self.set(f"and i1 {self.set(f'and i1 {fits}, {ranked}')}, {plain}"), f"plain{number}")
        dims = self.field(object, DIMS)
        fits = "true"
        for axis, size in enumerate(type.static_shape):
            equal = self.set(f"icmp eq i64 {self.field(dims, 8 * axis, 'i64')}, {size}")
            fits = self.set(f"and i1 {fits}, {equal}")
        self.require(fits, f"fits{number}")
        return self.field(object, DATA)

    # --- results -----------------------------------------------------------------------------------
    def outputs(self) -> list[str]:
        """Allocate the tuple and the arrays: the pointers to their numbers."""
        types = [value.type for value in self.group.outputs]
        room = [self.set("alloca [16 x i8], align 16") if not type.rank else "" for type in types]
        self.objects = [""] * len(types)
        if self.tupled:
            self.tuple = self.set(f"call ptr @PyTuple_New(i64 {len(self.results)})")
            self.check(self.tuple, "tupled", "failed")
        for number, type in enumerate(types):
            if not type.rank:
                continue
            self.objects[number] = made = self.array(type)
            if self.tupled:
                self.put(number, made)
            self.check(made, f"made{number}", self.failure)
            room[number] = self.field(made, DATA)
        return room

    @property
    def failure(self) -> str:
        return "undone" if self.tupled else "failed"

    def check(self, object: str, name: str, failure: str) -> None:
        self.do(f"br i1 {self.set(f'icmp eq ptr {object}, null')}, label %{failure}, label %{name}")
        self.label(name)

    def array(self, type: ArrayType) -> str:
        dtype, _ = dtype_symbols(type.dtype)
        text = f"[{type.rank} x i64] [{', '.join(f'i64 {size}' for size in type.static_shape)}]"
        shape = self.shapes.setdefault(text, f"@{self.group.name}_shape{len(self.shapes)}")
        self.do(f"call void @Py_IncRef(ptr {dtype})")  # the array takes this reference
        return self.set(
            f"call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr {dtype}, i32 {type.rank}, ptr {shape}, "
            "ptr null, ptr null, i32 0, ptr null)"
        )

    def put(self, output: int, object: str) -> None:
        for position, number in enumerate(self.results):
            if number == output:
                place = self.set(f"getelementptr i8, ptr {self.tuple}, i64 {ITEMS + 8 * position}")
                self.do(f"store ptr {object}, ptr {place}, align 8")

    def number(self, type: ArrayType, pointer: str, output: int) -> str:
        """A NumPy scalar of what a pointer shows."""
        dtype, scalar = dtype_symbols(type.dtype)
        if type.dtype != _F64:
            return self.set(f"call ptr @PyArray_Scalar(ptr {pointer}, ptr {dtype}, ptr null)")
        made = self.set(f"call ptr @PyType_GenericAlloc(ptr {scalar}, i64 0)")
        self.check(made, f"new{output}", self.failure)
        value = self.set(f"load double, ptr {pointer}, align 8")
        self.do(f"store double {value}, ptr {self.set(f'getelementptr i8, ptr {made}, i64 {NUMBER}')}, align 8")
        return made

    def call(self, pointers: list[str]) -> None:
        if self.releases:
            thread = self.set("call ptr @PyEval_SaveThread()")
        self.do(f"call void @{self.group.name}_loops({', '.join(f'ptr {pointer}' for pointer in pointers)})")
        if self.releases:
            self.do(f"call void @PyEval_RestoreThread(ptr {thread})")
        first = len(self.group.inputs)
        for number, value in enumerate(self.group.outputs):
            if not value.type.rank:
                self.objects[number] = made = self.number(value.type, pointers[first + number], number)
                if self.tupled:
                    self.put(number, made)
                self.check(made, f"scalar{number}", self.failure)
        self.do(f"ret ptr {self.tuple if self.tupled else self.objects[self.results[0]]}")
        if self.tupled:
            self.label("undone")
            self.do(f"call void @Py_DecRef(ptr {self.tuple})")
            self.do("br label %failed")
        self.label("failed")
        self.do("ret ptr null")
