"""Elements moved as they are: joined, and views written out for dtypes that no group has."""

from __future__ import annotations

import math
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.indices import VIEWS, Line, flat, strides_of, view_index
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import RAW, Body, can_move
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation

TILE: Final = 32
"""The side of the squares in which a transposed array is copied: the lines that it is read from stay in the cache."""


def concatenate(operation: Operation, name: str, target: Target) -> Step | None:
    """Of each operand the rows from the axis on, one after the other."""
    w = Body(operation, name, target)
    if not can_move(w.results[0].dtype.itemsize):
        return None
    axis = operation.attrs["axis"]
    outer = math.prod(w.results[0].static_shape[:axis])
    rows = [math.prod(type.static_shape[axis:]) for type in w.types]
    length = sum(rows)

    def join(a: Number) -> None:
        offset = 0
        for operand, row in enumerate(rows):
            if row:
                w.transfer(operand, w.times(a, row), w.plus(w.times(a, length), offset), row)
            offset += row

    w.each(outer, join)
    return w.finish()


def copied(operation: Operation, name: str, target: Target) -> Step | None:
    """Every result is the operand at its position."""
    w = Body(operation, name, target)
    if not all(can_move(type.dtype.itemsize) for type in w.types):
        return None
    for k, type in enumerate(w.types):
        w.transfer(k, 0, 0, type.size, k)
    return w.finish()


def view(operation: Operation, name: str, target: Target) -> Step | None:
    """The elements of a view in C order."""
    w = Body(operation, name, target)
    itemsize = w.types[0].dtype.itemsize
    if not can_move(itemsize):
        return None
    shape = w.results[0].static_shape
    if 0 in shape:
        return w.finish()
    index = None if operation.op.name == "reshape" else view_index(operation)
    if index is None or 0 in w.unread:
        w.transfer(0, 0, 0, w.results[0].size)
        return w.finish()
    sizes, line = merged(shape, flat(index, w.types[0].static_shape, len(shape)))
    if not sizes or line.strides[-1] == 1:
        row = sizes.pop() if sizes else 1
        steps = strides_of([*sizes, row])[:-1]

        def move(indices: list[Number]) -> None:
            source = w.plus(line.offset, w.flat(*zip(indices, line.strides, strict=False)))
            w.transfer(0, source, w.flat(*zip(indices, steps, strict=True)), row)

        w.nest(sizes, move)
    else:
        _tiled(w, sizes, line, itemsize)
    return w.finish()


def merged(shape: tuple[int, ...], line: Line) -> tuple[list[int], Line]:
    """The same walk with axes of size 1 left out and axes joined that are one."""
    sizes: list[int] = []
    strides: list[int] = []
    for size, stride in zip(shape, line.strides, strict=True):
        if size == 1:
            continue
        if sizes and strides[-1] == stride * size:
            sizes[-1] *= size
            strides[-1] = stride
        else:
            sizes.append(size)
            strides.append(stride)
    return sizes, Line(line.offset, tuple(strides))


def _tiled(w: Body, sizes: list[int], line: Line, itemsize: int) -> None:
    """Copy by squares of the last axis and the axis along which the operand lies, if that is another one."""
    steps, last = strides_of(sizes), len(sizes) - 1
    along = next((axis for axis, stride in enumerate(line.strides) if stride == 1), last)

    def point(indices: list[Number]) -> None:
        source = w.plus(line.offset, w.flat(*zip(indices, line.strides, strict=True)))
        w.put(w.flat(*zip(indices, steps, strict=True)), w.raw(0, source), itemsize)

    if along == last or min(sizes[along], sizes[last]) < 2 * TILE:
        w.nest(sizes, point)
        return

    def tiles(indices: list[Number]) -> None:
        rows, columns = indices[along], indices[last]
        first, second = w.times(rows, TILE), w.times(columns, TILE)
        ends = [_end(w, first, sizes[along]), _end(w, second, sizes[last])]

        def inside(i: Number, j: Number) -> None:
            whole = list(indices)
            whole[along], whole[last] = i, j
            point(whole)

        w.each(ends[0], lambda i: w.each(ends[1], lambda j: inside(i, j), second), first)

    blocks = list(sizes)
    for axis in (along, last):
        blocks[axis] = -(-sizes[axis] // TILE)
    w.nest(blocks, tiles)


def _end(w: Body, start: Number, size: int) -> Number:
    """Where the tile that begins at ``start`` ends."""
    end = w.plus(start, TILE)
    return w.e.select(w.e.compare("slt", end, size), end, size)


def select(operation: Operation, name: str, target: Target) -> Step | None:
    """Elements of the second or the third operand; the predicate may be one boolean."""
    w = Body(operation, name, target)
    itemsize = w.results[0].dtype.itemsize
    if not can_move(itemsize):
        return None
    one = not w.types[0].rank

    def choose(k: Number) -> None:
        predicate = w.read(0, 0 if one else k)
        kind = RAW[itemsize]
        bits = w.e.emit(f"select i1 {predicate.text}, {kind} {w.raw(1, k)}, {kind} {w.raw(2, k)}")
        w.put(k, bits, itemsize)

    w.each(w.results[0].size, choose)
    return w.finish()


WRITERS: Final[dict[str, StepWriter]] = {
    "concatenate": concatenate,
    "identity": copied,
    "stop_gradient": copied,
    "barrier": copied,
    "select": select,
    **dict.fromkeys(sorted(VIEWS), view),
}
