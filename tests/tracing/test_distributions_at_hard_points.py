"""Laws of ``scipy.stats`` where the usual formulas cancel or underflow, against numbers of 60 digits by mpmath."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st

import srcgrad as sg

HARD: dict[str, tuple[Any, float, float, float]] = {
    "pearson3.cdf": (lambda s: st.pearson3.cdf(1.0, s), 0.002, 4.02854795974e-05, 0.0201212737982),
    "pearson3.sf": (lambda s: st.pearson3.sf(-3.0, s), -0.01, 0.00603013778726, -0.0120129977366),
    "pearson3.logpdf": (lambda s: st.pearson3.logpdf(1.0, s), 0.001, -0.33325004997917557, 0.08323339579763987),
    "pearson3.logsf far above": (lambda s: st.pearson3.logsf(20.0, s), 0.04, 798.0869308287715, -8838.127665745335),
    "pearson3.ppf": (lambda s: st.pearson3.ppf(0.9, s), 0.002, 0.10687167161714176, -0.09536877611764208),
    "pearson3.isf": (lambda q: st.pearson3.isf(q, -0.04), 1e-20, -9.3871513974473441e18, 9.2668981622230477e38),
    "truncpareto.logcdf": (lambda b: st.truncpareto.logcdf(2.0, b, 4.0), 1e-8, 0.34657358907884, -0.12011325347955),
    "truncpareto.ppf": (lambda b: st.truncpareto.ppf(0.9, b, 4.0), 1e-8, -0.3011462241368535, -0.19661097611920378),
    "truncweibull": (lambda c: st.truncweibull_min.logsf(30.0, c, 29.0, 31.0), 2.0, -229.1818504773, -875.498371335),
    "truncexpon without end": (lambda y: st.truncexpon.logpdf(y, np.inf), 2.0, -1.0, 0.0),
    "boltzmann": (lambda rate: st.boltzmann.pmf(0, rate, 10), 1e-8, 0.4500000119999999, 1.1999999797499985),
    "semicircular": (st.semicircular.logcdf, -1 + 1e-12, 1500033183314.1042, -1.5000663673625967e24),
    "skewcauchy": (lambda a: st.skewcauchy.logsf(1e12, a), 0.5, 4 / 3, -8 / 9),
    "trapezoid": (lambda d: st.trapezoid.logsf(1 - 1e-10, 0.3, d), 0.5, 7 / 6, 4.694444444444445),
    "triang": (lambda c: st.triang.logsf(1 - 1e-10, c), 0.2, 1.25, 1.5625),
    "wrapcauchy": (lambda y: st.wrapcauchy.logpdf(y, 1 - 1e-9), 2e-9, -800000008.890218, 2.4000000977923994e17),
    "powernorm": (lambda x: st.powernorm.logcdf(x, 2.0), -40.0, 40.02496884720726, -0.9993773316214086),
    "binom": (lambda p: st.binom.logsf(100, 200, p), 0.01, 10000.999706120147, -1010098.0312258154),
    "truncexpon.mean": (st.truncexpon.mean, 1e-6, 0.4999998333333333, -1 / 6),
    "truncpareto.entropy": (lambda b: st.truncpareto.entropy(b, 4.0), 1e-6, -0.16015116479039, -0.16015097386134),
    "boltzmann.var": (lambda rate: st.boltzmann.var(rate, 10), 1e-4, -0.008332499338625034, -83.32498015875174),
    "boltzmann.mean": (lambda rate: st.boltzmann.mean(rate, 5), 40.0, -4.248354255291589e-18, 4.248354255291589e-18),
    "loguniform.var": (lambda b: st.loguniform.var(1.0, b), 1.000001, 1.6666666665295e-07, 0.16666666666665),
    "truncnorm.isf": (lambda q: st.truncnorm.isf(q, -5.0, 40.0), 1e-20, -1.0674725298526673e19, 1.055441435600942e39),
}  # fmt: skip
"""A function, a place, and the first and the second derivative there."""


@pytest.mark.parametrize("name", HARD)
def test_derivatives_where_formulas_of_laws_lose_their_digits(name: str) -> None:
    f, place, first, second = HARD[name]
    for mode, backend in ((sg.jacfwd, "numpy"), (sg.jacrev, "llvm")):
        np.testing.assert_allclose(mode(f, backend=backend)(place), first, rtol=1e-9)
    np.testing.assert_allclose(sg.hessian(f, backend="numpy")(place), second, rtol=1e-7)


def test_values_at_the_ends_of_truncated_laws() -> None:
    """Where exp(-800) is all that tells the end, and where a power of an array is rounded otherwise than a number's."""
    chances = np.array([0.0, 1.0])
    np.testing.assert_array_equal(sg.jit(st.truncexpon.ppf)(chances, 800.0), [0.0, 800.0])
    np.testing.assert_array_equal(sg.jit(st.truncexpon.isf)(chances, 800.0), [800.0, 0.0])
    found = sg.jit(lambda y: st.truncweibull_min.logcdf(y, 1.5, 0.2, np.inf), backend="numpy")(np.array([0.2, 0.3]))
    assert found[0] == -np.inf
    assert np.isfinite(found[1])
    np.testing.assert_allclose(sg.jit(st.pearson3.logpdf)(-40.0, 0.049999), -15702.40495333, rtol=1e-9)
