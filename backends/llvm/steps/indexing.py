"""Elements at index arrays, read and written, and slices that are written.

All indices are checked before anything is written: one out of bounds is status 1, and NumPy raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, DType, Number
from srcgrad.backends.llvm.indices import strides_of
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, can_move, rounded, split
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import INT64, real_dtype

ROW: Final = 4
"""The numbers in a row that are added in a register where they go to the same place."""


def index_of(w: Body, operand: int, place: Number | int, size: int, checked: bool, lanes: int = 1) -> Number:
    """The index that an operand holds at a place, counted from the start of an axis of ``size``."""
    e, index = w.e, w.read(operand, place, lanes)
    unsigned = index.dtype.kind == "u"
    wide = index.dtype.itemsize == 8
    if not wide:
        index = e.convert("zext" if unsigned else "sext", index, INT64)
    index = index._replace(dtype=INT64)
    if not unsigned:  # an unsigned one that is no int64 is too large, whatever NumPy makes of it
        index = e.select(e.compare("slt", index, 0), e.integer("add", index, size), index)
    if checked:
        w.require(e.invert(e.any(e.compare("uge", index, size))))
    return index


def check_indices(w: Body, operand: int, size: int) -> None:
    """Leave with status 1 if an index that an operand holds is out of bounds: a vector of them at a time."""
    w.strip(w.types[operand].size, w.lanes_of(INT64), lambda k, n: index_of(w, operand, k, size, True, n))


class _Indices:
    """The index arrays of an op: where the places are that they index, from ``axis`` on."""

    def __init__(self, w: Body, first: int) -> None:
        self.w, self.first = w, first
        self.arity = len(w.types) - first
        array = w.types[0].static_shape
        axis = w.operation.attrs["axis"]
        self.outer, self.sizes, self.inner = split(array, axis, self.arity)
        self.count = w.types[first].size
        self.extent = 1
        for size in self.sizes:
            self.extent *= size

    def check(self) -> None:
        """Leave with status 1 if an index is out of bounds."""
        for number, size in enumerate(self.sizes):
            check_indices(self.w, self.first + number, size)

    def place(self, k: Number, checked: bool = False) -> Number:
        """The place among the indexed axes that the index arrays hold at k."""
        found = [index_of(self.w, self.first + number, k, size, checked) for number, size in enumerate(self.sizes)]
        return self.w.flat(*zip(found, strides_of(self.sizes), strict=True))

    def differ(self, k: Number, count: int) -> Number:
        """Whether so many places in a row, from that at k on, are not all the same."""
        e, found = self.w.e, self.w.e.constant(False, BOOL, 1)
        for number in range(self.arity):
            index = self.w.read(self.first + number, k, count)
            first = Number(e.emit(f"extractelement {index.type} {index.text}, i64 0"), index.dtype, 1)
            found = e.integer("or", found, e.any(e.compare("ne", index, e.splat(first, count))))
        return found


def gather(operation: Operation, name: str, target: Target) -> Step | None:
    """``operand[:, …, indices…]``; the block after the indexed axes is copied."""
    w = Body(operation, name, target)
    itemsize = w.types[0].dtype.itemsize
    if not can_move(itemsize):
        return None
    at = _Indices(w, 1)
    checked = at.outer == 1 and at.inner > 0
    if not checked:
        at.check()
    if at.inner and at.outer:

        def move(a: Number, k: Number) -> None:
            place = w.plus(w.times(a, at.extent), at.place(k, checked))
            w.transfer(0, w.times(place, at.inner), w.flat((a, at.count * at.inner), (k, at.inner)), at.inner)

        w.each(at.outer, lambda a: w.each(at.count, lambda k: move(a, k)))
    return w.finish()


def scatter_set(operation: Operation, name: str, target: Target) -> Step | None:
    """Blocks are copied in the order of the indices, so that the last one stays."""
    w = Body(operation, name, target)
    if not can_move(w.types[0].dtype.itemsize):
        return None
    at = _Indices(w, 2)
    at.check()
    w.begin_in_place(0)

    def move(a: Number, k: Number) -> None:
        place = w.plus(w.times(a, at.extent), at.place(k))
        w.transfer(1, w.flat((a, at.count * at.inner), (k, at.inner)), w.times(place, at.inner), at.inner)

    if at.inner:
        w.each(at.outer, lambda a: w.each(at.count, lambda k: move(a, k)))
    return w.finish(in_place=0)


def added(dtype: DType) -> DType | None:
    """The dtype of the numbers that are added: the parts of complex ones; None where they are no registers'."""
    part = real_dtype(dtype)
    return part if scalars.is_register(part) else None


def add_to(w: Body, place: Number, operand: int, source: Number, part: DType, lanes: int = 1) -> None:
    """Add numbers of an operand to those of result 0; places count real numbers."""
    before = w.load("%out0", place, part, lanes)
    w.write(place, total(w, before, number_of(w, operand, source, part, lanes)))


def number_of(w: Body, operand: int, source: Number, part: DType, lanes: int = 1) -> Number:
    return w.read(operand, source, lanes) if operand in w.unread else w.load(f"%in{operand}", source, part, lanes)


def add_row(w: Body, place: Number, operand: int, source: Number, part: DType, size: int) -> None:
    """The same of a row of numbers, in vectors no longer than it is."""
    lanes = 1 if part == F16 else min(w.lanes_of(part), 1 << (size.bit_length() - 1))
    w.strip(size, lanes, lambda k, n: add_to(w, w.plus(place, k), operand, w.plus(source, k), part, n))


def total(w: Body, a: Number, b: Number) -> Number:
    """The sum as NumPy rounds it; of booleans, the disjunction."""
    opcode = "or" if a.dtype == BOOL else "fadd" if a.dtype.kind == "f" else "add"
    return rounded(w.e, lambda e, x, y: e.binary(opcode, x, y), a, b)


def scatter_add(operation: Operation, name: str, target: Target) -> Step | None:
    """Blocks are added in the order of the indices."""
    w = Body(operation, name, target)
    part = added(w.types[0].dtype)
    if part is None or (w.types[0].dtype.kind == "c" and 1 in w.unread):
        return None
    parts = w.types[0].dtype.itemsize // part.itemsize
    at = _Indices(w, 2)
    inner = at.inner * parts
    at.check()
    w.begin_in_place(0)

    def move(a: Number, k: Number) -> None:
        place = w.times(w.plus(w.times(a, at.extent), at.place(k)), inner)
        source = w.flat((a, at.count * inner), (k, inner))
        add_row(w, place, 1, source, part, inner)

    if inner == 1:
        w.each(at.outer, lambda a: add_numbers(w, at, a, part))
    elif inner:
        w.each(at.outer, lambda a: w.each(at.count, lambda k: move(a, k)))
    return w.finish(in_place=0)


def add_numbers(w: Body, at: _Indices, a: Number, part: DType) -> None:
    """Single numbers, in the order of the indices.

    Some in a row that go to the same place, as most do where the indices are sorted, are added in a register: a number
    that was just written is some cycles late when it is read again.
    """
    e, start, source = w.e, w.times(a, at.extent), w.times(a, at.count)

    def add(k: Number) -> None:
        add_to(w, w.plus(start, at.place(k)), 1, w.plus(source, k), part)

    def add_several(k: Number) -> None:
        several, one_by_one, after = e.label("several"), e.label("one.by.one"), e.label("after")
        e.branch(at.differ(k, ROW), one_by_one, several)
        e.start(several)
        place = w.plus(start, at.place(k))
        found = w.load("%out0", place, part)
        for j in range(ROW):
            found = total(w, found, number_of(w, 1, w.plus(source, w.plus(k, j)), part))
        w.write(place, found)
        e.jump(after)
        e.start(one_by_one)
        for j in range(ROW):
            add(w.plus(k, j))
        e.jump(after)
        e.start(after)

    whole = at.count - at.count % ROW
    w.each(whole, add_several, 0, ROW)
    w.each(at.count, add, whole)


# --- along an axis --------------------------------------------------------------------------------------------------


def _along_axis(
    w: Body, size: int, move: Callable[[Number, Number, int], None], before: Callable[[], None] | None = None
) -> None:
    """``move(place of the index, place that it names, elements of the array per place)`` for each index.

    The indices are operand 1; ``size`` is the length of the axis that they index. ``before`` runs after the check.
    """
    shape, axis = w.types[1].static_shape, w.operation.attrs["axis"]
    outer, (count,), inner = split(shape, axis)
    check_indices(w, 1, size)
    if before is not None:
        before()

    def point(indices: list[Number]) -> None:
        p, k, q = indices
        source = w.flat((p, count * inner), (k, inner), (q, 1))
        index = index_of(w, 1, source, size, False)
        move(source, w.plus(w.flat((p, size * inner), (index, inner)), q), inner)

    w.nest((outer, count, inner), point)


def take_along_axis(operation: Operation, name: str, target: Target) -> Step | None:
    w = Body(operation, name, target)
    itemsize = w.types[0].dtype.itemsize
    if not can_move(itemsize):
        return None
    size = w.types[0].static_shape[operation.attrs["axis"]]
    _along_axis(w, size, lambda here, there, _: w.put(here, w.raw(0, there), itemsize))
    return w.finish()


def add_along_axis(operation: Operation, name: str, target: Target) -> Step | None:
    w = Body(operation, name, target)
    dtype = w.types[0].dtype
    part = added(dtype)
    if part is None or (dtype.kind == "c" and 0 in w.unread):
        return None
    parts = dtype.itemsize // part.itemsize
    result = w.results[0]

    def move(here: Number, there: Number, _: int) -> None:
        for k in range(parts):
            add_to(w, w.plus(w.times(there, parts), k), 0, w.plus(w.times(here, parts), k), part)

    _along_axis(w, operation.attrs["size"], move, lambda: w.zero("%out0", result.size * dtype.itemsize))
    return w.finish()


# --- slices -----------------------------------------------------------------------------------------------------------


def slice_set(operation: Operation, name: str, target: Target) -> Step | None:
    """The rows of the part are copied to where they belong; whole axes at the end are one row."""
    w = Body(operation, name, target)
    itemsize = w.types[0].dtype.itemsize
    if not can_move(itemsize):
        return None
    attrs = operation.attrs
    array, part = w.types[0].static_shape, w.types[1].static_shape
    w.begin_in_place(0)
    rank = len(array)
    while rank and attrs["starts"][rank - 1] == 0 and part[rank - 1] == array[rank - 1]:
        rank -= 1
    if rank and attrs["strides"][rank - 1] == 1:
        rank -= 1  # consecutive elements of this axis are one row too
    row = 1
    for size in part[rank:]:
        row *= size
    steps, places = strides_of(part), strides_of(array)
    offset = sum(start * step for start, step in zip(attrs["starts"], places, strict=True))

    def move(indices: list[Number]) -> None:
        source = w.flat(*zip(indices, steps[:rank], strict=True))
        moves = [step * stride for step, stride in zip(places[:rank], attrs["strides"][:rank], strict=True)]
        w.transfer(1, source, w.plus(offset, w.flat(*zip(indices, moves, strict=True))), row)

    if row:
        w.nest(part[:rank], move)
    return w.finish(in_place=0)


WRITERS: Final[dict[str, StepWriter]] = {
    "gather": gather,
    "scatter_set": scatter_set,
    "scatter_add": scatter_add,
    "take_along_axis": take_along_axis,
    "add_along_axis": add_along_axis,
    "slice_set": slice_set,
}
