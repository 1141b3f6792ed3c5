"""The function by which SciPy computes one of two formulas for each element, where a condition says which.

Importing this module imports SciPy.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import numpy as np

from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.functions.registry import as_array


def apply_where(cond: Any, args: Any, f1: Any, f2: Any = None, /, *, fill_value: Any = None, xp: Any = None) -> Any:
    """Both formulas of all elements: which of two derivatives counts is the selection's, however the other one ends."""
    given = args if isinstance(args, tuple) else (args,)
    even = np.broadcast_arrays(*(as_array(x) for x in (cond, *given)))
    other = fill_value if f2 is None else call(f2, *even[1:])
    return np.where(even[0], call(f1, *even[1:]), other)


for _home in ("_lib", "_external"):
    with suppress(ImportError, AttributeError):
        call_rule(importlib.import_module(f"scipy.{_home}.array_api_extra").apply_where)(apply_where)
