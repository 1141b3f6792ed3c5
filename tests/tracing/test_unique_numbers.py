"""``np.unique`` of floats that are not known: what a mask selects of them in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = [
    np.array([1.0, 2.0, 1.0, 3.0]),
    np.array([4.0, -1.0, 0.5, 2.0]),
    np.array([2.0, 2.0, 2.0, 2.0]),
    np.array([0.0, 3.0, -0.0, 3.0]),
]


def counted(x: Any) -> Any:
    values, counts = np.unique(x, return_counts=True)
    return np.sum(values**2 * counts)


def scaled(x: Any) -> Any:
    return len(np.unique(x)) * np.sum(x) + np.mean(np.unique(x)) + (np.unique(x).size == x.size)


def restored(x: Any) -> Any:
    values, inverse = np.unique(x.reshape(2, 2), return_inverse=True)
    return np.sum(values[inverse].reshape(-1) * x * np.arange(1.0, 5.0))


def placed(x: Any) -> Any:
    values, places = np.unique(x, return_index=True)
    return np.max(values) + np.sum(places * values) + values[0]


def sorted_parts(x: Any) -> Any:
    return np.sum(np.diff(np.unique(x)) ** 2)


ONE = [lambda x: np.sum(np.unique(x) ** 2), counted, scaled]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", ONE)
def test_sums_of_the_distinct_are_one_program(f: Callable[[Any], Any], backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in POINTS:
        np.testing.assert_allclose(slope(x)[0], f(x), rtol=1e-14)
    assert sg.explain(sg.grad(f, backend=backend))(POINTS[0])["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*ONE, restored, placed, sorted_parts])
def test_values_and_slopes_of_distinct_numbers(f: Callable[[Any], Any], backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in POINTS:
        np.testing.assert_allclose(slope(x)[0], f(x), rtol=1e-14)
    x = POINTS[1]
    steps = 1e-6 * np.eye(4)
    np.testing.assert_allclose(slope(x)[1], [(f(x + step) - f(x - step)) / 2e-6 for step in steps], rtol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("derivative", [sg.grad, sg.jacfwd])
def test_equal_numbers_share_the_slope(derivative: Any, backend: str) -> None:
    np.testing.assert_allclose(derivative(counted, backend=backend)(POINTS[0]), 2 * POINTS[0], rtol=1e-14)
    weighted = [1 * 1 + (1 + 3) / 2, 2 * 2 + 4.0, 1 * 3 + (1 + 3) / 2, 4 * 3 + 12.0]
    np.testing.assert_allclose(derivative(restored, backend=backend)(POINTS[0]), weighted, rtol=1e-14)
    np.testing.assert_allclose(derivative(counted, backend=backend)(POINTS[2]), 2 * POINTS[2], rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("derivative", [sg.grad, sg.jacfwd])
def test_equal_rows_share_the_slope(derivative: Any, backend: str) -> None:
    def f(x: Any) -> Any:
        rows, counts = np.unique(x, axis=0, return_counts=True)
        return np.sum(rows**2 * counts[:, None])

    x = np.array([[1.0, 2.0], [3.0, np.inf], [1.0, 2.0], [-0.0, 1.0]])
    np.testing.assert_array_equal(derivative(f, backend=backend)(x), 2 * x)
    same = np.full((3, 1), -0.0)
    assert np.signbit(sg.jit(lambda x: np.unique(x, axis=0), backend=backend)(same)).all()


def test_equal_complex_numbers_share_the_slope() -> None:
    z = np.array([1 + 1j, 2.0, 1 + 1j])
    np.testing.assert_allclose(sg.grad(lambda z: np.sum(np.abs(np.unique(z)) ** 2))(z), [1 - 1j, 4, 1 - 1j])


@pytest.mark.parametrize("equal_nan", [True, False])
def test_nan_is_one_number_or_many(equal_nan: bool) -> None:
    def f(x: Any) -> Any:
        values, counts = np.unique(x, return_counts=True, equal_nan=equal_nan)
        return len(values), np.sum(counts), np.nansum(values)

    for x in (np.array([np.nan, 1.0, np.nan, 1.0]), np.array([2.0, np.inf, -1.0, np.nan]), np.array([1.0, 2.0])):
        for found, expected in zip(sg.jit(f)(x), f(x), strict=True):
            np.testing.assert_array_equal(found, expected)
