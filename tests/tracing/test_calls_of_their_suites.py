"""What the test suites of NumPy and SciPy call, and was once answered otherwise than they answer it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sc

import srcgrad as sg
from srcgrad.errors import ArgumentError, UnsupportedError


@pytest.mark.parametrize("degree", [-4, -1, -3.0, -1.0])
@pytest.mark.parametrize(("name", "mirror", "sign"), [("legendre", -1, 1), ("chebyt", 0, 1), ("chebyu", -2, -1)])
def test_polynomials_of_degrees_below_0_have_slopes(name: str, mirror: int, sign: int, degree: float) -> None:
    """They were 0, or nan of a float: the rule for degrees above leads away from the constant."""
    evaluate = getattr(sc, f"eval_{name}")

    def slopes(n: float) -> tuple[Any, Any]:
        first = sg.grad(lambda x: evaluate(n, x))
        return first(0.3), sg.grad(first)(0.3)

    across = int(mirror - degree)
    expected = np.array(slopes(across)) if across >= 0 else np.zeros(2)
    np.testing.assert_allclose(slopes(degree), sign * expected, rtol=1e-12)


def test_slopes_of_digamma_far_left_of_0() -> None:
    """They were nan left of -1000; by DLMF 5.15.6 they are those right of it, and those of pi cot(pi z)."""
    slope = sg.grad(sc.psi, holomorphic=True)
    for z in (-1e3 - 0.3 + 0.4j, -1e9 + 0.5j, -20.7 - 3j):
        expected = (np.pi / np.sin(np.pi * (z - np.round(z.real)))) ** 2 - slope(1.0 - z)
        np.testing.assert_allclose(slope(z), expected, rtol=1e-12)
    second = sg.grad(slope, holomorphic=True)
    np.testing.assert_allclose(second(-25.3 + 0.4j), (slope(-25.3 + 1e-5 + 0.4j) - slope(-25.3 - 1e-5 + 0.4j)) / 2e-5)
    for z in (1e300 + 1j, -0.5 + 1e200j):
        np.testing.assert_allclose(slope(z), 1.0 / z, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_jit_needs_no_rule() -> None:
    """It raised what derivatives raise, though the value is there."""

    def f(z: Any) -> Any:
        return np.abs(sc.jve(1, z)) + sc.elliprf(z, 1.0, 2.0).imag

    z = 0.7 + 0.3j
    assert sg.jit(f)(z) == f(z)
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.jve has no derivative rule .* for complex arguments"):
        sg.grad(f)(z)
    with pytest.raises(UnsupportedError, match=r"scipy\.special\.elliprf has no derivative rule .* complex"):
        sg.grad(lambda z: sc.elliprf(z, 1.0, 2.0).real)(z)
    with pytest.raises((ArgumentError, UnsupportedError), match="no derivative rule"):
        sg.jit(f, strict=True)(z)
    with pytest.raises(UnsupportedError, match="busday_count"):  # of floats NumPy's own error says less
        sg.jit(lambda x: np.busday_count(x, x))(np.ones(2))


def test_isclose_of_numbers_without_a_dtype() -> None:
    """The tolerance was a float64: NumPy has it in the other's dtype, where this one is 1."""
    x = np.ones((), np.float32)
    for b in (2, 2.0):
        assert np.isclose(x, b, atol=0, rtol=0.4999999999999999)
        assert sg.jit(lambda x, b=b: np.isclose(x, b, atol=0, rtol=0.4999999999999999))(x)
