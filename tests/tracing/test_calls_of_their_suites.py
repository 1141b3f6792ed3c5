"""What the test suites of NumPy and SciPy call, and was once answered otherwise than they answer it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.special as sc
import scipy.stats

import srcgrad as sg
from srcgrad.errors import ArgumentError, UnsupportedError


@pytest.mark.parametrize("degree", [-4, -1, -3.0, -1.0])
@pytest.mark.parametrize(("name", "mirror", "sign"), [("legendre", -1, 1), ("chebyt", 0, 1), ("chebyu", -2, -1)])
def test_polynomials_of_degrees_below_0_have_slopes(name: str, mirror: int, sign: int, degree: float) -> None:
    """They were 0, or nan of a float: the rule for degrees above leads away from the constant."""
    evaluate = getattr(sc, f"eval_{name}")

    def slopes(n: float) -> tuple[Any, Any]:
        first = sg.grad(lambda x: evaluate(n, x))
        return first(0.3), sg.grad(first)(0.3)

    across = int(mirror - degree)
    expected = np.array(slopes(across)) if across >= 0 else np.zeros(2)
    np.testing.assert_allclose(slopes(degree), sign * expected, rtol=1e-12)


def test_slopes_of_digamma_far_left_of_0() -> None:
    """They were nan left of -1000; by DLMF 5.15.6 they are those right of it, and those of pi cot(pi z)."""
    slope = sg.grad(sc.psi, holomorphic=True)
    for z in (-1e3 - 0.3 + 0.4j, -1e9 + 0.5j, -20.7 - 3j):
        expected = (np.pi / np.sin(np.pi * (z - np.round(z.real)))) ** 2 - slope(1.0 - z)
        np.testing.assert_allclose(slope(z), expected, rtol=1e-12)
    second = sg.grad(slope, holomorphic=True)
    np.testing.assert_allclose(second(-25.3 + 0.4j), (slope(-25.3 + 1e-5 + 0.4j) - slope(-25.3 - 1e-5 + 0.4j)) / 2e-5)
    for z in (1e300 + 1j, -0.5 + 1e200j):
        np.testing.assert_allclose(slope(z), 1.0 / z, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_needs_no_rule() -> None:
    """It raised what derivatives raise, though the value is there."""

    def f(z: Any) -> Any:
        return np.abs(sc.jve(1, z)) + sc.elliprf(z, 1.0, 2.0).imag

    z = 0.7 + 0.3j
    assert sg.jit(f)(z) == f(z)
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.jve has no derivative rule .* for complex arguments"):
        sg.grad(f)(z)
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.elliprf has no derivative rule .* complex"):
        sg.grad(lambda z: sc.elliprf(z, 1.0, 2.0).real)(z)
    with pytest.raises((ArgumentError, UnsupportedError), match="no derivative rule"):
        sg.jit(f, strict=True)(z)
    with pytest.raises(UnsupportedError, match="busday_count"):  # of floats NumPy's own error says less
        sg.jit(lambda x: np.busday_count(x, x))(np.ones(2))


def test_isclose_of_numbers_without_a_dtype() -> None:
    """The tolerance was a float64: NumPy has it in the other's dtype, where this one is 1."""
    x = np.ones((), np.float32)
    for b in (2, 2.0):
        assert np.isclose(x, b, atol=0, rtol=0.4999999999999999)
        assert sg.jit(lambda x, b=b: np.isclose(x, b, atol=0, rtol=0.4999999999999999))(x)


def test_searchsorted_refuses_a_sorter_that_numpy_does() -> None:
    """It took fewer numbers, and numbers from the end: the answer was one of another array."""
    x = np.array([5, 2, 1, 3, 4])
    for sorter in ([1, 2, 3, 4], [-1, 0, 1, 2, 3], [4, 0, 5, 2, 3]):
        for given in (tuple(sorter), np.array(sorter)):
            with pytest.raises(ValueError, match=r"[Ss]orter"):
                np.searchsorted(x, 0, sorter=given)
            with pytest.raises(ValueError, match=r"[Ss]orter"):
                sg.jit(lambda x, given=given: np.searchsorted(x, 0, sorter=given))(x)
            with pytest.raises(ValueError, match=r"[Ss]orter"):
                sg.jit(lambda x, given: np.searchsorted(x, 0, sorter=given))(x, np.asarray(given))
    order = np.argsort(x)
    assert sg.jit(lambda x: np.searchsorted(x, 3, sorter=np.argsort(x)))(x) == np.searchsorted(x, 3, sorter=order)


def test_tridiagonal_matrices_are_real() -> None:
    """A complex number beside the diagonal counted as a symmetric matrix's; no driver was looked at."""
    d, e = np.ones(4), np.ones(3)
    with pytest.raises(TypeError, match="Only real arrays"):
        sg.jit(scipy.linalg.eigvalsh_tridiagonal)(d, 1j * e)
    with pytest.raises(ValueError, match="must be one of"):
        sg.jit(lambda d: scipy.linalg.eigvalsh_tridiagonal(d, e, lapack_driver="foo"))(d)


A, B = np.random.default_rng(0).standard_normal((2, 2, 3, 3))
STACKS: list[tuple[Any, Any]] = [
    (scipy.linalg.schur, A),
    (scipy.linalg.rq, A),
    (scipy.linalg.ldl, A + A.mT),
    (scipy.linalg.cholesky_banded, 0.1 * A[:, :2] + np.array([[0.0], [2.0]])),
    (lambda d: scipy.linalg.eigh_tridiagonal(d, np.ones((2, 1, 2))), A[0]),
    (lambda a: scipy.linalg.expm_frechet(a[:, None], B)[1], A),
    (lambda a: scipy.linalg.solve_discrete_lyapunov(0.3 * a, B), A),
    (lambda a: scipy.linalg.lstsq(a[..., :2], B)[0], A),
    (lambda a: scipy.linalg.lstsq(a[..., :2], B[0, 0])[0], A),
]


@pytest.mark.skipif(np.lib.NumpyVersion(scipy.__version__) < "1.17.0", reason="older SciPys take one matrix")
@pytest.mark.parametrize(("function", "x"), STACKS)
def test_stacks_where_the_rule_is_for_one(function: Any, x: Any) -> None:
    """SciPy takes them since 1.16; derivatives were refused."""
    expected = function(x)
    found, slope = sg.jvp(function, (x,), (x @ x if x.ndim > 2 and x.shape[-2:] == (3, 3) else x**2,))
    step = 1e-6 * (x @ x if x.ndim > 2 and x.shape[-2:] == (3, 3) else x**2)
    above, below = function(x + step), function(x - step)
    assert type(found) is type(expected)
    if not isinstance(expected, list):
        expected, found, slope, above, below = [expected], [found], [slope], [above], [below]
    for one, other, change, up, down in zip(expected, found, slope, above, below, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-12)
        np.testing.assert_allclose(change, (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


def test_a_large_stack_is_for_vmap() -> None:
    with pytest.raises(UnsupportedError, match="of a stack of 300"):
        sg.jvp(scipy.linalg.schur, (np.ones((300, 2, 2)),), (np.ones((300, 2, 2)),))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_code_in_c_writes_into_integers_is_not_lost() -> None:
    """It wrote into a copy of the numbers that it had asked for, so that the output stayed as it was."""
    footprint, x = np.array([[1, 0, 1], [1, 1, 0]]), np.array([[3, 2, 5, 1], [7, 6, 9, 3], [5, 8, 3, 7]])
    expected, output = np.zeros_like(x), np.zeros_like(x)
    scipy.ndimage.grey_erosion(x, footprint=footprint, output=expected)

    @sg.jit
    def erode(x: Any, output: Any) -> Any:
        return scipy.ndimage.grey_erosion(x, footprint=footprint, output=output)

    for _ in range(2):
        output[...] = 0
        np.testing.assert_array_equal(erode(x, output), expected)
        np.testing.assert_array_equal(output, expected)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_returns_objects_of_scipy() -> None:
    """It returned its own, which held values of the trace and could not be called."""
    x = np.arange(5.0)
    y = np.sin(x)
    for make in (lambda y: scipy.interpolate.CubicSpline(x, y), np.poly1d, scipy.stats.gaussian_kde):
        found, expected = sg.jit(lambda y, make=make: make(y))(y), make(y)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found(0.5), expected(0.5))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("test", [scipy.stats.skewtest, scipy.stats.kurtosistest, scipy.stats.jarque_bera])
def test_tests_that_call_scipys_own_statistics_as_scipy_does(test: Any) -> None:
    """They call `skew(x, axis, _no_deco=True)`, which was no argument of the rule's."""
    x = np.random.default_rng(1).random(30)
    step = 1e-6 * np.cos(np.arange(30.0))
    expected = (test(x + step)[0] - test(x - step)[0]) / 2
    np.testing.assert_allclose(sg.grad(lambda x: test(x)[0])(x) @ step, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_without_a_rule_raises_the_users_errors() -> None:
    """A TypeError of the user's was told of as the missing rule."""

    class Mistaken(TypeError):
        pass

    def f(z: Any) -> Any:
        if np.abs(sc.elliprf(z, 1.0, 2.0)) > 0.5:
            raise Mistaken("too large")
        return z

    for _ in range(2):
        with pytest.raises(Mistaken, match="too large"):
            sg.jit(f)(0.7 + 0.3j)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_without_a_rule_looks_for_programs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = np.array([1.0, 2.0])

    def f(z: Any) -> Any:
        return sc.elliprf(z, 1.0, 2.0) * factor

    jitted, z = sg.jit(f), np.array([0.7 + 0.3j, 1.0])
    jitted(z)
    with monkeypatch.context() as patched:
        patched.setattr(type(jitted), "dispatch", None)
        np.testing.assert_array_equal(jitted(z), f(z))
        factor *= 3.0
        np.testing.assert_array_equal(jitted(z), f(z))
    np.testing.assert_array_equal(jitted(z.real), f(z.real))
