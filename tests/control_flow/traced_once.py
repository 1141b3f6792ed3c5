"""What holds of a function that is one program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import srcgrad as sg


def require_one_program(f: Callable[[Any], Any], backend: str, *points: Any) -> None:
    """At each of two or more points its value is Python's, its gradient that of differences, and nothing warns."""
    step = 1e-6
    run, slope = sg.jit(f, backend=backend), sg.grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in points:
            apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
            np.testing.assert_allclose(run(x), f(x), rtol=1e-12)
            np.testing.assert_allclose(slope(x), apart, rtol=1e-5)
