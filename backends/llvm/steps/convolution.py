"""Convolution: the result gains one row of the longer operand for each element of the shorter one."""

from __future__ import annotations

import math
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


def convolve(operation: Operation, name: str, target: Target) -> Step | None:
    """Element o of the window is the sum over j of long[start + o - j] short[j]."""
    w = Body(operation, name, target)
    dtype = w.results[0].dtype
    if not scalars.is_register(real_dtype(dtype)) or dtype == F16:
        return None
    walk = _Window(w)
    w.zero("%out0", w.results[0].size * dtype.itemsize)
    if w.results[0].size:
        w.each(walk.examples, lambda a: w.nest(walk.short, lambda j: walk.gain(a, j, [])))
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

    def bounds(self, axis: int, j: Number) -> tuple[Number, Number]:
        """Where in the window an element of the shorter operand meets the longer one."""
        w, e = self.w, self.w.e
        first = w.plus(j, -self.starts[axis])
        last = w.plus(first, self.long[axis])
        low = e.select(e.compare("sgt", first, 0), first, w.i64(0))
        return low, e.select(e.compare("slt", last, self.window[axis]), last, w.i64(self.window[axis]))

    def gain(self, a: Number, j: list[Number], outer: list[Number]) -> None:
        """Add what element ``j`` of the shorter operand gives, in the rows of the window from ``outer`` on."""
        w, axis = self.w, len(outer)
        low, high = self.bounds(axis, j[axis])
        if axis < self.rank - 1:
            w.each(high, lambda o: self.gain(a, j, [*outer, o]), low)
            return
        short = w.flat((a, math.prod(self.short)), *zip(j, strides_of(self.short), strict=True))
        factor = w.read_parts(self.which[1], short)
        here = w.flat((a, math.prod(self.window)), *zip(outer, strides_of(self.window), strict=False))
        there = w.times(a, math.prod(self.long))
        for k, step in enumerate(strides_of(self.long)):
            shift = w.plus(self.starts[k], w.times(j[k], -1))
            place = w.plus(shift, outer[k]) if k < axis else shift
            there = w.plus(there, w.times(place, step))

        def add(o: Number, lanes: int) -> None:
            place, source = w.plus(here, o), w.plus(there, o)
            if self.dtype.kind == "c":
                self.add_complex(place, source, factor)
                return
            value = w.e.splat(factor[0], lanes)
            before, more = w.load("%out0", place, self.dtype, lanes), w.read(self.which[0], source, lanes)
            w.write(place, scalars.TABLE["add"](w.e, before, scalars.TABLE["mul"](w.e, more, value)))

        w.strip(high, self.lanes, add, low)

    def add_complex(self, place: Number, source: Number, factor: list[Number]) -> None:
        w, e, part = self.w, self.w.e, real_dtype(self.dtype)
        (a, b), (c, d) = w.read_parts(self.which[0], source), factor
        before = [w.load("%out0", w.plus(w.times(place, 2), k), part) for k in range(2)]
        real, imaginary = e.sub(e.mul(a, c), e.mul(b, d)), e.add(e.mul(a, d), e.mul(b, c))
        w.write_parts(place, [e.add(before[0], real), e.add(before[1], imaginary)])


WRITERS: Final[dict[str, StepWriter]] = {"convolve": convolve}
