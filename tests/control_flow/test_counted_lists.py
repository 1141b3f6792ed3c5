"""Loops that ask how long a list of arrays is to which they append, by any name: ``while len(self.history) < n``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = [np.array([0.7, 0.35]), np.array([-0.4, 1.2])]


class Run:
    def __init__(self, x: Any) -> None:
        self.state, self.history = x, []

    def step(self) -> None:
        self.state = self.state + 0.01 * np.sin(self.state[::-1])
        self.history.append(self.state.copy())

    def until(self, n: int) -> None:
        while len(self.history) < n:
            self.step()


def in_a_method(x: Any) -> Any:
    run = Run(x)
    run.until(100)
    return np.sum(np.array(run.history)[::9] ** 2) * len(run.history)


def twice(x: Any) -> Any:
    run = Run(x)
    run.until(50)
    run.until(90)
    run.history[3][0] = 7.0
    run.history.pop()
    return np.sum(np.array(run.history)) + len(run.history) * run.state[0]


def in_a_dict(x: Any) -> Any:
    log: dict[str, list[Any]] = {"x": [], "sums": []}
    while len(log["x"]) < 40:
        x = x + 0.01 * np.sin(x)
        log["x"].append(x)
        if len(log["x"]) > 20:
            log["sums"].append(x.sum())
    return sum(log["sums"]) * len(log["x"]) / len(log["sums"])


def by_a_variable(x: Any) -> Any:
    found: list[Any] = []
    while len(found) < 60:
        x = x + 0.01 * np.sin(x)
        found.append(x)
        if len(found) % 10 == 0:
            x = x * 0.9
    return np.sum(np.array(found))


def as_a_number(x: Any) -> Any:
    run = Run(x)
    for _ in range(60):
        run.step()
        run.state = run.state * (1.0 + 0.001 * len(run.history))
    return np.sum(run.state)


def by_numbers(x: Any) -> Any:
    times, t = [0.0], Run(x)
    while len(t.history) <= 30:
        t.history.append(t.state[0] * len(t.history))
        times.append(times[-1] + 0.1 * x[1])
    return sum(t.history) * times[-1]


def two_in_a_trip(x: Any) -> Any:
    run = Run(x)
    while len(run.history) < 61:
        run.step()
        run.step()
    return np.sum(run.state) * len(run.history)


def some_trips(x: Any) -> Any:
    run, n = Run(x), 0
    while len(run.history) < 30:
        n += 1
        if n % 2:
            run.step()
        else:
            run.state = run.state * 0.99
    return np.sum(run.state) * n


def ended_by_values(x: Any) -> Any:
    run, n = Run(x), 0
    while len(run.history) < 30 and n < 80:
        n += 1
        if np.sum(np.abs(run.state)) < 1.8:
            run.step()
        else:
            run.state = run.state * 0.9
    return np.sum(run.state) * n


def emptied(x: Any) -> Any:
    run, total = Run(x), 0.0
    for _ in range(40):
        run.step()
        if len(run.history) == 7:
            total = total + np.sum(run.history[2])
            run.history.clear()
    return total + np.sum(run.state)


ROLLED = [in_a_method, twice, in_a_dict, by_a_variable, as_a_number, by_numbers]
OTHERWISE = [two_in_a_trip, some_trips, ended_by_values, emptied]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*ROLLED, *OTHERWISE], ids=lambda f: f.__name__)
def test_lists_whose_length_is_asked(f: Callable[[Any], Any], backend: str) -> None:
    value_and_grad, step = sg.value_and_grad(f, backend=backend), 1e-6
    for x in POINTS:
        value, slope = value_and_grad(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(2)]
        np.testing.assert_allclose(slope, apart, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", ROLLED, ids=lambda f: f.__name__)
def test_a_loop_that_asks_is_one_region(f: Callable[[Any], Any]) -> None:
    how = sg.explain(sg.grad(f))(POINTS[0])["how it runs"]
    assert "one region" in how and "unrolled" not in how


def test_a_loop_that_no_length_ends() -> None:
    def f(x: Any) -> Any:
        log: dict[str, list[Any]] = {"x": []}
        while len(log["x"]) >= 0:
            x = x * 0.9
            log["x"].append(x)
            if np.sum(x) < 0.5:
                break
        return np.sum(x) * len(log["x"])

    x = np.array([0.7, 0.35])
    assert sg.jit(f)(x) == f(x)
