"""Captured whole numbers and bounds, which are read at each call, as amounts to roll by and as bounds of ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import DTypeError

SHIFTS = np.array([0, 1, -1, 7, -9])
PAIRS = np.array([[1, 2], [3, -4]])
STARTS = np.array([1.0, 2.5])
X = np.random.default_rng(0).normal(size=(3, 4))


def along_an_axis(x: Any) -> Any:
    return sum((k + 1.0) * np.sum(np.roll(x, c, 1)[:, 0] * x[:, 1]) for k, c in enumerate(SHIFTS))


def of_all(x: Any) -> Any:
    return sum(np.sum(np.roll(x, c)[0] * x[1]) for c in SHIFTS)


def twice(x: Any) -> Any:
    return sum(np.sum(np.roll(np.roll(x, a, 0), b, axis=1)[0] * x[1]) for a, b in PAIRS)


def two_axes(x: Any) -> Any:
    return np.sum(np.roll(x, PAIRS[0], axis=(0, 1))[0] * x[1]) + np.sum(np.roll(x, (2, PAIRS[1, 1]), (1, 0))[0] * x[2])


def one_axis_often(x: Any) -> Any:
    return np.sum(np.roll(x, PAIRS[1], axis=0)[0] * x[1]) + np.sum(np.roll(x, PAIRS[0, 0], axis=(0, 1))[1] * x[0])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [along_an_axis, of_all, twice, two_axes, one_axis_often], ids=lambda f: f.__name__)
def test_arrays_are_rolled_by_numbers_of_the_call(f: Callable[[Any], Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    steps = 1e-6 * np.eye(12).reshape(12, 3, 4)
    for more in (0, 3):
        SHIFTS[:] += more
        PAIRS[:] += more
        value, slope = derivative(X)
        assert value == pytest.approx(f(X), rel=1e-12)
        expected = np.array([(f(X + h) - f(X - h)) / 2e-6 for h in steps]).reshape(3, 4)
        np.testing.assert_allclose(slope, expected, atol=1e-7)
        assert sg.jvp(f, (X,), (X,), backend=backend)[1] == pytest.approx(np.sum(slope * X), rel=1e-12)
    assert "One program" in sg.explain(derivative)(X)["how it runs"]


def test_nothing_is_rolled_by_floats() -> None:
    with pytest.raises(DTypeError, match=r"np\.roll takes integers"):
        sg.grad(lambda x: np.sum(np.roll(x, x[0]) * x))(np.ones(3))


def of_captured_bounds(x: Any) -> Any:
    return sum(np.sum(np.exp(-x * (np.arange(start, 5, 0.5) - start))) for start in STARTS)


def of_the_argument(x: Any) -> Any:
    return np.sum(np.arange(x, 4 * x, 0.25) ** 2) + np.sum(np.arange(x) * x)


def downwards(x: Any) -> Any:
    return np.sum(np.arange(x, 0, -0.5)) + np.arange(x, x).size


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [of_captured_bounds, of_the_argument, downwards], ids=lambda f: f.__name__)
def test_a_range_of_floats_has_a_program_for_each_length(f: Callable[[Any], Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    for x, start in ((1.1, 1.0), (2.3, 1.0), (1.15, 1.7), (2.3, 2.4)):
        STARTS[0] = start
        value, slope = derivative(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)
    assert "program for the calls" in sg.explain(derivative)(2.3)["how it runs"]
