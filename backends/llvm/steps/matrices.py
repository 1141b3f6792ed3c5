"""Matrices in memory, and copies of them: in another order, or in another precision."""

from __future__ import annotations

from typing import NamedTuple

from srcgrad.backends.llvm.emitter import DType, Number
from srcgrad.backends.llvm.steps.writer import Writer
from srcgrad.ir.types import real_dtype


class Matrix(NamedTuple):
    """A matrix in memory: its first element, and the bytes from row to row and from column to column."""

    pointer: str
    row: int
    column: int

    @property
    def transposed(self) -> Matrix:
        return Matrix(self.pointer, self.column, self.row)

    def at(self, w: Writer, row: int = 0, column: int = 0, *moves: tuple[Number, int]) -> str:
        return w.at(self.pointer, row * self.row + column * self.column, *moves)


def rows_of(pointer: str, columns: int, dtype: DType) -> Matrix:
    """A matrix in C order."""
    return Matrix(pointer, columns * dtype.itemsize, dtype.itemsize)


def copy_rows(w: Writer, target: str, source: str, count: int, into: DType, dtype: DType) -> None:
    """So many numbers that lie together, rounded or widened."""
    if into == dtype:
        w.copy(target, source, count * dtype.itemsize)
        return
    if dtype.kind == "c":
        count, into, dtype = 2 * count, real_dtype(into), real_dtype(dtype)
    lanes = max(1, min(w.target.vector_bytes // max(into.itemsize, dtype.itemsize), count))

    def body(start: Number, lanes: int) -> None:
        value = w.load(w.at(source, 0, (start, dtype.itemsize)), dtype, lanes)
        w.store(converted(w, value, into), w.at(target, 0, (start, into.itemsize)))

    whole = count // lanes * lanes
    w.loop(whole, lambda k: body(k, lanes), 0, lanes)
    w.loop(count, lambda k: body(k, 1), whole)


def converted(w: Writer, value: Number, dtype: DType) -> Number:
    if value.dtype == dtype:
        return value
    return w.convert("fpext" if dtype.itemsize > value.dtype.itemsize else "fptrunc", value, dtype)


def copy_transposed(
    w: Writer, target: Matrix, source: Matrix, rows: int, columns: int, into: DType, dtype: DType, apart: bool = False
) -> None:
    """Copy a matrix whose columns are neighbours to where its rows are.

    Real numbers move in square blocks, which are transposed in registers; the last ones overlap those before. If
    ``apart``, the last rows are written after those before, as if there were more.
    """
    if not rows or not columns:
        return
    if dtype.kind == "c":
        copy_elements(w, target, source, rows, columns, into, dtype)
        return
    lanes = min(w.target.vector_bytes // max(into.itemsize, dtype.itemsize), rows, columns)
    lanes = 1 << (lanes.bit_length() - 1) if dtype.itemsize >= 4 else 1

    def block(i: Number, place: Number, j: Number) -> None:
        start = w.at(source.pointer, 0, (i, source.row), (j, source.column))
        found = [w.load(w.at(start, k * source.row), dtype, lanes) for k in range(lanes)]
        start = w.at(target.pointer, 0, (place, target.row), (j, target.column))
        for k, row in enumerate(turned(w, [converted(w, row, into) for row in found])):
            w.store(row, w.at(start, k * target.column))

    def strip(i: Number) -> None:
        first = w.least(i, rows - lanes) if rows % lanes else i
        place = i if apart else first
        w.loop(columns, lambda j: block(first, place, w.least(j, columns - lanes) if columns % lanes else j), 0, lanes)

    w.loop(rows, strip, 0, lanes)


def copy_elements(
    w: Writer, target: Matrix, source: Matrix, rows: int, columns: int, into: DType, dtype: DType
) -> None:
    """Copy a matrix element by element, from any strides to any strides."""
    parts = 2 if dtype.kind == "c" else 1
    own, other = (real_dtype(dtype), real_dtype(into)) if parts == 2 else (dtype, into)

    def body(indices: list[Number]) -> None:
        i, j = indices
        place = w.at(target.pointer, 0, (i, target.row), (j, target.column))
        start = w.at(source.pointer, 0, (i, source.row), (j, source.column))
        if into == dtype:
            w.copy(place, start, dtype.itemsize)
        else:
            w.store(converted(w, w.load(start, own, parts), other), place)

    w.nest((rows, columns), body)


def turned(w: Writer, rows: list[Number]) -> list[Number]:
    """A square block of vectors, transposed: pairs of rows exchange parts, which are halved each time."""
    lanes = len(rows)
    part = lanes // 2
    while part:
        found = list(rows)
        for k in range(lanes):
            if k & part:
                continue
            a, b = rows[k], rows[k | part]
            low = [place if not place & part else lanes + (place ^ part) for place in range(lanes)]
            high = [place | part if not place & part else lanes + place for place in range(lanes)]
            found[k], found[k | part] = shuffled(w, a, b, low), shuffled(w, a, b, high)
        rows, part = found, part // 2
    return rows


def shuffled(w: Writer, a: Number, b: Number, places: list[int]) -> Number:
    """A vector of elements of two vectors, by their places: those of ``b`` come after those of ``a``."""
    order = ", ".join(f"i32 {place}" for place in places)
    text = w.emit(f"shufflevector {a.type} {a.text}, {b.type} {b.text}, <{len(places)} x i32> <{order}>")
    return Number(text, a.dtype, len(places))
