"""Fourier transforms of real numbers along one axis: the half spectrum and its conjugates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

BOTH = (np.fft.fft, np.fft.ifft)


@pytest.mark.parametrize("transform", BOTH)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_transforms_of_real_numbers_are_numpys(transform: Any, size: int, norm: Any) -> None:
    x = np.random.default_rng(size).normal(size=(size, size)) * 3
    for n, axis, dtype in ((None, 0, "f8"), (size + 2, 1, "f4"), (max(1, size - 1), -1, "i4"), (None, -1, "?")):
        given = x.astype(dtype)
        found, expected = sg.jit(lambda x: transform(x, n, axis, norm))(given), transform(given, n, axis, norm)  # noqa: B023
        assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
        tolerance = 1e-5 if dtype == "f4" else 1e-13
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("transform", BOTH)
@pytest.mark.parametrize("n", [None, 10, 4])
def test_derivatives_of_transforms_of_real_numbers(transform: Any, n: Any) -> None:
    x = np.random.default_rng(3).normal(size=7)
    check_grads(lambda x: np.sum(np.abs(transform(x, n) - 0.3) ** 3), (x,), order=2)
    columns = np.stack([transform(row, n) for row in np.eye(7)], axis=-1)
    for jacobian in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(jacobian(lambda x: transform(x, n))(x), columns, atol=1e-15)


def test_a_transform_of_real_numbers_takes_half_a_spectrum() -> None:
    text = sg.explain(sg.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 4)))(np.ones(8))["optimised ir"]
    assert "rfft" in text and " fft " not in text


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft"])
def test_a_number_has_no_axis_to_transform(name: str) -> None:
    for transform in (getattr(np.fft, name), sg.jit(getattr(np.fft, name))):
        with pytest.raises(IndexError):
            transform(np.float64(3.0))


def test_a_transform_along_all_axes_of_a_number_is_the_number() -> None:
    for transform in (np.fft.fftn, np.fft.ifftn):
        assert sg.jit(transform)(np.float64(3.0)) == transform(np.float64(3.0)) == 3.0
        assert sg.grad(lambda x, transform=transform: np.real(transform(x)) ** 2)(3.0) == 6.0
