"""What control flow does not need to do in its regions.

- A `cond` with a known predicate is the branch that it takes.
- A literal operand stands in the regions itself; so does an element of a literal tape.
- A carry that no trip changes is a constant; so is one that each trip leaves as the literal that it was.
- What a loop computes from constants alone is computed before it, unless it might raise. One number that elementwise
  work reads as an array stays a number: an array of it would be read from memory in each trip, and is no known divisor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.passes.dead_control import CONTROL
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.transforms.residuals import invariant
from srcgrad.ir.types import TapeType


def has_control(function: Region) -> bool:
    return any(operation.op.name in CONTROL for operation in function.walk())


def has_loops(function: Region) -> bool:
    return any(operation.op.name == "for" for operation in function.walk())


def has_literals(function: Region) -> bool:
    """Whether constants of control flow are literals, which its regions can have themselves."""
    return any(isinstance(value, Literal) for operation in function.walk() for value in constants_of(operation))


def constants_of(operation: Operation) -> Sequence[Value]:
    """What control flow hands to its regions as it is."""
    if operation.op.name == "cond":
        return operation.operands[1:]
    if operation.op.name not in CONTROL:
        return ()
    attrs = operation.attrs
    start = attrs["carries"] + (operation.op.name == "for" and attrs["trips"] is None)
    return operation.operands[start : start + attrs["consts"] if operation.op.name == "for" else None]


def tidy(function: Function) -> Function:
    """The function with less in the regions of its control flow; itself if it has none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> print(tidy(parse('''func @f(%x: f64[]) -> (f64[]) {
    ...   %s: f64[], %n: i64[] = while 1.0, %x {carries=1}
    ...     condition (%s: f64[], %x: f64[]) {
    ...       %0: bool[] = less %s, 9.0
    ...       yield %0
    ...     }
    ...     body (%s: f64[], %x: f64[]) {
    ...       %0: f64[] = exp %x
    ...       %1: f64[] = add %s, %0
    ...       yield %1
    ...     }
    ...   return %s
    ... }''')).operations[0].op.name)
    exp
    """
    return tidied(function) if has_control(function) else function


def tidied(region: AnyRegion) -> AnyRegion:
    builder = Builder()
    env: Env = {param: param for param in region.params}
    run(builder, region.operations, env)
    return rebuilt(region, builder.operations, [look_up(env, value) for value in region.results])


def run(builder: Builder, operations: Sequence[Operation], env: Env) -> None:
    """Emit operations; ``env`` maps what they read, and then what they give."""
    outer = builder.span
    for operation in operations:
        builder.span = operation.span or outer
        operands = [look_up(env, value) for value in operation.operands]
        if operation.op.name == "cond":
            results = run_cond(builder, operation, operands)
        elif operation.op.name in CONTROL:
            results = run_loop(builder, operation, operands)
        else:
            regions = [tidied(inner) for inner in operation.regions]
            results = list(builder.emit_operation(operation.op, operands, operation.attrs, regions).results)
        for old, new in zip(operation.results, results, strict=True):
            if new.name is None and new.producer is not None:
                new.name = old.name
            env[old] = new
    builder.span = outer


def run_region(builder: Builder, region: Region, env: Env) -> list[Value]:
    run(builder, region.operations, env)
    return [look_up(env, value) for value in region.results]


def run_cond(builder: Builder, operation: Operation, operands: Sequence[Value]) -> list[Value]:
    predicate, *values = operands
    if isinstance(predicate, Literal):
        taken = operation.regions[0 if predicate.value else 1]
        return run_region(builder, taken, dict(zip(taken.params, values, strict=True)))
    kept = [k for k, value in enumerate(values) if not isinstance(value, Literal)]
    regions = []
    for region in operation.regions:
        inner = Builder()
        env: Env = dict(zip(region.params, values, strict=True))
        for k in kept:
            env[region.params[k]] = inner.param(values[k].type, region.params[k].name)
        regions.append(inner.region(run_region(inner, region, env)))
    given = [predicate, *(values[k] for k in kept)]
    return list(builder.emit_operation(operation.op, given, operation.attrs, regions).results)


def run_loop(builder: Builder, operation: Operation, operands: Sequence[Value]) -> list[Value]:
    attrs: dict[str, Any] = dict(operation.attrs)
    body, counted = operation.regions[-1], operation.op.name == "for"
    dynamic = counted and attrs["trips"] is None
    count, given = list(operands[: int(dynamic)]), operands[int(dynamic) :]
    params = body.params[int(counted) :]
    carries = attrs["carries"]
    columns_start = carries + attrs["consts"] if counted else len(given)
    same = [{params[k], given[k]} if isinstance(given[k], Literal) else {params[k]} for k in range(carries)]
    changing = [k for k in range(carries) if body.results[k] not in same[k]]
    known: dict[int, Value] = {}
    for k, value in enumerate(given):
        if isinstance(value, Literal) and k >= columns_start and isinstance(value.type, TapeType):
            known[k] = Literal(value.value, value.type.element)
        elif isinstance(value, Literal) and k < columns_start and k not in changing:
            known[k] = value
    consts = [k for k in range(columns_start) if k not in changing and k not in known]
    columns = [k for k in range(columns_start, len(given)) if k not in known]

    inner = Builder()
    index = [inner.param(body.params[0].type, body.params[0].name)] if counted else []
    env: Env = dict(zip(body.params[: len(index)], index, strict=True))
    env.update({params[k]: value for k, value in known.items()})
    own = {k: inner.param(params[k].type, params[k].name) for k in [*changing, *consts, *columns]}
    env.update({params[k]: value for k, value in own.items()})
    results = run_region(inner, body, env)
    results = [value for k, value in enumerate(results) if k >= carries or k in changing]
    const_of = {own[k]: given[k] for k in consts}
    region, moved = hoisted(builder, inner, results, const_of, len(index) + len(changing) + len(consts), attrs)
    regions = [region]
    if not counted:
        regions.insert(0, with_params(operation.regions[0], changing, consts, known, moved, own))
    attrs["carries"] = len(changing)
    if counted:
        attrs["consts"] = len(consts) + len(moved)
    flat = [*count, *(given[k] for k in changing), *(given[k] for k in consts), *moved, *(given[k] for k in columns)]
    found = builder.emit_operation(operation.op, flat, attrs, regions).results
    by_carry = dict(zip(changing, found, strict=False))
    return [by_carry.get(k, given[k]) for k in range(carries)] + list(found[len(changing) :])


def hoisted(
    builder: Builder, inner: Builder, results: Sequence[Value], const_of: Env, place: int, attrs: dict[str, Any]
) -> tuple[Region, list[Value]]:
    """The body without what depends on constants alone, which is emitted before; and that, as further constants.

    ``place`` is where parameters for these go.
    """
    fixed = invariant(inner.operations, const_of, False)
    movable = [
        operation
        for operation in inner.operations
        if operation.results and all(result in fixed for result in operation.results)
    ]
    # What literals alone make without a region is folded, and cheap to make again.
    gone = {
        operation
        for operation in movable
        if operation.regions or not all(isinstance(value, Literal) for value in operation.operands)
    }
    gone -= numbers_spread(inner.operations, results, gone)
    if not gone:
        return Region(inner.params, inner.operations, results), []
    outer: Env = dict(const_of)
    for operation in movable:
        operands = [look_up(outer, value) for value in operation.operands]
        again = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, again.results, strict=True):
            new.name = new.name or old.name
            outer[old] = new
    rest = [operation for operation in inner.operations if operation not in gone]
    read = dict.fromkeys(value for operation in rest for value in operation.operands)
    read.update(dict.fromkeys(results))
    shared = [value for value in read if value.producer in gone]
    fresh = Builder()
    env: Env = {}
    for param in inner.params[:place]:
        env[param] = fresh.param(param.type, param.name)
    for value in shared:
        env[value] = fresh.param(value.type, value.name)
    for param in inner.params[place:]:
        env[param] = fresh.param(param.type, param.name)
    for operation in rest:
        fresh.span = operation.span
        operands = [look_up(env, value) for value in operation.operands]
        again = fresh.emit_operation(operation.op, operands, operation.attrs, operation.regions)
        for old, new in zip(operation.results, again.results, strict=True):
            new.name = new.name or old.name
            env[old] = new
    return fresh.region([look_up(env, value) for value in results]), [outer[value] for value in shared]


def numbers_spread(
    operations: Sequence[Operation], results: Sequence[Value], gone: Collection[Operation]
) -> set[Operation]:
    """The broadcasts among ``gone`` of single numbers that only elementwise operations which stay read."""
    found = {
        operation for operation in gone if operation.op.name == "broadcast" and operation.operands[0].type.size == 1
    }
    if found:
        found -= {value.producer for value in results}
        for operation in operations:
            if operation not in gone and not isinstance(operation.op, Elementwise):
                found -= {value.producer for value in operation.operands}
    return found


def with_params(
    condition: Region,
    changing: Sequence[int],
    consts: Sequence[int],
    known: dict[int, Value],
    moved: Sequence[Value],
    own: dict[int, Value],
) -> Region:
    """The condition with the parameters of the body."""
    builder = Builder()
    env: Env = {condition.params[k]: value for k, value in known.items()}
    for k in [*changing, *consts]:
        env[condition.params[k]] = builder.param(own[k].type, condition.params[k].name)
    for value in moved:
        builder.param(value.type, value.name)
    return builder.region(run_region(builder, condition, env))
