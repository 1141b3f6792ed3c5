"""What the sections of one module share: their groups, steps, helper functions and constants, and what they cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.access import STREAM, Place, memory_name
from srcgrad.backends.llvm.control import POLLED
from srcgrad.backends.llvm.emitter import Emitter, constant_text
from srcgrad.backends.llvm.kernels import APART, NOWHERE, kernel_text
from srcgrad.backends.llvm.kinds import LARGEST_CONSTANT
from srcgrad.backends.llvm.likeness import Likenesses
from srcgrad.backends.llvm.loops import Group, overwritable
from srcgrad.backends.llvm.natives import ALIAS, Natives, is_element, role_of
from srcgrad.backends.llvm.nests import Nest, is_straight
from srcgrad.backends.llvm.partition import LONG_PROGRAM, Partition
from srcgrad.backends.llvm.planning import Effect, Planner, bytes_of
from srcgrad.backends.llvm.program import SectionWriter
from srcgrad.backends.llvm.sections import Section
from srcgrad.backends.llvm.steps import Step
from srcgrad.backends.llvm.tapes_text import TAPES
from srcgrad.backends.llvm.target import PART, STRAIGHT, Target, is_long
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import ArrayType, TapeType

PART_TEXT: Final = 1 << 17
"""The characters of a module that is handed to the compiler while others are written."""
_HEAD: Final = re.compile(r"^define internal (\w+) @(\w+)\(([^)]*)\)", re.MULTILINE)


class Program:
    """What the sections of one module share."""

    def __init__(self, partition: Partition, target: Target, ready: Callable[[str], None] | None = None) -> None:
        self.target = target
        self.ready = ready
        """What is told of modules that are written before the rest is."""
        self.natives: Natives = partition.natives
        self.groups: dict[str, Group | Nest] = {group.name: group for group in partition.groups}
        self.long = partition.length() >= LONG_PROGRAM
        self.steps: dict[Operation, tuple[str, Step]] = self.natives.steps
        self.planner = Planner(partial(effect_of, self.groups, self.steps))
        self.declared: dict[str, None] = {}
        self.defined: dict[str, str] = {}
        self.variants: dict[str, list[tuple[Mapping[Value, Place], Mapping[Value, Value]]]] = {}
        self.likenesses = Likenesses(partition.groups)
        self.alike: dict[Hashable, str] = {}
        """The names of functions of groups, by what these are like."""
        self.constants: dict[Any, str] = {}
        self.helpers: set[str] = set()
        self.symbols: dict[str, int] = {}
        """The addresses that its steps call, by name."""
        self.works: dict[Operation, int] = {}
        self.waiting: dict[str, dict[str, tuple[str, Emitter | Step]]] = {STRAIGHT: {}, PART: {}}
        """Functions of kernels and steps that are in no module yet, by how their module begins."""
        self.apart: list[str] = []
        """The modules of such functions."""
        self.written: set[str] = set()
        """The kernels that are there."""

    # --- operations --------------------------------------------------------------------------------
    def group(self, operation: Operation) -> Group | Nest | None:
        return self.groups[operation.attrs["kernel"]] if operation.op.name == "fused" else None

    def step(self, operation: Operation) -> tuple[str, Step]:
        return self.steps[operation]

    def length(self, operation: Operation) -> int:
        """About how many instructions an operation is."""
        group = self.group(operation)
        if isinstance(group, Group) and not group.domain and not group.folds:
            return len(group.statements) + group.cost()
        count = 3 + len(operation.operands) + len(operation.results)
        return count + sum(self.length(inner) for region in operation.regions for inner in region.operations)

    def work(self, operation: Operation) -> int:
        """About how many additions an operation costs; a loop with trips that are not known, one trip."""
        known = self.works.get(operation)
        if known is None:
            known = self.works[operation] = self.counted(operation)
        return known

    def counted(self, operation: Operation) -> int:
        group = self.group(operation)
        if group is not None:
            return 1 + int(group.work())
        if operation.regions:
            parts = [sum(map(self.work, region.operations)) for region in operation.regions]
            if operation.op.name == "cond":
                return 1 + max(parts)
            return 1 + (1 + sum(parts)) * max(1, operation.attrs.get("trips") or 1)
        if operation.op is ALIAS or is_element(operation):
            return 4 + (operation.operands[1].type.size if operation.op.name.startswith("scatter") else 0)
        return 4 + sum(value.type.size for value in (*operation.operands, *operation.results))

    def total_work(self, item: Group | Nest | Section) -> int | None:
        """What a kernel costs; None where that is known at run time only."""
        if not isinstance(item, Section):
            return int(item.work())
        if any(map(self.is_unbounded, item.operations)):
            return None
        return sum(map(self.work, item.operations))

    def is_unbounded(self, operation: Operation) -> bool:
        """Whether how long it runs is known at run time only."""
        if operation.op.name == "while" or (operation.op.name == "for" and operation.attrs["trips"] is None):
            return True
        return any(self.is_unbounded(inner) for region in operation.regions for inner in region.operations)

    def polls(self, operation: Operation) -> int | None:
        """After how many trips a loop asks for interruptions: None for never, 0 where its inner loops count."""
        inner = [inner for region in operation.regions for inner in region.operations]
        if any(self.is_unbounded(other) for other in inner):
            return 0
        if not self.is_unbounded(operation) and self.work(operation) < POLLED:
            return None
        cost, trips = 1 + sum(map(self.work, inner)), 1
        while trips * cost < POLLED:
            trips *= 2
        return trips

    # --- text --------------------------------------------------------------------------------------
    def write(self, section: Section) -> str:
        """``@NAME_block`` and what it calls of the section's own."""
        return SectionWriter(self, section.name, section.inputs, section.outputs, section.operations).text()

    def take(self, needs: Emitter | Step) -> None:
        """Note what code needs declared and defined."""
        self.declared.update(dict.fromkeys(sorted(needs.declarations)))
        self.defined.update(needs.definitions)

    def use(
        self, group: Group | Nest, places: Mapping[Value, Place] = NOWHERE, over: Mapping[Value, Value] = APART,
        shared: bool = True,
    ) -> str:  # fmt: skip
        """The name of the function of a group, for arrays at these places of the arena and outputs ``over`` inputs.

        If ``shared``, it may be that of another group.
        """
        like = self.likenesses.key(group, places, over) if shared else None
        known = self.alike.get(like) if like is not None else None
        if known is not None:
            return known
        variants = self.variants.setdefault(group.name, [])
        if (places, over) not in variants:
            variants.append((places, over))
        number = variants.index((places, over))
        name = f"{group.name}_again{number}" if number else group.name
        if like is not None:
            self.alike[like] = name
        if name not in self.written:
            self.written.add(name)
            plain = self.long and is_straight(group, self.target)
            text, emitter = kernel_text(group, self.target, name, places, over, plain)
            self.put(STRAIGHT if plain else PART, f"{name}_loops", text, emitter)
        return name

    def use_step(self, operation: Operation) -> str:
        name, step = self.step(operation)
        if name not in self.written:
            self.written.add(name)
            self.put(PART, name, step.text, step)
            self.symbols.update(step.symbols)
            for symbol, address in step.symbols.items():
                llvm.add_symbol(symbol, address)
        return name

    def define(self, helper: str) -> None:
        """Have a function of `_HELPERS` in the module, and those that it calls."""
        if helper not in self.helpers:
            self.helpers.add(helper)
            for other in _NEEDS.get(helper, ()):
                self.define(other)

    def put(self, kind: str, name: str, text: str, needs: Emitter | Step) -> None:
        """Have a function of this text, which other modules may call."""
        waiting = self.waiting[kind]
        waiting[name] = text, needs
        if sum([len(text) for text, _ in waiting.values()]) >= PART_TEXT:
            self.set_apart(kind)

    def text(self) -> str:
        """What the sections need beside themselves, and is in no module of its own."""
        for name, (text, needs) in self.waiting[PART].items():
            self.take(needs)
            self.defined[f"function {name}"] = text
        helpers = [line for name in sorted(self.helpers) for line in _HELPERS[name].splitlines()]
        declared = dict.fromkeys([*self.declared, *[line for line in helpers if line.startswith("declare ")]])
        helpers = [line for line in helpers if not line.startswith("declare ")]
        return "\n".join([*declared, *helpers, *self.constants_text(), *self.defined.values(), _METADATA])

    def modules_apart(self) -> list[str]:
        """The modules that are written before `text`, to be asked for before it."""
        if self.waiting[STRAIGHT]:
            self.set_apart(STRAIGHT)
        return self.apart

    def set_apart(self, kind: str) -> None:
        """Make a module of the functions that wait: the rest declares those by whose names they wait."""
        declared, defined, texts = set[str](), dict[str, str](), []
        waiting = self.waiting[kind]
        for name, (text, needs) in waiting.items():
            declared |= needs.declarations
            defined.update(needs.definitions)
            (head,) = [found for found in _HEAD.finditer(text) if found[2] == name]
            texts.append(f"{text[: head.start()]}define {text[head.start(1) :]}")
            pointers = ", ".join(["ptr"] * head[3].count("ptr "))
            self.declared[f"declare {head[1]} @{name}({pointers})"] = None
        waiting.clear()
        marked = kind if kind is STRAIGHT or is_long(*self.apart, *texts) else ""
        self.apart.append("\n".join([marked + "\n".join(sorted(declared)), *defined.values(), *texts, _METADATA]))
        if self.ready is not None:
            self.ready(self.apart[-1])

    # --- constants ---------------------------------------------------------------------------------
    def constant(self, value: Literal) -> str:
        """A pointer to the bytes of a literal."""
        return self.constants.setdefault((value.key,), f"@data_{len(self.constants)}")

    def tape_constant(self, value: Literal) -> str:
        """A pointer to the one element of a literal tape."""
        assert isinstance(value.type, TapeType)
        element = value.type.element
        inner = Literal(value.value, element)
        if not isinstance(element, TapeType):
            return self.constant(inner)
        below = self.tape_constant(inner)
        return self.constants.setdefault(("tape", below), f"@data_{len(self.constants)}")

    def constants_text(self) -> list[str]:
        lines = []
        for key, name in self.constants.items():
            if key[0] == "tape":
                lines.append(f"{name} = internal constant {{ptr, i64}} {{ptr {key[1]}, i64 -1}}, align 64")
                continue
            type, splat, data = key[0]
            lines.append(f"{name} = internal constant {data_text(type, splat, data)}, align 64")
        return lines


def effect_of(
    groups: Mapping[str, Group | Nest], steps: Mapping[Operation, tuple[str, Step]], operation: Operation
) -> Effect:
    """What an operation does with memory. A program that held its own method for this would outlive its use."""
    role = role_of(operation)
    if role == "alias":
        return Effect(shows=True, offset=operation.attrs["offset"])
    if role == "element":
        if operation.op.name == "gather":
            return Effect(shows=True, offset=None)
        return Effect(in_place=0)
    if role == "step":
        step = steps[operation][1]
        return Effect(in_place=step.in_place, scratch=step.scratch)
    group = groups[operation.attrs["kernel"]] if role == "group" else None
    return Effect(over=overwritable(group)) if isinstance(group, Group) else Effect()


def data_text(type: ArrayType, splat: bool, data: bytes) -> str:
    """The bytes of a literal as a constant."""
    size, dtype = bytes_of(type), type.dtype
    if not data.strip(b"\0") or not size:
        return f"[{max(size, 1)} x i8] zeroinitializer"
    if splat and scalars.is_register(dtype) and size > LARGEST_CONSTANT // 64:
        number = np.frombuffer(data, dtype)[0]
        name = memory_name(dtype)
        text = str(int(number)) if dtype.kind == "b" else constant_text(number, dtype)
        return f"[{type.size} x {name}] [{', '.join([f'{name} {text}'] * type.size)}]"
    whole = data * type.size if splat else data
    escaped = whole.hex("\\")
    return f'[{size} x i8] c"\\{escaped}"'


_METADATA: Final = f"""\
!90 = !{{!"branch_weights", i32 1, i32 1048576}}
!91 = !{{!"branch_weights", i32 1048576, i32 1}}
{STREAM} = !{{i32 1}}"""
ARENA_LACKS: Final = "there is no memory for the %zd bytes in which a program works"
TAPE_LACKS: Final = (
    "there is no memory for the %zd bytes that a loop keeps of its trips for the derivative: make fewer trips, "
    "or leave many at a time to a function under srcgrad.checkpoint, of which only the arguments are kept"
)
_HELPERS: Final[dict[str, str]] = {
    "arena": "declare ptr @srcgrad_take(i64)\ndeclare void @srcgrad_give(ptr)",
    "memcpy": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "no_memory": f"""\
@PyExc_MemoryError = external global ptr
@srcgrad_arena_lacks = internal constant [{len(ARENA_LACKS) + 1} x i8] c"{ARENA_LACKS}\\00"
@srcgrad_tape_lacks = internal constant [{len(TAPE_LACKS) + 1} x i8] c"{TAPE_LACKS}\\00"
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyErr_Format(ptr, ptr, ...)
define internal void @srcgrad_no_memory(ptr %text, i64 %bytes) cold noinline nounwind {{
  %lock = call i32 @PyGILState_Ensure()
  %error = load ptr, ptr @PyExc_MemoryError, align 8
  %nothing = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr %text, i64 %bytes)
  call void @PyGILState_Release(i32 %lock)
  ret void
}}""",
    "poll": """\
declare i32 @PyErr_CheckSignals()
define internal i32 @srcgrad_poll() cold noinline nounwind {
  %lock = call i32 @PyGILState_Ensure()
  %status = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %lock)
  ret i32 %status
}""",
    "fill": """\
define internal void @srcgrad_fill(ptr %target, ptr %one, i64 %item, i64 %count) noinline nounwind {
entry:
  %total = mul i64 %item, %count
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %one, i64 %item, i1 false)
  br label %head
head:
  %done = phi i64 [ %item, %entry ], [ %more, %body ]
  %left = sub i64 %total, %done
  %short = icmp ult i64 %left, %done
  %next = select i1 %short, i64 %left, i64 %done
  %end = icmp eq i64 %left, 0
  br i1 %end, label %exit, label %body
body:
  %place = getelementptr i8, ptr %target, i64 %done
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %target, i64 %next, i1 false)
  %more = add i64 %done, %next
  br label %head
exit:
  ret void
}""",
    "all": """\
define internal i1 @srcgrad_all(ptr %data, i64 %count) noinline nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %exit, label %body
body:
  %place = getelementptr i8, ptr %data, i64 %k
  %byte = load i8, ptr %place, align 1
  %next = add i64 %k, 1
  %no = icmp eq i8 %byte, 0
  br i1 %no, label %exit, label %head
exit:
  %found = phi i1 [ true, %head ], [ false, %body ]
  ret i1 %found
}""",
    "tapes": TAPES,
}
"""Functions of which modules have those that they call, by name."""
_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "poll": ("no_memory",),
    "tapes": ("arena", "memcpy", "no_memory"),
    "fill": ("memcpy",),
}
