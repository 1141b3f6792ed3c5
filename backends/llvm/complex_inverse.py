"""Logarithms, powers and inverse functions of complex numbers on their parts: each part accurate on its own.

Inverse functions are computed in the first quadrant, and given the signs of the operand's parts, which say on which
side of a cut a number is. Sources: Kahan 1987, *Branch cuts for complex elementary functions*; ISO C99, annex G, for
what is infinite or nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from srcgrad.backends.llvm.complex_math import (
    ARITHMETIC,
    LOG_HYPOT,
    Parts,
    choose,
    div,
    exp,
    integer_pow,
    log,
    mul,
    times,
)
from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.opdef import REGISTRY, Term

LARGEST_EXPONENT: Final = 99
"""The whole powers for which NumPy takes products."""
_WITHIN: Final = 0.5
"""From where on the logarithm of 1 + z loses nothing to the sum."""


def both_scaled(a: Parts, factor: float) -> Parts:
    return Parts(times(a.real, a.real.like(factor)), times(a.imag, a.imag.like(factor)), a.turn)


def size(a: Term) -> Term:
    found: Term = REGISTRY["abs"](a)
    return found


def signed(a: Term, like: Term) -> Term:
    """A number that is not negative, with the sign of another."""
    return choose(REGISTRY["sign_bit"](like), -a, a)


def is_endless(u: Term, v: Term) -> Term:
    found: Term = REGISTRY["is_inf"](u) | REGISTRY["is_inf"](v)
    return found


# --- exponentials and logarithms -------------------------------------------------------------------
def expm1(a: Parts) -> Parts:
    """e**x cos y - 1 = (e**x - 1) cos y - 2 sin²(y/2)."""
    x, y = a.real, a.imag
    half = REGISTRY["sin"](y * 0.5)
    real = times(REGISTRY["expm1"](x), REGISTRY["cos"](y)) - times(half + half, half)
    return Parts(real, times(REGISTRY["exp"](x), REGISTRY["sin"](y)))


def log1p(a: Parts) -> Parts:
    """Near 0 the real part is log(1 + 2x + x² + y²)/2, where the absolute value of 1 + z loses what z has."""
    x, y = a.real, a.imag
    near = (size(x) < _WITHIN) & (size(y) < _WITHIN)
    inner, other = choose(near, x, x.like(0)), choose(near, y, y.like(0))
    small = REGISTRY["log1p"](times(inner, inner + 2.0) + times(other, other)) * 0.5
    above = x + 1.0
    return Parts(choose(near, small, LOG_HYPOT(above, y)), REGISTRY["arctan2"](y, above))


# --- powers ----------------------------------------------------------------------------------------
def power(a: Parts, y: Parts) -> Parts:
    """A known power: by a whole number products, else exp(y log z); of 0 it is 0, or nan where that is not defined."""
    exponent = known_exponent(y.real.value, y.imag.value)
    if is_whole(exponent):
        return whole_power(a, int(exponent.real))
    logarithm = log(a)
    product = mul(y, logarithm)
    if not exponent.imag:  # of an infinite logarithm with an angle that is nan the size is known
        product = Parts(times(y.real, logarithm.real), product.imag)
    return of_nothing(a, exp(product), 0.0 if exponent.real > 0 else np.nan)


def whole_power(a: Parts, y: int) -> Parts:
    """By squaring, and of a negative one the quotient of 1 by that, which 0 has not."""
    if y >= 0:
        return integer_pow(a, y)
    found = div(Parts(a.real.like(1), a.real.like(0)), integer_pow(a, -y))
    return of_nothing(a, found, np.nan)


def of_nothing(a: Parts, usual: Parts, value: float) -> Parts:
    """Another number where ``a`` is 0."""
    nothing, other = (a.real == 0.0) & (a.imag == 0.0), a.real.like(value)
    return Parts(choose(nothing, other, usual.real), choose(nothing, other, usual.imag))


def known_exponent(real: Value, imag: Value) -> complex:
    assert isinstance(real, Literal) and isinstance(imag, Literal)
    return complex(real.value, imag.value)


def is_whole(exponent: complex) -> bool:
    """Whether NumPy takes products."""
    return not exponent.imag and exponent.real.is_integer() and abs(exponent.real) <= LARGEST_EXPONENT


# --- inverse functions -----------------------------------------------------------------------------
class Roots(NamedTuple):
    """For z = u + iv in the first quadrant a - ib = sqrt(1 - z) and c + id = sqrt(1 + z), of scaled numbers."""

    u: Term
    v: Term
    a: Term
    b: Term
    c: Term
    d: Term
    length: Term
    """arcsinh(ad + bc): the size of the imaginary part of arcsin z, and of arccos z."""


def roots(u: Term, v: Term) -> Roots:
    """All four are not negative, so that nothing cancels in the sums of their products.

    Numbers near the largest are divided by 16, with the 1: arcsinh(t) is arcsinh(t/16) + log 16 there. Where v is
    nearly subnormal and u below 1, the length is proportional to v, and v is multiplied.
    """
    limits = np.finfo(u.dtype)
    huge = REGISTRY["maximum"](u, v) > float(limits.max / 16)
    lift = 2.0 ** (limits.nmant + 8)
    faint = (v < float(limits.tiny) * lift) & (u < 1.0)
    one = choose(huge, u.like(1 / 16), u.like(1))
    u, v = times(u, one), times(v, choose(faint, v.like(lift), one))
    below, above = one - u, one + u
    large, small = root(below, v)
    left = below < 0.0
    a, b = choose(left, small, large), choose(left, large, small)
    c, d = root(above, v)
    spread = choose(is_endless(u, v), u.like(np.inf), times(a, d) + times(b, c))
    length = REGISTRY["arcsinh"](spread) + choose(huge, u.like(math.log(16)), u.like(0))
    return Roots(u, v, a, b, c, d, times(length, choose(faint, u.like(1 / lift), u.like(1))))


def root(x: Term, v: Term) -> tuple[Term, Term]:
    """The larger part of sqrt(x + iv), which is the real one unless x is negative, and the smaller one."""
    absolute = size(x)
    double: Term = REGISTRY["sqrt"]((REGISTRY["hypot"](absolute, v) + absolute) * 2.0)
    return double * 0.5, choose(double == 0.0, v, v / double)


def arcsin(a: Parts) -> Parts:
    x, y = a.real, a.imag
    u, v = size(x), size(y)
    r = roots(u, v)
    beside = choose(is_endless(u, v), v, times(r.a, r.c) + times(r.b, r.d))
    real = choose(u == 0.0, u, REGISTRY["arctan2"](r.u, beside))
    return Parts(signed(real, x), signed(r.length, y))


def arccos(a: Parts) -> Parts:
    """Twice the angle of which a/c is the tangent, or c/a at the left; far out the angle of z."""
    x, y = a.real, a.imag
    u, v = size(x), size(y)
    r, endless, left = roots(u, v), is_endless(u, v), REGISTRY["sign_bit"](x)
    over, under = choose(left, r.c, r.a), choose(left, r.a, r.c)
    angle = REGISTRY["arctan2"](choose(endless, v, over), choose(endless, x, under))
    real = choose((u == 0.0) & (y != y), x.like(math.pi / 2), times(angle, choose(endless, x.like(1), x.like(2))))
    return Parts(real, signed(r.length, -y))


def arctanh(a: Parts) -> Parts:
    """log(1 + 4u/((1 - u)² + v²))/4 + i/2 arctan2(2v, (1 - u)(1 + u) - v²).

    What is large is scaled, with the 1; beside 1, where v² may be 0, the logarithm is that of 2/v.
    """
    x, y = a.real, a.imag
    u, v = size(x), size(y)
    bits, shift = int(np.finfo(x.dtype).maxexp), 64 if x.dtype.itemsize == 8 else 32
    one = choose(REGISTRY["maximum"](u, v) > 2.0 ** (bits // 2 - 8), u.like(2.0 ** -(bits * 75 // 128)), u.like(1))
    inner, other = times(u, one), times(v, one)
    below, above = one - inner, one + inner
    square = times(other, other)
    beside = (below == 0.0) & (other < 2.0 ** -(bits * 7 // 16))
    usual = times(4.0 * inner / (times(below, below) + square), one)
    ratio = choose(beside, u.like(2.0 ** (1 - shift)) / other, usual)
    real = times(REGISTRY["log1p"](ratio), choose(beside, u.like(0.5), u.like(0.25)))
    real = real + choose(beside, u.like(shift * math.log(2) / 2), u.like(0))
    imag = REGISTRY["arctan2"](times(other + other, one), times(below, above) - square) * 0.5
    endless = is_endless(u, v)
    real = choose(endless | (u == 0.0), u.like(0), real)
    imag = choose(endless & (y == y), u.like(math.pi / 2), imag)
    return Parts(signed(real, x), signed(imag, y))


def turned(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """z -> -i f(iz): of arcsin it is arcsinh, of arctanh arctan."""

    def apply(a: Parts) -> Parts:
        found = function(Parts(-a.imag, a.real))
        return Parts(found.imag, -found.real)

    return apply


def arccosh(a: Parts) -> Parts:
    """i arccos z or -i arccos z, whichever is at the right."""
    found = arccos(a)
    return Parts(size(found.imag), signed(found.real, a.imag))


def has_rule(operation: Operation) -> bool:
    """Whether an operation is in `RULES` with its attributes, and powers with an exponent that is known."""
    name = operation.op.name
    if name == "integer_pow":
        return bool(abs(operation.attrs["y"]) <= LARGEST_EXPONENT)
    if name == "pow":
        exponent = operation.operands[1]
        return isinstance(exponent, Literal) and exponent.splat
    return name in RULES or name == "iota"


RULES: Final[Mapping[str, Callable[..., Parts | Term]]] = {
    **ARITHMETIC,
    "expm1": expm1,
    "exp2": lambda a: exp(both_scaled(a, math.log(2))),
    "log1p": log1p,
    "log2": lambda a: both_scaled(log(a), math.log2(math.e)),
    "log10": lambda a: both_scaled(log(a), math.log10(math.e)),
    "arcsin": arcsin,
    "arccos": arccos,
    "arctan": turned(arctanh),
    "arcsinh": turned(arcsin),
    "arccosh": arccosh,
    "arctanh": arctanh,
    "integer_pow": lambda a, y: integer_pow(a, y) if y >= -1 else whole_power(a, y),
    "pow": power,
}
"""By op, what it is of the parts: operands that are complex are given as these, real ones as they are."""
