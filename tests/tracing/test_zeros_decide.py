"""Functions that only ask which numbers are zero are a program for each set of zeros, not one for each number."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def polynomial(x: Any) -> Any:
    p = np.poly1d(x)
    return (p * p + p.deriv())(1.7)


def roots(x: Any) -> Any:
    return np.sum(np.abs(np.roots(x)))


def product(x: Any) -> Any:
    return np.sum(np.polymul(x, [2.0, 1.0]) ** 2)


def quotient(x: Any) -> Any:
    quotient, rest = np.polydiv(x, [2.0, 1.0])
    return np.sum(quotient) * np.sum(rest)


def from_pairs(x: Any) -> Any:
    pairs = np.array([x[1] + 1j * x[2], x[1] - 1j * x[2]])
    return np.poly(pairs)[2]


def trimmed(x: Any) -> Any:
    return np.prod(np.trim_zeros(x))


def places(x: Any) -> Any:
    return np.prod(x[np.flatnonzero(np.maximum(x - 1.0, 0.0))]) + np.sum(x[np.nonzero(x)] ** 2)


def places_in_rows(x: Any) -> Any:
    return np.prod(x[np.argwhere(x)[:, 0]])


def real_if_close(x: Any) -> Any:
    return np.real_if_close(x[1:] + 0j)[0] ** 2


FUNCTIONS = [polynomial, roots, product, quotient, from_pairs, trimmed, places, places_in_rows, real_if_close]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_program_for_all_numbers_with_the_same_zeros(f: Callable[[Any], Any]) -> None:
    gradient = sg.value_and_grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for k in range(12):  # more than there may be paths
            x = np.array([0.7, 1.3, 2.15]) * (1 + k / 16)
            value, slope = gradient(x)
            assert_allclose = np.testing.assert_allclose
            assert_allclose(value, f(x), rtol=1e-12)
            step = 1e-6
            apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(3)]
            assert_allclose(slope, apart, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", [polynomial, roots, product, trimmed, places], ids=lambda f: f.__name__)
def test_other_zeros_are_another_program(f: Callable[[Any], Any]) -> None:
    run = sg.jit(f)
    for x in ([0.7, 1.3, 2.15], [0.0, 1.3, 2.15], [0.7, 1.3, 0.0], [0.0, 1.3, 0.0], [0.0, 0.0, 2.5], [1.0, 2.0, 3.0]):
        np.testing.assert_allclose(run(np.array(x)), f(np.array(x)), rtol=1e-12)


def test_a_rest_and_imaginary_parts_that_are_not_small_are_kept() -> None:
    run = sg.jit(lambda x: np.polydiv(x, [2.0, 1.0])[1])
    for x in ([4.0, 2.0, 0.0], [4.0, 2.0, 1.0], [4.0, 2.0, 1e-9]):
        np.testing.assert_allclose(run(np.array(x)), np.polydiv(x, [2.0, 1.0])[1], rtol=1e-12)
    close = sg.jit(lambda x: np.real_if_close(1.0 + 1j * x))
    for y in (0.0, 1e-16, 1e-12, 0.5, -1e-16, -0.5):
        found, expected = close(np.array([y])), np.real_if_close(1.0 + 1j * np.array([y]))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
