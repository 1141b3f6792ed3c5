"""Functions that are defined inside of a block, and assign variables of the functions around them (``nonlocal``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (np.array([-0.1, 0.2]), np.array([0.5, -0.5]), np.array([0.7, 0.9]))


def on_one_path(x: Any) -> Any:
    calls = 0
    if x[0] > 0.6:
        pass
    elif x[1] > 0.0:

        def count() -> None:
            nonlocal calls
            calls += 1

        count()
    return x * calls


def of_an_outer_function(x: Any) -> Any:
    calls = 0

    def middle(y: Any) -> None:
        if y > 0.0:

            def count() -> None:
                nonlocal calls
                calls += 1

            count()

    middle(x[0])
    return x * calls


def in_a_long_loop(x: Any) -> Any:
    total = 0.0
    for trip in range(30):

        def add(y: Any) -> None:
            nonlocal total
            total = total * 0.9 + y
            if y > 0.3:

                def more() -> None:
                    nonlocal total
                    total += 1.0

                more()

        add(x[0] * trip)
    return x * total


def by_a_method(x: Any) -> Any:
    total, trip = 0.0, 0
    while x[0] + trip < 5.0:

        class Adder:
            def add(self, y: Any) -> None:
                nonlocal total
                total = total + y

        Adder().add(x[1])
        trip = trip + 1
    return x * total


def of_its_own(x: Any) -> Any:
    result = x
    if x[0] > 0.0:

        def outer() -> int:
            calls = 1

            def count() -> None:
                nonlocal calls
                calls += 1

            count()
            return calls

        result = outer() * x
    return result


def in_a_try(x: Any) -> Any:
    calls = 0
    try:

        def count() -> None:
            nonlocal calls
            calls += 1

        count()
        if x[0] > 0.2:
            raise ValueError
        count()
    except ValueError:
        calls += 10
    return x * calls


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [on_one_path, of_an_outer_function, in_a_long_loop, by_a_method, of_its_own, in_a_try])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_assignments_of_outer_variables(f: Callable[[Any], Any], backend: str) -> None:
    value, slope = sg.jit(f, backend=backend), sg.jacobian(f, backend=backend)
    for x in POINTS:
        np.testing.assert_allclose(value(x), f(x), rtol=1e-13)
        differences = np.stack([(f(x + move) - f(x - move)) / 2e-6 for move in 1e-6 * np.eye(2)], axis=1)
        np.testing.assert_allclose(slope(x), differences, rtol=1e-6, atol=1e-8)
