"""Objects of plain classes that a long loop appends to a list, and long loops over such lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = tuple(np.array(x) for x in ([0.33, 0.21], [1.57, -0.2], [-1.03, 0.7]))


class Particle:
    def __init__(self, x: Any, v: Any, kind: str = "p") -> None:
        self.x, self.v, self.kind = x, v, kind

    @property
    def energy(self) -> Any:
        return 0.5 * self.v**2 - np.cos(self.x) if self.x > 0 else self.v

    def step(self, dt: Any) -> None:
        self.v = self.v - dt * np.sin(self.x)
        self.x = self.x + dt * self.v


class Slotted:
    __slots__ = ("inner", "x")

    def __init__(self, x: Any) -> None:
        self.x, self.inner = x, Particle(2 * x, x**2)


def particles(p: Any, count: int = 40) -> list[Any]:
    found = []
    x, v = p[0], p[1]
    for _ in range(count):
        x = x + 0.1 * v
        v = v - 0.1 * np.sin(x)
        found.append(Particle(x, v))
    return found


def appended(p: Any) -> Any:
    total = 0.0
    for q in particles(p):
        total += q.energy * len(q.kind)
    return total


def in_a_comprehension(p: Any) -> Any:
    found = [Particle(p[0] + 0.1 * k, p[1] * k, "a") for k in range(40)]
    total = 0.0
    for q in found:
        total += q.energy
    return total + found[3].x * found[-1].v


def by_a_variable(p: Any) -> Any:
    found = []
    for k in range(40):
        q = Particle(p * k, p[0])
        q.step(0.1)
        found.append(q)
    total = 0.0
    for one in found:
        total += np.sum(one.x) * one.v[0]
    return total + q.v[1] + one.x[0]


def with_objects_inside(p: Any) -> Any:
    found = []
    for k in range(40):
        found.append(Slotted(p[0] * k + p[1]))
    total = 0.0
    for s in found:
        total = 0.9 * total + s.x * s.inner.energy
    for s in found:
        total += s.inner.v
    return total + s.x


def numbers_of_trips(p: Any) -> Any:
    found = []
    for k in range(40):
        found.append(Particle(k, p[0] * k))
    total = 0.0
    for q in found:
        total += q.v * q.x
    return total + found[7].x * p[1]


ONE_REGION = (appended, in_a_comprehension, by_a_variable, with_objects_inside, numbers_of_trips)


def changed_in_the_loop(p: Any) -> Any:
    found = particles(p)
    for q in found:
        q.step(0.1)
    return sum(q.energy for q in found)


def written_in_the_loop(p: Any) -> Any:
    found = particles(p)
    for k, q in enumerate(found):
        q.v = p[0] * k
    for q in found:
        q.x = p[1]
    return found[5].energy + found[7].energy


def kept_in_the_loop(p: Any) -> Any:
    found = particles(p)
    last = seen = found[0]
    for q in found:
        last, seen = q, last
    last.x = 3.0 * p[0]
    seen.x = 5.0 * p[1]
    return sum(q.x for q in found)


def kept_in_a_tuple(p: Any) -> Any:
    found = particles(p)
    pair = (found[0], 1.0)
    for q in found:
        pair = (q, 2.0)
    pair[0].x = 3.0 * p[0]
    return found[-1].x * pair[1]


def kept_in_an_object(p: Any) -> Any:
    found = particles(p)
    holder = Particle(found[0], 0.0)
    for q in found:
        holder.x = q
    holder.x.v = 3.0 * p[0]
    return found[-1].v + found[0].v


def kept_in_a_list(p: Any) -> Any:
    found, again = particles(p), []
    for q in found:
        again.append(q)
    again[3].x = 3.0 * p[0]
    return sum(q.x * k for k, q in enumerate(found))


def the_variable_is_changed_behind_the_loop(p: Any) -> Any:
    found = particles(p)
    total = 0.0
    for q in found:
        total += q.x
    q.x = 7.0 * p[0]
    return total + found[-1].x


def the_best_is_changed_later(p: Any) -> Any:
    found = particles(p)
    best = found[0]
    for q in found:
        if q.v < best.v:
            best = q
    best.v = p[0] * 3
    return sum(q.v for q in found)


def compared(p: Any) -> Any:
    found = particles(p)
    last, total = found[-1], 0.0
    for q in found:
        if q is not last:
            total += q.x
        if q == found[2]:
            total += 3 * q.v
    return total


def shared_with_another(p: Any) -> Any:
    found, again = [], []
    for k in range(40):
        q = Particle(p[0] * k, p[1])
        found.append(q)
        again.append(q)
    found[3].x = p[1]
    return sum(q.x * q.v for q in again)


def changed_once_it_is_appended(p: Any) -> Any:
    found = []
    for k in range(40):
        q = Particle(p[0] * k, p[1])
        found.append(q)
        q.x = q.x + p[1]
    return sum(q.x * q.v for q in found)


def functions_of_trips(p: Any) -> Any:
    found = []
    for k in range(40):
        q = Particle(p[0] * k, None)
        q.v = lambda x, k=k, q=q: x * k * q.x
        found.append(q)
    return found[3].v(p[1]) + found[-1].v(2.0)


def closures_of_trips(p: Any) -> Any:
    def made(k: Any) -> Any:
        factor = p[0] * k
        q = Particle(p[1], None)
        q.v = lambda x: x * factor
        return q

    found = []
    for k in range(40):
        found.append(made(k))
    return found[3].v(p[1]) + found[-1].v(2.0)


def of_two_kinds(p: Any) -> Any:
    found = []
    for k in range(40):
        found.append(Particle(p[0] * k, p[1], "a" if k % 3 == 0 else "bc"))
    total = 0.0
    for q in found:
        total += q.x * len(q.kind)
    return total


def the_same_array(p: Any) -> Any:
    found = []
    for k in range(40):
        a = p * k
        found.append(Particle(a, a))
    found[3].x[0] = 5.0
    return sum(np.sum(q.v) for q in found)


def an_array_is_changed(p: Any) -> Any:
    found = []
    for k in range(40):
        found.append(Particle(p * k, p + k))
    for q in found:
        q.x[0] = q.v[1] * 2
        q.v += 1.0
    return sum(q.x[0] * q.v[0] for q in found)


OTHERS = (
    changed_in_the_loop, written_in_the_loop, kept_in_the_loop, kept_in_a_tuple, kept_in_an_object, kept_in_a_list,
    the_variable_is_changed_behind_the_loop, the_best_is_changed_later, compared, shared_with_another,
    changed_once_it_is_appended, functions_of_trips, closures_of_trips, of_two_kinds, the_same_array,
    an_array_is_changed,
)  # fmt: skip


def require_right(f: Callable[[Any], Any], backend: str) -> None:
    step = 1e-6
    run, slope = sg.jit(f, backend=backend), sg.grad(f, backend=backend)
    for x in POINTS:
        apart = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
        np.testing.assert_allclose(run(x), f(x), rtol=1e-11)
        np.testing.assert_allclose(slope(x), apart, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", ONE_REGION, ids=lambda f: f.__name__)
def test_loops_that_make_and_read_objects_are_regions(f: Any, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_right(f, backend)
    said = sg.explain(f)(POINTS[0])["how it runs"]
    assert "one region" in said
    assert "unrolled" not in said


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_objects_that_are_changed_kept_or_compared_are_those_of_the_list(f: Any) -> None:
    require_right(f, "numpy")
