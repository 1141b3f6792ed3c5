"""Derivatives where the squares of numbers overflow or vanish, and what is differentiated does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sc
import scipy.stats as st

import srcgrad as sg

Function = Callable[[Any], Any]
MODES = [sg.jacfwd, sg.jacrev]
LOG2, LOG10 = np.log(2.0), np.log(10.0)

POINTS: dict[str, tuple[Function, float, float, float]] = {
    "1/x of small": (lambda x: 1 / (1e-200 * x) * 1e-200, 2.0, -0.25, 0.25),
    "1/x of large": (lambda x: 1 / (1e200 * x) * 1e200, 2.0, -0.25, 0.25),
    "reciprocal": (lambda x: np.reciprocal(1e-200 * x) * 1e-200, 2.0, -0.25, 0.25),
    "log of small": (lambda x: np.log(1e-200 * x), 2.0, 0.5, -0.25),
    "log of large": (lambda x: np.log(1e200 * x), 2.0, 0.5, -0.25),
    "log2": (lambda x: np.log2(1e-200 * x), 2.0, 0.5 / LOG2, -0.25 / LOG2),
    "log10": (lambda x: np.log10(1e-200 * x), 2.0, 0.5 / LOG10, -0.25 / LOG10),
    "log1p": (lambda x: np.log1p(1e200 * x), 2.0, 0.5, -0.25),
    "log of a large square": (lambda x: np.log(1 + (1e100 * x) ** 2), 2.0, 1.0, -0.5),
    "quotient of small": (lambda x: 1e-200 * x / (1e-200 * (1 + x * x)), 1.0, 0.0, -0.5),
    "quotient of large": (lambda x: 1e200 * x / (1e200 * (1 + x * x)), 1.0, 0.0, -0.5),
    "quotient by one number": (lambda x: np.sum(np.full(3, 1e200) * x / (1e200 * (1 + x * x))), 1.0, 0.0, -1.5),
    "arctan2 of small": (lambda x: np.arctan2(1e-200 * x, 1e-200), 1.0, 0.5, -0.5),
    "arctan2 of large": (lambda x: np.arctan2(1e200 * x, 1e200), 1.0, 0.5, -0.5),
    "arcsinh": (lambda x: np.arcsinh(1e200 * x), 2.0, 0.5, -0.25),
    "logit": (lambda x: sc.logit(1e-200 * x), 2.0, 0.5, -0.25),
    "xlogy": (lambda x: sc.xlogy(1.0, 1e-200 * x), 2.0, 0.5, -0.25),
    "log of a density": (lambda x: np.log(np.exp(-x * x / 2)), 30.0, -30.0, -1.0),
    "log of a chance": (lambda x: np.log(sc.expit(x)), -700.0, 1.0, 0.0),
    "tail of chi2": (lambda x: st.chi2.logsf(x, 2.0), 800.0, -0.5, 0.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", POINTS)
def test_derivatives_where_squares_overflow_or_vanish(name: str, backend: str) -> None:
    f, x, first, second = POINTS[name]
    for outer in MODES:
        np.testing.assert_allclose(outer(f, backend=backend)(x), first, rtol=1e-12, atol=1e-13)
        for inner in MODES:
            np.testing.assert_allclose(
                outer(inner(f, backend=backend), backend=backend)(x), second, rtol=1e-12, atol=1e-12
            )


def test_second_derivatives_of_small_single_precision_numbers() -> None:
    def f(x: Any) -> Any:
        return np.log(np.exp(-x * x / 2))

    for outer in MODES:
        for inner in MODES:
            np.testing.assert_allclose(outer(inner(f))(np.float32(8.0)), -1.0, rtol=1e-4)


def test_the_inverse_of_a_number_is_made_once() -> None:
    text = sg.explain(sg.grad(lambda x: np.sum(1 / (1 + x * x))))(np.ones(4))["optimised ir"]
    assert text.count(" div ") == 1
    quotient = sg.explain(sg.grad(lambda x, y: np.sum(x / y), argnums=(0, 1)))(np.ones(4), np.ones(4))
    assert quotient["optimised ir"].count(" div ") == 2
