"""Powers and roots: pow, cbrt, hypot.

pow(x, y) = exp(y log|x|) with the logarithm and its product with y as pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import F64, Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    DOUBLE,
    INFINITY,
    NAN,
    SINGLE,
    WIDENED,
    Format,
    Pair,
    avx512,
    exact_product,
    format_of,
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
from srcgrad.backends.llvm.vector_math.exponential import exp, exp_within, powers
from srcgrad.backends.llvm.vector_math.logarithm import log, parts_of

CUBE_ROOT_BITS: Final = float(0x2A5137A0)  # two thirds of the bits of 1, less what makes the error even
CUBE_ROOTS: Final = (*c.CUBE_ROOTS[1:], *[0.0] * 13, c.CUBE_ROOTS[0])  # by the last bits of -1, 0, 1


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
    first, second = c.LOG2.double
    base = e.fma(k, first, looked_up(e, "srcgrad_log_table", c.LOG_TABLE, index))
    small = e.fma(k, second, looked_up(e, "srcgrad_log_table_low", c.LOG_TABLE_LOW, index))
    small = e.fma(e.mul(square, f), e.polynomial(f, c.POW_LOG.double), small)
    small = e.fma(square_low, -0.5, small)
    high, lost = quick_sum(e, base, f)
    high, more = quick_sum(e, high, e.mul(square, -0.5))
    high, low = quick_sum(e, high, e.add(small, e.add(lost, more)))
    return Logarithm(high, low, k)


def _sixteenths(e: Emitter, m: Number) -> Number:
    """1/m, roughly, rounded to a multiple of 1/16."""
    if has_avx512(e):
        return avx512(e, "rndscale", avx512(e, "rcp14", m), immediate=0x48)
    centred = e.sub(m, 1.0)
    rough = e.fma(e.neg(centred), e.horner(centred, c.RECIPROCAL.double), 1.0)
    return e.mul(nearest(e, e.fma(rough, 16.0, DOUBLE.shifter)), 1 / 16)


def pow(e: Emitter, x: Number, y: Number, form: Format) -> Number:
    """x**y with the special cases of C99, annex F; all that is not a plain positive number is out of line."""
    if form is SINGLE:
        return _pow_by_tables(e, x, y)
    if form.spare:
        product = e.mul(y, log(e, x, DOUBLE))
        usual = e.compare("olt", magnitude(e, product), 200.0)
        return where_rare(e, e.invert(usual), "pow_widened", _pow_widened, exp(e, product, form), x, y)
    high, low, _ = log_pair(e, x)
    product, error = _product(e, y, high, low)
    unusual = e.invert(e.compare("olt", magnitude(e, product), 700.0))
    found = exp_within(e, product, error)
    return where_rare(e, unusual, "pow", _pow, found, x, y)


def _pow_by_tables(e: Emitter, x: Number, y: Number) -> Number:
    """2**(y log2(x)) of float32 numbers, with AVX-512: log2(x) = k - log2(r) + log2(1 + f), f = m r - 1, as a pair.

    With r = i/32 near 1/m, f is exact, |f| < 1/42, and so is the sum of k and the first part of log2(r).
    """
    k, m = parts_of(e, x)
    coarse = SINGLE.shifter / 32
    shifted = e.add(avx512(e, "rcp14", m), coarse)
    index = e.bits(shifted)
    f = e.fma(m, e.sub(shifted, coarse), -1.0)
    first, second = SINGLE.parts(c.INVERSE_LOG2)
    base = e.add(k, looked_up(e, "srcgrad_log2_table", c.LOG2_TABLE, index))
    small = e.fma(f, second, looked_up(e, "srcgrad_log2_table_low", c.LOG2_TABLE_LOW, index))
    small = e.fma(e.mul(f, f), e.polynomial(f, SINGLE.terms(c.LOG2_SHORT)), small)
    product, lost = exact_product(e, f, e.like(first, f))
    high, error = quick_sum(e, base, product)
    high, low = quick_sum(e, high, e.add(e.add(small, lost), error))
    power, rest = exact_product(e, y, high)
    rest = e.fma(y, low, rest)
    # 2**(power + rest)
    coarse = SINGLE.shifter / 16
    shifted = e.add(power, coarse)
    n = e.sub(shifted, coarse)
    r = e.add(e.sub(power, n), rest)
    root, lack = powers(e, shifted, SINGLE)
    grown = e.fma(r, e.polynomial(r, SINGLE.terms(c.EXP2_SHORT)), lack)
    found = avx512(e, "scalef", e.fma(root, grown, root), n)
    unusual = e.invert(e.compare("olt", magnitude(e, power), 200.0))
    return where_rare(e, unusual, "pow_single", _pow_of_single, found, x, y)


def _pow_of_single(e: Emitter, x: Number, y: Number) -> Number:
    return e.convert("fptrunc", _pow_widened(e, e.convert("fpext", x, F64), e.convert("fpext", y, F64)), x.dtype)


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
    return _special(e, x, y, exp(e, product, DOUBLE, e.select(plain, error, 0.0)))


def _pow_widened(e: Emitter, x: Number, y: Number) -> Number:
    return _special(e, x, y, exp(e, e.mul(y, log(e, magnitude(e, x), DOUBLE)), WIDENED))


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


def whole(y: int) -> Callable[..., Number]:
    """x**y of a whole number that is known, 1 <= |y| <= 32, within 0.75 ULP: products, each with its error.

    Where the power is near the ends of its range, and of 0 if y is negative, it is `pow`.
    """
    count, name = abs(y), f"power_of_{'minus_' if y < 0 else ''}{abs(y)}"

    def power(e: Emitter, x: Number, form: Format) -> Number:
        high, low = _by_products(e, x, count, form)
        found = high if low is None else e.select(e.compare("oeq", low, 0.0), high, e.add(high, low))
        if y < 0:
            found = e.div(1.0, high)
            if low is not None:
                left = e.fma(e.neg(low), found, e.fma(e.neg(high), found, 1.0))
                found = e.fma(found, left, found)
        if form.spare:
            return found
        a, bound = magnitude(e, x), 2.0 ** ((100 if form is SINGLE else 900) // count)
        rare = e.integer("or", e.compare("ugt", a, bound), e.compare("olt", a, 1 / bound))
        if y > 0:
            rare = e.integer("and", rare, e.compare("une", x, 0.0))
        return where_rare(e, rare, name, by_logarithm, found, x)

    def by_logarithm(e: Emitter, x: Number) -> Number:
        if x.dtype == F64 or has_avx512(e):
            return pow(e, x, e.like(float(y), x), format_of(x))
        wide = e.convert("fpext", x, F64)
        return e.convert("fptrunc", pow(e, wide, e.like(float(y), wide), WIDENED), x.dtype)

    power.__name__, power.__doc__ = name, whole.__doc__
    return power


def _by_products(e: Emitter, x: Number, count: int, form: Format) -> tuple[Number, Number | None]:
    """x**count by squaring as a pair; the second part is none where it does not count."""

    def product(a: Number, a_low: Number | None, b: Number, b_low: Number | None) -> tuple[Number, Number | None]:
        if form.spare:
            return e.mul(a, b), None
        high, low = exact_product(e, a, b)
        low = low if a_low is None else e.fma(a_low, b, low)
        return high, low if b_low is None else e.fma(a, b_low, low)

    found: tuple[Number, Number | None] | None = None
    power: tuple[Number, Number | None] = x, None
    while True:
        if count & 1:
            found = power if found is None else product(*found, *power)
        count >>= 1
        if not count:
            assert found is not None
            return found
        power = product(*power, *power)


def cbrt(e: Emitter, x: Number, form: Format) -> Number:
    """m**(-1/3) from a polynomial and a step of Newton's method without divisions; another by the exact residual."""
    if form is SINGLE:
        return _cbrt_by_bits(e, x)
    a = magnitude(e, x)
    exponent, fraction = _fraction_of(e, a)
    # exponent = 3 third + rest, rest in -1, 0, 1
    third = e.fma(exponent, 1 / 3, form.shifter)
    rest = e.fma(nearest(e, third), -3.0, exponent)
    if has_avx512(e) and form.fraction == 52:
        m = avx512(e, "scalef", fraction, rest)
        factor = looked_up(e, "srcgrad_cube_roots", CUBE_ROOTS, e.bits(e.add(rest, form.shifter)))
    else:
        less, more = e.compare("olt", rest, 0.0), e.compare("ogt", rest, 0.0)
        m = e.mul(fraction, e.select(more, 2.0, e.select(less, 0.5, e.like(1.0, x))))
        factor = e.select(more, c.CUBE_ROOTS[2], e.select(less, c.CUBE_ROOTS[0], e.like(c.CUBE_ROOTS[1], x)))
    guess = e.mul(e.polynomial(e.sub(fraction, 1.5), form.terms(c.CBRT)), factor)
    # With h = 1 - m y³: m**(-1/3) = y (1 - h)**(-1/3) = y (1 + h/3 + 2h²/9 + …)
    error = e.fma(e.neg(e.mul(m, guess)), e.mul(guess, guess), 1.0)
    guess = e.fma(guess, e.mul(error, e.fma(error, 2 / 9, 1 / 3)), guess)
    inverse_square = e.mul(guess, guess)
    root = e.mul(m, inverse_square)
    if not form.spare:
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


def _cbrt_by_bits(e: Emitter, x: Number) -> Number:
    """Of float32 numbers; where they are 0, very large or small, out of line."""

    def scaled_back(e: Emitter, x: Number) -> Number:
        a = magnitude(e, x)
        small, large = e.compare("olt", a, 2.0**-100), e.compare("ogt", a, 2.0**100)
        up = e.select(small, 2.0**96, e.select(large, 2.0**-96, e.like(1.0, x)))
        down = e.select(small, 2.0**-32, e.select(large, 2.0**32, e.like(1.0, x)))
        found = e.mul(_positive_cbrt(e, e.mul(a, up)), down)
        odd = e.integer("and", e.compare("ogt", a, 0.0), e.compare("olt", a, INFINITY))
        return with_sign(e, e.select(odd, found, a), x)

    a = magnitude(e, x)
    found = with_sign(e, _positive_cbrt(e, a), x)
    first = (SINGLE.bias - 100) << SINGLE.fraction
    unusual = e.compare("ugt", e.integer("sub", e.bits(a), first), 200 << SINGLE.fraction)
    return where_rare(e, unusual, "cbrt_of_single", scaled_back, found, x)


def _positive_cbrt(e: Emitter, a: Number) -> Number:
    """A third of the bits is within 4 % of the root's; Halley's g (g³ + 2a)/(2g³ + a) leaves 3e-5, Newton's step less.

    2**-100 <= a <= 2**100, float32.
    """
    bits = e.bits(a)
    third = e.fma(e.convert("sitofp", bits, a.dtype), 1 / 3, CUBE_ROOT_BITS)
    g = e.from_bits(e.convert("fptosi", third, bits.dtype))
    cube = e.mul(e.mul(g, g), g)
    g = e.mul(g, e.div(e.fma(a, 2.0, cube), e.fma(cube, 2.0, a)))
    square = e.mul(g, g)
    excess = e.fma(square, g, e.neg(a))
    # The quotient is 3e-5 of the root: an estimate of it will do.
    excess = e.mul(excess, avx512(e, "rcp14", square)) if has_avx512(e) else e.div(excess, square)
    return e.fma(excess, -1 / 3, g)


def _fraction_of(e: Emitter, a: Number) -> Pair:
    """The exponent of a positive finite number, as a float, and its fraction in [1, 2)."""
    if has_avx512(e):
        return avx512(e, "getexp", a), avx512(e, "getmant", a, immediate=0)
    form = format_of(a)
    small = e.compare("olt", a, form.smallest_normal)
    bits = e.bits(e.select(small, e.mul(a, 2.0**form.lift), a))
    steps = e.integer("lshr", bits, form.fraction)
    first = form.shifter + form.bias
    exponent = e.from_bits(e.integer("add", steps, form.shifter_bits))
    exponent = e.sub(exponent, e.select(small, first + form.lift, e.like(first, a)))
    return exponent, e.from_bits(e.integer("or", e.integer("and", bits, (1 << form.fraction) - 1), form.one_bits))


def hypot(e: Emitter, x: Number, y: Number, form: Format) -> Number:
    """√(x² + y²), scaled by a power of two where a square overflows or loses bits; inf where one is."""
    a, b = magnitude(e, x), magnitude(e, y)
    if form.spare:
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


def log_hypot(e: Emitter, x: Number, y: Number, form: Format) -> Number:
    """log √(x² + y²) = log(s + r)/2 with s + r the sum of the squares, which may cancel 1: log(s) + r/s."""
    a, b = magnitude(e, x), magnitude(e, y)
    endless = e.integer("or", e.compare("oeq", a, INFINITY), e.compare("oeq", b, INFINITY))
    if form.spare:
        return e.select(endless, INFINITY, e.mul(log(e, e.fma(a, a, e.mul(b, b)), DOUBLE), 0.5))
    swap = e.compare("ogt", b, a)
    large, small = e.select(swap, b, a), e.select(swap, a, b)
    huge, tiny = e.compare("ogt", large, 2.0**500), e.compare("olt", large, 2.0**-400)
    up = e.select(huge, 2.0**-600, e.select(tiny, 2.0**600, e.like(1.0, x)))
    shift = e.select(huge, 600 * math.log(2), e.select(tiny, -600 * math.log(2), e.like(0.0, x)))
    square, lost = exact_product(e, e.mul(large, up), e.mul(large, up))
    other, more = exact_product(e, e.mul(small, up), e.mul(small, up))
    total, rest = quick_sum(e, square, other)
    rest = e.div(e.add(rest, e.add(lost, more)), total)
    near = e.compare("olt", magnitude(e, rest), 1.0)  # else it is nan: of 0, or of what is infinite
    found = e.add(e.mul(e.add(log(e, total, form), e.select(near, rest, 0.0)), 0.5), shift)
    return e.select(endless, INFINITY, found)
