"""The rules of ``scipy.fftpack`` give SciPy's values and shapes, and the right derivatives, in one program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fftpack as fp

import srcgrad as sg
from srcgrad.testing import check_grads

X = np.random.default_rng(5).standard_normal((4, 5))
CASES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("fft", "ifft", "rfft", "irfft"), lambda f, x: [f(x), f(x, 7, 0), f(x, 6, 0), f(x, 3), f(x, axis=0)]
    ),
    **dict.fromkeys(("fft2", "ifft2", "fftn", "ifftn"), lambda f, x: [f(x), f(x, (3, 6))]),
    **dict.fromkeys(
        ("dct", "idct", "dst", "idst"),
        lambda f, x: [f(x), f(x, 3, 7, 0, "ortho"), f(x, 2, norm="ortho"), f(x, type=1), f(np.arange(5.0)) * x],
    ),
    **dict.fromkeys(("dctn", "idctn", "dstn", "idstn"), lambda f, x: [f(x), f(x, 3, (3, 6), norm="ortho")]),
}


def total(name: str, x: Any) -> Any:
    """A number to which real and imaginary parts add in ways of their own."""
    parts = [
        np.sum(np.sin(np.arange(y.size) + 1.0).reshape(y.shape) * (y.real + 2.0 * y.imag))
        for y in CASES[name](getattr(fp, name), x)
    ]
    return sum(parts) ** 2


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    def f(x: Any) -> Any:
        return total(name, x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, _ = sg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-11)
    check_grads(f, (X,))
