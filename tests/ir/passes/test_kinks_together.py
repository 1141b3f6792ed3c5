"""Second derivatives at kinks of norms and extremes, and where kinks are summed, multiplied and moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform

import srcgrad as sg

Function = Callable[[Any], Any]
BACKENDS = ["numpy", "llvm"]
MODES = [sg.jacfwd, sg.jacrev]
I2, O2 = np.eye(2), np.zeros(2)
W = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, -1.0]])
COLUMNS = np.diag((W**2).sum(0))
PLACES = np.array([1, 0, 1])


def matern(r: Any, order: float) -> Any:
    s = np.sqrt(2 * order)
    return (1 + s * r + (s * r) ** 2 / 3 * (order > 2)) * np.exp(-s * r)


def both_extremes(x: Any) -> Any:
    return np.maximum(x[0], x[1]) ** 2 + np.minimum(x[1], x[0]) ** 2


def log_of_sum(x: Any) -> Any:
    high, low = np.maximum(x[0], x[1]), np.minimum(x[0], x[1])
    return high + np.log1p(np.exp(low - high))


def elements(x: Any) -> Any:
    y = np.abs(x)
    return y[0] * y[0] + np.cos(y[1]) + np.sum(y[::-1] * np.cumsum(np.concatenate([y, y]))[1:3])


def symlog(x: Any) -> Any:
    return np.sign(x) * np.log1p(np.abs(x))


def copied(x: Any) -> Any:
    return np.copysign(np.log1p(np.abs(x)), x)


POINTS: dict[str, tuple[Function, Any, Any]] = {
    "Matérn 3/2 of a norm": (lambda x: matern(np.linalg.norm(x), 1.5), O2, -3 * I2),
    "Matérn 5/2 of a norm": (lambda x: matern(np.linalg.norm(x), 2.5), O2, -5 / 3 * I2),
    "Matérn 5/2 of hypot": (lambda x: matern(np.hypot(x[0], x[1]), 2.5), O2, -5 / 3 * I2),
    "cosine of a norm": (lambda x: np.cos(np.linalg.norm(W @ x)), O2, -W.T @ W),
    "cosine of a standard deviation": (lambda x: np.cos(np.std(x)), O2, -np.array([[1, -1], [-1, 1]]) / 4),
    "power of a norm": (lambda x: np.linalg.norm(x) ** 3, O2, 0 * I2),
    "square of a sum": (lambda x: np.sum(np.abs(x)) ** 2, O2, 2 * I2),
    "square of the mean of one": (lambda x: np.mean(np.abs(x)) ** 2, np.zeros(1), np.full((1, 1), 2.0)),
    "squares of products": (lambda x: np.sum((W @ np.abs(x)) ** 2), O2, 2 * COLUMNS),
    "cosines of products": (lambda x: np.sum(np.cos(W @ np.abs(x))), O2, -COLUMNS),
    "a product with itself": (lambda x: np.abs(x) @ np.abs(x), O2, 2 * I2),
    "a quadratic form": (lambda x: np.abs(x) @ (W.T @ W) @ np.abs(x), O2, 2 * COLUMNS),
    "an outer product": (lambda x: np.sum(np.outer(np.abs(x), np.abs(x))), O2, 2 * I2),
    "products of products": (lambda x: np.sum((np.abs(x)[:, None] * W.T) @ (np.abs(x) * W)), O2, 2 * COLUMNS),
    "elements": (elements, O2, np.diag([6.0, 1.0])),
    "read at indices": (lambda x: np.sum(np.abs(x)[PLACES]) ** 2, O2, np.diag([2.0, 8.0])),
    "written at indices": (lambda x: np.sum(np.diag(np.abs(x)) ** 2), O2, 2 * I2),
    "a square of a rectified number": (lambda x: np.maximum(x, 0) ** 2, 0.0, 1.0),
    "one of a bound": (lambda x: np.clip(x, 0, 1) ** 2, 0.0, 1.0),
    "both rectified squares": (lambda x: np.maximum(x, 0) ** 2 + np.minimum(0, x) ** 2, 0.0, 2.0),
    "a size by extremes": (lambda x: np.cos(np.maximum(x, -x)), 0.0, -1.0),
    "rectified and size": (lambda x: np.maximum(0, x) * np.abs(x), 0.0, 1.0),
    "size of a difference": (
        lambda x: np.maximum(x[0], x[1]) * np.abs(x[1] - x[0]),
        np.ones(2),
        np.array([[1.0, -1.0], [-1.0, 1.0]]),
    ),
    "squares of two that tie": (both_extremes, np.ones(2), 2 * I2),
    "logarithm of a sum of two that tie": (log_of_sum, np.ones(2), np.array([[0.25, -0.25], [-0.25, 0.25]])),
    "product of two that tie": (
        lambda x: np.maximum(x[0], x[1]) * np.minimum(x[0], x[1]),
        np.ones(2),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
    ),
    "kinks apart": (lambda x: np.abs(x[0]) * np.abs(x[1]), O2, 0 * I2),
    "a signed logarithm": (symlog, 0.0, 0.0),
    "the size of a square": (lambda x: np.abs(x**2), 0.0, 2.0),
    "the size of a size": (lambda x: np.abs(np.abs(x)) * np.abs(x), 0.0, 2.0),
    "a square and its bound": (lambda x: np.maximum(0.0, np.sum(x * x)), O2, 2 * I2),
    "a copied sign": (copied, 0.0, 0.0),
    "the square of one": (lambda x: copied(x) ** 2, 0.0, 2.0),
    "signs of elements": (lambda x: np.sum(np.sin(copied(x)) * x[::-1]), O2, np.array([[0.0, 2.0], [2.0, 0.0]])),
    "a root of a fourth power": (lambda x: np.sqrt(x**4), 0.0, 2.0),
    "roots of fourth powers": (lambda x: np.sum(np.sqrt(np.power(x, 4.0))), O2, 2 * I2),
    "a root of the square of a square": (lambda x: np.sqrt(np.square(x) ** 2), 0.0, 2.0),
    "a root of a sixth power": (lambda x: np.sqrt(x**6), 0.0, 0.0),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", POINTS)
def test_second_derivatives_at_kinks(name: str, backend: str) -> None:
    f, x, expected = POINTS[name]
    found = [outer(inner(f, backend=backend), backend=backend)(x) for outer in MODES for inner in MODES]
    for hessian in [*found, sg.hessian(f, backend=backend)(x)]:
        np.testing.assert_allclose(hessian, expected, rtol=1e-13, atol=1e-14)
    # beside the kink all is as it was
    away = x + np.array([0.3, -0.7])[: np.size(x)] if np.ndim(x) else 0.3
    np.testing.assert_allclose(sg.hessian(f, backend=backend)(away), differences(f, away), rtol=1e-6, atol=1e-7)


def differences(f: Function, x: Any) -> Any:
    """The Hessian by central differences of gradients."""
    step, slope = 1e-5, sg.grad(f)
    if not np.ndim(x):
        return (slope(x + step) - slope(x - step)) / (2 * step)
    return np.array([(slope(x + e) - slope(x - e)) / (2 * step) for e in step * np.eye(len(x))])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sign_times_what_it_makes_odd_has_its_slope(backend: str) -> None:
    for mode in MODES:
        for odd in (symlog, copied):
            assert mode(odd, backend=backend)(0.0) == 1.0
            np.testing.assert_array_equal(mode(odd, backend=backend)(np.zeros(2)), I2)
        # a jump has the slope of the side that is taken, in what the size is times too
        jump = mode(lambda x: np.copysign(x[1] * np.abs(x[0]) + x[1], x[0]), backend=backend)
        np.testing.assert_array_equal(jump(np.array([-0.0, 3.0])), np.array([0.0, -1.0]))
    assert sg.jit(lambda x: np.sign(x) * sg.grad(np.abs)(x), backend=backend)(0.0) == 0.0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "distances",
    [
        lambda x: np.linalg.norm(x[:, None] - x, axis=-1),
        lambda x: cdist(x, x),
        lambda x: squareform(pdist(x)),
    ],
)
def test_hessians_of_kernels_where_points_are_equal(distances: Function, backend: str) -> None:
    weights = np.arange(9.0).reshape(3, 3) + 1.0

    def f(x: Any) -> Any:
        return np.sum(weights * matern(distances(x), 2.5))

    def gradient(x: Any) -> Any:
        """d/dr of the kernel is -5/3 r (1 + sqrt(5) r) exp(-sqrt(5) r), times (x - y)/r."""
        away = x[:, None] - x
        s = np.sqrt(5.0) * np.sqrt((away**2).sum(-1))
        factor = -5 / 3 * (1 + s) * np.exp(-s) * (weights + weights.T)
        return (factor[:, :, None] * away).sum(1)

    x = np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 0.0]])
    np.testing.assert_allclose(sg.grad(f, backend=backend)(x), gradient(x), rtol=1e-13, atol=1e-14)
    step = 1e-6
    expected = [(gradient(x + e) - gradient(x - e)) / (2 * step) for e in step * np.eye(6).reshape(6, 3, 2)]
    for hessian in (sg.hessian(f, backend=backend)(x), sg.jacrev(sg.grad(f, backend=backend), backend=backend)(x)):
        np.testing.assert_allclose(hessian.reshape(6, 3, 2), expected, rtol=1e-6, atol=1e-5)


def test_shares_of_ties_are_not_kept_for_the_trips_of_a_loop() -> None:
    def followed(x: Any) -> Any:
        a = x
        for _ in range(300):
            a = np.maximum(0.99 * a, x * 0.98)
        return np.sum(a)

    text = sg.explain(sg.grad(followed))(np.arange(60.0))["optimised ir"]
    assert "bool[300,60]" in text and "f64[300,60]" not in text
