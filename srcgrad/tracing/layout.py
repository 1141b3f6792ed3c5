"""The memory layout of traced arrays: strides decide where NumPy makes a view and where a copy.

Only layouts other than C order are kept. An elementwise result is laid out as NumPy lays it out (order ``K``: as its
operands are), so that ``(x.T * 2).ravel()`` is a copy here as it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.errors import ShapeError
from srcgrad.ir.types import ArrayType, DType

Strides = tuple[int, ...]
Array = np.ndarray[Any, Any]


def strides_of(array: Array) -> Strides | None:
    """The strides in bytes; None for a C-contiguous array."""
    return None if array.flags.c_contiguous else array.strides


def uninitialised(type: ArrayType, strides: Strides | None) -> Array:
    """An array of this type and layout whose elements nobody reads."""
    shape, dtype = type.static_shape, type.dtype
    if strides is None or 0 in shape:
        return np.empty(shape, dtype)
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    first = -sum(end for end in ends if end < 0)
    last = sum(end for end in ends if end > 0) + dtype.itemsize
    return np.ndarray(shape, dtype, np.empty(first + last, np.uint8), first, strides)


def elementwise_strides(operands: Sequence[Array], dtype: DType) -> Strides | None:
    """The strides that a ufunc gives its result on these operands; None for C order."""
    flags: list[Any] = [["readonly"] for _ in operands]
    dtypes: list[Any] = [operand.dtype for operand in operands]
    iterator = np.nditer(
        [*operands, None],
        flags=["zerosize_ok"],
        op_flags=[*flags, ["writeonly", "allocate"]],
        op_dtypes=[*dtypes, dtype],
        order="K",
    )
    return strides_of(iterator.operands[-1])


def order_name(order: str | None) -> str:
    """An order of elements in memory: ``K`` where none is given.

    Raises:
        ShapeError: there is no such order.
    """
    name = "K" if order is None else str(order).upper()
    if name not in ("C", "F", "A", "K"):
        raise ShapeError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return name
