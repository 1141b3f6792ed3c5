"""Running sums, products, extremes and logarithms, in the order of the elements, as NumPy accumulates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import BOOL, F64, Emitter, Number
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, parts_of, rounded, split
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Operation
from srcgrad.ir.types import real_dtype

Combine = Callable[[Body, Sequence[Number], Sequence[Number]], list[Number]]
"""What has accumulated, and the next number: in parts where they are complex."""


def _elementwise(function: Callable[[Emitter, Number, Number], Number]) -> Combine:
    def combine(w: Body, before: Sequence[Number], more: Sequence[Number]) -> list[Number]:
        return [rounded(w.e, function, a, b) for a, b in zip(before, more, strict=True)]

    return combine


def _plus(e: Emitter, a: Number, b: Number) -> Number:
    return e.binary("or" if a.dtype == BOOL else "fadd" if a.dtype.kind == "f" else "add", a, b)


def _times(e: Emitter, a: Number, b: Number) -> Number:
    return e.binary("and" if a.dtype == BOOL else "fmul" if a.dtype.kind == "f" else "mul", a, b)


def product(w: Body, x: Sequence[Number], y: Sequence[Number]) -> list[Number]:
    """The product, of complex numbers by its definition."""
    e = w.e
    if len(x) == 1:
        return [rounded(e, _times, x[0], y[0])]
    (a, b), (c, d) = x, y
    with e.strict():
        return [e.sub(e.mul(a, c), e.mul(b, d)), e.add(e.mul(a, d), e.mul(b, c))]


_COMBINE: Final[dict[str, Combine]] = {
    "cumsum": _elementwise(_plus),
    "restarting_cumsum": _elementwise(_plus),
    "restarting_cummax": _elementwise(partial(scalars.extreme, larger=True)),
    "restarting_cummin": _elementwise(partial(scalars.extreme, larger=False)),
    "cumprod": product,
    "cummax": _elementwise(partial(scalars.extreme, larger=True)),
    "cummin": _elementwise(partial(scalars.extreme, larger=False)),
    "linear_recurrence": _elementwise(_plus),
    "cumlogsumexp": _elementwise(lambda e, a, b: FUNCTIONS["logaddexp"](e, a, b)),
}


def cumulative(operation: Operation, name: str, target: Target) -> Step | None:
    """Along the last axis in registers; along another one row by row, from the row before."""
    w = Body(operation, name, target)
    dtype = w.types[0].dtype
    part = real_dtype(dtype)
    if not scalars.is_register(part):
        return None
    scan = _Scan(w, _COMBINE[operation.op.name])
    if 0 in w.results[0].static_shape:
        return w.finish()
    if scan.inner == 1 or parts_of(dtype) == 2:
        w.nest((scan.outer, scan.inner), lambda place: scan.column(*place))
    else:
        w.each(scan.outer, scan.rows)
    return w.finish(in_place=0)


class _Scan:
    """An array as ``outer`` blocks of ``size`` rows of ``inner`` numbers, accumulated along the rows."""

    def __init__(self, w: Body, combine: Combine) -> None:
        self.w, self.combine = w, combine
        attrs = w.operation.attrs
        self.outer, (self.size,), self.inner = split(w.types[0].static_shape, attrs["axis"])
        self.reverse = attrs.get("reverse", False)
        self.marked = w.operation.op.name.startswith("restarting_")

    def place(self, a: Number, k: Number | int) -> Number:
        """Where the k-th row that is read begins."""
        row = self.w.plus(self.size - 1, self.w.times(k, -1)) if self.reverse else k
        return self.w.flat((a, self.size * self.inner), (row, self.inner))

    def joined(self, before: Sequence[Number], more: Sequence[Number], place: Number, lanes: int) -> list[Number]:
        """What has accumulated at ``place``: the number itself where a sum starts anew."""
        if len(self.w.types) == 1:
            return self.combine(self.w, before, more)
        # From the end a mark or factor belongs to the element before it.
        other = self.w.plus(place, self.inner) if self.reverse else place
        if not self.marked:
            return self.scaled(before, more, other, lanes)
        found, mark = self.combine(self.w, before, more), self.w.read(1, other, lanes)
        return [self.w.e.select(mark, a, b) for a, b in zip(more, found, strict=True)]

    def scaled(self, before: Sequence[Number], more: Sequence[Number], place: Number, lanes: int) -> list[Number]:
        """A number and the product of what has accumulated with the factor at a place."""
        w = self.w
        factor = [w.read(1, place, lanes)] if len(more) == 1 else w.read_parts(1, place)
        if len(more) == 1 and more[0].dtype != F16:  # one rounding, and half of the time that the next one waits for
            return [w.e.fma(before[0], factor[0], more[0])]
        return self.combine(w, product(w, before, factor), more)

    def column(self, a: Number, b: Number) -> None:
        w = self.w
        first = w.plus(self.place(a, 0), b)
        start = w.read_parts(0, first)
        w.write_parts(first, start)

        def follow(k: Number, carried: list[Number]) -> list[Number]:
            place = w.plus(self.place(a, k), b)
            found = self.joined(carried, w.read_parts(0, place), place, 1)
            w.write_parts(place, found)
            return found

        w.loop(self.size, follow, start, 1)

    def rows(self, a: Number) -> None:
        w = self.w
        dtype = w.types[0].dtype
        heavy = w.operation.op.name == "cumlogsumexp"  # computed in float64
        lanes = w.lanes_of(F64 if heavy else dtype)
        first = self.place(a, 0)
        w.strip(self.inner, lanes, lambda b, n: w.write(w.plus(first, b), w.read(0, w.plus(first, b), n)))

        def row(k: Number) -> None:
            here, before = self.place(a, k), self.place(a, w.plus(k, -1))

            def follow(b: Number, n: int) -> None:
                place = w.plus(here, b)
                known = w.load("%out0", w.plus(before, b), dtype, n)
                w.write(place, self.joined([known], [w.read(0, place, n)], place, n)[0])

            w.strip(self.inner, lanes, follow)

        w.each(self.size, row, 1)


WRITERS: Final[dict[str, StepWriter]] = dict.fromkeys(_COMBINE, cumulative)
