"""Arguments that are objects with methods: dataclasses and named tuples of the user's, one program for all of them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
RATE = 2.0
X = np.linspace(-1.0, 1.0, 6).reshape(3, 2)


@dataclass
class Layer:
    w: Any
    b: Any

    def __call__(self, x: Any) -> Any:
        return RATE * np.tanh(x @ self.w + self.b)

    @property
    def penalty(self) -> Any:
        total = 0.0
        for weight in self.w:
            if weight > 0.0:
                total += weight**2
        return total


@dataclass
class Net:
    layers: list[Layer]

    def loss(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)[:, None]
        return np.sum(x) + sum(layer.penalty for layer in self.layers)


class Vector(NamedTuple):
    x: Any
    y: Any = 0.5

    def __add__(self, other: Any) -> Any:
        return Vector(self.x + other.x, self.y + other.y)

    @property
    def length(self) -> Any:
        return np.sqrt(self.x**2 + self.y**2) if self.x > 0.0 else -self.y

    def turned(self, angle: Any) -> Any:
        c, s = np.cos(angle), np.sin(angle)
        return self._replace(x=c * self.x - s * self.y, y=s * self.x + c * self.y)


def net() -> Net:
    return Net([Layer(np.array([0.3, -0.2]), 0.1), Layer(np.array([-0.5, 0.4]), 0.2)])


def along(f: Callable[..., Any], x: float) -> Any:
    return (f(x + 1e-6) - f(x - 1e-6)) / 2e-6


def test_methods_and_properties_of_dataclasses_in_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(model: Net, x: Any) -> Any:
        return model.loss(x)

    def moved(t: Any) -> Any:
        model = net()
        model.layers[1].w = model.layers[1].w + t
        return model.loss(X)

    slope = sg.value_and_grad(loss)
    for rate in (2.0, 3.0):
        monkeypatch.setitem(globals(), "RATE", rate)
        for _ in range(6):
            value, found = slope(net(), X)
            assert type(found) is Net and type(found.layers[0]) is Layer
            np.testing.assert_allclose(value, net().loss(X), rtol=1e-13)
            np.testing.assert_allclose(np.sum(found.layers[1].w), along(moved, 0.0), rtol=1e-7)
    sg.jit(loss, strict=True)(net(), X)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_another_method_of_an_arguments_class_is_another_program(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(model: Net, x: Any) -> Any:
        return model.loss(x)

    value = sg.value_and_grad(loss, backend=backend)
    for change in (lambda self, x: x @ self.w, lambda self, x: x @ self.w * self.b):
        for _ in range(6):
            np.testing.assert_allclose(value(net(), X)[0], net().loss(X), rtol=1e-12)
        monkeypatch.setattr(Layer, "__call__", change)
        np.testing.assert_allclose(value(net(), X)[0], net().loss(X), rtol=1e-12)


def test_another_method_of_an_arguments_class_in_a_function_for_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")

    def loss(model: Net, x: Any) -> Any:
        return model.loss(x)

    converted = sg.to_jax(loss)
    np.testing.assert_allclose(converted(net(), X), net().loss(X), rtol=1e-5)
    monkeypatch.setattr(Layer, "__call__", lambda self, x: x @ self.w)
    np.testing.assert_allclose(converted(net(), X), net().loss(X), rtol=1e-5)


@pytest.mark.parametrize("start", [2.0, -9.0])
def test_named_tuples_with_methods_operators_and_properties(start: float) -> None:
    def f(p: Vector, q: Vector) -> Any:
        return (p + q).turned(0.3).length

    p, q = Vector(start), Vector(3.0, 4.0)
    value, found = sg.value_and_grad(f)(p, q)
    assert type(found) is Vector
    np.testing.assert_allclose(value, f(p, q), rtol=1e-13)
    np.testing.assert_allclose(found.x, along(lambda x: f(p._replace(x=x), q), start), rtol=1e-7, atol=1e-9)


def test_named_tuples_with_methods_that_are_made_and_captured() -> None:
    captured = Vector(0.0, 0.0)

    def f(x: Any) -> Any:
        return (Vector(x) + captured).length

    for other in (Vector(1.0, 2.0), Vector(4.0, 3.0)):
        captured = other
        np.testing.assert_allclose(sg.grad(f)(2.0), along(f, 2.0), rtol=1e-7)


def test_results_are_of_the_users_classes() -> None:
    nested: Any = sg.jit(lambda p: sg.grad(lambda v: v.length**2)(p + p))
    pulled: Any = sg.jit(lambda p: sg.vjp(Vector.turned, p + p, 0.1)[1](p + p)[0])
    kept: Any = sg.jit(lambda p: sg.checkpoint(lambda v: v + v)(p + p))
    mapped: Any = sg.vmap(lambda p: (p + p).turned(0.1))
    results = [nested(Vector(1.0, 2.0)), pulled(Vector(1.0, 2.0)), kept(Vector(1.0, 2.0))]
    results += [mapped(Vector(np.ones(2), np.ones(2))), sg.jit(Vector.turned)(Vector(1.0), 0.2)]
    assert {type(found) for found in results} == {Vector}


class Kind(enum.Enum):
    LINE = 1
    WAVE = 2


class Low(enum.IntEnum):
    ONE = 1


class High(enum.IntEnum):
    ONE = 1


def test_members_of_enumerations_as_arguments() -> None:
    def f(x: Any, kind: Any) -> Any:
        return np.sin(x) if kind is Kind.WAVE else 3.0 * x

    slope = sg.grad(f)
    assert [slope(0.0, Kind.LINE), slope(0.0, Kind.WAVE), slope(0.0, Kind.LINE)] == [3.0, 1.0, 3.0]


def test_equal_members_of_two_enumerations_are_not_one() -> None:
    kind: Any = Low.ONE

    def given(x: Any, kind: Any) -> Any:
        return 2.0 * x if isinstance(kind, Low) else 3.0 * x

    def captured(x: Any) -> Any:
        return 2.0 * x if type(kind) is Low else 3.0 * x

    slope = sg.grad(given)
    assert [slope(1.0, Low.ONE), slope(1.0, High.ONE), slope(1.0, 1)] == [2.0, 3.0, 3.0]
    assert sg.grad(captured)(1.0) == 2.0
    kind = High.ONE
    assert sg.grad(captured)(1.0) == 3.0
