"""Long loops whose first trips change the kinds of variables: written out until they settle, then one region."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.7, -0.4, 1.1, 0.3])


def nothing_before(x: Any) -> Any:
    """A variable that is None before the first trip, and a list that grows all the time."""
    last, total, seen = None, 0.0, []
    for k in range(60):
        y = np.sin(x[0] * k * 0.1) + x[1]
        if last is not None:
            total = total + (y - last) ** 2
        last = y
        seen.append(y * x[2])
    return total + seen[3] * seen[-1] + len(seen)


def best_so_far(x: Any) -> Any:
    best, place = None, None
    for k, w in enumerate(np.linspace(0, 3, 60)):
        y = np.cos(x * w) @ x
        if best is None or y < best:
            best, place = y, k
    return best * 2.0 + place * x[3]


def window(x: Any) -> Any:
    held: collections.deque[Any] = collections.deque(maxlen=5)
    total = 0.0
    for t in np.linspace(0, 1, 80):
        held.append(np.exp(-t * x[0]))
        total = total + (sum(held) / len(held)) ** 2
    return total * held[0]


def delayed(x: Any) -> Any:
    """A window longer than a body is tried, of numbers that are Python's before the loop."""
    rate, past, y, total = float(x[0]), collections.deque([1.2] * 21, maxlen=21), 1.2, 0.0
    for _ in range(60):
        y = y + 0.1 * (rate * past[0] / (1.0 + past[1] ** 6) - y)
        past.append(y)
        total += y * y
    return total + past[3] * past[-1]


def last_pairs(x: Any) -> Any:
    """The vectors of the last trips, which are as many from some trip on."""
    steps: list[Any] = []
    y = x
    for _ in range(40):
        g = np.sin(y)
        for s in reversed(steps):
            g = g - 0.1 * (s @ g) * s
        steps.append(0.3 * g)
        if len(steps) > 3:
            steps.pop(0)
        y = y - 0.3 * g
    return y * steps[0]


def in_another_loop(x: Any) -> Any:
    total = 0.0
    for row in np.linspace(0, 1, 120).reshape(3, 40):
        last = None
        for w in zip(row, row[::-1], strict=False):
            total = total + (w[0] * x[0] if last is None else last * x[1] * w[1])
            last = np.sin(total)
    return total * x


CASES = [(f, POINT) for f in (nothing_before, best_so_far, window, delayed, last_pairs, in_another_loop)]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (nothing_before, window, delayed)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_the_rest_is_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_an_iterator_is_at_its_end() -> None:
    def f(x: Any) -> Any:
        last, total, pairs = None, 0.0, zip(x, x[::-1], strict=False)
        for a, b in pairs:
            total = total + a * b if last is None else total + a * last
            last = np.sin(total)
        return total + len(list(pairs))

    x = np.linspace(0.1, 1, 30)
    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)


def test_loops_that_do_not_settle_are_pythons() -> None:
    def f(x: Any) -> Any:
        kind, grown, total = None, np.zeros(0), 0.0
        for k in range(40):
            kind = "even" if k % 2 == 0 else k
            grown = np.concatenate([grown, x * k])
            total = total + (x[0] if kind == "even" else x[1] * kind)
        return (total + np.sum(grown**2) + len(grown)) / 10000

    check(f, POINT, "llvm", rtol=1e-6)


def test_a_kind_that_changes_later() -> None:
    def f(x: Any) -> Any:
        last, total = None, x[0]
        for k in range(40):
            if k == 30:
                last = None
            total = total * 0.9 + (x[1] if last is None else last * x[2])
            last = np.sin(total)
        return total

    check(f, POINT, "llvm", rtol=1e-6)


def test_a_tuple_that_a_list_holds_too() -> None:
    """What a region makes of it is another object: that is asked for by ``is`` alone."""

    def f(x: Any) -> Any:
        state = first = (x[0], x[1])
        states = [state]
        for _ in range(40):
            state = (state[0] - 0.1 * np.sin(state[1]), state[1] + 0.1 * state[0])
            states.append(state)
        return sum(a * b for a, b in states) + state[0] * first[1]

    def asked(x: Any) -> Any:
        best = first = (x[0], x[1])
        held = [first]
        for k in range(40):
            best = best if best[0] > np.sin(x[0] * k) else (np.sin(x[0] * k), x[2])
        return x[0] * best[0] if best is first else x[1] * best[1] * len(held)

    check(f, POINT, "llvm", rtol=1e-6)
    assert "unrolled" not in sg.explain(sg.jit(f))(POINT)["how it runs"]
    for x in (POINT, POINT + 1.0):
        np.testing.assert_allclose(sg.jit(asked)(x), asked(x))
