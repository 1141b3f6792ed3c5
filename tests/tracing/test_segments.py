"""Folds of segments of many lengths: ``reduceat``."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad as sg


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_products_of_segments_of_many_lengths(backend: str) -> None:
    """A long one beside many short ones, zeros in some, every dtype."""
    random = np.random.default_rng(5)
    starts = np.concatenate([np.arange(2, 40), [41, 44, 48, 53], [3053], 3053 + np.cumsum(random.permutation(20) + 1)])
    x = random.uniform(0.9, 1.1, (2, starts[-1] + 3))
    x[0, [5, 49, 51, 900]] = 0.0
    for dtype in ("f8", "f4", "i2", "c16", "?"):
        numbers = (x * 2.0 if dtype == "i2" else x).astype(dtype)
        found = sg.jit(lambda v: np.multiply.reduceat(v, starts, axis=1), backend=backend)(numbers)
        wanted = np.multiply.reduceat(numbers, starts, axis=1)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype == "f4" else 1e-11)
    weights = random.normal(size=(len(starts), 2))
    slope = sg.grad(lambda v: np.sum(np.multiply.reduceat(v.T, starts) * weights), backend=backend)(x)
    wanted = np.zeros_like(x)
    for k, (start, end) in enumerate(zip(starts, [*starts[1:], x.shape[1]], strict=True)):
        for row in (0, 1):
            part = x[row, start:end]
            others = [np.prod(np.delete(part, i)) for i in range(len(part))]
            wanted[row, start:end] = weights[k, row] * np.array(others)
    np.testing.assert_allclose(slope, wanted, rtol=1e-9, atol=1e-300)
