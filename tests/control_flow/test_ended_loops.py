"""Loops through iterators without an end, which a value ends, or their count at the latest: one program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def iterates(c: Any) -> Iterator[Any]:
    f = c * 0
    while True:
        f = np.tanh(f * 0.5 + c)
        yield f


def two_breaks(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    previous = c * 0
    for k, f in enumerate(iterates(c)):
        if np.abs(f - previous).max() < tol:
            break
        if k > most:
            break
        previous = f
    return f.sum() * k


def from_none(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    previous = None
    for k, f in enumerate(iterates(c)):
        if previous is not None and np.abs(f - previous).max() < tol:
            break
        if k > most:
            break
        previous = f
    return f.sum() + k


def one_test(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    f = c * 0
    for k in itertools.count():
        previous = f
        f = np.tanh(previous * 0.5 + c)
        if np.abs(f - previous).max() < tol or k > most:
            break
    return f.sum() * k


def going_on(c: Any, tol: float = 1e-4, most: int = 9) -> Any:
    total, going = c.sum() * 0, True
    for k in itertools.count(1):
        going = going and np.abs(c).max() > tol and k < most
        if not going:
            return total * k
        c = c * 0.3
        total = total + c.sum()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [two_breaks, from_none, one_test, going_on], ids=lambda f: f.__name__)
def test_a_count_ends_a_loop_that_a_value_may_end_before(f: Callable[..., Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    for c in (np.array([0.4, -1.0]), np.zeros(2), np.array([3.0, 2.0]), np.array([1e-3, 1e-4])):
        value, slope = derivative(c)
        assert value == pytest.approx(f(c), rel=1e-12, abs=1e-300)
        expected = [(f(c + h) - f(c - h)) / 2e-7 for h in 1e-7 * np.eye(2)]
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)
        assert sg.jvp(f, (c,), (c,), backend=backend)[1] == pytest.approx(slope @ c, rel=1e-12, abs=1e-300)
    assert "One program" in sg.explain(derivative)(np.ones(2))["how it runs"]
