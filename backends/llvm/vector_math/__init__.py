"""Elementary and some special functions of float64 and float32, as vectors of instructions.

`FUNCTIONS` maps the name of an op to what emits it inline, or as a call where the emitter is ``outlined``: long
programs compile sooner so. No LLVM passes are needed. What is rare (arguments of sin, cos and tan above 2**20, of
arcsinh and arccosh above 2**28, powers of what is not a plain positive number, quotients above 2**52) is a branch to a
cold function in the emitter's ``definitions``: the emitter's ``block`` is then another. float64 results are within 4
ULP, and mostly 2, gammaln within 5; float32 ones within 3.5, and mostly 2, or 0.75 where they are computed in float64
with polynomials of lower degree (`IN_FLOAT64`, all on machines without fused products, and pow without AVX-512);
tests/backends/llvm/test_vector_math.py has the table. Special values are NumPy's. Results depend neither on the number
of lanes nor on what the other lanes hold; from one kind of machine to another their last bits may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from srcgrad.backends.llvm.emitter import F32, F64, Emitter, Number
from srcgrad.backends.llvm.vector_math import (
    bessel,
    error,
    exponential,
    gamma,
    inverse,
    logarithm,
    plain,
    power,
    remainders,
    roots,
    trigonometric,
)
from srcgrad.backends.llvm.vector_math.basics import DOUBLE, SINGLE, WIDENED, has_avx512, out_of_line

Function = Callable[..., Number]


def _of_both_widths(name: str, function: Function) -> Function:
    """The function of a `Format` as one of float64 and of float32 numbers, with strict rounding."""

    def inline(e: Emitter, *operands: Number) -> Number:
        with e.strict():
            if operands[0].dtype != F32:
                return function(e, *operands, form=DOUBLE)
            if name not in IN_FLOAT64 and (has_avx512(e) if name == "pow" else "fma" in e.features):
                return function(e, *operands, form=SINGLE)
            wide = [e.convert("fpext", operand, F64) for operand in operands]
            return e.convert("fptrunc", function(e, *wide, form=WIDENED), F32)

    names = {dtype: f"{name}_{dtype}" for dtype in (F64, F32)}

    def emit(e: Emitter, *operands: Number) -> Number:
        if not e.outlined:
            return inline(e, *operands)
        return out_of_line(e, names[operands[0].dtype], inline, *operands, cold=False)

    emit.__name__, emit.__doc__ = function.__name__, function.__doc__
    return emit


_COMPUTED: Final[dict[str, Any]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "sech": exponential.sech,
    "sech_squared": exponential.sech_squared,
    "expit": exponential.expit,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "logaddexp": logarithm.logaddexp,
    "logaddexp2": logarithm.logaddexp2,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "arcsin": inverse.arcsin,
    "arccos": inverse.arccos,
    "arctan": inverse.arctan,
    "arctan2": inverse.arctan2,
    "arcsinh": inverse.arcsinh,
    "arccosh": inverse.arccosh,
    "arctanh": inverse.arctanh,
    "pow": power.pow,
    "cbrt": power.cbrt,
    "hypot": power.hypot,
    "log_hypot": power.log_hypot,
    "erf": error.erf,
    "erfc": error.erfc,
    "erfcx": error.erfcx,
    "bell": error.bell,
    "half_bell": error.half_bell,
    "gammaln": gamma.lgamma,
    "digamma": gamma.digamma,
    "trigamma": gamma.trigamma,
    **{f"i{order}": bessel.modified(order, False) for order in (0, 1, 2)},
    **{f"i{order}e": bessel.modified(order, True) for order in (0, 1)},
    **{f"i{order}e_slope": bessel.slope(order) for order in (0, 1)},
}

IN_FLOAT64: Final = frozenset(
    {"logaddexp", "logaddexp2", "log_hypot", "hypot", "erfc", "erfcx", "bell", "half_bell"}
    | {"gammaln", "digamma", "trigamma"}
    | {"i0", "i1", "i2", "i0e", "i1e", "i0e_slope", "i1e_slope"}
)
"""What of float32 numbers is computed in float64: their terms cancel, or overflow, or are raised to powers."""

LARGEST_POWER: Final = 32
"""The whole powers that are products."""


@cache
def whole_power(y: int) -> Function:
    """x**y of floats, 1 <= |y| <= `LARGEST_POWER`."""
    function = power.whole(y)
    return _of_both_widths(function.__name__, function)


FUNCTIONS: Final[dict[str, Function]] = {
    **{name: _of_both_widths(name, function) for name, function in _COMPUTED.items()},
    "sqrt": plain.of_intrinsic("sqrt"),
    "floor": plain.of_intrinsic("floor"),
    "ceil": plain.of_intrinsic("ceil"),
    "trunc": plain.of_intrinsic("trunc"),
    "rint": plain.of_intrinsic("rint"),
    "abs": plain.of_intrinsic("fabs"),
    "copysign": plain.copysign,
    "maximum": plain.maximum,
    "minimum": plain.minimum,
    "fmod": remainders.fmod,
    "remainder": remainders.remainder,
    "floor_divide": remainders.floor_divide,
    "sign": plain.sign,
    "square": plain.square,
    "reciprocal": plain.reciprocal,
    "one_minus_square": plain.one_minus_square,
    "inverse_root": roots.inverse_root,
    "inverse_root_of_product": roots.inverse_root_of_product,
    "arcsinh_slope": roots.arcsinh_slope,
    "over_square_of_hypot": roots.over_square_of_hypot,
}
