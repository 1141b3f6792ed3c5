"""A matrix of some rows and many right sides, the columns of these in the lanes of vectors.

BLAS copies the right sides, is at a fraction of its speed for so few rows, and wakes threads for what takes
microseconds: on a machine whose cores are busy, milliseconds were waited for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import copy_transposed, rows_of
from srcgrad.backends.llvm.steps.writer import INT32
from srcgrad.ir.types import INT64

MOST_ROWS: Final = 128
"""The most rows: beyond, BLAS takes its time for work."""
LEAST: Final = 8
"""The columns from which BLAS wakes threads."""
MOST_ALONE: Final = LEAST - 1
"""The columns at a time of which trsm wakes none, where lanes are not used: of complex numbers."""
BLOCK: Final = 4
"""The vectors of columns in registers at a time."""

Element = Callable[[Number, Number], str]


def is_wide(w: Lapack, columns: int, least: int = LEAST) -> bool:
    """Whether there are enough columns, of numbers that are computed in as they are."""
    return w.own == w.dtype and w.own.kind == "f" and 0 < w.rows <= MOST_ROWS and columns >= least


class Sides:
    """The right sides in C order, each row up to a whole vector: the result itself where nothing is added."""

    def __init__(self, w: Lapack, rows: int, columns: int, apart: bool = False) -> None:
        """``apart``: nothing is the result itself."""
        self.w, self.rows, self.columns = w, rows, columns
        self.dtype, self.size = w.dtype, w.dtype.itemsize
        self.lanes = w.target.vector_bytes // self.size
        self.vectors = -(-columns // self.lanes)
        self.row = self.vectors * self.lanes * self.size
        self.is_whole = columns % self.lanes == 0 and not apart
        self.scratch = "" if self.is_whole else w.reserve(self.rows * self.row)
        self.place = self.scratch

    def take(self, source: str, result: str) -> None:
        w, size = self.w, self.columns * self.size
        if self.is_whole:
            self.place = result
            w.copy(result, source, self.rows * size)
            return
        w.clear(self.scratch, self.rows * self.row)
        w.loop(self.rows, lambda i: w.copy(self.at(i), w.at(source, 0, (i, size)), size))

    def take_columns(self, source: str) -> None:
        """From columns that lie one after the other, in the numbers that are computed in."""
        w, dtype = self.w, self.dtype
        if not self.is_whole:
            w.clear(self.scratch, self.rows * self.row)
        place = rows_of(self.place, self.row // self.size, dtype).transposed
        copy_transposed(w, place, rows_of(source, self.rows, dtype), self.columns, self.rows, dtype, dtype)

    def give_columns(self, target: str) -> None:
        w, dtype = self.w, self.dtype
        source = rows_of(self.place, self.row // self.size, dtype)
        place = rows_of(target, self.rows, dtype).transposed
        copy_transposed(w, place, source, self.rows, self.columns, dtype, dtype)

    def take_units(self, result: str) -> None:
        """The columns of the identity."""
        w = self.w
        self.place = result if self.is_whole else self.scratch
        w.clear(self.place, self.rows * self.row)
        one = w.constant(1.0, self.dtype, 1)
        w.loop(self.rows, lambda i: w.store(one, w.at(self.at(i), 0, (i, self.size))))

    def give(self, result: str) -> None:
        w, size = self.w, self.columns * self.size
        if not self.is_whole:
            w.loop(self.rows, lambda i: w.copy(w.at(result, 0, (i, size)), self.at(i), size))

    def at(self, i: Number, vector: Number | None = None) -> str:
        moves = [(i, self.row)] + ([] if vector is None else [(vector, self.lanes * self.size)])
        return self.w.at(self.place, 0, *moves)

    def load(self, i: Number, vector: Number, count: int) -> list[Number]:
        w, start = self.w, self.at(i, vector)
        return [w.load(w.at(start, k * self.lanes * self.size), self.dtype, self.lanes) for k in range(count)]

    def store(self, values: list[Number], i: Number, vector: Number) -> None:
        w, start = self.w, self.at(i, vector)
        for k, value in enumerate(values):
            w.store(value, w.at(start, k * self.lanes * self.size))

    def exchange(self, pivots: str, back: bool = False) -> None:
        """The rows as LAPACK has exchanged those of the matrix, one after the other, or ``back`` where they were."""
        w = self.w

        def row(k: Number) -> None:
            i = w.integer("sub", w.index(self.rows - 1), k) if back else k
            other = w.convert("sext", w.load(w.at(pivots, 0, (i, 4)), INT32), INT64)
            other = w.integer("sub", other, 1)

            def swap(vector: Number) -> None:
                one, two = self.load(i, vector, 1), self.load(other, vector, 1)
                self.store(two, i, vector)
                self.store(one, other, vector)

            w.loop(self.vectors, swap)

        w.loop(self.rows, row)

    def substitute(self, element: Element, forward: bool, unit: bool) -> None:
        """The solutions of a triangle, of which ``element`` says where the number of a row and a column is."""
        whole = self.vectors // BLOCK * BLOCK
        self.w.loop(whole, lambda vector: self.solutions(element, forward, unit, vector, BLOCK), 0, BLOCK)
        if self.vectors > whole:
            self.solutions(element, forward, unit, self.w.index(whole), self.vectors - whole)

    def solutions(self, element: Element, forward: bool, unit: bool, vector: Number, count: int) -> None:
        w, n = self.w, self.rows

        def nth(k: Number) -> Number:
            return k if forward else w.integer("sub", w.index(n - 1), k)

        def row(k: Number) -> None:
            i = nth(k)

            def less(m: Number, carried: list[Number]) -> list[Number]:
                j = nth(m)
                factor = w.splat(w.neg(w.load(element(i, j), self.dtype)), self.lanes)
                return [w.fma(factor, x, y) for x, y in zip(self.load(j, vector, count), carried, strict=True)]

            found = w.fold(k, self.load(i, vector, count), less)
            if not unit:
                inverse = w.splat(w.div(1.0, w.load(element(i, i), self.dtype)), self.lanes)
                found = [w.mul(x, inverse) for x in found]
            self.store(found, i, vector)

        w.loop(n, row)


def by_rows(sides: Sides, matrix: str, transposed: bool = False) -> Element:
    """The elements of a matrix in C order, or of its transpose."""
    w, row, column = sides.w, sides.rows * sides.size, sides.size
    if transposed:
        row, column = column, row
    return lambda i, j: w.at(matrix, 0, (i, row), (j, column))


def solve(w: Lapack, sides: Sides, matrix: str, pivots: str, right: str, result: str) -> None:
    """The solution for a matrix by columns, which is factored; LAPACK says whether it could be."""
    size = w.integer_at(w.rows)
    w.run("getrf", size, size, matrix, size, pivots)
    w.require(w.succeeded())
    sides.take(right, result)
    substitute_factors(sides, matrix, pivots)
    sides.give(result)


def substitute_factors(sides: Sides, factors: str, pivots: str, transposed: bool = False) -> None:
    """The solution, of LAPACK's factors P L U of a matrix by columns, or of its transpose U^T L^T P^T."""
    element = by_rows(sides, factors, not transposed)
    if transposed:
        sides.substitute(element, forward=True, unit=False)
        sides.substitute(element, forward=False, unit=True)
        sides.exchange(pivots, back=True)
    else:
        sides.exchange(pivots)
        sides.substitute(element, forward=True, unit=True)
        sides.substitute(element, forward=False, unit=False)


def invert(
    w: Lapack, sides: Sides, matrix: str, pivots: str, given: str, result: str, strict: bool, transposed: bool
) -> None:
    """The inverse, or the transpose of it; of a singular matrix the status is 1, or all of it nan unless ``strict``."""
    n, size = w.rows, w.integer_at(w.rows)
    if transposed:  # by columns, the rows are those of the transpose
        w.copy(matrix, given, n * n * w.size)
    else:
        w.take(matrix, given, n, n)
    w.run("getrf", size, size, matrix, size, pivots)
    if strict:
        w.require(w.succeeded())
    sides.take_units(result)
    substitute_factors(sides, matrix, pivots)
    sides.give(result)
    if not strict:
        w.fill_if_failed(result, n * n)


def solve_triangle(w: Lapack, sides: Sides, matrix: str, right: str, result: str) -> None:
    attrs = w.operation.attrs
    transposed = attrs["trans"] != "N"
    sides.take(right, result)
    sides.substitute(by_rows(sides, matrix, transposed), attrs["lower"] != transposed, attrs["unit"])
    sides.give(result)
