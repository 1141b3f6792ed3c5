"""Jacobians by columns are computed with the tangents side by side.

Tangents have a leading axis, and `jacfwd` turns it last in the end. So what is done to one place of each tangent, a
column of a stencil or one number in a trip of a loop, meets numbers that lie far apart, and inner loops run over the
few elements of a tangent. Where all of a batch allows it, its axis is last from the seeds on: inner loops run over the
tangents, a place of each is a row, and nothing is turned in the end. Values are the same; sums may be added in another
order.

The values that have one axis in common are a *batch*: a value and what is made of it, and what that is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from srcgrad.ir.core import Attrs, Builder, Function, Literal, Operation, Region, Value
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.layouts import Rewriting, Search, Unlike, becomes, inverse, taken_as, turned, turned_type
from srcgrad.ir.transforms.interpret import Env, look_up
from srcgrad.ir.types import ArrayType, TapeType

FEWEST: Final = 16
"""Tangents from which they fill registers."""
LONGER: Final = 8
"""How much longer than the batch the rows of its arrays may be."""


def tangents_last(function: Function) -> Function:
    """The function with batches whose axis is turned last in the end as such from the start; itself if it has none.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.parser import parse
    >>> function = parse('''func @f(%x: f64[20]) -> (f64[20,20]) {
    ...   %0: i64[20,20] = iota {shape=[20,20], axis=0, dtype=i64}
    ...   %1: f64[20,20] = cast %0 {dtype=f64}
    ...   %2: f64[20,20] = broadcast %x {shape=[20,20], dims=[1]}
    ...   %3: f64[20,20] = mul %1, %2
    ...   %4: f64[20,20] = transpose %3 {perm=[1,0]}
    ...   return %4
    ... }''')
    >>> print(tangents_last(function))
    func @f(%x: f64[20]) -> (f64[20,20]) {
      %0: i64[20,20] = iota {shape=[20,20], axis=1, dtype=i64}
      %1: f64[20,20] = cast %0 {dtype=f64}
      %2: f64[20,20] = broadcast %x {shape=[20,20], dims=[0]}
      %3: f64[20,20] = mul %1, %2
      return %3
    }
    """
    ends = [operation for operation in function.operations if turns_batch(operation)]
    if not ends:
        return function
    search = Batches(function)
    found = search.batches(ends)
    return dce(Placed(found).region(function)) if found else function


def turns_batch(operation: Operation) -> bool:
    """Whether it turns a first axis of tangents last."""
    if operation.op.name != "transpose" or isinstance(operation.operands[0], Literal):
        return False
    perm, type = operation.attrs["perm"], operation.operands[0].type
    size = type.shape[0] if type.rank > 1 else 0
    return isinstance(size, int) and size >= FEWEST and tuple(perm) == (*range(1, type.rank), 0)


def is_known(type: ArrayType | TapeType) -> bool:
    """Whether it is an array of a size that is known."""
    return isinstance(type, ArrayType) and all(isinstance(size, int) for size in type.shape)


def is_last(value: Value, axis: int) -> bool:
    return axis == value.type.rank - 1


def is_repeated(value: Value, axis: int) -> bool:
    """Whether a value is the same all along an axis, so that it is made again where another layout is needed."""
    if isinstance(value, Literal):
        return True
    producer = value.producer
    return producer is not None and producer.op.name == "broadcast" and axis not in producer.attrs["dims"]


class Batches(Search):
    """Finds the values of batches, and where their axis is."""

    def batches(self, ends: Sequence[Operation]) -> dict[Value, int]:
        """The values that are to have the axis last, and where they have it.

        Where it is last already, a batch ends, and what is on the other side is another one.
        """
        found: dict[Value, int] = {}
        seen, rows = set[Value](), set[Value]()
        starts = [(end.operands[0], 0) for end in ends]
        while starts:
            value, axis = starts.pop()
            if value in seen or value in found or not is_known(value.type) or is_repeated(value, axis):
                continue
            seen.add(value)
            if is_last(value, axis):
                starts += self.around(value, axis)
                continue
            batch, borders = self.batch(value, axis)
            known = found.keys() | rows
            if known.isdisjoint(batch) and (found.keys() | batch.keys()).isdisjoint(borders):  # of other axes there
                found.update(batch)
                rows.update(borders)
            starts += [(border, border.type.rank - 1) for border in borders]
        return found

    def batch(self, start: Value, axis: int) -> tuple[dict[Value, int], list[Value]]:
        """The values that share an axis of one, but none where one of them has to keep its layout; and its borders."""
        found: dict[Value, int] = {}
        size, pending, borders = start.type.static_shape[axis], [(start, axis)], []
        try:
            while pending:
                value, axis = pending.pop()
                if is_repeated(value, axis):
                    continue
                if not is_known(value.type) or value.type.shape[axis] != size:
                    raise Unlike
                if is_last(value, axis):
                    borders.append(value)
                elif value not in found:
                    found[value] = axis
                    for part in self.parts(value, axis):
                        pending += part()
                elif found[value] != axis:
                    raise Unlike
        except Unlike:
            return {}, borders
        rows = max((value.type.static_shape[-1] for value in found), default=0)
        return (found, borders) if rows <= LONGER * size else ({}, [])

    def around(self, value: Value, axis: int) -> list[tuple[Value, int]]:
        """What has the axis if a value has it, as far as that is possible."""
        found: list[tuple[Value, int]] = []
        for part in self.parts(value, axis):
            with suppress(Unlike):
                found += part()
        return found

    def parts(self, value: Value, axis: int) -> Iterator[Callable[[], list[tuple[Value, int]]]]:
        """What has the axis if a value has it: by how it is made, and by each of its uses."""
        yield lambda: list(self.made(value, axis))
        for operation, position in self.uses.get(value, ()):
            yield partial(used, operation, position, axis)
        for operation, position in self.yields.get(value, ()):
            yield partial(handed, operation, position, axis)

    def made(self, value: Value, axis: int) -> Iterator[tuple[Value, int]]:
        if value in self.home:
            operation, position = self.home[value]
            yield from linked(operation, *slot_of_param(operation, position), axis)
        elif value.producer is None or value in self.function.results:
            raise Unlike
        elif value.producer.regions:
            position = value.producer.results.index(value)
            yield from linked(value.producer, *slot_of_result(value.producer, position), axis)
        else:
            yield from batched(value.producer, axis)


def handed(operation: Operation, position: int, axis: int) -> list[tuple[Value, int]]:
    """What has the axis of a batch if a result of a region has it."""
    return list(linked(operation, *slot_of_yield(operation, position), axis))


def used(operation: Operation, position: int, axis: int) -> list[tuple[Value, int]]:
    """What has the axis of a batch if an operand has it."""
    if operation.regions:
        return list(linked(operation, *slot_of_operand(operation, position), axis))
    result = result_axis(operation, position, axis)
    return [(operation.results[0], result), *batched(operation, result)]


def batched(operation: Operation, axis: int) -> Iterator[tuple[Value, int]]:
    """The operands that have the batch's axis if the result has it at ``axis``, and where."""
    for value, own in zip(operation.operands, operand_axes(operation, axis), strict=True):
        if own is not None:
            yield value, own


# --- loops and branches -----------------------------------------------------------------------------------------------

Slot = tuple[str, int]
"""A carry, constant or column of a loop, or an operand of a branch (``given``); what is stacked, or a branch gives."""


def require_slots(operation: Operation) -> None:
    if operation.op.name not in ("for", "cond") or operation.attrs.get("trips", 1) is None:
        raise Unlike


def slot_of_param(operation: Operation, position: int) -> Slot:
    require_slots(operation)
    place = position - (operation.op.name == "for")
    if place < 0:
        raise Unlike
    return "given", place


def slot_of_operand(operation: Operation, position: int) -> Slot:
    require_slots(operation)
    place = position - (operation.op.name == "cond")
    if place < 0:
        raise Unlike
    return ("column", place) if is_column(operation, place) else ("given", place)


def slot_of_result(operation: Operation, position: int) -> Slot:
    require_slots(operation)
    if operation.op.name == "cond":
        return "made", position
    return ("given", position) if position < operation.attrs["carries"] else ("stacked", position)


def slot_of_yield(operation: Operation, position: int) -> Slot:
    require_slots(operation)
    return ("given" if operation.op.name == "for" and position < operation.attrs["carries"] else "made"), position


def is_column(operation: Operation, place: int) -> bool:
    return operation.op.name == "for" and place >= operation.attrs["carries"] + operation.attrs["consts"]


def linked(operation: Operation, kind: str, place: int, axis: int) -> Iterator[tuple[Value, int]]:
    """What is one with a slot of a loop or a branch, in which the batch's axis is ``axis``; stacked, one further."""
    loop = operation.op.name == "for"
    if kind in ("column", "stacked"):
        if not axis:
            raise Unlike
        kind, axis = ("given" if kind == "column" else "made"), axis - 1
    if kind == "made":
        for region in operation.regions:
            yield region.results[place], axis
        yield operation.results[place], axis + loop
        return
    for region in operation.regions:
        yield region.params[place + loop], axis
    yield operation.operands[place + (not loop)], axis + is_column(operation, place)
    if loop and place < operation.attrs["carries"]:
        yield operation.regions[0].results[place], axis
        yield operation.results[place], axis


# --- operations -------------------------------------------------------------------------------------------------------


def keeps(operation: Operation, position: int, axis: int) -> int:
    return axis


def all_have(operation: Operation, axis: int) -> list[int | None]:
    return [axis if value.type.rank else None for value in operation.operands]


def plain_result(operation: Operation, axis: int) -> Attrs:
    return operation.attrs


def broadcast_result(operation: Operation, position: int, axis: int) -> int:
    return int(operation.attrs["dims"][axis])


def broadcast_operand(operation: Operation, axis: int) -> list[int | None]:
    dims = tuple(operation.attrs["dims"])
    return [dims.index(axis) if axis in dims else None]


def broadcast_attrs(operation: Operation, axis: int) -> Attrs:
    (own,), dims, rank = broadcast_operand(operation, axis), operation.attrs["dims"], len(operation.attrs["shape"])
    order = range(len(dims)) if own is None else last_order(len(dims), own)
    return {**iota_attrs(operation, axis), "dims": tuple(placed(dims[k], axis, rank) for k in order)}


def iota_attrs(operation: Operation, axis: int) -> Attrs:
    """Of what has a shape; and of `iota`, an axis."""
    attrs, shape = dict(operation.attrs), operation.attrs["shape"]
    attrs["shape"] = tuple(shape[k] for k in last_order(len(shape), axis))
    if "axis" in attrs:
        attrs["axis"] = placed(attrs["axis"], axis, len(shape))
    return attrs


def reshaped_axis(source: ArrayType, target: ArrayType, axis: int) -> int:
    """Where an axis is in another shape of the same elements."""
    before, size = math.prod(source.static_shape[:axis]), source.shape[axis]
    for k, other in enumerate(target.static_shape):
        if other == size and math.prod(target.static_shape[:k]) == before:
            return k
    raise Unlike


def reshape_result(operation: Operation, position: int, axis: int) -> int:
    return reshaped_axis(operation.operands[0].type, operation.results[0].type, axis)


def reshape_operand(operation: Operation, axis: int) -> list[int | None]:
    return [reshaped_axis(operation.results[0].type, operation.operands[0].type, axis)]


def transpose_result(operation: Operation, position: int, axis: int) -> int:
    return tuple(operation.attrs["perm"]).index(axis)


def transpose_operand(operation: Operation, axis: int) -> list[int | None]:
    return [operation.attrs["perm"][axis]]


def transpose_attrs(operation: Operation, axis: int) -> Attrs:
    perm = operation.attrs["perm"]
    order = last_order(len(perm), perm[axis])
    return {"perm": tuple(order.index(perm[k]) for k in last_order(len(perm), axis))}


def slice_operands(operation: Operation, axis: int) -> list[int | None]:
    attrs, size = operation.attrs, operation.operands[0].type.shape[axis]
    if (attrs["starts"][axis], attrs["limits"][axis], attrs["strides"][axis]) != (0, size, 1):
        raise Unlike
    return all_have(operation, axis)


def slice_attrs(operation: Operation, axis: int) -> Attrs:
    return {name: tuple(bounds[k] for k in last_order(len(bounds), axis)) for name, bounds in operation.attrs.items()}


def part_axis(operation: Operation, axis: int) -> int:
    """Of what a gather or a scatter handles of an array, given the array's axis."""
    skipped = 1 if operation.op.name == "gather" else 2
    indices, first = operation.operands[skipped:], operation.attrs["axis"]
    if axis < first:
        return axis
    if axis < first + len(indices):
        raise Unlike
    return axis - len(indices) + indices[0].type.rank


def gather_result(operation: Operation, position: int, axis: int) -> int:
    if position:
        raise Unlike
    return part_axis(operation, axis)


def array_axis(operation: Operation, axis: int) -> int:
    """Of the array, given where the axis is in what a gather or a scatter handles of it."""
    for own in range(operation.operands[0].type.rank):
        with suppress(Unlike):
            if part_axis(operation, own) == axis:
                return own
    raise Unlike


def gather_operands(operation: Operation, axis: int) -> list[int | None]:
    return [array_axis(operation, axis), *[None] * (len(operation.operands) - 1)]


def scatter_result(operation: Operation, position: int, axis: int) -> int:
    if position > 1:
        raise Unlike
    return array_axis(operation, axis) if position else axis


def scatter_operands(operation: Operation, axis: int) -> list[int | None]:
    return [axis, part_axis(operation, axis), *[None] * (len(operation.operands) - 2)]


def index_attrs(operation: Operation, axis: int) -> Attrs:
    own = operand_axes(operation, axis)[0]
    assert own is not None
    return {**operation.attrs, "axis": operation.attrs["axis"] - (own < operation.attrs["axis"])}


def reduced_result(operation: Operation, position: int, axis: int) -> int:
    axes: tuple[int, ...] = operation.attrs["axes"]
    if axis in axes:
        raise Unlike
    return axis - sum(each < axis for each in axes)


def reduced_operand(operation: Operation, axis: int) -> list[int | None]:
    rank, axes = operation.operands[0].type.rank, operation.attrs["axes"]
    return [[k for k in range(rank) if k not in axes][axis]]


def axes_attrs(operation: Operation, axis: int) -> Attrs:
    (own,), rank = operand_axes(operation, axis), operation.operands[0].type.rank
    assert own is not None
    return {**operation.attrs, "axes": tuple(sorted(placed(k, own, rank) for k in operation.attrs["axes"]))}


def along_operands(operation: Operation, axis: int) -> list[int | None]:
    if axis in operation.attrs.get("axes", ()) or axis == operation.attrs.get("axis"):
        raise Unlike
    return all_have(operation, axis)


def along_attrs(operation: Operation, axis: int) -> Attrs:
    return {**operation.attrs, "axis": placed(operation.attrs["axis"], axis, operation.results[0].type.rank)}


class Kind(NamedTuple):
    """How an op has a batch: the result's axis by an operand's, the operands' by the result's; its attributes then."""

    result: Callable[[Operation, int, int], int]
    operands: Callable[[Operation, int], list[int | None]]
    attrs: Callable[[Operation, int], Attrs]


SAME: Final = Kind(keeps, all_have, plain_result)
INDEXED: Final = Kind(scatter_result, scatter_operands, index_attrs)
REDUCED: Final = Kind(reduced_result, reduced_operand, axes_attrs)
SLICED: Final = Kind(keeps, slice_operands, slice_attrs)
ALONG: Final = Kind(keeps, along_operands, along_attrs)
KINDS: Final = {
    "select": SAME,
    "cast": SAME,
    "broadcast": Kind(broadcast_result, broadcast_operand, broadcast_attrs),
    "iota": Kind(keeps, lambda operation, axis: [], iota_attrs),
    "reshape": Kind(reshape_result, reshape_operand, iota_attrs),
    "transpose": Kind(transpose_result, transpose_operand, transpose_attrs),
    "slice": SLICED,
    "slice_set": SLICED,
    "gather": Kind(gather_result, gather_operands, index_attrs),
    "scatter_add": INDEXED,
    "scatter_set": INDEXED,
    "reduce_sum": REDUCED,
    "reduce_or": REDUCED,
    "reduce_and": REDUCED,
    "reverse": Kind(keeps, along_operands, axes_attrs),
    "concatenate": ALONG,
    "cumsum": ALONG,
}


def kind_of(operation: Operation) -> Kind:
    found = SAME if isinstance(operation.op, Elementwise) else KINDS.get(operation.op.name)
    if found is None or len(operation.results) != 1:
        raise Unlike
    return found


def result_axis(operation: Operation, position: int, axis: int) -> int:
    return kind_of(operation).result(operation, position, axis)


def operand_axes(operation: Operation, axis: int) -> list[int | None]:
    return kind_of(operation).operands(operation, axis)


def last_order(rank: int, axis: int) -> tuple[int, ...]:
    """The axes, one of them last."""
    return (*(k for k in range(rank) if k != axis), axis)


def placed(axis: int, batch: int, rank: int) -> int:
    """Where an axis is when that of the batch is last."""
    return rank - 1 if axis == batch else axis - (axis > batch)


# --- the program ------------------------------------------------------------------------------------------------------


class Placed(Rewriting):
    """Writes a function again, with the axis of batches last."""

    def __init__(self, axes: dict[Value, int]) -> None:
        self.axes = axes

    def inside(self, operation: Operation, region: Region) -> Region:
        """A region of an operation, with parameters of its own."""
        builder = Builder()
        env: Env = {param: builder.param(self.type_of(param), param.name, param.linear) for param in region.params}
        self.run(builder, region.operations, env)
        results = [
            self.value(builder, env, value, self.yielded(operation, k)) for k, value in enumerate(region.results)
        ]
        return builder.region(results)

    def type_of(self, value: Value) -> ArrayType:
        axis = self.axes.get(value)
        return value.type if axis is None else turned_type(value.type, last_order(value.type.rank, axis))

    def yielded(self, operation: Operation, position: int) -> int | None:
        """Where the axis of a result of a region was, if it is in a batch."""
        place = taken_as(operation, position)
        if place is not None:
            return self.axes.get(place)
        if operation.op.name != "for":  # as a rule of the user's, which gives more than the operation: none goes there
            return None
        axis = self.axes.get(operation.results[position])
        return None if axis is None else axis - 1

    def value(self, builder: Builder, env: Env, value: Value, axis: int | None) -> Value:
        """What a value is now that had the axis of a batch, or is the same along it."""
        if axis is None or value in self.axes or is_last(value, axis):
            return look_up(env, value)
        if isinstance(value, Literal):
            return turned(builder, value, last_order(value.type.rank, axis))
        repeated = value.producer
        assert repeated is not None
        (source,) = repeated.operands
        found = look_up(env, source)
        if source in self.axes:  # of another batch
            found = turned(builder, found, inverse(last_order(source.type.rank, self.axes[source])))
        return builder.emit(repeated.op, [found], broadcast_attrs(repeated, axis))

    def placed(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        return (self.structured if operation.regions else self.emitted)(builder, operation, env)

    def structured(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        operands = []
        for position, value in enumerate(operation.operands):
            param = becomes(operation, position)
            axis = None if param is None else self.axes.get(param)
            if axis is not None and operation.op.name == "for":
                axis += is_column(operation, position)
            operands.append(self.value(builder, env, value, axis))
        regions = [self.inside(operation, region) for region in operation.regions]
        return builder.emit_operation(operation.op, operands, operation.attrs, regions).results

    def emitted(self, builder: Builder, operation: Operation, env: Env) -> Sequence[Value]:
        axis = self.axis_of(operation)
        if axis is None:
            operands = [look_up(env, value) for value in operation.operands]
            return builder.emit_operation(operation.op, operands, operation.attrs).results
        kind = kind_of(operation)
        own = kind.operands(operation, axis)
        operands = [self.value(builder, env, v, a) for v, a in zip(operation.operands, own, strict=True)]
        attrs = kind.attrs(operation, axis)
        if operation.op.name == "transpose" and tuple(attrs["perm"]) == tuple(range(len(attrs["perm"]))):
            return operands
        return builder.emit_operation(operation.op, operands, attrs).results

    def axis_of(self, operation: Operation) -> int | None:
        """Where the axis of a batch is in the result of an operation that has a batch."""
        if len(operation.results) == 1 and operation.results[0] in self.axes:
            return self.axes[operation.results[0]]
        for position, value in enumerate(operation.operands):
            if value in self.axes:
                return result_axis(operation, position, self.axes[value])
        return None
