"""What the tests of captures share: a small table of pure functions, and functions with globals of their own."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

from srcgrad.tracing.capture import Captures, Uncacheable, analyze

PURE_BUILTINS = {
    *(len, range, zip, enumerate, tuple, list, dict, set, isinstance, float, int, abs, min, max, sum, reversed, sorted),
    *(map, filter, bool, round, pow, slice, all, any, complex, divmod, iter, next, str, type),
}
PURE_NUMPY = {np.sin, np.cos, np.exp, np.sum, np.dot, np.add, np.zeros, np.linalg.solve, np.float64, np.asarray}


def is_pure(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return False
    return value in PURE_BUILTINS or value in PURE_NUMPY or getattr(value, "__module__", "") == "math"


def captures_of(function: Any, **options: Any) -> Captures:
    found = analyze(function, is_pure=is_pure, **options)
    assert isinstance(found, Captures), found
    return found


def reason_of(function: Any, **options: Any) -> str:
    found = analyze(function, is_pure=is_pure, **options)
    assert isinstance(found, Uncacheable), found.explain()
    return found.reason


def values_of(captures: Captures, function: Any) -> tuple[Any, ...]:
    bound = captures.bind(function)
    assert bound is not None
    return bound[0]


def module(source: str, **names: Any) -> dict[str, Any]:
    """The globals of a module of its own, so that tests may rebind its names."""
    space: dict[str, Any] = {"np": np, "math": math, "__name__": "user_code", **names}
    exec(compile(source, "user_code.py", "exec"), space)
    return space


def paths(captures: Captures) -> list[str]:
    return [hidden.path for hidden in captures.hidden]
