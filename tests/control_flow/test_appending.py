"""Lists that long loops append to, and list comprehensions: columns of one loop, and lists as Python's afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
WEIGHTS = np.random.default_rng(0).normal(size=(4, 4)) / 2
TEXTS = {k: "a" * k for k in range(40)}
INPUTS = np.random.default_rng(1).normal(size=(30, 4))


def recurrent(x: Any) -> Any:
    h, states = np.zeros(4), []
    for t in range(30):
        h = np.tanh(INPUTS[t] @ np.diag(x) + h @ WEIGHTS)
        states.append(h)
    return np.stack(states)


def euler(x: Any) -> Any:
    """A list that begins with something, its last item, numbers and arrays."""
    points, times = [0.5 * x, x], [3.0, 0.0]
    for _ in range(25):
        points.append(points[-1] + 0.05 * np.sin(points[-1][::-1]))
        times.append(times[-1] + 0.05 * x[0])
    return np.array(points) * np.array(times)[:, None]


def pairs(x: Any) -> Any:
    found = []
    y = x[0]
    for t in range(20):
        y = 0.9 * y + x[1] * t
        found.append((y, [x * y, {"all": x + t}]))
    total = 0.0
    for one, (both, named) in found:
        total = total + one * np.sum(both) + named["all"][2]
    return total / 1000


def several(x: Any) -> Any:
    found: list[Any] = []
    for t in range(20):
        found.append(x[0] * t)
        found.append(found[-1] * x[1])
    number = found[2]
    number += 1.0
    return np.array(found) * np.arange(40) + number


def comprehended(x: Any) -> Any:
    waves = [np.sin(x * t) for t in range(30)]
    table = [[x[0] * i + x[1] ** j for j in range(18)] for i in range(17)]
    total = np.sum(np.mean(waves, axis=0) ** 2) + np.sum(np.sin(table) * np.arange(18))
    total = total + sum([v * w[0] for v, w in zip(x, waves[:4], strict=True)])
    return (total + np.sum(np.add([x[0], 1.0], waves[0][:2]))) / 100


def gone_through(x: Any) -> Any:
    """Lists are looped over, cut, indexed and joined."""
    h, states = x, []
    for _ in range(24):
        h = np.cos(h) * x
        states.append(h)
    total = 0.0
    for state in states:
        total = total + np.prod(state)
    for one, (k, other) in zip(states[1:], enumerate(states[:-1]), strict=True):
        total = total + k * one[0] * other[1]
    cosines = [np.cos(x * k) for k in range(24)]
    total = total + np.sum(np.stack(states[::-1]) * np.arange(24)[:, None]) + np.sum(np.stack(states[:10]))
    total = total + np.sum(np.array([states[0], *cosines[1:], *states, cosines[0]]) * np.arange(49)[:, None])
    first, *others = states
    return total + np.sum(first) + len(others) * others[-1][0] + np.sum(np.concatenate(states) ** 2)


def changed_afterwards(x: Any) -> Any:
    """The last state is the variable's array; what is written into one of them is in the list, once."""
    h, states = x * 1.0, []
    for _ in range(20):
        h = np.sin(h)
        states.append(h)
    h += 1.0
    states[0][0] = 5.0
    states[3] *= x[0]
    return np.sum(np.stack(states)) + states[-1][0] * states[0][0] + np.sum(h)


def accepted_or_not(x: Any) -> Any:
    """Items that are one array, where the trip keeps what the trip before had."""
    q, chain, best, least, pairs = x * 1.0, [], x, 10.0, [(10.0, x)]
    for k in range(60):
        proposed = q + 0.1 * np.sin(k + q)
        if proposed[0] < 0.9:
            q = proposed
        chain.append(q)
        c = np.sin(x * k)
        if np.sum(c**2) < least:
            best, least = c, np.sum(c**2)
        pairs.append((least, best))
    return np.sum(np.stack(chain) ** 2) + sum(a * np.sum(b) for a, b in pairs) + best * chain[7] + q


def before_the_step(x: Any) -> Any:
    """The first item is the array that the variable has before the loop; what is written into one is in the other."""
    start = x * 2.0
    y, first, state, pairs = start, [], (x, x[0]), []
    for _ in range(40):
        first.append(y)
        y = y - 0.1 * np.sin(y)
        pairs.append(state)
        state = (state[0] * 0.9, state[1] + np.sum(state[0]))
    first[0] += 1.0
    total = np.sum(np.array(first) ** 2) + np.sum(start**3)
    start[1] = x[0]
    y *= 3.0
    first[3][2] = 5.0
    return total + np.sum(np.stack(first)) * x + start + y + sum(np.sum(a) * b for a, b in pairs) / 100


def in_both_loops(x: Any) -> Any:
    """The inner loop appends to the list of the outer one."""
    flat, arrays, ends = [], [x], []
    for i in range(17):
        y = x[1]
        for j in range(18):
            y = np.sin(y + i) * x[0]
            flat.append(y * j)
            arrays.append(x * y)
        ends.append(y)
    first = flat[20] * arrays[-1][0] + len(flat)
    return np.sum(np.array(flat) * np.arange(17 * 18)) / 100 + np.sum(np.stack(arrays) ** 2) * np.sum(ends) + first


def with_short_loops(x: Any) -> Any:
    found = []
    for i in range(20):
        row = []
        for j in range(3):
            row.append(x[j] * np.sin(i * x[0]))
        found.append(np.array(row))
    return np.array(found)


def read_by_functions_behind(x: Any) -> Any:
    """What goes through a list when the loop is over: generators, and functions that are made there."""
    y, t, states, times = x * 1.0, 0.0, [], []
    for k in range(30):
        y = y + 0.05 * np.sin(y[::-1])
        t += 0.05
        states.append((t, y.copy()))
        times.append(y[0] * k)
    first = sum(t * np.sum(state**2) for t, state in states)

    def middle(k: int) -> Any:
        return states[k][1] * times[k]

    return first + np.sum(middle(15)) + sum(time for time in times if time > 1.0)


CASES: list[tuple[Function, Any]] = [
    (f, np.array([0.7, -0.4, 1.1, 0.3]))
    for f in (
        recurrent,
        euler,
        pairs,
        several,
        comprehended,
        gone_through,
        changed_afterwards,
        accepted_or_not,
        before_the_step,
        in_both_loops,
        read_by_functions_behind,
        with_short_loops,
    )
]
NAMES = [f.__name__ for f, _ in CASES]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (recurrent, euler, changed_afterwards)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize(("f", "x"), CASES[:-1], ids=NAMES[:-1])
def test_the_loops_are_one_region(f: Function, x: Any) -> None:
    said = sg.explain(sg.jit(f))(x)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_operations_do_not_grow_with_the_trips() -> None:
    def found(trips: int) -> int:
        def f(x: Any) -> Any:
            states, h = [], x
            for _ in range(trips):
                h = np.sin(h) + x
                states.append(h)
            return np.stack(states), np.array([np.cos(x * k) for k in range(trips)])

        return operations(f, (3,))

    assert found(20) == found(200)


def test_a_table_of_records_with_numbers_that_are_known_is_made_of_columns() -> None:
    def table(count: int) -> Function:
        def f(x: Any) -> Any:
            rows = [[1, np.sin(x[0] * k), x[k % 3 : k % 3 + 2].mean(), 0.5] for k in range(count)]
            return np.array(rows).T @ np.arange(float(count))

        return f

    assert operations(table(90), (4,)) < 30
    check(table(30), np.array([0.7, -0.4, 1.1, 0.3]), "llvm", rtol=1e-6)


@pytest.mark.parametrize("first", [1, True, 2**40, 2.5, 1j, -0.0])
def test_such_a_table_has_the_dtype_of_numpys(first: Any) -> None:
    def table(x: Any) -> Any:
        return np.array([[first, x[0] * k] for k in range(20)])

    for x in (np.ones(2), np.ones(2, np.float32)):
        found, wanted = sg.jit(table)(x), table(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_a_batch_is_its_members() -> None:
    x = CASES[0][1]
    for f in (recurrent, gone_through):
        np.testing.assert_allclose(sg.vmap(f)(np.stack([x, 2 * x])), np.stack([f(x), f(2 * x)]), rtol=1e-12)


def test_second_derivatives() -> None:
    x = CASES[0][1]
    slope = sg.grad(lambda x: np.sum(recurrent(x) ** 3) + gone_through(x))
    direction = np.array([1.0, -1.0, 0.5, 2.0])
    difference = (slope(x + 1e-6 * direction) - slope(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(sg.jvp(slope, (x,), (direction,))[1], difference, rtol=1e-6)


# --- what keeps a loop from being one --------------------------------------------------------------------------------
def same_array(x: Any) -> Any:
    """One array, appended again and again and changed in between."""
    h, buffer, first, second = x * 1.0, np.zeros_like(x), [], []
    for t in range(20):
        first.append(h)
        h *= 0.9
        buffer[:] = x * t
        second.append(buffer)
    return np.sum(np.stack(first)) + np.sum(np.stack(second))


def changed_in_the_next_trip(x: Any) -> Any:
    h, states = x * 1.0, []
    for _ in range(20):
        h[0] = 2.0
        h = np.sin(h)
        states.append(h)
    return np.stack(states)


def read_by_functions_within(x: Any) -> Any:
    """Functions that the next trip calls, made before the loop, behind it in the text, or of a generator."""
    y, states, total, first = x[0], [], 0.0, float
    for _ in range(2):
        for _ in range(20):
            y = np.sin(y) * (0.9 + first())
            states.append(y)

        def first() -> float:
            return 0.001 * len(states)

        total = total + sum(state * len(states) for state in (first() * y for _ in range(2)))
    return total + len(states)


def last_one_changed(x: Any) -> Any:
    states = [x * 1.0]
    for t in range(20):
        states[-1][0] = t * 0.1
        states.append(states[-1] * x)
    return np.stack(states)


def part_of_what_goes_on(x: Any) -> Any:
    h, states = np.concatenate([x, x]), []
    for _ in range(20):
        h = np.sin(h)
        states.append(h[1:])
    h[1] = 3.0
    return np.sum(states) + states[-1][0]


def before_and_after_the_step(x: Any) -> Any:
    """What is appended after a step is what the next trip appends before its own: a write into one is in the other."""
    y, before, after = x * 2.0, [], []
    for _ in range(20):
        before.append(y)
        y = np.sin(y)
        after.append(y)
    after[3][0] = 5.0
    return np.sum(np.stack(before) ** 2) + np.sum(np.stack(after) ** 3) * x[1]


def in_two_lists(x: Any) -> Any:
    one, other = [], []
    for t in range(20):
        v = x * t
        one.append(v)
        other.append(v)
    one[3][0] = 7.0
    return np.sum(one) + np.sum(other)


def known_by_another_name(x: Any) -> Any:
    states: list[Any] = []
    same, total = states, 0.0
    for t in range(20):
        states.append(x * t)
        total = total + len(same)
    return np.sum(np.stack(same)) + total * x[0]


def other_items_read(x: Any) -> Any:
    states = [x[0]]
    for _ in range(20):
        states.append(states[-1] * 0.9 + states[0] * x[1])
        if len(states) > 9:
            states.append(x[2])
    return np.array(states)


def one_record(x: Any) -> Any:
    record, records, point, points = {"a": x[0]}, [], [x[0], x[1]], []
    for t in range(20):
        record["a"] = x[1] * t
        records.append(record)
        point[0] = point[0] * 0.9
        points.append((point, x[0] * t))
    return sum(r["a"] for r in records) + sum(p[0] * v for p, v in points)


def transposed(x: Any) -> Any:
    found = []
    for t in range(20):
        found.append(np.outer(x, x * t + 1).T)
    return np.sum(found) + np.sum(found[3].ravel(order="K")[:2])


def on_a_condition(x: Any) -> Any:
    found, others = [], []
    for t in range(20):
        if t % 2:
            found.append(x[1] * t)
        if x[0] * t > 3.14159:
            others.append(x[1] * t)
        else:
            others.append(x[0])
    return np.sum(np.array(found)) + np.sum(np.array(others))


def left_early(x: Any) -> Any:
    states, y = [], x[0]
    for _ in range(40):
        y = y * 1.1 + 0.5
        states.append(y)
        if y > 10:
            break
    return sum(states) + len(states) * x[0]


def known_numbers(x: Any) -> Any:
    """What Python knows it knows afterwards: sizes, indices, texts."""
    places, sizes, names = [2 * i for i in range(20)], [], []
    for i in range(20):
        sizes.append(i + 1)
        names.append(f"n{i}")
    steps = [0.1 * i for i in range(20)]
    rows = [np.array([i, 2.0]) for i in range(20)]
    if names[3] != "n3" or type(sizes[2]) is not int or type(rows[0]) is not np.ndarray:
        raise TypeError(f"{names[3]}, {sizes[2]} and {rows[0]}")
    weight = {0.1 * 3: 2.0, 0.1 * 4: 3.0}[steps[3]] + len(TEXTS[sizes[3]])
    return np.sum(np.zeros(sizes[3]) + x[0]) + x[places[1] - 2] + np.sum(np.arange(0, steps[12], 0.5)) * x[1] * weight


def comprehensions(x: Any) -> Any:
    """Functions that read their variable later, iterators, short and nested ones, several parts, conditions."""
    later = [lambda v: v * k for k in range(20)]  # noqa: B023
    places = iter(range(100))
    counted = [next(places) for _ in range(20)]
    sums = [sum(v * k for v in x) for k in range(20)]
    lazy = [(v * k for v in x) for k in range(20)]
    total = later[3](x[0]) + counted[5] + sums[4] * next(places) + sum(lazy[2])
    total = total + sum([v * w for v in x for w in x if w > 0]) + sum([k * v for k, v in enumerate(x)])
    return total + sum([k[0] * k[1] for k in [(v, v + 1) for v in x]]) + len([x * 2 for x in x]) + x[1]


def printed(x: Any) -> Any:
    found = []
    for t in range(20):
        if t == 7:
            print("seven")
        found.append(x * t)
    return np.sum(found)


class History:
    def __init__(self) -> None:
        self.seen: list[Any] = []


def in_an_attribute(x: Any) -> Any:
    history = History()
    for t in range(20):
        history.seen.append(x * t)
    return np.sum(history.seen[-1]) + len(history.seen)


def in_a_function(x: Any) -> Any:
    found: list[Any] = []

    def add(v: Any) -> None:
        found.append(v)

    for t in range(20):
        add(x * t)
        found.append(x)
    return np.sum(found) + len(found)


OTHERS = [
    same_array, changed_in_the_next_trip, last_one_changed, part_of_what_goes_on, in_two_lists, known_by_another_name,
    other_items_read, comprehensions, printed, one_record, transposed, on_a_condition, left_early, known_numbers,
    in_an_attribute, in_a_function, read_by_functions_within, before_and_after_the_step,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_lists_are_pythons(f: Function) -> None:
    check(f, np.array([0.7, -0.4, 1.1, 0.3]), "llvm", rtol=1e-6)


def test_a_list_that_is_handed_in_is_filled() -> None:
    def fill(found: list[Any], x: Any) -> None:
        for t in range(20):
            found.append(x * t)

    def f(x: Any) -> Any:
        found = [x]
        fill(found, x)
        return np.stack(found), len(found)

    stacked, count = sg.jit(f)(np.ones(2))
    assert count == 21 and stacked.shape == (21, 2)


def test_an_error_leaves_the_list_as_it_was() -> None:
    """The loop is tried as one region, which fails after it appended, and then done trip by trip."""

    def f(x: Any) -> Any:
        found, total = [x[0]], 0.0
        for t in range(20):
            found.append(x[1] * t)
            found.append(x[2] * t)
            total = total + len(TEXTS[t])
        return np.array(found) * total

    x = np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(sg.jit(f)(x), f(x))


def test_what_python_knows_stays_known() -> None:
    def f(x: Any) -> Any:
        sizes, n = [], 0
        for t in range(20):
            n += 1 + t
            sizes.append(n)
        return np.sum(np.zeros(sizes[3]) + x[0]) * len(TEXTS[sizes[4]])

    x = np.array([0.7, -0.4, 1.1, 0.3])
    for function in (f, known_numbers):
        np.testing.assert_allclose(sg.jit(function)(x), function(x))
        assert sg.explain(sg.jit(function))(x)["how it runs"].startswith("One program")


# --- items that may be one array, in which something is written ------------------------------------------------------
def walk(x: Any, written: str) -> Any:
    start = x * 1.0
    q, chain = start, []
    for k in range(40):
        proposed = q + 0.1 * np.sin(k + q)
        if proposed[0] < 0.3:
            q = proposed
        chain.append(q)
    if written == "an item":
        chain[3] += 1.0
    elif written == "the variable":
        q += 1.0
    elif written == "the start":
        start *= 2.0
    return np.sum(np.stack(chain) ** 2) + np.sum(q) + chain[-1] * start


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("written", ["an item", "the variable", "the start"])
def test_what_is_written_into_one_item_is_in_the_others(written: str) -> None:
    x = np.array([0.2, -0.4, 1.1, 0.3])
    for point in (x, x + 0.5):
        np.testing.assert_allclose(sg.jit(walk)(point, written), walk(point, written), rtol=1e-12)


def test_what_the_next_trip_writes_into_an_item_written_into_before() -> None:
    def f(x: Any) -> Any:
        q, chain = x * 1.0, []
        for k in range(20):
            proposed = q + 0.1 * np.sin(k + q)
            if proposed[0] < 0.3:
                q = proposed
            chain.append(q)
            q[1] = np.cos(q[1])
        return np.sum(np.array(chain) ** 2) + np.sum(q)

    x = np.array([0.2, -0.4, 1.1])
    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)
