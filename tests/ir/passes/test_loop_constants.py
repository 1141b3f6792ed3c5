"""What a loop's trips share is computed before it, and single numbers stay numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import srcgrad as sg


def test_a_number_that_trips_divide_an_array_by_is_no_array() -> None:
    def wrapped(x: Any, side: Any) -> Any:
        for _ in range(20):
            x = np.sin(x - side * np.round(x / side))
        return x

    x, side = np.linspace(0.0, 9.0, 30), np.float64(2.5)
    lines = sg.explain(sg.jit(wrapped))(x, side)["optimised ir"].splitlines()
    (loop,) = (k for k, line in enumerate(lines) if "= for" in line)
    assert not any("broadcast" in line for line in lines[:loop])
    np.testing.assert_allclose(sg.jit(wrapped)(x, side), wrapped(x, side), rtol=1e-13, atol=1e-13)


def test_an_array_of_one_number_that_is_more_than_a_factor_is_made_once() -> None:
    """What is written as a whole is an array in any case; so is what a product of matrices reads."""

    def products(m: Any, number: Any) -> Any:
        for _ in range(20):
            m = np.tanh(m @ np.full_like(m, number))
        return m

    m, number = np.random.default_rng(0).normal(size=(5, 5)), np.float64(0.3)
    lines = sg.explain(sg.jit(products))(m, number)["optimised ir"].splitlines()
    (loop,) = (k for k, line in enumerate(lines) if "= for" in line)
    assert any("broadcast" in line for line in lines[:loop])
    assert not any("broadcast" in line for line in lines[loop:])
    np.testing.assert_allclose(sg.jit(products)(m, number), products(m, number), rtol=1e-13)


def test_numbers_of_loops_tell_limits() -> None:
    """Where one is as an array, as in 1 + exp(-x) of a matrix, as well: so there is no mask of what overflows."""

    def gated(x: Any, w: Any) -> Any:
        h = np.zeros((8, 16))
        for _ in range(20):
            gate = h @ w
            h = h / (1 + np.exp(-gate)) + x
        return np.sum(h)

    x, w = np.sin(np.arange(128.0)).reshape(8, 16), np.cos(np.arange(256.0)).reshape(16, 16)
    program = str(sg.explain(sg.grad(gated, (0, 1), backend="numpy"))(x, w)["optimised ir"])
    assert "expit" in program and "is_inf" not in program
    for found, wanted in zip(sg.grad(gated, (0, 1))(x, w), sg.grad(gated, (0, 1), backend="numpy")(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
        assert np.all(np.isfinite(found))


def test_limits_of_what_trips_share_are_taken() -> None:
    """Though it is computed before the loop: the slope of a quotient by what overflows was nan."""

    def divided(x: Any) -> Any:
        h = np.ones_like(x)
        for _ in range(20):
            h = h / (np.exp(x) + 1) + 0.1
        return np.sum(h)

    x = np.array([0.1, -900.0, 900.0])
    slope = (divided(x[:1] + 1e-5) - divided(x[:1] - 1e-5)) / 2e-5
    for backend in ("numpy", "llvm"):
        np.testing.assert_allclose(sg.grad(divided, backend=backend)(x), [slope, 0.0, 0.0], rtol=1e-8)
