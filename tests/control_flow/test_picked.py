"""Lists, tuples and dicts in a list, at a traced place: a copy stands for the one there, where nothing can tell."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.7, -0.4, 1.1, 0.3])
Layer = namedtuple("Layer", "w b slope")


def contracted(x: Any) -> Any:
    """Integrals over contracted Gaussians: loops of a few primitives in loops of two functions."""
    exponents, weights = np.array([0.17, 0.62, 3.4]), np.array([0.44, 0.53, 0.15])
    basis = [
        [(a, c * (2 * a / np.pi) ** 0.75, p) for a, c in zip(exponents, weights, strict=True)] for p in (0.0, x[0])
    ]
    found = np.zeros((2, 2, 2, 2))
    for i in range(2):
        for j in range(2):
            for k in range(2):
                for l in range(2):  # noqa: E741
                    for a, ca, p in basis[i]:
                        for b, cb, q in basis[j]:
                            for c, cc, r in basis[k]:
                                for d, cd, s in basis[l]:
                                    u, v = (a * p + b * q) / (a + b), (c * r + d * s) / (c + d)
                                    scale = ca * cb * cc * cd / np.sqrt(a + b + c + d)
                                    found[i, j, k, l] += scale * np.exp(-a * b * (p - q) ** 2 - (u - v) ** 2) * x[1]
    return found


def records(x: Any) -> Any:
    """Dicts with texts, lists and dicts in them, and what is the same in all."""
    nodes = [{"name": "n", "at": [k, {"v": x * k}], "w": x[k % 3], "shared": x} for k in range(5)]
    total = x * 0.0
    for k in range(40):
        node = nodes[(3 * k) % 5]
        total = total + np.sin(node["at"][1]["v"] * node["w"]) * len(node["name"]) + node["shared"] * node["at"][0]
    return total * 0.1


def layers(x: Any) -> Any:
    """Named tuples of arrays, at places that the values say; outside of loops too."""
    some = [Layer(np.outer(x, x) * k, x + k, 0.5 * k) for k in range(3)]
    h = x
    for k in range(20):
        layer = some[np.argmax(h) % 3]
        h = np.sin(layer.w @ h * 0.1 + layer.b + k * layer.slope)
    w, b, _ = some[np.argmin(h) % 3]
    return w @ h + b


def by_keys(x: Any) -> Any:
    steps = {0: (x[0], [x[1], 2.0]), 3: (x[2], [0.5, x[3]]), 7: (1.0, [x[0], x[0]])}
    total = 0.0
    for k in range(30):
        scale, (first, second) = steps[np.array([0, 3, 7])[k % 3]]
        total += scale * first - np.sin(second * k)
    return total


CASES = [(f, POINT) for f in (contracted, records, layers, by_keys)]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (by_keys,)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_they_are_one_program_with_regions(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert said.startswith("One program") and "one region" in said and "unrolled" not in said


def test_there_is_one_body_of_loops_over_such_lists() -> None:
    assert operations(contracted, (4,)) < 300


# --- where a copy would be told from the list itself -----------------------------------------------------------------
def table(x: Any) -> list[list[Any]]:
    return [[x[0] * k, x[1] - k, x[2]] for k in range(20)]


def changed_by_a_name(x: Any) -> Any:
    rows = table(x)
    for k in range(20):
        row = rows[(7 * k) % 20]
        row[k % 3] = row[0] * x[3]
    return np.array(rows)


def changed_by_two_places(x: Any) -> Any:
    rows = table(x)
    for k in range(1, 20):
        rows[k][0] = rows[k - 1][0] * 0.5 + rows[k][1]
    return np.array(rows)


def changed_by_methods(x: Any) -> Any:
    rows = table(x)
    for k in range(20):
        rows[k].append(x[3] * k)
        rows[k].reverse()
    return np.array(rows)


def changed_behind_the_loop(x: Any) -> Any:
    """The variable is the last row, of which the table has the change too."""
    rows, total = table(x), 0.0
    for k in range(20):
        row = rows[(7 * k) % 20]
        total += np.sin(row[0] * row[1])
    row[1] = total
    return np.array(rows)


def changed_behind_another_name(x: Any) -> Any:
    """The table is changed, and the variable has the change too."""
    rows, total = table(x), 0.0
    for k in range(20):
        row = rows[k]
        total += np.sin(row[0] * row[1])
    rows[19][1] = total
    return row[1] + total


def kept_by_the_next_trip(x: Any) -> Any:
    """What the trip before had is changed by the next one, by the name of the table."""
    rows, total = table(x), 0.0
    before = rows[0]
    for k in range(1, 20):
        rows[k - 1][0] = x[1] * k
        total = total + before[0] * k
        before = rows[k]
    return total


def appended(x: Any) -> Any:
    rows, found = table(x), []
    for k in range(20):
        found.append(rows[19 - k])
    found[3][0] = x[3]
    return np.array([rows[16][0], sum(r[0] for r in rows)])


def compared(x: Any) -> Any:
    rows, total = table(x), 0.0
    for k in range(20):
        if rows[(3 * k) % 20] is rows[6]:
            total += x[0]
        elif rows[k] == rows[k]:
            total += x[1] * k
    return total


def at_a_place_that_a_value_says(x: Any) -> Any:
    rows = table(x)
    row = rows[np.argmax(x)]
    row[0] = x[3]
    return np.array(rows)


def attributes_of_dicts(x: Any) -> Any:
    bodies = [{"x": x * k, "v": x[0]} for k in range(20)]
    for k in range(20):
        body = bodies[(3 * k) % 20]
        body["x"] = body["x"] + body["v"]
        body.setdefault("n", x[1])
    return sum(b["x"] * b["n"] for b in bodies)


def arrays_changed_in_place(x: Any) -> Any:
    pairs = [(x * k, [x[0] * k]) for k in range(20)]
    for k in range(20):
        array, held = pairs[(3 * k) % 20]
        array += held[0]
    return sum(a for a, _ in pairs)


def of_different_lengths(x: Any) -> Any:
    rows = [[x[0]] * (1 + k % 2) for k in range(20)]
    return sum(len(rows[k]) * rows[k][0] * k for k in range(20))


CHANGED = [
    changed_by_a_name, changed_by_two_places, changed_by_methods, changed_behind_the_loop, changed_behind_another_name,
    kept_by_the_next_trip, appended, compared, at_a_place_that_a_value_says, attributes_of_dicts,
    arrays_changed_in_place, of_different_lengths,
]  # fmt: skip


@pytest.mark.parametrize("f", CHANGED, ids=lambda f: f.__name__)
def test_changes_are_seen_as_in_python(f: Function) -> None:
    check(f, POINT, "llvm", rtol=1e-6)


@pytest.mark.parametrize("place", [2, -3])
@pytest.mark.parametrize("items", [[[1.0, 2.0], [3.0, 4.0]], [(1.0, "a"), (3.0, "a")], [[1.0], [1.0]]], ids=str)
def test_a_place_that_is_not_there_is_an_error(items: list[Any], place: int) -> None:
    def f(x: Any) -> Any:
        return items[np.argmax(x) * place][0] * x[0]

    assert sg.jit(f)(np.array([2.0, 1.0])) == items[0][0] * 2.0
    with pytest.raises(IndexError, match="index"):
        sg.jit(f)(np.array([1.0, 2.0]))
