"""The derivative of the exponential of matrices as a step: each product beside its derivative, and the same divisor.

A. H. Al-Mohy and N. J. Higham, Computing the Fréchet derivative of the matrix exponential (2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.exponentials import MOST, Exponential, Value
from srcgrad.backends.llvm.steps.matrices import copy_rows
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Operation

LIMITS: Final = (1.08e-2, 2.00e-1, 7.83e-1, 1.78)
"""Norms up to which the orders but the last are exact."""
LARGEST: Final = 4.74
"""The norm to which the others are scaled."""


class Derivative(Exponential):
    """The derivative of the exponential of each matrix in a direction; ``changes`` are those of the powers."""

    def __init__(self, operation: Operation, target: Target) -> None:
        super().__init__(operation, target)
        self.direction, self.changes = self.place(), self.place(4)
        self.even_change, self.odd_change, self.wanted = self.place(), self.place(), self.place()
        self.change_sum, self.other = self.place(), self.place()

    def write(self, example: Number) -> None:
        for k, place in enumerate((self.matrix_place, self.direction)):
            copy_rows(self, place, self.matrix(f"%in{k}", self.given, example), self.n**2, self.dtype, self.own)
        size = self.norm(self.matrix_place)
        self.when(self.compare("olt", size, float("inf")), lambda: self.finite_matrix(size), self.no_result)
        copy_rows(self, self.result(example), self.wanted, self.n**2, self.own, self.dtype)

    def no_result(self) -> None:
        nan = self.number(float("nan"))
        self.loop(self.numbers, lambda j: self.store(nan, self.at(self.wanted, 0, (j, 8))))

    def finite_matrix(self, size: Number) -> None:
        """The direction is scaled to a size near 1, so that nothing overflows but a result."""
        self.require(self.compare("olt", size, MOST))
        exponent = self.exponent_of(self.norm(self.direction))
        self.scale(self.direction, self.power_of_two(self.negated(exponent)))
        self.write_derivative(size)
        self.scale(self.wanted, self.power_of_two(exponent))

    def write_derivative(self, size: Number) -> None:
        order = self.order_of(size, LIMITS)
        high = self.compare("eq", order, 4)
        self.store(self.index(0), self.squarings)
        self.when(high, lambda: self.scale_both(size))
        count = self.powers_of(order)
        self.write_powers(count)
        self.fraction(order)
        for kind, place in enumerate((self.even_change, self.odd_change)):
            self.polynomial_of_matrix(place, self.changes, self.coefficients_of(order, kind, constant=False), count)
        self.when(high, self.add_high_parts)
        self.change_of_product(self.wanted, self.matrix_place, self.odd, self.direction, self.odd_change)
        self.multiply(self.found, self.matrix_place, self.odd)
        self.quotient()
        self.loop(self.load_squarings(), lambda k: self.square())

    def change_of_product(self, target: str, left: str, right: str, change_left: str, change_right: str) -> None:
        self.multiply(target, left, change_right)
        self.multiply(self.other, change_left, right)
        self.combine(target, [target, self.other], self.add)

    def scale_both(self, size: Number) -> None:
        count = self.how_many(FUNCTIONS["log2"](self, self.mul(size, 1 / LARGEST)))
        self.store(count, self.squarings)
        for place in (self.matrix_place, self.direction):
            self.scale(place, self.power_of_two(self.negated(count)))

    def write_powers(self, count: Number) -> None:
        self.first_power()
        self.change_of_product(self.changes, self.matrix_place, self.matrix_place, self.direction, self.direction)
        self.more_powers(count)

        def body(k: Number) -> None:
            power, change = (self.at(start, 0, (k, self.nbytes)) for start in (self.powers, self.changes))
            before = [self.at(place, -self.nbytes) for place in (power, change)]
            self.change_of_product(change, before[0], self.powers, before[1], self.changes)

        self.loop(count, body, self.index(1))

    def add_high_parts(self) -> None:
        sixth, change = self.power(2), self.at(self.changes, 2 * self.nbytes)
        for kind, place, changed in ((0, self.even, self.even_change), (1, self.odd, self.odd_change)):
            self.high_part(kind, place, self.spare_sum)
            self.polynomial_of_matrix(self.change_sum, self.changes, self.highest(kind), 3)
            self.change_of_product(self.spare, sixth, self.spare_sum, change, self.change_sum)
            self.combine(changed, [changed, self.spare], self.add)

    def quotient(self) -> None:
        """From R Q = P the derivative is (P' - R Q') / Q, with even terms plus and less odd ones for P and Q."""
        self.copy(self.odd, self.found, self.nbytes)
        self.factorise(self.even, self.odd)
        self.copy(self.found, self.even, self.nbytes)
        self.divide(self.found, self.odd)
        self.combine(self.spare_sum, [self.wanted, self.even_change], self.sub)
        self.multiply(self.other, self.found, self.spare_sum)
        self.combine(self.wanted, [self.wanted, self.even_change], self.add)
        self.combine(self.wanted, [self.wanted, self.other], self.add)
        self.divide(self.wanted, self.odd)

    def square(self) -> None:
        self.change_of_product(self.change_sum, self.found, self.found, self.wanted, self.wanted)
        self.copy(self.wanted, self.change_sum, self.nbytes)
        self.multiply(self.spare, self.found, self.found)
        self.copy(self.found, self.spare, self.nbytes)


def write_matrix_function(operation: Operation, name: str, target: Target) -> Step | None:
    w = Value(operation, target) if operation.attrs["kind"] == "exp" else None
    if w is None or not w.fits:
        return None
    w.each(w.write)
    return w.step(name, operation)


def write_matrix_function_derivative(operation: Operation, name: str, target: Target) -> Step | None:
    """Those of other functions are written as functions of blocks before, but for empty matrices."""
    known = operation.attrs["kind"] == "exp" or not operation.results[0].type.size
    w = Derivative(operation, target) if known else None
    if w is None or not w.fits:
        return None
    w.each(w.write)
    return w.step(name, operation)


WRITERS: Final[Mapping[str, StepWriter]] = {
    "matrix_function": write_matrix_function,
    "matrix_function_derivative": write_matrix_function_derivative,
}
