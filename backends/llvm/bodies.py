"""The loops of one group as explicit vectors, with a tail under a mask or number by number.

The last axis of a group is the vectors' loop; what varies along outer axes alone is computed in the outer loops. Light
groups take several *rows* at once, which are indices of the axis before the last: so arrays that are contiguous along
that axis are read in tiles and transposed in registers, and a fold over it touches its output once for all rows. A fold
over the last axes has accumulators in registers, whose order depends on the shape alone. Long sums of floats are
compensated from block to block. A fold over other axes adds to its output in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.access import INT64, Bases
from srcgrad.backends.llvm.emitter import BOOL, Emitter, Number, constant_of
from srcgrad.backends.llvm.folds import BLOCK, MASKS, Folding, Rows, State
from srcgrad.backends.llvm.loops import Compute, Constant, Fold, Group, Inside, Iota, Load, Range, Store
from srcgrad.backends.llvm.quotients import Divisor, divided_by, prepared, quotient
from srcgrad.backends.llvm.shapes import HEAVY, beside, columns_of, shape_of
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.trips import Trip


class Span(NamedTuple):
    """The part of an axis that is run over: ``start`` to ``stop``.

    Of a chunk, ``last`` says whether it is the one that ends with the axis: the others are whole steps, and no chunk is
    shorter than a step. None: a part of any length from 1 on.
    """

    start: Number
    stop: Number
    last: Number | None


class _Row(NamedTuple):
    """What is known outside of the innermost loop, for one index of the axis before the last."""

    indices: list[Number]
    bases: Bases
    scalars: dict[int, Number]
    splats: dict[int, Number]
    wide: dict[int, Number]
    divisors: dict[int, Divisor]
    """By statement, what is divided by in the loop."""


class Body(Folding):
    """The state of writing one group's loops.

    ``first``: how many leading axes have indices already; ``spans``: axes that are run over in part.
    """

    def __init__(
        self, group: Group, target: Target, emitter: Emitter, inputs: Sequence[str], outputs: Sequence[str],
        spans: dict[int, Span] | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(emitter, inputs, outputs)
        self.first = first
        self.group = group
        self.target = target
        self.spans = spans or {}
        self.rank = len(group.domain)
        self.depths = group.depths()
        self.lines = list(dict.fromkeys(group.lines()))
        self.bounds = group.bounds()
        self.scalars: dict[int, Number] = {}
        """Statements outside of the innermost loop."""
        self.constants: dict[tuple[int, int], Number] = {}
        """Statements that are constants, in so many lanes."""
        self.blocked = frozenset(axis for axis, span in self.spans.items() if span.last is None)
        self.shape = beside(group, target) if group.boxes else shape_of(group, target, self.blocked)
        self.ahead: Mapping[int, int] = {}
        """For how many bytes ahead memory is asked, by the statements that read (``ahead.py``)."""
        self.written_ahead = 0
        """And for what is written."""
        self.lanes = self.shape.lanes
        self.rows: list[_Row] = []
        self.slots: dict[int, list[str]] = {}
        self.inner_folds = [fold for fold in group.folds if self.rank - 1 in fold.axes]
        self.outer_folds = [fold for fold in group.folds if self.rank - 1 not in fold.axes]
        self.columned = {} if emitter.plain else columns_of(group)
        """By statement those that read columns of the same short rows; level 0 has no quick way to sort vectors."""
        self.divisors: dict[int, Divisor] = {}
        self.divided_by = divided_by(group, self.shape, emitter)
        if self.shape.wide and (emitter.plain or self.columned or self.divided_by):
            self.shape = self.shape._replace(unroll=1, wide=False)
        self.stores: dict[int, list[tuple[Store, ...]]] = {}
        """By statement what is written once that is there, one number or the two of a pair."""
        for stores in pairs_of(group.stores):
            self.stores.setdefault(max([store.statement for store in stores]), []).append(stores)

    # --- the function ------------------------------------------------------------------------------
    def run(self, outer: Sequence[Number] = ()) -> None:
        """The loops within those whose indices are given."""
        for position, fold in enumerate(self.inner_folds):
            if self.run_of(fold) < self.rank - 1:
                self.slots[position] = [self.slot(fold) for _ in range(1 + self.compensated(fold))]
        self.indices = list(outer)
        self.e.separate, self.e.divides = self.group.separate, self.group.divides()
        self.e.slopes = self.group.slopes()
        self.level(len(outer), 0)

    def level(self, depth: int, since: int) -> None:
        """The loops from ``depth`` on, and what stands before them: statements of the depths from ``since`` on."""
        known = dict(self.bases)
        self.before(depth, since)
        if depth == self.rank:
            self.sink_numbers()
        else:
            self.enter(depth)
        self.bases = known

    def before(self, depth: int, since: int) -> None:
        for line in self.lines:
            self.base(line, depth)
        if self.bounds:
            self.decide(self.bounds)
        last = min(depth, max(self.rank, 1) - 1)
        for number, placed in enumerate(self.depths):
            if since <= placed <= last and not isinstance(self.group.statements[number], Constant):
                self.scalars[number] = self.compute(number, 1, self.scalars, None, None)

    def sink_numbers(self) -> None:
        """The stores of a group of no axes."""
        for store in self.group.stores:
            dtype = self.group.statements[store.statement].dtype
            value = self.operand(store.statement, 1, self.scalars)
            self.store(store.output, self.base(store.line, 0), 1, value, dtype, None)

    def enter(self, depth: int) -> None:
        starting = [k for k, fold in enumerate(self.inner_folds) if self.run_of(fold) == depth]
        for position in starting:
            if position in self.slots:
                self.store_slots(self.slots[position], self.beginning(self.inner_folds[position], self.lanes))
        if depth == self.rank - 1:
            self.innermost([_Row(self.indices, self.bases, self.scalars, {}, {}, {})])
        elif depth == self.rank - 2 and self.shape.rows > 1:
            if depth in self.blocked:
                self.any_rows(self.spans[depth])
            else:
                self.in_steps(depth, self.shape.rows, [], self.several_rows, self.rows_left)
        else:
            span = self.spans.get(depth)
            size: tuple[Number | int, Number | int] = (0, self.group.domain[depth])
            start, stop = size if span is None else (span.start, span.stop)
            self.loop(start, stop, 1, [], self.one_level)
        for position in starting:
            if position in self.slots:
                fold = self.inner_folds[position]
                self.finish(fold, self.load_slots(fold, self.slots[position]))

    def one_level(self, index: Number, carried: list[Number]) -> list[Number]:
        depth = len(self.indices) + 1
        self.indices.append(index)
        self.level(depth, depth)
        self.indices.pop()
        return carried

    def several_rows(self, index: Number, carried: list[Number]) -> list[Number]:
        depth, rows = self.rank - 1, []
        outer, known, numbers = self.indices, self.bases, self.scalars
        for row in range(self.shape.rows):
            at = self.e.integer("add", index, row) if row else index
            self.indices, self.bases, self.scalars = [*outer, at], dict(known), dict(numbers)
            self.before(depth, depth)
            rows.append(_Row(self.indices, self.bases, self.scalars, {}, {}, {}))
        self.innermost(rows)
        self.indices, self.bases, self.scalars = outer, known, numbers
        return carried

    def any_rows(self, span: Span) -> None:
        """A span of any length: several rows at once, and those that are left one by one."""
        count = self.e.integer("sub", span.stop, span.start)
        whole = self.e.integer("sub", span.stop, self.e.integer("urem", count, self.shape.rows))

        def several(carried: list[Number]) -> list[Number]:
            return self.loop(span.start, whole, self.shape.rows, carried, self.several_rows)

        def left(carried: list[Number]) -> list[Number]:
            return self.loop(whole, span.stop, 1, carried, self.one_level)

        self.only_if(self.e.compare("ult", span.start, whole), [], several)
        self.only_if(self.e.compare("ult", whole, span.stop), [], left)

    def rows_left(self, carried: list[Number]) -> list[Number]:
        size = self.group.domain[-2]
        self.loop(size // self.shape.rows * self.shape.rows, size, 1, [], self.one_level)
        return carried

    def finish(self, fold: Fold, state: State) -> None:
        """Add up the lanes, and write the result."""
        self.write_result(fold, self.lanes_combined(fold, self.settled(state)))

    # --- the innermost loop ------------------------------------------------------------------------
    def innermost(self, rows: list[_Row]) -> None:
        """Blocks of several vectors, then single vectors, then the tail."""
        lanes, unroll = self.lanes, self.shape.unroll
        self.rows = rows
        self.targets = [(row, fold) for row in range(len(rows)) for fold in self.inner_folds]
        aside = len(self.targets) * unroll <= MASKS
        self.widths = [1 + (aside and self.group.is_extreme(fold)) for _, fold in self.targets]
        for row in rows:
            for number in self.used_inside() if row.scalars else ():
                if number in row.scalars:
                    row.splats[number] = self.e.splat(row.scalars[number], lanes)
                    if self.shape.wide:
                        row.wide[number] = self.e.splat(row.scalars[number], 2 * lanes)
            for number in self.divided_by:
                row.divisors[number] = prepared(self.e, self.operand(number, 1, row.scalars), lanes)
        states = self.flat([self.initial(row, fold) for row, fold in self.targets])
        span = self.spans.get(self.rank - 1)
        if self.group.boxes:
            states = self.beside_boxes(states)
        elif span is not None and span.last is None:
            states = self.any_length(span, states)
        else:
            states = self.whole_row(states)
        self.conclude(self.unflat(states))

    def whole_row(self, states: list[Number]) -> list[Number]:
        """All of the innermost axis, or of its span."""
        lanes, span = self.lanes, self.spans.get(self.rank - 1)
        if not self.shape.heavy:
            return self.in_steps(self.rank - 1, lanes * self.shape.unroll, states, None, self.columns_left)
        size = -(-self.group.domain[-1] // lanes) * lanes
        start, stop = (0, size) if span is None else (span.start, span.stop)
        return self.blocks(start, stop, lanes, states)

    def in_steps(
        self, axis: int, step: int, carried: list[Number], trip: Trip | None,
        left: Callable[[list[Number]], list[Number]],
    ) -> list[Number]:  # fmt: skip
        """Whole steps along an axis, or its span, and what is left of it after them."""
        size, span = self.group.domain[axis], self.spans.get(axis)
        whole = size // step * step

        def steps(start: Number | int, stop: Number | int) -> list[Number]:
            if trip is None:
                return self.blocks(start, stop, step, carried)
            return self.loop(start, stop, step, carried, trip)

        if span is None:
            carried = steps(0, whole) if whole else carried
            return left(carried) if size > whole else carried
        stop = span.stop if size == whole else self.e.lesser(span.stop, self.e.like(whole, span.stop))
        carried = steps(span.start, stop)
        if size == whole or span.last is None:
            return carried
        return self.only_if(span.last, carried, left)

    def only_if(
        self, condition: Number, carried: list[Number], then: Callable[[list[Number]], list[Number]]
    ) -> list[Number]:
        e = self.e
        if condition.text in ("true", "false"):
            return then(carried) if condition.text == "true" else carried
        before, inside, after = e.block, e.label("some"), e.label("after")
        e.branch(condition, inside, after)
        e.start(inside)
        found = then(carried)
        end = e.block
        e.jump(after)
        e.start(after)
        return [e.phi((old, before), (new, end)) for old, new in zip(carried, found, strict=True)]

    def columns_left(self, flat: list[Number]) -> list[Number]:
        """What is left after whole blocks: single vectors, then the tail."""
        size, lanes = self.group.domain[-1], self.lanes
        whole, vectors = size // (lanes * self.shape.unroll) * lanes * self.shape.unroll, size // lanes * lanes
        states = self.unflat(flat)
        if vectors > whole:
            found = self.loop(whole, vectors, lanes, self.identities(lanes), self.vectors(1))
            states = self.absorbed(states, self.gathered(found))
        rest = size - vectors
        if rest and (self.target.masked or lanes == 1):
            mask = first_lanes(rest, lanes)
            start = self.e.constant(vectors, INT64, 1)
            found = self.body(start, lanes, self.identities(lanes), mask, rest)
            states = self.absorbed(states, self.gathered(found))
        elif rest:
            found = self.loop(vectors, size, 1, self.identities(1), lambda k, accs: self.body(k, 1, accs, None))
            states = self.absorbed(states, self.in_lanes(found))
        return self.flat(states)

    def beside_boxes(self, flat: list[Number]) -> list[Number]:
        """The points that are in no box, number by number; of rows that are in none, all, in vectors if that is all."""
        e, size, ranges = self.e, self.group.domain[-1], self.group.boxes
        inside: Number | None = None
        for axis, index in enumerate(self.rows[0].indices):
            if ranges[axis] != ((0, self.group.domain[axis]),):
                among = self.among(index, ranges[axis])
                inside = among if inside is None else e.integer("and", inside, among)
        rest = size - sum([stop - start for start, stop in ranges[-1]])
        if not rest and inside is not None:
            return self.only_if(e.invert(inside), flat, self.whole_row)
        count = e.constant(rest, INT64, 1)
        if inside is not None:
            count = e.select(inside, count, size)

        def trip(number: Number, carried: list[Number]) -> list[Number]:
            index = number
            for start, stop in ranges[-1]:
                index = e.select(e.compare("ult", index, start), index, e.integer("add", index, stop - start))
            if inside is not None:
                index = e.select(inside, index, number)
            return self.body(index, 1, carried, None)

        def some(carried: list[Number]) -> list[Number]:
            found = self.loop(0, count, 1, self.identities(1), trip)
            return self.flat(self.absorbed(self.unflat(carried), self.in_lanes(found)))

        return some(flat)

    def among(self, index: Number, ranges: Sequence[Range]) -> Number:
        """Whether an index is in one of these ranges."""
        e = self.e
        found = e.compare("ult", index, 0)
        for start, stop in ranges:
            found = e.integer("or", found, e.compare("ult", e.integer("sub", index, start), stop - start))
        return found

    def any_length(self, span: Span, flat: list[Number]) -> list[Number]:
        """A span of any length: whole vectors, and what is left under a mask or number by number."""
        lanes, masked = self.lanes, self.target.masked or self.lanes == 1

        def under_mask(index: Number, carried: list[Number]) -> list[Number]:
            return self.body(index, lanes, carried, self.below(index, span.stop) if lanes > 1 else None)

        def added(carried: list[Number], found: list[Number]) -> list[Number]:
            return self.flat(self.absorbed(self.unflat(carried), self.gathered(found)))

        if masked and (lanes == 1 or self.group.cost() > HEAVY):
            return added(flat, self.loop(span.start, span.stop, lanes, self.identities(lanes), under_mask))
        count = self.e.integer("sub", span.stop, span.start)
        whole = self.e.integer("sub", span.stop, self.e.integer("and", count, lanes - 1))

        def vectors(carried: list[Number]) -> list[Number]:
            return added(carried, self.loop(span.start, whole, lanes, self.identities(lanes), self.vectors(1)))

        def left(carried: list[Number]) -> list[Number]:
            if masked:
                return added(carried, under_mask(whole, self.identities(lanes)))
            found = self.loop(whole, span.stop, 1, self.identities(1), lambda k, accs: self.body(k, 1, accs, None))
            return self.flat(self.absorbed(self.unflat(carried), self.in_lanes(found)))

        flat = self.only_if(self.e.compare("ult", span.start, whole), flat, vectors)
        return self.only_if(self.e.compare("ult", whole, span.stop), flat, left)

    def used_inside(self) -> list[int]:
        found: dict[int, None] = {}
        for depth, item in zip(self.depths, self.group.statements, strict=True):
            if depth == self.rank and isinstance(item, Compute):
                for operand in item.operands:
                    found[operand] = None
        found.update(dict.fromkeys(store.statement for store in self.group.stores))
        found.update(dict.fromkeys(fold.statement for fold in self.group.folds))
        return list(found)

    def initial(self, row: int, fold: Fold) -> State:
        slots = self.slots.get(self.inner_folds.index(fold), ())
        return self.load_slots(fold, slots) if slots and not row else self.beginning(fold, self.lanes)

    def conclude(self, states: list[State]) -> None:
        """Write the results of folds that end here, and keep the others' states."""
        kept: dict[int, State] = {}
        for (row, fold), state in zip(self.targets, states, strict=True):
            position = self.inner_folds.index(fold)
            if position not in self.slots:
                self.indices, self.bases = self.rows[row].indices, self.rows[row].bases
                self.finish(fold, state)
            elif position in kept:
                kept[position] = self.absorb(fold, kept[position], self.settled(state))
            else:
                kept[position] = state
        for position, state in kept.items():
            self.store_slots(self.slots[position], state)

    def blocks(self, start: Number | int, stop: Number | int, step: int, flat: list[Number]) -> list[Number]:
        """The loop over several vectors a trip; of a long one, the accumulators are added up block by block."""
        lanes = self.lanes
        trip = self.vectors(step // lanes)
        block = min([self.block(self.dtype_of(fold), step) for fold in self.inner_folds], default=BLOCK)
        long = self.group.domain[-1] > block and any(self.compensated(fold) for fold in self.inner_folds)

        empty = self.identities(lanes) * (step // lanes)
        if not long:
            return self.flat(self.absorbed(self.unflat(flat), self.gathered(self.loop(start, stop, step, empty, trip))))

        def outer(index: Number, carried: list[Number]) -> list[Number]:
            end = self.e.lesser(self.e.integer("add", index, block), self.e.like(stop, index))
            found = self.gathered(self.loop(index, end, step, empty, trip))
            return self.flat(self.absorbed(self.unflat(carried), found))

        return self.loop(start, stop, block, flat, outer)

    # --- one trip ----------------------------------------------------------------------------------
    def wide(self, index: Number, carried: list[Number]) -> list[Number]:
        """Two vectors as one of twice the lanes, whose halves are registers: so is what accumulators have."""
        half, lanes = len(carried) // 2, self.lanes
        whole = [self.joined(low, high) for low, high in zip(carried[:half], carried[half:], strict=True)]
        found = self.body(index, 2 * lanes, whole, None)
        return [self.part(value, start, lanes) for start in (0, lanes) for value in found]

    def vectors(self, times: int) -> Trip:
        if self.shape.wide and times == 2:
            return self.wide

        def trip(index: Number, carried: list[Number]) -> list[Number]:
            found: list[Number] = []
            count = sum(self.widths)
            mask = self.below(index, self.group.domain[-1]) if self.shape.heavy else None
            for copy in range(times):
                at = self.e.integer("add", index, copy * self.lanes) if copy else index
                found += self.body(at, self.lanes, carried[copy * count : (copy + 1) * count], mask)
            return found

        return trip

    def below(self, index: Number, stop: Number | int) -> Number:
        """Which lanes are before the end."""
        first, last = constant_of(index), stop if isinstance(stop, int) else constant_of(stop)
        if first is not None and last is not None:
            return first_lanes(last - first, self.lanes)
        lanes = ", ".join(f"i64 {k}" for k in range(self.lanes))
        places = self.e.integer("add", self.e.splat(index, self.lanes), Number(f"<{lanes}>", INT64, self.lanes))
        return self.e.compare("ult", places, stop if isinstance(stop, int) else self.e.splat(stop, self.lanes))

    def body(self, index: Number, lanes: int, accs: list[Number], mask: Number | None, count: int = 0) -> list[Number]:
        """All statements of the innermost loop at ``index`` and the lanes after it; the accumulators after it.

        ``count``: how many lanes the mask leaves, where that is known.
        """
        e = self.e
        found: list[Number] = []
        tiles: dict[int, list[Number]] = {}
        same: dict[int, Number] = {}
        sums: dict[int, Rows] = {}
        e.lanes = lanes
        several, statements = len(self.rows) > 1, self.group.statements
        shared = self.shape.same if several else frozenset[int]()
        turned = self.shape.turned if several and lanes > 1 else frozenset[int]()
        there = self.read_first(index, lanes, mask) if several and mask is not None else {}
        innermost = [number for number, depth in enumerate(self.depths) if depth == self.rank]
        inside = [number for number in innermost if not isinstance(statements[number], Constant)]
        for row, known in enumerate(self.rows):
            self.indices, self.bases, self.insides = known.indices, known.bases, {}
            self.divisors = known.divisors
            numbers = known.scalars if lanes == 1 else known.splats if lanes == self.lanes else known.wide
            values, stored = dict(numbers) | same, set[Store]()
            for number in inside:
                if number in values:
                    continue
                if number in self.columned and lanes > 1 and number not in turned:
                    values.update(self.columns_at(number, index, lanes, mask))
                elif number in turned:
                    if not row:
                        tiles[number] = self.tile_of(number, index, count or lanes)
                    values[number] = tiles[number][row]
                else:
                    values[number] = self.compute(number, lanes, values, index, mask)
                if number in shared:
                    same[number] = values[number]
                for stores in self.stores.get(number, ()):  # at once: what waits in a register is in the way
                    self.keep(stores, values, index, lanes, mask)
                    stored.update(stores)
            found += self.sinks(row, index, lanes, accs, mask, values, sums, stored, there)
        e.lanes = 1
        return found

    def sinks(
        self, row: int, index: Number, lanes: int, accs: list[Number], mask: Number | None,
        values: dict[int, Number], sums: dict[int, Rows], stored: set[Store], there: Mapping[tuple[int, int], Number],
    ) -> list[Number]:  # fmt: skip
        """What is kept of one row and is not ``stored`` yet: the accumulators after it."""
        e, found = self.e, []
        for waiting in self.stores.values():
            for stores in waiting:
                if stores[0] not in stored:
                    self.keep(stores, values, index, lanes, mask)
        for position, fold in enumerate(self.outer_folds):
            value = e.splat(self.operand(fold.statement, lanes, values), lanes)
            if self.rank - 2 in fold.axes and row < len(self.rows) - 1:
                sums[position] = self.with_row(fold, sums.get(position), value)
                continue
            before = there.get((row, position))
            if before is None:
                before = self.load_at(self.outputs[fold.output], fold.line, value.dtype, index, lanes, mask)
            after = self.after_rows(fold, before, sums.get(position), value)
            self.store_at(fold.output, fold.line, after, index, lanes, mask)
        width = len(self.inner_folds)
        accumulators = self.accumulators(accs)[row * width : (row + 1) * width] if width else []
        for fold, accumulator in zip(self.inner_folds, accumulators, strict=True):
            value = self.operand(fold.statement, lanes, values)
            if mask is not None:
                value = e.select(mask, value, self.identity(fold, lanes))
            found += self.gather(fold, accumulator, value)
        return found

    def keep(
        self, stores: Sequence[Store], values: dict[int, Number], index: Number, lanes: int, mask: Number | None
    ) -> None:
        """Write a number, or a pair."""
        given = [self.operand(store.statement, lanes, values) for store in stores]
        if len(stores) == 2 and lanes > 1 and stores[0].line.strides[-1] == 2:
            self.store_pairs(stores[0].output, stores[0].line, given, index, lanes, mask)
            return
        for store, value in zip(stores, given, strict=True):
            self.store_at(store.output, store.line, value, index, lanes, mask, self.written_ahead)

    def read_first(self, index: Number, lanes: int, mask: Number) -> dict[tuple[int, int], Number]:
        """By row and outer fold, what is added to, where rows are shorter than vectors and each row has its own place.

        A vector under a mask that is read waits for those before it that were written and reach over its place, though
        what the masks let through lies apart: so all rows are read before the first is written.
        """
        found: dict[tuple[int, int], Number] = {}
        if self.group.domain[-1] >= lanes:
            return found
        for position, fold in enumerate(self.outer_folds):
            if self.rank - 2 in fold.axes:
                continue
            for row, known in enumerate(self.rows):
                self.indices, self.bases = known.indices, known.bases
                place = self.outputs[fold.output]
                found[row, position] = self.load_at(place, fold.line, self.dtype_of(fold), index, lanes, mask)
        return found

    def columns_at(self, number: int, index: Number, lanes: int, mask: Number | None) -> dict[int, Number]:
        """What is read of short rows by a statement, and by the others that read other columns of them."""
        together = self.columned[number]
        items = [item for k in together if isinstance(item := self.group.statements[k], Load)]
        first, ahead = items[0], max(self.ahead.get(k, 0) for k in together)
        lines = [item.line for item in items]
        found = self.columns(self.inputs[first.source], lines, first.dtype, index, lanes, mask, ahead)
        return dict(zip(together, found, strict=True))

    def tile_of(self, number: int, index: Number, count: int) -> list[Number]:
        item = self.group.statements[number]
        assert isinstance(item, Load)
        return self.tile(self.inputs[item.source], item.line, item.dtype, index, self.lanes, count)

    # --- statements --------------------------------------------------------------------------------
    def compute(
        self, number: int, lanes: int, values: dict[int, Number], index: Number | None, mask: Number | None
    ) -> Number:
        item = self.group.statements[number]
        if isinstance(item, Compute):
            operands = [values.get(k) or self.operand(k, lanes, values) for k in item.operands]
            if (
                lanes > 1
                and item.operation.op.name == "div"
                and not item.function
                and item.operands[1] in self.divisors
            ):
                return quotient(self.e, operands[0], self.divisors[item.operands[1]])
            return scalars.emit(self.e, item.operation, operands, item.function)
        if isinstance(item, Load):
            ahead, pointer = self.ahead.get(number, 0), self.inputs[item.source]
            if not item.bounds:
                return self.load_at(pointer, item.line, item.dtype, index, lanes, mask, ahead)
            size = self.group.inputs[item.source].type.size
            return self.load_inside(pointer, item.line, item.dtype, item.bounds, size, index, lanes, mask, ahead)
        if isinstance(item, Inside):
            return self.inside(item.bounds, index, lanes)
        assert isinstance(item, Iota)
        return self.counted(item, lanes, index)

    def operand(self, number: int, lanes: int, values: dict[int, Number]) -> Number:
        found = values.get(number) or self.constants.get((number, lanes))
        if found is None:
            item = self.group.statements[number]
            assert isinstance(item, Constant)
            found = self.constants[number, lanes] = self.e.constant(item.value, item.dtype, lanes)
        return found

    def counted(self, item: Iota, lanes: int, index: Number | None) -> Number:
        e, stride = self.e, item.line.strides[-1] if item.line.strides else 0
        whole = self.place(item.line, index)
        if lanes > 1:
            steps = ", ".join(f"i64 {k * stride}" for k in range(lanes))
            whole = e.integer("add", e.splat(whole, lanes), Number(f"<{steps}>", INT64, lanes))
        return scalars.cast(e, whole, item.dtype)


def first_lanes(count: int, lanes: int) -> Number:
    """A mask of so many lanes, of which it leaves the first."""
    count = min(count, lanes)
    return Number(f"<{', '.join(['i1 1'] * count + ['i1 0'] * (lanes - count))}>", BOOL, lanes)


def pairs_of(stores: Sequence[Store]) -> list[tuple[Store, ...]]:
    """The stores of a group, those of both parts of complex numbers together."""
    found: list[tuple[Store, ...]] = []
    for store in stores:
        last = found[-1][-1] if found else None
        if last is not None and len(found[-1]) == 1 and last.output == store.output:
            found[-1] = (last, store)
        else:
            found.append((store,))
    return found
