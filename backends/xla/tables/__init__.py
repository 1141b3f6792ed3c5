"""One line per op, by topic: name -> function(*operands, **attrs) of jax arrays.

A line computes what the op's NumPy text means, on arrays that have exactly the types of the operands, and returns
exactly the result's type. It must not rely on jax's promotion rules: operands and results are strongly typed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax import lax

Array = jax.Array
Lowering = Callable[..., Any]
Line = TypeVar("Line", bound=Lowering)

HALF = np.dtype(np.float16)
SINGLE = np.dtype(np.float32)


def contextual(line: Line) -> Line:
    """Mark a lowering that is given the `lowering.Application` first, and no attributes."""
    line.contextual = True  # type: ignore[attr-defined]
    return line


def through_single(line: Line) -> Line:
    """Compute on float16 operands in float32, and round the result once, as NumPy does."""

    @functools.wraps(line)
    def widened(*operands: Array, **attrs: Any) -> Any:
        if not any(operand.dtype == HALF for operand in operands):
            return line(*operands, **attrs)
        wide = [cast(operand, SINGLE) if operand.dtype == HALF else operand for operand in operands]
        found = line(*wide, **attrs)
        return cast(found, HALF) if found.dtype == SINGLE else found

    return widened  # type: ignore[return-value]


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in another dtype."""
    return lax.convert_element_type(array, dtype)


def full_like(array: Array, value: Any) -> Array:
    """An array of the same type, filled with ``value``."""
    return lax.full(array.shape, np.array(value).astype(array.dtype), array.dtype)


def is_complex(array: Array) -> bool:
    return array.dtype.kind == "c"


def is_nan(array: Array) -> Array:
    """Whether each element is nan; of a complex one, whether a part is."""
    if is_complex(array):
        return lax.bitwise_or(is_nan(lax.real(array)), is_nan(lax.imag(array)))
    if array.dtype.kind != "f":
        return lax.full(array.shape, False, np.bool_)
    return lax.ne(array, array)


def is_negative(array: Array) -> Array:
    """Whether the sign bit of each float is set: that of -0.0 is."""
    integer = np.dtype(f"int{array.dtype.itemsize * 8}")
    bits = lax.bitcast_convert_type(array, integer)
    return lax.lt(bits, full_like(bits, 0))


def with_sign(array: Array, sign: Array) -> Array:
    """The absolute value of each float with the sign of another one."""
    size = lax.abs(array)
    return lax.select(is_negative(sign), lax.neg(size), size)
