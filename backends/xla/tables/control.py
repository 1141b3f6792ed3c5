"""Control flow as ``lax.cond``, ``lax.while_loop`` and ``lax.scan``.

A tape is an array with a leading axis of some *capacity*, a power of two that is remembered for each loop and grown
where a call makes more trips; a literal tape is a `Filled`. What the operations of a region report, failed checks and
trip counts, is carried out of it (see ``program.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import numpy as np
from jax import lax

from srcgrad.backends.xla.program import INT64, Application, Effect, Program, Row, is_fine
from srcgrad.backends.xla.tables import contextual
from srcgrad.ir.core import Operation, Region


@jax.tree_util.register_pytree_node_class
class Filled:
    """A tape with the same element at every index, which fits every length."""

    __slots__ = ("element",)

    def __init__(self, element: Any) -> None:
        self.element = element

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.element,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any]) -> Filled:
        return cls(children[0])


# --- shapes -----------------------------------------------------------------------------------------------------------


def struct(shape: Sequence[int], dtype: Any) -> Any:
    make: Any = jax.ShapeDtypeStruct
    return make(tuple(shape), dtype)


def struct_of(value: Any) -> Any:
    """What jax needs to know of a value."""
    if isinstance(value, Filled):
        return Filled(struct_of(value.element))
    return struct(np.shape(value), np.result_type(value) if not hasattr(value, "dtype") else value.dtype)


def joined(one: Any, other: Any) -> Any:
    """What stands for either: of tapes, the larger capacity."""
    if isinstance(one, Filled) and isinstance(other, Filled):
        return Filled(joined(one.element, other.element))
    if isinstance(one, Filled):
        one, other = other, one
    if isinstance(other, Filled):
        inner = joined(other.element, struct(one.shape[1:], one.dtype))
        return struct((one.shape[0], *inner.shape), one.dtype)
    return struct([max(a, b) for a, b in zip(one.shape, other.shape, strict=True)], one.dtype)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Filled) or isinstance(other, Filled):
        return isinstance(one, Filled) and isinstance(other, Filled) and same(one.element, other.element)
    return bool(one.shape == other.shape)


def fit(value: Any, target: Any) -> Any:
    """The value in a shape that it is joined to: a tape repeats its last element, so that a short one can be filled."""
    if isinstance(target, Filled):
        return Filled(fit(value.element, target.element))
    if isinstance(value, Filled):
        element = fit(value.element, struct(target.shape[1:], target.dtype))
        return lax.broadcast(element, target.shape[:1])
    if tuple(value.shape) == tuple(target.shape):
        return value
    for axis, size in enumerate(target.shape):
        missing = size - value.shape[axis]
        if missing:
            last = lax.slice_in_dim(value, value.shape[axis] - 1, value.shape[axis], axis=axis)
            value = padded(value, last, missing, axis)
    return value


def padded(value: Any, last: Any, missing: int, axis: int) -> Any:
    shape = list(last.shape)
    shape[axis] = missing
    dims = tuple(range(len(shape)))
    return lax.concatenate([value, lax.broadcast_in_dim(last, shape, dims)], axis)


def solid(target: Any) -> Any:
    """A shape of arrays alone: what is filled has room for one element."""
    if not isinstance(target, Filled):
        return target
    element = solid(target.element)
    return struct((1, *element.shape), element.dtype)


def made_solid(value: Any) -> Any:
    """A value as one array, as it leaves a program."""
    return fit(value, solid(struct_of(value))) if isinstance(value, Filled) else value


def element_at(column: Any, index: Any) -> Any:
    if isinstance(column, Filled):
        return column.element
    return lax.dynamic_index_in_dim(column, index, 0, keepdims=False)


# --- regions ----------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What running a region once gives, in shapes, and what its operations report."""

    results: list[Any]
    effects: tuple[Effect, ...]
    demands: tuple[Operation, ...]

    @property
    def reports(self) -> int:
        return len(self.effects) + len(self.demands)


def run(
    program: Program, region: Region, arguments: Sequence[Any], alive: Any = None, sound: Any = None
) -> tuple[list[Any], Program]:
    inner = program.child(alive, sound)
    return program.walk(region, arguments, inner), inner


def explored(program: Program, region: Region, arguments: Sequence[Any]) -> Found:
    """What a region gives on arguments of such shapes; it is traced for that once."""
    shapes = [struct_of(argument) for argument in arguments]
    leaves, tree = jax.tree_util.tree_flatten(shapes)
    key = (id(region), tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
    known = program.explored.get(key)
    if known is None:
        notes: list[Any] = []

        def trace(*given: Any) -> Any:
            results, inner = run(program, region, given, np.bool_(True))
            notes[:] = [tuple(inner.effects), tuple(operation for operation, _ in inner.demands)]
            return results

        results = jax.eval_shape(trace, *shapes)
        known = program.explored[key] = Found([struct_of(result) for result in results], *notes)
    return known


def while_sound(program: Program, going: Any, rows: Sequence[Row]) -> Any:
    """Whether a loop goes on that would: not where something has failed, before it or in the trips that report."""
    sound = program.sound(rows)
    return going if sound is None else lax.bitwise_and(going, sound)


def no_rows(count: int) -> list[Row]:
    return [(np.int64(0), np.int64(0))] * count


def later(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The reports after one more trip: the first trip that fails is the one that counts."""
    failed: Any = np.int64(0)
    for row in old:
        failed = lax.bitwise_or(failed, row[0])
    fine = lax.eq(failed, np.int64(0))
    return [
        (lax.select(fine, now[0], before[0]), lax.select(fine, now[1], before[1]))
        for before, now in zip(old, new, strict=True)
    ]


def largest(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    return [lax.max(before, now) for before, now in zip(old, new, strict=True)]


def as_arrays(tree: Any) -> Any:
    return jax.tree_util.tree_map(lambda leaf: lax.convert_element_type(leaf, leaf.dtype), tree)


def reported(program: Program, found: Found, rows: Sequence[Row], demands: Sequence[Any]) -> None:
    """Tell the program around what a region has reported."""
    for effect, (failed, detail) in zip(found.effects, rows, strict=True):
        program.report(failed, detail, effect)
    program.demands.extend(zip(found.demands, demands, strict=True))


def as_results(application: Application, found: Sequence[Any]) -> Any:
    return found[0] if len(application.operation.results) == 1 else tuple(found)


@contextual
def cond(application: Application, predicate: Any, *operands: Any) -> Any:
    program, regions = application.program, application.operation.regions
    operands = as_arrays(operands)
    found = [explored(program, region, operands) for region in regions]
    targets = [joined(a, b) for a, b in zip(found[0].results, found[1].results, strict=True)]
    total = Found(targets, found[0].effects + found[1].effects, found[0].demands + found[1].demands)
    alive, sound = program.alive(), program.sound()

    def branch(number: int) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            results, inner = run(program, regions[number], given, alive, sound)
            fitted = [fit(result, target) for result, target in zip(results, targets, strict=True)]
            rows, demands = list(inner.rows), [value for _, value in inner.demands]
            other = found[1 - number]
            blank, none = no_rows(len(other.effects)), [np.int64(0)] * len(other.demands)
            rows = rows + blank if number == 0 else blank + rows
            demands = demands + none if number == 0 else none + demands
            return as_arrays((fitted, rows, demands))

        return call

    results, rows, demands = lax.cond(predicate, branch(0), branch(1), *operands)
    reported(program, total, rows, demands)
    return as_results(application, results)


# --- loops ------------------------------------------------------------------------------------------------------------


def settled(
    program: Program, body: Region, before: Sequence[Any], carries: Sequence[Any], after: Sequence[Any]
) -> tuple[list[Any], Found]:
    """The shapes of the carries, in which tapes may grow, and what the body gives with them."""
    targets = [struct_of(carry) for carry in carries]
    while True:
        found = explored(program, body, [*before, *targets, *after])
        wider = [joined(a, b) for a, b in zip(targets, found.results, strict=False)]
        if all(map(same, wider, targets)):
            return targets, found
        targets = wider


def buffers(found: Found, carries: int, capacity: int) -> list[Any]:
    """Room for the columns of a loop."""
    made = []
    for target in found.results[carries:]:
        element = solid(target)
        zero: Any = np.zeros((), element.dtype)[()]
        made.append(lax.full((capacity, *element.shape), zero, element.dtype))
    return made


def stored(rooms: Sequence[Any], elements: Sequence[Any], index: Any) -> list[Any]:
    found = []
    for room, element in zip(rooms, elements, strict=True):
        whole = fit(element, struct(room.shape[1:], room.dtype))
        found.append(lax.dynamic_update_index_in_dim(room, whole, index, 0))
    return found


@contextual
def while_loop(application: Application, *operands: Any) -> Any:
    operation, program = application.operation, application.program
    condition, body = operation.regions
    count = application.attrs["carries"]
    operands = as_arrays(operands)
    consts = operands[count:]
    targets, found = settled(program, body, (), operands[:count], consts)
    test = explored(program, condition, [*targets, *consts])
    capacity = program.capacity(operation) if len(found.results) > count else 1
    total = Found([], test.effects + found.effects, test.demands + found.demands)
    alive = program.alive()

    def going_on(rows: Sequence[Row], demands: Sequence[Any]) -> Any:
        return lax.bitwise_and(lax.bitwise_and(alive, is_fine(rows)), program.fits(total.demands, demands))

    def tested(carries: Sequence[Any], rows: Sequence[Row], demands: Sequence[Any]) -> tuple[Any, list[Row], list[Any]]:
        going = going_on(rows, demands) if program.checks else np.bool_(True)
        (holds,), inner = run(program, condition, [*carries, *consts], going, program.sound(rows))
        return holds, list(inner.rows), [value for _, value in inner.demands]

    def go(state: Any) -> Any:
        carries, _, rows, demands, _, holds = state
        if not test.reports:
            holds = tested(carries, rows, demands)[0]
        return while_sound(program, holds, rows)

    def trip(state: Any) -> Any:
        carries, number, rows, demands, rooms, holds = state
        results, inner = run(program, body, [*carries, *consts], going_on(rows, demands), program.sound(rows))
        new = [fit(value, target) for value, target in zip(results, targets, strict=False)]
        rooms = stored(rooms, results[count:], number)
        own = no_rows(len(test.effects)) + list(inner.rows)
        counts = [np.int64(0)] * len(test.demands) + [value for _, value in inner.demands]
        rows, demands = later(rows, own), largest(demands, counts)
        if test.reports:
            holds, more, needs = tested(new, rows, demands)
            rows = later(rows, more + no_rows(len(found.effects)))
            demands = largest(demands, needs + [np.int64(0)] * len(found.demands))
        return as_arrays((new, lax.add(number, np.int64(1)), rows, demands, rooms, holds))

    start = [fit(value, target) for value, target in zip(operands, targets, strict=False)]
    rows, demands, holds = no_rows(len(total.effects)), [np.int64(0)] * len(total.demands), np.bool_(True)
    if test.reports:
        holds, first, needs = tested(start, rows, demands)
        rows = first + no_rows(len(found.effects))
        demands = needs + [np.int64(0)] * len(found.demands)
    rooms = buffers(found, count, capacity)
    state = as_arrays((start, np.int64(0), rows, demands, rooms, holds))
    carries, number, rows, demands, rooms, _ = lax.while_loop(go, trip, state)
    reported(program, total, rows, demands)
    if rooms:
        program.demands.append((operation, number))
    return as_results(application, [*carries, number, *rooms])


@contextual
def for_loop(application: Application, *operands: Any) -> Any:
    operation = application.operation
    attrs = application.attrs
    given = list(as_arrays(operands))
    number = given.pop(0) if attrs["trips"] is None else None
    first, second = attrs["carries"], attrs["carries"] + attrs["consts"]
    loop = ForLoop(
        application.program, operation, operation.regions[0], given[:first], given[first:second], given[second:],
        attrs["reverse"],
    )  # fmt: skip
    real = [column for column in loop.columns if not isinstance(column, Filled)]
    if number is None:
        found = loop.scan(attrs["trips"])
    elif not attrs.get("lifted", False):
        found = loop.count_to(number, max([column.shape[0] for column in real], default=0))
    elif real:
        found = loop.scan(max(column.shape[0] for column in real))
    else:
        first = np.int64(0)
        results, _ = run(loop.program, loop.body, [first, *loop.consts, *loop.row(first)])
        found = [Filled(result) for result in results]
    return as_results(application, found)


class ForLoop(NamedTuple):
    """A `for` with its operands as jax arrays."""

    program: Program
    operation: Operation
    body: Region
    carries: list[Any]
    consts: list[Any]
    columns: list[Any]
    reverse: bool

    def row(self, index: Any) -> list[Any]:
        return [element_at(column, index) for column in self.columns]

    def settled(self) -> tuple[list[Any], Found]:
        elements = [
            struct_of(column.element) if isinstance(column, Filled) else struct(column.shape[1:], column.dtype)
            for column in self.columns
        ]
        return settled(self.program, self.body, [struct((), INT64)], self.carries, [*self.consts, *elements])

    def trip(
        self,
        alive: Any,
        targets: Sequence[Any],
        loops: Sequence[Operation],
        index: Any,
        state: Any,
        elements: Sequence[Any],
    ) -> tuple[Any, list[Any]]:
        carries, rows, demands = state
        going = lax.bitwise_and(lax.bitwise_and(alive, is_fine(rows)), self.program.fits(loops, demands))
        given = [index, *carries, *self.consts, *elements]
        results, inner = run(self.program, self.body, given, going, self.program.sound(rows))
        new = [fit(value, target) for value, target in zip(results, targets, strict=False)]
        rows = later(rows, inner.rows)
        demands = largest(demands, [value for _, value in inner.demands])
        return as_arrays((new, rows, demands)), results[len(self.carries) :]

    def start(self, targets: Sequence[Any], found: Found) -> Any:
        carries = [fit(value, target) for value, target in zip(self.carries, targets, strict=True)]
        return as_arrays((carries, no_rows(len(found.effects)), [np.int64(0)] * len(found.demands)))

    def scan(self, trips: int) -> list[Any]:
        """So many trips: columns are sliced and stacked."""
        targets, found = self.settled()
        alive, count = self.program.alive(), len(self.carries)
        elements = [solid(target) for target in found.results[count:]]
        real = [k for k, column in enumerate(self.columns) if not isinstance(column, Filled)]

        def trip(state: Any, given: Any) -> Any:
            index, sliced = given
            row = self.row(np.int64(0)) if len(real) < len(self.columns) and not real else None
            if row is None:
                values = iter(sliced)
                row = [column.element if isinstance(column, Filled) else next(values) for column in self.columns]
            state, made = self.trip(alive, targets, found.demands, index, state, row)
            return state, as_arrays([fit(value, element) for value, element in zip(made, elements, strict=True)])

        indices = lax.iota(INT64, trips)
        state, made = lax.scan(
            trip, self.start(targets, found), (indices, [self.columns[k] for k in real]), trips, self.reverse
        )
        carries, rows, demands = state
        reported(self.program, found, rows, demands)
        return [*carries, *made]

    def count_to(self, number: Any, capacity: int) -> list[Any]:
        """As many trips as a value says; columns that are made have room for as many as those that are read."""
        targets, found = self.settled()
        alive, count = self.program.alive(), len(self.carries)
        makes = len(found.results) > count
        own = makes and not capacity
        rooms = buffers(found, count, self.program.capacity(self.operation) if own else capacity)

        def trip(state: Any) -> Any:
            done, inner, filled = state
            index = lax.sub(lax.sub(number, done), np.int64(1)) if self.reverse else done
            inner, made = self.trip(alive, targets, found.demands, index, inner, self.row(index))
            return as_arrays((lax.add(done, np.int64(1)), inner, stored(filled, made, index)))

        def go(state: Any) -> Any:
            return while_sound(self.program, lax.lt(state[0], number), state[1][1])

        begin = as_arrays((np.int64(0), self.start(targets, found), rooms))
        _, (carries, rows, demands), rooms = lax.while_loop(go, trip, begin)
        reported(self.program, found, rows, demands)
        if own:
            self.program.demands.append((self.operation, number))
        return [*carries, *rooms]


def tape_length(*tapes: Any) -> Any:
    """The capacity, which is what a loop over tapes alone runs through; -1 if all are filled."""
    return np.int64(max([tape.shape[0] for tape in tapes if not isinstance(tape, Filled)], default=-1))


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "cond": cond,
    "for": for_loop,
    "tape_length": tape_length,
    "while": while_loop,
}
