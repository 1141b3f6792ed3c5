"""Attributes assigned of what a list, a dict or a tuple holds, and objects in the order of traced keys."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


class Body:
    def __init__(self, x: Any, v: Any = 0.0) -> None:
        self.x, self.v = x, v


class System:
    def __init__(self, t: Any) -> None:
        self.items = [Body(t), Body(2 * t, 0.5)]
        self.named = {"first": Body(t)}

    def go(self, h: float) -> None:
        for i in range(2):
            self.items[i].x += h * self.items[1 - i].v
            self.items[i].v -= h * self.items[i].x
        self.named["first"].x = self.items[0].x * 2


def bodies(t: Any, count: int) -> list[Body]:
    return [Body(math.sin(k * t), 0.1 * k * t) for k in range(count)]


def of_a_list(t: Any) -> Any:
    made = bodies(t, 12)
    made[3].x = made[4].x * 3
    made[-1].v = 0.5 * t
    made.reverse()
    return sum(one.x * one.v * (k + 1) for k, one in enumerate(made))


def of_a_part(t: Any) -> Any:
    made = bodies(t, 5)
    others = made[:]
    others[0] = Body(t, t)
    others[1].x = 7 * t
    return sum(one.x for one in made) + 2 * sum(one.x for one in others)


def of_a_method(t: Any) -> Any:
    system = System(t)
    for _ in range(40):
        system.go(0.1)
    return system.items[0].x + system.named["first"].x * system.items[-1].v


KEPT = [Body(1.0), Body(2.0)]


def of_what_is_kept(t: Any) -> Any:
    kept = KEPT
    kept[0].x = t * 3
    kept[1].v += t
    return kept[0].x * kept[1].v


def by_condition(t: Any) -> Any:
    """One list or another, of which one is from outside."""
    own = [Body(t)]
    (KEPT if t > 5 else own)[0].x = 2 * t
    return own[0].x * KEPT[1].x


def events(t: Any) -> Any:
    given = [(0.5 * t, "dose", 2.0), (t * t, "skip", 0), (1.1 - t, "dose", 1.0), (0.2, "end", None)]
    level, last = 0.0, 0.0
    for time, kind, amount in sorted(given, key=lambda event: event[0]):
        level = level * math.exp(last - time)
        last = time
        if kind == "dose":
            level += amount * time
    return level


def the_least(t: Any) -> Any:
    made = bodies(t, 9)
    two = sorted(made, key=lambda one: (one.x - 0.3) ** 2)[:2]
    two[0].x = 1.0
    return sum(one.x for one in made) * two[1].x


POINTS = (0.37, 0.81, 1.3, 0.45)


def reset() -> None:
    for one, x in zip(KEPT, (1.0, 2.0), strict=True):
        one.x, one.v = x, 0.0


def checked(function: Callable[..., Any], backend: str) -> None:
    value_and_slope = sg.value_and_grad(function, backend=backend)
    for t in POINTS:
        expected = []
        for point in (t - 1e-6, t + 1e-6, t):
            reset()
            expected.append(function(point))
        left = [(one.x, one.v) for one in KEPT]
        reset()
        value, slope = value_and_slope(t)
        np.testing.assert_allclose(value, expected[2], rtol=1e-12)
        np.testing.assert_allclose(slope, (expected[1] - expected[0]) / 2e-6, rtol=1e-6)
        np.testing.assert_allclose([(one.x, one.v) for one in KEPT], left)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", [of_a_list, of_a_part, of_a_method, of_what_is_kept])
def test_attributes_of_items_are_assigned_in_one_program(function: Callable[..., Any], backend: str) -> None:
    reset()
    sg.jit(function, strict=True, backend=backend)(0.3)
    checked(function, backend)


def test_what_may_be_of_another_list_is_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        checked(by_condition, "llvm")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", [events, the_least])
def test_objects_in_the_order_of_traced_keys_have_a_program_for_each_order(
    function: Callable[..., Any], backend: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        checked(function, backend)
