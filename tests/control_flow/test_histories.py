"""Lists of which a function reads the ends and the length alone: loops that end where values say so are regions."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.test_filled import check


def adaptive(k: Any) -> Any:
    times, states = [0.0], [k]
    step = 0.1
    while times[-1] < 2.0:
        y = states[-1]
        one = -y * y
        two = -((y + step * one) ** 2)
        if abs(two - one) * step < 1e-2:
            times.append(times[-1] + step)
            states.append(y + step * (one + two) / 2)
            step = step * 1.25
        else:
            step = step * 0.5
    return states[-1] * np.sin(times[-1]) + 0.01 * len(states)


def never_read(a: Any) -> Any:
    x, errors = a, []
    for _ in range(100):
        new = 0.5 * (x + a / x)
        errors.append(abs(new - x))
        if errors and abs(new - x) < 1e-12:
            break
        x = new
    return new


def unread(a: Any) -> Any:
    x, errors, count = a, [], 0
    for _ in range(100):
        new = 0.5 * (x + a / x)
        errors.append(abs(new - x))
        count += 1
        if abs(new - x) < 1e-12:
            break
        x = new
    return new + count


def counted(k: Any) -> Any:
    x, log = k, []
    while x > 1e-3 and len(log) < 40:
        x = x * 0.7 * np.cos(k) ** 2
        log.append(x)
    return x + len(log)


def relative(k: Any) -> Any:
    residuals: list[Any] = [k, k * 0.9]
    while residuals[-1] > 1e-3 * residuals[0]:
        residuals.append(residuals[-1] * 0.5 * np.tanh(residuals[0]) + 0.1 * residuals[-2] * np.sin(k))
    return residuals[-2] * residuals[0] + residuals[-1] + residuals[1]


def three_back(k: Any) -> Any:
    log = [k, 2 * k, 3 * k, 4 * k]
    while log[-1] < 60.0:
        log.append(log[-1] + log[-2] + 0.5 * log[-3])
    return log[-1] + 10 * log[-2] + 100 * log[-3]


def empty_at_first(k: Any) -> Any:
    found = []
    while k > 1.0:
        k = k * 0.7
        found.append(k * k)
    return found[-1]


def made_anew(k: Any) -> Any:
    total = k * 0
    for start in (1.0, 2.0, 3.0):
        trace, extra = [start * k, start], 0.5
        while trace[-1] < 20.0:
            trace.append(trace[-1] * 1.5 + trace[-2] * extra)
        total = total + trace[-1] * len(trace)
    return total


def made_empty_anew(k: Any) -> Any:
    total = k * 0
    for start in range(1, 4):
        x, log = k * start, []
        while x < 20.0:
            x = x * 1.7
            log.append(x)
        total = total + x
    return total


def in_place(k: Any) -> Any:
    y = np.array([k, 2 * k, 1.0])
    states = [y]
    while np.sum(y * y) > 1e-2:
        y *= 0.7
        states.append(y)
    return np.sum(states[-1] * np.array([1.0, 2.0, 3.0])) + np.sum(states[0])


def two_lists_and_a_number(k: Any) -> Any:
    x, xs, n, fs = k, [k], 0, []
    while abs(x - 1.0) > 1e-6:
        x, n = x - 0.5 * (x - 1.0), n + 1
        xs.append(x)
        fs.append(np.exp(x))
    return xs[-1] * k + fs[-1] * n + xs[0] ** 2


def on_a_condition(k: Any) -> Any:
    """What happens at times that values decide, and at times that are known."""
    y, speed, bounces, speeds, kept, ends = 1.0 * k, 0.0, [], [0.0], [k], []
    for step in range(60):
        speed = speed - 0.02
        y = y + 0.1 * speed
        if y < 0:
            y, speed = -y, -0.5 * speed
            bounces.append(step)
            speeds.append(speed)
        elif step % 7 == 3:
            kept.append(y * k)
        if step % 20 == 5:
            ends.append(np.sin(y))
    return y + speeds[-1] * speeds[0] + 0.1 * len(bounces) + kept[-1] * kept[0] + ends[-1] * len(ends)


def returned_from_the_loop(k: Any) -> Any:
    log = [1.0]
    for i in range(60):
        log.append(log[-1] * 0.8 * np.cos(k / (i + 1)))
        if log[-1] < 1e-2:
            return log[-1] * k
    return log[0] * k


def ratio_of_an_empty_one(k: Any) -> Any:
    errors = []
    while k > 1e-3:
        k = k * 0.8
        errors.append(k * k)
    return errors[-1] / errors[0] + k


def mean_of_intervals(k: Any) -> Any:
    """Times that linear interpolation finds between two trips of many."""
    x, v, hits = 1.0, 0.0, []
    for step in range(150):
        new = x + 0.1 * v
        v = v - 0.1 * k * x
        if x < 0 <= new:
            hits.append(0.1 * (step - x / (new - x)))
        x = new
    return (hits[-1] - hits[0]) / (len(hits) - 1)


def three_of_an_empty_one(k: Any) -> Any:
    log = []
    while k > 1e-2:
        k = k * 0.7
        log.append(np.sin(k))
    return log[-3] + 10.0 * log[-2] + 100.0 * log[1] + 1000.0 * log[0]


def ends_made_anew(k: Any) -> Any:
    total = k * 0
    for start in range(1, 4):
        x, log = k * start, []
        while x < 30.0:
            x = x * 1.3
            log.append(x * k)
        total = total + log[0] * log[-1] + log[-2]
    return total


def made_in_two_places(k: Any) -> Any:
    log = [k, 2 * k]
    if k > 1.0:
        log = []
    while k < 20.0:
        k = k * 1.5
        log.append(k)
    return log[0] + 10 * log[1] + 100 * log[-1]


def made_by_list(k: Any) -> Any:
    log: list[Any] = list()  # noqa: C408
    times, ends = [k], list()  # noqa: C408
    while k > 0.1:
        k = k * 0.5
        log.append(k)
        times.append(times[-1] + k)
        ends.append(k)
    return log[-1] * 3 + times[-1] + len(log) + ends[0]


ONE_PROGRAM = [adaptive, unread, counted, relative, three_back, empty_at_first, made_anew, made_empty_anew, in_place,
               two_lists_and_a_number, on_a_condition, returned_from_the_loop, ratio_of_an_empty_one,
               mean_of_intervals, three_of_an_empty_one, ends_made_anew, made_in_two_places, made_by_list]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [*ONE_PROGRAM, never_read], ids=lambda f: f.__name__)
def test_histories_of_loops(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("f", ONE_PROGRAM, ids=lambda f: f.__name__)
def test_a_loop_that_keeps_a_history_is_one_program(f: Callable[[Any], Any]) -> None:
    said = sg.explain(sg.grad(f, backend="numpy"))(1.3)["how it runs"]
    assert said.startswith("One program")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_end_of_a_list_that_stayed_empty_raises(backend: str) -> None:
    g = sg.grad(empty_at_first, backend=backend)
    assert g(9.0) == pytest.approx(2 * 9.0 * 0.7**14, rel=1e-12)
    with pytest.raises(IndexError, match="list index out of range"):
        empty_at_first(0.5)
    with pytest.raises(IndexError, match="list index out of range"):
        g(0.5)


def halved(index: int) -> Any:
    """A function that reads the item of that index, which has to stand in the source."""
    file, made = f"<the item at {index}>", dict[str, Any]()
    linecache.cache[file] = (len(HALVED), None, HALVED.format(index).splitlines(True), file)
    exec(compile(HALVED.format(index), file, "exec"), made)
    return made["f"]


HALVED = """
def f(k):
    log = []
    while k > 1.0:
        k = k * 0.5
        log.append(k * k)
    return log[{}]
"""


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("index", [0, 1, -1, -2, -3])
def test_an_item_that_a_list_may_not_have_got_raises(index: int, backend: str) -> None:
    f = halved(index)
    g = sg.grad(f, backend=backend)
    assert sg.explain(g)(8.0)["how it runs"].startswith("One program")
    for k in (7.5, 0.9, 1.9, 3.9, 7.9, 0.5):
        try:
            f(k)
        except IndexError:
            with pytest.raises(IndexError, match="list index out of range"):
                g(k)
        else:
            assert g(k) == pytest.approx((f(k + 1e-6) - f(k - 1e-6)) / 2e-6, rel=1e-6)


def test_a_history_in_python_numbers_alone() -> None:
    """The converted function on numbers that are known: Python's own."""

    def f(x: Any) -> Any:
        known = [0]
        while known[-1] < 5:
            known.append(known[-1] + 3)
        return x ** len(known) + known[-1] * known[0] + np.sum(np.ones(known[-1]) * x)

    assert sg.grad(f)(2.0) == pytest.approx(3 * 2.0**2 + 6)


def seen(k: Any, how: str) -> Any:
    log = [k]
    while log[-1] > 0.3:
        log.append(log[-1] * 0.5)
    return log[-1] if how == "last" else sum(log)


def read_by_a_function(k: Any) -> Any:
    log = [k]

    def first() -> Any:
        return log[0]

    while log[-1] > 0.3:
        log.append(log[-1] * 0.5)
    return log[-1] * first()


def another_name(k: Any) -> Any:
    log = [k]
    same = log
    while log[-1] > 0.3:
        log.append(log[-1] * 0.5)
    return same[-1] * same[1]


def not_always_a_list(k: Any) -> Any:
    log = [k]
    while log[-1] > 0.3:
        log.append(log[-1] * 0.5)
    last = log[-1]
    log = (5.0,)
    return last * log[-1]


def first_of_an_empty_one(k: Any) -> Any:
    log: list[Any] = []
    while k > 0.3:
        k = k * 0.5
        log.append(k)
    try:
        first = log[0]
    except IndexError:
        first = 7.0
    return first * log[-1]


def second_from_the_end_of_one(k: Any) -> Any:
    log: list[Any] = []
    while k > 0.3:
        k = k * 0.5
        log.append(k)
    return log[-2] * log[-1]


def popped(k: Any) -> Any:
    stack = [k]
    while stack[-1] > 0.3:
        stack.append(stack[-1] * 0.5)
    return stack.pop() * stack[-1]


def assigned(k: Any) -> Any:
    log = [k]
    while log[-1] > 0.3:
        log.append(log[-1] * 0.5)
        log[0] = log[0] + 1.0
    return log[0] * log[-1]


def of_a_parameter(k: Any) -> Any:
    def inner(log: list[Any]) -> Any:
        while log[-1] > 0.3:
            log.append(log[-1] * 0.5)
        return log[-1]

    mine = [k]
    return inner(mine) * mine[1]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    "f",
    [read_by_a_function, another_name, not_always_a_list, first_of_an_empty_one, second_from_the_end_of_one, popped,
     assigned, of_a_parameter, lambda k: seen(k, "all")],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_lists_of_which_more_is_seen_stay_lists(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


def test_a_list_made_anew_has_no_items_of_the_one_before() -> None:
    def f(k: Any) -> Any:
        total = k * 0
        for limit in (0.1, 10.0):
            log: list[Any] = []
            x = k
            while x > limit:
                x = x * 0.5
                log.append(x)
            total = total + log[-1]
        return total

    with pytest.raises(IndexError):
        f(1.0)
    with pytest.raises(IndexError):
        sg.grad(f)(1.0)


def test_a_len_of_the_users_own_is_asked() -> None:
    def f(k: Any, len: Callable[[Any], int] = lambda x: 7) -> Any:
        log = [k]
        while log[-1] > 0.3:
            log.append(log[-1] * 0.5)
        return log[-1] * len(log)

    assert sg.grad(f)(1.0) == pytest.approx(0.25 * 7)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_list_of_the_users_own_is_called() -> None:
    def f(k: Any, list: Callable[[], Any] = lambda: [5.0]) -> Any:
        log = list()
        while k > 0.3:
            k = k * 0.5
            log.append(k)
        return log[-1] * len(log) + log[0] * k

    assert sg.grad(f)(1.0) == pytest.approx(0.25 * 3 + 5.0 * 0.25)
