"""Lists of numbers that loops fill by index, as ``c = [0.0] * n`` and then ``c[i] = …``: one region, as with arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

N = 30


def backwards(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[-1 - i] = k * i
    return h[0] * h[5] + h[-1]


def from_integers(k: Any) -> Any:
    h: list[Any] = [0] * N
    h[0] = k
    for i in range(1, N):
        h[i] = h[i - 1] * 0.9 + i
    return sum(h) + max(h) - min(h) * k


def tridiagonal(k: Any) -> Any:
    c: list[Any] = [0.0] * N
    d = [1.0] * N
    c[0] = 0.3 * k
    for i in range(1, N):
        m = 4 + k * c[i - 1]
        c[i], d[i] = 1 / m, (d[i] - k * d[i - 1]) / m
    x: list[Any] = [0.0] * N
    x[N - 1] = d[N - 1]
    for i in range(N - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return sum(x)


def with_another_name(k: Any) -> Any:
    h = [0.0] * N
    g = h
    for i in range(N):
        h[i] = k * i
    g[3] = 7.0 * k
    return sum(h) + g[4]


def in_a_dict(k: Any) -> Any:
    d = {"a": [0.0] * N, "b": [1.0] * N}
    for i in range(1, N):
        d["a"][i] = d["a"][i - 1] + k * d["b"][i - 1]
        d["b"][i] = d["b"][i - 1] * 0.9
    return d["a"][-1] + sum(d["b"])


class Store:
    def __init__(self) -> None:
        self.items = [0.0] * N

    def put(self, i: int, value: Any) -> None:
        self.items[i] = value + self.items[i - 1] * 0.5


def in_an_object(k: Any) -> Any:
    s = Store()
    for i in range(N):
        s.put(i, k * i)
    return np.sum(np.array(s.items) ** 2)


def by_a_function(k: Any) -> Any:
    h = [0.0] * N

    def put(i: int) -> None:
        h[i] = k * i

    for i in range(N):
        put(i)
    return sum(h)


def exchanged(k: Any) -> Any:
    h = [0.5 * i for i in range(N)]
    for i in range(N // 2 + 5):
        h[i % N], h[N - 1 - i] = h[N - 1 - i] * k, h[i]
    return sum([a * b for a, b in zip(h, range(N), strict=True)])


def nested(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        for j in range(i, N):
            h[j] += k * 0.1 * i * j
    return sum(h)


def on_a_condition(k: Any) -> Any:
    h = [1.0] * N
    for i in range(N):
        if k * i > 8:
            h[i] = k * k
        else:
            h[i] -= k
    return sum(h)


def in_a_while(k: Any) -> Any:
    h = [0.0] * N
    i = 0
    while i < N:
        h[i] = np.sin(k * i)
        i += 1
    return sum(h)


def with_fixed_places(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[i] = k * i + h[0]
        h[0] = k * 2 + i
    return sum(h)


def while_another_grows(k: Any) -> Any:
    h, out = [0.0] * N, []
    for i in range(N):
        h[i] = k * i
        out.append(h[i - 1])
    return sum(h) + np.sum(np.array(out) ** 2)


def by_truth_values(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[i > 5] = k * i
    return sum(h)


def complex_numbers(k: Any) -> Any:
    h = [0j] * N
    for i in range(N):
        h[i] = np.exp(1j * k * i)
    return abs(sum(h))


def of_two_kinds(k: Any) -> Any:
    h: list[Any] = [0.0] * N
    for i in range(N):
        h[i] = k * i
        h[i - 1] = h[i] * 1j + h[i - 1]
    return abs(sum(h))


def at_places_of_another_list(k: Any) -> Any:
    p, h = [(7 * i + 3) % N for i in range(N)], [0.0] * N
    for i in range(N):
        h[p[i]] = k * i * i
    return sum([a * b for a, b in zip(h, range(N), strict=True)])


def changed_afterwards(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[i] = k * i
    h.append(k)
    h.insert(0, 2 * k)
    del h[3]
    h.reverse()
    return sum(a * b for a, b in zip(h, range(len(h)), strict=True)) + len(h) * k


FILLED = [
    backwards, from_integers, tridiagonal, with_another_name, in_a_dict, in_an_object, by_a_function, exchanged, nested,
    on_a_condition, in_a_while, with_fixed_places, while_another_grows, by_truth_values, complex_numbers, of_two_kinds,
    at_places_of_another_list, changed_afterwards,
]  # fmt: skip


def reversed_in_each_trip(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[i] = k * i
        h.reverse()
    return sum(a * b for a, b in zip(h, range(N), strict=True))


def shifted_in_each_trip(k: Any) -> Any:
    h: list[Any] = [0.0] * N
    for i in range(N):
        h[i] = k * i
        h.pop()
        h.insert(0, k)
    return sum(a * b for a, b in zip(h, range(N), strict=True))


def parts_assigned(k: Any) -> Any:
    h: list[Any] = [0.0] * N
    for i in range(N):
        h[i] = k * i
        h[1:3] = [k, k * i]
    return sum(a * b for a, b in zip(h, range(N), strict=True))


def summed_in_each_trip(k: Any) -> Any:
    h = [0.0] * N
    for i in range(N):
        h[i] = k * i + sum(h) * 0.01
    return sum(h)


def copied_in_each_trip(k: Any) -> Any:
    h = [0.0] * N
    y: list[Any] = []
    for i in range(N):
        h[i] = k * i
        y = list(h)
    return sum(y) + sum(h)


def lists_exchanged(k: Any) -> Any:
    h, g = [0.0] * N, [0.0] * N
    for _ in range(4):
        for i in range(1, N - 1):
            g[i] = h[i] + 0.1 * (h[i - 1] - 2 * h[i] + h[i + 1]) + k * 0.01
        h, g = g, h
    return sum(h)


def of_arrays(k: Any) -> Any:
    h: list[Any] = [0.0] * N
    for i in range(N):
        h[i] = np.array([k, i]) * 2.0
    return sum(h)[0]


def another_list_on_a_condition(k: Any) -> Any:
    h: list[Any] = [0.0] * N
    for i in range(N):
        h[i] = k * i
        if i % 10 == 9:
            h = [k] * N
    return sum(h)


OTHERWISE = [
    reversed_in_each_trip, shifted_in_each_trip, parts_assigned, summed_in_each_trip, copied_in_each_trip,
    lists_exchanged, of_arrays, another_list_on_a_condition,
]  # fmt: skip


def check(f: Callable[[Any], Any], backend: str) -> None:
    """Value, derivative in both modes and second derivative, beside Python and its differences."""
    k, h = 1.3, 1e-5
    value, slope = sg.value_and_grad(f, backend=backend)(k)
    assert value == pytest.approx(f(k), rel=1e-12)
    assert slope == pytest.approx((f(k + h) - f(k - h)) / (2 * h), rel=1e-6, abs=1e-6)
    assert sg.jvp(f, (k,), (1.0,), backend=backend)[1] == pytest.approx(slope, rel=1e-12)
    second = (f(k + 1e-3) - 2 * f(k) + f(k - 1e-3)) / 1e-6
    assert sg.hessian(f, backend=backend)(k) == pytest.approx(second, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [*FILLED, *OTHERWISE], ids=lambda f: f.__name__)
def test_lists_that_loops_fill(f: Callable[[Any], Any], backend: str) -> None:
    check(f, backend)


@pytest.mark.parametrize("f", FILLED, ids=lambda f: f.__name__)
def test_a_loop_that_fills_a_list_is_one_region(f: Callable[[Any], Any]) -> None:
    said = sg.explain(sg.grad(f, backend="numpy"))(1.3)["how it runs"]
    assert all("numbers that are known" in line for line in said.splitlines() if "unrolled" in line)
    assert len(sg.explain(sg.jit(f, backend="numpy"))(1.3)["optimised ir"].splitlines()) < 200


def test_the_outermost_loop_that_has_the_list_fills_it() -> None:
    """Or all items would be carried by it."""
    assert len(sg.explain(sg.jit(nested, backend="numpy"))(1.3)["optimised ir"].splitlines()) < 50


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_place_beyond_the_list_raises(backend: str) -> None:
    def f(k: Any) -> Any:
        h = [0.0] * N
        for i in range(N + 1):
            h[i] = k * i
        return sum(h)

    with pytest.raises(IndexError):
        sg.grad(f, backend=backend)(1.0)


def test_the_list_is_the_same_one_with_numbers_in_it() -> None:
    def f(k: Any) -> Any:
        h = [0.0] * N
        for i in range(N):
            h[i] = k * i
        return h

    found = sg.jit(f)(2.0)
    assert type(found) is list
    assert found == [2.0 * i for i in range(N)]
    assert all(type(x) is type(found[0]) for x in found)


def test_float32_items() -> None:
    def f(x: Any) -> Any:
        h = [x[0]] * N
        for i in range(1, N):
            h[i] = h[i - 1] * x[1]
        return np.array(h)

    x = np.array([1.5, 0.5], np.float32)
    found = sg.jit(f)(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, f(x))
