"""Arrays of one element where a number is asked for: an error or a number, as this version of NumPy has it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

POINT = np.array([1.0, 1.0])


def assigned(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x[:1] * 2.0
    return z[0]


def assigned_at_a_value(x: Any) -> Any:
    z = np.zeros(3) * x[0]
    z[x[0].astype(int)] = x[:1] * 2.0
    return z[1]


def assigned_to_a_part(x: Any) -> Any:
    z = np.zeros(3)
    z[:1] = x[:1].reshape(1, 1) * 2.0
    z[1, ...] = x[1:]
    z[[2]] = x[:1]
    return np.sum(z * z)


def assigned_in_a_list(x: Any) -> Any:
    z = [0.0, 1.0]
    z[x[:1].astype(int)] = x[0]
    return z[1]


CASES: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x[:1]),
    "float of a matrix": lambda x: float(x[:1].reshape(1, 1)),
    "float of no axes": lambda x: float(np.array(x[0])) * x[0],
    "int": lambda x: int(x[:1]) * x[0],
    "complex": lambda x: complex(x[:1]).real,
    "round": lambda x: round(x[:1], 2)[0],
    "round of no axes": lambda x: round(np.array(x[0])) * x[0],
    "round of a number": lambda x: round(x[0], 2) * x[0],
    "math.sin": lambda x: math.sin(x[:1]),
    "math.hypot": lambda x: math.hypot(x[:1], 1.0),
    "math.floor": lambda x: math.floor(x[:1]) * x[0],
    "math.isclose": lambda x: math.isclose(x[:1], 1.0) * x[0],
    "math.isnan": lambda x: math.isnan(x[:1]) * x[0],
    "math.fsum": lambda x: math.fsum([x[:1], x[1:]]),
    "an index of a list": lambda x: [1.0, 2.0][x[:1].astype(int)] * x[0],
    "a key": lambda x: {1: 2.0}[x[:1].astype(int)] * x[0],
    "a letter": lambda x: ("abc"[x[:1].astype(int)] == "b") * x[0],
    "an element": assigned,
    "an element at a value": assigned_at_a_value,
    "parts": assigned_to_a_part,
    "an item": assigned_in_a_list,
}


def outcome(f: Callable[..., Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(f(POINT.copy()))
        except (TypeError, ValueError) as error:
            return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("name", CASES)
def test_an_array_is_a_number_where_it_is_numpys(name: str) -> None:
    f = CASES[name]
    expected = outcome(f)
    assert outcome(sg.jit(f)) == expected
    assert outcome(lambda x: sg.value_and_grad(f)(x)[0]) == expected


def test_the_error_says_what_to_do() -> None:
    def f(x: Any) -> Any:
        return math.sin(x[:1])

    if outcome(f) is TypeError:
        with pytest.raises(sg.errors.ArgumentError, match="only 0-dimensional arrays") as caught:
            sg.grad(f)(POINT)
        assert "math.sin(x[:1])" in str(caught.value)
        assert "np.sin(x) for math.sin(x)" in str(caught.value)
