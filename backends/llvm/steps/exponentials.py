"""Exponentials of matrices as steps, and their derivatives: rational functions of scaled matrices, squared.

The exponential: A. H. Al-Mohy and N. J. Higham, A new scaling and squaring algorithm for the matrix exponential (2009),
whose scaling looks at norms of powers, so that nilpotent matrices, and those far from normal, are not scaled too much.
The derivative: by the same authors, Computing the Fréchet derivative of the matrix exponential (2009).
Matrices stay in C order: rational functions of transposed matrices are the transposed ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial, log2
from typing import Final

from srcgrad.backends.llvm.emitter import F64, DType, Number
from srcgrad.backends.llvm.steps.helper_functions import Matrices
from srcgrad.backends.llvm.steps.matrices import copy_rows
from srcgrad.backends.llvm.steps.wide_systems import MOST_ROWS, Sides, substitute_factors
from srcgrad.backends.llvm.steps.writer import INT32, INT64
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Operation

ORDERS: Final = (3, 5, 7, 9, 13)
LIMITS: Final = (1.495585217958292e-2, 2.539398330063230e-1, 9.504178996162932e-1, 2.097847961257068)
"""Norms up to which the orders but the last are exact for the exponential."""
LARGEST: Final = 4.25
"""The norm to which the others are scaled."""
SURE: Final = 5.25
"""A norm up to which the last order has no error by the powers of what is there without signs."""
MOST: Final = 2.0**100
"""Norms from which powers may overflow: left to NumPy, if finite."""
CHAIN: Final = 2 * ORDERS[-1] + 1


def coefficients(order: int) -> list[float]:
    """Those of the numerator, from the constant one up: whole numbers, the last of them 1."""
    return [float(comb(order, k) * factorial(2 * order - k) // factorial(order)) for k in range(order + 1)]


def log2_of_error(order: int) -> float:
    """Of the first term that the approximation leaves out, in units of a rounding."""
    return 53 + 2 * log2(factorial(order)) - log2(factorial(2 * order)) - log2(factorial(2 * order + 1))


class Exponential(Matrices):
    """Places of matrices, and what both the exponential and its derivative do.

    ``powers`` are those of the scaled matrix: the second, the fourth, the sixth, the eighth.
    """

    def __init__(self, operation: Operation, target: Target, dtype: DType | None = None) -> None:
        super().__init__(operation, target)
        self.prepare(self.rows, dtype)
        self.matrix_place, self.found, self.spare = self.place(), self.place(), self.place()
        self.even, self.odd, self.spare_sum = self.place(), self.place(), self.place()
        self.powers = self.place(4)
        self.pivots = self.space(self.n, INT32)
        self.ones, self.sums = self.space(self.n, F64), self.space(self.n, F64)
        self.loop(self.n, lambda k: self.store(self.number(1.0), self.at(self.ones, 0, (k, 8))))
        self.squarings = self.variable("i64")
        in_lanes = self.parts == 1 and 0 < self.n <= MOST_ROWS
        self.sides = Sides(self, self.n, self.n, apart=True) if in_lanes else None

    def load_squarings(self) -> Number:
        return self.load(self.squarings, INT64)

    def place(self, count: int = 1) -> str:
        return self.reserve(max(count * self.nbytes, 8))

    def power(self, k: int) -> str:
        return self.at(self.powers, k * self.nbytes)

    def table(self, kind: int, constant: bool = True) -> str:
        """For each order the even (``kind`` 0) or odd coefficients that belong to 1 and `powers`, five numbers.

        If not ``constant``, the first of them are 0.
        """
        rows = [coefficients(order)[kind : 8 if order == 13 else None : 2] for order in ORDERS]
        rows = [[row[0] * constant, *row[1:], *[0.0] * (5 - len(row))] for row in rows]
        return self.numbers_at(f"pade_{kind}_{int(constant)}", [x for row in rows for x in row])

    def coefficients_of(self, order: Number, kind: int, constant: bool = True) -> str:
        return self.at(self.table(kind, constant), 0, (order, 40))

    def highest(self, kind: int) -> str:
        """The others of the last order, which belong to products of powers with the sixth one."""
        return self.numbers_at(f"pade_high_{kind}", [0.0, *coefficients(13)[8 + kind :: 2]])

    def whole(self, value: Number) -> Number:
        return self.convert("fptosi", value, INT64)

    def power_of_two(self, exponent: Number) -> Number:
        """2 to a power from -1022 to 1023."""
        return self.from_bits(self.integer("shl", self.integer("add", exponent, 1023), 52))

    def exponent_of(self, size: Number) -> Number:
        """The power of two below a number, at most 1000 from 0."""
        field = self.integer("sub", self.integer("lshr", self.bits(size), 52), 1023)
        low = self.select(self.compare("slt", field, -1000), self.index(-1000), field)
        return self.select(self.compare("sgt", low, 1000), self.index(1000), low)

    def negated(self, value: Number) -> Number:
        return self.integer("sub", self.index(0), value)

    def how_many(self, logarithm: Number) -> Number:
        """The whole number above, at least 0."""
        above = self.intrinsic("ceil", logarithm)
        return self.whole(self.select(self.compare("ogt", above, 0.0), above, 0.0))

    def order_of(self, size: Number, limits: tuple[float, ...]) -> Number:
        """The place in `ORDERS` of the first order that is exact for such a norm."""
        found = self.index(0)
        for limit in limits:
            found = self.integer("add", found, self.convert("zext", self.compare("ogt", size, limit), INT64))
        return found

    def powers_of(self, order: Number) -> Number:
        """How many powers an order takes."""
        return self.select(self.compare("eq", order, 4), self.index(3), self.integer("add", order, 1))

    def norm(self, place: str) -> Number:
        return self.column_sums(self.sums, place, self.ones)

    # --- the rational function ---------------------------------------------------------------------
    def first_power(self) -> None:
        self.multiply(self.powers, self.matrix_place, self.matrix_place)

    def more_powers(self, count: Number | int, first: int = 1) -> None:
        def body(k: Number) -> None:
            place = self.at(self.powers, 0, (k, self.nbytes))
            self.multiply(place, self.at(place, -self.nbytes), self.powers)

        self.loop(count, body, self.index(first))

    def fraction(self, order: Number) -> None:
        """The even terms, and the factor of the matrix in the odd ones."""
        count = self.powers_of(order)
        for kind, place in enumerate((self.even, self.odd)):
            self.polynomial_of_matrix(place, self.powers, self.coefficients_of(order, kind), count)

    def high_part(self, kind: int, place: str, sum: str) -> None:
        """Add the sixth power times ``sum``, which is the sum of the highest coefficients times powers."""
        self.polynomial_of_matrix(sum, self.powers, self.highest(kind), 3)
        self.multiply(self.spare, self.power(2), sum)
        self.combine(place, [place, self.spare], self.add)

    def factorise(self, even: str, odd: str) -> None:
        """``odd``: of even less odd terms the factors, to solve with; ``even``: their sum."""
        self.combine(self.spare, [even, odd], self.sub)
        self.combine(even, [even, odd], self.add)
        self.copy(odd, self.spare, self.nbytes)
        size = self.integer_at(self.n)
        self.run("getrf", size, size, odd, size, self.pivots)
        self.require(self.succeeded())

    def divide(self, place: str, factors: str) -> None:
        """The solution with what is in a place for right sides, in that place; getrs would wake threads."""
        if self.sides is not None:
            self.sides.take_columns(place)
            substitute_factors(self.sides, factors, self.pivots)
            self.sides.give_columns(place)
            return
        size, alone = self.integer_at(self.n), self.n <= MOST_ROWS
        count, columns = (self.n, self.integer_at(1)) if alone else (1, size)

        def column(k: Number) -> None:
            part = self.at(place, 0, (k, self.n * self.size))
            self.run("getrs", self.letter_at("N"), size, columns, factors, size, self.pivots, part, size)

        self.loop(count, column)


class Value(Exponential):
    """The exponential of each matrix."""

    def write(self, example: Number) -> None:
        copy_rows(self, self.matrix_place, self.matrix("%in0", self.given, example), self.n**2, self.dtype, self.own)
        self.exponentiate()
        copy_rows(self, self.result(example), self.found, self.n**2, self.own, self.dtype)

    def exponentiate(self) -> None:
        """In ``found`` the exponential of the matrix."""
        self.upper, self.lower = self.is_triangle(below=True), self.is_triangle(below=False)
        self.triangular = self.binary("or", self.upper, self.lower)
        self.beside = self.select(self.upper, self.index(1), self.n)
        size = self.norm(self.matrix_place)
        if self.parts == 2:
            self.require(self.compare("olt", size, MOST))
        is_diagonal = self.binary("and", self.upper, self.lower)
        self.when(is_diagonal, self.diagonal_matrix, lambda: self.other_matrix(size))

    def is_triangle(self, below: bool) -> Number:
        """Whether all is 0 below (or above) the diagonal."""

        def row(i: Number, carried: list[Number]) -> list[Number]:
            start, stop = (0, i) if below else (self.integer("add", i, 1), self.n)

            def element(j: Number, inner: list[Number]) -> list[Number]:
                place = self.at(self.matrix_place, 0, (i, self.n * self.size), (j, self.size))
                bits = [self.load(self.at(place, 8 * part), INT64) for part in range(self.parts)]
                for number in bits:
                    inner = [self.integer("or", inner[0], number)]
                return inner

            return self.fold(stop, carried, element, start)

        (bits,) = self.fold(self.n, [self.index(0)], row)
        return self.compare("eq", self.integer("shl", bits, 1), 0)

    def element(self, i: Number, beside: Number | None = None, factor: Number | None = None) -> list[Number]:
        """A number on the diagonal, or ``beside`` it, of the given matrix, and the parts of a complex one."""
        place = self.at(self.matrix_place, 0, (i, (self.n + 1) * self.size))
        if beside is not None:
            place = self.at(place, 0, (beside, self.size))
        found = self.load_parts(place)
        return found if factor is None else [self.mul(part, factor) for part in found]

    def put(self, parts: list[Number], i: Number, beside: Number | None = None) -> None:
        place = self.at(self.found, 0, (i, (self.n + 1) * self.size))
        if beside is not None:
            place = self.at(place, 0, (beside, self.size))
        self.store_parts(parts, place)

    def diagonal_matrix(self) -> None:
        self.clear(self.found, self.nbytes)
        self.loop(self.n, lambda i: self.put(self.exponential(self.element(i)), i))

    def other_matrix(self, size: Number) -> None:
        finite = self.compare("olt", size, float("inf"))
        self.when(finite, lambda: self.finite_matrix(size), lambda: self.fill(float("nan")))
        self.when(self.upper, lambda: self.clear_half(below=True))
        self.when(self.lower, lambda: self.clear_half(below=False))

    def fill(self, value: float) -> None:
        self.loop(self.numbers, lambda j: self.store(self.number(value), self.at(self.found, 0, (j, 8))))

    def clear_half(self, below: bool) -> None:
        self.clear_triangle(self.found, self.n, self.n, self.dtype, below)

    def finite_matrix(self, size: Number) -> None:
        self.require(self.compare("olt", size, MOST))
        self.store(self.index(0), self.squarings)
        order = self.variable("i64")
        first = self.order_of(size, LIMITS)
        self.store(first, order)
        self.first_power()
        self.more_powers(self.powers_of(first))
        self.when(self.compare("eq", first, 4), lambda: self.choose(size, order))
        chosen = self.load(order, INT64)
        self.fraction(chosen)
        self.when(self.compare("eq", chosen, 4), self.add_high_parts)
        self.multiply(self.found, self.matrix_place, self.odd)
        self.copy(self.odd, self.found, self.nbytes)
        self.factorise(self.even, self.odd)
        self.copy(self.found, self.even, self.nbytes)
        self.divide(self.found, self.odd)
        self.when(self.compare("sgt", self.load_squarings(), 0), self.square)

    def add_high_parts(self) -> None:
        self.high_part(0, self.even, self.spare_sum)
        self.high_part(1, self.odd, self.spare_sum)

    # --- order and scaling -------------------------------------------------------------------------
    def log2(self, x: Number) -> Number:
        return FUNCTIONS["log2"](self, x)

    def larger(self, a: Number, b: Number) -> Number:
        return self.select(self.compare("ogt", a, b), a, b)

    def root(self, place: str, order: int) -> Number:
        """The logarithm of the root of a norm."""
        return self.mul(self.log2(self.norm(place)), 1 / order)

    def choose(self, size: Number, order: str) -> None:
        """The order and the number of squarings where the norm of the matrix is too large for the lower ones.

        The second, fourth and sixth powers are there.
        """
        fourth, sixth = self.root(self.power(1), 4), self.root(self.power(2), 6)
        bound = self.larger(fourth, sixth)
        self.when(self.compare("olt", bound, log2(LIMITS[-1])), lambda: self.lower_order(size, bound, order))

        def scale() -> None:
            wanted = self.sub(bound, log2(LARGEST))
            self.store(self.how_many(wanted), self.squarings)
            self.when(self.compare("ogt", wanted, 3.0), lambda: self.look_further(sixth))
            count = self.load_squarings()
            left = self.mul(size, self.power_of_two(self.negated(count)))
            self.when(self.compare("ogt", left, SURE), lambda: self.scale_more(left, count))
            count = self.load_squarings()
            self.scale(self.matrix_place, self.power_of_two(self.negated(count)))
            for k in range(3):
                twice = self.integer("mul", count, -2 * (k + 1))
                self.scale(self.power(k), self.power_of_two(twice))

        self.when(self.compare("eq", self.load(order, INT64), 4), scale)

    def look_further(self, sixth: Number) -> None:
        """Where many squarings are wanted, the norms of the eighth and tenth powers may tell that fewer will do."""
        self.multiply(self.spare, self.power(1), self.power(1))
        self.multiply(self.found, self.power(1), self.power(2))
        eighth, tenth = self.root(self.spare, 8), self.root(self.found, 10)
        one, other = self.larger(sixth, eighth), self.larger(eighth, tenth)
        least = self.select(self.compare("olt", one, other), one, other)
        self.store(self.how_many(self.sub(least, log2(LARGEST))), self.squarings)

    def without_signs(self, count: int) -> tuple[str, Callable[[int], Number]]:
        """Logarithms of the norms of powers, up to ``count``, of the matrix of sizes: each is a row of sums."""
        logarithms, first, second = self.space(count + 1, F64), self.space(self.n, F64), self.space(self.n, F64)
        self.copy(first, self.ones, self.n * 8)

        def multiply(k: Number, carried: list[Number]) -> list[Number]:
            largest = self.column_sums(second, self.matrix_place, first)
            known = self.compare("ogt", largest, 0.0)
            inverse = self.select(known, self.div(1.0, largest), 0.0)

            def normalise(j: Number) -> None:
                value = self.load(self.at(second, 0, (j, 8)), F64)
                self.store(self.mul(value, inverse), self.at(first, 0, (j, 8)))

            self.loop(self.n, normalise)
            total = self.add(carried[0], self.log2(largest))
            self.store(total, self.at(logarithms, 8, (k, 8)))
            return [total]

        self.fold(count, [self.number(0.0)], multiply)
        return logarithms, lambda k: self.load(self.at(logarithms, 8 * k), F64)

    def excess(self, order: int, power: Number, size: Number) -> Number:
        """How many squarings make the error a rounding: at most 0 where it is one."""
        log_of_error = self.add(self.sub(power, self.log2(size)), log2_of_error(order))
        return self.mul(log_of_error, 1 / (2 * order))

    def lower_order(self, size: Number, bound: Number, order: str) -> None:
        """A lower order where norms of powers are so small, though the norm is not."""
        _, power = self.without_signs(2 * ORDERS[-2] + 1)
        self.more_powers(4, 3)
        for place, (lower, limit) in reversed(list(enumerate(zip(ORDERS, LIMITS, strict=False)))):
            exact = self.compare("ole", self.excess(lower, power(2 * lower + 1), size), 0.0)
            exact = self.binary("and", exact, self.compare("olt", bound, log2(limit)))
            self.store(self.select(exact, self.index(place), self.load(order, INT64)), order)

    def scale_more(self, left: Number, count: Number) -> None:
        _, power = self.without_signs(CHAIN)
        less = self.mul(self.convert("sitofp", count, F64), float(CHAIN))
        more = self.how_many(self.excess(ORDERS[-1], self.sub(power(CHAIN), less), left))
        self.store(self.integer("add", count, more), self.squarings)

    # --- squaring ----------------------------------------------------------------------------------
    def square(self) -> None:
        count = self.load_squarings()
        self.scale(self.matrix_place, self.power_of_two(count))

        def multiply() -> None:
            self.multiply(self.spare, self.found, self.found)
            self.copy(self.found, self.spare, self.nbytes)

        def body(k: Number) -> None:
            self.when(self.compare("sgt", k, 0), multiply)
            self.when(self.triangular, lambda: self.exact_diagonals(self.integer("sub", count, k)))

        self.loop(self.integer("add", count, 1), body)

    def exact_diagonals(self, left: Number) -> None:
        """Of triangular matrices, the diagonal and the one beside it are known (code fragment 2.1).

        ``left``: how many squarings are to come.
        """
        factor = self.power_of_two(self.negated(left))
        self.loop(self.n, lambda i: self.put(self.exponential(self.element(i, factor=factor)), i))

        def between(i: Number) -> None:
            following = self.integer("add", i, 1)
            quotient = self.divided_difference(self.element(i, factor=factor), self.element(following, factor=factor))
            self.put(self.times(self.element(i, self.beside, factor), quotient), i, self.beside)

        self.loop(self.n - 1, between)

    def exponential(self, x: list[Number]) -> list[Number]:
        """Of complex numbers those that surely do not overflow; NumPy has rules for the others."""
        size = FUNCTIONS["exp"](self, x[0])
        if self.parts == 1:
            return [size]
        self.require(self.compare("olt", x[0], 700.0))
        real = self.compare("oeq", x[1], 0.0)
        parts = [self.mul(size, FUNCTIONS[name](self, x[1])) for name in ("cos", "sin")]
        return [parts[0], self.select(real, x[1], parts[1])]

    def divided_difference(self, a: list[Number], b: list[Number]) -> list[Number]:
        """(exp(b) - exp(a)) / (b - a) without cancellation: exp(b) (exp(a - b) - 1) / (a - b) for the larger b."""
        first = self.compare("ogt", a[0], b[0])
        large = [self.select(first, x, y) for x, y in zip(a, b, strict=True)]
        small = [self.select(first, y, x) for x, y in zip(a, b, strict=True)]
        change = [self.sub(x, y) for x, y in zip(small, large, strict=True)]
        power = self.exponential(large)
        less = FUNCTIONS["expm1"](self, change[0])
        if self.parts == 1:
            equal = self.compare("oeq", change[0], 0.0)
            return [self.select(equal, power[0], self.mul(power[0], self.div(less, change[0])))]
        sine, cosine = (FUNCTIONS[name](self, change[1]) for name in ("sin", "cos"))
        half = FUNCTIONS["sin"](self, self.mul(change[1], 0.5))
        real = self.sub(self.mul(less, cosine), self.mul(self.mul(half, half), 2.0))
        imaginary = self.mul(self.add(less, 1.0), sine)
        square = self.add(self.mul(change[0], change[0]), self.mul(change[1], change[1]))
        tiny = self.compare("olt", square, 2.0**-120)
        opposite = [change[0], self.neg(change[1])]
        found = [self.div(part, square) for part in self.times([real, imaginary], opposite)]
        quotient = [self.select(tiny, 1.0, found[0]), self.select(tiny, 0.0, found[1])]
        return self.times(power, quotient)
