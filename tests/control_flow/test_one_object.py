"""Variables that are one list or object from trip to trip: what is written by one name is read by the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


@dataclasses.dataclass
class Box:
    v: Any


class Plain:
    s: Any


def written_after_the_loop(x: Any) -> Any:
    a, b = Box(1.0), Box(2.0)
    for _ in range(30):
        a.v = a.v + x
        b = a
    a.v = 100 * x
    return b.v


def written_after_the_loop_by_item(x: Any) -> Any:
    a, b = [1.0], [2.0]
    for _ in range(30):
        a = [a[0] + x]
        b = a
        b[0] = b[0] * 1.01
    a[0] = 100 * x
    return b[0] + a[0]


def written_in_the_next_trip(x: Any) -> Any:
    a, b = [1.0], [2.0]
    for _ in range(30):
        b[0] = b[0] + a[0]
        a = [a[0] + 0.01 * x]
        b = a
    return b[0] + a[0]


def twice_in_a_list(x: Any) -> Any:
    a = [1.0]
    pair = [a, a]
    for _ in range(30):
        a = [pair[0][0] + x]
        pair = [a, a]
        pair[0][0] = pair[1][0] * 1.01
    pair[0][0] = 100 * x
    return pair[1][0]


def one_before_the_loop(x: Any) -> Any:
    a = b = [1.0]
    for _ in range(30):
        a[0] = a[0] + x
        c = b[0]
        a = [a[0]]
        b = [0.5 * b[0] + c / 3]
    return a[0] * b[0]


def of_a_traced_end(x: Any) -> Any:
    a, b = [1.0], [2.0]
    while a[0] < x * 10:
        a[0] = a[0] * 1.3
        b = a
    a[0] = 100 * x
    return b[0]


def an_item_of_a_dict(x: Any) -> Any:
    a, d = [1.0], {"k": [3.0]}
    for _ in range(30):
        d["k"][0] = d["k"][0] * 0.5 + x
        a = [a[0] * 0.5 + d["k"][0]]
        d["k"] = a
    return d["k"][0] + a[0]


def in_a_tuple(x: Any) -> Any:
    a = [1.0]
    t = (a, 2.0)
    for _ in range(30):
        a = [a[0] * 1.01 + x]
        t = (a, t[1] + x)
    a[0] = 7 * x
    return t[0][0] + t[1]


def attributes_of_two_objects(x: Any) -> Any:
    one, two = Plain(), Plain()
    one.s, two.s = [1.0], [2.0]
    for _ in range(30):
        one.s = [one.s[0] + x]
        two.s = one.s
        two.s[0] = two.s[0] * 1.01
    one.s[0] = 3.0 * x
    return two.s[0]


def the_best_is_the_present_one(x: Any) -> Any:
    best, now = [9e9], [1.0]
    for i in range(30):
        now[0] = now[0] * x + 0.1 * i
        if now[0] < best[0]:
            best = now
    return best[0]


def swapped_on_a_condition(x: Any) -> Any:
    a, b = [1.0], [2.0]
    for _ in range(30):
        if a[0] > b[0]:
            a, b = b, a
        a[0] = a[0] + x
    return a[0] - 2 * b[0]


def the_best_one_is_changed_in_the_next_trip(x: Any) -> Any:
    now, best = Box(1.0), Box(9.0)
    for _ in range(30):
        now.v = now.v + 0.5
        now = Box(now.v * x)
        if now.v < best.v:
            best = now
    return best.v + now.v


def the_best_one_until_a_value_says(x: Any) -> Any:
    now, best = {"v": 1.0}, {"v": 9.0}
    while now["v"] < 20.0:
        now["v"] = now["v"] * 1.5
        now = {"v": now["v"] + x}
        if now["v"] > best["v"]:
            best = now
    return best["v"] + now["v"]


def the_other_one_is_changed(x: Any) -> Any:
    now, best, other = [1.0], [9.0], [0.0]
    for _ in range(30):
        now = [now[0] * x + 0.3]
        best, other = (now, best) if now[0] < best[0] else (best, now)
        other[0] = other[0] * 0.99
    return best[0] + now[0] + other[0]


FUNCTIONS = (
    written_after_the_loop, written_after_the_loop_by_item, written_in_the_next_trip, twice_in_a_list,
    one_before_the_loop, of_a_traced_end, an_item_of_a_dict, in_a_tuple, attributes_of_two_objects,
    the_best_is_the_present_one, swapped_on_a_condition, the_best_one_is_changed_in_the_next_trip,
    the_best_one_until_a_value_says, the_other_one_is_changed,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_written_by_one_name_is_read_by_the_other(function: Callable[[Any], Any], backend: str) -> None:
    for x in (0.3, 0.9, 1.2):
        np.testing.assert_allclose(sg.jit(function, backend=backend)(x), function(x), rtol=1e-12)
        step = 1e-6
        slope = (function(x + step) - function(x - step)) / (2 * step)
        np.testing.assert_allclose(sg.grad(function, backend=backend)(x), slope, rtol=1e-5, atol=1e-6)
