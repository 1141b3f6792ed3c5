"""``z.view(float)`` and ``x.view(complex)`` are views: derivatives go through them, and what is written into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def of_pairs(x: Any) -> Any:
    return np.sum(np.abs(x.view(complex) ** 2 - 1.0) ** 2)


def of_parts(x: Any) -> Any:
    z = x[::2] + 1j * x[1::2]
    parts = z.view(float)
    parts[1] = 3.0 * x[0] * x[1]
    parts *= x
    return np.abs(z[0] * z[1]) ** 2 + parts.sum()


def of_rows(x: Any) -> Any:
    y = x.reshape(1, 4) * 2.0
    z = y.view(np.complex128)
    z[:, 0] = x[3] + 1j * x[2]
    return np.sum(y * np.arange(4.0)) * np.sum(y)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [of_pairs, of_parts, of_rows])
def test_derivatives_go_through_such_views(f: Callable[..., Any], backend: str) -> None:
    x, step = np.array([0.5, -1.0, 2.0, 1.5]), 1e-6
    apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(sg.jit(f, strict=True, backend=backend)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(sg.grad(f, backend=backend)(x), apart, rtol=1e-6)
    np.testing.assert_allclose(sg.jacfwd(f, backend=backend)(x), apart, rtol=1e-6)


def test_shapes_that_numpy_refuses_are_errors() -> None:
    for x in (np.ones(3), np.ones((4, 2)).T[:, ::2]):
        with pytest.raises((ValueError, sg.SrcgradError)):
            sg.jit(lambda x: x.view(complex).sum(), strict=True)(x)
