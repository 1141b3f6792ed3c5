"""Columns of short rows, as ``x[:, 0]`` and ``x[::2]``: whole vectors are read and sorted in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.shapes import columns_of
from srcgrad.backends.llvm.target import TARGET
from tests.backends.llvm.support import OPS, build, groups, normal, total

SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130, 1000]


def column(x: Any, k: int, *, start: int = 0) -> Any:
    n = x.shape[0]
    part = OPS["slice"](x, starts=(start, k), limits=(n, k + 1), strides=(1, 1))
    return OPS["reshape"](part, shape=(n - start,))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "i8", "?"])
@pytest.mark.parametrize("width", [2, 3, 4, 5])
@pytest.mark.parametrize("n", SIZES)
def test_columns_in_any_order(n: int, width: int, dtype: str) -> None:
    x = (3 * normal(n, width, seed=n + width)).astype(dtype)

    def rule(x: Any) -> Any:
        return tuple(OPS["identity"](column(x, k)) for k in range(width)), column(x, width - 1) + column(x, 0)

    def flat(x: Any) -> Any:
        found, last = rule(x)
        return (*found[::-1], last)

    *found, last = BACKEND.compile(build(flat, x)).run(x)
    for k in range(width):
        np.testing.assert_array_equal(found[width - 1 - k], x[:, k])
    np.testing.assert_array_equal(last, x[:, -1] + x[:, 0])


@pytest.mark.parametrize("start", range(3))
@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("n", [5, 8, 16, 23, 24, 25, 48, 49, 50, 51, 200, 1001])
def test_every_so_many_elements(n: int, stride: int, start: int) -> None:
    """The last one that is read may be the last of all, or not."""
    x = normal(n, seed=n)

    def rule(x: Any) -> Any:
        return np.exp(x[start::stride]), x[start::stride][1:] * x[start::stride][:-1], np.sum(x[start::stride])

    for found, wanted in zip(sg.jit(rule, backend="llvm")(x), rule(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_which_statements_read_columns_of_the_same_rows() -> None:
    def rule(x: Any) -> Any:
        ends = [column(x, 0), column(x, 2), column(x, 1, start=1)]
        return ends[0] + ends[1], ends[2] * 2.0

    found = [sorted(map(len, columns_of(group).values())) for group in groups(rule, normal(20, 3)).groups]
    assert sorted(found) == [[1], [2, 2]]
    assert not columns_of(groups(lambda x: column(x, 1) + 1.0, normal(20, 5)).groups[0])


def test_columns_are_not_gathered() -> None:
    x = normal(64, 3)
    text = BACKEND.compile(build(lambda x: column(x, 0) * column(x, 2), x)).source
    assert "gather" not in text and ("shufflevector" in text or TARGET.vector_bytes == 8)


# --- no more is read than there is -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2"])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 8, 16, 24, 25, 40, 64])
def test_nothing_beyond_the_array_is_read(n: int, width: int, dtype: str, page: np.ndarray[Any, Any]) -> None:
    size = n * width * np.dtype(dtype).itemsize
    wanted = (3 * normal(n, width)).astype(dtype)
    for memory in (page[:size], page[page.size - size :]):
        x = memory.view(dtype).reshape(n, width)
        x[...] = wanted
        for k in range(width):
            rule = build(lambda x, k=k: (OPS["identity"](column(x, k)), total(column(x, k))), x)
            found, added = BACKEND.compile(rule).run(x)
            np.testing.assert_array_equal(found, wanted[:, k])
            np.testing.assert_allclose(added, wanted[:, k].sum(dtype=added.dtype), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 63, 64, 65])
def test_every_other_element_up_to_the_end_of_a_page(n: int, page: np.ndarray[Any, Any]) -> None:
    x = page[page.size - 8 * n :].view(np.float64)
    x[...] = normal(n)
    for start in range(min(n, 2)):
        found = sg.jit(lambda x, start=start: x[start::2] * 2.0, backend="llvm")(x)
        np.testing.assert_array_equal(found, x[start::2] * 2.0)
