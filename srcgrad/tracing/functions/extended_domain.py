"""Rules of ``np.emath``: real numbers outside of a function's domain become complex ones, so that numbers decide the
dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.tracing.functions.registry import cast, numpy_rule
from srcgrad.tracing.tracer import Tracer, as_tracer


def extended(x: Any, outside: Callable[[Any], Any]) -> Any:
    """The operand, in a complex dtype if a number of it is outside.

    Raises:
        NeedsConcrete: it is traced, in an abstract trace.
    """
    value = as_tracer(x)
    if value.dtype.kind == "c":
        return value
    found: Any = np.any(outside(value))
    if not (bool(found.concrete("np.emath")) if isinstance(found, Tracer) else found):
        return value
    return cast(value, np.complex64 if value.dtype == np.float32 else np.complex128)


def negative(x: Any) -> Any:
    return x < 0


def beyond_one(x: Any) -> Any:
    return np.abs(x) > 1


@numpy_rule("emath.sqrt")
def sqrt(x: Any) -> Any:
    return np.sqrt(extended(x, negative))


@numpy_rule("emath.log")
def log(x: Any) -> Any:
    return np.log(extended(x, negative))


@numpy_rule("emath.log10")
def log10(x: Any) -> Any:
    return np.log10(extended(x, negative))


@numpy_rule("emath.log2")
def log2(x: Any) -> Any:
    return np.log2(extended(x, negative))


@numpy_rule("emath.logn")
def logn(n: Any, x: Any) -> Any:
    return np.log(extended(x, negative)) / np.log(extended(n, negative))


@numpy_rule("emath.power")
def power(x: Any, p: Any) -> Any:
    exponent = as_tracer(p)
    if exponent.dtype.kind in "iu":
        exponent = cast(exponent, np.float64) if bool(np.any(np.asarray(p) < 0)) else exponent
    return np.power(extended(x, negative), exponent)


@numpy_rule("emath.arccos")
def arccos(x: Any) -> Any:
    return np.arccos(extended(x, beyond_one))


@numpy_rule("emath.arcsin")
def arcsin(x: Any) -> Any:
    return np.arcsin(extended(x, beyond_one))


@numpy_rule("emath.arctanh")
def arctanh(x: Any) -> Any:
    return np.arctanh(extended(x, beyond_one))
