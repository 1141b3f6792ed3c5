"""Determinants as steps: the diagonal of the factor U of each matrix, and the rows that were exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, F64, Number
from srcgrad.backends.llvm.steps import Step, StepWriter, small_systems, stacked_systems
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import converted
from srcgrad.backends.llvm.steps.systems import magnitude
from srcgrad.backends.llvm.steps.writer import INT32, INT64
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Operation

Parts = list[Number]
"""The real part of a number, and the imaginary one of a complex number."""


def sign_of_exchanges(w: Lapack, pivots: str) -> Number:
    """1.0 or -1.0, by the number of rows that the factorisation of a matrix exchanged."""

    def exchange(k: Number, carried: list[Number]) -> list[Number]:
        pivot = w.load(w.at(pivots, 0, (k, 4)), INT32)
        stays = w.compare("eq", w.convert("sext", pivot, INT64), w.integer("add", k, 1))
        return [w.select(stays, carried[0], w.neg(carried[0]))]

    return w.fold(w.rows, [w.constant(1.0, F64, 1)], exchange)[0]


class Determinant(Lapack):
    """Factors of each matrix, and what is computed along the diagonal."""

    def __init__(self, operation: Operation, target: Target) -> None:
        super().__init__(operation, target)
        self.matrix_place = self.pivots = ""

    def factored(self, example: Number) -> Number:
        """Factor a matrix: 1.0 or -1.0, by the number of rows exchanged."""
        n, size = self.rows, self.integer_at(self.rows)
        self.matrix_place = self.matrix_place or self.space(n**2)
        self.pivots = self.pivots or self.space(n, INT32)
        self.take(self.matrix_place, self.matrix("%in0", self.given, example), n, n)
        if n:
            self.run("getrf", size, size, self.matrix_place, size, self.pivots)
        return sign_of_exchanges(self, self.pivots)

    def diagonal(self, k: Number) -> Parts:
        place = self.at(self.matrix_place, 0, (k, (self.rows + 1) * self.size))
        return [self.load(self.at(place, part * 8), F64) for part in range(2 if self.dtype.kind == "c" else 1)]

    def times(self, a: Parts, b: Parts) -> Parts:
        if len(a) == 1:
            return [self.mul(a[0], b[0])]
        real = self.sub(self.mul(a[0], b[0]), self.mul(a[1], b[1]))
        return [real, self.add(self.mul(a[0], b[1]), self.mul(a[1], b[0]))]

    def start_parts(self, sign: Number) -> Parts:
        return [sign] if self.dtype.kind != "c" else [sign, self.constant(0.0, F64, 1)]

    def put(self, parts: Parts, pointer: str) -> None:
        own = np.dtype(np.float32) if self.own.name in ("float32", "complex64") else F64
        for k, part in enumerate(parts):
            self.store(converted(self, part, own), self.at(pointer, k * own.itemsize))

    def scaled(self, parts: Parts) -> tuple[Parts, Number]:
        """A number times a power of two, so that its larger part is in [2, 4) if it is a normal number, and the power.

        A number that is subnormal is made normal first.
        """
        sizes = [magnitude(self, part) for part in parts]
        largest = sizes[0] if len(sizes) == 1 else self.select(self.compare("ogt", *sizes), *sizes)
        small = self.compare("olt", largest, float(np.finfo(np.float64).tiny))
        lift = self.select(small, self.constant(2.0**54, F64, 1), 1.0)
        largest = self.mul(largest, lift)
        field = self.integer("lshr", self.bits(largest), 52)
        known = self.binary("and", self.compare("ne", field, 0), self.compare("ne", field, 2047))
        exponent = self.select(known, self.integer("sub", field, 1024), 0)
        scale = self.power_of_two(self.integer("sub", self.index(0), exponent))
        lifted = self.select(small, self.index(-54), 0)
        found = [self.mul(self.mul(part, lift), scale) for part in parts]
        return found, self.integer("add", exponent, lifted)

    def power_of_two(self, exponent: Number) -> Number:
        """2 to a power from -1022 to 1023."""
        return self.from_bits(self.integer("shl", self.integer("add", exponent, 1023), 52))


def write_det(operation: Operation, name: str, target: Target) -> Step | None:
    w = Determinant(operation, target)
    if not w.fits:
        return None
    if small_systems.is_small(w, small_systems.MOST_ROWS):
        w.attempt(lambda: small_systems.write_determinant(w))
    elif stacked_systems.is_stacked(w):
        w.attempt(lambda: stacked_systems.write_determinant(w))
    return write_det_of(w, name)


def write_det_of(w: Determinant, name: str) -> Step:
    """The product of the diagonal, with a power of two apart, so that no partial product overflows."""

    def multiply(k: Number, carried: list[Number]) -> list[Number]:
        *parts, total = carried
        factor, power = w.scaled(w.diagonal(k))
        found, more = w.scaled(w.times(parts, factor))
        return [*found, w.integer("add", w.integer("add", total, power), more)]

    def body(example: Number) -> None:
        sign = w.start_parts(w.factored(example))
        succeeded = w.succeeded() if w.rows else w.constant(True, BOOL, 1)
        *parts, power = w.fold(w.rows, [*sign, w.index(0)], multiply)
        for _ in range(3):
            step = clamped(w, power)
            parts = [w.mul(part, w.power_of_two(step)) for part in parts]
            power = w.integer("sub", power, step)
        w.put([w.select(succeeded, part, 0.0) for part in parts], w.result(example))

    w.each(body)
    return w.step(name, w.operation)


def clamped(w: Lapack, power: Number) -> Number:
    low = w.select(w.compare("slt", power, -1000), w.index(-1000), power)
    return w.select(w.compare("sgt", low, 1000), w.index(1000), low)


def write_slogdet(operation: Operation, name: str, target: Target) -> Step | None:
    w = Determinant(operation, target)
    if not w.fits:
        return None
    if small_systems.is_small(w, small_systems.MOST_ROWS):
        w.attempt(lambda: small_systems.write_determinant(w))
    elif stacked_systems.is_stacked(w):
        w.attempt(lambda: stacked_systems.write_determinant(w))
    return write_slogdet_of(w, name)


def write_slogdet_of(w: Determinant, name: str) -> Step:
    """The signs multiplied and the logarithms added, in order; of a singular matrix 0 and -inf."""

    def accumulate(k: Number, carried: list[Number]) -> list[Number]:
        *sign, total = carried
        parts = w.diagonal(k)
        if len(parts) == 1:
            size = magnitude(w, parts[0])
            turned = [w.select(w.compare("olt", parts[0], 0.0), w.neg(sign[0]), sign[0])]
        else:
            size = FUNCTIONS["hypot"](w, *parts)
            turned = w.times(sign, [w.div(part, size) for part in parts])
        return [*turned, w.add(total, FUNCTIONS["log"](w, size))]

    def body(example: Number) -> None:
        start = w.start_parts(w.factored(example))
        succeeded = w.succeeded() if w.rows else w.constant(True, BOOL, 1)
        *sign, total = w.fold(w.rows, [*start, w.constant(0.0, F64, 1)], accumulate)
        w.put([w.select(succeeded, part, 0.0) for part in sign], w.result(example))
        w.put([w.select(succeeded, total, float("-inf"))], w.result(example, 1))

    w.each(body)
    return w.step(name, w.operation)


WRITERS: Final[Mapping[str, StepWriter]] = {
    "det": write_det,
    "slogdet": write_slogdet,
}
