"""Methods of ``functools.singledispatchmethod``: one program for what each class of arguments calls."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0, 3.0])
SCALE = 2.0


class Energy:
    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.last = 0.0

    @functools.singledispatchmethod
    def of(self, x: Any) -> Any:
        return self.weight * np.sum(x)

    @of.register
    def _(self, x: float) -> Any:
        return self.weight * x**3

    @of.register(list)
    def _(self, x: Any) -> Any:
        return sum(self.of(item) for item in x)

    @of.register(np.ndarray)
    def _(self, x: Any) -> Any:
        if x[0] > 0.0:
            return self.weight * x @ x
        return self.of(float(x[1]))

    def total(self, x: Any) -> Any:
        return self.of(x) + self.of(2.0)


class Shifted(Energy):
    def of_all(self, x: Any) -> Any:
        return self.of([x[0], x, [x[1], x[2]]]) + 1.0


class Scaled:
    @functools.singledispatchmethod
    def of(self, x: Any) -> Any:
        return SCALE * np.sum(x * x)

    @of.register(list)
    def _(self, x: Any) -> Any:
        return SCALE * sum(x)


class Storing(Energy):
    @functools.singledispatchmethod
    def stored(self, x: Any) -> Any:
        self.last = np.sum(x)
        return self.last * self.weight


energy, shifted, scaled, storing = Energy(3.0), Shifted(2.0), Scaled(), Storing(2.0)


def of_captured(x: Any) -> Any:
    return energy.of(x)


def of_both(x: Any) -> Any:
    return energy.total(x) * x[0]


def of_derived(x: Any) -> Any:
    return shifted.of_all(x)


def of_made(x: Any) -> Any:
    return Energy(x[0]).of(x[1:])


def of_float(x: Any) -> Any:
    return energy.of(float(x[1]))


ONE = [of_captured, of_both, of_derived, of_made, of_float]


def agrees(f: Callable[[Any], Any], x: Any, backend: str) -> None:
    value, slope = sg.value_and_grad(f, backend=backend)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(slope, [(f(x + step) - f(x - step)) / 2e-6 for step in steps], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", ONE)
def test_dispatched_methods_are_part_of_the_program(f: Callable[[Any], Any], backend: str) -> None:
    for x in (X, X - 5.0):
        agrees(f, x, backend)
    if sys.version_info < (3, 14):
        assert sg.explain(sg.grad(f, backend=backend))(X)["how it runs"].startswith("One program")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_what_methods_read_and_are_is_seen_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(of_float)
    np.testing.assert_allclose(slope(X), [0.0, 36.0, 0.0])
    monkeypatch.setattr(energy, "weight", 1.0)
    np.testing.assert_allclose(slope(X), [0.0, 12.0, 0.0])
    registry = Energy.__dict__["of"].dispatcher
    before = registry.registry[float]
    try:
        registry.register(float)(lambda self, x: self.weight * x)
        np.testing.assert_allclose(slope(X), [0.0, 1.0, 0.0])
    finally:
        registry.register(float)(before)
    np.testing.assert_allclose(slope(X), [0.0, 12.0, 0.0])
    monkeypatch.setattr(Energy, "of", lambda self, x: 5.0 * x)
    np.testing.assert_allclose(slope(X), [0.0, 5.0, 0.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_methods_that_read_globals_and_store_attributes_do_so_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(lambda x: scaled.of(x) + scaled.of([x[0], x[1]]))
    np.testing.assert_allclose(slope(X), [6.0, 10.0, 12.0])
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    np.testing.assert_allclose(slope(X), [3.0, 5.0, 6.0])
    stored = sg.value_and_grad(lambda x: storing.stored(x))
    for x in (X, 2.0 * X):
        assert stored(x)[0] == 2.0 * np.sum(x) and storing.last == np.sum(x)
