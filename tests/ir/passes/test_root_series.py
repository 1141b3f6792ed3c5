"""Functions of a root that are smooth where it is 0 have their derivatives there, and are the same elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from tests.ir.passes.at_zero import check_derivatives

INF = np.inf


def matern(r: Any) -> Any:
    """The Matérn kernel of 5/2."""
    t = np.sqrt(5.0) * r
    return (1 + t + t**2 / 3) * np.exp(-t)


AT_ZERO: dict[str, tuple[Any, float, float]] = {
    "cos": (lambda x: np.cos(np.sqrt(x)), -1 / 2, 1 / 12),
    "cosh of a scaled root": (lambda x: np.cosh(3 * np.sqrt(x)), 9 / 2, 81 / 12),
    "the cosine of a root of half a power": (lambda x: np.cos(x**0.5), -1 / 2, 1 / 12),
    "a root times its sine": (lambda x: np.sqrt(x) * np.sin(np.sqrt(x)), 1.0, -1 / 3),
    "a root times its tangent": (lambda x: np.tanh(np.sqrt(x)) * np.sqrt(x), 1.0, -2 / 3),
    "the square of a sine": (lambda x: np.sin(np.sqrt(x)) ** 2, 1.0, -2 / 3),
    "a number over one and its root": (lambda x: x / (1 + np.sqrt(x)), 1.0, -INF),
    "a number times a logarithm": (lambda x: x * np.log1p(np.sqrt(x)), 0.0, INF),
    "the cube of an exponential": (lambda x: np.expm1(np.sqrt(x)) ** 3, 0.0, INF),
    "Matérn, 3/2": (lambda x: (1 + np.sqrt(x)) * np.exp(-np.sqrt(x)), -1 / 2, INF),
    "Matérn, 5/2": (lambda x: matern(np.sqrt(x)), -5 / 6, 25 / 12),
    "sinc": (lambda x: np.sinc(np.sqrt(x)), -(np.pi**2) / 6, np.pi**4 / 60),
    "a Bessel function": (lambda x: scipy.special.j0(np.sqrt(x)), -1 / 4, 1 / 32),
    "a quotient": (lambda x: (2 + np.sqrt(x)) / np.exp(np.sqrt(x) / 2), -1 / 4, INF),
    "inside of others": (lambda x: np.exp(2 * np.cos(np.sqrt(x)) - 2), -1.0, 1 / 6 + 1),
    "logistic": (lambda x: (scipy.special.expit(np.sqrt(x)) - 0.5) * np.sqrt(x), 1 / 4, -1 / 24),
}


INVERSES: dict[str, tuple[Any, float, float]] = {
    "the square of an angle by its sine": (lambda x: np.arcsin(np.sqrt(x)) ** 2, 1.0, 2 / 3),
    "by a sine that is no more than 1": (lambda x: (2 * np.arcsin(np.minimum(1, np.sqrt(x)))) ** 2, 4.0, 8 / 3),
    "by its sine and its cosine": (lambda x: (2 * np.arctan2(np.sqrt(x), np.sqrt(1 - x))) ** 2, 4.0, 8 / 3),
    "by its tangent": (lambda x: np.sqrt(x) * np.arctan(np.sqrt(x)), 1.0, -2 / 3),
    "the square of an area": (lambda x: np.arcsinh(np.sqrt(x)) ** 2, 1.0, -2 / 3),
    "the cosine of twice an area": (lambda x: np.cos(2 * np.arctanh(np.sqrt(x))), -2.0, -4 / 3),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", [*AT_ZERO, *INVERSES])
def test_derivatives_at_zero(name: str, backend: str) -> None:
    check_derivatives(*(AT_ZERO | INVERSES)[name], backend, rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_ZERO)
def test_nothing_changes_elsewhere(name: str, backend: str) -> None:
    f = AT_ZERO[name][0]
    places = np.array([0.0, 0.3, 1e-6, 2.0])
    value, pull = sg.vjp(f, places, backend=backend)
    np.testing.assert_allclose(value, f(places), rtol=1e-14)
    slopes = pull(np.ones(4))[0]
    for k in (1, 3):
        step = 1e-4
        numbers = [f(places[k] + j * step) for j in (-2, -1, 1, 2)]
        np.testing.assert_allclose(slopes[k], np.dot([1, -8, 8, -1], numbers) / (12 * step), rtol=1e-7)
    with np.errstate(invalid="ignore"):
        assert np.isnan(sg.grad(f, backend=backend)(-1.0))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_kernels_of_squared_distances(backend: str) -> None:
    """The diagonal of a matrix of distances is 0: gradients are those without it, and of the scale too."""
    points = np.array([[0.0, 1.0], [0.5, -0.25], [0.0, 1.0]])

    def total(points: Any, scale: Any, distance: Any = lambda squared: np.sqrt(squared)) -> Any:
        difference = points[:, None] - points[None]
        return np.sum(matern(distance(np.sum(difference**2, axis=2)) / scale) * np.arange(9.0).reshape(3, 3))

    def apart(points: Any, scale: Any) -> Any:
        return total(
            points, scale, lambda squared: np.where(squared == 0, 0, np.sqrt(np.where(squared == 0, 1, squared)))
        )

    found = sg.grad(total, argnums=(0, 1), backend=backend)(points, 0.7)
    expected = sg.grad(apart, argnums=(0, 1), backend=backend)(points, 0.7)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    f = sg.grad(lambda x: matern(np.sqrt(np.sum(x**2)) / -2.0 * -1.0))
    np.testing.assert_allclose(sg.jacrev(f, backend=backend)(np.zeros(2)), -5 / 12 * np.eye(2), rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("by_tangent", [False, True])
def test_squared_distance_on_a_sphere(backend: str, by_tangent: bool) -> None:
    """The haversine formula, where both places are one: the metric of the sphere twice."""

    def squared(p: Any, q: Any) -> Any:
        a = np.sin((q[0] - p[0]) / 2) ** 2 + np.cos(p[0]) * np.cos(q[0]) * np.sin((q[1] - p[1]) / 2) ** 2
        return (2 * (np.arctan2(np.sqrt(a), np.sqrt(1 - a)) if by_tangent else np.arcsin(np.sqrt(a)))) ** 2

    place = np.array([0.5, 0.25])
    gradient = sg.grad(squared, backend=backend)
    np.testing.assert_array_equal(gradient(place, place), 0.0)
    metric = np.diag([2.0, 2.0 * np.cos(0.5) ** 2])
    np.testing.assert_allclose(sg.jacfwd(gradient, backend=backend)(place, place), metric, rtol=1e-14)
    np.testing.assert_allclose(gradient(place, place + np.array([1e-3, 0.0])), [-2e-3, 0.0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inverse", ["arcsin", "arctan", "arcsinh", "arctanh"])
def test_inverses_around_other_places(inverse: str) -> None:
    f = getattr(np, inverse)
    found = sg.grad(lambda x: np.cos(f(0.5 - 0.25 * np.cos(np.sqrt(x)))))(0.0)
    step = 1e-6
    numbers = [np.cos(f(0.5 - 0.25 * np.cos(np.sqrt(x)))) for x in (0.0, step, 2 * step)]
    np.testing.assert_allclose(found, (-3 * numbers[0] + 4 * numbers[1] - numbers[2]) / (2 * step), rtol=1e-6)
    rooted = sg.grad(lambda x: np.cos(f(0.5 + np.sqrt(x)) - f(0.5)))(0.0)
    slope = sg.grad(f)(0.5)
    np.testing.assert_allclose(rooted, -(slope**2) / 2, rtol=1e-13)


def test_of_a_scale_that_is_an_argument() -> None:
    """u = a*sqrt(x): cos(u) is 1 - a**2*x/2 + …, and u**3 has the sign of a."""
    f = sg.grad(lambda x, a: np.cos(np.sqrt(x) * a), argnums=(0, 1))
    assert f(0.0, 3.0) == (-4.5, 0.0)
    assert sg.jacfwd(f, argnums=1)(0.0, 3.0) == (-3.0, 0.0)
    g = sg.grad(lambda x, a: np.exp(-((np.sqrt(x) / a) ** 2)))
    assert (g(0.0, 2.0), sg.jacfwd(g)(0.0, 2.0)) == (-0.25, 0.0625)
    for a in (2.0, -2.0):
        g = sg.grad(lambda x, a: (1 + np.sqrt(x) / a) * np.exp(-np.sqrt(x) / a))
        assert g(0.0, a) == -1 / 8
        assert sg.jacrev(g)(0.0, a) == np.copysign(INF, a)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 0 * np.sqrt(x) + 1,
        lambda x: np.cos(np.sqrt(x)) / np.sqrt(x),
    ],
)
def test_what_stays_undefined(f: Any) -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(sg.grad(f)(0.0))


def test_an_infinite_slope_stays_one() -> None:
    assert sg.grad(lambda x: (1 + np.sqrt(x)) * np.exp(-0.5 * np.sqrt(x)))(0.0) == INF


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("scale", [1e-200, -1e200, 5e-324])
def test_values_stay_where_the_square_of_a_scale_has_none(scale: float, backend: str) -> None:
    """0 times an overflowing square, and 0 over one that underflows, is nan."""
    f = (lambda x, a: np.cos(np.sqrt(x) * a)) if abs(scale) > 1 else (lambda x, a: np.cos(np.sqrt(x) / a))
    with np.errstate(all="ignore"):
        assert sg.value_and_grad(f, backend=backend)(0.0, scale)[0] == 1.0
