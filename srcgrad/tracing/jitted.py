"""Functions that numba has compiled, and those of ``autograd.numpy``: a trace follows what each was made of.

Numba's machine code takes numbers and arrays alone. What it is told (types, ``parallel``, ``fastmath``) does not
change what the Python function says, which is what is differentiated. The functions of ``autograd.numpy`` look for
autograd's own traced arrays among their arguments, and call NumPy's.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from srcgrad.tracing.unasked import attribute

__all__ = ["is_parallel_range", "made_of", "path_in", "plain_of", "primitive_of", "python_of"]

ELEMENTWISE = "_dispatcher"
"""By what ``numba.vectorize`` holds the function of numbers that it calls for each element."""


def python_of(thing: Any) -> types.FunctionType | None:
    """The Python function under ``numba.njit``, ``numba.vectorize`` and their kin; None for anything else."""
    if not str(type(thing).__module__).startswith("numba."):
        return None
    function = attribute(attribute(thing, ELEMENTWISE, thing), "py_func")
    return function if isinstance(function, types.FunctionType) else None


def primitive_of(function: types.FunctionType) -> Any:
    """The function of NumPy's or SciPy's that one of ``autograd.numpy`` calls; None for any other function."""
    if function.__code__.co_name != "f_wrapped" or function.__globals__.get("__name__") != "autograd.tracer":
        return None
    return function.__closure__[place_of(function)].cell_contents if function.__closure__ else None


def place_of(function: types.FunctionType) -> int:
    """Where such a function has NumPy's among the variables of its closure."""
    return function.__code__.co_freevars.index("f_raw")


def made_of(thing: Any) -> Any:
    """What a function that numba has compiled, or one of ``autograd.numpy``, was made of; None for anything else."""
    return primitive_of(thing) if isinstance(thing, types.FunctionType) else python_of(thing)


def path_in(thing: Any) -> str:
    """How what a function was made of is read of it."""
    if isinstance(thing, types.FunctionType):
        return f".__closure__[{place_of(thing)}].cell_contents"
    return f".{ELEMENTWISE}.py_func" if attribute(thing, ELEMENTWISE) is not None else ".py_func"


def plain_of(thing: Any, function: Any) -> Any:
    """What does as a compiled function does, by its Python function: one of numbers is called for each element."""
    if isinstance(thing, types.FunctionType):
        return function
    return function if attribute(thing, ELEMENTWISE) is None else np.vectorize(function)


def is_parallel_range(thing: Any) -> bool:
    """Whether this is ``numba.prange``, which is Python's ``range`` where nothing is compiled."""
    return isinstance(thing, type) and (thing.__module__, thing.__name__) == ("numba.misc.special", "prange")
