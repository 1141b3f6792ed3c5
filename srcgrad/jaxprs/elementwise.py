"""Primitives that work element by element, conversions of dtype, and choices between elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.special

from srcgrad.custom import custom_jvp
from srcgrad.ir.opdef import REGISTRY
from srcgrad.jaxprs.table import RULES, Equation, broadcast, filled, known, rule, select, traced
from srcgrad.tracing.tracer import Tracer, cast_value, emit, from_value

UNARY: Final = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "cbrt": "cbrt", "ceil": "ceil", "conj": "conj", "cos": "cos", "cosh": "cosh",
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "digamma": "digamma", "erf": "erf", "erf_inv": "erfinv", "erfc": "erfc",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "floor": "floor", "imag": "imag", "is_finite": "is_finite", "lgamma": "gammaln", "log": "log", "log1p": "log1p",
    "log2": "log2", "logistic": "expit", "neg": "neg", "real": "real", "sign": "sign", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "square": "square", "stop_gradient": "stop_gradient", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
BINARY: Final = {
    "add": "add", "add_any": "add", "atan2": "arctan2", "complex": "complex", "eq": "equal", "ge": "greater_equal",
    "gt": "greater", "le": "less_equal", "lt": "less", "max": "maximum", "min": "minimum", "mul": "mul",
    "ne": "not_equal", "igamma": "gammainc", "igammac": "gammaincc", "rem": "fmod", "sub": "sub", "zeta": "zeta",
}  # fmt: skip
SAME: Final = (
    "copy", "copy_p", "optimization_barrier", "sharding_constraint", "name", "pvary", "device_put", "reduce_precision",
    "mesh_cast",
)  # fmt: skip
"""What does not change the numbers: where they lie, and notes to the compiler."""


def unary(op: str) -> Any:
    return lambda e: emit(op, e.x)


def binary(op: str) -> Any:
    def apply(e: Equation) -> Tracer:
        left, right = same_shape(e)
        return emit(op, left, right)

    return apply


def same_shape(e: Equation) -> list[Tracer]:
    """The operands in one shape: a scalar literal may stand for an array."""
    shape = np.broadcast_shapes(*[x.shape for x in e.tracers])
    return [broadcast(x, shape) for x in e.tracers]


RULES.update({name: unary(op) for name, op in UNARY.items() if op in REGISTRY})
RULES.update({name: binary(op) for name, op in BINARY.items() if op in REGISTRY})


@rule(*SAME)
def same(e: Equation) -> list[Tracer]:
    if e.name == "reduce_precision":
        kept = np.finfo(e.dtype)
        if (e.params["exponent_bits"], e.params["mantissa_bits"]) != (kept.nexp, kept.nmant):
            raise e.unsupported(
                "reduce_precision rounds to a format of its own", "leave it out where it is to be differentiated"
            )
    return e.tracers


@rule("rsqrt")
def rsqrt(e: Equation) -> Tracer:
    return emit("reciprocal", emit("sqrt", e.x))


@rule("eq_to", "le_to", "lt_to")
def total_order(e: Equation) -> Tracer:
    """A comparison that puts nan last, equal to itself."""
    left, right = same_shape(e)
    found = emit({"eq_to": "equal", "le_to": "less_equal", "lt_to": "less"}[e.name], left, right)
    if left.dtype.kind != "f":
        return found
    last, first = emit("is_nan", right), emit("is_nan", left)
    if e.name != "le_to":
        last = emit("logical_and", last, first if e.name == "eq_to" else emit("logical_not", first))
    return emit("logical_or", found, last)


@rule("round")
def round_(e: Equation) -> Tracer:
    """To the nearest whole number; halves to the even one, or away from 0."""
    if "EVEN" in e.params["rounding_method"].name:
        return emit("rint", e.x)
    half = emit("floor", emit("add", emit("abs", e.x), filled(0.5, e.x.shape, e.dtype)))
    return emit("mul", emit("sign", e.x), half)


@rule("one_minus_square")
def one_minus_square(e: Equation) -> Any:
    """``(1 + x) (1 - x)``, with the derivative -2x: that of the product has lost the digits of a small ``x``."""
    ruled: Any = custom_jvp(lambda x: (1 + x) * (1 - x))

    def forward(primals: tuple[Any], tangents: tuple[Any]) -> Any:
        return ruled(*primals), -2 * primals[0] * tangents[0]

    ruled.defjvp(forward)
    return ruled(e.x)


@rule("polynomial")
def polynomial(e: Equation) -> Tracer:
    """The first operand's polynomial with the others as coefficients, the constant one first, by Horner's rule."""
    x, *coefficients = [broadcast(operand, e.shape) for operand in e.tracers]
    found = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        found = emit("add", emit("mul", found, x), coefficient)
    return found


@rule("integer_pow")
def integer_pow(e: Equation) -> Tracer:
    return emit("integer_pow", e.x, y=int(e.params["y"]))


@rule("pow")
def power(e: Equation) -> Tracer:
    left, right = same_shape(e)
    return emit("pow", left, converted(right, left.dtype))


@rule("div")
def divide(e: Equation) -> Tracer:
    """The quotient; of integers, rounded towards 0."""
    left, right = same_shape(e)
    if left.dtype.kind not in "iu":
        return emit("div", left, right)
    return emit("floor_divide", emit("sub", left, emit("fmod", left, right)), right)


@rule("and", "or", "xor")
def bitwise(e: Equation) -> Any:
    left, right = same_shape(e)
    if e.dtype == np.bool_:
        return emit(f"logical_{e.name}", left, right)
    return left & right if e.name == "and" else left | right if e.name == "or" else left ^ right


@rule("not")
def inverse(e: Equation) -> Any:
    return emit("logical_not", e.x) if e.dtype == np.bool_ else ~e.x


@rule("shift_left", "shift_right_arithmetic")
def shift(e: Equation) -> Any:
    left, right = same_shape(e)
    return left << right if e.name == "shift_left" else left >> right


@rule("shift_right_logical")
def shift_without_sign(e: Equation) -> Any:
    """The bits moved to the right, zeros put in from the left: what the arithmetic shift puts in is cut off."""
    left, right = same_shape(e)
    if e.dtype.kind == "u":
        return left >> right
    bits = filled(8 * e.dtype.itemsize, e.shape, e.dtype)
    kept = (filled(1, e.shape, e.dtype) << (bits - right)) - filled(1, e.shape, e.dtype)
    return select(emit("equal", right, filled(0, e.shape, e.dtype)), left, (left >> right) & kept)


@rule("population_count")
def population_count(e: Equation) -> Any:
    """The bits that are 1; NumPy counts those of a number's absolute value."""
    x = e.x
    if e.dtype.kind == "u":
        return np.bitwise_count(x)
    least = filled(np.iinfo(e.dtype).max, e.shape, e.dtype)
    sign = converted(emit("less", x, filled(0, e.shape, e.dtype)), e.dtype)
    return converted(traced(np.bitwise_count(x & least)), e.dtype) + sign


@rule("regularized_incomplete_beta")
def incomplete_beta(e: Equation) -> Any:
    function: Any = scipy.special.betainc
    return function(*same_shape(e))


@rule("polygamma")
def polygamma(e: Equation) -> Tracer:
    order = known(e.operands[0])
    if order is None or np.size(order) == 0 or np.any(order != np.ravel(order)[0]):
        raise e.unsupported("polygamma needs an order that is known", "pass the order as a constant")
    n, x = int(np.ravel(order)[0]), traced(e.operands[1])
    return emit("digamma", x) if n == 0 else emit("polygamma", x, n=n)


def converted(x: Tracer, dtype: np.dtype[Any]) -> Tracer:
    """The numbers in another dtype; of a complex number going to a real dtype, the real part."""
    return from_value(cast_value(x.read(), dtype), scalar=not x.shape)


@rule("convert_element_type")
def convert_element_type(e: Equation) -> Tracer:
    return converted(e.x, e.dtype)


@rule("select_n")
def select_n(e: Equation) -> Tracer:
    """The case that the first operand names, a bool or a number."""
    which, *cases = e.tracers
    if which.dtype == np.bool_:
        return select(which, cases[1], cases[0])
    found = cases[0]
    for number, case in enumerate(cases[1:], 1):
        found = select(emit("equal", which, filled(number, which.shape, which.dtype)), case, found)
    return found


@rule("clamp")
def clamp(e: Equation) -> Tracer:
    """``min(max(x, low), high)``, whose derivative at a bound is 0, as jax has it."""
    low, x, high = same_shape(e)
    inside = emit("logical_and", emit("greater", x, low), emit("less", x, high))
    if x.dtype.kind == "f":
        x = select(inside, x, emit("stop_gradient", x))
    clamped = select(emit("less", x, low), low, x)
    return select(emit("greater", clamped, high), high, clamped)
