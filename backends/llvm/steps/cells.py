"""Numbers of every dtype as cells of registers: how products of matrices load, multiply, add and store them.

A cell is one or more registers with some lanes. Sums begin at 0, in the dtype that NumPy adds in: float16 is added in
float32; of booleans a sum is the disjunction. A complex sum is two, a b' and a b'' with a = a' + i a'': they are joined
when it is stored.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import BOOL, F32, DType, Number
from srcgrad.backends.llvm.steps.matrices import shuffled
from srcgrad.backends.llvm.steps.writer import Writer

HALF: Final = np.dtype(np.float16)
BYTE: Final = np.dtype(np.uint8)
Cell = list[Number]


class Cells:
    """Numbers that are one register each: floats and integers."""

    registers = 1

    def __init__(self, w: Writer, dtype: DType) -> None:
        self.w = w
        self.dtype = dtype
        self.size = dtype.itemsize
        self.sum_dtype = F32 if dtype == HALF else dtype
        self.dtype_in_memory = BYTE if dtype == BOOL else dtype

    def lanes(self, most: int) -> int:
        """The lanes of a full register, or the power of two below ``most``."""
        full = max(1, self.w.target.vector_bytes // self.sum_dtype.itemsize)
        return min(full, 1 << (max(most, 1).bit_length() - 1))

    def masks(self, count: int) -> bool:
        """Whether so many neighbours are one vector under a mask rather than two that overlap."""
        plain = self.dtype == self.sum_dtype and self.dtype.kind == "f" and self.registers == 1
        return plain and self.w.target.masked and self.lanes(count) < count < self.w.target.vector_bytes // self.size

    def load(self, pointer: str, lanes: int) -> Cell:
        """So many neighbours in memory, in the dtype of sums."""
        found = self.w.load(pointer, self.dtype, lanes)
        return [self.w.convert("fpext", found, F32) if self.dtype == HALF else found]

    def spread(self, pointer: str, lanes: int) -> Cell:
        """One number in all lanes, as the left factor of a product."""
        return [self.w.splat(part, lanes) for part in self.load(pointer, 1)]

    def zero(self, lanes: int) -> Cell:
        return [self.w.constant(0, self.sum_dtype, lanes)]

    def product(self, a: Cell, b: Cell) -> Cell:
        w, (x,), (y,) = self.w, a, b
        return [w.mul(x, y) if self.sum_dtype.kind == "f" else w.integer("mul", x, y)]

    def add_product(self, total: Cell, a: Cell, b: Cell) -> Cell:
        w, (x,), (y,), (sum,) = self.w, a, b, total
        if self.sum_dtype.kind == "f":
            return [w.fma(x, y, sum)]
        return [w.integer("add", sum, w.integer("mul", x, y))]

    def add(self, a: Cell, b: Cell) -> Cell:
        w, (x,), (y,) = self.w, a, b
        return [w.add(x, y) if self.sum_dtype.kind == "f" else w.integer("add", x, y)]

    def factor(self, value: Cell) -> Cell:
        """What was loaded, as the left factor of a product of neighbours with neighbours."""
        return value

    def parts_of_dot(self, sum: Cell) -> list[Number]:
        """Sums of such products, as vectors whose lanes are to be added: each gives a number, or a part of one."""
        return sum

    def store_parts(self, value: Number, pointer: str) -> None:
        """Store what these were added up to."""
        self.store([value], pointer)

    def store(self, total: Cell, pointer: str) -> None:
        (value,) = total
        self.w.store(self.w.convert("fptrunc", value, HALF) if self.dtype == HALF else value, pointer)


class Booleans(Cells):
    """Conjunctions and their disjunctions; every byte but 0 is true."""

    def load(self, pointer: str, lanes: int) -> Cell:
        return [self.w.compare("ne", self.w.load(pointer, BYTE, lanes), 0)]

    def product(self, a: Cell, b: Cell) -> Cell:
        return [self.w.binary("and", a[0], b[0])]

    def add_product(self, total: Cell, a: Cell, b: Cell) -> Cell:
        return self.add(total, self.product(a, b))

    def add(self, a: Cell, b: Cell) -> Cell:
        return [self.w.binary("or", a[0], b[0])]

    def store(self, total: Cell, pointer: str) -> None:
        self.w.store(self.w.convert("zext", total[0], BYTE), pointer)


class Complexes(Cells):
    """Complex numbers: real and imaginary parts in turn, so that a register has twice the lanes."""

    registers = 2

    def __init__(self, w: Writer, dtype: DType) -> None:
        super().__init__(w, dtype)
        self.part = np.dtype(f"f{dtype.itemsize // 2}")

    def load(self, pointer: str, lanes: int) -> Cell:
        return [self.w.load(pointer, self.part, 2 * lanes)]

    def spread(self, pointer: str, lanes: int) -> Cell:
        w = self.w
        parts = [w.load(w.at(pointer, k * self.part.itemsize), self.part) for k in range(2)]
        return [w.splat(part, 2 * lanes) for part in parts]

    def zero(self, lanes: int) -> Cell:
        return [self.w.constant(0, self.part, 2 * lanes) for _ in range(2)]

    def product(self, a: Cell, b: Cell) -> Cell:
        return [self.w.mul(part, b[0]) for part in a]

    def add_product(self, total: Cell, a: Cell, b: Cell) -> Cell:
        return [self.w.fma(part, b[0], sum) for part, sum in zip(a, total, strict=True)]

    def add(self, a: Cell, b: Cell) -> Cell:
        return [self.w.add(x, y) for x, y in zip(a, b, strict=True)]

    def factor(self, value: Cell) -> Cell:
        """Also with its parts exchanged: of the products, differences are real parts, and sums imaginary ones."""
        return [*value, shuffled(self.w, value[0], value[0], [k ^ 1 for k in range(value[0].lanes)])]

    def parts_of_dot(self, sum: Cell) -> list[Number]:
        w, (products, imaginary) = self.w, sum
        places = [k + (k % 2) * products.lanes for k in range(products.lanes)]
        return [shuffled(w, products, w.neg(products), places), imaginary]

    def store_parts(self, value: Number, pointer: str) -> None:
        self.w.store(value, pointer)

    def store(self, total: Cell, pointer: str) -> None:
        """The imaginary factor's products change places; those that become real parts change signs."""
        w, (real, imaginary) = self.w, total
        swapped = shuffled(w, imaginary, imaginary, [k ^ 1 for k in range(real.lanes)])
        difference, sum = w.sub(real, swapped), w.add(real, swapped)
        w.store(shuffled(w, difference, sum, [k + (k % 2) * real.lanes for k in range(real.lanes)]), pointer)


def cells(w: Writer, dtype: DType) -> Cells | None:
    """How to compute with a dtype; None where that is left to NumPy."""
    if dtype == BOOL:
        return Booleans(w, dtype)
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return Complexes(w, dtype)
    if dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize in (4, 8)):
        return Cells(w, dtype)
    return Cells(w, dtype) if dtype == HALF and w.target.half else None
