"""``and`` and ``or`` of numbers where only their truth is asked: in tests, under ``not``, in comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def until_the_step_is_zero(x: Any) -> Any:
    e = x
    while (step := np.sin(e) - x) and abs(step) > 1e-10:
        e = e - step
    return e


def with_a_residual(x: Any) -> Any:
    r = 1.0
    while r and abs(r * r - x) > 1e-12:
        r = 0.5 * (r + x / r)
    return r


def in_an_expression(x: Any) -> Any:
    return x * 2 if x and x > 0.2 else x


def under_not(x: Any) -> Any:
    if not (x - 0.4 and x > 0.5):
        return x * x
    return x


def in_a_comprehension(x: Any) -> Any:
    return sum(x * k for k in range(4) if x - k and (x > 0.2 or k))


def none_or_a_number(x: Any) -> Any:
    best, error = None, x
    for _ in range(30):
        error = error * 0.7
        if (best and error < best) or not best:
            best = error
    return best


def nested(x: Any) -> Any:
    n = 20
    while (n and x) or n > 25:
        x = x * 0.9
        n -= 1
    return x


def of_the_value(x: Any) -> Any:
    """Here the number counts."""
    return (x and x * 2) or 3.0


CASES = (
    until_the_step_is_zero, with_a_residual, in_an_expression, under_not, in_a_comprehension, none_or_a_number, nested,
    of_the_value,
)  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_only_the_truth_of_a_number_counts_in_a_test(f: Callable[[Any], Any], backend: str) -> None:
    derivative = sg.value_and_grad(f, backend=backend)
    for x in (0.3, 0.9, 0.1):
        value, slope = derivative(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-5)
        assert sg.jvp(f, (x,), (1.0,), backend=backend)[1] == pytest.approx(slope, rel=1e-12)
    assert "One program" in sg.explain(derivative)(0.3)["how it runs"]
