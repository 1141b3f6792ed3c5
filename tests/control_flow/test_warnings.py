"""Warnings of the user's whose messages have values: given when the program runs, with the values of the run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


class Slow(UserWarning):
    def __init__(self, rate: Any, step: Any) -> None:
        super().__init__(f"rate {rate:.4f} in step {step}")
        self.rate = rate


def of_a_value(x: Any) -> Any:
    if x > 1:
        warnings.warn(f"{x:.1f} is large", stacklevel=1)
    return x**2


def of_a_category(x: Any) -> Any:
    if x > 1:
        warnings.warn(f"{x:.2e} is large", RuntimeWarning, stacklevel=1)
    return x**2


def of_an_object(x: Any) -> Any:
    for k in range(30):
        x = x * 0.9
        if x < 0.1:
            warnings.warn(Slow(x, k), stacklevel=1)
    return x


def of_a_text(x: Any) -> Any:
    if x > 1:
        warnings.warn("large", stacklevel=1)
    return x**2


def helper(x: Any) -> Any:
    warnings.warn("careful", stacklevel=2)
    return x * 0.5


def deeper(x: Any) -> Any:
    warnings.warn("deep", DeprecationWarning, 3)
    return x


def between(x: Any) -> Any:
    if x > 1e-30:
        x = deeper(x)
    return x


class Old:
    def __init__(self, x: Any) -> None:
        self.x = x
        warnings.warn("made", FutureWarning, stacklevel=2)

    @property
    def half(self) -> Any:
        warnings.warn("read", stacklevel=2)
        return self.x * 0.5


def of_callers(x: Any) -> Any:
    for _ in range(30):
        x = helper(x)
    if x > 0:
        x = helper(x)
        x = between(x)
    while x > 1e-12:
        x = helper(x)
    return sum([helper(v) for v in (x, x)]) + Old(x).half


def of_callers_traced_again(x: Any) -> Any:
    with open(os.devnull):
        return helper(x) + between(x)


def warned(f: Callable[..., Any], x: float) -> list[Any]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(x)
    return [(w.category, str(w.message), w.filename, w.lineno, getattr(w.message, "rate", None)) for w in found]


@pytest.mark.parametrize("f", [of_a_value, of_a_category, of_an_object, of_a_text])
def test_a_warning_has_the_values_of_the_run(f: Callable[..., Any]) -> None:
    """Its message was an object of a trace that was over, which failed where it was shown."""
    program, gradient = sg.jit(f), sg.grad(f)
    for x in (1.5, 0.5, 2.25, 1.5):
        expected = warned(f, x)
        assert warned(program, x) == expected
        assert warned(gradient, x) == expected


@pytest.mark.parametrize("f", [of_callers, of_callers_traced_again])
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_warning_is_of_the_line_that_its_level_says(f: Callable[..., Any]) -> None:
    """It was of the line that warns, and in a trace with numbers of one of this package."""
    expected = warned(f, 1.5)
    for transformed in (sg.jit(f), sg.grad(f), sg.grad(f, backend="numpy")):
        for _ in range(2):
            assert [w for w in warned(transformed, 1.5) if w[0] is not sg.RetraceWarning] == expected


def test_a_warning_of_a_trace_with_numbers_is_shown_once() -> None:
    transformed = sg.grad(of_callers_traced_again)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            transformed(1.5)
    assert [str(w.message) for w in found if w.category is not sg.RetraceWarning] == ["careful", "deep"]


def test_a_warning_that_is_an_error_is_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=r"1.50e\+00 is large") as caught:
            sg.grad(of_a_category)(1.5)
    assert any("warnings.warn" in note for note in caught.value.__notes__)


def test_the_source_of_a_program_warns_too() -> None:
    names: dict[str, Any] = {}
    exec(sg.source(sg.grad(of_a_value))(1.5), names)
    with pytest.warns(UserWarning, match="1.5 is large"):
        assert names["of_a_value_grad"](np.float64(1.5)) == 3.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", [sg.jit, lambda f: lambda x: sg.value_and_grad(f)(x)[0]])
def test_what_is_warned_of_where_the_function_decides_what_becomes_of_it_is_warned_of_there(transform: Any) -> None:
    """The program warned when it ran, behind the with."""

    def counted(x: Any) -> Any:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warnings.warn("careful", stacklevel=1)
        return x * len(found)

    assert [transform(counted)(x) for x in (1.5, 2.5)] == [1.5, 2.5]
