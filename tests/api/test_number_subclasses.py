"""Numbers of classes derived from Python's and NumPy's as arguments of derivatives."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


class Metres(float):
    unit = "m"

    def __repr__(self) -> str:
        return f"{float(self)} m"


class Double(np.float64):
    pass


class Single(np.float32):
    pass


class Phasor(complex):
    pass


class Decibels(float):
    def __mul__(self, other: Any) -> Any:
        return Decibels(float(self) + float(other))


class Level(float, enum.Enum):
    LOW = 1.0


def cube(x: Any) -> Any:
    return x * x * x


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("kind", [Metres, Double, Single])
def test_a_number_of_a_derived_class_is_a_number(kind: type, backend: str) -> None:
    slope = sg.grad(cube, backend=backend)
    for value in (1.0, 2.0, 3.0, -2.0, 0.5, 4.0, 1.5):  # also once calls are answered by machine code
        assert slope(kind(value)) == slope(value) == 3 * value**2
    assert sg.hessian(cube, backend=backend)(kind(2.0)) == 12.0
    assert sg.jacfwd(cube, backend=backend)(kind(2.0)) == 12.0
    assert sg.value_and_grad(cube, backend=backend)(kind(2.0)) == (8.0, 12.0)
    assert sg.grad(lambda p: p["a"] * p["b"], backend=backend)({"a": kind(2.0), "b": 3.0}) == {"a": 3.0, "b": 2.0}
    assert sg.jvp(cube, (kind(2.0),), (1.0,), backend=backend) == (8.0, 12.0)
    value, pull = sg.vjp(cube, kind(2.0), backend=backend)
    assert value == 8.0 and pull(1.0) == (12.0,)
    assert sg.hvp(cube, (kind(2.0),), (1.0,), backend=backend) == 12.0


def test_complex_numbers_of_a_derived_class_too() -> None:
    slope = sg.grad(lambda z: z.real**2 + z.imag)
    assert slope(Phasor(1 + 2j)) == slope(1 + 2j)


@pytest.mark.parametrize("value", [Decibels(2.0), Level.LOW])
def test_classes_that_compute_otherwise_or_stand_for_names_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="only floats and complex numbers have derivatives"):
        sg.grad(cube)(value)
