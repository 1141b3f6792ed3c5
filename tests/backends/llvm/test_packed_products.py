"""Products of large matrices by our own code: all edges of tiles, blocks, panels and slabs, any number of threads."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm import workers
from srcgrad.backends.llvm.steps import blas, packed_products, step_for
from srcgrad.backends.llvm.steps.packed_products import DEPTH, ROWS, STRIPS
from srcgrad.backends.llvm.target import TARGET
from tests.backends.llvm import steps_support
from tests.backends.llvm.steps_support import make_operation, native
from tests.backends.llvm.test_linear_algebra_steps import agree, bound, product, random

DTYPES = packed_products.DTYPES
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(
    not packed_products.is_available(TARGET, np.dtype(np.float64)), reason="BLAS computes large products here"
)


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product of matrices is computed so, and what results hold before is nan."""
    monkeypatch.setattr(blas, "UNPACKED", 0)
    monkeypatch.setattr(blas, "UNPACKED_LONGER", 0)
    monkeypatch.setattr(blas, "SMALL", 0)
    monkeypatch.setattr(steps_support, "_FILL", 0xFF)


def check(m: int, n: int, k: int, dtype: Any, left: bool = False, right: bool = False, **given: Any) -> None:
    a, b, attrs = product(m, n, k, dtype, given.get("stack", ()), left, right)
    step = step_for(make_operation("dot_general", a, b, **attrs)[0], "step", TARGET)
    assert step is not None and set(step.symbols) == {f"srcgrad_product_{dtype}"}
    agree("dot_general", a, b, ulps=bound(k, dtype), **attrs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_edge_of_a_tile(dtype: str) -> None:
    for m, n in itertools.product((2, ROWS - 1, ROWS, ROWS + 1), (2, 7, 9, 15, 16, 17, 31, 32, 33)):
        for left, right in itertools.product((False, True), repeat=2):
            check(m, n, 2 + (m * n) % 19, dtype, left, right)


SIZES = [
    (STRIPS * ROWS, 64, DEPTH),
    (STRIPS * ROWS + 1, 50, DEPTH + 1),
    (STRIPS * ROWS - 1, 50, DEPTH - 1),
    (2 * STRIPS * ROWS + 3, 70, 3 * DEPTH + 5),
    (30, packed_products.COLUMNS, 20),
    (30, packed_products.COLUMNS + 1, 20),
    (100, 2 * packed_products.COLUMNS + 77, 9),
    (400, 1100, 30),
    (1000, 40, 3),
]
"""Several blocks of rows, panels and parts of columns, slabs of the depth; the last of each whole, or nearly empty."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_blocks_panels_and_slabs(sizes: tuple[int, int, int], dtype: str) -> None:
    for left, right in itertools.product((False, True), repeat=2):
        check(*sizes, dtype, left, right)


def test_stacks_of_matrices() -> None:
    check(20, 30, 40, "float64", stack=(3, 2))
    check(40, 70, 300, "float32", True, True, stack=(2,))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_stays_in_its_row_and_column(dtype: str) -> None:
    """The copies hold elements of other rows, and zeros, where a strip is not full."""
    for m, n, k in ((13, 19, 11), (97, 40, 300)):
        for place, value in itertools.product(((m - 1, k - 1), (0, 0), (m // 2, k // 2)), (np.inf, np.nan)):
            a, b, attrs = product(m, n, k, dtype)
            a[place] = value
            b[k // 3, n - 1] = -np.inf
            agree("dot_general", a, b, ulps=bound(k, dtype), **attrs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_with_the_transposed_matrix_is_that_of_two_arrays_and_symmetric(dtype: str) -> None:
    """Of one array half of it is computed and mirrored: bit by bit what it is of two that are equal."""
    edges = [(2, 9), (ROWS, 3), (ROWS + 1, 40), (17, 5), (63, 64), (210, DEPTH + 34), (2 * STRIPS * ROWS + 3, 11)]
    for (rows, depth), axis in itertools.product([*edges, (packed_products.COLUMNS + 21, 3)], (0, 1)):
        x = random(rows, depth, dtype=dtype) if axis else random(depth, rows, dtype=dtype)
        compiled = native(make_operation("dot_general", x, x, contract=((axis,), (axis,)), batch=((), ()))[0])
        assert compiled is not None
        (status, (found,)), (_, (known,)) = compiled(x, x), compiled(x, x.copy())
        assert status == 0
        np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, x @ x.T if axis else x.T @ x, atol=depth * 40 * np.finfo(dtype).eps)


def test_long_sums_do_not_lose_digits() -> None:
    a, b = np.full((8, 60000), 0.1, np.float32), np.ones((60000, 16), np.float32)
    compiled = native(make_operation("dot_general", a, b, contract=((1,), (0,)), batch=((), ()))[0])
    assert compiled is not None
    np.testing.assert_allclose(compiled(a, b)[1][0], float(np.float32(0.1)) * 60000, rtol=2e-5)


PROGRAM = """
import hashlib
import numpy as np
from tests.backends.llvm.steps_support import make_operation, native

found = hashlib.sha256()
for m, n, k in ((200, 190, 210), (400, 1300, 30), (97, 170, 600)):
    a, b = np.random.default_rng(0).normal(size=(m, k)), np.random.default_rng(1).normal(size=(k, n))
    compiled = native(make_operation("dot_general", a, b, contract=((1,), (0,)), batch=((), ()))[0])
    assert set(compiled.step.symbols) == {"srcgrad_product_float64"}
    square = native(make_operation("dot_general", a, a, contract=((1,), (1,)), batch=((), ()))[0])
    for _ in range(5):
        found.update(compiled(a, b)[1][0].tobytes())
        found.update(square(a, a)[1][0].tobytes())
print(found.hexdigest())
"""


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    found = set()
    for threads in (1, 2, 5):
        environment = {**os.environ, workers.VARIABLE: str(threads)}
        command = [sys.executable, "-c", PROGRAM]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr[-3000:]
        found.add(ran.stdout)
    assert len(found) == 1


def test_products_that_are_not_large_are_computed_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for m, n, k in ((160, 160, 160), (64, 500, 500)):
        a, b, attrs = product(m, n, k, np.float64)
        step = step_for(make_operation("dot_general", a, b, **attrs)[0], "step", TARGET)
        assert step is not None and not step.symbols
    check(162, 162, 162, "float64")
    check(64, 520, 520, "float64", False, True)
