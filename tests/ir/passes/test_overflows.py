"""Logarithms of what overflows or underflows: infinite, as in NumPy, with the slope of the exponent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sc

import srcgrad as sg
from srcgrad.testing import check_grads

Function = Callable[[Any], Any]
MODES = [sg.jacfwd, sg.jacrev]
POINTS: dict[str, tuple[Function, dict[float, float]]] = {
    "cosh": (lambda x: np.log(np.cosh(x)), {1000.0: 1.0, -1000.0: -1.0, np.inf: 1.0}),
    "sinh": (lambda x: np.log(np.sinh(x)), {1000.0: 1.0}),
    "expm1": (lambda x: np.log(np.expm1(x)), {1000.0: 1.0}),
    "softplus": (lambda x: np.log(1 + np.exp(x)), {1000.0: 1.0, -1000.0: 0.0, np.inf: 1.0, -np.inf: 0.0}),
    "softplus to base 2": (lambda x: np.log2(1 + np.exp2(3 * x)), {1000.0: 3.0}),
    "softplus to base 10": (lambda x: np.log10(np.exp(x) + 2) * np.log(10), {1000.0: 1.0}),
    "log1p": (lambda x: np.log1p(np.exp(2 * x)), {1000.0: 2.0, -1000.0: 0.0}),
    "inverse softplus": (lambda x: np.log(np.exp(x) - 1), {1000.0: 1.0}),
    "beside a number": (lambda x: np.log(np.exp(x) + x**2), {1000.0: 1.0}),
    "beside a larger one": (lambda x: np.log(np.exp(x / 1e200) + np.square(x)), {1e200: 0.0}),
    "times a number": (lambda x: np.log(3 * np.exp(x)), {1000.0: 1.0, -1000.0: 1.0}),
    "times itself": (lambda x: np.log(x * np.exp(x)), {1000.0: 1.001}),
    "over itself": (lambda x: np.log(np.exp(x) / x), {1000.0: 0.999}),
    "a normal density": (lambda x: np.log(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)), {100.0: -100.0, -50.0: 50.0}),
    "a chance": (lambda x: np.log(sc.expit(x)), {-1000.0: 1.0, 1000.0: 0.0}),
    "a chance by hand": (lambda x: np.log(1 / (1 + np.exp(-x))), {-1000.0: 1.0}),
    "a share": (lambda x: np.log(np.exp(x) / (1 + np.exp(x))), {-1000.0: 1.0}),
    "elements": (lambda x: np.sum(np.log((1 + np.exp(np.stack([x, -x])))[::-1])), {1000.0: 1.0}),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_of_logarithms_are_those_of_exponents(name: str, backend: str) -> None:
    f, slopes = POINTS[name]
    for x, slope in slopes.items():
        np.testing.assert_array_equal(sg.value_and_grad(f, backend=backend)(x)[0], f(x))
        for outer in MODES:
            np.testing.assert_allclose(outer(f, backend=backend)(x), slope, rtol=1e-14, atol=1e-300)
            for inner in MODES:
                second = outer(inner(f, backend=backend), backend=backend)(x)
                bound = {"a normal density": -1.0, "times itself": -1e-6, "over itself": 1e-6}.get(name, 0.0)
                np.testing.assert_allclose(second, bound, rtol=1e-9, atol=1e-300)
    if name != "beside a larger one":
        with sg.use_backend(backend):
            check_grads(f, (0.7,), order=2)
