"""``while`` loops that Python's own numbers end: one region, with Python's numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.conversion import clocks

BACKENDS = ["llvm", "numpy", "xla"]
X = np.array([0.3, 0.5, -0.2])
pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")


def slope_of(y: Any, t: Any) -> Any:
    return np.array([y[1] * (1 + t), -np.sin(y[0]), y[0] * y[2]])


def shortened_at_the_end(y: Any) -> Any:
    t, h = 0.0, 0.03
    while t < 2.0:
        h = min(h, 2.0 - t)
        half = y + 0.5 * h * slope_of(y, t)
        y = y + h * slope_of(half, t + 0.5 * h)
        t = t + h
    return np.sum(y * y) * t


def ended_by_break(y: Any) -> Any:
    t, h, k = 0, 0.05, 0
    while True:
        y = y + h * slope_of(y, t)
        t += h
        k += 1
        if k % 10 == 0:
            h *= 0.9
        if t > 1.7 or k >= 60:
            break
    return np.sum(y * y) * t + k


def counted_behind(y: Any) -> Any:
    t, h, k = 0.0, 0.011, 0
    while t < 1.0 and not k > 500:
        y = y + h * np.cos(y) if t > 0.5 else y * (1 - h)
        h = h * 1.01 if k % 2 else abs(-h)
        t, k = t + h, k + 1
    weights = np.zeros(k + int(10 * t) - 10)  # sizes are Python's numbers
    for place in range(k):
        weights[place] = 1.0 / (1 + place)
    return np.sum(np.outer(y, weights)) * t


def recorded(y: Any) -> Any:
    t, h = 0.0, 0.02
    times, states = [t], [y]
    while t < 1.0:
        h = min(1.1 * h, 0.06)
        y = y + h * slope_of(y, t)
        t += h
        times.append(t)
        states.append(y)
    return np.sum(np.array(states)[::3]) + times[-1] * np.sum(np.array(times)[:, None] * np.stack(states))


def written_by_place(y: Any) -> Any:
    t, k = np.float64(0.0), 0
    h = np.float64(0.1)
    kept = np.zeros((60, 3))
    while t < 1.5:
        y = np.sin(y + h * slope_of(y, t))
        kept[k] = y * t
        k += 1
        h = np.maximum(h * 0.9, 0.04)
        t = t + h
    return np.sum(kept[:k] ** 2) * t


def within_another(y: Any) -> Any:
    total = 0.0
    for scale in (1.0, 2.0, 3.0):
        t, h = 0.0, 0.04
        while t < scale:
            h = min(h, scale - t)
            y = y + h * np.tanh(y) * np.exp(-y * y) / scale
            t += h
        total = total + np.sum(y) * t
    return total


class Clock:
    def __init__(self) -> None:
        self.t, self.h, self.steps = 0.0, 0.05, 0

    def tick(self) -> float:
        self.h = min(self.h, 2.0 - self.t)
        self.t += self.h
        self.steps += 1
        return self.h


def in_an_object(y: Any) -> Any:
    clock = Clock()
    while clock.t < 2.0:
        y = y + clock.tick() * slope_of(y, clock.t)
    return np.sum(y * y) * clock.t + clock.steps


def by_a_power(y: Any) -> Any:
    """No clock: what `**` rounds to is no matter of one operation of every backend."""
    t, h = 0.0, 0.1
    while t < 1.0:
        y = y + h * np.sin(y) * np.cos(y * t)
        h = 0.1 * 0.97 ** (10 * t)
        t += h
    return np.sum(y) * t


def one_region(f: Callable[..., Any]) -> bool:
    return ": one region" in str(sg.explain(sg.grad(f))(X)["how it runs"])


CLOCKS = [
    shortened_at_the_end, ended_by_break, counted_behind, recorded, written_by_place, within_another, in_an_object,
]  # fmt: skip


@pytest.mark.parametrize("f", CLOCKS, ids=lambda f: f.__name__)
def test_a_loop_that_a_clock_ends_is_one_region(f: Callable[..., Any]) -> None:
    assert one_region(f)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [*CLOCKS, by_a_power], ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_the_loop_as_python_runs_it(f: Callable[..., Any], backend: str) -> None:
    value, slope = sg.value_and_grad(f, backend=backend)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    directions = np.eye(3)
    differences = [(f(X + 1e-6 * d) - f(X - 1e-6 * d)) / 2e-6 for d in directions]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-7)
    forward = [sg.jvp(f, (X,), (d,))[1] for d in directions]
    np.testing.assert_allclose(forward, slope, rtol=1e-12)


@pytest.mark.parametrize("f", [shortened_at_the_end, counted_behind], ids=lambda f: f.__name__)
def test_second_derivatives(f: Callable[..., Any]) -> None:
    slope, step = sg.grad(f), 1e-6
    differences = [(slope(X + step * d) - slope(X - step * d)) / (2 * step) for d in np.eye(3)]
    np.testing.assert_allclose(sg.hessian(f)(X), differences, rtol=1e-5, atol=1e-6)


def test_the_trips_are_those_that_python_makes() -> None:
    """Where the last step is one of rounding alone, one trip more or less is another function."""

    def trips(x: Any, pieces: int) -> Any:
        t, h = 0.0, 1.0 / pieces
        while t < 1.0:
            x = x + np.cos(0.0 * np.sin(x))
            h = h * 1.0
            t += h
        return x

    for pieces in (3, 19, 49, 93, 100):
        np.testing.assert_array_equal(sg.jit(trips)(np.zeros(2), pieces), trips(np.zeros(2), pieces))


def test_an_error_of_a_clock_is_pythons_own() -> None:
    def f(x: Any) -> Any:
        t, h = 0.0, 0.5
        while t < 90.0:
            x = x + h * np.sin(x) * np.cos(x) * np.tanh(x) * np.exp(-x)
            h = h - 0.125
            t += 1.0 / h
        return np.sum(x)

    with pytest.raises(ZeroDivisionError):
        sg.grad(f)(X)


def test_a_number_that_is_none_is_compared_as_python_does() -> None:
    def f(x: Any) -> Any:
        t, h, far = 0.0, 0.1, math.inf
        while not t > 2.0:
            x = x + 0.01 * np.sin(x) * np.cos(x) * np.tanh(x) * np.exp(-x)
            h = min(far - far, 0.1)
            t += 0.1 if h != h else h
            far = far if t > 0.5 else far - 1.0
        return np.sum(x) * t

    value, slope = sg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-13)
    differences = [(f(X + 1e-6 * d) - f(X - 1e-6 * d)) / 2e-6 for d in np.eye(3)]
    np.testing.assert_allclose(slope, differences, rtol=1e-7)


def test_a_loop_without_an_end_in_sight_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_TRIPS", 100)

    def f(x: Any) -> Any:
        t, h = 0.0, 0.01
        while t < 2.0:
            x = x + h * np.sin(x)
            h = min(h, 2.0 - t)
            t += h
        return np.sum(x) * t

    assert not one_region(f)
    np.testing.assert_allclose(sg.value_and_grad(f)(X)[0], f(X), rtol=1e-13)


def test_a_body_that_is_no_region_is_written_out() -> None:
    def f(x: Any) -> Any:
        t, h, waiting = 0.0, 0.1, [x, 2 * x]
        while t < 2.0:
            y = waiting.pop(0)
            waiting += [np.sin(y)] if t < 1.0 else [np.cos(y) * t, np.tanh(y)]
            h = min(h, 2.0 - t)
            t += h
        return sum(np.sum(y) for y in waiting) * t

    assert not one_region(f)
    value, slope = sg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-13)
    differences = [(f(X + 1e-6 * d) - f(X - 1e-6 * d)) / 2e-6 for d in np.eye(3)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-8)


def growing_steps(y: Any) -> Any:
    """A method of second order whose steps grow by a function that the clock does not run, and begin again."""
    t, h, last = 0.0, 0.01, None
    while t < 2.0:
        h = min(h, 2.0 - t)
        base, c = (y, h) if last is None else ((4 * y - last) / 3, 2 * h / 3)
        z = y
        for _ in range(6):
            step = z - base - c * slope_of(z, t)
            z = z - step
            if np.max(np.abs(step)) < 1e-12:
                break
        last, y = y, z
        t += h
        if t > 0.1:
            h, last = h * math.exp(0.03 * math.sin(t)), None
    return np.sum(y * y) * t


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_loop_whose_clock_is_not_known_is_not_written_out(backend: str) -> None:
    """All of its trips were, and a solver of stiff equations took minutes to compile."""
    value, slope = sg.value_and_grad(growing_steps, backend=backend)(X)
    np.testing.assert_allclose(value, growing_steps(X), rtol=1e-12)
    differences = [(growing_steps(X + 1e-6 * d) - growing_steps(X - 1e-6 * d)) / 2e-6 for d in np.eye(3)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6)
    program = str(sg.explain(growing_steps)(X)["ir"])
    assert program.count(" = while ") <= 18  # one in each trip that is written out, and the rest with one in it
