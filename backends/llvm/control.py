"""Control flow as LLVM IR: branches, loops whose numbers are in registers, and tapes as arrays that grow.

A loop's carries are phi nodes: numbers, tapes (a pointer and a count), and pointers to arrays that swing between two
places; an array that is updated stays in one place. What a trip gives to a tape or a column is written there at once
where it can be, and so is a carry that the next trip gives. Memory of tapes hangs on a list, and is freed with the
program or, where a tape does not leave the trip that makes it, with the trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, Emitter, Number
from srcgrad.backends.llvm.entities import Entity, Scope, Tape, writes_tapes
from srcgrad.backends.llvm.planning import CondPlan, LoopPlan, bytes_of, in_memory
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.types import ArrayType, TapeType

if TYPE_CHECKING:
    from srcgrad.backends.llvm.program import SectionWriter

POLLED: Final = 1 << 20
"""The work, in additions, after which a loop asks whether the user has interrupted it."""
_FIRST_BYTES: Final = 512
MANY: Final = 8
"""The columns of a loop from which LLVM does not see how their places follow from its count: it would have a register
for each, of which there are fewer, and that takes long."""
_LARGEST: Final = 1 << 46
_I64: Final = np.dtype(np.int64)


def write(w: SectionWriter, scope: Scope, operation: Operation, role: str) -> None:
    """The code of an operation on control flow or tapes."""
    if role == "cond":
        write_cond(w, scope, operation)
    elif role == "while":
        _While(w, scope, operation).write()
    elif role == "for":
        _For(w, scope, operation).write()
    else:
        scope.env[operation.results[0]] = length_of(w, scope, operation.operands)


def element_bytes(type: ArrayType) -> int:
    """The bytes of an element of a tape: one that is a tape itself is a pointer and a count."""
    return 16 if isinstance(type, TapeType) else bytes_of(type)


def tape(w: SectionWriter, entity: Entity) -> Tape:
    """A tape, also of a constant."""
    if not isinstance(entity, Literal):
        assert isinstance(entity, Tape)
        return entity
    assert isinstance(entity.type, TapeType)
    data = w.program.tape_constant(entity)
    return Tape(data, w.e.constant(-1, _I64, 1), entity.type.element, False)


def length_of(w: SectionWriter, scope: Scope, operands: Sequence[Value]) -> Number:
    """The count of the first tape that has one, or else -1."""
    found = w.e.constant(-1, _I64, 1)
    for operand in reversed(operands):
        entity = w.entity(scope, operand)
        if not isinstance(entity, Literal):
            count = tape(w, entity).length
            found = count if tape(w, entity).exact else w.e.select(w.e.compare("slt", count, 0), found, count)
    return found


class _Phis:
    """Phi nodes of a loop's head, whose values after a trip are known when the trip is written."""

    def __init__(self, w: SectionWriter) -> None:
        self.w = w
        self.before = w.e.block
        self.items: list[tuple[str, str, str]] = []
        self.after: dict[str, str] = {}

    def start(self, label: str) -> None:
        self.w.e.jump(label)
        self.w.e.start(label)
        self.position = len(self.w.e.lines)

    def new(self, type: str, first: str) -> str:
        name = self.w.e.fresh()
        self.items.append((name, type, first))
        return name

    def finish(self) -> None:
        """Write the nodes: control comes back from the block that is being written."""
        end = self.w.e.block
        lines = [
            f"  {name} = phi {type} [ {first}, %{self.before} ], [ {self.after[name]}, %{end} ]"
            for name, type, first in self.items
        ]
        self.w.e.lines[self.position : self.position] = lines


def chosen(e: Emitter, condition: Number, place: str, other: str) -> str:
    return e.emit(f"select i1 {condition.text}, ptr {place}, ptr {other}")


def merged(w: SectionWriter, found: Sequence[tuple[Entity, str]]) -> Entity:
    """The register or tape that control came with: each one with the block that it comes from."""
    e, first = w.e, found[0][0]
    if isinstance(first, Number):
        return e.phi(*[(value, label) for value, label in found if isinstance(value, Number)])
    tapes = [(value, label) for value, label in found if isinstance(value, Tape)]
    assert isinstance(first, Tape)
    pairs = ", ".join(f"[ {value.data}, %{label} ]" for value, label in tapes)
    data = e.emit(f"phi ptr {pairs}")
    count = e.phi(*[(value.length, label) for value, label in tapes])
    return Tape(data, count, first.element, all(value.exact for value, _ in tapes))


def register(w: SectionWriter, scope: Scope, value: Value) -> Entity:
    """A value that is not in memory, in registers."""
    if isinstance(value.type, TapeType):
        return tape(w, w.entity(scope, value))
    return w.number(scope, value)


# --- cond ------------------------------------------------------------------------------------------------------------


def write_cond(w: SectionWriter, scope: Scope, operation: Operation) -> None:
    e, plan = w.e, scope.plan.control[operation]
    assert isinstance(plan, CondPlan)
    predicate = w.number(scope, operation.operands[0])
    entities = [w.entity(scope, value) for value in operation.operands[1:]]
    targets: dict[int, str] = {}
    for k, value in enumerate(operation.results):
        if in_memory(value.type):
            place = plan.in_place[k]
            targets[k] = w.target(scope, value) if place is None else w.pointer(scope, operation.operands[place])
            scope.env[value] = targets[k]
    labels = [e.label("then"), e.label("else")]
    after = e.label("after")
    e.branch(predicate, labels[0], labels[1])
    base = w.area(scope, operation)
    ends: list[tuple[list[Entity], str]] = []
    for label, region, branch in zip(labels, operation.regions, plan.branches, strict=True):
        e.start(label)
        inner = Scope(branch, base, {f"result {k}": target for k, target in targets.items()})
        inner.env.update(zip(region.params, entities, strict=True))
        w.depth += 1
        w.run(inner, region.operations)
        w.depth -= 1
        found = []
        for k, value in enumerate(region.results):
            if k in targets:
                put(w, inner, value, targets[k], f"result {k}", plan.in_place[k] is not None)
            else:
                found.append(register(w, inner, value))
        ends.append((found, e.block))
        e.jump(after)
    e.start(after)
    others = [value for k, value in enumerate(operation.results) if k not in targets]
    for k, value in enumerate(others):
        scope.env[value] = merged(w, [(found[k], label) for found, label in ends])


def put(w: SectionWriter, scope: Scope, value: Value, target: str, home: str, in_place: bool) -> None:
    """Write a region's result to where it is wanted, unless that is where it is."""
    root = scope.plan.roots.get(value)
    if in_place or (root is not None and root.home == home):
        return
    w.write(scope, target, value)


# --- loops -----------------------------------------------------------------------------------------------------------


class _Loop:
    """What ``while`` and ``for`` have in common: the carries."""

    def __init__(self, w: SectionWriter, scope: Scope, operation: Operation) -> None:
        self.w, self.e, self.scope, self.operation = w, w.e, scope, operation
        plan = scope.plan.control[operation]
        assert isinstance(plan, LoopPlan)
        self.plan = plan
        self.body = operation.regions[-1]
        self.carries = operation.attrs["carries"]
        self.base = w.area(scope, operation)
        self.used = scope.plan.last
        self.results = operation.results
        self.current: list[Entity] = []
        """Per carry, what a trip begins with."""
        self.spare: dict[int, tuple[str, str]] = {}
        """Per swinging carry, where a trip writes, and where the next one does."""
        self.homes: dict[str, str] = {}
        self.head_label, self.body_label, self.exit_label = (w.e.label(name) for name in ("head", "body", "exit"))
        self.polls = w.program.polls(operation)

    # --- before the loop ---------------------------------------------------------------------------
    def initial(self, operands: Sequence[Value], starts: Mapping[int, str]) -> list[Entity]:
        """The carries before the first trip; ``starts``: per column in which one lies, where that is."""
        w, scope, found = self.w, self.scope, []
        for k, operand in enumerate(operands):
            mode, result = self.plan.modes[k], self.results[k]
            if mode == "number":
                found.append(register(w, scope, operand))
            elif mode == "still":
                found.append(self.still(operand, result))
            elif mode == "place":
                if self.plan.taken[k]:
                    place = w.pointer(scope, operand)
                    scope.env[result] = place
                else:
                    place = w.target(scope, result)
                    w.write(scope, place, operand)
                found.append(place)
            elif mode == "column":
                found.append(starts[self.plan.columns[k]])
                w.write(scope, starts[self.plan.columns[k]], operand)
            else:
                found.append(self.swinging(k, operand))
        return found

    def still(self, operand: Value, result: Value) -> Entity:
        """A carry that never changes: the result is the operand."""
        w, scope = self.w, self.scope
        entity = w.entity(scope, operand)
        if not in_memory(result.type):
            entity = entity if isinstance(entity, Literal) else register(w, scope, operand)
            scope.env[result] = register(w, scope, operand)
        elif isinstance(operand, Literal) or operand not in scope.plan.roots:
            if result in self.used:
                w.write(scope, w.target(scope, result), operand)
        else:
            scope.env[result] = entity
        return entity

    def swinging(self, k: int, operand: Value) -> str:
        w, root = self.w, self.plan.others[k]
        first = w.target(self.scope, self.results[k])
        second = w.offset("%arena", self.base + root.offset)
        self.spare[k] = (first, second)
        entity = w.entity(self.scope, operand)
        if isinstance(entity, str):
            return entity
        w.write(self.scope, second, operand)
        return second

    # --- the head ----------------------------------------------------------------------------------
    def begin(self, first: Sequence[Entity]) -> None:
        """The head's phi nodes."""
        self.phis = _Phis(self.w)
        self.phis.start(self.head_label)
        self.count = Number(self.phis.new("i64", "0"), _I64, 1)
        self.swings: dict[int, tuple[str, str]] = {}
        for k, entity in enumerate(first):
            mode = self.plan.modes[k]
            if mode == "number" and isinstance(entity, Number):
                self.current.append(entity._replace(text=self.phis.new(entity.type, entity.text)))
            elif mode == "number":
                assert isinstance(entity, Tape)
                data, count = self.phis.new("ptr", entity.data), self.phis.new("i64", entity.length.text)
                self.current.append(Tape(data, Number(count, _I64, 1), entity.element, False))
            elif mode == "swing":
                a, b = self.spare[k]
                self.current.append(self.phis.new("ptr", str(entity)))
                self.swings[k] = (self.phis.new("ptr", a), self.phis.new("ptr", b))
                self.homes[f"carry {k}"] = self.swings[k][0]
            else:
                self.current.append(entity)

    # --- a trip ------------------------------------------------------------------------------------
    def run(self, entities: Sequence[Entity]) -> Scope:
        """The operations of the body on its parameters; tapes that do not leave it are freed at its end."""
        w = self.w
        inner = Scope(self.plan.body, self.base, self.homes)
        inner.env.update(zip(self.body.params, entities, strict=True))
        leaves = any(isinstance(value.type, TapeType) for value in self.body.results)
        head, w.head = w.head, w.head
        if not leaves and any(map(writes_tapes, self.body.operations)):
            w.head = w.tape_scope()
        w.depth += 1
        w.run(inner, self.body.operations)
        w.depth -= 1
        if w.head != head:
            self.freed = w.head
        w.head = head
        return inner

    freed = ""

    def end(self, inner: Scope) -> None:
        """Hand on the carries, and go back to the head."""
        w, phis = self.w, self.phis
        for k, value in enumerate(self.body.results[: self.carries]):
            current, mode = self.current[k], self.plan.modes[k]
            if mode == "number":
                after = register(w, inner, value)
                if isinstance(after, Number):
                    assert isinstance(current, Number)
                    phis.after[current.text] = after.text
                else:
                    assert isinstance(after, Tape) and isinstance(current, Tape)
                    phis.after[current.data], phis.after[current.length.text] = after.data, after.length.text
            elif mode == "swing":
                a, b = self.swings[k]
                put(w, inner, value, a, f"carry {k}", False)
                assert isinstance(current, str)
                phis.after[current], phis.after[a], phis.after[b] = a, b, a
            elif mode == "column":
                put(w, inner, value, self.homes[f"carry {k}"], f"carry {k}", False)
        if self.freed:
            self.e.do(f"call void @srcgrad_tapes_free(ptr {self.freed})")
        following = self.e.integer("add", self.count, 1)
        phis.after[self.count.text] = following.text
        self.poll(following)
        phis.finish()
        self.e.jump(self.head_label)
        self.e.start(self.exit_label)

    def poll(self, trips: Number) -> None:
        """Ask now and then whether the user wants to end this: after so many trips, or as inner loops have counted."""
        if self.polls is None:
            return
        e, w = self.e, self.w
        if self.polls == 0:
            ticks = w.ticks()
            before = Number(e.emit(f"load i64, ptr {ticks}, align 8"), _I64, 1)
            now = e.compare("ugt", before, POLLED)
        else:
            now = e.compare("eq", e.integer("and", trips, self.polls - 1), 0)
        asked, after, label = e.label("asked"), e.label("on"), e.label("ask")
        e.do(f"br i1 {now.text}, label %{label}, label %{after}, !prof !90")
        e.start(label)
        w.program.define("poll")
        if self.polls == 0:
            e.do(f"store i64 0, ptr {w.ticks()}, align 8")
        status = e.emit("call i32 @srcgrad_poll()")
        fine = Number(e.emit(f"icmp eq i32 {status}, 0"), BOOL, 1)
        e.branch(fine, asked, w.fail("raised"))
        e.start(asked)
        e.jump(after)
        e.start(after)

    def finish(self, trips: Number) -> None:
        """The carries' results, after the loop."""
        w = self.w
        for k in range(self.carries):
            mode, result, current = self.plan.modes[k], self.results[k], self.current[k]
            if mode == "number":
                self.scope.env[result] = current
            elif mode == "swing":
                target = self.spare[k][0]
                assert isinstance(current, str)
                if result in self.used:
                    self.copy_unless_there(target, current, bytes_of(result.type))
                self.scope.env[result] = target
            elif mode == "column" and result in self.used:
                self.last_of(k)
        if self.polls and w.depth:
            ticks = w.ticks()
            before = Number(self.e.emit(f"load i64, ptr {ticks}, align 8"), _I64, 1)
            work = self.e.integer("mul", trips, max(1, POLLED // self.polls))
            w.store(ticks, self.e.integer("add", before, work))

    def last_of(self, k: int) -> None:
        """The result of a carry that lies in a column, after the loop."""
        raise NotImplementedError

    def copy_unless_there(self, target: str, source: str, bytes: int) -> None:
        e = self.e
        there = Number(e.emit(f"icmp eq ptr {target}, {source}"), BOOL, 1)
        copy, after = e.label("copy"), e.label("there")
        e.branch(there, after, copy)
        e.start(copy)
        self.w.copy(target, source, bytes)
        e.jump(after)
        e.start(after)

    def element(self, entity: Entity, index: Number, param: Value) -> Entity:
        """The element of a column at an index."""
        w, e, type = self.w, self.e, param.type
        if isinstance(entity, Literal) and (entity.splat or isinstance(entity.type, TapeType)):
            return Literal(entity.value, type)
        if isinstance(entity, Literal):
            entity = w.program.constant(entity)
        if isinstance(entity, Tape):
            if not entity.exact:
                index = e.select(e.compare("slt", entity.length, 0), 0, index)
            entity = entity.data
        assert isinstance(entity, str)
        place = self.slot(entity, index, element_bytes(type))
        if isinstance(type, TapeType):
            return w.tape_at(place, type.element)
        return place if in_memory(type) else w.load(place, type.dtype)

    def slot(self, data: str, index: Number, bytes: int) -> str:
        shift = self.e.integer("mul", index, bytes)
        return self.e.emit(f"getelementptr inbounds i8, ptr {data}, i64 {shift.text}")


class _While(_Loop):
    def write(self) -> None:
        w, e, scope, operation = self.w, self.e, self.scope, self.operation
        condition, operands = operation.regions[0], operation.operands
        consts = [w.entity(scope, value) for value in operands[self.carries :]]
        columns = self.results[self.carries + 1 :]
        kept = [k for k, value in enumerate(columns) if value in self.used]
        sizes = {k: element_bytes(self.body.results[self.carries + k].type) for k in kept}
        start = max(4, _FIRST_BYTES // max([*sizes.values(), 1]))
        data = {k: w.reserve(start * size) for k, size in sizes.items()}
        self.begin(self.initial(operands[: self.carries], data))
        capacity = Number(self.phis.new("i64", str(start)), _I64, 1) if kept else None
        heads = {k: self.phis.new("ptr", pointer) for k, pointer in data.items()}
        carried = self.plan.columns.items()
        for k, column in carried:
            self.current[k] = self.slot(heads[column], self.count, sizes[column])
        test = Scope(self.plan.condition, self.base, {})  # type: ignore[arg-type]
        test.env.update(zip(condition.params, [*self.current, *consts], strict=True))
        w.depth += 1
        w.run(test, condition.operations)
        w.depth -= 1
        e.branch(w.number(test, condition.results[0]), self.body_label, self.exit_label)
        e.start(self.body_label)
        grown = self.grow(capacity, heads, sizes) if capacity is not None else {}
        slots = {k: self.slot(pointer, self.count, sizes[k]) for k, pointer in grown.items()}
        self.homes.update({f"column {k}": slot for k, slot in slots.items()})
        for k in range(len(columns)):
            if k not in slots:  # a column that nothing reads has a place, which is written again and again
                self.homes[f"column {k}"] = w.nowhere(self.body.results[self.carries + k].type)
        for k, column in carried:
            following = e.integer("add", self.count, 1)
            self.homes[f"carry {k}"] = self.slot(grown[column], following, sizes[column])
        begun = {k: slots[column] for k, column in carried}
        inner = self.run([*[begun.get(k, entity) for k, entity in enumerate(self.current)], *consts])
        for k, slot in slots.items():
            if k not in self.plan.columns.values():
                put(w, inner, self.body.results[self.carries + k], slot, f"column {k}", False)
        self.end(inner)
        self.finish(self.count)
        scope.env[self.results[self.carries]] = self.count
        for k in kept:
            scope.env[columns[k]] = Tape(heads[k], self.count, columns[k].type.element, True)  # type: ignore[attr-defined]

    def last_of(self, k: int) -> None:
        result, current = self.results[k], self.current[k]
        assert isinstance(current, str)
        self.w.copy(self.w.target(self.scope, result), current, bytes_of(result.type))

    def grow(self, capacity: Number, heads: dict[int, str], sizes: dict[int, int]) -> dict[int, str]:
        """Room for one more element in all tapes, and for one after it where carries lie in them."""
        e, w = self.e, self.w
        more, have, before = e.label("grow"), e.label("have"), e.block
        needed = e.integer("add", self.count, 1) if self.plan.columns else self.count
        full = e.compare("eq", needed, capacity)
        e.do(f"br i1 {full.text}, label %{more}, label %{have}, !prof !90")
        e.start(more)
        wider = e.integer("shl", capacity, 1)
        moved = {}
        for k, head in heads.items():
            bytes = e.integer("mul", wider, sizes[k])
            w.program.define("tapes")
            moved[k] = e.emit(f"call ptr @srcgrad_tape_grow(ptr {w.head}, ptr {head}, i64 {bytes.text})")
            w.require_pointer(moved[k])
        end = e.block
        e.jump(have)
        e.start(have)
        found = {}
        for k, head in heads.items():
            found[k] = e.emit(f"phi ptr [ {head}, %{before} ], [ {moved[k]}, %{end} ]")
            self.phis.after[head] = found[k]
        room = e.phi((capacity, before), (wider, end))
        self.phis.after[capacity.text] = room.text
        return found


class _For(_Loop):
    def write(self) -> None:
        w, e, scope, operation = self.w, self.e, self.scope, self.operation
        attrs, operands = operation.attrs, list(operation.operands)
        trips, lifted = attrs["trips"], bool(attrs.get("lifted", False))
        given = w.number(scope, operands.pop(0)) if trips is None else e.constant(trips, _I64, 1)
        total = given
        if trips is None:
            total = e.select(e.compare("slt", given, 0), 1 if lifted else 0, given)
        consts_end = self.carries + attrs["consts"]
        made = self.columns(total, given, lifted)
        self.last = {k: w.target(scope, self.results[k]) for k in self.plan.columns}
        self.shifts = {c: element_bytes(self.body.results[self.carries + c].type) for c in self.plan.columns.values()}
        first = self.initial(operands[: self.carries], self.starts(made, total))
        consts = [w.entity(scope, value) for value in operands[self.carries : consts_end]]
        columns = [w.entity(scope, value) for value in operands[consts_end:]]
        self.begin(first)
        e.branch(e.compare("slt", self.count, total), self.body_label, self.exit_label)
        e.start(self.body_label)
        index = self.count
        if attrs["reverse"]:
            index = e.binary("sub", e.binary("sub", total, 1), self.count)
        if len(columns) + len(made) > MANY:
            index = e.hidden(index)
        params = self.body.params[1 + consts_end :]
        read = self.plan.body.last
        elements: list[Entity] = [
            self.element(column, index, param) if param in read else e.constant(0, _I64, 1)
            for column, param in zip(columns, params, strict=True)
        ]
        slots = {}
        for k, value in enumerate(self.body.results[self.carries :]):
            slots[k] = self.slot(made[k], index, element_bytes(value.type)) if k in made else w.nowhere(value.type)
        self.homes.update({f"column {k}": slot for k, slot in slots.items()})
        for k, column in self.plan.columns.items():
            self.current[k] = slots[column]
            self.homes[f"carry {k}"] = self.following(k, made[column], index, total)
        inner = self.run([index, *self.current, *consts, *elements])
        for k, slot in slots.items():
            if k in made and k not in self.plan.columns.values():
                put(w, inner, self.body.results[self.carries + k], slot, f"column {k}", False)
        self.end(inner)
        self.finish(total)

    def starts(self, made: Mapping[int, str], total: Number) -> dict[int, str]:
        """Per column in which a carry lies where it is before the first trip: where the result is if there is none."""
        e, found = self.e, dict[int, str]()
        if not self.plan.columns:
            return found
        index = e.binary("sub", total, 1) if self.operation.attrs["reverse"] else e.constant(0, _I64, 1)
        some = e.compare("sgt", total, 0)
        for k, column in self.plan.columns.items():
            found[column] = chosen(e, some, self.slot(made[column], index, self.shifts[column]), self.last[k])
        return found

    def following(self, k: int, data: str, index: Number, total: Number) -> str:
        """Where a trip writes a carry that lies in a column: for the next trip, or from the last one to the result."""
        e, back = self.e, self.operation.attrs["reverse"]
        after = e.integer("add", index, -1 if back else 1)
        others = e.compare("sge", after, 0) if back else e.compare("slt", after, total)
        return chosen(e, others, self.slot(data, after, self.shifts[self.plan.columns[k]]), self.last[k])

    def last_of(self, k: int) -> None:
        self.scope.env[self.results[k]] = self.last[k]

    def columns(self, total: Number, given: Number, lifted: bool) -> dict[int, str]:
        """Where the columns that are read begin; the tapes among them are made."""
        w, e, found = self.w, self.e, {}
        for k, result in enumerate(self.results[self.carries :]):
            if result not in self.used:
                continue
            if not isinstance(result.type, TapeType):
                found[k] = w.target(self.scope, result)
                continue
            size = max(element_bytes(result.type.element), 1)
            few = e.compare("ult", total, _LARGEST // size)
            found[k] = w.reserve(e.select(few, e.integer("mul", total, size), _LARGEST))
            count = given if lifted else total
            self.scope.env[result] = Tape(found[k], count, result.type.element, not lifted)
        return found
