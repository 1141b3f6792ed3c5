"""Sections as LLVM IR: operations one after another in one function, from pointers of inputs and outputs to a status.

Numbers of rank 0 are in registers, arrays where their plan says (`planning.py`); groups and steps are functions that
are called, but groups of numbers are written where they stand. The status is `FINE`, `IN_PYTHON` (the NumPy program
must run: it raises what must be raised) or `RAISED` (an exception is set). A long section is cut into parts, which
LLVM compiles in linear time: what another part reads lies in memory. Its pointers, and those of a section of many
arrays, stay in the block that the caller has, and each is read from there where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from srcgrad.backends.llvm import control, scalars
from srcgrad.backends.llvm.access import ARENA, Place, memory_name
from srcgrad.backends.llvm.emitter import BOOL, DType, Emitter, Number
from srcgrad.backends.llvm.entities import Entity, Scope, Tape, writes_tapes
from srcgrad.backends.llvm.indices import strides_of
from srcgrad.backends.llvm.kernels import APART, NOWHERE
from srcgrad.backends.llvm.kinds import is_zero
from srcgrad.backends.llvm.loops import Compute, Constant, Group, Iota, Load
from srcgrad.backends.llvm.natives import role_of
from srcgrad.backends.llvm.planning import ALIGNMENT, Plan, Root, bytes_of, in_memory, rounded
from srcgrad.backends.llvm.section_text import main_text, part_text
from srcgrad.backends.llvm.tapes_text import EMPTY, GROWING, LIST
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import ArrayType, TapeType, real_dtype

if TYPE_CHECKING:
    from srcgrad.backends.llvm.modules import Program

PART: Final = 1500
"""About how many instructions one function may have."""
_COPIED: Final = 16
"""The same of what copies a result to its place: LLVM looks for pairs among the stores of a function."""
MANY: Final = 12
"""The number of arrays from which a kernel knows their places in the arena."""
LISTED: Final = 32
"""The number of arrays from which a section has the block of their pointers: LLVM takes time that grows with the square
of the parameters of a function."""
I64: Final = np.dtype(np.int64)
_I8: Final = np.dtype(np.int8)


class SectionWriter:
    """The state of writing one section."""

    def __init__(
        self,
        program: Program,
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        operations: Sequence[Operation],
    ) -> None:
        self.program = program
        self.name = name
        self.inputs = {value: k for k, value in enumerate(inputs)}
        self.outputs = outputs
        self.gives_tapes = any(isinstance(value.type, TapeType) for value in outputs)
        """Whether the memory of its tapes is the caller's from then on."""
        self.operations = operations
        self.plan = Plan(program.planner, inputs, operations, outputs, ())
        self.homes = {f"output {k}": f"%out{k}" for k in range(len(outputs))}
        self.numbers: dict[Value, list[int]] = {}
        """Which outputs a value is."""
        for k, value in enumerate(outputs):
            self.plan.claim(value, f"output {k}")
            self.numbers.setdefault(value, []).append(k)
        self.attributes = f"nounwind {program.target.probes}"
        self.scope = Scope(self.plan, 0, self.homes)
        self.texts: list[str] = []
        self.spills: dict[Value, Root] = {}
        self.bounds = self.cut()
        self.listed = self.listing()
        self.arena = max(self.plan.layout(), ALIGNMENT)
        self.has_tapes = any(writes_tapes(operation) for operation in operations)
        self.inlined = 0
        self.begin()

    # --- parts -------------------------------------------------------------------------------------
    def cut(self) -> list[tuple[int, int]]:
        """The operations of each part; what is read in another part gets a place in the arena."""
        bounds, start, total = [], 0, 0
        for index, operation in enumerate(self.operations):
            cost = self.program.length(operation)
            cost += _COPIED * sum([len(self.numbers.get(value, ())) for value in operation.results])
            if total and total + cost > PART:
                bounds.append((start, index))
                start, total = index, 0
            total += cost
        bounds.append((start, len(self.operations)))
        self.wanted = self.outputs_by_part(bounds)
        if len(bounds) > 1:
            self.find_spills(bounds)
        return bounds

    def outputs_by_part(self, bounds: list[tuple[int, int]]) -> list[list[int]]:
        """The outputs that each part writes besides those of its operations: what is given, in parts of their own."""
        end = len(self.operations)
        made = {value for operation in self.operations for value in operation.results}
        rest = [k for k, value in enumerate(self.outputs) if value not in made]
        found: list[list[int]] = [[] for _ in bounds]
        most = max(1, PART // _COPIED)
        if len(rest) <= most:
            found[-1] = rest
            return found
        for first in range(0, len(rest), most):
            bounds.append((end, end))
            found.append(rest[first : first + most])
        return found

    def find_spills(self, bounds: Sequence[tuple[int, int]]) -> None:
        made: dict[Value, tuple[int, int]] = {}
        plan = self.plan

        def read(values: Sequence[Value], number: int) -> None:
            for value in values:
                if value in made and made[value][0] != number and value not in self.spills:
                    if in_memory(value.type) and plan.shifts.get(value, 0) is not None:
                        continue
                    root = self.spills[value] = plan.new(16, made[value][1])
                    root.last = plan.last[value]

        for number, (start, stop) in enumerate(bounds):
            for index in range(start, stop):
                read(self.operations[index].operands, number)
                made.update(dict.fromkeys(self.operations[index].results, (number, index)))

    def begin(self) -> None:
        """Start a function."""
        self.e = Emitter(1, self.program.target.features, block="start")
        self.prologue: list[str] = []
        self.slots: dict[Value, str] = {}
        self.fresh_slots = 0
        self.scopes: list[str] = []
        self.fails: set[str] = set()
        self.depth = 0
        self.head = "%tapes"
        """The list that new memory of tapes hangs on."""
        self.counter = ""
        self.scope.env, self.scope.indices = {}, {}

    def text(self) -> str:
        """``@NAME_loops`` and ``@NAME_block``, or the latter alone, and the functions of its parts."""
        for number, (start, stop) in enumerate(self.bounds):
            if number:
                self.begin()
            self.run(self.scope, self.operations[start:stop])
            for k in self.wanted[number]:
                self.store_output(k)
            if len(self.bounds) > 1:
                self.texts.append(part_text(self, number))
                self.program.take(self.e)
        if len(self.bounds) > 1:
            self.begin()
            self.call_parts()
        self.texts.append(main_text(self))
        self.program.take(self.e)
        return "\n".join(self.texts)

    def listing(self) -> dict[str, int]:
        """The places in the caller's block of the pointers that are read from there."""
        names = [f"%in{k}" for k in range(len(self.inputs))] + [f"%out{k}" for k in range(len(self.outputs))]
        names += ["%kept"] if self.gives_tapes else []
        return {name: k for k, name in enumerate(names)} if len(self.bounds) > 1 or len(names) >= LISTED else {}

    def at_hand(self, name: str) -> str:
        """The pointer of this name, read where it is listed."""
        place = self.listed.get(name)
        if place is None:
            return name
        return self.e.emit(f"load ptr, ptr {self.offset('%block', 8 * place)}, align 8")

    def call_parts(self) -> None:
        given = f"ptr %block, ptr {ARENA}, ptr {'%tapes' if self.has_tapes else 'null'}"
        for number in range(len(self.bounds)):
            self.require_fine(self.e.emit(f"call i32 @{self.name}_part{number}({given})"))

    def require_fine(self, status: str) -> None:
        """Go on where a function has returned `FINE`, or else return what it has."""
        e = self.e
        e.do(f"store i32 {status}, ptr %status, align 4")
        after = e.label("fine")
        e.branch(Number(e.emit(f"icmp eq i32 {status}, 0"), BOOL, 1), after, "leave")
        e.start(after)

    def fail(self, label: str) -> str:
        self.fails.add(label)
        return label

    # --- tapes and interruptions -------------------------------------------------------------------
    def reserve(self, bytes: Number | int) -> str:
        """Memory for a tape, which is freed with the list of its scope; a known number of bytes may grow."""
        self.program.define("tapes")
        own, size = (False, bytes.text) if isinstance(bytes, Number) else (bytes > GROWING, str(bytes))
        found = self.e.emit(f"call ptr @srcgrad_tape_{'own' if own else 'new'}(ptr {self.head}, i64 {size})")
        self.require_pointer(found)
        return found

    def require_pointer(self, pointer: str) -> None:
        self.require_true(Number(self.e.emit(f"icmp ne ptr {pointer}, null"), BOOL, 1), "exhausted")

    def tape_scope(self) -> str:
        """A list of its own for tapes."""
        scope = self.allocated(LIST, 8)
        self.prologue.append(f"  store {EMPTY}, ptr {scope}, align 8")
        self.scopes.append(scope)
        self.program.define("tapes")
        return scope

    def ticks(self) -> str:
        """The work of inner loops since the user was last asked."""
        if not self.counter:
            self.counter = self.allocated("i64", 8)
            self.prologue.append(f"  store i64 0, ptr {self.counter}, align 8")
        return self.counter

    # --- values ------------------------------------------------------------------------------------
    def entity(self, scope: Scope, value: Value) -> Entity:
        if isinstance(value, Literal):
            return self.given(value) if value in self.inputs else value
        found = scope.env.get(value)
        if found is None:
            found = scope.env[value] = self.derived(scope, value)
        return found

    def derived(self, scope: Scope, value: Value) -> Entity:
        """A value that is not at hand in the function that is being written."""
        if value in self.spills and scope is self.scope:
            return self.reloaded(value)
        if value in self.inputs and scope is self.scope:
            return self.given(value)
        return self.place(scope, value)

    def given(self, value: Value) -> Entity:
        """An input."""
        pointer = self.at_hand(f"%in{self.inputs[value]}")
        if isinstance(value.type, TapeType):
            return self.tape_at(pointer, value.type.element)
        return pointer if in_memory(value.type) else self.load(pointer, value.type.dtype)

    def tape_at(self, place: str, element: ArrayType) -> Tape:
        """The tape whose words are at a place."""
        data = self.e.emit(f"load ptr, ptr {place}, align 8")
        return Tape(data, self.load(self.offset(place, 8), I64), element, False)

    def place(self, scope: Scope, value: Value) -> str:
        """The pointer to a value that lies at a known place."""
        root, shift = scope.plan.roots[value], scope.plan.shifts[value]
        assert shift is not None
        if root.home is not None:
            return self.offset(self.at_hand(scope.homes[root.home]), shift)
        if root.local:
            return self.offset(ARENA, scope.base + root.offset + shift)
        return self.offset(self.pointer(scope, scope.plan.params[scope.plan.owners[root]]), shift)

    def area(self, scope: Scope, operation: Operation) -> int:
        """Where the memory that an operation needs for itself begins in the arena."""
        return scope.base + scope.plan.areas[operation].offset

    def offset(self, pointer: str, bytes: int) -> str:
        return self.e.emit(f"getelementptr inbounds i8, ptr {pointer}, i64 {bytes}") if bytes else pointer

    def spill(self, value: Value) -> None:
        place, found = self.offset(ARENA, self.spills[value].offset), self.scope.env[value]
        if isinstance(found, Number):
            self.store(place, found)
        elif isinstance(found, Tape):
            self.e.do(f"store ptr {found.data}, ptr {place}, align 8")
            self.store(self.offset(place, 8), found.length)
        else:
            self.e.do(f"store ptr {found}, ptr {place}, align 8")

    def reloaded(self, value: Value) -> Entity:
        place = self.offset(ARENA, self.spills[value].offset)
        if isinstance(value.type, TapeType):
            return self.tape_at(place, value.type.element)
        if in_memory(value.type):
            return self.e.emit(f"load ptr, ptr {place}, align 8")
        return self.load(place, value.type.dtype)

    def number(self, scope: Scope, value: Value) -> Number:
        found = self.entity(scope, value)
        if isinstance(found, Literal):
            return self.e.constant(found.value, found.type.dtype, 1)
        assert isinstance(found, Number)
        return found

    def pointer(self, scope: Scope, value: Value) -> str:
        """A pointer to the bytes of a value, which are not to be written."""
        found = self.entity(scope, value)
        if isinstance(found, str):
            return found
        if isinstance(found, Literal):
            return self.program.constant(found)
        assert isinstance(found, Number)
        slot = self.slot(value)
        self.store(slot, found)
        return slot

    def slot(self, value: Value | None = None) -> str:
        """Memory for one number, on the stack."""
        known = None if value is None else self.slots.get(value)
        if known is None:
            known = self.allocated("[16 x i8]", 16)
            if value is not None:
                self.slots[value] = known
        return known

    def allocated(self, type: str, alignment: int) -> str:
        self.fresh_slots += 1
        self.prologue.append(f"  %s{self.fresh_slots} = alloca {type}, align {alignment}")
        return f"%s{self.fresh_slots}"

    # --- memory ------------------------------------------------------------------------------------
    def load(self, pointer: str, dtype: DType) -> Number:
        text = self.e.emit(f"load {memory_name(dtype)}, ptr {pointer}, align {min(dtype.itemsize, 8)}")
        return self.e.compare("ne", Number(text, _I8, 1), 0) if dtype == BOOL else Number(text, dtype, 1)

    def store(self, pointer: str, value: Number) -> None:
        dtype = value.dtype
        if dtype == BOOL:
            value = self.e.convert("zext", value, np.dtype(np.uint8))
        self.e.do(f"store {memory_name(dtype)} {value.text}, ptr {pointer}, align {min(dtype.itemsize, 8)}")

    def copy(self, target: str, source: str, bytes: int) -> None:
        if bytes and target != source:
            self.e.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            self.e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {bytes}, i1 false)")

    def fill(self, target: str, value: Literal) -> None:
        """Write a constant into memory."""
        size = bytes_of(value.type)
        if not size:
            return
        zero = size > 64 and is_zero(value)
        if size <= 64 or not (value.splat or zero):
            self.copy(target, self.program.constant(value), size)
        elif zero:
            self.e.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            self.e.do(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")
        else:
            one = self.program.constant(Literal(value.value, ArrayType(value.type.dtype)))
            self.program.define("fill")
            item = value.type.dtype.itemsize
            self.e.do(f"call void @srcgrad_fill(ptr {target}, ptr {one}, i64 {item}, i64 {value.type.size})")

    def write(self, scope: Scope, target: str, value: Value) -> None:
        """Put the bytes of a value at a place, unless it is there already."""
        found = self.entity(scope, value)
        if isinstance(found, Number):
            self.store(target, found)
        elif isinstance(found, Literal):
            self.fill(target, found)
        elif isinstance(found, Tape):
            self.e.do(f"store ptr {found.data}, ptr {target}, align 8")
            self.store(self.offset(target, 8), found.length)
        else:
            self.copy(target, found, bytes_of(value.type))

    def nowhere(self, type: ArrayType) -> str:
        """Memory for what is written and not read."""
        place, self.arena = self.arena, self.arena + rounded(bytes_of(type))
        return self.offset(ARENA, place)

    def store_output(self, k: int) -> None:
        root = self.plan.roots.get(self.outputs[k])
        if root is None or root.home != f"output {k}":
            self.write(self.scope, self.at_hand(f"%out{k}"), self.outputs[k])

    # --- operations --------------------------------------------------------------------------------
    def run(self, scope: Scope, operations: Sequence[Operation]) -> None:
        for operation in operations:
            self.operation(scope, operation)
            if scope is self.scope:
                for value in operation.results:
                    if value in self.spills:
                        self.spill(value)
                    for k in self.numbers.get(value, ()):
                        self.store_output(k)

    def operation(self, scope: Scope, operation: Operation) -> None:
        role = role_of(operation)
        if role == "group":
            self.group(scope, operation)
        elif role == "step":
            self.step(scope, operation)
        elif role == "alias":
            shown = self.pointer(scope, operation.operands[0])
            self.show(scope, operation, self.offset(shown, operation.attrs["offset"]))
        elif role == "element":
            self.element(scope, operation)
        elif role == "check":
            self.check(scope, operation)
        else:
            control.write(self, scope, operation, role)

    def show(self, scope: Scope, operation: Operation, pointer: str) -> None:
        """The result is a part of the operand; a copy of it where that has no memory of its own."""
        (result,) = operation.results
        if not in_memory(result.type):
            scope.env[result] = self.load(pointer, result.type.dtype)
        elif scope.plan.roots.get(operation.operands[0]) is scope.plan.roots[result]:
            scope.env[result] = pointer
        else:
            self.copy(self.target(scope, result), pointer, bytes_of(result.type))

    def group(self, scope: Scope, operation: Operation) -> None:
        group = self.program.group(operation)
        assert group is not None
        over = scope.plan.over.get(operation, APART)
        for value, whole in group.updates.items() if isinstance(group, Group) else ():
            if value not in over:
                self.write(scope, self.place(scope, value), whole)
        if isinstance(group, Group) and not group.domain and not group.folds and self.inlined <= 8 * PART:
            self.inlined += self.program.length(operation) if self.depth else 0
            self.inline(scope, group)
            return
        places = NOWHERE
        if not self.program.likenesses.is_repeated(group):  # or one function serves for all, given other pointers
            places = self.known_places(scope, (*group.inputs, *group.outputs))
        name = self.program.use(group, places, over)
        given = [self.pointer(scope, value) for value in group.inputs if value not in places]
        targets = [(value, self.target(scope, value)) for value in group.outputs if value not in places]
        given += [target for value, target in targets if value not in over]
        given += [ARENA] if places else []
        self.e.do(f"call void @{name}_loops({', '.join(f'ptr {pointer}' for pointer in given)})")
        self.loaded(scope, group.outputs)

    def known_places(self, scope: Scope, values: Sequence[Value]) -> Mapping[Value, Place]:
        """The places of arrays in the arena, where there are many: pointers would take registers."""
        found: dict[Value, Place] = {}
        for value in values:
            root, shift = scope.plan.roots.get(value), scope.plan.shifts.get(value)
            if root is not None and root.local and root.home is None and shift is not None:
                place = scope.base + root.offset + shift
                if not place % ALIGNMENT:
                    alone = not shift and root.size == bytes_of(value.type)
                    found[value] = Place(place // real_dtype(value.type.dtype).itemsize, alone)
        return found if len(found) >= MANY else NOWHERE

    def target(self, scope: Scope, value: Value) -> str:
        """Where the bytes of a result are to be written."""
        if in_memory(value.type):
            place = scope.env[value] = self.place(scope, value)
            return place
        return self.slot(value)

    def loaded(self, scope: Scope, values: Sequence[Value]) -> None:
        """Numbers that a function has written."""
        for value in values:
            if not in_memory(value.type):
                scope.env[value] = self.load(self.slot(value), value.type.dtype)

    def inline(self, scope: Scope, group: Group) -> None:
        """A group of one point, written where it stands: its sums hold the products that it says, and no others."""
        with self.e.strict():
            values = self.statements_of(scope, group)
        for store in group.stores:
            output, number = group.outputs[store.output], values[store.statement]
            if in_memory(output.type):
                self.store(self.offset(self.target(scope, output), store.line.offset * number.dtype.itemsize), number)
            else:
                scope.env[output] = number

    def statements_of(self, scope: Scope, group: Group) -> list[Number]:
        e = self.e
        e.outlined, e.divides = group.outlined, group.divides()
        values: list[Number] = []
        for item in group.statements:
            if isinstance(item, Load):
                value = group.inputs[item.source]
                if in_memory(value.type):
                    place = self.offset(self.pointer(scope, value), item.line.offset * item.dtype.itemsize)
                    values.append(self.load(place, item.dtype))
                else:
                    values.append(self.number(scope, value))
            elif isinstance(item, Constant):
                values.append(e.constant(item.value, item.dtype, 1))
            elif isinstance(item, Iota):
                values.append(scalars.cast(e, e.constant(item.line.offset, I64, 1), item.dtype))
            else:
                assert isinstance(item, Compute)
                values.append(scalars.emit(e, item.operation, [values[k] for k in item.operands], item.function))
        return values

    def step(self, scope: Scope, operation: Operation) -> None:
        name, step = self.program.use_step(operation), self.program.step(operation)[1]
        results = [self.target(scope, value) for value in operation.results]
        given = []
        for k, value in enumerate(operation.operands):
            if k in step.unread:
                given.append("null")
            elif k == step.in_place and isinstance(value, Literal) and in_memory(value.type):
                self.write(scope, results[0], value)
                given.append(results[0])
            elif operation in scope.plan.in_place and k == step.in_place:
                given.append(results[0])
            else:
                given.append(self.pointer(scope, value))
        scratch = self.offset(ARENA, self.area(scope, operation)) if step.scratch else "null"
        pointers = ", ".join(f"ptr {pointer}" for pointer in (*given, *results, scratch))
        self.require(self.e.emit(f"call i32 @{name}({pointers})"))
        self.loaded(scope, operation.results)

    def require(self, status: str) -> None:
        """Go on where a step has returned 0, or else leave the rest to Python."""
        self.require_true(Number(self.e.emit(f"icmp eq i32 {status}, 0"), BOOL, 1))

    def require_true(self, condition: Number, otherwise: str = "in_python") -> None:
        after = self.e.label("good")
        self.e.do(f"br i1 {condition.text}, label %{after}, label %{self.fail(otherwise)}, !prof !91")
        self.e.start(after)

    def check(self, scope: Scope, operation: Operation) -> None:
        predicate = operation.operands[0]
        if operation.attrs.get("raises"):
            self.require_true(self.e.invert(self.number(scope, predicate)))
        elif in_memory(predicate.type):
            if predicate.type.size:
                self.program.define("all")
                pointer = self.pointer(scope, predicate)
                found = self.e.emit(f"call i1 @srcgrad_all(ptr {pointer}, i64 {predicate.type.size})")
                self.require_true(Number(found, BOOL, 1))
        else:
            self.require_true(self.number(scope, predicate))

    # --- elements ----------------------------------------------------------------------------------
    def element(self, scope: Scope, operation: Operation) -> None:
        """``gather``, ``scatter_set`` or ``scatter_add`` of what one index per leading axis shows."""
        name, (array, *others) = operation.op.name, operation.operands
        (result,) = operation.results
        indices = others if name == "gather" else others[1:]
        shift = self.shift(scope, array.type, indices)
        if name == "gather":
            self.show(scope, operation, self.shifted(self.pointer(scope, array), shift))
            return
        target = self.target(scope, result)
        if operation not in scope.plan.in_place:
            self.write(scope, target, array)
        place = self.shifted(target, shift)
        if name == "scatter_set":
            self.write(scope, place, others[0])
            return
        before, part = self.load(place, array.type.dtype), self.number(scope, others[0])
        self.store(place, scalars.TABLE["add"](self.e, before, part))

    def shift(self, scope: Scope, type: ArrayType, indices: Sequence[Value]) -> Number:
        """The bytes from the first element to what the indices show, which must be within bounds."""
        e, total = self.e, Number("0", I64, 1)
        for index, size, stride in zip(indices, type.static_shape, strides_of(type.static_shape), strict=False):
            bytes = stride * type.dtype.itemsize
            if isinstance(index, Literal) and -size <= int(index.value) < size:
                part = e.constant(int(index.value) % size * bytes, I64, 1)
            else:
                known = scope.indices.get((index, size))
                if known is None:
                    known = scope.indices[index, size] = self.within(self.number(scope, index), size)
                part = e.integer("mul", known, bytes)
            total = part if total.text == "0" else total if part.text == "0" else e.integer("add", total, part)
        return total

    def within(self, index: Number, size: int) -> Number:
        """An index that counts from the start; it must be within bounds."""
        e = self.e
        number = scalars.cast(e, index, I64)
        if index.dtype.kind != "u":
            number = e.select(e.compare("slt", number, 0), e.integer("add", number, size), number)
        self.require_true(e.compare("ult", number, size))
        return number

    def shifted(self, pointer: str, shift: Number) -> str:
        if shift.text == "0":
            return pointer
        return self.e.emit(f"getelementptr inbounds i8, ptr {pointer}, i64 {shift.text}")
