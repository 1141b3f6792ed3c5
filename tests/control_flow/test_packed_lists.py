"""Lists of many numbers that each trip of a loop makes anew: one array is handed from trip to trip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower
from tests.control_flow.sliced import Function, check, check_second_order, on_backends, operations

N = 24


def heat(x: Any) -> Any:
    u = [x[0] * np.sin(np.pi * i / (N - 1)) for i in range(N)]
    for _ in range(30):
        u = [u[0]] + [u[i] + x[1] * (u[i + 1] - 2 * u[i] + u[i - 1]) for i in range(1, N - 1)] + [u[-1]]
    return u[N // 2] + u[3]


def two_buffers(x: Any) -> Any:
    old, new = [0.0] * N, [x[0] * i / N for i in range(N)]
    for _ in range(20):
        old, new = new, [2 * new[i] - old[i] + x[1] * (new[i - 1] - new[i]) for i in range(N)]
    return new[5] + old[7]


def of_lists(x: Any) -> Any:
    """Rows of a grid, of which the outer two stay."""
    u = [[x[0] * np.sin(i * j / 9.0) for j in range(N)] for i in range(5)]
    for _ in range(18):
        u = [u[0]] + [[0.9 * u[i][j] + x[1] * u[i - 1][j - 1] for j in range(N)] for i in range(1, 4)] + [u[4]]
    return u[2][3] + u[4][1] * u[3][0]


def normalised(x: Any) -> Any:
    """Python's floats before the loop, numbers of the array in it."""
    a = [1.0 / (i + 1) for i in range(N)]
    for _ in range(20):
        a = [x[0] * a[i] + x[1] * a[(i + 3) % N] ** 2 for i in range(N)]
        total = sum(a)
        a = [each / total for each in a]
    return a[0] * 3.0 + a[5] ** 2


def kinds_that_differ(x: Any) -> Any:
    """Items of several kinds: an int, Python's floats and numbers of the array."""
    u = [1, 2.0] + [x[0] * i for i in range(N)]
    for _ in range(20):
        u = [u[1], u[0]] + [0.5 * (u[i] + u[i - 1]) + x[1] for i in range(2, N + 2)]
    return u[0] + u[5] * u[-1]


def changed_in_place(x: Any) -> Any:
    u = [x[0] * i for i in range(N)]
    for k in range(20):
        u = [u[i] * 0.9 + 0.1 * u[i - 1] for i in range(N)]
        u[0] = x[1] * k
        u[3] += u[0]
    return sum(u)


def on_one_path(x: Any) -> Any:
    u = [x[0] * i for i in range(N)]
    for _ in range(20):
        if u[1] < 1.5:
            u = [1.05 * each + x[1] for each in u]
    return u[1] * u[2]


def until_small(x: Any) -> Any:
    u, n = [x[0] * (i + 1) for i in range(N)], 0
    while max(u) > 0.5:
        u = [0.8 * each + 0.01 * x[1] for each in u]
        n += 1
    return n + u[0] * u[1]


def known_before(x: Any) -> Any:
    """The list before the loop is read behind it by another name."""
    first = u = [x[0] + i for i in range(N)]
    for _ in range(18):
        u = [each * x[1] for each in u]
    return sum(first) + 1e3 * u[0]


def kept_in_the_loop(x: Any) -> Any:
    u, log = [x[0] + i for i in range(N)], []
    for _ in range(18):
        u = [0.9 * each + x[1] for each in u]
        log.append(u[2])
    return np.sum(np.array(log) ** 2) + u[1]


def of_tuples(x: Any) -> Any:
    u = tuple(x[0] + i for i in range(N))
    for _ in range(18):
        u = tuple(0.9 * each + x[1] for each in u)
    return u[2] * u[3]


def complex_numbers(x: Any) -> Any:
    u = [x[0] * np.exp(0.3j * i) for i in range(N)]
    for _ in range(18):
        u = [0.9j * u[i - 1] + x[1] * u[i] for i in range(N)]
    return abs(u[2]) + u[5].imag


def complex_at_last(x: Any) -> Any:
    """That the list gets another kind of numbers shows only when it is known what else a trip hands on."""
    u, z = [x[0] * i for i in range(N)], x[1]
    for k in range(18):
        u = [0.9 * each * z for each in u]
        z = z * (1j if k > 3 else 1.0)
    return abs(u[3]) + abs(z)


def no_trip(x: Any) -> Any:
    u, n = [x[0] * (i + 1) for i in range(N)], 0
    while max(u) < -1.0:
        u = [each + 1.0 for each in u]
        n += 1
    return n + u[3] * x[1]


def small_grid(x: Any) -> Any:
    """Each number is computed on its own."""
    u = [[x[0] * np.sin(i * j) for j in range(5)] for i in range(5)]
    for _ in range(20):
        u = [u[0]] + [[0.9 * u[i][j] + x[1] * u[i - 1][j - 1] for j in range(5)] for i in range(1, 4)] + [u[4]]
    return u[2][3] + u[4][1] * u[3][0]


FUNCTIONS = [
    heat, two_buffers, of_lists, normalised, kinds_that_differ, changed_in_place, on_one_path, until_small,
    known_before, kept_in_the_loop, of_tuples, complex_numbers, complex_at_last, no_trip, small_grid,
]  # fmt: skip
X = np.array([0.7, 0.2])


@pytest.mark.parametrize(("f", "x", "backend"), on_backends([(f, X) for f in FUNCTIONS], [heat, of_lists]))
def test_values_and_slopes_are_pythons(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, 1e-4)


@pytest.mark.parametrize("f", [f for f in FUNCTIONS if f is not known_before], ids=lambda f: f.__name__)
def test_loops_are_regions(f: Function) -> None:
    """But where another name has the list too."""
    said = sg.explain(sg.jit(f))(X)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def carries(f: Function) -> set[int]:
    """How many values loops hand from trip to trip."""
    walked = lower(sg.jit(f), (X,), {}).traced.walk()
    return {operation.attrs["carries"] for operation in walked if operation.op.name == "for"}


def test_numbers_that_a_trip_computes_one_by_one_stay_numbers() -> None:
    assert max(carries(heat)) <= 2 and max(carries(small_grid)) > 10


@pytest.mark.parametrize("f", [heat, two_buffers, of_lists, normalised, complex_numbers])
def test_as_many_operations_as_of_arrays(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many numbers there are."""
    few = operations(sg.grad(f), X.shape)
    monkeypatch.setattr(f"{__name__}.N", 3 * N)
    assert operations(sg.grad(lambda x: f(x)), X.shape) <= few + 6


@pytest.mark.parametrize("f", [heat, normalised, until_small])
def test_second_derivatives_and_examples(f: Function) -> None:
    check_second_order(f, X)
