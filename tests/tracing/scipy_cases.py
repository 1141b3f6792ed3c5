"""Programs of SciPy's functions of arrays that have rules: each of a vector of six positive numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, interpolate, linalg, ndimage, signal, stats
from scipy.spatial import distance

from tests.tracing.scipy_image_cases import RANKS, SPLINES

Program = Callable[[Any], Any]
X = np.array([1.08, 0.79, 0.72, 1.1, 0.96, 1.96])
m = np.random.default_rng(4).normal(size=(5, 6))

INTEGRATE: list[Program] = [
    lambda x: integrate.trapezoid(x, dx=0.3),
    lambda x: integrate.trapezoid(m * x, x=np.arange(5.0) ** 1.1, axis=0),
    lambda x: integrate.simpson(x, dx=0.3),
    lambda x: integrate.simpson(x, x=np.arange(6.0) ** 1.2),
    lambda x: integrate.simpson(x[:5], x=np.cumsum(x[:5])),
    lambda x: integrate.simpson(m * x, x=np.arange(5.0) ** 1.2, axis=0),
    lambda x: integrate.simpson(m * x, x=np.arange(6.0) ** 1.2, axis=1),
    lambda x: integrate.simpson(m * x, x=np.cumsum(np.abs(m) + x, axis=0), axis=0),
    lambda x: integrate.simpson((m * x)[:4], x=np.cumsum(np.abs(m) + x, axis=0)[:4], axis=0),
    lambda x: integrate.simpson(x[:2], dx=0.5),
    lambda x: integrate.simpson(x[:1], dx=0.5),
    lambda x: integrate.simpson(x[:3], dx=x[0]),
    lambda x: integrate.simpson(x[:4], dx=x[0]),
    lambda x: integrate.simpson((m * x)[:, :4], dx=0.4, axis=1),
    lambda x: integrate.cumulative_trapezoid(x, initial=0),
    lambda x: integrate.cumulative_trapezoid(m * x, x=np.cumsum(x[:5]), axis=0),
    lambda x: integrate.romb(x[:5], dx=0.2),
    lambda x: integrate.romb(m * x, axis=0),
]
STATS: list[Program] = [
    lambda x: stats.rankdata(x) * x,
    lambda x: stats.rankdata(np.round(m * x, 1), axis=1, method="min") * x,
    lambda x: stats.rankdata(m * x, axis=0, method="ordinal") * x,
    lambda x: stats.sem(x),
    lambda x: stats.sem(m * x, axis=1, ddof=0),
    lambda x: stats.sem(m * x, axis=None, keepdims=True),
    lambda x: stats.zscore(x),
    lambda x: stats.zscore(m * x, axis=1, ddof=1),
    lambda x: stats.zscore(m * x, axis=None),
    lambda x: stats.zmap(x, m[0]),
    lambda x: stats.gzscore(x),
    lambda x: stats.skew(x),
    lambda x: stats.skew(m * x, axis=1, bias=False),
    lambda x: stats.kurtosis(x, bias=False),
    lambda x: stats.kurtosis(m * x, axis=None, fisher=False),
    lambda x: stats.moment(x, 3),
    lambda x: stats.moment(x, 1),
    lambda x: stats.moment(m * x, [2, 3], axis=1),
    lambda x: stats.moment(x, 2, center=0.3),
    lambda x: stats.gmean(x),
    lambda x: stats.gmean(np.abs(m) * x, axis=1, weights=x),
    lambda x: stats.hmean(x, weights=x[::-1]),
    lambda x: stats.hmean(np.abs(m) * x, axis=1, keepdims=True),
    lambda x: stats.pmean(x, 3),
    lambda x: stats.pmean(x, 0),
    lambda x: stats.iqr(x),
    lambda x: stats.iqr(m * x, axis=1, scale="normal", rng=(20, 60)),
    lambda x: stats.entropy(x),
    lambda x: stats.entropy(np.abs(m) * x, axis=1, base=2),
    lambda x: stats.entropy(x, x[::-1]),
    lambda x: stats.variation(x, ddof=1),
    lambda x: stats.boxcox(x, 0.3),
    lambda x: stats.boxcox_llf(0.3, x),
    lambda x: stats.boxcox_llf(x[0], x),
    lambda x: stats.multinomial.logpmf([1, 2, 3], 6, x[:3] / x[:3].sum()),
    lambda x: stats.multinomial.logpmf([[1, 2, 3], [2, 2, 2], [3, 1, 2]], 6, x[:3] / x[:3].sum()),
    lambda x: stats.multinomial.pmf([1, 2], 3, x[:2] / np.sum(x[:2])),
]
DISTANCE: list[Program] = [
    lambda x: distance.cdist(m * x, m),
    lambda x: distance.pdist(m * x),
    lambda x: distance.squareform(x),
    lambda x: distance.squareform(distance.pdist(m * x)),
    lambda x: distance.squareform(distance.squareform(x)),
    lambda x: distance.euclidean(x, m[0]),
    lambda x: distance.euclidean(x, m[0], w=[1.0, 2, 3, 4, 5, 6]),
    lambda x: distance.cosine(x, m[0]),
    lambda x: distance.cosine(x, m[0], w=x),
    lambda x: distance.correlation(x, m[0]),
    lambda x: distance.correlation(x, m[0], w=np.arange(1, 7.0)),
    lambda x: distance.canberra(x, m[0]),
    lambda x: distance.braycurtis(x, m[0]),
    lambda x: distance.minkowski(x, m[0], 3),
    lambda x: distance.minkowski(x, m[0], 1, w=np.arange(1, 7.0)),
    lambda x: distance.chebyshev(x, m[0]),
    lambda x: distance.seuclidean(x, m[0], np.arange(1, 7.0)),
    lambda x: distance.mahalanobis(x, m[0], np.eye(6) * 2),
    lambda x: distance.cdist(m * x, m, "sqeuclidean"),
    lambda x: distance.cdist(m * x, m, "cityblock"),
    lambda x: distance.cdist(m * x, m, "minkowski", p=3),
    lambda x: distance.cdist(m * x, m, "cosine"),
    lambda x: distance.cdist(m * x, m, "correlation"),
    lambda x: distance.pdist(m * x, "mahalanobis", VI=np.eye(6)),
    lambda x: distance.pdist(m * x, "canberra"),
    lambda x: distance.cdist(m * x, m * x) ** 2,
]
NDIMAGE: list[Program] = [
    lambda x: ndimage.gaussian_filter(m * x, 1.0),
    lambda x: ndimage.gaussian_filter(m * x, (0.5, 1.2), order=(1, 2), mode=("nearest", "wrap")),
    lambda x: ndimage.gaussian_filter1d(x, 1.0, order=1, mode="mirror"),
    lambda x: ndimage.gaussian_filter1d(x, 1.5, order=3, mode="constant", cval=0.3),
    lambda x: ndimage.gaussian_filter1d(x, 3.0),
    lambda x: ndimage.gaussian_laplace(m * x, 1.0),
    lambda x: ndimage.gaussian_gradient_magnitude(m * x, 1.0),
    lambda x: ndimage.convolve(m * x, m[:3, :3]),
    lambda x: ndimage.convolve(m * x, m[:2, :4], mode="wrap", origin=(0, 1)),
    lambda x: ndimage.convolve(m, m[:3, :3] * x[:3], mode="nearest"),
    lambda x: ndimage.correlate(m * x, m[:2, :3], origin=(-1, 1)),
    lambda x: ndimage.correlate(m * x, m[:4, :2], mode="mirror"),
    lambda x: ndimage.correlate1d(x, [1.0, 2.0, 1.0]),
    lambda x: ndimage.correlate1d(m * x, [1.0, 2.0, -1.0, 0.5], axis=0, origin=1),
    lambda x: ndimage.convolve1d(m * x, [1.0, 2.0, -1.0, 0.5], axis=0, origin=1),
    lambda x: ndimage.convolve1d(m * x, [1.0, 2.0, -1.0], mode="constant", cval=2.0),
    lambda x: ndimage.map_coordinates(m, [x * 0.9, x], order=1),
    lambda x: ndimage.map_coordinates(m * x, [[0.5, 1.2], [0.3, 2.2]], order=1),
    lambda x: ndimage.map_coordinates(m * x, [[0.5, 1.2, -0.4, 4.7], [0.3, 2.2, 1.1, 5.6]], order=1, mode="nearest"),
    lambda x: ndimage.map_coordinates(
        m * x, [[0.5, 1.2, -0.4, 4.7], [0.3, 2.2, 1.1, 5.6]], order=1, mode="constant", cval=1.3
    ),
    lambda x: ndimage.map_coordinates(
        m * x, [[0.5, 1.2, -0.4, 4.7], [0.3, 2.2, 1.1, 5.6]], order=1, mode="grid-constant", cval=1.3
    ),
    lambda x: ndimage.map_coordinates(m * x, [[0.5, 1.2, -3.4, 4.7], [0.3, -2.2, 1.1, 9.6]], order=1, mode="mirror"),
    lambda x: ndimage.map_coordinates(m * x, [[0.5, 1.2, -3.4, 4.7], [0.3, -2.2, 1.1, 9.6]], order=1, mode="reflect"),
    lambda x: ndimage.map_coordinates(m * x, [[0.5, 1.2, -3.4, 4.7], [0.3, -2.2, 1.1, 9.6]], order=1, mode="grid-wrap"),
    lambda x: ndimage.map_coordinates(m * x, [[0.4, 1.2], [0.3, 2.2]], order=0),
    lambda x: ndimage.map_coordinates(
        m * x, [[0.4, 1.2, -0.4, -0.6, 4.3, 4.6], [0.3, 2.2, 0.0, 0, 0, 0]], order=0, cval=7.0
    ),
    lambda x: ndimage.sobel(m * x),
    lambda x: ndimage.sobel(m * x, axis=0, mode="wrap"),
    lambda x: ndimage.prewitt(m * x),
    lambda x: ndimage.laplace(m * x),
    lambda x: ndimage.uniform_filter(m * x, 3),
    lambda x: ndimage.uniform_filter(m * x, (2, 5), origin=(0, -1)),
    lambda x: ndimage.uniform_filter1d(x, 4, mode="nearest"),
    lambda x: ndimage.maximum_filter(m * x, 3),
    lambda x: ndimage.minimum_filter(m * x, (2, 3), mode="constant", cval=-0.1, origin=(0, 1)),
]
SIGNAL: list[Program] = [
    lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.3, 0.1], x),
    lambda x: signal.lfilter([1.0, 0.5], [2.0], x),
    lambda x: signal.lfilter([1.0, 0.5, 0.1], [2.0, 0.3], m * x, axis=0),
    lambda x: signal.lfilter([1.0, 0.5, 0.1], 1.0, m * x, axis=0),
    lambda x: signal.lfilter(x[:2], x[2:5], m[0]),
    lambda x: signal.lfilter(x[:2], x[2:5], m, axis=1, zi=m[:, :2] * x[0]),
    lambda x: signal.lfilter(0.5, 1.0, x),
    lambda x: signal.lfilter([0.5, 0.2], [1.0, -0.4], x, zi=[0.3]),
    lambda x: signal.lfilter([0.5, 0.2], [1.0, -0.4], np.concatenate([x] * 20)),
    lambda x: signal.filtfilt([0.5, 0.5], [1.0], np.concatenate([x, x, x])),
    lambda x: signal.filtfilt([0.5, 0.5], [1.0, -0.3], np.concatenate([x, x, x])),
    lambda x: signal.filtfilt(
        [0.5, 0.5], [1.0, -0.3, 0.1], np.outer(np.concatenate([x, x, x]), x), axis=0, padtype="even"
    ),
    lambda x: signal.filtfilt([0.5, 0.5], [1.0, -0.3, 0.1], np.concatenate([x, x, x]), padlen=4, padtype="constant"),
    lambda x: signal.filtfilt(x[:2], np.array([1.0, -0.3]) * x[0], np.concatenate([x, x, x])),
    lambda x: signal.sosfilt(np.array([[1.0, 0.2, 0.1, 1.0, -0.3, 0.1], [1.0, 0.2, 0.4, 1.0, -0.3, 0.2]]), x),
    lambda x: signal.sosfilt(
        np.array([[1.0, 0.2, 0.1, 1.0, -0.3, 0.1], [1.0, 0.2, 0.4, 1.0, -0.3, 0.2]]), x, zi=np.ones((2, 2)) * x[0]
    ),
    lambda x: signal.detrend(x),
    lambda x: signal.detrend(x, bp=[3]),
    lambda x: signal.detrend(m * x, axis=0, type="constant"),
    lambda x: signal.detrend(m * x, axis=0),
    lambda x: signal.hilbert(x),
    lambda x: signal.hilbert(m * x, axis=0),
    lambda x: signal.hilbert(x, N=9),
    lambda x: signal.stft(x, nperseg=4)[2],
    lambda x: signal.stft(x, nperseg=4)[:2],
    lambda x: signal.stft(m * x, nperseg=3, noverlap=2, axis=0),
    lambda x: signal.stft(
        np.concatenate([x, x]),
        fs=2.0,
        nperseg=5,
        boundary=None,
        padded=False,
        detrend="constant",
        nfft=8,
        scaling="psd",
    ),
    lambda x: signal.stft(np.concatenate([x, x]), nperseg=5, boundary="even", window="hamming"),
    lambda x: signal.welch(x, nperseg=4),
    lambda x: signal.welch(
        np.concatenate([x] * 5), fs=3.0, nperseg=7, noverlap=3, scaling="spectrum", window="blackman", detrend="linear"
    ),
    lambda x: signal.welch(m * x, nperseg=4, axis=0, detrend=False, return_onesided=False),
    lambda x: signal.periodogram(x),
    lambda x: signal.periodogram(m * x, fs=2.0, window="hann", axis=0, scaling="spectrum"),
    lambda x: signal.periodogram(x, nfft=9),
    lambda x: signal.periodogram(x, nfft=4, detrend=False),
    lambda x: signal.csd(x, m[0], nperseg=4)[1],
    lambda x: signal.csd(x + 1j * x**2, m[0], nperseg=4),
    lambda x: signal.savgol_filter(x, 5, 2),
    lambda x: signal.savgol_filter(x, 3, 1, mode="nearest"),
    lambda x: signal.savgol_filter(x, 4, 2, deriv=1, delta=0.3),
    lambda x: signal.savgol_filter(m * x, 3, 2, deriv=1, axis=0, mode="wrap"),
    lambda x: signal.savgol_filter(x, 4, 2, mode="mirror"),
]
INTERPOLATE: list[Program] = [
    lambda x: interpolate.CubicSpline(np.arange(6.0), x)(np.array([0.5, 2.2, -1, 7.0])),
    lambda x: interpolate.CubicSpline(np.cumsum(x), m.T, bc_type="natural")(np.array([[0.5, 2.2], [1.0, 4.0]])),
    lambda x: interpolate.CubicSpline(np.arange(5.0), m * x, axis=0, bc_type="clamped")(x * 2),
    lambda x: interpolate.CubicSpline(np.cumsum(x), m * x, axis=1)(x * 2, 1),
    lambda x: interpolate.CubicSpline(np.cumsum(x), x**2, bc_type=((1, 0.3), (2, -0.4)), extrapolate=False)(
        x[:2] * 2 + 1
    ),
    lambda x: interpolate.CubicSpline(np.cumsum(x), np.concatenate([x[:5], x[:1]]), bc_type="periodic")(
        np.array([0.0, 4.0, 9.0])
    ),
    lambda x: interpolate.CubicSpline(np.arange(3.0), x[:3])(x),
    lambda x: interpolate.CubicSpline(np.arange(2.0), x[:2])(x),
    lambda x: interpolate.CubicSpline(np.arange(6.0), x).derivative(2)(x),
    lambda x: interpolate.CubicSpline(np.arange(6.0), x).antiderivative()(x),
    lambda x: interpolate.CubicSpline(np.arange(6.0), x).integrate(0.3, x[0]),
    lambda x: interpolate.CubicSpline(np.arange(6.0), m[0])(x),
    lambda x: interpolate.CubicSpline(np.arange(6.0), m[0])(x[0]),
    lambda x: interpolate.CubicSpline(np.arange(6.0), m, axis=1)(x, nu=1),
    lambda x: interpolate.PchipInterpolator(np.arange(6.0), x)(np.array([0.5, 2.2, 4.5])),
    lambda x: interpolate.PchipInterpolator(np.cumsum(x), m * x, axis=1)(x * 2),
    lambda x: interpolate.PchipInterpolator(np.arange(6.0), m[0])(x),
    lambda x: interpolate.make_interp_spline(np.arange(6.0), x)(np.array([0.5, 2.2])),
    lambda x: interpolate.make_interp_spline(np.arange(6.0), x, k=1)(np.array([0.5, 2.2])),
    lambda x: interpolate.make_interp_spline(np.arange(6.0), m[0], k=3)(x),
    lambda x: interpolate.BSpline(np.arange(10.0), m[0], 3)(x + 3.2),
    lambda x: interpolate.BSpline(np.arange(10.0), x, 3)(x + 3.2),
    lambda x: interpolate.BSpline(np.cumsum(np.concatenate([x, x[:4]])), m, 3, axis=1, extrapolate=False)(x + 4.2),
    lambda x: interpolate.PPoly(m[:3, :5, None] * x, np.arange(6.0))(x),
    lambda x: interpolate.interp1d(np.arange(6.0), x)(np.array([0.5, 2.2])),
    lambda x: interpolate.interp1d(np.arange(6.0), m * x, fill_value="extrapolate")(x * 3),
    lambda x: interpolate.interp1d(np.arange(5.0), m * x, axis=0, bounds_error=False, fill_value=(1.0, 2.0))(x * 3),
    lambda x: interpolate.interp1d(np.arange(6.0), x, kind="cubic")(np.array([0.5, 2.2])),
    lambda x: interpolate.interp1d(np.arange(6.0), x, kind="previous")(np.array([0.5, 2.2, 3.0])),
    lambda x: interpolate.interp1d(np.arange(6.0), x, kind="nearest")(np.array([0.4, 2.2, 3.0])),
    lambda x: interpolate.interp1d(np.arange(6.0), m[0])(x),
    lambda x: interpolate.interp1d(np.arange(6.0), m)(x[0]),
    lambda x: interpolate.RegularGridInterpolator((np.arange(5.0), np.arange(6.0)), m * x)(
        np.array([[0.5, 2.2], [1.0, 3.4]])
    ),
    lambda x: interpolate.RegularGridInterpolator((np.arange(5.0), np.arange(6.0)), m)(np.stack([x, x * 2], 1)),
    lambda x: interpolate.RegularGridInterpolator((np.arange(5.0), np.arange(6.0)), m)((x, x * 2)),
    lambda x: interpolate.RegularGridInterpolator(
        (np.arange(5.0), np.arange(6.0)), m * x, bounds_error=False, fill_value=None
    )(np.array([[0.5, 2.2], [-1.0, 7.4]])),
    lambda x: interpolate.RegularGridInterpolator((np.arange(5.0), np.arange(6.0)), m * x, bounds_error=False)(x[:2]),
    lambda x: interpolate.RegularGridInterpolator((np.arange(5.0),), m * x, method="nearest")(np.array([[0.5], [2.6]])),
]
LINALG: list[Program] = [
    lambda x: linalg.eigh_tridiagonal(x, m[0, :5], eigvals_only=True),
    lambda x: linalg.eigvalsh_tridiagonal(m[0] * x, x[:5]),
    lambda x: np.abs(linalg.eigh_tridiagonal(m[0] * x, x[:5])[1]),
    lambda x: linalg.pinvh((m * x).T @ (m * x)),
    lambda x: linalg.pinvh((m * x)[:, :5], lower=False),
    lambda x: linalg.eig((m * x)[:, :5])[0],
    lambda x: linalg.eig((m * x)[:, :5], right=False),
    lambda x: np.abs(linalg.eig((m * x)[:, :5])[1]),
]
PROGRAMS: list[Program] = [*INTERPOLATE, *LINALG, *INTEGRATE, *STATS, *DISTANCE, *NDIMAGE, *SPLINES, *RANKS, *SIGNAL]
