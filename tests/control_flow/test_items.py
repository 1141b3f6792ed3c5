"""What long loops run over besides ranges and arrays: lists of tuples, pairs, generators; they are regions too."""

from __future__ import annotations

import collections
import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
POINT = np.array([0.7, -0.4, 1.1, 0.3])
BONDS = [(k, (7 * k + 3) % 30) for k in range(30)]
WEIGHTS = [(0.1 * k, (np.float64(k), k % 4)) for k in range(40)]
ARRAYS = [np.arange(4.0) + k for k in range(40)]
State = collections.namedtuple("State", "place speed time")
ROWS = np.array([0, 2, 3, 7, 9, 12, 13, 16, 18, 22, 25, 27, 29, 30, 33, 36, 40, 41], np.int32)


def bonds(x: Any) -> Any:
    places = np.sin(np.outer(np.arange(30), x[:2]))
    energy = 0.0
    for i, j in BONDS:
        between = places[i] - places[j]
        energy += x[2] * (np.sqrt(between @ between + 0.1) - 1) ** 2
    for k, (i, j) in enumerate(reversed(BONDS)):
        energy += 0.001 * k * places[i, 0] * j
    return energy


def tables(x: Any) -> Any:
    """Numbers, NumPy's and Python's, arrays and traced numbers, in tuples in tuples."""
    scales = [x[k % 4] * k for k in range(40)]
    total, h = 0.0, x
    for (weight, (number, place)), scale in zip(WEIGHTS, scales, strict=True):
        total += x[place] * weight * number + scale / (1 + place)
    for a in ARRAYS:
        h = np.tanh(h * a * 0.1)
    for a, w in zip(ARRAYS, reversed(WEIGHTS), strict=False):
        total += a @ x * w[0]
    return total / 1000 + np.sum(h)


def paired(x: Any) -> Any:
    """Functions of ``itertools``, over ranges, lists of arrays and arrays."""
    states = [np.sin(x * k) for k in range(9)]
    rows, total = np.stack(states), 0.0
    for a, b in itertools.combinations(states, 2):
        total += np.sqrt(np.sum((a - b) ** 2) + 0.1)
    for i, j in itertools.permutations(range(5), 2):
        total += i * x[0] - j * x[1] * x[0]
    for row, weight in itertools.product(rows, (1.0, 2.0)):
        total += np.sum(row) * weight
    for i, j in itertools.product(range(2, 9, 2), repeat=2):
        total += np.sin(rows[i, 0] * j)
    for k, (a, b) in enumerate(itertools.pairwise(np.concatenate(states))):
        total += 0.1 * k * (a - b) ** 2
    return total


def summed(x: Any) -> Any:
    """Generators that functions reduce, one in another, and with conditions that Python and that values decide."""
    total = sum(np.sin(x[0] * k) * x[1] for k in range(50))
    total += sum(x[0] * i - x[1] ** j for i in range(20) for j in range(20)) / 100
    total += sum(np.exp(-((x[0] - x[1] * (i - j)) ** 2)) for i in range(20) for j in range(20) if i != j if j > 2)
    total += sum(v * v for row in np.outer(np.arange(20), x) for v in row if v > 0.0)
    total += max(np.sin(x[2] * k) for k in range(40)) + min((np.cos(x[3] * k) for k in range(40)), default=0.0)
    return total + math.fsum(x[3] * k for k in range(20)) + math.prod(1 + 0.01 * x[0] * k for k in range(20))


def gathered(x: Any) -> Any:
    flat = [x[0] * i + x[1] ** j for i in range(20) for j in range(20)]
    held = list(np.cos(x * k) for k in range(30))  # noqa: C400
    pairs = tuple((x[2] * k, x * k) for k in range(30))
    return np.sum(np.array(flat) * np.arange(400)) / 1000 + np.sum(np.stack(held[1:])) + pairs[3][0] * pairs[-1][1]


def states(x: Any) -> Any:
    """A record that goes on and is in a list."""
    state = State(x, x[::-1] * 0.5, 0.0)
    path = [state]
    for _ in range(60):
        speed = state.speed - 0.05 * state.place
        state = State(state.place + 0.05 * speed, speed, state.time + 0.05)
        path.append(state)
    last = path[-1].place
    last += 1.0  # the variable's array, too
    return sum(np.sum(s.place**2) * s.time for s in path) / len(path) + state.place * path[3].speed


def compressed_rows(x: Any) -> Any:
    """Integers of 32 bits are Python's in a range."""
    data, y = np.sin(np.arange(41.0) * x[0]), np.zeros(17)
    for i in range(17):
        for k in range(ROWS[i], ROWS[i + 1]):
            y[i] += data[k] * x[k % 4] * (k - ROWS[i])
    return y


SCHEDULE = {0: 1.0, 1: 0.6, 3: 0.3, "note": 7.0}
"""Of the trips' tens, some of which it has."""


def scheduled(x: Any) -> Any:
    """Numbers and arrays by keys that not all trips find, also at a key that the value decides."""
    drift, s = {2: x, 4: x * x}, x
    for day in range(60):
        s = s + 0.05 * np.sin(s) * SCHEDULE.get(day // 10, 0.5) + 0.01 * drift.get(day % 5, s)
        s = s + 0.01 * x[1] * {0: 1.0}.get(day, x[2]) * SCHEDULE.get(int(np.floor(np.abs(s[0]))), -1.0)
    return s


CASES = [(f, POINT) for f in (bonds, tables, paired, summed, gathered, states, compressed_rows, scheduled)]


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, (bonds,)))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", [f for f, _ in CASES], ids=lambda f: f.__name__)
def test_the_loops_are_regions(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_operations_do_not_grow_with_the_items() -> None:
    def found(count: int) -> int:
        def f(x: Any) -> Any:
            pairs = [(k % 3, 0.5 * k) for k in range(count)]
            total = sum(x[i] * w for i, w in pairs)
            for a, b in itertools.combinations(range(count), 2):
                total = total + np.sin(x[0] * a - b)
            return total + sum(x[i % 3] * w for (i, w), j in itertools.product(pairs, range(count)) if i != j)

        return operations(f, (3,))

    assert found(20) == found(40)


# --- what keeps a loop from being one --------------------------------------------------------------------------------
def changed_on_the_way(x: Any) -> Any:
    """Each trip changes the item that the next one has."""
    items, total = [x[0] * k for k in range(30)], 0.0
    for i, v in enumerate(items):
        total += v * v
        if i + 1 < 30:
            items[i + 1] = items[i + 1] + 0.5 * v
    for v in items:
        total = total * 0.9 + v
        items[12] = total * 0.1
    return total / 1000


def changed_inside(x: Any) -> Any:
    """The items are lists, which the trips change."""
    items = [[x[0] * k, k] for k in range(30)]
    for item in items:
        item[0] = item[0] * 2
    return sum(a * b for a, b in items) / 1000


def of_other_kinds(x: Any) -> Any:
    total = sum(np.sum(np.ones(n) * x[0]) for n in [k % 4 + 1 for k in range(20)])
    for name, power, on in [("ab"[k % 2], k % 3, k % 5 == 0) for k in range(30)]:
        total += x["ab".index(name)] ** power if on else x[2]
    for n in [2**k for k in range(80)]:
        total += x[1] / n
    pairs = zip(*((x[0] * k, k) for k in range(20)), strict=True)
    return (total + sum(a * b for a, b in zip(*pairs, strict=True))) / 1000


@pytest.mark.parametrize("f", [changed_on_the_way, changed_inside, of_other_kinds], ids=lambda f: f.__name__)
def test_lists_that_change_are_pythons(f: Function) -> None:
    check(f, POINT, "llvm", rtol=1e-6)


def test_identity_of_what_goes_on_is_not_guessed() -> None:
    @sg.jit
    def f(x: Any) -> Any:
        state, path = (x, x * 2.0), []
        for _ in range(30):
            state = (np.sin(state[0]), state[1] * 0.9)
            path.append(state)
        return x[0] * (1.0 if path[-1] is state else 2.0)

    assert f(POINT) == POINT[0]


def test_deques_are_sequences_to_numpy() -> None:
    def f(x: Any) -> Any:
        held: collections.deque[Any] = collections.deque(maxlen=3)
        for k in range(5):
            held.append(x * k)
        return np.sum(np.array(held) ** 2) + np.sum(np.stack(held)) + np.mean(held) + np.std(held) * held[0]

    check(f, POINT, "llvm", rtol=1e-6)


def test_generators_are_lazy_where_values_are_known() -> None:
    """What stands behind the item that decides is not asked for."""

    def f(x: Any) -> Any:
        found = any(1 / (3 - k) < 0.4 or k == 2 for k in range(5))
        first = next(k for k in range(5) if 10 % (4 - k) == 0)
        return x * found * (first + functools.reduce(lambda a, b: a + b, (k for k in range(3))))

    check(f, POINT, "llvm", rtol=1e-6)
