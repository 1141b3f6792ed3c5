"""Attributes that plain functions and methods assign, of captured objects and classes: as in plain Python, and what is
assigned on one path only is left as the caller has it on the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINTS = tuple(np.array(point) for point in ([0.5, 0.2], [1.5, -0.5], [0.1, 2.0], [3.0, 0.7], [0.2, 0.2]))


class State:
    pass


def new_state() -> Any:
    state: Any = State()
    vars(state).update(n=0, best=np.float64(1e9), last=None, t=0.5, inner=SimpleNamespace(n=0, v=1.0), name="none")
    return state


STATE = new_state()
SPACE = SimpleNamespace(n=0, a=1.0)


def counts(x: Any) -> Any:
    STATE.n += 1
    return np.sum(x**2)


def assigns(x: Any) -> Any:
    STATE.last = np.sum(x**2)
    return np.sum(x**2)


def keeps_the_best(x: Any) -> Any:
    value = np.sum(x**2)
    if value < STATE.best:
        STATE.best = value
    return value


def of_a_namespace(x: Any) -> Any:
    SPACE.n += 1
    SPACE.a = SPACE.a * x[0]
    SPACE.new = x
    return np.sum(x) * SPACE.a


def of_an_attribute(x: Any) -> Any:
    STATE.inner.n -= 1
    STATE.inner.v = STATE.inner.v * 0.5 + x[0]
    return STATE.inner.v**2


def in_loops(x: Any) -> Any:
    for k in range(40):
        STATE.last = x * k
        STATE.n += 1
        x = np.sin(x)
    while x[0] > 0.1:
        x = x / 2
        STATE.t = x[1]
    return x.sum()


def by_another_name(x: Any) -> Any:
    state = STATE
    state.t, state.last = x[0], (x[1], "t")
    return np.sum(x**2)


def in_a_function(x: Any) -> Any:
    def noted(y: Any) -> Any:
        STATE.n += 1
        STATE.last = y
        return y**2

    return sum(noted(v) for v in x)


def on_both_paths(x: Any) -> Any:
    if x[0] > 1.0:
        STATE.n += 1
        STATE.t = x[0]
    else:
        STATE.n -= 2
        STATE.t = 2 * x[1]
    return np.sum(x**3)


def of_a_closure() -> Callable[..., Any]:
    state = STATE

    def f(x: Any) -> Any:
        state.n += 1
        state.last = x.sum()
        return np.sum(x**3)

    return f


FUNCTIONS: tuple[Callable[..., Any], ...] = (
    counts, assigns, keeps_the_best, of_a_namespace, of_an_attribute, in_loops, by_another_name, in_a_function,
    on_both_paths,
)  # fmt: skip


def restart() -> None:
    vars(STATE).clear()
    vars(STATE).update(vars(new_state()))
    vars(SPACE).clear()
    SPACE.n, SPACE.a = 0, 1.0


def held(thing: Any) -> Any:
    """What objects hold, in dicts."""
    if isinstance(thing, (State, SimpleNamespace)):
        return {name: held(value) for name, value in vars(thing).items()}
    return thing


def alike(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name, value in one.items():
            alike(value, other[name])
    elif isinstance(one, tuple):
        assert type(other) is tuple
        for value, another in zip(one, other, strict=True):
            alike(value, another)
    elif isinstance(one, (str, int, type(None))):
        assert type(one) is type(other) and one == other
    else:
        assert isinstance(other, (float, np.ndarray))
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*FUNCTIONS, of_a_closure()], ids=lambda f: f.__name__)
def test_functions_assign_attributes_of_captured_objects(f: Callable[..., Any], backend: str) -> None:
    restart()
    values = []
    for point in POINTS:
        values.append(f(point))
    expected = held(STATE), held(SPACE)
    restart()
    call = sg.value_and_grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for point, value in zip(POINTS, values, strict=True):
            np.testing.assert_allclose(call(point)[0], value, rtol=1e-12)
    alike((held(STATE), held(SPACE)), expected)


class Model:
    """Each method assigns where its first number is small."""

    def __init__(self) -> None:
        self.n, self.t, self.name, self.last = 0, 0.0, "", None
        self.items: list[Any] = []

    def a_whole_number(self, x: Any) -> Any:
        if x[0] < 0.4:
            self.n = 100
        return np.sum(x**2)

    def a_float(self, x: Any) -> Any:
        if x[0] < 0.4:
            self.t = x[0]
        return np.sum(x**2)

    def a_text(self, x: Any) -> Any:
        if x[0] < 0.4:
            self.name = "small"
        return np.sum(x**2)

    def a_list(self, x: Any) -> Any:
        if x[0] < 0.4:
            self.items = [1.0, x[0]]
        return np.sum(x**2)

    def in_a_while(self, x: Any) -> Any:
        while x[0] > 0.3:
            x = x * 0.7
            self.last = x.sum()
        return np.sum(x**2)

    def in_a_for(self, x: Any) -> Any:
        for _ in range(50):
            if x[0] < 0.4:
                self.t = x[0]
            x = x * 0.99
        return np.sum(x**2)

    def in_a_try(self, x: Any) -> Any:
        try:
            if x[0] < 0.4:
                raise ValueError
        except ValueError:
            self.n = 100
        return np.sum(x**2)


METHODS = [name for name in vars(Model) if name[0] != "_"]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", METHODS)
def test_what_a_path_does_not_assign_is_left_as_the_caller_has_it(name: str, backend: str) -> None:
    model, plain = Model(), Model()
    call = sg.value_and_grad(getattr(model, name), backend=backend)
    for number, point in enumerate([*POINTS, *POINTS]):
        for one in (model, plain):
            one.n, one.t, one.name, one.items = number, 0.1 * number, str(number), [float(number)]
            one.last = None if number < 2 else 1.5 * number
        np.testing.assert_allclose(call(point)[0], getattr(plain, name)(point), rtol=1e-12)
        found, expected = ({**vars(one), "items": tuple(one.items)} for one in (model, plain))
        alike(found, expected)


class Counting:
    made = 0
    last: Any = None

    def tick(self, x: Any) -> None:
        Counting.made += 1
        type(self).last = x[0]

    def loss(self, x: Any) -> Any:
        self.tick(x)
        return np.sum(x**2)

    @classmethod
    def noted(cls, x: Any) -> Any:
        cls.last = 2 * x[1]
        return np.sum(x**3)


def of_a_class(x: Any) -> Any:
    Counting.made += 1
    Counting.last = x[0]
    return np.sum(x**2)


def of_a_function(x: Any) -> Any:
    Counting.loss.last = x[0]  # type: ignore[attr-defined]
    return np.sum(x**2)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [Counting().loss, Counting.noted, of_a_class, of_a_function], ids=lambda f: f.__name__)
def test_attributes_of_classes_and_functions_are_numbers(f: Callable[..., Any], backend: str) -> None:
    def reset() -> None:
        Counting.made, Counting.last = 0, None
        vars(Counting.loss).clear()

    reset()
    for point in POINTS:
        f(point)
    expected = {"made": Counting.made, "last": Counting.last, **vars(Counting.loss)}
    reset()
    call = sg.grad(f, backend=backend)
    for point in POINTS:
        call(point)
    alike({"made": Counting.made, "last": Counting.last, **vars(Counting.loss)}, expected)


class Lazy:
    def __init__(self) -> None:
        self.scale: Any = None
        self.best: Any = None

    def loss(self, x: Any) -> Any:
        if self.scale is None:
            self.scale = np.max(np.abs(x))
        value = np.sum((x / self.scale) ** 2)
        if self.best is None or value < self.best:
            self.best = value
        return value


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_an_attribute_that_is_none_at_first_is_made_by_the_first_call(backend: str) -> None:
    lazy, plain = Lazy(), Lazy()
    call = sg.value_and_grad(lazy.loss, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for number, point in enumerate([*POINTS, *POINTS]):
            value, slope = call(point)
            np.testing.assert_allclose(value, plain.loss(point), rtol=1e-12)
            if number:
                np.testing.assert_allclose(slope, 2 * point / plain.scale**2, rtol=1e-12)
            alike(vars(lazy), vars(plain))
