"""Options and weights that NumPy and SciPy refuse are refused on traced arrays too, with the same kind of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg, ndimage, signal
from scipy.spatial import distance

import srcgrad as sg

A = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, -0.4], [0.1, -0.4, 1.0]])
SECOND = np.diag([2.0, 1.0, 1.5])
V = np.array([0.3, -1.2, 2.5, 0.7, 1.9])

INVALID: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "no driver of eigenvalues": (lambda a: linalg.eigh(a, driver="wrong"), A),
    "none of eigenvalues alone": (lambda a: linalg.eigvalsh(a, driver="wrong"), A),
    "a driver of two matrices": (lambda a: linalg.eigh(a, driver="gv"), A),
    "a driver of one matrix": (lambda a: linalg.eigh(a, SECOND, driver="evr"), A),
    "a driver of all eigenvalues": (lambda a: linalg.eigh(a, driver="evd", subset_by_index=[0, 1]), A),
    "indices beyond the last": (lambda a: linalg.eigh(a, subset_by_index=[0, 3]), A),
    "indices that fall": (lambda a: linalg.eigh(a, subset_by_index=[1, 0]), A),
    "an index below 0": (lambda a: linalg.eigvalsh(a, subset_by_index=[-1, 1]), A),
    "no driver of singular values": (lambda a: linalg.svd(a, lapack_driver="wrong"), A),
    "a driver that is no text": (lambda a: linalg.svd(a, lapack_driver=None), A),
    "no driver of least squares": (lambda a: linalg.lstsq(a, V[:3], lapack_driver="gesvd"), A),
    "a negative power of a distance": (lambda a: distance.minkowski(a, V[:3], -10), V[2:]),
    "a power of 0": (lambda a: distance.minkowski(a, V[:3], 0), V[2:]),
    "negative weights of distances": (lambda a: distance.cdist(a, A, "cityblock", w=np.array([1.0, -1.0, 1.0])), A),
    "negative weights of a distance": (lambda w: distance.cosine(A[0], A[1], w=w), np.array([1.0, -1.0, 1.0])),
    "weights that are no vector": (lambda a: distance.euclidean(a, A[0], w=np.ones((1, 3))), A[1]),
    "fractions of observations": (lambda a: np.cov(a, fweights=np.array([1.5, 1.0, 1.0])), A),
    "observations below 0": (lambda a: np.cov(a, fweights=np.array([-1, 1, 1])), A),
    "negative weights of observations": (lambda w: np.cov(A, aweights=w), np.array([-1.0, 1.0, 1.0])),
    "too few weights of observations": (lambda a: np.cov(a, aweights=np.ones(2)), A),
    "weights in rows": (lambda a: np.cov(a, fweights=np.ones((1, 3), int)), A),
    "a negative order": (lambda x: ndimage.gaussian_filter1d(x, 1.0, order=-1), V),
    "a fraction of a radius": (lambda x: ndimage.gaussian_filter1d(x, 1.0, radius=1.5), V),
    "no side to trim": (lambda x: np.trim_zeros(np.array([0.0, 1.0, 0.0]), trim="") * x, 2.0),
    "a side to trim twice": (lambda x: np.trim_zeros(np.array([0.0, 1.0, 0.0]), trim="ff") * x, 2.0),
    "a filter whose first coefficient is 0": (lambda a: signal.lfiltic([1.0, 2.0], a, [1.0]), np.array([0.0, 1.0])),
    "a filter without coefficients": (lambda b: signal.lfiltic(b, np.zeros(0), [1.0]), V),
    "a filter of rows": (lambda b: signal.lfilter_zi(b, [1.0, 0.5]), A),
    "a length of nan": (lambda step: np.arange(0.0, 1.0, step), np.nan),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_numpy_and_scipy_refuse_is_refused(name: str) -> None:
    f, x = INVALID[name]
    with pytest.raises(Exception) as expected:
        f(x)
    with pytest.raises((TypeError, ValueError, RuntimeError)) as found:
        sg.jit(f, backend="numpy", strict=True)(x)  # which leaves nothing to SciPy
    assert isinstance(found.value, expected.type)


def test_lengths_of_statistics_are_rounded() -> None:
    for length in (1.5, 2.5, ((0.6, 2.4),)):
        f = sg.jit(lambda x, length=length: np.pad(x, 2, mode="mean", stat_length=length), backend="numpy")
        np.testing.assert_allclose(f(V), np.pad(V, 2, mode="mean", stat_length=length))
