"""Comparison, logic, bits, and questions about tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import (
    Binary,
    Refusals,
    binary,
    install_operator,
    known_operand,
    method,
    not_a_tensor,
    promoted,
    refused,
    store,
    unary,
)
from srcgrad.torch.tensor import Tensor

__all__ = [
    "allclose", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "eq", "equal", "ge", "greater", "greater_equal", "gt", "is_complex", "is_conj", "is_floating_point", "is_neg",
    "is_nonzero", "is_same_size", "is_signed", "is_tensor", "isclose", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "le", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "ne", "not_equal", "numel", "result_type", "signbit",
]  # fmt: skip

# --- comparisons --------------------------------------------------------------------------------------


def comparison(name: str, ufunc: Any, alias: str | None, accepts: str) -> Any:
    """A comparison as a function, a method, an operator and an in-place form; of complex numbers only equality."""
    aliases = () if alias is None else (alias,)
    call = binary(name, None, ufunc, accepts=accepts, aliases=aliases, operators=(name,), inplace=False, quiet=True)
    form = Binary(name, Op(name, f"{name.capitalize()}Backward0", ufunc, quiet=True), accepts=accepts)

    @method(*[f"{known}_" for known in (name, *aliases)])
    def call_inplace(self: Tensor, other: Any) -> Tensor:
        op, left, right, dtype = form.read(self, other)
        return apply_inplace(op, left, (right,), (), dtype)

    call_inplace.__doc__ = f"`{name}`, written into the tensor."
    return call


eq = comparison("eq", np.equal, None, "biufc")
ne = not_equal = comparison("ne", np.not_equal, "not_equal", "biufc")
lt = less = comparison("lt", np.less, "less", "biuf")
le = less_equal = comparison("le", np.less_equal, "less_equal", "biuf")
gt = greater = comparison("gt", np.greater, "greater", "biuf")
ge = greater_equal = comparison("ge", np.greater_equal, "greater_equal", "biuf")

# --- logic --------------------------------------------------------------------------------------------

logical_and = binary("logical_and", None, np.logical_and, numbers="", quiet=True)
logical_or = binary("logical_or", None, np.logical_or, numbers="", quiet=True)
logical_xor = binary("logical_xor", None, np.logical_xor, numbers="", quiet=True)
logical_not = unary("logical_not", None, np.logical_not, accepts="biufc", casts="", quiet=True)

bitwise_and = binary("bitwise_and", None, np.bitwise_and, accepts="biu", numbers="lr", operators=("and",))
bitwise_or = binary("bitwise_or", None, np.bitwise_or, accepts="biu", numbers="lr", operators=("or",))
bitwise_xor = binary("bitwise_xor", None, np.bitwise_xor, accepts="biu", numbers="lr", operators=("xor",))


def left_shift(x: Any, y: Any) -> Any:
    """By y bits; 0 where y is negative or as large as the dtype is wide."""
    width = 8 * x.dtype.itemsize
    legal = (y >= 0) & (y < width)
    return np.where(legal, np.left_shift(x, np.where(legal, y, 0)), 0).astype(x.dtype)


def right_shift(x: Any, y: Any) -> Any:
    """By y bits; the sign remains where y is negative or as large as the dtype is wide."""
    width = 8 * x.dtype.itemsize
    legal = (y >= 0) & (y < width)
    return np.right_shift(x, np.where(legal, y, width - 1)).astype(x.dtype)


def shift(name: str, kernel: str, function: Any, operator: str) -> Any:
    """A shift; a tensor of booleans or of floating-point numbers has none."""
    call = binary(f"bitwise_{name}_shift", None, function, accepts="iu", numbers="lr")
    form = Binary(kernel, Op(kernel, None, function), accepts="iu", numbers="lr")

    def augmented(self: Tensor, other: Any) -> Tensor:
        op, left, right, dtype = form.read(self, other)
        return apply_inplace(op, left, (right,), (), dtype)

    install_operator(operator, form.read, augmented)
    return call


bitwise_left_shift = shift("left", "lshift", left_shift, "lshift")
bitwise_right_shift = shift("right", "rshift", right_shift, "rshift")

BITWISE_NOT = Op("bitwise_not", None, np.invert)


@method("bitwise_not")
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The bits turned over; of booleans, the opposite."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("bitwise_not", "input", 1, input)
    if input._data.dtype.kind not in "biu":
        raise refused("bitwise_not", input._data.dtype)
    return store(out, apply(BITWISE_NOT, (input,)), "bitwise_not")  # type: ignore[no-any-return]


@method("bitwise_not_")
def bitwise_not_(self: Tensor) -> Tensor:
    """`bitwise_not`, written into the tensor."""
    if self._data.dtype.kind not in "biu":
        raise refused("bitwise_not", self._data.dtype)
    return apply_inplace(BITWISE_NOT, self)


@method("__invert__")
def inverted(self: Tensor) -> Tensor:
    """``~self``."""
    if self._data.dtype.kind not in "biu":
        raise TensorTypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


# --- questions about elements -------------------------------------------------------------------------


def of_floats(test: Any, otherwise: bool = False) -> Any:
    """A test that NumPy has for real and complex numbers, and whose answer for others is known."""

    def call(x: Any) -> Any:
        return test(x) if x.dtype.kind in "fc" else np.full(x.shape, otherwise)

    return call


def asked(name: str, test: Any, **options: Any) -> Any:
    defaults: dict[str, Any] = {"accepts": "biufc", "casts": "", "inplace": False, "quiet": True}
    return unary(name, None, test, **(defaults | options))


isnan = asked("isnan", of_floats(np.isnan))
isinf = asked("isinf", of_floats(np.isinf))
isfinite = asked("isfinite", of_floats(np.isfinite, True))
isreal = asked("isreal", lambda x: np.equal(x.imag, 0) if x.dtype.kind == "c" else np.full(x.shape, True))
NO_COMPLEX_SIGNBIT: Refusals = {"c": (TensorNotImplementedError, "signbit is not implemented for complex tensors.")}
signbit = asked("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0), accepts="biuf",
                refusals=NO_COMPLEX_SIGNBIT)  # fmt: skip


def infinite(name: str, test: Any) -> Any:
    def call(x: Any) -> Any:
        if x.dtype.kind == "c":
            raise TensorError(f"{name} does not support complex inputs.")
        return of_floats(test)(x)

    return asked(name, call)


isposinf = infinite("isposinf", lambda x: np.equal(x, np.inf))
isneginf = infinite("isneginf", lambda x: np.equal(x, -np.inf))


def near(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    found = np.equal(x, y)
    if equal_nan and x.dtype.kind in "fc":
        found = found | (np.isnan(x) & np.isnan(y))
    if rtol == 0 and atol == 0:
        return found
    gap = np.abs(x.astype(np.float64) - y) if x.dtype.kind in "biu" else np.abs(x - y)
    return found | (np.isfinite(gap) & (gap <= atol + np.abs(rtol * y)))


ISCLOSE = Op("isclose", None, near)


@method("isclose")
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``, elementwise.

    Raises:
        TensorError: the dtypes differ, or a tolerance is negative.
    """
    for position, (argument, x) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("isclose", argument, position, x)
    if input._data.dtype != other._data.dtype:
        raise TensorError(f"{named(input._data.dtype)} did not match {named(other._data.dtype)}")
    for tolerance, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise TensorError(f"{tolerance} must be greater than or equal to zero, but got {value:g}")
    return apply(ISCLOSE, (input, other), (float(rtol), float(atol), bool(equal_nan)))  # type: ignore[no-any-return]


@method("allclose")
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for all elements."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._data.all())


@method("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and equal elements."""
    a, b = input._data, other._data
    return bool(a.shape == b.shape and np.all(np.equal(a, b)))


# --- questions about tensors --------------------------------------------------------------------------


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether its dtype is real and floating."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether its dtype is complex."""
    return input.is_complex()


@method("is_signed")
def is_signed(input: Tensor) -> bool:
    """Whether its dtype has negative numbers."""
    return bool(input._data.dtype.kind in "ifc")


@method("is_nonzero")
def is_nonzero(input: Tensor) -> bool:
    """Whether its only element is not 0."""
    return bool(input)


@method("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return bool(input._data.shape == other._data.shape)


@method("is_conj")
def is_conj(input: Tensor) -> bool:
    """Whether its conjugation is still to be done: never, here."""
    return False


@method("is_neg")
def is_neg(input: Tensor) -> bool:
    """Whether its negation is still to be done: never, here."""
    return False


def numel(input: Tensor) -> int:
    """How many elements it has."""
    return input.numel()


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic operation on two tensors or numbers."""
    operands = []
    for position, x in enumerate((tensor1, tensor2), 1):
        known = known_operand(x)
        if known is None:
            raise not_a_tensor("result_type", f"tensor{position}", position, x)
        operands.append(known)
    return dtypes.of(promoted(tuple(operands)))


@method("__contains__")
def contains(self: Tensor, element: Any) -> bool:
    """``element in self``: whether some element is equal."""
    if not isinstance(element, Tensor) and known_operand(element) is None:
        raise TensorError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element).__name__}."
        )
    return bool(eq(self, element)._data.any())
