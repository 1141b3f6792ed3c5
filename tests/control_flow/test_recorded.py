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


def by_numpys_functions(k: Any) -> Any:
    x, t = k, 0.0
    xs, ts = [x], [t]
    while x > 0.1:
        h = 0.1 + 0.1 * x
        x = x * (1 - h)
        t = t + h
        xs.append(x)
        ts.append(t)
    ends = np.trapezoid(xs, x=ts) + np.interp(0.7, ts, xs) + np.max(xs) * np.mean(ts) - np.std(xs, ddof=1)
    return ends + np.dot(xs, ts) + np.sum(np.diff(xs) ** 2) + np.array(xs, dtype=float)[-1]


def rebound(k: Any) -> Any:
    t, y = 0.0, np.array([k, 0.5 * k])
    ts, ys = [t], [y]
    while y[0] > 0.1:
        y = y * np.array([0.8, 0.9])
        t = t + 0.1 * y[1]
        ts.append(t)
        ys.append(y)
    ts, ys = np.array(ts), np.array(ys)
    ys[0] = 2.0 * k
    ts = ts * 2
    return np.trapezoid(ys[:, 1], ts) + len(ts) * ys[-1, 0]


ONE_PROGRAM = [
    adaptive, empty_at_first, stacked, of_two_kinds, by_other_trips, in_two_loops, read_on_a_condition,
    read_inside, made_anew, left_by_break, copies, complex_numbers, by_numpys_functions, rebound,
]  # fmt: skip


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


def as_arrays(k: Any, n: Any) -> Any:
    """`as_lists`, with arrays that the program keeps itself."""
    t, x, count = 0.0, k, 1
    ts, xs = np.zeros(16), np.zeros(16)
    xs[0] = x
    while t < n - 1.5:
        t = t + 1.0
        x = x + 0.1 * np.sin(x) * k
        ts[count] = t
        xs[count] = x
        count += 1
    inside = np.where(np.arange(15) < count - 1, (xs[1:] ** 2 + xs[:-1] ** 2) / 2 * np.diff(ts), 0.0)
    return np.sum(inside) + xs[count - 1] * count + xs[count - 2] + xs[1]


def as_lists(k: Any, n: Any) -> Any:
    t, x = 0.0, k
    ts, xs = [t], [x]
    while t < n - 1.5:
        t = t + 1.0
        x = x + 0.1 * np.sin(x) * k
        ts.append(t)
        xs.append(x)
    return np.trapezoid(np.array(xs) ** 2, np.array(ts)) + xs[-1] * len(ts) + xs[-2] + xs[1]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_last_row_counts_and_one_more_has_a_path(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "ROOM", 8)
    monkeypatch.setattr(recorded, "LEAST_ROOM", 4)
    found, wanted = (sg.value_and_grad(f, backend=backend) for f in (as_lists, as_arrays))
    for n in (3.0, 7.0, 8.0, 9.0, 10.0, 8.0):
        np.testing.assert_allclose(found(1.3, n), wanted(1.3, n), rtol=1e-13)
        jvp = sg.jvp(as_lists, (1.3, n), (1.0, 0.0), backend=backend)[1]
        np.testing.assert_allclose(jvp, wanted(1.3, n)[1], rtol=1e-13)


def stiff(p: Any, root: Any = np.sqrt) -> Any:
    """Steps as stability allows them, thousands of which are refused or changed: differences see their number jump."""
    t, x, v, h = 0.0, 2.0 * p, 0.3 * p, 1e-3
    ts, xs = [0.0], [x]
    while t < 6.0:
        dv = 50.0 * (1 - x * x) * v - x
        x1, v1 = x + h * v, v + h * dv
        dv1 = 50.0 * (1 - x1 * x1) * v1 - x1
        ex, ev = h * (v1 - v) / 2, h * (dv1 - dv) / 2
        error = root(ex * ex + ev * ev) / 1e-4
        if error < 1:
            t, x, v = t + h, x + h * (v + v1) / 2, v + h * (dv + dv1) / 2
            ts.append(t)
            xs.append(x)
        h = h * min(5.0, max(0.2, 0.9 / root(error + 1e-12)))
    a, b = np.array(xs), np.array(ts)
    return np.sum((a[1:] ** 2 + a[:-1] ** 2) * (b[1:] - b[:-1]) / 2) + xs[-1] * len(ts) * 0.01


class Dual:
    """A number and its derivative along the path that Python takes."""

    def __init__(self, value: float, slope: float = 0.0) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Any) -> Dual:
        other = dual(other)
        quotient = self.value / other.value
        return Dual(quotient, (self.slope - quotient * other.slope) / other.value)

    def __sub__(self, other: Any) -> Dual:
        return self + dual(other) * -1.0

    def __rsub__(self, other: Any) -> Dual:
        return dual(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return dual(other) / self

    def __pow__(self, power: int) -> Dual:
        return Dual(self.value**power, power * self.value ** (power - 1) * self.slope)

    def __lt__(self, other: Any) -> bool:
        return self.value < dual(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > dual(other).value

    __radd__, __rmul__ = __add__, __mul__


def dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def dual_root(x: Any) -> Dual:
    found = np.sqrt(x.value)
    return Dual(found, x.slope / (2 * found))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_thousands_of_steps_have_the_derivative_along_their_path(backend: str) -> None:
    """Of differences, some are hundreds of times as large."""
    wanted = stiff(Dual(1.1, 1.0), dual_root)
    value, slope = sg.value_and_grad(stiff, backend=backend)(1.1)
    assert value == pytest.approx(wanted.value, rel=1e-12)
    assert slope == pytest.approx(wanted.slope, rel=1e-9)
    assert sg.jvp(stiff, (1.1,), (1.0,), backend=backend)[1] == pytest.approx(wanted.slope, rel=1e-9)


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


def set_to_itself(k: Any) -> Any:
    x, xs = k, [k]
    while x > 0.2:
        x = x * 0.6
        xs.append(x)
    before = xs
    xs = before
    xs.append(3.0 * k)
    return np.array(before).sum() + len(xs)


def seen_by_another_function(k: Any) -> Any:
    x, xs = k, [k]

    def total() -> Any:
        return np.sum(np.array(xs))

    while x > 0.2:
        x = x * 0.6
        xs.append(x)
    before = total()
    xs = np.array(xs) ** 2  # type: ignore[assignment]
    return before + total() ** 3


def set_on_a_condition(k: Any) -> Any:
    x, xs = k, [k]
    while x > 0.2:
        x = x * 0.6
        xs.append(x)
    if k > 1.2:
        xs = np.array(xs)  # type: ignore[assignment]
    return np.sum(xs * 2) + len(xs)


def of_its_own_array(k: Any) -> Any:
    def array(items: Any) -> Any:
        return items[0] * (2.0 if isinstance(items, list) else 3.0)

    x, xs = k, [k]
    while x > 0.2:
        x = x * 0.6
        xs.append(x)
    return array(xs) + xs[-1]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [set_to_itself, seen_by_another_function, set_on_a_condition, of_its_own_array, changed_in_place,
     changed_by_the_next_trip, changed_behind_the_loop, an_item_changed, one_or_another_changed,
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
