"""What is computed by Schur's form: Sylvester's equation; square roots, logarithms and powers of matrices.

In C order matrices are transposed for LAPACK, and so are the solutions: A X + X B = Q is B^T X^T + X^T A^T = Q^T.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.exponentials import Value
from srcgrad.backends.llvm.steps.helper_functions import Matrices
from srcgrad.backends.llvm.steps.lapack import C128, Lapack
from srcgrad.backends.llvm.steps.matrices import converted
from srcgrad.backends.llvm.steps.systems import require_finite
from srcgrad.backends.llvm.steps.wide_systems import MOST_ALONE, MOST_ROWS
from srcgrad.backends.llvm.steps.writer import INT64
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Operation
from srcgrad.ir.types import real_dtype

IMAGINARY: Final = 2.0**-40
"""How large imaginary parts may be, beside the largest number, that are the rounding of real numbers."""
NEAR: Final = 0.264
"""How far from 1 the sum of `FRACTIONS` is exact."""
FRACTIONS: Final = 7
MOST_ROOTS: Final = 100


class Schur:
    """Schur's form of matrices of ``n`` rows: ``A = vectors T vectors^H``, with T over A."""

    def __init__(self, w: Lapack, n: int) -> None:
        self.w, self.n = w, n
        self.vectors = w.space(n * n)
        complexes = w.dtype.kind == "c"
        self.values = [w.space(n) for _ in range(1 if complexes else 2)]
        self.count = w.variable("i32")
        given = ["V", "N", None, n, None, max(n, 1), None, *[None for _ in self.values], None, max(n, 1)]
        self.space = w.workspace("gees", *given, kinds="Wri" if complexes else "Wi", least=[n, n])

    def run(self, matrix: str) -> None:
        """No selection is asked for, and none of its arguments is read."""
        w, n = self.w, self.w.integer_at(self.n)
        require_finite(w, matrix, self.n**2)
        w.run(
            "gees", w.letter_at("V"), w.letter_at("N"), "null", n, matrix, n, self.count, *self.values, self.vectors, n,
            *self.space,
        )  # fmt: skip
        w.require(w.succeeded())


def multiply(w: Lapack, how: str, sizes: Sequence[int], left: str, right: str, target: str) -> None:
    """A product of matrices in Fortran's order, of which letters say whether they are conjugated and transposed."""
    rows, columns, depth = sizes
    leading = [rows if how[0] == "N" else depth, depth if how[1] == "N" else columns, rows]
    a, b, c = (w.integer_at(size) for size in leading)
    one, zero = w.number_at(1, w.dtype), w.number_at(0, w.dtype)
    shape = [w.integer_at(size) for size in sizes]
    letters = [w.letter_at(letter) for letter in how]
    w.run("gemm", *letters, *shape, one, left, a, right, b, zero, target, c, informs=False)


def write_sylvester(operation: Operation, name: str, target: Target) -> Step | None:
    """nan where the matrices have eigenvalues in common, as LAPACK says."""
    w = Lapack(operation, target, wide=False)
    if not w.fits:
        return None
    right, total = operation.operands[1].type, operation.operands[2].type
    m, n = w.rows, right.static_shape[-1]
    if not m or not n:
        return w.step(name, operation)
    a, b, q, between = w.space(m * m), w.space(n * n), w.space(m * n), w.space(m * n)
    first, second = Schur(w, n), Schur(w, m)
    scale = w.space(1, w.real)
    parts = 2 if w.dtype.kind == "c" else 1

    def body(example: Number) -> None:
        w.copy(a, w.matrix("%in0", w.given, example), m * m * w.size)
        w.copy(b, w.matrix("%in1", right, example), n * n * w.size)
        w.copy(q, w.matrix("%in2", total, example), m * n * w.size)
        first.run(b)
        second.run(a)
        multiply(w, "CN", (n, m, n), first.vectors, q, between)
        multiply(w, "NN", (n, m, m), between, second.vectors, q)
        rows, columns, no = w.integer_at(n), w.integer_at(m), w.letter_at("N")
        w.run("trsyl", no, no, w.integer_at(1), rows, columns, b, rows, a, columns, q, rows, scale)
        w.fill_if_failed(q, m * n)
        known = w.load(scale, w.real)

        def divide(k: Number) -> None:
            place = w.at(q, 0, (k, w.real.itemsize))
            w.store(w.div(w.load(place, w.real), known), place)

        w.loop(m * n * parts, divide)
        multiply(w, "NN", (n, m, n), first.vectors, q, between)
        multiply(w, "NC", (n, m, m), between, second.vectors, w.result(example))

    w.each(body)
    return w.step(name, operation)


class Triangles:
    """Functions of matrices by those of triangles: ``form``, and ``found`` when it is known.

    Of real numbers, if the writer computes with such, what has eigenvalues that are complex or negative is left.
    """

    def __init__(self, w: Matrices) -> None:
        self.w, self.n = w, w.n
        self.form, self.found, self.between = (w.space(w.n**2) for _ in range(3))
        self.schur = Schur(w, w.n)
        own = w.own
        self.part, self.parts = (real_dtype(own), 2) if own.kind == "c" else (own, 1)

    def take(self, example: Number) -> None:
        w, own, part = self.w, self.w.own, self.part
        source = w.matrix("%in0", w.given, example)

        def element(k: Number) -> None:
            start = w.at(source, 0, (k, own.itemsize))
            found = [converted(w, w.load(w.at(start, part.itemsize * j), part), F64) for j in range(self.parts)]
            w.store_parts([*found, w.number(0.0)][: w.parts], w.at(self.form, 0, (k, w.size)))

        w.loop(self.n**2, element)
        self.schur.run(self.form)
        if w.parts == 1:
            w.loop(self.n, lambda k: self.require_regular(k))

    def require_regular(self, k: Number) -> None:
        real, imaginary = (self.w.load(self.w.at(place, 0, (k, 8)), F64) for place in self.schur.values)
        self.w.require(self.w.compare("oge", real, 0.0))
        self.w.require(self.w.compare("oeq", imaginary, 0.0))

    def turn_back(self, target: str) -> None:
        sizes, vectors = (self.n, self.n, self.n), self.schur.vectors
        multiply(self.w, "NN", sizes, vectors, self.found, self.between)
        multiply(self.w, "NC", sizes, self.between, vectors, target)

    def give(self, example: Number, source: str, rounding: float) -> None:
        """The result; of a real matrix, imaginary parts that are no roundings are left to NumPy."""
        w, part = self.w, self.part
        if self.parts < w.parts:
            self.require_real(source, rounding)

        def element(k: Number) -> None:
            place = w.at(w.result(example), 0, (k, w.own.itemsize))
            for j, x in enumerate(w.load_parts(w.at(source, 0, (k, w.size)))[: self.parts]):
                w.store(converted(w, x, part), w.at(place, part.itemsize * j))

        w.loop(self.n**2, element)

    def require_real(self, source: str, rounding: float) -> None:
        w = self.w

        def compare(k: Number, carried: list[Number]) -> list[Number]:
            sizes = [w.intrinsic("fabs", x) for x in w.load_parts(w.at(source, 0, (k, 16)))]
            return [FUNCTIONS["maximum"](w, before, size) for before, size in zip(carried, sizes, strict=True)]

        real, imaginary = w.fold(self.n**2, [w.number(0.0)] * 2, compare)
        w.require(w.compare("ole", imaginary, w.mul(w.add(real, rounding), IMAGINARY)))

    def entry(self, place: str, i: Number, j: Number) -> str:
        return self.w.at(place, 0, (i, self.w.size), (j, self.n * self.w.size))

    # --- square roots ------------------------------------------------------------------------------
    def square_root(self, source: str, target: str) -> None:
        """Column by column: the root R of a triangle T has R[i, j] (R[i, i] + R[j, j]) + (the rest) = T[i, j]."""
        w = self.w
        w.clear(target, w.nbytes)

        def column(j: Number) -> None:
            last = self.root_of(w.load_parts(self.entry(source, j, j)))
            w.store_parts(last, self.entry(target, j, j))

            def row(k: Number) -> None:
                i = w.integer("sub", w.integer("sub", j, k), 1)

                def less(middle: Number, carried: list[Number]) -> list[Number]:
                    left, right = self.entry(target, i, middle), self.entry(target, middle, j)
                    product = w.times(w.load_parts(left), w.load_parts(right))
                    return [w.sub(x, y) for x, y in zip(carried, product, strict=True)]

                rest = w.fold(j, w.load_parts(self.entry(source, i, j)), less, w.integer("add", i, 1))
                first = w.load_parts(self.entry(target, i, i))
                divisor = [w.add(x, y) for x, y in zip(first, last, strict=True)]
                w.store_parts(self.quotient(rest, divisor), self.entry(target, i, j))

            w.loop(j, row)

        w.loop(self.n, column)

    def root_of(self, x: list[Number]) -> list[Number]:
        """The principal one."""
        w = self.w
        if len(x) == 1:
            return [w.intrinsic("sqrt", x[0])]
        size = FUNCTIONS["hypot"](w, *x)
        above = w.intrinsic("sqrt", w.mul(w.add(size, w.intrinsic("fabs", x[0])), 0.5))
        zero = w.compare("oeq", above, 0.0)
        other = w.select(zero, 0.0, w.div(w.mul(x[1], 0.5), above))
        positive = w.compare("oge", x[0], 0.0)
        real = w.select(positive, above, w.intrinsic("fabs", other))
        return [real, w.select(positive, other, w.intrinsic("copysign", above, x[1]))]

    def quotient(self, a: list[Number], b: list[Number]) -> list[Number]:
        """0 over anything is 0; another number over 0, or what is out of bounds when squared, is left to NumPy."""
        w = self.w
        opposite = [b[0], *[w.neg(part) for part in b[1:]]]
        square = w.times(b, opposite)[0]
        known = w.binary("and", w.compare("ogt", square, 2.0**-900), w.compare("olt", square, 2.0**900))
        zeros = [w.compare("oeq", part, 0.0) for part in a]
        nothing = zeros[0] if len(zeros) == 1 else w.binary("and", *zeros)
        w.require(w.binary("or", known, nothing))
        found = [w.div(part, square) for part in w.times(a, opposite)]
        return [w.select(nothing, 0.0, part) for part in found]

    # --- logarithms --------------------------------------------------------------------------------
    def logarithm(self, ones: str, sums: str) -> None:
        """Roots until the matrix is near 1, then a sum of fractions by Gauss's nodes, doubled as often (Higham 2008).

        The logarithms of the eigenvalues are known.
        """
        w, n = self.w, self.n
        roots, other, near = (w.space(n * n) for _ in range(3))
        count = w.variable("i64")
        w.copy(roots, self.form, w.nbytes)
        w.store(w.index(0), count)
        head, go_on, after = (w.label(stem) for stem in ("head", "root", "near"))
        w.jump(head)
        w.start(head)
        w.copy(near, roots, w.nbytes)
        self.each_diagonal(near, lambda x, k: [w.sub(x[0], 1.0), *x[1:]])
        w.branch(w.compare("ole", w.column_sums(sums, near, ones), NEAR), after, go_on)
        w.start(go_on)
        taken = w.load(count, INT64)
        w.require(w.compare("slt", taken, MOST_ROOTS))
        w.store(w.integer("add", taken, 1), count)
        self.square_root(roots, other)
        w.copy(roots, other, w.nbytes)
        w.jump(head)
        w.start(after)
        self.sum_of_fractions(near, other, roots)
        power = w.from_bits(w.integer("shl", w.integer("add", w.load(count, INT64), 1023), 52))
        w.scale(self.found, power)
        self.each_diagonal(self.found, lambda x, k: self.log_of(w.load_parts(self.entry(self.form, k, k))))

    def each_diagonal(self, place: str, formula: Callable[[list[Number], Number], list[Number]]) -> None:
        w = self.w

        def element(k: Number) -> None:
            here = self.entry(place, k, k)
            w.store_parts(formula(w.load_parts(here), k), here)

        w.loop(self.n, element)

    def sum_of_fractions(self, near: str, divisor: str, term: str) -> None:
        """The sum of w E / (1 + x E) over nodes x and weights w is log(1 + E)."""
        w, size = self.w, self.w.integer_at(self.n)
        nodes, weights = np.polynomial.legendre.leggauss(FRACTIONS)
        places = w.numbers_at("gauss_nodes", list(nodes / 2 + 0.5)), w.numbers_at("gauss_weights", list(weights / 2))
        letters, one = [w.letter_at(letter) for letter in "LUNN"], w.number_at(1, w.dtype)
        w.clear(self.found, w.nbytes)
        at_once = self.n if self.n > MOST_ROWS else MOST_ALONE

        def solve_some(start: int | Number, count: int) -> None:
            """Columns, as many as wake no threads."""
            first = w.index(start) if isinstance(start, int) else start
            place = w.at(term, 0, (first, self.n * w.size))
            w.run("trsm", *letters, size, w.integer_at(count), one, divisor, size, place, size, informs=False)

        def add(k: Number) -> None:
            for place, target in zip(places, (divisor, term), strict=True):
                factor = w.load(w.at(place, 0, (k, 8)), F64)
                w.combine(target, [near], lambda x, factor=factor: w.mul(x, w.splat(factor, x.lanes)))
            self.each_diagonal(divisor, lambda x, k: [w.add(x[0], 1.0), *x[1:]])
            whole = self.n // at_once * at_once
            w.loop(whole, lambda j: solve_some(j, at_once), 0, at_once)
            if self.n > whole:
                solve_some(whole, self.n - whole)
            w.combine(self.found, [self.found, term], w.add)

        w.loop(FRACTIONS, add)

    def log_of(self, x: list[Number]) -> list[Number]:
        w = self.w
        size = x[0] if len(x) == 1 else FUNCTIONS["hypot"](w, *x)
        w.require(w.compare("ogt", size, 0.0))
        return [FUNCTIONS["log"](w, size), *[FUNCTIONS["arctan2"](w, part, x[0]) for part in x[1:]]]


def write_square_root(operation: Operation, name: str, target: Target) -> Step | None:
    if operation.attrs["kind"] != "sqrt":
        return None
    w = Matrices(operation, target)
    if not w.fits:
        return None

    def write(triangles: Triangles) -> None:
        def body(example: Number) -> None:
            triangles.take(example)
            triangles.square_root(triangles.form, triangles.found)
            triangles.turn_back(triangles.form)
            triangles.give(example, triangles.form, 0.0)

        w.each(body)

    return in_both_fields(w, name, write)


def in_both_fields(w: Matrices, name: str, write: Callable[[Triangles], None]) -> Step:
    """The step of real matrices by real numbers where that is enough, else of complex ones."""
    if w.own.kind == "f":
        w.prepare(w.rows, F64)
        w.attempt(lambda: write(Triangles(w)))
    w.prepare(w.rows, C128)
    write(Triangles(w))
    return w.step(name, w.operation)


def write_logarithm(operation: Operation, name: str, target: Target) -> Step | None:
    """And powers, which are exponentials of logarithms, of matrices near 1 in size: that of the size is exact."""
    kind, exponent = operation.attrs["kind"], float(operation.attrs["exponent"])
    if kind not in ("log", "power"):
        return None
    w = Value(operation, target, C128)
    if not w.fits:
        return None

    def write(triangles: Triangles) -> None:
        def body(example: Number) -> None:
            triangles.take(example)
            scale = w.power_of_two(w.exponent_of(w.norm(triangles.form)))
            if kind == "power":
                w.scale(triangles.form, w.div(1.0, scale))
            triangles.logarithm(w.ones, w.sums)
            triangles.turn_back(w.matrix_place)
            if kind == "log":
                triangles.give(example, w.matrix_place, 1.0)
                return
            w.scale(w.matrix_place, w.number(exponent))
            w.exponentiate()
            w.scale(w.found, FUNCTIONS["pow"](w, scale, w.number(exponent)))
            triangles.give(example, w.found, 0.0)

        w.each(body)

    return in_both_fields(w, name, write)


WRITERS: Final[Mapping[str, StepWriter]] = {
    "matrix_function": lambda *given: write_square_root(*given) or write_logarithm(*given),
    "sylvester": write_sylvester,
}
