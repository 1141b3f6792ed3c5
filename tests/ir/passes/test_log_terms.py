"""Mixtures with a weight of 0, of which the logarithm is -inf: the slope is finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, xlog1py, xlogy

import srcgrad as sg

BACKENDS = ["numpy", "llvm"]
MODES = [sg.jacfwd, sg.jacrev]


def pair(t: Any) -> Any:
    return np.logaddexp(np.log(t) + 0.3, np.log1p(-t) + 0.1)


def behind(t: Any) -> Any:
    return np.logaddexp(0.1 + np.log(1 - t), 0.3 + np.log(t))


def stacked(t: Any) -> Any:
    return logsumexp(np.array([np.log(t) + 0.3, np.log1p(-t) + 0.1]))


def reduced(t: Any) -> Any:
    return np.logaddexp.reduce(np.stack([np.log(t) + 0.3, np.log1p(-t) + 0.1]))


def by_exponentials(t: Any) -> Any:
    return np.log(np.exp(np.log(t) + 0.3) + np.exp(np.log1p(-t) + 0.1))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [pair, behind, stacked, reduced, by_exponentials])
def test_two_derivatives_of_a_mixture(f: Any, backend: str) -> None:
    a, b = np.exp(0.3), np.exp(0.1)
    for t in (0.0, 1.0, 0.3):
        slope = (a - b) / (t * a + (1 - t) * b)
        np.testing.assert_allclose(sg.jit(f, backend=backend)(t), np.log(t * a + (1 - t) * b), rtol=1e-14)
        for inner in MODES:
            np.testing.assert_allclose(inner(f, backend=backend)(t), slope, rtol=1e-13)
            for outer in MODES:
                second = outer(inner(f, backend=backend), backend=backend)(t)
                np.testing.assert_allclose(second, -(slope**2), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_of_zero_in_a_mixture_of_rows(backend: str) -> None:
    c = np.array([[0.3, 0.1, 0.2], [0.1, 0.2, 0.3]])

    def f(w: Any) -> Any:
        return np.sum(logsumexp(np.log(w) + c, axis=1))

    def g(w: Any) -> Any:
        return np.sum(np.log(np.exp(c) @ w))

    for w in (np.array([0.0, 0.5, 0.5]), np.array([0.0, 0.0, 1.0])):
        np.testing.assert_allclose(sg.grad(f, backend=backend)(w), sg.grad(g)(w), rtol=1e-13)
        np.testing.assert_allclose(sg.jacfwd(f, backend=backend)(w), sg.grad(g)(w), rtol=1e-13)
        np.testing.assert_allclose(sg.hessian(f, backend=backend)(w), sg.hessian(g)(w), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_infinite_stays_so(backend: str) -> None:
    assert sg.grad(lambda t: np.logaddexp(np.log(t), -np.inf), backend=backend)(0.0) == np.inf
    assert sg.grad(np.log, backend=backend)(0.0) == np.inf
    np.testing.assert_array_equal(sg.jit(lambda t: np.exp(np.log(t) + 1e3), backend=backend)(0.0), 0.0)

    def gone(c: Any) -> Any:
        return np.exp(np.log(c * 0.0) - c) + np.logaddexp(np.log(c * 0.0), c)

    assert sg.grad(gone, backend=backend)(2.0) == 1.0


POWERS: dict[str, tuple[Any, float, float, float]] = {
    "2 log(x)": (lambda x: np.exp(2.0 * np.log(x) - x), 0.0, 0.0, 2.0),
    "log(x)/2": (lambda x: np.exp(0.5 * np.log(x)), 0.0, np.inf, -np.inf),
    "-log(x)": (lambda x: np.exp(-2.0 * np.log(x)), 0.0, -np.inf, np.inf),
    "xlogy": (lambda x: np.exp(xlogy(1.0, x) - x**2), 0.0, 1.0, 0.0),
    "xlog1py": (lambda x: np.exp(0.5 + xlog1py(2.0, -x)), 1.0, 0.0, 2 * np.exp(0.5)),
    "log where": (lambda x: np.exp(np.where(x >= 0, np.log(x) + 1.0, -np.inf)), 0.0, np.e, 0.0),
    "beside what overflows": (lambda x: np.exp(np.log(x) - np.exp(x)), 0.0, np.exp(-1.0), -2 * np.exp(-1.0)),
    "beside what overflows there": (lambda x: np.exp(np.log(x) - np.exp(1e3 - x)), 0.0, 0.0, 0.0),
    "of a product that underflows": (lambda x: np.exp(np.log(x) + np.log(3.0 * x)), 1e-200, 6e-200, 6.0),
    "beside what has overflowed": (lambda x: np.exp(np.log(x) - np.exp(x)), 1e3, 0.0, 0.0),
}


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_exponentials_of_logarithms_are_powers_at_0(name: str, backend: str) -> None:
    """As densities are written; exp(log(x) - exp(x)) had the slope 0 there, as if the exponential had overflowed."""
    f, x, first, second = POWERS[name]
    for mode in MODES:
        np.testing.assert_allclose(mode(f, backend=backend)(x), first, rtol=1e-15)
        np.testing.assert_allclose(mode(sg.grad(f), backend=backend)(x), second, rtol=1e-15, atol=1e-15)


def test_a_product_that_underflows_is_not_one_with_0() -> None:
    """The value under grad was 0."""
    value, slope = sg.value_and_grad(lambda x: np.exp(np.log(x) + np.log(3.0 * x) + 600.0))(1e-200)
    expected = np.exp(2 * np.log(1e-200) + np.log(3.0) + 600.0)
    np.testing.assert_allclose([value, slope], [expected, 2e200 * expected], rtol=1e-12)
