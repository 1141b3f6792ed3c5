"""The memory layout of traced arrays: strides decide where NumPy makes a view and where a copy.

Only layouts other than C order are kept. An elementwise result is laid out as NumPy lays it out (order ``K``: as its
operands are), so that ``(x.T * 2).ravel()`` is a copy here as it is there.
"""

from __future__ import annotations

import math
import mmap
import os
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
    """An array of this type and layout whose elements nobody reads, be it larger than the memory that there is."""
    shape, dtype = type.static_shape, type.dtype
    if strides is None or 0 in shape:
        return empty(shape, dtype)
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    first = -sum(end for end in ends if end < 0)
    last = sum(end for end in ends if end > 0) + dtype.itemsize
    return np.ndarray(shape, dtype, empty((first + last,), np.dtype(np.uint8)), first, strides)


def empty(shape: tuple[int, ...], dtype: DType) -> Array:
    """As `np.empty`; where there is not so much memory, in a file in memory, which takes what is used."""
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        if not hasattr(os, "memfd_create"):
            raise
    size = math.prod(shape) * dtype.itemsize
    try:
        with open(os.memfd_create("srcgrad"), "r+b") as file:
            os.ftruncate(file.fileno(), size)
            return np.ndarray(shape, dtype, mmap.mmap(file.fileno(), size))
    except (OSError, OverflowError) as error:
        raise MemoryError(f"Unable to allocate {size} bytes") from error


def corner(array: Array) -> Array:
    """The first two elements along each axis, which have the strides of the whole and are no copy of it."""
    return array[(slice(0, 2),) * array.ndim]


def strides_of_whole(small: Array, shape: Sequence[int], dtype: DType) -> Strides | None:
    """The strides of a new array whose axes lie as those of ``small``, its corner, do; None for C order."""
    if small.flags.c_contiguous:
        return None
    strides, step = [0] * small.ndim, dtype.itemsize
    for k in sorted(range(small.ndim), key=lambda k: small.strides[k]):
        strides[k] = step
        step *= shape[k]
    return tuple(strides)


def elementwise_strides(operands: Sequence[Array], dtype: DType) -> Strides | None:
    """The strides that a ufunc gives its result on these operands; None for C order."""
    flags: list[Any] = [["readonly"] for _ in operands]
    dtypes: list[Any] = [operand.dtype for operand in operands]
    iterator = np.nditer(
        [*map(corner, operands), None],
        flags=["zerosize_ok"],
        op_flags=[*flags, ["writeonly", "allocate"]],
        op_dtypes=[*dtypes, dtype],
        order="K",
    )
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return strides_of_whole(iterator.operands[-1], shape, dtype)


def order_name(order: str | None) -> str:
    """An order of elements in memory: ``K`` where none is given.

    Raises:
        ShapeError: there is no such order.
    """
    name = "K" if order is None else str(order).upper()
    if name not in ("C", "F", "A", "K"):
        raise ShapeError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return name
