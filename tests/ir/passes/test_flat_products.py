"""What is constant at infinity has the slope 0 there, also beside what is infinite: activations have their slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import erf, expit, ndtr

import srcgrad as sg

INF, LARGE = np.inf, 1e308
MODES = (sg.jacfwd, sg.jacrev)
PROGRAMS: dict[str, tuple[Any, dict[float, float]]] = {
    "x tanh(x)": (lambda x: x * np.tanh(x), {INF: 1.0, -INF: -1.0, LARGE: 1.0}),
    "silu": (lambda x: x * expit(x), {INF: 1.0, -LARGE: 0.0, LARGE: 1.0, -2000.0: 0.0}),
    "silu, written out": (lambda x: x / (1 + np.exp(-x)), {INF: 1.0, LARGE: 1.0}),
    "gelu": (lambda x: x * ndtr(x), {INF: 1.0, -LARGE: 0.0}),
    "gelu by erf": (lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))), {INF: 1.0, LARGE: 1.0, -LARGE: 0.0}),
    "gelu by tanh": (
        lambda x: 0.5 * x * (1 + np.tanh(0.8 * (x + 0.044715 * x**3))),
        {INF: 1.0, LARGE: 1.0, 1e150: 1.0, 1e102: 1.0, -LARGE: 0.0, -1e110: 0.0},
    ),
    "x arctan(x)": (lambda x: x * np.arctan(x), {INF: np.pi / 2, -INF: -np.pi / 2}),
    "with a number of its own": (lambda x: (3 - x) * (2 * np.tanh(2 * x + 1) - 1), {INF: -1.0, -INF: 3.0}),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_where_it_is_flat(name: str, backend: str) -> None:
    f, slopes = PROGRAMS[name]
    for inner in MODES:
        for x, slope in slopes.items():
            assert inner(f, backend=backend)(x) == pytest.approx(slope, rel=1e-15)
            for outer in MODES:
                assert outer(inner(f), backend=backend)(x) == 0.0


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_elsewhere(name: str, backend: str) -> None:
    f = PROGRAMS[name][0]
    places = np.array([-30.0, -1.5, 0.0, 0.25, 4.0, 900.0])
    value, pull = sg.vjp(f, places, backend=backend)
    np.testing.assert_allclose(value, f(places), rtol=1e-13)
    step = 1e-4
    numbers = [f(places + k * step) for k in (-2, -1, 1, 2)]
    expected = np.tensordot([1, -8, 8, -1], numbers, 1) / (12 * step)
    np.testing.assert_allclose(pull(np.ones(6))[0], expected, rtol=1e-8, atol=1e-9)


def test_what_is_of_other_values_is_not_flat() -> None:
    slope = sg.grad(lambda x, y: x * np.tanh(y), argnums=1)
    assert slope(2.0, 0.0) == 2.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(slope(INF, INF))
