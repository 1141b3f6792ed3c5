"""Nearest neighbours of ``scipy.spatial``, of points and places that may both be traced.

Which points are next to a place is asked of SciPy when the program runs; the distances are operations on the
coordinates of these, so that their derivatives are those where the same points stay the nearest. Importing this module
imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.spatial

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.asked import library_function
from srcgrad.tracing.conversion.calls import call_rule
from srcgrad.tracing.functions.registry import as_array, cast
from srcgrad.tracing.functions.scipy_interpolate import of_traced
from srcgrad.tracing.hosts import ask

TREES: Final = (scipy.spatial.KDTree, scipy.spatial.cKDTree)


class Tree:
    """Points among which the nearest are asked for."""

    def __init__(
        self, data: Any, leafsize: int = 10, compact_nodes: bool = True, copy_data: bool = False,
        balanced_tree: bool = True, boxsize: Any = None,
    ) -> None:  # fmt: skip
        if boxsize is not None:
            raise UnsupportedError("a KDTree with boxsize= of traced points is not supported", hint="leave boxsize out")
        self.data = cast(as_array(data), np.float64)
        if self.data.ndim != 2:
            raise ShapeError("data must be 2 dimensions")
        self.n, self.m = self.data.shape

    def __getattr__(self, name: str) -> Any:
        asking = library_function()
        if asking is not None:  # a function of SciPy's own that searches
            raise UnsupportedError(
                f"{asking} has no derivative rule in srcgrad",
                hint="write it with functions that have one, or give it a rule with custom_jvp or custom_vjp",
            )
        raise UnsupportedError(
            f"scipy.spatial.KDTree.{name} of traced points or places is not supported",
            hint="query(x, k) gives the distances and numbers of the nearest ones",
        )

    def query(
        self, x: Any, k: Any = 1, eps: Any = 0.0, p: Any = 2.0, distance_upper_bound: Any = np.inf, workers: int = 1
    ) -> tuple[Any, Any]:
        """The distances of the nearest points, infinite where there are too few, and their numbers."""
        place = cast(as_array(x), np.float64)
        if not place.ndim or place.shape[-1] != self.m:
            raise ShapeError(f"x must consist of vectors of length {self.m} but has shape {place.shape}")
        if p < 1:
            raise ArgumentError("Only p-norms with 1<=p<=infinity permitted")
        options = {"k": k, "eps": eps, "p": p, "distance_upper_bound": distance_upper_bound, "workers": workers}

        def site(points: Any, places: Any) -> Any:
            return np.asarray(scipy.spatial.KDTree(points).query(places, **options)[1], np.int64)

        many = () if k is not None and np.ndim(k) == 0 and k == 1 else (np.size(k) if np.ndim(k) else int(k),)
        numbers = ask(site, (self.data, place), np.zeros((*place.shape[:-1], *many), np.int64), "a search among points")
        near: Any = numbers < self.n
        apart = (place[..., None, :] if many else place) - self.data[np.where(near, numbers, 0)]
        return np.where(near, length(apart, p), np.inf), numbers


def length(x: Any, p: float) -> Any:
    """The norms of vectors; of 0 without slopes."""
    if p == 1.0:
        return np.sum(np.abs(x), axis=-1)
    if np.isinf(p):
        return np.max(np.abs(x), axis=-1)
    total: Any = np.sum(x * x if p == 2.0 else np.abs(x) ** p, axis=-1)
    apart = total > 0.0
    safe = np.where(apart, total, 1.0)
    return np.where(apart, np.sqrt(safe) if p == 2.0 else safe ** (1.0 / p), 0.0)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of one of SciPy's trees that is given traced values."""
    tree = method.__self__
    return getattr(Tree(tree.data, boxsize=tree.boxsize), method.__name__)(*args, **kwargs)


for _tree in TREES:
    call_rule(_tree)(of_traced(_tree, Tree))
