"""Warnings of the user's whose messages have values: given when the program runs, with the values of the run."""

from __future__ import annotations

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
