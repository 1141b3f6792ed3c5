"""Division and remainders of whole and floating numbers, whole powers, common divisors, and the bits of floats.

NumPy's results where hardware has none: a whole number divided by 0 is 0, and the least one by -1 wraps around.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.scalars import F16
from srcgrad.backends.llvm.steps import Step, StepWriter
from srcgrad.backends.llvm.steps.body import Body
from srcgrad.backends.llvm.steps.elements import Function, elementwise
from srcgrad.backends.llvm.target import Target
from srcgrad.backends.llvm.vector_math import FUNCTIONS
from srcgrad.ir.core import Literal, Operation

# --- division -----------------------------------------------------------------------------------------------------


def _safe(e: Emitter, a: Number, b: Number) -> tuple[Number, Number]:
    """A divisor by which any number may be divided, and whether it is the given one."""
    fine = e.compare("ne", b, 0)
    if a.dtype.kind == "i":
        least = int(np.iinfo(a.dtype).min)
        overflows = e.binary("and", e.compare("eq", a, least), e.compare("eq", b, -1))
        fine = e.binary("and", fine, e.invert(overflows))
    return e.select(fine, b, 1), fine


def _all_bits(e: Emitter, condition: Number, a: Number) -> Number:
    """-1 where the condition holds, else 0: LLVM makes branches of selects of scalars, which are often mispredicted."""
    return e.convert("sext", condition, a.dtype)


def _whole_quotient(e: Emitter, a: Number, b: Number) -> Number:
    """Rounded down; by 0 it is 0, and by 1 in the place of -1 the least number is itself."""
    divisor, _ = _safe(e, a, b)
    if a.dtype.kind == "u":
        found = e.binary("udiv", a, divisor)
    else:
        found = e.binary("sdiv", a, divisor)
        rest = e.integer("sub", a, e.integer("mul", found, divisor))
        opposite = e.compare("slt", e.binary("xor", rest, divisor), 0)
        down = e.binary("and", e.compare("ne", rest, 0), opposite)
        found = e.integer("add", found, _all_bits(e, down, found))
    return e.select(e.compare("eq", b, 0), 0, found)


def _whole_rest(e: Emitter, a: Number, b: Number, floored: bool) -> Number:
    divisor, fine = _safe(e, a, b)
    rest = e.binary("urem" if a.dtype.kind == "u" else "srem", a, divisor)
    if floored and a.dtype.kind == "i":
        opposite = e.compare("slt", e.binary("xor", rest, divisor), 0)
        up = e.binary("and", e.compare("ne", rest, 0), opposite)
        rest = e.integer("add", rest, e.integer("and", _all_bits(e, up, rest), divisor))
    return e.select(fine, rest, 0)


def _division(name: str, whole: Function) -> Function:
    """Of whole numbers, or of floats."""
    return lambda e, a, b: FUNCTIONS[name](e, a, b) if a.dtype.kind == "f" else whole(e, a, b)


# --- division by a number that is known ---------------------------------------------------------------------------


def _high_product(e: Emitter, a: Number, factor: int) -> Number:
    """The upper 64 bits of the product with a constant, without signs, from products of halves."""
    mask, half = 2**32 - 1, 32
    low, high = e.integer("and", a, mask), e.integer("lshr", a, half)
    first, second = e.like(factor & mask, a), e.like(factor >> half, a)
    carried = e.integer("lshr", e.integer("mul", low, first), half)
    middle = e.integer("add", e.integer("mul", high, first), carried)
    other = e.integer("add", e.integer("mul", low, second), e.integer("and", middle, mask))
    upper = e.integer("add", e.integer("mul", high, second), e.integer("lshr", middle, half))
    return e.integer("add", upper, e.integer("lshr", other, half))


def _quotient_by(e: Emitter, a: Number, divisor: int) -> Number:
    """The quotient, rounded down: of negative numbers by positive ones ~(~a // d).

    A number below 2**63 by d is the product with m = ceil(2**(63 + s) / d), shifted right by 63 + s, for 2**s >= d: m d
    is larger than 2**(63 + s) by less than 2**s (Granlund and Montgomery 1994). m has 64 bits.
    """
    signed, bits = a.dtype.kind == "i", 8 * a.dtype.itemsize
    if divisor < 0:
        found = e.binary("sdiv", a, e.like(divisor, a))
        rest = e.integer("sub", a, e.integer("mul", found, e.like(divisor, a)))
        return e.integer("add", found, _all_bits(e, e.compare("sgt", rest, 0), a))
    if divisor & (divisor - 1) == 0:
        return e.integer("ashr" if signed else "lshr", a, divisor.bit_length() - 1)
    if not signed:
        return e.binary("udiv", a, e.like(divisor, a))
    sign = e.integer("ashr", a, bits - 1)
    size = e.integer("xor", a, sign)
    if bits < 64:
        found = e.binary("udiv", size, e.like(divisor, a))
    else:
        shift = (divisor - 1).bit_length()
        found = e.integer("lshr", _high_product(e, size, -(-(2 ** (63 + shift)) // divisor)), shift - 1)
    return e.integer("xor", found, sign)


def _rest_by(e: Emitter, a: Number, divisor: int, floored: bool) -> Number:
    rest = e.integer("sub", a, e.integer("mul", _quotient_by(e, a, divisor), e.like(divisor, a)))
    if floored or a.dtype.kind == "u":
        return rest
    opposite = e.compare("slt" if divisor > 0 else "sgt", a, 0)
    up = e.binary("and", opposite, e.compare("ne", rest, 0))
    return e.integer("sub", rest, e.integer("and", _all_bits(e, up, a), e.like(divisor, a)))


def by_constant(operation: Operation, name: str, target: Target) -> Step | None:
    """Whole numbers by one that is known, and neither 0 nor -1: products, in vectors."""
    divisor = operation.operands[1]
    if not isinstance(divisor, Literal) or not divisor.splat or divisor.type.dtype.kind not in "iu":
        return None
    number, op = int(divisor.value), operation.op.name
    if number in (0, -1) or isinstance(operation.operands[0], Literal):
        return None

    def function(e: Emitter, a: Number, _: Number) -> Number:
        return _quotient_by(e, a, number) if op == "floor_divide" else _rest_by(e, a, number, op == "remainder")

    # Of long numbers by others LLVM has no vectors.
    scalar = number < 0 or (divisor.type.dtype == np.uint64 and number & (number - 1))
    scalar = scalar and divisor.type.dtype.itemsize == 8
    return elementwise(operation, name, target, function, 1 if scalar else None)


def _divided(name: str, whole: Function) -> StepWriter:
    def write(operation: Operation, step: str, target: Target) -> Step | None:
        return by_constant(operation, step, target) or _loop(_division(name, whole), 1)(operation, step, target)

    return write


# --- whole numbers ------------------------------------------------------------------------------------------------


def _magnitude(e: Emitter, a: Number) -> Number:
    """The absolute value as an unsigned number, so that the least one has one too."""
    return scalars.TABLE["abs"](e, a)._replace(dtype=np.dtype(f"u{a.dtype.itemsize}"))


def _bit_count(e: Emitter, a: Number) -> Number:
    return scalars.cast(e, e.intrinsic("ctpop", _magnitude(e, a)), np.dtype(np.uint8))


def gcd_of(w: Body, a: Number, b: Number) -> Number:
    """Euclid's algorithm."""

    def step(state: list[Number]) -> list[Number]:
        return [state[1], w.e.binary("urem", state[0], state[1])]

    start = [_magnitude(w.e, x) for x in (a, b)]
    return w.while_(start, lambda state: w.e.compare("ne", state[1], 0), step)[0]


def common(operation: Operation, name: str, target: Target) -> Step | None:
    """``gcd`` and ``lcm``, of which the latter wraps around."""
    w = Body(operation, name, target)
    dtype = w.types[0].dtype
    least = operation.op.name == "lcm"

    def place(k: Number) -> None:
        a, b = w.read(0, k), w.read(1, k)
        found = gcd_of(w, a, b)
        if least:
            divisor = w.e.select(w.e.compare("eq", found, 0), w.e.like(1, found), found)
            found = w.e.integer("mul", w.e.binary("udiv", _magnitude(w.e, a), divisor), _magnitude(w.e, b))
        w.write(k, found._replace(dtype=dtype))

    w.each(w.results[0].size, place)
    return w.finish(in_place=0)


def power(operation: Operation, name: str, target: Target) -> Step | None:
    """Whole powers of whole numbers, by squaring; NumPy raises if an exponent is negative."""
    w = Body(operation, name, target)
    dtype = w.types[0].dtype
    if dtype.kind not in "iu":
        return None
    e, size = w.e, w.results[0].size
    if dtype.kind == "i":
        w.each(size, lambda k: w.require(e.compare("sge", w.read(1, k), 0)))

    def step(state: list[Number]) -> list[Number]:
        found, base, exponent = state
        odd = e.compare("ne", e.integer("and", exponent, 1), 0)
        more = e.select(odd, e.integer("mul", found, base), found)
        return [more, e.integer("mul", base, base), e.integer("lshr", exponent, 1)]

    def place(k: Number) -> None:
        state = [e.constant(1, dtype), w.read(0, k), w.read(1, k)]
        w.write(k, w.while_(state, lambda now: e.compare("ne", now[2], 0), step)[0])

    w.each(size, place)
    return w.finish(in_place=0)


def constant_power(operation: Operation, name: str, target: Target) -> Step | None:
    """A power whose exponent is known: of floats that of ``pow``, or the inverse."""
    exponent, kind = operation.attrs["y"], operation.operands[0].type.dtype.kind
    if kind != "f" or abs(exponent) > 2**53:
        return None

    def function(e: Emitter, a: Number) -> Number:
        return e.div(1.0, a) if exponent == -1 else FUNCTIONS["pow"](e, a, e.like(float(exponent), a))

    return elementwise(operation, name, target, function)


# --- casts --------------------------------------------------------------------------------------------------------


def cast(operation: Operation, name: str, target: Target) -> Step | None:
    """Casts between float16 and all but float64 (which would be rounded twice), and from floats to unsigned numbers."""
    source, dtype = operation.operands[0].type.dtype, operation.results[0].type.dtype
    if not (scalars.is_register(source) and scalars.is_register(dtype)):
        return None
    if source.kind == "f" and dtype.kind == "u":
        return _unsigned(operation, name, target)
    if F16 not in (source, dtype) or source == F64:
        return None
    return elementwise(operation, name, target, lambda e, a: scalars.cast(e, a, F32 if dtype == F16 else dtype))


def _unsigned(operation: Operation, name: str, target: Target) -> Step:
    """What does not fit is the machine's choice: NumPy makes it."""
    w = Body(operation, name, target)
    e, dtype = w.e, w.results[0].dtype

    def place(k: Number) -> None:
        number = w.read(0, k)
        number = e.convert("fpext", number, F32) if number.dtype == F16 else number
        fits = e.binary("and", e.compare("ogt", number, -1.0), e.compare("olt", number, 2.0 ** (8 * dtype.itemsize)))
        w.require(fits)
        w.write(k, e.convert("fptoui", number, dtype))

    w.each(w.results[0].size, place)
    return w.finish()


# --- floats and their exponents -----------------------------------------------------------------------------------


def _spacing(e: Emitter, a: Number) -> Number:
    """The difference to the next number away from 0; of -0.0 that of 0.0."""
    bits = e.bits(e.select(e.compare("oeq", a, 0.0), 0.0, a))
    nearest = e.from_bits(e.integer("add", bits, e.like(1, bits)))
    with e.strict():
        found = e.sub(nearest, a)
    return e.select(scalars.TABLE["is_finite"](e, a), found, e.like(np.nan, a))


def _nextafter(e: Emitter, a: Number, b: Number) -> Number:
    """The bits count up away from 0."""
    bits = e.bits(a)
    away = e.binary("xor", e.compare("olt", a, b), e.compare("olt", a, 0.0))
    one = e.like(1, bits)
    moved = e.from_bits(e.select(away, e.integer("add", bits, one), e.integer("sub", bits, one)))
    least = e.intrinsic("copysign", e.from_bits(one), b)
    found = e.select(e.compare("oeq", a, 0.0), least, moved)
    found = e.select(e.compare("oeq", a, b), b, found)
    return e.select(e.compare("uno", a, b), e.add(a, b), found)


def _loop(function: Function, lanes: int | None = None, halves: bool = True) -> StepWriter:
    """A step that is ``function`` at each element; ``halves``: whether float16 is computed in float32."""

    def write(operation: Operation, name: str, target: Target) -> Step | None:
        if not halves and operation.operands[0].type.dtype == F16:
            return None
        return elementwise(operation, name, target, function, lanes)

    return write


WRITERS: Final[dict[str, StepWriter]] = {
    # Whole numbers have no vectors for others; floats are here only where registers hold no numbers of their dtype.
    "floor_divide": _divided("floor_divide", _whole_quotient),
    "remainder": _divided("remainder", partial(_whole_rest, floored=True)),
    "fmod": _divided("fmod", partial(_whole_rest, floored=False)),
    "bitwise_count": _loop(_bit_count),
    "gcd": common,
    "lcm": common,
    "pow": power,
    "integer_pow": constant_power,
    "cast": cast,
    "spacing": _loop(_spacing, halves=False),
    "nextafter": _loop(_nextafter, halves=False),
}
