"""What NumPy's own tests ask for at the edges of its functions: values, dtypes and errors as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import laplace

import srcgrad as sg
from srcgrad.testing import check_grads

NAN, INF = np.nan, np.inf
NODES = np.array([0.0, 1.0])
X = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]])
BYTES = np.arange(1, 4, dtype=np.int8)

VALUES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a float as the end of arange": (lambda n: np.arange(n), (3.0,)),
    "a float as the end of a row with a step": (lambda n: np.arange(0, n, 2), (np.float64(5.0),)),
    "a negative place of rollaxis": (lambda x: np.rollaxis(x, 2, -2), (np.ones((2, 3, 4)),)),
    "an axis rolled to the front by a negative place": (lambda x: np.rollaxis(x, -1, -3), (np.ones((2, 3, 4)),)),
    "a complex number of infinity and nan": (lambda a, b: np.asarray(complex(a, b)), (INF, NAN)),
    "a complex number of zero and infinity": (lambda b: np.asarray(complex(0, b)), (INF,)),
    "a complex number of zeros with signs": (lambda a, b: np.asarray(complex(a, b)), (-0.0, -0.0)),
    "a complex number of complex parts": (lambda a, b: np.asarray(complex(a, b)), (1 + 2j, 3 + 4j)),
    "a complex scalar of two parts": (lambda a, b: np.complex64(a, b), (1.0, 2.0)),
    "the larger of a number and a complex nan": (lambda z: np.maximum(1, z), (complex(0, NAN),)),
    "the order of a complex nan": (lambda z: np.greater_equal(1.0, z), (complex(0, NAN),)),
    "complex values between nodes, of which parts are infinite": (
        lambda x, y: np.interp(x, NODES, y), (np.array([0.5, NAN]), np.array([complex(-INF, 1), complex(10, 1)])),
    ),
    "distances of unsigned places": (lambda y, x: np.gradient(y, x), (X[1], np.array([4, 2, 1], "u4"))),
    "whether numbers of a lower precision are close": (
        lambda a, b: np.isclose(a, b, rtol=0, atol=0), (np.ones(2, np.float32), 0.9999999999999998),
    ),
    "how near the smallest integer is": (lambda a: np.isclose(a, a), (np.array([-128], np.int8),)),
    "a Python number in a row of another precision": (
        lambda a, b: np.concatenate([a, b], axis=None), (np.float32(1.0), 2.0),
    ),
    "singular vectors of a singular matrix": (lambda a: np.linalg.svd(a, hermitian=True)[2], (np.diag([1.0, 0.0]),)),
    "segments of small integers": (lambda a: np.add.reduceat(a, [0, 2], dtype=np.int16), (BYTES,)),
    "segments of all of a vector": (lambda a: np.multiply.reduceat(a, [0, 2], axis=None), (X[0],)),
    "all bits of no number": (lambda a: np.bitwise_and.reduce(a[:0]), (BYTES.astype(np.uint8),)),
    "a small letter for an order": (lambda a: a.flatten("f") * a.ravel("f") + a.reshape(6, order="f"), (X,)),
    "a product put where it has to be rounded": (
        lambda a: np.einsum("i,i->i", a, a, out=np.empty_like(a), dtype=float, casting="unsafe"), (BYTES,),
    ),
    "places in a shape, of no place": (lambda a: np.ravel_multi_index((a[:0], np.array(-1)), (3, 0)), (np.arange(3),)),
    "a number for all of an array of small integers": (lambda a: np.full_like(a, -128) + a, (BYTES,)),
    "a weight that is zero": (
        lambda x, w: np.quantile(x, [0.0, 0.3, 0.9], weights=w, method="inverted_cdf"), (X[0], np.arange(3.0)),
    ),
    "larger outputs of ufuncs": (lambda x: np.clip(x[0], 2.0, 3.0, out=0.0 * x) * np.trunc(x[0], out=0.0 * x), (X,)),
    "larger outputs of products": (lambda x: np.matmul(x, x.T, out=np.zeros((3, 2, 2)) + x[0, 0]), (X,)),
}  # fmt: skip

ERRORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a sum of another rank": (lambda x: np.sum(x, axis=0, out=np.zeros_like(x)), (X,)),
    "a fold of another length": (lambda x: np.add.reduce(x, axis=0, out=np.zeros_like(x), keepdims=True), (X,)),
    "the largest places of another rank": (lambda x: np.argmax(x, axis=0, out=np.zeros(x.shape, int)), (X,)),
    "running sums of another length": (lambda x: np.cumsum(x[0], out=np.zeros_like(x)), (X,)),
    "running maxima of another length": (lambda x: np.maximum.accumulate(x[0], out=np.zeros_like(x)), (X,)),
    "elements of another rank": (lambda x: np.take(x[0], [0, 1, 2], out=np.zeros_like(x)), (X,)),
    "rounded numbers of another rank": (lambda x: np.round(x[0], 1, out=np.zeros_like(x)), (X,)),
    "a place of rollaxis beyond the axes": (lambda x: np.rollaxis(x, 0, -3), (X,)),
    "a level beyond 1": (lambda x, q: np.quantile(x, q), (X, 1.5)),
    "a percentage that is no number": (lambda x, q: np.percentile(x, q), (X, np.array([20.0, NAN]))),
    "a negative weight": (lambda x, w: np.quantile(x, 0.5, weights=w, method="inverted_cdf"), (X[0], X[0] - 1.5)),
    "no weight": (lambda x, w: np.quantile(x, 0.5, weights=w, method="inverted_cdf"), (X[0], 0 * X[0])),
    "an infinite weight": (lambda x, w: np.percentile(x, 5, weights=w, method="inverted_cdf"), (X[0], X[0] + INF)),
    "a range whose ends are exchanged": (lambda x, a: np.histogram(x, range=(a, 0.0)), (X, 1.0)),
    "a range without an end": (lambda x, a: np.histogram(x, range=(0.0, a)), (X, INF)),
    "the range of no numbers": (lambda x: np.histogram(x), (X * NAN,)),
    "edges that fall": (lambda x, b: np.histogram(x, bins=b), (X, np.array([1.0, 3.0, 2.0]))),
    "a choice by floats": (lambda x: np.choose(x, [1.0, 2.0]), (X,)),
    "one bound of two": (lambda x: np.clip(x, 1.0), (X,)),  # type: ignore[call-overload]
    "two names of a bound": (lambda x: np.clip(x, 1.0, 2.0, max=3.0), (X,)),  # type: ignore[call-overload]
    "two tolerances of a rank": (lambda x: np.linalg.matrix_rank(x, tol=0.1, rtol=0.1), (X,)),
    "a number that an array does not hold": (lambda a: np.full_like(a, 1000), (BYTES,)),
    "a number that fills no array": (lambda a: a.fill(-129), (BYTES,)),
    "places in a shape without elements": (
        lambda a: np.ravel_multi_index((a, a), (3, 0), mode="wrap"),
        (np.arange(2),),
    ),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", VALUES)
def test_values_at_the_edges_are_numpys(name: str, backend: Any) -> None:
    f, args = VALUES[name]
    expected = f(*args)
    found = sg.jit(f, backend=backend)(*args)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    if expected.dtype.kind in "fc":
        np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_at_the_edges_are_numpys(name: str, backend: Any) -> None:
    f, args = ERRORS[name]
    with np.errstate(all="ignore"), pytest.raises((ValueError, TypeError, OverflowError)) as expected:
        f(*args)
    with pytest.raises(expected.type):
        sg.jit(f, backend=backend)(*args)


@pytest.mark.parametrize("function", [int, round])
@pytest.mark.parametrize("number", [1e300, -1e19, 2.0**63])
def test_a_whole_number_of_more_than_64_bits_is_an_error(function: Any, number: float) -> None:
    def remainder(x: Any) -> Any:
        return x * (function(x) % 1000)

    with pytest.raises(OverflowError):
        sg.jit(remainder)(number)
    assert sg.jit(remainder)(2.0**62) == remainder(2.0**62)


def test_derivatives_of_complex_numbers_made_of_parts() -> None:
    def size(x: Any) -> Any:
        return abs(complex(x[0], x[1])) ** 2 + abs(np.complex128(x[1], x[0] * x[1])) ** 2

    check_grads(size, (np.array([1.0, 2.0]),), order=2)


def test_derivatives_of_complex_values_between_nodes() -> None:
    def between(x: Any, nodes: Any, values: Any) -> Any:
        return np.interp(x, nodes, values * (1 + 2j), left=1j, right=2.0)

    check_grads(
        between, (np.array([-0.5, 0.3, 1.6, 2.5]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 2.0])), order=2
    )


@pytest.mark.parametrize("function", ["cdf", "sf"])
def test_the_distribution_of_laplace_has_a_slope_in_its_middle(function: str) -> None:
    def share(x: Any, loc: Any, scale: Any) -> Any:
        return getattr(laplace, function)(x, loc, scale)

    sign = 1.0 if function == "cdf" else -1.0
    found = sg.grad(share, argnums=(0, 1, 2))(0.25, 0.25, 2.0)
    np.testing.assert_allclose(found, [sign * 0.25, -sign * 0.25, 0.0], atol=1e-15)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_fix_is_trunc_and_spread_over_its_output(backend: Any) -> None:
    """NumPy says since 2.5 that `np.trunc` is to be taken."""
    shifted = X - 3.5
    found = sg.jit(lambda x: (np.fix(x), np.fix(x[0], out=0.0 * x)), backend=backend)(shifted)
    np.testing.assert_array_equal(found[0], np.trunc(shifted))
    np.testing.assert_array_equal(found[1], np.trunc(shifted[:1]) + 0.0 * shifted)
