"""Descriptors in classes that a function uses: what they run is part of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 3.0])
OFFSET = 1.0


class Stiffness:
    def __get__(self, held: Any, owner: Any = None) -> Any:
        return self if held is None else held.stiffness

    def __set__(self, held: Any, value: Any) -> None:
        held.stiffness = value


class Positive:
    """One that asks for the value, with a method and a number of its own."""

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def checked(self, value: Any) -> Any:
        if value < self.least:
            raise ValueError("the mass is too small")
        return value

    def __get__(self, held: Any, owner: Any = None) -> Any:
        return held.inertia

    def __set__(self, held: Any, value: Any) -> None:
        held.inertia = self.checked(value)


class Doubled:
    def __get__(self, held: Any, owner: Any = None) -> Any:
        return held.x * 2.0


class Shifted:
    def __get__(self, held: Any, owner: Any = None) -> Any:
        return held.x + OFFSET


class Counted:
    def __init__(self) -> None:
        self.times = [0]

    def __get__(self, held: Any, owner: Any = None) -> Any:
        self.times[0] += 1
        return held.x * self.times[0]


class Kept:
    """A property that keeps what its function has given, where the object is made to."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.name = function.__name__

    def __get__(self, held: Any, owner: Any = None) -> Any:
        if held is None:
            return self
        try:
            kept = held.kept
        except AttributeError:
            kept = held.kept = {}
        if self.name not in kept:
            kept[self.name] = self.function(held)
        return kept[self.name]


class Sample:
    def __init__(self, x: Any) -> None:
        self.x = x

    @Kept
    def mean(self) -> Any:
        return np.mean(self.x)

    @Kept
    def variance(self) -> Any:
        return np.sum((self.x - self.mean) ** 2) * OFFSET


class Spring:
    k = Stiffness()
    mass = Positive()
    twice = Doubled()

    def __init__(self, k: Any, mass: Any, x: Any = 0.5) -> None:
        self.k = k
        self.mass = mass
        self.x = x


class Reading:
    moved = Shifted()

    def __init__(self, x: Any) -> None:
        self.x = x


class Counting:
    again = Counted()

    def __init__(self, x: Any) -> None:
        self.x = x


spring = Spring(3.0, 2.0)


def of_captured(x: Any) -> Any:
    return np.sum(x * spring.k) / spring.mass * spring.twice


def of_made(x: Any) -> Any:
    made = Spring(x[0], x[1] ** 2, x)
    return np.sum(made.twice * made.k) / made.mass


def of_changed(x: Any) -> Any:
    made = Spring(x[0], 1.0)
    for _ in range(3):
        made.k = made.k * x[1]
        made.mass = made.mass + abs(x[2])
    return made.k / made.mass


def of_kept(x: Any) -> Any:
    sample = Sample(x**2)
    return sample.variance / sample.mean * sample.variance


def agrees(f: Callable[[Any], Any], x: Any, backend: str) -> None:
    value, slope = sg.value_and_grad(f, backend=backend)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(slope, [(f(x + step) - f(x - step)) / 2e-6 for step in steps], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [of_captured, of_made, of_changed, of_kept])
def test_descriptors_are_part_of_the_program(f: Callable[[Any], Any], backend: str) -> None:
    for x in (X, X - 5.0):
        agrees(f, x, backend)
    assert sg.explain(sg.grad(f, backend=backend))(X)["how it runs"].startswith("One program")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_errors_of_a_descriptor_are_raised_when_the_program_runs(backend: str) -> None:
    slope = sg.grad(lambda x: np.sum(Spring(1.0, x[0]).mass * x), backend=backend)
    np.testing.assert_allclose(slope(X), [7.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="mass is too small"):
        slope(X - 5.0)
    np.testing.assert_allclose(slope(X), [7.0, 1.0, 1.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_descriptors_are_and_hold_is_seen_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(of_captured)
    expected = slope(X)[0]
    monkeypatch.setattr(spring, "stiffness", 6.0)
    np.testing.assert_allclose(slope(X), 2.0 * expected)
    monkeypatch.setattr(spring, "inertia", 4.0)
    np.testing.assert_allclose(slope(X), expected)
    made = sg.grad(of_made)
    expected_of_made = made(X)
    monkeypatch.setattr(Spring.__dict__["mass"], "least", 10.0)
    with pytest.raises(ValueError, match="mass is too small"):
        made(X)
    monkeypatch.setattr(Positive, "__set__", lambda self, held, value: setattr(held, "inertia", abs(value)))
    np.testing.assert_allclose(made(X), expected_of_made, rtol=1e-12)
    monkeypatch.setattr(Doubled, "__get__", lambda self, held, owner=None: held.x * 6.0)
    np.testing.assert_allclose(slope(X), 3.0 * expected)
    monkeypatch.setattr(Spring, "twice", 1.0, raising=False)
    np.testing.assert_allclose(slope(X), expected)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_the_function_that_a_descriptor_holds_and_what_it_reads_is_seen_at_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = sg.value_and_grad(of_kept)
    assert value(X)[0] == of_kept(X)
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    assert value(X)[0] == of_kept(X)
    monkeypatch.setattr(Sample.__dict__["mean"], "function", lambda self: np.sum(self.x))
    assert value(X)[0] == of_kept(X)
    monkeypatch.setattr(Sample.__dict__["variance"], "name", "mean")
    assert value(X)[0] == of_kept(X)


def test_a_descriptor_that_is_only_assigned_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(lambda x: x[1] * Spring(1.0, x[0]).inertia)
    np.testing.assert_allclose(slope(X), [2.0, 1.0, 0.0])
    monkeypatch.setattr(Spring.__dict__["mass"], "least", 10.0)
    with pytest.raises(ValueError, match="mass is too small"):
        slope(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_a_descriptor_reads_or_changes_outside_is_read_and_changed_at_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    value = sg.value_and_grad(lambda x: np.sum(Reading(x).moved))
    assert value(X)[0] == 9.0
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    assert value(X)[0] == 12.0
    counted = sg.value_and_grad(lambda x: np.sum(Counting(x).again))
    assert [counted(X)[0] for _ in range(3)] == [6.0, 12.0, 18.0]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_assigning_to_a_captured_object_runs_the_descriptor() -> None:
    kept = Spring(1.0, 1.0)

    def f(x: Any) -> Any:
        kept.mass = x[0]
        return np.sum(x * kept.mass)

    for x in (X, 2.0 * X):
        assert sg.value_and_grad(f)(x)[0] == np.sum(x * x[0])
        assert kept.inertia == x[0] and "mass" not in vars(kept)


class Scaled:
    """One with slots, of which one holds a function."""

    __slots__ = ("function", "least")

    def __init__(self, function: Any) -> None:
        self.function, self.least = function, 1.0

    def __get__(self, held: Any, owner: Any = None) -> Any:
        return self.function(held.x) if held.x > self.least else held.x


class Held:
    """Notes its subclasses, which the one that a trace makes is none of."""

    known: list[str] = []  # noqa: RUF012
    scaled = Scaled(lambda x: x * x * OFFSET)

    def __init_subclass__(cls) -> None:
        Held.known.append(cls.__name__)

    def __init__(self, x: Any) -> None:
        self.x = x


class SlottedHeld(Held):
    __slots__ = ("rate",)


def test_what_a_descriptor_holds_in_slots_is_never_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(lambda x: Held(x).scaled + SlottedHeld(x).scaled)
    assert (slope(3.0), slope(0.5)) == (12.0, 2.0)
    assert "One program" in sg.explain(slope)(3.0)["how it runs"]
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    assert slope(3.0) == 24.0
    monkeypatch.setattr(vars(Held)["scaled"], "least", 10.0)
    assert slope(3.0) == 2.0
    monkeypatch.setattr(vars(Held)["scaled"], "function", lambda x: x**3)
    assert slope(11.0) == 726.0
    assert Held.known == ["SlottedHeld"]
