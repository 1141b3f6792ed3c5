"""Traced arrays beside Python's objects and numbers: None, texts, keys of dictionaries, places, bounds of a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

BACKENDS = ["numpy", "llvm"]
X = np.array([[0.5, 2.0], [1.5, -1.0]])


def comparisons(x: Any) -> Any:
    return x == None, x != None, x == "a", np.count_nonzero(x != "a"), (x[0] == None).shape, x != {}  # noqa: E711


def places(x: Any) -> Any:
    return x.item((0, 1)), x.item((1, 0)), x.item(3), x.item(1, 1)


def truths_as_keys(x: Any) -> Any:
    signs = {True: 2.0, False: -3.0}
    return {True: 1.0, False: 4.0}[x[0, 0] > 1] * x[0, 0] + signs[x[1, 0] > 1] * x[1, 0]


def truths_of_a_number_as_keys(x: Any) -> Any:
    return {True: 2.0, False: 3.0}[x > 1] * x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [comparisons, places, truths_as_keys])
@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_arrays_are_compared_indexed_and_keys_as_in_numpy(function: Callable[[Any], Any], backend: str) -> None:
    for x in (X, X[::-1].copy()):
        found, expected = sg.jit(function, backend=backend)(x), function(x)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for one, other in zip(found, expected, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_number_is_no_none(backend: str) -> None:
    assert sg.jit(lambda x: 2 * x if x == None else 3 * x, backend=backend)(2.0) == 6.0  # noqa: E711
    with pytest.raises(ValueError, match="ambiguous"):
        sg.jit(lambda x: 2 * x if x == None else 3 * x, backend=backend)(X)  # noqa: E711


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_slope_of_a_value_that_a_truth_chooses(backend: str) -> None:
    for x in (0.5, 2.0, np.float64(0.5), np.float64(2.0)):
        assert sg.grad(truths_of_a_number_as_keys, backend=backend)(x) == (2.0 if x > 1 else 3.0)
    np.testing.assert_array_equal(sg.grad(truths_as_keys, backend=backend)(X), [[4.0, 0.0], [2.0, 0.0]])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_clip_with_bounds_beyond_the_range_of_the_dtype(dtype: Any, backend: str) -> None:
    x = np.array([np.iinfo(dtype).min, 0, 7, np.iinfo(dtype).max], dtype)
    for low, high in ((-300, 300), (-(2**70), 2**70), (3, 2**70), (-(2**70), 5), (None, 2**70), (0, 100)):
        try:
            expected: Any = np.clip(x, low, high)
        except OverflowError:
            with pytest.raises(OverflowError):
                sg.jit(lambda x, low=low, high=high: np.clip(x, low, high), backend=backend)(x)
            continue
        found = sg.jit(lambda x, low=low, high=high: np.clip(x, low, high), backend=backend)(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_out_of_range_are_overflow_errors(backend: str) -> None:
    def clipped(x: Any) -> Any:
        try:
            return np.maximum(x, -3)
        except OverflowError:
            return x

    x = np.array([0, 7], np.uint8)
    np.testing.assert_array_equal(sg.jit(clipped, backend=backend)(x), clipped(x))
    with pytest.raises(sg.errors.RangeError, match="-3 out of bounds"):
        sg.jit(lambda x: np.maximum(x, -3), backend=backend)(x)
