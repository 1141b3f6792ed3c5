"""What numba has compiled is traced by the Python function that it was made of. A stand-in is numba here."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

NATIVE: dict[str, Any] = {"np": np}
"""Methods without source, which run as they are."""
exec(
    """
def called(self, *args):
    if any(type(x) not in (int, float, np.float64, np.ndarray) for x in args):
        raise TypeError("non-precise type pyobject")
    return self.py_func(*args)

def mapped(self, *args):
    return np.vectorize(self._dispatcher)(*args)
""",
    NATIVE,
)


class Dispatcher:
    """As what ``numba.njit`` gives: its machine code takes no traced values."""

    def __init__(self, py_func: Any) -> None:
        self.py_func = py_func
        functools.update_wrapper(self, py_func)

    __call__ = NATIVE["called"]


class DUFunc:
    """As what ``numba.vectorize`` gives."""

    def __init__(self, py_func: Any) -> None:
        self._dispatcher = Dispatcher(py_func)

    __call__ = NATIVE["mapped"]


class prange:
    def __new__(cls, *args: int) -> Any:
        return range(*args)


Dispatcher.__module__ = DUFunc.__module__ = "numba.core.registry"
prange.__module__ = "numba.misc.special"

RATE = 2.5


@Dispatcher
def step(a: Any, b: Any) -> Any:
    return a * b + math.sin(a) * RATE if a > 0.2 else b


@Dispatcher
def total(x: Any, c: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        s += step(x[i], c)
    return s


@Dispatcher
def squares(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in prange(x.shape[0]):
        out[i] = x[i] ** 2
    return out.sum()


@DUFunc
def pressure(t: Any) -> Any:
    if t < 0.5:
        return math.exp(t) * RATE
    return math.log(t) - RATE


@DUFunc
def curve(t: Any) -> Any:
    return math.exp(t) if t < 0.5 else math.log(t)


X = np.linspace(0.1, 1.0, 40)


def of_total(x: Any, c: Any) -> Any:
    return total(x, c)


def of_squares(x: Any) -> Any:
    return squares(x)


def of_arrays(x: Any) -> Any:
    return np.sum(pressure(x) ** 2) + np.sum(curve(x) ** 2)


def of_numbers(t: Any) -> Any:
    return pressure(t) * pressure(0.3) * curve(t)


@pytest.mark.parametrize(
    ("function", "args"),
    [(of_total, (X, 1.5)), (total, (X, 1.5)), (of_squares, (X,)), (of_arrays, (X,)), (of_numbers, (0.2,))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_compiled_function_is_one_program(function: Any, args: tuple[Any, ...]) -> None:
    slope = sg.value_and_grad(function)
    assert np.allclose(slope(*args)[0], function(*args), rtol=1e-14)
    assert sg.explain(slope)(*args)["how it runs"].startswith("One program")
    check_grads(function, args)


def test_what_a_compiled_function_reads_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(of_total)
    before = [slope(X, 1.5) for _ in range(6)][-1]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert np.allclose(slope(X, 1.5) - before, np.where(X > 0.2, 2.5 * np.cos(X), 0.0))


def test_another_compiled_function_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = sg.grad(of_squares)
    assert np.allclose([slope(X) for _ in range(6)][-1], 2 * X)
    monkeypatch.setitem(globals(), "squares", Dispatcher(lambda x: np.sum(x**3)))
    assert np.allclose(slope(X), 3 * X**2)
    monkeypatch.setattr(squares, "py_func", lambda x: np.sum(x))
    assert np.allclose(slope(X), 1.0)
