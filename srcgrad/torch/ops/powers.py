"""Powers: of tensors, of numbers, to exponents that are known or not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import is_operand, known_operand, method, pair, promoted, refused, store, turned
from srcgrad.torch.tensor import Tensor

__all__ = ["float_power", "pow", "square"]

KNOWN: Final = 64
"""The largest integer or half-integer exponent that is compiled in; other numbers are operands."""


def known_power(x: Any, exponent: int | float) -> Any:
    """x to a power that is known; of integers, wrapping around."""
    if x.dtype.kind == "b":
        return x | (not exponent)
    if exponent == 3 and type(x) is np.ndarray and x.ndim:
        return x * x * x
    return x**exponent


def power(x: Any, exponent: Any) -> Any:
    """x to the power of an array; an integer to a negative integer is its reciprocal without the fraction.

    PyTorch's gradient at 0**0 is 0 in both.
    """
    if x.dtype.kind in "fc" and not (type(x) is np.ndarray and type(exponent) is np.ndarray):
        return np.where((x == 0) & (exponent == 0), x.dtype.type(1), np.power(x, exponent))
    if x.dtype.kind not in "iu" or exponent.dtype.kind == "u":
        return np.power(x, exponent)
    value = np.power(x, np.maximum(exponent, 0))
    sign = np.where(exponent % 2 == 0, 1, x)
    return np.where(exponent >= 0, value, np.where(np.abs(x) == 1, sign, 0)).astype(x.dtype)


KNOWN_POWER = Op("pow", "PowBackward0", known_power)
NUMBER_POWER = Op("pow", "PowBackward0", power, shown=1)
TENSOR_POWER = Op("pow", "PowBackward1", power)
POWER_OF_NUMBER = turned(TENSOR_POWER, "PowBackward2")

Prepared = tuple[Op, tuple[Tensor, ...], tuple[Any, ...], Any]


def prepared(name: str, base: Any, exponent: Any) -> Prepared:
    """The operation, its operands, its statics, and the dtype they are cast to."""
    if not isinstance(base, Tensor) and not isinstance(exponent, Tensor):
        raise TensorTypeError(
            f"{name}() received an invalid combination of arguments - got ({type(base).__name__}, "
            f"{type(exponent).__name__}): one of them must be a Tensor"
        )
    if isinstance(base, Tensor) and not isinstance(exponent, Tensor):
        return to_number(name, base, exponent)
    left, right, dtype = pair(name, base, exponent)
    found = left._data.dtype if dtype is None else dtype
    if found.kind == "b":
        raise refused(name, found)
    if isinstance(base, Tensor):
        return TENSOR_POWER, (left, right), (), dtype
    return POWER_OF_NUMBER, (right, left), (), dtype


def to_number(name: str, base: Tensor, exponent: Any) -> Prepared:
    """A tensor to the power of a number."""
    if type(exponent) is int and base._data.dtype.kind == "f" and -KNOWN <= exponent <= KNOWN:
        return KNOWN_POWER, (base,), (exponent,), None
    known = known_operand(exponent)
    if known is None or isinstance(known, Tensor):
        raise TensorTypeError(
            f"{name}(): argument 'exponent' must be Tensor or a number, not {type(exponent).__name__}"
        )
    dtype = base._data.dtype
    found = promoted((base, known))
    if found.kind in "iu" and known < 0:
        raise TensorError("Integers to negative integer powers are not allowed.", hint="use x.double() ** n")
    cast = None if found is dtype or found == dtype else found
    if type(known) is not complex and -KNOWN <= known <= KNOWN:
        if known == int(known):
            return KNOWN_POWER, (base,), (int(known),), cast
        if 2 * known == int(2 * known) and found.kind == "f":
            return KNOWN_POWER, (base,), (float(known),), cast
    left, right, cast = pair(name, base, known)
    return NUMBER_POWER, (left, right), (), cast


def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``, elementwise: tensors, or a tensor and a number; shapes broadcast, dtypes promote."""
    op, operands, statics, dtype = prepared("pow", input, exponent)
    found: Tensor = apply(op, operands, statics, dtype)
    return store(out, found, "pow") if out is not None else found


@method("pow_", "__ipow__")
def pow_(self: Tensor, exponent: Any) -> Tensor:
    """``self ** exponent``, written into the tensor."""
    op, operands, statics, dtype = prepared("pow_", self, exponent)
    return apply_inplace(op, operands[0], operands[1:], statics, dtype)


@method("__pow__")
def power_operator(self: Tensor, exponent: Any) -> Any:
    """``self ** exponent``."""
    if type(exponent) is not Tensor and not is_operand(exponent):
        return NotImplemented
    op, operands, statics, dtype = prepared("pow", self, exponent)
    return apply(op, operands, statics, dtype)


@method("__rpow__")
def reflected_power(self: Tensor, base: Any) -> Any:
    """``base ** self``."""
    if not is_operand(base):
        return NotImplemented
    op, operands, statics, dtype = prepared("pow", base, self)
    return apply(op, operands, statics, dtype)


method("pow")(pow)


@method("square")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input ** 2``, elementwise."""
    if not isinstance(input, Tensor):
        raise TensorTypeError(f"square(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return pow(input, 2, out=out)


@method("square_")
def square_(self: Tensor) -> Tensor:
    """``self ** 2``, written into the tensor."""
    return pow_(self, 2)


# --- in double precision ------------------------------------------------------------------------------


def double_of(operands: tuple[Any, ...]) -> np.dtype[Any]:
    """The dtype of `float_power`: the widest real or complex one."""
    kind = promoted(operands).kind
    return np.dtype(np.complex128 if kind == "c" else np.float64)


def doubled(name: str, input: Any, exponent: Any) -> tuple[Prepared, np.dtype[Any]]:
    given = (known_operand(input), known_operand(exponent))
    if None in [x if x is None else 0 for x in given]:
        bad = exponent if given[0] is not None else input
        raise TensorTypeError(f"{name}(): argument 'exponent' must be Tensor or a number, not {type(bad).__name__}")
    dtype = double_of(given)
    op, operands, statics, _ = prepared(name, *[x.to(dtypes.of(dtype)) if isinstance(x, Tensor) else x for x in given])
    return (op, operands, statics, dtype), dtype


@method("float_power")
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in double precision, whatever the operands' dtypes are."""
    (op, operands, statics, _), dtype = doubled("float_power", input, exponent)
    if out is not None and out._data.dtype != dtype:
        raise TensorError(
            f"the output given to float_power has dtype {named(out._data.dtype)} but the operation's result requires "
            f"dtype {named(dtype)}"
        )
    return store(out, apply(op, operands, statics, dtype), "float_power")  # type: ignore[no-any-return]


@method("float_power_")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, written into the tensor, which must be of double precision."""
    dtype = double_of((self, known_operand(exponent)))
    if self._data.dtype != dtype:
        raise TensorError(
            f"the base given to float_power_ has dtype {named(self._data.dtype)} but the operation's result requires "
            f"dtype {named(dtype)}"
        )
    return pow_(self, exponent)
