"""Parameters of distributions from data, where the likeliest ones have a formula: ``norm.fit`` and ``expon.fit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.conversion.effects import emit_check
from srcgrad.tracing.functions.registry import as_array

PASSED_OVER: Final = frozenset({"loc", "scale", "optimizer"})
"""What would say how to search."""


def fit_normal(data: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    loc = np.mean(data) if loc is None else loc
    return loc, np.sqrt(np.mean((data - loc) ** 2)) if scale is None else scale


def fit_exponential(data: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    least = np.min(data)
    if loc is not None:
        emit_check(loc <= least, "ValueError", "Invalid values in `data`: some are less than the fixed location.")
    loc = least if loc is None else loc
    return loc, np.mean(data) - loc if scale is None else scale


FITS: Final[dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]]] = {"norm": fit_normal, "expon": fit_exponential}


def fitted(
    name: str, data: Any, floc: Any = None, fscale: Any = None, method: str = "MLE", **options: Any
) -> tuple[Any, Any]:
    """Location and scale, as SciPy finds them.

    Raises:
        TypeError: there is another option. ValueError: nothing is left to be found. UnsupportedError: they are found by
            moments.
    """
    if method.lower() != "mle":
        raise UnsupportedError(f"scipy.stats.{name}.fit with method={method!r} has no derivative rule in srcgrad")
    others = sorted(options.keys() - PASSED_OVER)
    if others:
        raise TypeError(f"Unknown arguments: {', '.join(others)}.")
    if floc is not None and fscale is not None:
        raise ValueError("All parameters fixed. There is nothing to optimize.")
    values = as_array(data)
    emit_check(np.all(np.isfinite(values)), "ValueError", "The data contains non-finite values.")
    return FITS[name](values, floc, fscale)
