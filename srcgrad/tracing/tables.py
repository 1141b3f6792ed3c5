"""Arrays of texts, dates and records, as labels by which a program picks and groups its numbers.

They are compiled in, whether a function captures them or is given them: what they hold is compared at each call. A
trace has copies, so that it is noticed where one is changed. So are sparse matrices and what pandas has (`frames`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.frames import SameFrame, is_frame
from srcgrad.tracing.frozen import Same, Unchanged, contents, key_of
from srcgrad.tracing.storage import Watched
from srcgrad.tracing.trace import CURRENT

__all__ = ["KINDS", "Same", "copied_table", "is_constant", "is_table", "same_as"]

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


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse matrix of SciPy's."""
    return str(type(value).__module__).startswith("scipy.sparse.") and contents(value) is not None


def is_constant(value: Any) -> bool:
    """Whether a program has what a captured object holds as constants, and a trace a copy of it."""
    return is_table(value) or is_sparse(value) or is_frame(value)


def same_as(table: Any) -> Callable[[Any], bool]:
    """The guard of such an object, beside its class."""
    return Unchanged(table) if is_sparse(table) else SameFrame(table) if is_frame(table) else Same(table)


def copied_table(table: Any, label: str) -> Any:
    """A copy for the trace in progress, which has no program if that writes into it."""
    copy, trace = table.copy(), CURRENT.get()
    if trace is not None:
        trace.watched.append(Watched(copy, same_as(copy), label))
    return copy
