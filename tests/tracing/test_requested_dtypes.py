"""Reductions in a dtype that is asked for, and dtypes that are not those of the operands: NumPy's, and its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.testing import check_grads

C = np.array([[1 + 2j, 3 - 1j], [0.5j, 3 + 2j]])
X = np.array([[-0.9, -0.9], [0.6, 2.25]])
N = np.array([[-1, -2], [-2, 4]])
B = np.array([True, False, True])
SINGLE = np.array([0.1, 0.5, 0.9], np.float32)
NAN = np.array([[1 + 2j, np.nan], [3 + 0j, 1j], [2.0, 2.0]])

CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mean, int": (lambda x: np.mean(x, dtype=int), (X, N, -N, N[:, :1])),
    "mean, int, axis": (lambda x: np.mean(x, axis=0, dtype=int), (3 * X, N)),
    "mean, bool": (lambda x: np.mean(x, dtype=bool), (X, N)),
    **{
        f"{f.__name__}, {np.dtype(dtype)}": (lambda x, f=f, dtype=dtype: f(x, dtype=dtype), (X, N, C))
        for f in (np.var, np.std)
        for dtype in (float, complex, int, bool, np.float32)
    },
    "var, float, axis": (lambda x: np.var(x, axis=0, dtype=float, ddof=1, keepdims=True), (X, N, C)),
    "var, complex, where": (lambda x: np.var(x, dtype=complex, where=x.real > 0), (X, N, C)),
    **{
        f"cov, {np.dtype(dtype)}": (
            lambda x, dtype=dtype: (
                np.cov(x, dtype=dtype),
                np.cov(x, dtype=dtype, fweights=[1, 2]),
                np.cov(x, dtype=dtype, aweights=[1.0, 2.0]),
                np.corrcoef(x, dtype=dtype),
            ),
            (X, X.astype(np.float32)),
        )
        for dtype in (np.float32, float, np.complex64)
    },
    "matmul": (lambda x: np.matmul(x, x.T, dtype=np.float32), (X, N)),
    "matmul, complex": (lambda x: np.matmul(x, x[0], dtype=complex), (X, N)),
    "vecdot": (lambda x: np.vecdot(x, x[0], dtype=np.float32), (X,)),
    "angle": (np.angle, tuple(B.astype(kind) for kind in "?bhilefd")),
    "nanmedian": (np.nanmedian, (NAN, X)),
    "nanmedian, axis": (lambda x: np.nanmedian(x, axis=0), (NAN,)),
    "square of booleans": (lambda b: b**2, (B,)),
    "powers of booleans": (lambda b: (b**1, b**3, b[0] ** 2), (B,)),
    "logaddexp.reduce": (np.logaddexp.reduce, tuple(B.astype(kind) for kind in "?bBhil")),
    "histogram, range": (lambda x: np.histogram(x, weights=x, range=(0.0, 1.0)), (SINGLE,)),
    "histogram": (lambda x: np.histogram(x, bins=4), (SINGLE,)),
    "poly": (np.poly, (np.array([1, 2, 3]), SINGLE)),
    "cumprod, bool": (lambda x: np.cumprod(x, dtype=bool), (X[0], X[0] * 0, np.array([1.0, 2.0, 0.0, 3.0]))),
    "cumsum, bool": (lambda x: np.cumsum(x, dtype=bool), (np.array([0.0, 2.0, 0.0]),)),
    "comparison": (lambda x: (np.greater(x, 1.0, dtype=bool), np.less_equal.outer(x, x, dtype=bool)), (X, N)),
    "sign": (lambda x: np.signbit(x, dtype=bool), (X,)),
    "magnitude of complex numbers": (lambda x: np.absolute(x, dtype=float), (C, X)),
    "loop by name": (
        lambda x: (np.add(x, 2, signature="ff->f"), np.hypot(x, x, sig=(None, None, np.float32))),
        (X.astype(np.float32), N.astype(np.int16)),
    ),
    "outer": (lambda x: np.multiply.outer(x, x[0], dtype=np.float32), (X,)),
    "any casting": (
        lambda x: (
            np.add(x, 1, dtype=int, casting="unsafe"),
            np.multiply(x, 2, casting="safe"),
            np.add(1, x, casting="no"),
        ),
        (X, N),
    ),
    "fractions": (lambda x: np.modf(x, dtype=np.float32), (X,)),
    "chdtri above 1": (lambda p: scipy.special.chdtri(1.0, p), (np.array([0.5, 1.0, 1.5, 2.2, np.nan]),)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_requested_dtype(name: str, backend: str) -> None:
    f, arrays = CASES[name]
    for x in arrays:
        found, expected = sg.jit(f, backend=backend)(x), f(x)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for part, wanted in pairs:
            assert part.dtype == wanted.dtype and part.shape == wanted.shape
            np.testing.assert_allclose(part, wanted, rtol=1e-3 if wanted.dtype.itemsize == 2 else 1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_derivatives_of_sums_in_another_dtype() -> None:
    for f in (np.var, np.std):
        check_grads(lambda x, f=f: f(x, dtype=float), (C,), order=2)
        check_grads(lambda x, f=f: f(x, dtype=complex).real, (X,), order=2)
    check_grads(lambda x: np.nanmedian(x[..., 1] ** 2), (np.stack([C, 1.5 * C + 0.1]) - 0.5,), order=2)


def test_ends_that_do_not_fit_differences_are_refused() -> None:
    for end in ("to_begin", "to_end"):
        with pytest.raises(TypeError, match=f"dtype of `{end}` must be compatible"):
            sg.jit(lambda x, end=end: np.ediff1d(x, **{end: np.array([0.5])}))(np.arange(3))


def test_a_loop_that_is_not_there_is_refused() -> None:
    for f in (
        lambda x: np.add(x, x.astype(np.float32), casting="no"),
        lambda x: np.add(x, x.astype(np.float32), casting="safe", dtype=np.float32),
        lambda x: np.add(x, x, dtype=int),
        lambda x: np.arctan2(x * 1j, x, dtype=float),
        lambda x: np.frexp(x, dtype=np.float32),
        lambda x: np.add(x, 1, out=np.zeros_like(x, dtype=int)),
        lambda x: np.multiply.accumulate(x[0, 0]),
    ):
        with pytest.raises(TypeError):
            f(X)
        with pytest.raises(sg.SrcgradError) as caught:
            sg.jit(f)(X)
        assert isinstance(caught.value, TypeError)


def test_numbers_of_pythons_are_cast_by_any_rule() -> None:
    """NumPy's ``resolve_dtypes`` crashes where a rule refuses one."""
    np.testing.assert_array_equal(sg.jit(lambda x: np.minimum(x, 2, casting="equiv"))(N), np.minimum(N, 2))


def test_dtypes_of_objects_are_refused() -> None:
    for f in (
        lambda x: np.zeros_like(x, dtype=object),
        lambda x: np.concatenate([x, x], dtype=object),
        lambda x: np.equal(x, 1, dtype=object),
        lambda x: np.full_like(x, 1, dtype="U3"),
    ):
        with pytest.raises(sg.errors.DTypeError, match="no type for dtype"):
            sg.jit(f)(X)


def test_a_traced_mask_of_a_known_array() -> None:
    for reduction in (np.sum, np.prod, np.any, np.all):
        for mask in (X > 0.0, X[0, 0] > 0.0):
            np.testing.assert_array_equal(
                sg.jit(lambda m, f=reduction: f(np.arange(1.0, 5.0).reshape(2, 2), where=m))(mask),
                reduction(np.arange(1.0, 5.0).reshape(2, 2), where=mask),
            )
    slope = sg.grad(lambda x: np.sum(np.arange(4.0).reshape(2, 2), where=x > 0.0) * x[1, 1])(X)
    np.testing.assert_array_equal(slope, [[0.0, 0.0], [0.0, 5.0]])


def test_fractions_have_the_sign_of_their_number() -> None:
    points = np.array([-0.0, 0.0, -2.0, 2.0, -0.5, np.inf, -np.inf, np.nan])
    for backend in ("numpy", "llvm"):
        fraction = sg.jit(np.modf, backend=backend)(points)[0]
        np.testing.assert_array_equal(fraction, np.modf(points)[0])
        np.testing.assert_array_equal(np.signbit(fraction), np.signbit(np.modf(points)[0]))
    np.testing.assert_array_equal(sg.vmap(sg.grad(lambda x: np.modf(x)[0]))(points[:5]), np.ones(5))


def test_complex_extremes_along_no_axis() -> None:
    for points in (C, C[:, :0]):
        np.testing.assert_array_equal(sg.jit(lambda x: np.max(x, axis=()))(points), np.max(points, axis=()))
