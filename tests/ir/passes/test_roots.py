"""Products of powers with roots among them have the derivatives of the power that they are, at 0 too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.ir.passes.at_zero import check_derivatives

INF = np.inf
AT_ZERO: dict[str, tuple[Any, float, float]] = {
    "a number times its root": (lambda x: x * np.sqrt(x), 0.0, INF),
    "a root times its number": (lambda x: 3.0 * np.sqrt(x) * x, 0.0, INF),
    "the cube of a root": (lambda x: np.sqrt(x) ** 3, 0.0, INF),
    "the square of a root": (lambda x: np.sqrt(x) ** 2, 1.0, 0.0),
    "the square of a scaled root": (lambda x: (3.0 * np.sqrt(x)) ** 2, 9.0, 0.0),
    "the square of a part of a root": (lambda x: (np.sqrt(x) / 4.0) ** 2, 1 / 16, 0.0),
    "a root by itself": (lambda x: np.sqrt(x) * np.sqrt(x), 1.0, 0.0),
    "roots that add up to one": (lambda x: x**0.75 * x**0.25, 1.0, 0.0),
    "a Gaussian of a root": (lambda x: np.exp(-(np.sqrt(x) ** 2) / 2), -0.5, 0.25),
    "one over the square of a root": (lambda x: 1 / (1 + np.sqrt(x) ** 2), -1.0, 2.0),
    "the fourth power of a root": (lambda x: np.sqrt(x) ** 4, 0.0, 2.0),
    "a root to a power": (lambda x: np.sqrt(x) ** 2.5, 0.0, INF),
    "a square times a root": (lambda x: x**2 * np.sqrt(x), 0.0, 0.0),
    "a power that is no root": (lambda x: x * x**0.5, 0.0, INF),
    "the root of a cube": (lambda x: np.sqrt(x**3), 0.0, INF),
    "the root of a fifth power": (lambda x: np.sqrt(x**5), 0.0, 0.0),
    "half a power": (lambda x: (x**3) ** 0.5, 0.0, INF),
    "the cube of a cube root": (lambda x: np.cbrt(x) ** 3, 1.0, 0.0),
    "the cube root of a cube": (lambda x: np.cbrt(x**3), 1.0, 0.0),
    "the cube root of less than nothing": (lambda x: np.cbrt(-8.0 * x**3), -2.0, 0.0),
    "the fourth power of a cube root": (lambda x: np.cbrt(x) ** 4, 0.0, INF),
    "the sixth power of a cube root": (lambda x: np.cbrt(x) ** 6, 0.0, 2.0),
    "cube roots": (lambda x: np.cbrt(x) ** 2 * np.cbrt(x), 1.0, 0.0),
    "odd powers of cube roots": (lambda x: np.cbrt(x) ** 5 * np.cbrt(x), 0.0, 2.0),
    "the root of a size": (lambda x: np.sqrt(np.abs(x)) ** 4, 0.0, 2.0),
    "a size and its sign": (lambda x: x * np.sqrt(x**2), 0.0, 0.0),
    "the root of a size times its number": (lambda x: x * np.sqrt(np.abs(x)), 0.0, INF),
    "the square of a root times its number": (lambda x: x * np.sqrt(x) ** 2, 0.0, 2.0),
    "powers that add up to two": (lambda x: x**0.3 * x**1.7, 0.0, 2.0),
    "twice a power": (lambda x: (2.0 * np.sqrt(x)) ** 4, 0.0, 32.0),
    "inside of others": (lambda x: np.exp(np.sqrt(x) ** 4) + np.cos(np.cbrt(x) ** 3), 0.0, 1.0),
    "a power that is one": (lambda x: 2.0 * x**1.5, 0.0, INF),
    "the square of the size of a root": (lambda x: np.abs(np.sqrt(x)) ** 2, 1.0, 0.0),
    "the root of a sum of fourth powers": (lambda x: np.sqrt(x**4 + 3.0 * x**4), 0.0, 4.0),
    "the root of a difference": (lambda x: np.sqrt(5.0 * x**4 - x**4), 0.0, 4.0),
    "the hypotenuse of squares": (lambda x: np.hypot(3.0 * x**2, 4.0 * x**2), 0.0, 10.0),
    "the hypotenuse of cubes": (lambda x: np.hypot(3.0 * x**3, -4.0 * x**3), 0.0, 0.0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_zero(name: str, backend: str) -> None:
    check_derivatives(*AT_ZERO[name], backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_nothing_changes_elsewhere(name: str, backend: str) -> None:
    """Values are those of NumPy, derivatives agree with differences, and are no numbers where values are none."""
    f, _, _ = AT_ZERO[name]
    x, step = np.array([-1.7, -0.4, 0.3, 2.0, 5e-324]), 1e-6
    with np.errstate(invalid="ignore"):
        values = f(x)
        moved = (f(x[:4] + step) - f(x[:4] - step)) / (2 * step)
        found = sg.vmap(sg.value_and_grad(f), backend=backend)(x)
        tangents = sg.jvp(f, (x[:4],), (np.ones(4),), backend=backend)[1]
    np.testing.assert_allclose(found[0], values, rtol=1e-15 if backend == "numpy" else 4e-15)
    np.testing.assert_allclose(found[1][:4], moved, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(tangents, moved, rtol=1e-7, atol=1e-8)


def test_the_square_of_a_distance_by_its_root_has_the_derivatives_of_the_square() -> None:
    def kernel(points: Any) -> Any:
        r = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
        return np.sum(np.array([[0.3, 1.0], [2.0, 0.7]]) * np.exp(-(r**2) / 2))

    points = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert not sg.grad(kernel)(points).any()
    step = 3.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_allclose(sg.hessian(kernel)(points)[:, 0, :, 0], -step, rtol=1e-15)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: (3.0 * x) ** 1000, 0.3),
        (lambda x: (1e110 * x) ** 3 * np.sqrt(x), 1e-20),
        (lambda x: (1e-110 * x) ** 3 * np.sqrt(x), 1e20),
        (lambda x: (-2.0 * x) ** 3 * np.sqrt(x), 0.3),
    ],
)
def test_factors_whose_powers_overflow(f: Any, x: float, backend: str) -> None:
    """The power of the factor alone is no number, or 0; what the program computes is one."""
    point, step = np.float64(x), np.float64(1e-6 * x)
    moved = (f(point + step) - f(point - step)) / (2 * step)
    for slope in (sg.grad(f, backend=backend)(x), sg.jvp(f, (x,), (1.0,), backend=backend)[1]):
        np.testing.assert_allclose(slope, moved, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("power", [lambda r: r * np.sqrt(r), lambda r: r**1.5, lambda r: np.sqrt(r) ** 3])
def test_sizes_of_complex_numbers(power: Any, backend: str) -> None:
    f = lambda x: power(np.abs(x * (3.0 + 4.0j)))  # noqa: E731
    slope = sg.grad(f, backend=backend)
    assert slope(0.0) == 0.0
    np.testing.assert_allclose(slope(0.5), 1.5 * 5.0**1.5 * np.sqrt(0.5), rtol=1e-14)


@pytest.mark.parametrize("f", [lambda x: np.sqrt(x) ** 2, lambda x: np.sqrt(x) * np.sqrt(x), lambda x: np.sqrt(x) ** 6])
@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_the_square_of_the_root_of_minus_zero_has_the_sign_that_numpy_gives_it(f: Any, factor: float) -> None:
    for x in (0.0, -0.0):
        value, _ = sg.value_and_grad(lambda x: factor * f(x))(x)
        assert np.signbit(value) == np.signbit(factor * f(np.float64(x)))
    assert sg.grad(lambda x: f(x) ** 2)(-0.0) == 0.0


def test_the_square_of_a_root_of_a_root_has_the_slope_of_a_root() -> None:
    """It was 0 times infinity."""
    for mode in (sg.jacfwd, sg.jacrev):
        assert mode(lambda x: np.sqrt(np.sqrt(x)) ** 2)(0.0) == INF
