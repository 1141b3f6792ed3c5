"""Elementwise functions of one tensor: elementary functions, roundings, signs.

Where PyTorch keeps the result for the derivative (tanh, sigmoid, ...), so do these: a later change of the operand does
not matter then, and one of the result is an error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import Refusals, method, not_a_tensor, refused, store, unary
from srcgrad.torch.tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "conj_physical",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "frac",
    "log",
    "log1p",
    "log2",
    "log10",
    "nan_to_num",
    "neg",
    "negative",
    "positive",
    "rad2deg",
    "reciprocal",
    "relu",
    "relu_",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip

# --- signs --------------------------------------------------------------------------------------------

NO_MINUS: Refusals = {
    "b": (
        TensorError,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead.",
    )
}
neg = unary("neg", "NegBackward0", np.negative, accepts="iufc", casts="", refusals=NO_MINUS, aliases=("negative",),
            strict_out=True, quiet=True)  # fmt: skip
negative = neg
method("__neg__")(neg)
abs = absolute = unary("abs", "AbsBackward0", np.abs, accepts="iufc", casts="", inplace=False, aliases=("absolute",),
                       strict_out=True)  # fmt: skip
method("__abs__")(abs)
ABS = Op("abs", "AbsBackward0", np.abs)


@method("abs_", "absolute_")
def abs_(self: Tensor) -> Tensor:
    """The absolute value, written into the tensor, which must be real."""
    if self._data.dtype.kind == "c":
        raise TensorError("In-place abs is not supported for complex tensors.", hint="use y = x.abs()")
    return apply_inplace(ABS, self)


def signs(x: Any) -> Any:
    return x if x.dtype.kind == "b" else np.sign(x)


def real_signs(x: Any) -> Any:
    """-1, 0 or 1; 0 for nan, as in PyTorch."""
    return np.where(np.isnan(x), 0, np.sign(x)).astype(x.dtype) if x.dtype.kind == "f" else signs(x)


NO_COMPLEX_SIGN: Refusals = {
    "c": (
        TensorNotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    )
}
sign = unary("sign", "SignBackward0", real_signs, accepts="biuf", casts="", refusals=NO_COMPLEX_SIGN,
             strict_out=True)  # fmt: skip
sgn = unary("sgn", "SgnBackward0", lambda x: signs(x) if x.dtype.kind == "c" else real_signs(x), accepts="biufc",
            casts="", strict_out=True)  # fmt: skip


@method("positive", "__pos__")
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("positive", "input", 1, input)
    if input._data.dtype.kind == "b":
        raise TensorError("The `+` operator, on a bool tensor is not supported.")
    return input


# --- powers, exponentials, logarithms -----------------------------------------------------------------

sqrt = unary("sqrt", "SqrtBackward0", np.sqrt, saves_result=True)
rsqrt = unary("rsqrt", "RsqrtBackward0", lambda x: 1 / np.sqrt(x),
              pullback=lambda ct, y, x: ct * np.conj(-0.5 * y * y * y))  # fmt: skip
reciprocal = unary("reciprocal", "ReciprocalBackward0", np.reciprocal,
                   pullback=lambda ct, y, x: -ct * np.conj(y * y))  # fmt: skip
exp = unary("exp", "ExpBackward0", np.exp, saves_result=True)


def power_of_two(x: Any) -> Any:
    return np.exp(x * math.log(2)) if x.dtype.kind == "c" else np.exp2(x)


exp2 = unary("exp2", "Exp2Backward0", power_of_two, pullback=lambda ct, y, x: ct * np.conj(y * math.log(2)))
expm1 = unary("expm1", "Expm1Backward0", np.expm1, pullback=lambda ct, y, x: ct * np.conj(y + 1))
log = unary("log", "LogBackward0", np.log)
log2 = unary("log2", "Log2Backward0", np.log2)
log10 = unary("log10", "Log10Backward0", np.log10)
log1p = unary("log1p", "Log1PBackward0", np.log1p)

# --- angles -------------------------------------------------------------------------------------------

sin = unary("sin", "SinBackward0", np.sin)
cos = unary("cos", "CosBackward0", np.cos)
tan = unary("tan", "TanBackward0", np.tan, saves_result=True)
asin = arcsin = unary("asin", "AsinBackward0", np.arcsin, aliases=("arcsin",))
acos = arccos = unary("acos", "AcosBackward0", np.arccos, aliases=("arccos",))
atan = arctan = unary("atan", "AtanBackward0", np.arctan, aliases=("arctan",))
sinh = unary("sinh", "SinhBackward0", np.sinh)
cosh = unary("cosh", "CoshBackward0", np.cosh)
tanh = unary("tanh", "TanhBackward0", np.tanh, pullback=lambda ct, y, x: ct * np.conj(1 - y * y))
asinh = arcsinh = unary("asinh", "AsinhBackward0", np.arcsinh, aliases=("arcsinh",))
acosh = arccosh = unary("acosh", "AcoshBackward0", np.arccosh, aliases=("arccosh",))
atanh = arctanh = unary("atanh", "AtanhBackward0", np.arctanh, aliases=("arctanh",))


def sinc_of(x: Any) -> Any:
    """sin(pi x)/(pi x), 1 at 0."""
    if x.dtype.kind != "c":
        return np.sinc(x)
    angle = math.pi * np.where(x == 0, 1, x)
    return np.where(x == 0, 1, np.sin(angle) / angle)


sinc = unary("sinc", "SincBackward0", sinc_of)
deg2rad = unary("deg2rad", "Deg2RadBackward0", np.deg2rad, accepts="f",
                refusals={"c": (TensorError, "deg2rad is not supported for complex tensors.")})  # fmt: skip
rad2deg = unary("rad2deg", "Rad2DegBackward0", np.rad2deg, accepts="f",
                refusals={"c": (TensorError, "rad2deg is not supported for complex tensors.")})  # fmt: skip


def angle_of(x: Any) -> Any:
    """atan2(imag, real); of a real number pi or 0, and nan of nan."""
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real)
    zero = x.dtype.type(0)
    return np.where(x < 0, x.dtype.type(math.pi), np.where(np.isnan(x), x.dtype.type(math.nan), zero))


angle = unary("angle", "AngleBackward0", angle_of, inplace=False)

# --- activations --------------------------------------------------------------------------------------


def logistic(x: Any) -> Any:
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    found = expit(x)
    return found if found.dtype == x.dtype else found.astype(x.dtype)


sigmoid = unary("sigmoid", "SigmoidBackward0", logistic, pullback=lambda ct, y, x: ct * np.conj(y * (1 - y)))


def rectified(x: Any) -> Any:
    if type(x) is np.ndarray:
        return np.maximum(x, x.dtype.type(0))
    return np.where(x <= 0, x.dtype.type(0), x)


def rectified_pullback(cotangent: Any, y: Any, x: Any) -> Any:
    """PyTorch's: nothing at 0, all of it at nan."""
    return np.where(y <= 0, y.dtype.type(0), cotangent)


NO_RELU: Refusals = {
    "b": (TensorError, "Boolean inputs not supported for relu"),
    "c": (TensorNotImplementedError, "clamp is not supported for complex types"),
}
_relu = unary("relu", "ReluBackward0", rectified, accepts="iuf", casts="", refusals=NO_RELU,
              pullback=rectified_pullback, quiet=True)  # fmt: skip


def relu(input: Tensor) -> Tensor:
    """``max(input, 0)``, elementwise; its derivative at 0 is 0."""
    return _relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu`, written into the tensor."""
    return input.relu_()  # type: ignore[no-any-return]


# --- roundings ----------------------------------------------------------------------------------------


def rounding(name: str, node: str, function: Any, **options: Any) -> Any:
    """A rounding: of integers it is the number itself."""
    refusals: Refusals = {"c": (TensorNotImplementedError, f"{name} is not supported for complex inputs")}
    return unary(name, node, function, accepts="iuf", casts="", kernel=f"{name}_vml", refusals=refusals,
                 strict_out=True, quiet=True, **options)  # fmt: skip


def floored(x: Any) -> Any:
    return np.floor(x) if x.dtype.kind == "f" else +x


def ceiled(x: Any) -> Any:
    return np.ceil(x) if x.dtype.kind == "f" else +x


def truncated(x: Any) -> Any:
    return np.trunc(x) if x.dtype.kind == "f" else +x


floor = rounding("floor", "FloorBackward0", floored)
ceil = rounding("ceil", "CeilBackward0", ceiled)
trunc = fix = rounding("trunc", "TruncBackward0", truncated, aliases=("fix",))
frac = unary("frac", "FracBackward0", lambda x: x - np.trunc(x), accepts="f", casts="", strict_out=True)


def rounded(x: Any, decimals: int | None) -> Any:
    """To the nearest even number; to ``decimals`` places by scaling."""
    if decimals is None:
        return np.rint(x) if x.dtype.kind == "f" else +x
    scale = x.dtype.type(10.0 ** np.abs(decimals))
    return np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale


ROUND, ROUND_DECIMALS = Op("round", "RoundBackward0", rounded), Op("round", "RoundBackward1", rounded)


def rounding_of(input: Tensor, decimals: int | None) -> tuple[Op, tuple[int | None]]:
    if not isinstance(input, Tensor):
        raise not_a_tensor("round", "input", 1, input)
    kind = input._data.dtype.kind
    if kind in "bc" or (kind != "f" and decimals is not None):
        raise refused("round" if decimals is not None else "round_vml", input._data.dtype)
    return (ROUND if decimals is None else ROUND_DECIMALS), (decimals,)


@method("round")
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
    """The nearest whole numbers, halves to even ones; with ``decimals``, to so many places after the point."""
    op, statics = rounding_of(input, decimals)
    if out is not None and out._data.dtype != input._data.dtype:
        raise TensorError(f"Found dtype {named(out._data.dtype)} but expected {named(input._data.dtype)}")
    return store(out, apply(op, (input,), statics), "round")  # type: ignore[no-any-return]


@method("round_")
def round_(self: Tensor, *, decimals: int | None = None) -> Tensor:
    """`round`, written into the tensor."""
    op, statics = rounding_of(self, decimals)
    return apply_inplace(op, self, (), statics)


# --- nan, infinities, conjugates ----------------------------------------------------------------------


def finite(x: Any, nan: float, posinf: float | None, neginf: float | None) -> Any:
    """The numbers in place of nan and of the infinities; part by part for complex numbers."""
    if x.dtype.kind == "c":
        return finite(x.real, nan, posinf, neginf) + 1j * finite(x.imag, nan, posinf, neginf)
    if x.dtype.kind != "f":
        return +x if x.dtype.kind != "b" else x
    limits = np.finfo(x.dtype)
    high = x.dtype.type(limits.max if posinf is None else posinf)
    low = x.dtype.type(limits.min if neginf is None else neginf)
    infinite = np.where(x == np.inf, high, np.where(x == -np.inf, low, x))
    return np.where(np.isnan(x), x.dtype.type(nan), infinite)


NAN_TO_NUM = Op("nan_to_num", "NanToNumBackward0", finite)


def replacements(nan: Any, posinf: Any, neginf: Any) -> tuple[Any, ...]:
    return (
        0.0 if nan is None else float(nan),
        None if posinf is None else float(posinf),
        None if neginf is None else float(neginf),
    )


@method("nan_to_num")
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The tensor with nan replaced (by 0), and infinities (by the largest and smallest number of the dtype)."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("nan_to_num", "input", 1, input)
    if out is not None and out._data.dtype != input._data.dtype:
        raise TensorError(
            f"nan_to_num: dtype of out: {named(out._data.dtype)} should be same as input: {named(input._data.dtype)}"
        )
    return store(out, apply(NAN_TO_NUM, (input,), replacements(nan, posinf, neginf)))  # type: ignore[no-any-return]


@method("nan_to_num_")
def nan_to_num_(
    self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`nan_to_num`, written into the tensor."""
    return apply_inplace(NAN_TO_NUM, self, (), replacements(nan, posinf, neginf))


CONJ_PHYSICAL = Op("conj_physical", "ConjPhysicalBackward0", np.conj, quiet=True)
CONJ_PHYSICAL_INPLACE = Op("conj_physical_", "ConjPhysicalBackward1", np.conj, quiet=True)


@method("conj_physical")
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; a real tensor itself."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("conj_physical", "input", 1, input)
    if out is not None and out._data.dtype != input._data.dtype:
        raise TensorError(f"Found dtype {named(out._data.dtype)} but expected {named(input._data.dtype)}")
    found = apply(CONJ_PHYSICAL, (input,)) if input._data.dtype.kind == "c" else input
    return store(out, found, "conj_physical")  # type: ignore[no-any-return]


@method("conj_physical_")
def conj_physical_(self: Tensor) -> Tensor:
    """The complex conjugate, written into the tensor."""
    return apply_inplace(CONJ_PHYSICAL_INPLACE, self)


# --- in place -----------------------------------------------------------------------------------------

INPLACE = (
    "abs", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh", "atan",
    "atanh", "ceil", "conj_physical", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fix", "floor", "frac", "log",
    "log10", "log1p", "log2", "nan_to_num", "neg", "negative", "rad2deg", "reciprocal", "round", "rsqrt", "sigmoid",
    "sin", "sinc", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
"""In-place methods that PyTorch has as functions, too: ``torch.sin_(x)``."""

for _name in INPLACE:
    globals()[f"{_name}_"] = getattr(Tensor, f"{_name}_")
__all__ += [f"{_name}_" for _name in INPLACE]
