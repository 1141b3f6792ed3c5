"""Literals: arrays of one number are that number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Literal, literal
from srcgrad.ir.types import ArrayType


def of(array: np.ndarray[Any, Any]) -> Literal:
    return literal(array, ArrayType(array.dtype, array.shape))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "c8", "i8", "i1", "u2", "?"])
@pytest.mark.parametrize("size", [1, 2, 1000, (1 << 15) - 1, 1 << 15, (1 << 16) + 3, 200_000])
def test_an_array_of_one_number_is_a_splat_and_with_another_one_not(size: int, dtype: str) -> None:
    """However long it is: a captured ``np.zeros((300, 300))`` was a constant of 90,000 zeros."""
    array = np.full(size, 1).astype(dtype)
    assert of(array).splat and of(array).value == 1
    for place in {0, size // 2, size - 1} if size > 1 else ():
        other = array.copy()
        other[place] = 0
        assert not of(other).splat
        np.testing.assert_array_equal(of(other).value, other)


def test_bits_decide_whether_numbers_are_one() -> None:
    assert of(np.full(5, np.nan)).splat and of(np.full((2, 3), -0.0)).splat
    assert not of(np.array([0.0, -0.0])).splat and not of(np.array([1 + 0j, complex(1, -0.0)])).splat
    assert np.signbit(of(np.full((2, 3), -0.0)).value)


def test_arrays_of_any_strides() -> None:
    x = np.zeros((4, 6))
    x[:, 1::2] = 1.0
    assert of(x[:, ::2]).splat and of(x.T[1::2]).splat and of(x[::-1, ::-2]).splat and not of(x.T).splat
    assert of(np.broadcast_to(3.0, (1 << 20, 1 << 20))).splat  # of 8 TB
    assert not of(np.broadcast_to(np.arange(3.0), (4, 3))).splat


def test_large_constants_of_one_number_are_short_in_a_program() -> None:
    def padded(x: Any) -> Any:
        return np.sum(np.pad(x, 1)[1:-1, :-2] * x + np.ones((300, 300)))

    assert len(str(sg.explain(sg.grad(padded))(np.ones((300, 300)))["optimised ir"])) < 2000


def test_types_and_constants_have_the_dtypes_that_entry_points_look_for() -> None:
    """``newbyteorder`` makes equal dtypes that are other objects: machine code left each such constant to Python."""
    other = np.dtype(np.float64).newbyteorder("=")
    assert other is not np.dtype(np.float64)
    type = ArrayType(other, (3, 91))
    assert type.dtype is np.dtype(np.float64)
    assert literal(np.arange(273, dtype=other).reshape(3, 91), type).value.dtype is np.dtype(np.float64)
    assert ArrayType(np.dtype(">f8"), (3, 92)).dtype == np.dtype(">f8")
