"""Extremes of complex numbers, which NumPy orders by real and then by imaginary parts, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.testing import check_grads

Z = np.array([[1 + 2j, 3 - 1j, 3 + 2j], [0.5j, 3 + 2j, -1j]])
NAN = np.array([[1 + 2j, complex(0, np.nan), complex(np.nan, 1)], [3, 1j, 2]])
INFINITE = np.array([[complex(-np.inf, 1), complex(-np.inf, -np.inf)], [complex(np.inf, -np.inf), complex(np.inf, 2)]])
PROGRAMS: dict[str, Any] = {
    **{f.__name__: f for f in (np.max, np.min, np.argmax, np.argmin, np.ptp, np.nanmax, np.nanmin)},
    "nanargmax": np.nanargmax,
    "nanargmin": np.nanargmin,
    "axis": lambda z: (np.max(z, axis=1), np.argmin(z, axis=0), np.nanmin(z, axis=-1, keepdims=True)),
    "where": lambda z: np.max(z, where=z.real > 0, initial=-4j),
    "initial": lambda z: np.min(z, axis=0, initial=0.25j),
    "method": lambda z: z.T.max(0) - z.min(),
    "pad": lambda z: np.pad(z, 1, mode="maximum"),
    "logsumexp": lambda z: scipy.special.logsumexp(z, axis=0),
    "softmax": lambda z: scipy.special.softmax(z, axis=1),
}
FINITE = ("ptp", "method", "logsumexp", "softmax")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_complex_extremes_are_numpys(name: str, backend: str) -> None:
    f = PROGRAMS[name]
    for z in (Z, Z.astype(np.complex64), NAN, INFINITE):
        if name in FINITE and not np.isfinite(z).all():
            continue
        found, expected = sg.jit(f, backend=backend)(z), f(z)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for part, wanted in pairs:
            assert part.dtype == wanted.dtype and part.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(part), wanted, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "axis", "ptp", "pad", "logsumexp", "softmax"])
def test_derivatives_of_complex_extremes(name: str, backend: str) -> None:
    z = np.array([[1 + 2j, 3 - 1j, 3 + 2j], [0.5j, 2 + 2j, 0.25 - 1j]])  # 3 - 1j is no tie with 3 + 2j
    z[0, 1] -= 1e-3
    f = {"max": np.max, "min": np.min, "axis": lambda x: np.max(x, axis=1)}.get(name, PROGRAMS[name])
    with sg.use_backend(backend):
        check_grads(lambda x: f(x) ** 2, (z,), order=2)


def test_equal_complex_extremes_share_equally() -> None:
    expected = np.zeros((2, 3))
    expected[0, 2] = expected[1, 1] = 0.5
    for backend in ("numpy", "llvm", "xla"):
        with sg.use_backend(backend):
            np.testing.assert_array_equal(sg.grad(np.max, holomorphic=True)(Z), expected)
            np.testing.assert_array_equal(sg.jvp(np.max, (Z,), (Z.imag + 0j,))[1], 2)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_sinc_of_complex_numbers(backend: str) -> None:
    z = np.array([0j, 1 + 0.5j, 0.5, 1e-9j, 1e-3 + 1e-3j, 0.3 - 0.1j])
    with sg.use_backend(backend):
        np.testing.assert_allclose(np.asarray(sg.jit(np.sinc)(z)), np.sinc(z), rtol=1e-14)
        np.testing.assert_allclose(np.asarray(sg.jvp(np.sinc, (z[3:4],), (z[3:4],))[1]), 0, atol=1e-17)
        check_grads(np.sinc, (z,), order=2)
