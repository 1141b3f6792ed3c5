"""Tables that a loop fills row by row, of which each trip reads the row before: ``rows[-1][1]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg

Program = Callable[[Any], Any]


def of_items(x: Any) -> Any:
    rows = [[0.0, x, 0.0]]
    for _ in range(60):
        v = rows[-1][2] - 0.1 * rows[-1][1]
        rows.append([rows[-1][0] + 0.1, rows[-1][1] + 0.1 * v, v])
    return sum(t * p + v for t, p, v in rows)


def taken_apart(x: Any) -> Any:
    rows = [(0.0, x)]
    for _ in range(60):
        t, p = rows[-1]
        rows.append((t + 0.1, 0.9 * p))
    times, places = zip(*rows, strict=True)
    return sum(times) * sum(places)


def by_name(x: Any) -> Any:
    """Behind the loop the names are rows: these are changed then."""
    rows = [{"t": 0.0, "x": x}]
    for _ in range(60):
        last = rows[-1]
        row = {"t": last["t"] + 0.1, "x": 0.9 * last["x"] + 0.01}
        rows.append(row)
    last["x"] = 7.0 * x
    row["t"] *= x
    return sum(row["t"] * row["x"] for row in rows)


def in_each_other(x: Any) -> Any:
    rows = [[[x, 1.0], 0.0]]
    for _ in range(60):
        (p, q), t = rows[-1]
        rows.append([[0.9 * p, q + 0.1 * p], t + x])
    rows[5][0][0] = 9.0
    return sum(p * t for (p, _), t in rows)


def copied_and_changed(x: Any) -> Any:
    rows = [[0.0, x]]
    for _ in range(60):
        rows.append(list(rows[-1]))
        rows[-1][1] *= 0.9
    return sum(a + b for a, b in rows)


def two_loops(x: Any) -> Any:
    rows = [[0.0, x]]
    for _ in range(60):
        rows.append([rows[-1][0] + 1.0, 0.9 * rows[-1][1]])
    for _ in range(60):
        rows.append([rows[-1][0] + 2.0, 1.1 * rows[-1][1]])
        end = rows[-1]
    end[0] = 1.0
    return sum(a * b for a, b in rows)


@pytest.mark.parametrize("program", [of_items, taken_apart, by_name, in_each_other, copied_and_changed, two_loops])
def test_the_row_before_is_handed_on(program: Program) -> None:
    check(program, "one region")


def changed(x: Any) -> Any:
    rows = [[x, 0.0]]
    for _ in range(60):
        row = rows[-1]
        row[1] += 1.0
        rows.append([0.9 * row[0], row[1]])
    return sum(a * b for a, b in rows)


def kept_in_a_list(x: Any) -> Any:
    rows, kept = [[x, 0.0]], []
    for _ in range(60):
        kept.append(rows[-1])
        rows.append([0.9 * rows[-1][0], x])
    rows[3][0] = 5.0
    return sum(a * b for a, b in kept)


def kept_in_a_dict(x: Any) -> Any:
    rows: list[Any] = [[0.0, x]]
    kept: dict[str, Any] = {}
    for _ in range(60):
        t, v = rows[-1]
        kept["last"] = rows[-1]
        rows.append([t + 0.1, 0.9 * v])
    kept["last"][1] = 3.0
    return sum(a * b for a, b in rows)


def with_a_part_in_common(x: Any) -> Any:
    rows = [[[x, 1.0], 0.0]]
    for _ in range(60):
        rows.append([rows[-1][0], rows[-1][1] + x])
    rows[5][0][0] = 9.0
    return sum(a[0] * b for a, b in rows)


def known_before(x: Any) -> Any:
    first = [x, 0.0]
    rows, same = [first], 0
    for _ in range(60):
        same += rows[-1] is first
        rows.append([0.9 * rows[-1][0], rows[-1][1] + 1.0])
    first[0] = 100.0
    return sum(a * b for a, b in rows) + same


@pytest.mark.parametrize(
    "program", [changed, kept_in_a_list, kept_in_a_dict, with_a_part_in_common, known_before], ids=lambda f: f.__name__
)
def test_a_row_that_is_more_than_its_numbers_is_pythons(program: Program) -> None:
    check(program, "unrolled")


def check(program: Program, said: str) -> None:
    """Value and slope, and what is said of each loop."""
    derivative = sg.value_and_grad(program)
    for x in (1.0, 0.3):
        value, slope = derivative(x)
        assert value == pytest.approx(program(x), rel=1e-12)
        assert sg.jit(program)(x) == pytest.approx(program(x), rel=1e-12)
        assert slope == pytest.approx((program(x + 1e-6) - program(x - 1e-6)) / 2e-6, rel=1e-6)
    lines = [line for line in sg.explain(derivative)(1.0)["how it runs"].splitlines() if "loop of 60" in line]
    assert lines
    assert all(said in line for line in lines)
