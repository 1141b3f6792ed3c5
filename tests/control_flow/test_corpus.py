"""Realistic functions are one program: NumPy's value, and derivatives equal to differences, in both modes."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
import tests.control_flow.class_corpus
import tests.control_flow.language_corpus
import tests.control_flow.more_corpus  # noqa: F401  which add to it
from tests.control_flow.corpus import CORPUS

NAMES = pytest.mark.parametrize("name", list(CORPUS))
MODULES = {"xla": "jax", "llvm": "llvmlite"}
"""What each backend needs."""
LONG = {
    *("pid_controller", "k_means", "dynamic_time_warping", "knapsack_table", "gauss_elimination_with_pivoting"),
    *("edit_distance_costs", "particles_with_slots", "rk45_adaptive", "levenberg_marquardt", "bodies_with_verlet"),
    *("burgers_upwind", "hmm_viterbi_with_backtrace", "jacobi_eigen"),
}
"""What XLA takes seconds to compile."""
SEED = 3
SHORT = sorted(set(CORPUS) - LONG)
DRAWN = set(random.Random(SEED).sample(SHORT, len(SHORT) // 3))
"""A third of the others, which the normal run compiles on XLA; the slow one compiles all."""


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


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        pytest.param(backend, name, marks=pytest.mark.slow if backend == "xla" and name not in DRAWN else ())
        for backend in MODULES
        for name in CORPUS
    ],
)
def test_on_other_backends(name: str, backend: str) -> None:
    """All of it as one program: value, both modes, ``jit(grad)`` and the Hessian are inside one ``jit``."""
    print(f"seed {SEED}")
    pytest.importorskip(MODULES[backend])
    function, (x, *rest), options = CORPUS[name]

    def everything(x: Any) -> Any:
        value, slope = sg.value_and_grad(function)(copied(x), *rest)
        forward = sg.jacfwd(function)(copied(x), *rest)
        return function(copied(x), *rest), value, slope, forward, curvature(x)

    def curvature(x: Any) -> Any:
        return sg.hessian(function)(copied(x), *rest) if options.get("hessian") else 0.0

    value, slope = sg.value_and_grad(function, backend="numpy")(copied(x), *rest)
    expected = function(copied(x), *rest), value, slope, slope, curvature(x)
    found = sg.jit(everything, backend=backend, strict=True)(copied(x))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("backend", ["numpy", *MODULES])
def test_exact_gradients(backend: str) -> None:
    if backend in MODULES:
        pytest.importorskip(MODULES[backend])
    product, (x,), _ = CORPUS["product_until_large"]
    assert sg.grad(product, backend=backend)(x) == 405.0
    root, _, _ = CORPUS["newton_square_root"]
    assert abs(sg.grad(root, backend=backend)(2.0) - 0.5 / np.sqrt(2.0)) < 1e-12
    assert abs(sg.hessian(root, backend=backend)(2.0) + 0.25 * 2.0**-1.5) < 1e-9
    doubling, _, _ = CORPUS["doubling_until_large"]
    np.testing.assert_array_equal(sg.grad(doubling, backend=backend)(np.array([0.3, -0.4])), [2048.0, 2048.0])


def test_one_program_serves_both_sides_of_a_branch() -> None:
    function, _, _ = CORPUS["piecewise"]
    slope = sg.grad(function)
    for x, expected in ((-1.0, 0.0), (0.5, 1.0), (1.1, 1.0), (1.3, 2.0), (5.0, 3.0)):
        assert slope(x) == expected
        assert sg.jit(function)(x) == function(x)
