"""What ``functools.singledispatch`` and ``singledispatchmethod`` make of functions and methods."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, Final

from srcgrad.tracing.floating_errors import cells_of
from srcgrad.tracing.unasked import attribute


class _Example:
    of = functools.singledispatchmethod(len)


DISPATCHED: Final[types.CodeType] = attribute(functools.singledispatch(len), "__code__")
"""The code of what ``functools.singledispatch`` makes of a function."""
BOUND: Final[types.CodeType | None] = attribute(_Example().of, "__code__")
"""That of what Python finds where a method is one of ``singledispatchmethod``; None where this is no function."""


def chosen(function: types.FunctionType, kind: type) -> Callable[..., Any]:
    """The function that one of these calls for a first argument of a class."""
    if function.__code__ is DISPATCHED:
        return attribute(function, "dispatch")(kind)  # type: ignore[no-any-return]
    cells = cells_of(function)
    dispatch = cells["dispatch"] if "dispatch" in cells else cells["self"].dispatcher.dispatch
    return dispatch(kind).__get__(cells["obj"], cells["cls"])  # type: ignore[no-any-return]
