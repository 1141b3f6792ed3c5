"""Objects that Python asks for a number or a truth value: their methods give traced ones."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


class Parameter:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value > 1.0)


class Sld(Parameter):
    def __complex__(self) -> complex:
        return complex(self.value, 2.0 * self.value**2)


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> int:
        return int(self.value)


def loop(x: Any) -> Any:
    level = Parameter(x * x)
    while level and level.value < 30.0:
        level = Parameter(1.5 * float(level))
    return level.value


captured = Parameter(2.0)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(Parameter(x)) * x,
    "complex": lambda x: abs(complex(Sld(x)) ** 2),
    "complex of a float": lambda x: abs(complex(Parameter(x), Parameter(x * x))),
    "index": lambda x: float(Index(x)) * x,
    "math": lambda x: math.sin(Parameter(x)) + math.pow(Parameter(x), 3) + math.atan2(x, Parameter(2.0 * x)),
    "cmath": lambda x: abs(cmath.exp(Sld(x))),
    "numpy": lambda x: np.float64(Parameter(x)) * np.complex128(Sld(x)).imag,
    "if": lambda x: x * 2.0 if Parameter(x) else x,
    "not": lambda x: x * 2.0 if not Parameter(x) else x,
    "and": lambda x: x * x if Parameter(x) and x < 2.0 else 3.0 * x,
    "or": lambda x: float(Parameter(x) or Parameter(5.0 * x)) * x,
    "bool": lambda x: x**3 if bool(Parameter(x)) is True else x,
    "while": loop,
    "captured": lambda x: x * float(captured) if captured else x,
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_one_program(name: str, backend: str) -> None:
    f = PROGRAMS[name]
    slope = sg.value_and_grad(f, backend=backend)
    for x in (0.7, 1.3, 2.6):
        captured.value = x + 0.5
        value, found = slope(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-12)
        np.testing.assert_allclose(found, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-5)
    assert sg.explain(slope)(1.3)["how it runs"].startswith("One program")


class Wrong:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __float__(self) -> Any:
        return int(self.value)

    def __bool__(self) -> Any:
        return self.value

    def __complex__(self) -> Any:
        return self.value


@pytest.mark.parametrize("f", [lambda x: float(Wrong(x)) * x, lambda x: x if Wrong(x) else 2.0 * x,
                               lambda x: abs(complex(Wrong(x)))])  # fmt: skip
def test_an_answer_of_another_kind_is_an_error_as_in_python(f: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        f(2.0)
    with pytest.raises(TypeError, match=r"__(float|bool|complex)__"):
        sg.grad(f)(2.0)
