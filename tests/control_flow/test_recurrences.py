"""Lists whose last items the trips of a loop read, or that trips take items from: recurrences of any order, stacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
N = 40
U = np.linspace(0.0, 1.0, N)
POINT = np.array([0.3, 0.7, -0.4])


def taps(x: Any) -> Any:
    """Numbers, of which the last two are read."""
    xs = [0.1, x[2]]
    for t in range(N):
        xs.append(np.tanh(U[t] + xs[-1] * x[0] + xs[-2] * x[1]))
    return np.sum(np.array(xs[2:]) ** 2)


def last_three(x: Any) -> Any:
    xs = [0.1, 0.2, x[2]]
    for t in range(N):
        xs.append(np.tanh(U[t] + x[0] * sum(xs[-3:]) + np.dot(xs[-2:], x[:2])))
    return np.array(xs[:2:-1])[::3].sum()


def from_the_beginning(x: Any) -> Any:
    xs = [x[2], 0.2]
    for t in range(N):
        xs.append(np.tanh(U[t] + xs[t] * x[0] + xs[t + 1] * x[1] + sum(xs[t : t + 2])))
    return np.sum(np.array(xs[1::2]))


def arrays(x: Any) -> Any:
    """Arrays, of which the last two are read."""
    xs = [x, 2.0 * x]
    for t in range(N):
        xs.append(np.tanh(U[t] + xs[-1] * x[0] + xs[-2][::-1] * 0.3))
    return np.sum(np.array(xs[2:]) ** 2) + xs[5][0]


def arrays_from_the_beginning(x: Any) -> Any:
    xs = [np.ones(3), x]
    for t in range(N):
        xs.append(np.tanh(U[t] + xs[t] * x[0] + xs[t + 1]))
    xs[3] *= 2.0
    return np.sum(np.stack(xs) ** 2)


def slices_of_arrays(x: Any) -> Any:
    xs = [x, 2.0 * x, x[::-1].copy()]
    for t in range(N):
        h = np.tanh(U[t] + x[0] * np.mean(xs[-3:], axis=0))
        xs.append(h)
        h = xs[-1] + len(xs) * xs[-2]
    return np.sum(np.array(xs) ** 2) + h @ xs[-1]


def slices_between_numbers(x: Any) -> Any:
    xs = [x, 2.0 * x]
    for t in range(N):
        first, second = xs[t : t + 2]
        xs.append(np.tanh(U[t] + first * x[0] + second))
    return np.sum(np.array(xs[::-2]) ** 2)


def known_first_items(x: Any) -> Any:
    """NumPy's own arrays, rows of another one."""
    xs = list(np.arange(6.0).reshape(2, 3) * 0.1)
    h = x
    for _ in range(N):
        h = np.sin(xs[-2] + h * xs[-1])
        xs.append(h)
    return np.sum(np.array(xs[4:-3]))


def stack(x: Any) -> Any:
    st, a = [], x[0]
    for _ in range(N):
        st.append(a)
        a = np.sin(a) * x[1]
    while st:
        a = a * 0.9 + np.cos(a) * st.pop()
    return a + len(st)


def stack_of_arrays(x: Any) -> Any:
    st, a = [], x
    for _ in range(N):
        st.append((a, a[0] * 2.0))
        a = np.sin(a) * x[1]
    for k in range(N - 2):
        b, c = st.pop()
        a = a * 0.9 + np.cos(a) * b * k + c
    return a.sum() + len(st) + st[-1][1]


def two_at_a_time(x: Any) -> Any:
    st, a = [1.0, 2.0], x[0]
    for _ in range(N):
        st.append(a)
        a = np.sin(a) * x[1]
    while len(st) > 4:
        left, right = st.pop(), st.pop()
        a = a + left * np.cos(right) * len(st)
    return a + sum(st)


def queue(x: Any) -> Any:
    waiting, a = list(x[0] * U), x[1]
    for k in range(N - 3):
        a = np.sin(a + waiting.pop(0)) + k * 0.01
    return a + np.sum(np.array(waiting)) * x[2]


class Tape:
    def __init__(self) -> None:
        self.items: list[Any] = []


def attribute(x: Any) -> Any:
    tape, a = Tape(), x[0]
    for _ in range(N):
        tape.items.append(a)
        a = np.sin(a) * x[1]
    while tape.items:
        a = a * 0.9 + np.cos(tape.items.pop())
    return a


REGIONS = {
    taps: 1,
    last_three: 1,
    from_the_beginning: 1,
    arrays: 1,
    arrays_from_the_beginning: 1,
    slices_of_arrays: 1,
    slices_between_numbers: 1,
    known_first_items: 1,
    stack: 2,
    stack_of_arrays: 2,
    two_at_a_time: 2,
    queue: 1,
    attribute: 2,
}
"""How many loops of each are one operation."""


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", REGIONS, ids=lambda f: f.__name__)
def test_constant_places_from_either_end_are_one_program(f: Function, backend: str) -> None:
    check(f, POINT, backend, 1e-6)
    said = [
        line for line in sg.explain(sg.grad(f, backend=backend))(POINT)["how it runs"].splitlines() if "loop" in line
    ]
    assert len(said) == REGIONS[f] and all(line.endswith("one region") for line in said), said


# --- what is written out, or differs from trip to trip ---------------------------------------------


def changed_in_place(x: Any) -> Any:
    xs = [x * 1.0, 2.0 * x]
    for t in range(N):
        y = xs[-2]
        y *= 0.5
        xs.append(np.tanh(U[t] + y + xs[-1]))
    return np.sum(np.array(xs) ** 2)


def appended_twice(x: Any) -> Any:
    xs = [x, 2.0 * x]
    for _ in range(N):
        xs.append(np.sin(xs[-1]))
        xs.append(np.cos(xs[-2] * x[0]))
    return np.sum(np.array(xs) ** 2)


def too_short_at_first(x: Any) -> Any:
    """The first trips have fewer than three."""
    xs = [x]
    for _ in range(N):
        xs.append(np.tanh(sum(xs[-3:])))
    return np.sum(np.array(xs) ** 2)


def first_trip_takes_more(x: Any) -> Any:
    st, a, first = list(x[0] * np.arange(60.0)), x[1], True
    while len(st) > 20:
        a = np.sin(a + st.pop())
        if first:
            st.pop()
        first = False
    return a + np.sum(np.array(st))


def first_trip_takes_fewer(x: Any) -> Any:
    st, a, more = list(x[0] * np.arange(101.0) * 0.01), x[1], False
    while len(st) > 60:
        a = np.sin(a + st.pop()) + st.pop()
        if more:
            a = a * st.pop()
        more = True
    return a + np.sum(np.array(st))


def from_both_ends(x: Any) -> Any:
    st, a = list(x[0] * U), x[1]
    for _ in range(N // 2):
        a = np.sin(a + st.pop() * st.pop(0))
    return a + len(st)


def read_too(x: Any) -> Any:
    st, a = list(x[0] * U), x[1]
    for _ in range(N - 1):
        a = np.sin(a + st.pop() * st[0])
    return a + len(st)


def item_changed(x: Any) -> Any:
    """An array that is taken is changed, and known by another name."""
    st, a = [], x * 1.0
    for _ in range(N):
        st.append(a)
        a = np.sin(a) * x[1]
    kept = list(st)
    while st:
        b = st.pop()
        b *= 0.5
        a = a + b
    return a.sum() + kept[3][0]


OTHERS = [
    changed_in_place, appended_twice, too_short_at_first, first_trip_takes_more, first_trip_takes_fewer,
    from_both_ends, read_too, item_changed,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_what_is_other_from_trip_to_trip_is_right(f: Function) -> None:
    check(f, POINT, "llvm", 1e-6)


def test_a_list_that_is_taken_from_too_often_is_an_error() -> None:
    def f(x: Any) -> Any:
        st = [x[0], x[1], x[2]] * 10
        a = x[0]
        for _ in range(31):
            a = a + st.pop()
        return a

    with pytest.raises(IndexError, match="pop from empty list"):
        sg.grad(f)(POINT)


def test_parts_of_columns_are_slices() -> None:
    """A part of what a loop has appended, or all of it backwards, is no stack of its items."""

    def f(x: Any) -> Any:
        xs, h = [], x[0]
        for _ in range(300):
            h = np.sin(h)
            xs.append(h)
        return np.array(xs[20:]) @ np.array(xs[-21::-1]) + np.sum(np.stack(xs[::3]))

    check(f, POINT, "llvm", 1e-6)
    assert operations(f, POINT.shape) < 60
