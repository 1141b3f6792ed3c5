"""A function of an array against itself run as it is: values, both modes, and slopes of slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import srcgrad as sg


def check_slopes(f: Callable[[Any], Any], point: Any, backend: str, curved: bool = True, loose: float = 1.0) -> None:
    """Compare with SciPy's values and with differences.

    ``curved``: slopes of slopes too; ``loose``: by what the tolerances are multiplied.
    """
    expected = np.asarray(f(point))
    weights = np.cos(np.arange(expected.size) + 0.2).reshape(expected.shape)
    direction, h = np.cos(1.0 + np.arange(point.size)).reshape(point.shape), 1e-3

    def loss(x: Any) -> Any:
        found = f(x)
        total = (np.stack(found) if isinstance(found, (list, tuple)) else found) * weights
        return np.sum(total.real + 0.3 * total.imag) if expected.dtype.kind == "c" else np.sum(total)

    def slope(g: Callable[[Any], Any]) -> Any:
        ends = [(g(point + k * h * direction) - g(point - k * h * direction)) / (2 * k * h) for k in (1, 2)]
        return (4 * ends[0] - ends[1]) / 3

    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(f)(point), expected, rtol=1e-9 * loose, atol=1e-11 * loose)
        gradient = sg.grad(loss)
        along = np.sum(gradient(point) * direction)
        np.testing.assert_allclose(along, slope(loss), rtol=1e-6 * loose, atol=1e-7 * loose)
        np.testing.assert_allclose(sg.jvp(loss, (point,), (direction,))[1], along, rtol=1e-9)
        if curved:
            curvature = np.sum(sg.jvp(gradient, (point,), (direction,))[1] * direction)
            differences = slope(lambda x: np.sum(gradient(x) * direction))
            np.testing.assert_allclose(curvature, differences, rtol=1e-5 * loose, atol=1e-6 * loose)
