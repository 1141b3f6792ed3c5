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
    "truncpareto.logcdf": (lambda b: st.truncpareto.logcdf(2.0, b, 4.0), 1e-8, 0.34657358907884, -0.12011325347955),
    "truncpareto.ppf": (lambda b: st.truncpareto.ppf(0.9, b, 4.0), 1e-8, -0.3011462241368535, -0.19661097611920378),
    "truncweibull": (lambda c: st.truncweibull_min.logsf(30.0, c, 29.0, 31.0), 2.0, -229.1818504773, -875.498371335),
    "truncexpon without end": (lambda y: st.truncexpon.logpdf(y, np.inf), 2.0, -1.0, 0.0),
    "boltzmann": (lambda rate: st.boltzmann.pmf(0, rate, 10), 1e-8, 0.4500000119999999, 1.1999999797499985),
}  # fmt: skip
"""A function, a place, and the first and the second derivative there."""


@pytest.mark.parametrize("name", HARD)
def test_derivatives_where_formulas_of_laws_lose_their_digits(name: str) -> None:
    f, place, first, second = HARD[name]
    for mode, backend in ((sg.jacfwd, "numpy"), (sg.jacrev, "llvm")):
        np.testing.assert_allclose(mode(f, backend=backend)(place), first, rtol=1e-9)
    np.testing.assert_allclose(sg.hessian(f, backend="numpy")(place), second, rtol=1e-7)
