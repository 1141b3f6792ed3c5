"""Recursions of hundreds of calls, which take several frames for each where they are converted."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing import room
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


def straight(x: Any) -> Any:
    def inner(n: int) -> Any:
        return x[0] if n == 0 else math.sin(x[1] * inner(n - 1)) + x[0]

    return inner(800)


def on_a_path(x: Any) -> Any:
    def inner(y: Any, n: int) -> Any:
        return y if n == 0 else math.sin(x[1] * inner(y, n - 1)) + y

    return inner(x[0], 400 + 400 * int(x[0] > 0.0))


def linked_by_hundreds(x: Any) -> Any:
    node: Any = None
    for k in range(700):
        node = Node(x[0] / (k + 1), node)
    return node.total(x[1])


@pytest.mark.parametrize("f", [straight, on_a_path, linked_by_hundreds], ids=lambda f: f.__name__)
def test_a_recursion_that_the_stack_has_no_room_for_is_traced_in_a_thread_with_a_larger_one(f: Any) -> None:
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    require_one_program(f, "numpy", POINTS[0], np.array([0.8, 0.3]))
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)


def test_what_changes_at_each_call_and_calls_itself_often_is_traced_so_too() -> None:
    count = iter(range(10))

    def f(x: Any) -> Any:
        return straight(x) + next(count)

    with pytest.warns(sg.RetraceWarning):
        np.testing.assert_allclose(sg.grad(f)(POINTS[0]), sg.grad(straight)(POINTS[0]))


def test_a_recursion_that_is_deeper_than_any_stack_says_so() -> None:
    """It said that math.sin got a traced value, which was so where the function was run as it is."""

    def f(x: Any) -> Any:
        def inner(n: int) -> Any:
            return x[0] if n == 0 else math.sin(inner(n - 1))

        return inner(2400)

    with pytest.raises(sg.errors.DepthError, match=r"calls itself too often.*\n(.*\n)*.*setrecursionlimit") as found:
        sg.grad(f)(POINTS[0])
    assert isinstance(found.value, RecursionError)


def test_limits_are_given_back_in_whatever_order_traces_end() -> None:
    limit, asked, done = sys.getrecursionlimit(), threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        asked.set()
        done.wait(60)
        return np.sum(x)

    def trace() -> None:
        contexts = warnings.catch_warnings()
        with contexts:
            warnings.simplefilter("ignore")
            sg.grad(waits)(POINTS[0])

    size = threading.stack_size(8 << 20)
    thread = threading.Thread(target=trace)
    thread.start()
    threading.stack_size(size)
    asked.wait(60)
    sg.grad(straight, backend="numpy")(np.array([0.1, 0.2, 0.3]))
    done.set()
    thread.join()
    assert sys.getrecursionlimit() == limit


def endless(x: Any) -> Any:
    return endless(x) + x.sum()


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_the_limit_is_given_back_where_a_trace_inside_has_set_a_higher_one() -> None:
    limit = sys.getrecursionlimit()
    with room.room():
        inside = room.FRAMES + 5_000
        deep = room._DEEP.set(inside)
        try:
            with room.room():
                assert sys.getrecursionlimit() == inside
        finally:
            room._DEEP.reset(deep)
    assert sys.getrecursionlimit() == limit


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
