"""Objects of the user's that NumPy asks for an array by ``__array__``: here this may give a traced one, which NumPy
would not take.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.tracer import Deferring, Tracer, contains_tracer
from srcgrad.tracing.unasked import attribute

NUMPYS: Final = (np.ufunc, type(np.sum))
"""The kinds of functions that make arrays of what they are given."""
OTHERS: Final = ("__array_ufunc__", "__array_function__")
"""By these a class does itself what is asked of NumPy."""
POLYNOMIALS: Final = (np.polyadd, np.polysub, np.polymul, np.polydiv, np.polyder, np.polyint)
"""The functions of coefficients that give ``poly1d`` of such."""
PLAIN: Final = (Tracer, Deferring, np.ndarray, np.generic, int, float, complex, str, type(None))


def is_array_like(x: Any) -> bool:
    if isinstance(x, PLAIN):
        return False
    asked = inspect.getattr_static(type(x), "__array__", None)
    return type(asked) is types.FunctionType and not any(hasattr(type(x), name) for name in OTHERS)


def takes_arrays(function: Any) -> bool:
    """Whether a function is of NumPy's, and does more than to look at an object."""
    if isinstance(function, NUMPYS):
        return True
    module = attribute(function, "__module__")
    return isinstance(function, types.BuiltinFunctionType) and module == "numpy"


def as_array(x: Any, call: Callable[..., Any]) -> Any:
    """The array of an object that holds a traced one; anything else as it is."""
    if not is_array_like(x):
        return x
    found = x.coeffs if isinstance(x, np.poly1d) else call(x.__array__)  # which is code of NumPy's
    return found if contains_tracer(found) else x


def as_given(function: Any, args: tuple[Any, ...], found: Any, call: Callable[..., Any]) -> Any:
    """What a function gives of the arrays in place of these arguments: a polynomial where NumPy's makes one."""
    if function not in POLYNOMIALS or not any(isinstance(x, np.poly1d) for x in args):
        return found
    if isinstance(found, tuple):
        return tuple(call(np.poly1d, part) for part in found)
    return found if isinstance(found, np.poly1d) else call(np.poly1d, found)
