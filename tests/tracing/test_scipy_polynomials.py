"""Polynomials of ``scipy.interpolate`` through given values: of values, of nodes, at places, and at the nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as si

import srcgrad as sg
from tests.tracing.slope_support import check_slopes

NODES = np.array([0.0, 0.7, 1.1, 2.0, 2.6, 3.3])
Y = np.array([0.3, -0.4, 1.1, 0.8, -0.2, 0.5])
ROWS = np.stack([Y, Y**2, Y + 1.0])
PLACES = np.array([0.2, 0.9, 1.7, 2.3, 3.1])
REPEATED = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 2.0])
HERMITE = si.KroghInterpolator(REPEATED, Y)

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "derivatives given too, values": (lambda y: si.krogh_interpolate(REPEATED, y, PLACES, der=[0, 1, 2]), Y),
    "derivatives given too, places": (lambda x: HERMITE(x), PLACES),
    "orders": (lambda y: si.barycentric_interpolate(NODES, y, PLACES, der=[0, 2]), Y),
    "an order": (lambda x: si.krogh_interpolate(x, ROWS, PLACES, der=1, axis=1), NODES),
}
for _class in (si.KroghInterpolator, si.BarycentricInterpolator):
    _made: dict[str, Any] = {
        "row": _class(NODES, Y),
        "rows": _class(NODES, ROWS, axis=1),
        "z": _class(NODES, Y * (1 + 2j)),
    }
    for _name, _f, _point in (
        ("places", lambda x, m: m["row"](x), PLACES),
        ("places of rows", lambda x, m: m["rows"](x.reshape(5, 1)), PLACES),
        ("a place of rows", lambda x, m: m["rows"](x[0]), PLACES),
        ("complex", lambda x, m: m["z"](x), PLACES),
        ("at the nodes", lambda x, m: m["row"](x), NODES),
        ("slopes at the nodes", lambda x, m: m["row"].derivative(x), NODES),
        ("all slopes", lambda x, m: m["rows"].derivatives(x, 3), PLACES),
    ):
        CASES[f"{_class.__name__}, {_name}"] = lambda x, f=_f, m=_made: f(x, m), _point
    for _name, _g, _point in (
        ("values", lambda y, c: c(NODES, y)(PLACES), Y),
        ("slopes of rows", lambda y, c: c(NODES, y, axis=-1).derivative(PLACES), ROWS),
        ("nodes", lambda x, c: c(x, Y)(PLACES), NODES),
        ("slopes by nodes", lambda x, c: c(x, Y).derivative(PLACES, 2), NODES),
    ):
        CASES[f"{_class.__name__}, {_name}"] = lambda x, g=_g, c=_class: g(x, c), _point


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    check_slopes(*CASES[name], backend, loose=10.0)


def test_many_nodes_make_a_short_and_exact_program() -> None:
    nodes = np.cos(np.pi * np.arange(61) / 60)
    polynomial = si.BarycentricInterpolator(nodes, np.exp(nodes) * np.sin(5.0 * nodes))
    x = np.linspace(-1.0, 1.0, 41)
    slope = sg.grad(lambda x: np.sum(polynomial(x)))
    assert str(sg.explain(slope)(x)["ir"]).count(" = ") < 100
    np.testing.assert_allclose(slope(x), np.exp(x) * (np.sin(5.0 * x) + 5.0 * np.cos(5.0 * x)), rtol=1e-9, atol=1e-10)


def test_nodes_that_are_equal_are_an_error() -> None:
    with pytest.raises(ValueError, match="distinct"):
        sg.jit(lambda x: si.BarycentricInterpolator(x, Y)(PLACES))(REPEATED)
