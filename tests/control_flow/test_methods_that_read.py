"""Methods that read what can change from outside, as lists and arrays of their module: each call sees it anew."""

from __future__ import annotations

import argparse
import functools
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import agrees_after_changes

TABLE: dict[str, Any] = {"tol": 1.0, "name": "sin"}
ITEMS = [1.0, 2.0]
ARRAY = np.array([1.0, 2.0])
PLACE = types.SimpleNamespace(tol=1.0, weight=np.ones(2))
OPTIONS = argparse.Namespace(rate=1.0)
FUNCTIONS = {"sin": np.sin, "cos": np.cos}


@dataclass
class Settings:
    rate: float = 1.0


SETTINGS = Settings()


def helper(x: Any) -> Any:
    return x * TABLE["tol"]


class Base:
    factor = 2.0

    def __init__(self, weight: Any = 3.0) -> None:
        self.weight = weight

    def inherited(self, x: Any) -> Any:
        return x * ITEMS[1]

    def overridden(self, x: Any) -> Any:
        return x * ITEMS[0]


class Model(Base):
    """Each method of one argument is tried, of a captured object and of one that the function makes."""

    def reads_a_dict(self, x: Any) -> Any:
        return self.weight * x * TABLE["tol"]

    def reads_an_array(self, x: Any) -> Any:
        return self.weight * x * ARRAY[0]

    def reads_settings(self, x: Any) -> Any:
        return x * SETTINGS.rate * PLACE.tol * OPTIONS.rate * PLACE.weight[1]

    def reads_functions(self, x: Any) -> Any:
        return FUNCTIONS[TABLE["name"]](x)

    def overridden(self, x: Any) -> Any:
        return x * ITEMS[1] * 7

    def by_a_helper(self, x: Any) -> Any:
        return helper(x) * self.inherited(x)

    def in_a_loop(self, x: Any) -> Any:
        for _ in range(40):
            x = self.reads_a_dict(x) * 0.1 if x > 1e-6 else self.overridden(x)
        return x

    def handed_on(self, x: Any) -> Any:
        return sum(map(self.reads_an_array, [x, 2 * x])) + functools.reduce(self.add, [x, x, x])

    def add(self, x: Any, y: Any) -> Any:
        return x + y * ITEMS[0]

    @property
    def scale(self) -> Any:
        return TABLE["tol"] * ARRAY[1]

    def by_a_property(self, x: Any) -> Any:
        return x * self.scale if x > 0 else x

    def __call__(self, x: Any) -> Any:
        return x * ITEMS[0] * self.weight

    def called(self, x: Any) -> Any:
        return self(x)

    def __mul__(self, x: Any) -> Any:
        return x * ITEMS[0] if x > 0 else x * ITEMS[1]

    def by_an_operator(self, x: Any) -> Any:
        return self * x

    @staticmethod
    def fixed(x: Any) -> Any:
        return x * ARRAY[1]

    def by_a_static_method(self, x: Any) -> Any:
        return self.fixed(x)


class Later(Model):
    def overridden(self, x: Any) -> Any:
        return super().overridden(x) + x * ITEMS[0]

    def by_super(self, x: Any) -> Any:
        return self.overridden(x)

    def by_the_class(self, x: Any) -> Any:
        return Base.inherited(self, x)

    def asks_for_the_class(self, x: Any) -> Any:
        return type(self)(2.0).reads_a_dict(x) if isinstance(self, Later) else x


MODEL, LATER = Model(), Later()
METHODS = [name for name in vars(Model) if name[:2] != "__" and name not in ("add", "scale", "fixed")] + ["__call__"]


def of_a_captured_object(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(MODEL, name)(x) if name != "__call__" else MODEL(x)


def made_reads_a_dict(x: Any) -> Any:
    return Model(2.0).reads_a_dict(x)


def made_in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(30):
        model = Model(x)
        total = total + model(x) * k + model.in_a_loop(x)
    return total


def later_by_super(x: Any) -> Any:
    return LATER.by_super(x)


def later_by_the_class(x: Any) -> Any:
    return LATER.by_the_class(x)


def later_asks(x: Any) -> Any:
    return LATER.asks_for_the_class(x)


def change(k: int) -> None:
    TABLE.update(tol=1.0 + k, name="cos" if k % 2 else "sin")
    ITEMS[:] = [0.5 * k + 1, 3.0 - k]
    ARRAY[:] = [k + 2.0, 1.5]
    PLACE.tol, PLACE.weight, OPTIONS.rate, SETTINGS.rate = 2.0 * k + 1, np.array([1.0, k + 1.0]), k + 0.5, 3.0 + k


def agrees(f: Callable[[Any], Any], backend: str) -> None:
    agrees_after_changes(f, backend, change, [0.7, 1.3, 0.4, 1.9])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", METHODS)
def test_methods_see_what_has_changed(name: str, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(getattr(MODEL, name), backend)
        agrees(of_a_captured_object(name), backend)


@pytest.mark.parametrize("f", [made_reads_a_dict, made_in_a_loop])
def test_objects_that_the_function_makes_see_it(f: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        agrees(f, "llvm")


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [later_by_super, later_by_the_class, later_asks])
def test_what_is_found_without_an_object_is_read_anew(f: Callable[[Any], Any]) -> None:
    agrees(f, "llvm")


def test_objects_are_of_their_own_class_afterwards() -> None:
    kept = []

    def f(x: Any) -> Any:
        model = Model(x)
        kept.append(type(model))
        return model.reads_a_dict(x) * MODEL.reads_a_dict(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        sg.grad(f)(1.0)
    assert type(MODEL) is Model and all(issubclass(kind, Model) for kind in kept)
