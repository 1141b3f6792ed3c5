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


def agrees_after_changes(
    f: Callable[[Any], Any], backend: str, change: Callable[[int], None], points: list[float]
) -> None:
    """At each point value and gradient are Python's, after a change of what the function reads besides."""
    gradient = sg.value_and_grad(f, backend=backend)
    for k, x in enumerate(points):
        change(k)
        value, slope = gradient(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-7)
