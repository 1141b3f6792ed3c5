"""Objects of plain classes that a loop makes anew in each trip: their attributes are carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Function = Callable[[Any], Any]


class Particle:
    def __init__(self, x: Any, v: Any, tag: str = "p") -> None:
        self.x, self.v, self.tag = x, v, tag

    def stepped(self, k: float) -> Particle:
        return Particle(self.x + 0.01 * self.v, self.v - 0.01 * k * np.sin(self.x), self.tag)

    def kicked(self, k: float) -> Particle:
        self.v = self.v + k
        return self

    @property
    def energy(self) -> Any:
        return 0.5 * self.v**2 - np.cos(self.x)

    def __add__(self, other: Particle) -> Particle:
        return Particle(self.x + other.x, self.v + other.v, self.tag)


class Pair:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Model:
    def __init__(self, w: Any, act: Any, options: Any = None) -> None:
        self.w, self.act, self.options = w, act, options


def made_and_changed(x: Any) -> Any:
    p = Particle(x, 1.0)
    for _ in range(60):
        p = p.stepped(2.0).kicked(0.01)
    return p.energy + len(p.tag)


def the_one_before(x: Any) -> Any:
    p = q = Particle(x, 1.0)
    for _ in range(60):
        q = p
        p = p.stepped(2.0)
    return p.x * q.x


def attributes_in_slots(x: Any) -> Any:
    s = Pair(x, 1.0)
    for _ in range(60):
        s = Pair(s.a * 0.99 + s.b * 0.01, s.b - 0.01 * s.a)
    return s.a * s.b


def a_list_of_objects(x: Any) -> Any:
    ps = [Particle(x * (i + 1), 0.1 * i) for i in range(3)]
    for _ in range(60):
        ps = [p.stepped(1.5) for p in ps]
    return sum(p.energy for p in ps)


def in_a_dict_and_a_tuple(x: Any) -> Any:
    d = {"p": Particle(x, 1.0), "q": (Particle(x, 2.0), 3.0)}
    for _ in range(60):
        d = {"p": d["p"].stepped(1.0), "q": (d["q"][0].stepped(2.0), d["q"][1] + d["p"].x)}
    return d["p"].energy + d["q"][0].energy * d["q"][1]


def one_that_both_have(x: Any) -> Any:
    shared = Particle(2.0, 3.0)
    w, z = Model(x, shared), Model(x * 2, shared)
    for _ in range(60):
        w = Model(w.w * 0.9 + w.act.x * 0.1, w.act)
        z = Model(z.w + w.w * 0.01, z.act)
        shared.x = shared.x * 1.001
    return w.w * z.w * shared.x


def functions_and_none(x: Any) -> Any:
    m = Model(x, np.tanh)
    for _ in range(60):
        m = Model(m.w - 0.1 * (m.act(m.w) - 0.3), m.act, m.options)
    return m.act(m.w)


def loops_in_each_other(x: Any) -> Any:
    p, total = Particle(x, 1.0), 0.0
    for _ in range(20):
        for _ in range(20):
            p = p.stepped(1.0)
        total = total + p.energy * p.x
        p = p + Particle(0.01, 0.0)
    return total


def swapped(x: Any) -> Any:
    a, b = Particle(x, 1.0), Particle(2 * x, 0.5)
    for _ in range(61):
        a, b = b, a.stepped(1.0)
    a.x = a.x + 1
    return a.x * b.v


def what_was_in_the_one_before_is_changed(x: Any) -> Any:
    m = Model([x, 1.0], None)
    for _ in range(30):
        old = m.w
        m = Model([old[0] * 0.9, old[1] + x], None)
        old[0] = 99.0
    return m.w[0] * m.w[1] + old[0] * x


def an_array_by_two_names(x: Any) -> Any:
    z = np.ones(3) * x
    m = Model(z, z)
    for _ in range(30):
        m.w[0] += 0.1
        n = m.w * 1.01
        m = Model(n, n)
    m.w[1] = 5.0
    return np.sum(m.act**2)


def until_a_value_says(x: Any) -> Any:
    p = Particle(x, 1.0)
    while p.x < 2.0:
        p = p.stepped(0.5)
    return p.x * p.v


def ended_by_a_break(x: Any) -> Any:
    p = Particle(x, 1.0)
    for _ in range(500):
        p = p.stepped(0.5)
        if p.x > 2.0:
            break
    return p.x * p.v


def a_name_used_again(x: Any) -> Any:
    """Before the loop it is of an object that a list holds, which no trip reads by it."""
    items, total = [Particle(x * k, 1.0) for k in range(3)], 0.0
    for p in items:
        total = total + p.x
    for i in range(60):
        p = Particle(total * 0.01 + i, 1.0)
        total = total + np.sin(p.x)
    return total + items[0].x + items[2].x


ONE_REGION = (
    made_and_changed, the_one_before, attributes_in_slots, a_list_of_objects, in_a_dict_and_a_tuple,
    one_that_both_have, functions_and_none, loops_in_each_other, swapped, what_was_in_the_one_before_is_changed,
    an_array_by_two_names, a_name_used_again,
)  # fmt: skip
WITH_ENDS = (until_a_value_says, ended_by_a_break)


def held_by_another_name_and_changed(x: Any) -> Any:
    p, q = Particle(x, 1.0), Particle(x, 0.0)
    for _ in range(60):
        q.v = q.v + p.x
        p = p.stepped(2.0)
        q = p
        q.x = q.x * 1.001
    return p.x * q.v


def appended(x: Any) -> Any:
    p, past = Particle(x, 1.0), []
    for _ in range(60):
        p = p.stepped(2.0)
        past.append(p)
    return sum(q.x for q in past) * p.v


def compared_by_identity(x: Any) -> Any:
    p = first = Particle(x, 1.0)
    n = 0.0
    for i in range(60):
        if i % 7 == 6:
            p = p.stepped(2.0)
        if p is first:
            n = n + x
    return p.x * n


def in_itself(x: Any) -> Any:
    n = Model(x, None)
    n.options = n
    for _ in range(30):
        m = Model(n.options.w * 0.9 + 0.1, None)
        m.options = m
        n = m
    return n.w


def gets_an_attribute(x: Any) -> Any:
    p: Any = Particle(x, 1.0)
    for i in range(60):
        p = p.stepped(1.0)
        if i == 5:
            p.extra = p.x
    return p.energy + getattr(p, "extra", 0.0)


def changed_behind_the_loop(x: Any) -> Any:
    a, b = Particle(x, 1.0), Particle(2 * x, 0.5)
    for _ in range(61):
        a = a.stepped(1.0)
        b = a
    a.x = a.x + 1
    return b.x


def the_first_changed(x: Any) -> Any:
    p = first = Particle(x, 1.0)
    for _ in range(60):
        p.x = p.x * 1.01
        p = p.stepped(1.0)
    return p.x + first.x


def in_an_array_of_objects(x: Any) -> Any:
    p, held = Particle(x, 1.0), np.empty(1, dtype=object)
    for _ in range(60):
        p = p.stepped(2.0)
        held[0] = p
    p.tag = "another"
    return p.x * len(held[0].tag)


class Link:
    def __init__(self, value: Any, after: Link | None, name: str = "") -> None:
        self.value, self.after, self.name = value, after, name


def linked(x: Any) -> Any:
    head = None
    for k in range(40):
        head = Link(np.sin(x * k), head)
    total = 0.0
    while head is not None:
        total = head.value + 0.7 * total
        head = head.after
    return total


def linked_in_tuples(x: Any) -> Any:
    head = Link(x, None)
    for k in range(40):
        rest = (head, k)
        head = Link(0.5 * x * rest[0].value + k, rest[0], str(k))
    return head.value * len(head.after.name) if head.after is not None else x


LINKED = (linked, linked_in_tuples)

OTHERS = (
    held_by_another_name_and_changed, appended, compared_by_identity, in_itself, gets_an_attribute,
    changed_behind_the_loop, the_first_changed, in_an_array_of_objects,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", (*ONE_REGION, *WITH_ENDS, *LINKED, *OTHERS))
def test_values_and_derivatives_are_those_of_python(function: Function, backend: str) -> None:
    for x in (0.3, 0.9):
        np.testing.assert_allclose(sg.jit(function, backend=backend)(x), function(x), rtol=1e-11)
        step = 1e-6
        slope = (function(x + step) - function(x - step)) / (2 * step)
        np.testing.assert_allclose(sg.grad(function, backend=backend)(x), slope, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(sg.jacfwd(function, backend=backend)(x), slope, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("function", ONE_REGION)
def test_the_loop_is_one_region(function: Function) -> None:
    said = sg.explain(function)(0.3)["how it runs"]
    assert "one region" in said
    assert "unrolled" not in said


@pytest.mark.parametrize("function", WITH_ENDS)
def test_a_loop_with_a_traced_end_is_one_program(function: Function) -> None:
    sg.jit(function, strict=True)(0.3)
    assert sg.explain(function)(0.3)["how it runs"].startswith("One program")


@pytest.mark.parametrize("function", LINKED)
def test_objects_that_hold_the_one_before_are_written_out(function: Function) -> None:
    sg.jit(function, strict=True)(0.3)
    said = sg.explain(function)(0.3)["how it runs"]
    assert said.startswith("One program")
    assert "unrolled" in said


class Checked:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __mul__(self, other: Checked) -> Checked:
        if self.a + other.a < -100.0:
            raise ValueError("too small")
        return Checked(self.a * other.a, self.b + other.a)


def checked_in_each_trip(x: Any) -> Any:
    p, step = Checked(x, 1.0), Checked(1.01, x)
    for _ in range(60):
        p = p * step
    return p.a * p.b


def test_an_error_that_may_be_raised_holds_no_object_of_a_loop() -> None:
    slope = sg.grad(checked_in_each_trip)
    apart = (checked_in_each_trip(0.7 + 1e-6) - checked_in_each_trip(0.7 - 1e-6)) / 2e-6
    assert slope(0.7) == pytest.approx(apart, rel=1e-6)
    assert "one region" in sg.explain(slope)(0.7)["how it runs"]
    with pytest.raises(ValueError, match="too small"):
        slope(-1000.0)
