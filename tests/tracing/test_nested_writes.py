"""Memory of an outer trace written by an inner one, and arrays that user code changes while it is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 3.0])


def writing(x: Any) -> Any:
    """The inner function writes the outer array, reads what it wrote, and is differentiated."""
    outer = x * 1.0

    def inner(y: Any) -> Any:
        outer[0] = y
        return np.sum(outer) * y

    slope = sg.grad(inner)(x[1])
    return slope * np.sum(x)


def branching(x: Any) -> Any:
    """The same, traced again at each call."""
    return writing(x) if np.sum(x) > 0 else 0.0


@pytest.mark.parametrize("f", [writing, branching])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_inner_function_reads_what_it_wrote(f: Callable[..., Any]) -> None:
    """d/dy (y + x1 + x2) y at y = x1 is 3 x1 + x2; times the sum of x."""
    slope, total = 3 * X[1] + X[2], X.sum()
    np.testing.assert_allclose(sg.grad(f)(X), [slope, slope + 3 * total, slope + total], rtol=1e-15)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_array_changed_after_its_use_was_copied() -> None:
    def f(x: Any) -> Any:
        memory = bytearray(np.arange(100.0).tobytes())
        weights = np.frombuffer(memory)
        result = np.sum(weights * x) * len(np.setdiff1d(x, [0.0]))  # which needs x itself: traced again at each call
        memory[:] = bytes(len(memory))
        return result

    np.testing.assert_array_equal(sg.grad(f)(np.ones(100)), np.arange(100.0))


def test_views_see_what_others_write() -> None:
    """Through a transposed, a reversed and a reshaped view of one array, read before and after."""

    def f(x: Any) -> Any:
        a = x * 1.0
        turned, back, flat = a.transpose(2, 0, 1), a[:, ::-1], a.reshape(-1)
        first = np.sum(turned[0]) + np.sum(back[:, 0])
        turned[1] = 2.0 * turned[0]
        back[0, 0] = flat[:2] * 3.0
        flat[-1] = a[0, 0, 0] ** 2
        return first + np.sum(a * np.arange(12.0).reshape(2, 3, 2)) + np.sum(turned**2) + np.sum(back[0])

    x = np.linspace(0.5, 2.0, 12).reshape(2, 3, 2)
    step = 1e-6
    expected = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(12).reshape(12, 2, 3, 2)]
    np.testing.assert_allclose(sg.grad(f)(x).ravel(), expected, rtol=1e-7)
