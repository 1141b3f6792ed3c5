"""What the machine, or a comparison, does at once: roundings, signs, the larger and the smaller."""

from __future__ import annotations

from collections.abc import Callable

from srcgrad.backends.llvm.emitter import Emitter, Number


def of_intrinsic(name: str) -> Callable[[Emitter, Number], Number]:
    """An LLVM intrinsic of one operand; where the machine has none it is the C library's function."""
    return lambda e, x: e.intrinsic(name, x)


def copysign(e: Emitter, x: Number, sign: Number) -> Number:
    return e.intrinsic("copysign", x, sign)


def maximum(e: Emitter, x: Number, y: Number) -> Number:
    """The larger; nan if one is; the second of equal ones, zeros of different sign too, as NumPy's vectors have it."""
    return _first_if(e, "ogt", x, y)


def minimum(e: Emitter, x: Number, y: Number) -> Number:
    """The smaller; nan if one is; the second of equal ones."""
    return _first_if(e, "olt", x, y)


def _first_if(e: Emitter, predicate: str, x: Number, y: Number) -> Number:
    chosen = e.select(e.compare(predicate, x, y), x, y)
    return e.select(e.compare("uno", x, x), x, chosen)


def sign(e: Emitter, x: Number) -> Number:
    """-1, 0 or 1; nan stays."""
    unit = e.select(e.compare("ogt", x, 0.0), 1.0, e.select(e.compare("olt", x, 0.0), -1.0, e.like(0.0, x)))
    return e.select(e.compare("uno", x, x), x, unit)


def square(e: Emitter, x: Number) -> Number:
    return e.mul(x, x)


def reciprocal(e: Emitter, x: Number) -> Number:
    return e.div(1.0, x)


def one_minus_square(e: Emitter, x: Number) -> Number:
    """(1 - x)(1 + x), accurate near 1."""
    return e.mul(e.sub(1.0, x), e.add(x, 1.0))
