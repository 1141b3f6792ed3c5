"""Methods of ufuncs are given lists and tuples of traced values, as any array-like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.3, 1.2, 2.0])
SHIFT = 0.7
FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: np.maximum.reduce([x, x * x, 0.5 * x]),
    lambda x: np.minimum.reduce([x, np.ones(3)]),
    lambda x: np.add.reduce([x, 2 * x], axis=1),
    lambda x: np.add.reduce([[x, 2 * x], [x * x, x]], axis=(0, 2), keepdims=True),
    lambda x: np.add.reduce([x, x * x], 0, None, None, True),
    lambda x: np.add.reduce([x, x * x], initial=SHIFT, where=[x > 1, x > 0]),
    lambda x: np.multiply.reduce((x[0], 1.0, x[1])),
    lambda x: np.logaddexp.reduce([x, x**2, [1.0, 2.0, 3.0]]),
    lambda x: np.subtract.reduce((x, x * x, x)),
    lambda x: np.logical_and.reduce([x > 0, x < 1.5]) * x,
    lambda x: np.add.accumulate([x, x * x, x], axis=1),
    lambda x: np.maximum.accumulate([x[2], x[0], 3 * x[1]]),
    lambda x: np.add.reduceat((x, x * x), [0, 2], axis=1),
    lambda x: np.multiply.outer([x[0], 1.0], (x[1], x[2])),
    lambda x: np.array(list(map(np.maximum.reduce, [[x[0], x[1]], [x[2], x[0]]]))),
    lambda x: (lambda reduce: reduce([x, x * x]))(np.multiply.reduce),
    lambda x: np.add.reduce(()) + x,
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_methods_of_ufuncs_take_lists_of_traced_values(number: int, backend: str) -> None:
    f = FUNCTIONS[number]
    found, wanted = sg.jit(f, backend=backend, strict=True)(X), f(X)
    assert type(found) is type(wanted) and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    step = 1e-6 * np.cos(np.arange(3.0))
    difference = (f(X + step) - f(X - step)) / 2
    np.testing.assert_allclose(sg.jvp(f, (X,), (step,), backend=backend)[1], difference, rtol=1e-6, atol=1e-12)
    slope = sg.grad(lambda x: np.sum(f(x)), backend=backend)(X)
    np.testing.assert_allclose(slope @ step, np.sum(difference), rtol=1e-6, atol=1e-12)
