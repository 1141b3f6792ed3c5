"""What types and constants loops and native code can have."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from srcgrad.backends.llvm import scalars
from srcgrad.ir.core import Literal, Value
from srcgrad.ir.types import ArrayType, Dim, TapeType

LARGEST_CONSTANT: Final = 1 << 18
"""The bytes of an array up to which it is part of the code."""


def is_static(type: ArrayType) -> bool:
    return not isinstance(type, TapeType) and not any(isinstance(size, Dim) for size in type.shape)


@lru_cache(maxsize=1024)
def is_loop_type(type: ArrayType) -> bool:
    """Whether loops compute with such arrays."""
    return is_static(type) and scalars.is_register(type.dtype)


def is_plain(type: ArrayType) -> bool:
    """Whether values of the type can be in native code: its shape is known, and it is no long double."""
    if isinstance(type, TapeType):
        return is_plain(type.element)
    return not any(isinstance(size, Dim) for size in type.shape) and type.dtype.char not in "gG" and type.dtype.isnative


def is_large(value: Value) -> bool:
    """Whether it is an array constant that is too long for code."""
    return isinstance(value, Literal) and value.value.nbytes > LARGEST_CONSTANT and not is_zero(value)


def is_zero(value: Literal) -> bool:
    """Whether all bytes are zero."""
    return not np.frombuffer(value.value.tobytes(), np.uint8).any()
