"""Second derivatives at 0 of what is smooth there although it is written in abs(x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[[Any], Any]
BACKENDS = ["numpy", "llvm"]


def twice(f: Function, backend: str) -> list[Function]:
    modes = [sg.jacfwd, sg.jacrev]
    nested = [outer(inner(f, backend=backend), backend=backend) for outer in modes for inner in modes]
    inside = sg.jit(lambda x: sg.jacfwd(sg.grad(f))(x), backend=backend)
    return [*nested, sg.hessian(f, backend=backend), inside]


def log_cosh(x: Any) -> Any:
    return abs(x) + np.log1p(np.exp(-2 * abs(x)))


def logistic(x: Any) -> Any:
    return np.maximum(x, 0) - 0.3 * x + np.log1p(np.exp(-np.abs(x)))


def matern(x: Any) -> Any:
    return (1 + abs(x) + x**2 / 3) * np.exp(-abs(x))


def along_nodes(x: Any) -> Any:
    return np.sum(np.log1p(np.exp(-np.abs(x) * np.arange(1.0, 4.0))))


def both_sides(x: Any) -> Any:
    """cos(2x) on one side, 1 on the other."""
    return np.cos(abs(x) + x)


def chosen(x: Any) -> Any:
    return np.where(abs(x) < 1, np.exp(-abs(x)) + abs(x), 0.0)


def square(x: Any) -> Any:
    return np.abs(np.sum(np.stack([x, x]))) ** 2


NUMBERS = [
    (log_cosh, 1.0),
    (logistic, 0.25),
    (matern, -1 / 3),
    (along_nodes, 14 / 4),
    (both_sides, -2.0),
    (lambda x: np.cos(abs(x)), -1.0),
    (lambda x: abs(x) * x, 0.0),
    (chosen, 1.0),
    (lambda x: np.cosh(abs(x)) / (2 - np.cos(abs(x))), 0.0),
    (square, 8.0),
]
WITHOUT_NAN = (chosen, square)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("f", "expected"), NUMBERS)
def test_second_derivatives_at_zero(f: Function, expected: float, backend: str) -> None:
    for derivative in twice(f, backend):
        for zero in (0.0, -0.0):
            np.testing.assert_allclose(derivative(zero), expected, rtol=1e-14, atol=1e-14)
        step = 1e-5
        slope = sg.grad(f, backend=backend)
        for x in (0.7, -0.4):
            np.testing.assert_allclose(derivative(x), (slope(x + step) - slope(x - step)) / (2 * step), rtol=1e-8)
        assert np.isnan(derivative(np.nan)) or f in WITHOUT_NAN


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_hessian_of_a_logistic_regression_at_zero(backend: str) -> None:
    x, y = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]]), np.array([1.0, 0.0, 1.0])

    def loss(w: Any) -> Any:
        z = x @ w
        return np.mean(np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z))))

    expected = x.T @ x / 12
    for derivative in twice(loss, backend):
        np.testing.assert_allclose(derivative(np.zeros(2)), expected, rtol=1e-14)
    np.testing.assert_allclose(sg.hvp(loss, (np.zeros(2),), (np.ones(2),)), expected.sum(0), rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_and_columns_of_a_kink(backend: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.cos(np.abs(x).T[:, :, None] * np.arange(1.0, 3.0)) * np.arange(1.0, 4.0)[:, None, None])

    x = np.array([[0.0, 1.0, 0.0], [0.5, -0.0, -1.0]])
    weights = np.broadcast_to(np.arange(1.0, 4.0), x.shape)
    expected = np.diag((-weights * (np.cos(x) + 4 * np.cos(2 * x))).ravel())
    for derivative in twice(f, backend):
        np.testing.assert_allclose(derivative(x).reshape(6, 6), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_of_every_order_at_zero(backend: str) -> None:
    def even(x: Any) -> Any:
        return np.cos(abs(x))

    f: Function = even
    for expected in (1.0, 0.0, -1.0, 0.0, 1.0):
        np.testing.assert_array_equal(abs(f(0.0) - expected), 0.0)
        f = sg.grad(f, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_products_of_gradients_are_products_of_numbers(backend: str) -> None:
    """The slope of abs at 0 is 0, and so is its square: a gradient is not differentiated by being multiplied."""

    def penalty(x: Any) -> Any:
        return 2.0 * np.sum(np.abs(x)) + np.sum(x)

    def squares(x: Any) -> Any:
        g = sg.grad(penalty)(x)
        return g * g

    x = np.array([0.0, 1.0, -1.0])
    np.testing.assert_array_equal(sg.jit(squares, backend=backend)(x), [1.0, 9.0, 1.0])
    np.testing.assert_array_equal(sg.jacfwd(squares, backend=backend)(x), np.zeros((3, 3)))
    pulled = sg.jit(lambda x: sg.vjp(np.abs, x)[1](sg.jvp(np.abs, (x,), (np.ones(3),))[1])[0], backend=backend)
    np.testing.assert_array_equal(pulled(x), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(sg.hessian(lambda x: np.sum(np.abs(x)), backend=backend)(x), np.zeros((3, 3)))


EXTREMES: dict[str, tuple[Any, Any, Any]] = {
    "max times min": (lambda x: np.max(x) * np.min(x), np.ones(2), [[0, 1], [1, 0]]),
    "squared range": (lambda x: np.ptp(x) ** 2, np.ones(2), [[2, -2], [-2, 2]]),
    "sum of squares": (lambda x: np.max(x) ** 2 + np.min(x) ** 2, np.ones(2), [[2, 0], [0, 2]]),
    "norms": (
        lambda x: np.linalg.norm(x, np.inf) ** 2 + np.linalg.norm(x, -np.inf) ** 2,
        np.zeros(2),
        [[2, 0], [0, 2]],
    ),
    "rows": (lambda x: np.sum(np.max(x, axis=1) * np.min(x, axis=1)), np.ones((1, 2)), [[[[0, 1]], [[1, 0]]]]),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", EXTREMES)
def test_what_is_smooth_in_the_extremes_of_two_elements(name: str, backend: str) -> None:
    """Shares of both elements gave 1/2 for each second derivative of max times min, and 0 for the squared range."""
    f, x, expected = EXTREMES[name]
    for inner in (sg.jacfwd, sg.jacrev):
        np.testing.assert_array_equal(sg.jacfwd(inner(f, backend=backend), backend=backend)(x), expected)


INVERSE = np.linalg.inv(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]))
MIXED: dict[str, tuple[Function, Any]] = {
    "fft": (lambda x: np.sum(np.abs(np.fft.fft(np.abs(x), axis=0)) ** 2), 6.0),
    "amplitudes": (lambda x: np.sum(np.fft.irfft(np.abs(np.fft.rfft(x)), 4) ** 2), 2.0),
    "sort": (lambda x: np.sum(np.sort(np.abs(x)) ** 2), 2.0),
    "convolve": (lambda x: sum(np.sum(np.convolve(np.abs(row), [1.0, 2.0]) ** 2) for row in x), 10.0),
    "solve": (
        lambda x: np.sum(np.linalg.solve(np.linalg.inv(INVERSE), np.abs(x)) ** 2),
        np.repeat(2 * (INVERSE**2).sum(0), 4),
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MIXED)
def test_kinks_behind_what_mixes_elements(name: str, backend: str) -> None:
    """The energy of a spectrum is that of the signal, so that abs of it is smooth; its Hessian at 0 was 0."""
    f, diagonal = MIXED[name]
    for derivative in (sg.hessian(f, backend=backend), sg.jacrev(sg.grad(f, backend=backend), backend=backend)):
        found = derivative(np.zeros((3, 4))).reshape(12, 12)
        np.testing.assert_allclose(found, np.diag(np.full(12, diagonal)), rtol=1e-13, atol=1e-14)


def test_chains_of_kinks_are_compiled_in_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Hessian times a vector of twelve maxima, each in the next one, was compiled for hours."""

    def f(x: Any) -> Any:
        a = np.maximum(np.maximum(np.maximum(x, 1.1 * np.sin(x)), np.cos(x)), x**2 - 1)
        return np.sum(np.maximum(np.maximum(a, np.exp(-x)), x**3) ** 2)

    def lines(x: Any) -> int:
        return len(sg.source(sg.jacfwd(sg.grad(f)))(x).splitlines())

    x = np.array([0.3, 1.7])
    expected = np.array([-2 * np.cos(0.6), 30 * 1.7**4])
    all_pairs = lines(x)
    monkeypatch.setattr("srcgrad.ir.passes.kinks.MUCH", 16)
    assert lines(np.append(x, 0.5)) < all_pairs / 2
    np.testing.assert_allclose(sg.hvp(f, (x,), (np.ones(2),), backend="numpy"), expected, rtol=1e-12)
