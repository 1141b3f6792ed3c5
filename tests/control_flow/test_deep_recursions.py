"""Recursions of hundreds of calls, which take several frames for each where they are converted."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

POINTS = (np.array([0.9, 0.2]), np.array([-0.4, 0.5]))


class Node:
    def __init__(self, value: Any, after: Node | None) -> None:
        self.value, self.after = value, after

    def total(self, weight: Any) -> Any:
        if self.after is None:
            return math.sin(self.value)
        found = self.value
        for after in [self.after]:
            found += weight * math.tanh(after.total(weight))
        return found


def linked(x: Any) -> Any:
    node: Any = None
    for k in range(300):
        node = Node(x[0] / (k + 1), node)
    return node.total(x[1])


def nested(x: Any) -> Any:
    def inner(n: int) -> Any:
        return x[0] if n == 0 else math.sin(x[1] * inner(n - 1)) + x[0]

    return inner(400)


@pytest.mark.parametrize("f", [linked, nested], ids=lambda f: f.__name__)
def test_a_recursion_of_hundreds_of_calls_is_one_program(f: Any) -> None:
    limit = sys.getrecursionlimit()
    require_one_program(f, "numpy", *POINTS)
    assert sys.getrecursionlimit() == limit


def endless(x: Any) -> Any:
    return endless(x) + x.sum()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_endless_recursion_ends_as_in_python() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        sg.grad(endless)(POINTS[0])
    assert sys.getrecursionlimit() == limit


def test_a_thread_whose_stack_may_be_small_keeps_the_limit() -> None:
    seen: list[int] = []

    def asks(x: Any) -> Any:
        seen.append(sys.getrecursionlimit())
        return np.sum(x)

    thread = threading.Thread(target=lambda: sg.grad(asks)(POINTS[0]))
    with pytest.warns(sg.RetraceWarning):
        thread.start()
        thread.join()
    assert set(seen) == {sys.getrecursionlimit()}


def test_a_limit_that_the_function_sets_stays() -> None:
    limit = sys.getrecursionlimit()

    def sets(x: Any) -> Any:
        sys.setrecursionlimit(limit + 500)
        return np.sum(x)

    try:
        with pytest.warns(sg.RetraceWarning):
            sg.grad(sets)(POINTS[0])
        assert sys.getrecursionlimit() == limit + 500
    finally:
        sys.setrecursionlimit(limit)
