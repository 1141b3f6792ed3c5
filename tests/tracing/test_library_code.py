"""NumPy's builders of arrays that do not dispatch, and its Python code that is converted: values, derivatives, and one
program for all calls.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

import srcgrad as sg

P = np.polynomial
X = np.array([0.3, 0.9, 0.4, 0.5])

ONE_PROGRAM: dict[str, Callable[[Any], Any]] = {
    "r_": lambda x: np.r_[x, 1.0, x[:2] * 2, 0:3],
    "r_ directive": lambda x: np.r_["1,2,0", x, x * 2],
    "r_ rows": lambda x: np.r_["0,2", x, x**2],
    "r_of_lists": lambda x: np.r_[[x[0], 1], 0, (x[1], 2.0), x],
    "c_of_lists": lambda x: np.c_[[x[0], 1], [2, x[1]]],
    "where_of_lists": lambda x: np.where([True, False], [x[0], 1], [2, x[1]]),
    "where_of_a_list": lambda x: np.where(x[:2] > 0, [x[0], 1], 2.0),
    "select_of_lists": lambda x: np.select([x[:2] > 0], [[x[0], 1]], [1.0, x[1]]),
    "what_another_version_has": lambda x: (np.trapezoid if hasattr(np, "trapezoid") else np.trapz)(x),
    "c_": lambda x: np.c_[x, x**2],
    "c_ beside a matrix": lambda x: np.c_[np.outer(x, x), x],
    "s_": lambda x: x[np.s_[1:3]] * x[np.index_exp[::2]],
    "mgrid": lambda x: np.mgrid[0:2, 0:2] * x[0] + np.ogrid[0:2],
    "fromfunction": lambda x: np.fromfunction(lambda i, j: i * x[0] + np.sin(j * x[1]), (2, 3)),
    "fromiter": lambda x: np.fromiter((v * v for v in x), float),
    "fromiter count": lambda x: np.fromiter((v * v for v in x), float, count=2),
    "require": lambda x: np.require(x * 2, np.float64, "C"),
    "as_strided": lambda x: np.lib.stride_tricks.as_strided(x, (3, 2), (8, 8)) ** 2,
    "as_strided of a view": lambda x: np.lib.stride_tricks.as_strided(x[::2], (2, 2), (16, 0)) ** 2,
    "vectorize core": lambda x: np.vectorize(lambda r, s: r.sum() * s, signature="(n),()->()")(np.outer(x, x), x),
    "vectorize of SciPy's": lambda x: np.vectorize(scipy.linalg.logm, signature="(m,m)->(m,m)")(
        np.eye(2) + np.array([[[x[0], x[1]], [0.0, x[2]]], [[x[1], 0.0], [x[0], x[3]]]])
    ),
    "a function of SciPy's handed on": lambda x: (lambda g: g(np.eye(4) + np.outer(x, x))[0])(scipy.linalg.cholesky),
    "vectorize cores": lambda x: np.vectorize(lambda r: (r * 2, r[0]), signature="(n)->(n),()")(np.outer(x, x)),
    "leggauss": lambda x: np.sum(P.legendre.leggauss(3)[1] * np.exp(x[0] * P.legendre.leggauss(3)[0])),
    "polyfit": lambda x: P.polynomial.polyfit(x, x**3, 1),
    "chebfit": lambda x: P.chebyshev.chebfit(x, np.sin(x), 2),
    "chebval": lambda x: P.chebyshev.chebval(x[0], x),
    "legval": lambda x: P.legendre.legval(x[0], x),
    "hermeval": lambda x: P.hermite_e.hermeval(x[0], x),
    "lagval": lambda x: P.laguerre.lagval(x[0], x),
    "polyval2d": lambda x: P.polynomial.polyval2d(x[0], x[1], np.outer(x, x)),
    "polyvander": lambda x: P.polynomial.polyvander(x, 2),
    "chebder": lambda x: P.chebyshev.chebder(x),
    "chebint": lambda x: P.chebyshev.chebint(x),
    "math.dist": lambda x: math.dist(x[:2], x[2:]),
    "math.remainder": lambda x: [math.remainder(x[1] * k, x[0]) for k in range(1, 6)],
    "math.cbrt": lambda x: math.cbrt(x[0]) * math.exp2(x[1]) if hasattr(math, "cbrt") else x[0],
    "math.ldexp": lambda x: math.ldexp(x[0], 3) + math.frexp(x[1])[0] + math.modf(x[2] * 9)[0],
    "math.trunc": lambda x: math.trunc(x[1] * 5) * x[0],
    "is_integer": lambda x: x[0] if x[1].is_integer() else x[2],
}
NUMBERS_DECIDE: dict[str, Callable[[Any], Any]] = {
    "emath.sqrt": lambda x: np.abs(np.emath.sqrt(x - 0.45)),
    "emath.log": lambda x: np.emath.log(x - 0.45).imag + np.emath.log(x),
    "emath.power": lambda x: np.abs(np.emath.power(x - 0.45, 2.5)),
    "emath.arccos": lambda x: np.real(np.emath.arccos(x * 1.9)),
    "Polynomial": lambda x: P.Polynomial(x)(x[0]) + (P.Polynomial(x) * P.Polynomial([1.0, 2.0])).deriv()(0.3),
    "Polynomial.fit": lambda x: P.Polynomial.fit(x, x**2 + x[0], 1)(0.2),
    "polymul": lambda x: P.polynomial.polymul(x, x),
}


def total(f: Callable[[Any], Any], x: Any) -> Any:
    """A number that all of the results decide."""
    found = f(x)
    parts = found if isinstance(found, (list, tuple)) else [found]
    return sum(np.sum(np.cos(np.arange(np.size(part)).reshape(np.shape(part))) * part) for part in parts)


def slope(f: Callable[[Any], Any], step: float = 1e-6) -> Any:
    return np.array([(total(f, X + e) - total(f, X - e)) / (2 * step) for e in step * np.eye(len(X))])


@pytest.mark.parametrize("name", [*ONE_PROGRAM, *NUMBERS_DECIDE])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_values_and_derivatives(name: str, backend: str) -> None:
    f = {**ONE_PROGRAM, **NUMBERS_DECIDE}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error" if name in ONE_PROGRAM else "ignore", sg.RetraceWarning)
        found, expected = sg.jit(f, backend=backend)(X.copy()), f(X.copy())
        gradient = sg.grad(lambda x: total(f, x), backend=backend)(X)
    one, other = ([part] if not isinstance(part, (list, tuple)) else part for part in (found, expected))
    for a, b in zip(one, other, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient, slope(f), rtol=1e-6, atol=1e-7)


def test_as_strided_of_memory_that_is_not_the_arrays_own() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.lib.stride_tricks.as_strided(x, (3, 2), (16, 8)))

    with pytest.raises(sg.errors.IndexingError, match="not the array's own"):
        sg.grad(f)(X)


def test_as_strided_is_not_written_into() -> None:
    def f(x: Any) -> Any:
        windows = np.lib.stride_tricks.as_strided(x, (3, 2), (8, 8))
        windows[0] = 1.0
        return np.sum(windows)

    with pytest.raises(sg.errors.MutationError):
        sg.grad(f)(X)


def test_r_makes_no_matrix() -> None:
    with pytest.raises(sg.errors.UnsupportedError, match="matrix"):
        sg.grad(lambda x: np.sum(np.r_["r", x]))(X)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "function",
    [
        *(scipy.linalg.expm, scipy.linalg.toeplitz, scipy.special.logsumexp),
        *(scipy.optimize.rosen, scipy.optimize.rosen_der, scipy.stats.zscore, np.polynomial.polynomial.polyfromroots),
    ],
)
def test_functions_of_scipy_are_differentiated_themselves(function: Any) -> None:
    a = np.outer(X, X)[:2, :2] if function is scipy.linalg.expm else X
    np.testing.assert_array_equal(sg.jacobian(function)(a), sg.jacobian(lambda x: function(x))(a))


def test_frompyfunc_says_what_to_do() -> None:
    doubled = np.frompyfunc(lambda v: v * 2, 1, 1)
    with pytest.raises(sg.errors.UnsupportedError, match="frompyfunc") as caught:
        sg.grad(lambda x: np.sum(doubled(x)))(X)
    assert "np.vectorize" in str(caught.value.hint)


def test_functions_of_scipy_that_may_be_asked_in_converted_code_are_compiled_themselves() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(3):
            np.testing.assert_allclose(sg.jit(scipy.stats.pearsonr)(X, X**2), scipy.stats.pearsonr(X, X**2))
            np.testing.assert_allclose(sg.jit(scipy.stats.linregress)(X, X**2), scipy.stats.linregress(X, X**2))
            found = sg.grad(lambda x, p: scipy.optimize.rosen_hess_prod(x, p)[0], 1)(X, X)
            np.testing.assert_allclose(found, scipy.optimize.rosen_hess(X)[0])


def test_what_has_no_rule_is_not_what_called_the_transformed_function() -> None:
    with pytest.raises(sg.errors.SrcgradError, match=r"scipy\.stats\.wilcoxon has no derivative rule"):
        scipy.optimize.minimize(np.sum, X, jac=sg.grad(scipy.stats.wilcoxon))
