"""Systems of some more equations: the matrices of a stack side by side in the lanes of vectors, in scratch memory.

Loops go over rows and columns, so that code is short; a few columns at a time are in registers. Rows are exchanged lane
by lane where they are read. Computed in float64; what `small_systems` leaves to LAPACK is left to it here too.
"""

from __future__ import annotations

from typing import Final

from srcgrad.backends.llvm.emitter import F64, DType, Number
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import Matrix, copy_transposed
from srcgrad.backends.llvm.steps.small_systems import Stack, least_pivot, magnitude, require_pivots, store_determinant
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS

MOST_ROWS: Final = 24
"""The most rows of a system, and columns of its right side; half as many where there are two lanes."""
BLOCK: Final = 4
"""The columns in registers at a time."""
Index = Number | int


def is_stacked(w: Lapack, columns: int = 1) -> bool:
    return are_stacked(w.target, w.own, w.rows, columns, w.examples)


def are_stacked(target: Target, dtype: DType, rows: int, columns: int, examples: int) -> bool:
    """Whether there are enough matrices to be worth the code, which takes longer to compile than a call of LAPACK."""
    lanes = target.vector_bytes // 8
    most = MOST_ROWS if lanes > 2 else MOST_ROWS // 2
    return dtype.kind == "f" and 0 < rows <= most and 0 < columns <= most and examples >= 2 * lanes


class Grid:
    """As many matrices as there are lanes, each element a vector, and columns beside them up to a whole block."""

    def __init__(self, stack: Stack, rows: int, columns: int) -> None:
        self.stack, self.w = stack, stack.w
        self.rows = rows
        self.columns = -(-columns // BLOCK) * BLOCK
        self.vector = stack.lanes * 8
        self.place = self.w.reserve(rows * self.columns * self.vector)
        self.w.clear(self.place, rows * self.columns * self.vector)

    def at(self, i: Index, j: Index) -> str:
        w = self.w
        moves = ((i, self.columns * self.vector), (j, self.vector))
        return w.at(self.place, 0, *[(w.index(x) if isinstance(x, int) else x, size) for x, size in moves])

    def load(self, i: Index, j: Index) -> Number:
        return self.w.load(self.at(i, j), F64, self.stack.lanes)

    def store(self, value: Number, i: Index, j: Index) -> None:
        self.w.store(value, self.at(i, j))

    def load_block(self, i: Index, j: Index, count: int = BLOCK) -> list[Number]:
        start = self.at(i, j)
        return [self.w.load(self.w.at(start, k * self.vector), F64, self.stack.lanes) for k in range(count)]

    def store_block(self, values: list[Number], i: Index, j: Index) -> None:
        start = self.at(i, j)
        for k, value in enumerate(values):
            self.w.store(value, self.w.at(start, k * self.vector))

    def take(self, pointer: str, columns: int, first: int = 0) -> None:
        """Matrices of an operand, to the columns from ``first`` on."""
        w, size, rows = self.w, self.w.own.itemsize, self.rows
        start = self.stack.place(pointer, rows * columns, 0, 0, size)
        down, across, example = self.columns * self.vector, self.vector, rows * columns * size
        if columns == 1:
            rows, columns, down, across = columns, rows, across, down

        def row(i: Number) -> None:
            source = Matrix(w.at(start, 0, (i, columns * size)), example, size)
            target = Matrix(w.at(self.at(0, first), 0, (i, down)), 8, across)
            copy_transposed(w, target, source, self.stack.lanes, columns, F64, w.own)

        w.loop(rows, row)

    def give(self, columns: int, first: int = 0, transposed: bool = False) -> None:
        """The columns from ``first`` on as matrices of the result, or the matrices transposed."""
        w, size, rows = self.w, self.w.own.itemsize, self.rows
        result = self.stack.place("%out0", rows * columns, 0, 0, size)
        down, across = self.columns * self.vector, self.vector
        if transposed or columns == 1:  # the elements of a column follow each other
            rows, columns, down, across = columns, rows, across, down

        def row(i: Number) -> None:
            target = Matrix(w.at(result, 0, (i, columns * size)), size, rows * columns * size)
            source = Matrix(w.at(self.at(0, first), 0, (i, down)), across, 8)
            copy_transposed(w, target, source, columns, self.stack.lanes, w.own, F64)

        w.loop(rows, row)


class Elimination:
    """Matrices beside their right sides, made triangular; ``inverses`` are those of the pivots."""

    def __init__(self, stack: Stack, columns: int) -> None:
        self.stack, self.w = stack, stack.w
        self.rows = stack.w.rows
        self.grid = Grid(stack, self.rows, self.rows + columns)
        self.inverses, self.factors = Grid(stack, self.rows, 1), Grid(stack, self.rows, 1)

    def run(self) -> tuple[Number, Number]:
        """The signs of the exchanges of rows, and the products of the pivots."""
        w, grid, n = self.w, self.grid, self.rows

        def largest(i: Number, carried: list[Number]) -> list[Number]:
            def larger(j: Number, carried: list[Number]) -> list[Number]:
                size = magnitude(w, grid.load(i, j))
                return [w.select(w.compare("ogt", size, carried[0]), size, carried[0])]

            return w.fold(n, carried, larger)

        least = least_pivot(w, w.fold(n, [w.constant(0.0, F64)], largest)[0])

        def column(k: Number, carried: list[Number]) -> list[Number]:
            place, pivot = self.pivot(k)
            require_pivots(self.stack, pivot, least)
            self.eliminate(k, place, pivot)
            stays = w.compare("eq", place, w.splat(k, self.stack.lanes))
            return [w.select(stays, carried[0], w.neg(carried[0])), w.mul(carried[1], pivot)]

        one = w.constant(1.0, F64)
        sign, product = w.fold(n, [one, one], column)
        return sign, product

    def pivot(self, k: Number) -> tuple[Number, Number]:
        """The rows with the first largest number in column ``k``, as LAPACK chooses them, and these numbers."""
        w, grid = self.w, self.grid
        first = grid.load(k, k)

        def look(i: Number, carried: list[Number]) -> list[Number]:
            place, pivot = carried
            x = grid.load(i, k)
            larger = w.compare("ogt", magnitude(w, x), magnitude(w, pivot))
            return [w.select(larger, w.splat(i, self.stack.lanes), place), w.select(larger, x, pivot)]

        start = w.integer("add", k, 1)
        place, pivot = w.fold(self.rows, [w.splat(k, self.stack.lanes), first], look, start)
        return place, pivot

    def eliminate(self, k: Number, place: Number, pivot: Number) -> None:
        """Exchange row ``k`` with that of the pivot in each lane, and take multiples of it from those below."""
        w, grid, n = self.w, self.grid, self.rows
        inverse, start = w.div(1.0, pivot), w.integer("add", k, 1)
        self.inverses.store(inverse, k, 0)
        first = grid.load(k, k)

        def is_exchanged(i: Number) -> Number:
            return w.compare("eq", place, w.splat(i, self.stack.lanes))

        def factor(i: Number) -> None:
            x = w.select(is_exchanged(i), first, grid.load(i, k))
            self.factors.store(w.neg(w.mul(x, inverse)), i, 0)

        w.loop(n, factor, start)

        def block(j: Number) -> None:
            before = grid.load_block(k, j)

            def find(i: Number, carried: list[Number]) -> list[Number]:
                chosen, row = is_exchanged(i), grid.load_block(i, j)
                return [w.select(chosen, x, y) for x, y in zip(row, carried, strict=True)]

            upper = w.fold(n, before, find, start)
            grid.store_block(upper, k, j)

            def subtract(i: Number) -> None:
                chosen, multiple, row = is_exchanged(i), self.factors.load(i, 0), grid.load_block(i, j)
                rows = zip(row, before, upper, strict=True)
                grid.store_block([w.fma(multiple, z, w.select(chosen, y, x)) for x, y, z in rows], i, j)

            w.loop(n, subtract, start)

        w.loop(grid.columns, block, w.integer("and", k, -BLOCK), BLOCK)

    def invert(self) -> None:
        """Have the columns of the identity for right sides."""
        w, n = self.w, self.rows
        zero, one = w.constant(0.0, F64), w.constant(1.0, F64)

        def row(i: Number) -> None:
            w.loop(2 * n, lambda j: self.grid.store(zero, i, j), n)
            self.grid.store(one, i, w.integer("add", i, n))

        w.loop(n, row)

    def substitute(self, count: int) -> None:
        """The solutions for ``count`` right sides, in their place."""
        whole = count // BLOCK * BLOCK
        self.w.loop(self.rows + whole, lambda j: self.solutions(j, BLOCK), self.rows, BLOCK)
        if count > whole:
            self.solutions(self.w.index(self.rows + whole), count - whole)

    def solutions(self, column: Number, count: int) -> None:
        w, grid, n = self.w, self.grid, self.rows

        def row(k: Number) -> None:
            i = w.integer("sub", w.index(n - 1), k)

            def less(j: Number, carried: list[Number]) -> list[Number]:
                factor = w.neg(grid.load(i, j))
                known = grid.load_block(j, column, count)
                return [w.fma(factor, x, y) for x, y in zip(known, carried, strict=True)]

            rest = w.fold(n, grid.load_block(i, column, count), less, w.integer("add", i, 1))
            inverse = self.inverses.load(i, 0)
            grid.store_block([w.mul(x, inverse) for x in rest], i, column)

        w.loop(n, row)


def write_solve(w: Lapack, columns: int) -> None:
    stack = Stack(w)
    system = Elimination(stack, columns)

    def body() -> None:
        system.grid.take("%in0", w.rows)
        system.grid.take("%in1", columns, w.rows)
        system.run()
        system.substitute(columns)
        system.grid.give(columns, w.rows)

    stack.each(body)


def write_inverse(w: Lapack, transposed: bool) -> None:
    n, stack = w.rows, Stack(w)
    system = Elimination(stack, n)

    def body() -> None:
        system.grid.take("%in0", n)
        system.invert()
        system.run()
        system.substitute(n)
        system.grid.give(n, n, transposed)

    stack.each(body)


def write_determinant(w: Lapack) -> None:
    """The determinant, or with two results its sign and the logarithm of its size."""
    stack = Stack(w)
    system = Elimination(stack, 0)

    def body() -> None:
        system.grid.take("%in0", w.rows)
        store_determinant(stack, stack.w.mul(*system.run()))

    stack.each(body)


def write_triangular_solve(w: Lapack, columns: int) -> None:
    attrs, n, stack = w.operation.attrs, w.rows, Stack(w)
    transposed = attrs["trans"] != "N"
    forward = attrs["lower"] != transposed
    matrix, right = Grid(stack, n, n), Grid(stack, n, columns)

    def nth(k: Number) -> Number:
        return k if forward else w.integer("sub", w.index(n - 1), k)

    def row(k: Number) -> None:
        i = nth(k)
        diagonal = matrix.load(i, i)
        if not attrs["unit"]:
            stack.require_all(w.compare("une", diagonal, 0.0))

        def block(column: Number) -> None:
            def less(m: Number, carried: list[Number]) -> list[Number]:
                j = nth(m)
                factor = w.neg(matrix.load(j, i) if transposed else matrix.load(i, j))
                return [w.fma(factor, x, y) for x, y in zip(right.load_block(j, column), carried, strict=True)]

            found = w.fold(k, right.load_block(i, column), less)
            right.store_block(found if attrs["unit"] else [w.div(x, diagonal) for x in found], i, column)

        w.loop(right.columns, block, 0, BLOCK)

    def body() -> None:
        matrix.take("%in0", n)
        right.take("%in1", columns)
        w.loop(n, row)
        right.give(columns)

    stack.each(body)


def write_cholesky(w: Lapack) -> None:
    """Column by column, and each taken from those after it; what stands above the diagonal takes part for nothing."""
    n, stack = w.rows, Stack(w)
    grid, factors = Grid(stack, n, n), Grid(stack, -(-n // BLOCK) * BLOCK, 1)

    def column(k: Number) -> None:
        rest, zero, start = grid.load(k, k), w.constant(0.0, F64), w.integer("add", k, 1)
        stack.require_all(w.binary("and", w.compare("ogt", rest, 0.0), w.compare("olt", rest, float("inf"))))
        root = FUNCTIONS["sqrt"](w, rest)
        inverse = w.div(1.0, root)
        grid.store(root, k, k)
        factors.store(zero, k, 0)

        def factor(i: Number) -> None:
            x = w.mul(grid.load(i, k), inverse)
            grid.store(x, i, k)
            grid.store(zero, k, i)
            factors.store(x, i, 0)

        w.loop(n, factor, start)

        def block(j: Number) -> None:
            across = [w.neg(factors.load(w.integer("add", j, lane), 0)) for lane in range(BLOCK)]

            def subtract(i: Number) -> None:
                multiple = factors.load(i, 0)
                pairs = zip(across, grid.load_block(i, j), strict=True)
                grid.store_block([w.fma(multiple, x, y) for x, y in pairs], i, j)

            first = w.select(w.compare("sgt", start, j), start, j)
            w.loop(n, subtract, first)

        w.loop(n, block, w.integer("and", start, -BLOCK), BLOCK)

    def body() -> None:
        grid.take("%in0", n)
        w.loop(n, column)
        grid.give(n)

    stack.each(body)
