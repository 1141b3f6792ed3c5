"""Logarithms: log, log2, log10, log1p, and of a sum of exponentials.

x = 2**k m with 3/4 <= m < 3/2; with f = m - 1 and s = f/(2 + f), log(m) = 2 artanh(s) = f - (h - s (h + R(s²))),
h = f²/2: the leading terms are exact or nearly so. Source: the Sun Microsystems library fdlibm, e_log.c. For float32 a
polynomial in f takes less time than the quotient.
"""

from __future__ import annotations

from typing import NamedTuple

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    INFINITY,
    NAN,
    Format,
    at_least,
    avx512,
    exact_product,
    format_of,
    has_avx512,
    magnitude,
    scaled,
    two_to_the,
    with_sign,
)
from srcgrad.backends.llvm.vector_math.exponential import exp, exp2

GETMANT = 15  # the instruction's m in [3/4, 3/2), nan of negative numbers


class Parts(NamedTuple):
    """x = 2**k m: k as a whole float, and m. Of 0 and inf k is -inf and inf; of a negative x, and of nan, it is nan."""

    k: Number
    m: Number


def parts_of(e: Emitter, x: Number, subnormal: bool = True) -> Parts:
    """The parts of x; ``subnormal`` says that x may be that."""
    if has_avx512(e):
        m = avx512(e, "getmant", x, immediate=GETMANT)
        return Parts(e.sub(avx512(e, "getexp", x), avx512(e, "getexp", m)), m)
    given, form = x, format_of(x)
    small = e.compare("olt", x, form.smallest_normal) if subnormal else None
    if small is not None:
        x = e.select(small, e.mul(x, 2.0**form.lift), x)
    bits = e.bits(x)
    # From 3/4 up: its bits are those of 1 less half a step of the exponent.
    steps = e.integer("ashr", e.integer("sub", bits, form.one_bits - (1 << form.fraction - 1)), form.fraction)
    m = e.from_bits(e.integer("sub", bits, e.integer("shl", steps, form.fraction)))
    k = e.sub(e.from_bits(e.integer("add", steps, form.shifter_bits)), form.shifter)
    if small is not None:
        k = e.select(small, e.sub(k, float(form.lift)), k)
    zero, positive = e.compare("oeq", given, 0.0), e.compare("ogt", given, 0.0)
    finite = e.integer("and", positive, e.compare("olt", given, INFINITY))
    other = e.select(positive, INFINITY, e.select(zero, -INFINITY, e.like(NAN, x)))
    return Parts(e.select(finite, k, other), e.select(finite, m, 1.0))


def tail_of(e: Emitter, f: Number, form: Format) -> tuple[Number, Number]:
    """h = f²/2 and s (h + R): log(1 + f) = f - h + the latter."""
    s = e.div(f, e.add(f, 2.0))
    z = e.mul(s, s)
    half = e.mul(e.mul(f, 0.5), f)
    return half, e.mul(s, e.fma(z, e.polynomial(z, form.terms(c.LOG)), half))


def excess_of(e: Emitter, f: Number, form: Format) -> Number:
    """log(1 + f)/f - 1, for float32."""
    return e.mul(f, e.polynomial(f, form.terms(c.LOG_SHORT)))


def log_of_parts(e: Emitter, k: Number, f: Number, form: Format) -> Number:
    """k log(2) + log(1 + f)."""
    first, second = form.parts(c.LOG2)
    if form.short:
        found = e.fma(f, excess_of(e, f, form), f)
        return e.fma(k, first + second, found) if form.spare else e.fma(k, first, e.fma(k, second, found))
    half, rest = tail_of(e, f, form)
    return e.fma(k, first, e.sub(f, e.sub(half, e.fma(k, second, rest))))


def log(e: Emitter, x: Number, form: Format) -> Number:
    k, m = parts_of(e, x, not form.spare)
    return log_of_parts(e, k, e.sub(m, 1.0), form)


def log_to_base(e: Emitter, x: Number, form: Format, inverse: tuple[float, ...], step: tuple[float, ...]) -> Number:
    """k ``step`` + log(m) ``inverse``, both constants in two parts; whole powers of the base have exact results.

    Without error are k and f times the first parts, and their sum: the rest is small.
    """
    k, m = parts_of(e, x, not form.spare)
    f = e.sub(m, 1.0)
    if form.short:
        found = e.fma(f, inverse[0], e.mul(f, e.fma(excess_of(e, f, form), inverse[0], inverse[1])))
        if len(step) == 1:
            return e.add(k, found)
        return e.fma(k, step[0], e.fma(k, step[1], found))
    half, rest = tail_of(e, f, form)
    rest = e.sub(rest, half)
    first, error = exact_product(e, f, e.like(inverse[0], f))
    base = e.mul(k, step[0])
    total = e.add(base, first)
    error = e.add(error, e.add(e.sub(base, total), first))
    error = e.fma(f, inverse[1], e.fma(rest, inverse[0], error))
    if len(step) > 1:
        error = e.fma(k, step[1], error)
    # An infinite k has made the error nan.
    infinite = e.compare("oeq", magnitude(e, k), INFINITY)
    return e.select(infinite, e.add(k, f), e.add(total, error))


def log2(e: Emitter, x: Number, form: Format) -> Number:
    return log_to_base(e, x, form, form.parts(c.INVERSE_LOG2), (1.0,))


def log10(e: Emitter, x: Number, form: Format) -> Number:
    return log_to_base(e, x, form, form.parts(c.INVERSE_LOG10), form.parts(c.LOG10_2))


def log1p(e: Emitter, x: Number, form: Format) -> Number:
    k, _ = parts_of(e, e.add(x, 1.0), False)
    result = log1p_of_exponent(e, x, k, form)
    result = e.select(e.compare("olt", magnitude(e, k), INFINITY), result, k)
    return with_sign(e, result, x)


def log1p_of_exponent(e: Emitter, x: Number, k: Number, form: Format) -> Number:
    """log(1 + x) of a finite x: 1 + x = 2**k (1 + f), f = x 2**-k + (2**-k - 1) rounded once."""
    less = e.neg(k)
    if has_avx512(e):
        power = avx512(e, "scalef", e.like(1.0, x), less)
        f = e.fma(x, power, e.sub(power, 1.0))
    else:
        # Beside 1 no power of a large x counts.
        power = two_to_the(e, e.add(at_least(e, less, -100.0), form.shifter))
        f = e.add(scaled(e, x, less), e.sub(power, 1.0))
    return log_of_parts(e, k, f, form)


def logaddexp(e: Emitter, x: Number, y: Number, form: Format) -> Number:
    """The larger + log(1 + exp(-|x - y|)); equal operands, infinite ones too, + log(2)."""
    return _log_sum(e, x, y, log1p(e, exp(e, _distance(e, x, y), form), form))


def logaddexp2(e: Emitter, x: Number, y: Number, form: Format) -> Number:
    """The larger + log2(1 + 2**-|x - y|); equal operands, infinite ones too, + 1."""
    excess = log1p(e, exp2(e, _distance(e, x, y), form), form)
    return _log_sum(e, x, y, e.mul(excess, c.INVERSE_LOG2.double[0]))


def _distance(e: Emitter, x: Number, y: Number) -> Number:
    """-|x - y|, 0 for equal operands."""
    return e.select(e.compare("oeq", x, y), 0.0, e.neg(magnitude(e, e.sub(x, y))))


def _log_sum(e: Emitter, x: Number, y: Number, excess: Number) -> Number:
    return e.add(e.select(e.compare("ogt", x, y), x, y), excess)
