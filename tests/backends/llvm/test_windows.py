"""Known indices that are affine, as those of sliding windows: loops read what they show where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import srcgrad as sg
from srcgrad.backends.llvm.indices import Line, affine
from srcgrad.ir.core import literal
from srcgrad.ir.types import INT64, ArrayType


def index_of(values: Any) -> Any:
    array = np.asarray(values)
    return literal(array, ArrayType(INT64, array.shape))


@pytest.mark.parametrize(
    ("values", "size", "line"),
    [
        (np.arange(5)[:, None] + np.arange(3), 7, Line(0, (1, 1))),
        (6 - 2 * np.arange(4), 7, Line(6, (-2,))),
        ([-1, -2, -3], 7, Line(6, (-1,))),
        (np.arange(5)[:, None] + np.arange(3), 6, None),
        ([0, 1, 3], 7, None),
        ([-1, 0, 1], 7, None),
        ([0, 1, 7], 7, None),
        (np.array([[0, 1], [2, 4]]), 7, None),
        ([3], 7, Line(3, (0,))),
        (np.zeros((0, 3), np.int64), 7, None),
    ],
)
def test_indices_that_are_affine(values: Any, size: int, line: Line | None) -> None:
    assert affine(index_of(values), size) == line


INDICES = st.one_of(
    st.tuples(st.integers(-6, 5), st.integers(-2, 2), st.integers(-2, 2)).map(
        lambda t: t[0] + t[1] * np.arange(3)[:, None] + t[2] * np.arange(2)
    ),
    st.tuples(st.integers(-6, 5), st.integers(-2, 2)).map(lambda t: t[0] + t[1] * np.arange(4)),
    st.lists(st.integers(-6, 5), min_size=1, max_size=4).map(np.array),
).filter(lambda index: bool(np.all((index >= -6) & (index < 6))))


@settings(max_examples=40, deadline=None)
@given(INDICES, st.integers(0, 2), st.booleans())
def test_values_and_gradients_are_those_of_numpys_programs(index: Any, axis: int, reduced: bool) -> None:
    x = np.cos(np.arange(6.0**3)).reshape(6, 6, 6)

    def f(x: Any) -> Any:
        found = np.exp(np.moveaxis(np.moveaxis(x, axis, 0)[index], 0, -1)) * 0.5
        return np.sum(found, axis=1) if reduced else found

    def total(x: Any) -> Any:
        return np.sum(np.sin(f(x)))

    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(sg.grad(total)(x), sg.grad(total, backend="numpy")(x), rtol=1e-12, atol=1e-14)


def test_sums_over_windows_gather_nothing() -> None:
    x, w = np.cos(np.arange(120.0)).reshape(10, 12), np.sin(np.arange(9.0)).reshape(3, 3)

    def filtered(x: Any) -> Any:
        return np.sum(sliding_window_view(x, (3, 3)) * w, axis=(2, 3))

    found = sg.explain(sg.jit(filtered))(x)["llvm source"]
    assert "gather ->" not in found and "transpose" not in found.split("declare")[0]
    np.testing.assert_allclose(sg.jit(filtered)(x), filtered(x), rtol=1e-12, atol=1e-14)
