"""Special functions written as others that loops compute: in registers, with what makes their operands and reads them.

They are computed in float64, and rounded once. Sources: NIST Digital Library of Mathematical Functions, chapters 4 and
7; what they are where it matters how, the text of NumPy and SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, F64
from srcgrad.backends.llvm.vector_math import LARGEST_POWER
from srcgrad.ir.core import Attrs, Literal, Operation
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.ops.power import splat_number
from srcgrad.ir.types import DType

Expansion = Callable[[Sequence[Term], Attrs], Term]
C128: Final = np.dtype(np.complex128)
LARGEST_ORDER: Final = 4
"""The derivatives that are written out: of higher ones the polynomials are long."""
HALVES: Final = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5)
"""Exponents whose powers take a root, and at most two roundings more."""
LARGEST_WHOLE: Final = 64
"""The exponents of whole numbers whose powers are written out as products."""
TERMS: Final = 13
"""The terms of the series of sinc, of arguments of at most 2 in radians: the next one is less than 1e-19."""


def as_dtype(a: Term, dtype: DType) -> Term:
    return a if a.dtype == dtype else REGISTRY["cast"](a, dtype=dtype)


def in_float64(function: Expansion) -> Expansion:
    """The same of the operands as float64, or complex128, in the operands' type."""

    def widened(operands: Sequence[Term], attrs: Attrs) -> Term:
        wide = [as_dtype(x, C128 if x.dtype.kind == "c" else F64) for x in operands]
        return as_dtype(function(wide, attrs), operands[0].dtype)

    return widened


def pow_log(operands: Sequence[Term], attrs: Attrs) -> Term:
    """x**y log(x)**n, where the power wins if the logarithm is infinite."""
    x, y = operands
    logarithm = REGISTRY["log"](x)
    factor = logarithm if attrs["n"] == 1 else REGISTRY["integer_pow"](logarithm, y=attrs["n"])
    exponent = REGISTRY["real"](y) if y.dtype.kind == "c" else y
    vanishes = ((x == 0.0) & (exponent > 0.0)) | (REGISTRY["is_inf"](x) & (exponent < 0.0))
    found: Term = REGISTRY["select"](vanishes, x.like(0), REGISTRY["pow"](x, y) * factor)
    return found


def power_with_logarithm(operands: Sequence[Term], attrs: Attrs) -> Term:
    """`pow_log` of complex numbers, or of floats."""
    function = pow_log if operands[0].dtype.kind == "c" else in_float64(pow_log)
    return function(operands, attrs)


def half_power(operands: Sequence[Term], attrs: Attrs) -> Term:
    """x**(k/2) for k in `HALVES`, by a root: with its values at -0.0 and -inf, where the root has others.

    The square of x is subnormal or infinite only where the power is infinite, or 0.
    """
    exponent, x = splat_number(operands[1]), operands[0] + 0.0
    assert isinstance(exponent, float)
    root: Term = REGISTRY["sqrt"](x)
    power = root if exponent > 0 else 1.0 / root
    if abs(exponent) > 1:
        factor = x if abs(exponent) < 2 else x * x
        power = factor * power if exponent > 0 else power / factor
    found: Term = REGISTRY["select"](x == -math.inf, x.like(math.inf if exponent > 0 else 0.0), power)
    return found


def whole_power(operands: Sequence[Term], attrs: Attrs) -> Term:
    """A known power of whole numbers, by squaring from the highest bit: products wrap around as NumPy's do."""
    exponent = splat_number(operands[1])
    assert isinstance(exponent, float)
    if not exponent:
        return operands[0].like(1)
    found = operands[0]
    for bit in f"{int(exponent):b}"[1:]:
        found = found * found
        found = found * operands[0] if bit == "1" else found
    return found


def known_power(operands: Sequence[Term], attrs: Attrs) -> Term:
    """Of floats by a whole number products with their errors, which are nearer to the truth than `pow` is."""
    x, exponent = operands[0], splat_number(operands[1])
    if x.dtype.kind != "f":
        return whole_power(operands, attrs)
    if exponent in HALVES:
        return half_power(operands, attrs)
    assert isinstance(exponent, float)
    found: Term = REGISTRY["integer_pow"](x, y=int(exponent)) if exponent else x.like(1)
    return found


def high_power(operands: Sequence[Term], attrs: Attrs) -> Term:
    """A whole power of more factors than are written out: `pow`, which is part of loops."""
    found: Term = REGISTRY["pow"](operands[0], float(attrs["y"]))
    return found


def gaussian(operands: Sequence[Term], attrs: Attrs) -> Term:
    """The n-th derivative of exp(-a x²): the Hermite polynomial, by its recurrence, times that; 0 where that is."""
    (x,), factor = operands, -2.0 * attrs["a"]
    polynomial, lower = x * factor, x.like(1)
    for k in range(1, attrs["n"]):
        polynomial, lower = (x * polynomial + lower * float(k)) * factor, polynomial
    value = polynomial * REGISTRY["gaussian"](x, n=0, a=attrs["a"])
    found: Term = REGISTRY["select"](REGISTRY["abs"](x) > 100.0, x.like(0), value)
    return found


def logit(operands: Sequence[Term], attrs: Attrs) -> Term:
    """log(x/(1 - x)); log(1 + (2x - 1)/(1 - x)), whose numerator is exact round 1/2, from there on."""
    (x,) = operands
    log, log1p = REGISTRY["log"], REGISTRY["log1p"]
    found: Term = REGISTRY["select"](x < 0.3, log(x / (1.0 - x)), log1p((x * 2.0 - 1.0) / (1.0 - x)))
    return found


def log_ratio(operands: Sequence[Term], attrs: Attrs) -> Term:
    """log(x/y), accurate where x is near y; log(x) - log(y) where the quotient may be subnormal or infinite."""
    x, y = operands
    select, size, log = REGISTRY["select"], REGISTRY["abs"], REGISTRY["log"]
    ratio = x / y
    inexact = (size(ratio) < 1e-30) | (size(ratio) > 1e30)
    apart = log(select(inexact, x, ratio)) - log(select(inexact, y, y.like(1)))
    found: Term = select(size(x - y) < 0.5 * size(y), REGISTRY["log1p"]((x - y) / y), apart)
    return found


def rel_entr(operands: Sequence[Term], attrs: Attrs) -> Term:
    """x log(x/y); 0 where x is 0 and y >= 0, and inf outside of the first quadrant."""
    x, y = operands
    select = REGISTRY["select"]
    outside = select((x == x) & (y == y), x.like(math.inf), x + y)
    found: Term = select(
        (x > 0.0) & (y > 0.0), x * log_ratio(operands, attrs), select((x == 0.0) & (y >= 0.0), x.like(0), outside)
    )
    return found


def xlogy(operands: Sequence[Term], attrs: Attrs) -> Term:
    x, y = operands
    found: Term = REGISTRY["select"]((x == 0.0) & (y == y), x.like(0), x * REGISTRY["log"](y))
    return found


def ndtr(operands: Sequence[Term], attrs: Attrs) -> Term:
    """erfc(-x/√2)/2 (DLMF 7.2.2)."""
    found: Term = REGISTRY["erfc"](operands[0] * -math.sqrt(0.5)) * 0.5
    return found


def sinc(operands: Sequence[Term], attrs: Attrs) -> Term:
    """sin(u)/u, u = pi x, which is 1 of a tiny number."""
    u = operands[0] * math.pi
    u = REGISTRY["select"](u == 0.0, u.like(1e-20), u)
    found: Term = REGISTRY["sin"](u) / u
    return found


def sinc_derivative(operands: Sequence[Term], attrs: Attrs) -> Term:
    """The n-th derivative: a Taylor series near 0, and u f⁽ᵏ⁾ = sin⁽ᵏ⁾(u) - k f⁽ᵏ⁻¹⁾, f = sin(u)/u, elsewhere."""
    n, u = attrs["n"], operands[0] * math.pi
    near = REGISTRY["abs"](u) < 1.0 + n / 4
    small = REGISTRY["select"](near, u, u.like(0))
    first = (n + 1) // 2
    square, series = small * small, u.like(0)
    for k in reversed(range(first, first + TERMS)):
        series = series * square + (-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k - n))
    if n % 2:
        series = series * small + 0.0
    sine, cosine = REGISTRY["sin"](u), REGISTRY["cos"](u)
    closed = sine / u
    for k in range(1, n + 1):
        derivative = (sine, cosine, -sine, -cosine)[k % 4]
        closed = (derivative - closed * float(k)) / u
    found: Term = REGISTRY["select"](near, series, closed) * math.pi**n
    return found


def norm(operands: Sequence[Term], attrs: Attrs) -> Term:
    """The root of the sum of squares."""
    found: Term = REGISTRY["sqrt"](REGISTRY["reduce_sum"](REGISTRY["square"](operands[0]), **attrs))
    return found


def of_floats(operation: Operation) -> bool:
    """Whether all operands are numbers that registers hold."""
    return all(value.type.dtype in (F64, F32) for value in operation.operands)


def is_bell(operation: Operation) -> bool:
    attrs = operation.attrs
    return of_floats(operation) and 0 < attrs["n"] <= LARGEST_ORDER and attrs["a"] in scalars.BELLS


def is_power(operation: Operation) -> bool:
    return operation.results[0].type.dtype.kind == "c" or of_floats(operation)


def is_known_power(operation: Operation) -> bool:
    exponent = operation.operands[1]
    if not isinstance(exponent, Literal) or not exponent.splat:
        return False
    if of_floats(operation):
        number = float(exponent.value)
        return number in HALVES or (abs(number) <= LARGEST_POWER and number.is_integer())
    return exponent.type.dtype.kind in "iu" and 0 <= int(exponent.value) <= LARGEST_WHOLE


def is_high_power(operation: Operation) -> bool:
    """Whether no loop has it as products, and its exponent is a number of the base's type."""
    y, dtype = operation.attrs["y"], operation.operands[0].type.dtype
    return of_floats(operation) and abs(y) > LARGEST_POWER and int(dtype.type(y)) == y


def of_numbers(operation: Operation) -> bool:
    return operation.operands[0].type.dtype.kind == "c" or of_floats(operation)


def is_low(operation: Operation) -> bool:
    return of_numbers(operation) and operation.attrs["n"] <= LARGEST_ORDER


SPECIAL: Final[dict[str, tuple[Callable[[Operation], bool], Expansion]]] = {
    "gaussian": (is_bell, in_float64(gaussian)),
    "integer_pow": (is_high_power, high_power),
    "log_ratio": (of_floats, in_float64(log_ratio)),
    "logit": (of_floats, in_float64(logit)),
    "pow": (is_known_power, known_power),
    "pow_log": (is_power, power_with_logarithm),
    "ndtr": (of_floats, in_float64(ndtr)),
    "reduce_norm": (of_floats, norm),
    "rel_entr": (of_floats, in_float64(rel_entr)),
    "sinc": (of_numbers, in_float64(sinc)),
    "sinc_derivative": (is_low, in_float64(sinc_derivative)),
    "xlogy": (of_floats, in_float64(xlogy)),
}
"""By op, of which operations, and what they are."""
