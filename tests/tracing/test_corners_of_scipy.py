"""What SciPy's own tests ask at the edges of its functions: operands of other kinds, repeated samples, few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, interpolate, linalg, ndimage, signal, special, stats

import srcgrad as sg

M = np.array([[0.3, -1.2, 2.5, 0.7], [1.9, 0.4, -0.6, 1.1], [-2.2, 0.8, 1.7, -0.9]])
Z = M + 1j * M[::-1]
W = np.array([[1.0, 2.0j], [0.5, 1.0 + 1.0j]])
CUBE = np.sin(np.arange(36.0)).reshape(3, 4, 3)
BYTES = np.array([[3, 200, 5, 251], [250, 8, 3, 7], [5, 6, 255, 3]], np.uint8)
P = np.array([0.2, 0.3, 0.5])
YEARS = np.array([198.0, 233.0, 233.0, 392.0])
TURNS = 2 * np.pi * np.array([-1.0, 0.0, 0.3, 1.0, 1.001, 2.0])
POSITIVE = np.array([[2.0, 0.3], [0.1, 1.5]])
KNOTS, COEFFICIENTS, _ = interpolate.splrep(np.arange(8.0), np.sin(np.arange(8.0)))

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "weights of a correlation are conjugated": (lambda x: ndimage.correlate(x, W), M),
    "those of a convolution are not": (lambda x: ndimage.convolve(x, W), Z),
    "along an axis": (lambda x: ndimage.correlate1d(x, W[1], axis=0), Z),
    "a convolution along an axis": (lambda x: ndimage.convolve1d(x, W[1], axis=0), M),
    "a real output of complex sums": (lambda x: ndimage.correlate(x, W, output=np.float32), M),
    "sums are made before they are integers": (lambda x: ndimage.correlate1d(x, [0.5, 0.5], output=int), 9.0 * M),
    "gaussians of integers": (lambda x: ndimage.gaussian_filter(x, 1.0, output=int), 20.0 * M),
    "a width of zero": (lambda x: ndimage.gaussian_filter(x, 0.0, output=int), 20.0 * M),
    "means of integers": (lambda x: ndimage.uniform_filter(x, 3, output=int), 20.0 * M),
    "means of integers as floats": (lambda x: ndimage.uniform_filter(x, 3, output=float), BYTES),
    "means of bytes": (lambda x: ndimage.uniform_filter(x, 3), BYTES),
    "edges of integers": (lambda x: ndimage.sobel(x, 0, output=int), 20.0 * M),
    "edges of bytes": (lambda x: ndimage.sobel(x, 0), BYTES),
    "edges of words": (lambda x: ndimage.prewitt(x, 0), BYTES.astype(np.uint32)),
    "laplacian of integers": (lambda x: ndimage.laplace(x, output=int), 20.0 * M),
    "places between integers": (
        lambda x: ndimage.map_coordinates(x, [[0.5, 1.2, 9.0], [0.3, 2.2, 1.0]], order=1, output=int),
        9.0 * M,
    ),
    "modes of a laplacian": (lambda x: ndimage.gaussian_laplace(x, 1.0, mode=["reflect", "wrap"]), M),
    "weights along one axis": (lambda x: ndimage.correlate(x, [0.5, 2.0], axes=(1,), origin=-1), M),
    "weights along axes not in order": (
        lambda x: ndimage.convolve(CUBE * x[:, :, None], W.real, axes=(2, 0), origin=(0, -1)),
        M,
    ),
    "extremes along one axis": (lambda x: ndimage.maximum_filter(x, 3, axes=(0,)), M),
    "a laplacian along one axis": (lambda x: ndimage.gaussian_laplace(x, 1.0, axes=1), M),
    "a laplacian along none": (lambda x: ndimage.laplace(x, axes=()), M),
    "a slope along one axis of what is smooth along all": (
        lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0, axes=1),
        M,
    ),
    "modes of a gradient": (lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0, mode=["nearest", "constant"]), M),
    "divergence from fewer weights": (lambda p: stats.entropy(p, np.array([0.4])), P),
    "divergence from rows": (lambda p: stats.entropy(p, np.array([[0.4], [0.3]]), axis=-1), P),
    "divergence of all": (lambda p: stats.entropy(np.outer(p, p), np.arange(1.0, 10.0), axis=None), P),
    "likelihood of a high power": (lambda d: stats.boxcox_llf(-8.0, d), YEARS),
    "likelihood of the logarithm": (lambda d: stats.boxcox_llf(0.0, d), YEARS),
    "variation of too few": (lambda d: stats.variation(d, ddof=5), YEARS),
    "variation of as many": (lambda d: stats.variation(d, ddof=4), YEARS),
    "samples at one place": (lambda y: integrate.simpson(y, x=np.array([3.0, 3.0, 3.0, 3.0])), YEARS),
    "the last at one place": (lambda y: integrate.simpson(y, x=np.array([1.0, 2.0, 4.0, 4.0])), YEARS),
    "samples of which two are at one place": (lambda x: integrate.simpson(YEARS[:3], x=x), np.array([1.0, 1.0, 4.0])),
    "the exponent of a power of a matrix": (lambda t: linalg.fractional_matrix_power(POSITIVE, t), np.float64(1.5)),
    "the exponent of a complex one": (
        lambda t: linalg.fractional_matrix_power(np.exp(0.3j) * POSITIVE, t),
        np.float64(-0.5),
    ),
    "a whole exponent": (lambda t: linalg.fractional_matrix_power(POSITIVE, t), np.float64(2.0)),
    "periodic sincs": (lambda x: special.diric(x, 4), TURNS),
    "periodic sincs of odd numbers": (lambda x: special.diric(x, 5), TURNS),
    "and of none": (lambda x: special.diric(x, np.array([[0], [3], [2.5], [-1]])), TURNS),
    "an axis of one node": (
        lambda x: interpolate.interpn(([1.0], [0.0, 1.0, 2.0, 3.0]), M[:1], x, bounds_error=False, fill_value=None),
        np.array([[0.5, 0.3], [1.0, 2.2], [7.0, 4.5]]),
    ),
    "spectra of nothing": (lambda x: np.stack(signal.welch(x)), np.zeros((0, 5, 2))),
    "a periodogram of nothing": (lambda x: np.stack(signal.periodogram(x, axis=1)), np.zeros((0, 5, 2))),
    "cross spectra of nothing": (lambda x: np.stack(signal.csd(x, x[:1], axis=1)), np.zeros((3, 0, 2))),
    "coefficients of a derivative": (lambda c: interpolate.splder((KNOTS, c, 3), 2)[1], COEFFICIENTS),
}


@pytest.mark.filterwarnings("ignore:promoting specified output dtype")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:numpy")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_values_dtypes_and_derivatives_are_those_of_scipy(name: str, backend: str) -> None:
    f, x = CASES[name]
    expected = f(x)
    found = sg.jit(f, backend=backend)(x)
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if "output" in name else 1e-9, atol=1e-12, strict=True)
    if x.dtype.kind != "f" or np.asarray(expected).dtype.kind in "iu" or not np.all(np.isfinite(expected)):
        return
    direction, h = np.cos(1.0 + np.arange(x.size)).reshape(x.shape), 1e-5
    if "place" in name and np.size(x) == 3:  # samples at one place stay there
        direction[0] = direction[1]
    _, slope = sg.jvp(f, (x,), (direction,), backend=backend)
    differences = (np.asarray(f(x + h * direction)) - f(x - h * direction)) / (2 * h)
    single = np.asarray(expected).dtype.char in "fF"
    np.testing.assert_allclose(slope, differences, rtol=2e-2 if single else 1e-6, atol=0.2 if single else 1e-7)
    _, pull = sg.vjp(f, x, backend=backend)
    cotangent = np.ones_like(expected) if np.ndim(expected) else type(expected)(1)
    np.testing.assert_allclose(np.sum(pull(cotangent)[0] * direction), np.sum(slope).real, rtol=1e-5, atol=1e-9)


def test_the_slope_in_the_power_of_box_and_cox_is_smooth_at_zero() -> None:
    slope = sg.grad(lambda power: stats.boxcox_llf(power, YEARS))
    for power, h in ((-8.0, 1e-5), (0.0, 1e-3)):
        ends = stats.boxcox_llf(power + h, YEARS) - stats.boxcox_llf(power - h, YEARS)
        np.testing.assert_allclose(slope(power), ends / (2 * h), rtol=1e-5)


def test_infinite_elements_are_an_error_where_finite_ones_are_asked_for() -> None:
    f = sg.jit(lambda x: np.asarray_chkfinite(x) * 2.0)
    np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [2.0, 4.0])
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match="infs or NaNs"):
            f(np.array([1.0, bad]))


FILTERS: dict[str, Callable[..., Any]] = {
    "correlate": lambda x, **to: ndimage.correlate(x, W.real, **to),
    "convolve1d": lambda x, **to: ndimage.convolve1d(x, [1.0, 2.0], **to),
    "gaussian_filter": lambda x, **to: ndimage.gaussian_filter(x, 1.0, **to),
    "gaussian_laplace": lambda x, **to: ndimage.gaussian_laplace(x, 1.0, **to),
    "uniform_filter": lambda x, **to: ndimage.uniform_filter(x, 3, **to),
    "sobel": lambda x, **to: ndimage.sobel(x, **to),
    "laplace": lambda x, **to: ndimage.laplace(x, **to),
    "minimum_filter": lambda x, **to: ndimage.minimum_filter(x, 2, **to),
    "map_coordinates": lambda x, **to: ndimage.map_coordinates(x, np.indices(M.shape) * 0.7, order=1, **to),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_fills_the_array_that_is_its_output(name: str, backend: str) -> None:
    def f(x: Any, place: Any) -> Any:
        found = FILTERS[name](x, output=place)
        return found + place

    def total(x: Any) -> Any:
        place = np.zeros_like(x)
        FILTERS[name](2.0 * x, output=place)
        return np.sum(place**2)

    for source in (M, np.round(M)):
        for dtype in (np.float64, np.float32):
            expected, place = np.full(M.shape, 7.0, dtype), np.full(M.shape, 7.0, dtype)
            doubled = f(source, expected)
            np.testing.assert_allclose(
                sg.jit(f, backend=backend)(source, place), doubled, rtol=1e-6, atol=1e-6, strict=True
            )
            np.testing.assert_allclose(place, expected, rtol=1e-6, atol=1e-6, strict=True)
    place = np.zeros(M.shape)
    sg.jit(lambda place: FILTERS[name](M, output=place), backend=backend)(place)
    np.testing.assert_allclose(place, FILTERS[name](M), rtol=1e-12, atol=1e-15)
    slope = sg.grad(total, backend=backend)(M)
    differences = (total(M + 1e-6 * Z.imag) - total(M - 1e-6 * Z.imag)) / 2e-6
    np.testing.assert_allclose(np.sum(slope * Z.imag), differences, rtol=1e-6)


def test_what_lies_beyond_the_edges_of_a_real_array_is_real() -> None:
    with pytest.raises(ValueError, match="complex-valued cval"):
        sg.jit(lambda x: ndimage.correlate(x, W, mode="constant", cval=1j))(M)


def test_the_slope_in_an_exponent_of_a_matrix_has_a_slope() -> None:
    """The number alone was read, and all slopes were 0."""

    def f(t: Any) -> Any:
        return np.sum(linalg.fractional_matrix_power(POSITIVE, t))

    log = linalg.logm(POSITIVE)
    power = linalg.fractional_matrix_power(POSITIVE, 0.5)
    for backend in ("llvm", "numpy"):
        np.testing.assert_allclose(sg.grad(f, backend=backend)(0.5), np.sum(log @ power), rtol=1e-12)
        np.testing.assert_allclose(sg.hessian(f, backend=backend)(0.5), np.sum(log @ log @ power), rtol=1e-12)


def test_periodic_sincs_curve_where_they_are_one() -> None:
    for n in (2, 3, 6):
        for turns in (-1, 0, 1, 3):
            sign = (-1.0) ** (turns * (n - 1))
            curve = sg.hessian(lambda x, n=n: special.diric(x, n))(2 * np.pi * turns)
            np.testing.assert_allclose(curve, -sign * (n**2 - 1) / 12, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: linalg.matmul_toeplitz((x[0], x[1]), x),
        lambda x: linalg.solve_toeplitz(x[0], x[1]),
        lambda x: linalg.expm_frechet(x, x, compute_expm=False),
        lambda x: linalg.logm(x),
        lambda x: linalg.fractional_matrix_power(x, 0.5),
    ],
)
def test_what_scipy_computes_in_double_precision_is_in_it(f: Callable[[Any], Any], dtype: Any, backend: str) -> None:
    x = POSITIVE.astype(dtype)
    np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x), rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: linalg.lu(x),
        lambda x: linalg.lu(x, p_indices=True),
        lambda x: linalg.lstsq(x, np.ones(x.shape[:1])),
        lambda x: linalg.lstsq(x, np.ones((x.shape[0], 2))),
    ],
)
@pytest.mark.parametrize("shape", [(0, 0), (1, 0), (0, 3)])
def test_matrices_without_elements(f: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    x = np.zeros(shape)
    for found, expected in zip(sg.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, expected, strict=isinstance(expected, np.ndarray))


def test_integrals_over_no_point_are_errors() -> None:
    for f in (integrate.cumulative_trapezoid, integrate.cumulative_simpson):
        with pytest.raises(ValueError, match="At least one point"):
            sg.jit(lambda y, f=f: f(y))(np.zeros(0))
        assert sg.jit(lambda y, f=f: f(y))(np.zeros((0, 4))).shape == (0, 3)


@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_ends_of_distributions_and_of_the_complex_plane() -> None:
    ends = np.array([0.0, 1.0])
    for k, n in ((-0.5, 0.0), (-0.2, -1.0), (-1.0, 0.0), (0.5, 0.0)):
        np.testing.assert_array_equal(sg.jit(special.nbdtri)(k, n, ends), special.nbdtri(k, n, ends))
    unknown = [complex(re, im) for re in (-np.inf, np.inf) for im in (np.inf, -np.inf, np.nan)]
    z = np.array([*unknown, complex(-np.inf, 1.0), 0.3 + 0.4j])
    np.testing.assert_allclose(sg.jit(special.expm1)(z), special.expm1(z), rtol=1e-14)
    np.testing.assert_array_equal(sg.jit(np.expm1)(z[:3]), np.full(3, complex(np.nan, np.nan)))


def test_a_standard_deviation_in_an_image_has_no_slope_where_all_is_equal() -> None:
    """As that of ``np.std``: the root of a variance of 0 gave nan."""
    for x in (np.array([1.0]), np.ones(3)):
        np.testing.assert_array_equal(sg.grad(lambda x: ndimage.standard_deviation(x))(x), 0.0)
    x, labels = np.array([1.0, 2.0, 4.0, 7.0]), np.array([1, 1, 2, 2])
    np.testing.assert_allclose(sg.grad(lambda x: ndimage.standard_deviation(x))(x), sg.grad(np.std)(x), rtol=1e-14)
    found = sg.grad(lambda x: np.sum(ndimage.standard_deviation(x, labels, [1, 2])))(x)
    np.testing.assert_allclose(found, [-0.5, 0.5, -0.5, 0.5], rtol=1e-14)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (1,)])
def test_fiedlers_matrix_of_no_numbers_is_none(shape: tuple[int, ...]) -> None:
    found, expected = sg.jit(linalg.fiedler)(np.zeros(shape)), linalg.fiedler(np.zeros(shape))
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
