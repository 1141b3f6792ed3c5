"""Reading and writing parts of arrays: slices with constant bounds, and elements at integer index arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from srcgrad.ir.core import Attrs, Literal, literal, zeros
from srcgrad.ir.errors import AxisError, DTypeError, IndexingError, ShapeError
from srcgrad.ir.opdef import (
    REGISTRY,
    Linear,
    LinearEmitter,
    Op,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    broadcast_to,
    require_arity,
)
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.types import BOOL, INT64, ArrayType, Shape, Size


def slice_shape(name: str, operand: ArrayType, attrs: Attrs) -> Shape:
    """The shape of a slice, whose bounds must lie within the operand and whose strides must be positive."""
    starts, limits, strides = attrs["starts"], attrs["limits"], attrs["strides"]
    if not len(starts) == len(limits) == len(strides) == operand.rank:
        raise ShapeError(f"{name}: starts, limits and strides of {operand} take {operand.rank} numbers each")
    shape = []
    for size, start, limit, stride in zip(operand.static_shape, starts, limits, strides, strict=True):
        if not 0 <= start <= limit <= size or stride < 1:
            raise IndexingError(f"{name}: {start}:{limit}:{stride} does not fit an axis of {size} in {operand}")
        shape.append(-((start - limit) // stride))
    return tuple(shape)


def slice_text(operand: ArrayType, attrs: Attrs, dropped: Sequence[int] = ()) -> str:
    """The slice as written between brackets, integers for the axes ``dropped``; full axes at the end are left out."""
    parts = []
    for axis, (size, start, limit, stride) in enumerate(
        zip(operand.static_shape, attrs["starts"], attrs["limits"], attrs["strides"], strict=True)
    ):
        bounds = f"{start or ''}:{limit if limit != size else ''}"
        parts.append(str(start) if axis in dropped else bounds if stride == 1 else f"{bounds}:{stride}")
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def batched_slice(size: Size, attrs: Attrs) -> dict[str, tuple[Any, ...]]:
    """The same slice of operands with a leading axis."""
    return {
        "starts": (0, *attrs["starts"]),
        "limits": (size, *attrs["limits"]),
        "strides": (1, *attrs["strides"]),
    }


SLICES: list[tuple[tuple[int, ...], dict[str, tuple[int, ...]]]] = [
    ((5, 3), {"starts": (1, 0), "limits": (5, 3), "strides": (2, 1)}),
    ((5, 3), {"starts": (0, 1), "limits": (4, 2), "strides": (3, 1)}),
    ((4,), {"starts": (2,), "limits": (2,), "strides": (1,)}),
    ((0, 2), {"starts": (0, 0), "limits": (0, 1), "strides": (1, 1)}),
    ((), {"starts": (), "limits": (), "strides": ()}),
]
"""Shapes and slices of them for samples."""


def ramp(shape: Shape, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """Distinct numbers of both signs, for samples."""
    sizes = ArrayType(np.dtype(dtype), shape).static_shape
    values = np.arange(float(np.prod(sizes))).reshape(sizes) - 2.5
    return (values * (1 - 0.5j) if np.dtype(dtype).kind == "c" else values).astype(dtype)


class Slice(Linear):
    """The elements from ``starts`` to ``limits`` by ``strides``, which are positive."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 1)
        return types[0].with_shape(slice_shape(self.name, types[0], attrs))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{operands[0]}[{slice_text(types[0], attrs)}]" if types[0].rank else operands[0]

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return (s.apply(REGISTRY["slice_set"], [Zero(operands[0].type), cotangents[0]], attrs),)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(operands[0], **batched_slice(size, attrs))

    def samples(self) -> Iterator[Sample]:
        for shape, attrs in SLICES:
            yield Sample((ramp(shape),), attrs)
        for dtype in (np.float32, np.complex128, np.int64):
            yield Sample((ramp((5, 3), dtype),), SLICES[0][1], label=np.dtype(dtype).name)


class SliceSet(Linear):
    """The first operand with a slice (``starts``, ``limits``, ``strides``) replaced by the second. Linear in both."""

    linear = (0, 1)
    helpers: ClassVar[tuple[str, ...]] = ("slice_set",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, 2)
        require_part(self, types, slice_shape(self.name, types[0], attrs))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        if not types[0].rank:
            return operands[1]
        return f"slice_set({operands[0]}, {operands[1]}, np.s_[{slice_text(types[0], attrs)}])"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        written = s.apply(
            REGISTRY["slice"], [cotangents[0]], attrs
        )  # read first: then the cotangent may be written over
        return (s.apply(self, [cotangents[0], Zero(operands[1].type)], attrs), written)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **batched_slice(size, attrs))

    def samples(self) -> Iterator[Sample]:
        for shape, attrs in SLICES:
            part = slice_shape(self.name, ArrayType(np.dtype(np.float64), shape), attrs)
            yield Sample((ramp(shape), 1 - 2 * ramp(part)), attrs)
        for dtype in (np.float32, np.complex128, np.int64, np.bool_):
            yield Sample((ramp((5, 3), dtype), ramp((2, 3), dtype)), SLICES[0][1], label=np.dtype(dtype).name)


def require_part(op: Op, types: Sequence[ArrayType], shape: Shape) -> None:
    """The second operand must be the part of the first that has ``shape``."""
    if types[1].dtype != types[0].dtype:
        raise DTypeError(f"{op.name}: operands differ, {types[0]} and {types[1]}")
    if types[1].shape != shape:
        raise ShapeError(f"{op.name}: the part of {types[0]} has shape {shape}, not {types[1]}")


# --- index arrays -----------------------------------------------------------------------------------------------------


def indexed_shape(name: str, operand: ArrayType, indices: Sequence[ArrayType], axis: int) -> Shape:
    """The shape of ``operand`` with the axes from ``axis`` on replaced by the shape of the indices."""
    if not indices:
        raise ShapeError(f"{name} takes at least one index array")
    for index in indices:
        if index.dtype.kind not in "iu":
            raise DTypeError(f"{name}: an index is {index}, not of integers")
        if index.shape != indices[0].shape:
            raise ShapeError(f"{name}: index arrays differ in shape, {indices[0]} and {index}")
    if not 0 <= axis <= operand.rank - len(indices):
        raise AxisError(f"{name}: {len(indices)} indices from axis {axis} on do not fit {operand}")
    return (*operand.shape[:axis], *indices[0].shape, *operand.shape[axis + len(indices) :])


def moved(term: Term, source: int, target: int) -> Term:
    """The term with one axis moved."""
    if source == target:
        return term
    order = [axis for axis in range(term.rank) if axis != source]
    order.insert(target, source)
    return REGISTRY["transpose"](term, perm=tuple(order))


def batched_indices(size: Size, indices: Sequence[Term], batched: Sequence[bool]) -> tuple[list[Term], Term]:
    """The index arrays with a leading axis, and an array of their shape that counts along it."""
    full = batch_all(size, indices, batched)
    return full, iota(full[0].builder, ArrayType(INT64, full[0].shape), 0)


class Gather(Linear):
    """The elements at integer index arrays of one shape, which index the axes from ``axis`` on.

    Negative indices count from the end; an index out of bounds is an IndexError.
    """

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return types[0].with_shape(indexed_shape(self.name, types[0], types[1:], attrs["axis"]))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"{operands[0]}[{', '.join([':'] * attrs['axis'] + list(operands[1:]))}]"

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        indices = present(operands[1:])
        cotangent = s.apply(REGISTRY["scatter_add"], [Zero(operands[0].type), cotangents[0], *indices], attrs)
        return (cotangent, *[None] * len(indices))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        axis, array = attrs["axis"], operands[0]
        if not any(batched[1:]):
            return self(*operands, axis=axis + 1)
        indices, counter = batched_indices(size, operands[1:], batched[1:])
        if not batched[0]:
            return moved(self(array, *indices, axis=axis), axis, 0)
        return moved(self(moved(array, 0, axis), counter, *indices, axis=axis), axis, 0)

    def samples(self) -> Iterator[Sample]:
        for label, array, indices, axis in index_samples():
            yield Sample((array, *indices), {"axis": axis}, label=label)


class ScatterAdd(Linear):
    """The first operand with the second added at integer index arrays, which index the axes from ``axis`` on.

    What is added twice at one place adds up; of booleans, the sum is their disjunction. Linear in both.
    """

    linear = (0, 1)
    masking = "mix"
    helpers: ClassVar[tuple[str, ...]] = ("scatter_add",)

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return (0, 1)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_part(self, types, indexed_shape(self.name, types[0], types[2:], attrs["axis"]))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return scatter_text(self.name, operands, attrs)

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        return self(*operands, **attrs)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        indices = present(operands[2:])
        part = s.apply(REGISTRY["gather"], [cotangents[0], *indices], attrs)
        return (cotangents[0], part, *[None] * len(indices))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return batch_scatter(self, size, operands, batched, attrs["axis"])

    def samples(self) -> Iterator[Sample]:
        yield from scatter_samples()


class ScatterSet(Linear):
    """The first operand with the elements at integer index arrays replaced by the second; the last write wins.

    The index arrays index the axes from ``axis`` on. Linear in both operands.
    """

    linear = (0, 1)
    helpers: ClassVar[tuple[str, ...]] = ("scatter_set",)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_part(self, types, indexed_shape(self.name, types[0], types[2:], attrs["axis"]))
        return types[0]

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return scatter_text(self.name, operands, attrs)

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        array, part, indices, axis = operands[0].type, operands[1].type, present(operands[2:]), attrs["axis"]
        # Read first: then the cotangent may be written over.
        written = s.apply(REGISTRY["gather"], [cotangents[0], *indices], attrs)
        kept = s.apply(self, [cotangents[0], Zero(part), *indices], attrs)
        if not distinct(indices, array.static_shape[axis:]):
            dims = tuple(range(axis, axis + indices[0].rank))
            winner = broadcast_to(last_writes(indices, array.static_shape[axis:]), part.shape, dims)
            written = s.select(winner, written, Zero(part))
        return (kept, written, *[None] * len(indices))

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return batch_scatter(self, size, operands, batched, attrs["axis"])

    def samples(self) -> Iterator[Sample]:
        yield from scatter_samples()


def present(operands: Sequence[Term | Zero]) -> list[Term]:
    """Operands that are not linear: all of them are terms."""
    return [operand for operand in operands if isinstance(operand, Term)]


def distinct(indices: Sequence[Term], places: tuple[int, ...]) -> bool:
    """Whether the indices are known, and no two of them are the same place."""
    if indices[0].type.size <= 1:
        return True
    columns = []
    for index, size in zip(indices, places, strict=False):
        if not isinstance(index.value, Literal):
            return False
        known = np.broadcast_to(index.value.value, index.type.static_shape).astype(np.int64).ravel()
        columns.append(np.where(known < 0, known + size, known))
    return bool(np.unique(columns, axis=1).shape[1] == len(columns[0]))


PAIRS: Final = 4096
"""Pairs of writes that are compared one by one."""
SPARSE: Final = 64
"""Places for each write from which sorting the writes costs less than an array of the places."""


def last_writes(indices: Sequence[Term], sizes: tuple[int, ...]) -> Term:
    """Which writes are the last ones at their place.

    A loop that writes a few elements of a large array asks at each trip: what is done is of the writes' number, and
    nothing is of the array's size where that is much more.
    """
    builder, shape = indices[0].builder, indices[0].type.static_shape
    count, sizes = indices[0].type.size, sizes[: len(indices)]
    room = math.prod(sizes)
    places = flat_places(indices, sizes)
    if count * count <= min(PAIRS, room):
        last = ~REGISTRY["reduce_or"](followed(places), axes=(1,))
    elif SPARSE * count < room:
        last = last_in_order(places)
    else:
        counter = iota(builder, places.type, 0)
        written = REGISTRY["scatter_set"](Term(builder, zeros(ArrayType(INT64, (room,)))), counter, places, axis=0)
        last = REGISTRY["gather"](written, places, axis=0) == counter
    return REGISTRY["reshape"](last, shape=shape)


def flat_places(indices: Sequence[Term], sizes: tuple[int, ...]) -> Term:
    """The place of each write, as one number from 0 on."""
    total: Term | None = None
    for index, size in zip(indices, sizes, strict=True):
        flat = REGISTRY["reshape"](index, shape=(index.type.size,))
        number = flat if flat.type.dtype == INT64 else REGISTRY["cast"](flat, dtype=INT64)
        if flat.type.dtype.kind == "i":
            number = REGISTRY["select"](number < 0, number + size, number)
        total = number if total is None else total * size + number
    assert total is not None
    return total


def followed(places: Term) -> Term:
    """Of each pair of writes, whether the second one comes later, and at the place of the first."""
    (count,) = places.type.static_shape
    square = ArrayType(INT64, (count, count))
    first, second = (broadcast_to(places, square.shape, (axis,)) for axis in (0, 1))
    return (first == second) & (iota(places.builder, square, 0) < iota(places.builder, square, 1))


def last_in_order(places: Term) -> Term:
    """Sorted by place, and of one place by time, a write is the last one if the next is elsewhere."""
    builder, (count,) = places.builder, places.type.static_shape
    order = REGISTRY["argsort"](places, axis=0)
    ordered = REGISTRY["gather"](places, order, axis=0)
    ahead, behind = (REGISTRY["slice"](ordered, starts=(k,), limits=(count - 1 + k,), strides=(1,)) for k in (0, 1))
    end = Term(builder, literal(True, ArrayType(BOOL, (1,))))
    last = REGISTRY["concatenate"](~(ahead == behind), end, axis=0)
    return REGISTRY["scatter_set"](Term(builder, zeros(ArrayType(BOOL, (count,)))), last, order, axis=0)


def scatter_text(name: str, operands: Sequence[str], attrs: Attrs) -> str:
    array, part, *indices = operands
    comma = "," if len(indices) == 1 else ""
    return f"{name}({array}, {part}, ({', '.join(indices)}{comma}), axis={attrs['axis']})"


def batch_scatter(op: Op, size: Size, operands: Sequence[Term], batched: Sequence[bool], axis: int) -> Term:
    """Batched indices become one more index array, along the batch axis moved to before the indexed axes."""
    array, part = batch_all(size, operands[:2], batched[:2])
    if not any(batched[2:]):
        return op(array, part, *operands[2:], axis=axis + 1)
    indices, counter = batched_indices(size, operands[2:], batched[2:])
    return moved(op(moved(array, 0, axis), moved(part, 0, axis), counter, *indices, axis=axis), axis, 0)


def index_samples() -> Iterator[tuple[str, Any, tuple[Any, ...], int]]:
    """Label, array, index arrays and axis."""
    matrix = ramp((4, 3))
    yield "rows, twice and from the end", matrix, (np.array([1, -1, 1, 3]),), 0
    yield "columns", matrix, (np.array([[2, 0], [-3, 0]]),), 1
    yield "points", matrix, (np.array([0, 3, -1]), np.array([1, -1, 2])), 0
    yield "middle axes", ramp((2, 3, 2, 2)), (np.array([0, -1, 2, 2]), np.array([1, 1, 0, 0])), 1
    yield "one", matrix, (np.array(-2),), 0
    yield "one element", matrix, (np.array(1), np.array(2)), 0
    yield "none", matrix, (np.zeros((0,), np.int64),), 1
    yield "small integers", matrix, (np.array([3, 0, 0], np.uint8), np.array([2, -1, -1], np.int16)), 0
    for dtype in (np.float32, np.complex128, np.int32, np.bool_):
        yield np.dtype(dtype).name, ramp((4, 2), dtype), (np.array([1, -1, 1]),), 0


def scatter_samples() -> Iterator[Sample]:
    for label, array, indices, axis in index_samples():
        shape = array.shape[:axis] + indices[0].shape + array.shape[axis + len(indices) :]
        yield Sample((array, (1 - 2 * ramp(shape)).astype(array.dtype), *indices), {"axis": axis}, label=label)
