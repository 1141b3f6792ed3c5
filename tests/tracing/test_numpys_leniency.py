"""What NumPy lets pass although it reads like an error, and attributes that it no longer has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])

CASES: dict[str, Callable[[Any], Any]] = {
    "delete of an empty list": lambda x: np.delete(x, [], 0) * x,
    "delete of an empty tuple": lambda x: np.delete(x, ()) * 2.0,
    "nanmean of a scalar": lambda x: np.nanmean(x[0, 1], axis=0) * x,
    "nanvar of a scalar": lambda x: np.nanvar(x[0, 1], axis=-1) + x,
    "nanstd of a 0-d array": lambda x: np.nanstd(x[0, 1, ...], axis=0, keepdims=True) + x,
    "whole": lambda x: x[True] ** 2,
    "nothing": lambda x: x[False].sum() + x,
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_what_numpy_lets_pass(name: str, backend: str) -> None:
    f = CASES[name]
    found, expected = sg.jit(f, backend=backend)(X), f(X)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    slope = [(f(X + e).sum() - f(X - e).sum()) / 2e-6 for e in 1e-6 * np.eye(X.size).reshape(-1, *X.shape)]
    gradient = sg.grad(lambda x: f(x).sum(), backend=backend)(X)
    np.testing.assert_allclose(gradient.ravel(), slope, rtol=1e-7, atol=1e-8)


def test_what_numpy_refuses_is_refused() -> None:
    for f in (
        lambda x: np.delete(x, np.array([]), 0),
        lambda x: np.mean(x[0, 1], axis=0),
        lambda x: np.nanmean(x[0, 1].astype(int), axis=0),
        lambda x: np.nanmean(x[0, 1], axis=1),
    ):
        with pytest.raises((IndexError, np.exceptions.AxisError)):
            f(X)
        with pytest.raises((IndexError, np.exceptions.AxisError)):
            sg.jvp(f, (X,), (X,))


@pytest.mark.parametrize("name", ["ptp", "itemset", "newbyteorder", "itemsize", "mT", "clip"])
def test_attributes_are_those_of_this_numpy(name: str) -> None:
    """``hasattr`` takes the branch that NumPy takes: version 2 removed methods of arrays."""

    def f(x: Any) -> Any:
        return x * 2.0 if hasattr(x, name) else x * 3.0

    np.testing.assert_array_equal(sg.jit(f)(X), f(X))
    np.testing.assert_array_equal(sg.jvp(f, (X,), (X,))[1], f(X))
