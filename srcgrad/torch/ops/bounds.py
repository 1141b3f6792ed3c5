"""Bounds and masks: ``clamp``, ``where``, ``masked_fill``.

PyTorch's gradients: an element at a bound keeps its own, and a bound that is a tensor has the gradient of the elements
beyond it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from srcgrad.torch.dispatch import apply, apply_inplace, named
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError
from srcgrad.torch.operation import Op
from srcgrad.torch.ops.define import (
    Refusals,
    fitting,
    known_operand,
    method,
    not_a_tensor,
    number,
    number_array,
    promoted,
    refused,
    store,
)
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "clip", "clip_", "masked_fill",
           "where"]  # fmt: skip

# --- clamp --------------------------------------------------------------------------------------------


def at_least(x: Any, low: Any) -> Any:
    if type(x) is np.ndarray:
        return np.maximum(x, low)
    return np.where(x >= low, x, low)


def at_most(x: Any, high: Any) -> Any:
    if type(x) is np.ndarray:
        return np.minimum(x, high)
    return np.where(x <= high, x, high)


def between(x: Any, low: Any, high: Any) -> Any:
    """min(max(x, low), high): where the bounds are crossed, the upper one; nan of nan."""
    if type(x) is np.ndarray:
        return np.minimum(np.maximum(x, low), high)
    inner = np.where(x < low, low, np.where(x > high, high, x))
    return np.where(low >= high, high, inner)


NUMBERS = {
    "clamp": (Op("clamp", "ClampBackward1", at_least, shown=1), Op("clamp", "ClampBackward1", at_most, shown=1),
              Op("clamp", "ClampBackward1", between, shown=1)),
    "clamp_min": (Op("clamp_min", "ClampMinBackward0", at_least, shown=1),),
    "clamp_max": (None, Op("clamp_max", "ClampMaxBackward0", at_most, shown=1)),
}  # fmt: skip
TENSORS = {
    "clamp": (Op("clamp", "ClampBackward0", at_least), Op("clamp", "ClampBackward0", at_most),
              Op("clamp", "ClampBackward0", between)),
    "clamp_min": (Op("clamp_min", "ClampMinBackward1", at_least),),
    "clamp_max": (None, Op("clamp_max", "ClampMaxBackward1", at_most)),
}  # fmt: skip


def bounded(name: str, input: Any, low: Any, high: Any) -> tuple[Op, tuple[Tensor, ...], Any]:
    """The operation, its operands, and the dtype they are cast to.

    Raises:
        TensorError: there is no bound.
        TensorTypeError: one bound is a tensor and the other a number.
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor(name, "input", 1, input)
    bounds = [x if x is None else known_operand(x) for x in (low, high)]
    given = [x for x in bounds if x is not None]
    if low is None and high is None:
        raise TensorError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [isinstance(x, Tensor) for x in given]
    if len(given) < (low is not None) + (high is not None) or any(tensors) != all(tensors):
        kinds = ", ".join(type(x).__name__ for x in (input, low, high))
        raise TensorTypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds})",
            hint="give two numbers or two tensors as bounds",
        )
    dtype = promoted((input, *given))
    if dtype.kind in "bc":
        refusals: Refusals = {"c": (TensorNotImplementedError, f"{name} is not supported for complex types")}
        raise refused(name, dtype, refusals)
    ops = (TENSORS if tensors[0] else NUMBERS)[name]
    op = ops[2] if len(given) == 2 else ops[0] if low is not None else ops[1]
    operands = [x if isinstance(x, Tensor) else number(x, dtype) for x in given]
    same = all(x._data.dtype is dtype for x in (input, *operands))
    return op, (input, *operands), None if same else dtype  # type: ignore[return-value]


@method("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """``minimum(maximum(input, min), max)``; each bound is a number, a tensor, or absent."""
    op, operands, dtype = bounded("clamp", input, min, max)
    if out is not None:
        found = operands[0]._data.dtype if dtype is None else dtype
        if out._data.dtype != found:
            raise TensorError(f"Found dtype {named(out._data.dtype)} but expected {named(found)}")
    return store(out, apply(op, operands, (), dtype), "clamp")  # type: ignore[no-any-return]


@method("clamp_", "clip_")
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, written into the tensor."""
    op, operands, dtype = bounded("clamp", self, min, max)
    return apply_inplace(op, operands[0], operands[1:], (), dtype)


@method("clamp_min")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """The larger of ``input`` and a bound that is a number or a tensor."""
    op, operands, dtype = bounded("clamp_min", input, min, None)
    return store(out, apply(op, operands, (), dtype), "clamp_min")  # type: ignore[no-any-return]


@method("clamp_min_")
def clamp_min_(self: Tensor, min: Any) -> Tensor:
    """`clamp_min`, written into the tensor."""
    op, operands, dtype = bounded("clamp_min", self, min, None)
    return apply_inplace(op, operands[0], operands[1:], (), dtype)


@method("clamp_max")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """The smaller of ``input`` and a bound that is a number or a tensor."""
    op, operands, dtype = bounded("clamp_max", input, None, max)
    return store(out, apply(op, operands, (), dtype), "clamp_max")  # type: ignore[no-any-return]


@method("clamp_max_")
def clamp_max_(self: Tensor, max: Any) -> Tensor:
    """`clamp_max`, written into the tensor."""
    op, operands, dtype = bounded("clamp_max", self, None, max)
    return apply_inplace(op, operands[0], operands[1:], (), dtype)


clip, clip_ = clamp, clamp_

# --- where --------------------------------------------------------------------------------------------


def chosen(x: Any, y: Any, condition: Any) -> Any:
    return np.where(condition, x, y)


def chosen_cast(x: Any, y: Any, condition: Any, dtype: np.dtype[Any]) -> Any:
    return np.where(condition, x.astype(dtype), y.astype(dtype))


WHERE, WHERE_CAST = (
    Op("where", "WhereBackward0", chosen, quiet=True, shown=2),
    Op("where", "WhereBackward0", chosen_cast, shown=2),
)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """``input`` where the condition holds and ``other`` elsewhere; shapes broadcast, dtypes promote.

    Of a condition alone: the indices where it holds, one tensor per dimension.

    Raises:
        TensorError: the condition is not boolean.
    """
    if not isinstance(condition, Tensor):
        raise not_a_tensor("where", "condition", 1, condition)
    if input is None and other is None:
        return tuple(wrapped(index) for index in np.nonzero(condition._data))
    mask = condition_of(condition)
    both = isinstance(input, Tensor) and isinstance(other, Tensor)
    if both and out is None and input._data.dtype is other._data.dtype:
        return apply(WHERE, (input, other, mask))
    given = []
    for position, (argument, x) in enumerate((("input", input), ("other", other)), 2):
        known = known_operand(x)
        if known is None:
            raise not_a_tensor("where", argument, position, x)
        given.append(known)
    dtype = promoted(tuple(given))
    left, right = (x if isinstance(x, Tensor) else number(x, dtype) for x in given)
    if left._data.dtype is dtype and right._data.dtype is dtype:
        return store(out, apply(WHERE, (left, right, mask)), "where")
    return store(out, apply(WHERE_CAST, (left, right, mask), (dtype,)), "where")


def condition_of(condition: Tensor) -> Tensor:
    kind = condition._data.dtype
    if kind.kind == "b":
        return condition
    if kind == np.uint8:
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning,
            stacklevel=3,
        )
        return wrapped(condition._data != 0)
    raise TensorError(
        f"where expected condition to be a boolean tensor, but got a tensor with dtype {named(kind)}",
        hint="compare it: x != 0",
    )


@method("where")
def where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """The tensor where the condition holds, and ``other`` elsewhere."""
    return where(condition, self, other)


# --- masked_fill --------------------------------------------------------------------------------------


def filled(x: Any, value: Any, mask: Any) -> Any:
    return np.where(mask, value, x)


FILL_NUMBER = Op("masked_fill", "MaskedFillBackward0", filled, quiet=True, shown=1)
FILL_TENSOR = Op("masked_fill", "MaskedFillBackward1", filled, quiet=True, shown=2)


def fill_operands(input: Any, mask: Any, value: Any) -> tuple[Op, tuple[Tensor, Tensor, Tensor]]:
    """The operation and its operands; the value takes the tensor's dtype.

    Raises:
        TensorError: the mask is not boolean; the value is no scalar, or of a wider category of dtype.
    """
    for position, (argument, x) in enumerate((("input", input), ("mask", mask)), 1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("masked_fill", argument, position, x)
    if mask._data.dtype.kind != "b":
        raise TensorError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {named(mask._data.dtype).lower()}",
            hint="use mask.bool()",
        )
    dtype = input._data.dtype
    if isinstance(value, Tensor):
        if value._data.ndim:
            raise TensorError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._data.ndim} dimension(s)."
            )
        return FILL_TENSOR, (input, value if value._data.dtype == dtype else value.to(input.dtype), mask)
    known = known_operand(value)
    if known is None:
        raise not_a_tensor("masked_fill", "value", 3, value)
    fitting(known, dtype)
    with np.errstate(all="ignore"):
        array = np.asarray(known).astype(dtype) if dtype.kind in "biu" else number_array(known, dtype)
    return FILL_NUMBER, (input, wrapped(array), mask)


@method("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``value``, a number or a tensor without dimensions, where the mask holds; the tensor elsewhere."""
    op, operands = fill_operands(input, mask, value)
    return apply(op, operands)  # type: ignore[no-any-return]


@method("masked_fill_")
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`masked_fill`, written into the tensor."""
    op, operands = fill_operands(self, mask, value)
    return apply_inplace(op, operands[0], operands[1:])
