"""Fourier transforms of columns or rows side by side in lanes, of a power of two of points.

NumPy transforms one column after the other, each number of it in a cache line of its own. Here a block of neighbouring
columns is taken from its rows at once, real and imaginary parts apart, and transformed in scratch memory that is in the
cache: decimation in frequency, four points at a time (Cooley and Tukey 1965; Gentleman and Sande 1966). What it leaves
is in the order of reversed bits, from which rows are written back. Rows are columns of squares that are transposed in
registers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import DType, Number, constant_text, scalar_name
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.ir.types import INT64, real_dtype

LEAST: Final = 64
"""The numbers from which on it pays to write that."""
POINTS: Final = (8, 1024)
"""The fewest and the most of a transform: the text of its table of roots of unity is as long as it."""
LEAST_LANES: Final = 4
Numbers = np.ndarray[Any, Any]
Complex = tuple[Number, Number]
"""The real and the imaginary parts of numbers in lanes."""


def at_once(w: Body, dtype: DType, size: int, count: int) -> int:
    """How many of ``count`` columns or rows of so many points are transformed side by side; 0 if they are not.

    What is left, as the last column of `np.fft.rfft2`, is NumPy's.
    """
    if size & (size - 1) or not POINTS[0] <= size <= POINTS[1] or w.results[0].size < LEAST:
        return 0
    lanes = w.lanes_of(real_dtype(dtype))
    while lanes >= LEAST_LANES and (count < lanes or size % lanes):
        lanes //= 2
    return lanes if lanes >= LEAST_LANES else 0


class Transforms:
    """Transforms of one size, as ``lanes`` side by side, from an address to another or the same one."""

    def __init__(self, w: Body, dtype: DType, size: int, lanes: int, inverse: bool) -> None:
        self.w, self.dtype, self.size, self.lanes, self.inverse = w, dtype, size, lanes, inverse
        self.part = real_dtype(dtype)
        self.scratch = w.take_scratch(2 * size * lanes * self.part.itemsize)
        self.roots = self.table("i" if inverse else "f", self.part, roots_of_unity(size, inverse))
        self.order = self.table("o", INT64, reversed_bits(size))

    def table(self, kind: str, dtype: DType, numbers: Numbers) -> str:
        """The name of a constant of the module."""
        element = scalar_name(dtype)
        name = f"@srcgrad_fourier_{kind}{self.size}_{element}"
        texts = ", ".join(f"{element} {constant_text(number, dtype)}" for number in numbers)
        self.w.e.definitions[name] = f"{name} = internal constant [{len(numbers)} x {element}] [{texts}], align 64"
        return name

    def columns(self, source: str, target: str, inner: int, count: int, scale: float) -> None:
        """The first ``count`` columns of a matrix of ``size`` rows of ``inner`` numbers, times a number."""
        w = self.w

        def block(first: Number) -> None:
            w.each(self.size, lambda k: self.put(k, self.taken(source, w.plus(w.times(k, inner), first))))
            self.transform()
            w.each(self.size, lambda k: self.give(target, w.plus(w.times(k, inner), first), self.result(k, scale)))

        w.each(count, block, step=self.lanes)

    def rows(self, source: str, target: str, count: int, scale: float) -> None:
        """The rows of a matrix of ``count`` rows of ``size`` numbers, times a number: squares of them are turned."""
        w, lanes, size = self.w, self.lanes, self.size

        def square(block: Number, k: Number) -> list[Number]:
            """Where the rows of a square begin."""
            return [w.plus(w.times(w.plus(block, row), size), k) for row in range(lanes)]

        def take(block: Number, k: Number) -> None:
            for j, value in enumerate(self.turned_over([self.taken(source, place) for place in square(block, k)])):
                self.put(w.plus(k, j), value)

        def give(block: Number, k: Number) -> None:
            values = self.turned_over([self.result(w.plus(k, j), scale) for j in range(lanes)])
            for place, value in zip(square(block, k), values, strict=True):
                self.give(target, place, value)

        def transform(block: Number) -> None:
            w.each(size, lambda k: take(block, k), step=lanes)
            self.transform()
            w.each(size, lambda k: give(block, k), step=lanes)

        w.each(count, transform, step=lanes)

    def transform(self) -> None:
        """What is in scratch memory, in place, but for the order: a function, which rows and columns share."""
        w = self.w
        name = f"@srcgrad_fourier_{'i' if self.inverse else 'f'}{self.size}_{self.lanes}x{scalar_name(self.part)}"
        if name not in w.e.definitions:
            self.w, scratch, self.scratch = Body(w.operation, name[1:], w.target), self.scratch, "%scratch"
            points = self.size
            while points > 1:
                ways = 4 if points >= 4 else 2
                self.stage(points, ways)
                points //= ways
            w.e.definitions.update(self.w.e.definitions)
            w.e.declarations.update(self.w.e.declarations)
            w.e.definitions[name] = self.w.helper("ptr %scratch")
            self.w, self.scratch = w, scratch
        w.e.do(f"call void {name}(ptr {self.scratch})")

    # --- memory -------------------------------------------------------------------------------------------------------
    def taken(self, source: str, place: Number) -> Complex:
        """Neighbouring numbers, parts apart."""
        both = self.w.load(source, self.w.times(place, 2), self.part, 2 * self.lanes)
        real, imaginary = (self.shuffled(both, both, [2 * k + part for k in range(self.lanes)]) for part in range(2))
        return real, imaginary

    def result(self, k: Number, scale: float) -> Complex:
        """A result, which is somewhere in scratch memory, times a number."""
        e, (real, imaginary) = self.w.e, self.get(self.w.load(self.order, k, INT64))
        return (real, imaginary) if scale == 1.0 else (e.mul(real, scale), e.mul(imaginary, scale))

    def give(self, target: str, place: Number, value: Complex) -> None:
        """Write neighbouring numbers."""
        both = self.shuffled(*value, [j + self.lanes * part for j in range(self.lanes) for part in range(2)])
        self.w.store(target, self.w.times(place, 2), both)

    def turned_over(self, rows: list[Complex]) -> list[Complex]:
        """A square transposed: halves, then quarters and so on change places across the diagonal."""
        parts = [[row[part] for row in rows] for part in range(2)]
        lanes = range(self.lanes)
        half = self.lanes // 2
        while half:
            upper = [k if not k & half else self.lanes + k - half for k in lanes]
            lower = [k + half if not k & half else self.lanes + k for k in lanes]
            for numbers in parts:
                for low in lanes:
                    if not low & half:
                        a, b = numbers[low], numbers[low + half]
                        numbers[low], numbers[low + half] = self.shuffled(a, b, upper), self.shuffled(a, b, lower)
            half //= 2
        return list(zip(*parts, strict=True))

    def shuffled(self, a: Number, b: Number, order: list[int]) -> Number:
        places = ", ".join(f"i32 {k}" for k in order)
        text = f"shufflevector {a.type} {a.text}, {b.type} {b.text}, <{len(order)} x i32> <{places}>"
        return Number(self.w.e.emit(text), self.part, len(order))

    def get(self, k: Number) -> Complex:
        first = self.w.times(k, 2 * self.lanes)
        real = self.w.load(self.scratch, first, self.part, self.lanes)
        return real, self.w.load(self.scratch, self.w.plus(first, self.lanes), self.part, self.lanes)

    def put(self, k: Number, value: Complex) -> None:
        first = self.w.times(k, 2 * self.lanes)
        self.w.store(self.scratch, first, value[0])
        self.w.store(self.scratch, self.w.plus(first, self.lanes), value[1])

    # --- arithmetic ---------------------------------------------------------------------------------------------------
    def stage(self, points: int, ways: int) -> None:
        """Of each run of so many points, ``ways`` transforms of fewer points in its place."""
        w, part = self.w, points // ways
        step = self.size // points

        def at(run: Number, j: Number) -> None:
            first = w.plus(w.times(run, points), j)
            places = [w.plus(first, k * part) for k in range(ways)]
            values = [self.get(place) for place in places]
            found = self.four(values) if ways == 4 else self.two(values)
            if part > 1:
                turn = w.times(j, step)
                # the order of reversed bits: of four, the second result stands third
                found = [value if k == 0 else self.turned(value, w.times(turn, k)) for k, value in enumerate(found)]
            for place, k in zip(places, (0, 2, 1, 3) if ways == 4 else (0, 1), strict=True):
                self.put(place, found[k])

        w.each(step, lambda run: w.each(part, lambda j: at(run, j)))

    def turned(self, value: Complex, power: Number) -> Complex:
        """Times a power of the root of unity."""
        w, e, (real, imaginary) = self.w, self.w.e, value
        first = w.times(power, 2)
        c = e.splat(w.load(self.roots, first, self.part), self.lanes)
        s = e.splat(w.load(self.roots, w.plus(first, 1), self.part), self.lanes)
        return (
            e.fma(real, c, e.neg(e.mul(imaginary, s))),
            e.fma(real, s, e.mul(imaginary, c)),
        )

    def two(self, values: list[Complex]) -> list[Complex]:
        return [self.sum(*values), self.difference(*values)]

    def four(self, values: list[Complex]) -> list[Complex]:
        a, b, c, d = values
        even, odd = self.sum(a, c), self.sum(b, d)
        left, (real, imaginary) = self.difference(a, c), self.difference(b, d)
        e = self.w.e
        right = (e.neg(imaginary), real) if self.inverse else (imaginary, e.neg(real))  # times i or -i
        return [self.sum(even, odd), self.sum(left, right), self.difference(even, odd), self.difference(left, right)]

    def sum(self, a: Complex, b: Complex) -> Complex:
        return self.w.e.add(a[0], b[0]), self.w.e.add(a[1], b[1])

    def difference(self, a: Complex, b: Complex) -> Complex:
        return self.w.e.sub(a[0], b[0]), self.w.e.sub(a[1], b[1])


def roots_of_unity(size: int, inverse: bool) -> Numbers:
    """cos and sin of the multiples of a turn divided by ``size``, backwards unless ``inverse``: made of those of
    eighths of a turn, so that what is mirrored is so to the last bit."""
    octant, within = np.divmod(8 * np.arange(size), size)
    angle = np.where(octant % 2 == 1, size - within, within) * (np.pi / 4 / size)
    c, s = np.cos(angle), np.sin(angle)
    cosine = np.choose(octant, [c, s, -s, -c, -c, -s, s, c])
    sine = np.choose(octant, [s, c, c, s, -s, -c, -c, -s])
    return np.stack([cosine, sine if inverse else -sine], 1).reshape(-1)


def reversed_bits(size: int) -> Numbers:
    """The numbers below a power of two in the order of their bits read backwards.

    >>> reversed_bits(8).tolist()
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    found = np.zeros(1, np.int64)
    while len(found) < size:
        found = np.concatenate([2 * found, 2 * found + 1])
    return found
