"""The ops, one class each; importing this package registers all of them."""

from __future__ import annotations

from srcgrad.ir.ops import (
    arithmetic,
    binary,
    calls,
    complexes,
    dot,
    effects,
    elementary,
    generate,
    indexing,
    linalg,
    logic,
    power,
    products,
    reductions,
    rounding,
    shapes,
    sorting,
    special,
)

__all__ = [
    "arithmetic",
    "binary",
    "calls",
    "complexes",
    "dot",
    "effects",
    "elementary",
    "generate",
    "indexing",
    "linalg",
    "logic",
    "power",
    "products",
    "reductions",
    "rounding",
    "shapes",
    "sorting",
    "special",
]
