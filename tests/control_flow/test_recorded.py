"""Lists to which a loop with a traced end appends, and of which an array is made: one program for all lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.conversion import recorded
from tests.control_flow.test_filled import check


def adaptive(k: Any) -> Any:
    t, y, h = 0.0, np.array([k, 0.3]), 0.1
    ts, ys = [0.0], [y]
    while t < 2.0:
        one = np.array([y[1], -np.sin(y[0])])
        two = np.array([y[1] + h * one[1], -np.sin(y[0] + h * one[0])])
        error = np.max(np.abs(h * (two - one))) / 2e-2
        if error < 1:
            t += h
            y = y + h * (one + two) / 2
            ts.append(t)
            ys.append(y)
        h = h * min(1.5, max(0.3, 0.9 / np.sqrt(error + 1e-12)))
    a = np.array(ys)
    return np.trapezoid(a[:, 0] ** 2, np.array(ts)) + ys[-1][0] * len(ts) + ys[0][1] + ys[-2][1]


def empty_at_first(k: Any) -> Any:
    x, found = k, []
    while x > 0.1:
        x = x * 0.8 * np.cos(0.3 * k) ** 2
        found.append(x)
    return np.mean(np.asarray(found) ** 2) + len(found)


def stacked(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y)
    return np.stack(ys)[:, 1].sum() * ys[1][0] + ys[-5][0]


def of_two_kinds(k: Any) -> Any:
    ts, t, x = [0], 0, k
    while x > 0.1:
        x = x * 0.7
        t = t + 0.1 * x
        ts.append(t)
    return np.array(ts).sum() + ts[0] + ts[-1]


def by_other_trips(k: Any) -> Any:
    x, low, found = k, [k], []
    while x > 0.1:
        x = x * 0.7
        if x < 0.9:
            low.append(x)
        found.append(x)
    return np.array(low).sum() + np.array(found).mean()


def in_two_loops(k: Any) -> Any:
    x, xs = k, [k]
    while x > 1.0:
        x = x * 0.8
        xs.append(x)
    while x > 0.1:
        x = x * 0.7
        xs.append(x * x)
    if k > 1.2:
        xs.append(x)
    return np.sum(np.array(xs) * np.array(xs)) + len(xs)


def read_on_a_condition(k: Any) -> Any:
    x, xs, found = k, [k], 0.0
    while x > 0.1:
        x = x * 0.7
        xs.append(x)
    if k < 1.2:
        found = np.array(xs).mean()
    return found + np.array(xs).sum()


def read_inside(k: Any) -> Any:
    x, xs = k, [k]
    while x > 0.2:
        x = x * 0.6 + 0.01 * np.mean(np.array(xs))
        xs.append(x)
    return x + np.sum(np.diff(np.array(xs)) ** 2)


def made_anew(k: Any) -> Any:
    total = 0.0 * k
    for start in range(3):
        x = k + start
        xs, ts = [x], [0.0]
        while x > 0.2:
            x = x * 0.7
            if x < 2.0:
                xs.append(x)
                ts.append(ts[-1] + x)
        total = total + np.trapezoid(np.array(xs), np.array(ts))
    return total


def left_by_break(k: Any) -> Any:
    x, xs = k, []
    while True:
        x = x * 0.8
        xs.append(x)
        if x < 0.2 or len(xs) > 50:
            break
    return np.sum(np.array(xs) ** 2)


def copies(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y.copy()]
    while np.sum(y * y) > 0.1:
        y *= 0.7
        ys.append(y.copy())
    a = np.array(ys)
    a[0] = 0.0
    return np.sum(np.array(ys)[:, 0]) + np.sum(a)


def complex_numbers(k: Any) -> Any:
    """Of which the derivative reads the loop's tapes in a part that gives one number."""
    z = k + 0j
    zs = [z]
    while abs(z) > 0.1:
        z = z * (0.6 + 0.3j)
        zs.append(z)
    return np.abs(np.array(zs)).sum() + zs[-1].real


ONE_PROGRAM = [adaptive, empty_at_first, stacked, of_two_kinds, by_other_trips, in_two_loops, read_on_a_condition,
               read_inside, made_anew, left_by_break, copies, complex_numbers]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_arrays_of_recorded_lists(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("f", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_a_loop_that_records_a_list_is_one_program(f: Callable[[Any], Any]) -> None:
    g = sg.grad(f, backend="numpy")
    for k in (1.3, 0.93):
        assert g(k) == pytest.approx((f(k + 1e-6) - f(k - 1e-6)) / 2e-6, rel=1e-5)
    assert sg.explain(g)(1.3)["how it runs"].startswith("One program")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_second_derivatives_of_recorded_lists(backend: str) -> None:
    first = sg.grad(adaptive, backend=backend)
    wanted = (first(1.3 + 1e-6) - first(1.3 - 1e-6)) / 2e-6
    assert sg.hvp(adaptive, (1.3,), (1.0,), backend=backend) == pytest.approx(wanted, rel=1e-5)
    assert sg.jvp(adaptive, (1.3,), (1.0,), backend=backend)[1] == pytest.approx(first(1.3), rel=1e-10)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [adaptive, empty_at_first, read_on_a_condition, stacked], ids=lambda f: f.__name__)
def test_more_items_than_there_is_room_for(f: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "ROOM", 8)
    monkeypatch.setattr(recorded, "LEAST_ROOM", 4)
    g, h = sg.grad(f, backend=backend), sg.jit(f, backend=backend)
    for k in (0.9, 1.1, 3.1, 0.9):
        assert h(k) == pytest.approx(f(k), rel=1e-12)
        assert g(k) == pytest.approx((f(k + 1e-6) - f(k - 1e-6)) / 2e-6, rel=1e-5)


def changed_in_place(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y *= 0.7
        ys.append(y)
    return np.sum(np.array(ys)[:, 0])


def changed_by_the_next_trip(k: Any) -> Any:
    y, ys, n = np.array([k, 2 * k]), [], 0
    while np.sum(y * y) > 0.1:
        if n > 0:
            y[1] = y[1] * 0.9
        y = y * 0.7
        ys.append(y)
        n += 1
    return np.sum(np.array(ys)[:, 1])


def changed_behind_the_loop(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y)
    y[0] = 5.0 * k
    return np.sum(np.array(ys)[:, 0])


def an_item_changed(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y)
    last = ys[-1]
    last[0] = 3 * k
    return np.sum(np.array(ys)[:, 0])


def one_or_another_changed(k: Any) -> Any:
    y, w = np.array([k, 2 * k]), np.array([k, k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y if y[0] > 0.5 else w)
    w[0] = 9.0 * k
    return np.sum(np.array(ys)[:, 0])


def a_known_one_changed(k: Any) -> Any:
    start = np.array([1.0, 2.0])
    y, ys = start * k, [start]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y)
    start[0] = 4.0
    return np.sum(np.array(ys)[:, 0]) * k


def told_by_is(k: Any) -> Any:
    y = np.array([k, 2 * k])
    ys = [y]
    while np.sum(y * y) > 0.1:
        y = y * 0.7
        ys.append(y)
    last = ys[-1]
    return np.sum(np.array(ys)[:, 0]) * (2.0 if last is y else 3.0)


def of_another_length(k: Any) -> Any:
    x, xs = k, [k]
    while x > 0.2:
        x = x * 0.6
        xs.append(x)
    return np.abs(np.fft.rfft(np.array(xs))).sum()


def known_length(k: Any) -> Any:
    t, x = 0.0, k
    ts, xs = [t], [x]
    while t < 0.5:
        t += 0.01
        x = x * 0.99
        ts.append(t)
        xs.append(x)
    return np.abs(np.fft.rfft(np.array(xs))[:3]).sum() + np.trapezoid(np.array(xs), np.array(ts))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [changed_in_place, changed_by_the_next_trip, changed_behind_the_loop, an_item_changed, one_or_another_changed,
     a_known_one_changed, told_by_is, of_another_length, known_length],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_lists_whose_items_rows_do_not_stand_for_stay_lists(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_an_item_that_a_recorded_list_has_not_got_raises(backend: str) -> None:
    def f(k: Any) -> Any:
        x, xs = k, [k]
        while x > 1.0:
            x = x * 0.5
            xs.append(x)
        return xs[2] + np.sum(np.array(xs))

    g = sg.grad(f, backend=backend)
    assert g(3.0) == pytest.approx(2.0)
    with pytest.raises(IndexError, match="list index out of range"):
        g(1.5)


def test_an_array_of_the_users_own_is_asked() -> None:
    def f(k: Any, array: Callable[[Any], Any] = lambda items: items[1]) -> Any:
        x, xs = k, [k]
        while x > 0.2:
            x = x * 0.6
            xs.append(x)
        return array(xs) * xs[0]

    assert sg.grad(f)(1.5) == pytest.approx(2 * 0.6 * 1.5)
