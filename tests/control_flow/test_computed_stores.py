"""Attributes assigned by names that the function computes, and read one after the other, are watched like others."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ["llvm", "numpy", "xla"]
X = np.array([0.3, 0.5, -0.2])
pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")


class Parts:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


class Named:
    def __init__(self, **held: Any) -> None:
        for name, value in held.items():
            setattr(self, name, value)


class Halved:
    def __init__(self) -> None:
        self.held = 0.0

    @property
    def value(self) -> Any:
        return self.held

    @value.setter
    def value(self, value: Any) -> None:
        self.held = value / 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: Any
    scale: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2.0 * self.rate)
        if self.scale is None:
            super().__setattr__("scale", SCALES)

    def of(self, x: Any) -> Any:
        return np.sum(self.twice * x * self.scale)  # type: ignore[attr-defined]


SCALES = np.array([1.0, 2.0, 3.0])
FROZEN = Frozen(3.0)


def frozen(x: Any) -> Any:
    return Frozen(x).of(x) + Frozen(x[0], 2.0).of(x) + FROZEN.of(x) + dataclasses.replace(FROZEN, rate=x[1]).of(x)


def by_methods(x: Any) -> Any:
    p = Parts(a=x[0])
    for name in ("b", "c"):
        p.__setattr__(name, p.__getattribute__("a") * x[1])
    return p.b * p.c


def made(x: Any) -> Any:
    p, q = Parts(a=x[0], b=2.0), Named(a=x[1], c=x[2])
    for k, name in enumerate(("b", "c")):
        setattr(q, name, k + getattr(q, "a") * p.a)  # noqa: B009
    return p.a * p.b + q.b * q.c


def looped(x: Any) -> Any:
    p = Parts(a=0.0, b=1.0)
    for k in range(100):
        for name in ("a", "b"):
            setattr(p, name, getattr(p, name) * x[0] + 0.01 * k)
    return p.a * p.b


def shown(x: Any) -> Any:
    p = Parts(a=x[0], b=x[1])
    for name in vars(p):
        vars(p)[name] *= x[2]
    p.__dict__["c"] = x[0]
    return sum((k + 1) * v**2 for k, v in enumerate(p.__dict__.values()))


def chosen(x: Any) -> Any:
    p = types.SimpleNamespace(a=x[0], b=x[1])
    if x[2] > 0.0:
        setattr(p, "ab"[0], 3.0 * x[1])
    else:
        vars(p).update(b=x[2])
    return p.a * p.b


def assigned_by_a_property(x: Any) -> Any:
    thing = Halved()
    setattr(thing, "val" + "ue"[:], x[0])
    return thing.value * x[1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f", [made, looped, shown, chosen, assigned_by_a_property, frozen, by_methods], ids=lambda f: f.__name__
)
def test_objects_that_the_function_makes(f: Any, backend: str) -> None:
    slope = sg.value_and_grad(f, backend=backend)
    for x in (X, -X, X[::-1].copy()):
        apart = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        value, found = slope(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(found, apart, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("by_name", [True, False], ids=["setattr", "vars"])
def test_what_is_assigned_of_a_captured_object_is_stored_when_the_program_runs(by_name: bool) -> None:
    state, name = Parts(gain=1.0, rate=2.0), "gain"

    def assigns(x: Any) -> Any:
        setattr(state, name, x[0] + getattr(state, name))
        return np.sum(x) * state.gain

    def updates(x: Any) -> Any:
        vars(state)[name] = x[0] + vars(state)[name]
        return np.sum(x) * vars(state)["gain"]

    f = assigns if by_name else updates
    slope, run = sg.grad(f), sg.jit(f)
    for calls in range(1, 5):
        np.testing.assert_allclose(slope(np.ones(2)), [3.0 + calls, 1.0 + calls])
        assert vars(state) == {"gain": 1.0 + calls, "rate": 2.0}
    assert run(np.ones(2)) == 12.0
    name = "rate"
    assert run(np.ones(2)) == 12.0
    assert vars(state) == {"gain": 6.0, "rate": 3.0}
    np.testing.assert_allclose(slope(np.ones(2)), [6.0, 6.0])


def test_what_an_object_keeps_on_one_path_is_read_at_each_call() -> None:
    state, name = Parts(gain=1.0, more=np.ones(2)), "gain"

    @sg.jit
    def f(x: Any) -> Any:
        if x[0] > 0.0:
            setattr(state, name, x[0])
        return x.sum()

    f(np.array([-1.0, 0.0]))
    state.gain = 5.0
    f(np.array([-1.0, 0.0]))
    assert state.gain == 5.0
    f(np.array([3.0, 0.0]))
    assert state.gain == 3.0


def test_all_attributes_of_a_captured_object_are_read_at_each_call_and_in_their_order() -> None:
    state = Parts(a=1.0, b=np.ones(3), n=2)

    def f(x: Any) -> Any:
        total = 0.0
        for k, value in enumerate(vars(state).values()):
            total = total + (k + 1) * np.sum(value * x)
        return total

    slope = sg.grad(f)
    for _ in range(5):
        np.testing.assert_allclose(slope(X), np.full(3, 9.0))
    state.b[1] = 2.0
    np.testing.assert_allclose(slope(X), [9.0, 11.0, 9.0])
    state.n = 3
    np.testing.assert_allclose(slope(X), [12.0, 14.0, 12.0])
    del state.a
    state.a = 1.0
    np.testing.assert_allclose(slope(X), [10.0, 11.0, 10.0])
    state.m = 1.0
    np.testing.assert_allclose(slope(X), [14.0, 15.0, 14.0])


class Model:
    rate = 2.0

    def __init__(self) -> None:
        self.weight = 1.0


class Counted:
    rate = 1.0

    def of(self, x: Any) -> Any:
        type.__setattr__(Counted, "rate", Counted.rate + 1.0)
        return Counted.rate * x


def test_what_a_class_is_made_to_hold_by_a_method_is_put_there_at_each_call() -> None:
    slope = sg.grad(Counted().of)
    with pytest.warns(sg.RetraceWarning):
        assert [slope(1.0), slope(1.0), Counted.rate] == [2.0, 3.0, 3.0]


def test_what_classes_and_modules_hold_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "rate", 2.0)

    def assigns(x: Any) -> Any:
        setattr(Model, "ra" + "te"[:], Model.rate + 1.0)
        return np.sum(x) * Model.rate

    def reads(x: Any) -> Any:
        return np.sum(x) * vars(Model)["rate"] * Model.__dict__["rate"]

    slope, read = sg.grad(assigns), sg.grad(reads)
    with pytest.warns(sg.RetraceWarning):
        for calls in range(1, 4):
            np.testing.assert_allclose(slope(np.ones(2)), np.full(2, 2.0 + calls))
            np.testing.assert_allclose(read(np.ones(2)), np.full(2, (2.0 + calls) ** 2))
    assert Model.rate == 5.0


def test_setattr_that_is_handed_on_is_not_watched() -> None:
    state = Parts(gain=1.0)

    def f(x: Any) -> Any:
        list(map(setattr, [state], ["gain"], [x[0]]))
        return np.sum(x) * state.gain

    slope = sg.grad(f)
    with pytest.warns(sg.RetraceWarning, match="setattr changes objects"):
        np.testing.assert_allclose(slope(np.array([2.0, 3.0])), [7.0, 2.0])
