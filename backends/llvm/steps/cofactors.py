"""Derivatives of determinants as steps: cofactors, without dividing by the determinant.

Of up to three rows by minors. Of more rows, det(A) times the transposed inverse where that is exact but for some bits,
of a stack for as many matrices at a time as there are lanes; else, for each matrix of which it is not, with
A = U S V^T they are det(U) det(V) U L V^T, where L has the products of all singular values but one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from srcgrad.backends.llvm.emitter import F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter, small_systems, stacked_systems
from srcgrad.backends.llvm.steps.determinants import Parts, sign_of_exchanges
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import converted, copy_rows
from srcgrad.backends.llvm.steps.small_systems import Stack
from srcgrad.backends.llvm.steps.systems import require_finite, solve
from srcgrad.backends.llvm.steps.writer import INT32
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation

MOST_CONDITION: Final = 2.0**16
"""The largest product of the sums of squares of a matrix and its inverse for which that inverse serves, by n^2.

Of the square of the condition in the norm of Frobenius, which is n^2 for the identity: the cofactors lose at most eight
bits more than those of orthogonal matrices, of the largest of them.
"""


def write_det_derivative(operation: Operation, name: str, target: Target) -> Step | None:
    """Up to three rows in any number of directions; of more rows the cofactors of real matrices."""
    rows, order = operation.operands[0].type.static_shape[-1], len(operation.operands)
    if order <= rows and rows > 3:
        return write_cofactors(operation, name, target) if order == 1 else None
    w = Lapack(operation, target, wide=False)
    n = w.rows
    if not w.fits:
        return None
    if order > n:
        w.clear("%out0", operation.results[0].type.size * w.size)
        return w.step(name, operation)
    parts = 2 if w.own.kind == "c" else 1

    def body(example: Number) -> None:
        def matrix(k: int) -> list[list[Parts]]:
            start = w.matrix(f"%in{k}", w.given, example)
            places = [[w.at(start, (i * n + j) * w.size) for j in range(n)] for i in range(n)]
            return [[load_parts(place) for place in row] for row in places]

        def load_parts(place: str) -> Parts:
            return [w.load(w.at(place, part * w.real.itemsize), w.real) for part in range(parts)]

        directions = [matrix(k) for k in range(1, order)]
        factors = [matrix(0)] * (n - order) + directions
        with w.strict():
            found = minors(w, parts, factors, order == 1)
        for k, part in enumerate(part for row in found for number in row for part in number):
            w.store(part, w.at(w.result(example), k * w.real.itemsize))

    w.each(body)
    return w.step(name, operation)


def minors(w: Lapack, parts: int, factors: list[list[list[Parts]]], halved: bool) -> list[list[Parts]]:
    """The cofactors of a matrix of two rows, for no factor of one row; of three rows, their double if not ``halved``.

    Then they are symmetric and linear in two factors. Numbers have one part, or two if they are complex.
    """

    def negative(a: Parts) -> Parts:
        return [w.neg(x) for x in a]

    def plus(a: Parts, b: Parts) -> Parts:
        return [w.add(x, y) for x, y in zip(a, b, strict=True)]

    def minus(a: Parts, b: Parts) -> Parts:
        return [w.sub(x, y) for x, y in zip(a, b, strict=True)]

    def times(a: Parts, b: Parts) -> Parts:
        if parts == 1:
            return [w.mul(a[0], b[0])]
        real = w.sub(w.mul(a[0], b[0]), w.mul(a[1], b[1]))
        return [real, w.add(w.mul(a[0], b[1]), w.mul(a[1], b[0]))]

    if not factors:
        return [[[w.constant(float(part == 0), w.real, 1) for part in range(parts)]]]
    if len(factors) == 1:
        (x,) = factors
        return [[x[1][1], negative(x[1][0])], [negative(x[0][1]), x[0][0]]]
    x, y = factors

    def cross(a: list[Parts], b: list[Parts]) -> list[Parts]:
        pairs = [(k - 2, k - 1) for k in range(3)]
        return [minus(times(a[i], b[j]), times(a[j], b[i])) for i, j in pairs]

    found = []
    for i, j in ((k - 2, k - 1) for k in range(3)):
        row = [plus(p, q) for p, q in zip(cross(x[i], y[j]), cross(y[i], x[j]), strict=True)]
        found.append([[w.mul(part, 0.5) for part in number] if halved else number for number in row])
    return found


def write_cofactors(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target)
    if not w.fits or w.own.kind == "c":
        return None
    by_inverse, by_singular_values = cofactors_by_inverse(w), cofactors_by_singular_values(w)

    def one(example: Number) -> None:
        w.otherwise(lambda: by_inverse(example), lambda: by_singular_values(example))

    if small_systems.is_small(w, small_systems.MOST_ROWS):
        by_stacks(w, small_cofactors, one)
    elif stacked_systems.is_stacked(w, w.rows):
        by_stacks(w, stacked_cofactors, one)
    else:
        w.each(one)
    return w.step(name, operation)


def by_stacks(w: Lapack, written: Callable[[Stack], Callable[[], None]], one: Callable[[Number], None]) -> None:
    """As many matrices at a time as there are lanes, and one by one those among which one is to be done otherwise."""
    stack = Stack(w)
    several = written(stack)

    def each_of_them() -> None:
        lanes, w.lanes = w.lanes, 1
        w.loop(stack.lanes, lambda k: one(w.integer("add", stack.first, k)))
        w.lanes = lanes

    stack.each(lambda: w.otherwise(several, each_of_them))


def require_exact(w: Lapack, determinant: Number, squares: list[Number], require: Callable[[Number], None]) -> None:
    """Give up unless the determinant is a normal number, and the matrix far from a singular one."""
    size = small_systems.magnitude(w, determinant)
    known = w.binary("and", w.compare("ogt", size, 2.0**-1000), w.compare("olt", size, 2.0**1000))
    require(w.binary("and", known, w.compare("olt", w.mul(*squares), MOST_CONDITION * w.rows**2)))


def small_cofactors(stack: Stack) -> Callable[[], None]:
    w, n = stack.w, stack.w.rows

    def squared(rows: small_systems.Rows) -> Number:
        return reduce(lambda total, x: w.fma(x, x, total), [x for row in rows for x in row], w.constant(0.0, F64))

    def body() -> None:
        matrix = stack.load_rows("%in0", n, n)
        inverse, determinant = small_systems.inverted(stack, matrix)
        require_exact(w, determinant, [squared(matrix), squared(inverse)], stack.require_all)
        stack.store_rows([[w.mul(determinant, x) for x in row] for row in zip(*inverse, strict=True)])

    return body


def stacked_cofactors(stack: Stack) -> Callable[[], None]:
    w, n = stack.w, stack.w.rows
    system = stacked_systems.Elimination(stack, n)

    def squared(first: int) -> Number:
        def row(i: Number, carried: list[Number]) -> list[Number]:
            def add(j: Number, carried: list[Number]) -> list[Number]:
                x = system.grid.load(i, j)
                return [w.fma(x, x, carried[0])]

            return w.fold(first + n, carried, add, first)

        return w.fold(n, [w.constant(0.0, F64)], row)[0]

    def body() -> None:
        system.grid.take("%in0", n)
        squares = squared(0)
        system.invert()
        sign, product = system.run()
        system.substitute(n)
        determinant = w.mul(sign, product)
        require_exact(w, determinant, [squares, squared(n)], stack.require_all)

        def scale(i: Number) -> None:
            w.loop(2 * n, lambda j: system.grid.store(w.mul(determinant, system.grid.load(i, j)), i, j), n)

        w.loop(n, scale)
        system.grid.give(n, n, True)

    return body


def cofactors_by_inverse(w: Lapack) -> Callable[[Number], None]:
    n = w.rows
    matrix, inverse, pivots = w.space(n * n), w.space(n * n), w.space(n, INT32)

    def squared(place: str) -> Number:
        def add(k: Number, carried: list[Number]) -> list[Number]:
            x = w.load(w.at(place, 0, (k, w.size)), F64)
            return [w.fma(x, x, carried[0])]

        return w.fold(n * n, [w.constant(0.0, F64, 1)], add)[0]

    def body(example: Number) -> None:
        w.take(matrix, w.matrix("%in0", w.given, example), n, n)
        squares = squared(matrix)
        w.identity(inverse, n)
        solve(w, matrix, pivots, inverse, n, n)
        w.require(w.succeeded())

        def multiply(k: Number, carried: list[Number]) -> list[Number]:
            return [w.mul(carried[0], w.load(w.at(matrix, 0, (k, (n + 1) * w.size)), F64))]

        (determinant,) = w.fold(n, [sign_of_exchanges(w, pivots)], multiply)
        require_exact(w, determinant, [squares, squared(inverse)], w.require)
        result = w.result(example)

        def scale(k: Number) -> None:
            found = w.mul(determinant, w.load(w.at(inverse, 0, (k, w.size)), F64))
            w.store(converted(w, found, w.own), w.at(result, 0, (k, w.own.itemsize)))

        w.loop(n * n, scale)

    return body


def cofactors_by_singular_values(w: Lapack) -> Callable[[Number], None]:
    """By columns a matrix in C order is A^T = U S V^T, and its cofactors are those of A, transposed likewise."""
    n = w.rows
    matrix, values, u, vt = w.space(n * n), w.space(n), w.space(n * n), w.space(n * n)
    factors, others, pivots = w.space(n * n), w.space(n), w.space(n, INT32)
    found = "" if w.own == w.dtype else w.space(n * n)
    space = w.workspace("gesdd", "A", n, n, None, n, None, None, n, None, n, kinds="Wi", least=[8 * n])
    size, no = w.integer_at(n), w.letter_at("N")
    one, zero = w.number_at(1, w.dtype), w.number_at(0, w.dtype)

    def at(place: str, k: Number) -> str:
        return w.at(place, 0, (k, w.size))

    def orientation(place: str, sign: Number) -> Number:
        """The sign times the determinant, 1 or -1, of an orthogonal matrix."""
        w.copy(factors, place, n * n * w.size)
        w.run("getrf", size, size, factors, size, pivots)

        def turn(k: Number, carried: list[Number]) -> list[Number]:
            negative = w.compare("olt", w.load(w.at(factors, 0, (k, (n + 1) * w.size)), F64), 0.0)
            return [w.select(negative, w.neg(carried[0]), carried[0])]

        return w.fold(n, [w.mul(sign, sign_of_exchanges(w, pivots))], turn)[0]

    def leave_out(sign: Number) -> None:
        """In ``others`` the sign times the products of all singular values but one."""

        def before(k: Number, carried: list[Number]) -> list[Number]:
            w.store(carried[0], at(others, k))
            return [w.mul(carried[0], w.load(at(values, k), F64))]

        def after(k: Number, carried: list[Number]) -> list[Number]:
            last = w.integer("sub", w.index(n - 1), k)
            w.store(w.mul(w.load(at(others, last), F64), carried[0]), at(others, last))
            return [w.mul(carried[0], w.load(at(values, last), F64))]

        w.fold(n, [w.constant(1.0, F64, 1)], before)
        w.fold(n, [sign], after)

    def body(example: Number) -> None:
        copy_rows(w, matrix, w.matrix("%in0", w.given, example), n * n, w.dtype, w.own)
        require_finite(w, matrix, n * n)
        w.run("gesdd", w.letter_at("A"), size, size, matrix, size, values, u, size, vt, size, *space)
        w.require(w.succeeded())
        leave_out(orientation(vt, orientation(u, w.constant(1.0, F64, 1))))

        def scale(column: Number) -> None:
            factor = w.load(at(others, column), F64)

            def element(row: Number) -> None:
                place = w.at(u, 0, (column, n * w.size), (row, w.size))
                w.store(w.mul(w.load(place, F64), factor), place)

            w.loop(n, element)

        w.loop(n, scale)
        result = w.result(example)
        w.run("gemm", no, no, size, size, size, one, u, size, vt, size, zero, found or result, size, informs=False)
        if found:
            copy_rows(w, result, found, n * n, w.own, w.dtype)

    return body


WRITERS: Final[Mapping[str, StepWriter]] = {"det_derivative": write_det_derivative}
