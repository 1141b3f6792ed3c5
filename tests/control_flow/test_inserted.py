"""Lists into which a loop inserts items at the front, and lists whose items may be one array on some path."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.7, -0.4, 1.1, 0.3])
OBSERVED = np.where(np.arange(40) % 7 == 3, np.nan, np.sin(np.arange(40.0)))


def backwards(x: Any) -> Any:
    """The list begins with an item, and gets numbers that are known, arrays and tuples."""
    found, pairs, h = [x], [], x
    for k in range(30):
        h = np.sin(h) + x * 0.1
        found.insert(0, h)
        pairs.insert(0, (k, h[0] * k))
    weights = np.arange(31.0)
    return (
        np.array(found).T @ weights * 1e-3 * len(found)
        + pairs[0][0]
        + found[0] * found[29]
        + sum(0.001 * k * v for k, v in pairs)
    )


def in_some_trips(x: Any) -> Any:
    found, h = [], x[0]
    for k in range(40):
        h = np.sin(h + k)
        if k % 3 == 1:
            found.insert(0, h * k)
    return np.stack(found)[:4] * len(found)


def loops_in_each_other(x: Any) -> Any:
    rows: list[Any] = []
    for i in range(20):
        row: list[Any] = []
        for j in range(18):
            row.insert(0, np.sin(x[0] * i + x[1] * j))
        rows.insert(0, row)
    return np.array(rows)[:, :4] @ x + rows[0][0]


def smoothed(x: Any) -> Any:
    """What is predicted is kept where nothing is observed: two lists have one array then."""
    mean, means, predicted, total = x * 0.0, [], [], 0.0
    for y in OBSERVED:
        before = np.sin(mean) + 0.1 * x
        if np.isnan(y):
            mean = before
        else:
            mean = before + 0.3 * (y - before[0])
            total += (y - before[0]) ** 2
        means.append(mean)
        predicted.append(before)
    s = means[-1]
    found = [s]
    for t in range(len(means) - 2, -1, -1):
        s = means[t] + 0.2 * (s - predicted[t + 1])
        found.insert(0, s)
    return np.array(found).sum(axis=0) + total


CASES = [(f, POINT) for f in (backwards, in_some_trips, loops_in_each_other, smoothed)]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (smoothed,)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_the_loops_are_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_an_array_of_items_in_reverse_order_is_one_operation() -> None:
    def reversed_rows(count: int) -> Function:
        def f(x: Any) -> Any:
            found: list[Any] = []
            for k in range(count):
                found.insert(0, np.sin(x * k))
            return np.array(found)

        return f

    assert operations(reversed_rows(20), (4,)) == operations(reversed_rows(60), (4,))


# --- what keeps a loop from being one --------------------------------------------------------------------------------
def read_on_the_way(x: Any) -> Any:
    found = [x]
    for k in range(20):
        found.insert(0, found[0] * 0.5 + found[-1] * k)
    return np.array(found)


def at_another_place(x: Any) -> Any:
    found = [x]
    for k in range(20):
        found.insert(1, x * k)
        found.insert(-1, x + k)
    return np.array(found)


def by_another_name(x: Any) -> Any:
    found = [x * 2.0]
    same, total = found, 0.0
    for k in range(20):
        found.insert(0, x * k)
        total = total + same[0] * len(same)
    return np.array(same) + total


def in_both_ways(x: Any) -> Any:
    found = [x]
    for k in range(20):
        found.insert(0, x * k)
        found.append(x + k)
    return np.array(found)


def the_same_list_is_kept(x: Any) -> Any:
    rows: list[Any] = []
    row = [x[3]] * 4
    for i in range(20):
        row = []
        for j in range(4):
            row.insert(0, np.sin(x[0] * i + j))
        rows.insert(0, row)
    row[0] = x[2]
    return np.array([*rows[0], *rows[1], float(row is rows[0])])


def written_where_they_are_one(x: Any) -> Any:
    """A change of an item of one list is one of the other's, where both have one array."""
    a, b = [], []
    mean = x * 0.0
    for k in range(20):
        before = np.sin(mean) + x
        mean = before * 0.5 if x[k % 4] > 0.5 else before
        a.append(mean)
        b.append(before)
    a[3][0] = 5.0
    b[1][1] = 7.0
    return np.array(a) + np.array(b) * 2.0


def written_by_the_next_trip(x: Any) -> Any:
    a, b = [], []
    mean = x * 1.0
    for k in range(20):
        mean[0] = 0.5 * k
        before = np.sin(mean) + x
        mean = before * 0.5 if x[k % 4] > 0.5 else before
        a.append(mean)
        b.append(before)
    return np.array(a) + np.array(b) * 2.0


OTHERS = [
    read_on_the_way, at_another_place, by_another_name, in_both_ways, the_same_list_is_kept, written_where_they_are_one,
    written_by_the_next_trip,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_lists_are_pythons(f: Function) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)  # where what may be one array is changed
        check(f, POINT, "llvm", rtol=1e-6)
