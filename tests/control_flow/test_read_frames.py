"""Code that reads the variables of what calls it, as NumExpr does, finds the user's own."""

# ruff: noqa: F841

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg
from srcgrad.errors import ConcretizationError

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
SCALE = 3.0


def evaluate(text: str) -> Any:
    names = compile(text, "", "eval").co_names
    frame = sys._getframe(1)
    return eval(text, {name: frame.f_locals.get(name, frame.f_globals.get(name)) for name in names})


def of_caller(text: str) -> Any:
    frame: Any = inspect.currentframe()
    return eval(text, {}, dict(frame.f_back.f_locals))


def of_stack(text: str) -> Any:
    frames = [entry.frame for entry in inspect.stack()]
    return eval(text, {}, dict(frames[1].f_locals))


class Model:
    def read(self, name: str) -> Any:
        for frame in [sys._getframe(1)]:
            found = inspect.getargvalues(frame).locals[name]
        return found

    def __call__(self, x: Any) -> Any:
        y = x * SCALE
        return self.read("y") * x


MODEL = Model()


def straight(x: Any) -> Any:
    y = SCALE * x
    return evaluate("x * y") + of_caller("0 * y")


def branching(x: Any) -> Any:
    y = SCALE * x if x > 0.0 else x
    return evaluate("x * y * SCALE") / SCALE


def looping(x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        total = evaluate("total + x * x")
    return total


def stacked(x: Any) -> Any:
    y = SCALE * x
    return of_stack("x * y")


def by_a_method(x: Any) -> Any:
    return MODEL(x)


def inside(x: Any) -> Any:
    def read(name: str) -> Any:
        for found in [sys._getframe(1).f_locals[name]]:
            return found

    y = SCALE * x
    return read("y") * x


@pytest.mark.parametrize("f", [straight, branching, looping, stacked, by_a_method, inside])
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_the_variables_of_the_caller_are_read(f: Callable[[Any], Any], backend: str) -> None:
    assert f(1.5) == sg.jit(f, backend=backend)(1.5) == 6.75
    assert [sg.grad(f, backend=backend)(x) for x in (1.5, 2.0)] == [9.0, 12.0]


def test_what_has_to_be_converted_too_is_an_error() -> None:
    def f(x: Any) -> Any:
        y = math.sin(x)
        return evaluate("x * y")

    assert sg.jit(f)(1.5) == f(1.5)
    with pytest.raises(ConcretizationError, match="evaluate reads the variables of what calls it") as caught:
        sg.grad(f)(1.5)
    assert caught.value.hint == "hand these values on as arguments"
