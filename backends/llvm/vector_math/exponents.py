"""Floats as fractions times powers of two: the exponent, and products with powers of two."""

from __future__ import annotations

from typing import Final

import numpy as np

from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import avx512, has_avx512

INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)


def frexp_exponent(e: Emitter, a: Number) -> Number:
    """From the bits of the exponent; subnormal numbers are scaled first. Of 0, inf and nan it is 0."""
    fraction, bias = {4: (23, 127), 8: (52, 1023)}[a.dtype.itemsize]
    size = e.intrinsic("fabs", a)
    small = e.compare("olt", size, 2.0 ** (1 - bias))
    scaled = e.select(small, e.mul(a, 2.0**60), a)
    shifted = e.integer("lshr", e.bits(scaled), e.like(fraction, e.bits(scaled)))
    exponent = e.integer("and", shifted, e.like(2 * bias + 1, shifted))
    found = e.integer("sub", exponent, e.select(small, e.like(bias + 59, exponent), bias - 1))
    regular = e.binary("and", e.compare("one", size, np.inf), e.compare("une", a, 0.0))
    found = e.select(regular, found, 0)
    return found if found.dtype == INT32 else e.convert("trunc", found, INT32)


def ldexp(e: Emitter, a: Number, n: Number) -> Number:
    """a * 2**n, rounded once; a product with one power of two where the machine has that."""
    if a.dtype.itemsize == 2:
        return e.convert("fptrunc", ldexp(e, e.convert("fpext", a, F32), n), a.dtype)
    if has_avx512(e):
        return avx512(e, "scalef", a, e.convert("sitofp", n, a.dtype))
    found = _by_products(e, a if a.dtype == F64 else e.convert("fpext", a, F64), n)
    return found if a.dtype == F64 else e.convert("fptrunc", found, a.dtype)


def _by_products(e: Emitter, x: Number, n: Number) -> Number:
    """Powers of two, multiplied one after the other so that one product alone is rounded."""
    n = n if n.dtype == INT64 else e.convert("sext", n, INT64)
    with e.strict():
        for most, least in ((1023, 53 - 1022), (1023, 53 - 1022)):
            large, small = e.compare("sgt", n, 1023), e.compare("slt", n, -1022)
            step = e.select(large, e.like(most, n), e.select(small, e.like(least, n), 0))
            factor = e.select(large, e.like(2.0**most, x), e.select(small, e.like(2.0**least, x), 1.0))
            x, n = e.mul(x, factor), e.integer("sub", n, step)
        n = e.select(e.compare("sgt", n, 1023), 1023, n)
        n = e.select(e.compare("slt", n, -1022), -1022, n)
        biased = e.integer("add", n, e.like(1023, n))
        return e.mul(x, e.from_bits(e.integer("shl", biased, e.like(52, n))))
