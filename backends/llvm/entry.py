"""The function by which Python calls a kernel: it checks the arguments, allocates the results, runs the loops.

It has the signature of ``METH_FASTCALL`` and hands over at once to ``@srcgrad_enter``, which is compiled once for all
kernels and reads what it needs of this one from constant tables. Arguments that are not exactly the arrays and NumPy
scalars that the kernel takes go to ``self``, a Python function that converts them; so does a call whose loops give the
status ``IN_PYTHON``. References: a result belongs to the caller, an array's dtype to the array; on failure what was
made so far is given back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import Template
from typing import Final, Protocol

import numpy as np

from srcgrad.backends.llvm.emitter import DType
from srcgrad.backends.llvm.memory import POOLED
from srcgrad.ir.core import Value
from srcgrad.ir.types import INT64, ArrayType, TapeType, dtype_name

TYPE: Final = 8
DATA: Final = 16
RANK: Final = 24
DIMS: Final = 32
DESCR: Final = 56
FLAGS: Final = 64
NUMBER: Final = 16
SCALARS: Final = 16
ORDER: Final = 26
ITEMS: Final = tuple.__basicsize__
"""Offsets in objects, arrays, scalars, dtypes and tuples; ``native.py`` checks them before it uses this. A tuple's
items lie behind its hash from Python 3.14 on."""
FINE, IN_PYTHON, RAISED = 0, 1, 2
"""What loops give: all is well; the Python function must run; an exception is set."""
FAILED: Final = ("failed",)
"""The name by which a kernel's Python function is told that the loops gave `IN_PYTHON`."""
_CONTIGUOUS_ALIGNED: Final = 0x101
_F64: Final = np.dtype(np.float64)
PYTHON_TYPES: Final = {_F64: "@PyFloat_Type", np.dtype(np.complex128): "@PyComplex_Type"}
"""Python's own numbers, by the dtype that they have."""

DECLARATIONS: Final = """\
declare ptr @srcgrad_enter(ptr, ptr, i64, ptr, ptr)
@PyFloat_Type = external global i8
@PyComplex_Type = external global i8
"""
"""What entry functions and their tables name, beside the dtypes and their scalar types."""


class Native(Protocol):
    """What has loops ``@NAME_loops``, from pointers of inputs and outputs to nothing or to a status."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> Sequence[Value]: ...

    @property
    def outputs(self) -> Sequence[Value]: ...


WORDS: Final = ArrayType(INT64, (2,))
"""What a kernel takes and gives for a tape."""


def laid(type: ArrayType) -> ArrayType:
    """The type of the array that stands for a value where a kernel is called."""
    return WORDS if isinstance(type, TapeType) else type


def given_types(types: Sequence[ArrayType]) -> list[ArrayType]:
    """Those of all that a kernel with such outputs gives: where it gives tapes, their memory is one more."""
    found = [*map(laid, types)]
    return [*found, WORDS] if any(isinstance(type, TapeType) for type in types) else found


def dtype_symbols(dtype: DType) -> tuple[str, str]:
    """The names under which a dtype and its scalar type are known to LLVM."""
    name = dtype_name(dtype)
    return f"@srcgrad_dtype_{name}", f"@srcgrad_scalar_{name}"


def block_text(name: str, count: int, status: bool) -> str:
    """``@NAME_block``, which takes a block of pointers, of the inputs, then of what it gives, and gives the status.

    ``status``: whether ``@NAME_loops``, which takes as many pointers, returns one; or else it is ``FINE``.
    """
    lines = [f"define i32 @{name}_block(ptr %block) nounwind {{"]
    for k in range(count):
        lines.append(f"  %p{k} = getelementptr ptr, ptr %block, i64 {k}")
        lines.append(f"  %a{k} = load ptr, ptr %p{k}, align 8")
    call = f"@{name}_loops({', '.join(f'ptr %a{k}' for k in range(count))})"
    lines += [f"  %status = call i32 {call}"] if status else [f"  call void {call}"]
    return "\n".join([*lines, f"  ret i32 {'%status' if status else FINE}", "}", ""])


def entry_text(
    native: Native,
    arity: int,
    params: Sequence[int],
    results: Sequence[int],
    releases: bool,
    as_tuple: bool,
) -> str:
    """``@NAME`` with its tables, which calls ``@NAME_block``.

    ``arity``: the number of arguments; ``params``: the argument of each input; ``results``: the output of each result,
    each output once. ``releases``: whether other threads run meanwhile. ``as_tuple``: whether one result is a tuple
    too.
    """
    name = native.name
    shapes: dict[tuple[int, ...], str] = {}
    taken = [laid(value.type) for value in native.inputs]
    inputs = [input_row(type, param, shapes, name) for type, param in zip(taken, params, strict=True)]
    places = {output: position for position, output in enumerate(results)}
    layouts: dict[tuple[int, ...], str] = {}
    given = given_types([value.type for value in native.outputs])
    outputs = [output_row(type, places.get(k, k), layouts, name) for k, type in enumerate(given)]
    count = len(results) + len(given) - len(native.outputs)
    tuples = as_tuple or count != 1
    numbers = [arity, len(inputs), len(outputs), count, int(tuples), int(releases)]
    pointers = [f"ptr @{name}_{part}" for part in ("block", "inputs", "outputs")]
    lines = [
        f"{symbol} = internal constant {row_text([f'i64 {k}' for k in words])}"
        for words, symbol in (*shapes.items(), *layouts.items())
    ]
    lines += [
        f"@{name}_inputs = internal constant {table_text(inputs)}",
        f"@{name}_outputs = internal constant {table_text(outputs)}",
        f"@{name}_call = constant {row_text([*(f'i64 {k}' for k in numbers), *pointers])}",
        f"define ptr @{name}(ptr %self, ptr %args, i64 %nargs) nounwind {{",
        f"  %result = tail call ptr @srcgrad_enter(ptr %self, ptr %args, i64 %nargs, ptr @{name}_call, ptr null)",
        "  ret ptr %result",
        "}",
    ]
    return "\n".join([*lines, ""])


def input_row(type: ArrayType, param: int, shapes: dict[tuple[int, ...], str], name: str) -> list[str]:
    """The argument's number, the rank, the dtype or, of a number, its type and another that it may have; the shape."""
    dtype, scalar = dtype_symbols(type.dtype)
    if not type.rank:
        other = PYTHON_TYPES.get(type.dtype, scalar)
        return [f"i64 {param}", "i64 0", f"ptr {scalar}", f"ptr {other}"]
    return [f"i64 {param}", f"i64 {type.rank}", f"ptr {dtype}", f"ptr {shape_symbol(type, shapes, name)}"]


def output_row(type: ArrayType, place: int, layouts: dict[tuple[int, ...], str], name: str) -> list[str]:
    """The place among the results, the rank, the dtype, the layout or a float's type, the bytes, the flags.

    A layout is the shape and, of what has less than `POOLED` bytes, the strides. The bytes are 0 where NumPy is to make
    the array, or to say that it cannot.
    """
    dtype, scalar = dtype_symbols(type.dtype)
    if not type.rank:
        kind = scalar if type.dtype == _F64 else "null"
        return [f"i64 {place}", "i64 0", f"ptr {dtype}", f"ptr {kind}", "i64 0", "i64 0"]
    shape = type.static_shape
    words, flags, nbytes = shape, 0, type.dtype.itemsize * math.prod(shape)
    if 0 < nbytes < POOLED:
        example = np.empty(shape, type.dtype)
        words, flags = (*shape, *example.strides), example.flags.num
    elif nbytes >= 1 << 62:
        nbytes = 0
    layout = layouts.setdefault(words, f"@{name}_layout{len(layouts)}")
    return [f"i64 {place}", f"i64 {type.rank}", f"ptr {dtype}", f"ptr {layout}", f"i64 {nbytes}", f"i64 {flags}"]


def shape_symbol(type: ArrayType, shapes: dict[tuple[int, ...], str], name: str) -> str:
    return shapes.setdefault(type.static_shape, f"@{name}_shape{len(shapes)}")


def row_text(items: Sequence[str]) -> str:
    """A constant structure of 8-byte items."""
    return f"{{{', '.join(item.split()[0] for item in items)}}} {{{', '.join(items)}}}"


def table_text(rows: Sequence[Sequence[str]]) -> str:
    return row_text([item for row in rows for item in row])


ENTER: Final = Template("""\
declare ptr @PyTuple_New(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@srcgrad_true = external global i8
@srcgrad_failed = external global i8

define ptr @srcgrad_enter(ptr %self, ptr %args, i64 %nargs, ptr %call, ptr %into) nounwind {
entry:
  %arity = load i64, ptr %call, align 8
  %counts = icmp eq i64 %nargs, %arity
  br i1 %counts, label %counted, label %slow
counted:
  %place.inputs = getelementptr i64, ptr %call, i64 1
  %inputs = load i64, ptr %place.inputs, align 8
  %place.outputs = getelementptr i64, ptr %call, i64 2
  %outputs = load i64, ptr %place.outputs, align 8
  %place.results = getelementptr i64, ptr %call, i64 3
  %results = load i64, ptr %place.results, align 8
  %place.tuples = getelementptr i64, ptr %call, i64 4
  %tuples = load i64, ptr %place.tuples, align 8
  %tupled = icmp ne i64 %tuples, 0
  %place.releases = getelementptr i64, ptr %call, i64 5
  %releases = load i64, ptr %place.releases, align 8
  %released = icmp ne i64 %releases, 0
  %place.block = getelementptr i64, ptr %call, i64 6
  %run = load ptr, ptr %place.block, align 8
  %place.first = getelementptr i64, ptr %call, i64 7
  %first.input = load ptr, ptr %place.first, align 8
  %place.second = getelementptr i64, ptr %call, i64 8
  %first.output = load ptr, ptr %place.second, align 8
  %pointers = add i64 %inputs, %outputs
  %block = alloca ptr, i64 %pointers, align 16
  %room = alloca [16 x i8], i64 %outputs, align 16
  %single = alloca ptr, align 8
  store ptr null, ptr %single, align 8
  br label %input

; --- arguments
input:
  %k = phi i64 [ 0, %counted ], [ %k.next, %ready ]
  %row = phi ptr [ %first.input, %counted ], [ %row.next, %ready ]
  %k.done = icmp uge i64 %k, %inputs
  br i1 %k.done, label %made, label %argument
argument:
  %param = load i64, ptr %row, align 8
  %row.rank = getelementptr i64, ptr %row, i64 1
  %rank = load i64, ptr %row.rank, align 8
  %row.dtype = getelementptr i64, ptr %row, i64 2
  %dtype = load ptr, ptr %row.dtype, align 8
  %row.shape = getelementptr i64, ptr %row, i64 3
  %shape = load ptr, ptr %row.shape, align 8
  %place.object = getelementptr ptr, ptr %args, i64 %param
  %object = load ptr, ptr %place.object, align 8
  %place.kind = getelementptr i8, ptr %object, i64 $type
  %kind = load ptr, ptr %place.kind, align 8
  %is.number = icmp eq i64 %rank, 0
  br i1 %is.number, label %number, label %array
number:
  %exact = icmp eq ptr %kind, %dtype
  %other = icmp eq ptr %kind, %shape
  %right = or i1 %exact, %other
  %digits = getelementptr i8, ptr %object, i64 $number
  br i1 %right, label %ready, label %lone
lone:
  %is.array = icmp eq ptr %kind, @PyArray_Type
  br i1 %is.array, label %zero, label %slow
zero:
  %z.place.rank = getelementptr i8, ptr %object, i64 $rank
  %z.rank = load i32, ptr %z.place.rank, align 4
  %z.empty = icmp eq i32 %z.rank, 0
  %z.place.descr = getelementptr i8, ptr %object, i64 $descr
  %z.descr = load ptr, ptr %z.place.descr, align 8
  %z.place.class = getelementptr i8, ptr %z.descr, i64 $scalars
  %z.class = load ptr, ptr %z.place.class, align 8
  %z.same = icmp eq ptr %z.class, %dtype
  %z.place.order = getelementptr i8, ptr %z.descr, i64 $order
  %z.order = load i8, ptr %z.place.order, align 1
  %z.native = icmp ne i8 %z.order, $swapped
  %z.place.flags = getelementptr i8, ptr %object, i64 $flags
  %z.flags = load i32, ptr %z.place.flags, align 4
  %z.both = and i32 %z.flags, $plain
  %z.lies = icmp eq i32 %z.both, $plain
  %z.plain = and i1 %z.native, %z.lies
  %z.like = and i1 %z.empty, %z.same
  %z.fits = and i1 %z.plain, %z.like
  %z.place.data = getelementptr i8, ptr %object, i64 $data
  %z.data = load ptr, ptr %z.place.data, align 8
  br i1 %z.fits, label %ready, label %slow
array:
  %plain = icmp eq ptr %kind, @PyArray_Type
  br i1 %plain, label %fields, label %slow
fields:
  %place.descr = getelementptr i8, ptr %object, i64 $descr
  %descr = load ptr, ptr %place.descr, align 8
  %same.dtype = icmp eq ptr %descr, %dtype
  %place.rank = getelementptr i8, ptr %object, i64 $rank
  %short = load i32, ptr %place.rank, align 4
  %long = sext i32 %short to i64
  %same.rank = icmp eq i64 %long, %rank
  %place.flags = getelementptr i8, ptr %object, i64 $flags
  %flags = load i32, ptr %place.flags, align 4
  %both = and i32 %flags, $plain
  %lies = icmp eq i32 %both, $plain
  %same.two = and i1 %same.dtype, %same.rank
  %same = and i1 %same.two, %lies
  br i1 %same, label %dims, label %slow
dims:
  %place.dims = getelementptr i8, ptr %object, i64 $dims
  %sizes = load ptr, ptr %place.dims, align 8
  %place.data = getelementptr i8, ptr %object, i64 $data
  %data = load ptr, ptr %place.data, align 8
  br label %axis
axis:
  %a = phi i64 [ 0, %dims ], [ %a.next, %equal ]
  %a.size = getelementptr i64, ptr %sizes, i64 %a
  %size = load i64, ptr %a.size, align 8
  %a.wanted = getelementptr i64, ptr %shape, i64 %a
  %wanted = load i64, ptr %a.wanted, align 8
  %fits = icmp eq i64 %size, %wanted
  br i1 %fits, label %equal, label %slow
equal:
  %a.next = add i64 %a, 1
  %a.more = icmp ult i64 %a.next, %rank
  br i1 %a.more, label %axis, label %ready
ready:
  %given = phi ptr [ %digits, %number ], [ %z.data, %zero ], [ %data, %equal ]
  %place.given = getelementptr ptr, ptr %block, i64 %k
  store ptr %given, ptr %place.given, align 8
  %k.next = add i64 %k, 1
  %row.next = getelementptr i64, ptr %row, i64 4
  br label %input

; --- results
made:
  %apart = icmp ne ptr %into, null
  br i1 %apart, label %clear, label %together
clear:
  %c = phi i64 [ 0, %made ], [ %c.next, %clear ]
  %c.place = getelementptr ptr, ptr %into, i64 %c
  store ptr null, ptr %c.place, align 8
  %c.next = add i64 %c, 1
  %c.more = icmp ult i64 %c.next, %results
  br i1 %c.more, label %clear, label %begin
together:
  br i1 %tupled, label %tuple, label %begin
tuple:
  %pack = call ptr @PyTuple_New(i64 %results)
  %no.pack = icmp eq ptr %pack, null
  br i1 %no.pack, label %failed, label %packed
packed:
  %items = getelementptr i8, ptr %pack, i64 $items
  br label %begin
begin:
  %holder = phi ptr [ %into, %clear ], [ %single, %together ], [ %items, %packed ]
  %whole = phi ptr [ %into, %clear ], [ null, %together ], [ %pack, %packed ]
  %places = getelementptr ptr, ptr %block, i64 %inputs
  br label %output
output:
  %o = phi i64 [ 0, %begin ], [ %o.next, %placed ]
  %o.row = phi ptr [ %first.output, %begin ], [ %o.row.next, %placed ]
  %o.done = icmp uge i64 %o, %outputs
  br i1 %o.done, label %go, label %allocate
allocate:
  %o.rank.place = getelementptr i64, ptr %o.row, i64 1
  %o.rank = load i64, ptr %o.rank.place, align 8
  %o.number = icmp eq i64 %o.rank, 0
  br i1 %o.number, label %slot, label %new
slot:
  %digit = getelementptr [16 x i8], ptr %room, i64 %o
  br label %placed
new:
  %o.dtype.place = getelementptr i64, ptr %o.row, i64 2
  %o.dtype = load ptr, ptr %o.dtype.place, align 8
  %o.shape.place = getelementptr i64, ptr %o.row, i64 3
  %o.shape = load ptr, ptr %o.shape.place, align 8
  %o.bytes.place = getelementptr i64, ptr %o.row, i64 4
  %o.bytes = load i64, ptr %o.bytes.place, align 8
  %o.short = trunc i64 %o.rank to i32
  call void @Py_IncRef(ptr %o.dtype)  ; the array takes this reference
  %little = icmp ult i64 %o.bytes, $pooled
  br i1 %little, label %little.one, label %large
little.one:
  %none = icmp eq i64 %o.bytes, 0
  br i1 %none, label %odd, label %small
odd:
  %other.one = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %o.dtype, i32 %o.short, ptr %o.shape,
    ptr null, ptr null, i32 0, ptr null)
  br label %born
small:
  %o.flags.place = getelementptr i64, ptr %o.row, i64 5
  %o.flags = load i64, ptr %o.flags.place, align 8
  %smaller = call ptr @srcgrad_small(ptr %o.dtype, i64 %o.rank, ptr %o.shape, i64 %o.bytes, i64 %o.flags)
  br label %born
large:
  %larger = call ptr @srcgrad_array(ptr %o.dtype, i32 %o.short, ptr %o.shape, i64 %o.bytes)
  br label %born
born:
  %child = phi ptr [ %other.one, %odd ], [ %smaller, %small ], [ %larger, %large ]
  %o.place = load i64, ptr %o.row, align 8
  %o.item = getelementptr ptr, ptr %holder, i64 %o.place
  store ptr %child, ptr %o.item, align 8
  %no.child = icmp eq ptr %child, null
  br i1 %no.child, label %undo, label %child.made
child.made:
  %child.place = getelementptr i8, ptr %child, i64 $data
  %child.data = load ptr, ptr %child.place, align 8
  br label %placed
placed:
  %target = phi ptr [ %digit, %slot ], [ %child.data, %child.made ]
  %o.target = getelementptr ptr, ptr %places, i64 %o
  store ptr %target, ptr %o.target, align 8
  %o.next = add i64 %o, 1
  %o.row.next = getelementptr i64, ptr %o.row, i64 6
  br label %output

; --- the loops
go:
  br i1 %released, label %open, label %closed
open:
  %thread = call ptr @PyEval_SaveThread()
  %status.open = call i32 %run(ptr %block)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
closed:
  %status.closed = call i32 %run(ptr %block)
  br label %ran
ran:
  %status = phi i32 [ %status.open, %open ], [ %status.closed, %closed ]
  %fine = icmp eq i32 %status, $fine
  br i1 %fine, label %collect, label %undo

; --- numbers
collect:
  %n = phi i64 [ 0, %ran ], [ %n.next, %collected ]
  %n.row = phi ptr [ %first.output, %ran ], [ %n.row.next, %collected ]
  %n.done = icmp uge i64 %n, %outputs
  br i1 %n.done, label %finish, label %look
look:
  %n.rank.place = getelementptr i64, ptr %n.row, i64 1
  %n.rank = load i64, ptr %n.rank.place, align 8
  %n.number = icmp eq i64 %n.rank, 0
  br i1 %n.number, label %scalar, label %collected
scalar:
  %n.digit = getelementptr [16 x i8], ptr %room, i64 %n
  %n.kind.place = getelementptr i64, ptr %n.row, i64 3
  %n.kind = load ptr, ptr %n.kind.place, align 8
  %general = icmp eq ptr %n.kind, null
  br i1 %general, label %any, label %float
any:
  %n.dtype.place = getelementptr i64, ptr %n.row, i64 2
  %n.dtype = load ptr, ptr %n.dtype.place, align 8
  %some = call ptr @PyArray_Scalar(ptr %n.digit, ptr %n.dtype, ptr null)
  br label %had
float:
  %real = call ptr @_PyObject_New(ptr %n.kind)
  %no.real = icmp eq ptr %real, null
  br i1 %no.real, label %had, label %fill
fill:
  %value = load double, ptr %n.digit, align 8
  %real.place = getelementptr i8, ptr %real, i64 $number
  store double %value, ptr %real.place, align 8
  br label %had
had:
  %found = phi ptr [ %some, %any ], [ %real, %float ], [ %real, %fill ]
  %n.place = load i64, ptr %n.row, align 8
  %n.item = getelementptr ptr, ptr %holder, i64 %n.place
  store ptr %found, ptr %n.item, align 8
  %no.found = icmp eq ptr %found, null
  br i1 %no.found, label %undo, label %collected
collected:
  %n.next = add i64 %n, 1
  %n.row.next = getelementptr i64, ptr %n.row, i64 6
  br label %collect
finish:
  %alone = load ptr, ptr %single, align 8
  %shared = icmp ne ptr %whole, null
  %result = select i1 %shared, ptr %whole, ptr %alone
  ret ptr %result

; --- failures: an error is set but where the status says that Python is to go on
undo:
  %why = phi i32 [ $raised, %born ], [ %status, %ran ], [ $raised, %had ]
  %again = icmp eq i32 %why, $python
  br i1 %apart, label %undo.each, label %undo.together
undo.each:
  %u = phi i64 [ 0, %undo ], [ %u.next, %undo.each ]
  %u.place = getelementptr ptr, ptr %into, i64 %u
  %u.item = load ptr, ptr %u.place, align 8
  call void @Py_DecRef(ptr %u.item)
  %u.next = add i64 %u, 1
  %u.more = icmp ult i64 %u.next, %results
  br i1 %u.more, label %undo.each, label %undone
undo.together:
  br i1 %tupled, label %undo.tuple, label %undo.single
undo.tuple:
  call void @Py_DecRef(ptr %whole)
  br label %undone
undo.single:
  %rest = load ptr, ptr %single, align 8
  call void @Py_DecRef(ptr %rest)  ; null passes
  br label %undone
undone:
  br i1 %again, label %python, label %failed
failed:
  ret ptr null
python:
  %more = add i64 %nargs, 1
  %given.all = alloca ptr, i64 %more, align 16
  %bytes = shl i64 %nargs, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %given.all, ptr align 8 %args, i64 %bytes, i1 false)
  %flag = getelementptr ptr, ptr %given.all, i64 %nargs
  store ptr @srcgrad_true, ptr %flag, align 8
  %raised = call ptr @PyObject_Vectorcall(ptr %self, ptr %given.all, i64 %nargs, ptr @srcgrad_failed)
  ret ptr %raised
slow:
  %answer = tail call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr null)
  ret ptr %answer
}
""").substitute(
    type=TYPE, number=NUMBER, descr=DESCR, rank=RANK, flags=FLAGS, plain=_CONTIGUOUS_ALIGNED, dims=DIMS, data=DATA,
    items=ITEMS, fine=FINE, python=IN_PYTHON, raised=RAISED, pooled=POOLED,
    scalars=SCALARS, order=ORDER, swapped=ord(">"),
)  # fmt: skip
"""``@srcgrad_enter(self, args, nargs, call, into)``: see ``entry_text`` for the tables.

Where ``into`` is not null, it returns this, with references to the results there; or else what the Python function has
returned, or null. It follows the pool in its module.
"""
