"""Loops whose lists of numbers get longer or shorter by as much in each trip are one region."""

# ruff: noqa: RUF005, RUF007 -- the lists are joined and paired as textbooks do, too

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, check_second_order, on_backends, operations

N = 24


# --- algorithms as textbooks have them -----------------------------------------------------------------------------
def option(x: Any) -> Any:
    """A binomial tree of an American option."""
    up, p = np.exp(0.05 * (1 + x[1])), 0.5
    v = [max(1.05 - x[0] * up ** (2 * i - N), 0.0) for i in range(N + 1)]
    for j in range(N - 1, -1, -1):
        v = [max(0.99 * (p * v[i + 1] + (1 - p) * v[i]), 1.05 - x[0] * up ** (2 * i - j)) for i in range(j + 1)]
    return v[0]


def de_casteljau(x: Any) -> Any:
    points, t = [x[0] * np.sin(i) for i in range(N)], 0.3 + 0.1 * x[1]
    while len(points) > 1:
        points = [(1 - t) * a + t * b for a, b in zip(points, points[1:], strict=False)]
    return points[0]


def by_pairs(x: Any) -> Any:
    points = [x[0] * np.sin(i) + x[1] for i in range(N)]
    for _ in range(N - 2):
        points = [0.4 * a + 0.5 * b for a, b in itertools.pairwise(points)]
    return points[0] * points[1]


def neville(x: Any) -> Any:
    nodes = [0.1 * i for i in range(N)]
    q = [np.sin(x[0] * t) for t in nodes]
    for k in range(1, N):
        q = [((x[1] - nodes[i + k]) * q[i] - (x[1] - nodes[i]) * q[i + 1]) / (nodes[i] - nodes[i + k])
             for i in range(N - k)]  # fmt: skip
    return q[0]


def divided_differences(x: Any) -> Any:
    nodes = [0.1 * i for i in range(N)]
    c = [np.sin(x[0] * t) + x[1] * t for t in nodes]
    out = [c[0]]
    for k in range(1, N):
        c = [(b - a) / (nodes[i + k] - nodes[i]) * 0.1 for i, (a, b) in enumerate(zip(c, c[1:], strict=False))]
        out.append(c[0])
    return sum(each * 0.4**k for k, each in enumerate(out))


def pascal(x: Any) -> Any:
    row = [1.0]
    for _ in range(N):
        row = [0.5 * a + 0.4 * x[1] * b for a, b in zip([*row, 0.0], [0.0, *row], strict=False)]
    return sum(each * x[0] ** i for i, each in enumerate(row))


# --- what a trip may do with a list ----------------------------------------------------------------------------------
def both_ends(x: Any) -> Any:
    v = [x[0] * np.sin(i * x[1]) for i in range(3 * N)]
    for _ in range(N):
        v = [0.5 * v[i] + 0.2 * (v[i - 1] + v[i + 1]) for i in range(1, len(v) - 1)]
    return v[0] * v[-1] + sum(v)


def slices_of_itself(x: Any) -> Any:
    v, s = [x[0] * i + x[1] * i * i for i in range(N)], 0.0
    while len(v) > 3:
        s = s * x[0] + v[0] + 0.1 * len(v)
        v = v[1:]
    return s + v[0]


def to_the_last(x: Any) -> Any:
    v, s = [x[0] * i + x[1] for i in range(N)], 0.0
    for _ in range(N):
        s = 0.9 * s + v[-1]
        v = [1.01 * a for a in v[:-1]]
    return s + len(v)


def turned(x: Any) -> Any:
    v = [x[0] + x[1] * i for i in range(N)]
    for _ in range(N - 3):
        v = [a - 0.3 * b for a, b in zip(reversed(v[1:]), v, strict=False)]
        v = v[::-1]
    return v[0] + v[2]


def reduced(x: Any) -> Any:
    v, t = [x[0] + i * x[1] for i in range(N)], 0.0
    for j in range(N - 1, 2, -1):
        v = [0.9 * v[i] + 0.05 * v[i + 1] for i in range(j)]
        m = max(v)
        v = [a / m for a in v]
        t += sum(a * b for a, b in zip(v, v[1:], strict=False)) + np.mean(v) + min(v) + np.dot(v, np.array(v))
    return t


def of_a_trip(x: Any) -> Any:
    """Lists that no trip hands on."""
    t = 0.0
    for j in range(1, N):
        w = [x[0] ** i * np.cos(x[1] * i) for i in range(j)]
        t += sum(w) / len(w) + 0.1 * np.array(w).sum() + w[-1]
    return t


def two_lists(x: Any) -> Any:
    a, b = [x[0] * i for i in range(N)], [x[1] + i for i in range(N)]
    for _ in range(N - 4):
        a, b = (
            [p + q for p, q in zip(a, b[1:], strict=False)],
            [0.5 * q - 0.1 * p for p, q in zip(a[1:], b, strict=False)],
        )
    return 0.01 * sum(a) + b[0]


def floats_before(x: Any) -> Any:
    v = [0.1 * i for i in range(N)]
    for _ in range(N - 4):
        v = [0.5 * x[0] * a + 0.5 * x[1] * b for a, b in zip(v, v[1:], strict=False)]
    return sum(v)


def conditions(x: Any) -> Any:
    v = [x[0] * i - 0.1 * x[1] * i * i for i in range(N)]
    for _ in range(N - 4):
        v = [0.5 * v[i] + 0.2 * v[i + 1] if v[i] > v[i + 1] else v[i + 1] for i in range(len(v) - 1)]
    return sum(v)


def complex_numbers(x: Any) -> Any:
    v = [x[0] * np.exp(0.3j * i * x[1]) for i in range(N)]
    for _ in range(N - 4):
        v = [0.5 * a + 0.4j * b for a, b in zip(v, v[1:], strict=False)]
    return abs(v[0]) + v[1].real


def joined(x: Any) -> Any:
    row = [x[0]]
    for k in range(N):
        row = [row[0]] + [0.5 * x[1] * row[i] + 0.4 * row[i + 1] for i in range(k)] + [row[-1]]
    return sum(0.1 * (i + 1) * each for i, each in enumerate(row))


def from_nothing(x: Any) -> Any:
    newest: list[Any] = []
    for k in range(N):
        newest = [np.sin(x[0] * k)] + [0.5 * x[1] * each for each in newest]
    return sum(each * i for i, each in enumerate(newest))


def asked_for(x: Any) -> Any:
    v, n = [x[0] * i + x[1] for i in range(N)], 0
    for _ in range(N - 4):
        v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        n += 1 if v and isinstance(v, list) else 5
    return v[0] * n


def in_attributes(x: Any) -> Any:
    held = {"v": [x[0] * i + x[1] for i in range(N)]}
    for _ in range(N - 4):
        held["v"] = [0.5 * (a + b) for a, b in zip(held["v"], held["v"][1:], strict=False)]
    return held["v"][0] * held["v"][1]


def between_two_bounds(x: Any) -> Any:
    total = 0.0
    for i in range(2 * N):
        near = [x[0] * j - x[1] for j in range(max(0, i - 3), min(2 * N, i + 4))]
        total += sum(near) / len(near)
    return total


def in_another_loop(x: Any) -> Any:
    total = 0.0
    for m in range(18):
        v = [x[0] * i + x[1] * m for i in range(N)]
        for _ in range(20):
            v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        total += v[0] + 0.1 * v[-1]
    return total


def grown(x: Any) -> Any:
    v = [x[0]]
    for k in range(N):
        v = [*v, np.sin(x[1] * v[-1]) + 0.1 * v[k]]
    return sum(i * each for i, each in enumerate(v))


def grown_in_front(x: Any) -> Any:
    v: list[Any] = []
    for k in range(N):
        v = [x[0] * k, 0.5, *v]
    return sum(x[1] ** i * each for i, each in enumerate(v))


def grown_around(x: Any) -> Any:
    v = (x[0],)
    for _ in range(N):
        v = (0.9 * v[0], *v, x[1] * v[-1])
    return sum(i * each for i, each in enumerate(v)) * (1.0 if isinstance(v, tuple) and type(v) is tuple else 0.0)


def tuple_with_more(x: Any) -> Any:
    t, y = (), x[0]
    for _ in range(N):
        y = np.sin(y) + x[1]
        t += (y, 0.1 * y)
    return np.sum(np.array(t) ** 2) + t[-1] * len(t)


def tuple_of_two(x: Any) -> Any:
    t = (1.0, x[0])
    for k in range(N):
        t = t + (x[1] * t[k] + 0.3 * t[-1],)
    return t[-1] * t[3] + sum(t[:5])


def several_of_one(x: Any) -> Any:
    """Lists made of one list, of which each has what it was made with."""
    v, s = [x[0]], 0.0
    for k in range(N):
        a, b = [*v, x[1]], [*v, 2.0 * x[0]]
        s += a[-1] * b[-1] + sum(a) * 0.01 + len(b)
        v = a if k < 0 else b
    return s + sum(v)


def from_tuple_to_list(x: Any) -> Any:
    t = (x[0], x[1])
    for _ in range(N):
        listed = list(t)
        t = tuple(listed + [0.5 * sum(listed[-2:])])
    return t[-1] * t[2]


REGIONS = [
    pascal, grown, grown_in_front, grown_around, tuple_with_more, tuple_of_two, several_of_one, from_tuple_to_list,
    option, de_casteljau, by_pairs, neville, divided_differences, both_ends, slices_of_itself, to_the_last, turned,
    reduced, of_a_trip, two_lists, floats_before, conditions, complex_numbers, joined, from_nothing,
    asked_for, in_attributes, between_two_bounds, in_another_loop,
]  # fmt: skip


# --- what is unrolled ------------------------------------------------------------------------------------------------
def changed_in_place(x: Any) -> Any:
    v = [x[0] * i + x[1] for i in range(N)]
    for _ in range(N - 4):
        v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        v[0] *= 1.1
    return v[0] * v[1]


def kept(x: Any) -> Any:
    v = [x[0] * i + x[1] for i in range(N)]
    table = [v]
    for _ in range(N - 4):
        v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        table.append(v)
    return sum(row[0] * len(row) for row in table)


def one_before(x: Any) -> Any:
    v = old = [x[0] * i + x[1] for i in range(N)]
    for _ in range(N - 4):
        old = v
        v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
    return old[0] * v[0] + len(old)


def one_list_of_two_names(x: Any) -> Any:
    """A change behind the loop is one of both."""
    v = w = [x[0] * i + x[1] for i in range(N)]
    for _ in range(N - 4):
        w = v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
    v[0] = 7.0 * x[0]
    return w[0] * v[1]


def maybe_empty(x: Any) -> Any:
    total = 0.0
    for j in range(N):
        w = [x[0] * i for i in range(j)]
        total += 0.1 * x[1] * w[-1] if w else x[1]
    return total


def halved(x: Any) -> Any:
    v, n = [x[0] * i + x[1] for i in range(64)], 0
    for _ in range(17):
        v = [a + 0.5 * b for a, b in zip(v[::2], v[1::2], strict=False)] if len(v) > 1 else v
        n += len(v)
    return v[0] * n


def of_arrays(x: Any) -> Any:
    v = [x * i for i in range(N)]
    for _ in range(N - 4):
        v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
    return v[0].sum()


def integers(x: Any) -> Any:
    """Python's, which stay known."""
    c = [1]
    for _ in range(20):
        c = [a + b for a, b in zip([*c, 0], [0, *c], strict=False)]
    return np.ones(c[1])[:3].sum() * sum(1e-4 * a * x[0] ** i for i, a in enumerate(c)) + x[1]


def mixed(x: Any) -> Any:
    """No list and tuple are joined by ``+``, which is asked for in a trip of its own."""
    t: Any = (x[0],)
    for _ in range(N):
        t = (*t, x[1] * t[-1])
    try:
        t = t + [1.0]
    except TypeError:
        t = [*t, 1.0]
    return sum(t) * len(t)


def filtered(x: Any) -> Any:
    return sum(sum([x[0] * i for i in range(m) if i % 2]) * x[1] for m in range(1, N))


UNROLLED = [
    changed_in_place, kept, one_before, one_list_of_two_names, maybe_empty, halved, of_arrays, integers,
    filtered, mixed,
]  # fmt: skip
X = np.array([0.7, 0.9])


@pytest.mark.parametrize(
    ("f", "x", "backend"),
    on_backends([(f, X) for f in [*REGIONS, *UNROLLED]], [option, de_casteljau, grown, grown_around]),
)
def test_values_and_slopes_are_pythons(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, 1e-4)


@pytest.mark.parametrize("f", REGIONS, ids=lambda f: f.__name__)
def test_loops_are_regions(f: Function) -> None:
    said = sg.explain(sg.jit(f))(X)["how it runs"]
    assert "one region" in said and "unrolled" not in said


@pytest.mark.parametrize("f", [option, de_casteljau, divided_differences, both_ends, two_lists, of_a_trip, joined])
def test_as_many_operations_for_more_trips(f: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    few = operations(sg.grad(f), X.shape)
    monkeypatch.setattr(f"{__name__}.N", 2 * N)
    assert operations(sg.grad(lambda x: f(x)), X.shape) <= few + 6


@pytest.mark.parametrize("f", [de_casteljau, turned, joined, grown, tuple_with_more])
def test_second_derivatives_and_examples(f: Function) -> None:
    check_second_order(f, X)


@pytest.mark.parametrize("f", [grown, tuple_with_more, tuple_of_two])
def test_items_are_written_behind_those_that_are_there(f: Function) -> None:
    """A copy of all items in each trip took a time that grew with the square of the trips."""
    program = str(sg.explain(sg.grad(f))(X)["ir"])
    assert "scatter_set" in program and "concatenate" not in program


def test_what_a_list_is_made_of_is_asked_in_the_order_of_pythons() -> None:
    asked: list[str] = []

    def say(text: str, value: Any) -> Any:
        asked.append(text)
        return value

    def items(text: str, *values: Any) -> Any:
        for k, value in enumerate(values):
            yield say(f"{text}{k}", value)

    def f(x: Any) -> Any:
        for _ in range(1):
            found = [say("a", x), *items("b", x, x), say("c", 2.0), *items("d", x)]
            pair = (*found, *items("e", 1.0))
        a, *b = pair
        return a + sum(b)

    assert f(3.0) == 15.0
    expected, asked = asked, []
    assert sg.value_and_grad(f)(3.0) == (15.0, 4.0)
    assert asked[: len(expected)] == expected
    with pytest.raises(TypeError, match="iter"):
        sg.grad(lambda x: sum([*range(2), *x]))(3.0)


def test_an_index_beyond_the_end_is_pythons_error() -> None:
    def beyond(x: Any) -> Any:
        v = [x[0] * i for i in range(N)]
        for j in range(N, 0, -1):
            v = [0.5 * (v[i] + v[i + 1]) for i in range(j)]
        return v[0]

    with pytest.raises(IndexError):
        sg.grad(beyond)(X)


def test_floats_of_one_precision_stay_pythons() -> None:
    """Python's floats in a list do not widen an array of float32."""

    def weighted(x: Any) -> Any:
        v = [0.1 * i for i in range(N)]
        for _ in range(N - 1):
            v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        return x * v[0]

    def of_float32(x: Any) -> Any:
        v = [x[0] * i for i in range(N)]
        for _ in range(N - 1):
            v = [0.5 * (a + b) for a, b in zip(v, v[1:], strict=False)]
        return v[0]

    x = np.ones(3, np.float32)
    for f in (weighted, of_float32):
        found = sg.jit(f)(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, f(x), rtol=1e-6)


def test_a_loop_that_a_clock_ends_beside_a_list_that_grows() -> None:
    """How long the list is says nothing of when it ends."""

    def clocked(x: Any) -> Any:
        t, ts = 0.0, [x[0]]
        while t < 1.0:
            ts.append(ts[-1] * x[1])
            t += 0.04
        return sum(ts)

    check(clocked, X, "llvm", 1e-5)
