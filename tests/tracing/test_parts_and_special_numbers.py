"""Writes to parts of arrays, casts by assignment, masked ufuncs, and numbers that are easy to get wrong: as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tracing.trace_support import compare

X = np.array([1.5, -2.0, 0.25])
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 2.5])
PAIRS = tuple(axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))


def real_part(x: Any, z: Any) -> Any:
    z.real[1:] = x[1:]
    return z


def imaginary_part(x: Any, z: Any) -> Any:
    z.imag[:2] = 2.0 * x[:2]
    z.imag[2] += 1.0
    return z


def both_parts(x: Any, z: Any) -> Any:
    z.real, z.imag = z.imag, x
    return z


@pytest.mark.parametrize("f", [real_part, imaginary_part, both_parts])
def test_writes_to_the_parts_of_complex_arrays(f: Callable[..., Any]) -> None:
    compare(f, [X, X * (1 - 2j) + 1j])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128, np.bool_])
def test_assignment_casts(dtype: Any) -> None:
    def f(x: Any) -> Any:
        a = np.zeros_like(x, dtype=dtype)
        a[:2] = x[1:]
        a[np.array([2])] = x[0]
        return a

    compare(f, [X])


def test_where_leaves_the_rest_of_out() -> None:
    def f(x: Any, y: Any) -> Any:
        out = 10.0 * x
        np.multiply(x, y, out=out, where=np.array([True, False, True]))
        np.sqrt(np.abs(y), out=out, where=x < 0)
        return out

    compare(f, [X, np.array([4.0, 9.0, -16.0])])


@pytest.mark.parametrize("ufunc", [np.fmax, np.fmin, np.maximum, np.minimum, np.copysign, np.hypot, np.logaddexp2])
def test_binary_ufuncs_of_special_numbers(ufunc: Any) -> None:
    compare(lambda x, y: ufunc(x, y), PAIRS)


@pytest.mark.parametrize("ufunc", [np.signbit, np.sign, np.reciprocal, np.positive, np.rint])
def test_unary_ufuncs_of_special_numbers(ufunc: Any) -> None:
    compare(lambda x: ufunc(x), [SPECIAL])


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": -2}])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply])
def test_axes_of_accumulate(ufunc: Any, options: dict[str, Any]) -> None:
    compare(lambda x: ufunc.accumulate(x, **options), [np.arange(1.0, 7.0).reshape(2, 3)])
