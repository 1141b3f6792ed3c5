"""SciPy's modules for random programs: functions that do not dispatch on their arguments call their rule.

They do so on traced arguments. ``sl``, ``special``, ``fft`` and ``signal`` stand for ``scipy.linalg`` and so on. Their
functions are known as pure, so that programs that call them are traced once.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.special

import srcgrad.tracing.functions.matrix_functions
import srcgrad.tracing.functions.scipy_decompositions
import srcgrad.tracing.functions.scipy_fourier
import srcgrad.tracing.functions.scipy_linalg
import srcgrad.tracing.functions.scipy_signal
import srcgrad.tracing.functions.special  # noqa: F401  (all of these register rules)
from srcgrad.cache import PURE_FUNCTIONS
from srcgrad.tracing.pytree import flatten
from srcgrad.tracing.tracer import FUNCTIONS, Tracer


def dispatching(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, on traced arrays its rule."""
    rule = FUNCTIONS[function]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        traced = any(isinstance(leaf, Tracer) for leaf in flatten((args, kwargs))[0])
        return (rule if traced else function)(*args, **kwargs)

    PURE_FUNCTIONS.add(call)
    return call


def module(original: types.ModuleType) -> types.ModuleType:
    """A module like the given one, of its ufuncs and the functions with a rule."""
    made = types.ModuleType(original.__name__)
    for name in dir(original):
        thing = getattr(original, name)
        if isinstance(thing, np.ufunc):
            setattr(made, name, thing)
        elif callable(thing) and thing in FUNCTIONS:
            setattr(made, name, dispatching(thing))
    return made


sl, special, fft, signal = map(module, (scipy.linalg, scipy.special, scipy.fft, scipy.signal))
