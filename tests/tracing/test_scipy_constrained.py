"""Minima under constraints move as the constraints that hold them and the function let them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
P = np.array([0.7, 1.2])
COVARIANCE = np.array([[0.1, 0.02, 0.01], [0.02, 0.2, 0.03], [0.01, 0.03, 0.3]])


def bowl(y: Any, p: Any) -> Any:
    return (y[0] - p[0]) ** 2 + (y[1] - p[1]) ** 2 + 0.1 * y[0] ** 4


def least(p: Any, *constraints: Any, **options: Any) -> Any:
    return so.minimize(bowl, [0.1, 0.1], (p,), constraints=constraints, options={"ftol": 1e-15}, **options)


def under(p: Any, most: float) -> Any:
    return {"type": "ineq", "fun": lambda y: p[1] * most - y[0] - y[1]}


def portfolio(p: Any) -> Any:
    """The third share is held by its bound."""
    returns = np.stack([0.1 * p[0], 0.15 + 0.0 * p[1], -0.3 * p[1]])
    whole = {"type": "eq", "fun": lambda w: np.sum(w) - 1.0}
    start = np.ones(3) / 3.0
    return so.minimize(
        lambda w: 0.3 * w @ COVARIANCE @ w - returns @ w, start, bounds=[(0, 1)] * 3, constraints=whole,
        options={"ftol": 1e-16},
    ).x  # fmt: skip


CASES: dict[str, Callable[[Any], Any]] = {
    "an equation": lambda p: least(p, {
        "type": "eq", "fun": lambda y, b: b * y[0] + y[1] ** 2 - 1.0, "args": (p[1],),
    }).x,
    "one that holds": lambda p: least(p, under(p, 1.0)).x,
    "one that does not hold": lambda p: least(p, under(p, 5.0)).x,
    "one of two": lambda p: least(p, {
        "type": "ineq", "fun": lambda y: np.array([p[1] - y[0] - y[1], 9.0 - y[1]]),
        "jac": lambda y: np.array([[-1.0, -1.0], [0.0, -1.0]]),
    }).x,
    "two at once": lambda p: least(p, under(p, 1.0), {"type": "ineq", "fun": lambda y: 0.2 * p[0] - y[0]}).x,
    "beside a bound": portfolio,
    "the minimum": lambda p: least(np.array([0.7, 1.2]), under(p, 1.0)).fun,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_minima_under_constraints(name: str) -> None:
    f, h = CASES[name], 1e-3

    def loss(p: Any) -> Any:
        found = np.atleast_1d(f(p))
        return np.sum(found * np.cos(np.arange(len(found)) + 0.3))

    apart = [(loss(P + h * e) - loss(P - h * e)) / (2 * h) for e in np.eye(2)]
    value, slope = sg.value_and_grad(loss)(P)
    np.testing.assert_allclose(value, loss(P), rtol=1e-12)
    np.testing.assert_allclose(slope, apart, rtol=1e-4, atol=1e-5)


def test_second_derivatives_and_forward_mode_agree() -> None:
    def f(p: Any) -> Any:
        return CASES["an equation"](p)[0]

    ahead = [sg.jvp(f, (P,), (e,), backend="numpy")[1] for e in np.eye(2)]
    np.testing.assert_allclose(sg.grad(f)(P), ahead, rtol=1e-9)
    bends = [(sg.grad(f)(P + 1e-5 * e) - sg.grad(f)(P - 1e-5 * e)) / 2e-5 for e in np.eye(2)]
    np.testing.assert_allclose(sg.hessian(f)(P), bends, rtol=1e-5)


@pytest.mark.parametrize("method", ["COBYLA", "COBYQA"])
def test_methods_without_slopes(method: str) -> None:
    slope = sg.grad(lambda p: so.minimize(bowl, [0.1, 0.1], (p,), method, constraints=under(p, 1.0)).x[0])(P)
    np.testing.assert_allclose(slope, sg.grad(lambda p: CASES["one that holds"](p)[0])(P), rtol=1e-3)


def test_constraints_of_the_objects_of_scipy_are_refused() -> None:
    line = so.LinearConstraint(np.ones((1, 2)), 1.0, 1.0)
    with pytest.raises(sg.SrcgradError, match="no dicts") as caught:
        sg.grad(lambda p: so.minimize(bowl, [0.1, 0.1], (p,), constraints=line).x[0])(P)
    assert "eq" in str(caught.value)
