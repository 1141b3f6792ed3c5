"""Arrays of texts, dates and records, as labels by which a program picks and groups its numbers.

They are compiled in, whether a function captures them or is given them: what they hold is compared at each call. A
trace has copies, so that it is noticed where one is changed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from srcgrad.tracing.frozen import key_of
from srcgrad.tracing.trace import CURRENT, Watched

__all__ = ["Same", "copied_table", "is_table"]

KINDS: Final = "USmMVO"
"""Of texts, bytes, durations, dates, records, and objects that are constants."""


def is_table(value: Any) -> bool:
    """Whether an array holds constants that are no numbers.

    >>> is_table(np.array(["a", "b"])), is_table(np.array([1.0])), is_table(np.array([print]))
    (True, False, False)
    """
    if type(value) not in (np.ndarray, np.recarray) or value.dtype.kind not in KINDS:
        return False
    return not value.dtype.hasobject or key_of(value) is not None


class Same:
    """A guard: whether an array holds what another one holds now.

    >>> labels = np.array(["a", "b"])
    >>> same = Same(labels)
    >>> labels[0] = "c"
    >>> same(labels)
    False
    """

    __slots__ = ("dtype", "key", "kind", "shape")

    def __init__(self, table: Any) -> None:
        self.kind, self.dtype, self.shape = type(table), table.dtype, table.shape
        self.key = key_of(table) if table.dtype.hasobject else table.tobytes()

    def __call__(self, table: Any) -> bool:
        if type(table) is not self.kind or table.shape != self.shape or table.dtype != self.dtype:
            return False
        return bool((key_of(table) if self.dtype.hasobject else table.tobytes()) == self.key)


def copied_table(table: np.ndarray[Any, Any], label: str) -> np.ndarray[Any, Any]:
    """A copy for the trace in progress, which will not end well if that writes into it."""
    copy, trace = table.copy(), CURRENT.get()
    if trace is not None:
        trace.watched.append(Watched(copy, Same(copy), label))
    return copy
