"""What does not contribute never does: ``where`` and its kin beside inf and nan, to order 4."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hard_points.points import Case

C3 = np.array([1.0, 0.0, 2.0])
M = np.array([[1.0, 2.0], [0.0, 3.0]])
ZEROS, ONE = (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


def rows(x: Any) -> Any:
    y, r = M @ np.broadcast_to(x, 2), M @ np.broadcast_to(np.sqrt(x), 2)
    return np.sum(np.where(y > 0, r, y))


def shared(x: Any) -> Any:
    return np.where(x > 0, np.sqrt(x), x) * np.where(x > 0, np.sqrt(x), 1.0)


def logs(x: Any) -> Any:
    return np.sum(np.where(np.broadcast_to(x, 3) * C3 > 0, np.log(np.broadcast_to(x, 3) * C3), 0.0))


def larger(x: Any) -> Any:
    return np.where(np.log(x) > -1, np.log(x), -1.0)


def pieces(x: Any) -> Any:
    return np.where(x > 1, np.log(x - 1), np.where(x > 0, np.sqrt(x), x))


def left_out(x: Any) -> Any:
    return np.sum(np.sqrt(np.broadcast_to(x, 3) * C3)[[0, 2]])


def masked_in_place(x: Any) -> Any:
    out = np.sqrt(x * C3)
    out[C3 == 0] = x
    return np.sum(out)


ROOT = 1 + np.sqrt(2.0)
TRAPS: dict[str, Case] = {
    "where(x < 1, x, sqrt x)": (lambda x: np.where(x < 1, x, np.sqrt(x)), 0.0, ONE),
    "where(x > 0, log x, 0)": (lambda x: np.where(x > 0, np.log(x), 0.0), 0.0, ZEROS),
    "where(x >= 0, x, sqrt(-x))": (lambda x: np.where(x >= 0, x, np.sqrt(-x)), 1.0, ONE),
    "where(x > 0, sin x / x, 1)": (lambda x: np.where(x > 0, np.sin(x) / x, 1.0), 0.0, ZEROS),
    "where(x < 700, exp x, x)": (lambda x: np.where(x < 700, np.exp(x), x), 1000.0, ONE),
    "nested": (pieces, 0.0, ONE),
    "the predicate shares": (lambda x: np.where(np.sqrt(x) > 0, x / np.sqrt(x), x), 0.0, ONE),
    "log x > -1 ? log x : -1": (larger, 0.0, ZEROS),
    "two, added": (
        lambda x: np.where(x > 0, np.sqrt(x), x) + np.where(x > 0, np.log(x), 2 * x),
        0.0,
        (3.0, 0.0, 0.0, 0.0),
    ),
    "a branch shared": (shared, 0.0, ONE),
    "a chain": (lambda x: np.where(x > 0, np.exp(np.log(np.sqrt(x)) * 2), x), 0.0, ONE),
    "broadcast and sum, masked everywhere": (logs, 0.0, ZEROS),
    "broadcast and sum": (logs, 2.0, (1.0, -0.5, 0.5, -0.75)),
    "sum inside": (lambda x: np.where(x > 0, np.sum(np.sqrt(np.broadcast_to(x, 3) * C3)), x), 0.0, ONE),
    "dot of a where": (
        lambda x: np.where(np.broadcast_to(x, 3) > 0, np.sqrt(np.broadcast_to(x, 3)), np.broadcast_to(x, 3)) @ C3,
        0.0,
        (3.0, 0.0, 0.0, 0.0),
    ),
    "dot inside": (
        lambda x: np.where(x > 0, np.sqrt(np.broadcast_to(x, 3)) @ np.log(np.broadcast_to(x, 3)), x),
        0.0,
        ONE,
    ),
    "matrix product, where on rows": (rows, 0.0, (6.0, 0.0, 0.0, 0.0)),
    "gather inside": (lambda x: np.where(x > 0, np.sum(np.sqrt(np.broadcast_to(x, 3))[[0, 2]]), x), 0.0, ONE),
    "gather leaves an element out": (left_out, 4.0, (ROOT / 4, -ROOT / 32, 3 * ROOT / 256, -15 * ROOT / 2048)),
    "sqrt of a where": (lambda x: np.sqrt(np.where(x > 0, x, 0.0)), -1.0, ZEROS),
    "overwritten in place": (masked_in_place, 4.0, (ROOT / 4 + 1, -ROOT / 32, 3 * ROOT / 256, -15 * ROOT / 2048)),
}
