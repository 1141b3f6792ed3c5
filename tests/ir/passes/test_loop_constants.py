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
