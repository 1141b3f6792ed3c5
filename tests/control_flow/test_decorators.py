"""Decorators and context managers of Python's library around functions of the user's."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
SCALE = 2.0


@contextlib.contextmanager
def scaled(x: Any, state: dict[str, Any]) -> Iterator[Any]:
    state["depth"] = state.get("depth", 0) + 1
    try:
        yield SCALE * x if x > 0.5 else x**3
    finally:
        state["depth"] -= 1


def in_a_context(x: Any) -> Any:
    state: dict[str, Any] = {}
    with scaled(x, state) as y:
        total = np.sin(y) * state["depth"]
    return total + state["depth"]


def in_a_context_of_its_own(x: Any) -> Any:
    @contextlib.contextmanager
    def shifted(by: Any) -> Iterator[Any]:
        yield x + by if x > 0.5 else x - by

    with shifted(0.3) as y:
        return y * x


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        if args not in known:
            known[args] = function(*args)
        return known[args]

    return wrapper


def memoised(x: Any) -> Any:
    @remembered
    def legendre(n: int) -> Any:
        return 1.0 if n == 0 else x if n == 1 else ((2 * n - 1) * x * legendre(n - 1) - (n - 1) * legendre(n - 2)) / n

    return legendre(6)


def cached(x: Any) -> Any:
    @functools.cache
    def hermite(n: int) -> Any:
        return 1.0 if n == 0 else 2 * x if n == 1 else 2 * x * hermite(n - 1) - 2 * (n - 1) * hermite(n - 2)

    return hermite(5)


@pytest.mark.parametrize("f", [in_a_context, in_a_context_of_its_own, memoised, cached], ids=lambda f: f.__name__)
def test_one_program(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.value_and_grad(f)
    for scale in (2.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        for x in (0.3, 0.8, 0.4):
            value, found = slope(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-13)
            np.testing.assert_allclose(found, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-7)
    sg.jit(f, strict=True)(0.7)
