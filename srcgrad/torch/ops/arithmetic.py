"""Elementwise arithmetic: sums, products, quotients, remainders, and what is made of three operands.

Gradients that PyTorch leaves out (`floor_divide`, `heaviside`, a number modulo a tensor) are there: 0 where the
function is constant, and the derivative of the smooth pieces elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.arguments import named_result
from srcgrad.torch.ops.define import (
    Binary,
    binary,
    install_operator,
    method,
    not_a_tensor,
    number,
    operand,
    pair,
    promoted,
    refused,
    renamed,
    store,
)
from srcgrad.torch.tensor import Tensor

__all__ = [
    "add", "addcdiv", "addcmul", "arctan2", "atan2", "copysign", "div", "divide", "floor_divide", "fmax", "fmin",
    "fmod", "frexp", "gcd", "heaviside", "hypot", "lcm", "ldexp", "lerp", "logaddexp", "logaddexp2", "maximum",
    "minimum", "mul", "multiply", "nextafter", "remainder", "rsub", "sub", "subtract", "true_divide",
]  # fmt: skip

# --- sums ---------------------------------------------------------------------------------------------

BOOL_MINUS = {
    2: "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead.",
    1: "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
    "the `~` or `logical_not()` operator instead.",
}


def no_bool(left: Tensor, right: Tensor) -> None:
    """Raise for a difference with booleans."""
    a, b = left._data.dtype.kind, right._data.dtype.kind
    if a == "b" or b == "b":
        raise TensorError(BOOL_MINUS[(a == "b") + (b == "b")])


def scaled_sum(x: Any, y: Any, alpha: Any) -> Any:
    return x + alpha * y


def scaled_difference(x: Any, y: Any, alpha: Any) -> Any:
    return x - alpha * y


def reversed_difference(x: Any, y: Any) -> Any:
    return y - x


ADD, ADD_SCALED = Op("add", "AddBackward0", np.add), Op("add", "AddBackward0", scaled_sum, shown=2)
SUB, SUB_SCALED = Op("sub", "SubBackward0", np.subtract), Op("sub", "SubBackward0", scaled_difference, shown=2)
RSUB, RSUB_NUMBER = (Op("rsub", f"RsubBackward{k}", reversed_difference, shown=2 - k) for k in (0, 1))
RSUB_SCALED = renamed(SUB_SCALED, "RsubBackward0")


class Difference(Binary):
    """``x - y``, not of booleans; a number minus a tensor is PyTorch's `rsub`, whose operands stand the other way."""

    __slots__ = ()

    def converted(self, left: Any, right: Any) -> tuple[Op, Tensor, Tensor, Any]:
        if isinstance(left, bool) or isinstance(right, bool):
            raise TensorError(BOOL_MINUS[1])
        if isinstance(left, Tensor) or not isinstance(right, Tensor):
            return super().converted(left, right)
        first, second, dtype = pair(self.name, right, left)
        no_bool(first, second)
        return RSUB_NUMBER, first, second, dtype


SUM = Binary("add", ADD, numbers="lr")
DIFFERENCE = Difference("sub", SUB, numbers="lr", check=no_bool)
install_operator("add", SUM.read, None)
install_operator("sub", DIFFERENCE.read, None)


def scaled(name: str, input: Any, other: Any, alpha: Any) -> tuple[tuple[Tensor, ...], Any]:
    """The operands of a sum with a factor, which is one of them, and their dtype."""
    left, right, dtype = pair(name, input, other)
    found = left._data.dtype if dtype is None else dtype
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    if isinstance(alpha, bool) and found.kind != "b":
        raise TensorError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and found.kind in "biu":
        raise TensorError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and found.kind != "c":
        raise TensorError("For non-complex input tensors, argument alpha must not be a complex number.")
    return (left, right, number(alpha, found)), dtype


def is_one(alpha: Any) -> bool:
    return type(alpha) is int and alpha == 1


@method("add")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + alpha * other``, elementwise; shapes broadcast, dtypes promote."""
    if is_one(alpha):
        op, left, right, dtype = SUM.read(input, other)
        found: Tensor = apply(op, (left, right), (), dtype)
    else:
        operands, dtype = scaled("add", input, other, alpha)
        found = apply(ADD_SCALED, operands, (), dtype)
    return found if out is None else store(out, found, "add")


@method("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input - alpha * other``, elementwise; not of booleans."""
    if is_one(alpha):
        if not isinstance(input, Tensor):
            input = operand(input, promoted((input, other)), "sub")
        op, left, right, dtype = DIFFERENCE.read(input, other)
        found: Tensor = apply(op, (left, right), (), dtype)
    else:
        operands, dtype = scaled("sub", input, other, alpha)
        no_bool(operands[0], operands[1])
        found = apply(SUB_SCALED, operands, (), dtype)
    return found if out is None else store(out, found, "sub")


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``, elementwise."""
    if is_one(alpha):
        left, right, dtype = pair("rsub", input, other)
        no_bool(left, right)
        op = RSUB if isinstance(other, Tensor) else RSUB_NUMBER
        return apply(op, (left, right), (), dtype)  # type: ignore[no-any-return]
    operands, dtype = scaled("rsub", other, input, alpha)
    no_bool(operands[0], operands[1])
    return apply(RSUB_SCALED, operands, (), dtype)  # type: ignore[no-any-return]


@method("add_", "__iadd__")
def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``self + alpha * other``, written into the tensor."""
    if is_one(alpha):
        _, left, right, dtype = SUM.read(self, other)
        return apply_inplace(ADD, left, (right,), (), dtype)
    operands, dtype = scaled("add_", self, other, alpha)
    return apply_inplace(ADD_SCALED, operands[0], operands[1:], (), dtype)


@method("sub_", "subtract_", "__isub__")
def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``self - alpha * other``, written into the tensor."""
    if is_one(alpha):
        _, left, right, dtype = DIFFERENCE.read(self, other)
        return apply_inplace(SUB, left, (right,), (), dtype)
    operands, dtype = scaled("sub_", self, other, alpha)
    no_bool(operands[0], operands[1])
    return apply_inplace(SUB_SCALED, operands[0], operands[1:], (), dtype)


subtract = sub

# --- products and quotients ---------------------------------------------------------------------------

mul = binary("mul", "MulBackward0", np.multiply, numbers="lr", operators=("mul",), aliases=("multiply",))
multiply = mul


QUOTIENT = Binary("div", Op("div", "DivBackward0", np.divide), accepts="fc", casts="biu", numbers="lr")


def truncated_quotient(x: Any, y: Any) -> Any:
    """x / y without its fraction; of integers, exactly."""
    if x.dtype.kind not in "biu":
        return np.trunc(x / y)
    quotient = floored_quotient(x, y)
    return np.where((quotient < 0) & (quotient * y != x), quotient + 1, quotient)


def floored_quotient(x: Any, y: Any) -> Any:
    """floor(x / y): that of Python for finite numbers, and x / y itself where y is 0."""
    if x.dtype.kind in "biu":
        refuse_zero(y)
        return np.floor_divide(x, y)
    return np.where(y == 0, x / y, np.floor_divide(x, y))


def refuse_zero(y: Any) -> None:
    if type(y) is np.ndarray and not y.all():
        raise TensorError("ZeroDivisionError")


def remainder_of(x: Any, y: Any) -> Any:
    if x.dtype.kind in "biu":
        refuse_zero(y)
    return np.remainder(x, y)


def fmod_of(x: Any, y: Any) -> Any:
    if x.dtype.kind in "biu":
        refuse_zero(y)
    return np.fmod(x, y)


ROUNDED = {
    "floor": Op("div", "DivBackward2", floored_quotient),
    "trunc": Op("div", "DivBackward2", truncated_quotient),
}


@method("true_divide")
def true_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input / other``, elementwise; of integers it is of the default dtype."""
    op, left, right, dtype = QUOTIENT.read(input, other)
    found: Tensor = apply(op, (left, right), (), dtype)
    return found if out is None else store(out, found, "div")


@method("div", "divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``, elementwise; of integers it is of the default dtype, unless it is rounded.

    Args:
        rounding_mode: None, "floor" (towards minus infinity) or "trunc" (towards zero).
    """
    if rounding_mode is None:
        return true_divide(input, other, out=out)
    left, right, dtype = rounded_operands(input, other, rounding_mode)
    return store(out, apply(ROUNDED[rounding_mode], (left, right), (), dtype), "div")  # type: ignore[no-any-return]


def rounded_operands(input: Any, other: Any, rounding_mode: str) -> tuple[Tensor, Tensor, Any]:
    if rounding_mode not in ROUNDED:
        raise TensorError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    left, right, dtype = pair("div", input, other)
    found = left._data.dtype if dtype is None else dtype
    if found.kind in "bc":
        raise refused(f"div_{rounding_mode}", found)
    return left, right, dtype


@method("div_", "divide_")
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, written into the tensor."""
    if rounding_mode is None:
        return true_divide_(self, other)
    left, right, dtype = rounded_operands(self, other, rounding_mode)
    return apply_inplace(ROUNDED[rounding_mode], left, (right,), (), dtype)


RECIPROCAL = Op("reciprocal", "ReciprocalBackward0", np.reciprocal, pullback=lambda ct, y, x: -ct * np.conj(y * y))


@method("true_divide_", "__itruediv__")
def true_divide_(self: Tensor, other: Any) -> Tensor:
    """``self / other``, written into the tensor."""
    op, left, right, dtype = QUOTIENT.read(self, other)
    return apply_inplace(op, left, (right,), (), dtype)


divide = div
install_operator("truediv", QUOTIENT.read, None)


@method("__rtruediv__")
def rtruediv(self: Tensor, other: Any) -> Tensor:
    """``other / self`` for a number: as in PyTorch, the reciprocal times the number."""
    if type(other) not in (int, float, complex, bool):
        return true_divide(other, self)
    kind = self._data.dtype.kind
    inverse = apply(RECIPROCAL, (self,), (), None if kind in "fc" else dtypes.get_default_dtype().numpy)
    return mul(inverse, other)


floor_divide = binary("floor_divide", "FloorDivideBackward0", floored_quotient, numbers="lr", accepts="iuf",
                      operators=("floordiv",))  # fmt: skip
remainder = binary("remainder", "RemainderBackward1", remainder_of, numbers="lr", accepts="iuf", operators=("mod",),
                   right_node="RemainderBackward0")  # fmt: skip
fmod = binary("fmod", "FmodBackward1", fmod_of, accepts="iuf", right_node="FmodBackward0")

# --- others of two operands ---------------------------------------------------------------------------

atan2 = binary("atan2", "Atan2Backward0", np.arctan2, numbers="", accepts="f", casts="biu", aliases=("arctan2",))
arctan2 = atan2
hypot = binary("hypot", "HypotBackward0", np.hypot, numbers="", accepts="f")


def copysign_of(x: Any, y: Any) -> Any:
    """PyTorch's derivative of it is 0 where there is no magnitude."""
    found = np.copysign(x, y)
    return found if type(found) is np.ndarray else np.where(x == 0, np.copysign(np.zeros_like(x), y), found)


copysign = binary("copysign", "CopysignBackward0", copysign_of, accepts="f", casts="biu",
                  right_node="CopysignBackward1")  # fmt: skip
nextafter = binary("nextafter", "NextafterBackward0", np.nextafter, numbers="", accepts="f")
gcd = binary("gcd", None, np.gcd, numbers="", accepts="iu")
lcm = binary("lcm", None, np.lcm, numbers="", accepts="iu")


def same_dtypes(left: Tensor, right: Tensor) -> None:
    """Raise for a step function whose values at the step are of another dtype."""
    if left._data.dtype.kind == "c" or right._data.dtype.kind == "c":
        raise TensorError("heaviside is not yet implemented for complex tensors.")
    if left._data.dtype != right._data.dtype:
        raise TensorError("heaviside is not yet implemented for tensors with different dtypes.")


def step(x: Any, values: Any) -> Any:
    """0 below 0, ``values`` at 0, 1 above; 0 for nan."""
    one = x.dtype.type(1)
    return np.where(x == 0, values, np.where(x > 0, one, x.dtype.type(0)))


_heaviside = binary("heaviside", "HeavisideBackward0", step, numbers="", check=same_dtypes, is_method=False)


@method("heaviside")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The step function: 0 where ``input`` is negative, ``values`` where it is 0, 1 where it is positive."""
    if out is not None and out._data.dtype != input._data.dtype:
        raise TensorError("heaviside is not yet implemented for tensors with different dtypes.")
    return _heaviside(input, values, out=out)


def log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)); of complex numbers, about the one with the larger real part."""
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    larger = np.where(x.real >= y.real, x, y)
    smaller = np.where(x.real >= y.real, y, x)
    return larger + np.log1p(np.exp(smaller - larger))


logaddexp = binary("logaddexp", "LogaddexpBackward0", log_of_sum, numbers="", accepts="fc", inplace=False)
logaddexp2 = binary("logaddexp2", "Logaddexp2Backward0", np.logaddexp2, numbers="", accepts="f", inplace=False)

# --- the larger and the smaller -----------------------------------------------------------------------


def ordered(name: str) -> Any:
    def check(left: Tensor, right: Tensor) -> None:
        if left._data.dtype.kind == "c" or right._data.dtype.kind == "c":
            raise TensorError(f"{name} not implemented for complex tensors.")

    return check


def larger_number(x: Any, y: Any) -> Any:
    """The larger one, or the one that is not nan; of equal ones the first, which alone has a gradient."""
    return np.where((x >= y) | np.isnan(y), x, y)


def smaller_number(x: Any, y: Any) -> Any:
    return np.where((x <= y) | np.isnan(y), x, y)


maximum = binary("maximum", "MaximumBackward0", np.maximum, numbers="", check=ordered("maximum"), inplace=False)
minimum = binary("minimum", "MinimumBackward0", np.minimum, numbers="", check=ordered("minimum"), inplace=False)
fmax = binary("fmax", "FmaxBackward0", larger_number, numbers="", check=ordered("fmax"), inplace=False)
fmin = binary("fmin", "FminBackward0", smaller_number, numbers="", check=ordered("fmin"), inplace=False)

# --- of three operands --------------------------------------------------------------------------------


def interpolated(start: Any, end: Any, weight: Any) -> Any:
    """start + weight (end - start), from the nearer end."""
    gap = end - start
    return np.where(np.abs(weight) < 0.5, start + weight * gap, end - gap * (1 - weight))


LERP = Op("lerp", "LerpBackward1", interpolated)
LERP_NUMBER = renamed(LERP, "LerpBackward0", shown=2)


def lerp_operands(input: Tensor, end: Tensor, weight: Any) -> tuple[Op, tuple[Tensor, Tensor, Tensor]]:
    for position, (argument, x) in enumerate((("input", input), ("end", end)), 1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("lerp", argument, position, x)
    dtype = input._data.dtype
    given = (end, weight) if isinstance(weight, Tensor) else (end,)
    for argument, x in zip(("end", "weight"), given, strict=False):
        if x._data.dtype != dtype:
            raise TensorError(
                f"expected dtype {named(dtype).lower()} for `{argument}` but got dtype {named(x._data.dtype).lower()}"
            )
    if dtype.kind not in "fc":
        raise refused("lerp_kernel", dtype)
    if isinstance(weight, Tensor):
        return LERP, (input, end, weight)
    return LERP_NUMBER, (input, end, number(weight, dtype))


@method("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """``input + weight * (end - input)``, elementwise; ``weight`` is a number or a tensor; all are of one dtype."""
    op, operands = lerp_operands(input, end, weight)
    return store(out, apply(op, operands), "lerp")  # type: ignore[no-any-return]


@method("lerp_")
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """`lerp`, written into the tensor."""
    op, operands = lerp_operands(self, end, weight)
    return apply_inplace(op, operands[0], operands[1:])


def sum_of_product(x: Any, one: Any, two: Any, value: Any) -> Any:
    return x + value * one * two


def sum_of_quotient(x: Any, one: Any, two: Any, value: Any) -> Any:
    return x + value * (one / two)


ADDCMUL = Op("addcmul", "AddcmulBackward0", sum_of_product, shown=3)
ADDCDIV = Op("addcdiv", "AddcdivBackward0", sum_of_quotient, shown=3)


def of_three(op: Op, *tensors: Any, value: Any) -> tuple[tuple[Tensor, ...], Any]:
    """The operands of `addcmul` and `addcdiv`, of which the factor is one, and their dtype."""
    for position, (argument, x) in enumerate(zip(("input", "tensor1", "tensor2"), tensors, strict=True), 1):
        if not isinstance(x, Tensor):
            raise not_a_tensor(op.name, argument, position, x)
    dtype = promoted(tensors)
    if op is ADDCDIV and all(x._data.dtype.kind in "biu" for x in tensors[1:]):
        raise TensorError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
            "division of tensor1 and tensor2.",
            hint="divide first: torch.addcmul(input, tensor1 / tensor2, torch.tensor(1.0))",
        )
    return (*tensors, number(int(value) if dtype.kind in "iu" else value, dtype)), dtype


@method("addcmul")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 * tensor2``, elementwise; shapes broadcast, dtypes promote."""
    operands, dtype = of_three(ADDCMUL, input, tensor1, tensor2, value=value)
    return store(out, apply(ADDCMUL, operands, (), dtype), "addcmul")  # type: ignore[no-any-return]


@method("addcmul_")
def addcmul_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`addcmul`, written into the tensor."""
    operands, dtype = of_three(ADDCMUL, self, tensor1, tensor2, value=value)
    return apply_inplace(ADDCMUL, operands[0], operands[1:], (), dtype)


@method("addcdiv")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """``input + value * tensor1 / tensor2``, elementwise; shapes broadcast, dtypes promote."""
    operands, dtype = of_three(ADDCDIV, input, tensor1, tensor2, value=value)
    return store(out, apply(ADDCDIV, operands, (), dtype), "addcdiv")  # type: ignore[no-any-return]


@method("addcdiv_")
def addcdiv_(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """`addcdiv`, written into the tensor."""
    operands, dtype = of_three(ADDCDIV, self, tensor1, tensor2, value=value)
    return apply_inplace(ADDCDIV, operands[0], operands[1:], (), dtype)


# --- powers of two ------------------------------------------------------------------------------------


FREXP_RESULT: Final = named_result("frexp", "mantissa", "exponent")
FREXP = Op("frexp", "FrexpBackward0", np.frexp, quiet=True)


@method("frexp")
def frexp(input: Tensor) -> Any:
    """``(mantissa, exponent)``: the tensor is ``mantissa * 2**exponent``, with 0.5 <= abs(mantissa) < 1."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("frexp", "input", 1, input)
    if input._data.dtype.kind != "f":
        raise TensorError("torch.frexp() only supports floating-point dtypes")
    return FREXP_RESULT(*apply(FREXP, (input,)))


def times_power(x: Any, exponent: Any) -> Any:
    return x * np.exp2(exponent)


ldexp = binary("ldexp", "LdexpBackward0", times_power, numbers="", accepts="fc", casts="biu")
