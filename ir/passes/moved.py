"""Elements that a loop does nothing but move about are read where they come from.

``c[i:, i] = c[i, i:] = v`` in a loop over i writes each place in one trip, but reads and writes rows and columns of one
array, of which every two have a place in common; and the derivative clears what it reads, and carries a mask of what is
cleared. Where that happens, and which masks hold, follows from the number of the trip alone. So a loop is run while
compiling, with the names of elements in place of elements: what a trip reads of an array is then known as elements of
the array before the loop, and the array after it as those and as what trips made. If all of these lie side by side,
they are pieces of arrays, or of transposed ones; masks are literals; and the loop hands none of these on.

An element that has been added to 0.0 is known as such, since -0.0 is 0.0 then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, permutations
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Function, Literal, Operation, Value, literal, zeros
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.fold import Evaluator, array_of
from srcgrad.ir.passes.independent import InOrder, is_known
from srcgrad.ir.passes.layouts import INDEXED
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.transforms.residuals import is_safe
from srcgrad.ir.types import BOOL, INT64, ArrayType

MOVES: Final[Mapping[str, tuple[int, ...]]] = {
    "gather": (0,),
    "slice": (0,),
    "reshape": (0,),
    "transpose": (0,),
    "broadcast": (0,),
    "scatter_set": (0, 1),
    "scatter_add": (0, 1),
    "slice_set": (0, 1),
    "select": (1, 2),
}
"""Operations that move elements, and which of their operands are moved; the others say where to."""
STEPS: Final = 4_000
"""The operations that are run in all trips of one loop."""
ELEMENTS: Final = 1 << 26
"""The elements that these make."""
MOST_PIECES: Final = 4
"""Of how many arrays something is made."""
MOST_AXES: Final = 3
Array = np.ndarray[Any, Any]
Wanted = Callable[[Function], bool]


def without_moves(loop: Operation, most: int, evaluate: Evaluator) -> Function | None:
    """A loop as a function of one that hands on none of what it moves about; None if that is not known of any array.

    Args:
        loop: a loop of a known number of trips without control flow in them.
        most: the elements that all its trips may read of one value.
        evaluate: runs operations.
    """
    simple = all(not each.regions and (is_safe(each) or each.op.name in INDEXED) for each in loop.regions[0].operations)
    if not simple or not all(is_known(value.type) for value in values_of(loop)):
        return None
    blocked: set[Operation] = set()
    while True:
        run = Run(loop, evaluate, blocked)
        if not run.moved:
            return None
        try:
            run.all_trips()
            return Written(run, most).function()
        except Sum as found:
            blocked.add(found.operation)
        except (InOrder, ArithmeticError, IndexError, ValueError):  # what an index that is outside raises, too
            return None


def values_of(loop: Operation) -> Iterator[Value]:
    made = (operation.results for operation in loop.regions[0].operations)
    return chain(loop.operands, loop.results, *made)


class Sum(Exception):
    """An operation adds an element to another one."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation


class Source(NamedTuple):
    """An array whose elements have names: from ``first`` on, in C order."""

    first: int
    value: Value
    """A value outside of the loop; or one of its body, and then it is the column of that."""
    inside: bool
    shape: tuple[int, ...]


class Run:
    """The trips of a loop, with names of elements in place of elements.

    A name is an even number, or the odd one after it for the element plus 0.0; 0 is the name of 0.0.
    """

    def __init__(self, loop: Operation, evaluate: Evaluator, blocked: set[Operation]) -> None:
        self.loop, self.body, self.evaluate = loop, loop.regions[0], evaluate
        self.count: int = loop.attrs["trips"]
        carries = loop.attrs["carries"]
        self.index = self.body.params[0]
        self.carried = self.body.params[1 : 1 + carries]
        self.given = dict(zip(self.body.params[1:], loop.operands, strict=True))
        self.columns = set(self.body.params[1 + carries + loop.attrs["consts"] :])
        self.known, self.settled = self.find_known()
        """What follows from the number of a trip; and of that, what does so by what earlier trips made."""
        self.moved = self.find_moved(blocked)
        """Values that are elements which have been moved."""
        self.gone = self.moved | self.settled
        self.kept, self.read = self.find_kept()
        self.sources: dict[Value, Source] = {}
        self.names = 2
        self.seen: dict[Value, dict[int, Array]] = {}
        """By trips, what is known of values that are read, or are columns."""
        self.state: dict[Value, Array] = {}
        """What is handed on."""

    def find_known(self) -> tuple[set[Value], set[Value]]:
        state = {param for param in self.carried if self.is_counted(param) and isinstance(self.given[param], Literal)}
        while True:
            known = {self.index, *state}
            known.update(
                param
                for param, operand in self.given.items()
                if param not in self.carried and isinstance(operand, Literal) and self.is_counted(param)
            )
            settled = set(state)
            for operation in self.body.operations:
                if all(isinstance(value, Literal) or value in known for value in operation.operands):
                    known.update(filter(self.is_counted, operation.results))
                    if not settled.isdisjoint(operation.operands):
                        settled.update(operation.results)
            last = dict(zip(self.carried, self.body.results, strict=False))
            rest = {param for param in state if isinstance(last[param], Literal) or last[param] in known}
            if rest == state:
                return known, settled & known
            state = rest

    def is_counted(self, value: Value) -> bool:
        return value.type.dtype.kind in "biu"

    def find_moved(self, blocked: set[Operation]) -> set[Value]:
        state = {param for param in self.carried if param.type.rank and param.type.dtype.kind in "fc"}
        while True:
            moved = set(state)
            for operation in self.body.operations:
                if operation not in blocked and self.is_move(operation, moved):
                    moved.update(operation.results)
            rest = {param for param, last in zip(self.carried, self.body.results, strict=False) if last in moved}
            if state <= rest:
                return moved if state else set()
            state &= rest

    def is_move(self, operation: Operation, moved: set[Value]) -> bool:
        places = MOVES.get(operation.op.name, ())
        if not any(operation.operands[place] in moved for place in places):
            return False
        others = (value for place, value in enumerate(operation.operands) if place not in places)
        return all(isinstance(value, Literal) or value in self.known for value in others)

    def find_kept(self) -> tuple[list[Operation], list[Value]]:
        """The operations that the loop goes on with, and what is moved, or settled, that they read.

        What only spreads such a value is spread again: it would be kept for each trip as large as it is.
        """
        wanted = [last for param, last in zip(self.carried, self.body.results, strict=False) if param not in self.gone]
        kept: list[Operation] = []
        for operation in reversed(self.body.operations):
            spreads = operation.op.name == "broadcast" and operation.results[0] in wanted
            if spreads or self.gone.isdisjoint(operation.results):
                kept.append(operation)
                wanted += operation.operands
        made = {value for operation in kept for value in operation.results}
        return kept[::-1], [value for value in dict.fromkeys(wanted) if value in self.gone and value not in made]

    # --- trips --------------------------------------------------------------------------------------------------------

    def all_trips(self) -> None:
        """Run all trips.

        Raises:
            InOrder: they take too long.
            Sum: an element is added to another one.
        """
        run = [each for each in self.body.operations if each.results[0] in self.known or each.results[0] in self.moved]
        elements = sum(value.type.size for operation in run for value in (*operation.results, *operation.operands))
        if len(run) * self.count > STEPS or elements * self.count > ELEMENTS:
            raise InOrder
        for param in self.carried:
            if param in self.known:
                self.state[param] = self.number(self.given[param])
            elif param in self.moved:
                self.state[param] = self.named(self.given[param], 0)
        order = range(self.count)
        for trip in reversed(order) if self.loop.attrs["reverse"] else order:
            self.one_trip(run, trip)

    def one_trip(self, run: Sequence[Operation], trip: int) -> None:
        found: dict[Value, Array] = {self.index: np.asarray(trip), **self.state}
        for param, operand in self.given.items():
            if param in self.known and param not in self.state:
                whole = self.number(operand)
                found[param] = whole[trip] if param in self.columns else whole
        for operation in run:
            if operation.results[0] in self.moved:
                found[operation.results[0]] = self.move(operation, found, trip)
            else:
                operands = [self.number(value) if isinstance(value, Literal) else found[value]
                            for value in operation.operands]  # fmt: skip
                found.update(zip(operation.results, self.made(operation, operands), strict=True))
        for value in (*self.read, *self.body.results[len(self.carried) :]):
            if value in found:
                self.seen.setdefault(value, {})[trip] = found[value]
        for param, last in zip(self.carried, self.body.results, strict=False):
            if param in self.state:
                self.state[param] = self.number(last) if isinstance(last, Literal) else found[last]

    def number(self, value: Value) -> Array:
        assert isinstance(value, Literal)
        found: Array = array_of(value)
        return found

    def made(self, operation: Operation, operands: Sequence[Array]) -> Sequence[Array]:
        types = [value.type for value in operation.operands]
        return self.evaluate(operation.op, operands, operation.attrs, types, [each.type for each in operation.results])

    def move(self, operation: Operation, found: Mapping[Value, Array], trip: int) -> Array:
        """What an operation makes of names."""
        places = MOVES[operation.op.name]
        operands, types = [], []
        for place, value in enumerate(operation.operands):
            if place in places:
                operands.append(found[value] if value in self.moved else self.named(value, trip))
                types.append(ArrayType(INT64, value.type.shape))
            else:
                operands.append(self.number(value) if isinstance(value, Literal) else found[value])
                types.append(value.type)
        op, attrs, results = operation.op, operation.attrs, [ArrayType(INT64, operation.results[0].type.shape)]
        if op.name == "scatter_add":
            op = REGISTRY["scatter_set"]
            operands[1] = self.added(operation, operands, types)
        return np.asarray(self.evaluate(op, operands, attrs, types, results)[0])

    def added(self, operation: Operation, operands: Sequence[Array], types: Sequence[ArrayType]) -> Array:
        """The names of sums, one of whose terms is 0.0."""
        indices = operands[2:]
        if any(map(np.ndim, indices)):
            raise Sum(operation)
        given = [operands[0], *indices]
        before = self.evaluate(REGISTRY["gather"], given, operation.attrs, [types[0], *types[2:]], [types[1]])[0]
        if np.any((before != 0) & (operands[1] != 0)):
            raise Sum(operation)
        names = before + operands[1]
        return np.where(names != 0, names | 1, 0)

    # --- names --------------------------------------------------------------------------------------------------------

    def named(self, value: Value, trip: int) -> Array:
        """The names of the elements of a value that is not moved: of the loop's operands, or made in a trip."""
        shape = value.type.static_shape
        if isinstance(value, Literal) and is_plain_zero(value):
            return np.zeros(shape, np.int64)
        source = self.source(value)
        start = 0 if source.shape == shape else trip * value.type.size
        return 2 * (source.first + start + np.arange(value.type.size, dtype=np.int64)).reshape(shape)

    def source(self, value: Value) -> Source:
        if value not in self.sources:
            shape, outer = value.type.static_shape, value
            inside = self.is_made(value)
            if inside or value in self.columns:
                shape = (self.count, *shape)
            if not inside and value in self.given:
                outer = self.given[value]
            self.sources[value] = Source(self.names, outer, inside, shape)
            self.names += int(np.prod(shape))
        return self.sources[value]

    def is_made(self, value: Value) -> bool:
        """Whether a value is another one in each trip, by what the loop does."""
        if isinstance(value, Literal) or value in self.loop.operands:
            return False
        return value in self.carried or value is self.index or value not in self.given


def is_plain_zero(value: Literal) -> bool:
    """Whether all elements are 0.0 and none is -0.0."""
    number = np.asarray(value.value)
    return not np.any(number) and not np.any(np.signbit(number.real)) and not np.any(np.signbit(number.imag))


class Written:
    """A loop, written without what it moves about.

    Raises:
        InOrder: what is read, or left, is not made of pieces of arrays; or it is read where another trip made it.
    """

    def __init__(self, run: Run, most: int) -> None:
        self.run, self.most = run, most
        self.builder = Builder()
        self.builder.span = run.loop.span
        operands = [value for value in run.loop.operands if not isinstance(value, Literal)]
        self.params = [self.builder.param(value.type) for value in operands]
        self.outer: Env = dict(zip(operands, self.params, strict=True))
        self.columns: dict[Value, Value] = {}
        """What stands for columns of the new loop that are made in it."""

    def function(self) -> Function:
        run, attrs = self.run, self.run.loop.attrs
        kept = [k for k, param in enumerate(run.carried) if param not in run.gone]
        made = [value for value, source in run.sources.items() if source.inside]
        handed = [*kept, *range(attrs["carries"], len(run.loop.operands))]
        inner = Builder()
        inner.span = run.loop.span
        env: Env = {run.index: inner.param(run.index.type)}
        for k in handed:
            param = run.body.params[1 + k]
            env[param] = inner.param(param.type, param.name)
        operands = [look_up(self.outer, run.loop.operands[k]) for k in handed]
        for value in run.read:
            stacked = self.stack(value)
            if isinstance(stacked, Literal) and stacked.splat:
                env[value] = literal(stacked.value, value.type)
            else:
                env[value] = inner.param(value.type, value.name)
                operands.append(stacked)
        for operation in run.kept:
            inner.span = operation.span or run.loop.span
            again = [look_up(env, value) for value in operation.operands]
            emitted = inner.emit_operation(operation.op, again, operation.attrs)
            env.update(zip(operation.results, emitted.results, strict=True))
        last = run.body.results[attrs["carries"] :]
        yielded = [*(run.body.results[k] for k in kept), *(v for v in last if v not in run.gone), *made]
        region = inner.region([look_up(env, value) for value in yielded])
        loop = self.builder.emit_operation(run.loop.op, operands, {**attrs, "carries": len(kept)}, [region])
        found = iter(loop.results)
        carried = {k: next(found) for k in kept}
        columns = [None if value in run.gone else next(found) for value in last]
        self.columns = dict(zip(made, found, strict=True))
        results = [carried[k] if k in carried else self.left(param) for k, param in enumerate(run.carried)]
        for value, column in zip(last, columns, strict=True):
            results.append(self.stack(value) if column is None else column)
        return dce(self.builder.function("loop", results))

    def left(self, param: Value) -> Value:
        """What the loop leaves of an array."""
        state = self.run.state[param]
        return self.of_names(state, param.type) if param in self.run.moved else literal(state, param.type)

    def stack(self, value: Value) -> Value:
        """What a value is in all trips."""
        if value.type.size * self.run.count > self.most:
            raise InOrder
        seen = self.run.seen[value]
        stacked = np.stack([seen[trip] for trip in range(self.run.count)])
        type = ArrayType(value.type.dtype, stacked.shape)
        if value in self.run.moved:
            return self.of_names(stacked, type)
        same = stacked.size and bool(np.all(stacked == stacked.flat[0]))
        return literal(stacked.flat[0] if same else stacked, type)

    # --- names --------------------------------------------------------------------------------------------------------

    def emit(self, name: str, operands: Sequence[Value], **attrs: Any) -> Value:
        return self.builder.emit(REGISTRY[name], operands, attrs)

    def of_names(self, names: Array, type: ArrayType) -> Value:
        """The elements that have names."""
        rest = names != 0
        pieces: list[tuple[Array, Value]] = []
        while np.any(rest):
            if len(pieces) == MOST_PIECES:
                raise InOrder
            here, value = self.piece(names, rest, type)
            pieces.append((here, value))
            rest = rest & ~here
        found: Value = zeros(type)
        for here, value in pieces:
            found = value if np.all(here) else self.chosen(here, value, found)
        flagged = (names & 1) != 0
        if np.any(flagged):
            total = self.emit("add", [found, zeros(type)])
            found = total if np.all(flagged | (names == 0)) else self.chosen(flagged, total, found)
        return found

    def chosen(self, here: Array, value: Value, other: Value) -> Value:
        return self.emit("select", [literal(here, ArrayType(BOOL, here.shape)), value, other])

    def piece(self, names: Array, rest: Array, type: ArrayType) -> tuple[Array, Value]:
        """Where names are those of one array, turned and moved, and that array there."""
        place = np.unravel_index(int(np.argmax(rest)), names.shape)
        name = int(names[place]) >> 1
        source = next(each for each in self.run.sources.values() if 0 <= name - each.first < np.prod(each.shape))
        rank = len(source.shape)
        if rank != names.ndim or rank > MOST_AXES:
            raise InOrder
        own = np.unravel_index(name - source.first, source.shape)
        each = np.arange(source.first, source.first + int(np.prod(source.shape))).reshape(source.shape)
        best: tuple[int, Array, tuple[int, ...], list[slice], list[slice]] | None = None
        for perm in permutations(range(rank)):
            turned = each.transpose(perm)
            moves = [int(at) - int(own[axis]) for at, axis in zip(place, perm, strict=True)]
            spans = [(max(0, move), min(size, move + length))
                     for move, size, length in zip(moves, names.shape, turned.shape, strict=True)]  # fmt: skip
            to = [slice(low, high) for low, high in spans]
            of = [slice(low - move, high - move) for (low, high), move in zip(spans, moves, strict=True)]
            here = np.zeros(names.shape, bool)
            here[tuple(to)] = rest[tuple(to)] & (names[tuple(to)] >> 1 == turned[tuple(of)])
            count = int(np.count_nonzero(here))
            if best is None or count > best[0]:
                best = count, here, perm, to, of
        assert best is not None
        _, here, perm, to, of = best
        return here, self.cut(source, perm, to, of, type)

    def cut(
        self, source: Source, perm: tuple[int, ...], to: Sequence[slice], of: Sequence[slice], type: ArrayType
    ) -> Value:
        """A piece of an array with axes in another order, at its place in an array of zeros."""
        if source.inside and source.value not in self.columns:
            raise InOrder  # another trip made it
        value = self.columns[source.value] if source.inside else look_up(self.outer, source.value)
        if perm != tuple(range(len(perm))):
            value = self.emit("transpose", [value], perm=perm)
        if any(each != slice(0, size) for each, size in zip(of, value.type.shape, strict=True)):
            value = self.emit("slice", [value], **bounds(of))
        if all(each == slice(0, size) for each, size in zip(to, type.shape, strict=True)):
            return value
        return self.emit("slice_set", [zeros(type), value], **bounds(to))


def bounds(spans: Sequence[slice]) -> dict[str, tuple[int, ...]]:
    return {
        "starts": tuple(each.start for each in spans),
        "limits": tuple(each.stop for each in spans),
        "strides": (1,) * len(spans),
    }
