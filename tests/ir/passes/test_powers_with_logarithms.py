"""xlogy(x**p, x) ends smoothly at 0, below the p-th derivative: thin-plate splines have gradients at their centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import xlogy

import srcgrad as sg
from tests.ir.passes.at_zero import check_derivatives

AT_ZERO: dict[str, tuple[Any, float]] = {
    "the square": (lambda x: xlogy(x**2, x), -np.inf),
    "the cube": (lambda x: xlogy(x**3, x), 0.0),
    "with factors": (lambda x: xlogy(-2 * x**3, 3 * np.abs(x)), 0.0),
    "of a root": (lambda x: xlogy(x * np.sqrt(x), np.sqrt(x)), -np.inf),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_zero(name: str, backend: str) -> None:
    check_derivatives(AT_ZERO[name][0], 0.0, AT_ZERO[name][1], backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["norms", "cdist", "hypot", "squares", "roots"])
def test_thin_plate_splines(name: str, backend: str) -> None:
    """As without the pairs of equal points, and with them; elsewhere nothing changes."""
    points = np.array([[0.0, 1.0], [0.5, -0.25], [0.0, 1.0]])
    weights = np.arange(9.0).reshape(3, 3)

    def total(points: Any) -> Any:
        difference = points[:, None] - points[None]
        if name == "squares":
            squares = np.sum(difference**2, axis=2)
            return np.sum(weights * xlogy(squares, squares) / 2)
        if name == "roots":
            squares = np.sum(difference**2, axis=2)
            return np.sum(weights * xlogy(squares, np.sqrt(squares)))
        if name == "cdist":
            r = cdist(points, points)
        elif name == "norms":
            r = np.linalg.norm(difference, axis=2)
        else:
            r = np.hypot(difference[..., 0], difference[..., 1])
        return np.sum(weights * xlogy(r**2, r))

    difference = points[:, None] - points[None]
    squares = np.sum(difference**2, axis=2)
    slope = weights * (1 + np.log(np.where(squares == 0, 1.0, squares)))
    expected = np.einsum("ij,ijk->ik", slope + slope.T, difference)
    np.testing.assert_allclose(sg.grad(total, backend=backend)(points), expected, rtol=1e-13)
    np.testing.assert_allclose(sg.jacfwd(total, backend=backend)(points), expected, rtol=1e-13)
    value = sg.value_and_grad(total, backend=backend)(np.zeros((3, 2)))[0]
    assert value == 0.0
    assert not np.signbit(value)


def test_what_is_not_of_one_place_is_undefined() -> None:
    """x**2 log(y) has no limit where x and y are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isnan(sg.grad(lambda x, y: xlogy(x**2, y))(0.0, 0.0))
