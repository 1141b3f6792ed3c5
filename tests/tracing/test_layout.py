"""Views and copies follow the memory layout of arrays, as in NumPy: what a write reaches depends on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

Array = np.ndarray[Any, Any]


def ravel_of_transposed_result(x: Any) -> Any:
    result = x.T * 2
    flat = result.ravel()
    flat[0] = 100.0
    return result.sum() + flat.sum()


def reshape_of_argument(x: Any) -> Any:
    flat = x.reshape(-1)
    flat[0] = 7.0
    return (x * x).sum()


def reshape_of_like(x: Any) -> Any:
    total = np.zeros_like(x)
    flat = total.reshape(-1)
    flat[:] = np.sin(x).ravel()
    return (total * x).sum()


def reshape_of_copy(x: Any) -> Any:
    other = np.copy(x)
    flat = other.reshape(-1)
    flat[1] = x[0, 0]
    return (other * x).sum()


def reshape_of_cast(x: Any) -> Any:
    other = x.astype(np.float64)
    other.reshape(-1)[2] = 5.0
    return (other * x).sum()


def reshape_of_where(x: Any) -> Any:
    chosen = np.where(x > 2, x, -x)
    chosen.reshape(-1)[1] = 9.0
    return chosen.sum()


def ravel_of_sum_of_layouts(x: Any) -> Any:
    total = x.T + x.T.copy()
    flat = total.ravel()
    flat[0] = x[0, 1] ** 2
    return total.sum()


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: x.copy(),
    "F": np.asfortranarray,
    "transposed": lambda x: x.T.copy().T,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed rows": lambda x: x[::-1].copy()[::-1],
    "slice of rows": lambda x: np.vstack([x, x])[: x.shape[0]],
}
FUNCTIONS = [
    ravel_of_transposed_result,
    reshape_of_argument,
    reshape_of_like,
    reshape_of_copy,
    reshape_of_cast,
    reshape_of_where,
    ravel_of_sum_of_layouts,
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_views_and_copies_follow_the_layout(function: Callable[[Any], Any], layout: str) -> None:
    x = np.arange(6.0).reshape(2, 3)
    make = LAYOUTS[layout]
    expected = function(make(x))
    given = make(x)
    assert sg.value_and_grad(function)(given)[0] == pytest.approx(expected, rel=1e-14)
    np.testing.assert_array_equal(given, x)


def test_layout_is_part_of_the_signature() -> None:
    """A program for a C-ordered argument must not serve one in F order."""
    x = np.arange(6.0).reshape(2, 3)
    compiled = sg.jit(ravel_of_transposed_result)
    for make in (*LAYOUTS.values(), *reversed(LAYOUTS.values())):
        assert compiled(make(x)) == ravel_of_transposed_result(make(x))
