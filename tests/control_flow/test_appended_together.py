"""Several arrays or numbers that each trip of a loop appends to one list: the items are the rows of one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ["llvm", "numpy"]
POINTS = (np.array([0.3, 0.7, 1.1]), np.array([1.3, -0.2, 0.4]))


def numbers(x: Any) -> Any:
    found, y = [], x[0]
    for _ in range(60):
        y = 0.9 * y + x[1]
        found.append(y)
        found.append(y * x[2])
    return sum(found) + found[7] * found[-2] + np.sum(np.array(found[::2]) ** 2)


def arrays(x: Any) -> Any:
    found = []
    for k in range(60):
        x = 0.9 * x + 0.1 * x[::-1]
        found += [x * k, np.sin(x), x[::-1].copy()]
    return np.sum(np.stack(found) ** 2) + found[4] @ found[-1] + np.sum(np.array(found[::-1])[:5])


def of_a_short_loop_inside(x: Any) -> Any:
    found = [x]
    for k in range(60):
        for factor in (1.0, 2.0, 3.0):
            found.append(factor * x * k)
    return np.sum(np.array(found[1:]) ** 2) + len(found)


def written_behind_the_loop(x: Any) -> Any:
    """What the last trip has appended is the variable's memory."""
    found = []
    for _ in range(60):
        x = 0.9 * x + 0.1
        y = x * x
        found.append(x)
        found.append(y)
    x[0] = 5.0 * y[1]
    y *= 2.0
    found[0][1] = 7.0
    return np.sum(np.array(found) ** 2) + np.sum(found[-1] * found[-2])


def appended_twice(x: Any) -> Any:
    """The end of one trip and the beginning of the next are one array."""
    found = []
    for _ in range(60):
        found.append(x)
        x = 0.9 * x + 0.1
        found.append(x)
    return np.sum(np.array(found) ** 2) + found[2][0] * x[0]


def of_other_kinds(x: Any) -> Any:
    found = []
    for k in range(60):
        found.append(x * k)
        found.append(x[:2])
        found.append(np.sum(x))
    return sum(np.sum(v) for v in found) * found[-1]


def with_more_in_some_trips(x: Any) -> Any:
    found = []
    for k in range(60):
        found.append(x[0] * k)
        found.append(x[1] + k)
        if k % 7 == 3:
            found.append(x[2] * k)
    return sum((j + 1) * v**2 for j, v in enumerate(found)) / len(found)


def at_the_front(x: Any) -> Any:
    found = [0.5]
    for k in range(60):
        found.insert(0, x[0] * k)
        found.insert(0, x[1] + k)
    return sum((j + 1) * v**2 for j, v in enumerate(found))


PROGRAMS = (
    numbers,
    arrays,
    of_a_short_loop_inside,
    written_behind_the_loop,
    appended_twice,
    of_other_kinds,
    with_more_in_some_trips,
    at_the_front,
)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_appended_together_is_pythons(f: Any, backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in POINTS:
        apart = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        value, found = slope(x.copy())
        np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
        np.testing.assert_allclose(found, apart, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", [numbers, arrays, of_a_short_loop_inside], ids=lambda f: f.__name__)
def test_a_list_of_them_is_one_array(f: Any) -> None:
    """Each item was read out of its column: 200 trips of two took 1,200 operations, and two seconds to compile."""
    assert len(sg.explain(f)(POINTS[0])["ir"].splitlines()) < 90
