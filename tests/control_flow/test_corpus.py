"""Realistic functions are one program: NumPy's value, and derivatives equal to differences, in both modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.corpus import CORPUS

NAMES = pytest.mark.parametrize("name", list(CORPUS))
ON_XLA = ("newton_square_root", "gauss_seidel", "first_above", "viterbi", "checks_its_argument", "insertion_sort")


def numerically(function: Callable[..., Any], x: Any, rest: tuple[Any, ...], step: float = 1e-6) -> Any:
    """Central differences."""
    slope = np.zeros(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        moved = np.zeros(np.shape(x))
        moved[place] = step
        plus, minus = (np.array(x) + sign * moved for sign in (1, -1))
        if not np.ndim(x):
            plus, minus = float(plus), float(minus)
        slope[place] = (function(plus, *rest) - function(minus, *rest)) / (2 * step)
    return slope


def copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


@NAMES
def test_value_and_derivatives(name: str) -> None:
    function, (x, *rest), options = CORPUS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, slope = sg.value_and_grad(function)(copied(x), *rest)
        forward = sg.jacfwd(function)(copied(x), *rest)
        compiled = sg.jit(function)(copied(x), *rest)
    expected = function(copied(x), *rest)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(compiled, expected, rtol=1e-12)
    np.testing.assert_allclose(forward, slope, rtol=1e-9, atol=1e-11)
    if options.get("smooth", True):
        np.testing.assert_allclose(slope, numerically(function, x, tuple(rest)), rtol=2e-5, atol=1e-6)
    if options.get("hessian"):
        curvature = numerically(lambda *args: sg.grad(function)(*args), x, tuple(rest), 1e-5)
        np.testing.assert_allclose(sg.hessian(function)(copied(x), *rest), curvature, rtol=1e-5)


@pytest.mark.parametrize("name", ON_XLA)
def test_on_xla(name: str) -> None:
    pytest.importorskip("jax")
    function, (x, *rest), _ = CORPUS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope = sg.grad(function, backend="xla")(copied(x), *rest)
    np.testing.assert_allclose(slope, sg.grad(function)(copied(x), *rest), rtol=1e-9)


def test_exact_gradients() -> None:
    product, (x,), _ = CORPUS["product_until_large"]
    assert sg.grad(product)(x) == 405.0
    root, _, _ = CORPUS["newton_square_root"]
    assert abs(sg.grad(root)(2.0) - 0.5 / np.sqrt(2.0)) < 1e-12
    assert abs(sg.hessian(root)(2.0) + 0.25 * 2.0**-1.5) < 1e-9
    doubling, _, _ = CORPUS["doubling_until_large"]
    np.testing.assert_array_equal(sg.grad(doubling)(np.array([0.3, -0.4])), [2048.0, 2048.0])


def test_one_program_serves_both_sides_of_a_branch() -> None:
    function, _, _ = CORPUS["piecewise"]
    slope = sg.grad(function)
    for x, expected in ((-1.0, 0.0), (0.5, 1.0), (1.1, 1.0), (1.3, 2.0), (5.0, 3.0)):
        assert slope(x) == expected
        assert sg.jit(function)(x) == function(x)
