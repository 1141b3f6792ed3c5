"""The rules of NumPy's functions on traced arrays.

Importing this package registers those that nearly every program calls, and names the modules of the others: they are
imported when a function or a method that has no rule yet is met. Those of scipy.special are registered when a ufunc of
it first meets a traced array: `special`.
"""

from __future__ import annotations

from srcgrad.tracing.functions import creation, reductions, shapes
from srcgrad.tracing.indexing import getitem, setitem  # the rules index: this gives `Tracer` its brackets
from srcgrad.tracing.ragged import METHODS as RAGGED_METHODS
from srcgrad.tracing.ragged import RULES as RAGGED_RULES
from srcgrad.tracing.tracer import FUNCTIONS, METHODS

__all__ = ["creation", "getitem", "reductions", "setitem", "shapes"]

_MODULES = (
    "selection",
    "joining",
    "products",
    "elementwise",
    "predicates",
    "linear_algebra",
    "sorting",
    "statistics",
    "differences",
    "ranges",
    "polynomials",
    "histograms",
    "quantiles",
    "sets",
    "padding",
    "decompositions",
    "fourier",
    "signal",
    "bits",
    "extended_domain",
)
FUNCTIONS.filled_by(__name__, _MODULES)
METHODS.filled_by(__name__, _MODULES)
RAGGED_RULES.filled_by(__name__, ("ragged",))
RAGGED_METHODS.filled_by(__name__, ("ragged",))
