"""What a hard point is, and ways to write down its derivatives exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Case = tuple[Callable[[Any], Any], Any, Sequence[Any]]
"""A function of one argument, the point, and the first derivatives there: one, two or four."""


class Point(NamedTuple):
    """A case in its group."""

    group: str
    name: str
    f: Callable[[Any], Any]
    x: Any
    derivatives: Sequence[Any]

    @property
    def id(self) -> str:
        return f"{self.group}: {self.name}"


def collected(group: str, *tables: dict[str, Case]) -> list[Point]:
    """The points of a group; a name may stand in several tables."""
    found = [Point(group, name, *case) for table in tables for name, case in table.items()]
    names: dict[str, int] = {}
    for k, point in enumerate(found):
        names[point.name] = names.get(point.name, 0) + 1
        if names[point.name] > 1:
            found[k] = point._replace(name=f"{point.name} ({names[point.name]})")
    return found


def polynomial(terms: Sequence[tuple[float, Sequence[int]]], x: Any) -> tuple[Any, Any]:
    """Gradient and Hessian of a sum of products of elements of ``x``; a term is a factor and the elements' places."""
    x = np.asarray(x, float)
    flat, size = x.ravel(), x.size
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    for factor, places in terms:
        for a in range(len(places)):
            rest = [p for k, p in enumerate(places) if k != a]
            gradient[places[a]] += factor * np.prod(flat[rest])
            for b in range(len(places)):
                if b != a:
                    rest = [p for k, p in enumerate(places) if k not in (a, b)]
                    hessian[places[a], places[b]] += factor * np.prod(flat[rest])
    return gradient.reshape(x.shape), hessian.reshape(x.shape * 2)


def leibniz(matrix: Any) -> tuple[Any, Any]:
    """Gradient and Hessian of the determinant, from its definition as a sum over permutations."""
    n = len(matrix)
    terms = []
    for permutation in itertools.permutations(range(n)):
        inversions = sum(permutation[a] > permutation[b] for a in range(n) for b in range(a + 1, n))
        terms.append(((-1.0) ** inversions, [row * n + column for row, column in enumerate(permutation)]))
    return polynomial(terms, matrix)


def bilinear(form: Callable[[Any], Any], second: Callable[[Any, Any], Any], x: Any) -> tuple[Any, Any]:
    """First and second derivative tensors from the derivative along a direction, and along two."""
    x = np.asarray(x)
    basis = np.eye(x.size).reshape(x.size, *x.shape)
    first = np.stack([form(e) for e in basis], axis=-1)
    twice = np.stack([np.stack([second(e, d) for d in basis], axis=-1) for e in basis], axis=-2)
    front = first.shape[:-1]
    return first.reshape(*front, *x.shape), twice.reshape(*front, *x.shape, *x.shape)
