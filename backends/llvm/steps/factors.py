"""The factors of matrices, and what is computed from them, as steps: the ops of ``backends/llvm/factors.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps import Step, StepWriter, wide_systems
from srcgrad.backends.llvm.steps.determinants import Determinant, sign_of_exchanges, write_det_of, write_slogdet_of
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.matrices import copy_rows
from srcgrad.backends.llvm.steps.wide_systems import substitute_factors
from srcgrad.backends.llvm.steps.writer import LETTERS
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation

_FEW: Final = 16
"""The columns up to which each is solved for alone: for two of them getrs wakes threads, whatever their size."""


def write_factors(operation: Operation, name: str, target: Target) -> Step | None:
    w = Lapack(operation, target)
    if not w.fits:
        return None
    n, size = w.rows, w.integer_at(w.rows)

    def body(example: Number) -> None:
        packed = w.result(example)
        w.take(packed, w.matrix("%in0", w.given, example), n, n)
        w.information = w.result(example, 2)
        w.run("getrf", size, size, packed, size, w.result(example, 1))

    w.each(body)
    return w.step(name, operation)


class Factored(Lapack):
    """A step over a stack of matrices that are the first operand, and whose factors are the next three."""

    def known(self, example: Number) -> tuple[str, str]:
        """The packed factors of a matrix, and the rows exchanged; `succeeded` is of their factorisation."""
        packed, pivots, information = (
            self.matrix(f"%in{k}", self.operation.operands[k].type, example) for k in (1, 2, 3)
        )
        self.information = information
        return packed, pivots

    def solve(self, example: Number, solution: str, count: int) -> None:
        packed, pivots = self.known(example)
        size, trans = self.integer_at(self.rows), self.letter_at(self.operation.attrs["trans"])
        self.call(
            f"{LETTERS[self.dtype.name]}getrs", trans, size, self.integer_at(count), packed, size, pivots, solution,
            size, self.variable("i32"),
        )  # fmt: skip


def write_factored_solve(operation: Operation, name: str, target: Target) -> Step | None:
    w = Factored(operation, target)
    if not w.fits:
        return None
    right = operation.operands[4].type
    n, count = w.rows, right.static_shape[-1]
    sides = wide_systems.Sides(w, n, count) if wide_systems.is_wide(w, count, least=2) else None
    solution = w.space(n * count) if sides is None else ""
    alone = n <= wide_systems.MOST_ROWS and count <= _FEW

    def body(example: Number) -> None:
        if sides is not None:
            packed, pivots = w.known(example)
            w.require(w.succeeded())
            sides.take(w.matrix("%in4", right, example), w.result(example))
            substitute_factors(sides, packed, pivots, transposed=operation.attrs["trans"] != "N")
            sides.give(w.result(example))
            return
        w.take(solution, w.matrix("%in4", right, example), n, count)
        if alone:
            w.loop(count, lambda k: w.solve(example, w.at(solution, 0, (k, n * w.size)), 1))
        else:
            w.solve(example, solution, count)
        w.require(w.succeeded())
        w.give(w.result(example), solution, n, count, n)

    w.each(body)
    return w.step(name, operation)


def write_inverse(operation: Operation, name: str, target: Target, strict: bool, transposed: bool) -> Step | None:
    w = Factored(operation, target)
    if not w.fits:
        return None
    n = w.rows
    sides = wide_systems.Sides(w, n, n) if wide_systems.is_wide(w, n) else None
    inverse = w.space(n * n) if sides is None else ""

    def body(example: Number) -> None:
        result = w.result(example)
        if sides is not None:
            packed, pivots = w.known(example)
            if strict:
                w.require(w.succeeded())
            sides.take_units(result)
            substitute_factors(sides, packed, pivots, transposed != (operation.attrs["trans"] != "N"))
            sides.give(result)
            if not strict:
                w.fill_if_failed(result, n * n)
            return
        w.identity(inverse, n)
        w.solve(example, inverse, n)
        if strict:
            w.require(w.succeeded())
        else:
            w.fill_if_failed(inverse, n * n)
        if transposed:
            copy_rows(w, result, inverse, n * n, w.own, w.dtype)
        else:
            w.give(result, inverse, n, n, n)

    w.each(body)
    return w.step(name, operation)


class FactoredDeterminant(Factored, Determinant):
    def factored(self, example: Number) -> Number:
        self.matrix_place, self.pivots = self.known(example)
        return sign_of_exchanges(self, self.pivots)


def write_determinant(write: Callable[[Determinant, str], Step]) -> StepWriter:
    def writer(operation: Operation, name: str, target: Target) -> Step | None:
        w = FactoredDeterminant(operation, target)
        return write(w, name) if w.fits else None

    return writer


WRITERS: Final[Mapping[str, StepWriter]] = {
    "factors": write_factors,
    "factored_solve": write_factored_solve,
    "factored_inv": lambda operation, name, target: write_inverse(
        operation, name, target, strict=operation.attrs["strict"], transposed=False
    ),
    "factored_slogdet_gradient": lambda operation, name, target: write_inverse(
        operation, name, target, strict=True, transposed=True
    ),
    "factored_slogdet": write_determinant(write_slogdet_of),
    "factored_det": write_determinant(write_det_of),
}
