"""Lists of lists that nested loops make: ``row`` is appended to ``rows``, and is another list in the next trip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.3, 0.7, -0.4, 1.1])


def table(x: Any) -> Any:
    rows = []
    for i in range(20):
        row = []
        for j in range(18):
            row.append(np.sin(x[0] * i) * np.cos(x[1] * j) + x[2])
        rows.append(row)
    found = np.array(rows)
    return found.T @ found[:, 0] * 0.01


def read_after(x: Any) -> Any:
    """The variable is the last row, the same list."""
    rows: list[Any] = [[x[3]] * 18]
    row = rows[0]
    for i in range(20):
        row = []
        for j in range(18):
            row.append(np.sin(x[0] * i + j))
        rows.append(row)
    row[0] = x[2]
    row.append(x[0] * len(rows))
    return np.array([*rows[-1], rows[0][0], rows[-2][0], float(row is rows[-1])])


def two_names(x: Any) -> Any:
    rows = []
    for i in range(20):
        row: list[Any] = []
        same = row
        for j in range(17):
            row.append(x[0] * i + x[1] * j)
        rows.append(same)
    row[1] = x[3]
    return np.array([sum(r) for r in rows])


def two_lists(x: Any) -> Any:
    rows, others = [], []
    for i in range(20):
        row: list[Any] = []
        for j in range(17):
            row.append(x[0] * i + x[1] * j)
        other = [x[2] * i, x[3]]
        rows.append(row)
        others.append(other)
    other[1] = x[0]
    return np.array([sum(r) for r in rows]) + sum(np.array(o) @ x[:2] for o in others)


def read_before(x: Any) -> Any:
    """A trip reads the row of the one before, and writes into it."""
    rows: list[Any] = []
    row = [x[0]] * 17
    for i in range(20):
        new = []
        for j in range(17):
            new.append(np.sin(row[j]) + x[1] * j * i)
        row[0] = row[0] + x[2]
        rows.append(row)
        row = new
    return np.array([*rows, row])


def appended_twice(x: Any) -> Any:
    rows: list[Any] = []
    for i in range(20):
        row = [x[0] * i, x[1]]
        rows.append(row)
        rows.append(row)
    rows[3][0] = x[2]
    return np.array(rows)


def some_of_them(x: Any) -> Any:
    rows: list[Any] = []
    row = [x[2], x[3]]
    for i in range(40):
        if i % 4 == 0:
            row = [x[0] * i, x[1]]
            rows.append(row)
    row[1] = x[2]
    return np.array(rows)


def summed_on(x: Any) -> Any:
    """Rows of rows, of which the last one goes on to be read in the loop around."""
    blocks, total = [], 0.0
    for a in range(17):
        rows = []
        for i in range(18):
            row = []
            for j in range(17):
                row.append(x[0] * i - x[1] * j * a)
            rows.append(row)
        total = total + np.sum(np.array(rows)) * 1e-4 + row[-1]
        blocks.append(total)
    return np.array(blocks) * 1e-2


CASES = [
    (f, POINT) for f in (table, read_after, two_names, two_lists, read_before, appended_twice, some_of_them, summed_on)
]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (table, read_after)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", [table, read_after, two_lists, summed_on], ids=lambda f: f.__name__)
def test_the_loops_are_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def square(x: Any, n: int) -> Any:
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(np.sin(x[0] * i) * x[1] * j)
        rows.append(row)
    return np.sum(np.array(rows) ** 2)


def test_operations_do_not_grow_with_the_rows() -> None:
    assert operations(lambda x: square(x, 40), (4,)) == operations(lambda x: square(x, 20), (4,)) < 40
