"""Programs as their terms are: differences and branches that add are sums, elements are read where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from srcgrad.ir.core import Builder, Operation, Region, Value, zeros
from srcgrad.ir.passes.layouts import Rewriting
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.transforms.interpret import Env, inline, look_up


def added(value: Value) -> Iterator[Value]:
    """The terms of a sum."""
    pending = [value]
    while pending:
        value = pending.pop()
        operation = value.producer
        if operation is not None and operation.op.name == "add":
            pending += operation.operands[::-1]
        else:
            yield value


class Sums(Rewriting):
    """Writes a function again: differences, and branches that add, are sums; what is read of an array that is written
    to in another place is read of the array as it was."""

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        regions = [self.region(region) for region in operation.regions]
        if operation.op.name == "cond":
            found = accumulated(builder, operation, operands, regions)
            if found is not None:
                return [found]
        if operation.op.name == "slice":
            found = read_past_writes(operands[0], operation)
            operands = [found]
            if found.type == operation.results[0].type:
                return [found]
        if operation.op.name == "sub" and operation.results[0].type.dtype.kind in "fc":
            return [emit(builder, "add", operands[0], emit(builder, "neg", operands[1]))]
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results


def read_past_writes(array: Value, part: Operation) -> Value:
    """What a part of an array is read of: what was written there, or the array before others parts were written."""
    bounds = [part.attrs[name] for name in ("starts", "limits", "strides")]
    while array.producer is not None and array.producer.op.name == "slice_set":
        write = array.producer
        theirs = [write.attrs[name] for name in ("starts", "limits", "strides")]
        if theirs == bounds:
            return write.operands[1]
        ends = zip(*bounds[:2], *theirs[:2], strict=True)
        if not any(limit <= first or end <= start for first, end, start, limit in ends):
            break
        array = write.operands[0]
    return array


def term_of(region: Region, place: int) -> list[Value] | None:
    """What a region adds to one of its parameters, which it uses for nothing else."""
    param = region.params[place]
    terms = list(added(region.results[0]))
    rest = [term for term in terms if term is not param]
    if len(rest) != len(terms) - 1 or not rest or not is_free(region, rest, {param}):
        return None
    return rest


def is_free(region: Region, values: Sequence[Value], params: set[Value]) -> bool:
    """Whether values of a region are made without these parameters."""
    needed = set(values)
    for operation in reversed(region.operations):
        if not needed.isdisjoint(operation.results):
            needed.update(operation.operands)
    return needed.isdisjoint(params)


def accumulated(
    builder: Builder, operation: Operation, operands: Sequence[Value], regions: Sequence[Region]
) -> Value | None:
    """``if p: total += term`` as ``total + (term if p else 0)``; None where it is something else."""
    if len(operation.results) != 1 or operation.acts:
        return None
    type = operation.results[0].type
    for turned, (region, other) in enumerate((regions[::-1], regions)):
        total, terms = total_and_terms(region, other, operands[1:])
        if terms is None:
            continue
        for term in inline(builder, Region(other.params, other.operations, terms), operands[1:]):
            pair = [zeros(type), term] if turned else [term, zeros(type)]
            chosen = emit(builder, "select", operands[0], *pair)
            total = chosen if is_zero(total) else emit(builder, "add", total, chosen)
        return total
    return None


def total_and_terms(region: Region, other: Region, operands: Sequence[Value]) -> tuple[Value, list[Value] | None]:
    """What one region gives as it is, and what the other one adds to it."""
    (total,) = region.results
    if is_zero(total):
        return total, [term for term in added(other.results[0]) if not is_zero(term)] or None
    if total not in region.params:
        return total, None
    place = region.params.index(total)
    return operands[place], term_of(other, place)
