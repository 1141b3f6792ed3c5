"""Classes that are attributes of classes, ``layer = Dense`` and ``class Config`` inside: followed, and guards."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

gain: Any = 3.0


class Line:
    c = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x

    def value(self) -> Any:
        return self.x * self.c


class Square(Line):
    def value(self) -> Any:
        return self.x**2


class Gained(Line):
    def value(self) -> Any:
        return self.x * gain


@dataclasses.dataclass
class Pair:
    x: Any

    def value(self) -> Any:
        return np.sin(self.x)


class Holder:
    kind: Any = Line

    class Config:
        rate = 2.0

    def run(self, x: Any) -> Any:
        return self.kind(x).value()

    def configured(self, x: Any) -> Any:
        return x * self.Config.rate

    @classmethod
    def made(cls, x: Any) -> Any:
        return cls.kind(x).value() if issubclass(cls.kind, Line) else x

    def asked(self, x: Any) -> Any:
        thing = Line(x)
        return thing.value() if isinstance(thing, self.kind) else 0.5 * x


class Below(Holder):
    kind = Square


class WithGain(Holder):
    kind = Gained


class WithPair(Holder):
    kind = Pair


holders = {cls.__name__: cls() for cls in (Holder, Below, WithGain, WithPair)}


def calls(name: str) -> dict[str, Callable[[Any], Any]]:
    holder = holders[name]
    return {
        "run": lambda x: holder.run(x),
        "configured": lambda x: holder.configured(x),
        "made": lambda x: holder.made(x),
        "asked": lambda x: holder.asked(x),
        "new": lambda x: Holder().run(x),
        "named": lambda x: Holder.Config.rate * Holder.kind(x).value(),
    }


HOLDERS, CALLS = list(holders), list(calls("Holder"))


def slope_of(f: Callable[[Any], Any], x: float) -> float:
    return float((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)


def own_kind(patch: pytest.MonkeyPatch) -> None:
    for holder in holders.values():
        patch.setattr(holder, "kind", Square, raising=False)


def other_config() -> type:
    return type("Config", (Holder.Config,), {"rate": 9.0})


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "kind": lambda patch: patch.setattr(Holder, "kind", Square),
    "kind of below": lambda patch: patch.setattr(Below, "kind", Pair),
    "no kind of below": lambda patch: patch.delattr(Below, "kind"),
    "own kind": own_kind,
    "rate": lambda patch: patch.setattr(Holder.Config, "rate", 7.0),
    "config": lambda patch: patch.setattr(Below, "Config", other_config(), raising=False),
    "c": lambda patch: patch.setattr(Line, "c", 5.0),
    "value": lambda patch: patch.setattr(Line, "value", lambda self: self.x**3),
    "value of a base": lambda patch: patch.delattr(Gained, "value"),
    "gain": lambda patch: patch.setitem(globals(), "gain", 11.0),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("call", CALLS)
def test_a_class_that_a_class_has_makes_one_program(name: str, call: str) -> None:
    f = calls(name)[call]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope = sg.grad(f)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("name", HOLDERS)
def test_what_changes_in_a_class_of_a_class_changes_the_next_call(
    name: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        functions = calls(name)
        slopes = {call: sg.grad(f) for call, f in functions.items()}
        for slope in slopes.values():
            for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
                slope(x)
        CHANGES[change](monkeypatch)
        for call, f in functions.items():
            for x in (0.7, 1.3):
                assert slopes[call](x) == pytest.approx(slope_of(f, x), rel=1e-6), call
