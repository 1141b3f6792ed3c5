"""Squares of norms, deviations and hypotenuses are smooth where these have a kink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[..., Any]
ZEROS = np.zeros((2, 3))
WIDTH = 1.5
CASES: list[tuple[Function, Function, Any]] = [
    (lambda x: np.std(x) ** 2, np.var, np.ones(3)),
    (lambda x: np.square(np.std(x, ddof=1)), lambda x: np.var(x, ddof=1), np.full(4, 2.0)),
    (lambda x: np.sum(np.std(x, axis=0) * np.std(x, axis=0)), lambda x: np.sum(np.var(x, axis=0)), np.ones((2, 3))),
    (lambda x: np.sum(np.std(x, axis=1, keepdims=True) ** 2.0), lambda x: np.sum(np.var(x, axis=1)), np.zeros((2, 3))),
    (lambda x: np.hypot(x[0], x[1]) ** 2, lambda x: x[0] * x[0] + x[1] * x[1], np.zeros(2)),
    (lambda x: (3.0 * np.hypot(x[0], x[1]) / 2.0) ** 2, lambda x: 2.25 * (x @ x), np.zeros(2)),
    (lambda x: (np.linalg.norm(x) / 2.0) ** 2, lambda x: 0.25 * (x @ x), np.zeros(3)),
    (lambda x: np.std(x, axis=1)[0] ** 2, lambda x: np.var(x[0]), np.ones((2, 3))),
    (
        lambda x: np.sum(np.linalg.norm(x, axis=1)[np.array([1, 0, 1])] ** 2),
        lambda x: np.sum(x * x) + x[1] @ x[1],
        ZEROS,
    ),
    (lambda x: np.sum(np.hypot(x, 2.0 * x)[:, ::-2].T.reshape(-1) ** 2), lambda x: 5.0 * np.sum(x[:, ::2] ** 2), ZEROS),
    (lambda x: sum(r**2 for r in np.linalg.norm(x, axis=1)), lambda x: np.sum(x * x), ZEROS),
    (
        lambda x: np.sum(np.array([np.linalg.norm(x[0]) / 3.0, x[1, 0]]) ** 2),
        lambda x: x[0] @ x[0] / 9.0 + x[1, 0] ** 2,
        ZEROS,
    ),
    (lambda x: np.var(x), lambda x: np.sum((x - np.mean(x)) ** 2) / x.size, np.ones(3)),
    (lambda x: np.exp(-((np.linalg.norm(x) / WIDTH) ** 2)), lambda x: np.exp(-(x @ x) / WIDTH**2), np.zeros(3)),
    (lambda x: np.sum((WIDTH * np.abs(x) * np.exp(x)) ** 2), lambda x: np.sum((WIDTH * x * np.exp(x)) ** 2), ZEROS),
    (lambda x: np.sum((-np.abs(x)) ** 2), lambda x: np.sum(x * x), ZEROS),
    (
        lambda x: np.sum((np.abs(x) * np.hypot(x, 1.0)) ** 2),
        lambda x: np.sum(x * x * (x * x + 1.0)),
        ZEROS,
    ),
]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("outer", [sg.jacfwd, sg.jacrev])
@pytest.mark.parametrize("inner", [sg.jacfwd, sg.jacrev])
@pytest.mark.parametrize(("f", "smooth", "kink"), CASES)
def test_second_derivatives_are_those_of_the_sum(
    f: Function, smooth: Function, kink: Any, inner: Any, outer: Any, backend: str
) -> None:
    for x in (kink, np.arange(1.0, kink.size + 1).reshape(kink.shape)):
        expected = outer(inner(smooth), backend=backend)(x)
        np.testing.assert_allclose(outer(inner(f), backend=backend)(x), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(inner(f, backend=backend)(x), inner(smooth)(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_squares_keep_the_infinite_and_the_dtype(backend: str) -> None:
    def f(x: Any) -> Any:
        return np.hypot(x[0], x[1]) ** 2

    value = sg.value_and_grad(f, backend=backend)
    for point in ([np.inf, np.nan], [np.nan, -np.inf], [np.nan, 1.0], [1e200, 1.0]):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(value(np.array(point))[0], f(np.array(point)))
    assert value(np.zeros(2, np.float32))[1].dtype == np.float32
    assert sg.hessian(lambda x: np.std(x) ** 2, backend=backend)(np.ones(2, np.float32)).dtype == np.float32


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("scaled", [lambda norm: norm * np.inf, lambda norm: norm / 0.0, lambda norm: norm * 0.0])
def test_numbers_that_make_nan_of_a_zero_scale_no_parts(scaled: Function, backend: str) -> None:
    for x in (np.array([0.0, 1.0]), np.array([np.inf, 1.0])):
        for norm in (np.linalg.norm, lambda x: np.hypot(x[0], x[1]), np.std):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(
                    sg.jit(lambda x, norm=norm: scaled(norm(x)) ** 2, backend=backend)(x), scaled(norm(x)) ** 2
                )
