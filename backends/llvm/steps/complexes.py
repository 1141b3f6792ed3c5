"""The parts of complex numbers, and casts from and to them; what else they can, their ufuncs do (``ufuncs.py``)."""

from __future__ import annotations

from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F64, Number
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body, split
from srcgrad.backends.llvm.target import Target
from srcgrad.ir.core import Operation
from srcgrad.ir.types import BOOL, DType, real_dtype


def _has_parts(*dtypes: DType) -> bool:
    """Whether the numbers, or their parts, are registers'."""
    return all(scalars.is_register(real_dtype(dtype)) for dtype in dtypes)


def part(operation: Operation, name: str, target: Target) -> Step | None:
    """``real`` and ``imag``."""
    w = Body(operation, name, target)
    if not _has_parts(w.types[0].dtype):
        return None
    which = int(operation.op.name == "imag")
    w.each(w.results[0].size, lambda k: w.write(k, w.read_parts(0, k)[which]))
    return w.finish()


def joined(operation: Operation, name: str, target: Target) -> Step | None:
    """``complex``: the parts as they are."""
    w = Body(operation, name, target)
    dtype = real_dtype(w.results[0].dtype)
    if not _has_parts(w.types[0].dtype, dtype):
        return None

    def element(k: Number) -> None:
        w.write_parts(k, [scalars.cast(w.e, w.read(operand, k), dtype) for operand in range(2)])

    w.each(w.results[0].size, element)
    return w.finish()


def conjugate(operation: Operation, name: str, target: Target) -> Step | None:
    w = Body(operation, name, target)
    if not _has_parts(w.types[0].dtype):
        return None

    def element(k: Number) -> None:
        real, imaginary = w.read_parts(0, k)
        w.write_parts(k, [real, w.e.neg(imaginary)])

    w.each(w.results[0].size, element)
    return w.finish(in_place=0)


def cast(operation: Operation, name: str, target: Target) -> Step | None:
    """From and to complex numbers: a real one has the imaginary part 0; only 0 is false."""
    w = Body(operation, name, target)
    source, dtype = w.types[0].dtype, w.results[0].dtype
    if "c" not in (source.kind, dtype.kind) or not _has_parts(source, dtype):
        return None
    wanted = real_dtype(dtype)
    if F16 in (source, wanted) and F64 in (source, wanted):
        return None

    def element(k: Number) -> None:
        e, parts = w.e, w.read_parts(0, k)
        if dtype == BOOL:
            real, imaginary = (e.compare("une", x, 0.0) for x in parts)
            w.write(k, e.binary("or", real, imaginary))
            return
        found = [scalars.cast(e, x, wanted) for x in parts]
        w.write_parts(k, found if len(found) == 2 else [*found, e.constant(0, wanted)])

    w.each(w.results[0].size, element)
    return w.finish(in_place=0 if source == dtype else None)


def one_minus_square(operation: Operation, name: str, target: Target) -> Step | None:
    """(1 - z)(1 + z)."""
    w = Body(operation, name, target)
    if w.types[0].dtype.kind != "c" or not _has_parts(w.types[0].dtype):
        return None

    def element(k: Number) -> None:
        e, (a, b) = w.e, w.read_parts(0, k)
        with e.strict():
            less, more = e.sub(1.0, a), e.add(a, 1.0)
            w.write_parts(k, [e.add(e.mul(less, more), e.mul(b, b)), e.sub(e.mul(less, b), e.mul(b, more))])

    w.each(w.results[0].size, element)
    return w.finish(in_place=0)


def ramp(operation: Operation, name: str, target: Target) -> Step | None:
    """Complex numbers that count along an axis."""
    w = Body(operation, name, target)
    dtype = w.results[0].dtype
    part = real_dtype(dtype)
    if dtype.kind != "c" or not _has_parts(dtype):
        return None

    def element(indices: list[Number]) -> None:
        a, k, b = indices
        place = w.plus(w.flat((a, size * inner), (k, inner)), b)
        w.write_parts(place, [scalars.cast(w.e, k, part), w.e.constant(0, part)])

    outer, (size,), inner = split(w.results[0].static_shape, operation.attrs["axis"])
    w.nest((outer, size, inner), element)
    return w.finish()


WRITERS: Final[dict[str, StepWriter]] = {
    "real": part,
    "imag": part,
    "complex": joined,
    "conj": conjugate,
    "cast": cast,
    "one_minus_square": one_minus_square,
    "iota": ramp,
}
