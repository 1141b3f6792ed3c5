"""Functions that numba has compiled: a trace follows the Python function that each was made of.

Their machine code takes numbers and arrays alone. What numba is told (types, ``parallel``, ``fastmath``) does not
change what the Python function says, which is what is differentiated.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from srcgrad.tracing.unasked import attribute

__all__ = ["is_parallel_range", "path_in", "plain_of", "python_of"]

ELEMENTWISE = "_dispatcher"
"""By what ``numba.vectorize`` holds the function of numbers that it calls for each element."""


def python_of(thing: Any) -> types.FunctionType | None:
    """The Python function under ``numba.njit``, ``numba.vectorize`` and their kin; None for anything else."""
    if not str(type(thing).__module__).startswith("numba."):
        return None
    function = attribute(attribute(thing, ELEMENTWISE, thing), "py_func")
    return function if isinstance(function, types.FunctionType) else None


def path_in(thing: Any) -> str:
    """How the Python function is read of a compiled one."""
    return f".{ELEMENTWISE}.py_func" if attribute(thing, ELEMENTWISE) is not None else ".py_func"


def plain_of(thing: Any, function: Any) -> Any:
    """What does as a compiled function does, by its Python function: one of numbers is called for each element."""
    return function if attribute(thing, ELEMENTWISE) is None else np.vectorize(function)


def is_parallel_range(thing: Any) -> bool:
    """Whether this is ``numba.prange``, which is Python's ``range`` where nothing is compiled."""
    return isinstance(thing, type) and (thing.__module__, thing.__name__) == ("numba.misc.special", "prange")
