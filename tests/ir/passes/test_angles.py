"""Angles by their cosine have the kink of an absolute value where that is 1, and what is smooth has its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.ir.passes.at_zero import check_derivatives

AT_ZERO: dict[str, tuple[Any, float]] = {
    "an angle": (lambda x: np.arccos(np.cos(x)), 0.0),
    "its square": (lambda x: np.arccos(np.cos(x)) ** 2, 2.0),
    "its complement": (lambda x: np.arcsin(np.cos(x)), 0.0),
    "its cosine": (lambda x: np.cos(np.arccos(np.cos(x))), -1.0),
    "of a square": (lambda x: np.arccos(np.cos(x**2)), 2.0),
    "the complement of a square": (lambda x: np.arcsin(np.cos(np.square(2 * x))), -8.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_second_derivatives_at_zero(name: str, backend: str) -> None:
    f, second = AT_ZERO[name]
    check_derivatives(f, 0.0, second, backend, rtol=1e-14)


def test_nothing_changes_elsewhere() -> None:
    places = np.array([-3.0, 1e-9, 0.5, np.pi, 2 * np.pi, 20.0])
    slopes = sg.grad(lambda x: np.sum(np.arccos(np.cos(x))))(places)
    np.testing.assert_allclose(slopes, np.sign(np.sin(places)), rtol=1e-14)
    assert sg.jit(lambda x: np.arcsin(np.cos(x)))(np.float32(0.0)) == np.arcsin(np.float32(1.0))


@pytest.mark.parametrize("x", [0.0, -0.0])
def test_an_infinite_inverse_of_a_cosine_has_no_slope(x: float) -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(sg.grad(lambda x: np.arctanh(np.cos(x)))(x))
