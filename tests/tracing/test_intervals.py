"""Integers that surely lie between two numbers, so that no program depends on them: the places of ``np.bincount``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[[Any, Any], Any]

EDGES = np.linspace(-1.0, 1.0, 5)
SURELY: dict[str, Function] = {
    "argmin": lambda x, k: np.argmin((x[:, None] - x[:6]) ** 2, axis=1),
    "argmax of a view": lambda x, k: np.argmax(np.cos(np.outer(x[:6], x)), axis=0)[::-1],
    "remainder": lambda x, k: k % 6,
    "remainder of another dtype": lambda x, k: (k % np.uint8(3)).astype(np.int32),
    "sum": lambda x, k: k % 3 + (k // 2) % 4,
    "difference": lambda x, k: 5 - np.minimum(np.abs(k) % 9, 5),
    "clip": lambda x, k: np.clip(k - 4, 0, 5),
    "digitize": lambda x, k: np.digitize(x, EDGES),
    "digitize in falling bins": lambda x, k: np.digitize(x, EDGES[::-1]),
    "searchsorted": lambda x, k: np.searchsorted(np.sort(x[:5]), x),
    "chosen": lambda x, k: np.where(x > 0, 1, k % 5),
    "joined": lambda x, k: np.concatenate([k[:6] % 4, np.argmax(x.reshape(2, 6), axis=0)]),
    "truth values": lambda x, k: (x > 0).astype(int),
}
NOT_SURELY: dict[str, Function] = {
    "more": lambda x, k: k % 7,
    "remainder of a negative divisor": lambda x, k: -(k % -6),
    "a divisor of values": lambda x, k: k % (k[0] % 2 + 6),
    "a sum that may be more": lambda x, k: k % 4 + k % 4,
    "clipped above only": lambda x, k: np.minimum(k, 5),
    "a cast that wraps": lambda x, k: np.maximum(k, 0).astype(np.int8),
    "argmin of all": lambda x, k: np.argmin(x) + np.zeros(12, int),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("kind", SURELY)
def test_bincount_asks_nothing_of_places_that_surely_are_bins(kind: str, backend: str) -> None:
    def loss(x: Any, k: Any) -> Any:
        return np.sum(np.bincount(SURELY[kind](x, k), weights=x, minlength=6) ** 2)

    strict, slope = sg.jit(loss, strict=True, backend=backend), sg.grad(loss, backend=backend)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, k = rng.normal(size=12), rng.integers(0, 100, 12)
        places = SURELY[kind](x, k)
        np.testing.assert_allclose(strict(x, k), loss(x, k))
        np.testing.assert_allclose(slope(x, k), 2 * np.bincount(places, x, 6)[places])
    assert "Path" not in sg.explain(slope)(x, k)["how it runs"]


@pytest.mark.parametrize("kind", NOT_SURELY)
def test_bincount_asks_for_the_largest_of_places_that_may_be_beyond_the_bins(kind: str) -> None:
    def counts(x: Any, k: Any) -> Any:
        return np.bincount(NOT_SURELY[kind](x, k), weights=x, minlength=6)

    with pytest.raises(sg.errors.ArgumentError, match=r"np\.bincount needs the value"):
        sg.jit(counts, strict=True)(np.ones(12), np.arange(12))
    x, k = np.arange(1.0, 13.0), np.arange(12)[::-1].copy()
    np.testing.assert_allclose(sg.jit(counts)(x, k), counts(x, k))


def test_bincount_in_trips_of_a_loop_asks_nothing_of_places_from_outside() -> None:
    def centres(x: Any, k: Any) -> Any:
        groups, total = k % 4, 0.0
        for step in range(40):
            total = total + np.sum(np.bincount(groups, weights=np.sin(x * step), minlength=4) ** 2)
        return total

    x, k = np.linspace(0.1, 2.0, 9), np.arange(9)
    np.testing.assert_allclose(sg.jit(centres, strict=True)(x, k), centres(x, k))
