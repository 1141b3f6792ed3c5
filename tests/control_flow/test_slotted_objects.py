"""Captured objects and arguments whose classes have slots: followed as those with a dict are."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


class Spring:
    __slots__ = ("__hidden", "inner", "k", "kind", "steps", "w")
    scale = 2.0

    def __init__(self, k: float, inner: Any = None) -> None:
        self.k, self.inner, self.kind, self.steps = k, inner, "sin", [1.0, 2.0]
        self.w = np.array([1.0, 2.0, 3.0])
        self.__hidden = 0.5

    @property
    def hidden(self) -> float:
        return self.__hidden

    def hide(self, value: float) -> None:
        self.__hidden = value

    def force(self, x: Any) -> Any:
        return self.k * (np.sin(x) if self.kind == "sin" else x) * self.scale + self.hidden * sum(self.steps)

    def __call__(self, x: Any) -> Any:
        inner = 0.0 if self.inner is None else self.inner(x)
        return np.sum(self.force(x) * self.w) + inner

    def __mul__(self, factor: float) -> Spring:
        return Spring(self.k * factor, self.inner)


class Damped(Spring):
    __slots__ = ("c",)

    def __init__(self, k: float, c: float) -> None:
        super().__init__(k)
        self.c = c

    def force(self, x: Any) -> Any:
        return -self.k * x - self.c * x**3


@dataclasses.dataclass(slots=True)
class Pendulum:
    length: float
    g: float = 9.81

    def __call__(self, x: Any) -> Any:
        return np.sum(np.sin(x)) * self.g / self.length


def numbers(s: Any) -> None:
    s.k = 7.0


def text(s: Any) -> None:
    s.kind = "line"


def array_in_place(s: Any) -> None:
    s.w[1] = 9.0


def array(s: Any) -> None:
    s.w = np.array([3.0, 0.0, 1.0])


def longer_list(s: Any) -> None:
    s.steps.append(4.0)


def private(s: Any) -> None:
    s.hide(3.0)


def inner_one(s: Any) -> None:
    s.inner = Damped(1.0, 0.5)


def inner_number(s: Any) -> None:
    s.inner.c = 2.0


CHANGES: list[Callable[[Any], None]] = [
    numbers, text, array_in_place, array, longer_list, private, inner_one, inner_number, numbers,
]  # fmt: skip


def slope_of(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in 1e-6 * np.eye(len(x))])


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_what_slots_hold_is_read_at_each_call() -> None:
    spring, x = Spring(2.0), np.array([0.3, 0.7, 1.1])

    def captured(x: Any) -> Any:
        return spring(x) + (spring * 2.0)(x)

    def given(x: Any, spring: Any) -> Any:
        return spring(x)

    slope, of_argument = sg.grad(captured), sg.grad(given)
    for change in (lambda s: None, *CHANGES):
        change(spring)
        np.testing.assert_allclose(slope(x), slope_of(captured, x), rtol=1e-6)
        np.testing.assert_allclose(of_argument(x, spring), slope_of(spring, x), rtol=1e-6)
        assert sg.explain(slope)(x)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_captured_dataclass_with_slots_is_one_program() -> None:
    pendulum, x = Pendulum(2.0), np.array([0.3, 0.7])
    slope = sg.grad(lambda x: pendulum(x))
    for length in (2.0, 3.0):
        pendulum.length = length
        np.testing.assert_allclose(slope(x), np.cos(x) * 9.81 / length)


def test_an_unset_slot_and_a_class_attribute_are_seen() -> None:
    spring, x = Spring(2.0), np.array([0.3, 0.7, 1.1])
    slope = sg.grad(lambda x: np.sum(x**2) * (spring.k if hasattr(spring, "k") else 3.0) * spring.scale)
    np.testing.assert_allclose(slope(x), 8.0 * x)
    del spring.k
    np.testing.assert_allclose(slope(x), 12.0 * x)
    spring.k = 1.0
    np.testing.assert_allclose(slope(x), 4.0 * x)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_object_with_slots_that_is_changed_is_changed_for_the_caller() -> None:
    pendulum = Pendulum(2.0)

    def lengthened(x: Any) -> Any:
        pendulum.length = pendulum.length + np.sum(x)
        return pendulum(x)

    x, plain = np.array([0.3, 0.7]), Pendulum(2.0)
    for transformed in (sg.jit(lengthened), sg.grad(lengthened)):
        transformed(x)
        plain.length = plain.length + np.sum(x)
        assert pendulum.length == pytest.approx(plain.length)
        assert isinstance(pendulum.length, float)


class Satellite:
    """Keeps what it has computed, in slots that are set before and in one that is not."""

    __slots__ = ("error", "last", "message", "rate", "t")

    def __init__(self, rate: float) -> None:
        self.rate, self.t, self.error = rate, 0.0, 0
        self.message: str | None = None

    def at(self, t: Any) -> Any:
        self.t, self.error, self.message = t, 0, None
        y = self.rate * self.t**2
        if y > 10.0:
            self.error, self.message = 3, f"{y:.2f} is too large"
        self.last = y * self.t
        return y


def test_what_a_function_stores_in_slots_is_stored_by_its_one_program() -> None:
    ours, plain = Satellite(2.0), Satellite(2.0)
    slope, run = sg.value_and_grad(lambda t: ours.at(t)), sg.jit(lambda t: ours.at(t))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, t in enumerate((1.0, 3.0, 2.0, 4.0, 0.5, 1.0)):
            for called in (lambda t: slope(t)[0], run):
                ours.rate = plain.rate = 2.0 + k
                assert called(t) == pytest.approx(plain.at(t))
                for name in Satellite.__slots__:
                    kept, wanted = getattr(ours, name), getattr(plain, name)
                    assert kept == wanted
                    assert type(kept) is type(wanted)
            assert slope(t)[1] == pytest.approx(2.0 * ours.rate * t)
    assert sg.explain(slope)(1.0)["how it runs"].startswith("One program")


def test_a_slot_that_decides_is_a_guard_where_it_is_stored() -> None:
    ours, plain = Satellite(1.0), Satellite(1.0)

    def counted(satellite: Satellite, t: Any) -> Any:
        satellite.error = satellite.error + 1 if satellite.error < 3 else 0
        return t * t * (satellite.error + 1)

    slope = sg.grad(lambda t: counted(ours, t))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for _ in range(10):
            value = counted(plain, 1.0)
            assert slope(1.0) == pytest.approx(2.0 * value)
            assert ours.error == plain.error
