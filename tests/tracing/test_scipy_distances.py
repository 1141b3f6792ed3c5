"""Distances of ``scipy.spatial.distance`` between distributions and between truth values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial import distance

import srcgrad as sg
from tests.tracing.slope_support import check_slopes

P = np.array([0.2, 0.5, 0.3, 0.1])
Q = np.array([0.4, 0.1, 0.6, 0.25])
NAMES = ("dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
BOOLEAN = {name: getattr(distance, name) for name in NAMES}
CASES: dict[str, Any] = {
    "jensenshannon": lambda p: distance.jensenshannon(p, Q),
    "jensenshannon, bits": lambda p: distance.jensenshannon(Q, p, 2.0),
    "jensenshannon, rows": lambda p: distance.jensenshannon(p.reshape(2, 2), Q.reshape(2, 2), axis=1, keepdims=True),
}
for _name, _metric in BOOLEAN.items():
    CASES[_name] = lambda p, f=_metric: np.sum(p**2) * f(p > 0.25, Q > 0.3)
    CASES[f"{_name}, weights"] = lambda p, f=_metric: f(P > 0.25, Q > 0.3, w=p)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy", "xla"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str, backend: str) -> None:
    check_slopes(CASES[name], P, backend, curved=backend != "xla")


def test_equal_distributions_have_the_slope_0() -> None:
    np.testing.assert_array_equal(sg.grad(lambda p: distance.jensenshannon(p, P))(P), np.zeros(4))
    np.testing.assert_array_equal(sg.jvp(lambda p: distance.jensenshannon(p, P), (P,), (Q,))[1], 0.0)
