"""np.delete and np.insert at a place that is known when the program runs: leave-one-out loops are one region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import IndexingError

X = np.arange(12.0).reshape(3, 4) / 7
CASES: dict[str, Any] = {
    "delete": lambda x, i: np.delete(x, i),
    "delete a row": lambda x, i: np.delete(x, i, 0),
    "delete a column": lambda x, i: np.delete(x, i, axis=-1),
    "insert a number": lambda x, i: np.insert(x, i, 9.0),
    "insert numbers": lambda x, i: np.insert(x, i, [1.0, 2.0], axis=None),
    "insert a row": lambda x, i: np.insert(x, i, x[0] * 2, axis=0),
    "insert a column": lambda x, i: np.insert(x, i, x[:, 1] ** 2, axis=1),
    "insert rows": lambda x, i: np.insert(x, i, x[:, :2].T, axis=1),
    "insert what is cast": lambda x, i: np.insert(x, i, 3, axis=1),
}


def numpys(function: Any, x: Any, i: int) -> Any:
    try:
        return function(x, i)
    except IndexError:
        return None


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_a_place_is_where_numpy_has_it(name: str, backend: str) -> None:
    compiled = sg.jit(CASES[name], backend=backend)
    for i in (0, 1, 2, 3, 4, 12, 13, -1, -3, -4, -5, -12, -13):
        expected = numpys(CASES[name], X, i)
        place = np.array(i)
        if expected is None:
            with pytest.raises(IndexError):
                compiled(X, place)
        else:
            np.testing.assert_array_equal(compiled(X, place), expected)
            weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
            sg.testing.check_grads(lambda x, at=place, w=weights: np.sum(CASES[name](x, at) * w), (X,), order=1)


def jackknife(x: Any) -> Any:
    """The variance of leave-one-out estimates."""
    found = np.zeros(len(x))
    for i in range(len(x)):
        found[i] = np.std(np.delete(x, i)) ** 3
    return np.sum((found - found.mean()) ** 2)


def determinant(a: Any) -> Any:
    n = a.shape[0]
    if n == 1:
        return a[0, 0]
    total = 0.0
    for j in range(n):
        total = total + (-1) ** j * a[0, j] * determinant(np.delete(np.delete(a, 0, 0), j, 1))
    return total


def shifted(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.sum(np.insert(x, i, x[i] * 2.0) * np.arange(len(x) + 1.0) ** 2)
    return total


@pytest.mark.parametrize("function", [jackknife, shifted], ids=lambda f: f.__name__)
def test_loops_that_leave_out_one_are_one_region(function: Any) -> None:
    x = np.cos(np.arange(20.0) ** 2)
    gradient = sg.grad(function)
    assert "of 20 trips" in (text := sg.explain(gradient)(x)["how it runs"]) and "unrolled" not in text
    sg.testing.check_grads(function, (x,), order=1)


def test_a_determinant_by_cofactors_is_loops() -> None:
    """It was written out: of 5 by 5 it took 10 s to compile."""
    a = np.cos(np.arange(25.0).reshape(5, 5) ** 2)
    value, slope = sg.value_and_grad(determinant)(a)
    np.testing.assert_allclose(value, np.linalg.det(a))
    np.testing.assert_allclose(slope, np.linalg.det(a) * np.linalg.inv(a).T)
    assert len(str(sg.explain(sg.grad(determinant))(a)["derivative ir"])) < 60_000


def test_a_place_out_of_bounds_is_named() -> None:
    with pytest.raises((IndexError, IndexingError), match="index 5 is out of bounds for axis 0 with size 3"):
        sg.jit(CASES["delete a row"])(X, np.array(5))
