"""Roots of functions that depend on traced values, by the functions of ``scipy.optimize`` that are given a bracket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import bisect, brenth, brentq, newton, ridder, root_scalar, toms748

import srcgrad as sg
from srcgrad.errors import UnsupportedError

CASES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "a parameter": (lambda p: brentq(lambda t: np.cos(t) - p * t, 0, 2), 0.7),
    "more arguments": (lambda p: brentq(lambda t, a, b: t**3 - a * b, 0.0, 5.0, args=(p, 2.0)), 0.7),
    "limits": (lambda p: brentq(lambda t: np.exp(t) - 2 * p, p - 1, p + 2), 1.7),
    "limits in the other order": (lambda p: brentq(lambda t: np.exp(t) - 2 * p, 3, 0), 1.7),
    "a branch": (lambda p: brentq(lambda t: t - p if t < 1 else 2 * t - p - 1, 0, 5), 3.7),
    "far from a line": (lambda p: brentq(lambda t: np.expm1(30 * (t - p)), -3, 2), 0.4),
    "of an integral": (lambda p: brentq(lambda t: quad(lambda s: np.exp(-s * s * p), 0, t)[0] - 0.3, 0, 5), 1.7),
    "a loop": (lambda p: sum(brentq(lambda t, k=k: t**3 + t - p * k, 0, 9) for k in range(1, 4)), 1.7),
    "brenth": (lambda p: brenth(lambda t: np.cos(t) - p * t, 0, 2), 0.7),
    "bisect": (lambda p: bisect(lambda t: np.cos(t) - p * t, 0, 2), 0.7),
    "ridder": (lambda p: ridder(lambda t: np.cos(t) - p * t, 0, 2), 0.7),
    "toms748": (lambda p: toms748(lambda t: np.cos(t) - p * t, 0, 2), 0.7),
    "root_scalar": (lambda p: root_scalar(lambda t: np.cos(t) - p * t, bracket=[0, 2]).root, 0.7),
    "root_scalar by name": (
        lambda p: root_scalar(lambda t, a: np.cos(t) - a * t, (p,), "bisect", (0, 2), xtol=1e-14).root,
        0.7,
    ),
    "root_scalar from a number": (
        lambda p: root_scalar(lambda t: t**3 - p, x0=1.0, fprime=lambda t: 3 * t**2, xtol=1e-14).root,
        0.7,
    ),
    "newton": (lambda p: newton(lambda t: t**3 - p, 1.0, tol=1e-14), 0.7),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_roots_and_their_derivatives(name: str, backend: str) -> None:
    f, p = CASES[name]
    h = 1e-3

    def slope(f: Callable[[Any], Any]) -> Any:
        return (8 * (f(p + h) - f(p - h)) - (f(p + 2 * h) - f(p - 2 * h))) / (12 * h)

    with sg.use_backend(backend):
        gradient = sg.grad(f)
        second = sg.grad(gradient)
        np.testing.assert_allclose(sg.jit(f)(p), f(p), rtol=4e-12)
        np.testing.assert_allclose(gradient(p), slope(f), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(sg.jvp(f, (p,), (1.0,))[1], gradient(p), rtol=1e-12)
        if name == "of an integral":
            return
        np.testing.assert_allclose(second(p), slope(gradient), rtol=1e-7, atol=1e-8)
        if "newton" not in name and "number" not in name:
            np.testing.assert_allclose(sg.grad(second)(p), slope(second), rtol=1e-6, atol=1e-6)


def test_the_steps_are_scipys() -> None:
    random = np.random.default_rng(3)

    def f(p: Any) -> Any:
        return brentq(lambda t: np.tanh(3 * t - p) + 0.1 * t**3 - 0.2 * p, -4.0, 5.0, xtol=1e-4)

    for p in random.uniform(-3, 3, 40):
        np.testing.assert_allclose(sg.jit(f, backend="numpy")(p), f(p), rtol=1e-13)


def test_many_roots_are_one_program() -> None:
    def f(p: Any) -> Any:
        return brentq(lambda t: t**3 + t - p, 0, 5)

    points = np.array([0.3, 0.7, 9.0])
    np.testing.assert_allclose(sg.vmap(sg.grad(f))(points), [sg.grad(f)(p) for p in points], rtol=1e-12)
    assert sg.explain(sg.grad(f))(0.3)["how it runs"].startswith("One program")


def test_at_an_end_the_root_is_the_end() -> None:
    f = sg.value_and_grad(lambda p: brentq(lambda t: t**2 - p, 0.5, 2.0))
    for end in (0.5, 2.0):
        assert f(end**2) == (end, 0.5 / end)


def test_where_a_root_does_not_vary_smoothly_the_derivative_is_undefined() -> None:
    value, slope = sg.value_and_grad(lambda p: brentq(lambda t: (t - 1.0) ** 3 - p, 0.0, 2.0))(0.0)
    assert value == 1.0
    assert not np.isfinite(slope)


def test_what_scipy_refuses_is_refused() -> None:
    for kind, f in (
        (ValueError, lambda p: brentq(lambda t: t * t + p, 0, 5)),
        (ValueError, lambda p: brentq(lambda t: t - p, 0, 5, xtol=0)),
        (ValueError, lambda p: brentq(lambda t: t - p, 0, 5, rtol=1e-30)),
        (RuntimeError, lambda p: brentq(lambda t: np.expm1(30 * (t - p)), -3, 2, maxiter=3)),
        (ValueError, lambda p: root_scalar(lambda t: t - p, method="brentq")),
    ):
        with pytest.raises(kind):
            f(0.5)
        with pytest.raises(kind):
            sg.grad(f)(0.5)
    with pytest.raises(UnsupportedError, match="full_output"):
        sg.grad(lambda p: brentq(lambda t: t - p, 0, 5, full_output=True)[0])(0.5)
