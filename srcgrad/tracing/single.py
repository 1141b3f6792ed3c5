"""Arrays where a number is asked for: what this version of NumPy says of one of their shape, it is asked itself.

Of an array of one element with axes it has made a number, with a warning, and makes none from 2.4 on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from srcgrad.tracing.tracer import Tracer


def require_one(x: Tracer) -> None:
    """Raise what NumPy raises where Python is to have a number of an array.

    Raises:
        ArgumentError: it makes none of an array of this shape.
    """
    ask(float, x, "NumPy's functions take arrays: np.sin(x) for math.sin(x), x.astype(float) for float(x)")


def require_index(x: Tracer) -> None:
    """The same, where it is to be an index of a list."""
    ask(operator.index, x, "take the number at an index out of it, as x[0] or x.item()")


def require_key(x: Tracer) -> None:
    """The same, where it is to be a key of a dict."""
    ask(hash, x, "take the number at an index out of it, as x[0] or x.item()")


def require_rounding(x: Tracer) -> None:
    """The same, where it is given to ``round``."""
    ask(round, x, "NumPy's function takes arrays: np.round(x)")


def require_element(x: Tracer) -> None:
    """The same, where it is to be one element of an array.

    Raises:
        ShapeError: NumPy does not store an array of this shape there.
    """
    if x.ndim:
        try:
            np.zeros(1, x.dtype)[0] = like(x)
        except ValueError as error:
            raise ShapeError(str(error), hint="take the number at an index out of it, as x[0] or x.item()") from None


def ask(function: Callable[[Any], Any], x: Tracer, hint: str) -> None:
    if not x.scalar:
        try:
            function(like(x))
        except TypeError as error:
            raise ArgumentError(str(error), hint=hint) from None


def like(x: Tracer) -> np.ndarray[Any, Any]:
    """An array of this shape and dtype, without memory for its elements."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)
