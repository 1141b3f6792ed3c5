"""``ufunc.at`` of indices that are arguments: one program, which goes through the elements in a loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def largest_of_segments(x: Any, i: Any) -> Any:
    largest = np.full(4, -np.inf)
    np.maximum.at(largest, i, x)
    total = np.zeros(4)
    np.add.at(total, i, np.exp(x - largest[i]))
    return np.sum(np.log(np.where(total > 0, total, 1.0)))


def products(x: Any, i: Any) -> Any:
    found = np.ones((4, 3)) * x[0]
    np.multiply.at(found, (i, i % 3), x)
    np.subtract.at(found, i, x[:, None])
    return np.sum(np.sin(found))


def rows(x: Any, i: Any) -> Any:
    found = np.outer(x, x[:3])
    np.minimum.at(found, i, x[1] * 2)
    np.divide.at(found, (slice(None), i % 3), 1 + x[2] ** 2)
    return np.sum(found * found)


def in_a_loop(x: Any, i: Any) -> Any:
    found = x * 1.0
    for k in range(30):
        np.hypot.at(found, i, 0.1 * k)
    return np.sum(found)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [largest_of_segments, products, rows, in_a_loop])
def test_other_indices_are_no_other_program(f: Callable[..., Any], backend: str) -> None:
    random = np.random.default_rng(3)
    gradient = sg.value_and_grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(3):
            x, i = random.uniform(0.5, 1.5, 5), random.integers(-4, 4, 5)
            value, slope = gradient(x, i)
            np.testing.assert_allclose(value, f(x, i), rtol=1e-12)
            steps = 1e-6 * np.eye(5)
            expected = [(f(x + step, i) - f(x - step, i)) / 2e-6 for step in steps]
            np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_indices_out_of_bounds_are_errors_of_the_run() -> None:
    gradient = sg.grad(products)
    gradient(np.ones(5), np.arange(5) % 4)
    with pytest.raises(IndexError, match="out of bounds"):
        gradient(np.ones(5), np.array([0, 1, 2, 3, 4]))


def test_an_index_that_an_earlier_one_has_changed_is_read_again() -> None:
    def f(x: Any, i: Any) -> Any:
        found = np.zeros(2)
        np.logaddexp.at(found, i, x)
        return found

    x, i = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1, 1, 0, 1])
    np.testing.assert_allclose(sg.jit(f)(x, i), f(x, i), rtol=1e-14)
