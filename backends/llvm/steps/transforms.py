"""Discrete Fourier transforms: calls of the loops by which NumPy transforms, which are generalised ufuncs."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from srcgrad.backends.llvm.emitter import Number
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, split
from srcgrad.backends.llvm.steps.fourier import Transforms, at_once
from srcgrad.backends.llvm.steps.ufuncs import UfuncCall, loop_for
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import real_dtype


def ufunc_named(name: str) -> np.ufunc | None:
    """A transform along one axis; None where this NumPy has it under another name."""
    found: Any = getattr(getattr(np.fft, "_pocketfft_umath", None), name, None)
    return found if isinstance(found, np.ufunc) and found.signature is not None else None


def factor(size: int, norm: str | None, inverse: bool) -> float:
    """What a transform of ``size`` points is multiplied by."""
    if norm == "ortho":
        return 1 / math.sqrt(size)
    return 1 / size if (norm == "forward") != inverse else 1.0


class _Transform:
    """Transforms along one axis after the other, the first one from the operand, the others in place."""

    def __init__(self, w: Body, ufunc: np.ufunc, inverse: bool, points: int | None = None) -> None:
        self.w, self.ufunc, self.inverse, self.points = w, ufunc, inverse, points
        self.dtype, self.result = w.types[0].dtype, w.results[0].dtype
        self.part = real_dtype(self.dtype)
        inputs = [self.dtype, self.part]
        found = loop_for(ufunc, inputs)
        self.call = None if found is None or found[1] != [self.result] else UfuncCall(w, ufunc, found[0], inputs)

    def along(self, axis: int, pointer: str) -> None:
        w = self.w
        shape, made = w.types[0].static_shape, w.results[0].static_shape
        outer, (size,), inner = split(shape, axis)
        count, scale = made[axis], w.take_scratch(self.part.itemsize)
        known = factor(self.points or size, w.operation.attrs["norm"], self.inverse)
        w.store(scale, 0, w.e.constant(known, self.part))
        read, write = self.dtype.itemsize, self.result.itemsize
        call = self.call
        assert call is not None
        total = outer if inner == 1 else inner
        lanes = 0 if self.points is not None else at_once(w, self.dtype, size, total)
        side_by_side = Transforms(w, self.dtype, size, lanes, self.inverse) if lanes else None
        whole = total - total % lanes if lanes else 0
        if inner == 1:
            if side_by_side is not None:
                side_by_side.rows(pointer, "%out0", whole, known)
            if whole < outer:
                places = w.address(pointer, whole * size, read), w.address("%out0", whole * count, write)
                steps = [size * read, 0, count * write, read, write]
                call([places[0], scale, places[1]], steps, outer - whole, size, count)
            return

        def columns(a: Number) -> None:
            first, target = w.times(a, size * inner), w.times(a, count * inner)
            if side_by_side is not None:
                places = w.address(pointer, first, read), w.address("%out0", target, write)
                side_by_side.columns(*places, inner, whole, known)
            if whole < inner:
                places = (
                    w.address(pointer, w.plus(first, whole), read),
                    w.address("%out0", w.plus(target, whole), write),
                )
                steps = [read, 0, write, inner * read, inner * write]
                call([places[0], scale, places[1]], steps, inner - whole, size, count)

        w.each(outer, columns)


def complex_transform(operation: Operation, name: str, target: Target) -> Step | None:
    """``fft`` and ``ifft``, along the last of their axes first."""
    w = Body(operation, name, target)
    ufunc = ufunc_named(operation.op.name)
    transform = None if ufunc is None else _Transform(w, ufunc, operation.op.name == "ifft")
    if transform is None or transform.call is None or 0 in w.unread:
        return None
    if w.results[0].size:
        for k, axis in enumerate(reversed(operation.attrs["axes"])):
            transform.along(axis, "%in0" if k == 0 else "%out0")
    return w.finish()


def real_transform(operation: Operation, name: str, target: Target) -> Step | None:
    """``rfft`` and ``irfft``."""
    w = Body(operation, name, target)
    axis, inverse = operation.attrs["axis"], operation.op.name == "irfft"
    points = operation.attrs["n"] if inverse else w.types[0].static_shape[axis]
    ufunc = ufunc_named("irfft" if inverse else "rfft_n_odd" if points % 2 else "rfft_n_even")
    transform = None if ufunc is None else _Transform(w, ufunc, inverse, points)
    if transform is None or transform.call is None or 0 in w.unread:
        return None
    if w.results[0].size:
        transform.along(axis, "%in0")
    return w.finish()


WRITERS: Final[dict[str, StepWriter]] = {
    "fft": complex_transform,
    "ifft": complex_transform,
    "rfft": real_transform,
    "irfft": real_transform,
}
