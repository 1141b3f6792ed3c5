"""Lists to which a loop appends in some trips that are known before it runs, and lists in dicts and objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")


def moved(x: Any, k: Any) -> Any:
    return x + 0.02 * np.sin(x[::-1] + 0.1 * k)


def each_tenth(x: Any) -> Any:
    found = []
    for k in range(200):
        x = moved(x, k)
        if k % 10 == 0:
            found.append(x)
    return np.array(found) * np.arange(20)[:, None]


def chosen_trips(x: Any) -> Any:
    """A list that begins with something; several conditions, one of which never holds; what is made in a branch."""
    found = [x]
    for k in range(100):
        if k in (9, 42) or k > 97:
            found.append(x.copy())
        elif k == 50:
            found.append(x * 2.0)
        elif k == 500:
            found.append(np.zeros(7))
        x = moved(x, k)
    return np.stack(found) * np.arange(6)[:, None] + found[-1]


def in_order(x: Any) -> Any:
    """Blocks in blocks, before and behind what each trip appends."""
    found: list[Any] = []
    for k in range(60):
        x = moved(x, k)
        if k % 4 == 1:
            found.append(x[0])
            if k % 3 == 0:
                found.append(x[1] * 2.0)
                if k > 30:
                    found.append(x[2] * 3.0)
            found.append(x[0] * 4.0)
        found.append(x[1] * 5.0)
        if k % 7 == 0:
            found.append(x[2] * 6.0)
        else:
            found.append(x[2] * 7.0)
    return np.array(found) * np.arange(len(found))


def known_times(x: Any) -> Any:
    """Numbers that Python knows, beside what is traced."""
    found, sizes = [], []
    for k in range(60):
        x = moved(x, k)
        sizes.append((k, x))
        if (k + 1) % 20 == 0:
            found.append((k * 0.01, k, {"x": x.copy()}))
    total = sum(t * y["x"] for t, _, y in found)
    return total + np.ones(found[0][1])[3] + np.zeros(sizes[4][0] - 1) + {0.19: 2.0, 0.2: 0.0}[found[0][0]]


def irregular(x: Any) -> Any:
    found = []
    for k in range(100):
        x = moved(x, k)
        if k * k % 7 == 1:
            found.append(x)
    return np.array(found) * np.arange(len(found))[:, None]


def in_a_dict(x: Any) -> Any:
    log: dict[str, list[Any]] = {"x": [], "sum": [1.0], "some": []}
    for k in range(50):
        x = moved(x, k)
        log["x"].append(x.copy())
        log["sum"].append(x.sum())
        if k % 5 == 2:
            log["some"].append((k, x * 2.0))
    some = sum(t * y for t, y in log["some"])
    return np.array(log["x"]) * np.array(log["sum"])[1:, None] + some


@dataclass
class Run:
    state: Any
    history: dict[str, list[Any]] = field(default_factory=lambda: {"state": []})
    times: list[Any] = field(default_factory=list)

    def step(self, k: Any) -> None:
        self.state = moved(self.state, k)
        self.history["state"].append(self.state)
        if k % 8 == 0:
            self.times.append((k * 0.1, self.state.copy()))


def of_an_object(x: Any) -> Any:
    run = Run(x)
    for k in range(40):
        run.step(k)
    return np.stack(run.history["state"]) * len(run.times) + sum(t * y for t, y in run.times)


def in_loops(x: Any) -> Any:
    """Loops in loops: the inner one appends in some of its trips, the outer one in each."""
    log: dict[str, list[Any]] = {"x": []}
    for i in range(20):
        for j in range(18):
            x = moved(x, i + j)
            if j % 6 == 0:
                log["x"].append(x)
    return np.array(log["x"]) * np.arange(60)[:, None]


def counting(x: Any) -> Any:
    log: dict[str, list[Any]] = {"x": []}
    k = 0
    while k < 40:
        x = moved(x, k)
        if k % 4 == 3:
            log["x"].append(x)
        k += 1
    return np.array(log["x"])


def raised_late(x: Any) -> Any:
    found = []
    for k in range(30):
        x = moved(x, k)
        if k > 40:
            raise ValueError("too late")
        else:
            found.append(x * 2.0)
    return np.array(found)


CASES = [
    each_tenth, chosen_trips, in_order, known_times, irregular, in_a_dict, of_an_object, in_loops, counting,
    raised_late,
]  # fmt: skip
POINT = np.array([0.3, 0.5, 1.1])


@pytest.mark.parametrize(("f", "x", "backend"), on_backends([(f, POINT) for f in CASES], [each_tenth]))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_the_loops_are_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said, said


def test_second_derivatives() -> None:
    def total(x: Any) -> Any:
        return np.sum(np.sin(chosen_trips(x))) + np.sum(in_a_dict(x) ** 2)

    found, step = sg.hessian(total)(POINT), 1e-6
    for k, direction in enumerate(np.eye(3) * step):
        difference = (sg.grad(total)(POINT + direction) - sg.grad(total)(POINT - direction)) / (2 * step)
        np.testing.assert_allclose(found[k], difference, rtol=1e-5)


def test_a_batch_is_its_members() -> None:
    points = np.stack([POINT, POINT * 2])
    np.testing.assert_allclose(sg.vmap(in_order)(points), [in_order(x) for x in points])


# --- what is written into an item, or into what it may share memory with --------------------------
def written(x: Any, what: str) -> Any:
    start = x * 1.0
    x, found = start, []
    for k in range(40):
        if what != "behind" and k % 13 == 0:
            found.append(x)
        x = moved(x, k)
        if what == "behind" and k % 13 == 0:
            found.append(x)
    if what == "the start":
        start += 1.0
    elif what == "an item":
        found[0] += 1.0
    else:
        x += 1.0
    return np.sum(found, axis=0) * x + start


def last_trip(x: Any) -> Any:
    """The variable is the last item."""
    found = []
    for k in range(40):
        x = moved(x, k)
        if k % 13 == 0:
            found.append(x)
    x += 1.0
    return found[-1] * 1.0 + x


def changed_behind(x: Any) -> Any:
    """A trip writes into what it has appended, as the next one does."""
    found = []
    for k in range(30):
        y = moved(x, k)
        if k % 5 == 0:
            found.append(y)
        y[0] += 1.0
        x = y * 0.5
    return np.array(found)


def changed_by_the_next(x: Any) -> Any:
    found, y = [], x * 1.0
    for k in range(30):
        if k % 5 == 0:
            found.append(y)
        y += 0.1 * k
    return np.array(found) + (found[0] is found[1])


def made_and_kept(x: Any) -> Any:
    """What a branch makes goes on, and is written into."""
    found, y = [], x * 1.0
    for k in range(30):
        if k % 5 == 0:
            y = moved(x, k)
            found.append(y)
        y[1] += 0.5
    return np.array(found)


def in_two(x: Any) -> Any:
    found, others = [], []
    for k in range(30):
        x = moved(x, k)
        if k % 5 == 0:
            found.append(x)
        if k % 7 == 0:
            others.append(x)
    found[0] += 1.0
    return np.array(found).sum(axis=0) + np.array(others).sum(axis=0)


def of_values(x: Any) -> Any:
    found, count = [], 0.0
    for k in range(30):
        x = moved(x, k)
        count = count + 1.0
        if count % 2.0 == 0.0:
            found.append(x)
    return np.array(found)


def read_meanwhile(x: Any) -> Any:
    log: dict[str, list[Any]] = {"x": [x], "y": [], "z": [], "w": []}
    same = log["y"]
    for k in range(30):
        log["x"].append(moved(log["x"][-1], k))
        log["y"].append(x * k)
        log["z"].append(x * len(log["z"]))
        log["w"].append(x)
        if len(same) > 20:
            same.pop(0)
        if k == 12:
            log["w"] = log["w"][:3]
    return np.array(log["x"]).sum(axis=0) + same[3] + np.array(log["z"]).sum(axis=0) + np.array(log["w"]).sum(axis=0)


def raised_else(x: Any) -> Any:
    found = []
    for k in range(30):
        x = moved(x, k)
        if x[0] > 100.0:
            raise ValueError("too large")
        elif k % 3 == 0:
            found.append(x)
        if k > 40:
            raise ValueError("too late")
        else:
            found.append(x * 2.0)
    return np.array(found) * np.arange(len(found))[:, None]


def length_read(x: Any) -> Any:
    log: dict[str, list[Any]] = {"x": []}
    for k in range(30):
        log["x"].append(x * (k + len(log["x"])))
    return np.array(log["x"])


def tried(x: Any) -> Any:
    found = []
    for k in range(30):
        x = moved(x, k)
        try:
            if k % 3 == 0:
                found.append(x)
            if x[1] > 1.0:
                raise ValueError("too large")
        except ValueError:
            found.append(-x)
    return np.array(found)


OTHERS = [
    last_trip, changed_behind, changed_by_the_next, made_and_kept, in_two, of_values, read_meanwhile, raised_else,
    length_read, tried,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_lists_are_pythons(f: Function) -> None:
    np.testing.assert_allclose(sg.jit(f)(POINT.copy()), f(POINT.copy()), rtol=1e-12)

    def total(x: Any) -> Any:
        return np.sum(np.sin(f(x * 1.0)))

    direction = np.array([1.0, -0.5, 0.3])
    difference = (total(POINT + 1e-6 * direction) - total(POINT - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(sg.grad(total)(POINT) @ direction, difference, rtol=1e-6)


@pytest.mark.parametrize("what", ["behind", "the start", "an item", "the variable"])
def test_what_is_written_into_one_array_is_in_the_items_that_are_it(what: str) -> None:
    np.testing.assert_allclose(sg.jit(written)(POINT, what), written(POINT, what), rtol=1e-12)


def test_lists_that_are_handed_in_are_filled() -> None:
    def fill(log: dict[str, list[Any]], x: Any) -> None:
        for k in range(30):
            x = moved(x, k)
            log["all"].append(x)
            if k % 6 == 0:
                log["some"].append((k, x.copy()))

    expected: dict[str, list[Any]] = {"all": [], "some": [1]}
    found: dict[str, list[Any]] = {"all": [], "some": [1]}
    lists = list(found.values())
    fill(expected, POINT)
    sg.jit(fill)(found, POINT)
    assert all(a is b for a, b in zip(found.values(), lists, strict=True))
    np.testing.assert_allclose(found["all"], expected["all"])
    assert [x[0] for x in found["some"][1:]] == [0, 6, 12, 18, 24]
    np.testing.assert_allclose([x[1] for x in found["some"][1:]], [x[1] for x in expected["some"][1:]])
