"""Sizes of even powers of complex numbers, which are smooth at 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def spectrum(x: Any) -> Any:
    transformed = np.fft.fft(x)
    return np.sum(np.abs(transformed * np.conj(transformed)))


POWERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "power spectrum": (spectrum, 6 * np.eye(3)),
    "square": (lambda x: np.abs((x[0] + 1j * x[1]) ** 2), np.diag([2.0, 2.0, 0.0])),
    "fourth power": (lambda x: np.abs((x[0] + 1j * x[1]) ** 4), np.zeros((3, 3))),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", POWERS)
def test_second_derivatives_of_sizes_of_powers(name: str, backend: str) -> None:
    """The size of the product has a kink at 0: Hessians of power spectra were 0 there, also of constant signals."""
    f, expected = POWERS[name]
    gradient = sg.grad(f, backend=backend)
    np.testing.assert_array_equal(gradient(np.zeros(3)), np.zeros(3))
    for hessian in (sg.hessian(f, backend=backend), sg.jacrev(gradient, backend=backend)):
        np.testing.assert_allclose(hessian(np.zeros(3)), expected, rtol=1e-14, atol=1e-14)
    if f is spectrum:
        for x in (np.full(3, 0.5), np.array([1.0, -1.0, 2.0])):
            np.testing.assert_allclose(gradient(x), 6 * x, rtol=1e-13)
            np.testing.assert_allclose(hessian(x), expected, rtol=1e-13, atol=1e-13)
