"""Batching of control flow.

What the examples agree on stays as it is. Where they do not, both branches run, and a loop runs until the last example
is done, with the others frozen. An example on which a branch or a trip should not run must not be noticed: it must not
raise, nor keep a loop from ending. So where that could be, it runs on the operands of an example that does run it.
"""

from __future__ import annotations

from collections.abc import Sequence

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, literal, zeros
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Term, broadcast_to
from srcgrad.ir.transforms.batch import batch_region, with_leading_axis
from srcgrad.ir.transforms.push_control import Loop
from srcgrad.ir.transforms.residuals import is_safe
from srcgrad.ir.transforms.structured import inside
from srcgrad.ir.types import BOOL, INT64, ArrayType, Size, TapeType

COUNT = ArrayType(INT64)


def with_axis(type: ArrayType, size: Size) -> ArrayType:
    return type.with_shape((size, *type.shape))


def params_of(builder: Builder, params: Sequence[Value], flags: Sequence[bool], size: Size) -> list[Value]:
    return [
        builder.param(with_axis(param.type, size) if flag else param.type, param.name)
        for param, flag in zip(params, flags, strict=True)
    ]


def widened(
    builder: Builder, values: Sequence[Value], flags: Sequence[bool], wanted: Sequence[bool], size: Size
) -> list[Value]:
    """The values with a leading axis where it is wanted and they lack it."""
    return [
        with_leading_axis(builder, value, size) if want and not flag else value
        for value, flag, want in zip(values, flags, wanted, strict=True)
    ]


def choose(builder: Builder, chosen: Value, true: Value, false: Value) -> Value:
    """For each example, one of two values that have the leading axis."""
    if true is false:
        return true
    type = true.type
    if not isinstance(type, TapeType):
        predicate = broadcast_to(Term(builder, chosen), type.shape, (0,)).value
        return builder.emit(REGISTRY["select"], [predicate, true, false])
    inner = inside(builder)
    inner.param(COUNT, "index")
    predicate = inner.param(chosen.type)
    tapes = [value for value in (true, false) if not isinstance(value, Literal)]
    elements = iter([inner.param(type.element) for _ in tapes])
    sides = [
        literal(value.value, type.element) if isinstance(value, Literal) else next(elements) for value in (true, false)
    ]
    if not tapes:
        raise InternalError("two tapes of no length, and no example's own")
    body = inner.region([choose(inner, predicate, *sides)])
    count = builder.emit(REGISTRY["tape_length"], tapes)
    attrs = {"trips": None, "carries": 0, "consts": 1, "reverse": False, "lifted": True}
    return builder.emit(REGISTRY["for"], [count, chosen, *tapes], attrs, [body])


class Runners:
    """The examples that run something, and one of them for the others to imitate."""

    def __init__(self, builder: Builder, runs: Value) -> None:
        self.builder = builder
        self.runs = runs
        self.first = builder.emit(REGISTRY["argmax"], [runs], {"axis": 0})

    def imitated(self, values: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
        """The values, with those of the first runner for the examples that do not run."""
        return [self.imitate(value) if flag else value for value, flag in zip(values, flags, strict=True)]

    def imitate(self, value: Value) -> Value:
        if isinstance(value, Literal) and value.splat:
            return value
        builder, type = self.builder, value.type
        if not isinstance(type, TapeType):
            row = Term(builder, builder.emit(REGISTRY["gather"], [value, self.first], {"axis": 0}))
            other = broadcast_to(row, type.shape, tuple(range(1, len(type.shape))))
            return choose(builder, self.runs, value, other.value)
        inner = inside(builder)
        inner.param(COUNT, "index")
        runners = Runners(inner, inner.param(self.runs.type))
        body = inner.region([runners.imitate(inner.param(type.element))])
        count = builder.emit(REGISTRY["tape_length"], [value])
        attrs = {"trips": None, "carries": 0, "consts": 1, "reverse": False, "lifted": True}
        return builder.emit(REGISTRY["for"], [count, self.runs, value], attrs, [body])


def harmless(region: Region) -> bool:
    """Whether a region may run on what it was not meant for."""
    return all(is_safe(operation) for operation in region.operations)


# --- cond -------------------------------------------------------------------------------------------------------------


def batch_cond(
    builder: Builder, size: Size, operands: Sequence[Value], batched: Sequence[bool], operation: Operation
) -> list[Value]:
    predicate, *values = operands
    if not batched[0]:
        return agreed_cond(builder, size, predicate, values, batched[1:], operation)
    found = []
    for number, region in enumerate(operation.regions):
        runs = predicate if number == 0 else builder.emit(REGISTRY["logical_not"], [predicate])
        found.append(branch_of(builder, size, runs, values, batched[1:], region))
    return [choose(builder, predicate, true, false) for true, false in zip(*found, strict=True)]


def agreed_cond(
    builder: Builder, size: Size, predicate: Value, values: Sequence[Value], flags: Sequence[bool], operation: Operation
) -> list[Value]:
    """All examples take the same branch."""
    found = []
    for region in operation.regions:
        inner = inside(builder)
        found.append((inner, *batch_region(inner, region, params_of(inner, region.params, flags, size), flags, size)))
    wanted = [a or b for a, b in zip(found[0][2], found[1][2], strict=True)]
    regions = [inner.region(widened(inner, results, own, wanted, size)) for inner, results, own in found]
    return list(builder.emit_operation(operation.op, [predicate, *values], operation.attrs, regions).results)


def branch_of(
    builder: Builder, size: Size, runs: Value, values: Sequence[Value], flags: Sequence[bool], region: Region
) -> list[Value]:
    """The results of one branch, for the examples that take it; those of others are anything."""
    wanted = [True] * len(region.results)
    if harmless(region):
        results, own = batch_region(builder, region, values, flags, size)
        return widened(builder, results, own, wanted, size)
    inner = inside(builder)
    taken = inner.param(runs.type)
    arguments = params_of(inner, region.params, flags, size)
    given = Runners(inner, taken).imitated(arguments, flags)
    results, own = batch_region(inner, region, given, flags, size)
    then = inner.region(widened(inner, results, own, wanted, size))
    empty = inside(builder)
    for param in then.params:
        empty.param(param.type)
    orelse = empty.region([zeros(type) for type in then.result_types])
    any_runs = builder.emit(REGISTRY["reduce_or"], [runs], {"axes": (0,)})
    return list(builder.emit_operation(REGISTRY["cond"], [any_runs, runs, *values], {}, [then, orelse]).results)


# --- loops ------------------------------------------------------------------------------------------------------------


def batch_loop(
    builder: Builder, size: Size, operands: Sequence[Value], batched: Sequence[bool], operation: Operation
) -> list[Value]:
    loop = Loop.of(operation)
    rest = list(loop.rest(operands))
    flags = list(batched[1:] if loop.has_count else batched)
    if loop.has_count and batched[0]:
        return frozen_for(builder, size, operands[0], rest, flags, loop)
    if not loop.counted and not agrees(builder, size, flags, loop):
        return frozen_while(builder, size, rest, flags, loop)
    flags, inner, results, own = settled(builder, size, flags, loop)
    wanted = [*flags[: loop.carries], *own[loop.carries :]]
    body = inner.region(widened(inner, results, own, wanted, size))
    given = placed_columns(builder, loop, rest, flags, batched[len(operands) - len(rest) :], size)
    regions = [body]
    if not loop.counted:
        test = inside(builder)
        condition = operation.regions[0]
        found, _ = batch_region(test, condition, params_of(test, condition.params, flags, size), flags, size)
        regions.insert(0, test.region(found))
    operands = [*operands[: len(operands) - len(rest)], *given]
    emitted = builder.emit_operation(operation.op, operands, operation.attrs, regions)
    return outer_columns(builder, loop, emitted.results, wanted)


def settled(
    builder: Builder, size: Size, flags: Sequence[bool], loop: Loop
) -> tuple[list[bool], Builder, list[Value], list[bool]]:
    """Which carries are batched, as a fixed point; and the body with them."""
    flags = list(flags)
    skipped = [False] if loop.counted else []
    while True:
        inner = inside(builder)
        every = [*skipped, *flags]
        results, own = batch_region(inner, loop.body, params_of(inner, loop.body.params, every, size), every, size)
        found = [a or b for a, b in zip(flags[: loop.carries], own, strict=False)]
        if found == flags[: loop.carries]:
            return flags, inner, results, own
        flags[: loop.carries] = found


def agrees(builder: Builder, size: Size, flags: Sequence[bool], loop: Loop) -> bool:
    """Whether all examples make the same number of trips."""
    flags = settled(builder, size, flags, loop)[0]
    condition, test = loop.operation.regions[0], inside(builder)
    return not batch_region(test, condition, params_of(test, condition.params, flags, size), flags, size)[1][0]


def placed_columns(
    builder: Builder, loop: Loop, rest: Sequence[Value], flags: Sequence[bool], given: Sequence[bool], size: Size
) -> list[Value]:
    """The operands as the batched loop takes them: the axis of the trips comes first."""
    found = widened(builder, rest, given, flags, size)
    for position in range(loop.carries + loop.consts, len(found)):
        if flags[position] and not isinstance(found[position].type, TapeType):
            found[position] = swapped(builder, found[position])
    return found


def swapped(builder: Builder, value: Value) -> Value:
    """The first two axes change places."""
    rank = len(value.type.shape)
    return REGISTRY["transpose"](Term(builder, value), perm=(1, 0, *range(2, rank))).value


def outer_columns(builder: Builder, loop: Loop, results: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    """The results with the axis of the examples first; ``flags`` leaves the trip count out."""
    found = list(results)
    first = len(results) - (len(flags) - loop.carries)
    for position in range(first, len(found)):
        flag = flags[loop.carries + position - first]
        if flag and not isinstance(found[position].type, TapeType):
            found[position] = swapped(builder, found[position])
    return found


def frozen_trip(
    inner: Builder, size: Size, active: Value, arguments: Sequence[Value], flags: Sequence[bool], loop: Loop
) -> list[Value]:
    """One trip for the active examples: their new carries, the old ones of the others, and columns."""
    skipped = 1 if loop.counted else 0
    given = list(arguments)
    if not harmless(loop.body):
        given = Runners(inner, active).imitated(given, flags)
    results, own = batch_region(inner, loop.body, given, flags, size)
    found = widened(inner, results, own, [True] * len(results), size)
    old = arguments[skipped : skipped + loop.carries]
    carries = [choose(inner, active, new, kept) for new, kept in zip(found, old, strict=False)]
    return [*carries, *found[loop.carries :]]


def frozen_while(builder: Builder, size: Size, rest: Sequence[Value], flags: Sequence[bool], loop: Loop) -> list[Value]:
    """The loop until no example is active; two more carries say which are, and count their trips."""
    operation, count = loop.operation, loop.carries
    condition = operation.regions[0]
    wanted = [True] * count + list(flags[count:])
    values = widened(builder, rest, flags, wanted, size)
    active_type, count_type = ArrayType(BOOL, (size,)), ArrayType(INT64, (size,))
    start = batch_region(builder, condition, values, wanted, size)
    (active,) = widened(builder, *start, [True], size)

    test = inside(builder)
    shown = test.param(active_type)
    test.param(count_type)
    params_of(test, condition.params, wanted, size)
    test_region = test.region([test.emit(REGISTRY["reduce_or"], [shown], {"axes": (0,)})])

    inner = inside(builder)
    runs, trips = inner.param(active_type), inner.param(count_type)
    arguments = params_of(inner, loop.body.params, wanted, size)
    results = frozen_trip(inner, size, runs, arguments, wanted, loop)
    carries, columns = results[:count], results[count:]
    again = batch_region(inner, condition, [*carries, *arguments[count:]], wanted, size)
    (following,) = widened(inner, *again, [True], size)
    one = inner.emit(REGISTRY["cast"], [runs], {"dtype": INT64})
    more = inner.emit(REGISTRY["add"], [trips, one])
    body = inner.region([following, more, *carries, *columns])
    attrs = {**operation.attrs, "carries": count + 2}
    operands = [active, zeros(count_type), *values]
    emitted = builder.emit_operation(operation.op, operands, attrs, [test_region, body]).results
    return [*emitted[2 : 2 + count], emitted[1], *emitted[count + 3 :]]


def frozen_for(
    builder: Builder, size: Size, count: Value, rest: Sequence[Value], flags: Sequence[bool], loop: Loop
) -> list[Value]:
    """The loop over the trips of the example that has most; each example is active in its own."""
    wanted = [True] * loop.carries + list(flags[loop.carries :])
    given = widened(builder, rest, flags, wanted, size)
    inner = inside(builder)
    index = inner.param(COUNT, loop.body.params[0].name)
    second = loop.carries + loop.consts
    params = loop.body_params
    carries_consts = params_of(inner, params[:second], wanted[:second], size)
    counts = inner.param(count.type)
    elements = params_of(inner, params[second:], wanted[second:], size)
    here = broadcast_to(Term(inner, index), count.type.shape)
    active = inner.emit(REGISTRY["less"], [here.value, counts])
    arguments = [index, *carries_consts, *elements]
    results = frozen_trip(inner, size, active, arguments, [False, *wanted], loop)
    attrs = {**loop.operation.attrs, "consts": loop.consts + 1}
    most = builder.emit(REGISTRY["reduce_max"], [count], {"axes": (0,)})
    operands = [most, *given[:second], count, *given[second:]]
    emitted = builder.emit_operation(loop.operation.op, operands, attrs, [inner.region(results)])
    return list(emitted.results)
