"""A variable that is bound on some paths only: its value where it is bound, else Python's UnboundLocalError."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def last_of_a_long_loop(x: Any) -> Any:
    for k in range(50):
        if x[k % 3] > 0:
            last = x[k % 3] * k
    return last * 2


def last_of_a_while(x: Any) -> Any:
    n = 0
    while n < abs(x[0]):
        if x[1] > n:
            last = x[1] * n + x[0]
        n += 1
    return last**2


def inner_condition(x: Any) -> Any:
    if x[0] > 0:
        if x[1] > 0:
            y = x[1] ** 2
    else:
        y = x[2] * 3
    return y * x[0]


def two_conditions(x: Any) -> Any:
    if x[0] > 0:
        y = x * 2
    if x[1] > 0:
        y = x**2
    return np.sum(y)


def inside_a_loop_inside(x: Any) -> Any:
    total = 0.0
    for _ in range(40):
        for k in range(35):
            if x[k % 3] > 1.0:
                found = np.sin(x[k % 3] * k)
        total = total * 0.9 + found
    return total


def the_first_that_works(x: Any) -> Any:
    shift = 0.01
    for _ in range(12):
        try:
            factor = np.linalg.cholesky(np.outer(x, x) + (shift - 1.0) * np.eye(3))
            break
        except np.linalg.LinAlgError:
            shift *= 3
    return np.sum(factor)


FUNCTIONS = (
    last_of_a_long_loop, last_of_a_while, inner_condition, two_conditions, inside_a_loop_inside, the_first_that_works,
)  # fmt: skip
POINTS = tuple(map(np.array, ([1.5, 2.0, 0.3], [-1.5, -2.0, -3.0], [-1.7, 2.0, -3.0], [0.2, -0.4, 0.1])))


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_variable_that_is_bound_on_some_paths(function: Callable[[Any], Any], backend: str) -> None:
    run, slope = sg.jit(function, strict=True, backend=backend), sg.grad(function, backend=backend)
    raised = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in POINTS:
            try:
                expected = function(x)
            except UnboundLocalError:
                raised += 1
                for call in (run, slope):
                    with pytest.raises(UnboundLocalError, match="where it is not associated with a value"):
                        call(x)
                continue
            np.testing.assert_allclose(run(x), expected, rtol=1e-12)
            steps = 1e-6 * np.eye(3)
            differences = [(function(x + step) - function(x - step)) / 2e-6 for step in steps]
            np.testing.assert_allclose(slope(x), differences, rtol=1e-5, atol=1e-6)
    assert raised or function is the_first_that_works
