"""Calls with objects among the arguments that are answered in machine code, while the objects change between them."""

from __future__ import annotations

import functools
import gc
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served, switching_often

pytest.importorskip("llvmlite")

pytestmark = [needs_machine, pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")]


class Base:
    bias: Any = 0.25

    def scaled(self, x: Any) -> Any:
        return x * self.scale  # type: ignore[attr-defined]


class Layer(Base):
    def __init__(self, w: Any = 1.0, scale: Any = 2.0) -> None:
        self.w, self.scale = np.full(6, float(w)), scale

    def __call__(self, x: Any) -> Any:
        return np.tanh(self.scaled(x) * self.w) + self.bias


class Other(Layer):
    def scaled(self, x: Any) -> Any:
        return x * self.scale * 3.0


class Property(Layer):
    @property
    def bias(self) -> Any:  # type: ignore[override]
        return 0.5 * self.scale


class Anything(Layer):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 1.5

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.unheard_of


class Slotted:
    __slots__ = ("scale", "w")

    def __init__(self) -> None:
        self.w, self.scale = np.full(6, 0.5), 1.5

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.scale


class Model:
    def __init__(self) -> None:
        self.first, self.second, self.rest = Layer(1.0), Layer(0.5), [Layer(0.7)]
        self.power, self.name, self.gain = 2, "sum", 1.5

    def __call__(self, x: Any) -> Any:
        for layer in (self.first, self.second, *self.rest):
            x = layer(x)
        return self.gain * (np.sum(x**self.power) if self.name == "sum" else np.sum(x) / 2.0)


def loss(x: Any, model: Any) -> Any:
    return model(x)


def slope(model: Any) -> Any:
    """The gradient of what plain Python and NumPy compute, by complex steps, or the class of what they raise."""
    steps = 1e-20j * np.eye(6)
    return outcome(lambda: np.array([np.imag(np.sum(model(X + step))) / 1e-20 for step in steps]))


def replaced(model: Any, rng: random.Random) -> None:
    layer = rng.choice([model.first, model.second, *model.rest])
    layer.w = rng.choice([np.full(6, rng.random()), np.linspace(0.1, 1.0, 6), np.arange(12.0)[::2], np.ones(1)])


def filled(model: Any, rng: random.Random) -> None:
    layer = rng.choice([model.first, model.second, *model.rest])
    layer.w[...] = rng.random()


def number(model: Any, rng: random.Random) -> None:
    kinds: list[Any] = [rng.random(), np.float64(rng.random()), np.full(6, rng.random()), 2, np.float32(0.5)]
    rng.choice([model.first, model.second]).scale = rng.choice(kinds)


def added(model: Any, rng: random.Random) -> None:
    layer = rng.choice([model.first, model.second])
    name = rng.choice(["bias", "unused", "scaled"])
    setattr(layer, name, {"bias": rng.random(), "unused": object(), "scaled": lambda x: x * 0.5}[name])


def deleted(model: Any, rng: random.Random) -> None:
    layer = rng.choice([model.first, model.second])
    for name in ("bias", "unused", "scaled"):
        layer.__dict__.pop(name, None)


def another_class(model: Any, rng: random.Random) -> None:
    rng.choice([model.first, model.second]).__class__ = rng.choice([Layer, Other, Property, Anything])


def slotted(model: Any, rng: random.Random) -> None:
    model.second = Slotted()


def one_object(model: Any, rng: random.Random) -> None:
    model.second = model.first


def shared_array(model: Any, rng: random.Random) -> None:
    model.second.w = rng.choice([model.first.w, model.first.w[:]])


def new_objects(model: Any, rng: random.Random) -> None:
    model.first, model.second = Layer(rng.random()), Layer(rng.random())


def more_layers(model: Any, rng: random.Random) -> None:
    model.rest = [Layer(rng.random()) for _ in range(rng.randrange(3))]


def settings(model: Any, rng: random.Random) -> None:
    model.power, model.name, model.gain = rng.choice([2, 3]), rng.choice(["sum", "mean"]), rng.random()


def new_dict(model: Any, rng: random.Random) -> None:
    model.first.__dict__ = dict(reversed(model.first.__dict__.items()))


def of_the_class(model: Any, rng: random.Random) -> None:
    Base.bias = rng.choice([0.25, 0.5, np.full(6, 0.1)])


CHANGES: list[Callable[[Any, random.Random], None]] = [
    replaced, filled, number, added, deleted, another_class, slotted, one_object, shared_array, new_objects,
    more_layers, settings, new_dict, of_the_class,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_objects_that_change_at_random(guards: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Base, "bias", Base.bias)
    rng, model = random.Random(seed), Model()
    f = served(sg.grad(loss, backend="llvm"), X, model)
    for turn in range(60):
        if turn % 3 != 2:
            outcome(rng.choice(CHANGES), model, rng)  # not all can be changed like that
        else:
            model = Model()
        expected = slope(model)
        for _ in range(SERVED_FROM + 2):
            found = outcome(f, X, model)
            if isinstance(expected, np.ndarray):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12, err_msg=f"turn {turn}")
            else:
                assert isinstance(found, type), turn


def test_objects_that_are_new_at_each_call_are_answered(guards: str, asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x, m: np.sum(m(x)), backend="llvm"), X, Layer())
    asked.clear()
    for k in range(5):
        np.testing.assert_allclose(f(X, Layer(k)), slope(Layer(k)))
    assert not asked


Form = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
FORMS: dict[str, Callable[[Any, Any], Form]] = {
    "by name": lambda one, other: (lambda x, *, m: np.sum(m(x)), (X,), {"m": one}),
    "not first": lambda one, other: (lambda x, k, m: np.sum(m(x)) * k, (X, 3, one), {}),
    "two": lambda one, other: (lambda x, m, n: np.sum(n(m(x))), (X, one, other), {}),
    "in a list": lambda one, other: (lambda x, ms: np.sum(ms[1](ms[0](x))), (X, [one, other]), {}),
    "in a dict": lambda one, other: (lambda x, ms: np.sum(ms["a"](x) * ms["b"](x)), (X, {"a": one, "b": other}), {}),
    "beside a partial's": lambda one, other: (
        functools.partial(lambda k, x, m, *, n: np.sum(m(x) * n) * k, 3.0, n=other.w), (X, one), {}
    ),
    "a bound method": lambda one, other: (lambda x, f: np.sum(f(x)), (X, one.__call__), {}),
    "a function": lambda one, other: (lambda x, f: np.sum(f(x)), (X, lambda x: x * one.w), {}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_objects_in_all_places_are_answered(guards: str, asked: list[Transformed], form: str) -> None:
    code, args, kwargs = FORMS[form](Layer(0.5), Layer(0.8, 0.3))
    f, g = sg.grad(code, backend="llvm"), sg.jit(code, backend="llvm")
    for transformed in (f, g):
        served(transformed, *args, **kwargs)
    asked.clear()
    one, other = Layer(0.1, 3.0), Layer(0.2, 4.0)
    function, args, kwargs = FORMS[form](one, other)
    if isinstance(function, functools.partial):
        other.w = function.keywords["n"] = code.keywords["n"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(g(*args, **kwargs), function(*args, **kwargs))
    np.testing.assert_allclose(f(*args, **kwargs), slope(lambda x: function(x, *args[1:], **kwargs)))
    assert not asked


def stored(x: Any, first: Any, second: Any) -> Any:
    first.scale = first.scale + 1.0
    return np.sum(x * second.scale)


def test_objects_that_are_stored_in_are_told_apart(guards: str) -> None:
    f, one, other = sg.grad(stored, backend="llvm"), Layer(), Layer()
    for pair in 3 * [(one, other)] * SERVED_FROM + 2 * [(one, one), (one, other), (other, other)] * SERVED_FROM:
        assert same(f(X, *pair), np.full(6, pair[1].scale))  # as it is then


def test_stores_are_seen_by_the_caller_of_jit(guards: str) -> None:
    def step(x: Any, layer: Any) -> Any:
        layer.w[0] = x[0]
        layer.scale = layer.scale + 1.0
        return np.sum(x * layer.w)

    f, ours, theirs = sg.jit(step, backend="llvm"), Layer(), Layer()
    for turn in range(3 * SERVED_FROM):
        np.testing.assert_allclose(f(X + turn, ours), step(X + turn, theirs))
        np.testing.assert_allclose(ours.w, theirs.w)
        assert ours.scale == theirs.scale


def test_views_in_an_object_are_answered_wherever_they_lie(asked: list[Transformed]) -> None:
    memory, layer, model = np.linspace(0.0, 1.0, 18), Layer(), Layer()
    layer.w, model.w = memory[:6], memory[6:12]
    f = served(sg.grad(lambda x, m, n: np.sum(m(x) * n(x)), backend="llvm"), X, layer, model)
    asked.clear()
    for start in (6, 12, 9, 3, 0):
        model.w = memory[start : start + 6]
        np.testing.assert_allclose(f(X, layer, model), slope(lambda x: layer(x) * model(x)))
    assert not asked


def test_equal_ints_are_one_setting(asked: list[Transformed]) -> None:
    layer = Layer()
    layer.scale = int("1000")
    f = served(sg.grad(lambda x, m: np.sum(m(x)), backend="llvm"), X, layer)
    asked.clear()
    layer.scale = int("1000")
    f(X, layer)
    assert not asked
    layer.scale = 1001
    layer.w[:] = 1e-3
    np.testing.assert_allclose(f(X, layer), slope(layer))


def test_an_argument_that_is_not_read_may_be_anything(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x, turn: np.sum(np.sin(x)), backend="llvm"), X, 5)
    asked.clear()
    for turn in range(6, 9):
        assert same(f(X, turn), np.cos(X))
    assert not asked
    assert same(f(X, "text"), np.cos(X))
    assert asked


def test_no_object_is_left_behind_or_kept_alive(guards: str) -> None:
    model = Model()
    f = served(sg.grad(loss, backend="llvm"), X, model)
    watched = [model, model.first, model.first.w, model.__dict__, model.rest, Layer, Model, f, f._tables, loss, X]
    gc.collect()
    counts = list(map(sys.getrefcount, watched))
    f(X, model)
    blocks = sys.getallocatedblocks()
    for _ in range(100_000 if guards == "machine" else 5_000):
        f(X, model)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
    assert [abs(a - b) < 20 for a, b in zip(counts, map(sys.getrefcount, watched), strict=True)] == [True] * len(
        watched
    )
    gone = [weakref.ref(model), weakref.ref(model.first), weakref.ref(model.first.w)]
    del model, watched
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_threads_call_while_another_changes_the_object(guards: str) -> None:
    model, wrong, over = Model(), [], threading.Event()
    f = served(sg.grad(lambda x, m: np.sum(m.second(m.first(x))), backend="llvm"), X, model)

    def call() -> None:
        while not over.is_set():
            found = outcome(f, X, model)
            if not isinstance(found, np.ndarray) or found.shape != (6,) or not np.isfinite(found).all():
                wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(3)]
    rng = random.Random(0)
    with switching_often():
        for thread in threads:
            thread.start()
        for _ in range(3_000):
            change = rng.choice([filled, new_objects, one_object, new_dict, shared_array])
            change(model, rng)
            model.first.scale = rng.choice([rng.random(), 2.0])
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong
    np.testing.assert_allclose(f(X, model), slope(lambda x: np.sum(model.second(model.first(x)))))
