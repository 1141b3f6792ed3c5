"""Programs as their terms are: differences and branches that add are sums, elements are read where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, zeros
from srcgrad.ir.passes.layouts import Rewriting
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.values import full_bounds
from srcgrad.ir.transforms.interpret import Env, inline, look_up


def added(value: Value) -> Iterator[Value]:
    """The terms of a sum."""
    return chained(value, "add")


def chained(value: Value, op: str) -> Iterator[Value]:
    """The terms of a sum, or the factors of a product: what an op is applied to that is applied to its results.

    What is in it twice is taken as a whole the second time: twenty sums of a sum with itself have a million terms.
    """
    pending, opened = [value], set[Value]()
    while pending:
        value = pending.pop()
        operation = value.producer
        if operation is not None and operation.op.name == op and value not in opened:
            opened.add(value)
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
            sums = accumulated(builder, operation, operands, regions)
            if sums is not None:
                return sums
        if operation.op.name == "gather":
            part = part_read(builder, operation, operands)
            if part is not None:
                return [part]
        if operation.op.name == "slice":
            found = read_past_writes(operands[0], operation)
            operands = [found]
            if found.type == operation.results[0].type:
                return [found]
        if operation.op.name == "sub" and operation.results[0].type.dtype.kind in "fc":
            return [emit(builder, "add", operands[0], emit(builder, "neg", operands[1]))]
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results


def part_read(builder: Builder, operation: Operation, operands: Sequence[Value]) -> Value | None:
    """What is read at one place of an axis that is known, as a slice."""
    axis, index = operation.attrs["axis"], operands[1] if len(operands) == 2 else None
    size = operands[0].type.shape[axis]
    if not isinstance(index, Literal) or index.type.size != 1 or not isinstance(size, int):
        return None
    starts, limits, strides = map(list, full_bounds(operands[0].type.shape))
    starts[axis] = int(index.value.reshape(-1)[0]) % size
    limits[axis] = starts[axis] + 1
    part = emit(builder, "slice", operands[0], starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))
    return emit(builder, "reshape", part, shape=operation.results[0].type.shape)


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


def term_of(region: Region, place: int, param: int) -> list[Value] | None:
    """What a region adds to one of its parameters for a result, and makes without it."""
    total = region.params[param]
    terms = list(added(region.results[place]))
    rest = [term for term in terms if term is not total]
    if len(rest) != len(terms) - 1 or not rest or not is_free(region, rest, {total}):
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
) -> list[Value] | None:
    """``if p: total += term`` as ``total + (term if p else 0)``; None where it does something else too."""
    found = []
    for place in range(0 if operation.acts else len(operation.results)):
        total, terms = total_and_terms(regions[1], regions[0], place, operands[1:])
        holds = terms is not None
        if terms is None:
            total, terms = total_and_terms(regions[0], regions[1], place, operands[1:])
        if terms is None:
            return None
        type, adds = operation.results[place].type, regions[0 if holds else 1]
        for term in inline(builder, Region(adds.params, adds.operations, terms), operands[1:]):
            pair = [term, zeros(type)] if holds else [zeros(type), term]
            chosen = emit(builder, "select", operands[0], *pair)
            total = chosen if is_zero(total) else emit(builder, "add", total, chosen)
        found.append(total)
    return found or None


def total_and_terms(
    region: Region, other: Region, place: int, operands: Sequence[Value]
) -> tuple[Value, list[Value] | None]:
    """What one region gives for a result as it is, and what the other one adds to it."""
    total = region.results[place]
    if is_zero(total):
        return total, [term for term in added(other.results[place]) if not is_zero(term)] or None
    if total not in region.params:
        return total, None
    param = region.params.index(total)
    return operands[param], term_of(other, place, param)
