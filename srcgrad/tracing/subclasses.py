"""Arrays of classes derived from NumPy's that meet traced values, and numbers of classes derived from Python's.

``np.asarray`` of them would lose what the class adds: ``np.matrix`` multiplies by other rules, a masked array leaves
elements out, one with units converts. Those that only carry something along are arrays like any other.
"""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, UnsupportedError

__all__ = ["array_of", "dtype_of_view", "plain_number"]

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
    return has_own_rules(kind, np.ndarray, np.memmap)


def has_own_rules(kind: type, *known: type) -> bool:
    """Whether a class derived from the first of the known ones adds rules to theirs."""
    own = [base for base in kind.__mro__ if issubclass(base, known[0]) and base not in known]
    return any(
        isinstance(member, (types.FunctionType, property)) and name.startswith("__") and name not in _PASSIVE
        for base in own
        for name, member in vars(base).items()
    )


def is_plain(kind: type, number: type) -> bool:
    return not issubclass(kind, (np.generic, enum.Enum)) and not has_own_rules(kind, number)


def plain_number(x: Any) -> Any:
    """Python's float or complex number, where ``x`` is one of a class that computes as these do."""
    kinds: tuple[Any, ...] = (float, complex)
    for number in kinds:
        if isinstance(x, number) and type(x) is not number and is_plain(type(x), number):
            return number(x)
    return x


def dtype_of_view(dtype: Any, cls: Any) -> Any:
    """The dtype that ``x.view(dtype, cls)`` asks for, where a class may stand for the dtype; None for the same one.

    Raises:
        UnsupportedError: it is to be of a class derived from NumPy's.
    """
    if cls is None and isinstance(dtype, type) and issubclass(dtype, np.ndarray):
        dtype, cls = None, dtype
    if cls not in (None, np.ndarray):
        raise UnsupportedError(
            f"an array of the class {cls.__name__}, derived from NumPy's, cannot hold traced values",
            hint="keep what the class adds in an object that has the array as an attribute",
        )
    return dtype
