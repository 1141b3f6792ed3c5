"""Functions of a module that keep their results: one program where what they give never changes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.5, 2.0])
FACTOR = 3
WEIGHTS = np.array([1.0, 2.0])


@functools.cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache(maxsize=8)
def coefficient(n: int, k: int) -> float:
    return math.comb(n, k) / fibonacci(n)


@functools.cache
def squared(x: Any) -> Any:
    return x * x


@functools.cache
def factor(k: int) -> int:
    return k * FACTOR


@functools.cache
def weight(k: int) -> Any:
    return WEIGHTS[k]


@functools.cache
def settings() -> dict[str, float]:
    return {"scale": 2.0}


def of_numbers(x: Any) -> Any:
    return sum(coefficient(6, k) * np.sum(x**k) for k in range(4)) * fibonacci(12)


def of_traced_values(x: Any) -> Any:
    return squared(x[0]) * x[1] + coefficient(4, 2)


def of_a_global(x: Any) -> Any:
    return np.sum(x) * factor(2)


def of_a_captured_array(x: Any) -> Any:
    return np.sum(x) * weight(1)


def of_what_changes(x: Any) -> Any:
    return np.sum(x) * settings()["scale"]


def that_clears(x: Any) -> Any:
    factor.cache_clear()
    return np.sum(x) * factor(2)


ONE = (of_numbers, of_traced_values)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [*ONE, of_a_global, of_a_captured_array, of_what_changes, that_clears])
def test_cached_results_are_those_of_python(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    derivative = sg.value_and_grad(f)

    def expected() -> Any:
        return X[0] ** 2 * X[1] + coefficient(4, 2) if f is of_traced_values else f(X)

    def check() -> None:
        for _ in range(5):
            assert derivative(X)[0] == pytest.approx(expected(), rel=1e-12)

    for function in (factor, weight, settings):
        function.cache_clear()
    check()
    assert ("One program" in sg.explain(derivative)(X)["how it runs"]) == (f in ONE)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    monkeypatch.setitem(settings(), "scale", 5.0)
    WEIGHTS[1] += 3.0
    check()
    factor.cache_clear()
    weight.cache_clear()
    check()
