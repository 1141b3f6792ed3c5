"""Operators between NumPy's arrays and Python's sequences, with traced values in either."""

from __future__ import annotations

import array
import operator
from collections import UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ("numpy", "llvm")
POINTS = np.array([[1.0, 2.5, 3.0], [4.0, 0.5, 6.0]])
WEIGHTS = [1.5, 2.0, 3.5]
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
]
WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": lambda x, y: x**y,
    "%": lambda x, y: x % y,
    "//": lambda x, y: x // y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


def unwatched() -> float:
    with open("/dev/null"):
        return 1.0


def together(weights: Any) -> Any:
    return np.sum(POINTS * weights) + np.sum(weights / POINTS) + np.sum(POINTS @ weights) + np.sum(weights @ POINTS.T)


def again(weights: Any) -> Any:
    return together(weights) * unwatched()


class Model:
    def __init__(self, points: Any) -> None:
        self.points = points

    def __call__(self, weights: Any) -> Any:
        return np.sum(self.points * weights * (weights < self.points)) * unwatched()


def numbers_of_one_trace(weights: Any) -> Any:
    return np.sum(np.linspace(0.0, 1.0, 3) * [weights[0], weights[1] ** 2, 1.0]) + np.sum(np.arange(3) - weights)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [together, again, Model(POINTS), numbers_of_one_trace])
@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_traced_values_meet_arrays(kind: Any, f: Callable[..., Any], backend: str) -> None:
    weights = kind(WEIGHTS)
    value, slopes = sg.value_and_grad(f, backend=backend)(weights)
    np.testing.assert_allclose(value, f(weights), rtol=1e-14)
    expected = sg.grad(lambda w: f(list(w)))(np.array(WEIGHTS))
    np.testing.assert_allclose(slopes, expected, rtol=1e-13)
    for k, slope in enumerate(expected):
        moved = [[w + step * (k == j) for j, w in enumerate(WEIGHTS)] for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope, (f(moved[0]) - f(moved[1])) / 2e-6, rtol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_each_operator_takes_a_list_on_either_side(written: Callable[[Any, Any], Any], backend: str) -> None:
    for f in (lambda w: written(POINTS, w), lambda w: written(w, POINTS)):
        found, expected = sg.jit(f, backend=backend)(WEIGHTS), f(WEIGHTS)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.dtype == expected.dtype


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("apply", OPERATORS)
@pytest.mark.parametrize("kind", [deque, UserList, lambda x: array.array("d", x), lambda x: range(1, 4)])
def test_a_traced_array_meets_any_sequence_of_numbers(
    kind: Callable[..., Any], apply: Callable[[Any, Any], Any], backend: str
) -> None:
    def f(x: Any) -> Any:
        return np.sum(x * apply(x, kind(WEIGHTS)))

    np.testing.assert_allclose(sg.value_and_grad(f, backend=backend)(POINTS)[0], f(POINTS), rtol=1e-14)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_python_says_of_lists_alone_stays() -> None:
    def f(x: Any) -> Any:
        last = [x]
        pair = last + last
        pair[1] = 2.0
        pair.append(x)
        return sum(pair * 2) if (x, 1) < (x, 2) else 0.0

    assert sg.grad(f)(1.5) == 4.0
    with pytest.raises(TypeError, match="can only concatenate list"):
        sg.grad(lambda x: sum(list(x) + x.shape))(np.ones(2))
    with pytest.raises(ValueError, match="broadcast"):
        sg.grad(lambda w: np.sum(np.ones(2) * w) * unwatched())(WEIGHTS)
