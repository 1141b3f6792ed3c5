"""Arrays that share memory on one path only: exact where one variable knows the memory, else no single program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = (np.array([0.53, -1.57, 2.43]), np.array([-0.52, 1.27, 3.47]))
Function = Callable[[Any], Any]


def rebound_and_written(x: Any) -> Any:
    y = np.sin(x)
    for _ in range(40):
        y[1] += 0.1
        if y[0] > 0.2:
            y = y * 0.9
        y[2] *= 1.01
        y = y / np.sum(y**2)
    return np.sum(y * x)


def reversed_on_one_path(x: Any) -> Any:
    y = x * 2.0
    if x[0] > 0:
        y = y[::-1]
    y[0] = 7.0
    return np.sum(y * x)


def the_last_one_kept(x: Any) -> Any:
    best, y, k = x * 1.0, x * 1.0, 0
    while np.sum(y**2) > 0.3:
        best = y
        y = y * 0.7
        k += 1
    return np.sum(best * y) * k


def written_view(x: Any) -> Any:
    y = np.zeros((2, 3))
    row = y[0]
    if x[0] > 0:
        row[:] = x * 2
    for k in range(40):
        row[k % 3] += x[1]
    return np.sum(y**2)


def shared_on_the_other_path_only(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    if x[0] > 0:
        if x[1] > 0:
            y = z
        y = y * 3.0
    else:
        z[0] = x[1]
    z[1] *= 2.0
    return np.sum(y * z)


def rebound_after_sharing(x: Any) -> Any:
    y, z, k = x * 1.0, x * 2.0, 0
    while k < np.abs(x[1]) * 3:
        z = z * 0.9
        y[0] += z[1]
        if k > 1:
            y = z
        z = np.cos(z)
        z[2] = y[0]
        k += 1
    return np.sum(y * z)


EXACT = (
    rebound_and_written,
    reversed_on_one_path,
    the_last_one_kept,
    written_view,
    shared_on_the_other_path_only,
    rebound_after_sharing,
)


def chosen_row(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    row = [y, z][int(x[0] > 0)]
    row[0] = 5.0
    return np.sum(y * z)


def two_names_after_a_branch(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    if x[0] > 0:
        y = z
    z[0] = 5.0
    return np.sum(y * z)


def two_names_after_a_trip(x: Any) -> Any:
    y, z, k = x * 1.0, x * 2.0, 0
    while k < np.abs(x[0]) * 6:
        y = y * 1.1
        z = y
        k += 1
        if k > 1:
            z[0] = 3.0
        y = z
    y[1] = 4.0
    return np.sum(y * z)


def shared_at_the_start_of_a_loop(x: Any) -> Any:
    y = x * 1.0
    first, k = y, 0
    while k < np.abs(x[1]) * 2:
        y[0] = y[0] + 2.0
        y = y * 0.5
        k += 1
    return np.sum(y * first)


def view_kept_elsewhere(x: Any) -> Any:
    y = x * 1.0
    part = y[:2]
    if x[0] > 0:
        y = y * 3.0
    y[1] = 2.0
    return np.sum(y) * np.sum(part)


def element_of_a_list(x: Any) -> Any:
    y = x * 1.0
    kept = [y]
    if x[0] > 0:
        y = y * 3.0
    y[1] = 2.0
    return np.sum(y) * np.sum(kept[0])


def handed_over_every_trip(x: Any) -> Any:
    y, old = x * 1.0, x * 2.0
    for k in range(40):
        old[1] = 0.1 * k
        old = y
        if x[0] > 0:
            y[2] = y[2] * 0.9
    return np.sum(old * y)


def two_names_after_an_inner_branch(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    if x[0] > 100:
        y = y * 2.0
    elif x[1] < 0:
        y = z
    y[0] = 5.0
    return np.sum(y * z)


def two_names_after_an_inner_loop(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    for k in range(40):
        n = 0
        while n < x[2]:
            if x[1] < 0.01 * k:
                y = z
            n += 1
        y[0] = y[0] + 0.1
    return np.sum(y * z)


AMBIGUOUS = (
    two_names_after_an_inner_branch,
    two_names_after_an_inner_loop,
    two_names_after_a_branch,
    two_names_after_a_trip,
    shared_at_the_start_of_a_loop,
    view_kept_elsewhere,
    element_of_a_list,
)


def agrees(function: Function) -> None:
    for x in POINTS:
        value, found = sg.value_and_grad(function)(x.copy())
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
        moves = 1e-6 * np.eye(3)
        expected = [(function(x + move) - function(x - move)) / 2e-6 for move in moves]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_memory_of_one_variable_is_written_in_one_program(function: Function) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(function)


@pytest.mark.parametrize("function", AMBIGUOUS, ids=lambda f: f.__name__)
def test_shared_memory_is_refused_by_name(function: Function) -> None:
    reason = r"a write into memory that '\w+' may or may not share, depending on a traced condition"
    with pytest.raises(sg.errors.ArgumentError, match=reason):
        sg.jit(function, strict=True)(POINTS[0].copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        agrees(function)


def test_a_row_chosen_by_a_value_shares_the_memory_of_the_list() -> None:
    reason = "a write into memory that a conditional expression may or may not share"
    with pytest.raises(sg.errors.ArgumentError, match=reason):
        sg.jit(chosen_row, strict=True)(POINTS[0].copy())
    agrees(chosen_row)


def test_a_reduction_of_no_items_and_a_missing_key_are_errors_when_the_program_runs() -> None:
    def largest(x: Any) -> Any:
        return max(v for v in x if v > 1.0)

    def keyed(x: Any) -> Any:
        return {0: 2.0, 5: 3.0}[int(x[0])] * np.sum(x)

    slopes = sg.jit(sg.grad(largest), strict=True), sg.jit(sg.grad(keyed), strict=True)
    np.testing.assert_allclose(slopes[0](np.array([0.5, 2.0])), [0.0, 1.0])
    np.testing.assert_allclose(slopes[1](np.array([5.5, 2.0])), [3.0, 3.0])
    with pytest.raises(ValueError, match="max"):
        slopes[0](np.array([0.5, 0.2]))
    with pytest.raises(KeyError, match="1"):
        slopes[1](np.array([1.5, 0.2]))


def test_what_is_handed_over_every_trip() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        agrees(handed_over_every_trip)
