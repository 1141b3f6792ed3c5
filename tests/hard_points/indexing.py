"""Indexing, views and in-place code: the derivative of what NumPy does, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.hard_points.points import Case, polynomial

X = np.array([3.0, 4.0, 5.0])


def products(rows: Sequence[Sequence[tuple[float, Sequence[int]]]], x: Any = X) -> tuple[Any, Any]:
    """First and second derivatives of outputs that are sums of products of elements of ``x``, one row per output."""
    found = [polynomial(row, x) for row in rows]
    return np.stack([g for g, _ in found]), np.stack([h for _, h in found])


def assigned(index: Any, values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        out = np.zeros_like(x)
        out[index] = values(x)
        return out**2

    return f


def overlapping(x: Any) -> Any:
    x[1:] += x[:-1] * x[1:]
    return x


def through_a_view(x: Any) -> Any:
    y = x[::-1]
    y[0] = y[1] * y[2]
    return x


def view_of_a_view(x: Any) -> Any:
    m = np.stack([x, x])
    m.T[1:][:, 0] *= m[0, 0]
    return m.ravel()


def swapped(x: Any) -> Any:
    x[[0, 1]] = x[[1, 0]]
    return x * x[0]


def masked_write(x: Any) -> Any:
    x[np.array([True, False, True])] = x[1] ** 2
    return x


def accumulated(x: Any) -> Any:
    for k in range(1, 3):
        x[k] *= x[k - 1]
    return x


def added_at(x: Any) -> Any:
    out = np.zeros_like(x[:2])
    for k in (0, 1, 0):
        out[k] += x[k] * x[2]
    return out


def diagonal_written(x: Any) -> Any:
    m = np.outer(x, x)
    np.fill_diagonal(m, x[0])
    return m[:2, :2].ravel()


def put_along(x: Any) -> Any:
    y = x**2
    np.put_along_axis(y, np.array([0, 0]), x[1:], 0)
    return y


def copied(x: Any) -> Any:
    y = x[:2].copy()
    x[:2] = 0.0
    return y * x[2]


def deleted_and_back(x: Any) -> Any:
    return np.insert(np.delete(x, 1), 0, x[1] * x[0])


INDEXING: dict[str, Case] = {
    "the last assignment wins": (
        assigned([1, 1, 2], lambda x: x),
        X,
        products([[], [(1, (1, 1))], [(1, (2, 2))]]),
    ),
    "the last assignment wins in rows": (
        assigned(([0, 0],), lambda x: x[:2] * x[1:]),
        X,
        products([[(1, (1, 1, 2, 2))], [], []]),
    ),
    "an index taken twice": (
        lambda x: x[[0, 0, 1]] * x[[1, 0, 1]],
        X,
        products([[(1, (0, 1))], [(1, (0, 0))], [(1, (1, 1))]]),
    ),
    "a negative step": (lambda x: x[::-1] * x, X, products([[(1, (0, 2))], [(1, (1, 1))], [(1, (0, 2))]])),
    "a mask": (lambda x: x[np.array([True, False, True])] ** 2, X, products([[(1, (0, 0))], [(1, (2, 2))]])),
    "an empty index": (lambda x: np.sum(x[[]]) + x[0], X, polynomial([(1, (0,))], X)),
    "a new axis": (
        lambda x: (x[:, None] * x[None, :])[0],
        X,
        products([[(1, (0, 0))], [(1, (0, 1))], [(1, (0, 2))]]),
    ),
    "roll": (lambda x: np.roll(x, 1) * x, X, products([[(1, (0, 2))], [(1, (0, 1))], [(1, (1, 2))]])),
    "a write that overlaps what it reads": (
        overlapping,
        X,
        products([[(1, (0,))], [(1, (1,)), (1, (0, 1))], [(1, (2,)), (1, (1, 2))]]),
    ),
    "a write through a view": (through_a_view, X, products([[(1, (0,))], [(1, (1,))], [(1, (0, 1))]])),
    "a write through a view of a view": (
        view_of_a_view,
        X,
        products([[(1, (0,))], [(1, (0, 1))], [(1, (0, 2))], [(1, (0,))], [(1, (1,))], [(1, (2,))]]),
    ),
    "two elements change places": (swapped, X, products([[(1, (1, 1))], [(1, (0, 1))], [(1, (1, 2))]])),
    "a write through a mask": (masked_write, X, products([[(1, (1, 1))], [(1, (1,))], [(1, (1, 1))]])),
    "a loop over elements": (accumulated, X, products([[(1, (0,))], [(1, (0, 1))], [(1, (0, 1, 2))]])),
    "an element added to twice": (added_at, X, products([[(2, (0, 2))], [(1, (1, 2))]])),
    "a diagonal written": (
        diagonal_written,
        X,
        products([[(1, (0,))], [(1, (0, 1))], [(1, (0, 1))], [(1, (0,))]]),
    ),
    "put_along_axis twice": (put_along, X, products([[(1, (2,))], [(1, (1, 1))], [(1, (2, 2))]])),
    "a copy is no view": (copied, X, products([[(1, (0, 2))], [(1, (1, 2))]])),
    "insert and delete": (deleted_and_back, X, products([[(1, (0, 1))], [(1, (0,))], [(1, (2,))]])),
    "take_along_axis of argsort": (
        lambda x: np.take_along_axis(x, np.argsort(-x), 0) * x,
        X,
        products([[(1, (0, 2))], [(1, (1, 1))], [(1, (0, 2))]]),
    ),
    "the median of an even number": (
        lambda x: np.median(np.append(x, 4.5) ** 2),
        X,
        polynomial([(0.5, (1, 1))], X),
    ),
    "interp at a knot": (
        lambda x: np.interp(4.0, np.array([3.0, 4.0, 5.0]), x**2),
        X,
        polynomial([(1, (1, 1))], X),
    ),
    "repeat and tile": (
        lambda x: np.sum(np.repeat(x, 2) * np.tile(x, 2)),
        X,
        polynomial([(1, (0, 0)), (1, (0, 1)), (1, (1, 2)), (1, (1, 0)), (1, (2, 1)), (1, (2, 2))], X),
    ),
    "a transposed write": (
        lambda x: written_transposed(x),
        X,
        products([[(1, (0, 0))], [(1, (1, 1))], [(1, (2, 2))], []]),
    ),
    "cumsum of products": (
        lambda x: np.cumsum(x[:-1] * x[1:]),
        X,
        products([[(1, (0, 1))], [(1, (0, 1)), (1, (1, 2))]]),
    ),
    "diff": (
        lambda x: np.diff(x, n=2) ** 2,
        X,
        products([[(1, (0, 0)), (4, (1, 1)), (1, (2, 2)), (-4, (0, 1)), (2, (0, 2)), (-4, (1, 2))]]),
    ),
}  # fmt: skip


def written_transposed(x: Any) -> Any:
    m = np.zeros_like(np.outer(x[:2], x[:2]))
    m.T[0] = x[:2] ** 2
    m[0, 1] = x[2] ** 2
    return m.ravel()[[0, 2, 1, 3]]
