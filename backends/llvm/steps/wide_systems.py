"""A matrix of some rows and many right sides, the columns of these in the lanes of vectors.

BLAS copies the right sides, is at a fraction of its speed for so few rows, and wakes threads for what takes
microseconds: on a machine whose cores are busy, milliseconds were waited for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.writer import INT32
from srcgrad.ir.types import INT64

MOST_ROWS: Final = 128
"""The most rows: beyond, BLAS takes its time for work."""
BLOCK: Final = 4
"""The vectors of columns in registers at a time."""

Element = Callable[[Number, Number], str]


def lanes_of(w: Lapack) -> int:
    return w.target.vector_bytes // w.own.itemsize


def is_wide(w: Lapack, columns: int) -> bool:
    """Whether there are some vectors of columns, of numbers that are computed in as they are."""
    return w.own == w.dtype and w.own.kind == "f" and 0 < w.rows <= MOST_ROWS and columns >= 2 * lanes_of(w)


class Sides:
    """The right sides in C order, each row up to a whole vector: the result itself where nothing is added."""

    def __init__(self, w: Lapack, columns: int) -> None:
        self.w, self.columns, self.lanes = w, columns, lanes_of(w)
        self.vectors = -(-columns // self.lanes)
        self.row = self.vectors * self.lanes * w.size
        self.is_whole = columns % self.lanes == 0
        self.scratch = "" if self.is_whole else w.reserve(w.rows * self.row)
        self.place = self.scratch

    def take(self, source: str, result: str) -> None:
        w, size = self.w, self.columns * self.w.size
        if self.is_whole:
            self.place = result
            w.copy(result, source, w.rows * size)
            return
        w.clear(self.scratch, w.rows * self.row)
        w.loop(w.rows, lambda i: w.copy(self.at(i), w.at(source, 0, (i, size)), size))

    def take_units(self, result: str) -> None:
        """The columns of the identity."""
        w = self.w
        self.place = result if self.is_whole else self.scratch
        w.clear(self.place, w.rows * self.row)
        one = w.constant(1.0, w.own, 1)
        w.loop(w.rows, lambda i: w.store(one, w.at(self.at(i), 0, (i, w.size))))

    def give(self, result: str) -> None:
        w, size = self.w, self.columns * self.w.size
        if not self.is_whole:
            w.loop(w.rows, lambda i: w.copy(w.at(result, 0, (i, size)), self.at(i), size))

    def at(self, i: Number, vector: Number | None = None) -> str:
        moves = [(i, self.row)] + ([] if vector is None else [(vector, self.lanes * self.w.size)])
        return self.w.at(self.place, 0, *moves)

    def load(self, i: Number, vector: Number, count: int) -> list[Number]:
        w, start = self.w, self.at(i, vector)
        return [w.load(w.at(start, k * self.lanes * w.size), w.own, self.lanes) for k in range(count)]

    def store(self, values: list[Number], i: Number, vector: Number) -> None:
        w, start = self.w, self.at(i, vector)
        for k, value in enumerate(values):
            w.store(value, w.at(start, k * self.lanes * w.size))

    def exchange(self, pivots: str, back: bool = False) -> None:
        """The rows as LAPACK has exchanged those of the matrix, one after the other, or ``back`` where they were."""
        w = self.w

        def row(k: Number) -> None:
            i = w.integer("sub", w.index(w.rows - 1), k) if back else k
            other = w.convert("sext", w.load(w.at(pivots, 0, (i, 4)), INT32), INT64)
            other = w.integer("sub", other, 1)

            def swap(vector: Number) -> None:
                one, two = self.load(i, vector, 1), self.load(other, vector, 1)
                self.store(two, i, vector)
                self.store(one, other, vector)

            w.loop(self.vectors, swap)

        w.loop(w.rows, row)

    def substitute(self, element: Element, forward: bool, unit: bool) -> None:
        """The solutions of a triangle, of which ``element`` says where the number of a row and a column is."""
        whole = self.vectors // BLOCK * BLOCK
        self.w.loop(whole, lambda vector: self.solutions(element, forward, unit, vector, BLOCK), 0, BLOCK)
        if self.vectors > whole:
            self.solutions(element, forward, unit, self.w.index(whole), self.vectors - whole)

    def solutions(self, element: Element, forward: bool, unit: bool, vector: Number, count: int) -> None:
        w, n = self.w, self.w.rows

        def nth(k: Number) -> Number:
            return k if forward else w.integer("sub", w.index(n - 1), k)

        def row(k: Number) -> None:
            i = nth(k)

            def less(m: Number, carried: list[Number]) -> list[Number]:
                j = nth(m)
                factor = w.splat(w.neg(w.load(element(i, j), w.own)), self.lanes)
                return [w.fma(factor, x, y) for x, y in zip(self.load(j, vector, count), carried, strict=True)]

            found = w.fold(k, self.load(i, vector, count), less)
            if not unit:
                inverse = w.splat(w.div(1.0, w.load(element(i, i), w.own)), self.lanes)
                found = [w.mul(x, inverse) for x in found]
            self.store(found, i, vector)

        w.loop(n, row)


def by_rows(w: Lapack, matrix: str, transposed: bool = False) -> Element:
    """The elements of a matrix in C order, or of its transpose."""
    row, column = w.rows * w.size, w.size
    if transposed:
        row, column = column, row
    return lambda i, j: w.at(matrix, 0, (i, row), (j, column))


def solve(w: Lapack, sides: Sides, matrix: str, pivots: str, right: str, result: str) -> None:
    """The solution for a matrix by columns, which is factored; LAPACK says whether it could be."""
    size = w.integer_at(w.rows)
    w.run("getrf", size, size, matrix, size, pivots)
    w.require(w.succeeded())
    sides.take(right, result)
    substitute_factors(w, sides, matrix, pivots)
    sides.give(result)


def substitute_factors(w: Lapack, sides: Sides, factors: str, pivots: str, transposed: bool = False) -> None:
    """The solution, of LAPACK's factors P L U of a matrix by columns, or of its transpose U^T L^T P^T."""
    element = by_rows(w, factors, not transposed)
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
    substitute_factors(w, sides, matrix, pivots)
    sides.give(result)
    if not strict:
        w.fill_if_failed(result, n * n)


def solve_triangle(w: Lapack, sides: Sides, matrix: str, right: str, result: str) -> None:
    attrs = w.operation.attrs
    transposed = attrs["trans"] != "N"
    sides.take(right, result)
    sides.substitute(by_rows(w, matrix, transposed), attrs["lower"] != transposed, attrs["unit"])
    sides.give(result)
