"""Programs that read variables which other functions share, and attributes of classes."""

from __future__ import annotations

import fractions
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import srcgrad as sg


def pair(s: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    def scaled(x: Any) -> Any:
        return s * x

    def shifted(x: Any) -> Any:
        return s + x

    return scaled, shifted


def product(f: Callable[[Any], Any], g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x) * g(x)


def test_functions_that_share_a_variable_and_functions_that_do_not() -> None:
    """(s x (r + x))' = s r + 2 s x: for one code, s and r are one variable or two."""
    scaled, shifted = pair(2.0)
    other_scaled, other_shifted = pair(3.0)
    assert sg.grad(product(scaled, shifted))(1.0) == 8.0
    assert sg.grad(product(scaled, other_shifted))(1.0) == 10.0
    assert sg.grad(product(other_scaled, shifted))(1.0) == 12.0
    assert sg.grad(product(other_scaled, other_shifted))(1.0) == 15.0


@dataclass
class Scaled:
    weight: float
    scale: ClassVar[float] = 2.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_class_attribute_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(record: Any) -> Any:
        return record.weight * record.scale

    assert sg.grad(f)(Scaled(3.0)).weight == 2.0
    monkeypatch.setattr(Scaled, "scale", 5.0)
    assert sg.grad(f)(Scaled(3.0)).weight == 5.0


class Pair(NamedTuple):
    a: float
    b: float


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_named_tuple_whose_class_is_changed_is_read_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(1.0, 2.0)
    derivative = sg.grad(lambda x: x * pair.a)
    for a in (1.0, 10.0, 20.0):
        if a > 1.0:
            monkeypatch.setattr(Pair, "a", property(lambda self, a=a: a))
        assert [float(derivative(3.0)) for _ in range(6)] == [a] * 6  # machine code answers the last ones


def test_defaults_that_python_passes_over_are_passed_over() -> None:
    """A function may be given more of them than it has parameters; the last ones count."""

    def f(x: Any, factor: float = 2.0) -> Any:
        return np.sum(x) * factor

    f.__defaults__ = (5.0, 2.0, 3.0)
    assert sg.jit(f)(np.ones(2)) == f(np.ones(2)) == 6.0
    assert sg.grad(lambda x: f(x))(1.0) == 3.0
    assert sg.jit(f)() == 6.0
    f.__defaults__ = (5.0, 2.0, 4.0)
    assert sg.jit(f)(np.ones(2)) == 8.0


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_a_captured_fraction_is_guarded() -> None:
    part = fractions.Fraction(1, 4)
    slope = sg.grad(lambda x: part * x[0] + float(part) * x[1] ** 2)
    np.testing.assert_array_equal(slope(np.ones(2)), [0.25, 0.5])
    part = fractions.Fraction(3, 4)
    np.testing.assert_array_equal(slope(np.ones(2)), [0.75, 1.5])
