"""What the steps of linear algebra share: stacks of matrices, by columns as in Fortran, and calls of LAPACK.

Like NumPy, what is NumPy's is computed in float64 and complex128, and rounded. Matrices are transposed on the way in
and out; not where a routine takes a transposed or Hermitian matrix just as well. Where a routine reports an error, as
of a singular matrix, the status is 1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import F64, DType, Number
from srcgrad.backends.llvm.steps.matrices import copy_rows, copy_transposed, rows_of
from srcgrad.backends.llvm.steps.writer import INT32, LETTERS, MOST, Writer, routine
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import ArrayType, real_dtype

C128: Final = np.dtype(np.complex128)


def widened(dtype: DType) -> DType:
    """What NumPy computes in."""
    return C128 if dtype.kind == "c" else F64


class Lapack(Writer):
    """A step over a stack of matrices; ``given`` is the type of the first operand, ``rows`` by ``columns``."""

    def __init__(self, operation: Operation, target: Target, wide: bool = True) -> None:
        """``wide``: computed in float64 or complex128, whatever the operands are."""
        super().__init__(target)
        self.operation = operation
        self.given = operation.operands[0].type
        *stack, self.rows, self.columns = self.given.static_shape
        self.examples = prod(stack)
        self.own = self.given.dtype
        self.dtype = widened(self.own) if wide else self.own
        self.real = real_dtype(self.dtype)
        self.size = self.dtype.itemsize
        self.information = ""

    @property
    def fits(self) -> bool:
        """Whether all sizes are such that 32-bit integers count the elements."""
        values = (*self.operation.operands, *self.operation.results)
        return self.own.name in LETTERS and all(value.type.size <= MOST // 2 for value in values)

    def each(self, body: Callable[[Number], None]) -> None:
        """Run ``body`` for each matrix of the stack, if there is anything to write."""
        if any(value.type.size for value in self.operation.results):
            self.loop(self.examples, body)

    def matrix(self, pointer: str, type: ArrayType, example: Number) -> str:
        """A pointer to one example of an operand or a result, all of whose examples have as many elements."""
        return self.at(pointer, 0, (example, type.size // max(self.examples, 1) * type.dtype.itemsize))

    def result(self, example: Number, k: int = 0) -> str:
        return self.matrix(f"%out{k}", self.operation.results[k].type, example)

    def space(self, count: int, dtype: DType | None = None) -> str:
        """Scratch memory for so many numbers."""
        return self.reserve(max(count, 1) * (dtype or self.dtype).itemsize)

    # --- matrices by columns -----------------------------------------------------------------------
    def take(self, target: str, source: str, rows: int, columns: int, leading: int | None = None) -> None:
        """A matrix of an operand, by columns, of which each has room for ``leading`` elements."""
        leading = leading or rows
        if columns == 1 or rows == leading == 1:
            copy_rows(self, target, source, rows * columns, self.dtype, self.own)
            return
        place, start = rows_of(target, leading, self.dtype), rows_of(source, columns, self.own)
        copy_transposed(self, place.transposed, start, rows, columns, self.dtype, self.own)

    def give(self, target: str, source: str, rows: int, columns: int, leading: int, own: DType | None = None) -> None:
        """A matrix by columns, of which each has ``leading`` elements, to a result."""
        own = own or self.own
        if columns == 1 or rows == leading == 1:
            copy_rows(self, target, source, rows * columns, own, self.dtype)
            return
        place, start = rows_of(target, columns, own), rows_of(source, leading, self.dtype)
        copy_transposed(self, place.transposed, start, columns, rows, own, self.dtype)

    def identity(self, target: str, size: int) -> None:
        self.clear(target, size * size * self.size)
        one = self.constant(1.0, self.real, 1)
        self.loop(size, lambda k: self.store(one, self.at(target, 0, (k, (size + 1) * self.size))))

    def clear_triangle(self, target: str, rows: int, columns: int, dtype: DType, below: bool) -> None:
        """Zeros below or above the diagonal of a matrix in C order."""
        self.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = dtype.itemsize

        def body(row: Number) -> None:
            start = self.at(target, 0, (row, columns * size))
            if below:
                length = self.select(self.compare("slt", row, columns), row, columns)
            else:
                start = self.at(start, size, (row, size))
                length = self.integer("sub", self.index(columns - 1), row)
            length = self.integer("mul", length, size)
            self.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {length.text}, i1 false)")

        self.loop(rows if below else min(rows, columns), body)

    # --- routines ----------------------------------------------------------------------------------
    def run(self, stem: str, *pointers: str, informs: bool = True) -> None:
        """Call a routine for this dtype; it writes what went wrong to `info` after all else."""
        name = f"{LETTERS[self.dtype.name]}{stem}"
        if informs:
            self.information = self.information or self.variable("i32")
        self.call(name, *pointers, *([self.information] if informs else []))

    def succeeded(self) -> Number:
        return self.compare("eq", self.load(self.information, INT32), 0)

    def fill_if_failed(self, place: str, count: int) -> None:
        """Make all numbers nan, with imaginary parts of 0, where the routine that was called has failed."""
        failed, after = self.label("failed"), self.label("after")
        self.branch(self.succeeded(), after, failed)
        self.start(failed)
        if self.dtype.kind == "c":
            self.clear(place, count * self.size)
        nan = self.constant(float("nan"), self.real, 1)
        self.loop(count, lambda k: self.store(nan, self.at(place, 0, (k, self.size))))
        self.jump(after)
        self.start(after)

    def workspace(self, stem: str, *arguments: Any, kinds: str, least: Sequence[int] = ()) -> list[str]:
        """Pointers to workspaces, as large as the routine says when it is asked, and to their lengths.

        ``arguments``: letters, integers, and None for arrays, up to the workspaces. ``kinds``: for each of these ``w``
        for numbers, ``r`` for real numbers, ``i`` for integers, as capitals where the length is an argument; ``least``:
        for each of those whose length is none, how much it needs if the routine does not say.
        """
        lengths = query(f"{LETTERS[self.dtype.name]}{stem}", self.real, arguments, kinds, least)
        found = []
        for kind, length in zip(kinds, lengths, strict=True):
            dtype = {"w": self.dtype, "r": self.real, "i": INT32}[kind.lower()]
            found += [self.space(length, dtype), *([self.integer_at(length)] if kind.isupper() else [])]
        return found


def query(name: str, real: DType, arguments: Sequence[Any], kinds: str, least: Sequence[int]) -> list[int]:
    """The lengths of workspaces, for which a routine of LAPACK is asked by lengths of -1."""
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, str):
            values.append(ctypes.c_char(argument.encode()))
        else:
            values.append(ctypes.c_int(argument) if isinstance(argument, int) else (ctypes.c_double * 16)())
    answers = []
    for kind in kinds:
        answers.append((ctypes.c_double * 16)())
        values += [answers[-1], *([ctypes.c_int(-1)] if kind.isupper() else [])]
    values.append(ctypes.c_int(0))
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(values))(routine(name))
    call(*[ctypes.addressof(value) for value in values])
    found, rest = [], iter(least)
    for kind, answer in zip(kinds, answers, strict=True):
        number = int(np.frombuffer(bytes(answer), INT32 if kind in "iI" else real)[0])
        found.append(max(number, 1 if kind.isupper() else next(rest)))
    return found
