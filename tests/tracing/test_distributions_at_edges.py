"""Parameters at the edge of what the distributions of ``scipy.stats`` allow: SciPy's values, and one-sided slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import srcgrad as sg
from srcgrad.tracing.functions.distributions import LAWS

COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 0.5])
EDGES = [
    *[("binom", (n, p)) for n in (0.0, 1.0, 2.5, -1.0) for p in (0.0, 0.3, 1.0, 1.5)],
    *[("betabinom", (n, a, 1.5)) for n in (0.0, 2.0, 2.5, -1.0) for a in (0.0, 0.7)],
    *[("geom", (p,)) for p in (0.0, 1.0, 1.5)],
    *[("nbinom", (n, p)) for n in (0.0, 2.5) for p in (0.0, 0.3, 1.0)],
    *[("poisson", (mu,)) for mu in (0.0, -1.0)],
    *[("bernoulli", (p,)) for p in (0.0, 1.0, -0.1)],
    *[("vonmises", (kappa,)) for kappa in (0.0, -1.0)],
]


@pytest.mark.parametrize("name, shapes", EDGES, ids=lambda given: str(given))
def test_what_the_parameters_may_be_is_what_scipy_says(name: str, shapes: tuple[float, ...]) -> None:
    """No trials at all are allowed, two and a half are not."""
    law, distribution = LAWS[name], getattr(st, name)
    methods = [*(("pmf", "logpmf") if law.discrete else ("pdf", "logpdf")), *(("cdf", "sf") if law.below else ())]
    for method in methods:
        found = sg.jit(getattr(distribution, method), backend="numpy")(COUNTS, *shapes)
        with np.errstate(all="ignore"):
            expected = getattr(distribution, method)(COUNTS, *shapes)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_trials_of_which_there_are_none_leave_the_gradient_alone(backend: str) -> None:
    """A group without trials made the gradient of all of them nan."""
    trials, hits = np.array([0.0, 3.0]), np.array([0.0, 1.0])
    with sg.use_backend(backend):
        slope = sg.grad(lambda p: np.sum(st.binom.logpmf(hits, trials, p)))(0.3)
        both = sg.grad(lambda a: np.sum(st.betabinom.logpmf(hits, trials, a, 2.0)))(0.7)
        alone = sg.grad(lambda a: st.betabinom.logpmf(1.0, 3.0, a, 2.0))(0.7)
    np.testing.assert_allclose([slope, both], [1 / 0.3 - 2 / 0.7, alone], rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_concentration_of_0_has_the_slope_from_above(backend: str) -> None:
    """The law is uniform there: log p = kappa cos y - log(2 pi I0(kappa)), with I0'' = 1/2 at 0."""

    def density(kappa: float) -> float:
        return st.vonmises.logpdf(0.3, kappa)

    with sg.use_backend(backend):
        found = [sg.grad(density)(0.0), sg.jacfwd(density)(0.0), sg.hessian(density)(0.0)]
    np.testing.assert_allclose(found, [np.cos(0.3), np.cos(0.3), -0.5], rtol=1e-14)


def test_a_narrow_law_on_a_circle_has_its_digits() -> None:
    """cos(y) - 1 has four digits at y = 1e-6, of which 1e10 kept no more."""
    found, slope = sg.value_and_grad(lambda y: st.vonmises.logpdf(y, 1e10))(1e-6)
    np.testing.assert_allclose([found, slope], [st.vonmises.logpdf(1e-6, 1e10), -1e10 * np.sin(1e-6)], rtol=1e-12)


TAILS: list[tuple[str, tuple[float, ...], str, float]] = [
    ("moyal", (), "pdf", -800.0),
    ("moyal", (), "cdf", -1e4),
    ("moyal", (), "logsf", -1e4),
    ("loggamma", (1.5,), "cdf", 800.0),
    ("loggamma", (1.5,), "logcdf", 800.0),
    ("loggamma", (1.5,), "sf", 800.0),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("name", "shapes", "kind", "x"), TAILS)
def test_tails_where_exponentials_overflow_are_flat(
    name: str, shapes: tuple[float, ...], kind: str, x: float, backend: str
) -> None:
    method = getattr(getattr(st, name), kind)

    def f(x: Any) -> Any:
        return method(x, *shapes)

    for outer in (sg.jacfwd, sg.jacrev):
        assert outer(f, backend=backend)(x) == 0.0
        for inner in (sg.jacfwd, sg.jacrev):
            assert outer(inner(f, backend=backend), backend=backend)(x) == 0.0


EXP = float(np.exp(-0.5))
AT_ZERO: dict[str, tuple[Any, float, float | None]] = {
    "rice.logpdf by b": (lambda b: st.rice.logpdf(1.3, b), 0.0, 1.3**2 / 2 - 1),
    "rice.pdf by b": (lambda b: st.rice.pdf(1.3, b), 0.0, 1.3 * float(np.exp(-(1.3**2) / 2)) * (1.3**2 / 2 - 1)),
    "rice.pdf": (lambda x: st.rice.pdf(x, 1.0), EXP, 0.0),
    "rice.cdf": (lambda x: st.rice.cdf(x, 1.0), 0.0, EXP),
    "ncx2.logpdf by nc": (lambda c: st.ncx2.logpdf(1.3, 3.0, c), 1.3 / 6 - 0.5, -(1.3**2) / 90),
    "ncx2.cdf by nc": (lambda c: st.ncx2.cdf(1.3, 3.0, c), -st.chi2.pdf(1.3, 5.0), None),
    "ncx2.cdf of 2": (lambda x: st.ncx2.cdf(x, 2.0, 1.0), EXP / 2, -EXP / 8),
    "ncx2.cdf of 4": (lambda x: st.ncx2.cdf(x, 4.0, 1.0), 0.0, EXP / 4),
    "maxwell.cdf": (lambda x: st.maxwell.cdf(x), 0.0, 0.0),
    "chi.cdf of 1": (lambda x: st.chi.cdf(x, 1.0), float(np.sqrt(2 / np.pi)), 0.0),
    "chi.cdf of 2": (lambda x: st.chi.cdf(x, 2.0), 0.0, 1.0),
    "chi.sf of 1": (lambda x: st.chi.sf(x, 1.0), -float(np.sqrt(2 / np.pi)), 0.0),
    "nakagami.cdf of 1/2": (lambda x: st.nakagami.cdf(x, 0.5), float(np.sqrt(2 / np.pi)), 0.0),
}


@pytest.mark.parametrize("name", AT_ZERO)
def test_slopes_from_above_where_a_place_or_a_parameter_is_0(name: str) -> None:
    """The slope of i0e is 0 there, and SciPy's laws without noncentrality are others, which do not vary with it."""
    f, first, second = AT_ZERO[name]
    for mode in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(mode(f)(0.0), first, rtol=1e-12, atol=1e-15)
    if second is None:  # that of the first from above
        second = (sg.grad(f)(1e-6) - first) / 1e-6
    np.testing.assert_allclose(sg.jacfwd(sg.jacrev(f))(0.0), second, rtol=2e-6, atol=1e-12)


def test_cumulative_chances_near_0_have_all_their_derivatives() -> None:
    """Of chi by one degree of freedom: the density is even, its second derivative is that of a normal one."""
    third = sg.jacfwd(sg.jacfwd(sg.grad(lambda x: st.chi.cdf(x, 1.0))))
    np.testing.assert_allclose(third(0.0), -np.sqrt(2 / np.pi), rtol=1e-12)
    third = sg.jacfwd(sg.jacfwd(sg.grad(lambda x: st.ncx2.cdf(x, 2.0, 1.0))))
    np.testing.assert_allclose(third(0.0), third(1e-7), rtol=1e-5)


@pytest.mark.parametrize(
    "f, place, first, second",
    [
        (lambda y: st.genextreme.pdf(y, 0.5), 2.0, -0.5, 0.0),
        (lambda y: st.genextreme.cdf(y, 0.5), 2.0, 0.0, -0.5),
        (lambda y: st.genextreme.sf(y, 0.5), 2.0, 0.0, 0.5),
        (lambda y: st.genextreme.cdf(y, 1.0), 1.0, 1.0, 1.0),
        (lambda y: st.genextreme.pdf(y, -0.5), -2.0, 0.0, 0.0),
        (lambda y: st.genpareto.cdf(y, -0.5), 2.0, 0.0, -0.5),
        (lambda y: st.genpareto.sf(y, -0.5), 2.0, 0.0, 0.5),
        (lambda y: st.genpareto.pdf(y, -0.5), 2.0, -0.5, 0.0),
        (lambda y: st.genpareto.pdf(y, -0.25), 4.0, 0.0, 0.0),
    ],
)
def test_slopes_at_the_end_that_a_shape_makes(f: Any, place: float, first: float, second: float) -> None:
    """From below: 1 + c y is a power there, and its logarithm is infinite."""
    for mode in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(mode(f)(place), first, atol=1e-15)
        np.testing.assert_allclose(mode(sg.grad(f))(place), second, atol=1e-15)
    with np.errstate(all="ignore"):
        places = np.array([-3.0, -2.0, 0.0, 1.0, 2.0, 4.0, 5.0, np.inf, np.nan])
        np.testing.assert_allclose(sg.jit(f)(places), f(places), rtol=1e-13)


ROOT = float(np.sqrt(2 / np.pi))
DOUBLE = float(3.0 / 3.5 * np.exp(2 * (1.44 - 3.0)))
ENDS: dict[str, tuple[Any, float, float, float]] = {
    "gengamma.pdf of 1, 2": (lambda x: st.gengamma.pdf(x, 1.0, 2.0), 0.0, 2.0, 0.0),
    "gengamma.pdf of 4.4, 3.1": (lambda x: st.gengamma.pdf(x, 4.4, 3.1), 0.0, 0.0, 0.0),
    "gengamma.cdf of 1/2, 2": (lambda x: st.gengamma.cdf(x, 0.5, 2.0), 0.0, ROOT * np.sqrt(2.0), 0.0),
    "gengamma.cdf of 2, -1.5": (lambda x: st.gengamma.cdf(x, 2.0, -1.5), 0.0, 0.0, 0.0),
    "exponweib.pdf of 1, 2": (lambda x: st.exponweib.pdf(x, 1.0, 2.0), 0.0, 2.0, 0.0),
    "exponweib.pdf of 2, 1": (lambda x: st.exponweib.pdf(x, 2.0, 1.0), 0.0, 2.0, -6.0),
    "exponweib.pdf of 2.9, 1.9": (lambda x: st.exponweib.pdf(x, 2.9, 1.9), 0.0, 0.0, 0.0),
    "exponweib.sf of 1, 2": (lambda x: st.exponweib.sf(x, 1.0, 2.0), 0.0, 0.0, -2.0),
    "exponpow.pdf": (lambda x: st.exponpow.pdf(x, 2.0), 0.0, 2.0, 0.0),
    "rdist.pdf": (lambda x: st.rdist.pdf(x, 6.0), 1.0, 0.0, 7.5),
    "rdist.pdf at -1": (lambda x: st.rdist.pdf(x, 6.0), -1.0, 0.0, 7.5),
    "burr.cdf": (lambda x: st.burr.cdf(x, 2.0, 1.0), 0.0, 0.0, 2.0),
    "burr.logsf": (lambda x: st.burr.logsf(x, 2.0, 1.0), 0.0, 0.0, -2.0),
    "burr.pdf": (lambda x: st.burr.pdf(x, 1.0, 2.0), 0.0, 2.0, -12.0),
    "mielke.pdf of 1, 1": (lambda x: st.mielke.pdf(x, 1.0, 1.0), 0.0, -2.0, 6.0),
    "mielke.pdf of 4, 1/2": (lambda x: st.mielke.pdf(x, 4.0, 0.5), 0.0, 0.0, 0.0),
    "halfgennorm.cdf": (lambda x: st.halfgennorm.cdf(x, 2.0), 0.0, ROOT * np.sqrt(2.0), 0.0),
    "semicircular.cdf": (st.semicircular.cdf, 1.0, 0.0, -np.inf),
    "semicircular.sf": (st.semicircular.sf, -1.0, 0.0, -np.inf),
    "argus.cdf": (lambda x: st.argus.cdf(x, 1.0), 1.0, 0.0, -np.inf),
    "dpareto_lognorm.pdf": (lambda x: st.dpareto_lognorm.pdf(x, 3.0, 1.2, 1.5, 2.0), 0.0, DOUBLE, 0.0),
    "dpareto_lognorm.pdf of 1/2": (lambda x: st.dpareto_lognorm.pdf(x, 3.0, 1.2, 1.5, 0.5), 0.0, 0.0, 0.0),
    "dpareto_lognorm.cdf": (lambda x: st.dpareto_lognorm.cdf(x, 3.0, 1.2, 1.5, 2.0), 0.0, 0.0, DOUBLE),
    "dpareto_lognorm.logcdf": (lambda x: st.dpareto_lognorm.logcdf(x, 3.0, 1.2, 1.5, 2.0), 0.0, np.inf, -np.inf),
    "dpareto_lognorm.logpdf": (lambda x: st.dpareto_lognorm.logpdf(x, 3.0, 1.2, 1.5, 3.0), 0.0, np.inf, -np.inf),
    "recipinvgauss.cdf": (lambda x: st.recipinvgauss.cdf(x, 0.6), 0.0, 0.0, 0.0),
    "genextreme.cdf": (lambda x: st.genextreme.cdf(x, -0.5), -2.0, 0.0, 0.0),
    "genextreme.sf": (lambda x: st.genextreme.sf(x, -0.5), -2.0, 0.0, 0.0),
}


@pytest.mark.parametrize("name", ENDS)
def test_slopes_at_the_ends_of_laws_by_scipys_formulas(name: str) -> None:
    """They were 0 times infinity, or, of exponpow, 0."""
    f, place, first, second = ENDS[name]
    for mode in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(mode(f)(place), first, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(sg.jacfwd(sg.jacfwd(f))(place), second, rtol=1e-12, atol=1e-14)


INFINITE: dict[str, tuple[Any, float, float, float]] = {
    "burr": (lambda x: st.burr.pdf(x, 0.5, 0.7), np.inf, -np.inf, np.inf),
    "exponweib": (lambda x: st.exponweib.cdf(x, 0.4, 0.7), 0.0, np.inf, -np.inf),
    "gengamma": (lambda x: st.gengamma.sf(x, 0.3, 0.5), 1.0, -np.inf, np.inf),
    "gengamma.pdf": (lambda x: st.gengamma.pdf(x, 2.0, 0.5), 0.5, -np.inf, np.inf),
    "mielke.pdf": (lambda x: st.mielke.pdf(x, 0.4, 0.2), np.inf, -np.inf, np.inf),
}


@pytest.mark.parametrize("name", INFINITE)
def test_laws_that_are_infinite_at_an_end(name: str) -> None:
    """Terms of the series that are infinite too say nothing there: their sum was nan, values of densities too."""
    f, value, first, second = INFINITE[name]
    assert sg.jit(f)(0.0) == value
    for mode in (sg.jacfwd, sg.jacrev):
        assert mode(f)(0.0) == first
    assert sg.jacfwd(sg.jacfwd(f))(0.0) == second


def test_the_laws_by_series_at_their_ends_are_scipys_elsewhere() -> None:
    places = np.array([0.0, 1e-9, 0.3, 0.999, 1.0, 1.7, 40.0])
    for law, shapes in (
        ("burr", (2.5, 1.3)), ("mielke", (2.5, 1.3)), ("exponweib", (1.3, 2.5)), ("gengamma", (1.3, 2.5)),
        ("gengamma", (1.3, -2.5)), ("halfgennorm", (1.7,)), ("semicircular", ()), ("argus", (0.7,)),
    ):  # fmt: skip
        for kind in ("pdf", "logpdf", "cdf", "sf", "logsf"):
            method = getattr(getattr(st, law), kind)
            found = sg.jit(lambda x, method=method, shapes=shapes: method(x, *shapes), backend="numpy")(places)
            with np.errstate(all="ignore"):
                expected = method(places, *shapes)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15, err_msg=f"{law}.{kind}")


def test_slopes_at_an_end_where_the_shape_is_an_argument() -> None:
    for mode in (sg.jacfwd, sg.jacrev):
        assert mode(st.rdist.pdf)(-1.0, 6.0) == 0.0
        np.testing.assert_allclose(mode(sg.grad(st.rdist.pdf))(-1.0, 6.0), 7.5, rtol=1e-13)
        assert mode(lambda c: st.rdist.pdf(-1.0, c))(6.0) == 0.0


PRODUCTS: dict[str, tuple[Any, tuple[float, ...], tuple[float, ...]]] = {
    "truncnorm.logcdf": (lambda x, a: st.truncnorm.logcdf(x, a, 2.0), (-1.0, -1.0), (np.inf, -np.inf)),
    "truncnorm.logsf": (lambda x, b: st.truncnorm.logsf(x, -1.0, b), (2.0, 2.0), (-np.inf, np.inf)),
    "genextreme.pdf of shape 1": (lambda x: st.genextreme.pdf(x, 1.0), (1.0,), (1.0,)),
    "rice.cdf far above": (lambda x, b: st.rice.cdf(x, b), (1e10, 0.77), (0.0, 0.0)),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_slopes_where_a_product_would_be_0_times_infinity(name: str, backend: str) -> None:
    """They were nan, or -inf in one mode and nan in the other."""
    f, point, slopes = PRODUCTS[name]
    for mode in (sg.jacfwd, sg.jacrev):
        assert mode(f, argnums=tuple(range(len(point))), backend=backend)(*point) == slopes
