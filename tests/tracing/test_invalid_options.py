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
    "no truth value for keepdims": (lambda x: np.nansum(x, keepdims="wrong"), V),
    "no truth value for keepdims of a method": (lambda x: x.sum(keepdims="wrong"), V),
    "no order of elements": (lambda x: np.full_like(x, 2.0, order="wrong") * x, V),
    "no order of a new array": (lambda x: np.array([x[0], x[1]], order="wrong"), V),
    "no order of a ufunc's result": (lambda x: np.sin(x, order="wrong"), V),
    "no casting rule": (lambda x: np.add(x, x, casting="wrong"), V),
    "no keyword of an array": (lambda x: np.array([x[0], x[1]], wrong=True), V),
    "no keyword of a filled array": (lambda x: np.full((2, 2), x[0], wrong=True), V),
    "a fraction of decimals": (lambda x: np.round(x, decimals=1.5), V),
    "a fraction of decimals of a method": (lambda x: x.round(1.5), V),
    "a fraction of an offset": (lambda a: np.diagonal(a, offset=1.5), A),
    "a fraction of a diagonal": (lambda x: np.diag(x, 1.5), V),
    "a negative number of columns": (lambda x: np.vander(x, N=-10), V),
    "an array as a dtype": (lambda x: np.sum(x, dtype=x), V),
    "a number as a dtype": (lambda x: np.cumsum(x, dtype=1.5), V),
    "bins in no order": (lambda x: np.digitize(x, x), V),
    "complex weights of a count": (lambda x: np.bincount([0, 1, 1, 2, 0], weights=x * 1j), V),
    "weights of bins of another shape": (lambda x: np.histogram_bin_edges(x, weights=x[:3]), V),
    "weights as a mask": (lambda x: np.sum(x, where=x), V),
    "a complex number to begin with": (lambda x: np.max(x, initial=1j), V),
    "two numbers to begin with": (lambda x: np.sum(x, initial=x[:2]), V),
    "a complex number for nan": (lambda x: np.nan_to_num(x, nan=1j), V),
    "complex places between nodes": (lambda x: np.interp(x * 1j, np.arange(5.0), x), V),
    "a complex number before the nodes": (lambda x: np.interp(x, np.arange(5.0), x, left=1j), V),
    "a geometric sequence from 0": (lambda x: np.geomspace(0.0 * x[0], 2.0, 5), V),
    "a mask of another size": (lambda x: np.place(x.copy(), np.ones(3, bool), x[:1]), V),
    "a mask to put by of another size": (lambda x: np.putmask(x.copy(), np.ones(3, bool), x[:1]), V),
    "a condition in rows": (lambda x: np.compress(np.ones((1, 3), bool), x), V),
    "places in rows": (lambda x: x[np.ix_(np.zeros((1, 1), int))], V),
    "a number to correlate with": (lambda x: np.correlate(x, x[0]), V),
    "a fraction of copies": (lambda x: np.tile(x, 1.5), V),
    "a negative size": (lambda x: np.resize(x, (-2, 2)), V),
    "no output": (lambda x: np.clip(x, 0.0, 1.0, out=()), V),
    "a number as an output": (lambda x: np.argmax(x, out=3), V),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_numpy_and_scipy_refuse_is_refused(name: str) -> None:
    f, x = INVALID[name]
    with pytest.raises(Exception) as expected:
        f(x)
    with pytest.raises((TypeError, ValueError, RuntimeError)) as found:
        sg.jit(f, backend="numpy", strict=True)(x)  # which leaves nothing to SciPy
    assert isinstance(found.value, expected.type)


def test_options_that_are_allowed_are_not_asked_about_in_vain() -> None:
    """What NumPy is asked with one number says nothing of integers, large counts and axes that the array has."""
    for f in (
        lambda x: np.sum(np.arange(5), dtype="i4") + x,
        lambda x: np.add(np.arange(5), 1, dtype=np.int64, casting="safe") * x,
        lambda x: np.trace(np.outer(x, x), offset=4),
        lambda x: np.diag(x, -3),
        lambda x: np.round(x, np.int64(1)),
        lambda x: np.round(x, -100),
        lambda x: np.cumsum(x, dtype=np.float32),
        lambda x: np.vander(x, np.int64(3), True),
        lambda x: np.sum(x, where=[True, False, True, True, False]),
        lambda x: np.array([x, x], order="F", copy=True, ndmin=3),
        lambda x: np.bincount([0, 1, 1, 2, 0], weights=np.ones(5, int)) * x[0],
        lambda x: np.digitize(x, np.sort(x)[::-1]),
        lambda x: np.linalg.trace(np.outer(x, x), offset=-80, dtype=float),
    ):
        np.testing.assert_allclose(sg.jit(f, backend="numpy", strict=True)(V), f(V))


def test_lengths_of_statistics_are_rounded() -> None:
    for length in (1.5, 2.5, ((0.6, 2.4),)):
        f = sg.jit(lambda x, length=length: np.pad(x, 2, mode="mean", stat_length=length), backend="numpy")
        np.testing.assert_allclose(f(V), np.pad(V, 2, mode="mean", stat_length=length))


def test_the_error_names_the_option() -> None:
    """NumPy's own says that a str is no integer, and not of which argument."""
    with pytest.raises(TypeError, match="keepdims='yes': "):
        sg.grad(lambda x: np.sum(x, keepdims="yes"))(np.ones(3))  # type: ignore[call-overload]
