"""Linear maps among the residuals of a rule: ``fwd`` may return what `vjp` or `linearize` gave it, and ``bwd`` call it.

A map holds values of the trace that made it, which is ``fwd``'s. Between the two these are residuals as arrays are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srcgrad.directional import LinearMap
from srcgrad.tracing.pytree import register_pytree_node, tree_map
from srcgrad.tracing.tracer import Tracer


class CarriedMap:
    """A map as a container of what it holds; taken apart and put together again, it is the map."""

    __slots__ = ("form", "values")

    def __init__(self, whole: LinearMap) -> None:
        self.values = whole.held
        self.form = whole.__srcgrad_rewrap__(None)


def put_together(form: LinearMap, values: Sequence[Any]) -> LinearMap:
    return form.__srcgrad_rewrap__(None, *values)


register_pytree_node(CarriedMap, lambda carried: (carried.values, carried.form), put_together)


def maps_carried(residuals: Any) -> Any:
    """Residuals as they leave ``fwd``: maps of values that are traced are containers of these."""
    return tree_map(
        lambda leaf: (
            CarriedMap(leaf)
            if isinstance(leaf, LinearMap) and any(isinstance(value, Tracer) for value in leaf.held)
            else leaf
        ),
        residuals,
    )
