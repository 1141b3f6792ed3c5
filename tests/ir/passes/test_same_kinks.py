"""Second derivatives of what is smooth although it is written in several kinks at one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

ONE: dict[str, tuple[Callable[[Any], Any], float]] = {
    "sizes of multiples": (lambda x: np.abs(x) * np.abs(-2 * x / 3), 4 / 3),
    "both parts": (lambda x: (np.maximum(x, 0) - np.maximum(-x, 0)) ** 2, 2.0),
    "the sum of both parts": (lambda x: (np.maximum(x, 0) + np.maximum(-x, 0)) ** 2, 2.0),
    "the product of both parts": (lambda x: np.maximum(x, 0) * np.maximum(-x, 0), 0.0),
    "rectified multiples": (lambda x: np.cosh(np.maximum(3 * x, 0) - 3 * np.maximum(0, x)), 0.0),
    "odd functions": (lambda x: np.abs(np.sinh(-2 * x)) * np.abs(np.expm1(x)), 4.0),
    "the larger of both signs": (lambda x: np.maximum(x, -x) * np.abs(x), 2.0),
    "parts with other bounds": (lambda x: (np.clip(2 * x, -1, 0) + 2 * np.clip(x, 0, 3)) ** 2, 8.0),
    "beside what is positive": (
        lambda x: np.maximum(x * np.exp(x), 0) * np.abs(-x / (1 + x**2)) - np.maximum(x, 0) ** 2,
        0.0,
    ),
    "beyond another bound": (lambda x: np.maximum(0, 2 * x) * np.clip(np.expm1(x), -1, 0), 0.0),
    "a number and zero": (lambda x: np.maximum(x - 0.0, 0) * np.abs(2 * x + 0.0), 2.0),
    "a quantile loss": (lambda x: np.maximum(0.3 * x, -0.7 * x) * np.abs(x) + np.abs(2 * x) * np.abs(x), 5.0),
}
TWO: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "a difference": (lambda a, b: np.maximum(a - b, 0) * np.abs(b - a), 1.0),
    "the larger and parts": (lambda a, b: (np.maximum(a, b) - np.maximum(b - a, 0)) ** 2, 2.0),
    "multiples": (lambda a, b: np.abs(2 * a - 2 * b) * np.maximum(3 * b, 3 * a) - 6 * b * np.abs(a - b), 6.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ONE)
def test_kinks_where_one_value_is_zero(name: str, backend: str) -> None:
    """Kinks at multiples of a value were each a kink of its own: the square of both parts had 3, not 2."""
    f, expected = ONE[name]
    for first in (sg.jacfwd, sg.jacrev):
        slope = first(f, backend=backend)
        np.testing.assert_allclose(sg.jacfwd(slope, backend=backend)(0.0), expected, rtol=1e-14, atol=1e-14)
        for x in (0.3, -0.2):
            step = (slope(x + 1e-6) - slope(x - 1e-6)) / 2e-6
            np.testing.assert_allclose(sg.jacfwd(slope, backend=backend)(x), step, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", TWO)
def test_kinks_where_two_values_are_equal(name: str) -> None:
    f, expected = TWO[name]
    np.testing.assert_allclose(sg.hessian(f)(1.3, 1.3), expected, rtol=1e-14)


def test_kinks_at_one_bound() -> None:
    assert sg.hessian(lambda x: (np.clip(x, 0, 1) + np.clip(x, 1, 2)) ** 2)(1.0) == 2.0
    assert sg.hessian(lambda x: np.maximum(x, 1) * np.maximum(x, 2))(1.0) == 0.0


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_signs_of_multiples_have_the_slope_of_the_size(backend: str) -> None:
    for mode in (sg.jacfwd, sg.jacrev):
        assert mode(lambda x: np.sign(-x) * np.log1p(np.abs(2 * x)), backend=backend)(0.0) == -2.0
        assert mode(lambda x: np.sign(x - 1) * np.sin(np.abs(1 - x)), backend=backend)(1.0) == 1.0


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_kinks_of_examples(backend: str) -> None:
    """Numbers are repeated for each example there: the square of both parts had 3."""
    for name in ("both parts", "beyond another bound", "a number and zero"):
        f, expected = ONE[name]
        found = sg.vmap(sg.grad(sg.grad(f)), backend=backend)(np.array([0.0, -0.0]))
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
