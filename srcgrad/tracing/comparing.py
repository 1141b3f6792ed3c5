"""Comparisons of integers, exact as NumPy's: of signed with unsigned ones, and with Python's of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.types import INT64, DType

COMPARISONS: Final = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
_UINT64: Final = np.dtype(np.uint64)


def compared_kinds(kinds: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The kinds of what is compared: a Python integer that the other's dtype may not hold is one of 64 bits.

    In arithmetic it is cast to that dtype, or refused.
    """
    found = list(kinds)
    for place, x in enumerate(inputs):
        other = kinds[1 - place]
        if kinds[place] is not int or not isinstance(other, np.dtype) or other.kind not in "iu":
            continue
        if type(x) is not int:
            found[place] = INT64
        elif not holds(other, x):
            found[place] = next((dtype for dtype in (INT64, _UINT64) if holds(dtype, x)), int)
    return tuple(found)


def holds(dtype: DType, number: int) -> bool:
    info = np.iinfo(dtype)
    return int(info.min) <= number <= int(info.max)


def of_two_signs(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """A comparison of int64 with uint64: what is below 0 is less than all of the other's."""
    first = left.dtype.kind == "i"
    below = bool(ufunc(0, 1) if first else ufunc(1, 0))
    signed = left if first else right
    return np.where(signed < 0, below, ufunc(left.astype(_UINT64), right.astype(_UINT64)))
