"""On a branch cut the sign of a zero says from which side a number comes: derivatives follow it, as values do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SLOPES: dict[str, tuple[Callable[[Any], Any], Callable[[complex], complex]]] = {
    "arcsin": (np.arcsin, lambda z: 1 / (np.sqrt(1 - z) * np.sqrt(1 + z))),
    "arccos": (np.arccos, lambda z: -1 / (np.sqrt(1 - z) * np.sqrt(1 + z))),
    "arctan": (np.arctan, lambda z: 1 / (1 + z * z)),
    "arcsinh": (np.arcsinh, lambda z: 1 / (np.sqrt(1 - 1j * z) * np.sqrt(1 + 1j * z))),
    "arccosh": (np.arccosh, lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))),
    "arctanh": (np.arctanh, lambda z: 1 / (1 - z * z)),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "log": (np.log, lambda z: 1 / z),
}
SIGNS = (0.0, -0.0)
POINTS = [complex(x, y) for x in (1.8, -1.8, 0.3) for y in SIGNS] + [complex(x, y) for y in (1.8, -1.8) for x in SIGNS]


def beside(z: complex) -> complex:
    """A number on the side of the cut that the signs of zero tell."""
    real, imag = (part or np.copysign(1e-12, part) for part in (z.real, z.imag))
    return complex(real, imag)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("name", SLOPES)
def test_the_derivative_is_that_of_the_side_the_number_is_on(name: str, backend: str) -> None:
    f, slope = SLOPES[name]
    points = np.array(POINTS)
    found = sg.jvp(f, (points,), (np.ones_like(points),), backend=backend)[1]
    np.testing.assert_allclose(found, [slope(beside(z)) for z in POINTS], rtol=1e-9, atol=1e-9)
