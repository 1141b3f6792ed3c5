"""Lists of arrays of which each trip of a loop assigns one item, ``states = [None] * n`` and then ``states[t] = h``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

N = 40
YS = np.random.default_rng(0).normal(size=(N, 1))
P = np.array([0.3, 0.2])


def filtered(p: Any, start: Callable[[], list[Any]]) -> Any:
    """A Kalman filter."""
    transition, noise = np.array([[1.0, p[0]], [0.0, 1.0]]), p[1] * np.eye(2)
    means, covariances, expected, before = start(), start(), start(), start()
    m, c, total = np.zeros(2), np.eye(2), 0.0
    for t in range(N):
        m, c = transition @ m, transition @ c @ transition.T + noise
        expected[t], before[t] = m, c
        v, s = YS[t] - m[:1], c[:1, :1] + 0.5
        gain = c[:, :1] / s
        m, c = m + gain @ v, c - gain @ s @ gain.T
        total = total - 0.5 * (np.log(s[0, 0]) + v @ np.linalg.solve(s, v))
        means[t] = m
        covariances[t] = c
    return transition, means, covariances, expected, before, total


def smoothed(p: Any) -> Any:
    """A filter and the smoother of Rauch, Tung and Striebel, which runs backwards and reads what it has assigned."""
    transition, means, covariances, expected, before, total = filtered(p, lambda: [None] * N)
    m, c = [None] * N, [None] * N
    m[N - 1], c[N - 1] = means[N - 1], covariances[N - 1]
    for t in range(N - 2, -1, -1):
        gain = covariances[t] @ transition.T @ np.linalg.inv(before[t + 1])
        m[t] = means[t] + gain @ (m[t + 1] - expected[t + 1])
        c[t] = covariances[t] + gain @ (c[t + 1] - before[t + 1]) @ gain.T
    return np.sum(np.array(m)[:, 0] ** 2) + sum(np.trace(x) for x in c) + 0.1 * total


def backwards(p: Any) -> Any:
    x: list[Any] = [None] * N
    h = p
    for t in range(N - 1, -1, -1):
        h = np.sin(h) + 0.1 * t * p
        x[t] = h
    h *= 2.0
    return np.sum(np.stack(x)[:, 0] * np.arange(N)) + x[0][1] * x[3][0]


def from_zeros(p: Any) -> Any:
    return filtered(p, lambda: [0.0] * N)[-1]


def from_lists(p: Any) -> Any:
    return np.sum(np.stack(filtered(p, lambda: [[] for _ in range(N)])[1]) ** 2)


def from_arrays(p: Any) -> Any:
    return np.sum(np.stack(filtered(p, lambda: [np.zeros((1, 2))] * N)[1]) ** 2)


def in_a_dict(p: Any) -> Any:
    store = {"x": [None] * N, "e": [None] * N}
    store["x"][0] = p * 1.0
    for t in range(1, N):
        store["x"][t] = 0.9 * np.sin(store["x"][t - 1]) + 0.1 * p
        store["e"][t] = np.sum(store["x"][t] ** 2)
    return np.sum(np.array(store["x"]) ** 2) + sum(store["e"][1:]) + store["x"][7][1]


def before_the_step(p: Any) -> Any:
    """What the variable has before the loop is the first item; a write into it is in the list."""
    x = start = p * 2.0
    path: list[Any] = [None] * N
    for t in range(N):
        path[t] = x
        x = x - 0.1 * np.sin(x)
    start[0] = p[1]
    x *= 3.0
    return np.sum(np.stack(path) ** 2) + np.sum(x)


def two_steps_back(p: Any) -> Any:
    x: list[Any] = [None] * (N + 5)
    x[0], x[1] = p, p[::-1] * 0.5
    last = p
    for t in range(2, N):
        last = x[t - 2]
        x[t] = 0.5 * x[t - 1] + 0.4 * np.cos(last)
    last = last * 2.0
    return np.sum(x[N - 1] * last) + np.sum(x[N // 2]) + len([k for k in x if k is None]) * p[0]


def all_before(p: Any) -> Any:
    """An inner loop reads whatever is there."""
    x: list[Any] = [None] * N
    x[0] = p
    for t in range(1, N):
        h = p * t
        for s in range(t):
            h = h + x[s] / (1.0 + t - s) ** 2
        x[t] = np.tanh(0.1 * h)
    return np.sum(x[-1]) + np.sum(np.stack(x))


def written_in_its_trip(p: Any) -> Any:
    x: list[Any] = [None] * N
    for t in range(N):
        x[t] = np.zeros(3) + p[0]
        x[t][1] = p[1] * t
        x[t] += 0.5
        x[t] = x[t] * p[0]
    return np.sum(np.stack(x) ** 2)


def changed_afterwards(p: Any) -> Any:
    """The items are arrays of their own, the last one is that of the variable."""
    x: list[Any] = [None] * N
    m = last = p
    for t in range(N):
        last = x[t - 1] if t else p
        m = np.sin(m) + 0.1 * t
        x[t] = m
    m += 1.0
    x[0][0] = 5.0
    x[3] *= p[0]
    return np.sum(np.stack(x) ** 2) + np.sum(last) + x[-1][0]


def last_one_read(p: Any) -> Any:
    """A variable that holds what the last trip has read is that item of the list."""
    x: list[Any] = [None] * N
    x[0] = p * 1.0
    for t in range(1, N):
        y = x[t - 1]
        x[t] = np.cos(y)
    y += p
    x[2][0] = 3.0
    return np.sum(np.stack(x) ** 2) * y[0]


def numbers(p: Any) -> Any:
    d: list[Any] = [None] * N
    x: list[Any] = [None] * N
    d[0] = p[0]
    for i in range(1, N):
        d[i] = p[1] / (2.0 + d[i - 1])
    x[N - 1] = d[N - 1]
    for i in range(N - 2, -1, -1):
        x[i] = d[i] - 0.5 * x[i + 1]
    return sum(x)


def accepted_or_not(p: Any) -> Any:
    """Items that may be one array."""
    chain: list[Any] = [None] * N
    q = p * 1.0
    for t in range(N):
        proposed = q + 0.1 * np.sin(t + q)
        if proposed[0] < 0.6:
            q = proposed
        chain[t] = q
    return np.sum(np.stack(chain) ** 2)


def paths(p: Any) -> Any:
    """The best way through a lattice, whole numbers too."""
    score: list[Any] = [None] * N
    came: list[Any] = [None] * N
    score[0] = p * 1.0
    for t in range(1, N):
        every = score[t - 1][:, None] + np.array([[0.1, p[0]], [p[1], 0.2]]) * np.cos(0.3 * t)
        came[t] = np.argmax(every, axis=0)
        score[t] = np.max(every, axis=0)
    return np.max(score[-1]) + sum(np.sum(x) for x in came[1:])


def first_trip_another(p: Any) -> Any:
    x: list[Any] = [None] * N
    y: list[Any] = [None] * N
    for t in range(N):
        before = x[t - 1] if t > 0 else p
        x[t] = np.cos(before) * p
        if t == 0:
            y[t] = p[0]
        else:
            y[t] = 0.5 * y[t - 1] + x[t][1]
    return np.sum(np.stack(x) ** 2) + sum(y)


PLACED = [
    smoothed, backwards, from_zeros, from_lists, from_arrays, in_a_dict, before_the_step, two_steps_back, all_before,
    written_in_its_trip, last_one_read, numbers, accepted_or_not, paths, first_trip_another,
]  # fmt: skip


def another_place(p: Any) -> Any:
    """A place that two trips assign."""
    x: list[Any] = [None] * N
    for t in range(N):
        x[t // 2] = p * t
        x[N - 1 - t // 2] = p + t
    return np.sum(np.stack(x) ** 2)


def on_a_condition(p: Any) -> Any:
    x = [p * 1.0 for _ in range(N)]
    for t in range(N):
        if p[0] * t > 3.1:
            x[t] = p * t
    return np.sum(np.stack(x) ** 2)


def one_array_twice(p: Any) -> Any:
    x: list[Any] = [None] * N
    y: list[Any] = [None] * N
    for t in range(N):
        x[t] = y[t] = p * t
    x[3][0] = 7.0
    return np.sum(np.stack(y) ** 2)


def changed_after_it_was_assigned(p: Any) -> Any:
    x: list[Any] = [None] * N
    m = p * 1.0
    for t in range(N):
        m *= 0.9
        x[t] = m
    return np.sum(np.stack(x) ** 2)


def changed_in_the_next_trip(p: Any) -> Any:
    x: list[Any] = [None] * N
    x[0] = p * 1.0
    for t in range(1, N):
        x[t - 1] *= p[0]
        x[t] = x[t - 1] + 1.0
    return np.sum(np.stack(x) ** 2)


def changed_where_it_is_read(p: Any) -> Any:
    x: list[Any] = [None] * N
    x[0] = p * 1.0
    for t in range(1, N):
        before = x[t - 1]
        before *= 0.9
        x[t] = before + 1.0
    return np.sum(np.stack(x) ** 2)


def changed_by_another_name(p: Any) -> Any:
    x: list[Any] = [None] * N
    x[0] = first = p * 1.0
    for t in range(1, N):
        first *= 0.9
        x[t] = x[0] * 1.0 if t < 3 else x[t - 1] + x[t - 3]
    return np.sum(np.stack(x) ** 2) / 1e6


def first_changed(p: Any) -> Any:
    x: list[Any] = [None] * N
    x[0] = first = p * 1.0
    for t in range(1, N):
        first *= 0.9
        x[t] = 0.5 * x[t - 1]
    return np.sum(np.stack(x) ** 2)


def of_two_shapes(p: Any) -> Any:
    x: list[Any] = [None] * N
    for t in range(N):
        x[t] = p * t if t < 7 else np.concatenate([p, p])
    return sum([np.sum(y) for y in x])


def parts_of_one(p: Any) -> Any:
    x: list[Any] = [None] * N
    a = np.outer(np.arange(N), p)
    for t in range(N):
        x[t] = a[t]
    a[3] = 0.0
    return np.sum(np.stack(x) ** 2)


def asked_for_none(p: Any) -> Any:
    x: list[Any] = [None] * N
    for t in range(N):
        x[t] = p * t if t == 0 or x[t - 1] is None else x[t - 1] + p
    return np.sum(np.stack(x) ** 2)


OTHERWISE = [
    another_place, on_a_condition, one_array_twice, changed_after_it_was_assigned, changed_in_the_next_trip,
    changed_where_it_is_read, changed_by_another_name, first_changed, of_two_shapes, parts_of_one, asked_for_none,
    changed_afterwards,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*PLACED, *OTHERWISE], ids=lambda f: f.__name__)
def test_items_that_trips_assign(f: Callable[[Any], Any], backend: str) -> None:
    """Value and derivatives beside NumPy and its differences."""
    value, slope = sg.value_and_grad(f, backend=backend)(P)
    assert value == pytest.approx(f(P), rel=1e-10)
    h = 1e-6
    differences = [(f(P + h * e) - f(P - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-6)
    pushed = [sg.jvp(f, (P,), (e,), backend=backend)[1] for e in np.eye(2)]
    np.testing.assert_allclose(slope, pushed, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("f", PLACED, ids=lambda f: f.__name__)
def test_a_loop_that_assigns_items_is_one_region(f: Callable[[Any], Any]) -> None:
    said = sg.explain(sg.grad(f, backend="numpy"))(P)["how it runs"]
    assert "unrolled" not in said
    assert "one region" in said


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("step", "error"), [(0, TypeError), (1, TypeError), (-2 * N, IndexError), (N, IndexError)], ids=str
)
def test_items_that_are_not_there(step: int, error: type[Exception], backend: str) -> None:
    def f(p: Any) -> Any:
        x: list[Any] = [None] * N
        x[0] = p
        for t in range(1, N):
            x[t] = p * x[t + step] if step else p * x[t]
        return np.sum(np.stack(x))

    with pytest.raises(error):
        f(P)
    with pytest.raises(error):
        sg.grad(f, backend=backend)(P)


def test_the_list_holds_what_it_had_elsewhere() -> None:
    def f(p: Any) -> Any:
        x: list[Any] = ["first", *[None] * N, p, "last"]
        for t in range(N):
            x[t + 1] = p * t
        return x[N + 1], x[1 : N + 1], x[0] == "first" and x[-1] == "last" and len(x) == N + 3

    item, items, rest = sg.jit(f)(P)
    assert rest
    np.testing.assert_array_equal(item, P)
    np.testing.assert_array_equal(items, f(P)[1])
