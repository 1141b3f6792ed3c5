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
}  # fmt: skip
"""A function, a place, and the first and the second derivative there."""


@pytest.mark.parametrize("name", HARD)
def test_derivatives_where_formulas_of_laws_lose_their_digits(name: str) -> None:
    f, place, first, second = HARD[name]
    for mode, backend in ((sg.jacfwd, "numpy"), (sg.jacrev, "llvm")):
        np.testing.assert_allclose(mode(f, backend=backend)(place), first, rtol=1e-9)
    np.testing.assert_allclose(sg.hessian(f, backend="numpy")(place), second, rtol=1e-7)
