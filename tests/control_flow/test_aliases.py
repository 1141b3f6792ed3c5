"""Arrays that share memory on one path only: a write is seen on that path, as in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.conversion import aliases

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


def three_names(x: Any) -> Any:
    y, z, w = x * 1.0, x * 2.0, x * 3.0
    if x[0] > 0:
        y = z
    if x[1] > 0:
        w = y
    w[0] = 5.0
    y[1] *= 2.0
    z[2] += 1.0
    return np.sum(y * z) + np.sum(w * y)


def parts_of_a_matrix(x: Any) -> Any:
    z = np.outer(x, x)
    y = z[0] if x[0] > 0 else z[:, 1]
    y[1] = 7.0
    z[0] *= 2.0
    return np.sum(y * x) + np.sum(z * np.arange(9.0).reshape(3, 3))


def row_at_a_traced_place(x: Any) -> Any:
    m = np.outer(x, x)
    k = np.argmax(x)
    row = m[0]
    if x[1] > 0:
        row = m[k]
    row[0] = 7.0
    m[1] += 1.0
    return np.sum(m * np.arange(9.0).reshape(3, 3)) + np.sum(row)


def reversed_each_trip(x: Any) -> Any:
    z, k = x * 2.0, 0
    y = z
    while k < abs(x[1]) * 3:
        y = y[::-1]
        y[0] += 0.5
        if k > 1:
            y = y * 1.1
        k += 1
    y[1] = 3.0
    return np.sum(y * z)


def swapped_in_a_loop(x: Any) -> Any:
    a, b = x * 1.0, x * 2.0
    keep = a
    for k in range(40):
        if x[0] > 0.1 * k:
            a, b = b, a
        a[0] = 0.9 * b[1]
        keep[2] *= 0.99
    return np.sum(a * b * keep)


def element_written_both_ways(x: Any) -> Any:
    rows = [x * 1.0, x * 2.0, np.sin(x)]
    row = rows[np.argmax(x)]
    row[0] = 2.0
    rows[1][1] = 3.0
    row[2] *= x[1]
    return sum(np.sum(other * x) for other in rows) + np.sum(row**2)


def part_of_what_is_shared(x: Any) -> Any:
    y, z, w = x * 1.0, x * 2.0, x * 3.0
    if x[0] > 0:
        y = z
    if x[1] < 0:
        w = y[::-1]
    w[0] = 5.0
    z[1] *= 2.0
    return np.sum(y * z) + np.sum(w * x)


def the_same_part_twice(x: Any) -> Any:
    z = np.concatenate([x, x])
    y, w = x * 1.0, x * 2.0
    if x[0] > 0:
        y, w = z[:3], z[:3]
    y[1] = 5.0
    w[2] = 3.0
    return np.sum(y * w) + np.sum(z)


def bump(v: Any) -> Any:
    v[0] += 1.0
    return v


def chosen_for_a_call(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    w = bump(y if x[0] > 0 else z)
    w[1] = 3.0
    return np.sum(y * z * w)


def loops_in_loops(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    for k in range(40):
        n = 0
        while n < x[2]:
            if x[1] < 0.01 * k:
                y = z
            elif x[0] > 0:
                z = y * 1.0
            n += 1
        y[0] = y[0] + 0.1
        z[1] *= 0.9
    y[2] = 1.0
    return np.sum(y * z)


def solved(x: Any) -> Any:
    z = x.copy()
    for k in range(20):
        step = 0.5 * (0.4 * np.cos(z) * x - z)
        z += step
        if np.max(np.abs(step)) < 1e-4:
            return z, k + 1
    return z, 20


def solved_or_failed(x: Any) -> Any:
    z, k = x.copy(), 0
    while k < 40:
        step = 0.5 * (0.4 * np.cos(z) * x - z)
        z += step
        k += 1
        if np.max(np.abs(step)) < 1e-4:
            return z, (k, z[:2])
    raise RuntimeError("no root")


def returned_with_a_number(x: Any) -> Any:
    z, k = solved(x)
    z[0] += 1.0
    return np.sum(z * x) * k


def returned_in_each_trip(x: Any) -> Any:
    total = 0.0
    while np.abs(x).max() > 0.1:
        x, k = solved(x)
        total += x[0] + k
    return total * np.sum(x)


def returned_or_raised_in_each_trip(x: Any) -> Any:
    total = 0.0
    while np.abs(x).max() > 0.1:
        x, (k, part) = solved_or_failed(x)
        part *= 1.1
        total += x[0] + k
    return total * np.sum(x)


def kept_in_a_tuple_and_written(x: Any) -> Any:
    z, k = x * 1.0, 0
    best = z, 0
    while k < 6:
        z *= 0.9
        if np.sin(3.0 * z[1]) > 0.3:
            best = z, k
        if np.sum(z**2) > 4.0:
            z = z * 0.8
        k += 1
    return np.sum(best[0] * z) + best[1]


EXACT = (
    rebound_and_written,
    reversed_on_one_path,
    the_last_one_kept,
    written_view,
    shared_on_the_other_path_only,
    rebound_after_sharing,
    chosen_row,
    two_names_after_a_branch,
    two_names_after_a_trip,
    shared_at_the_start_of_a_loop,
    view_kept_elsewhere,
    element_of_a_list,
    handed_over_every_trip,
    two_names_after_an_inner_branch,
    two_names_after_an_inner_loop,
    three_names,
    parts_of_a_matrix,
    row_at_a_traced_place,
    reversed_each_trip,
    swapped_in_a_loop,
    element_written_both_ways,
    part_of_what_is_shared,
    the_same_part_twice,
    chosen_for_a_call,
    loops_in_loops,
    returned_with_a_number,
    returned_in_each_trip,
    returned_or_raised_in_each_trip,
    kept_in_a_tuple_and_written,
)


def parts_that_overlap(x: Any) -> Any:
    z = np.concatenate([x, x])
    y, w = x * 1.0, x * 2.0
    if x[0] > 0:
        y, w = z[:3], z[1:4]
    y[1] = 5.0
    return np.sum(y * w)


def parts_that_overlap_after_a_loop(x: Any) -> Any:
    z = np.concatenate([x, x])
    y, w, k = x * 1.0, x * 2.0, 0
    while k < x[0]:
        y, w = z[:3], z[1:4]
        k += 1
    y[1] = 5.0
    return np.sum(y * w)


def other_dtype(x: Any) -> Any:
    y = np.zeros(3)
    if x[0] > 0:
        y = np.zeros(3, np.int64)
    y[0] = x[1]
    return np.sum(y * x)


def other_layout(x: Any) -> Any:
    y = np.outer(x, x) * np.arange(9.0).reshape(3, 3)
    if x[0] > 0:
        y = y.T
    flat = (y * 2.0).ravel() if x[1] > 100 else y.ravel()
    flat[1] = 5.0
    return np.sum(y * np.arange(9.0).reshape(3, 3))


def other_layout_after_a_loop(x: Any) -> Any:
    y, k = np.outer(x, x) * np.arange(9.0).reshape(3, 3), 0
    while k < abs(x[1]):
        y, k = y.T * 1.5, k + 1
    flat = y.ravel()
    flat[1] = 5.0
    return np.sum(y * np.arange(9.0).reshape(3, 3))


OVERLAPPING = r"a write into memory that '\w+' may or may not share, depending on a traced condition"
REFUSED = {
    parts_that_overlap: OVERLAPPING,
    parts_that_overlap_after_a_loop: OVERLAPPING,
    other_dtype: "a write into 'y', whose dtype depends on a traced condition",
    other_layout: "'y' is reshaped, whose layout in memory depends on a traced condition",
    other_layout_after_a_loop: "'y' is reshaped, whose layout in memory depends on a traced condition",
}


def agrees(function: Function, backend: str = "llvm") -> None:
    for x in POINTS:
        value, found = sg.value_and_grad(function, backend=backend)(x.copy())
        np.testing.assert_allclose(value, function(x.copy()), rtol=1e-12)
        moves = 1e-6 * np.eye(3)
        expected = [(function(x + move) - function(x - move)) / 2e-6 for move in moves]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("function", EXACT, ids=lambda f: f.__name__)
def test_a_write_is_seen_where_the_memory_is_shared(function: Function) -> None:
    sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function)


@pytest.mark.parametrize("function", (returned_in_each_trip, kept_in_a_tuple_and_written), ids=lambda f: f.__name__)
def test_a_write_is_seen_in_a_tuple_on_the_other_backend(function: Function) -> None:
    agrees(function, "numpy")


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_no_condition_tells_is_refused_by_name(function: Function) -> None:
    with pytest.raises(sg.errors.ArgumentError, match=REFUSED[function]):
        sg.jit(function, strict=True)(POINTS[0].copy())
    agrees(function)


def test_shared_memory_on_xla() -> None:
    pytest.importorskip("jax")
    for x in POINTS:
        found = sg.grad(loops_in_loops, backend="xla")(x.copy())
        np.testing.assert_allclose(found, sg.grad(loops_in_loops, backend="numpy")(x.copy()), rtol=1e-9)


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


def test_arrays_of_a_loop_that_share_nothing_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands that a loop hands on the pairs would be millions; two that may share memory are found."""
    compared: list[Any] = []
    between = aliases.between
    monkeypatch.setattr(aliases, "between", lambda x, y: compared.append((x, y)) or between(x, y))

    def trained(arrays: Any) -> Any:
        y = arrays[0] * 1.0
        best = y * 1.0
        for _ in range(40):
            if np.sum(y**2) > 0.3:
                best = y
            y[0] += 0.01
            y *= 0.97
            if np.sum(y) > 1.0:
                y = y * 0.5
            arrays = [x - 0.1 * np.tanh(x) for x in arrays]
        return sum([np.sum(x * x) for x in arrays]) + np.sum(best * y)

    given = [np.sin(np.arange(3.0) + k) for k in range(30)]
    found = sg.grad(trained)(given)
    assert 0 < len(compared) < 200
    for one, other in zip(found, sg.grad(trained, backend="numpy")(given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    step = np.zeros(3)
    step[2] = 1e-6
    for k in (0, 1, 7):
        moved = [[x + sign * step if j == k else x for j, x in enumerate(given)] for sign in (1, -1)]
        slope = (trained(moved[0]) - trained(moved[1])) / 2e-6
        np.testing.assert_allclose(found[k][2], slope, rtol=1e-6, atol=1e-8)
