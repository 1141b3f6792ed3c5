"""scipy.special's plain Python functions, which are known by identity: their rules, taken from the table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import srcgrad
import srcgrad.tracing.functions.special  # registers the rules
from srcgrad.errors import UnsupportedError
from srcgrad.testing import check_grads
from srcgrad.tracing.tracer import FUNCTIONS, Tracer
from tests.tracing.trace_support import compare, directional, leaves, run

V = np.array([0.5, 1.5, 2.5])
A = np.array([[0.3, -2.0, 1.5], [4.0, 4.0, -40.0]])
N = np.array([0, 1, 2])
WEIGHTS = np.array([1.0, 2.0, 0.0])
SIGNED = np.array([1.0, -2.0, 0.5])

CASES: list[tuple[str, Callable[[Any, Any], Any], Any]] = [
    ("polygamma", lambda f, x: (f(1, x), f(N, x), f(0, x), f(N[:, None], x)), V),
    ("multigammaln", lambda f, x: f(x + 3, 3), V),
    ("factorial", lambda f, x: (f(x), f(-x)), V),
    ("comb", lambda f, x: (f(5, x), f(x, 2.0), f(5, x, repetition=True)), V),
    ("perm", lambda f, x: f(5.0, x), V),
    ("zeta", lambda f, x: (f(2.5, x), f(N + 2, x)), V),
    ("logsumexp", lambda f, x: (f(x), f(x, axis=0), f(x, axis=1, keepdims=True), f(x, axis=(0, 1)), f(x[0, 0])), A),
    ("logsumexp", lambda f, x: (f(x, b=WEIGHTS, axis=1), *f(x, axis=1, b=SIGNED, return_sign=True)), A),
    ("softmax", lambda f, x: (f(x), f(x, axis=0), f(x, axis=(0, 1))), A),
    ("log_softmax", lambda f, x: (f(x), f(x, axis=1)), A),
    ("softplus", lambda f, x: f(x), A),
    ("lambertw", lambda f, x: (f(x), f(x, -1), f(x + 1j, np.array([0, 1, 2]))), V),
    ("spherical_jn", lambda f, x: (f(N, x), f(N[:, None], x), f(2, x, True), f(0, x, derivative=True)), V),
    ("spherical_yn", lambda f, x: (f(N, x), f(2, x, True)), V),
    ("spherical_in", lambda f, x: (f(N, x), f(2, x, True)), V),
    ("spherical_kn", lambda f, x: (f(N, x), f(2, x, True), f(0, x, derivative=True)), V),
    ("jvp", lambda f, x: (f(1.5, x), f(N, x, 2)), V),
    ("yvp", lambda f, x: (f(1.5, x), f(N, x, 2)), V),
    ("ivp", lambda f, x: (f(1.5, x), f(N, x, 3)), V),
    ("kvp", lambda f, x: (f(1.5, x), f(N, x, 2)), V),
]


@pytest.mark.parametrize(("name", "program", "x"), CASES, ids=[case[0] for case in CASES])
def test_functions_of_scipy(name: str, program: Callable[[Any, Any], Any], x: Any) -> None:
    function = getattr(scipy.special, name, None)
    if function is None:
        pytest.skip(f"this SciPy has no {name}")

    def body(y: Any) -> Any:
        return program(FUNCTIONS[function] if isinstance(y, Tracer) else function, y)

    compare(body, (x,))
    directional(body, (x,))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("name", "program", "x"), CASES, ids=[case[0] for case in CASES])
def test_narrow_floats_are_widened_as_by_scipy(
    name: str, program: Callable[[Any, Any], Any], x: Any, dtype: Any
) -> None:
    function = getattr(scipy.special, name, None)
    if function is None:
        pytest.skip(f"this SciPy has no {name}")
    narrow = x.astype(dtype)
    with np.errstate(all="ignore"):
        expected = leaves(program(function, narrow))
    found = [part for part, _ in run(lambda y: program(FUNCTIONS[function], y), (narrow,))]
    assert [np.asarray(part).dtype for part in found] == [np.asarray(part).dtype for part in expected]


def test_a_small_term_beside_a_large_one_is_not_lost() -> None:
    """log(exp(0) + exp(-40)) = exp(-40), and the slopes of the two are 1 and exp(-40)."""
    rule = FUNCTIONS[scipy.special.logsumexp]
    compare(lambda x: rule(x) if isinstance(x, Tracer) else scipy.special.logsumexp(x), (np.array([0.0, -40.0]),))
    directional(lambda x: rule(x), (np.array([2.0, 2.0, 2.0, 1.0]),))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_logarithm_of_a_sum_takes_one_exponential_of_each_term(axis: int | None, backend: str) -> None:
    """It took exp and expm1 of each, and the place of the largest: three times as long."""
    x = np.array([[1.0, 2.0, 2.0, -np.inf], [2.0, 2.0, 0.5, -40.0], [0.0, -3.0, 2.0, -41.0]])

    def total(y: Any) -> Any:
        return np.sum(scipy.special.logsumexp(y, axis=axis) ** 2)

    np.testing.assert_allclose(srcgrad.jit(total, backend=backend)(x), total(x), rtol=1e-15)
    softmax, logarithm = scipy.special.softmax(x, axis), scipy.special.logsumexp(x, axis=axis, keepdims=True)
    np.testing.assert_allclose(srcgrad.grad(total, backend=backend)(x), 2 * logarithm * softmax, rtol=1e-14)
    text = srcgrad.explain(srcgrad.jit(total, backend=backend))(x)["optimised ir"]
    assert [text.count(f" = {name} ") for name in ("exp", "expm1", "argmax")] == [1, 0, 0]


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("comb", (2,), {"exact": True}),
        ("perm", (2,), {"exact": True}),
    ],
)
def test_what_is_not_traced(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    rule = FUNCTIONS[getattr(scipy.special, name)]
    with pytest.raises(UnsupportedError):
        run(lambda x: rule(x, *arguments, **options), (V,))
    with pytest.raises(UnsupportedError, match="must be whole"):
        run(lambda x: FUNCTIONS[scipy.special.polygamma](1.5, x), (V,))


def test_exact_factorials_are_of_whole_numbers() -> None:
    def exact(n: Any) -> Any:
        return FUNCTIONS[scipy.special.factorial](n, exact=True)

    with pytest.raises(UnsupportedError, match="exact=True is not traced"):
        run(exact, (np.arange(3),))
    with pytest.raises(ValueError, match="only supports integers"):
        run(exact, (V,))


def test_scipy_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, srcgrad, srcgrad.tracing.functions; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


INFINITIES = {
    "all of them -inf": ([-np.inf, -np.inf, -np.inf], [1 / 3, 1 / 3, 1 / 3]),
    "two +inf": ([np.inf, 1.0, np.inf], [0.5, 0.0, 0.5]),
    "both": ([np.inf, -np.inf, 0.0], [1.0, 0.0, 0.0]),
    "one -inf": ([-np.inf, 0.0, 0.0], [0.0, 0.5, 0.5]),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("place", "shares"), INFINITIES.values(), ids=list(INFINITIES))
@pytest.mark.parametrize("function", [scipy.special.logsumexp, np.logaddexp.reduce], ids=["logsumexp", "reduce"])
def test_what_ties_for_an_infinite_logarithm_of_a_sum_shares_its_derivative(
    function: Callable[[Any], Any], place: list[float], shares: list[float], backend: str
) -> None:
    x = np.array([place, [0.0, 1.0, 2.0]])

    def first(y: Any) -> Any:
        return function(y, axis=1)[0]

    assert srcgrad.jit(first, backend=backend)(x) == first(x)
    for derivative in (srcgrad.grad, srcgrad.jacfwd):
        np.testing.assert_allclose(derivative(first, backend=backend)(x), [shares, [0.0, 0.0, 0.0]], rtol=1e-15)
    second = np.asarray(srcgrad.hessian(first, backend=backend)(x))
    assert np.isfinite(second).all() and (place == INFINITIES["one -inf"][0]) == bool(second.any())


def test_a_weighted_sum_of_nothing_but_zeros_has_finite_derivatives() -> None:
    def total(x: Any) -> Any:
        return np.logaddexp(scipy.special.logsumexp(x - np.inf, b=WEIGHTS), x[0])

    np.testing.assert_array_equal(srcgrad.grad(total)(V), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(srcgrad.jacfwd(total)(V), [1.0, 0.0, 0.0])


def test_forbidden_transitions_leave_the_gradient_of_a_hidden_markov_model_finite() -> None:
    allowed = np.tri(3, k=0) > 0

    def likelihood(transitions: Any) -> Any:
        steps = np.where(allowed, transitions, -np.inf)
        steps = steps - scipy.special.logsumexp(steps, axis=1, keepdims=True)
        state = np.array([-np.inf, 0.0, -np.inf])
        for seen in range(3):
            state = scipy.special.logsumexp(state[:, None] + steps, axis=0) + 0.1 * seen * np.arange(3.0)
        return scipy.special.logsumexp(state)

    check_grads(likelihood, (np.random.default_rng(0).standard_normal((3, 3)),), order=2)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_pseudo_huber_of_a_residual_far_beyond_delta_has_its_curvature(backend):
    found = srcgrad.hessian(lambda d: scipy.special.pseudo_huber(d[0], d[1]), backend=backend)(np.array([1e-8, 1e10]))
    np.testing.assert_allclose(found, [[-2.0, 1.0], [1.0, 0.0]], rtol=1e-13, atol=1e-30)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["sindg", "cosdg", "tandg", "cotdg"])
def test_functions_of_degrees_have_the_zeros_and_poles_of_scipy(name: str, backend: str) -> None:
    """Zeros are zeros and poles are inf, at any number of right angles."""
    function, x = getattr(scipy.special, name), np.arange(-450.0, 451.0, 45.0)
    np.testing.assert_allclose(srcgrad.jit(lambda x: function(x), backend=backend)(x), function(x), rtol=4e-16, atol=0)
    sine, cosine = scipy.special.sindg(x), scipy.special.cosdg(x)
    with np.errstate(divide="ignore"):
        slopes = {"sindg": cosine, "cosdg": -sine, "tandg": 1 / cosine**2, "cotdg": -1 / sine**2}[name] * (np.pi / 180)
    found = srcgrad.jvp(lambda x: function(x), (x,), (np.ones_like(x),), backend=backend)[1]
    np.testing.assert_allclose(found, slopes, rtol=1e-14)


DISTRIBUTIONS = [
    "gdtr",
    "gdtrc",
    "pdtri",
    "bdtr",
    "bdtrc",
    "bdtri",
    "nbdtr",
    "nbdtrc",
    "fdtr",
    "fdtrc",
    "chdtr",
    "chdtri",
]
EDGES = [-np.inf, -2.7, -1.0, -0.5, 0.0, 0.3, 1.0, 1.5, 2.0, 3.7, 5.0, np.inf, np.nan]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.filterwarnings("ignore:floating point number truncated", "ignore:non-integer arg n")
def test_a_distribution_function_is_nan_where_scipys_is(name: str, backend: Any) -> None:
    """Of negative and infinite counts, of places below 0; SciPy's F distribution of infinite degrees is left out."""
    ufunc = getattr(scipy.special, name)
    grid = [part.ravel() for part in np.meshgrid(*[EDGES] * ufunc.nin)]
    if name.startswith("fdtr"):
        grid = [part[np.isfinite(grid[0]) & np.isfinite(grid[1])] for part in grid]
    with np.errstate(all="ignore"):
        expected = ufunc(*grid)
    found = srcgrad.jit(lambda *parts: ufunc(*parts), backend=backend)(*grid)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_a_distribution_function_at_infinity_has_no_slope() -> None:
    slopes = srcgrad.grad(lambda a, b, x: scipy.special.fdtr(a, b, x), argnums=(0, 1, 2))(2.0, 3.0, np.inf)
    np.testing.assert_array_equal(slopes, 0)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("weights", [None, [1.0, -2.0, 0.5], [1j, 2.0, 0.0], [0.0, 0.0, 0.0]])
def test_the_logarithm_of_a_complex_sum_and_its_sign(weights: list[complex] | None, backend: str) -> None:
    """Which are those of its size and its direction: real, and of size 1."""
    z = np.array([0.3 + 0.2j, -0.5 + 1j, 0.1 - 0.7j])

    def of(z: Any) -> Any:
        return scipy.special.logsumexp(z, b=None if weights is None else np.array(weights), return_sign=True)

    with np.errstate(all="ignore"):
        for found, wanted in zip(srcgrad.jit(of, backend=backend)(z), of(z), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, strict=True)
    if weights is None or any(weights):
        check_grads(of, (z,), order=2)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["zeta", "zetac"])
def test_riemanns_zeta_function_has_derivatives_on_both_sides_of_its_pole(name: str, backend: str) -> None:
    """By mpmath, with 50 digits."""
    f = getattr(scipy.special, name)
    slopes = {
        -20.5: (300.57792297065504, -305.9863981173223),
        -1e-8: (-0.91893851314110848, -2.0063563958614744),
        0.0: (-np.log(2 * np.pi) / 2, -2.006356455908585),
        0.3: (-1.9618608600898817, -5.838544586817723),
        1.01: (-9999.927281160435, 1999999.9902892092),
        4.0: (-0.06891126589612538, 0.06505816136788066),
        60.0: (-6.01209343238152e-19, 4.1672656120232954e-19),
    }
    for x, expected in slopes.items():
        np.testing.assert_allclose(srcgrad.jit(f, backend=backend)(x), f(x), rtol=1e-14, atol=1e-16)
        for inner in (srcgrad.jacfwd, srcgrad.jacrev):
            np.testing.assert_allclose(inner(f, backend=backend)(x), expected[0], rtol=1e-13)
            second = srcgrad.jacfwd(inner(f, backend=backend), backend=backend)(x)
            np.testing.assert_allclose(second, expected[1], rtol=1e-13)
    assert srcgrad.jit(f, backend=backend)(-20.0) == f(-20.0)  # zeta is 0 at the even numbers
    assert srcgrad.jit(f, backend=backend)(np.inf) == f(np.inf) and srcgrad.grad(f, backend=backend)(np.inf) == 0.0


def test_zeta_in_its_exponent_at_infinity() -> None:
    found = srcgrad.grad(lambda s: np.sum(scipy.special.zeta(s, np.array([0.5, 1.0]))))
    assert found(np.inf) == np.inf and srcgrad.grad(scipy.special.zeta)(np.inf, 2.0) == 0.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_zeta_of_complex_numbers_is_without_a_rule() -> None:
    z = 2.0 + 1j
    assert srcgrad.jit(scipy.special.zeta)(z) == scipy.special.zeta(z)
    with pytest.raises(srcgrad.errors.DTypeError, match="of complex numbers"):
        srcgrad.grad(scipy.special.zeta, holomorphic=True)(z)


def test_the_exponent_of_a_power_law_is_found_by_its_likelihood() -> None:
    counts = np.array([1, 1, 2, 3, 5, 8, 1])

    def likelihood(a: Any) -> Any:
        return np.sum(scipy.stats.zipf.logpmf(counts, a))

    expected = (likelihood(2.3 + 1e-5) - likelihood(2.3 - 1e-5)) / 2e-5
    np.testing.assert_allclose(srcgrad.grad(likelihood)(2.3), expected, rtol=1e-8)
