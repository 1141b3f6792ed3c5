"""What NumPy lets pass although it reads like an error, and attributes that it no longer has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import srcgrad as sg

X = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])

CASES: dict[str, Callable[[Any], Any]] = {
    "delete of an empty list": lambda x: np.delete(x, [], 0) * x,
    "delete of an empty tuple": lambda x: np.delete(x, ()) * 2.0,
    "nanmean of a scalar": lambda x: np.nanmean(x[0, 1], axis=0) * x,
    "nanvar of a scalar": lambda x: np.nanvar(x[0, 1], axis=-1) + x,
    "nanstd of a 0-d array": lambda x: np.nanstd(x[0, 1, ...], axis=0, keepdims=True) + x,
    "average with weights of two axes, in the order given": lambda x: (
        np.average(np.stack([x, x**2, x + 1.0]), axis=(2, 0), weights=np.arange(9.0).reshape(3, 3)) * x[0, 0]
    ),
    "quantiles of no columns": lambda x: np.quantile(x[:, :0], [0.25, 0.5], axis=0).sum() + x,
    "nanpercentile of no rows": lambda x: np.nan_to_num(np.nanpercentile(x[:0], 40, axis=0)) + x,
    "spectral norm of no rows": lambda x: np.linalg.norm(x[:0], 2) + x,
    "axes of a transposition in an array": lambda x: np.transpose(x, np.array([1, 0])) ** 2,
    "the old name of a mode of qr": lambda x: np.linalg.qr(x, mode="full")[1] * x[0, 0],
    "columns of one row are variables": lambda x: np.cov(x[:1], rowvar=False, ddof=0) + x[0],
    "indices of take that are no whole numbers": lambda x: np.take(x, [0.0, 1.9, -1.0], axis=1) ** 2,
    "an index of take that is no whole number": lambda x: np.take(x, 1.5, mode="wrap") * x,
    "truth values as indices of take": lambda x: np.take(x, x > 2.5) ** 2,
    "no indices of take": lambda x: np.take(x, []).sum() + x,
    "the logarithm of no exponentials": lambda x: np.exp(np.logaddexp.reduce(x[:0], axis=0)) + x,
    "all logarithms of no exponentials": lambda x: np.exp(np.logaddexp.reduce(x[:0], axis=None)) + x,
    "the rank of no rows": lambda x: np.linalg.matrix_rank(x[:0]) + x,
    "the ranks of matrices without columns": lambda x: np.linalg.matrix_rank(x[None, :, :0])[0] + x,
    "axes of a median in a list": lambda x: np.median(x, axis=[0, 1]) * x,
    "axes of a product": lambda x: np.matmul(x, x[None] ** 2, axes=[(1, 0), (1, 2), (1, 0)]),
    "axes of a product with a vector": lambda x: np.matmul(x, x[:, 0], axes=[(1, 0), 0, 0]),
    "axes of a product of vectors": lambda x: np.vecdot(x, x**2, axes=[0, 0]),
    "the axis of a product of vectors": lambda x: np.vecdot(x, x**2, axis=0),
    "an axis of a product of vectors that is kept": lambda x: np.vecdot(x, x**2, axis=0, keepdims=True),
    "axes of a product of vectors that is kept": lambda x: np.vecdot(x, x**2, axes=[1, 1, 0], keepdims=True),
    "axes of a matrix times vectors": lambda x: np.matvec(x[None], x, axes=[(2, 1), 0, 0]),
    "axes of vectors times a matrix": lambda x: np.vecmat(x, x, axes=[0, (0, 1), -1]),
    "a difference of some elements": lambda x: np.subtract.reduce(x, axis=1, where=x > 2.5, initial=3.0) ** 2,
    "a quotient of some elements": lambda x: np.divide.reduce(x, where=[[True], [False]], initial=3.0),
    "names of ways to sort": lambda x: np.sort(x, 0, "quick") + np.sort(x, kind="m") + np.sort(x, stable=False),
    "whole": lambda x: x[True] ** 2,
    "nothing": lambda x: x[False].sum() + x,
}


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:The .full. option")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_what_numpy_lets_pass(name: str, backend: str) -> None:
    f = CASES[name]
    found, expected = sg.jit(f, backend=backend)(X), f(X)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    slope = [(f(X + e).sum() - f(X - e).sum()) / 2e-6 for e in 1e-6 * np.eye(X.size).reshape(-1, *X.shape)]
    gradient = sg.grad(lambda x: f(x).sum(), backend=backend)(X)
    np.testing.assert_allclose(gradient.ravel(), slope, rtol=1e-7, atol=1e-8)


def test_what_numpy_refuses_is_refused() -> None:
    for f in (
        lambda x: np.delete(x, np.array([]), 0),
        lambda x: np.mean(x[0, 1], axis=0),
        lambda x: np.nanmean(x[0, 1].astype(int), axis=0),
        lambda x: np.nanmean(x[0, 1], axis=1),
        lambda x: np.quantile(x[:0], 0.5, axis=0),
        lambda x: np.take_along_axis(x, x > 1.0, 1),
        lambda x: np.take_along_axis(x, np.zeros((3, 1), int), 1),
        lambda x: np.put_along_axis(x.copy(), x > 1.0, 1.0, 1),
    ):
        with pytest.raises((IndexError, np.exceptions.AxisError)):
            f(X)
        with pytest.raises((IndexError, np.exceptions.AxisError)):
            sg.jvp(f, (X,), (X,))


def test_the_classes_of_errors_are_numpys() -> None:
    for kind, f in (
        (TypeError, lambda x: np.select([x, x > 1.0], [x, x])),
        (TypeError, lambda x: np.unravel_index(x, (9, 9))),
        (TypeError, lambda x: np.ravel_multi_index((x, x), (9, 9))),
        (TypeError, lambda x: np.gradient(x, 1.0, 2.0, 3.0)),
        (TypeError, lambda x: np.average(x, weights=x[0])),
        (TypeError, lambda x: np.digitize(x, x[0] * 1j)),
        (ValueError, lambda x: np.pad(x, 1, "mean", stat_length=-2)),
        (ValueError, lambda x: np.transpose(x, ())),
        (np.exceptions.AxisError, lambda x: np.flip(x, 2)),
    ):
        with pytest.raises(kind):
            f(X)
        with pytest.raises(kind):
            sg.jit(f)(X)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_the_inverse_of_the_integer_0_is_numpys(dtype: Any, backend: str) -> None:
    """What a processor makes of infinity: it was 0, which NumPy gives for small integers alone."""
    numbers = np.array([0, 1, 2, 100]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.reciprocal(numbers)
    np.testing.assert_array_equal(sg.jit(np.reciprocal, backend=backend)(numbers), expected)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom", "ignore:invalid value")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("f", [np.mean, np.median, np.std, np.average, lambda x: np.mean(x[:0]), logsumexp])
def test_what_has_no_elements_has_no_derivative(f: Any, backend: str) -> None:
    """Forward mode gave 0/0 times the sum of no tangents, and logsumexp had no program."""
    x = X[0] if f(np.ones(3)) != f(np.ones(3)) else np.zeros(0)
    value, tangent = sg.jvp(f, (x,), (np.ones_like(x),), backend=backend)
    np.testing.assert_array_equal(value, f(x))
    assert tangent == 0.0
    np.testing.assert_array_equal(sg.grad(f, backend=backend)(x), np.zeros_like(x))


def test_positions_do_not_wrap_around_in_a_narrow_dtype() -> None:
    places = np.array([[100, 101], [102, 103]], np.int8)
    for f in (
        lambda i: np.ravel_multi_index(tuple(i), (200, 200)),
        lambda i: np.unravel_index(i, (200, 4), order="F"),
    ):
        for found, expected in zip(np.atleast_2d(sg.jit(f)(places)), np.atleast_2d(f(places)), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["ptp", "itemset", "newbyteorder", "itemsize", "mT", "clip"])
def test_attributes_are_those_of_this_numpy(name: str) -> None:
    """``hasattr`` takes the branch that NumPy takes: version 2 removed methods of arrays."""

    def f(x: Any) -> Any:
        return x * 2.0 if hasattr(x, name) else x * 3.0

    np.testing.assert_array_equal(sg.jit(f)(X), f(X))
    np.testing.assert_array_equal(sg.jvp(f, (X,), (X,))[1], f(X))


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("function", [np.var, np.std, np.nanvar, np.nanstd])
def test_degrees_of_freedom_may_be_traced(function: Any, backend: str) -> None:
    def f(x: Any, ddof: Any) -> Any:
        return function(x, axis=1, ddof=ddof) + function(x, axis=0, correction=ddof, keepdims=True).sum()

    np.testing.assert_allclose(sg.jit(f, backend=backend)(X, 0.5), f(X, 0.5), rtol=1e-14)
    with sg.use_backend(backend):
        sg.testing.check_grads(f, (X, 0.5), order=2)


def test_arguments_that_numpy_refuses_are_refused() -> None:
    for f in (
        lambda x: np.sum(x, axis=[0, 1]),
        lambda x: np.max(x, axis=[0]),
        lambda x: np.mean(x, axis=[0, 1]),
        lambda x: np.std(x, axis=[1]),
        lambda x: np.any(x > 0.0, axis=[0]),
        lambda x: np.argmax(x, axis=0, out=np.zeros(3)),
        lambda x: np.take(x, np.array([1.0])),
        lambda x: np.take(x, x),
        lambda x: np.reshape(x, (3, 2), order="K"),
        lambda x: np.sort(x, kind="foo"),
        lambda x: np.sort(x, kind=3),
        lambda x: np.argsort(x, kind="foo"),
        lambda x: np.argsort(x, kind="stable", stable=True),
        lambda x: x.copy().sort(kind="foo"),
        lambda x: np.partition(x, 1, kind="foo"),
        lambda x: x.copy().partition(1, kind="foo"),
        lambda x: np.argpartition(x, 1, kind="foo"),
        lambda x: np.subtract.reduce(x, where=x > 2.0),
        lambda x: np.ldexp.reduce(x),
        lambda x: np.matmul(x, x.T, axes=((0, 1), (0, 1), (0, 1))),
        lambda x: np.matmul(x, x.T, axes=[(0, 1), (0, 1)]),
        lambda x: np.matmul(x, x.T, axes=[(0, 1), 0, (0, 1)]),
        lambda x: np.matmul(x, x.T, axes=[(0, 1), (0, 2), (0, 1)]),
        lambda x: np.matmul(x, x.T, axis=0),
    ):
        with pytest.raises((TypeError, ValueError)):
            f(X)
        with pytest.raises((TypeError, ValueError)) as raised:
            sg.jit(f)(X)
        assert isinstance(raised.value, sg.SrcgradError)
    with pytest.raises(ValueError, match="number sections"):  # NumPy divides by zero
        sg.jit(lambda x: np.split(x, 0))(X)
