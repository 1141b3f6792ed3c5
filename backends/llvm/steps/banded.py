"""Systems of banded matrices as steps, by LAPACK's routines for tridiagonal, banded and definite ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.writer import INT32
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation


class Bands:
    """Room for the bands of one matrix, as the routine that suits them takes them, and the call of it."""

    def __init__(self, w: Lapack, count: int) -> None:
        self.w, self.count = w, count
        attrs, self.size = w.operation.attrs, w.columns
        self.below, self.above, self.definite = attrs["below"], attrs["above"], attrs["definite"]
        tridiagonal = self.below == self.above == 1 and self.size > 1
        if tridiagonal and not (self.definite and w.dtype.kind == "c"):
            self.write = self.definite_tridiagonal if self.definite else self.tridiagonal
            self.rows = [w.space(self.size) for _ in range(w.rows)]
        else:
            self.write = self.definite_banded if self.definite else self.banded
            self.leading = w.rows if self.definite else w.rows + self.below
            self.rows = [w.space(self.leading * self.size)]
            self.pivots = "" if self.definite else w.space(self.size, INT32)

    def take_row(self, start: str, row: int) -> None:
        """One band, without what lies outside the matrix."""
        w, size = self.w, self.w.size
        place = w.at(start, (row * self.size + (row == 0)) * size)
        w.copy(self.rows[row], place, (self.size - (row != 1)) * size)

    def tridiagonal(self, start: str, solution: str) -> None:
        for row in range(3):
            self.take_row(start, row)
        w, size = self.w, self.w.integer_at(self.size)
        w.run("gtsv", size, w.integer_at(self.count), *self.rows[::-1], solution, size)

    def definite_tridiagonal(self, start: str, solution: str) -> None:
        for row in range(2):
            self.take_row(start, row)
        w, size = self.w, self.w.integer_at(self.size)
        w.run("ptsv", size, w.integer_at(self.count), *self.rows[::-1], solution, size)

    def banded(self, start: str, solution: str) -> None:
        """Exchanged rows need as much room before the bands as there are below the diagonal."""
        w, size = self.w, self.w.integer_at(self.size)
        w.take(w.at(self.rows[0], self.below * w.size), start, w.rows, self.size, self.leading)
        shape = [w.integer_at(number) for number in (self.below, self.above, self.count)]
        w.run("gbsv", size, *shape, self.rows[0], w.integer_at(self.leading), self.pivots, solution, size)

    def definite_banded(self, start: str, solution: str) -> None:
        w, size = self.w, self.w.integer_at(self.size)
        w.take(self.rows[0], start, w.rows, self.size, self.leading)
        shape = [w.integer_at(number) for number in (self.above, self.count)]
        w.run("pbsv", w.letter_at("U"), size, *shape, self.rows[0], w.integer_at(self.leading), solution, size)


def write_banded_solve(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target, wide=False)
    if not w.fits:
        return None
    right = operation.operands[1].type
    n, count = right.static_shape[-2:]
    bands, solution = Bands(w, count), w.space(n * count)

    def body(example: Number) -> None:
        w.take(solution, w.matrix("%in1", right, example), n, count)
        bands.write(w.matrix("%in0", w.given, example), solution)
        if operation.attrs["strict"]:
            w.require(w.succeeded())
        else:
            w.fill_if_failed(solution, n * count)
        w.give(w.result(example), solution, n, count, n)

    w.each(body)
    return w.step(name, operation)


WRITERS: Final[Mapping[str, StepWriter]] = {"banded_solve": write_banded_solve}
