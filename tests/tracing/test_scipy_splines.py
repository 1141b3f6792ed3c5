"""Splines and estimated densities of SciPy's: of traced values, and of numbers at traced places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as si
import scipy.stats

import srcgrad as sg
from srcgrad.errors import SrcgradError
from tests.tracing.slope_support import check_slopes

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
NODES = np.array([0.0, 0.7, 1.1, 2.0, 2.6, 3.3, 4.0, 5.1])
PLACES = np.array([0.2, 0.9, 1.7, 2.3, 3.9, 4.9])
Y = np.array([0.3, -0.4, 1.1, 0.8, -0.2, 0.5, 1.4, -0.7])
IMAGE = np.sin(np.arange(56.0)).reshape(8, 7)
TCK = si.splrep(NODES, Y)
HIGH = si.BSpline(np.arange(20.0), np.cos(np.arange(12.0)), 7)
RECTANGLE = si.RectBivariateSpline(NODES, np.arange(7.0), IMAGE)
SURFACE = [*RECTANGLE.tck, *RECTANGLE.degrees]
SMOOTH = si.UnivariateSpline(NODES, Y, s=0.3)
KDE = scipy.stats.gaussian_kde(Y)
KNOTS = np.array([0.0, 0.0, 0.0, 0.0, 2.2, 5.1, 5.1, 5.1, 5.1])

OF_VALUES: dict[str, Callable[[Any], Any]] = {
    "akima": lambda y: si.Akima1DInterpolator(NODES, y)(PLACES),
    "akima of columns": lambda y: si.Akima1DInterpolator(NODES, np.outer(y, y[:2]))(PLACES, 1),
    "akima of three": lambda y: si.Akima1DInterpolator(NODES[:3], y[:3])(PLACES[:2]),
    "makima": lambda y: si.Akima1DInterpolator(NODES, y, method="makima", extrapolate=True)(PLACES * 1.1),
    "hermite": lambda y: si.CubicHermiteSpline(NODES, y, y**2)(PLACES),
    "pchip_interpolate": lambda y: si.pchip_interpolate(NODES, y, PLACES, 1),
    "splrep": lambda y: si.splev(PLACES, si.splrep(NODES, y)),
    "splrep of degree 2": lambda y: si.splev(PLACES, si.splrep(NODES, y, k=2, s=0), der=1),
    "coefficients": lambda y: si.splev(PLACES, (TCK[0], np.append(y, np.zeros(4)), 3), der=2),
    "a curve": lambda y: si.splev(PLACES, (TCK[0], [y, y**2], 3)),
    "splint": lambda y: si.splint(-1.0, 2.5, (TCK[0], np.append(y, np.zeros(4)), 3)),
    "splantider": lambda y: si.splev(PLACES, si.splantider((TCK[0], np.append(y, np.zeros(4)), 3), 2)),
    "coefficients of splantider": lambda y: si.splantider((TCK[0], np.append(y, np.zeros(4)), 3))[1],
    "splantider of splrep": lambda y: si.splev(PLACES, si.splder(si.splantider(si.splrep(NODES, y)), -1)),
    "splder": lambda y: si.splev(PLACES, si.splder((TCK[0], np.append(y, np.zeros(4)), 3), 2)),
    "slopes of a basis": lambda y: si.BSpline(TCK[0], y, 3)(PLACES, 1),
    "integral of a basis": lambda y: si.BSpline(TCK[0], y, 3).integrate(0.3, 4.0),
    "antiderivative of a basis": lambda y: si.BSpline(TCK[0], y, 3).antiderivative()(PLACES),
    "derivative of a basis": lambda y: si.BSpline(TCK[0], np.outer(y, y), 3).derivative(2)(PLACES),
    "degree 2": lambda y: si.make_interp_spline(NODES, y, 2)(PLACES),
    "degree 5": lambda y: si.make_interp_spline(NODES, np.outer(y[:2], y), 5, axis=1)(PLACES),
    "least squares": lambda y: si.make_lsq_spline(NODES, y, KNOTS)(PLACES),
    "weighed least squares": lambda y: si.make_lsq_spline(NODES, y, KNOTS, w=1 + y**2)(PLACES),
    "smoothed": lambda y: si.make_smoothing_spline(NODES, y, lam=0.3)(np.append(PLACES, [-0.5, 6.0])),
    "smoothed by weights": lambda y: si.make_smoothing_spline(NODES, Y, w=1 + y**2, lam=0.3)(PLACES),
    "smoothed columns": lambda y: si.make_smoothing_spline(NODES, np.outer(y[:3], y), lam=2.0, axis=1)(PLACES, 1),
    "smoothed so much": lambda y: si.make_smoothing_spline(NODES, Y, lam=y[3])(PLACES),
    "rectangle": lambda y: si.RectBivariateSpline(NODES, np.arange(7.0), IMAGE * y[:, None])(PLACES, PLACES),
    "places on a rectangle": lambda y: si.RectBivariateSpline(NODES, NODES, np.outer(y, y), kx=2, ky=5).ev(
        PLACES, PLACES
    ),
    "bisplev": lambda y: si.bisplev(PLACES, [0.2, 1.1, 6.5], (*SURFACE[:2], SURFACE[2] * y[2], *SURFACE[3:])),
    "InterpolatedUnivariateSpline": lambda y: si.InterpolatedUnivariateSpline(NODES, y)(PLACES),
    "its slopes": lambda y: si.InterpolatedUnivariateSpline(NODES, y).derivative()(PLACES),
    "its integral": lambda y: si.InterpolatedUnivariateSpline(NODES, y, k=4).integral(0.5, 2.0),
    "quadratic": lambda y: si.interp1d(NODES, y, kind="quadratic")(PLACES),
    "interpn": lambda y: si.interpn((NODES, np.arange(8.0)), np.outer(y, y), np.stack([PLACES, PLACES[::-1]], -1)),
    "kde of data": lambda y: scipy.stats.gaussian_kde(y)(PLACES),
    "kde, silverman": lambda y: scipy.stats.gaussian_kde(y, "silverman").logpdf(PLACES),
    "kde of weights": lambda y: scipy.stats.gaussian_kde(Y, weights=np.exp(y)).pdf(PLACES),
    "kde of a bandwidth": lambda y: scipy.stats.gaussian_kde(Y, y[2]).integrate_box_1d(0.1, y[3]),
    "kde of two": lambda y: scipy.stats.gaussian_kde(np.stack([y, y**2]))([PLACES, PLACES[::-1]]),
}
AT_PLACES: dict[str, Callable[[Any], Any]] = {
    "splev": lambda x: si.splev(x, TCK),
    "splev, slopes": lambda x: si.splev(x, TCK, der=1),
    "splev outside": lambda x: si.splev(x - 2.0, TCK),
    "splev with zeros outside": lambda x: si.splev(x * 2.0, TCK, ext=1),
    "splev at the edge outside": lambda x: si.splev(x * 2.0, TCK, ext=3),
    "splint": lambda x: si.splint(x[0], x[1], TCK) + si.splint(x[2], 9.0 * x[3], TCK),
    "high degree": lambda x: HIGH(x + 7.5),
    "smoothed": lambda x: SMOOTH(x) + SMOOTH(x, 1),
    "integral of what is smoothed": lambda x: SMOOTH.integral(x[0], x[1]),
    "ev": lambda x: RECTANGLE.ev(x, x[::-1]),
    "grid": lambda x: RECTANGLE(x, x + 0.25),
    "bisplev": lambda x: si.bisplev(np.sort(x), x[0], SURFACE) + si.bisplev(x[1], x[2], SURFACE, dx=1, dy=2),
    "bisplev, slopes along a row": lambda x: si.bisplev(x[3], np.sort(x) + 0.25, SURFACE, dy=1),
    "slopes on a rectangle": lambda x: RECTANGLE(x, x[::-1], dx=1, dy=2, grid=False),
    "interpn": lambda x: si.interpn((NODES, np.arange(7.0)), IMAGE, np.stack([x, x[::-1]], -1)),
    "akima": lambda x: si.Akima1DInterpolator(NODES, Y)(x),
    "kde": lambda x: KDE(x) + KDE.logpdf(x) + KDE.evaluate(x),
    "kde to a place": lambda x: KDE.integrate_box_1d(-1.0, x[0]),
    "limits of an integral": lambda x: si.CubicSpline(NODES, Y).integrate(x[0], x[4]),
}
BETWEEN = PLACES + 0.03
OF_NODES: dict[str, Callable[[Any], Any]] = {
    "splrep": lambda x: si.splev(BETWEEN, si.splrep(x, Y)),
    "smoothed": lambda x: si.make_smoothing_spline(x, Y, lam=0.3)(BETWEEN),
    "rectangle": lambda x: si.RectBivariateSpline(x, np.arange(7.0), IMAGE).ev(BETWEEN, BETWEEN, dx=1),
    "splrep of degree 2": lambda x: si.splev(BETWEEN, si.splrep(x, Y, k=2, s=0)),
    "degree 5 and all of them": lambda x: si.make_interp_spline(x, Y + x, 5)(BETWEEN),
    "knots of one's own": lambda x: si.make_interp_spline(x, Y, 3, np.r_[[-0.1] * 4, 1.3, 1.9, 2.5, 3.4, [5.2] * 4])(
        BETWEEN
    ),
    "least squares": lambda x: si.make_lsq_spline(x, Y, np.r_[[-0.1] * 4, 2.2, [5.2] * 4])(BETWEEN),
    "InterpolatedUnivariateSpline": lambda x: si.InterpolatedUnivariateSpline(x, Y, k=4)(BETWEEN),
}
CASES = [*((f"of values: {name}", f, Y) for name, f in OF_VALUES.items())]
CASES += [*((f"of nodes: {name}", f, NODES) for name, f in OF_NODES.items())]
CASES += [*((f"at places: {name}", f, PLACES) for name, f in AT_PLACES.items())]


@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize(("f", "point"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_values_and_derivatives(f: Callable[[Any], Any], point: Any, backend: str) -> None:
    check_slopes(f, point, backend, curved=backend != "xla")


def test_a_spline_of_high_degree_reads_no_other_memory() -> None:
    """SciPy's conversion to piecewise polynomials does from degree 6 on, which ended the process."""
    x = np.array([8.25, 9.5])
    h = 1e-4
    np.testing.assert_allclose(sg.jacobian(HIGH)(x), np.diag((HIGH(x + h) - HIGH(x - h)) / (2 * h)), rtol=1e-6)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_estimates_and_splines_that_are_captured_are_compiled_in() -> None:
    for f in (lambda x: np.sum(KDE(x)), lambda x: np.sum(SMOOTH(x)), lambda x: np.sum(RECTANGLE(x, x))):
        assert sg.explain(sg.grad(f))(PLACES)["how it runs"].startswith("One program")
    asked = sg.grad(lambda x: np.sum(RECTANGLE.ev(x, x) + KDE.logpdf(x)) + SMOOTH.integral(x[0], x[1]))
    assert sg.explain(asked)(PLACES)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_nodes_that_are_inputs_make_one_program() -> None:
    """Where they lie among the knots is known by their order."""
    slope = sg.grad(lambda x: np.sum(si.splev(BETWEEN, si.splrep(x, Y))))
    assert sg.explain(slope)(NODES)["how it runs"].startswith("One program")
    with pytest.raises(ValueError, match="increase"):
        slope(NODES[::-1].copy())


def test_what_lies_outside_is_an_error_where_it_is_asked_for() -> None:
    with pytest.raises(ValueError, match="domain"):
        sg.grad(lambda x: np.sum(si.splev(x, TCK, ext=2)))(PLACES + 3.0)
    for order in (4, -4):
        with pytest.raises(ValueError, match="must be <= order of spline"):
            sg.grad(lambda y, n=order: np.sum((si.splder if n > 0 else si.splantider)((TCK[0], y, 3), n)[1]))(TCK[1])
    with pytest.raises(SrcgradError, match="needs lam"):
        sg.grad(lambda y: np.sum(si.make_smoothing_spline(NODES, y)(PLACES)))(Y)
    with pytest.raises(ValueError, match="non-negative"):
        sg.jit(lambda y: si.make_smoothing_spline(NODES, Y, lam=y[1])(PLACES))(Y)
    with pytest.raises(SrcgradError, match="with s= or bbox="):
        sg.grad(lambda z: np.sum(si.RectBivariateSpline(NODES, np.arange(7.0), z, s=1.0)(1.0, 1.0)))(IMAGE)
    with pytest.raises(SrcgradError, match="smooths"):
        sg.grad(lambda y: np.sum(si.splev(PLACES, si.splrep(NODES, y, s=0.5))))(Y)
