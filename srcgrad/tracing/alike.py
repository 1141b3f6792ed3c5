"""Keys of static values that are equal only where no program can tell the values apart.

``==`` does not say that: 1, True and 1.0 are equal, and so are 0.0 and -0.0, and ranges of the same numbers whose ends
differ.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

__all__ = ["addresses", "items_of", "parts_of", "same_items", "same_keys", "value_key"]

_WHOLE: Final = frozenset({str, bytes, int, bool, type(None), type(Ellipsis)})


def parts_of(value: slice | range) -> tuple[Any, Any, Any]:
    """What a slice or a range was made of."""
    return value.start, value.stop, value.step


def value_key(value: Any) -> Hashable:
    """A key of a value that stands in a structure: a dict's key, or what a registered class keeps beside its children.

    Numbers, texts and tuples of them are told apart as programs do; of other classes their own ``==`` says what is
    equal.

    >>> value_key((1, 0.0)) == value_key((True, 0.0)), value_key(0.0) == value_key(-0.0), value_key(2) == value_key(2)
    (False, False, True)
    """
    kind = type(value)
    if kind in _WHOLE:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return kind, value.dtype, repr(value)
    if kind is slice or kind is range:
        return kind, tuple(map(value_key, parts_of(value)))
    if kind is frozenset:
        return kind, frozenset(map(value_key, value))
    if isinstance(value, tuple) and getattr(kind, "__eq__") is tuple.__eq__:  # noqa: B009
        return kind, tuple(map(value_key, value))
    return kind, value


def addresses(items: tuple[Any, ...]) -> Hashable:
    """Where the objects of a tuple are: equal to that of another one, which is kept, only if it holds the very same.

    >>> one, other = 1.0, float("1")
    >>> addresses((one, 2)) == addresses((one, 2)), addresses((one, 2)) == addresses((other, 2))
    (True, False)
    """
    if not IN_A_ROW:
        return tuple(map(id, items))
    return ctypes.string_at(id(items) + tuple.__basicsize__, ctypes.sizeof(ctypes.c_void_p) * len(items))


def same_keys(held: tuple[Any, ...], keys: tuple[Any, ...]) -> bool:
    """Whether keys of a dict are these, in this order, and no program can tell them apart: mostly the very objects.

    >>> same_keys((1, "a"), (1, "a")), same_keys((True, "a"), (1, "a")), same_keys(("a", 1), (1, "a"))
    (True, False, False)
    """
    return addresses(held) == addresses(keys) or (held == keys and value_key(held) == value_key(keys))


def are_in_a_row() -> bool:
    """Whether a tuple is its head and the addresses of its items, as CPython's."""
    if sys.implementation.name != "cpython":
        return False
    pair = ("a", None)
    held = (ctypes.c_void_p * 2).from_address(id(pair) + tuple.__basicsize__)
    return list(held) == [id("a"), id(None)]


IN_A_ROW: Final = are_in_a_row()


def items_of(container: Any) -> tuple[Any, ...]:
    """The elements of a list or tuple, the values of a dict."""
    return tuple(container.values() if isinstance(container, dict) else container)


def same_items(
    container: Any, static: Callable[[Any], Hashable], items: tuple[Any, ...], keys: tuple[Hashable, ...]
) -> bool:
    """Whether a container holds these very items, or others that have their ``static`` keys."""
    held = items_of(container)
    return len(held) == len(items) and (addresses(held) == addresses(items) or tuple(map(static, held)) == keys)
