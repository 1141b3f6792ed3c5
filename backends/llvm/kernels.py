"""Groups and nests as functions in LLVM IR, whole or in chunks that the workers' threads share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from srcgrad.backends.llvm.access import ARENA, INT64, Place
from srcgrad.backends.llvm.ahead import ahead_of_group, ahead_of_nest, ahead_of_writes
from srcgrad.backends.llvm.bodies import Body, Span
from srcgrad.backends.llvm.boxes import boxes_of
from srcgrad.backends.llvm.chunks import PER_ADDITION, PER_BYTE, Chunks, bytes_of_part, chunks_of, parted_folds
from srcgrad.backends.llvm.emitter import BOOL, Emitter, Number
from srcgrad.backends.llvm.loops import Fold, Group
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.planning import bytes_of
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.trips import Trip, counted_loop
from srcgrad.ir.core import Value

CELL: Final = "@srcgrad_workers"
"""Where the function is that runs chunks on several threads; null where there is none (``workers.py``)."""
_LINE: Final = 64
STREAMED: Final = 16 << 20
"""The bytes of outputs from which they are written past the caches, which they would fill."""
NOWHERE: Final[Mapping[Value, Place]] = MappingProxyType({})
APART: Final[Mapping[Value, Value]] = MappingProxyType({})
_LIGHT: Final = 10
"""How many times as long as its outputs take to memory a kernel may take that writes them past the caches.

Lines that are written through the caches are first read, which is a third of all that moves in a gradient with as many
outputs as inputs: on one thread it costs a fifth of the time of 96 additions for each element, on two a third.
"""


def kernel_text(
    group: Group | Nest, target: Target, name: str, places: Mapping[Value, Place] = NOWHERE,
    over: Mapping[Value, Value] = APART, plain: bool = False,
) -> tuple[str, Emitter]:  # fmt: skip
    """The function ``@NAME_loops``, from pointers of inputs and outputs to nothing, and what it needs declared.

    There is no pointer of what is in ``places``, but one to `ARENA`, where each has its place. Nor is there one of
    outputs ``over`` an input: they are written to its memory. ``plain``: it is generated at level 0.
    """
    if isinstance(group, Group) and (boxes := boxes_of(group, target)):
        return boxed_text(group, boxes, target, name, places, over, plain)
    return _Kernel(group, target, name, places, over, plain).text()


def boxed_text(
    group: Group, boxes: Sequence[Group], target: Target, name: str, places: Mapping[Value, Place],
    over: Mapping[Value, Value], plain: bool,
) -> tuple[str, Emitter]:  # fmt: skip
    """The function of a group that calls those of its boxes, one after the other."""
    whole, texts = _Kernel(group, target, name, places, over, plain), list[str]()
    whole.body(group).begin(group.folds)
    for number, box in enumerate(boxes):
        text, emitter = _Kernel(box, target, f"{name}_box{number}", places, over, plain).text()
        texts.append(text)
        whole.e.declarations |= emitter.declarations
        whole.e.definitions.update(emitter.definitions)
        whole.e.do(f"call void @{name}_box{number}_loops({', '.join(f'ptr {pointer}' for pointer in whole.pointers)})")
    return "\n".join([*texts, whole.function(whole.head())]), whole.e


class _Part(NamedTuple):
    """A fold of which each chunk gives a part: ``size`` numbers, from ``place`` on, in bytes, for all chunks."""

    group: Group
    fold: Fold
    size: int
    place: int


class _Kernel:
    """The state of writing one kernel."""

    def __init__(
        self, group: Group | Nest, target: Target, name: str, places: Mapping[Value, Place],
        over: Mapping[Value, Value], plain: bool,
    ) -> None:  # fmt: skip
        self.group = group
        self.plain = plain
        self.over = over
        self.name = name
        self.target = target
        self.e = self.emitter()
        self.names: dict[Value, str] = {value: f"%in{k}" for k, value in enumerate(group.inputs)}
        self.names |= {value: f"%out{k}" for k, value in enumerate(group.outputs)}
        self.names |= {value: self.names[operand] for value, operand in over.items()}
        self.fixed = {self.names[value]: place for value, place in places.items()}
        changed, self.params = set(over.values()), list[str]()
        for value in group.inputs:
            self.params.append(f"ptr noalias nocapture {'' if value in changed else 'readonly '}{self.names[value]}")
        self.params += [f"ptr noalias nocapture {self.names[value]}" for value in group.outputs if value not in over]
        self.params = [param for param in self.params if param.split()[-1] not in self.fixed]
        self.params += [f"ptr noalias nocapture {ARENA}"] if places else []
        self.pointers = [param.split()[-1] for param in self.params]
        self.chunks = chunks_of(group, target)

    def emitter(self) -> Emitter:
        found = Emitter(1, self.target.features, outlined=self.group.outlined, plain=self.plain)
        found.flags = ""  # which products and sums are rounded once, the group says
        return found

    def function(self, head: str) -> str:
        width = 8 * self.target.vector_bytes
        attributes = f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" {self.target.probes}'
        first = f"define internal void {head} nounwind {attributes} {{"
        return "\n".join([first, "entry:", *self.e.rooms, *self.e.lines, "  ret void", "}", ""])

    def head(self) -> str:
        return f"@{self.name}_loops({', '.join(self.params)})"

    def text(self) -> tuple[str, Emitter]:
        head = self.head()
        if self.chunks is None:
            if self.begin():
                self.loops({})
            return self.function(head), self.e
        parts = [self.part(self.chunks), self.unpacking()]
        part, self.e = self.e, self.emitter()
        self.dispatch(self.chunks)
        self.e.declarations |= part.declarations | {f"{CELL} = external global ptr"}
        self.e.definitions.update(part.definitions)
        return "\n".join([*parts, self.function(head)]), self.e

    # --- loops -------------------------------------------------------------------------------------
    def body(self, group: Group, spans: dict[int, Span] | None = None, first: int = 0) -> Body:
        ins, outs = ([self.names.get(value, "") for value in values] for values in (group.inputs, group.outputs))
        found = Body(group, self.target, self.e, ins, outs, spans, first)
        found.fixed = self.fixed
        found.parts = places_of(frozenset(group.updates), group)
        if isinstance(self.group, Group):
            found.ahead = ahead_of_group(group, found.shape, self.target)
            found.written_ahead = ahead_of_writes(group, found.shape) if found.ahead else 0
        steps = [0 if self.chunks is None else self.chunks.length]
        if isinstance(self.group, Nest):
            steps.append(self.group.block if self.group.block < self.group.domain[-1] else 0)
        found.whole = not any(step % found.lanes for step in steps)
        return found

    def phases(self) -> list[Group]:
        return self.group.phases if isinstance(self.group, Nest) else [self.group]

    def begin(self, but: Collection[Value] = ()) -> bool:
        """What is done once, before all loops, for all outputs ``but`` some; whether there is anything to do then."""
        for group in self.phases():
            if group.added or (not group.folds and 0 not in group.domain):
                continue
            body = self.body(group)
            if body.is_empty():
                return False
            body.begin([fold for fold in self.lasting(group) if group.outputs[fold.output] not in but])
        return True

    def lasting(self, group: Group) -> list[Fold]:
        """The folds that several rounds of the loops add to."""
        if isinstance(self.group, Nest):
            return [fold for fold in group.folds if min(fold.axes) < self.group.outer]
        if not group.folds:
            return []
        body = self.body(group)
        return [fold for fold in group.folds if body.accumulates(fold)]

    def loops(self, spans: dict[int, Span]) -> None:
        """All loops, or those of a chunk."""
        streamed = streamed_outputs(self.group, self.target) - self.over.keys()  # those are in cache
        if not streamed:
            self.run(spans)
            return
        e = self.e
        past, through, after = e.label("past"), e.label("through"), e.label("after")
        e.branch(self.are_aligned(streamed), past, through)
        e.start(past)
        self.run(spans, streamed)
        e.do("fence seq_cst")  # what was written past the caches is seen before what comes after
        e.jump(after)
        e.start(through)
        self.run(spans)
        e.jump(after)
        e.start(after)

    def run(self, spans: dict[int, Span], streamed: frozenset[Value] = frozenset()) -> None:
        """The loops, which write these outputs past the caches."""
        if isinstance(self.group, Nest):
            _NestWriter(self, self.group, spans, streamed).enter(0)
            return
        body = self.body(self.group, spans)
        body.streamed = places_of(streamed, self.group)
        body.run()

    def are_aligned(self, outputs: frozenset[Value]) -> Number:
        """Whether all these begin at a multiple of 64 bytes."""
        e = self.e
        found = e.constant(0, INT64, 1)
        for name in sorted([self.names[value] for value in outputs]):
            pointer = ARENA if name in self.fixed else name  # in which all begin at such a place
            found = e.integer("or", found, Number(e.emit(f"ptrtoint ptr {pointer} to i64"), INT64, 1))
        return e.compare("eq", e.integer("and", found, _LINE - 1), 0)

    # --- chunks ------------------------------------------------------------------------------------
    def parts(self, chunks: Chunks) -> dict[Value, _Part]:
        found: dict[Value, _Part] = {}
        place = 0
        for group, fold in parted_folds(self.group, chunks.axis):
            value = group.outputs[fold.output]
            found[value] = _Part(group, fold, value.type.size, place)
            place += bytes_of_part(value) * chunks.parts
        return found

    def part(self, chunks: Chunks) -> str:
        """``@NAME_part``: one chunk."""
        e, known = self.e, dict(self.names)
        chunk = Number("%chunk", INT64, 1)
        start = e.integer("mul", chunk, chunks.length)
        last = e.compare("eq", chunk, chunks.parts - 1)
        stop = e.select(last, chunks.size, e.integer("add", start, chunks.length))
        for value, part in self.parts(chunks).items():
            place = e.integer("add", e.integer("mul", chunk, bytes_of_part(value)), part.place)
            self.names[value] = e.emit(f"getelementptr inbounds i8, ptr %partials, i64 {place.text}")
        for part in self.parts(chunks).values():
            if part.fold in self.lasting(part.group):
                self.body(part.group).begin([part.fold])
        self.loops({chunks.axis: Span(start, stop, last)})
        self.names = known
        params = [*self.params, "ptr noalias nocapture %partials", "i64 %chunk"]
        return self.function(f"@{self.name}_part({', '.join(params)})")

    def unpacking(self) -> str:
        """``@NAME_chunk``: a chunk from a block of pointers, as the workers call it."""
        lines = [f"define internal void @{self.name}_chunk(ptr %block, i64 %chunk) nounwind {{"]
        names = [*self.pointers, "%partials"]
        for k, name in enumerate(names):
            lines.append(f"  %place{k} = getelementptr inbounds ptr, ptr %block, i64 {k}")
            lines.append(f"  {name} = load ptr, ptr %place{k}, align 8")
        given = ", ".join(f"ptr {name}" for name in names)
        lines.append(f"  call void @{self.name}_part({given}, i64 %chunk)")
        return "\n".join([*lines, "  ret void", "}", ""])

    def dispatch(self, chunks: Chunks) -> None:
        """``@NAME_loops``: the chunks on all threads, or one by one, and then the folds of their parts, in order."""
        e, name, parts = self.e, self.name, self.parts(chunks)
        size = sum(bytes_of_part(value) * chunks.parts for value in parts)
        partials = e.room(f"[{size} x i8]", _LINE)
        block = e.room(f"[{len(self.pointers) + 1} x ptr]", 8)
        for k, pointer in enumerate([*self.pointers, partials]):
            e.do(f"store ptr {pointer}, ptr {e.emit(f'getelementptr inbounds ptr, ptr {block}, i64 {k}')}, align 8")
        self.begin(but=parts)
        run = e.emit(f"load atomic ptr, ptr {CELL} monotonic, align 8")
        none = Number(e.emit(f"icmp eq ptr {run}, null"), BOOL, 1)
        alone, together, done = e.label("alone"), e.label("together"), e.label("done")
        e.branch(none, alone, together)
        e.start(together)
        e.do(f"call void {run}(ptr @{name}_chunk, ptr {block}, i64 {chunks.parts})")
        e.jump(done)
        e.start(alone)

        def one(index: Number, carried: list[Number]) -> list[Number]:
            e.do(f"call void @{name}_chunk(ptr {block}, i64 {index.text})")
            return carried

        counted_loop(e, 0, chunks.parts, 1, [], one)
        e.jump(done)
        e.start(done)
        for value, part in parts.items():
            first = e.emit(f"getelementptr inbounds i8, ptr {partials}, i64 {part.place}")
            self.combine(chunks, part, first, bytes_of_part(value))

    def combine(self, chunks: Chunks, part: _Part, first: str, step: int) -> None:
        """Fold the parts of all chunks, in order: vectors of results, then single ones."""
        body, e, fold = self.body(part.group), self.e, part.fold
        lanes = self.target.vector_bytes // body.dtype_of(fold).itemsize
        whole = part.size // lanes * lanes

        def results(lanes: int) -> Trip:
            def trip(place: Number, carried: list[Number]) -> list[Number]:
                def add(chunk: Number, state: list[Number]) -> list[Number]:
                    pointer = e.emit(f"getelementptr i8, ptr {first}, i64 {e.integer('mul', chunk, step).text}")
                    return body.absorb(fold, state, body.load_numbers(pointer, place, body.dtype_of(fold), lanes))

                state = body.beginning(fold, lanes)
                if part.group.added:
                    there = body.load_numbers(body.outputs[fold.output], place, body.dtype_of(fold), lanes)
                    state = body.absorb(fold, state, there)
                state = counted_loop(e, 0, chunks.parts, 1, state, add)
                body.store(fold.output, place, 1, body.settled(state), body.dtype_of(fold), None)
                return carried

            return trip

        if whole:
            counted_loop(e, 0, whole, lanes, [], results(lanes))
        if part.size > whole:
            counted_loop(e, whole, part.size, 1, [], results(1))


def streamed_outputs(group: Group | Nest, target: Target) -> frozenset[Value]:
    """The outputs that are written past the caches: none that a later phase of a nest reads, from them."""
    phases = group.phases if isinstance(group, Nest) else [group]
    stored = {phase.outputs[store.output] for phase in phases for store in phase.stores}
    stored.difference_update(*[phase.updates for phase in phases])
    if isinstance(group, Nest):
        stored.difference_update(group.locals, *[phase.inputs for phase in phases])
    size = sum([bytes_of(value.type) for value in stored])
    light = PER_ADDITION * group.work() <= _LIGHT * PER_BYTE * size
    return frozenset(stored) if light and size >= STREAMED and target.vector_bytes > 16 else frozenset()


def places_of(values: frozenset[Value], group: Group) -> frozenset[int]:
    """Which outputs of a group these are."""
    return frozenset([k for k, value in enumerate(group.outputs) if value in values])


class _NestWriter:
    """The state of writing the loops of a nest: outer ones, and all phases for one block of rows."""

    def __init__(self, kernel: _Kernel, nest: Nest, spans: dict[int, Span], streamed: frozenset[Value]) -> None:
        self.kernel = kernel
        self.nest = nest
        self.spans = spans
        self.streamed = streamed
        self.e = kernel.e
        self.rooms = {value: self.room(value) for value in nest.locals}
        self.indices: list[Number] = []

    def room(self, value: Value) -> str:
        size = self.nest.row_size(value) * self.nest.block * value.type.dtype.itemsize
        return self.e.room(f"[{size} x i8]", _LINE)

    def enter(self, axis: int) -> None:
        size, span = self.nest.domain[axis], self.spans.get(axis)
        start: Number | int = 0 if span is None else span.start
        stop: Number | int = size if span is None else span.stop
        if axis < self.nest.outer - 1:

            def inside(index: Number, carried: list[Number]) -> list[Number]:
                self.indices.append(index)
                self.enter(axis + 1)
                self.indices.pop()
                return carried

            counted_loop(self.e, start, stop, 1, [], inside)
            return

        def block(index: Number, carried: list[Number]) -> list[Number]:
            end = self.e.integer("add", index, self.nest.block)
            self.block(axis, Span(index, self.e.lesser(end, self.e.like(stop, end)), None))
            return carried

        counted_loop(self.e, start, stop, self.nest.block, [], block)

    def block(self, axis: int, rows: Span) -> None:
        """All phases for some rows."""
        first, last = self.flat(rows.start), self.flat(rows.stop)
        names = self.kernel.names
        for value, room in self.rooms.items():
            back = self.e.integer("mul", first, -self.nest.row_size(value) * value.type.dtype.itemsize)
            names[value] = self.e.emit(f"getelementptr i8, ptr {room}, i64 {back.text}")
        moved = frozenset(names[value] for value in self.rooms)
        bodies = [self.kernel.body(phase, {axis: rows}, axis) for phase in self.nest.phases]
        ahead = ahead_of_nest(self.nest, [body.lanes for body in bodies], self.kernel.target)
        for body, places in zip(bodies, ahead, strict=True):
            body.moved, body.ahead, body.streamed = moved, places, places_of(self.streamed, body.group)
            body.begin_rows(first, last, self.nest.row_size)
            body.run(self.indices)

    def flat(self, index: Number) -> Number:
        """The number of a row among all."""
        found = self.e.constant(0, INT64, 1)
        for size, outer in zip(self.nest.domain, [*self.indices, index], strict=True):
            found = self.e.integer("add", self.e.integer("mul", found, size), outer)
        return found
