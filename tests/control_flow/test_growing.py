"""Lists of numbers to which loops append and of which they read items, by index or from the end: one region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.test_filled import check

N = 30


def from_any_place(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(h[i] * 0.9 + k)
    return sum(h) * h[-1]


def two_before(k: Any) -> Any:
    h = [k, 1.0]
    for _ in range(N):
        h.append(h[-1] * 0.5 + h[-2] * 0.3 + len(h) * 0.01)
    return h[-1] + len(h) * k


class Simulation:
    def __init__(self, k: Any) -> None:
        self.k, self.x = k, 1.0
        self.states: list[Any] = []
        self.times = [0.0]

    def step(self) -> None:
        self.x = self.x * (1 - self.k * 0.01)
        self.states.append(self.x)
        self.times.append(self.times[-1] + 0.1)


def of_an_object(k: Any) -> Any:
    s = Simulation(k)
    for _ in range(N):
        s.step()
    return np.trapezoid(np.array([1.0, *s.states]), np.array(s.times)) + len(s.states) * k


def in_a_dict(k: Any) -> Any:
    log: dict[str, list[Any]] = {"x": [], "v": [0.5]}
    x, v = 1.0, 0.0
    for _ in range(N):
        v = v - 0.1 * k * x
        x = x + 0.1 * v
        log["x"].append(x)
        log["v"].append(v)
    return np.mean(np.array(log["x"]) ** 2) + sum(log["v"])


def several_at_once(k: Any) -> Any:
    h: list[Any] = []
    x = k
    for _ in range(N):
        x = x * 0.9
        h += [x, x * x]
    return sum(h) + max(h)


def extended(k: Any) -> Any:
    h = [1.0]
    for _ in range(N):
        h.extend(k * j for j in range(3))
        k = k + h[-1] * 1e-3
    return sum(h)


def in_a_while(k: Any) -> Any:
    h: list[Any] = []
    i = 0
    while i < N:
        h.append(k * i)
        i += 1
    return np.sum(np.array(h) ** 2)


def under_another_name(k: Any) -> Any:
    h = [1.0]
    g = h
    for i in range(N):
        h.append(k * i)
        k = k + g[-1] * 1e-3 + len(g)
    return sum(g)


def one_of_two_values(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        if k * i > 5:
            h.append(k)
        else:
            h.append(2 * k * i)
    return sum(h)


def assigned_too(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(k)
        h[i] = h[i] * 2 + h[-1]
        h[0] = h[0] + 0.5
    return sum(a * b for a, b in zip(h, range(len(h)), strict=True))


def negative_places(k: Any) -> Any:
    h = [1.0] * 3
    for i in range(N):
        h.append(h[i - 1] * 0.5 + k)
    return sum(h)


def places_that_depend_on_the_length(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(h[i // 2] + k * h[len(h) // 2])
    return sum(h)


def read_by_a_function(k: Any) -> Any:
    h = [1.0]

    def following() -> Any:
        return h[-1] * 0.9 + k * h[0]

    for _ in range(N):
        h.append(following())
    return sum(h)


def first_by_a_function(k: Any) -> Any:
    h = [1.0]

    def first() -> Any:
        return h[0] * k

    for _ in range(N):
        h.append(h[-1] * 0.9 + first())
    return sum(h)


def length_by_a_function(k: Any) -> Any:
    h = [1.0]

    def length() -> Any:
        return len(h) * k

    for _ in range(N):
        h.append(h[-1] * 0.9 + length())
    return sum(h)


GROWING = [
    from_any_place, two_before, of_an_object, in_a_dict, several_at_once, extended, in_a_while, under_another_name,
    one_of_two_values, assigned_too, negative_places, places_that_depend_on_the_length, read_by_a_function,
    first_by_a_function, length_by_a_function,
]  # fmt: skip


def asked_for_truth(k: Any) -> Any:
    h: list[Any] = []
    for _ in range(N):
        if not h:
            k = k * 2
        h.append(k)
    return sum(h)


def run_through(k: Any) -> Any:
    h, c = [1.0], 0
    for i in range(N):
        h.append(k * i)
        for _ in h:
            c = c + 1
    return sum(h) * c


def copied(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(k * i)
        g = list(h)
        k = k + len(g) * 1e-3
    return sum(h)


def added_to(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(k * i)
        g = [*h, 2.0]
        g = h + g
        k = k + len(g) * 1e-3
    return sum(h)


def by_an_inner_loop(k: Any) -> Any:
    h = [1.0]
    for _ in range(N):
        for j in range(20):
            h.append(h[-1] * 0.99 + k * j)
    return h[-1] + sum(h) * 1e-4


def sometimes(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        if i % 3 == 1:
            h.append(k * i)
    return sum(h)


def read_where_it_grows_sometimes(k: Any) -> Any:
    h = [1.0] * N
    for i in range(N):
        h[i] = k
        if i % 3 == 1:
            h.append(k * i)
            k = k + h[-1] * 1e-3
    return sum(h)


def counted_in_a_tuple(k: Any) -> Any:
    h, c = [1.0], 0
    for i in range(N):
        h.append(k * i)
        c = c + len(tuple(h))
    return sum(h) * c


def unpacked(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(k * i)
        first, *_ = h
        k = k + first * 1e-3
    return sum(h)


def a_part_of_it(k: Any) -> Any:
    h = [1.0]
    for i in range(N):
        h.append(k * i)
        k = k + sum(h[-2:]) * 1e-3
    return sum(h)


OTHERWISE = [
    asked_for_truth, run_through, counted_in_a_tuple, read_where_it_grows_sometimes, copied, added_to,
    by_an_inner_loop, sometimes, unpacked, a_part_of_it,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [*GROWING, *OTHERWISE], ids=lambda f: f.__name__)
def test_lists_that_grow_and_are_read(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("f", GROWING, ids=lambda f: f.__name__)
def test_a_loop_that_reads_what_it_appended_is_one_region(f: Callable[[Any], Any]) -> None:
    assert "unrolled" not in sg.explain(sg.grad(f, backend="numpy"))(1.3)["how it runs"]
    assert len(sg.explain(sg.jit(f, backend="numpy"))(1.3)["optimised ir"].splitlines()) < 200


def test_numbers_that_python_knows_stay_so() -> None:
    class Steps:
        def __init__(self) -> None:
            self.numbers: list[Any] = []

    def f(x: Any) -> Any:
        steps = Steps()
        for i in range(N):
            steps.numbers.append(i * 0.5)
        return x * sum(len(np.zeros(int(number))) for number in steps.numbers)

    assert sg.jit(f, strict=True)(1.0) == f(1.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("place", ["i + 1", "-i - 3", "(7 * i) % 40"])
def test_a_place_that_is_not_filled_yet_raises(place: str, backend: str, tmp_path: Any) -> None:
    source = (
        f"def f(k):\n    h = [1.0]\n    for i in range({N}):\n        h.append(h[{place}] + k)\n    return sum(h)\n"
    )
    file = tmp_path / "user.py"
    file.write_text(source)
    space: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), space)
    with pytest.raises(IndexError):
        sg.grad(space["f"], backend=backend)(1.0)


def test_the_list_is_as_long_as_in_python() -> None:
    def f(k: Any) -> Any:
        h = [k]
        for i in range(N):
            h.append(h[i] * 0.5)
        return h

    found = sg.jit(f)(2.0)
    assert type(found) is list
    assert found == f(2.0)
