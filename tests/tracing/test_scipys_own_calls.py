"""Calls that the tests of NumPy and SciPy make, at which a number was another one here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as sc
import scipy.stats as st
from scipy import signal
from scipy.spatial import distance

import srcgrad as sg

B, A = np.array([0.5, 1.0, 0.2]), np.array([1.0, 0.3])
STEPS = [(0.0, 1.0, np.inf), (3.0, 1.0, -np.inf), (0.0, 1.0, -np.inf), (0.0, 1e-100, 1e300), (0.0, 1.0, 0.3)]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("outputs", [0, 1, 5])
@pytest.mark.parametrize("inputs", [None, 0, 1, 6])
def test_the_state_that_a_filters_past_leaves_behind(inputs: int | None, outputs: int, backend: str) -> None:
    past = [np.cos(1.0 + np.arange(size)) for size in (outputs, *([] if inputs is None else [inputs]))]
    for b, a in ((B, A), (B[:1], np.array([2.0, 0.3, 0.1])), (B, A[:1]), (B.astype(np.float32), A.astype(np.float32))):
        state = sg.jit(signal.lfiltic, backend=backend)(b, a, *past)
        np.testing.assert_allclose(state, signal.lfiltic(b, a, *past), rtol=1e-6, atol=1e-12, strict=True)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_filters_state_varies_with_a_first_coefficient_of_1(backend: str) -> None:
    """SciPy divides by it where it is not 1: in the path that is taken there it does not occur."""

    def energy(a: Any) -> Any:
        return np.sum(signal.lfiltic(B, a, [7.1, 5.4], [0.7, 0.4]) ** 2)

    h = 1e-6
    ends = [energy(A + h * step) - energy(A - h * step) for step in np.eye(2)]
    np.testing.assert_allclose(sg.grad(energy, backend=backend)(A), np.array(ends) / (2 * h), rtol=1e-7)


def test_the_state_of_a_constant_input_has_the_dtype_of_the_coefficients() -> None:
    for dtype in (np.float32, np.float64, np.complex64):
        b, a = B.astype(dtype), A.astype(dtype)
        np.testing.assert_allclose(sg.jit(signal.lfilter_zi)(b, a), signal.lfilter_zi(b, a), rtol=1e-6, strict=True)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("bounds", STEPS)
def test_a_step_beyond_the_end_leaves_the_first_number(bounds: tuple[float, float, float], backend: str) -> None:
    found = sg.jit(lambda step: np.arange(bounds[0], bounds[1], step), backend=backend)(bounds[2])
    np.testing.assert_array_equal(found, np.arange(*bounds), strict=True)


def test_least_squares_of_a_negative_tolerance_cut_at_lapacks_precision() -> None:
    left = np.linalg.qr(np.cos(np.arange(12.0).reshape(4, 3)))[0]
    for share in (0.75, 0.3):
        matrix = left * np.array([1.0, 0.5, share * np.finfo(float).eps])
        expected = np.linalg.lstsq(matrix, np.ones(4), rcond=-1)
        found = sg.jit(lambda a: np.linalg.lstsq(a, np.ones(4), rcond=-1), backend="numpy")(matrix)
        assert found[2] == expected[2] == (3 if share > 0.5 else 2)


@pytest.mark.parametrize("small", [1e-160, 1e-30, 1e-18, 1e-17, 1e-3])
def test_the_slope_of_a_mean_in_a_number_whose_square_underflows(small: float) -> None:
    """b dM/db + a dM/da = M, and a number far below has pi a/(2 log(4 a/b)) for its mean."""
    m, (da, db) = sg.value_and_grad(sc.agm, (0, 1))(1.5, small)
    with mpmath.workdps(400):
        slope = mpmath.diff(
            lambda b: mpmath.agm(1.5, b), mpmath.mpf(small), h=mpmath.mpf(small) * mpmath.mpf(10) ** -50
        )
    np.testing.assert_allclose(db, float(slope), rtol=1e-12)
    np.testing.assert_allclose(1.5 * da + small * db, m, rtol=1e-12)


def test_distances_of_many_vectors_of_power_0_are_what_the_formula_says() -> None:
    x, w = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 3.0]]), np.array([0.1, 0.2, 0.3])
    for options in ({}, {"w": w}):
        f = sg.jit(lambda x, options=options: distance.cdist(x, x + 1.0, "minkowski", p=0, **options), strict=True)
        np.testing.assert_array_equal(f(x), distance.cdist(x, x + 1.0, "minkowski", p=0, **options))


# --- distributions ---------------------------------------------------------------------------------------------------

FAR: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "below where exp underflows": (st.loggamma.cdf, (-740.0, 0.75)),
    "what is above that": (st.loggamma.sf, (-800.0, 0.001)),
    "its logarithm": (st.loggamma.logcdf, (-800.0, 0.5)),
    "a quantile there": (st.loggamma.ppf, (0.4, 0.001)),
    "one from above": (st.loggamma.isf, (0.4, 0.001)),
    "one that is not far": (st.loggamma.isf, (0.4, 2.0)),
    "far on the left": (st.cauchy.cdf, (-4e20,)),
    "near one, of a power law": (st.cauchy.logcdf, (4e50,)),
    "near one, of a normal law": (st.norm.logsf, (-9.0,)),
    "near one, of an exponential law": (st.gompertz.logcdf, (6.0, 0.1)),
    "near one, of a law in its power": (st.beta.logcdf, (0.999, 2.0, 9.0)),
    "near one, above a small place": (st.maxwell.logsf, (1e-8,)),
    "many degrees of freedom": (st.t.logpdf, (1.3, 1e10)),
    "more of them": (st.t.pdf, (1.3, 1e15)),
    "infinitely many": (st.t.logpdf, (1.3, np.inf)),
    "of a distribution function": (st.t.cdf, (1.3, np.inf)),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", FAR)
def test_probabilities_are_right_where_a_formula_underflows_or_is_rounded_to_1(name: str, backend: str) -> None:
    f, (x, *shapes) = FAR[name]
    found, slope = sg.value_and_grad(f, backend=backend)(x, *shapes)
    np.testing.assert_allclose(found, f(x, *shapes), rtol=1e-12)
    h = 1e-6 * abs(x)
    np.testing.assert_allclose(
        slope, (f(x + h, *shapes) - f(x - h, *shapes)) / (2 * h), rtol=1e-2 if h < 1e-9 else 1e-5
    )


def test_densities_of_infinitely_many_degrees_of_freedom_are_normal_in_a_row_of_others() -> None:
    df = np.array([np.inf, 3.0, np.inf, 0.4])
    x = np.array([0.3, -1.0, 2.0, 0.1])
    np.testing.assert_allclose(sg.jit(st.t.pdf)(x, df), st.t.pdf(x, df), rtol=1e-13)
    hessian = sg.hessian(lambda x: np.sum(sc.stdtr(df, x)))(x)
    slope = -(x + x / df) / (1 + x**2 / df) * st.t.pdf(x, df)
    np.testing.assert_allclose(np.diag(hessian), slope, rtol=1e-12)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_methods_that_loop_over_their_places_see_one_shape_for_each(backend: str) -> None:
    """The loop of ``norminvgauss._sf`` ends with the shorter of the places and the shapes."""
    x = np.array([[-10.0, -1.0, 0.0], [0.5, 2.0, 10.0]])
    for f in (st.norminvgauss.sf, st.norminvgauss.cdf):
        found = sg.jit(lambda x, b, f=f: f(x, 1.0, b), backend=backend)(x, 0.5)
        np.testing.assert_allclose(found, f(x, 1.0, 0.5), rtol=1e-6, atol=1e-12, strict=True)
    slope = sg.grad(lambda b: np.sum(st.norminvgauss.sf(x, 1.0, b)), backend=backend)(0.5)
    ends = [np.sum(st.norminvgauss.sf(x, 1.0, 0.5 + h)) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-5)
