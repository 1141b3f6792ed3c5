"""Quantiles of distributions at the chances 0 and 1: the one-sided slope is one over the density at the edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import srcgrad as sg

INF = np.inf
EDGES: list[tuple[str, tuple[float, ...], float, float]] = [
    ("expon", (), 1.0, INF),
    ("uniform", (), 1.0, 1.0),
    ("pareto", (2.0,), 0.5, INF),
    ("lomax", (2.0,), 0.5, INF),
    ("gamma", (1.0,), 1.0, INF),
    ("gamma", (2.0,), INF, INF),
    ("chi2", (2.0,), 2.0, INF),
    ("powerlaw", (2.0,), INF, 0.5),
    ("powerlaw", (0.5,), 0.0, 2.0),
    ("loguniform", (1.0, 3.0), np.log(3.0), 3 * np.log(3.0)),
    ("arcsine", (), 0.0, 0.0),
    ("truncexpon", (2.0,), 1 - np.exp(-2.0), (1 - np.exp(-2.0)) / np.exp(-2.0)),
    ("halfnorm", (), np.sqrt(np.pi / 2), INF),
    ("halflogistic", (), 2.0, INF),
    ("wrapcauchy", (0.4,), 2 * np.pi * 0.36 / 0.84, 2 * np.pi * 0.36 / 0.84),
    ("norm", (), INF, INF),
    ("laplace", (), INF, INF),
    ("logistic", (), INF, INF),
    ("johnsonsu", (1.0, 2.0), INF, INF),
    ("dgamma", (1.5,), INF, INF),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("name", "shapes", "low", "high"), EDGES)
def test_slopes_at_the_chances_zero_and_one(
    name: str, shapes: tuple[float, ...], low: float, high: float, backend: str
) -> None:
    law = getattr(st, name)

    def below(q: Any) -> Any:
        return law.ppf(q, *shapes, loc=0.5, scale=2.0)

    def above(q: Any) -> Any:
        return law.isf(q, *shapes, loc=0.5, scale=2.0)

    for q, slope in ((0.0, 2 * low), (1.0, 2 * high)):
        for mode in (sg.jacfwd, sg.jacrev):
            np.testing.assert_allclose(mode(below, backend=backend)(q), slope, rtol=1e-13, atol=1e-15)
            np.testing.assert_allclose(mode(above, backend=backend)(1.0 - q), -slope, rtol=1e-13, atol=1e-15)
        for f, place in ((below, q), (above, 1.0 - q)):
            np.testing.assert_allclose(sg.jit(f, backend=backend)(place), f(place), rtol=1e-14)
    assert np.isnan(sg.grad(below, backend=backend)(1.5)) and np.isnan(sg.jit(below, backend=backend)(-0.5))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_second_derivatives_and_parameters_at_the_edge(backend: str) -> None:
    assert sg.hessian(lambda q: st.expon.ppf(q), backend=backend)(0.0) == 1.0
    assert sg.hessian(lambda q: st.uniform.ppf(q), backend=backend)(1.0) == 0.0
    slopes = sg.grad(lambda a: st.loguniform.ppf(1.0, a[0], a[1], loc=a[2]), backend=backend)(np.array([1.0, 3.0, 0.5]))
    np.testing.assert_allclose(slopes, [0.0, 1.0, 1.0], rtol=1e-14)
    slopes = sg.grad(lambda a: st.weibull_min.ppf(0.0, a[0], loc=a[1], scale=a[2]), backend=backend)(np.ones(3))
    np.testing.assert_array_equal(slopes, [0.0, 1.0, 0.0])


def normal_quantile(q: float) -> tuple[float, float]:
    """Its slopes in the chance and in the scale; those of the t law differ by (z**2 + 1)/(4 df) of them."""
    return float(1 / st.norm.pdf(st.norm.ppf(q))), float(st.norm.ppf(q))


TAILS: dict[str, tuple[Any, tuple[float, ...], tuple[float, ...]]] = {
    # the square of cot(pi q/2)
    "f.isf": (lambda q: st.f.isf(q, 1.0, 1.0), (1e-7,), (-2 * (2 / np.pi) ** 2 * 1e21,)),
    # mpmath: z = -log(-log1p(-q)) and -z**2/2
    "genextreme.isf": (lambda q, c: st.genextreme.isf(q, c), (0.12, 0.0), (-8.8894130143142299, -2.1156813727292267)),
    "t.ppf": (lambda q, scale: st.t.ppf(q, 1e15, 0.0, scale), (0.9, 1.0), normal_quantile(0.9)),
    "t.isf": (lambda q, scale: -st.t.isf(q, 1e15, 0.0, scale), (1e-9, 1.0), normal_quantile(1e-9)),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", TAILS)
def test_digits_of_tails_and_of_the_limits_of_shapes(name: str, backend: str) -> None:
    """Chances above were 1 - q, which has no digits of a small q; in a shape of 0 the slope was 0; and the t law of
    many degrees of freedom took the share of the beta law that is 1 to rounding: its quantiles were wrong by 2 %."""
    f, point, slopes = TAILS[name]
    np.testing.assert_allclose(sg.jit(f, backend=backend)(*point), f(*point), rtol=1e-8)  # SciPy has 9 digits of f.isf
    for mode in (sg.jacfwd, sg.jacrev):
        found = mode(f, argnums=tuple(range(len(point))), backend=backend)(*point)
        np.testing.assert_allclose(found, slopes, rtol=1e-8)
