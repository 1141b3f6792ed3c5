"""Sorts and positions of extremes as native functions: long rows, columns, keys of which a part does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm.steps import extremes, sorts
from srcgrad.backends.llvm.target import TARGET, Target
from tests.backends.llvm.steps_support import make_operation, native

SHORT = Target(TARGET.triple, TARGET.cpu, frozenset({"sse2"}))
Array = np.ndarray[Any, Any]


def run(name: str, array: Array, axis: int, target: Target = TARGET) -> Array:
    operation, _ = make_operation(name, array, axis=axis)
    compiled = native(operation, target)
    assert compiled is not None, f"{name} of {array.dtype} has no step"
    status, (found,) = compiled(array)
    assert status == 0
    return found


def require(name: str, array: Array, axis: int, target: Target = TARGET) -> None:
    """The step gives what NumPy's stable sorts give, to the bits of all that is no nan."""
    found = run(name, array, axis, target)
    if name.startswith("arg") and name != "argsort":
        np.testing.assert_array_equal(found, getattr(np, name)(array, axis=axis))
        return
    wanted = getattr(np, name)(array, axis=axis, kind="stable")
    np.testing.assert_array_equal(found, wanted)
    if array.dtype.kind == "f" and name == "sort":
        same = np.isnan(wanted) | (np.signbit(found) == np.signbit(wanted))
        assert same.all(), "the sign of a zero"


def whole(random: np.random.Generator, size: int) -> Array:
    return random.integers(-5, 5, size).astype(float)


def with_zeros(random: np.random.Generator, size: int) -> Array:
    return random.choice([0.0, -0.0, -1.5, 2.5, np.nan, -np.nan, np.inf, -np.inf], size)


def clustered(random: np.random.Generator, size: int) -> Array:
    """Few values, and neighbours of these that differ in their last bits, of numbers far apart."""
    return random.choice([-1e30, 1.0, 3e-9], size) * (1 + random.integers(0, 4, size) * 2.0**-52)


def near(random: np.random.Generator, size: int) -> Array:
    """The same of numbers of one sign and few exponents: of a long row's keys the last bit alone has no room."""
    return random.choice([0.07, 0.5, 1.9], size) * (1 + random.integers(0, 4, size) * 2.0**-52)


def repeated(random: np.random.Generator, size: int) -> Array:
    return random.choice(random.normal(size=max(size // 8, 1)), size)


VALUES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda random, size: random.normal(size=size),
    "whole": whole,
    "zeros": with_zeros,
    "clustered": clustered,
    "near": near,
    "repeated": repeated,
    "equal": lambda random, size: np.full(size, 0.1),
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("size", [1, 2, 9, 33, 700])
def test_sorts_of_rows_are_numpys(values: str, size: int) -> None:
    row = VALUES[values](np.random.default_rng(size), size)
    for name in ("sort", "argsort"):
        require(name, row, 0)
        require(name, row.astype(np.float32), 0)


@pytest.mark.parametrize("values", VALUES)
def test_sorts_of_columns_are_numpys(values: str) -> None:
    array = VALUES[values](np.random.default_rng(3), 3 * 40 * 11).reshape(3, 40, 11)
    for name in ("sort", "argsort"):
        require(name, array, 1)
        require(name, array[:, :, :3], 1)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u4", "i2", "u1", "?", "f2"])
def test_sorts_of_other_dtypes_are_numpys(dtype: str) -> None:
    random = np.random.default_rng(11)
    raw = random.integers(0, 256, 8 * 300, dtype=np.uint8)
    wide = raw[:300] > 99 if dtype == "?" else raw.view(dtype)[:300]
    narrow = (raw[:300] % 7).astype(dtype)
    for array in (wide, narrow, np.stack([wide, narrow], 1)):
        for name in ("sort", "argsort"):
            require(name, array, 0)


def test_sorts_without_numpys_functions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorts, "sorter", lambda dtype: None)
    random = np.random.default_rng(5)
    for values in VALUES.values():
        for name in ("sort", "argsort"):
            require(name, values(random, 100), 0)


def test_a_function_that_does_not_sort_is_not_taken() -> None:
    found = sorts.sorter(np.dtype(np.float64))
    assert found is not None and sorts._does_sort(found, np.dtype(np.float64))
    other = sorts.sorter(np.dtype(np.int64))
    assert other is not None and not sorts._does_sort(other, np.dtype(np.float64))


@pytest.mark.parametrize("target", [TARGET, SHORT], ids=["host", "of 16 bytes"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("size", [3, 33, 500, 2 * extremes.BLOCK, 3 * extremes.BLOCK + 5])
def test_extremes_of_rows_are_the_first(name: str, size: int, target: Target) -> None:
    random = np.random.default_rng(size)
    # The extreme once anywhere, and in several places; nan after it, before it, at both ends.
    for places in ([0], [size - 1], [size // 2], random.integers(0, size, 4)):
        row = random.normal(size=size)
        row[places] = 9.0 if name == "argmax" else -9.0
        require(name, row, 0, target)
        for nan in ([size - 1], [0], random.integers(0, size, 2)):
            marked = row.copy()
            marked[nan] = np.nan
            require(name, marked, 0, target)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u8", "i4", "i2", "u1", "?"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_extremes_of_all_dtypes(name: str, dtype: str) -> None:
    random = np.random.default_rng(2)
    wide = random.integers(-3 if dtype[0] in "fi" else 0, 3, (2, 150, 75)).astype(dtype)
    if dtype.startswith("f"):
        wide[random.random(wide.shape) < 0.004] = np.nan
        wide[:, :, 7] = -np.inf if name == "argmax" else np.inf
    for axis in range(3):
        require(name, wide, axis)
        require(name, wide[:, :, :3], axis)
    require(name, np.zeros(100, dtype), 0)


def test_an_extreme_of_the_least_value_is_the_first() -> None:
    for name, value in (("argmax", -np.inf), ("argmin", np.inf)):
        require(name, np.full(5000, value), 0)
        require(name, np.concatenate([np.full(2600, value), [np.nan], np.full(90, value)]), 0)


@pytest.mark.parametrize("target", [TARGET, SHORT], ids=["host", "of 16 bytes"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
def test_extremes_of_few_columns_are_the_first_of_all_stretches_of_rows(dtype: str, target: Target) -> None:
    """Several stretches of the rows are looked at side by side: the earlier one counts where they are equal."""
    random = np.random.default_rng(5)
    for size, columns in [(1, 2), (5, 3), (8, 5), (9, 2), (15, 10), (18, 1), (103, 3), (103, 17)]:
        rows = random.integers(0, 2, (2, size, columns)).astype(dtype)
        if dtype.startswith("f"):
            rows[random.random(rows.shape) < 0.05] = np.nan
        for name in ("argmax", "argmin"):
            require(name, rows, 1, target)
