"""The threads that share chunks, in IR: see ``workers.py``, which loads it.

One word is the *ticket*: the number of the call (32 bits), its count of chunks (16), the next chunk (16). A thread
claims a chunk by exchanging the ticket for one more, which fails if anything has changed meanwhile; so what it read of
the call before belongs to that ticket. The caller claims chunks too, and waits only for those that others have begun.
A thread that finds nothing to do looks for some ten microseconds, then for some two hundred in which it leaves
its processor to any other thread that wants it, and then sleeps until a ticket is written: waking it takes longer.
"""

from __future__ import annotations

import re
import signal
import sys
from string import Template
from typing import Final

from srcgrad.backends.llvm.target import TARGET, Target

SPINS: Final = 1000
"""How often a thread looks for work before it lets others run between two looks."""
YIELDS: Final = 400
"""How often it then looks before it sleeps."""
_STACK: Final = 4 << 20
"""The bytes of a thread's stack, where kernels have what is local to a block of rows."""
_FUTEX: Final = {"x86_64": 202, "aarch64": 98}
"""The number of the system call on Linux."""
_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
}
"""What takes some ten nanoseconds: on ARM the hint to yield takes none on most processors, and a barrier of
instructions does, which is also what a thread needs before it runs code that another one has just written."""


def workers_text(futex: bool | None = None, target: Target = TARGET) -> str:
    """The module: ``@srcgrad_run(chunk function, block, count)``, ``@srcgrad_reset()`` and ``@srcgrad_wanted``.

    ``futex``: whether threads sleep by that system call; by default, where there is one.
    """
    machine = "aarch64" if target.arm else target.triple.partition("-")[0]
    if futex is None:
        futex = sys.platform == "linux" and machine in _FUTEX
    declared, pause = _PAUSES.get(machine, ("", "fence seq_cst"))
    mask = getattr(signal, "SIG_SETMASK", 2)
    parts = [_STATE, declared, _RUN, _WORKER, _START, _FUTEX_SLEEP if futex else _CONDITION_SLEEP]
    return Template("\n".join(parts)).substitute(
        pause=pause,
        refetch=pause if target.arm else "",
        spins=SPINS,
        enough=SPINS + YIELDS,
        setmask=int(mask),
        syscall=_FUTEX.get(machine, 0),
        stack=_STACK,
    )


def needed_symbols(futex: bool | None = None) -> list[str]:
    """The C library's functions that the module calls."""
    text = workers_text(futex)
    return re.findall(r"^declare \w+ @(?!llvm)(\w+)\(", text, re.MULTILINE)


_STATE: Final = """\
@ticket = internal global i64 0, align 128
@done = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@busy = internal global i32 0, align 128
@function = internal global ptr null, align 128
@argument = internal global ptr null, align 8
@started = internal global i32 0, align 8
@srcgrad_wanted = global i32 0, align 8
declare i32 @sched_yield()
"""

_RUN: Final = """\
define void @srcgrad_run(ptr %function, ptr %block, i64 %count) nounwind {
entry:
  %taken = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %taken, 1
  br i1 %mine, label %ready, label %alone
ready:
  %started = load i32, ptr @started, align 4
  %running = icmp ne i32 %started, 0
  br i1 %running, label %publish, label %begin
begin:
  call void @start()
  br label %publish
publish:
  store atomic ptr %function, ptr @function monotonic, align 8
  store atomic ptr %block, ptr @argument monotonic, align 8
  store atomic i32 0, ptr @done monotonic, align 4
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %before = lshr i64 %old, 32
  %next = add i64 %before, 1
  %call = and i64 %next, 4294967295
  %high = shl i64 %call, 32
  %low = shl i64 %count, 16
  %ticket = or i64 %high, %low
  store atomic i64 %ticket, ptr @ticket seq_cst, align 8
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %some = icmp ne i32 %asleep, 0
  br i1 %some, label %wake, label %work
wake:
  %others = sub i64 %count, 1
  %most = trunc i64 %others to i32
  call void @wake(i32 %most)
  br label %work
work:
  call void @drain(i64 %call)
  %all = trunc i64 %count to i32
  br label %wait
wait:
  %looks = phi i64 [ 0, %work ], [ %more, %look ], [ 0, %yield ]
  %finished = load atomic i32, ptr @done acquire, align 4
  %ready_all = icmp eq i32 %finished, %all
  br i1 %ready_all, label %release, label %again
again:
  %long = icmp ugt i64 %looks, 1000
  br i1 %long, label %yield, label %look
look:
  $pause
  %more = add i64 %looks, 1
  br label %wait
yield:
  %ignored = call i32 @sched_yield()
  br label %wait
release:
  store atomic i32 0, ptr @busy release, align 4
  ret void
alone:
  %index = phi i64 [ 0, %entry ], [ %following, %alone ]
  call void %function(ptr %block, i64 %index)
  %following = add i64 %index, 1
  %left = icmp ult i64 %following, %count
  br i1 %left, label %alone, label %end
end:
  ret void
}
"""

_WORKER: Final = """\
define internal void @drain(i64 %call) nounwind {
entry:
  br label %look
look:
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %now = lshr i64 %ticket, 32
  %same = icmp eq i64 %now, %call
  %low = lshr i64 %ticket, 16
  %count = and i64 %low, 65535
  %index = and i64 %ticket, 65535
  %left = icmp ult i64 %index, %count
  %claim = and i1 %same, %left
  br i1 %claim, label %try, label %end
try:
  %function = load atomic ptr, ptr @function monotonic, align 8
  %block = load atomic ptr, ptr @argument monotonic, align 8
  %following = add i64 %ticket, 1
  %swapped = cmpxchg ptr @ticket, i64 %ticket, i64 %following acq_rel monotonic
  %mine = extractvalue {i64, i1} %swapped, 1
  br i1 %mine, label %run, label %look
run:
  call void %function(ptr %block, i64 %index)
  %ignored = atomicrmw add ptr @done, i32 1 release
  br label %look
end:
  ret void
}
define internal ptr @worker(ptr %nothing) nounwind {
entry:
  br label %idle
idle:
  %last = phi i64 [ 0, %entry ], [ %call, %work ]
  br label %look
look:
  %looks = phi i64 [ 0, %idle ], [ %more, %pause ], [ %more, %give_way ], [ 0, %sleep ]
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %call = lshr i64 %ticket, 32
  %same = icmp eq i64 %call, %last
  br i1 %same, label %nothing_new, label %work
nothing_new:
  %more = add i64 %looks, 1
  %fresh = icmp ule i64 %looks, $spins
  br i1 %fresh, label %pause, label %weary
pause:
  $pause
  br label %look
weary:
  %tired = icmp ugt i64 %looks, $enough
  br i1 %tired, label %sleep, label %give_way
give_way:
  %ignored = call i32 @sched_yield()
  br label %look
sleep:
  call void @sleep(i64 %last)
  br label %look
work:
  $refetch
  call void @drain(i64 %call)
  br label %idle
}
"""

_START: Final = """\
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
define internal void @start() nounwind {
entry:
  %thread = alloca ptr, align 8
  %all = alloca [16 x i64], align 8
  %old = alloca [16 x i64], align 8
  %attributes = alloca [16 x i64], align 8
  store [16 x i64] [i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1, i64 -1,
    i64 -1, i64 -1, i64 -1, i64 -1], ptr %all, align 8
  call void @prepare()
  %masked = call i32 @pthread_sigmask(i32 $setmask, ptr %all, ptr %old)
  %begun = call i32 @pthread_attr_init(ptr %attributes)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $stack)
  %wanted = load i32, ptr @srcgrad_wanted, align 4
  br label %next
next:
  %number = phi i32 [ 1, %entry ], [ %following, %made ]
  %enough = icmp sge i32 %number, %wanted
  br i1 %enough, label %end, label %make
make:
  %failed = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @worker, ptr null)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %made, label %end
made:
  %handle = load ptr, ptr %thread, align 8
  %ignored = call i32 @pthread_detach(ptr %handle)
  %following = add i32 %number, 1
  br label %next
end:
  %ended = call i32 @pthread_attr_destroy(ptr %attributes)
  %restored = call i32 @pthread_sigmask(i32 $setmask, ptr %old, ptr null)
  store i32 1, ptr @started, align 4
  ret void
}
define void @srcgrad_reset() nounwind {
entry:
  store i64 0, ptr @ticket, align 8
  store i32 0, ptr @done, align 4
  store i32 0, ptr @sleepers, align 4
  store i32 0, ptr @started, align 4
  store i32 0, ptr @busy, align 4
  ret void
}
"""

_FUTEX_SLEEP: Final = """\
declare i64 @syscall(i64, ...)
define internal void @prepare() nounwind {
entry:
  ret void
}
define internal void @sleep(i64 %last) nounwind {
entry:
  %seen = trunc i64 %last to i32
  %one = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %high = getelementptr i8, ptr @ticket, i64 4
  %ignored = call i64 (i64, ...) @syscall(i64 $syscall, ptr %high, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  %less = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  ret void
}
define internal void @wake(i32 %most) nounwind {
entry:
  %high = getelementptr i8, ptr @ticket, i64 4
  %ignored = call i64 (i64, ...) @syscall(i64 $syscall, ptr %high, i32 129, i32 %most, ptr null, ptr null, i32 0)
  ret void
}
"""

_CONDITION_SLEEP: Final = """\
@mutex = internal global [16 x i64] zeroinitializer, align 16
@condition = internal global [16 x i64] zeroinitializer, align 16
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
define internal void @prepare() nounwind {
entry:
  %mutex = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %condition = call i32 @pthread_cond_init(ptr @condition, ptr null)
  ret void
}
define internal void @sleep(i64 %last) nounwind {
entry:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %one = atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %look
look:
  %ticket = load atomic i64, ptr @ticket seq_cst, align 8
  %call = lshr i64 %ticket, 32
  %same = icmp eq i64 %call, %last
  br i1 %same, label %wait, label %end
wait:
  %waited = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %look
end:
  %less = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
define internal void @wake(i32 %most) nounwind {
entry:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %woken = call i32 @pthread_cond_broadcast(ptr @condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
"""
