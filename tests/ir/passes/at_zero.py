"""Derivatives at 0 of functions with roots, in both modes and to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import srcgrad as sg

MODES = (sg.jacfwd, sg.jacrev)


def check_derivatives(f: Callable[[Any], Any], first: float, second: float, backend: str, rtol: float = 0.0) -> None:
    for inner in MODES:
        slope = inner(f, backend=backend)
        np.testing.assert_allclose(slope(0.0), first, rtol)
        np.testing.assert_allclose(slope(np.zeros(2)), first * np.eye(2), rtol)
        for outer in MODES:
            np.testing.assert_allclose(outer(slope, backend=backend)(0.0), second, rtol)
    assert sg.value_and_grad(f, backend=backend)(0.0)[0] == f(0.0)
