"""Tests of ``if`` and ``while`` that bind a name only where Python comes to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ["llvm", "numpy", "xla"]
POINTS = [np.array(x) for x in ([0.9, 1.2], [2.0, 3.0], [-0.5, 0.1], [0.01, -0.02], [-3.0, -4.0])]


def counted(x: Any) -> Any:
    n, go, y = 0, True, x
    while go and (n := n + 1) < 20:
        y = np.sin(y)
        go = y.sum() > 0.4
    return np.sum(y) * n


def two(x: Any) -> Any:
    n, y, s = 0, x, 0.0
    while (n := n + 1) < 30 and (s := np.sum(y * y)) > 0.1:
        if n % 3 == 0:
            y = y * 0.5
            continue
        y = y * 0.9
    else:
        s = s * 2.0
    return np.sum(y) + s + n


def left_by_break(x: Any) -> Any:
    n, y = 0, x
    while n < 1 or (r := np.sum(np.abs(y))) > 1.0:
        n += 1
        y = 0.7 * y
        if y[0] < 0.3:
            break
    else:
        y = y + r
    return np.sum(y * y) * n


def chosen(x: Any) -> Any:
    s = t = 0.0
    if (s := np.sum(x)) > 0.0 and (t := s * s) < 4.0:
        return t * x[0]
    elif not (x[0] > -1.0 or (t := x[0] * x[1]) < 5.0):
        return s * t
    return s + 3.0 * t


def nested(x: Any) -> Any:
    a = b = c = 1.0
    if ((a := x[0]) > 0.5 or (b := x[1] * 2.0) > 0.0) and not (a > 1.5 and (c := a * x[1]) > 2.0):
        return a * b * c
    return a + b * c


def until_close(x: Any) -> Any:
    n, y = 0, np.abs(x)
    while np.max(np.abs((z := 0.5 * (y + 2.0 / y)) - y)) > 1e-9 and (n := n + 1) < 50:
        y = z
    return np.sum(y * x) + n


def endless(x: Any) -> Any:
    n, y = 0, x
    while True:
        if (r := np.max(np.abs(y))) < 1e-2 or (n := n + 1) >= 10:
            return np.sum(y) * n + r
        y = y * 0.6


def asserted(x: Any) -> Any:
    assert (n := np.sum(x * x)) < 100.0, f"{n} is large"  # noqa: RUF018
    y = math.tanh(n)
    try:
        assert y > 0.5 and (z := x[0] * x[1]) > 0.0  # noqa: RUF018
    except AssertionError:
        return y * x[1]
    return math.tanh(z) + y


FUNCTIONS = [counted, two, left_by_break, chosen, nested, until_close, endless, asserted]


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_such_functions_are_one_program(function: Callable[..., Any], backend: str) -> None:
    value_and_grad = sg.value_and_grad(function, backend=backend)
    for x in POINTS:
        value, slope = value_and_grad(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-12)
        for k in range(2):
            step = 1e-6 * np.eye(2)[k]
            np.testing.assert_allclose(slope[k], (function(x + step) - function(x - step)) / 2e-6, 1e-5, 1e-7)
    assert "One program" in sg.explain(value_and_grad)(POINTS[0])["how it runs"]


def test_operands_are_asked_in_order_and_no_more_often() -> None:
    def f(x: Any, given: tuple[Any, ...]) -> Any:
        asked: list[str] = []

        def ask(name: str, value: Any) -> Any:
            asked.append(name)
            return value

        found = 0
        if (ask("a", given[0]) and (u := ask("b", given[1]))) or not (ask("c", given[2]) or (u := ask("d", given[3]))):
            found = 1
        while ask("e", found < 3) and (u := ask("f", given[0])):
            found += 1
        return np.sum(x) * found, asked, u if "b" in asked or "f" in asked else None

    compiled = sg.jit(f)
    for number in range(16):
        given = tuple(bool(number >> k & 1) for k in range(4))
        assert compiled(np.ones(2), given) == f(np.ones(2), given)


def test_a_name_that_is_not_bound() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0.0 and (r := x[1]) > 1.0:
            return r
        return r * 2.0

    np.testing.assert_array_equal(sg.grad(f)(np.array([1.0, 0.5])), [0.0, 2.0])
    with pytest.raises(UnboundLocalError, match="r"):
        sg.grad(f)(np.array([-1.0, 0.5]))


def test_an_assert_that_binds_a_name_fails_with_its_message() -> None:
    with pytest.raises(AssertionError, match=r"200.0 is large"):
        sg.grad(asserted)(np.array([10.0, 10.0]))
