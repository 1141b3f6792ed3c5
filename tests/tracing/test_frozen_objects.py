"""Interpolants and distributions with their parameters that a function captures: one program, which is not used after
they have been changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    assert contents(scipy.interpolate.FloaterHormannInterpolator(NODES, NODES)) is None
    assert contents(np.polynomial.Polynomial([1.0])) is None


def test_made_of_traced_values_an_interpolant_is_differentiated_in_them() -> None:
    def area(y: Any) -> Any:
        return scipy.interpolate.CubicSpline(NODES, y, bc_type="natural").integrate(0.0, 5.0)

    np.testing.assert_allclose(sg.grad(area)(np.sin(NODES)) @ np.ones(6), 5.0, rtol=1e-12)


class Pair(NamedTuple):
    weights: Any
    shift: Any


class Shifted(NamedTuple):
    weights: Any

    def doubled(self) -> Any:
        return FACTOR * self.weights


FACTOR = np.array([2.0, 2.0])
GLOBAL_PAIR = Pair(np.array([1.0, 2.0]), 0.5)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("wrap", [lambda pair: (pair,), lambda pair: [pair], lambda pair: {0: pair}])
def test_captured_named_tuples_of_arrays_are_read_at_each_call(wrap: Callable[[Any], Any]) -> None:
    held = wrap(Pair(np.array([1.0, 2.0]), 0.5))

    def f(x: Any) -> Any:
        pair, other = held[0], GLOBAL_PAIR
        weights, _ = pair
        return np.sum(x * weights * pair.shift + x * other.weights) + len(pair)

    slope = sg.grad(f)
    x = np.ones(2)
    np.testing.assert_array_equal(slope(x), [1.5, 3.0])
    program = sg.explain(slope)(x)["how it runs"]
    assert program.startswith("One program")
    held[0].weights[0] = 3.0
    np.testing.assert_array_equal(slope(x), [2.5, 3.0])
    if not isinstance(held, tuple):
        held[0] = Pair(np.zeros(2), 0.5)
        np.testing.assert_array_equal(slope(x), [1.0, 2.0])
        held[0] = (np.ones(2), 0.5)
        with pytest.raises(AttributeError):
            slope(x)


class Foreign(NamedTuple):
    weights: Any


# As a library's class, whose code is not looked at.
exec(compile("def doubled(self): return FACTOR * self.weights", np.__file__, "exec"), (_names := {"FACTOR": FACTOR}))
Foreign.doubled = _names["doubled"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Shifted, Foreign])
def test_a_method_of_a_captured_named_tuple_is_run(kind: Any) -> None:
    captured = kind(np.array([1.0, 2.0]))
    slope = sg.grad(lambda x: np.sum(x * captured.doubled()))
    for factor in (2.0, 3.0):
        FACTOR[:] = factor
        np.testing.assert_array_equal(slope(np.ones(2)), factor * np.array([1.0, 2.0]))


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_captured_methods_of_distributions_are_compiled_in() -> None:
    density, frozen = scipy.stats.norm.logpdf, scipy.stats.norm(0.5, 2.0)
    own = frozen.logpdf
    slope = sg.grad(lambda x: density(x) + own(x))
    assert slope(0.25) == pytest.approx(-0.25 + 0.25 / 4)
    assert sg.explain(slope)(0.25)["how it runs"].startswith("One program")
    frozen.args = (1.25, 2.0)
    assert slope(0.25) == pytest.approx(-0.25 + 1.0 / 4)
    assert sg.grad(scipy.stats.norm.logpdf)(0.25) == pytest.approx(-0.25)
    assert sg.hessian(scipy.stats.norm.logpdf)(0.25) == pytest.approx(-1.0)
