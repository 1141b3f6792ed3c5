"""Equations of parts of arrays: slices of what has just been written, and what is written over again.

``u[1:-1] += x`` is a slice, a sum, an update, and then, as Python has it, an assignment of the slice to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from srcgrad.ir.core import Attrs, Builder, Literal, Operation, Value, is_splat, literal
from srcgrad.ir.opdef import Term
from srcgrad.ir.passes.matching import apply, emit, made_by, rule
from srcgrad.ir.ranges import apart, bounds_of, ranges_of, within
from srcgrad.ir.types import INT64, ArrayType

FARTHEST: Final = 64
"""How many updates a slice looks back through, which bounds the time that one takes."""
SHAPE: Final = (4, 8)
"""The shape of the examples."""
INNER: Final = {"starts": (1, 1), "limits": (3, 8), "strides": (1, 2)}
CORNER: Final = {"starts": (0, 0), "limits": (1, 1), "strides": (1, 1)}


def places_within(inner: Attrs, outer: Attrs) -> list[range] | None:
    """Where a slice stands in another one, if it is a part of it."""
    found = []
    for one, other in zip(ranges_of(inner), ranges_of(outer), strict=True):
        places = within(one, other)
        if places is None:
            return None
        found.append(places)
    return found


def sliced(builder: Builder, value: Value, ranges: Sequence[range]) -> Value:
    """A slice of these indices, none of them empty; all of them are the value itself."""
    if ranges == list(map(range, value.type.static_shape)):
        return value
    return emit(builder, "slice", value, **bounds_of(ranges))


def example(x: Term, value: Any, bounds: dict[str, Any]) -> Term:
    """An update of an array, in an example."""
    like = apply("slice", x, **bounds)
    return apply("slice_set", x, like * value if not isinstance(value, Term) else value, **bounds)


def part(x: Term, bounds: dict[str, Any]) -> Term:
    return apply("slice", x, **bounds)


@rule(
    "slice(slice_set(x, y)) -> slice(y)",
    lambda x: part(example(x, 2.0, INNER), INNER),
    lambda x: part(example(example(x, 2.0, INNER), 3.0, CORNER), INNER),
    lambda x: part(example(x, 2.0, INNER), {"starts": (2, 3), "limits": (3, 8), "strides": (1, 4)}),
    lambda x: part(example(x.like(1.0), 2.0, INNER), CORNER),
    shape=SHAPE,
    early=True,
)
def slice_of_update(operation: Operation, builder: Builder) -> Value | None:
    """What was written, through updates elsewhere; or equal elements that none has reached.

    Never an array from before an update: it would have to outlive that, which then is not done in place.
    """
    value = operation.operands[0]
    for _ in range(FARTHEST):
        update = made_by(value, "slice_set")
        if update is None:
            break
        places = places_within(operation.attrs, update.attrs)
        if places is not None:
            return sliced(builder, update.operands[1], places)
        if not any(map(apart, ranges_of(operation.attrs), ranges_of(update.attrs))):
            return None
        value = update.operands[0]
    if value is operation.operands[0] or not isinstance(value, Literal) or not value.splat:
        return None
    return Literal(value.value, operation.results[0].type)


@rule(
    "slice_set(slice_set(x, y), z) -> slice_set(x, z)",
    lambda x: example(example(x, 2.0, INNER), 3.0, INNER),
    lambda x: example(example(x, 2.0, CORNER), 3.0, {"starts": (0, 0), "limits": (2, 3), "strides": (1, 1)}),
    shape=SHAPE,
    early=True,
)
def written_over(operation: Operation, builder: Builder) -> Value | None:
    update = made_by(operation.operands[0], "slice_set")
    if update is None or places_within(update.attrs, operation.attrs) is None:
        return None
    return emit(builder, "slice_set", update.operands[0], operation.operands[1], **operation.attrs)


@rule(
    "slice_set(x, slice(x)) -> x",
    lambda x: apply("slice_set", x, part(x, INNER), **INNER),
    shape=SHAPE,
    early=True,
)
def written_back(operation: Operation, builder: Builder) -> Value | None:
    target, written = operation.operands
    read = made_by(written, "slice")
    if read is None or read.operands[0] != target or read.attrs != operation.attrs:
        return None
    return target


@rule(
    "slice_set(x, y, all of it) -> y",
    lambda x, y: apply("slice_set", x, y, starts=(0, 0), limits=SHAPE, strides=(1, 1)),
    shape=SHAPE,
    early=True,
)
def all_written(operation: Operation, builder: Builder) -> Value | None:
    target, written = operation.operands
    return written if written.type == target.type else None


def elsewhere(x: Term) -> Term:
    """Zeros with a part of ``x``, in an example."""
    return apply("slice_set", x.like(0.0), part(x, INNER), **INNER)


def filled(x: Term, number: Any, bounds: dict[str, Any]) -> Term:
    """A part of ``x`` that is filled with a number, in an example."""
    shape = [len(each) for each in ranges_of(bounds)]
    return apply("slice_set", x, Term(x.builder, literal(number, x.type.with_shape(shape))), **bounds)


@rule(
    "slice_set(x, c) -> x, x = c there",
    lambda x: filled(elsewhere(x), 0.0, CORNER),
    lambda x: filled(x.like(0.0), 0.0, CORNER),
    shape=SHAPE,
    early=True,
)
def same_written(operation: Operation, builder: Builder) -> Value | None:
    """Equal elements written to those of a literal, which updates elsewhere have left."""
    target, written = operation.operands
    if not isinstance(written, Literal) or not written.splat:
        return None
    value = target
    for _ in range(FARTHEST):
        update = made_by(value, "slice_set")
        if update is None or not any(map(apart, ranges_of(operation.attrs), ranges_of(update.attrs))):
            break
        value = update.operands[0]
    same = isinstance(value, Literal) and value.splat and Literal(written.value, value.type) == value
    return target if same else None


def in_part(p: Term, x: Term) -> tuple[Term, Term, Term]:
    """A mask that is true in a part, zeros with that part of ``x``, and zeros, in an example."""
    return filled(p.like(False), True, INNER), elsewhere(x), x.like(0.0)


@rule(
    "select(p, slice_set(0, x), 0) -> slice_set(0, x), p true there",
    lambda p, x: apply("select", *in_part(p, x)),
    shape=SHAPE,
)
def zeros_but_there(operation: Operation, builder: Builder) -> Value | None:
    """A part that is written to zeros, where a mask says that there are zeros elsewhere."""
    mask, value, other = operation.operands
    flags, update = made_by(mask, "slice_set"), made_by(value, "slice_set")
    if flags is None or update is None or flags.attrs != update.attrs or mask.type.shape != value.type.shape:
        return None
    if not (is_splat(flags.operands[0], False) and is_splat(flags.operands[1], True)):
        return None
    return value if is_splat(other, 0) and update.operands[0] == other else None


@rule(
    "slice(concatenate(x, y)) -> slice(x)",
    lambda x, y: part(apply("concatenate", x, y, axis=1), {"starts": (1, 9), "limits": (3, 15), "strides": (1, 2)}),
    lambda x, y: part(apply("concatenate", x, y, axis=0), {"starts": (0, 0), "limits": SHAPE, "strides": (1, 1)}),
    shape=SHAPE,
    early=True,
)
def slice_of_concatenation(operation: Operation, builder: Builder) -> Value | None:
    """A slice that lies in one of the arrays."""
    joined = made_by(operation.operands[0], "concatenate")
    if joined is None:
        return None
    axis, first, ranges = joined.attrs["axis"], 0, ranges_of(operation.attrs)
    if not all(ranges):
        return None
    for value in joined.operands:
        size = value.type.static_shape[axis]
        if first <= ranges[axis][0] and ranges[axis][-1] < first + size:
            ranges[axis] = range(ranges[axis].start - first, ranges[axis].stop - first, ranges[axis].step)
            return sliced(builder, value, ranges)
        first += size
    return None


def element(x: Term, *more: Term) -> Term:
    """A row at an index, or that row written, in an example."""
    return apply("scatter_set" if more else "gather", x, *more, index_of(x), axis=0)


def index_of(x: Term) -> Term:
    return Term(x.builder, literal(2, ArrayType(INT64)))


@rule(
    "scatter_set(y, gather(y)) -> y, y = scatter_set(x)",
    lambda x: element(y := element(x, element(x) * 2.0), element(y)),
    shape=SHAPE,
    early=True,
)
def row_written_back(operation: Operation, builder: Builder) -> Value | None:
    """``x[i] += y``, which Python assigns to itself; what was written there has raised an error if that is nowhere."""
    target, written, *indices = operation.operands
    update, read = made_by(target, "scatter_set"), made_by(written, "gather")
    if update is None or read is None or read.operands[0] != target or any(index.type.shape for index in indices):
        return None
    same = [tuple(indices), operation.attrs] == [update.operands[2:], update.attrs] == [read.operands[1:], read.attrs]
    return target if same else None


@rule(
    "scatter_add(scatter_set(x, 0), gather(x)) -> x",
    lambda x: apply("scatter_add", element(y := x * x, element(y).like(0.0)), element(y), index_of(y), axis=0),
    kinds="iuf",
    shape=SHAPE,
    final=True,
)
def row_cleared_and_added(operation: Operation, builder: Builder) -> Value | None:
    """The adjoint of ``x[i] += y``: what is read there goes, and comes back; so does -0.0, where a sum would be 0.0."""
    target, added, *indices = operation.operands
    update, read = made_by(target, "scatter_set"), made_by(added, "gather")
    if update is None or read is None or read.operands[0] != update.operands[0] or any(i.type.shape for i in indices):
        return None
    same = [tuple(indices), operation.attrs] == [update.operands[2:], update.attrs] == [read.operands[1:], read.attrs]
    return update.operands[0] if same and is_splat(update.operands[1], 0) else None
