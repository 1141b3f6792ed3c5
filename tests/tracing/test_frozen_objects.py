"""Interpolants and distributions with their parameters that a function captures: one program, which is not used after
they have been changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.stats

import srcgrad as sg
from srcgrad.tracing.frozen import contents

X = np.array([0.5, 1.2, 3.3])
NODES = np.arange(6.0)
MADE: dict[str, Any] = {
    "cubic": lambda values: scipy.interpolate.CubicSpline(NODES, values),
    "pchip": lambda values: scipy.interpolate.PchipInterpolator(NODES, values),
    "B-spline": lambda values: scipy.interpolate.make_interp_spline(NODES, values),
    "interp1d": lambda values: scipy.interpolate.interp1d(NODES, values),
    "grid": lambda values: scipy.interpolate.RegularGridInterpolator((NODES,), values),
}


def differences(f: Any) -> Any:
    return np.array([(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)])


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", MADE)
def test_interpolants_are_compiled_in_while_they_hold_the_same(name: str) -> None:
    interpolant = MADE[name](np.sin(NODES))

    def total(x: Any) -> Any:
        return np.sum(interpolant(x[:, None] if name == "grid" else x) * np.arange(1.0, 4.0))

    slope = sg.grad(total)
    for _ in range(6):
        np.testing.assert_allclose(slope(X), differences(total), rtol=1e-7, atol=1e-7)
    if name == "interp1d":
        interpolant.__init__(NODES, np.cos(NODES))
    else:
        held = interpolant.values if name == "grid" else interpolant.c
        held[...] = held * np.linspace(1.0, 2.0, held.size).reshape(held.shape)
    for _ in range(6):
        np.testing.assert_allclose(slope(X), differences(total), rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_frozen_distributions_are_compiled_in_while_they_hold_the_same() -> None:
    prior = scipy.stats.norm(1.0, scale=2.0)

    def total(x: Any) -> Any:
        return np.sum(prior.logpdf(x) + prior.cdf(x))

    slope = sg.grad(total)
    np.testing.assert_allclose(slope(X), differences(total), rtol=1e-7)
    prior.kwds["scale"] = 0.5
    np.testing.assert_allclose(slope(X), differences(total), rtol=1e-7)


def test_other_objects_have_no_contents() -> None:
    assert contents(scipy.stats.norm) is None
    assert contents(scipy.interpolate.KroghInterpolator(NODES, NODES)) is None
    assert contents(np.polynomial.Polynomial([1.0])) is None


def test_made_of_traced_values_an_interpolant_is_differentiated_in_them() -> None:
    def area(y: Any) -> Any:
        return scipy.interpolate.CubicSpline(NODES, y, bc_type="natural").integrate(0.0, 5.0)

    np.testing.assert_allclose(sg.grad(area)(np.sin(NODES)) @ np.ones(6), 5.0, rtol=1e-12)
