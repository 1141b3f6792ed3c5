"""Objects that give NumPy an array by ``__array__``, of what is traced: values, derivatives, what is traced once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

X = np.array([[3.0, 0.1, 0.2], [0.3, 3.2, 0.1], [0.2, 0.1, 2.9]])
FIXED = np.arange(9.0).reshape(3, 3) ** 0.5


class Cell:
    """An array by its protocol, with methods of its own."""

    def __init__(self, array: Any) -> None:
        array = np.asarray(array, dtype=float)
        assert array.shape == (3, 3)
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array

    @property
    def volume(self) -> Any:
        return np.abs(np.linalg.det(self))

    @property
    def T(self) -> Any:
        return np.asarray(self).T


class Reflected(Cell):
    __array_priority__ = 10.0

    def __rmatmul__(self, other: Any) -> Any:
        return 2.0 * (other @ self.array)


class Ordinary(Cell):
    def __rmatmul__(self, other: Any) -> Any:
        raise AssertionError("NumPy does not leave the product to this class")


def assigned(x: Any) -> Any:
    y = np.zeros_like(x)
    y[:] = Cell(x**2)
    return y


LIKES: dict[str, Callable[[Any], Any]] = {
    "a function of NumPy's": lambda x: Cell(x).volume * Cell(x).T,
    "a ufunc": lambda x: np.exp(Cell(x)) + np.add(x, Cell(x * x)),
    "np.array": lambda x: np.array(Cell(x)) * 3.0 + np.asarray(Cell(x * x)),
    "by keyword": lambda x: np.sum(a=Cell(x), axis=0),
    "an array before it": lambda x: FIXED @ Cell(x) + FIXED * Cell(x),
    "a traced array before it": lambda x: x @ Cell(x) - x / Cell(x),
    "an array behind it": lambda x: np.matmul(Cell(x), FIXED),
    "its class knows the operator": lambda x: FIXED @ Reflected(x) + x @ Reflected(x),
    "NumPy leaves nothing to its class": lambda x: FIXED @ Ordinary(x) + x @ Ordinary(x),
    "assigned": assigned,
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", LIKES)
def test_objects_that_give_numpy_a_traced_array(name: str, backend: str) -> None:
    weights = np.cos(np.arange(3.0))

    def loss(x: Any) -> Any:
        return np.sum(np.asarray(LIKES[name](x.reshape(3, 3))) * weights)

    require_one_program(loss, backend, X.ravel(), X.ravel() + 0.1)
    sg.testing.check_grads(loss, (X.ravel(),))


def test_a_class_that_does_itself_what_numpy_is_asked_is_left_to_it() -> None:
    class Own(Cell):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
            return 7.0 * self.array

    slope = sg.grad(lambda x: np.sum(np.exp(Own(x))))(X)
    np.testing.assert_array_equal(slope, np.full((3, 3), 7.0))
