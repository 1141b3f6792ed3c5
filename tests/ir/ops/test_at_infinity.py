"""Derivatives where an argument is infinite and the function flat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg

FLAT: list[Callable[[Any], Any]] = [
    np.arctan,
    np.arcsinh,
    np.tanh,
    np.log,
    np.reciprocal,
    scipy.special.erf,
    scipy.special.expit,
    lambda x: np.arctan2(x, 2.0),
    lambda x: np.arctan2(2.0, x),
    lambda x: np.arctan(np.exp(x) + x),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FLAT)
def test_two_derivatives_at_infinity_are_zero(f: Callable[[Any], Any], backend: str) -> None:
    modes = [sg.jacfwd, sg.jacrev]
    for x in (np.inf, -np.inf):
        for inner in modes:
            if not (np.isneginf(x) and f is FLAT[-1]):
                assert inner(f, backend=backend)(x) == 0.0
                assert [outer(inner(f, backend=backend), backend=backend)(x) for outer in modes] == [0.0, 0.0]
