"""The rules of NumPy's functions on traced arrays; importing this package registers all of them.

Those of scipy.special are registered when a ufunc of it first meets a traced array: `special`.
"""

from __future__ import annotations

from srcgrad.tracing.functions import (
    bits,
    creation,
    decompositions,
    differences,
    elementwise,
    extended_domain,
    fourier,
    histograms,
    joining,
    linear_algebra,
    padding,
    polynomials,
    predicates,
    products,
    quantiles,
    ragged,
    ranges,
    reductions,
    selection,
    sets,
    shapes,
    signal,
    sorting,
    statistics,
)
from srcgrad.tracing.indexing import getitem, setitem  # the rules index: this gives `Tracer` its brackets

__all__ = [
    "bits",
    "creation",
    "decompositions",
    "differences",
    "elementwise",
    "extended_domain",
    "fourier",
    "getitem",
    "histograms",
    "joining",
    "linear_algebra",
    "padding",
    "polynomials",
    "predicates",
    "products",
    "quantiles",
    "ragged",
    "ranges",
    "reductions",
    "selection",
    "setitem",
    "sets",
    "shapes",
    "signal",
    "sorting",
    "statistics",
]
