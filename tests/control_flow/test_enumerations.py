"""Enumerations with methods: followed as those of other classes are."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SCALE = 2.0


class Mode(enum.Enum):
    A = 1
    B = 2

    def apply(self, x: Any) -> Any:
        if self is Mode.A:
            return x * x
        return x if x > 0.5 else 2 * x

    @property
    def doubled(self) -> float:
        return self.value * 2.0

    @property
    def order(self) -> float:
        return 3.0 if self is Mode.A else 4.0

    @classmethod
    def named(cls, name: str) -> Mode:
        return cls[name]

    def scaled(self, x: Any) -> Any:
        return SCALE * x

    def __str__(self) -> str:
        return self.name.lower()


class Planet(enum.Enum):
    MERCURY = (3.0, 2.0)
    VENUS = (4.0, 6.0)

    def __init__(self, mass: float, radius: float) -> None:
        self.mass, self.radius = mass, radius

    def gravity(self, x: Any) -> Any:
        return x * self.mass / self.radius**2


class Scheme(str, enum.Enum):  # noqa: UP042
    EULER = "euler"
    HEUN = "heun"

    def step(self, x: Any) -> Any:
        return x - 0.1 * x * x if self == "euler" else x * len(self)


class Shaped(enum.Enum):
    """A base of enumerations."""

    def area(self, x: Any) -> Any:
        return x * x * self.value


class Round(Shaped):
    DISC = 3.14
    RING = 6.28


class Adding(enum.Enum):
    ONE = 1

    def __add__(self, x: Any) -> Any:
        return x * x if x > 1 else x


class Sides(enum.Flag):
    LEFT = 1
    RIGHT = 2

    def count(self, x: Any) -> Any:
        return x * (3 if Sides.LEFT in self else 1)


class Holder:
    def __init__(self, mode: Mode) -> None:
        self.mode = mode


HOLDER = Holder(Mode.B)


def methods(x: Any) -> Any:
    return Mode.A.apply(x) + Mode.B.apply(x) * Mode.B.doubled + Mode.B.order * x + Mode.A.order


def found(x: Any) -> Any:
    return Mode.named("A").apply(x) + Mode(2).doubled * x + sum(mode.value * x for mode in Mode)


def default(x: Any, mode: Mode = Mode.B) -> Any:
    return mode.apply(x) + len(f"{mode}") * x


def attributes(x: Any) -> Any:
    return Planet.MERCURY.gravity(x) * Planet.VENUS.mass


def texts(x: Any) -> Any:
    return Scheme.EULER.step(x) * Scheme("heun").step(x)


def flags(x: Any) -> Any:
    return (Sides.LEFT | Sides.RIGHT).count(x) + Sides.RIGHT.count(x)


def inherited(x: Any) -> Any:
    return Round.DISC.area(x) + Round.RING.area(x)


def held(x: Any) -> Any:
    return HOLDER.mode.apply(x)


CAPTURED = Mode.B
PLANET = Planet.VENUS


def captured(x: Any) -> Any:
    return CAPTURED.apply(x) * CAPTURED.doubled + PLANET.gravity(x)


def matched(x: Any, mode: Mode = Mode.B) -> Any:
    match mode:
        case Mode.A:
            return x
        case Mode.B:
            return x * mode.doubled


def of_a_global(x: Any) -> Any:
    return Mode.A.scaled(x)


def operators(x: Any) -> Any:
    return Adding.ONE + x


ONE_PROGRAM = [methods, found, default, attributes, texts, flags, inherited, held, captured, matched, of_a_global]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*ONE_PROGRAM, operators], ids=lambda f: f.__name__)
def test_enumerations_with_methods(f: Callable[[Any], Any], backend: str) -> None:
    g = sg.value_and_grad(f, backend=backend)
    for x in (0.3, 1.3, 2.7):
        value, slope = g(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)
    assert ("One program" in sg.explain(g)(1.3)["how it runs"]) == (f in ONE_PROGRAM)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_methods_of_an_enumeration_read_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled, stored = sg.grad(of_a_global), sg.grad(held)
    argument = sg.grad(lambda x, mode: mode.scaled(x))
    for number in (2.0, 5.0, 7.0):
        monkeypatch.setitem(globals(), "SCALE", number)
        assert scaled(1.0) == argument(1.0, Mode.A) == number
    assert stored(0.9) == 1.0
    monkeypatch.setattr(HOLDER, "mode", Mode.A)
    assert stored(0.9) == 1.8
    monkeypatch.setattr(Mode, "apply", lambda self, x: np.sin(x))
    assert stored(0.9) == pytest.approx(np.cos(0.9))


def test_methods_of_a_captured_constant_are_those_of_the_constant_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    g = sg.grad(captured)
    for planet in (Planet.VENUS, Planet.MERCURY):
        monkeypatch.setitem(globals(), "PLANET", planet)
        for _ in range(5):
            step = (captured(1.3 + 1e-6) - captured(1.3 - 1e-6)) / 2e-6
            assert g(1.3) == pytest.approx(step, rel=1e-6)
    monkeypatch.setattr(Planet, "gravity", lambda self, x: 5.0 * x)
    assert g(1.3) == pytest.approx((captured(1.3 + 1e-6) - captured(1.3 - 1e-6)) / 2e-6, rel=1e-6)
