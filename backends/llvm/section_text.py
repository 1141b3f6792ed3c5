"""The functions of a section round what it does: where its memory is, how it begins and how it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srcgrad.backends.llvm.access import ARENA
from srcgrad.backends.llvm.entry import IN_PYTHON, RAISED, block_text
from srcgrad.backends.llvm.tapes_text import EMPTY, LIST

if TYPE_CHECKING:
    from srcgrad.backends.llvm.program import SectionWriter

ON_STACK: Final = 16_384
"""The bytes of an arena up to which it is on the stack."""
STATUS: Final[dict[str, int]] = {"in_python": IN_PYTHON, "raised": RAISED, "exhausted": RAISED}
"""What the section returns, by the label of the block that leaves it."""


def part_text(w: SectionWriter, number: int) -> str:
    """A function for some of the operations of a long section, which knows the block of all pointers."""
    params = f"ptr %block, ptr {ARENA}, ptr %tapes"
    lines = [f"define internal i32 @{w.name}_part{number}({params}) {w.attributes} {{", "entry:"]
    lines += [*w.prologue, "  br label %start", "start:", *w.e.lines, "  ret i32 0"]
    for fail in sorted(w.fails):
        lines.append(f"{fail}:")
        lines += [f"  call void @srcgrad_tapes_free(ptr {scope})" for scope in w.scopes]
        lines.append(f"  ret i32 {STATUS[fail]}")
    return "\n".join([*lines, "}", ""])


def main_text(w: SectionWriter) -> str:
    """``@NAME_block`` or ``@NAME_loops``: memory, what the section does, and where it is left."""
    lines = [heading(w), "entry:", "  %status = alloca i32, align 4", "  store i32 0, ptr %status, align 4"]
    if w.has_tapes:
        lines += [f"  %tapes = alloca {LIST}, align 8", f"  store {EMPTY}, ptr %tapes, align 8"]
    if w.gives_tapes and w.listed:
        lines.append(f"  %kept.place = getelementptr inbounds ptr, ptr %block, i64 {w.listed['%kept']}")
        lines.append("  %kept = load ptr, ptr %kept.place, align 8")
    if w.gives_tapes:
        lines.append("  store ptr null, ptr %kept, align 8")
    lines += w.prologue
    big = w.arena > ON_STACK
    if big:
        w.program.define("no_memory")
        w.program.define("arena")
        lines += [
            f"  %arena = call ptr @srcgrad_take(i64 {w.arena})",
            "  %arena.none = icmp eq ptr %arena, null",
            "  br i1 %arena.none, label %no_memory, label %reserved, !prof !90",
            "reserved:",
        ]
    elif len(w.bounds) > 1 or any(ARENA in line for line in w.e.lines):
        lines.insert(2, f"  %arena = alloca [{w.arena} x i8], align 64")
    lines += ["  br label %start", "start:", *w.e.lines, "  br label %leave"]
    for fail in sorted(w.fails):
        lines += [f"{fail}:", f"  store i32 {STATUS[fail]}, ptr %status, align 4", "  br label %leave"]
    lines.append("leave:")
    scopes = [*w.scopes, *(["%tapes"] if w.has_tapes and not w.gives_tapes else [])]
    lines += [f"  call void @srcgrad_tapes_free(ptr {scope})" for scope in scopes]
    if big:
        lines.append("  call void @srcgrad_give(ptr %arena)")
    lines.append("  %left = load i32, ptr %status, align 4")
    if w.has_tapes and w.gives_tapes:
        lines += ["  %is.fine = icmp eq i32 %left, 0", "  br i1 %is.fine, label %given, label %nothing", "nothing:"]
        lines += ["  call void @srcgrad_tapes_free(ptr %tapes)", "  br label %given", "given:"]
        lines += ["  %blocks = load ptr, ptr %tapes, align 8", "  store ptr %blocks, ptr %kept, align 8"]
    lines.append("  ret i32 %left")
    if big:
        lines += ["no_memory:", f"  call void @srcgrad_no_memory(ptr @srcgrad_arena_lacks, i64 {w.arena})"]
        lines.append(f"  ret i32 {RAISED}")
    count = len(w.inputs) + len(w.outputs) + int(w.gives_tapes)
    block = "" if w.listed else block_text(w.name, count, status=True)
    return "\n".join([*lines, "}", block])


def heading(w: SectionWriter) -> str:
    """How the function begins: pointers as parameters, or those of a block."""
    if w.listed:
        return f"define i32 @{w.name}_block(ptr %block) {w.attributes} {{"
    arguments = [f"ptr noalias readonly %in{k}" for k in range(len(w.inputs))]
    arguments += [f"ptr noalias %out{k}" for k in range(len(w.outputs))]
    arguments += ["ptr noalias %kept"] if w.gives_tapes else []
    return f"define internal i32 @{w.name}_loops({', '.join(arguments)}) {w.attributes} {{"
