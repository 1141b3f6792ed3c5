"""Loops cut into segments of about the square root of their trips, each computed again when its reverse needs it.

Only the carries at the start of each segment are kept, and the tape of the one that is being reversed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srcgrad.ir.core import Builder, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.transforms.push_control import Loop
from srcgrad.ir.types import FLOAT64, INT64, ArrayType, element_type, stacked

COUNT = ArrayType(INT64)


def is_segmented(operation: Operation) -> bool:
    """Whether a loop is to be computed again by segments, and can be: it has no effect, and tapes are not cut."""
    if not operation.attrs.get("checkpoint", False) or operation.regions[-1].acts:
        return False
    loop = Loop.of(operation)
    columns = len(loop.body_params) - loop.carries - loop.consts, len(loop.body.results) - loop.carries
    return columns == (0, 0) if loop.trips is None else loop.trips > 3


def segmented(operation: Operation) -> Region:
    """The loop by segments, as a region of its operands; of a `while`, of its trip count and its operands."""
    loop, builder = Loop.of(operation), Builder()
    builder.span = operation.span
    has_count = loop.trips is None
    params = [builder.param(COUNT, "trips")] if has_count else []
    own = [builder.param(value.type, value.name) for value in loop.rest(operation.operands)]
    if has_count:
        return builder.region(run_time_segments(builder, loop, params[0], own))
    return builder.region(known_segments(builder, loop, own))


def number(builder: Builder, value: int) -> Term:
    return Term(builder, literal(np.int64(value), COUNT))


def segment_body(loop: Loop, trips: int | None, reverse: bool) -> Region:
    """One segment as a region: its first index, its trip count (if it is a value), carries, constants, columns."""
    builder = Builder()
    first = builder.param(COUNT, "first")
    count = [builder.param(COUNT, "count")] if trips is None else []
    params, size = loop.body_params, loop.carries + loop.consts
    handed = [builder.param(param.type, param.name) for param in params[:size]]
    columns = [builder.param(stacked(param.type, trips), param.name) for param in params[size:]]

    inner = Builder()
    step = Term(inner, inner.param(COUNT, "step"))
    carries = [inner.param(value.type, value.name) for value in handed[: loop.carries]]
    start = Term(inner, inner.param(COUNT, "first"))
    rest = [inner.param(value.type, value.name) for value in handed[loop.carries :]]
    elements = [inner.param(param.type, param.name) for param in params[size:]]
    index = [(start + step).value] if loop.counted else []
    body = inner.region(inline(inner, loop.body, [*index, *carries, *rest, *elements]))
    attrs = {"trips": trips, "carries": loop.carries, "consts": 1 + loop.consts, "reverse": reverse}
    operands = [*count, *handed[: loop.carries], first, *handed[loop.carries :], *columns]
    return builder.region(builder.emit_operation(REGISTRY["for"], operands, attrs, [body]).results)


def recomputed(builder: Builder, region: Region, operands: Sequence[Value]) -> tuple[Value, ...]:
    return builder.emit_operation(REGISTRY["checkpoint"], operands, {}, [region]).results


def run_time_segments(builder: Builder, loop: Loop, trips: Value, own: Sequence[Value]) -> Sequence[Value]:
    cast, floor_divide = REGISTRY["cast"], REGISTRY["floor_divide"]
    count = REGISTRY["maximum"](Term(builder, trips), number(builder, 0))
    root = REGISTRY["ceil"](REGISTRY["sqrt"](cast(count, dtype=FLOAT64)))
    length = REGISTRY["maximum"](cast(root, dtype=INT64), number(builder, 1))
    segments = floor_divide(count + length - 1, length)
    reverse = bool(loop.operation.attrs.get("reverse", False))

    inner = Builder()
    place = Term(inner, inner.param(COUNT, "segment"))
    carries = [inner.param(value.type, value.name) for value in own[: loop.carries]]
    whole, size = (Term(inner, inner.param(COUNT, name)) for name in ("trips", "length"))
    consts = [inner.param(value.type, value.name) for value in own[loop.carries :]]
    first = place * size
    here = REGISTRY["minimum"](size, whole - first)
    region = segment_body(loop, None, reverse)
    body = inner.region(recomputed(inner, region, [first.value, here.value, *carries, *consts]))
    attrs = {"trips": None, "carries": loop.carries, "consts": 2 + loop.consts, "reverse": reverse}
    operands = [segments.value, *own[: loop.carries], count.value, length.value, *own[loop.carries :]]
    return builder.emit_operation(REGISTRY["for"], operands, attrs, [body]).results


def known_segments(builder: Builder, loop: Loop, own: Sequence[Value]) -> Sequence[Value]:
    """Segments of one length, and the trips that are left, which are the last ones by their indices."""
    trips, size = int(loop.trips or 0), loop.carries + loop.consts
    length = math.isqrt(trips - 1) + 1
    segments = trips // length
    cut, reverse = segments * length, bool(loop.operation.attrs["reverse"])
    carries, consts, columns = list(own[: loop.carries]), list(own[loop.carries : size]), own[size:]
    parts: list[list[Value]] = []
    for is_rest in (True, False) if reverse else (False, True):
        if is_rest and cut == trips:
            continue
        begin, end = (cut, trips) if is_rest else (0, cut)
        given = [sliced(builder, column, begin, end) for column in columns]
        if is_rest:
            region = segment_body(loop, trips - cut, reverse)
            found = inline(builder, region, [number(builder, cut).value, *carries, *consts, *given])
        else:
            found = whole_segments(builder, loop, segments, length, [*carries, *consts], given)
        carries = list(found[: loop.carries])
        parts = [[value] for value in found[loop.carries :]] if not parts else [
            [*part, value] for part, value in zip(parts, found[loop.carries :], strict=True)
        ]  # fmt: skip
    joined = [joined_columns(builder, part[::-1] if reverse else part) for part in parts]
    return [*carries, *joined]


def whole_segments(
    builder: Builder, loop: Loop, segments: int, length: int, handed: Sequence[Value], columns: Sequence[Value]
) -> list[Value]:
    reverse = bool(loop.operation.attrs["reverse"])
    cut = [reshaped(builder, column, (segments, length, *column.type.shape[1:])) for column in columns]
    inner = Builder()
    first = Term(inner, inner.param(COUNT, "segment")) * number(inner, length)
    given = [inner.param(value.type, value.name) for value in handed]
    elements = [inner.param(element_type(value.type, segments), value.name) for value in cut]
    region = segment_body(loop, length, reverse)
    body = inner.region(recomputed(inner, region, [first.value, *given, *elements]))
    attrs = {"trips": segments, "carries": loop.carries, "consts": loop.consts, "reverse": reverse}
    found = builder.emit_operation(REGISTRY["for"], [*handed, *cut], attrs, [body]).results
    made = [reshaped(builder, v, (segments * length, *v.type.shape[2:])) for v in found[loop.carries :]]
    return [*found[: loop.carries], *made]


def reshaped(builder: Builder, value: Value, shape: tuple[object, ...]) -> Value:
    return builder.emit(REGISTRY["reshape"], [value], {"shape": shape})


def sliced(builder: Builder, value: Value, begin: int, end: int) -> Value:
    shape = value.type.static_shape
    if (begin, end) == (0, shape[0]):
        return value
    zeros = (0,) * (len(shape) - 1)
    attrs = {"starts": (begin, *zeros), "limits": (end, *shape[1:]), "strides": (1,) * len(shape)}
    return builder.emit(REGISTRY["slice"], [value], attrs)


def joined_columns(builder: Builder, parts: Sequence[Value]) -> Value:
    return parts[0] if len(parts) == 1 else builder.emit(REGISTRY["concatenate"], parts, {"axis": 0})
