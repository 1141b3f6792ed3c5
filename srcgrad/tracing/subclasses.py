"""Arrays of classes derived from NumPy's that meet traced values.

``np.asarray`` of them would lose what the class adds: ``np.matrix`` multiplies by other rules, a masked array leaves
elements out, one with units converts. Those that only carry something along are arrays like any other.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError

__all__ = ["array_of"]

_STORED: dict[str, str] = {"matrix": "np.asarray(x)", "MaskedArray": "x.filled(0.0) and x.mask"}
_PASSIVE = frozenset(
    f"__{name}__"
    for name in (
        *("new", "init", "init_subclass", "array_finalize", "array_wrap", "repr", "str", "format", "dir", "del"),
        *("reduce", "reduce_ex", "getstate", "setstate", "copy", "deepcopy", "class_getitem", "annotate"),
    )
)


def array_of(x: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """``np.asarray(x, dtype)``.

    Raises:
        DTypeError: it is an array of a class that computes by rules of its own.
    """
    kind = type(x)
    if kind is not np.ndarray and issubclass(kind, np.ndarray) and has_rules(kind):
        raise DTypeError(
            f"{kind.__name__} is not supported beside traced values, which would not follow its rules",
            hint=f"use {_STORED.get(kind.__name__, 'np.asarray(x)')}",
        )
    return np.asarray(x, dtype)


def has_rules(kind: type) -> bool:
    """Whether a class of arrays has operators, or anything else that Python or NumPy calls by itself, of its own."""
    if kind is np.memmap or kind is np.recarray:
        return False
    own = [base for base in kind.__mro__ if issubclass(base, np.ndarray) and base not in (np.ndarray, np.memmap)]
    return any(
        isinstance(member, (types.FunctionType, property)) and name.startswith("__") and name not in _PASSIVE
        for base in own
        for name, member in vars(base).items()
    )
