"""Texts of traced values: what is read of them again would have no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import srcgrad as sg
from srcgrad.errors import ConcretizationError

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")


@pytest.mark.parametrize("text", [str, lambda x: f"{x}", lambda x: format(x), lambda x: x.__str__()])
def test_a_float_read_of_the_text_of_a_float_is_refused_as_it_would_lose_the_derivative(
    text: Callable[[Any], str],
) -> None:
    def f(x: Any) -> Any:
        return 2.0 * float(text(x)) * x

    assert sg.jit(f)(1.5) == f(1.5) == 4.5
    with pytest.raises(ConcretizationError, match="would lose its derivative") as caught:
        sg.grad(f)(1.5)
    assert "float(text(x))" in str(caught.value)


def test_texts_of_numbers_that_a_function_leaves_are_numbers_again() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str(x))
        return x * len(seen[-1].split("."))

    assert sg.grad(f)(1.5) == 2.0
    assert {*map(float, seen)} == {1.5}


def test_a_number_that_a_text_rounds_is_a_constant() -> None:
    assert sg.grad(lambda x: float(f"{x:.2f}") * x)(1.234) == 1.23
    assert sg.grad(lambda x: x ** int(str(int(x))))(3.5) == 3 * 3.5**2
