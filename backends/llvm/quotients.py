"""Quotients by what is the same for a whole loop: products with its reciprocal, corrected to the last bit.

A vector of quotients keeps the divider of a processor busy for as long as some thirty products take. With y = RN(1/b),
q = RN(a y) is a/b within 1.5 units in the last place, and RN(q - y RN(q b - a)) is RN(a/b): so the result is the
divider's in every bit (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990,
for q within one unit). Of other q it holds for all a and b of 4 to 13 bits, and for all of 24 bits whose quotient is
next to the middle of two numbers, which alone could be rounded otherwise: q b - a is one of few whole numbers there.

It wants that nothing overflows or is subnormal on the way. Dividends beyond bounds, and what is not finite, are
divided as they are, and so are all by a divisor that is 0 or beyond others. Zeros are common, and are no exception:
with b > 0 and the correction as it is written they keep their sign.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.loops import Compute, Group
from srcgrad.backends.llvm.shapes import Shape
from srcgrad.backends.llvm.vector_math.basics import corrected_quotient, has_avx512, magnitude

LIGHT: Final = 40
"""The cost of a body, in additions, from which its other work takes as long as the divider."""
VECTORS: Final = 4
"""The vectors of a row from which it pays to prepare its divisor."""
DIVIDENDS: Final = {F64: 900, F32: 90}
DIVISORS: Final = {F64: 100, F32: 24}
"""The largest binary exponents of what is not divided as it is; the least ones are their opposites."""


class Divisor(NamedTuple):
    """What is known of a divisor b outside of the loop, in every lane.

    Bits are doubled, so that they have no sign. ``first`` is the least of a dividend, ``many`` how many there are from
    it on; ``zero`` are those of a dividend 0, or 1, which no number has.
    """

    whole: Number
    size: Number
    inverse: Number
    sign: Number
    first: int
    many: Number
    zero: Number


def prepared(e: Emitter, b: Number, lanes: int) -> Divisor:
    """The divisor, of a scalar."""
    integer = np.dtype(f"i{b.dtype.itemsize}")
    fraction, bias = (23, 127) if b.dtype == F32 else (52, 1023)

    def doubled(exponent: int) -> int:
        return exponent + bias << fraction + 1

    least, most = doubled(-DIVISORS[b.dtype]), doubled(DIVISORS[b.dtype])
    first, last = doubled(-DIVIDENDS[b.dtype]), doubled(DIVIDENDS[b.dtype])
    bits = e.bits(b)
    usual = e.compare("ult", e.integer("sub", e.integer("shl", bits, 1), least), _signed(most - least, integer))
    size = magnitude(e, b)
    many = e.select(usual, Number(str(_signed(last - first, integer)), integer, 1), 0)
    zero = e.select(usual, Number("0", integer, 1), 1)
    sign = e.integer("and", bits, np.iinfo(integer).min)
    whole, size, inverse, sign, many, zero = (
        e.splat(number, lanes) for number in (b, size, e.div(1.0, size), sign, many, zero)
    )
    return Divisor(whole, size, inverse, sign, _signed(first, integer), many, zero)


def _signed(bits: int, dtype: np.dtype[np.signedinteger]) -> int:
    """Bits as the signed integer that they are."""
    return int(np.array(bits, f"u{dtype.itemsize}").view(dtype))


def quotient(e: Emitter, a: Number, by: Divisor) -> Number:
    """The vector a / b."""
    doubled = e.integer("shl", e.bits(a), 1)
    beyond = e.compare("uge", e.integer("sub", doubled, by.first), by.many)
    beyond = e.binary("and", beyond, e.compare("ne", doubled, by.zero))
    turned = e.from_bits(e.integer("xor", e.bits(a), by.sign))
    with e.strict():
        q = corrected_quotient(e, turned, by.size, by.inverse)
    some = e.any(beyond)
    rare, usual, before = e.label("rare"), e.label("usual"), e.block
    e.branch(some, rare, usual)
    e.start(rare)
    divided = e.div(a, by.whole)
    e.jump(usual)
    e.start(usual)
    return e.phi((q, before), (divided, rare))


def divided_by(group: Group, shape: Shape, e: Emitter) -> list[int]:
    """The statements outside of the innermost loop, and constants, by which vectors are divided in it."""
    rank = len(group.domain)
    if e.plain or not has_avx512(e) or group.cost() > LIGHT or not rank:
        return []
    if shape.lanes == 1 or group.domain[-1] < VECTORS * shape.lanes:
        return []
    depths, found = group.depths(), dict[int, None]()
    for item, depth in zip(group.statements, depths, strict=True):
        if isinstance(item, Compute) and item.operation.op.name == "div" and depth == rank and not item.function:
            number = item.operands[1]
            if depths[number] < rank and item.dtype in DIVIDENDS:
                found[number] = None
    return list(found)
