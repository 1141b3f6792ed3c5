"""What a trace with numbers does that cannot be taken back: it prints, writes to files, calls what nobody knows.

An error of the user's that comes after it is what the call gives: `undoing`.
"""

from __future__ import annotations

import contextvars
import types
from typing import Any, Final

import numpy as np

from srcgrad.tracing.unasked import attribute

SAFE_MODULES: Final = ("builtins", "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools")
SAFE_OWNERS: Final = ("builtins", "numpy", "collections", "itertools", "datetime", "decimal", "fractions", "re")
DOING: Final = frozenset({print, open, input, exec, eval, next, __import__, breakpoint})
"""Builtins that may do what cannot be taken back."""
LASTING: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("srcgrad_lasting", default=None)


def done_for_good(function: Any) -> None:
    """Converted code is about to call this, in a trace with numbers."""
    lasting = LASTING.get()
    if lasting is not None and not lasting and acts_for_good(function):
        lasting.append(function)


def acts_for_good(function: Any) -> bool:
    """Whether a function that is not converted may do what cannot be taken back; rather too often than too rarely."""
    owner = attribute(function, "__self__")
    if owner is None or isinstance(owner, types.ModuleType):
        if isinstance(function, (type, np.ufunc)):
            return bool(attribute(function, "__module__") == "_io")
        module = str(attribute(function, "__module__"))
        if isinstance(function, types.BuiltinFunctionType):
            return function in DOING or (module not in SAFE_MODULES and not module.startswith("numpy"))
        return module.partition(".")[0] not in ("numpy", "scipy", *SAFE_MODULES)
    kind = type(owner)
    if isinstance(owner, type):
        return False
    return not kind.__module__.startswith(SAFE_OWNERS) or hasattr(kind, "__next__")
