"""sin, cos, tan, with their arguments reduced exactly: r = x - n π/2, |r| <= π/4, in float64 as a pair.

Beyond the limit of that reduction there is another, in a path of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm import coefficients as c
from srcgrad.backends.llvm.emitter import F64, Emitter, Number
from srcgrad.backends.llvm.vector_math.basics import (
    DOUBLE,
    INFINITY,
    NAN,
    SINGLE,
    WIDENED,
    Format,
    exact_product,
    exact_sum,
    magnitude,
    nearest,
    quick_sum,
    where_rare,
)

TWO_OVER_PI: Final = 0.6366197723675814
I64: Final = np.dtype(np.int64)
LIMIT: Final = 2.0**20  # then n has 20 bits
LIMIT_OF_SINGLE: Final = 2.0**17  # beyond, n is off by too much


class Quadrant(NamedTuple):
    """The bits of n, and r as a pair; float32 has no second part."""

    bits: Number
    r: Number
    low: Number | None


Finish = Callable[[Emitter, Quadrant, Format], Number]


def reduced(e: Emitter, x: Number, form: Format) -> Quadrant:
    """r of |x| <= LIMIT.

    Multiples of π/2 are no closer to floats below the limit than about 2**-60: 150 bits of π/2 do. To floats of 24 bits
    they are no closer than about 2**-30.
    """
    shifted = e.fma(x, TWO_OVER_PI, form.shifter)
    n = nearest(e, shifted)
    bits = e.bits(shifted)
    if form.spare:
        first, second = c.HALF_PI_SHORT[0], c.HALF_PI_SHORT[1] + c.HALF_PI_SHORT[2]
        return Quadrant(bits, e.sub(e.sub(x, e.mul(n, first)), e.mul(n, second)), None)
    if "fma" in e.features:
        one, two, three = form.parts(c.HALF_PI)
        first_part = e.fma(n, -one, x)
        if form is SINGLE:
            return Quadrant(bits, e.fma(n, -three, e.fma(n, -two, first_part)), None)
        r, low = exact_sum(e, first_part, e.mul(n, -two))
        return Quadrant(bits, r, e.fma(n, -three, low))
    one, two, three, four = c.HALF_PI_SHORT
    first_part = e.sub(x, e.mul(n, one))
    middle, low = exact_sum(e, first_part, e.mul(n, -two))
    r, more = exact_sum(e, middle, e.mul(n, -three))
    return Quadrant(bits, r, e.sub(e.add(low, more), e.mul(n, four)))


def sine_of(e: Emitter, q: Quadrant, z: Number, form: Format) -> Number:
    """sin(r + low), |r| <= π/4, z = r²."""
    cube, p = e.mul(q.r, z), e.polynomial(z, form.terms(c.SIN))
    if q.low is None:
        return e.fma(cube, p, q.r)
    return e.add(q.r, e.fma(cube, p, e.fma(e.mul(z, -0.5), q.low, q.low)))


def cosine_of(e: Emitter, q: Quadrant, z: Number, form: Format) -> Number:
    """cos(r + low) = 1 - z/2 + z² p(z) - r low; the rounding error of 1 - z/2 is put back."""
    square, p = e.mul(z, z), e.polynomial(z, form.terms(c.COS))
    main = e.fma(z, -0.5, 1.0)
    if form.spare:
        return e.fma(square, p, main)
    error = e.fma(z, -0.5, e.sub(1.0, main))
    if q.low is not None:
        error = e.sub(error, e.mul(q.r, q.low))
    return e.add(main, e.fma(square, p, error))


def _sine_or_cosine(e: Emitter, q: Quadrant, form: Format, quarters: int) -> Number:
    """sin(x + quarters π/2)."""
    z = e.mul(q.r, q.r)
    bits = e.integer("add", q.bits, quarters) if quarters else q.bits
    odd = e.compare("ne", e.integer("and", bits, 1), 0)
    found = e.select(odd, cosine_of(e, q, z, form), sine_of(e, q, z, form))
    sign = e.integer("shl", e.integer("and", bits, 2), 30 if form is SINGLE else 62)
    return e.from_bits(e.integer("xor", e.bits(found), sign))


def _tangent(e: Emitter, q: Quadrant, form: Format) -> Number:
    """s/c, and -c/s in odd quadrants."""
    z = e.mul(q.r, q.r)
    s, co = sine_of(e, q, z, form), cosine_of(e, q, z, form)
    odd = e.compare("ne", e.integer("and", q.bits, 1), 0)
    return e.div(e.select(odd, e.neg(co), s), e.select(odd, s, co))


def _of_reduced(e: Emitter, x: Number, form: Format, name: str, finish: Finish) -> Number:
    """What ``finish`` makes of the reduced argument, which beyond the limit is found out of line."""

    def far(e: Emitter, x: Number, near: Number) -> Number:
        found = finish(e, far_reduced(e, x), DOUBLE)
        a = magnitude(e, x)
        found = e.select(e.compare("olt", a, INFINITY), found, NAN)
        return e.select(e.compare("ule", a, LIMIT), near, found)

    def far_single(e: Emitter, x: Number, near: Number) -> Number:
        found = _of_reduced(e, e.convert("fpext", x, F64), WIDENED, name, finish)
        return e.select(e.compare("ule", magnitude(e, x), LIMIT_OF_SINGLE), near, e.convert("fptrunc", found, x.dtype))

    found = finish(e, reduced(e, x, form), form)
    limit, kind, path = (LIMIT_OF_SINGLE, "far_single", far_single) if form is SINGLE else (LIMIT, "far", far)
    return where_rare(e, e.compare("ogt", magnitude(e, x), limit), f"{kind}_{name}", path, found, x, found)


def sin(e: Emitter, x: Number, form: Format) -> Number:
    found = _of_reduced(e, x, form, "sin", lambda e, q, form: _sine_or_cosine(e, q, form, 0))
    # The sum of r = -0 and +0 is +0.
    return e.select(e.compare("oeq", x, 0.0), x, found)


def cos(e: Emitter, x: Number, form: Format) -> Number:
    return _of_reduced(e, x, form, "cos", lambda e, q, form: _sine_or_cosine(e, q, form, 1))


def tan(e: Emitter, x: Number, form: Format) -> Number:
    found = _of_reduced(e, x, form, "tan", _tangent)
    return e.select(e.compare("oeq", x, 0.0), x, found)


def far_reduced(e: Emitter, x: Number) -> Quadrant:
    """The reduction of any finite x above the limit, a lane at a time, and anything below."""
    e.definitions["@srcgrad_two_over_pi"] = (
        f"@srcgrad_two_over_pi = internal constant [20 x i64] [{', '.join(f'i64 {word}' for word in c.TWO_OVER_PI)}]"
    )
    e.definitions["@srcgrad_turns"] = TURNS
    for declaration in ("i64 @llvm.fshl.i64(i64, i64, i64)", "i192 @llvm.ctlz.i192(i192, i1)"):
        e.declarations.add(f"declare {declaration}")
    fields = [x._replace(text="poison"), x._replace(text="poison"), x._replace(text="poison", dtype=I64)]
    for lane in range(x.lanes):
        one = x.text if x.lanes == 1 else e.emit(f"extractelement {x.type} {x.text}, i64 {lane}")
        found = e.emit(f"call {{ double, double, i64 }} @srcgrad_turns(double {one})")
        for number, field in enumerate(fields):
            text = e.emit(f"extractvalue {{ double, double, i64 }} {found}, {number}")
            if x.lanes > 1:
                given = f"{field._replace(lanes=1).type} {text}"
                text = e.emit(f"insertelement {field.type} {field.text}, {given}, i64 {lane}")
            fields[number] = field._replace(text=text)
    high, low, bits = fields
    # From quarter turns to radians.
    first, second, _ = c.HALF_PI.double
    r, error = exact_product(e, high, e.like(first, x))
    error = e.fma(high, second, e.fma(low, first, error))
    return Quadrant(bits, *quick_sum(e, r, error))


# M. Payne and R. Hanek, Radian reduction for trigonometric functions, 1983. A float m 2**e, m of 53 bits, times 2/π is
# needed modulo 4: of 2/π only the 192 bits from 2**(1 - e) down count. Their product with m, modulo 2**192, is the
# number of quarter turns times 2**190: the two first bits, rounded, are n; the rest is a fraction in [-1/2, 1/2), whose
# 106 leading bits become a pair. Bits of 2/π are stored behind 64 zeros.
TURNS: Final = """\
define internal { double, double, i64 } @srcgrad_turns(double %x) cold noinline optnone nounwind {
entry:
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %biased = and i64 %shifted, 2047
  %small = icmp ult i64 %biased, 1043
  %exponent = select i1 %small, i64 1043, i64 %biased
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %start = sub i64 %exponent, 1013
  %index = lshr i64 %start, 6
  %shift = and i64 %start, 63
  %p0 = getelementptr i64, ptr @srcgrad_two_over_pi, i64 %index
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %w0 = load i64, ptr %p0, align 8
  %w1 = load i64, ptr %p1, align 8
  %w2 = load i64, ptr %p2, align 8
  %w3 = load i64, ptr %p3, align 8
  %a0 = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %a1 = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %a2 = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  %wide = zext i64 %m to i128
  %b1 = zext i64 %a1 to i128
  %b2 = zext i64 %a2 to i128
  %lowest = mul i128 %wide, %b2
  %carry = lshr i128 %lowest, 64
  %second = mul i128 %wide, %b1
  %middle = add i128 %second, %carry
  %above = lshr i128 %middle, 64
  %over = trunc i128 %above to i64
  %first = mul i64 %m, %a0
  %top = add i64 %first, %over
  %middle64 = trunc i128 %middle to i64
  %lowest64 = trunc i128 %lowest to i64
  %t0 = zext i64 %top to i192
  %t1 = zext i64 %middle64 to i192
  %t2 = zext i64 %lowest64 to i192
  %u0 = shl i192 %t0, 128
  %u1 = shl i192 %t1, 64
  %u01 = or i192 %u0, %u1
  %product = or i192 %u01, %t2
  %lifted = shl i192 %product, 2
  %signed = ashr i192 %lifted, 2
  %rest = sub i192 %product, %signed
  %turns = lshr i192 %rest, 190
  %n = trunc i192 %turns to i64
  %minus = icmp slt i192 %signed, 0
  %negated = sub i192 0, %signed
  %size = select i1 %minus, i192 %negated, i192 %signed
  %zeros = call i192 @llvm.ctlz.i192(i192 %size, i1 false)
  %normal = shl i192 %size, %zeros
  %h = lshr i192 %normal, 139
  %l = lshr i192 %normal, 86
  %h64 = trunc i192 %h to i64
  %l64 = trunc i192 %l to i64
  %l53 = and i64 %l64, 9007199254740991
  %high = sitofp i64 %h64 to double
  %low = sitofp i64 %l53 to double
  %count = trunc i192 %zeros to i64
  %power = sub i64 972, %count
  %place = shl i64 %power, 52
  %sign = select i1 %minus, i64 -9223372036854775808, i64 0
  %scaled = or i64 %place, %sign
  %unit = bitcast i64 %scaled to double
  %lower = fmul double %low, 0x3CA0000000000000
  %found0 = fmul double %high, %unit
  %found1 = fmul double %lower, %unit
  %negative = icmp slt i64 %bits, 0
  %opposite0 = fneg double %found0
  %opposite1 = fneg double %found1
  %oppositen = sub i64 0, %n
  %r0 = select i1 %negative, double %opposite0, double %found0
  %r1 = select i1 %negative, double %opposite1, double %found1
  %rn = select i1 %negative, i64 %oppositen, i64 %n
  %s0 = insertvalue { double, double, i64 } poison, double %r0, 0
  %s1 = insertvalue { double, double, i64 } %s0, double %r1, 1
  %s2 = insertvalue { double, double, i64 } %s1, i64 %rn, 2
  ret { double, double, i64 } %s2
}"""
