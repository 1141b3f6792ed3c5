"""The distributions of ``scipy.stats`` on traced arrays: SciPy's values, also outside of the support and for parameters
that are not allowed, and derivatives in the place and the parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats as st
from scipy.stats import norm

import srcgrad as sg
from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.functions.distributions import LAWS
from srcgrad.tracing.functions.joint_distributions import MULTIVARIATE

SHAPES = {"df": 3.3, "a": 2.2, "b": 1.7, "s": 0.6, "c": 1.4, "mu": 2.1, "p": 0.3, "n": 5.0, "beta": 1.6, "kappa": 0.8}
SHAPES |= {"dfn": 3.4, "dfd": 5.2, "nu": 0.9, "K": 1.2, "d": 1.9, "lambda_": 0.7, "u": 0.2, "skew": 0.7}
OWN_SHAPES = {("truncnorm", "a"): -0.8, ("wrapcauchy", "c"): 0.4, ("skewnorm", "a"): -1.5, ("triang", "c"): 0.6}
OWN_SHAPES |= {
    ("genhyperbolic", "b"): 0.5,
    ("genextreme", "c"): -0.3,
    ("genpareto", "c"): -0.2,
    ("loguniform", "a"): 0.2,
}
PLACES = np.array([-1.2, 0.0, 0.1, 0.3, 0.9, 1.0, 1.4, 2.5, np.inf, -np.inf, np.nan])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 1.5, 7.0])
CHANCES = np.array([-0.1, 0.0, 0.1, 0.5, 0.77, 1.0, 1.3])


def methods(name: str) -> list[str]:
    density = ["pmf", "logpmf"] if LAWS[name].discrete else ["pdf", "logpdf"]
    cumulative = ["cdf", "logcdf", "sf", "logsf"] if LAWS[name].below else []
    return [*density, *cumulative, *(["ppf", "isf"] if LAWS[name].quantile else [])]


CALLS = [(name, method) for name in LAWS for method in methods(name)]
SEED = 31
DRAWN = {name: np.random.default_rng([SEED, *name.encode()]).choice(methods(name)) for name in LAWS}
ON_BACKENDS = [
    pytest.param(name, method, backend, marks=[pytest.mark.slow] * (backend == "llvm" and method != DRAWN[name]))
    for name, method in CALLS
    for backend in ("numpy", "llvm")
]
"""Every method as a NumPy program, which is soon made; one of each law in machine code, all of them in the slow run."""


def parameters(name: str) -> list[float]:
    return [
        *(OWN_SHAPES.get((name, shape), SHAPES[shape]) for shape in LAWS[name].shapes),
        *([0.0] if LAWS[name].discrete else [0.1, 1.3]),
    ]


def places(name: str, method: str) -> Any:
    if method in ("ppf", "isf"):
        return CHANCES
    if LAWS[name].discrete:
        return COUNTS
    return PLACES[~np.isinf(PLACES)] if method.endswith("pdf") else PLACES


def caller(name: str, method: str) -> Any:
    """A function as a user would write it, which calls the method by its name."""
    distribution = getattr(st, name)
    return {
        "pdf": lambda *args: distribution.pdf(*args),
        "logpdf": lambda *args: distribution.logpdf(*args),
        "pmf": lambda *args: distribution.pmf(*args),
        "logpmf": lambda *args: distribution.logpmf(*args),
        "cdf": lambda *args: distribution.cdf(*args),
        "logcdf": lambda *args: distribution.logcdf(*args),
        "sf": lambda *args: distribution.sf(*args),
        "logsf": lambda *args: distribution.logsf(*args),
        "ppf": lambda *args: distribution.ppf(*args),
        "isf": lambda *args: distribution.isf(*args),
    }[method]


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize(("name", "method"), CALLS)
def test_values_are_scipys(name: str, method: str) -> None:
    f = caller(name, method)
    bad = [[*parameters(name)[:k], -1.0, *parameters(name)[k + 1 :]] for k in range(len(LAWS[name].shapes))]
    if LAWS[name].discrete and method == "logcdf":  # SciPy's says 0 above the support for any parameters
        bad = []
    for given in [parameters(name), *bad]:
        with np.errstate(all="ignore"):
            expected = f(places(name, method), *given)
            found = sg.jit(f)(places(name, method), *given)
        if (name, method, given) == ("triang", "logsf", parameters(name)):  # SciPy's 1 - cdf is rounded to 0 at 1.4
            expected[PLACES == 1.4] = np.log((1 - (1.4 - given[1]) / given[2]) ** 2 / (1 - given[0]))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("name", "method", "backend"), ON_BACKENDS)
def test_derivatives(name: str, method: str, backend: str) -> None:
    f, law = caller(name, method), LAWS[name]
    held = {k for k, shape in enumerate(law.shapes) if shape == "n"}
    known = parameters(name)  # not in g: what analyses its code would look at every law, at each call
    free = [k for k in range(len(known) - law.discrete) if k not in held]
    inside = {"pareto": 2.0, "uniform": 1.15, "bernoulli": 0.0}.get(name, 1.0 if law.discrete else 0.6)
    at = 0.37 if method in ("ppf", "isf") else inside
    smooth = [] if law.discrete else [at]
    point = np.array([*smooth, *(known[k] for k in free)])

    def g(v: Any) -> Any:
        given: list[Any] = list(known)
        for k, place in enumerate(free):
            given[place] = v[k + len(smooth)]
        return f(v[0] if smooth else at, *given)

    steps = 1e-5 * np.eye(len(point))
    expected = [(g(point + e) - g(point - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(sg.grad(g, backend=backend)(point), expected, rtol=2e-6, atol=1e-8)
    assert np.all(np.isfinite(sg.hessian(g, backend=backend)(point)))


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf"])
@pytest.mark.parametrize("name", ["gamma", "beta", "expon", "lognorm", "weibull_min", "uniform"])
def test_derivatives_outside_of_the_support_are_zero(name: str, method: str) -> None:
    f = caller(name, method)
    gradient = sg.grad(lambda x: np.sum(f(x, *parameters(name)) * np.array([0.0, 1.0])))
    np.testing.assert_array_equal(gradient(np.array([0.7, -3.0])), [0.0, 0.0])


@pytest.mark.parametrize(("name", "method", "backend"), ON_BACKENDS)
def test_derivatives_where_the_value_is_nan_are_nan(name: str, method: str, backend: str) -> None:
    """Of a place and of parameters that are nan, or that are not allowed."""
    f = caller(name, method)
    at = 0.37 if method in ("ppf", "isf") else 1.0
    proper = [at, *parameters(name)]
    scale = [] if LAWS[name].discrete else [len(proper) - 1]
    points = [[*proper[:k], bad, *proper[k + 1 :]] for k, bad in ((0, np.nan), *((k, -1.0) for k in scale))]
    points += [[*proper[:k], np.nan, *proper[k + 1 :]] for k in range(1, len(proper))]
    derivative = sg.value_and_grad(f, argnums=tuple(range(len(proper))), backend=backend)
    for point in points:
        value, slopes = derivative(*point)
        assert np.isnan(value) and np.all(np.isnan(slopes)), point


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_second_derivatives_where_the_value_is_nan_are_nan(backend: str) -> None:
    for point in ((0.3, 0.0, -1.0), (np.nan, 0.0, 1.0)):
        assert np.all(np.isnan(sg.hessian(lambda v: norm.logpdf(v[0], v[1], v[2]), backend=backend)(np.array(point))))
    chances = np.array([0.2, -0.3, 0.5])
    slope = sg.grad(lambda p: st.multinomial.logpmf(np.array([1, 2, 1]), 4, p), backend=backend)(chances)
    np.testing.assert_array_equal(slope, [np.nan, np.nan, 0.0])  # the last one is what the others leave


@pytest.mark.parametrize("name", [name for name in LAWS if not LAWS[name].discrete])
def test_densities_are_zero_at_infinity(name: str) -> None:
    """SciPy's are nan there for some distributions."""
    far = np.array([-np.inf, np.inf])
    np.testing.assert_array_equal(sg.jit(caller(name, "pdf"))(far, *parameters(name)), [0.0, 0.0])


def bent(y: Any, c: Any) -> Any:
    return mpmath.log1p(c * y) / c if c else y


EXTREMES: dict[tuple[str, str], Callable[[Any, Any], Any]] = {
    ("genpareto", "logpdf"): lambda y, c: -bent(y, c) - mpmath.log1p(c * y),
    ("genpareto", "sf"): lambda y, c: mpmath.exp(-bent(y, c)),
    ("genextreme", "logpdf"): lambda y, c: -mpmath.exp(-bent(y, -c)) - bent(y, -c) - mpmath.log1p(-c * y),
    ("genextreme", "cdf"): lambda y, c: mpmath.exp(-mpmath.exp(-bent(y, -c))),
    ("genpareto", "ppf"): lambda q, c: ((1 - q) ** -c - 1) / c if c else -mpmath.log1p(-q),
}


@pytest.mark.parametrize(("name", "method"), EXTREMES)
def test_laws_of_extremes_are_smooth_where_their_shape_is_0(name: str, method: str) -> None:
    """Their tails are powers on one side of it, and bounded on the other."""
    f, exact = caller(name, method), EXTREMES[name, method]
    for c in (0.0, 1e-9, -1e-5, 8e-4, -9.9e-4, 1.1e-3, -0.02):
        for y in (0.3, 0.9):
            with mpmath.workdps(60):
                value = exact(mpmath.mpf(y), mpmath.mpf(c))
                slope = mpmath.diff(lambda t: exact(mpmath.mpf(y), t), mpmath.mpf(c), h=mpmath.mpf(10) ** -20)  # noqa: B023
                along = mpmath.diff(lambda t: exact(t, mpmath.mpf(c)), mpmath.mpf(y))  # noqa: B023
            found, (first, second) = sg.value_and_grad(f, argnums=(0, 1))(y, c)
            np.testing.assert_allclose([found, first, second], [float(value), float(along), float(slope)], rtol=2e-11)


@pytest.mark.parametrize("name", ["genpareto", "genextreme", "truncnorm", "triang", "powerlaw"])
def test_what_lies_at_and_behind_the_ends_is_scipys(name: str) -> None:
    distribution = getattr(st, name)
    for shapes in {
        "genpareto": [(-0.5,), (-1.0,), (0.5,)],
        "genextreme": [(-0.5,), (0.5,), (0.0,)],
        "truncnorm": [(-1.0, 2.0)],
        "triang": [(0.0,), (0.25,), (1.0,)],
        "powerlaw": [(1.0,), (2.0,)],
    }[name]:
        low, high = distribution.support(*shapes)
        x = np.array([low, high, low - 1.0, high + 1.0, -np.inf, np.inf])
        for method in ("pdf", "cdf", "sf", "logcdf"):
            f = caller(name, method)
            at = x[:4] if method == "pdf" else x
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(
                    sg.jit(f)(at, *shapes), f(at, *shapes), atol=1e-300, err_msg=f"{method} {shapes}"
                )


SMALL = ["norm", "t", "expon", "gamma", "chi2", "logistic", "gumbel_r", "pareto", "lomax", "cauchy", "truncnorm"]


@pytest.mark.parametrize("name", SMALL)
def test_little_that_is_left_above_has_a_quantile_of_its_own(name: str) -> None:
    """What is left below is 1 to rounding."""
    f, given = caller(name, "isf"), parameters(name)
    place, slope = sg.value_and_grad(f)(1e-20, *given)
    np.testing.assert_allclose(place, f(1e-20, *given), rtol=1e-12)
    np.testing.assert_allclose(slope, -1 / getattr(st, name).pdf(place - 4 * np.spacing(place), *given), rtol=1e-6)
    np.testing.assert_allclose(caller(name, "ppf")(1e-20, *given), sg.jit(caller(name, "ppf"))(1e-20, *given))


SYMMETRIC: list[tuple[Callable[[Any], Any], float]] = [
    (lambda x: st.logistic.logpdf(x), -0.5),
    (lambda x: st.logistic.pdf(x), -0.125),
    (lambda x: st.gennorm.logpdf(x, 2.0), -2.0),
    (lambda x: st.gennorm.logpdf(x, 3.0), 0.0),
    (lambda x: st.gennorm.logpdf(x, 1.0), 0.0),
    (lambda x: st.dgamma.pdf(x, 3.0), 0.5),
    (lambda x: st.dweibull.pdf(x, 3.0), 3.0),
    (lambda x: st.gennorm.cdf(x, 1.0), 0.0),
    (lambda x: st.gennorm.cdf(x, 1.7), 0.0),
    (lambda x: st.dgamma.cdf(x, 2.0), 0.0),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("function", "curvature"), SYMMETRIC)
def test_symmetric_laws_have_their_curvature_at_the_middle(
    function: Callable[[Any], Any], curvature: float, backend: str
) -> None:
    """Of the absolute value that their formulas contain every derivative is 0 there; at a kink it is the mean."""
    twice = sg.jvp(lambda x: sg.jvp(function, (x,), (1.0,), backend=backend)[1], (0.0,), (1.0,), backend=backend)[1]
    np.testing.assert_allclose([sg.hessian(function, backend=backend)(0.0), twice], curvature, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("name", "kind", "shape", "curvature"),
    [("gennorm", "logpdf", 2.0, -2.0), ("dgamma", "pdf", 3.0, 0.5), ("dweibull", "pdf", 3.0, 3.0)],
)
def test_symmetric_laws_of_any_shape_have_their_curvature_at_the_middle(
    name: str, kind: str, shape: float, curvature: float, backend: str
) -> None:
    """Powers whose exponent is not known until the program runs."""
    found = sg.hessian(caller(name, kind), backend=backend)(0.0, shape)
    np.testing.assert_allclose(found, curvature, rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["gennorm", "dgamma", "dweibull"])
def test_medians_of_symmetric_laws_do_not_vary_with_their_shape(name: str, backend: str) -> None:
    law = getattr(st, name)
    for shape in (0.25, 1.0, 1.4, 2.0, 3.0):
        found = [sg.grad(law.median, backend=backend)(shape), sg.jacfwd(law.median, backend=backend)(shape)]
        np.testing.assert_array_equal(found, 0.0)


@pytest.mark.parametrize(("beta", "slope"), [(0.5, 4.0), (1.0, 2.0), (2.0, np.sqrt(np.pi))])
def test_quantiles_of_a_law_with_a_cusp_vary_at_the_median_with_the_chance(beta: float, slope: float) -> None:
    for derivative in (sg.grad, sg.jacfwd):
        np.testing.assert_allclose(derivative(lambda q: st.gennorm.ppf(q, beta))(0.5), slope, rtol=1e-13)
        np.testing.assert_allclose(derivative(lambda q: st.gennorm.isf(q, beta))(0.5), -slope, rtol=1e-13)


@pytest.mark.parametrize("c", [0.2, 0.5])
def test_a_wrapped_law_is_smooth_opposite_to_its_mode(c: float) -> None:
    """Where the tangent of half of the angle has a pole."""
    ratio = (1 + c) / (1 - c)
    for f, slope, at in (
        (lambda y: st.wrapcauchy.cdf(y, c), 1 / (2 * np.pi * ratio), np.pi),
        (lambda q: st.wrapcauchy.ppf(q, c), 2 * np.pi * ratio, 0.5),
    ):
        np.testing.assert_allclose(sg.grad(f)(at), slope, rtol=1e-12)
        np.testing.assert_allclose(sg.hessian(f)(at), 0.0, atol=1e-12)


def test_formulas_of_two_tails_are_smooth_where_the_tails_are_equal() -> None:
    """SciPy's takes the logarithm of their difference, which is 0 there."""

    def f(v: Any) -> Any:
        return st.dpareto_lognorm.logcdf(v[0], v[1], v[2], v[3], v[4])

    def exact(*v: Any) -> Any:
        def density(t: Any) -> Any:
            z = (t - v[1]) / v[2]
            tails = [mpmath.exp(r * (r / 2 - w)) * mpmath.ncdf(w - r) for r, w in ((v[3] * v[2], z), (v[4] * v[2], -z))]
            return v[3] * v[4] / (v[3] + v[4]) * sum(tails)

        return mpmath.log(mpmath.quad(density, [-mpmath.inf, -3, 0, mpmath.log(v[0])]))

    point = (1.0, 0.0, 0.5, 0.7, 0.7)
    order = np.eye(5, dtype=int)
    expected = [float(mpmath.diff(exact, point, tuple(int(k) for k in row))) for row in order]
    np.testing.assert_allclose(sg.grad(f)(np.array(point)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(f)(np.array(point)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda b: st.betaprime.var(2.0, b),
        lambda b: st.crystalball.std(1.3, b + 1),
        st.invweibull.var,
        lambda c: st.gengamma.var(1.0, -c),
    ],
)
def test_the_variance_about_an_infinite_mean_is_infinite(f: Callable[[Any], Any]) -> None:
    assert f(1.0) == sg.jit(f)(1.0) == np.inf


@pytest.mark.parametrize("name", ["alpha", "fatiguelife", "johnsonsb", "powerlognorm", "levy_l"])
def test_ends_that_are_no_part_of_a_support_have_no_density(name: str) -> None:
    law, shapes = getattr(st, name), (1.2, 0.7)[: getattr(st, name).numargs]
    ends = [end for end in law.support(*shapes) if np.isfinite(end)]
    for method in ("pdf", "logpdf", "cdf"):
        for end in ends:
            f = {"pdf": law.pdf, "logpdf": law.logpdf, "cdf": law.cdf}[method]
            assert sg.jit(f)(end, *shapes) == f(end, *shapes)
            assert np.all(np.equal(sg.grad(f, argnums=tuple(range(1 + len(shapes))))(end, *shapes), 0.0))


def symmetric(v: Any) -> Any:
    return np.array([[v[0], v[1]], [v[1], v[2]]])


MEAN, COV = np.array([0.1, -0.3]), np.array([2.0, 0.3, 1.0])
MANY = np.array([[0.2, 0.4], [1.0, -1.0], [0.0, 0.5]])
JOINT: dict[str, Any] = {
    "logpdf": lambda x, m, c: st.multivariate_normal.logpdf(x, m, symmetric(c)),
    "pdf": lambda x, m, c: st.multivariate_normal.pdf(x[0], m, symmetric(c)),
    "frozen": lambda x, m, c: st.multivariate_normal(m, symmetric(c)).logpdf(x),
    "variance": lambda x, m, c: st.multivariate_normal.logpdf(x, m, c[0]),
    "variances": lambda x, m, c: st.multivariate_normal.logpdf(x, m, c[::2]),
    "standard": lambda x, m, c: st.multivariate_normal.logpdf(x[0] * m + c[0]),
    "one variable": lambda x, m, c: st.multivariate_normal.logpdf(x[:, 0], m[0], c[0]),
    "entropy": lambda x, m, c: st.multivariate_normal.entropy(m, symmetric(c)),
    "dirichlet": lambda x, m, c: st.dirichlet.logpdf(c / np.sum(c), c + 1.0),
    "dirichlet pdf": lambda x, m, c: st.dirichlet.pdf(c / np.sum(c), c + 1.0),
    "frozen norm": lambda x, m, c: st.norm(m[0], c[0]).cdf(x) + norm(loc=m[1]).logpdf(x),
    "named parameters": lambda x, m, c: st.norm.logsf(x, scale=c[0], loc=m[1]),
    "frozen gamma": lambda x, m, c: st.gamma(c[0], scale=2.0).pdf(x),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", JOINT)
def test_several_variables_and_frozen_distributions(name: str) -> None:
    f = JOINT[name]
    np.testing.assert_allclose(sg.jit(f)(MANY, MEAN, COV), f(MANY, MEAN, COV), rtol=1e-12)
    weights = np.array([1.0, -0.5, 0.3])[: np.size(f(MANY, MEAN, COV)) if np.ndim(f(MANY, MEAN, COV)) < 2 else 1]

    def g(v: Any) -> Any:
        found = f(np.reshape(v[:6], (3, 2)), v[6:8], v[8:])
        return np.sum(found * (weights if np.ndim(found) == 1 else 1.0))

    point = np.concatenate([MANY.ravel() + 0.05, MEAN, COV])
    expected = [(g(point + e) - g(point - e)) / 2e-5 for e in 1e-5 * np.eye(len(point))]
    np.testing.assert_allclose(sg.grad(g)(point), expected, rtol=1e-6, atol=1e-8)


def test_draws_are_made_at_each_call() -> None:
    def f(x: Any) -> Any:
        return x * norm.rvs(random_state=np.random.default_rng(3)) + norm.logpdf(x)

    with pytest.warns(sg.RetraceWarning, match="norm.rvs draws at each call"):
        found = sg.grad(f)(0.7)
    np.testing.assert_allclose(found, norm.rvs(random_state=np.random.default_rng(3)) - 0.7)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: norm.logpdf(x, 0.0, 1.0, 2.0), TypeError, "arguments|loc, scale"),
        (lambda x: norm.logpdf(x, mean=0.0), TypeError, "mean"),
        (lambda x: st.gamma.logpdf(x), TypeError, "'a'"),
        (lambda x: st.landau.ppf(x), sg.errors.UnsupportedError, "landau.ppf"),
        (lambda x: st.multivariate_normal.logpdf(x, 0.0, -1.0, True), ValueError, "positive semidefinite"),
    ],
)
def test_refusals(f: Any, error: type[Exception], words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=words):
            sg.grad(f)(0.5)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_singular_covariances_have_the_derivatives_within_their_space(rank: int, backend: str) -> None:
    """The space moves with the covariance, and what lies beside it has the density 0, as SciPy says."""
    rng = np.random.default_rng(rank)
    factor, z, beside = rng.normal(size=(3, rank)), rng.normal(size=(4, rank)), rng.normal(size=3)

    def f(z: Any, factor: Any) -> Any:
        of = st.multivariate_normal(z[0, 0] * factor[:, 0], factor @ factor.T, allow_singular=True)
        return np.sum(of.logpdf(z @ factor.T) * np.arange(4)) + of.entropy()

    np.testing.assert_allclose(sg.jit(f, backend=backend)(z, factor), f(z, factor), rtol=1e-9)
    with sg.use_backend(backend):
        sg.testing.check_grads(f, (z, factor), order=1)
    for x in (beside, (z @ factor.T).astype(np.float32)):
        arguments = (x, np.zeros(3), factor @ factor.T, True)
        found = sg.jit(st.multivariate_normal.pdf, backend=backend)(*arguments)
        np.testing.assert_allclose(found, st.multivariate_normal.pdf(*arguments), rtol=1e-5)


def test_repeated_eigenvalues_of_a_covariance_have_second_derivatives() -> None:
    def f(cov: Any, singular: bool) -> Any:
        return st.multivariate_normal.logpdf(np.array([0.3, -0.5, 1.0]), np.zeros(3), cov, allow_singular=singular)

    found, expected = (sg.hessian(f)(2.0 * np.eye(3), singular) for singular in (True, False))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_every_distribution_is_one_of_scipys_and_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs/tracing.md").read_text()
    assert all(hasattr(st, name) and f"`{name}`" in text for name in (*LAWS, *MULTIVARIATE))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: norm.logpdf(x) + st.ncf.logpdf(x, 2.0, 3.0, 0.1),
        lambda x: norm(0.1).logpdf(x) + st.ncf(2.0, 3.0, 0.1).logpdf(x),
        lambda x: norm.logpdf(x) + st.ncf(2.0, 3.0, x).logpdf(0.2),
    ],
)
def test_methods_without_rules_are_named_with_their_distribution(f: Any) -> None:
    name = r"scipy\.stats\.ncf(\(…\))?\.logpdf has no derivative rule"
    with pytest.warns(sg.RetraceWarning, match=name):
        assert sg.jit(f)(0.5) == f(0.5)
    with pytest.raises(sg.SrcgradError, match=name):
        sg.grad(f)(0.5)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_constants_of_distributions_without_rules_are_compiled_in() -> None:
    def f(x: Any) -> Any:
        return st.rdist.ppf(0.3, 1.6) * x + st.rdist(1.6).cdf(0.1)

    np.testing.assert_allclose(sg.value_and_grad(f)(0.5), (f(0.5), st.rdist.ppf(0.3, 1.6)), rtol=1e-14)


FROM_SCIPY: dict[str, tuple[Callable[[Any], Any], float]] = {
    "density": (lambda a: st.alpha.logpdf(0.3, a) + st.anglit.pdf(0.2, scale=a), 3.5),
    "density of two shapes": (lambda a: st.exponweib.logpdf(0.7, a, 1.9, scale=a) + st.burr.pdf(0.9, a, 2 * a), 2.4),
    "distribution function": (lambda a: st.bradford.cdf(0.3, a) + st.argus.sf(0.6, a), 0.8),
    "its logarithm": (lambda a: st.kappa3.logcdf(0.7, a) + st.mielke.logsf(0.9, a, 1.3), 1.2),
    "counts": (lambda p: st.dlaplace.logpmf(2, p) + st.boltzmann.pmf(1, p, 5) + st.nhypergeom.cdf(1, 9, 4, 2) * p, 0.7),
    "outside of the support": (lambda a: st.bradford.logpdf(0.3, a) + st.bradford.pdf(1.2, a), 0.8),
    "frozen": (lambda a: st.gengamma(a, 1.4, scale=2.0).logpdf(1.1), 1.7),
    "quantile": (lambda q: st.powernorm.ppf(q, 2.1) + st.dweibull.isf(q, 1.4), 0.3),
    "quantile of t": (lambda q: st.t.ppf(q, 3.3, scale=2.0) + st.t.isf(q, 3.3), 0.1),
    "quantile of t at the middle": (lambda q: st.t.ppf(q, 3.3, 0.1, 2.0), 0.5),
    "quantile of t near the middle": (lambda q: st.t.ppf(q, 2.0), 0.4),
    "quantile by its law": (
        lambda a: st.gennorm.ppf(0.2, a) + st.truncnorm.ppf(0.3, -a, 1.0) + st.chi.ppf(0.3, a),
        1.4,
    ),
    "median": (lambda a: st.gamma.median(a) + st.norm.median(a, 2.0) + st.gamma(a, scale=2.0).median(), 1.4),
    "interval": (lambda a: np.sum(np.stack(st.gamma.interval(0.9, a)) * np.array([1.0, 2.0])), 1.4),
    "confidence": (lambda c: np.stack(st.norm(1.0, 2.0).interval(c))[0], 0.8),
    "mean": (lambda a: st.beta.mean(a, 2.0) + st.gamma(a, loc=a).mean() + st.lognorm.mean(a), 0.7),
    "variance": (lambda a: st.beta.var(a, 2.0, scale=a) + st.weibull_min.var(a + 1) + st.poisson.var(a), 0.7),
    "standard deviation": (lambda a: st.norm.std(0.0, a) + st.t.std(a + 3) + st.binom.std(9, a), 0.7),
    "moments of counts": (lambda p: st.nbinom.mean(4, p) * st.geom.var(p) + st.bernoulli(p).mean(), 0.4),
    "entropy": (lambda a: st.gamma.entropy(a) + st.norm(0, a).entropy() + st.beta.entropy(a, 2.0, scale=a), 1.6),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", FROM_SCIPY)
def test_what_scipys_own_formulas_say(name: str, backend: str) -> None:
    f, x = FROM_SCIPY[name]

    def slope(g: Callable[[Any], Any]) -> Any:
        ends = [(g(x + k * 1e-3) - g(x - k * 1e-3)) / (2e-3 * k) for k in (1, 2)]
        return (4 * ends[0] - ends[1]) / 3

    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-10)
        first = sg.grad(f)
        np.testing.assert_allclose(first(x), slope(f), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(sg.jvp(f, (x,), (1.0,))[1], first(x), rtol=1e-10)
        np.testing.assert_allclose(sg.grad(first)(x), slope(first), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_formulas_that_switch_where_a_shape_is_0_are_not_followed() -> None:
    """The branch for 0 would say that nothing depends on the shape there."""
    for f in (lambda h: st.kappa4.logpdf(0.3, h, 0.0), lambda c: st.tukeylambda.pdf(0.3, c), st.genextreme.mean):
        with pytest.raises(sg.SrcgradError, match="has no derivative rule"):
            sg.grad(f)(0.0)


@pytest.mark.parametrize("skew", [0.0, -0.7, 3.0])
@pytest.mark.parametrize("method", ["logpdf", "cdf", "sf", "ppf"])
def test_pearsons_law_of_any_skewness(method: str, skew: float) -> None:
    """Of none too, where SciPy's is the normal law: the derivatives in it are those of the law beside."""
    f = getattr(st.pearson3, method)
    place = 0.3 if method == "ppf" else 0.4
    np.testing.assert_allclose(sg.jit(lambda s: f(place, s))(skew), f(place, skew), rtol=1e-12)
    step = 0.03
    around = [f(place, skew + k * step) for k in (-2, -1, 0, 1, 2)]
    first = (8 * (around[3] - around[1]) - (around[4] - around[0])) / (12 * step)
    second = (16 * (around[3] + around[1]) - (around[4] + around[0]) - 30 * around[2]) / (12 * step**2)
    slope = sg.grad(lambda s: f(place, s))
    np.testing.assert_allclose(slope(skew), first, rtol=1e-3)
    np.testing.assert_allclose(sg.grad(slope)(skew), second, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "methods", "given"),
    [
        ("gengamma", "pdf", (1.0, 2.0, 1.5)),
        ("truncpareto", "pdf logpdf", (1.3, 2.0, 5.0)),
        ("crystalball", "sf", (0.3, 2.0, 3.0)),
        ("recipinvgauss", "pdf", (0.4, 0.6)),
        ("ncx2", "pdf logpdf", (3.0, 5.0, 0.4)),
        ("cosine", "cdf sf", (0.3,)),
        ("cosine", "ppf isf", (0.3,)),
        ("kstwobign", "pdf logpdf cdf sf", (0.7,)),
        ("kstwobign", "ppf isf", (0.3,)),
    ],
)
@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_laws_whose_classes_call_their_own_methods(name: str, methods: str, given: tuple[float, ...]) -> None:
    for method in methods.split():
        called = getattr(getattr(st, name), method)
        f = lambda a, called=called: called(a[0], *a[1:])  # noqa: E731
        sg.testing.check_grads(f, (np.array(given),), order=1, rtol=1e-6)
        np.testing.assert_allclose(sg.jit(f)(np.array(given)), f(np.array(given)), rtol=1e-12)


def test_statistics_of_parameters_that_are_not_allowed_are_nan() -> None:
    for f in (st.gamma.mean, st.gamma.entropy, lambda a: st.gamma.interval(0.9, a)[0], st.gamma.median):
        np.testing.assert_array_equal(sg.jit(f)(-1.0), f(-1.0))
        assert np.isnan(sg.grad(f)(-1.0))


SQUARE = np.array([[2.0, 0.3], [0.3, 1.0]])
PAIR = np.array([0.1, 0.2])


def by_another_name(x: Any) -> Any:
    law = st.wishart
    return law(4, SQUARE).logpdf(SQUARE * x)


CONVERTED: dict[str, Callable[[Any], Any]] = {
    "wishart": lambda x: st.wishart.logpdf(SQUARE * x, 4, SQUARE),
    "scale of wishart": lambda x: st.wishart.logpdf(SQUARE, 4, SQUARE * x),
    "wishart by another name": by_another_name,
    "multivariate_t": lambda x: st.multivariate_t.logpdf(PAIR, np.zeros(2) + x, SQUARE * x, 3.0),
    "matrix_normal": lambda x: st.matrix_normal.logpdf(SQUARE * x, np.zeros((2, 2)), SQUARE, SQUARE),
    "dirichlet_multinomial": lambda x: st.dirichlet_multinomial.logpmf(np.array([1, 2]), (10.0 * PAIR) * x, 3),
    "vonmises_fisher": lambda x: st.vonmises_fisher.logpdf(np.array([0.0, 1.0]), np.array([0.0, 1.0]), x),
    "interval": lambda x: norm.interval(0.9)[1] * x**2,
    "mean": lambda x: st.beta.mean(2.0, 3.0) * x**2,
    "formulas of their own": lambda x: norm._cdf(x) * norm._logpdf(x) + st.t._pdf(x, 4.0) + norm._sf(2.0) * x,
    "a formula handed on": lambda x: (lambda density: density(x) / density(0.0))(norm._pdf),
    "moments": lambda x: st.beta.stats(2.0, 3.0)[1] * x**2 + st.gamma.median(2.0) + st.beta.std(2.0, 3.0),
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CONVERTED)
def test_methods_that_do_not_draw_are_part_of_a_program(name: str, backend: str) -> None:
    f = CONVERTED[name]
    for x in (1.3, 0.7):
        np.testing.assert_allclose(sg.jit(f, backend=backend, strict=True)(x), f(x), rtol=1e-12)
        expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(sg.grad(f, backend=backend)(x), expected, rtol=1e-7)


def test_a_matrix_that_is_none_of_a_law_raises_what_scipy_raises() -> None:
    f = CONVERTED["scale of wishart"]
    for call in (f, sg.jit(f), sg.grad(f)):
        with pytest.raises(np.linalg.LinAlgError):
            call(-1.0)


def drawn_by_another_name(x: Any) -> Any:
    law = st.multivariate_t
    return law.cdf(PAIR, np.zeros(2), SQUARE, 3) * x


def test_a_law_that_calls_routines_of_blas_is_part_of_a_program() -> None:
    def f(x: Any) -> Any:
        return st.invwishart.logpdf(SQUARE * x, 4, SQUARE)

    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, slope = sg.value_and_grad(f)(1.3)
    np.testing.assert_allclose(value, f(1.3), rtol=1e-12)
    np.testing.assert_allclose(slope, (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rtol=1e-8)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: st.multivariate_t.cdf(PAIR, np.zeros(2), SQUARE, 3) * x, "multivariate_t.cdf draws at each call"),
        (drawn_by_another_name, "reads the attribute 'cdf', by which it draws"),
        (lambda x: st.wishart.rvs(4, SQUARE)[0, 0] * x, "wishart.rvs draws at each call"),
        (lambda x: norm.expect(lambda t: t * t) * x, "norm.expect has no rule"),
        (lambda x: st.ncf.logpdf(x, 2.0, 3.0, 0.1), "ncf.logpdf has no derivative rule"),
    ],
)
def test_the_reason_why_a_method_is_not_part_of_a_program(f: Callable[[Any], Any], reason: str) -> None:
    with pytest.warns(sg.RetraceWarning, match=reason):
        sg.jit(f)(0.7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf"])
def test_the_noncentral_chi_squared_distribution(method: str, backend: Any) -> None:
    """In the place and the noncentrality, where Bessel functions are small, and where they would overflow."""
    f = getattr(st.ncx2, method)
    for df, x, nc in ((3.0, 2.0, 1.5), (1.0, 0.2, 1e-2), (2.0, 30.0, 40.0), (5.0, 3e3, 2.9e3)):
        gradient = sg.grad(lambda x, nc, df=df: f(x, df, nc), (0, 1), backend=backend)(x, nc)
        for k, found in enumerate(gradient):
            step = np.array([x, nc])[k] * 1e-4 * np.eye(2)[k]
            ends = [f(x + s * step[0], df, nc + s * step[1]) for s in (-2, -1, 1, 2)]
            expected = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step[k])
            np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=f"{df}, {x}, {nc} in {k}")


EDGES: list[tuple[Callable[[Any], Any], float, float, float]] = [
    (lambda mu: st.poisson.logpmf(0, mu), 0.0, -1.0, 0.0),
    (lambda mu: st.poisson.pmf(0, mu), 0.0, -1.0, 1.0),
    (lambda mu: st.poisson.pmf(1, mu), 0.0, 1.0, -2.0),
    (lambda mu: st.poisson.cdf(1, mu), 0.0, 0.0, -1.0),
    (lambda x: st.rayleigh.pdf(x), 0.0, 1.0, 0.0),
    (lambda x: st.rayleigh.cdf(x), 0.0, 0.0, 1.0),
    (lambda x: st.gamma.pdf(x, 2.0), 0.0, 1.0, -2.0),
    (lambda x: st.gamma.pdf(x, 3.0, scale=2.0), 0.0, 0.0, 0.125),
    (lambda x: st.beta.pdf(x, 2.0, 3.0), 0.0, 12.0, -48.0),
    (lambda x: st.beta.pdf(x, 2.0, 3.0), 1.0, 0.0, 24.0),
    (lambda x: st.beta.cdf(x, 2.0, 3.0), 0.0, 0.0, 12.0),
    (lambda x: st.beta.cdf(x, 1.0, 3.0), 0.0, 3.0, -6.0),
    (lambda x: st.beta.cdf(x, 3.0, 1.0), 1.0, 3.0, 6.0),
    (lambda x: st.chi2.pdf(x, 4.0), 0.0, 0.25, -0.25),
    (lambda x: st.weibull_min.pdf(x, 2.0), 0.0, 2.0, 0.0),
    (lambda p: st.binom.pmf(1, 3, p), 0.0, 3.0, -12.0),
    (lambda p: st.binom.cdf(0, 3, p), 0.0, -3.0, 6.0),
    (lambda p: st.bernoulli.pmf(1, p), 0.0, 1.0, 0.0),
    (lambda p: st.geom.pmf(2, p), 1.0, -1.0, -2.0),
    (lambda p: st.nbinom.pmf(1, 2, p), 1.0, -2.0, -8.0),
    (lambda p: st.binom.std(9, p), 0.0, np.inf, -np.inf),
    (lambda p: st.bernoulli.std(p), 1.0, -np.inf, -np.inf),
    (lambda x: st.exponpow.cdf(x, 4.0), 6.0, 0.0, 0.0),
    (lambda b: st.gennorm.median(b, 3.0), 0.5, 0.0, 0.0),
    (lambda b: st.truncpareto.var(b, 4.0), 1.0, -0.18115426197239968, -0.041396362444707308),
    (lambda b: st.truncpareto.var(b, 4.0), 2.0, -0.17729715649004355, 0.039186826000455656),
    (lambda x: scipy.special.poch(x, 2.0), 0.0, 1.0, 2.0),
    (lambda x: scipy.special.poch(x, 3.0), -1.0, -1.0, 0.0),
    (lambda x: scipy.special.binom(x, 2.0), 0.0, -0.5, 1.0),
    (lambda x: scipy.special.binom(x, 2.0), 1.0, 0.5, 1.0),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("function", "place", "slope", "curvature"), EDGES)
def test_derivatives_at_the_edge_of_what_is_allowed_are_one_sided_limits(
    function: Callable[[Any], Any], place: float, slope: float, curvature: float, backend: str
) -> None:
    assert sg.jit(function, backend=backend)(place) == pytest.approx(function(place), abs=1e-15)
    for derivative in (sg.grad, sg.jacfwd):
        assert derivative(function, backend=backend)(place) == pytest.approx(slope, rel=1e-14)
    for second in (sg.hessian, lambda f, backend: sg.jacrev(sg.grad(f, backend=backend))):
        assert second(function, backend=backend)(place) == pytest.approx(curvature, rel=1e-14)


def test_a_quantile_far_in_a_tail_is_there_where_the_density_is_rounded_to_0() -> None:
    far = (2 * np.sqrt(3) / np.pi / 1e-300) ** (1 / 3)
    for backend in ("numpy", "llvm"):
        assert sg.jit(lambda q: st.t.ppf(q, 3.0), backend=backend)(1e-300) == pytest.approx(-far, rel=1e-12)
        assert sg.jit(lambda q: st.t.isf(q, 3.0), backend=backend)(1e-300) == pytest.approx(far, rel=1e-12)
        assert sg.grad(lambda s: st.t.ppf(1e-300, 3.0, 0.0, s), backend=backend)(2.0) == pytest.approx(-far, rel=1e-12)


def test_moments_of_which_scipy_says_only_that_they_are_finite_have_no_rule() -> None:
    with pytest.raises(UnsupportedError, match=r"kappa3\.mean has no derivative rule"):
        sg.grad(lambda a: st.kappa3.mean(a))(1.5)


@pytest.mark.parametrize("singular", [False, True])
def test_normal_densities_have_the_shapes_of_scipys(singular: bool) -> None:
    """One place of one variable is a scalar, and one number stands for all coordinates of a place."""
    rows, wide = np.array([[0.3], [-0.2]]), np.array([[2.0, 0.3], [0.3, 1.0]])
    cases: list[tuple[Any, Any, Any]] = [
        (np.array([0.4]), None, np.array([[2.0]])),
        (np.array([0.4]), np.zeros(1), np.array([2.0])),
        (np.array([[0.4]]), 0.1, 2.0),
        (rows, None, None),
        (np.array([0.4]), None, wide),
        (np.array([0.4, 0.1]), np.array([0.1, 0.2]), 2.0),
        (np.full((1, 3, 2), 0.4), None, wide),
        (np.full((0, 2), 0.4), None, wide),
    ]
    for x, mean, cov in cases:

        def density(x: Any, mean: Any = mean, cov: Any = cov) -> Any:
            return st.multivariate_normal.logpdf(x, mean, cov, singular)

        found = sg.jit(density, strict=True)(x)
        np.testing.assert_allclose(found, density(x), rtol=1e-12)
        assert np.shape(found) == np.shape(density(x))
    for mean, cov in ((np.zeros(3), wide), (np.zeros((1, 2)), wide), (None, np.ones((2, 3)))):
        with pytest.raises(ShapeError, match=r"mean must be a vector|covariance must have the shape"):
            sg.grad(lambda x, mean=mean, cov=cov: st.multivariate_normal.logpdf(x, mean, cov))(np.array([0.1, 0.2]))


SEARCHED: dict[str, tuple[float, ...]] = {
    "rice": (1.2,), "skewnorm": (1.5,), "invgauss": (0.8,), "foldnorm": (1.1,), "exponnorm": (1.3,),
    "rel_breitwigner": (2.0,), "recipinvgauss": (0.7,), "trapezoid": (0.2, 0.7),
}  # fmt: skip
"""Distributions whose quantiles SciPy searches for, or whose formulas cannot be followed."""


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("kind", ["ppf", "isf"])
@pytest.mark.parametrize("name", SEARCHED)
def test_quantiles_that_scipy_searches_for_have_the_derivatives_of_the_distribution_function(
    name: str, kind: str
) -> None:
    shapes, chances = SEARCHED[name], np.array([0.25, 0.7, 1.5])

    def quantile(q: Any, *parameters: Any) -> Any:
        return getattr(getattr(st, name), kind)(q, *parameters)

    given = (*shapes, 0.3, 1.7)
    np.testing.assert_allclose(sg.jit(quantile)(chances, *given), quantile(chances, *given), rtol=1e-15)
    moved = np.array([1.0, 0.4, -0.3][: len(shapes) + 1])
    step = 1e-4 * moved

    def at(point: Any) -> Any:
        return quantile(point[0], *(point[1 + k] for k in range(len(shapes))))

    point = np.array([0.25, *shapes])
    slope = sg.grad(at)
    np.testing.assert_allclose(sg.jvp(at, (point,), (moved,))[1], slope(point) @ moved, rtol=1e-12)
    ahead, behind = (float(at(point + sign * step)) for sign in (1, -1))
    np.testing.assert_allclose(slope(point) @ moved, (ahead - behind) / 2e-4, rtol=1e-5)
    np.testing.assert_allclose(sg.hvp(at, (point,), (moved,)), (slope(point + step) - slope(point - step)) / 2e-4,
                               rtol=1e-4, atol=1e-6)  # fmt: skip


def test_a_median_that_is_searched_for_is_one_program_that_maps() -> None:
    slopes = sg.vmap(sg.grad(lambda b: st.rice.median(b)))(np.array([0.4, 1.2, 3.0]))
    np.testing.assert_allclose(slopes, [sg.grad(lambda b: st.rice.median(b))(b) for b in (0.4, 1.2, 3.0)], rtol=1e-12)
    sg.jit(lambda b: st.rice.median(b), strict=True)(1.2)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("options", [{}, {"floc": 0.2}, {"fscale": 1.5, "method": "mle"}], ids=str)
def test_fits_of_formulas(options: dict[str, Any]) -> None:
    data = np.array([0.3, 1.4, 0.9, 2.5])

    def f(x: Any) -> Any:
        found = [*norm.fit(x, **options), *st.expon.fit(x, **options)]
        return sum(k * value for k, value in enumerate(found, 1))

    apart = [(f(data + 1e-6 * e) - f(data - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    value, slope = sg.value_and_grad(f)(data)
    np.testing.assert_allclose(value, f(data), rtol=1e-12)
    np.testing.assert_allclose(slope, apart, rtol=1e-7)
    for wrong in (np.array([0.3, np.nan, 1.0, 2.0]), np.array([-1.0, 1.0, 2.0, np.inf])):
        with pytest.raises(ValueError, match="non-finite"):
            sg.grad(f)(wrong)
    with pytest.raises(ValueError, match="nothing to optimize"):
        sg.grad(lambda x: norm.fit(x, floc=1.0, fscale=2.0)[0])(data)
    with pytest.raises(UnsupportedError, match="method='MM'"):
        sg.grad(lambda x: st.expon.fit(x, method="MM")[1])(data)
    with pytest.raises(ValueError, match="data"):
        sg.grad(lambda x: st.expon.fit(x, floc=1.0)[1])(data)
