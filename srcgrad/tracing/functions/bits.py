"""Bits packed into bytes, and taken out of them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, ShapeError
from srcgrad.tracing.functions.fourier import resized
from srcgrad.tracing.functions.registry import as_array, axis_of, cast, numpy_rule, prefix
from srcgrad.tracing.functions.shapes import moveaxis


def place_values(bitorder: str) -> np.ndarray[Any, Any]:
    """What each of the eight bits counts."""
    if bitorder not in ("big", "little"):
        raise ShapeError("'order' must be either 'little' or 'big'")
    values = 2 ** np.arange(8, dtype=np.int64)
    return values[::-1] if bitorder == "big" else values


@numpy_rule("packbits")
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    x: Any = as_array(a)
    if x.dtype.kind not in "biu":
        raise DTypeError("Expected an input array of integer or boolean data type")
    values = place_values(bitorder)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    bits: Any = moveaxis(cast(x != 0, np.int64), axis, -1)
    count = -(-bits.shape[-1] // 8)
    bits = resized(bits, 8 * count, bits.ndim - 1) if count else bits
    packed = (bits.reshape((*bits.shape[:-1], count, 8)) * values).sum(axis=-1)
    return cast(moveaxis(packed, -1, axis), np.uint8)


@numpy_rule("unpackbits")
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    x: Any = as_array(a)
    if x.dtype != np.uint8:
        raise DTypeError("Expected an input array of unsigned byte data type")
    values = place_values(bitorder)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_of(axis, x.ndim)
    moved: Any = moveaxis(cast(x, np.int64), axis, -1)
    bits: Any = (moved[..., None] // values % 2).reshape((*moved.shape[:-1], 8 * moved.shape[-1]))
    bits = moveaxis(bits, -1, axis)
    if count is not None:
        size = operator.index(count)
        size = bits.shape[axis] + size if size < 0 else size
        if size < 0:
            raise ShapeError(f"-count larger than number of elements: {count}")
        bits = resized(bits, size, axis) if size else bits[prefix(axis, slice(0, 0))]
    return cast(bits, np.uint8)
