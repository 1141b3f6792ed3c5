"""Sizes of what is 0 as a square is, which are smooth there."""

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


PRODUCTS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "a number and its size": (lambda x: np.abs(np.exp(-x) * x * np.abs(x)), 2.0),
    "a kink beside a positive number": (lambda x: np.abs(x / (1 + x**2)) * np.abs(x * np.exp(x)), 2.0),
    "a negative square": (lambda x: np.abs(-(x**2) * np.cos(x)), 2.0),
    "a number and its sine": (lambda x: np.abs(x * np.sin(-x)), 2.0),
    "a sign and a square": (lambda x: np.abs(np.sign(x) * x**2), 2.0),
    "a copied sign": (lambda x: np.abs(np.copysign(x**2, x)), 2.0),
    "a square over a negative number": (lambda x: np.abs(x**2 / (x - 1)), 2.0),
    "a number and its part": (lambda x: np.abs(x * np.maximum(x, 0)) + np.abs(np.clip(-x, -1, 0) * x), 2.0),
    "a cube": (lambda x: np.abs(x**2 * x), 0.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_second_derivatives_of_sizes_of_products(name: str, backend: str) -> None:
    """They were 0: the kink of the product took all of the derivative of its parts."""
    f, expected = PRODUCTS[name]
    for first in (sg.jacfwd, sg.jacrev):
        slope = first(f, backend=backend)
        for zero in (0.0, -0.0):
            assert slope(zero) == 0.0
            np.testing.assert_allclose(sg.jacfwd(slope, backend=backend)(zero), expected, rtol=1e-14)
        np.testing.assert_allclose(
            sg.jacfwd(slope, backend=backend)(-0.3), (slope(-0.3 + 1e-6) - slope(-0.3 - 1e-6)) / 2e-6, rtol=1e-7
        )


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_sizes_of_parts_have_their_slope(backend: str) -> None:
    """The mean of both sides, where half of it was multiplied by the slope 0 of abs."""
    for f, slope in ((np.maximum, 0.5), (np.minimum, -0.5), (lambda x, low: np.clip(x, low, 1), 0.5)):
        for mode in (sg.jacfwd, sg.jacrev):
            assert mode(lambda x, f=f: np.abs(f(x, 0)), backend=backend)(0.0) == slope


def test_sizes_of_signed_squares_are_flat_along_other_numbers() -> None:
    """abs(sign(y)*x**2) is 0 along x where y is 0: its second derivative there was 2."""
    other = sg.hessian(lambda x, y: np.abs(np.sign(y) * x**2))
    assert (other(0.0, 0.0), other(0.0, -1.5)) == (0.0, 2.0)
    assert sg.hessian(lambda x: np.abs(np.sign(2 * x) * (np.sinh(x) * x)))(0.0) == 2.0


def test_sizes_of_products_stay_one_where_they_are_one_kink() -> None:
    """Sizes of all parts of a product took five times as long; what is 0 in one place alone has its kink."""
    text = sg.source(sg.grad(lambda x: np.abs(x * (1 + x * x) * np.exp(x) / (2 + np.cos(x)))))(0.5)
    assert "where(" not in text


def test_sizes_of_extremes_are_none_below_zero_by_rounding() -> None:
    """As numbers of 32 bits the sum is 1e-7 below its bound."""
    a, b, c, d = (np.float32(number) for number in (0.71036994, 0.9953001, 0.0074514747, 1.7131215))

    def f(y: Any) -> Any:
        return np.abs(np.maximum(-1, np.sin(y) * a - b - c + d))

    low = np.float32(-np.pi / 2)
    assert sg.jit(f, backend="numpy")(low) == f(low) > 0
