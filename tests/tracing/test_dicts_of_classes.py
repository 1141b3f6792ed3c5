"""Dicts and sets whose keys are classes: they are followed as what is handed on, and guards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

factor: Any = 2.0


class Line:
    rate = 2.0

    def value(self, x: Any) -> Any:
        return self.rate * x


class Square(Line):
    def value(self, x: Any) -> Any:
        return x * x


class Cube(Line):
    def value(self, x: Any) -> Any:
        return x * x * x


class Gained:
    def value(self, x: Any) -> Any:
        return factor * x


SHAPE: Any = Line()
RATES: Any = {Line: 2.0, Square: 3.0, int: 5.0}
RULES: Any = {Line: np.sin, Square: lambda x: x**3}
KNOWN: Any = {Line, int}
MADE: Any = {Line: 1.0, Square: 0.5}
GAINS: Any = {Gained: 1.0}


def by_a_class(x: Any) -> Any:
    return RATES[type(SHAPE)] * np.sum(SHAPE.value(x))


def by_an_attribute(x: Any) -> Any:
    return RATES.get(SHAPE.__class__) * np.sum(SHAPE.value(x))


def by_a_rule(x: Any) -> Any:
    return np.sum(RULES[type(SHAPE)](x))


def in_a_set(x: Any) -> Any:
    return np.sum(x**2) * (2.0 if type(SHAPE) in KNOWN else 1.0)


def of_each(x: Any) -> Any:
    return sum(weight * np.sum(kind().value(x)) for kind, weight in MADE.items())


CHANGES: list[tuple[Callable[[Any], Any], Callable[[pytest.MonkeyPatch], None]]] = [
    (by_a_class, lambda patch: patch.setitem(globals(), "SHAPE", Square())),
    (by_a_class, lambda patch: patch.setitem(RATES, Line, 7.0)),
    (by_a_class, lambda patch: patch.setattr(Line, "rate", 3.0)),
    (by_a_class, lambda patch: patch.setattr(Line, "value", lambda self, x: x**3)),
    (by_a_class, lambda patch: patch.setitem(globals(), "RATES", {int: 5.0, Line: 4})),
    (by_an_attribute, lambda patch: patch.setitem(globals(), "SHAPE", Square())),
    (by_an_attribute, lambda patch: patch.setitem(RATES, Line, 7.0)),
    (by_a_rule, lambda patch: patch.setitem(globals(), "SHAPE", Square())),
    (by_a_rule, lambda patch: patch.setitem(RULES, Line, np.exp)),
    (in_a_set, lambda patch: patch.setitem(globals(), "KNOWN", {Square, int})),
    (in_a_set, lambda patch: patch.setitem(globals(), "SHAPE", Square())),
    (of_each, lambda patch: patch.setattr(Square, "value", lambda self, x: 4.0 * x)),
    (of_each, lambda patch: patch.setattr(Line, "rate", 3.0)),
    (of_each, lambda patch: patch.setitem(globals(), "MADE", {Line: 1.0, Cube: 0.5})),
    (of_each, lambda patch: patch.setitem(MADE, Cube, 1.0)),
    (of_each, lambda patch: patch.delitem(MADE, Square)),
]


@pytest.mark.parametrize("f", dict.fromkeys(f for f, _ in CHANGES), ids=lambda f: f.__name__)
def test_it_is_one_program(f: Callable[[Any], Any]) -> None:
    require_one_program(f, "llvm", np.array([0.7, 1.3]), np.array([0.2, -0.3]))


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_what_changes_is_seen(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    f, change = CHANGES[number]
    run, x = sg.jit(f), np.array([0.7, 1.3])
    before = f(x)
    for _ in range(6):
        assert run(x) == pytest.approx(before, rel=1e-14)
    change(monkeypatch)
    assert abs(f(x) - before) > 1e-3
    for _ in range(6):
        assert run(x) == pytest.approx(f(x), rel=1e-14)
    monkeypatch.undo()
    assert run(x) == pytest.approx(before, rel=1e-14)


def test_a_class_whose_methods_read_numbers_is_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(lambda x: sum(weight * kind().value(x) for kind, weight in GAINS.items()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert slope(1.0) == 2.0
        monkeypatch.setitem(globals(), "factor", 5.0)
        assert slope(1.0) == 5.0


def test_a_number_under_a_class_is_an_input_with_its_name() -> None:
    text = sg.explain(sg.grad(by_a_class))(np.ones(2))["how it runs"]
    assert "RATES[Line], read at each call" in text
    assert "RATES" in sg.source(sg.grad(by_a_class))(np.ones(2))
