"""Remainders and whole quotients, as C's fmod and Python's divmod have them: exact, or rounded as NumPy rounds them.

The remainder of a division is exact in the format of its operands, and so is x - q y of a whole number q that is the
quotient or one more: quotients rounded to the nearest number are no less than a whole number that the exact one is no
less than. Quotients of 2**52 and more, nan and divisions by 0 are left to C's fmod.
"""

from __future__ import annotations

from typing import Final

from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import exact_product, magnitude, where_rare, with_sign

LARGEST_QUOTIENT: Final = 2.0**52
LARGEST_PRODUCT: Final = 2.0**1023
"""From here on a product with one more than the quotient may overflow, where there are no fused ones."""


def _fmod(e: Emitter, x: Number, y: Number) -> Number:
    """x - y trunc(x/y) of float64 numbers."""
    a, b = magnitude(e, x), magnitude(e, y)
    quotient = e.div(a, b)
    whole = e.intrinsic("trunc", quotient)
    rare = e.compare("uge", quotient, LARGEST_QUOTIENT)
    if "fma" in e.features:
        rest = e.fma(e.neg(whole), b, a)
    else:
        high, low = exact_product(e, whole, b)
        rest = e.sub(e.sub(a, high), low)
        rare = e.binary("or", rare, e.compare("uge", a, LARGEST_PRODUCT))
    rest = e.select(e.compare("olt", rest, 0.0), e.add(rest, b), rest)
    rest = e.select(e.compare("olt", a, b), a, rest)  # of an infinite divisor too
    return where_rare(e, rare, "fmod", lambda e, x, y: e.binary("frem", x, y), with_sign(e, rest, x), x, y)


def fmod(e: Emitter, x: Number, y: Number) -> Number:
    """The remainder with the sign of the dividend."""
    with e.strict():
        if x.dtype == F64:
            return _fmod(e, x, y)
        return e.convert("fptrunc", _fmod(e, e.convert("fpext", x, F64), e.convert("fpext", y, F64)), F32)


def divmod_of(e: Emitter, a: Number, b: Number) -> tuple[Number, Number]:
    """The quotient rounded down and the rest with the divisor's sign, as Python and NumPy find them from C's fmod."""
    with e.strict():
        rest = fmod(e, a, b)
        quotient = e.div(e.sub(a, rest), b)
        is_rest = e.compare("une", rest, 0.0)
        opposite = e.binary("xor", e.compare("olt", b, 0.0), e.compare("olt", rest, 0.0))
        moves = e.binary("and", is_rest, opposite)
        moved = e.select(moves, e.add(rest, b), rest)
        quotient = e.select(moves, e.sub(quotient, 1.0), quotient)
        moved = e.select(is_rest, moved, e.intrinsic("copysign", e.like(0.0, a), b))
        down = e.intrinsic("floor", quotient)
        half = e.compare("ogt", e.sub(quotient, down), 0.5)
        whole = e.select(half, e.add(down, 1.0), down)
        nothing = e.intrinsic("copysign", e.like(0.0, a), e.div(a, b))
        whole = e.select(e.compare("une", quotient, 0.0), whole, nothing)
        by_zero = e.compare("oeq", b, 0.0)
        return e.select(by_zero, e.div(a, b), whole), e.select(by_zero, rest, moved)


def floor_divide(e: Emitter, a: Number, b: Number) -> Number:
    """The quotient rounded down."""
    return divmod_of(e, a, b)[0]


def remainder(e: Emitter, a: Number, b: Number) -> Number:
    """The remainder with the sign of the divisor."""
    return divmod_of(e, a, b)[1]
