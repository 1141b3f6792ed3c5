"""Objects, containers, methods and classes that a function reads: followed, guarded, and never changed by a trace."""

from __future__ import annotations

import timeit
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import Table, find_captures

X = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def one_program() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        yield


class Model:
    power = 2

    def __init__(self, weight: Any, steps: int) -> None:
        self.weight = weight
        self.steps = steps
        self.table = {"a": 1.0, "b": [2.0, weight * 3]}

    def __call__(self, x: Any) -> Any:
        for k in range(self.steps):
            x = self.layer(x) * (k + 1)
        return x

    def layer(self, x: Any) -> Any:
        return self.weight * x**self.power if np.sum(x) > 0 else x

    @property
    def doubled(self) -> Any:
        return self.weight * 2

    def loss(self, x: Any) -> Any:
        return np.sum(self(x) * self.doubled) * self.table["a"] + np.sum(self.table["b"][1] * x)


class Shifted(Model):
    def layer(self, x: Any) -> Any:
        return super().layer(x) + 1.0


def slope(function: Callable[[Any], Any], x: Any) -> Any:
    return np.array([(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(len(x))])


def agrees(derivative: Any, function: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(derivative(X.copy()), slope(function, X), rtol=1e-6)


@pytest.mark.parametrize("kind", [Model, Shifted])
def test_bound_methods_and_attributes_are_never_stale(kind: type[Model], programs: Table) -> None:
    model = kind(np.array([0.5, 0.25]), 2)
    through_global = sg.grad(lambda x: np.sum(model(x)) + np.sum(model.weight))
    derivative = sg.grad(model.loss)

    def check() -> None:
        agrees(derivative, model.loss)
        agrees(through_global, lambda x: np.sum(model(x)))

    check()
    known = len(programs.entries)
    model.weight = np.array([0.75, -0.5])
    check()
    model.weight[0] = 0.1
    check()
    model.table["b"][1] = np.array([1.0, 7.0])
    check()
    model.table["a"] = 5.0
    check()
    assert len(programs.entries) == known  # arrays and floats are inputs
    model.steps = 3
    check()
    model.table["b"].append(1.0)
    check()
    model.table["c"] = 3.0
    check()
    assert len(programs.entries) > known


def test_a_redefined_method_and_class_attribute_are_seen() -> None:
    model = Model(np.array([0.5, 0.25]), 1)
    derivative = sg.grad(model.loss)
    agrees(derivative, model.loss)
    layer = Model.layer
    try:
        Model.layer = lambda self, x: x**3 * self.weight  # type: ignore[method-assign]
        agrees(derivative, model.loss)
        Model.layer = layer  # type: ignore[method-assign]
        Model.power = 3
        agrees(derivative, model.loss)
        model.layer = lambda x: x * 5.0  # type: ignore[method-assign]
        agrees(derivative, model.loss)
    finally:
        Model.layer, Model.power = layer, 2  # type: ignore[method-assign]


def test_containers_are_read_at_each_call(programs: Table) -> None:
    table = {"w": np.array([1.0, 2.0]), "names": ["a", "b"], "pair": (3.0, np.array([1.0, 1.0]))}

    def loss(x: Any) -> Any:
        total = np.sum(table["w"] * x) * table["pair"][0]  # type: ignore[operator]
        for k, name in enumerate(table["names"]):
            total += x[k] ** 2 if name == "a" else x[k]
        return total + np.sum(table["pair"][1] * x)

    derivative = sg.grad(loss)
    agrees(derivative, loss)
    known = len(programs.entries)
    table["w"] = np.array([3.0, -2.0])
    table["pair"] = (4.0, np.array([0.0, 2.0]))
    agrees(derivative, loss)
    assert len(programs.entries) == known
    table["names"][1] = "a"  # type: ignore[index]
    agrees(derivative, loss)
    table["names"].pop()  # type: ignore[attr-defined]
    agrees(derivative, loss)
    table["names"].append("c")  # type: ignore[attr-defined]
    agrees(derivative, loss)


def test_classes_that_the_function_makes_objects_of() -> None:
    class Counter:
        def __init__(self, start: Any) -> None:
            self.total = start
            self.calls = 0

        def add(self, x: Any) -> None:
            if x > 0:
                self.total = self.total + x**2
                self.calls += 1

    def loss(x: Any) -> Any:
        counter = Counter(x[0])
        for part in x:
            counter.add(part - 1.5)
        return counter.total * counter.calls

    derivative = sg.grad(loss)
    agrees(derivative, loss)
    add = Counter.add
    Counter.add = lambda self, x: setattr_total(self, x)  # type: ignore[method-assign]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        agrees(derivative, loss)
    Counter.add = add  # type: ignore[method-assign]
    agrees(derivative, loss)


def setattr_total(counter: Any, x: Any) -> None:
    setattr(counter, "total", counter.total * x)  # noqa: B010
    counter.calls = 1


@pytest.mark.parametrize("change", ["append", "assign", "attribute"])
def test_what_changes_a_captured_object_is_no_single_program(change: str) -> None:
    kept: list[Any] = [1.0]
    model = Model(np.array([1.0, 2.0]), 1)

    def loss(x: Any) -> Any:
        for _ in range(1):
            if change == "append":
                kept.append(2.0)
            elif change == "assign":
                kept[0] = kept[0] + 1.0
            else:
                model.table["a"] += 1.0
        return np.sum(x) * kept[0] * model.table["a"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for calls in (1, 2):
            found = sg.grad(loss)(X)
            expected = {"append": 1.0, "assign": 1.0 + calls, "attribute": 1.0 + calls}[change]
            np.testing.assert_array_equal(found, [expected, expected])
    assert len(kept) == (3 if change == "append" else 1)
    with pytest.raises(sg.errors.ArgumentError, match=r"which is captured|cannot be one program"):
        sg.jit(loss, strict=True)(X)


def test_jit_writes_into_captured_arrays_of_objects() -> None:
    model = Model(np.array([1.0, 2.0]), 1)

    def update(x: Any) -> Any:
        for k in range(2):
            model.weight[k] += x[k]
        return np.sum(model.weight)

    assert sg.jit(update)(X) == 6.0
    assert np.array_equal(model.weight, [2.0, 4.0])
    assert sg.grad(update)(X).tolist() == [1.0, 1.0]
    assert np.array_equal(model.weight, [2.0, 4.0])


def test_the_check_of_fifteen_guards_is_fast() -> None:
    values = [np.ones(2) * k for k in range(5)]
    table, flag, name = {"a": 1.0, "b": 2}, True, "sum"

    def loss(x: Any) -> Any:
        for value in values:
            x = x * value if flag else x
        return np.sum(x) * table["a"] * table["b"] if name == "sum" else x[0]

    found = find_captures(loss, False, True)
    assert not hasattr(found, "reason")
    captures, _ = found  # type: ignore[misc]
    assert captures.source.count("if not") >= 15
    best = min(timeit.repeat(lambda: captures.bind(loss), number=200, repeat=20)) / 200
    assert best < 50e-6  # about 2 µs on an idle machine: this only sees a check that became a search
