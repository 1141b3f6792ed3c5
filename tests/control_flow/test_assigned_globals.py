"""Globals that a function assigns for a while, as what enters and leaves a mode does: one program, nothing is left."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

MODE = "plain"
SCALE = 2.0
LAST: Any = None
POINTS = (np.array([1.1, 2.1, 3.1]), np.array([-0.9, 1.6, -3.9]), np.array([4.1, 2.1, 1.6]))


def set_mode(mode: str) -> None:
    global MODE
    MODE = mode


class Mode:
    def __init__(self, mode: str) -> None:
        self.mode, self.before = mode, MODE

    def __enter__(self) -> Mode:
        set_mode(self.mode)
        return self

    def __exit__(self, *error: object) -> None:
        set_mode(self.before)


class Modes:
    """Of which nothing is a special method."""

    def enter(self, mode: str) -> str:
        global MODE
        before, MODE = MODE, mode
        return before


@contextlib.contextmanager
def mode_of(mode: str) -> Iterator[None]:
    global MODE
    before, MODE = MODE, mode
    try:
        yield
    finally:
        MODE = before


def quotient(a: Any, b: Any) -> Any:
    if MODE == "plain":
        return a / b
    return np.where(b == 0, 0.0, a / np.where(b == 0, 1.0, b)) if MODE == "safe" else a * b


def in_a_mode(x: Any) -> Any:
    with Mode("safe"):
        y = quotient(x, x - 1.5)
    return np.sum(y + quotient(x, x + 7.0))


def by_a_generator(x: Any) -> Any:
    with mode_of("safe"):
        return np.sum(quotient(x, x - 1.5))


def by_methods(x: Any) -> Any:
    modes = Modes()
    before = modes.enter("safe")
    y = quotient(x, x - 1.5)
    modes.enter(before)
    return np.sum(y)


def on_a_path(x: Any) -> Any:
    if np.sum(x) > 0:
        with Mode("safe"):
            return np.sum(quotient(x, x - 1.5))
    return np.sum(quotient(x, x - 7.0))


def in_loops(x: Any) -> Any:
    total = np.sum(x)
    for i in range(3):
        with Mode("safe" if i % 2 else "product"):
            total = total + np.sum(quotient(x, x - 1.5))
    while total > 20.0:
        with Mode("safe"):
            total = total / 2 - np.sum(quotient(x, x + 7.0))
    return total + np.sum(quotient(x, x + 8.0))


def scaled(x: Any) -> Any:
    return SCALE * x


def of_a_number(x: Any) -> Any:
    global SCALE
    before = SCALE
    SCALE = 3.0 * before
    y = np.sum(scaled(x) ** 2)
    SCALE = before
    return y + np.sum(scaled(x))


FUNCTIONS = (in_a_mode, by_a_generator, by_methods, on_a_path, in_loops, of_a_number)


def slopes(f: Callable[[Any], Any], x: Any) -> Any:
    return np.array([(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(len(x))])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_global_that_is_given_back_what_it_was_makes_one_program(f: Callable[[Any], Any], backend: str) -> None:
    compiled, slope = sg.jit(f, backend=backend, strict=True), sg.grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in POINTS:
            np.testing.assert_allclose(compiled(x), f(x), rtol=1e-13)
            np.testing.assert_allclose(slope(x), slopes(f, x), rtol=1e-5, atol=1e-5)
    assert (MODE, SCALE) == ("plain", 2.0)


def test_what_a_global_was_before_is_seen_by_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, number = sg.jit(in_a_mode, strict=True), sg.jit(of_a_number, strict=True)
    x = POINTS[1]
    before = compiled(x), number(x)
    monkeypatch.setattr(sys.modules[__name__], "MODE", "product")
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 5.0)
    after = compiled(x), number(x)
    np.testing.assert_allclose(after, (in_a_mode(x), of_a_number(x)), rtol=1e-13)
    assert before[0] != after[0] and before[1] != after[1] and (MODE, SCALE) == ("product", 5.0)


def left_in_a_mode(x: Any) -> Any:
    set_mode("safe" if MODE == "plain" else "plain")
    return np.sum(quotient(x, x - 1.5))


def chosen_by_a_number(x: Any) -> Any:
    before = MODE
    if np.sum(x) > 0:
        set_mode("safe")
    y = np.sum(quotient(x, x - 1.5))
    set_mode(before)
    return y


@pytest.mark.parametrize("f", [left_in_a_mode, chosen_by_a_number])
def test_a_global_that_is_left_or_depends_on_numbers_is_what_python_leaves(
    f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "MODE", "plain")
    compiled = sg.jit(f)
    for x in POINTS:
        set_mode("plain")
        found, left = [f(x), f(x)], MODE
        set_mode("plain")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.RetraceWarning)
            np.testing.assert_allclose([compiled(x), compiled(x)], found, rtol=1e-13)
        assert left == MODE


def test_a_global_is_what_it_was_where_the_function_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(x: Any) -> Any:
        before = MODE
        set_mode("safe")
        if np.sum(x) < 0:
            raise ValueError("negative")
        y = np.sum(quotient(x, x - 1.5))
        set_mode(before)
        return y

    monkeypatch.setattr(sys.modules[__name__], "MODE", "plain")
    for transformed in (sg.jit(failing, strict=False), sg.grad(failing)):
        set_mode("plain")
        transformed(POINTS[0])
        assert MODE == "plain"
        with pytest.raises(ValueError, match="negative"):
            transformed(-POINTS[0])
        assert MODE == "safe"


def test_a_global_that_is_read_as_an_attribute_of_its_module_is_traced_again() -> None:
    module = sys.modules[__name__]

    def by_the_module(x: Any) -> Any:
        with Mode("safe"):
            return np.sum(quotient(x, x - 1.5)) if module.MODE == "safe" else 0.0 * x[0]

    with pytest.warns(sg.RetraceWarning, match="read as an attribute of the module"):
        assert sg.jit(by_the_module)(POINTS[0]) == by_the_module(POINTS[0])


def test_a_global_that_is_assigned_and_not_given_back_says_where() -> None:
    def keeping(x: Any) -> Any:
        global LAST
        LAST = float(np.sum(x))
        return np.sum(x * x)

    with pytest.warns(sg.RetraceWarning, match=r"assigns the global 'LAST' \(.*test_assigned_globals.py:\d+\)"):
        np.testing.assert_array_equal(sg.grad(keeping)(POINTS[0]), 2 * POINTS[0])
    assert np.sum(POINTS[0]) == LAST
