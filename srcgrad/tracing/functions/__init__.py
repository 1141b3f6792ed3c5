"""The rules of NumPy's functions on traced arrays; importing this package registers all of them.

Those of scipy.special are registered when a ufunc of it first meets a traced array: `special`.
"""

from __future__ import annotations

from srcgrad.tracing.functions import (
    creation,
    differences,
    joining,
    linear_algebra,
    predicates,
    products,
    ranges,
    reductions,
    selection,
    shapes,
    sorting,
    statistics,
)
from srcgrad.tracing.indexing import getitem, setitem  # the rules index: this gives `Tracer` its brackets

__all__ = [
    "creation",
    "differences",
    "getitem",
    "joining",
    "linear_algebra",
    "predicates",
    "products",
    "ranges",
    "reductions",
    "selection",
    "setitem",
    "shapes",
    "sorting",
    "statistics",
]
