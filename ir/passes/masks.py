"""Masks of loops that are True wherever they are read, or known (`known_masks.py`).

The adjoint of a loop that writes columns (`y[:, j] = ...`) carries a mask of the adjoint of ``y``: a trip clears the
column that it reads, as what was there before is not what was written. Such a read finds the column as it was before
any trip cleared it, mostly, and so does what comes after the loop: then the mask says nothing, and goes.

A read is followed back through what wrote the mask, in the order of the program, until something wrote True there:

- through a write elsewhere, or of True, or a disjunction, which takes nothing away;
- from the end of a loop into its last trip, and from the start of a trip to the trips before, each of which may have
  cleared places (`apart` in all pairs of trips) or filled all of those that are read, and to what the loop began with;
- where each trip clears and fills again, in a box that holds what any of them reads: if that is True when the loop
  begins, and each trip leaves it so.

Reads that others depend on are first taken to be True, and those of which that cannot be shown are taken back until
the rest holds: each depends on earlier ones alone, so that this is an induction over the run of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar, TypeVarTuple

from srcgrad.ir.core import Function, Literal, Operation, Region, Value, is_splat, literal
from srcgrad.ir.passes.dead_control import given
from srcgrad.ir.passes.known_masks import Surely
from srcgrad.ir.passes.places import Key, Part, Place, Places, Sum, whole
from srcgrad.ir.passes.rewrite import AnyRegion, Fired, rebuilt, with_operands

NAME: Final = "a mask that is known -> what it is"
STEPS: Final = 20_000
STEPS_PER_OPERATION: Final = 4
"""How far reads are followed in all, and how much farther in longer programs: what is found takes a thousand steps in
most programs and one or two for each operation in long ones. Loops in loops that write many elements of each other's
arrays would take any number, and end with nothing found; this many take a second in 8,000 operations."""
DEEPEST: Final = 60
"""How often following a read may lead to another read, or to what a loop writes: each takes up to six calls of Python's
stack, of which users have a part."""
WRITES: Final = ("scatter_set", "scatter_add", "slice_set")
Given = TypeVarTuple("Given")
Found = TypeVar("Found")


def carries_masks(function: Region) -> bool:
    """Whether a loop hands boolean arrays from trip to trip."""
    return any(
        operation.op.name == "for"
        and any(is_mask(result) for result in operation.results[: operation.attrs["carries"]])
        for operation in function.walk()
    )


def is_mask(value: Value) -> bool:
    return value.type.dtype.kind == "b" and bool(value.type.shape)


def without_masks(function: Function, fired: list[Fired] | None = None) -> Function:
    """The function with True in place of what is read of masks that hold there; itself if none does.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: bool[9]) -> (bool[]) {
    ...   %m: bool[9], %last: bool[] = for true:bool[9], true {trips=9, carries=2, consts=0, reverse=true}
    ...     body (%k: i64[], %m: bool[9], %r: bool[]) {
    ...       %0: bool[] = gather %m, %k {axis=0}
    ...       %1: bool[9] = scatter_set %m, false, %k {axis=0}
    ...       yield %1, %0
    ...     }
    ...   return %last
    ... }''')
    >>> print(without_masks(function).operations[0].regions[0].results[1])
    np.True_: bool[]
    """
    surely = Surely(function)
    found = {value: surely.literal_of(value) for value in all_reads(function)}
    function = with_known(function, {value: known for value, known in found.items() if known is not None}, fired)
    return with_known(function, {value: literal(True, value.type) for value in Search(function).true()}, fired)


def with_known(function: Function, known: dict[Value, Literal], fired: list[Fired] | None) -> Function:
    """The function with literals in place of masks."""
    if not known:
        return function
    if fired is not None:
        fired += [Fired(NAME, None if value.producer is None else value.producer.span) for value in known]
    return replaced(function, known, {})


def all_reads(function: Region) -> list[Value]:
    """What may be True of masks, in the order of the program."""
    return [value for operation in function.walk() for value in reads(operation)]


def replaced(region: AnyRegion, known: dict[Value, Literal], moved: dict[Value, Value]) -> AnyRegion:
    """The region with literals in place of values, in its regions too."""
    operations = []
    for operation in region.operations:
        operands = tuple([known.get(value) or moved.get(value, value) for value in operation.operands])
        regions = tuple([replaced(inner, known, moved) for inner in operation.regions])
        same = all(one is other for one, other in zip(regions, operation.regions, strict=True))
        if operands != operation.operands or not same:
            copy = with_operands(operation, operands, operation.regions if same else regions)
            moved.update(zip(operation.results, copy.results, strict=True))
            operation = copy
        operations.append(operation)
    if all(one is other for one, other in zip(operations, region.operations, strict=True)) and not any(
        value in known for value in region.results
    ):
        return region
    return rebuilt(region, operations, [known.get(value) or moved.get(value, value) for value in region.results])


Shape = tuple[tuple[int, frozenset[tuple[Key, int]], int], ...]
"""A place as a key."""
Supposed = tuple[Value, Shape]
Question = tuple[Value, Shape, frozenset[tuple[Key, int]]]
"""Whether a mask is True at a place, while some numbers of trips are known."""


def shape_of(place: Place) -> Shape:
    return tuple([(part.start.constant, frozenset(part.start.factors.items()), part.length) for part in place])


class Write(NamedTuple):
    """What a trip does to a mask: ``fills`` with True or else may clear a place; ``regions`` are those it stands in."""

    place: Place
    fills: bool
    regions: tuple[Region, ...]


class Exhausted(Exception):
    """The steps are used up."""


class Search:
    """Finds masks that are True where they are read."""

    def __init__(self, function: Region) -> None:
        self.function = function
        self.places = Places(function)
        self.steps = 0
        self.fresh = 0
        self.assumed: set[Value] = set()
        self.depth = 0
        self.pending: dict[Value, Place] = {}
        """Parameters of loops, and where they are being shown to be True in all trips."""
        self.used: set[Supposed] = set()
        """Of these, what the search in progress has rested on."""
        self.cut = 0
        """How often a search was too deep to go on."""
        self.proved: dict[Question, list[frozenset[Supposed]]] = {}
        """What is True, and what each proof rests on: so a mask that loops in each other carry is followed once in
        each of them, and not once in each set of those in which it is supposed to be True."""
        self.failed: set[tuple[Question, frozenset[Supposed]]] = set()
        self.known_writes: dict[tuple[Value, Value, tuple[Region, ...]], list[Write] | None] = {}
        self.known_truths: dict[Value, bool] = {}

    def true(self) -> list[Value]:
        """Values that are True, in the order of the program."""
        self.steps = STEPS + STEPS_PER_OPERATION * sum(1 for _ in self.function.walk())
        candidates = all_reads(self.function)
        self.assumed = set(candidates)
        try:
            while True:
                wrong = {value for value in candidates if value in self.assumed and not self.holds(value)}
                if not wrong:
                    return [value for value in candidates if value in self.assumed]
                self.assumed -= wrong
                self.known_writes.clear()
                self.known_truths.clear()
                self.proved.clear()
                self.failed.clear()
        except Exhausted:
            return []

    def holds(self, value: Value) -> bool:
        """Whether a value is True, on what is assumed of others."""
        home = self.places.home.get(value)
        if home is not None:
            place = whole(value.type)
            return place is not None and self.param(value, place)
        operation = value.producer
        if operation is None:
            return False
        if operation.op.name == "for":
            place = whole(value.type)
            return place is not None and self.result(operation, operation.results.index(value), place)
        return self.read(operation)

    def read(self, operation: Operation) -> bool:
        """Whether a gather or a slice reads True."""
        found = self.place(operation, operation.operands[1:])
        return found is not None and self.follow(operation.operands[0], found[0])

    def place(self, operation: Operation, indices: Sequence[Value]) -> tuple[Place, bool] | None:
        """The box that is read or written, and whether all of it is."""
        if operation.op.name in ("slice", "slice_set"):
            return self.places.sliced(operation)
        return self.places.indexed(operation.operands[0].type, indices, operation.attrs["axis"])

    def is_true(self, value: Value) -> bool:
        """Whether all of a value is True."""
        if self.pending or self.places.fixed:
            return self.is_true_now(value)
        if value not in self.known_truths:
            self.known_truths[value] = self.is_true_now(value)
        return self.known_truths[value]

    def is_true_now(self, value: Value) -> bool:
        place = whole(value.type)
        return place is not None and self.follow(value, place)

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Exhausted

    # --- back through the program -------------------------------------------------------------------------------------

    def follow(self, value: Value, place: Place) -> bool:
        """Whether a mask is True at a place."""
        if self.depth >= DEEPEST:
            self.cut += 1
            return False
        question = value, shape_of(place), frozenset(self.places.fixed.items())
        supposed = frozenset((param, shape_of(box)) for param, box in self.pending.items())
        proof = next((rests for rests in self.proved.get(question, ()) if rests <= supposed), None)
        if proof is not None or (question, supposed) in self.failed:
            self.used |= proof or set()
            return proof is not None
        around, cut, self.used = self.used, self.cut, set()
        found = self.deeper(self.followed, value, place)
        if found:
            self.proved.setdefault(question, []).append(frozenset(self.used))
        elif cut == self.cut:
            self.failed.add((question, supposed))
        self.used |= around
        return found

    def deeper(self, search: Callable[[*Given], Found], *given: *Given) -> Found:
        self.depth += 1
        try:
            return search(*given)
        finally:
            self.depth -= 1

    def followed(self, value: Value, place: Place) -> bool:
        later: list[Place] = []
        """What is filled behind the write that is looked at, in the same trip."""
        while True:
            self.step()
            if value in self.assumed or is_splat(value, True):
                return True
            if value in self.places.home:
                return self.param(value, place)
            operation = value.producer
            if operation is None:
                return False
            if operation.op.name not in WRITES:
                return self.result_of(operation, value, place)
            known = self.past(operation, place, later)
            if known is not None:
                return known
            value = operation.operands[0]

    def result_of(self, operation: Operation, value: Value, place: Place) -> bool:
        name, operands = operation.op.name, operation.operands
        if name == "logical_or":
            return any(self.follow(operand, place) for operand in operands)
        if name == "logical_and":
            return all(self.follow(operand, place) for operand in operands)
        if name == "select":
            return all(self.follow(operand, place) for operand in operands[1:])
        if name == "for":
            return self.result(operation, operation.results.index(value), place)
        if name == "cond":
            position = operation.results.index(value)
            return all(self.follow(region.results[position], place) for region in operation.regions)
        if name in ("gather", "slice"):
            found = self.place(operation, operands[1:])
            return found is not None and found[1] and self.follow(operands[0], self.within(operation, found[0], place))
        if name in ("reshape", "broadcast", "transpose", "reduce_or", "reduce_and"):
            return self.is_true(operands[0]) and (name != "reduce_or" or operands[0].type.size != 0)
        return False

    def past(self, operation: Operation, place: Place, later: list[Place]) -> bool | None:
        """Whether a mask is True at a place after a write, where the write decides it; else what it fills is noted."""
        found = self.place(operation, operation.operands[2:])
        if found is None:
            return False
        (written, dense), parts = found, self.true_parts(operation.operands[1])
        if dense:
            filled = [self.within(operation, written, part) for part in parts]
            if any(self.places.covers(each, place) for each in filled):
                return True
            later += filled
        if operation.op.name == "scatter_add" or whole(operation.operands[1].type) in parts:
            return None
        if self.places.apart(written, place) or any(self.places.covers(filled, written) for filled in later):
            return None
        return False

    def true_parts(self, value: Value) -> list[Place]:
        """Boxes in which a mask is True, by what has made it."""
        if self.is_true(value):
            place = whole(value.type)
            return [] if place is None else [place]
        operation = value.producer
        if operation is None or self.depth >= DEEPEST:
            return []
        if operation.op.name == "logical_or":
            self.step()
            return [part for operand in operation.operands for part in self.deeper(self.true_parts, operand)]
        if operation.op.name != "slice_set" or not self.is_true(operation.operands[1]):
            return []
        box, dense = self.places.sliced(operation)
        return [box] if dense else []

    def within(self, operation: Operation, box: Place, part: Place) -> Place:
        """The part of what is read or written, which is the box of an array, as a place in the array."""
        if operation.op.name in ("slice", "slice_set"):
            return tuple(Part(one.start.plus(other.start), other.length) for one, other in zip(box, part, strict=True))
        axis, indices = operation.attrs["axis"], len(box) - len(part)
        return (*part[:axis], *box[axis : axis + indices], *part[axis:])

    def param(self, param: Value, place: Place) -> bool:
        """Whether a parameter of a region is True at a place."""
        operation, _, position = self.places.home[param]
        if operation.op.name == "cond":
            return self.follow(operation.operands[1 + position], place)
        if operation.op.name != "for" or position == 0:
            return False
        if position - 1 < operation.attrs["carries"]:
            return self.carry(operation, position - 1, place)
        if position - 1 < operation.attrs["carries"] + operation.attrs["consts"]:
            return self.follow(given(operation, position - 1), place)
        return False

    # --- loops --------------------------------------------------------------------------------------------------------

    def carry(self, loop: Operation, position: int, place: Place) -> bool:
        """Whether a carry is True at a place when a trip begins."""
        body = loop.regions[0]
        param, initial = body.params[1 + position], given(loop, position)
        supposed = self.pending.get(param)
        if supposed is not None:
            self.used.add((param, shape_of(supposed)))
            return self.places.covers(supposed, place)
        writes = self.writes(body.results[position], param, (body,))
        if writes is None or any(self.meets(loop, write, place) for write in cleared(self.places, writes)):
            # Another mask in each trip, or one that a trip clears and then fills.
            with self.places.of_any_trip():
                box = self.places.of_all_trips(place, loop)
                if box is None or not self.follow(initial, box):
                    return False
                with self.supposing(param, box):
                    return self.follow(body.results[position], box)
        number = Sum(0, {Key(body.params[0]): 1})
        last = self.places.last(loop)
        first, end = (number.plus(Sum(1)), last) if loop.attrs["reverse"] else (Sum(0), number.plus(Sum(-1)))
        if end is not None and any(self.filled(loop, write, place, first, end, param) for write in writes):
            return True
        return self.follow(initial, place)

    @contextmanager
    def supposing(self, param: Value, place: Place) -> Iterator[None]:
        self.pending[param] = place
        try:
            yield
        finally:
            del self.pending[param]
            self.used.discard((param, shape_of(place)))

    def result(self, loop: Operation, position: int, place: Place) -> bool:
        """Whether the last value of a carry is True at a place."""
        if position >= loop.attrs["carries"]:
            return False
        body, places = loop.regions[0], self.places
        param, last = body.params[1 + position], places.last(loop)
        writes = self.writes(body.results[position], param, (body,))
        if writes is not None and last is not None:
            # All trips together may fill what no one of them does.
            filled = any(self.filled(loop, write, place, Sum(0), last, param) for write in writes)
            if filled and not any(self.meets(loop, write, place, True) for write in cleared(places, writes)):
                return True
        if not loop.attrs["trips"] and not self.follow(given(loop, position), place):
            return False
        number = 0 if loop.attrs["reverse"] else None if loop.attrs["trips"] is None else loop.attrs["trips"] - 1
        with places.in_trip(Key(body.params[0]), number):
            return self.follow(body.results[position], place)

    def writes(self, value: Value, param: Value, regions: tuple[Region, ...]) -> list[Write] | None:
        """What makes a value of a parameter, first to last; None if that is not done by writes alone."""
        key = (value, param, regions)
        if key in self.known_writes:
            return self.known_writes[key]
        if self.depth == DEEPEST:
            return None
        with self.places.of_any_trip():
            found = self.deeper(self.writes_between, value, param, regions)
        if not self.pending:
            self.known_writes[key] = found
        return found

    def writes_between(self, value: Value, param: Value, regions: tuple[Region, ...]) -> list[Write] | None:
        found: list[Write] = []
        while value is not param:
            self.step()
            operation = value.producer
            if operation is None or isinstance(value, Literal):
                return None
            name = operation.op.name
            if name in WRITES:
                write = self.write(operation, regions)
                if write is None:
                    return None
                found += write
                value = operation.operands[0]
            elif name == "logical_or":  # which takes nothing away
                sides = (self.writes(operand, param, regions) for operand in operation.operands)
                rest = next((side for side in sides if side is not None), None)
                return None if rest is None else [*rest, *reversed(found)]
            elif name in ("for", "cond"):
                inner = self.writes_inside(operation, operation.results.index(value), regions)
                if inner is None:
                    return None
                value, more = inner
                found += reversed(more)
            else:
                return None
        return found[::-1]

    def write(self, operation: Operation, regions: tuple[Region, ...]) -> list[Write] | None:
        found = self.place(operation, operation.operands[2:])
        if found is None:
            return None
        (place, dense), parts = found, self.true_parts(operation.operands[1])
        clears = operation.op.name != "scatter_add" and whole(operation.operands[1].type) not in parts
        writes = [Write(place, False, regions)] if clears else []
        if dense:
            writes += [Write(self.within(operation, place, part), True, regions) for part in parts]
        return writes

    def writes_inside(
        self, operation: Operation, position: int, regions: tuple[Region, ...]
    ) -> tuple[Value, list[Write]] | None:
        """What a loop or a cond writes to one of its operands, and that."""
        if operation.op.name == "for":
            if position >= operation.attrs["carries"]:
                return None
            body = operation.regions[0]
            found = self.writes(body.results[position], body.params[1 + position], (*regions, body))
            return None if found is None else (given(operation, position), [*found, *self.swept(operation, found)])
        found, sources = [], set()
        for region in operation.regions:
            result = region.results[position]
            candidates = [k for k, param in enumerate(region.params) if param.type == result.type]
            writes = ((k, self.writes(result, region.params[k], (*regions, region))) for k in candidates)
            source, inside = next(((k, each) for k, each in writes if each is not None), (None, None))
            if source is None or inside is None:
                return None
            sources.add(operation.operands[1 + source])
            found += inside
        return (sources.pop(), found) if len(sources) == 1 else None

    def swept(self, loop: Operation, writes: Sequence[Write]) -> list[Write]:
        """What all trips of an inner loop have filled together once it is done, as writes of the region round it."""
        trips, body = loop.attrs["trips"], loop.regions[0]
        if not trips or cleared(self.places, writes):
            return []
        found = []
        for write in writes:
            place = self.places.swept(write.place, loop, trips) if write.regions[-1] is body else None
            if place is not None:
                found.append(Write(place, True, write.regions[:-1]))
        return found

    def meets(self, loop: Operation, write: Write, place: Place, finished: bool = False) -> bool:
        """Whether a write of another trip may hit a place: of an earlier one, or of any, once the loop is done."""
        self.fresh += 1
        copy, index = self.fresh, loop.regions[0].params[0]

        def other(key: Key) -> Sum | None:
            if not self.places.inside(key.value, loop):
                return None
            if key.value is not index or finished:
                return Sum(0, {Key(key.value, copy): 1})
            # so many trips before: at least one, which is what a key of its own, from 0 on, is more than
            sign = 1 if loop.attrs["reverse"] else -1
            return Sum(sign, {key: 1, Key(index, copy): sign})

        moved = tuple(Part(part.start.moved(other), part.length) for part in write.place)
        return not self.places.apart(moved, place)

    def filled(self, loop: Operation, write: Write, place: Place, first: Sum, last: Sum, param: Value) -> bool:
        """Whether the trips from ``first`` to ``last`` fill a place of a carry, each one element further along an axis.

        What is read is in bounds: so one that begins with the first trip's and goes to the end of the axis holds it.
        """
        body, places = loop.regions[0], self.places
        if not write.fills or write.regions[1:] or write.regions[0] is not body:
            return False
        key, along = Key(body.params[0]), None
        for axis, part in enumerate(write.place):
            held = [other for other in part.start.factors if places.inside(other.value, loop)]
            if held:
                if along is not None or held != [key] or abs(part.start.factors[key]) != 1:
                    return False
                along = axis
            elif not places.part_covers(part, place[axis]):
                return False
        if along is None:  # each trip fills it: so it is filled where there has been one
            return places.interval(last.plus(first, -1))[0] >= 0
        part, wanted = write.place[along], place[along]
        low, high = (part.start.plus(end.plus(Sum(0, {key: 1}), -1), part.start.factors[key]) for end in (first, last))
        if part.start.factors[key] < 0:
            low, high = high, low
        below, _ = places.interval(wanted.start.plus(low, -1))
        above, _ = places.interval(high.plus(wanted.start, -1))
        to_the_end = part.length == 1 and places.interval(high)[0] >= param.type.static_shape[along] - 1
        return below >= 0 and (above + part.length >= wanted.length or to_the_end)


def reads(operation: Operation) -> list[Value]:
    """What may be True of a mask: what is read of it, and what a loop carries."""
    if operation.op.name == "for":
        carries = operation.attrs["carries"]
        params = operation.regions[0].params[1 : 1 + carries]
        return [value for value in (*params, *operation.results[:carries]) if is_mask(value)]
    if operation.op.name in ("gather", "slice") and is_mask(operation.operands[0]):
        return list(operation.results)
    return []


def cleared(places: Places, writes: Sequence[Write]) -> list[Write]:
    """The writes that may leave False behind when a trip is over."""

    def filled_later(k: int) -> bool:
        write = writes[k]
        return any(
            later.fills
            and write.regions[: len(later.regions)] == later.regions
            and places.covers(later.place, write.place)
            for later in writes[k + 1 :]
        )

    with places.of_any_trip():
        return [write for k, write in enumerate(writes) if not write.fills and not filled_later(k)]
