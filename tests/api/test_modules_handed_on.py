"""Modules that a program hands on: ``xp`` as a default, an argument, an attribute, or what a function returns."""

from __future__ import annotations

import functools
import math
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.5, -1.0, 2.0])


def loss(x: Any, xp: Any = np) -> Any:
    return xp.sum(xp.sin(x) * x) + xp.linalg.norm(x)


def first(xp: Any, x: Any) -> Any:
    return loss(x, xp)


def by_name(x: Any, *, xp: Any = np) -> Any:
    return loss(x, xp=xp)


def namespace_of(x: Any) -> Any:
    return np


def found(x: Any) -> Any:
    xp = namespace_of(x)
    return loss(x, xp)


def filled(x: Any, xp: Any = np) -> Any:
    y = xp.zeros_like(x)
    for i in range(len(x)):
        y[i] = xp.sin(x[i]) * x[i]
    return xp.sum(y) + xp.linalg.norm(x)


class Held:
    def __init__(self) -> None:
        self.xp = np

    def loss(self, x: Any) -> Any:
        return loss(x, self.xp)


class Shared:
    xp = np

    def loss(self, x: Any) -> Any:
        return self.xp.sum(self.xp.sin(x) * x) + self.xp.linalg.norm(x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "a default": loss,
    "a keyword default": by_name,
    "an argument of a partial": functools.partial(first, np),
    "a keyword of a partial": functools.partial(loss, xp=np),
    "an argument of a call": lambda x: first(np, x),
    "what a function returns": found,
    "a default of what fills arrays": filled,
    "an attribute": Held().loss,
    "an attribute of a class": Shared().loss,
    "an element": lambda x, spaces=(np, math): loss(x, spaces[0]),
}


def gradient() -> Any:
    return np.cos(X) * X + np.sin(X) + X / np.linalg.norm(X)


@pytest.mark.parametrize("way", WAYS)
def test_modules_handed_on_are_part_of_one_program(way: str) -> None:
    for backend in ("llvm", "numpy"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            differentiated = sg.grad(WAYS[way], backend=backend)
            for _ in range(12):
                np.testing.assert_allclose(differentiated(X), gradient(), rtol=1e-14)


def test_a_module_as_an_argument_decides_the_program() -> None:
    def function(x: Any, xp: Any) -> Any:
        return xp.sin(x) * x if xp is np else xp.sin(x)

    differentiated = sg.grad(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for _ in range(12):
            assert differentiated(0.5, np) == pytest.approx(math.cos(0.5) * 0.5 + math.sin(0.5), rel=1e-15)
            assert differentiated(0.5, math) == math.cos(0.5)
    imitation = types.ModuleType("imitation")
    imitation.sin = np.cos  # type: ignore[attr-defined]
    with pytest.warns(sg.RetraceWarning, match="passes the module 'imitation' around"):
        assert differentiated(0.5, imitation) == -math.sin(0.5)


def test_another_module_in_its_place_is_seen() -> None:
    def function(x: Any, xp: Any = np) -> Any:
        return xp.sin(x)

    class Local:
        xp: Any = np

        def value(self, x: Any) -> Any:
            return self.xp.sin(x)

    imitation = types.ModuleType("imitation")
    imitation.sin = np.cos  # type: ignore[attr-defined]
    one, other = sg.grad(function), sg.grad(Local().value)
    for _ in range(12):
        assert one(0.5) == other(0.5) == math.cos(0.5)
    function.__defaults__, Local.xp = (imitation,), imitation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert one(0.5) == other(0.5) == -math.sin(0.5)
    function.__defaults__, Local.xp = (np,), np
    assert one(0.5) == other(0.5) == math.cos(0.5)


DRAWS: dict[str, Callable[..., Any]] = {
    "default": lambda x, xp=np: xp.random.normal() * x,
    "call": lambda x: (lambda xp: xp.random.normal() * x)(np),
    "submodule": lambda x, draw=np.random: draw.normal() * x,
    "argument": lambda x, xp: xp.random.normal() * x,
}


@pytest.mark.parametrize("way", DRAWS)
def test_draws_from_a_module_handed_on_are_made_at_each_call(way: str) -> None:
    given = (np,) if way == "argument" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        differentiated = sg.grad(DRAWS[way])
        np.random.seed(7)
        drawn = [differentiated(1.0, *given) for _ in range(4)]
    np.random.seed(7)
    assert drawn == [np.random.normal() for _ in range(4)]


def test_a_module_that_draws_is_named() -> None:
    with pytest.warns(sg.RetraceWarning, match="passes the module 'numpy' around: numpy.random.normal draws"):
        sg.grad(lambda x, xp=np: xp.random.normal() * x)(1.0)
