"""Methods with transforms and rules: what they read is watched, and the functions that call them are one program."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SCALE = np.array([2.0, 3.0])
X = np.array([0.5, 0.25])


class Held:
    """A descriptor that is called as a method, too."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)


class Slope:
    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: Any) -> Any:
        return self.slope * x


def layers(decorate: Callable[[Any], Any]) -> Any:
    class Layer:
        def __init__(self) -> None:
            self.weights, self.gain = np.array([1.0, 2.0]), 3.0

        @decorate
        def __call__(self, x: Any) -> Any:
            return np.sum(self.weights * x**2) * self.gain

        @decorate
        def __matmul__(self, x: Any) -> Any:
            return np.sum(self.weights * x**2) * self.gain

        @decorate
        def __getitem__(self, k: int) -> Any:
            return self.weights[k] * self.gain

    return Layer()


DECORATORS: dict[str, Callable[[Any], Any]] = {
    "jit": sg.jit,
    "checkpoint": sg.checkpoint,
    "two": lambda f: sg.jit(sg.checkpoint(f)),
    "partialmethod": lambda f: functools.partialmethod(f),
    "an object": Held,
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("how", DECORATORS)
def test_methods_that_python_calls_by_itself_are_not_stale_where_they_are_no_functions(how: str) -> None:
    """What they read was a constant of the program: it had the old weights for ever."""
    layer = layers(DECORATORS[how])
    functions = {
        "call": lambda x: layer(x),
        "operator": lambda x: layer @ x,
        "item": lambda x: np.sum(x**2 * np.array([layer[0], layer[1]])),
    }
    slopes = {name: sg.grad(f) for name, f in functions.items()} | {"itself": sg.grad(layer)}
    for _ in range(3):
        for name, slope in slopes.items():
            np.testing.assert_allclose(slope(X), 2 * layer.weights * X * layer.gain, err_msg=name)
        layer.weights *= 2.0
        layer.gain += 1.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_object_in_a_class_that_python_calls_is_not_stale() -> None:
    held = Slope(2.0)

    class Called:
        __call__ = held

    class Partial:
        __call__ = staticmethod(functools.partial(lambda x: held.slope * x))

    class Static:
        __call__ = staticmethod(sg.jit(lambda x: held.slope * x))

    for thing in (Called(), Partial(), Static()):
        slope = sg.grad(lambda x, thing=thing: thing(x))
        for number in (2.0, 7.0):
            held.slope = number
            assert slope(1.0) == number


class Model:
    def __init__(self, gain: float) -> None:
        self.gain = gain

    @sg.jit
    def compiled(self, x: Any) -> Any:
        return self.gain * x**2

    @sg.checkpoint
    def repeated(self, x: Any) -> Any:
        return self.gain * x**2 * np.sum(SCALE)

    @staticmethod
    @sg.jit
    def shared(x: Any) -> Any:
        return x * SCALE[0]

    @classmethod
    @sg.jit
    def of_class(cls, x: Any) -> Any:
        return x * 7.0

    @functools.partial(sg.custom_jvp, nondiff_argnums=(0,))
    def forward(self, x: Any) -> Any:
        return self.gain * x

    @forward.defjvp
    def _rule(self, primals: Any, tangents: Any) -> Any:
        return self.forward(*primals), 11.0 * self.gain * tangents[0]

    @functools.partial(sg.custom_vjp, nondiff_argnums=(0,))
    def backward(self, x: Any) -> Any:
        return self.gain * x

    def _fwd(self, x: Any) -> Any:
        return self.gain * x, x

    def _bwd(self, x: Any, ct: Any) -> Any:
        return (13.0 * self.gain * ct * x,)

    backward.defvjp(_fwd, _bwd)

    def all(self, x: Any) -> Any:
        own = self.compiled(x) + self.repeated(x) + self.forward(x) + self.backward(x)
        return own + self.shared(x) + self.of_class(x)

    def slope(self, x: float) -> float:
        own = 2.0 * x + 2.0 * x * np.sum(SCALE) + 11.0 + 13.0 * x
        return float(self.gain * own + SCALE[0] + 7.0)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_methods_that_call_methods_with_transforms_and_rules_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were traced again at each call: their class has an attribute that is no function."""
    model = Model(3.0)
    slope = sg.grad(model.all)
    assert slope(2.0) == model.slope(2.0)
    model.gain = 4.0
    assert slope(2.0) == model.slope(2.0)
    monkeypatch.setitem(globals(), "SCALE", np.array([5.0, 6.0]))  # a method leads to it: the trace has a twin of Model
    assert slope(2.0) == model.slope(2.0)
    monkeypatch.setattr(Model, "of_class", classmethod(sg.jit(lambda cls, x: x * 9.0)))
    assert slope(2.0) == model.slope(2.0) + 2.0


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", ["compiled", "repeated", "forward", "backward", "shared", "of_class"])
def test_a_bound_method_with_a_transform_or_a_rule_is_one_program(name: str) -> None:
    model = Model(3.0)
    bound = getattr(model, name)
    slopes = (sg.grad(bound), sg.grad(lambda x: getattr(model, name)(x)), sg.grad(lambda x: bound(x)))
    for gain in (3.0, 5.0):
        model.gain = gain
        expected = {"compiled": 4.0 * gain, "repeated": 4.0 * gain * np.sum(SCALE), "forward": 11.0 * gain}
        expected |= {"backward": 26.0 * gain, "shared": SCALE[0], "of_class": 7.0}
        assert [slope(2.0) for slope in slopes] == 3 * [expected[name]]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_method_with_a_transform_that_asks_for_its_class_is_right() -> None:
    class Double(Model):
        @sg.jit
        def compiled(self, x: Any) -> Any:
            return 2.0 * super().compiled(x)

    double = Double(3.0)
    slope = sg.grad(lambda x: double.compiled(x))
    assert slope(2.0) == 24.0
    double.gain = 5.0
    assert slope(2.0) == 40.0


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_rules_that_a_function_makes_are_one_program() -> None:
    """They were traced again at each call: making an object with a rule ran code that nobody had looked at."""

    def with_rules(x: Any, k: float) -> Any:
        @sg.custom_vjp
        def square(y: Any) -> Any:
            return y * y

        square.defvjp(lambda y: (y * y, y), lambda y, ct: (10.0 * k * y * ct,))

        @sg.custom_jvp
        def cube(y: Any) -> Any:
            return y**3

        @cube.defjvp
        def _(primals: Any, tangents: Any) -> Any:
            return cube(*primals), 100.0 * primals[0] * tangents[0]

        return square(x) + cube(x)

    slope = sg.grad(with_rules)
    assert [slope(2.0, 1.0), slope(2.0, 3.0), slope(1.0, 3.0)] == [220.0, 260.0, 130.0]
