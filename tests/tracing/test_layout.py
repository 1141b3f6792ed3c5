"""Views and copies follow the memory layout of arrays, as in NumPy: what a write reaches depends on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.lowering import lower
from srcgrad.tracing.layout import elementwise_strides, strides_of

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


sizes = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(sizes, st.data())
@settings(max_examples=60, deadline=None)
def test_results_lie_as_numpys_ufuncs_lay_them(shape: list[int], data: st.DataObject) -> None:
    def drawn() -> Array:
        order = data.draw(st.permutations(range(len(shape))))
        array = np.empty([shape[k] for k in order]).transpose(np.argsort(order))
        steps = [data.draw(st.sampled_from([1, -1])) for _ in shape]
        array = array[tuple(slice(None, None, step) for step in steps)]
        return array[tuple(slice(0, data.draw(st.sampled_from([1, size]))) for size in shape)]

    operands = [drawn(), drawn()]
    result = np.add(*operands)
    found = elementwise_strides(operands, result.dtype)
    expected = strides_of(result)
    assert (found is None) == (expected is None)
    if found is not None:
        assert [s for s, size in zip(found, result.shape, strict=True) if size > 1] == [
            s for s, size in zip(result.strides, result.shape, strict=True) if size > 1
        ]


def differences(x: Any) -> Any:
    return np.sum(np.abs(x[:, None] - x))


def differences_turned(x: Any) -> Any:
    apart = (x[:, None] * x).T
    return np.sum((apart + apart.T).reshape(4, -1, 1)[0])


@pytest.mark.parametrize("function", [differences, differences_turned])
def test_tracing_takes_no_memory_for_arrays_that_a_loop_keeps_in_registers(function: Callable[[Any], Any]) -> None:
    """Two terabytes of differences are one loop that needs none of them."""
    lower(sg.jit(function), (np.ones(1 << 19),), {})
