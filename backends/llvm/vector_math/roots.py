"""Reciprocals of roots: of one number, of a product, and of 1 + x²; quotients by squares of lengths.

A root and a quotient keep the divider of a processor busy for as long as some fifty products take. With AVX-512 an
estimate y of x**(-1/2) is refined instead: with h = 1 - x y² it is y (1 - h)**(-1/2) = y (1 + h/2 + 3h²/8 + …).
Elsewhere they are the root and the quotient, as they are where the other work of a loop takes as long as these two:
the divider works beside it (``Emitter.divides``).
"""

from __future__ import annotations

from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    DOUBLE,
    WIDENED,
    avx512,
    exact_product,
    format_of,
    has_avx512,
    magnitude,
    where_rare,
)
from srcgrad.backends.llvm.vector_math.power import hypot


def inverse_root(e: Emitter, c: Number, x: Number) -> Number:
    """c/√x of a c that is a power of two, or minus one: its product is exact. Within 0.51 ULP, 0.65 of float32.

    The last h has the error of x y in it; it is nan where x is 0, infinite or negative, and the estimate right there.
    """
    if e.divides or not has_avx512(e):
        return e.div(c, e.intrinsic("sqrt", x))
    with e.strict():
        estimate = y = avx512(e, "rsqrt14", x)
        if x.dtype != F32:
            y = _refined(e, y, e.fma(e.neg(e.mul(x, y)), y, 1.0))
        product, error = exact_product(e, x, y)
        h = e.fma(e.neg(error), y, e.fma(e.neg(product), y, 1.0))
        y = e.fma(e.mul(y, 0.5), h, y)
        return e.mul(e.select(e.compare("uno", h, h), estimate, y), c)


def _refined(e: Emitter, y: Number, h: Number) -> Number:
    """y times 1 + h/2 + 3h²/8: the relative error of 2**-14 becomes one of 2**-40."""
    return e.fma(e.mul(y, h), e.fma(h, 0.375, 0.5), y)


def inverse_root_of_product(e: Emitter, a: Number, b: Number) -> Number:
    """1/√a 1/√b, within 1.5 ULP, with one refinement: a y and b y are near √(a/b) and √(b/a), so neither overflows.

    Where they may after all, or one of them is not positive and finite, it is what it says.
    """

    def apart(e: Emitter, a: Number, b: Number) -> Number:
        return e.mul(e.div(1.0, e.intrinsic("sqrt", a)), e.div(1.0, e.intrinsic("sqrt", b)))

    if not has_avx512(e):
        return apart(e, a, b)
    with e.strict():
        y = e.mul(avx512(e, "rsqrt14", a), avx512(e, "rsqrt14", b))
        h = first = e.fma(e.neg(e.mul(a, y)), e.mul(b, y), 1.0)
        y = _refined(e, y, h)
        if a.dtype != F32:
            h = e.fma(e.neg(e.mul(a, y)), e.mul(b, y), 1.0)
            y = e.fma(e.mul(y, 0.5), h, y)
        unusual = e.invert(e.compare("olt", magnitude(e, first), 0.001))
        return where_rare(e, unusual, f"inverse_roots_{a.dtype}", apart, y, a, b)


def arcsinh_slope(e: Emitter, x: Number) -> Number:
    """1/√(1 + x²), within 1.75 ULP; 1/|x| where the square is infinite, or nearly so."""

    def of_large(e: Emitter, x: Number, found: Number) -> Number:
        a = magnitude(e, x)
        return e.select(e.compare("ogt", a, bound), e.div(1.0, a), found)

    bound = 2.0 ** (format_of(x).bias // 2 - 3)
    with e.strict():
        sum = e.fma(x, x, 1.0) if "fma" in e.features else e.add(e.mul(x, x), 1.0)
        found = inverse_root(e, e.like(1.0, x), sum)
        large = e.compare("ogt", magnitude(e, x), bound)
        return where_rare(e, large, f"arcsinh_slope_{x.dtype}", of_large, found, x, found)


def over_square_of_hypot(e: Emitter, a: Number, y: Number, x: Number) -> Number:
    """a/(x² + y²), within 1.75 ULP; a/h/h, h = √(x² + y²), where the sum is out of bounds, or no number."""

    def by_length(e: Emitter, a: Number, y: Number, x: Number) -> Number:
        if a.dtype == F64:
            return twice(e, a, hypot(e, y, x, DOUBLE))
        wide_y, wide_x = (e.convert("fpext", number, F64) for number in (y, x))
        return twice(e, a, e.convert("fptrunc", hypot(e, wide_y, wide_x, WIDENED), F32))

    def twice(e: Emitter, a: Number, length: Number) -> Number:
        return e.div(e.div(a, length), length)

    bound = 2.0 ** (100 if a.dtype == F32 else 900)
    with e.strict():
        square = e.fma(x, x, e.mul(y, y))
        usual = e.integer("and", e.compare("ogt", square, 1 / bound), e.compare("olt", square, bound))
        found = e.div(a, square)
        return where_rare(e, e.invert(usual), f"over_square_of_hypot_{a.dtype}", by_length, found, a, y, x)
