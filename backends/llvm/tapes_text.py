"""The memory of tapes, as functions in IR.

A *list* is what is freed together: with the call, or with a trip that its tapes do not leave. It is four words: its
blocks of memory, which are linked; where what is left of the last *piece* begins, how many bytes are left, and how long
the next piece is. Pieces are blocks that many tapes share, each twice as long as the one before, so a loop that makes a
short tape in each trip takes as much memory as these hold, and as few blocks as it can of what waits to be used again
(`memory.py`): blocks of their own had a header of a kilobyte each, from the C library, which gives its pages back.
Tapes of `OWN` bytes and more are blocks of their own.

The tapes of `while` grow. Those longer than `GROWING` bytes are blocks of their own, which know where the pointer to
them is; shorter ones move to where there is room, and leave a hole.
"""

from __future__ import annotations

from string import Template
from typing import Final

OWN: Final = 1 << 20
GROWING: Final = 1 << 12
_FIRST, _LARGEST = 1 << 14, 1 << 25
"""The bytes of the first piece of a list, and of the largest."""
LIST: Final = "[4 x ptr]"
EMPTY: Final = f"{LIST} zeroinitializer"

# A block begins with where the list goes on, and where the pointer to it is.
TAPES: Final = Template("""\
declare ptr @srcgrad_grown(ptr, i64)
declare void @srcgrad_give_all(ptr)
define internal void @srcgrad_tape_hang(ptr %block, ptr %place) noinline nounwind {
  store ptr %block, ptr %place, align 8
  %mine = getelementptr i8, ptr %block, i64 8
  store ptr %place, ptr %mine, align 8
  %next = load ptr, ptr %block, align 8
  %last = icmp eq ptr %next, null
  br i1 %last, label %done, label %others
others:
  %theirs = getelementptr i8, ptr %next, i64 8
  store ptr %block, ptr %theirs, align 8
  br label %done
done:
  ret void
}
define internal ptr @srcgrad_tape_own(ptr %list, i64 %bytes) noinline nounwind {
  %size = add i64 %bytes, 64
  %block = call ptr @srcgrad_take(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %fail, label %made
made:
  %next = load ptr, ptr %list, align 8
  store ptr %next, ptr %block, align 8
  call void @srcgrad_tape_hang(ptr %block, ptr %list)
  %data = getelementptr i8, ptr %block, i64 64
  ret ptr %data
fail:
  call void @srcgrad_no_memory(ptr @srcgrad_tape_lacks, i64 %bytes)
  ret ptr null
}
define internal ptr @srcgrad_tape_new(ptr %list, i64 %bytes) noinline nounwind {
  %empty = icmp eq i64 %bytes, 0
  %some = select i1 %empty, i64 1, i64 %bytes
  %more = add i64 %some, 63
  %size = and i64 %more, -64
  %free = getelementptr i8, ptr %list, i64 8
  %rest = getelementptr i8, ptr %list, i64 16
  %left = load i64, ptr %rest, align 8
  %fits = icmp ule i64 %size, %left
  br i1 %fits, label %there, label %lacks
there:
  %place = load ptr, ptr %free, align 8
  %behind = getelementptr i8, ptr %place, i64 %size
  %remains = sub i64 %left, %size
  store ptr %behind, ptr %free, align 8
  store i64 %remains, ptr %rest, align 8
  ret ptr %place
lacks:
  %large = icmp uge i64 %bytes, $own
  br i1 %large, label %alone, label %piece
alone:
  %whole = call ptr @srcgrad_tape_own(ptr %list, i64 %bytes)
  ret ptr %whole
piece:
  %follows = getelementptr i8, ptr %list, i64 24
  %planned = load i64, ptr %follows, align 8
  %begun = icmp ne i64 %planned, 0
  %length = select i1 %begun, i64 %planned, i64 $first
  %longer = shl i64 %length, 1
  %end = icmp ult i64 %longer, $largest
  %following = select i1 %end, i64 %longer, i64 $largest
  %inner = sub i64 %length, 64
  %short = icmp ult i64 %inner, %size
  %room = select i1 %short, i64 %size, i64 %inner
  %found = call ptr @srcgrad_tape_own(ptr %list, i64 %room)
  %none = icmp eq ptr %found, null
  br i1 %none, label %fail, label %made
made:
  %after = getelementptr i8, ptr %found, i64 %size
  %unused = sub i64 %room, %size
  store ptr %after, ptr %free, align 8
  store i64 %unused, ptr %rest, align 8
  store i64 %following, ptr %follows, align 8
  ret ptr %found
fail:
  ret ptr null
}
define internal ptr @srcgrad_tape_grow(ptr %list, ptr %data, i64 %bytes) cold noinline nounwind {
  %held = lshr i64 %bytes, 1
  %alone = icmp ugt i64 %held, $growing
  br i1 %alone, label %grow, label %move
move:
  %still = icmp ule i64 %bytes, $growing
  br i1 %still, label %shared, label %owned
shared:
  %piece = call ptr @srcgrad_tape_new(ptr %list, i64 %bytes)
  br label %copy
owned:
  %own = call ptr @srcgrad_tape_own(ptr %list, i64 %bytes)
  br label %copy
copy:
  %room = phi ptr [ %piece, %shared ], [ %own, %owned ]
  %lacks = icmp eq ptr %room, null
  br i1 %lacks, label %none, label %moved
moved:
  call void @llvm.memcpy.p0.p0.i64(ptr %room, ptr %data, i64 %held, i1 false)
  ret ptr %room
grow:
  %block = getelementptr i8, ptr %data, i64 -64
  %size = add i64 %bytes, 64
  %wider = call ptr @srcgrad_grown(ptr %block, i64 %size)
  %missing = icmp eq ptr %wider, null
  br i1 %missing, label %fail, label %made
made:
  %mine = getelementptr i8, ptr %wider, i64 8
  %place = load ptr, ptr %mine, align 8
  call void @srcgrad_tape_hang(ptr %wider, ptr %place)
  %found = getelementptr i8, ptr %wider, i64 64
  ret ptr %found
fail:
  call void @srcgrad_no_memory(ptr @srcgrad_tape_lacks, i64 %bytes)
  br label %none
none:
  ret ptr null
}
define internal void @srcgrad_tapes_free(ptr %list) noinline nounwind {
  %first = load ptr, ptr %list, align 8
  store $empty, ptr %list, align 8
  call void @srcgrad_give_all(ptr %first)
  ret void
}""").substitute(own=OWN, first=_FIRST, largest=_LARGEST, growing=GROWING, empty=EMPTY)
