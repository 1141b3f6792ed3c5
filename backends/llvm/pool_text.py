"""The pool of memory in IR: see ``memory.py``, which loads it."""

from __future__ import annotations

import os
import sys
from string import Template
from typing import Final

DATA_FIELD: Final = 16
RANK_FIELD: Final = 24
DIMS_FIELD: Final = 32
STRIDES_FIELD: Final = 40
BASE_FIELD: Final = 48
DESCR_FIELD: Final = 56
FLAGS_FIELD: Final = 64
WEAK_FIELD: Final = 72
BUFFER_FIELD: Final = 80
HANDLER_FIELD: Final = 88
ARRAY_SIZE: Final = 96
"""The fields of arrays, after which there is nothing; ``native.py`` checks them."""
_SMALLEST, _OCTAVES, _EACH = 14, 24, 16
"""Classes go from 2**14 to 2**38 bytes, four to an octave, each with room for 16 blocks that wait."""
_MAPPED: Final = 1 << 20
"""The bytes from which a block is its own mapping, which goes back to the system as a whole."""
_HUGE: Final = 1 << 21
"""The size of a huge page: blocks of this and more begin at one and ask for them."""
_TURNS: Final = 16
"""Blocks begin at so many places in turn, so that arrays that are read together do not share sets of the caches."""
_STEP: Final = 64
_STEP_OF_PAGES: Final = 256
"""The bytes between these places. Those of large blocks are placed in their page, and further apart: processors take a
load for one of what a store shortly before it writes where the addresses have the last twelve bits in common, so a loop
whose results begin one or two lines after its operands, modulo pages, waits for each store and takes twice the time."""
_PAGED: Final = 1 << 16
"""The bytes from which a block is placed in its page."""
_PAGE: Final = 4096
_ADVICE_HUGE: Final = 14
_OWNED, _PLAIN = 0x4, 0x501
"""Flags of arrays: that it owns its data; that it is contiguous, aligned and writeable."""
_TRACED: Final = 389047
"""NumPy's domain of tracemalloc."""


def pool_text(arrays: bool, whole: bool = False) -> str:
    """The module.

    ``arrays``: with ``@srcgrad_array`` and ``@srcgrad_small``, for which the fields of arrays that both read must be
    known; ``whole``: all fields are known, and NumPy's default memory handler.
    """
    parts = [_POOL, _MAPPINGS if os.name == "posix" else _NO_MAPPINGS]
    if arrays:
        parts += [_ARRAY, _SMALL if whole else _SMALL_OF_NUMPY]
    linux = sys.platform == "linux"
    return Template("\n".join(parts)).substitute(
        slots=4 * _OCTAVES * _EACH,
        each=_EACH,
        classes=4 * _OCTAVES,
        smallest=_SMALLEST,
        least=1 << _SMALLEST,
        most=1 << 62,
        mapped=_MAPPED,
        huge=_HUGE,
        paged=_PAGED,
        page=_PAGE,
        slack=_TURNS * _STEP + 64,
        slack_of_pages=_TURNS * _STEP_OF_PAGES + _PAGE,
        step=_STEP,
        step_of_pages=_STEP_OF_PAGES,
        turns=_TURNS - 1,
        data=DATA_FIELD,
        rank=RANK_FIELD,
        dims=DIMS_FIELD,
        strides=STRIDES_FIELD,
        base=BASE_FIELD,
        descr=DESCR_FIELD,
        flags=FLAGS_FIELD,
        weak=WEAK_FIELD,
        buffer=BUFFER_FIELD,
        handler=HANDLER_FIELD,
        plain=_PLAIN,
        owned=_OWNED,
        traced=_TRACED,
        private=0x22 if linux else 0x1002,
        advice=f"call i32 @madvise(ptr %start, i64 %rest, i32 {_ADVICE_HUGE})" if linux else "add i32 0, 0",
    )


_POOL: Final = """\
@slots = internal global [$slots x ptr] zeroinitializer, align 64
@hand = internal global i64 0, align 64
@colour = internal global i64 0, align 64
@srcgrad_waiting = global i64 0, align 64
@srcgrad_limit = global i64 0, align 64
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)

; the number of a class, from 0 on; too large ones are $classes or more
define internal i64 @class(i64 %bytes) nounwind {
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 ${least})
  %below = sub i64 %some, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 true)
  %octave = sub i64 63, %zeros
  %shift = sub i64 %octave, 2
  %leading = lshr i64 %below, %shift
  %quarter = and i64 %leading, 3
  %from = sub i64 %octave, ${smallest}
  %four = mul i64 %from, 4
  %sum = add i64 %four, %quarter
  %negative = icmp slt i64 %sum, 0
  %class = select i1 %negative, i64 0, i64 %sum
  ret i64 %class
}

; the capacity of a class
define internal i64 @capacity(i64 %class) nounwind {
  %up = lshr i64 %class, 2
  %octave = add i64 %up, ${smallest}
  %quarter = and i64 %class, 3
  %count = add i64 %quarter, 5
  %shift = sub i64 %octave, 2
  %bytes = shl i64 %count, %shift
  ret i64 %bytes
}

; a new block or null; its header, 64 bytes before the data: base, length where it is a mapping, capacity, class
define internal ptr @fresh(i64 %capacity, i64 %class) nounwind {
entry:
  %impossible = icmp ugt i64 %capacity, $most
  br i1 %impossible, label %none, label %possible
possible:
  %paged = icmp uge i64 %capacity, $paged
  %slack = select i1 %paged, i64 $slack_of_pages, i64 $slack
  %step = select i1 %paged, i64 $step_of_pages, i64 $step
  %place = select i1 %paged, i64 $page, i64 64
  %wanted = add i64 %capacity, %slack
  %turn = atomicrmw add ptr @colour, i64 1 monotonic
  %some = and i64 %turn, $turns
  %count = add i64 %some, 1
  %ahead = mul i64 %count, %step
  %large = icmp uge i64 %capacity, $mapped
  br i1 %large, label %mapping, label %heap
heap:
  %room = call ptr @malloc(i64 %wanted)
  br label %had
mapping:
  %huge = icmp uge i64 %capacity, $huge
  %alone = select i1 %huge, i64 $huge, i64 0
  %long = add i64 %wanted, %alone
  %mapped = call ptr @map(i64 %long)
  br label %had
had:
  %base = phi ptr [ %room, %heap ], [ %mapped, %mapping ]
  %length = phi i64 [ 0, %heap ], [ %long, %mapping ]
  %unit = phi i64 [ %place, %heap ], [ %alone, %mapping ]
  %missing = icmp eq ptr %base, null
  br i1 %missing, label %none, label %there
there:
  %mask = call i64 @llvm.umax.i64(i64 %unit, i64 64)
  %number = ptrtoint ptr %base to i64
  %down = sub i64 %mask, 1
  %up = add i64 %number, %down
  %keep = sub i64 0, %mask
  %rounded = and i64 %up, %keep
  %skip = sub i64 %rounded, %number
  %start = getelementptr i8, ptr %base, i64 %skip
  br i1 %large, label %ask, label %write
ask:
  call void @advise(ptr %start, i64 %wanted, i64 %unit)
  br label %write
write:
  %data = getelementptr i8, ptr %start, i64 %ahead
  %head = getelementptr i8, ptr %data, i64 -64
  %p1 = getelementptr i8, ptr %head, i64 8
  %p2 = getelementptr i8, ptr %head, i64 16
  %p3 = getelementptr i8, ptr %head, i64 24
  store ptr %base, ptr %head, align 8
  store i64 %length, ptr %p1, align 8
  store i64 %capacity, ptr %p2, align 8
  store i64 %class, ptr %p3, align 8
  ret ptr %data
none:
  ret ptr null
}

define internal void @drop(ptr %data) nounwind {
  %head = getelementptr i8, ptr %data, i64 -64
  %base = load ptr, ptr %head, align 8
  %p1 = getelementptr i8, ptr %head, i64 8
  %length = load i64, ptr %p1, align 8
  %heap = icmp eq i64 %length, 0
  br i1 %heap, label %small, label %mapping
small:
  call void @free(ptr %base)
  ret void
mapping:
  call void @unmap(ptr %base, i64 %length)
  ret void
}

define internal i64 @room(ptr %data) nounwind {
  %place = getelementptr i8, ptr %data, i64 -48
  %bytes = load i64, ptr %place, align 8
  ret i64 %bytes
}

define ptr @srcgrad_take(i64 %bytes) nounwind {
entry:
  %class = call i64 @class(i64 %bytes)
  %small = icmp ult i64 %bytes, ${least}
  %large = icmp uge i64 %class, $classes
  %odd = or i1 %small, %large
  br i1 %odd, label %alone, label %look
look:
  %capacity = call i64 @capacity(i64 %class)
  %first = mul i64 %class, $each
  %end = add i64 %first, $each
  br label %next
next:
  %slot = phi i64 [ %first, %look ], [ %after, %empty ]
  %place = getelementptr ptr, ptr @slots, i64 %slot
  %seen = load atomic ptr, ptr %place monotonic, align 8
  %nothing = icmp eq ptr %seen, null
  br i1 %nothing, label %empty, label %try
try:
  %found = atomicrmw xchg ptr %place, ptr null acq_rel
  %lost = icmp eq ptr %found, null
  br i1 %lost, label %empty, label %taken
taken:
  %before = atomicrmw sub ptr @srcgrad_waiting, i64 %capacity acq_rel
  ret ptr %found
empty:
  %after = add i64 %slot, 1
  %more = icmp ult i64 %after, %end
  br i1 %more, label %next, label %new
alone:
  br label %new
new:
  %size = phi i64 [ %bytes, %alone ], [ %capacity, %empty ]
  %kind = phi i64 [ -1, %alone ], [ %class, %empty ]
  %made = call ptr @fresh(i64 %size, i64 %kind)
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %again, label %done
again:
  call void @srcgrad_drain(i64 0)
  %last = call ptr @fresh(i64 %size, i64 %kind)
  ret ptr %last
done:
  ret ptr %made
}

; free what waits, slot by slot in turn, until no more than so many bytes do
define void @srcgrad_drain(i64 %bytes) nounwind {
entry:
  br label %check
check:
  %turn = phi i64 [ 0, %entry ], [ %next, %go ]
  %waiting = load atomic i64, ptr @srcgrad_waiting acquire, align 8
  %fits = icmp sle i64 %waiting, %bytes
  %round = icmp uge i64 %turn, $slots
  %stop = or i1 %fits, %round
  br i1 %stop, label %done, label %step
step:
  %hand = atomicrmw add ptr @hand, i64 1 monotonic
  %slot = urem i64 %hand, $slots
  %place = getelementptr ptr, ptr @slots, i64 %slot
  %found = atomicrmw xchg ptr %place, ptr null acq_rel
  %nothing = icmp eq ptr %found, null
  br i1 %nothing, label %go, label %free
free:
  %size = call i64 @room(ptr %found)
  %before = atomicrmw sub ptr @srcgrad_waiting, i64 %size acq_rel
  call void @drop(ptr %found)
  br label %go
go:
  %next = add i64 %turn, 1
  br label %check
done:
  ret void
}

define void @srcgrad_give_all(ptr %first) nounwind {
entry:
  br label %head
head:
  %block = phi ptr [ %first, %entry ], [ %next, %body ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %exit, label %body
body:
  %next = load ptr, ptr %block, align 8
  call void @srcgrad_give(ptr %block)
  br label %head
exit:
  ret void
}

define void @srcgrad_give(ptr %data) nounwind {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %given
given:
  %p3 = getelementptr i8, ptr %data, i64 -40
  %class = load i64, ptr %p3, align 8
  %size = call i64 @room(ptr %data)
  %limit = load atomic i64, ptr @srcgrad_limit monotonic, align 8
  %alone = icmp slt i64 %class, 0
  %huge = icmp sgt i64 %size, %limit
  %odd = or i1 %alone, %huge
  br i1 %odd, label %drop, label %counted
counted:
  %space = sub i64 %limit, %size
  %waiting = load atomic i64, ptr @srcgrad_waiting monotonic, align 8
  %full = icmp sgt i64 %waiting, %space
  br i1 %full, label %spill, label %keep
spill:
  call void @srcgrad_drain(i64 %space)
  br label %keep
keep:
  %before = atomicrmw add ptr @srcgrad_waiting, i64 %size acq_rel
  %first = mul i64 %class, $each
  %end = add i64 %first, $each
  br label %next
next:
  %slot = phi i64 [ %first, %keep ], [ %after, %taken ]
  %place = getelementptr ptr, ptr @slots, i64 %slot
  %pair = cmpxchg ptr %place, ptr null, ptr %data acq_rel monotonic
  %kept = extractvalue {ptr, i1} %pair, 1
  br i1 %kept, label %done, label %taken
taken:
  %after = add i64 %slot, 1
  %more = icmp ult i64 %after, %end
  br i1 %more, label %next, label %none
none:
  %same = atomicrmw sub ptr @srcgrad_waiting, i64 %size acq_rel
  br label %drop
drop:
  call void @drop(ptr %data)
  br label %done
done:
  ret void
}

define ptr @srcgrad_grown(ptr %data, i64 %bytes) nounwind {
entry:
  %first = icmp eq ptr %data, null
  br i1 %first, label %new, label %old
new:
  %begun = call ptr @srcgrad_take(i64 %bytes)
  ret ptr %begun
old:
  %size = call i64 @room(ptr %data)
  %fits = icmp ule i64 %bytes, %size
  br i1 %fits, label %same, label %move
same:
  ret ptr %data
move:
  %moved = call ptr @moved(ptr %data, i64 %bytes, i64 %size)
  ret ptr %moved
}

define internal ptr @moved(ptr %data, i64 %bytes, i64 %held) nounwind {
entry:
  %made = call ptr @srcgrad_take(i64 %bytes)
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %none, label %copy
copy:
  %kept = call i64 @llvm.umin.i64(i64 %bytes, i64 %held)
  %copied = call ptr @memcpy(ptr %made, ptr %data, i64 %kept)
  call void @srcgrad_give(ptr %data)
  ret ptr %made
none:
  ret ptr null
}

define ptr @srcgrad_handler_malloc(ptr %context, i64 %bytes) nounwind {
  %made = call ptr @srcgrad_take(i64 %bytes)
  ret ptr %made
}

define ptr @srcgrad_handler_calloc(ptr %context, i64 %count, i64 %each) nounwind {
entry:
  %product = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %overflow = extractvalue {i64, i1} %product, 1
  br i1 %overflow, label %none, label %possible
possible:
  %bytes = extractvalue {i64, i1} %product, 0
  %made = call ptr @srcgrad_take(i64 %bytes)
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %none, label %clear
clear:
  %cleared = call ptr @memset(ptr %made, i32 0, i64 %bytes)
  ret ptr %made
none:
  ret ptr null
}

; in place, where the block is not much too large
define ptr @srcgrad_handler_realloc(ptr %context, ptr %data, i64 %bytes) nounwind {
entry:
  %first = icmp eq ptr %data, null
  br i1 %first, label %new, label %old
new:
  %begun = call ptr @srcgrad_take(i64 %bytes)
  ret ptr %begun
old:
  %size = call i64 @room(ptr %data)
  %fits = icmp ule i64 %bytes, %size
  %half = lshr i64 %size, 1
  %worth = icmp uge i64 %bytes, %half
  %same = and i1 %fits, %worth
  br i1 %same, label %stay, label %move
stay:
  ret ptr %data
move:
  %moved = call ptr @moved(ptr %data, i64 %bytes, i64 %size)
  ret ptr %moved
}

define void @srcgrad_handler_free(ptr %context, ptr %data, i64 %bytes) nounwind {
  call void @srcgrad_give(ptr %data)
  ret void
}
"""

_MAPPINGS: Final = """\
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)

define internal ptr @map(i64 %length) nounwind {
  %found = call ptr @mmap(ptr null, i64 %length, i32 3, i32 $private, i32 -1, i64 0)
  %number = ptrtoint ptr %found to i64
  %failed = icmp eq i64 %number, -1
  %base = select i1 %failed, ptr null, ptr %found
  ret ptr %base
}

define internal void @unmap(ptr %base, i64 %length) nounwind {
  %done = call i32 @munmap(ptr %base, i64 %length)
  ret void
}

define internal void @advise(ptr %start, i64 %rest, i64 %unit) nounwind {
entry:
  %huge = icmp eq i64 %unit, $huge
  br i1 %huge, label %ask, label %done
ask:
  %asked = $advice
  br label %done
done:
  ret void
}
"""

_NO_MAPPINGS: Final = """\
define internal ptr @map(i64 %length) nounwind {
  %base = call ptr @malloc(i64 %length)
  ret ptr %base
}

define internal void @unmap(ptr %base, i64 %length) nounwind {
  call void @free(ptr %base)
  ret void
}

define internal void @advise(ptr %start, i64 %rest, i64 %unit) nounwind {
  ret void
}
"""

_ARRAY: Final = """\
@srcgrad_capsule = global ptr null
@PyArray_Type = external global i8
@PyExc_MemoryError = external global ptr
@lacking = internal constant [45 x i8] c"there is no memory for an array of %zd bytes\\00"
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i32 @PyTraceMalloc_Track(i32, i64, i64)

define ptr @srcgrad_array(ptr %dtype, i32 %rank, ptr %shape, i64 %bytes) nounwind {
entry:
  %data = call ptr @srcgrad_take(i64 %bytes)
  %missing = icmp eq ptr %data, null
  br i1 %missing, label %none, label %had
none:
  call void @Py_DecRef(ptr %dtype)
  %error = load ptr, ptr @PyExc_MemoryError, align 8
  %raised = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr @lacking, i64 %bytes)
  ret ptr null
had:
  %made = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %rank, ptr %shape,
    ptr null, ptr %data, i32 $plain, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %undo, label %own
undo:
  call void @srcgrad_give(ptr %data)
  ret ptr null
own:
  %place = getelementptr i8, ptr %made, i64 $flags
  %flags = load i32, ptr %place, align 4
  %owned = or i32 %flags, $owned
  store i32 %owned, ptr %place, align 4
  %capsule = load ptr, ptr @srcgrad_capsule, align 8
  call void @Py_IncRef(ptr %capsule)
  %field = getelementptr i8, ptr %made, i64 $handler
  store ptr %capsule, ptr %field, align 8
  %number = ptrtoint ptr %data to i64
  %traced = call i32 @PyTraceMalloc_Track(i32 $traced, i64 %number, i64 %bytes)
  ret ptr %made
}
"""

_SMALL: Final = """\
@srcgrad_numpy_handler = external global i8
declare ptr @srcgrad_numpy_malloc(ptr, i64)
declare ptr @_PyObject_New(ptr)
declare ptr @PyMem_RawMalloc(i64)

; an array of some bytes as NumPy makes it, from its dims, followed by its strides, and its flags; it takes the dtype
define ptr @srcgrad_small(ptr %dtype, i64 %rank, ptr %layout, i64 %bytes, i64 %flags) nounwind {
entry:
  %made = call ptr @_PyObject_New(ptr @PyArray_Type)
  %missing = icmp eq ptr %made, null
  br i1 %missing, label %none, label %begun
none:
  call void @Py_DecRef(ptr %dtype)
  ret ptr null
begun:
  %place.data = getelementptr i8, ptr %made, i64 $data
  %place.rank = getelementptr i8, ptr %made, i64 $rank
  %place.dims = getelementptr i8, ptr %made, i64 $dims
  %place.strides = getelementptr i8, ptr %made, i64 $strides
  %place.base = getelementptr i8, ptr %made, i64 $base
  %place.descr = getelementptr i8, ptr %made, i64 $descr
  %place.flags = getelementptr i8, ptr %made, i64 $flags
  %place.weak = getelementptr i8, ptr %made, i64 $weak
  %place.buffer = getelementptr i8, ptr %made, i64 $buffer
  %place.handler = getelementptr i8, ptr %made, i64 $handler
  store ptr null, ptr %place.base, align 8
  store ptr %dtype, ptr %place.descr, align 8
  store ptr null, ptr %place.weak, align 8
  store ptr null, ptr %place.buffer, align 8
  %room = shl i64 %rank, 4
  %dims = call ptr @PyMem_RawMalloc(i64 %room)
  store ptr %dims, ptr %place.dims, align 8
  %strides = getelementptr i64, ptr %dims, i64 %rank
  store ptr %strides, ptr %place.strides, align 8
  %no.dims = icmp eq ptr %dims, null
  br i1 %no.dims, label %lacks, label %sized
sized:
  %data = call ptr @srcgrad_numpy_malloc(ptr null, i64 %bytes)
  store ptr %data, ptr %place.data, align 8
  %no.data = icmp eq ptr %data, null
  br i1 %no.data, label %lacks, label %filled
filled:
  %short = trunc i64 %rank to i32
  store i32 %short, ptr %place.rank, align 8
  %bits = trunc i64 %flags to i32
  store i32 %bits, ptr %place.flags, align 8
  store ptr @srcgrad_numpy_handler, ptr %place.handler, align 8
  call void @Py_IncRef(ptr @srcgrad_numpy_handler)
  %number = ptrtoint ptr %data to i64
  %traced = call i32 @PyTraceMalloc_Track(i32 $traced, i64 %number, i64 %bytes)
  %count = shl i64 %rank, 1
  br label %copy
copy:
  %k = phi i64 [ 0, %filled ], [ %next, %copy ]
  %from = getelementptr i64, ptr %layout, i64 %k
  %size = load i64, ptr %from, align 8
  %to = getelementptr i64, ptr %dims, i64 %k
  store i64 %size, ptr %to, align 8
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %copy, label %done
done:
  ret ptr %made
lacks:  ; an array of rank 0 that owns nothing, to be freed with what it has
  store ptr null, ptr %place.data, align 8
  store i32 0, ptr %place.rank, align 8
  store i32 0, ptr %place.flags, align 8
  store ptr null, ptr %place.handler, align 8
  call void @Py_DecRef(ptr %made)
  %error = load ptr, ptr @PyExc_MemoryError, align 8
  %raised = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr @lacking, i64 %bytes)
  ret ptr null
}
"""

_SMALL_OF_NUMPY: Final = """\
define ptr @srcgrad_small(ptr %dtype, i64 %rank, ptr %layout, i64 %bytes, i64 %flags) nounwind {
  %short = trunc i64 %rank to i32
  %made = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %dtype, i32 %short, ptr %layout,
    ptr null, ptr null, i32 0, ptr null)
  ret ptr %made
}
"""
