"""Systems of a few equations in registers: the matrices of a stack side by side in the lanes of vectors.

Computed in float64. What has no pivots that are surely not 0, or no positive diagonal, is left to LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from srcgrad.backends.llvm.emitter import BOOL, F64, DType, Number
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import converted
from srcgrad.backends.llvm.vector_math import FUNCTIONS

MOST_ROWS: Final = 4
MOST_TRIANGLE: Final = 6
"""The most rows of systems, and of triangles."""
MOST_COLUMNS: Final = 4
ROUNDING: Final = 2.0**-46
"""How small a pivot may be, against the largest element of the matrix; a smaller one may be one that LAPACK finds 0."""
LARGE: Final = 2.0**960
"""Numbers beyond it, or below its inverse, are left to LAPACK."""
Rows = list[list[Number]]


def is_small(w: Lapack, most: int, columns: int = 1) -> bool:
    return w.own.kind == "f" and 0 < w.rows <= most and 0 < columns <= MOST_COLUMNS and w.examples > 0


class Stack:
    """The matrices of a stack, as many at a time as a register has lanes."""

    def __init__(self, w: Lapack) -> None:
        self.w = w
        self.lanes = w.target.vector_bytes // 8
        if w.examples < self.lanes:
            self.lanes = 1
        self.first = w.index(0)

    def each(self, body: Callable[[], None]) -> None:
        """Run ``body`` for all groups of matrices; the last may overlap the one before."""
        w, lanes = self.w, self.lanes

        def group(start: Number) -> None:
            self.first = w.least(start, w.examples - lanes) if w.examples % lanes else start
            body()

        w.lanes = lanes
        w.loop(w.examples, group, 0, lanes)
        w.lanes = 1

    def place(self, pointer: str, size: int, element: int, lane: int, itemsize: int) -> str:
        """The address of an element of one of the matrices, which have ``size`` elements."""
        return self.w.at(pointer, (lane * size + element) * itemsize, (self.first, size * itemsize))

    def load(self, pointer: str, size: int, element: int, dtype: DType) -> Number:
        w = self.w
        parts = [w.load(self.place(pointer, size, element, k, dtype.itemsize), dtype) for k in range(self.lanes)]
        if self.lanes == 1:
            return converted(w, parts[0], F64)
        found = Number("poison", dtype, self.lanes)
        for k, part in enumerate(parts):
            text = w.emit(f"insertelement {found.type} {found.text}, {part.type} {part.text}, i64 {k}")
            found = found._replace(text=text)
        return converted(w, found, F64)

    def store(self, value: Number, pointer: str, size: int, element: int, dtype: DType) -> None:
        w, value = self.w, converted(self.w, value, dtype)
        for k in range(self.lanes):
            part = value
            if self.lanes > 1:
                part = Number(w.emit(f"extractelement {value.type} {value.text}, i64 {k}"), dtype, 1)
            w.store(part, self.place(pointer, size, element, k, dtype.itemsize))

    def load_rows(self, pointer: str, rows: int, columns: int) -> Rows:
        dtype = self.w.own
        places = [[i * columns + j for j in range(columns)] for i in range(rows)]
        return [[self.load(pointer, rows * columns, place, dtype) for place in row] for row in places]

    def store_rows(self, values: Rows, result: int = 0) -> None:
        count = len(values[0])
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                self.store(value, f"%out{result}", len(values) * count, i * count + j, self.w.own)

    def require_all(self, condition: Number) -> None:
        """Give up unless the condition holds of all matrices of the group."""
        self.w.require(self.w.invert(self.w.any(self.w.invert(condition))))


def magnitude(w: Lapack, x: Number) -> Number:
    return FUNCTIONS["abs"](w, x)


def remaining(w: Lapack, value: Number, pairs: Sequence[tuple[Number, Number]]) -> Number:
    """The value less the products of pairs."""
    for a, b in pairs:
        value = w.fma(w.neg(a), b, value)
    return value


def write_cholesky(w: Lapack) -> None:
    """Row by row (Cholesky and Banachiewicz)."""
    n, stack = w.rows, Stack(w)

    def body() -> None:
        a = [[stack.load("%in0", n * n, i * n + j, w.own) for j in range(i + 1)] for i in range(n)]
        factor: Rows = []
        inverses: list[Number] = []
        zero = w.constant(0.0, F64)
        for i in range(n):
            row: list[Number] = []
            for j in range(i):
                rest = remaining(w, a[i][j], list(zip(row, factor[j], strict=False)))
                row.append(w.mul(rest, inverses[j]))
            rest = remaining(w, a[i][i], [(x, x) for x in row])
            positive = w.binary("and", w.compare("ogt", rest, 0.0), w.compare("olt", rest, float("inf")))
            stack.require_all(positive)
            root = FUNCTIONS["sqrt"](w, rest)
            inverses.append(w.div(1.0, root))
            factor.append([*row, root])
        stack.store_rows([[*row, *[zero] * (n - len(row))] for row in factor])

    stack.each(body)


def write_triangular_solve(w: Lapack, columns: int) -> None:
    attrs, n, stack = w.operation.attrs, w.rows, Stack(w)
    transposed = attrs["trans"] != "N"
    forward = attrs["lower"] != transposed
    order = list(range(n)) if forward else list(reversed(range(n)))

    def element(i: int, j: int) -> Number:
        place = j * n + i if transposed else i * n + j
        return stack.load("%in0", n * n, place, w.own)

    def body() -> None:
        found = stack.load_rows("%in1", n, columns)
        for position, i in enumerate(order):
            known = [(j, element(i, j)) for j in order[:position]]
            for column in range(columns):
                found[i][column] = remaining(w, found[i][column], [(a, found[j][column]) for j, a in known])
            if not attrs["unit"]:
                diagonal = element(i, i)
                stack.require_all(w.compare("une", diagonal, 0.0))
                found[i] = [w.div(value, diagonal) for value in found[i]]
        stack.store_rows(found)

    stack.each(body)


def write_solve(w: Lapack, columns: int) -> None:
    stack = Stack(w)

    def body() -> None:
        found = solved(stack, stack.load_rows("%in0", w.rows, w.rows), stack.load_rows("%in1", w.rows, columns))
        stack.store_rows(found)

    stack.each(body)


def write_inverse(w: Lapack, transposed: bool) -> None:
    n, stack = w.rows, Stack(w)

    def body() -> None:
        identity = [[w.constant(float(i == j), F64) for j in range(n)] for i in range(n)]
        found = solved(stack, stack.load_rows("%in0", n, n), identity)
        stack.store_rows([list(row) for row in zip(*found, strict=True)] if transposed else found)

    stack.each(body)


def write_determinant(w: Lapack) -> None:
    """The determinant, or with two results its sign and the logarithm of its size."""
    n, stack = w.rows, Stack(w)

    def body() -> None:
        rows = stack.load_rows("%in0", n, n)
        store_determinant(stack, product_of_pivots(w, rows, eliminated(stack, rows)))

    stack.each(body)


def store_determinant(stack: Stack, found: Number) -> None:
    """The result is the determinant, or the results are its sign and the logarithm of its size.

    Pivots are no further apart than `ROUNDING` says: no product of some of 24 overflows, or loses bits, where that of
    all is within bounds.
    """
    w, size = stack.w, magnitude(stack.w, found)
    stack.require_all(w.binary("and", w.compare("ogt", size, 2.0**-1000), w.compare("olt", size, 2.0**1000)))
    if len(w.operation.results) == 1:
        stack.store_rows([[found]])
        return
    stack.store_rows([[w.select(w.compare("olt", found, 0.0), w.constant(-1.0, F64), 1.0)]])
    stack.store_rows([[FUNCTIONS["log"](w, size)]], 1)


def inverted(stack: Stack, matrix: Rows) -> tuple[Rows, Number]:
    """The inverse and the determinant."""
    w, n = stack.w, len(matrix)
    identity = [[w.constant(float(i == j), F64) for j in range(n)] for i in range(n)]
    rows = [[*a, *b] for a, b in zip(matrix, identity, strict=True)]
    pivots = eliminated(stack, rows)
    return substituted(w, rows, pivots), product_of_pivots(w, rows, pivots)


def product_of_pivots(w: Lapack, rows: Rows, pivots: Sequence[tuple[Number, Number]]) -> Number:
    """The determinant of what was made triangular."""
    found = w.constant(1.0, F64)
    for k, (_, exchanged) in enumerate(pivots):
        found = w.mul(w.select(exchanged, w.neg(found), found), rows[k][k])
    return found


def solved(stack: Stack, matrix: Rows, right: Rows) -> Rows:
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    return substituted(stack.w, rows, eliminated(stack, rows))


def substituted(w: Lapack, rows: Rows, pivots: Sequence[tuple[Number, Number]]) -> Rows:
    """The solutions for the columns beyond the square matrix, which is triangular."""
    n = len(rows)
    found = [row[n:] for row in rows]
    for i in reversed(range(n)):
        for column, value in enumerate(found[i]):
            rest = remaining(w, value, [(rows[i][j], found[j][column]) for j in range(i + 1, n)])
            found[i][column] = w.mul(rest, pivots[i][0])
    return found


def eliminated(stack: Stack, rows: Rows) -> list[tuple[Number, Number]]:
    """Make the rows, of a square matrix and more columns, triangular; for each pivot its inverse, and if rows changed.

    The rows exchanged are those that LAPACK exchanges: the first with the largest number in the column.
    """
    w, n = stack.w, len(rows)
    sizes = [magnitude(w, x) for row in rows for x in row[:n]]
    least = least_pivot(w, reduce(lambda a, b: w.select(w.compare("ogt", b, a), b, a), sizes))
    found = []
    for k in range(n):
        exchanged = exchange(w, rows, k)
        pivot = rows[k][k]
        require_pivots(stack, pivot, least)
        inverse = w.div(1.0, pivot)
        found.append((inverse, exchanged))
        for i in range(k + 1, n):
            factor = w.neg(w.mul(rows[i][k], inverse))
            rows[i][k + 1 :] = [w.fma(factor, x, y) for x, y in zip(rows[k][k + 1 :], rows[i][k + 1 :], strict=True)]
    return found


def least_pivot(w: Lapack, largest: Number) -> Number:
    """What pivots must be above in matrices with such largest elements."""
    return w.select(w.compare("ogt", largest, 1.0 / LARGE), w.mul(largest, ROUNDING), 1.0 / LARGE)


def require_pivots(stack: Stack, pivot: Number, least: Number) -> None:
    """Give up unless pivots are surely not 0, and their inverses normal numbers."""
    w = stack.w
    size = magnitude(w, pivot)
    stack.require_all(w.binary("and", w.compare("ogt", size, least), w.compare("olt", size, LARGE)))


def exchange(w: Lapack, rows: Rows, k: int) -> Number:
    """Exchange row ``k`` with the first one below it that has the largest number in column ``k``, if that is larger.

    The result is whether it was.
    """
    best, larger = magnitude(w, rows[k][k]), []
    for row in rows[k + 1 :]:
        size = magnitude(w, row[k])
        larger.append(w.compare("ogt", size, best))
        best = w.select(larger[-1], size, best)
    upper, exchanged = rows[k], w.constant(False, BOOL)
    for i in reversed(range(k + 1, len(rows))):
        chosen = larger[i - k - 1]
        for later in larger[i - k :]:
            chosen = w.binary("and", chosen, w.invert(later))
        rows[k] = [w.select(chosen, x, y) for x, y in zip(rows[i], rows[k], strict=True)]
        rows[i] = [w.select(chosen, x, y) for x, y in zip(upper, rows[i], strict=True)]
        exchanged = w.binary("or", exchanged, chosen)
    return exchanged
