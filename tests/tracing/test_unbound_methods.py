"""Methods that are read of NumPy's classes and given traced values, and what a traced value gives as an array."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.testing import check_grads

X = np.array([1.0, 2.0, 3.0])
ONE_PROGRAM: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.ndarray.sum(x * x),
    "item": lambda x: np.ndarray.item(x * x, 1) * 2.0,
    "reshape": lambda x: np.ndarray.reshape(x * x, (3, 1))[1, 0],
    "operator": lambda x: np.ndarray.__mul__(x, x)[1],
    "copy": lambda x: np.ndarray.copy(x)[1] ** 2,
    "in a map": lambda x: sum(map(np.ndarray.sum, [x, x * x])),
    "of a number": lambda x: float.__mul__(float(x[0]), 2.0) + np.float64.__add__(x[1], x[2] ** 2),
    "__array__": lambda x: (x**2).__array__().sum(),
    "__array__ of a number": lambda x: x.sum().__array__()[()] ** 2,
    "__array__ of a dtype": lambda x: (x**2).__array__(np.float64)[1],
    "view as an array": lambda x: (x**2).view(np.ndarray).sum(),
}


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_a_method_of_a_class_is_that_of_the_traced_value(name: str) -> None:
    f = ONE_PROGRAM[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, _ = sg.value_and_grad(f)(X)
    assert value == f(X)
    check_grads(f, (X,))


def test_a_method_of_another_class_raises_as_in_python() -> None:
    with pytest.raises(TypeError, match=r"'item' for 'numpy\.ndarray' objects"):
        sg.grad(lambda x: np.ndarray.item(x.sum()))(X)


class Labelled(np.ndarray):
    label = ""


def test_a_view_as_a_class_derived_from_numpys_says_what_to_do() -> None:
    for f in (lambda x: (x * 2.0).view(Labelled).sum(), lambda x: (x * 2.0).view(type=Labelled).sum()):
        with pytest.raises(sg.errors.UnsupportedError, match="Labelled, derived from NumPy's") as caught:
            sg.grad(f)(X)
        assert "an attribute" in str(caught.value.hint)
