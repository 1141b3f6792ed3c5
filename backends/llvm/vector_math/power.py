"""Powers and roots: pow, cbrt, hypot.

pow(x, y) = exp(y log|x|) with the logarithm and its product with y as pairs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    INFINITY,
    NAN,
    ONE_BITS,
    SHIFTER,
    SHIFTER_BITS,
    SMALLEST_NORMAL,
    Pair,
    avx512,
    exact_product,
    has_avx512,
    looked_up,
    magnitude,
    nearest,
    negative,
    quick_sum,
    split,
    two_to_the,
    where_rare,
    with_sign,
)
from srcgrad.backends.llvm.vector_math.exponential import exp, exp_within
from srcgrad.backends.llvm.vector_math.logarithm import log, parts_of

CUBE_ROOTS: Final = (*c.CUBE_ROOTS[1:], *[0.0] * 13, c.CUBE_ROOTS[0])  # by the last bits of -1, 0, 1
FIRST: Final = SHIFTER + 1023.0  # of the exponent 0


class Logarithm(NamedTuple):
    """log(a) as a pair, with a relative error of about 2**-65; ``k`` is infinite where it is, and the pair nan."""

    high: Number
    low: Number
    k: Number


def log_pair(e: Emitter, a: Number) -> Logarithm:
    """log(a), a >= 0: k log(2) - log(r) + log(1 + f), f = m r - 1, with r = i/16 near 1/m.

    f is exact, |f| < 1/20, and so is the sum of the first parts of k log(2) and -log(r).
    """
    k, m = parts_of(e, a)
    r = _sixteenths(e, m)
    index = e.integer("lshr", e.bits(r), 48)
    if "fma" in e.features:
        f = e.fma(m, r, -1.0)
    else:
        upper, lower = split(e, m)
        f = e.add(e.sub(e.mul(upper, r), 1.0), e.mul(lower, r))
    square, square_low = exact_product(e, f, f)
    base = e.fma(k, c.LOG2[0], looked_up(e, "srcgrad_log_table", c.LOG_TABLE, index))
    small = e.fma(k, c.LOG2[1], looked_up(e, "srcgrad_log_table_low", c.LOG_TABLE_LOW, index))
    small = e.fma(e.mul(square, f), e.polynomial(f, c.POW_LOG.double), small)
    small = e.fma(square_low, -0.5, small)
    high, first = quick_sum(e, base, f)
    high, second = quick_sum(e, high, e.mul(square, -0.5))
    high, low = quick_sum(e, high, e.add(small, e.add(first, second)))
    return Logarithm(high, low, k)


def _sixteenths(e: Emitter, m: Number) -> Number:
    """1/m, roughly, rounded to a multiple of 1/16."""
    if has_avx512(e):
        return avx512(e, "rndscale", avx512(e, "rcp14", m), immediate=0x48)
    centred = e.sub(m, 1.0)
    rough = e.fma(e.neg(centred), e.horner(centred, c.RECIPROCAL.double), 1.0)
    return e.mul(nearest(e, e.fma(rough, 16.0, SHIFTER)), 1 / 16)


def pow(e: Emitter, x: Number, y: Number, single: bool) -> Number:
    """x**y with the special cases of C99, annex F; all that is not a plain positive number is out of line."""
    if single:
        product = e.mul(y, log(e, x, single=False))
        usual = e.compare("olt", magnitude(e, product), 200.0)
        unusual, found = e.invert(usual), exp(e, product, single)
        return where_rare(e, unusual, "pow_single", _pow_single, found, x, y)
    high, low, _ = log_pair(e, x)
    product, error = _product(e, y, high, low)
    unusual = e.invert(e.compare("olt", magnitude(e, product), 700.0))
    found = exp_within(e, product, error)
    return where_rare(e, unusual, "pow", _pow, found, x, y)


def _product(e: Emitter, y: Number, high: Number, low: Number) -> Pair:
    product, error = exact_product(e, y, high)
    return product, e.fma(y, low, error)


def _pow(e: Emitter, x: Number, y: Number) -> Number:
    a = magnitude(e, x)
    high, low, k = log_pair(e, a)
    product, error = _product(e, y, high, low)
    plain = e.compare("olt", magnitude(e, product), 2000.0)
    # An infinite logarithm, or product, has made the error nan.
    product = e.mul(y, e.select(e.compare("oeq", magnitude(e, k), INFINITY), k, high))
    return _special(e, x, y, exp(e, product, False, e.select(plain, error, 0.0)))


def _pow_single(e: Emitter, x: Number, y: Number) -> Number:
    return _special(e, x, y, exp(e, e.mul(y, log(e, magnitude(e, x), single=False)), True))


def _special(e: Emitter, x: Number, y: Number, found: Number) -> Number:
    one = e.compare("oeq", magnitude(e, x), 1.0)
    endless = e.compare("oeq", magnitude(e, y), INFINITY)
    found = e.select(e.integer("and", one, endless), 1.0, found)
    return _with_sign_of_power(e, x, y, found)


def _with_sign_of_power(e: Emitter, x: Number, y: Number, found: Number) -> Number:
    """Minus for a negative x to an odd power; nan for one to a broken power; 1 for 1**y and x**0."""
    whole = e.compare("oeq", e.intrinsic("trunc", y), y)
    half = e.mul(y, 0.5)
    odd = e.integer("and", whole, e.compare("une", e.intrinsic("trunc", half), half))
    minus = negative(e, x)
    found = e.select(e.integer("and", minus, odd), e.neg(found), found)
    finite = e.integer("and", e.compare("olt", x, 0.0), e.compare("ogt", x, -INFINITY))
    broken = e.integer("and", finite, e.invert(whole))
    found = e.select(broken, NAN, found)
    return e.select(e.integer("or", e.compare("oeq", x, 1.0), e.compare("oeq", y, 0.0)), 1.0, found)


def cbrt(e: Emitter, x: Number, single: bool) -> Number:
    """m**(-1/3) from a polynomial and a step of Newton's method without divisions; another by the exact residual."""
    a = magnitude(e, x)
    exponent, fraction = _fraction_of(e, a)
    # exponent = 3 third + rest, rest in -1, 0, 1
    third = e.fma(exponent, 1 / 3, SHIFTER)
    rest = e.fma(nearest(e, third), -3.0, exponent)
    if has_avx512(e):
        m = avx512(e, "scalef", fraction, rest)
        factor = looked_up(e, "srcgrad_cube_roots", CUBE_ROOTS, e.bits(e.add(rest, SHIFTER)))
    else:
        less, more = e.compare("olt", rest, 0.0), e.compare("ogt", rest, 0.0)
        m = e.mul(fraction, e.select(more, 2.0, e.select(less, 0.5, e.like(1.0, x))))
        factor = e.select(more, c.CUBE_ROOTS[2], e.select(less, c.CUBE_ROOTS[0], e.like(c.CUBE_ROOTS[1], x)))
    guess = e.mul(e.polynomial(e.sub(fraction, 1.5), c.CBRT.of(single)), factor)
    # With h = 1 - m y³: m**(-1/3) = y (1 - h)**(-1/3) = y (1 + h/3 + 2h²/9 + …)
    error = e.fma(e.neg(e.mul(m, guess)), e.mul(guess, guess), 1.0)
    guess = e.fma(guess, e.mul(error, e.fma(error, 2 / 9, 1 / 3)), guess)
    inverse_square = e.mul(guess, guess)
    root = e.mul(m, inverse_square)
    if not single:
        square, low = exact_product(e, root, root)
        if "fma" in e.features:
            residual = e.fma(low, root, e.fma(square, root, e.neg(m)))
        else:
            cube, lower = exact_product(e, square, root)
            residual = e.add(e.sub(cube, m), e.add(lower, e.mul(low, root)))
        root = e.fma(residual, e.mul(inverse_square, -1 / 3), root)
    result = e.mul(root, two_to_the(e, third))
    odd = e.integer("and", e.compare("ogt", a, 0.0), e.compare("olt", a, INFINITY))
    return with_sign(e, e.select(odd, result, a), x)


def _fraction_of(e: Emitter, a: Number) -> Pair:
    """The exponent of a positive finite number, as a float, and its fraction in [1, 2)."""
    if has_avx512(e):
        return avx512(e, "getexp", a), avx512(e, "getmant", a, immediate=0)
    small = e.compare("olt", a, SMALLEST_NORMAL)
    bits = e.bits(e.select(small, e.mul(a, 2.0**54), a))
    steps = e.integer("lshr", bits, 52)
    exponent = e.sub(e.from_bits(e.integer("add", steps, SHIFTER_BITS)), e.select(small, FIRST + 54, e.like(FIRST, a)))
    return exponent, e.from_bits(e.integer("or", e.integer("and", bits, (1 << 52) - 1), ONE_BITS))


def hypot(e: Emitter, x: Number, y: Number, single: bool) -> Number:
    """√(x² + y²), scaled by a power of two where a square overflows or loses bits; inf where one is."""
    a, b = magnitude(e, x), magnitude(e, y)
    if single:
        found = e.intrinsic("sqrt", e.fma(a, a, e.mul(b, b)))
    else:
        swap = e.compare("ogt", b, a)
        large, small = e.select(swap, b, a), e.select(swap, a, b)
        huge, tiny = e.compare("ogt", large, 2.0**500), e.compare("olt", large, 2.0**-500)
        up, down = e.select(tiny, 2.0**600, e.like(1.0, x)), e.select(tiny, 2.0**-600, e.like(1.0, x))
        up, down = e.select(huge, 2.0**-600, up), e.select(huge, 2.0**600, down)
        large, small = e.mul(large, up), e.mul(small, up)
        found = e.mul(e.intrinsic("sqrt", e.fma(large, large, e.mul(small, small))), down)
    endless = e.integer("or", e.compare("oeq", a, INFINITY), e.compare("oeq", b, INFINITY))
    return e.select(endless, INFINITY, found)
