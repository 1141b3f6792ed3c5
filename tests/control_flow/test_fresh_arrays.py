"""Arrays computed from constants, into which a function writes traced values."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import cache


def element(p: Any) -> Any:
    u = np.arange(5) * 0.1
    u[0] = p
    return np.sum(u**3)


def part(p: Any) -> Any:
    u = np.sin(np.linspace(0, 3, 50))
    u[1:3] = p
    return np.sum(u**3)


def in_place(p: Any) -> Any:
    u = np.linspace(0, 1, 5) ** 2
    u += p
    return np.sum(u**3)


def filled(p: Any) -> Any:
    u = np.arange(5) * 0.1
    u.fill(p)
    return np.sum(u**3)


def added_at(p: Any) -> Any:
    u = np.exp(np.linspace(0, 1, 5))
    np.add.at(u, [0, 0], p)
    return np.sum(u**3)


def alias(p: Any) -> Any:
    u = np.sin(np.linspace(0, 1, 5))
    v, w = u, u[1:]
    u[1] = p
    return np.sum(v * w[0]) + np.sum(v**3)


def of_which_a_view_is_written(p: Any) -> Any:
    b = np.linspace(0, 1, 5) * 2
    u = b.reshape(5)
    u[0] = p
    return np.sum(b**3)


def a_view_that_nothing_else_holds(p: Any) -> Any:
    u = (np.linspace(0, 1, 6) * 2).reshape(2, 3)
    v = u.T
    u[0] = p
    return np.sum(v[:, 0] ** 3)


def in_another_function(p: Any) -> Any:
    u = np.linspace(0, 1, 5) ** 2

    def write() -> None:
        u[0] = p

    write()
    return np.sum(u**3)


def under_a_condition(p: Any) -> Any:
    u = np.sin(np.linspace(0, 1, 5))
    if p > 1:
        u[0] = 5.0
    return p**3 * np.sum(u)


def relaxed(p: Any) -> Any:
    x = np.exp(-(np.linspace(-3, 3, 20) ** 2))
    for _ in range(10):
        for i in range(1, 19):
            x[i] += 0.5 * p * (x[i - 1] - 2 * x[i] + x[i + 1])
    return np.sum(x)


CASES = (
    element, part, in_place, filled, added_at, alias, of_which_a_view_is_written, a_view_that_nothing_else_holds,
    in_another_function, under_a_condition, relaxed,
)  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_arrays_computed_from_constants_take_traced_values(f: Callable[[Any], Any], backend: str) -> None:
    for p in (0.3, 2.0):
        value, slope = sg.value_and_grad(f, backend=backend)(p)
        assert value == pytest.approx(f(p), rel=1e-12)
        assert slope == pytest.approx((f(p + 1e-6) - f(p - 1e-6)) / 2e-6, rel=1e-6)
        assert sg.jvp(f, (p,), (1.0,), backend=backend)[1] == pytest.approx(slope, rel=1e-12)
        derivative = sg.grad(f, backend=backend)
        second = (derivative(p + 1e-6) - derivative(p - 1e-6)) / 2e-6
        assert sg.grad(derivative, backend=backend)(p) == pytest.approx(second, rel=1e-6, abs=1e-6)


def nodes(n: int) -> Any:
    x = np.cos(np.pi * (np.arange(n) + 0.75) / (n + 0.5))
    for _ in range(100):
        one, other = np.ones(n), x
        for k in range(2, n + 1):
            one, other = other, ((2 * k - 1) * x * other - (k - 1) * one) / k
        step = other * (x * x - 1) / (n * (x * other - one))
        x -= step
        if float(np.max(np.abs(step))) < 1e-14:
            break
    return x


def test_arrays_that_no_traced_value_is_written_into_stay_known() -> None:
    def f(p: Any) -> Any:
        weights = np.exp(np.linspace(0, 1, 80))
        weights[0] = 3.0
        count = len([w for w in weights.tolist() if w > 2])
        return count * np.sum(np.sin(p * np.polynomial.legendre.leggauss(count)[0])) + p * weights[0]

    derivative = sg.value_and_grad(f)
    assert derivative(2.0)[0] == pytest.approx(f(2.0), rel=1e-12)
    assert "Why" not in sg.explain(derivative)(2.0)["how it runs"]


UNWRITTEN: dict[str, Callable[[], Any]] = {
    "empty": lambda: np.empty((40, 3)),
    "empty float32": lambda: np.empty((40, 3), np.float32, order="F"),
    "empty_like": lambda: np.empty_like(np.arange(120.0).reshape(40, 3)),
    "ndarray": lambda: np.ndarray((40, 3)),
    "ndarray with strides": lambda: np.ndarray((40, 3), strides=(24, 8)),
    "computed name": lambda: next(map(np.empty, [(40, 3)])),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("make", UNWRITTEN.values(), ids=UNWRITTEN)
def test_what_memory_held_before_is_no_constant_of_the_program(make: Callable[[], Any], backend: str) -> None:
    def f(x: Any) -> Any:
        a = make()
        a[0] = x
        for k in range(1, 40):
            a[k] = 0.5 * a[k - 1] + x
        return np.sum(a * a) * np.sum(a)

    def programs() -> tuple[Any, Any]:
        dirty = [np.random.default_rng().normal(size=(40, 3)) for _ in range(40)]
        del dirty
        cache.clear_caches()
        found = sg.explain(sg.grad(f, backend=backend))(np.arange(3.0))
        return found["ir"], found["optimised ir"]

    first = programs()
    assert programs() == first
    assert "dense" not in first[0]
    x, step = np.arange(3.0) + 1, 1e-6
    slopes = [(f(x + step * row) - f(x - step * row)) / (2 * step) for row in np.eye(3)]
    if "32" not in str(make().dtype):
        assert sg.grad(f, backend=backend)(x) == pytest.approx(slopes, rel=1e-6)
    assert sg.jit(f, backend=backend)(x) == pytest.approx(f(x), rel=1e-5)


def test_new_arrays_of_other_kinds_hold_what_numpy_puts_there() -> None:
    def f(x: Any) -> Any:
        kept = np.empty(2, object)
        nothing = kept[1] is None
        kept[0], named = x, np.empty(3, [("a", "f8"), ("b", "U3")])
        shown = np.ndarray((3,), buffer=np.arange(6.0), strides=(16,))
        return np.sum(kept[0] * shown) * len(named) if nothing else 0.0 * x[0]

    assert np.array_equal(sg.grad(f)(np.ones(3)), [0.0, 6.0, 12.0])


def test_iterations_on_constants_run_while_tracing() -> None:
    def f(p: Any) -> Any:
        return np.sum(np.cos(p * nodes(6)))

    derivative = sg.value_and_grad(f)
    assert derivative(2.0)[0] == pytest.approx(f(2.0), rel=1e-12)
    assert "Why" not in sg.explain(derivative)(2.0)["how it runs"]


def held_twice(p: Any) -> Any:
    held = {"table": np.linspace(0.0, 1.0, 4) ** 2}
    u = held.get("table")
    u[0] = p  # type: ignore[index]
    return np.sum(held["table"] ** 2)


class Particle:
    def __init__(self, v: Any) -> None:
        self.v, self.grid = np.array(v), np.linspace(0.0, 1.0, 5)


def of_an_object(p: Any) -> Any:
    a, b = Particle([0.0, 1.0]), Particle([p, 2.0])
    for _ in range(int(a.grid[-1] * 20)):
        a.v += 0.1 * b.v
        b.v[0] -= 0.1 * a.v[1] * p
    return np.sum(a.v * b.v)


def of_an_element(p: Any) -> Any:
    particle = Particle([0.0, 1.0])
    particle.v[0] = p
    particle.grid[1:3] = p * p if particle.grid[1] > 0.2 else p
    return np.sum(particle.v) + np.sum(particle.grid)


def of_a_dict(p: Any) -> Any:
    state = {"x": np.array([1.0, 2.0]), "v": np.array([0.0, 3.0])}
    state["x"][0] = p
    for row in state.values():
        row *= p
    return np.sum(state["x"]) + state["v"][1]


def of_a_function(p: Any) -> Any:
    def start() -> Any:
        return np.array([0.0, 1.0])

    a, kept = start(), (start(), [start() for _ in range(3)])
    a += p
    kept[0][0], kept[1][2][1] = a[1], p * p
    return np.sum(a) + sum(np.sum(row) for row in (kept[0], *kept[1]))


@dataclasses.dataclass
class Tables:
    a: Any = dataclasses.field(default_factory=lambda: np.array([1.0, 2.0]))


def of_a_default(p: Any) -> Any:
    table = Tables()
    table.a[1] = p
    return np.prod(table.a)


HELD = [held_twice, of_an_object, of_an_element, of_a_dict, of_a_function, of_a_default]


@pytest.mark.parametrize("f", HELD, ids=lambda f: f.__name__)
def test_what_objects_and_containers_hold_is_written_into(f: Callable[[Any], Any]) -> None:
    """Where the function names no array that it writes into, it was traced again at each call, or an error."""
    derivative = sg.value_and_grad(f)
    for p in (2.0, 0.5):
        value, slope = derivative(p)
        assert value == pytest.approx(f(p), rel=1e-12)
        assert slope == pytest.approx((f(p + 1e-6) - f(p - 1e-6)) / 2e-6, rel=1e-6)
        assert sg.explain(derivative)(p)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_it_is_where_the_function_is_traced_again() -> None:
    def opened(p: Any) -> Any:
        with open(os.devnull):
            return of_a_dict(p) + of_a_function(p)

    def selected(p: Any) -> Any:
        return of_a_dict(np.median(p[p > 0.0]))

    for f, p, way in ((opened, 2.0, "Each call"), (selected, np.array([2.0, -1.0, 4.0, 5.0]), "Path 1")):
        derivative = sg.value_and_grad(f)
        for _ in range(2):
            value, slope = derivative(p)
            assert value == pytest.approx(f(p), rel=1e-12)
            ahead = f(p + 1e-6 * np.ones_like(p))
            assert np.sum(slope) == pytest.approx((ahead - f(p - 1e-6 * np.ones_like(p))) / 2e-6, rel=1e-6)
        assert sg.explain(derivative)(p)["how it runs"].startswith(way)


def test_a_comparison_of_whole_arrays_is_a_test_of_one_program() -> None:
    def settled(p: Any) -> Any:
        x = np.eye(2)
        for _ in range(500):
            new = 0.5 * x + p * np.eye(2)
            if np.allclose(new, x, rtol=1e-12, atol=1e-12):
                break
            x = new
        return np.sum(x**2)

    def equal(p: Any) -> Any:
        x = p * np.ones(2)
        return np.sum(x) if np.array_equal(x, np.abs(x)) is True else np.sum(x * x)

    for f in (settled, equal):
        for p in (1.0, -2.0):
            value, slope = sg.value_and_grad(f)(p)
            assert value == pytest.approx(f(p), rel=1e-12)
            assert slope == pytest.approx((f(p + 1e-5) - f(p - 1e-5)) / 2e-5, rel=1e-6)
        assert "Why" not in sg.explain(sg.grad(f))(1.0)["how it runs"]


class Holder:
    """What gets arrays by drawing them, and has them changed by another method."""

    def __init__(self, n: int) -> None:
        rng = np.random.RandomState(0)
        self.w, self.parts = rng.rand(n), {}  # type: ignore[var-annotated]
        self.b = rng.rand(n)
        self.parts["c"] = rng.rand(n)

    def step(self, p: Any) -> Any:
        self.b -= 0.1 * p
        self.parts["c"] *= p
        self.parts["c"][0] = p
        return np.sum(self.b * self.w) + np.sum(self.parts["c"])


@dataclasses.dataclass
class Total:
    """What has an array by a default factory."""

    start: float = 1.0
    sums: Any = dataclasses.field(default_factory=lambda: np.zeros(3))
    counts: list[int] = dataclasses.field(default_factory=list)

    def add(self, p: Any) -> Total:
        self.sums += p * self.start
        self.counts.append(1)
        return self


def unwatched() -> None:
    """What has a function traced again at each call."""
    open(os.devnull).close()


def drawn_pair(p: Any) -> Any:
    unwatched()
    rng = np.random.RandomState(0)
    w, h = rng.rand(2, 2), rng.rand(2, 2)
    h *= p
    (a, b), c = (w, h), rng.rand(2, 2)
    c[0] = p
    return np.sum(a @ b @ c)


def held_by_an_object(p: Any) -> Any:
    unwatched()
    return Holder(4).step(p)


def by_a_default_factory(p: Any) -> Any:
    return np.sum(Total().add(p).add(p * p).sums * Total(2.0, counts=[]).add(p).sums)


def by_a_condition(p: Any) -> Any:
    u = np.array([1.0, 2.0]) if p > 1 else np.array([3.0, 4.0])
    u *= p
    unwatched()
    return np.sum(u**2)


def reversed_constant(p: Any) -> Any:
    u = np.array([1.0, 2.0, 3.0])[::-1]
    u[0] = p
    return np.sum(u**3)


def output_by_place(p: Any) -> Any:
    u = np.linspace(0, 1, 4).copy()
    np.multiply(u, p, u)
    return np.sum(u**3)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "f",
    [drawn_pair, held_by_an_object, by_a_default_factory, by_a_condition, reversed_constant, output_by_place],
    ids=lambda f: f.__name__,
)
def test_new_arrays_take_traced_values_however_they_are_named(f: Callable[[Any], Any], backend: str) -> None:
    for p in (0.3, 2.0):
        value, slope = sg.value_and_grad(f, backend=backend)(p)
        assert value == pytest.approx(f(p), rel=1e-12)
        assert slope == pytest.approx((f(p + 1e-6) - f(p - 1e-6)) / 2e-6, rel=1e-6)
        assert sg.jvp(f, (p,), (1.0,), backend=backend)[1] == pytest.approx(slope, rel=1e-12)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_arrays_of_an_object_that_the_caller_has_are_not_replaced() -> None:
    """A trace with numbers runs on the caller's own objects, and a new array that it puts there must be NumPy's."""
    holder = Holder(4)
    array = holder.w

    table, rows, runs = np.zeros((2, 4)), [np.zeros(4)], []

    def f(p: Any) -> Any:
        unwatched()
        runs.append(1)
        holder.w = array * 2.0
        table[0], holder.b[1:] = np.sin(np.arange(4.0)), np.linspace(0, 1, 3) ** 2
        table.flat = np.concatenate([table[0], table[0]])
        holder.parts["d"] = rows[0] = np.cos(np.arange(4.0))
        return p * (np.sum(holder.w) + table[0, 1] + holder.b[-1] + holder.parts["d"][0])

    assert sg.grad(f)(2.0) == np.sum(array * 2.0) + np.sin(1.0) + 1.0 + 1.0
    assert runs == [1]
    assert np.array_equal(table[0], np.sin(np.arange(4.0)))
    assert [type(x) for x in (holder.parts["d"], rows[0], holder.b)] == [np.ndarray] * 3
    assert type(holder.w) is np.ndarray
    assert np.array_equal(holder.w, array * 2.0)
