"""The ops, one class each. Importing this package registers those that nearly every program has, and names the modules
of the others: they are imported when an op that is not there is asked for.
"""

from __future__ import annotations

from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.ops import (
    arithmetic,
    calls,
    effects,
    elementary,
    logic,
    power,
    reductions,
    selection,
    shapes,
)

__all__ = [
    "arithmetic",
    "calls",
    "effects",
    "elementary",
    "logic",
    "power",
    "reductions",
    "selection",
    "shapes",
]

_COMMON = (
    "control",
    "complexes",
    "generate",
    "indexing",
    "dot",
    "rounding",
    "search",
    "sorting",
    "bits",
    "binary",
    "kinks",
)
_SEQUENCES = ("cumulative", "products", "recurrences", "convolution", "fourier")
_MATRICES = (
    "linalg",
    "determinant",
    "factorisations",
    "eigen",
    "singular",
    "spectral",
    "matrix_functions",
    "least_squares",
    "linear_control",
    "banded",
    "sparse",
)
_SPECIAL_FUNCTIONS = (
    "special",
    "normal",
    "gamma",
    "bessel",
    "elliptic",
    "hypergeometric",
    "integrals",
    "kolmogorov",
    "profiles",
    "solutions",
)
REGISTRY.filled_by(__name__, (*_COMMON, *_SEQUENCES, *_MATRICES, *_SPECIAL_FUNCTIONS))
