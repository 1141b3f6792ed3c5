"""Interpolation between scattered points: by radial functions and by triangles, of values, of points and at places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as si

import srcgrad as sg
from srcgrad.errors import SrcgradError
from tests.tracing.slope_support import check_slopes

RNG = np.random.default_rng(3)
POINTS = np.concatenate([RNG.uniform(-1.0, 1.0, (11, 2)), [[-1.5, -1.5], [-1.4, 1.6], [1.7, -1.45], [1.5, 1.4]]])
VALUES = np.sin(2.0 * POINTS[:, 0]) + POINTS[:, 1] ** 2
BOTH = np.stack([VALUES, VALUES**2], axis=1)
PLACES = RNG.uniform(-0.9, 0.9, (5, 2))
KERNELS = ("linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric")
KERNELS += ("inverse_quadratic", "gaussian")
SMOOTHED = {k: si.RBFInterpolator(POINTS, BOTH, smoothing=0.02, kernel=k, epsilon=1.3) for k in KERNELS}
FUNCTIONS = ("multiquadric", "inverse", "gaussian", "linear", "cubic", "quintic", "thin-plate")
OLD = {name: si.Rbf(*POINTS.T, VALUES, function=name, smooth=0.01) for name in FUNCTIONS}
TWISTED = si.RBFInterpolator(POINTS, BOTH + 1j * BOTH[:, ::-1])
FLAT, SCALED = si.LinearNDInterpolator(POINTS, BOTH), si.LinearNDInterpolator(POINTS, VALUES, -3.0, rescale=True)
NEXT, NEXT_SCALED = si.NearestNDInterpolator(POINTS, BOTH), si.NearestNDInterpolator(POINTS, VALUES, rescale=True)

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "complex values": (lambda v: si.RBFInterpolator(POINTS, v * (1 + 2j))(PLACES), VALUES),
    "captured complex values": (lambda x: TWISTED(x), PLACES),
    "width and smoothing": (
        lambda e: si.RBFInterpolator(POINTS, VALUES, kernel="gaussian", epsilon=e[0], smoothing=e[1])(PLACES),
        np.array([1.2, 0.1]),
    ),
    "no polynomial": (lambda v: si.RBFInterpolator(POINTS, v, kernel="gaussian", epsilon=2.0, degree=-1)(PLACES), BOTH),
    "degree 3": (lambda v: si.RBFInterpolator(POINTS, v, kernel="cubic", degree=3)(PLACES), VALUES),
    "one coordinate": (lambda v: si.RBFInterpolator(POINTS[:, :1], v)(PLACES[:, :1]), VALUES),
    "old, several values": (lambda v: si.Rbf(*POINTS.T, v, mode="N-D")(*PLACES.T), BOTH),
    "old, a place": (lambda x: OLD["cubic"](x[0], x[1]), PLACES[0]),
    "triangles, places": (lambda x: FLAT(x) + FLAT(x[:, 0], x[:, 1]), PLACES),
    "triangles, scaled": (lambda x: SCALED(x), PLACES),
    "triangles, a place": (lambda x: FLAT(x[0], x[1]), PLACES[0]),
    "triangles, outside": (lambda x: SCALED(x), 2.5 * PLACES),
    "triangles, points": (lambda p: si.griddata(p, VALUES, PLACES, rescale=True), POINTS),
    "triangles, values": (lambda v: si.griddata(tuple(POINTS.T), v, (PLACES[:, :1], PLACES[:, 1])), BOTH),
    "triangles, complex values": (lambda v: si.LinearNDInterpolator(POINTS, v * (1 + 1j))(PLACES), VALUES),
    "next, places": (lambda x: NEXT(x) + np.sum(x), PLACES),
    "next, scaled": (lambda x: NEXT_SCALED(x[:, 0], x[:, 1]) * x[:, 0], PLACES),
    "next, values": (lambda v: si.griddata(POINTS, v, PLACES, method="nearest", rescale=True), BOTH),
    "line, cubic": (lambda v: si.griddata(POINTS[:, 0], v, PLACES[:, 0], method="cubic"), VALUES),
    "line, next": (lambda v: si.griddata(POINTS[:, 0], v, PLACES[:, 0], method="nearest"), VALUES),
}
for _kernel in KERNELS:
    CASES[f"{_kernel}, places"] = lambda x, k=_kernel: SMOOTHED[k](x), PLACES
    CASES[f"{_kernel}, values"] = (
        lambda v, k=_kernel: si.RBFInterpolator(POINTS, v, kernel=k, epsilon=1.3)(PLACES),
        VALUES,
    )
    CASES[f"{_kernel}, points"] = (
        lambda p, k=_kernel: si.RBFInterpolator(p, BOTH, smoothing=0.1, kernel=k, epsilon=1.3)(PLACES),
        POINTS,
    )
for _name in FUNCTIONS:
    CASES[f"old, {_name}, places"] = lambda x, k=_name: OLD[k](x[:, 0], x[:, 1]), PLACES
    CASES[f"old, {_name}, points"] = (
        lambda p, k=_name: si.Rbf(p[:, 0], p[:, 1], VALUES, function=k, smooth=0.1)(*PLACES.T),
        POINTS,
    )


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    check_slopes(*CASES[name], backend, loose=10.0)


@pytest.mark.parametrize("name", ["cubic, values", "triangles, values", "old, cubic, places", "next, values"])
def test_values_and_derivatives_on_xla(name: str) -> None:
    check_slopes(*CASES[name], "xla", curved=False, loose=10.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_at_a_point_the_slope_is_that_of_the_others(kernel: str) -> None:
    """Around which the radial function is flat, or has a peak without a slope."""
    expected = [(SMOOTHED[kernel](POINTS[:1] + e) - SMOOTHED[kernel](POINTS[:1] - e)) / 2e-6 for e in 1e-6 * np.eye(2)]
    found = sg.jacobian(lambda x: SMOOTHED[kernel](x)[0])(POINTS[:1])
    np.testing.assert_allclose(found[:, 0].T, np.stack(expected)[:, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("traced", ["places", "values"])
def test_of_many_places_so_many_at_a_time_are_kept(traced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, point = CASES[f"thin_plate_spline, {traced}"]
    expected = sg.jacobian(f)(point)
    monkeypatch.setattr("srcgrad.tracing.functions.scipy_scattered.MOST_AT_ONCE", 40)
    sg.clear_caches()
    np.testing.assert_allclose(sg.jacobian(f)(point), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sg.jit(f)(point), f(point), rtol=1e-9)
    sg.clear_caches()


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_triangles_are_those_of_the_points_of_the_call() -> None:
    value = sg.jit(lambda p, v: si.griddata(p, v, PLACES))
    for points in (POINTS, POINTS[::-1] * 1.1, np.roll(POINTS, 3, axis=0)):
        np.testing.assert_allclose(value(points, VALUES), si.griddata(points, VALUES, PLACES), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda v: si.RBFInterpolator(POINTS, v, neighbors=4)(PLACES), "neighbors"),
        (lambda v: si.RBFInterpolator(POINTS, v, kernel="gaussian")(PLACES), "epsilon"),
        (lambda v: si.RBFInterpolator(POINTS, v, kernel="box")(PLACES), "kernel"),
        (lambda v: si.RBFInterpolator(POINTS, v, degree=9)(PLACES), "data points are required"),
        (lambda v: si.RBFInterpolator(POINTS, v[:3])(PLACES), "as long"),
        (lambda v: si.Rbf(*POINTS.T, v, function=lambda r: r)(*PLACES.T), "has no derivative rule"),
        (lambda v: si.griddata(POINTS, v, PLACES, method="cubic"), "method='cubic'"),
        (lambda v: si.griddata(POINTS, v[:3], PLACES), "as many values"),
    ],
)
def test_what_has_no_rule_says_so(f: Any, message: str) -> None:
    with pytest.raises((SrcgradError, ValueError), match=message):
        sg.grad(lambda v: np.sum(f(v)))(VALUES)
