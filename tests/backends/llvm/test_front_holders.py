"""Machine code reads what holds attributes and items in other ways than plain objects and dicts do."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.backends.llvm.front_support import needs_machine, served

pytest.importorskip("llvmlite")
from srcgrad import front

pytestmark = needs_machine


class Slotted:
    __slots__ = ("a", "extra", "w")

    def __init__(self, a: Any, w: Any) -> None:
        self.a, self.w = a, w


class Below(Slotted):
    __slots__ = ("b",)

    def __init__(self) -> None:
        super().__init__(2.0, np.ones(3))
        self.b = 3


@dataclass(slots=True)
class Record:
    a: float = 2.0
    n: int = 2


class Settings(dict[str, Any]):
    __getattr__ = dict.__getitem__


SLOTTED, BELOW, RECORD = Slotted(2.0, np.ones(3)), Below(), Record()
SETTINGS = Settings(a=2.0, w=np.ones(3))
SPACE = types.SimpleNamespace(a=2.0, inner=types.SimpleNamespace(n=2))
OTHER = types.SimpleNamespace(a=1.5, inner=types.SimpleNamespace(n=2))
FACTORY = collections.defaultdict(float, {"a": 2.0})
COUNTS = collections.Counter("aab")
READ = {"of": operator.attrgetter("inner.n")}


def of_slots(x: Any) -> Any:
    extra = SLOTTED.extra if hasattr(SLOTTED, "extra") else 1.0
    return SLOTTED.a * np.sum(SLOTTED.w * x) * extra


def of_bases(x: Any) -> Any:
    return BELOW.a * np.sum(BELOW.w * x) ** BELOW.b


def of_a_record(x: Any) -> Any:
    return RECORD.a * np.sum(x) ** RECORD.n


def of_settings(x: Any) -> Any:
    return SETTINGS.a * np.sum(SETTINGS.w * x)


def of_a_namespace(x: Any) -> Any:
    return SPACE.a * np.sum(x) ** SPACE.inner.n


def of_a_defaultdict(x: Any) -> Any:
    made = FACTORY.copy()  # which alone has what was missing
    return (FACTORY["a"] + made["b"]) * np.sum(x)


def of_a_counter(x: Any) -> Any:
    return np.sum(x) ** COUNTS["a"] + COUNTS["c"] * x[0]


def of_a_getter(x: Any) -> Any:
    return np.sum(x) ** READ["of"](OTHER)


CASES: dict[str, tuple[Callable[[Any], Any], list[Callable[[], Any]]]] = {
    "slots": (
        of_slots,
        [
            lambda: setattr(SLOTTED, "a", 3.0),
            lambda: setattr(SLOTTED, "w", np.arange(3.0)),
            lambda: setattr(SLOTTED, "extra", 5.0),
            lambda: setattr(SLOTTED, "extra", 6.0),
            lambda: delattr(SLOTTED, "extra"),
        ],
    ),
    "slots of bases": (of_bases, [lambda: setattr(BELOW, "b", 2), lambda: setattr(BELOW, "a", 7.0)]),
    "a record with slots": (of_a_record, [lambda: setattr(RECORD, "n", 3), lambda: setattr(RECORD, "a", 7.0)]),
    "an attribute dictionary": (
        of_settings,
        [
            lambda: SETTINGS.update(a=5.0),
            lambda: SETTINGS.__dict__.update(a=6.0),
            lambda: SETTINGS.__dict__.clear(),
            lambda: SETTINGS["w"].__setitem__(0, 4.0),
        ],
    ),
    "a namespace": (
        of_a_namespace,
        [
            lambda: setattr(SPACE, "a", 3.0),
            lambda: setattr(SPACE.inner, "n", 3),
            lambda: SPACE.__dict__.update(inner=types.SimpleNamespace(n=1)),
            lambda: SPACE.inner.__dict__.update(more=1),
        ],
    ),
    "a defaultdict": (
        of_a_defaultdict,
        [
            lambda: FACTORY.update(a=5.0),
            lambda: setattr(FACTORY, "default_factory", lambda: 4.0),
            lambda: setattr(FACTORY, "default_factory", lambda: OTHER.a),
            lambda: setattr(OTHER, "a", 2.5),
            lambda: FACTORY.update(b=1.0),
        ],
    ),
    "a counter": (of_a_counter, [lambda: COUNTS.update("a"), lambda: COUNTS.update("c"), lambda: COUNTS.pop("b")]),
    "a getter": (
        of_a_getter,
        [lambda: setattr(OTHER.inner, "n", 3), lambda: READ.update(of=operator.attrgetter("a"))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_guards_have_a_form_in_machine_code_and_nothing_is_stale(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, changes = CASES[name]
    found: list[bool] = []
    written = front.written

    def noted(*args: Any, machine_guards: bool, **options: Any) -> Any:
        table = written(*args, machine_guards=machine_guards, **options)
        found.append(machine_guards and "asked" not in options)
        return table

    monkeypatch.setattr(front, "written", noted)
    run, slope, x = sg.jit(f), sg.grad(f), np.array([0.5, 0.2, 0.9])
    for change in [lambda: None, *changes]:
        change()
        for _ in range(6):
            apart = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
            assert run(x) == pytest.approx(f(x), rel=1e-12)
            np.testing.assert_allclose(slope(x), apart, rtol=1e-5)
            x = x + 0.01
    served(slope, x)
    assert found
    assert all(found)
