"""Groups as LLVM IR: explicit vectors, and a tail under a mask or number by number.

The last axis of a group is the vectors' loop; what varies along outer axes alone is computed in the outer loops. A fold
over the last axes has accumulators in registers (several, where the loop is light), whose order depends on the shape
alone. Long sums of floats are compensated from block to block. A fold over other axes adds to its output in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, DType, Emitter, Number, scalar_name
from srcgrad.backends.llvm.indices import Line
from srcgrad.backends.llvm.loops import Compute, Constant, Fold, Group, Iota, Load, empty_result
from srcgrad.backends.llvm.target import Target

BLOCK: Final = 4096
"""Elements after which the sums so far are added up with compensation; longer sums lose no digits to their length."""
HEAVY: Final = 200
"""The cost of a body, in additions, from which there is one copy of it, under a mask."""
_INT64: Final = np.dtype(np.int64)
Body = Callable[[Number, list[Number]], list[Number]]


def kernel_text(group: Group, target: Target) -> tuple[str, Emitter]:
    """The function ``@NAME_loops``, from pointers of inputs and outputs to nothing, and what it needs declared."""
    kernel = _Kernel(group, target)
    kernel.write()
    inputs = [f"ptr noalias nocapture readonly %in{k}" for k in range(len(group.inputs))]
    outputs = [f"ptr noalias nocapture %out{k}" for k in range(len(group.outputs))]
    width = 8 * target.vector_bytes
    attributes = f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
    head = f"define internal void @{group.name}_loops({', '.join(inputs + outputs)}) nounwind {attributes} {{"
    return "\n".join([head, "entry:", *kernel.e.lines, "  ret void", "}", ""]), kernel.e


def memory_name(dtype: DType) -> str:
    """The type of a number in memory: bool is a byte."""
    return "i8" if dtype == BOOL else scalar_name(dtype)


class _Kernel:
    """The state of writing one group."""

    def __init__(self, group: Group, target: Target) -> None:
        self.group = group
        self.target = target
        self.rank = len(group.domain)
        self.depths = group.depths()
        self.e = Emitter(1, target.features)
        self.scalars: dict[int, Number] = {}
        """Statements outside of the innermost loop."""
        self.splats: dict[int, Number] = {}
        self.bases: dict[tuple[int, tuple[int, ...]], Number] = {}
        """Offsets by what is known of a line: its offset and the strides of the loops that are entered."""
        self.indices: list[Number] = []
        self.lanes = self.choose_lanes()
        self.work = sum(scalars.cost(item.operation) for item in group.statements if isinstance(item, Compute))
        self.unroll = self.choose_unroll()
        self.heavy = self.is_heavy()
        self.slots: dict[int, list[str]] = {}
        self.inner_folds = [fold for fold in group.folds if self.rank - 1 in fold.axes]
        self.outer_folds = [fold for fold in group.folds if self.rank - 1 not in fold.axes]

    # --- choices -----------------------------------------------------------------------------------
    def choose_lanes(self) -> int:
        """As many as fill a register with the widest numbers that are computed with."""
        sizes = [self.element_bytes(item.dtype) for item in self.group.statements]
        sizes += [1] if not sizes else []
        return max(1, self.target.vector_bytes // max(sizes)) if self.rank else 1

    @staticmethod
    def element_bytes(dtype: DType) -> int:
        return 4 if dtype == scalars.F16 else dtype.itemsize

    def choose_unroll(self) -> int:
        if not self.rank:
            return 1
        return 4 if self.work <= 10 else 2 if self.work <= 24 and self.group.folds else 1

    def is_heavy(self) -> bool:
        """Whether the body is so long that its second copy, for a tail, would cost more than masks in the loop."""
        size = self.group.domain[-1] if self.rank else 0
        return self.target.masked and self.work > HEAVY and self.unroll == 1 and size % self.lanes > 0

    def run_of(self, fold: Fold) -> int:
        """The first of the last axes that all are folded."""
        axis = self.rank
        while axis and axis - 1 in fold.axes:
            axis -= 1
        return axis

    def accumulates(self, fold: Fold) -> bool:
        """Whether the output is added to, rather than written once."""
        return any(axis < self.run_of(fold) for axis in fold.axes)

    def compensated(self, fold: Fold) -> bool:
        count = 1
        for axis in range(self.run_of(fold), self.rank):
            count *= self.group.domain[axis]
        dtype = self.group.statements[fold.statement].dtype
        return fold.name == "reduce_sum" and dtype.kind == "f" and count > BLOCK

    # --- the function ------------------------------------------------------------------------------
    def write(self) -> None:
        if 0 in self.group.domain:
            for fold in self.group.folds:
                dtype = self.dtype_of(fold)
                self.fill(fold.output, empty_result(fold.name, dtype), dtype)
            return
        for position, fold in enumerate(self.inner_folds):
            if self.run_of(fold) < self.rank - 1:
                self.slots[position] = [self.alloca(fold) for _ in range(1 + self.compensated(fold))]
        for fold in self.group.folds:
            if self.accumulates(fold):
                self.fill(fold.output, scalars.identity(fold.name, self.dtype_of(fold)), self.dtype_of(fold))
        self.level(0)

    def dtype_of(self, fold: Fold) -> DType:
        return self.group.statements[fold.statement].dtype

    def alloca(self, fold: Fold) -> str:
        return self.e.emit(f"alloca {Number('', self.dtype_of(fold), self.lanes).type}, align 64")

    def fill(self, output: int, value: Any, dtype: DType) -> None:
        """Write one number everywhere into an output."""
        size = self.group.outputs[output].type.size
        if not size:
            return
        number = self.to_memory(self.e.constant(value, dtype, 1))

        def body(index: Number, carried: list[Number]) -> list[Number]:
            name = memory_name(dtype)
            place = self.e.emit(f"getelementptr inbounds {name}, ptr %out{output}, i64 {index.text}")
            self.e.do(f"store {name} {number.text}, ptr {place}, align {dtype.itemsize}")
            return carried

        self.loop(0, size, 1, [], body)

    def level(self, depth: int) -> None:
        """The loops from ``depth`` on, and what stands before them."""
        group = self.group
        known = dict(self.bases)
        for line in group.lines():
            self.base(line, depth)
        for number, item in enumerate(group.statements):
            if self.depths[number] == depth and depth < max(self.rank, 1) and not isinstance(item, Constant):
                self.scalars[number] = self.compute(number, 1, self.scalars, None, None)
        if depth == self.rank:
            self.sink_numbers()
        else:
            self.enter(depth)
        self.bases = known

    def sink_numbers(self) -> None:
        """The stores of a group of no axes."""
        for store in self.group.stores:
            dtype = self.group.statements[store.statement].dtype
            value = self.operand(store.statement, 1, self.scalars)
            self.store(store.output, self.base(store.line, 0), 1, value, dtype, None)

    def enter(self, depth: int) -> None:
        starting = [k for k, fold in enumerate(self.inner_folds) if self.run_of(fold) == depth]
        for position in starting:
            fold = self.inner_folds[position]
            start = self.identity(fold, self.lanes)
            for slot, value in zip(self.slots.get(position, ()), (start, self.zero(fold)), strict=False):
                self.e.do(f"store {value.type} {value.text}, ptr {slot}, align 64")
        if depth == self.rank - 1:
            self.innermost(starting)
            return

        def body(index: Number, carried: list[Number]) -> list[Number]:
            self.indices.append(index)
            self.level(depth + 1)
            self.indices.pop()
            return carried

        self.loop(0, self.group.domain[depth], 1, [], body)
        for position in starting:
            fold = self.inner_folds[position]
            self.finish(fold, [self.load_slot(fold, slot) for slot in self.slots[position]], None)

    # --- the innermost loop ------------------------------------------------------------------------
    def innermost(self, starting: Sequence[int]) -> None:
        """Blocks of several vectors, then single vectors, then the tail."""
        size, lanes, step = self.group.domain[-1], self.lanes, self.lanes * self.unroll
        self.splats = {}
        whole, vectors = size // step * step, size // lanes * lanes
        if self.heavy:
            whole = vectors = -(-size // lanes) * lanes
        rest = max(size - vectors, 0)
        folds = self.inner_folds
        for number in self.used_inside():
            if number in self.scalars:
                self.splats[number] = self.e.splat(self.scalars[number], lanes)
        states = [self.initial(position) for position in range(len(folds))]
        if whole:
            states = self.blocks(whole, step, states)
        if vectors > whole:
            found = self.loop(whole, vectors, lanes, self.identities(lanes), self.vector_body(1))
            states = self.absorbed(states, found)
        extra: list[Number | None] = [None] * len(folds)
        if rest and (self.target.masked or lanes == 1):
            mask = Number(f"<{', '.join(['i1 1'] * rest + ['i1 0'] * (lanes - rest))}>", BOOL, lanes)
            start = self.e.constant(vectors, _INT64, 1)
            states = self.absorbed(states, self.body(start, lanes, self.identities(lanes), mask))
        elif rest:
            found = self.loop(vectors, size, 1, self.identities(1), lambda k, accs: self.body(k, 1, accs, None))
            extra = list(found)
        for position, fold in enumerate(folds):
            if position in starting:
                self.finish(fold, states[position], extra[position])
                continue
            if extra[position] is not None:
                states[position] = self.absorb(fold, states[position], self.in_lane(fold, extra[position]))
            for slot, value in zip(self.slots[position], states[position], strict=True):
                self.e.do(f"store {value.type} {value.text}, ptr {slot}, align 64")

    def used_inside(self) -> list[int]:
        found: dict[int, None] = {}
        for number, item in enumerate(self.group.statements):
            if self.depths[number] == self.rank and isinstance(item, Compute):
                found.update(dict.fromkeys(item.operands))
        found.update(dict.fromkeys(store.statement for store in self.group.stores))
        found.update(dict.fromkeys(fold.statement for fold in self.group.folds))
        return list(found)

    def initial(self, position: int) -> list[Number]:
        fold = self.inner_folds[position]
        if position in self.slots and self.run_of(fold) < self.rank - 1:
            return [self.load_slot(fold, slot) for slot in self.slots[position]]
        start = self.identity(fold, self.lanes)
        return [start, self.zero(fold)] if self.compensated(fold) else [start]

    def load_slot(self, fold: Fold, slot: str) -> Number:
        like = Number("", self.dtype_of(fold), self.lanes)
        return like._replace(text=self.e.emit(f"load {like.type}, ptr {slot}, align 64"))

    def blocks(self, whole: int, step: int, states: list[list[Number]]) -> list[list[Number]]:
        """The loop over several vectors a trip; of a long one, the accumulators are added up block by block."""
        count = len(self.inner_folds)
        body = self.vector_body(self.unroll)
        block = BLOCK // step * step
        long = whole > block and any(self.compensated(fold) for fold in self.inner_folds)

        def gathered(accs: list[Number]) -> list[Number]:
            found = accs[:count]
            for k in range(count, len(accs)):
                found[k % count] = self.combine(self.inner_folds[k % count], found[k % count], accs[k])
            return found

        start = self.identities(self.lanes) * self.unroll
        if not long:
            return self.absorbed(states, gathered(self.loop(0, whole, step, start, body)))

        def outer(index: Number, carried: list[Number]) -> list[Number]:
            end = self.e.integer("add", index, block)
            end = self.e.select(self.e.compare("ult", end, whole), end, whole)
            accs = gathered(self.loop(index, end, step, start, body))
            return [value for state in self.absorbed(self.unflat(carried), accs) for value in state]

        return self.unflat(self.loop(0, whole, block, [value for state in states for value in state], outer))

    def unflat(self, values: list[Number]) -> list[list[Number]]:
        found, position = [], 0
        for fold in self.inner_folds:
            width = 1 + self.compensated(fold)
            found.append(values[position : position + width])
            position += width
        return found

    def vector_body(self, times: int) -> Body:
        count = len(self.inner_folds)

        def body(index: Number, carried: list[Number]) -> list[Number]:
            found: list[Number] = []
            mask = self.below_size(index) if self.heavy else None
            for copy in range(times):
                at = self.e.integer("add", index, copy * self.lanes) if copy else index
                found += self.body(at, self.lanes, carried[copy * count : (copy + 1) * count], mask)
            return found

        return body

    def below_size(self, index: Number) -> Number:
        """Which lanes are in the domain."""
        lanes = ", ".join(f"i64 {k}" for k in range(self.lanes))
        places = self.e.integer("add", self.e.splat(index, self.lanes), Number(f"<{lanes}>", _INT64, self.lanes))
        return self.e.compare("ult", places, self.group.domain[-1])

    def body(self, index: Number, lanes: int, accs: list[Number], mask: Number | None) -> list[Number]:
        """All statements of the innermost loop at ``index`` and the lanes after it; the accumulators after it."""
        e = self.e
        values: dict[int, Number] = dict(self.scalars if lanes == 1 else self.splats)
        e.lanes = lanes
        for number, item in enumerate(self.group.statements):
            if self.depths[number] == self.rank and not isinstance(item, Constant):
                values[number] = self.compute(number, lanes, values, index, mask)
        for store in self.group.stores:
            value = self.operand(store.statement, lanes, values)
            self.store_at(store.output, store.line, value, index, lanes, mask)
        for fold in self.outer_folds:
            value = self.operand(fold.statement, lanes, values)
            before = self.load_at(f"%out{fold.output}", fold.line, value.dtype, index, lanes, mask)
            self.store_at(fold.output, fold.line, self.combine(fold, before, value), index, lanes, mask)
        found = []
        for fold, acc in zip(self.inner_folds, accs, strict=True):
            value = self.operand(fold.statement, lanes, values)
            if mask is not None:
                value = e.select(mask, value, self.identity(fold, lanes))
            found.append(self.combine(fold, acc, value))
        e.lanes = 1
        return found

    # --- statements --------------------------------------------------------------------------------
    def compute(
        self, number: int, lanes: int, values: dict[int, Number], index: Number | None, mask: Number | None
    ) -> Number:
        item = self.group.statements[number]
        if isinstance(item, Load):
            return self.load_at(f"%in{item.source}", item.line, item.dtype, index, lanes, mask)
        if isinstance(item, Iota):
            return self.counted(item, lanes, index)
        assert isinstance(item, Compute)
        return scalars.emit(self.e, item.operation, [self.operand(k, lanes, values) for k in item.operands])

    def operand(self, number: int, lanes: int, values: dict[int, Number]) -> Number:
        item = self.group.statements[number]
        return self.e.constant(item.value, item.dtype, lanes) if isinstance(item, Constant) else values[number]

    def counted(self, item: Iota, lanes: int, index: Number | None) -> Number:
        e, stride = self.e, item.line.strides[-1] if item.line.strides else 0
        whole = self.place(item.line, index)
        if lanes > 1:
            steps = ", ".join(f"i64 {k * stride}" for k in range(lanes))
            whole = e.integer("add", e.splat(whole, lanes), Number(f"<{steps}>", _INT64, lanes))
        return scalars.cast(e, whole, item.dtype)

    # --- memory ------------------------------------------------------------------------------------
    def base(self, line: Line, depth: int) -> Number:
        """What the loops that are entered give to the place, computed once in each."""
        key = (line.offset, line.strides[:depth])
        found = self.bases.get(key)
        if found is None:
            if not depth:
                found = self.e.constant(line.offset, _INT64, 1)
            else:
                found = self.base(line, depth - 1)
                stride = line.strides[depth - 1]
                if stride:
                    index = self.indices[depth - 1]
                    part = index if stride == 1 else self.e.integer("mul", index, stride)
                    found = self.e.integer("add", found, part)
            self.bases[key] = found
        return found

    def place(self, line: Line, index: Number | None) -> Number:
        """The place of a line, at the innermost index where that is known."""
        base = self.base(line, len(self.indices))
        stride = line.strides[-1] if line.strides and index is not None else 0
        if not stride or index is None:
            return base
        part = index if stride == 1 else self.e.integer("mul", index, stride)
        return part if base.text == "0" else self.e.integer("add", base, part)

    def load_at(
        self, pointer: str, line: Line, dtype: DType, index: Number | None, lanes: int, mask: Number | None
    ) -> Number:
        e, name = self.e, memory_name(dtype)
        stride = line.strides[-1] if line.strides and index is not None else 0
        place = self.place(line, index)
        address = e.emit(f"getelementptr inbounds {name}, ptr {pointer}, i64 {place.text}")
        if lanes == 1 or not stride:
            text = e.emit(f"load {name}, ptr {address}, align {dtype.itemsize}")
            return e.splat(self.from_memory(text, dtype, 1), lanes)
        if stride == 1:
            return self.from_memory(self.load_vector(address, name, dtype, lanes, mask), dtype, lanes)
        if stride == -1 and mask is None:
            first = e.emit(f"getelementptr inbounds {name}, ptr {address}, i64 {1 - lanes}")
            text = e.emit(f"load <{lanes} x {name}>, ptr {first}, align {dtype.itemsize}")
            order = ", ".join(f"i32 {k}" for k in reversed(range(lanes)))
            vector = f"<{lanes} x {name}>"
            text = e.emit(f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{order}>")
            return self.from_memory(text, dtype, lanes)
        pointers = self.pointers(address, name, stride, lanes)
        vector, suffix = f"<{lanes} x {name}>", f"v{lanes}{self.suffix(name)}.v{lanes}p0"
        e.declarations.add(
            f"declare {vector} @llvm.masked.gather.{suffix}(<{lanes} x ptr>, i32, <{lanes} x i1>, {vector})"
        )
        text = e.emit(
            f"call {vector} @llvm.masked.gather.{suffix}(<{lanes} x ptr> {pointers}, i32 {dtype.itemsize}, "
            f"<{lanes} x i1> {self.mask_text(mask)}, {vector} zeroinitializer)"
        )
        return self.from_memory(text, dtype, lanes)

    def load_vector(self, address: str, name: str, dtype: DType, lanes: int, mask: Number | None) -> str:
        e, vector = self.e, f"<{lanes} x {name}>"
        if mask is None:
            return e.emit(f"load {vector}, ptr {address}, align {dtype.itemsize}")
        suffix = f"v{lanes}{self.suffix(name)}.p0"
        e.declarations.add(f"declare {vector} @llvm.masked.load.{suffix}(ptr, i32, <{lanes} x i1>, {vector})")
        return e.emit(
            f"call {vector} @llvm.masked.load.{suffix}(ptr {address}, i32 {dtype.itemsize}, "
            f"<{lanes} x i1> {mask.text}, {vector} zeroinitializer)"
        )

    def store_at(self, output: int, line: Line, value: Number, index: Number, lanes: int, mask: Number | None) -> None:
        stride = line.strides[-1] if line.strides else 0
        self.store(output, self.place(line, index), stride, self.e.splat(value, lanes), value.dtype, mask)

    def store(self, output: int, place: Number, stride: int, value: Number, dtype: DType, mask: Number | None) -> None:
        e, name, lanes = self.e, memory_name(dtype), value.lanes
        value = self.to_memory(value)
        vector = name if lanes == 1 else f"<{lanes} x {name}>"
        address = e.emit(f"getelementptr inbounds {name}, ptr %out{output}, i64 {place.text}")
        if lanes == 1 or (stride == 1 and mask is None):
            e.do(f"store {vector} {value.text}, ptr {address}, align {dtype.itemsize}")
            return
        flags = f"<{lanes} x i1>"
        if stride == 1:
            function, target, given = f"@llvm.masked.store.v{lanes}{self.suffix(name)}.p0", "ptr", address
        else:
            function = f"@llvm.masked.scatter.v{lanes}{self.suffix(name)}.v{lanes}p0"
            target, given = f"<{lanes} x ptr>", self.pointers(address, name, stride, lanes)
        e.declarations.add(f"declare void {function}({vector}, {target}, i32, {flags})")
        e.do(
            f"call void {function}({vector} {value.text}, {target} {given}, i32 {dtype.itemsize}, "
            f"{flags} {self.mask_text(mask)})"
        )

    def pointers(self, address: str, name: str, stride: int, lanes: int) -> str:
        steps = ", ".join(f"i64 {k * stride}" for k in range(lanes))
        return self.e.emit(f"getelementptr inbounds {name}, ptr {address}, <{lanes} x i64> <{steps}>")

    @staticmethod
    def mask_text(mask: Number | None) -> str:
        return "splat (i1 true)" if mask is None else mask.text

    @staticmethod
    def suffix(name: str) -> str:
        return {"half": "f16", "float": "f32", "double": "f64"}.get(name, name)

    def from_memory(self, text: str, dtype: DType, lanes: int) -> Number:
        if dtype != BOOL:
            return Number(text, dtype, lanes)
        byte = Number(text, np.dtype(np.int8), lanes)
        return self.e.compare("ne", byte, 0)

    def to_memory(self, value: Number) -> Number:
        return self.e.convert("zext", value, np.dtype(np.uint8)) if value.dtype == BOOL else value

    # --- folds -------------------------------------------------------------------------------------
    def identity(self, fold: Fold, lanes: int) -> Number:
        dtype = self.dtype_of(fold)
        return self.e.constant(scalars.identity(fold.name, dtype), dtype, lanes)

    def identities(self, lanes: int) -> list[Number]:
        return [self.identity(fold, lanes) for fold in self.inner_folds]

    def zero(self, fold: Fold) -> Number:
        return self.e.constant(0, self.dtype_of(fold), self.lanes)

    def combine(self, fold: Fold, a: Number, b: Number) -> Number:
        return scalars.combine(self.e, fold.name, a, b)

    def absorbed(self, states: list[list[Number]], values: Sequence[Number]) -> list[list[Number]]:
        return [
            self.absorb(fold, state, value) for fold, state, value in zip(self.inner_folds, states, values, strict=True)
        ]

    def absorb(self, fold: Fold, state: list[Number], value: Number) -> list[Number]:
        """A state with accumulators added: a number, or a sum and what its rounding has lost (Neumaier's two-sum)."""
        if len(state) == 1:
            return [self.combine(fold, state[0], value)]
        total, lost = state
        with self.e.strict():
            after = self.combine(fold, total, value)
            gained = self.e.sub(after, total)
            error = self.e.add(self.e.sub(total, self.e.sub(after, gained)), self.e.sub(value, gained))
            return [after, self.e.add(lost, error)]

    def settled(self, state: list[Number]) -> Number:
        """A state as one vector; what was lost counts where it is a number other than 0, so that -0.0 and inf stay."""
        if len(state) == 1:
            return state[0]
        e, (total, lost) = self.e, state
        counts = e.binary("and", e.compare("une", lost, 0.0), e.compare("ord", lost, lost))
        return e.select(counts, e.add(total, lost), total)

    def in_lane(self, fold: Fold, value: Number | None) -> Number:
        """A vector of the identity, with one number in the first lane."""
        assert value is not None
        start = self.identity(fold, self.lanes)
        text = self.e.emit(f"insertelement {start.type} {start.text}, {value.type} {value.text}, i64 0")
        return start._replace(text=text)

    def finish(self, fold: Fold, state: list[Number], extra: Number | None) -> None:
        """Add up the lanes by halves, and write the result."""
        e, value = self.e, self.settled(state)
        while value.lanes > 1:
            half = value.lanes // 2
            low, high = (self.part(value, start, half) for start in (0, half))
            value = self.combine(fold, low, high)
        if extra is not None:
            value = self.combine(fold, value, extra)
        depth = len(self.indices)
        place = self.base(fold.line, depth)
        name = memory_name(value.dtype)
        if self.accumulates(fold):
            address = e.emit(f"getelementptr inbounds {name}, ptr %out{fold.output}, i64 {place.text}")
            text = e.emit(f"load {name}, ptr {address}, align {value.dtype.itemsize}")
            value = self.combine(fold, self.from_memory(text, value.dtype, 1), value)
        self.store(fold.output, place, 0, value, value.dtype, None)

    def part(self, value: Number, start: int, count: int) -> Number:
        if count == 1:
            text = self.e.emit(f"extractelement {value.type} {value.text}, i64 {start}")
        else:
            order = ", ".join(f"i32 {start + k}" for k in range(count))
            text = self.e.emit(
                f"shufflevector {value.type} {value.text}, {value.type} poison, <{count} x i32> <{order}>"
            )
        return Number(text, value.dtype, count)

    # --- loops -------------------------------------------------------------------------------------
    def loop(
        self, start: Number | int, stop: Number | int, step: int, carried: list[Number], body: Body
    ) -> list[Number]:
        """A loop of at least one trip: the carried values after it. One trip is written without a loop."""
        e = self.e
        first = e.constant(start, _INT64, 1) if isinstance(start, int) else start
        if isinstance(start, int) and isinstance(stop, int) and start + step >= stop:
            return body(first, carried)
        last = e.constant(stop, _INT64, 1) if isinstance(stop, int) else stop
        before, head, after = e.block, e.label("loop"), e.label("after")
        e.jump(head)
        e.start(head)
        index = Number(e.fresh(), _INT64, 1)
        phis = [value._replace(text=e.fresh()) for value in carried]
        position = len(e.lines)
        found = body(index, phis)
        following = Number(e.emit(f"add nuw nsw i64 {index.text}, {step}"), _INT64, 1)
        end = e.block
        lines = [f"  {index.text} = phi i64 [ {first.text}, %{before} ], [ {following.text}, %{end} ]"]
        for phi, value, result in zip(phis, carried, found, strict=True):
            lines.append(f"  {phi.text} = phi {phi.type} [ {value.text}, %{before} ], [ {result.text}, %{end} ]")
        e.lines[position:position] = lines
        e.branch(e.compare("ult", following, last), head, after)
        e.start(after)
        return found
