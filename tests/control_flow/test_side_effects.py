"""What blocks on a traced condition change besides their own variables: closures, containers, objects, iterators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (np.array([0.53, -1.57, 2.43]), np.array([-0.52, 1.27, 3.47]))


def closure_variable(x: Any) -> Any:
    count = 1.0

    def bump(v: Any) -> None:
        nonlocal count
        count = count * 2 + v

    if x[0] > 0:
        bump(x[1])
    return np.sum(x) * count


def closure_list(x: Any) -> Any:
    kept = [1.0]

    def keep(v: Any) -> None:
        if v > 0:
            kept.append(2.0)

    keep(x[0])
    keep(x[1])
    return np.sum(x) * len(kept)


def list_of_a_closure_called_in_a_branch(x: Any) -> Any:
    kept = [1.0, 0.0]

    def keep(v: Any) -> None:
        kept[1] = v

    if x[0] > 0:
        keep(x[1] * 2)
    return np.sum(x) * kept[1] + kept[0] * x[0]


def second_operand_with_an_effect(x: Any) -> Any:
    seen = []

    def positive(v: Any) -> Any:
        seen.append(1.0)
        return v > 0

    flag = x[0] > 0 and positive(x[1])
    return np.sum(x) * len(seen) if not flag else x[0]


def test_with_an_effect(x: Any) -> Any:
    stack = [3.0, 2.0, 1.0]
    y = x[2]
    while y * stack.pop() > 3.0:
        y = y * 0.5
    return y * len(stack)


def iterator_read_in_a_branch(x: Any) -> Any:
    numbers = iter([2.0, 3.0, 4.0])
    total = x[1]
    if x[0] > 0:
        total = total * next(numbers)
    return total * next(numbers)


def bound_method_in_a_branch(x: Any) -> Any:
    table = {"a": 1.0}
    update = table.update
    if x[0] > 0:
        update(a=x[1])
    return np.sum(x) * table["a"]


def local_object(x: Any) -> Any:
    state = np.array([1.0, 2.0]), {"n": [0.0]}
    for v in x:
        if v > 0:
            state[1]["n"][0] += v
    return state[1]["n"][0] ** 2


def set_in_a_branch(x: Any) -> Any:
    seen = {1}
    if x[0] > 0:
        seen.add(2)
    return np.sum(x) * len(seen)


CASES = (
    closure_variable,
    closure_list,
    list_of_a_closure_called_in_a_branch,
    second_operand_with_an_effect,
    test_with_an_effect,
    iterator_read_in_a_branch,
    bound_method_in_a_branch,
    local_object,
    set_in_a_branch,
)
del test_with_an_effect  # a case, no test


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_both_paths_are_exact(function: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for x in POINTS:
            value, found = sg.value_and_grad(function)(x.copy())
            np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
            moves = 1e-6 * np.eye(3)
            expected = [(function(x + move) - function(x - move)) / 2e-6 for move in moves]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
