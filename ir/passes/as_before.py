"""What trips read of an array before any of them has written there is read of the array as it was before the loop.

``for i in range(n): b[i] += a[i + 1:, i] @ b[i + 1:]`` reads rows that later trips write, so its trips need each other
for nothing: with the rows of the b that there was, they can be made at once (`at_once`), and so can those of the
derivative. Nothing but what is read changes. Places are apart in all pairs of trips by the bounds of the difference of
their indices (`places`), in which an earlier trip is the trip less 1 and a number from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np

from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.passes.layouts import WRITES, indices_of
from srcgrad.ir.passes.places import Key, Places, Sum
from srcgrad.ir.passes.readers import Readers
from srcgrad.ir.transforms.interpret import Env, look_up

BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "greater_equal": (0, 0), "greater": (0, 1), "less": (1, -1), "less_equal": (1, 0),
}  # fmt: skip
"""What a comparison of the numbers of elements with another one bounds, below or above, and how far from that."""
Path = tuple[Operation, ...]
"""The loops round an operation, from the one that is looked at on."""


class Span(NamedTuple):
    """Along one axis: the elements from ``low`` to ``high``, each as far as it is known."""

    low: Sum | None = None
    high: Sum | None = None


class Followed:
    """What a nest of loops reads and writes of an array that the outermost one hands on.

    Raises:
        ValueError: something else is done with it.
    """

    def __init__(self, loop: Operation, carry: int, readers: Callable[[Region], Readers]) -> None:
        self.reads: list[tuple[Operation, Path]] = []
        self.writes: list[tuple[Operation, Path]] = []
        self.readers = readers
        self.follow(loop, carry, (loop,))

    def follow(self, loop: Operation, carry: int, path: Path) -> None:
        body = loop.regions[0]
        if loop.attrs["trips"] is None:
            raise ValueError
        version = body.params[1 + carry]
        versions, readers = {version}, self.readers(body)
        for operation in readers.following(versions):
            places = [k for k, value in enumerate(operation.operands) if value in versions]
            name = operation.op.name
            if (name == "gather" and places == [0]) or (name == "select" and places == [1]):
                self.reads.append((operation, path))
                continue
            if operation.operands[places[0]] is not version or len(places) > 1:
                raise ValueError
            if name in WRITES and not places[0]:
                self.writes.append((operation, path))
                version = operation.results[0]
            elif name == "for" and places[0] < operation.attrs["carries"]:
                self.follow(operation, places[0], (*path, operation))
                version = operation.results[places[0]]
            else:
                raise ValueError
            versions.add(version)
        if body.results[carry] is not version or any(readers.is_given(value, carry) for value in versions):
            raise ValueError


def reads_as_before(
    places: Places, loop: Operation, carry: int, known: Callable[[Region], Readers]
) -> list[tuple[Operation, Path]]:
    """What is read of an array where no trip has written to it."""
    try:
        found = Followed(loop, carry, known)
    except ValueError:
        return []
    if not found.reads:
        return []
    readers: dict[Value, list[Operation]] = {}
    for operation in (loop, *loop.regions[0].walk()):
        for value in (*operation.operands, *(value for region in operation.regions for value in region.results)):
            readers.setdefault(value, []).append(operation)
    kept = []
    for read, path in found.reads:
        spans = spans_read(places, read, readers.get(read.results[0], ()))
        if all(is_before(places, spans, path, write, other) for write, other in found.writes):
            kept.append((read, path))
    return kept


def spans_read(places: Places, read: Operation, readers: Sequence[Operation]) -> list[Span]:
    """By axes, what is read of an array: what masks leave of it, where nothing else is looked at."""
    if read.op.name == "select":
        return masked(places, read.operands[0])
    spans = spans_of(places, read)
    result = read.results[0]
    found = [masked(places, mask_of(reader, result)) for reader in readers]
    if found and all(bounds == found[0] for bounds in found):
        first, count = read.attrs["axis"], len(read.operands) - 1
        axes = [k for k in range(len(spans)) if not first <= k < first + count]
        if len(axes) == len(found[0]):
            for axis, bounds in zip(axes, found[0], strict=True):
                spans[axis] = bounds
    return spans


def mask_of(reader: Operation, value: Value) -> Value:
    """Where an operation looks at a value, as a mask; the value itself if that is everywhere."""
    chosen = reader.op.name == "select" and reader.operands[1] is value and reader.operands[2] is not value
    return reader.operands[0] if chosen else value


def spans_of(places: Places, operation: Operation) -> list[Span]:
    """By axes, where an operation reads or writes its first operand."""
    spans = [Span()] * operation.operands[0].type.rank
    if operation.op.name == "slice_set":
        return spans
    for axis, index in enumerate(indices_of(operation), operation.attrs["axis"]):
        if not index.type.rank and places.range_of(index)[0] >= 0:
            spans[axis] = Span(places.sum(index), places.sum(index))
    return spans


def masked(places: Places, mask: Value) -> list[Span]:
    """By axes, the elements of an array for which a mask may hold."""
    spans = [Span()] * mask.type.rank
    mask = places.outside(mask)
    made = mask.producer
    if made is None or mask.type.dtype.kind != "b":
        return spans
    if made.op.name == "logical_and":
        both = [masked(places, operand) for operand in made.operands]
        return [Span(one.low or other.low, one.high or other.high) for one, other in zip(*both, strict=True)]
    if made.op.name == "reshape":
        before, after = (tuple(each) for each in (made.operands[0].type.shape, mask.type.shape))
        inner = masked(places, made.operands[0])
        if [size for size in before if size != 1] == [size for size in after if size != 1]:
            kept = iter([span for size, span in zip(before, inner, strict=True) if size != 1])
            spans = [span if size == 1 else next(kept) for size, span in zip(after, spans, strict=True)]
        return spans
    if made.op.name == "broadcast":
        inner = masked(places, made.operands[0])
        for dim, span, size in zip(made.attrs["dims"], inner, made.operands[0].type.shape, strict=True):
            spans[dim] = span if size == mask.type.shape[dim] else Span()
    elif made.op.name in BOUNDS and mask.type.rank == 1:
        spans[0] = compared(places, made)
    return spans


def compared(places: Places, comparison: Operation) -> Span:
    """The elements of a vector whose numbers compare with another number."""
    numbers, limit = comparison.operands
    made = places.outside(limit).producer
    counts = isinstance(numbers, Literal) and np.array_equal(numbers.value, np.arange(numbers.type.size))
    if not counts or made is None or made.op.name != "broadcast" or made.operands[0].type.rank:
        return Span()
    end, further = BOUNDS[comparison.op.name]
    total = places.sum(made.operands[0]).plus(Sum(further))
    return Span(None, total) if end else Span(total, None)


def is_before(places: Places, spans: Sequence[Span], path: Path, write: Operation, other: Path) -> bool:
    """Whether what is read is apart from what a write writes in the same trips and in all earlier ones."""
    common = [loop for loop, same in zip(path, other, strict=False) if loop is same]
    written = spans_of(places, write)
    for level in range(len(common) + 1):
        earlier = [in_earlier_trip(span.low, common, level, other) for span in written]
        if not any(map(partial(is_apart, places), spans, earlier)):
            return False
    return True


def in_earlier_trip(total: Sum | None, common: Sequence[Operation], level: int, path: Path) -> Sum | None:
    """An index in any trips of loops where that of the loop at a level is an earlier one, and those outside the same.

    Behind the last common loop: in the same trips of all of them.
    """
    if total is None:
        return None
    inner = [loop.regions[0].params[0] for loop in path[level + (level < len(common)) :]]
    here = common[level] if level < len(common) else None

    def replaced(key: Key) -> Sum | None:
        if key.value in inner:
            return Sum(0, {Key(key.value, 1): 1})
        if here is not None and key.value is here.regions[0].params[0]:
            step = 1 if here.attrs["reverse"] else -1
            return Sum(step, {key: 1, Key(key.value, 2): step})
        return None

    return total.moved(replaced)


def is_apart(places: Places, read: Span, written: Sum | None) -> bool:
    if written is None:
        return False
    above = read.low is not None and places.interval(read.low.plus(written, -1))[0] > 0
    return above or (read.high is not None and places.interval(written.plus(read.high, -1))[0] > 0)


def as_before(loop: Operation) -> Function | None:
    """A loop as a function of one that reads arrays as they were, wherever that is the same; None if it is nowhere."""
    if loop.attrs["trips"] is None:
        return None
    builder = Builder()
    builder.span = loop.span
    operands = [value if isinstance(value, Literal) else builder.param(value.type) for value in loop.operands]
    places = Places(Region((), [loop], ()))
    known = cache(Readers)
    found = {carry: reads_as_before(places, loop, carry, known) for carry in range(loop.attrs["carries"])}
    arrays = [carry for carry, reads in found.items() if reads]
    if not arrays:
        return None
    threaded = Threaded({read: arrays.index(carry) for carry in arrays for read, _ in found[carry]},
                        {each for carry in arrays for _, path in found[carry] for each in path})  # fmt: skip
    return builder.function("loop", threaded.loop(builder, loop, operands, [operands[carry] for carry in arrays]))


class Threaded:
    """Writes a loop again with arrays as further constants, of it and of loops in it, that some of its reads read."""

    def __init__(self, reads: Mapping[Operation, int], loops: set[Operation]) -> None:
        self.reads, self.loops = reads, loops

    def loop(
        self, builder: Builder, loop: Operation, operands: Sequence[Value], arrays: Sequence[Value]
    ) -> Sequence[Value]:
        body, attrs = loop.regions[0], loop.attrs
        handed = attrs["carries"] + attrs["consts"]
        inner = Builder()
        inner.span = loop.span
        params = [inner.param(param.type, param.name) for param in body.params[: 1 + handed]]
        own = [inner.param(array.type) for array in arrays]
        params += [inner.param(param.type, param.name) for param in body.params[1 + handed :]]
        env: Env = dict(zip(body.params, params, strict=True))
        for operation in body.operations:
            given = [look_up(env, value) for value in operation.operands]
            inner.span = operation.span or loop.span
            if operation in self.loops:
                results = self.loop(inner, operation, given, own)
            else:
                if operation in self.reads:
                    given[int(operation.op.name == "select")] = own[self.reads[operation]]
                again = inner.emit_operation(operation.op, given, operation.attrs, operation.regions)
                results = again.results
            env.update(zip(operation.results, results, strict=True))
        region = inner.region([look_up(env, value) for value in body.results])
        given = [*operands[:handed], *arrays, *operands[handed:]]
        more = {**attrs, "consts": attrs["consts"] + len(arrays)}
        return builder.emit_operation(loop.op, given, more, [region]).results
