"""What is written in i0e, of which the kink at 0 is that of the absolute value, and smooth, has its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import srcgrad as sg
from tests.ir.passes.at_zero import check_derivatives

AT_ZERO: dict[str, tuple[Any, float]] = {
    "itself, as from either side": (special.i0e, 3 / 2),
    "of a square": (lambda x: special.i0e(x**2), -2.0),
    "of what is not positive": (lambda x: special.i0e(np.cos(x) - 1), -1.0),
    "the logarithm of I0": (lambda x: np.log(special.i0e(x)) + np.abs(x), 1 / 2),
    "a reciprocal": (lambda x: 1 / special.i0e(x), 1 / 2),
    "of order 0": (lambda x: special.ive(0, x**2), -2.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_second_derivatives_at_zero(name: str, backend: str) -> None:
    f, second = AT_ZERO[name]
    check_derivatives(f, 0.0, second, backend, rtol=1e-14)


def test_of_a_length() -> None:
    """The density of a direction in the plane, by its vector."""
    vector = np.zeros(2)
    found = sg.hessian(lambda v: np.log(special.i0e(np.linalg.norm(v))) + np.linalg.norm(v))(vector)
    np.testing.assert_allclose(found, 0.5 * np.eye(2), rtol=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_orders_from_one_side(order: int) -> None:
    """Of exp(-t) I0(t), as of what reaches 0 from above."""

    def f(x: Any) -> Any:
        return special.i0e(x**2)

    for _ in range(order):
        f = sg.grad(f)
    assert f(0.0) == [0.0, -2.0, 0.0, 18.0][order - 1]


def test_nothing_changes_elsewhere() -> None:
    places = np.array([-3.0, -1e-8, 0.0, 1e-300, 0.5, 800.0])
    slopes = sg.grad(lambda x: np.sum(special.i0e(x)))(places)
    expected = special.i1e(places) - np.sign(places) * special.i0e(places)
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)
