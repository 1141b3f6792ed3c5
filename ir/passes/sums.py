"""Programs as their terms are: differences and branches that add are sums, elements are read where they come from, and
what branches make of decompositions is made before one is chosen, as rules do not look into branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from srcgrad.ir.core import Builder, Literal, Operation, Region, Value, zeros
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.passes.layouts import Rewriting
from srcgrad.ir.passes.matching import emit, is_zero
from srcgrad.ir.passes.values import PARTS, full_bounds
from srcgrad.ir.transforms.interpret import Env, inline, look_up

MOST_IN_A_BRANCH: Final = 64
"""The operations of a branch that may run although another one is chosen."""
NEVER_FAIL: Final = frozenset(
    {
        "broadcast",
        "concatenate",
        "dot_general",
        "gather",
        "reduce_max",
        "reduce_min",
        "reduce_norm",
        "reduce_prod",
        "reduce_sum",
        "reshape",
        "reverse",
        "scatter_set",
        "select",
        "slice",
        "slice_set",
        "transpose",
    }
)
"""What may run too, besides what is done element by element: none of these raises an error."""


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

    def __init__(self) -> None:
        self.changed = False
        """Whether branches are no more."""
        self.spectral: set[Value] = set()
        """What has been made of a decomposition."""

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        results = self.as_sums(builder, operation, env)
        if operation.op.name in PARTS or not self.spectral.isdisjoint(look_up(env, v) for v in operation.operands):
            self.spectral.update(results)
        return results

    def as_sums(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = [look_up(env, value) for value in operation.operands]
        if operation.op.name == "cond":
            for region in operation.regions:
                given = zip(region.params, operands[1:], strict=True)
                self.spectral.update(param for param, value in given if value in self.spectral)
        regions = [self.region(region) for region in operation.regions]
        if operation.op.name == "cond":
            results = accumulated(builder, operation, operands, regions)
            if results is None and not self.spectral.isdisjoint(operands[1:]):
                results = chosen(builder, operands, regions)
                self.changed = self.changed or results is not None
            if results is not None:
                return results
        if operation.op.name == "gather":
            part = part_read(builder, operation, operands)
            if part is not None:
                return [part]
        if operation.op.name == "slice":
            found = read_past_writes(operands[0], operation)
            operands = [found]
            if found.type == operation.results[0].type:
                return [found]
        if operation.op.name == "slice_set":
            operands[0] = before_writing(operands[0], operation)
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


def before_writing(array: Value, write: Operation) -> Value:
    """An array as it was before the same part of it was written, as ``v[:, 0] *= -1`` does twice."""
    while array.producer is not None and array.producer.op.name == "slice_set" and array.producer.attrs == write.attrs:
        array = array.producer.operands[0]
    return array


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


def chosen(builder: Builder, operands: Sequence[Value], regions: Sequence[Region]) -> list[Value] | None:
    """What branches give, of which one is chosen; None where it must be chosen before they run."""
    for region in regions:
        allowed = (isinstance(each.op, Elementwise) or each.op.name in NEVER_FAIL for each in region.operations)
        if len(region.operations) > MOST_IN_A_BRANCH or not all(allowed):
            return None
    pairs = zip(*(inline(builder, region, operands[1:]) for region in regions), strict=True)
    return [one if one == other else emit(builder, "select", operands[0], one, other) for one, other in pairs]


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
