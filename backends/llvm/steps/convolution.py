"""Convolution: the result gains one row of the longer operand for each element of the shorter one.

A window of a few vectors is in registers meanwhile, as the derivative in a filter is, which two long rows give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.indices import strides_of
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import real_dtype

TAPS: Final = 8
"""How many elements of the shorter operand meet the row that is in registers, at most."""
HELD: Final = 8
"""The vectors of a window up to which it is held in registers; of fewer, several elements meet copies of it at once."""


def convolve(operation: Operation, name: str, target: Target) -> Step | None:
    """Element o of the window is the sum over j of long[start + o - j] short[j]."""
    w = Body(operation, name, target)
    dtype = w.results[0].dtype
    if not scalars.is_register(real_dtype(dtype)) or dtype == F16:
        return None
    walk = _Window(w)
    w.zero("%out0", w.results[0].size * dtype.itemsize)
    if w.results[0].size and walk.is_held():
        w.each(walk.examples, walk.hold)
    elif w.results[0].size:
        w.each(walk.examples, lambda a: w.nest(walk.short[:-1], lambda j: walk.gain(a, j, [])))
    return w.finish()


class _Window:
    """The last axes of both operands and of the result; ``which`` are the longer and the shorter operand."""

    def __init__(self, w: Body) -> None:
        self.w = w
        starts = w.operation.attrs["starts"]
        self.starts, self.rank = starts, len(starts)
        shapes = [type.static_shape[type.rank - self.rank :] for type in w.types]
        self.which = (1, 0) if math.prod(shapes[1]) > math.prod(shapes[0]) else (0, 1)
        self.long, self.short = (shapes[k] for k in self.which)
        self.window = w.results[0].static_shape[w.results[0].rank - self.rank :]
        self.examples = math.prod(w.types[0].static_shape[: w.types[0].rank - self.rank])
        self.dtype = w.results[0].dtype
        self.lanes = 1 if self.dtype.kind == "c" else w.lanes_of(self.dtype)

    def meeting(self) -> tuple[int, int]:
        """Between which elements of the shorter operand each meets the longer one in all of the window."""
        (start,), (count,) = self.starts, self.window
        return max(0, start + count - self.long[0]), min(self.short[0], start + 1)

    def is_held(self) -> bool:
        """Whether the window is a few vectors of numbers, and much shorter than what gives it."""
        if self.rank != 1 or self.dtype.kind != "f" or not self.lanes <= self.window[0] <= HELD * self.lanes:
            return False
        low, high = self.meeting()
        return high - low >= 2 * self.window[0]

    def hold(self, a: Number) -> None:
        """The window of an example: what all of it meets, in registers, and then what some of it does."""
        w, (start,), (count,) = self.w, self.starts, self.window
        low, high = self.meeting()
        here, short = w.flat((a, count)), w.flat((a, self.short[0]))
        row = _Row(self, here, w.plus(w.times(a, self.long[0]), start), short)
        row.gain_all(low, high, count)
        w.each(low, row.gain, max(0, start - self.long[0] + 1))
        w.each(min(self.short[0], start + count), row.gain, high)

    def bounds(self, axis: int, j: Number) -> tuple[Number, Number]:
        """Where in the window an element of the shorter operand meets the longer one."""
        w, e = self.w, self.w.e
        first = w.plus(j, -self.starts[axis])
        last = w.plus(first, self.long[axis])
        low = e.select(e.compare("sgt", first, 0), first, w.i64(0))
        return low, e.select(e.compare("slt", last, self.window[axis]), last, w.i64(self.window[axis]))

    def gain(self, a: Number, j: list[Number], outer: list[Number]) -> None:
        """Add what a row ``j`` of the shorter operand gives, in the rows of the window from ``outer`` on."""
        w, axis = self.w, len(outer)
        if axis < self.rank - 1:
            low, high = self.bounds(axis, j[axis])
            w.each(high, lambda o: self.gain(a, j, [*outer, o]), low)
            return
        here = w.flat((a, math.prod(self.window)), *zip(outer, strides_of(self.window), strict=False))
        short = w.flat((a, math.prod(self.short)), *zip(j, strides_of(self.short), strict=False))
        there = w.times(a, math.prod(self.long))
        strides = strides_of(self.long)
        for start, stride, place, index in zip(self.starts, strides, outer, j, strict=False):
            there = w.plus(there, w.times(w.plus(w.plus(place, start), w.times(index, -1)), stride))
        row = _Row(self, here, w.plus(there, self.starts[-1]), short)
        count = self.short[-1]
        whole = 0 if self.dtype.kind == "c" else count - count % TAPS
        w.each(whole, lambda first: row.gain_several(first, TAPS), step=TAPS)
        if self.dtype.kind == "c":
            w.each(count, row.gain)
        elif count > whole:
            row.gain_several(w.i64(whole), count - whole)

    def add_complex(self, place: Number, source: Number, factor: list[Number]) -> None:
        w, e, part = self.w, self.w.e, real_dtype(self.dtype)
        (a, b), (c, d) = w.read_parts(self.which[0], source), factor
        before = [w.load("%out0", w.plus(w.times(place, 2), k), part) for k in range(2)]
        real, imaginary = e.sub(e.mul(a, c), e.mul(b, d)), e.add(e.mul(a, d), e.mul(b, c))
        w.write_parts(place, [e.add(before[0], real), e.add(before[1], imaginary)])


class _Row:
    """A row of the window from ``here`` on, of the longer operand from ``there``, and of the shorter from ``short``."""

    def __init__(self, window: _Window, here: Number, there: Number, short: Number) -> None:
        self.window, self.w = window, window.w
        self.here, self.there, self.short = here, there, short

    def factor(self, j: Number) -> list[Number]:
        return self.w.read_parts(self.window.which[1], self.w.plus(self.short, j))

    def gain(self, j: Number) -> None:
        """Add what one element gives."""
        low, high = self.window.bounds(-1, j)
        self.add([j], low, high)

    def gain_all(self, low: int, high: int, count: int) -> None:
        """Add what the elements from ``low`` to ``high`` give to a window of which each of them meets all.

        The last vector begins before the end of the one before, where they are no whole ones: it is the same there.
        """
        w, window, lanes = self.w, self.window, self.window.lanes
        offsets = [*range(0, count - lanes, lanes), count - lanes]
        copies = HELD // len(offsets)

        def gain(first: Number, carried: list[Number], steps: int) -> list[Number]:
            found = list(carried)
            for step in range(steps):
                j = w.plus(first, step)
                factor, source = w.e.splat(self.factor(j)[0], lanes), w.plus(self.there, w.times(j, -1))
                for k, offset in enumerate(offsets, step * len(offsets)):
                    more = w.read(window.which[0], w.plus(source, offset), lanes)
                    found[k] = w.e.fma(more, factor, found[k])
            return found

        w.e.lanes = lanes
        totals = [w.e.constant(0.0, window.dtype, lanes) for _ in range(copies * len(offsets))]
        whole = high - (high - low) % copies
        totals = w.loop(whole, lambda j, carried: gain(j, carried, copies), totals, low, copies)
        totals = w.loop(high, lambda j, carried: gain(j, carried, 1), totals, whole)
        for k, offset in enumerate(offsets):
            total = totals[k]
            for other in totals[k + len(offsets) :: len(offsets)]:
                total = w.e.add(total, other)
            w.write(w.plus(self.here, offset), total)
        w.e.lanes = 1

    def gain_several(self, first: Number, taps: int) -> None:
        """Add what elements from ``first`` on give: where all of them do, in one pass; then where only some do."""
        w, e = self.w, self.w.e
        several = [w.plus(first, k) for k in range(taps)]
        begin, _ = self.window.bounds(-1, several[-1])
        _, end = self.window.bounds(-1, first)
        end = e.select(e.compare("slt", end, begin), begin, end)

        def edges(k: Number) -> None:
            low, high = self.window.bounds(-1, w.plus(first, k))
            self.add([w.plus(first, k)], low, e.select(e.compare("slt", high, begin), high, begin))
            self.add([w.plus(first, k)], end, high)

        w.each(taps, edges)
        self.add(several, begin, end)

    def add(self, elements: Sequence[Number], low: Number, high: Number) -> None:
        """Add what elements give to the row from ``low`` to ``high``, one after another."""
        w, dtype = self.w, self.window.dtype
        factors = [self.factor(j) for j in elements]
        sources = [w.plus(self.there, w.times(j, -1)) for j in elements]

        def gain(o: Number, lanes: int) -> None:
            place = w.plus(self.here, o)
            if dtype.kind == "c":
                self.window.add_complex(place, w.plus(sources[0], o), factors[0])
                return
            total = w.load("%out0", place, dtype, lanes)
            for factor, source in zip(factors, sources, strict=True):
                more = w.read(self.window.which[0], w.plus(source, o), lanes)
                more = scalars.TABLE["mul"](w.e, more, w.e.splat(factor[0], lanes))
                total = scalars.TABLE["add"](w.e, total, more)
            w.write(place, total)

        w.strip(high, self.window.lanes, gain, low)


WRITERS: Final[dict[str, StepWriter]] = {"convolve": convolve}
