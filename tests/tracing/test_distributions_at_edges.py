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
