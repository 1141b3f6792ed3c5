"""What functions of NumPy and SciPy make of constants is compiled in: nothing is traced again for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.special as sp
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial
from scipy.spatial import distance

import srcgrad as sg

X = np.array([0.3, -0.8, 1.1])
MADE: dict[str, Callable[[Any], Any]] = {
    "fftfreq": lambda x: scipy.fft.fftfreq(3, 0.5) * x,
    "rfftfreq": lambda x: scipy.fft.rfftfreq(4) * x,
    "next_fast_len": lambda x: np.abs(scipy.fft.fft(x, scipy.fft.next_fast_len(7))) ** 2,
    "prev_fast_len": lambda x: scipy.fft.prev_fast_len(7) * x,
    "roots_legendre": lambda x: np.exp(np.outer(x, sp.roots_legendre(4)[0])) @ sp.roots_legendre(4)[1],
    "roots_hermite": lambda x: sp.roots_hermite(3)[0] * x,
    "roots_laguerre": lambda x: sp.roots_laguerre(3)[1] * x,
    "roots_genlaguerre": lambda x: sp.roots_genlaguerre(3, 0.5)[0] * x,
    "roots_chebyt": lambda x: sp.roots_chebyt(3)[0] * x,
    "roots_jacobi": lambda x: sp.roots_jacobi(3, 0.5, 0.7)[0] * x,
    "roots_sh_legendre": lambda x: sp.roots_sh_legendre(3)[0] * x,
    "p_roots": lambda x: sp.p_roots(3)[0] * x,
    "legendre": lambda x: sp.legendre(2)(x),
    "genlaguerre": lambda x: sp.genlaguerre(3, 0.5)(x),
    "chebyt": lambda x: sp.chebyt(2)(0.3) * x,
    "poly1d": lambda x: np.poly1d([1.0, 2.0, 3.0])(x) + np.poly1d([1.0, 2.0, 3.0]).deriv()(x),
    "Polynomial": lambda x: Polynomial([1.0, 2.0, 3.0])(x) + Polynomial([1.0, 2.0]).integ()(0.4) * x,
    "Chebyshev": lambda x: Chebyshev([1.0, 2.0, 3.0])(x),
    "Legendre": lambda x: Legendre([1.0, 2.0, 3.0]).deriv()(x),
    "Hermite": lambda x: Hermite([1.0, 2.0, 3.0])(x),
    "HermiteE": lambda x: HermiteE([1.0, 2.0, 3.0])(x),
    "Laguerre": lambda x: Laguerre([1.0, 2.0, 3.0]).coef * x,
    "promote_types": lambda x: np.promote_types("f4", "f8").itemsize * x,
    "broadcast": lambda x: np.zeros(np.broadcast(x, np.ones((2, 1))).shape) + np.broadcast(x, 1.0).ndim * x,
    "broadcast of constants": lambda x: np.broadcast(np.ones(3), np.ones((2, 1))).size * x,
    "generate_binary_structure": lambda x: scipy.ndimage.generate_binary_structure(1, 1) * x,
    "num_obs_y": lambda x: distance.num_obs_y(np.ones(3)) * x,
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_constants_is_compiled_in(name: str, backend: str) -> None:
    f = MADE[name]
    np.testing.assert_allclose(sg.jit(f, backend=backend)(X), f(X), rtol=1e-13)
    expected = [(np.sum(f(X + e)) - np.sum(f(X - e))) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(f(x)), backend=backend)(X), expected, rtol=1e-6, atol=1e-7)


def test_elements_of_broadcast_arrays_are_refused_by_name() -> None:
    with pytest.raises(sg.errors.UnsupportedError, match=r"np\.broadcast\(\.\.\.\)"):
        sg.grad(lambda x: sum(a * b for a, b in np.broadcast(x, x)))(X)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("beta", [0.0, 2.5, 14.0, 3])
def test_kaisers_window_of_a_traced_parameter(beta: float, backend: str) -> None:
    for size in (0, 1, 2, 6):
        window = sg.jit(lambda b, size=size: np.kaiser(size, b), backend=backend)(beta)
        np.testing.assert_allclose(window, np.kaiser(size, beta), rtol=1e-13)
    if isinstance(beta, float):
        slope = sg.jacobian(lambda b: np.kaiser(6, b), backend=backend)(beta)
        np.testing.assert_allclose(slope, (np.kaiser(6, beta + 1e-5) - np.kaiser(6, beta - 1e-5)) / 2e-5, atol=1e-9)
