"""Loops that read and write arrays element by element, or row by row: in place, and without copies of the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.backend import BACKEND
from tests.backends.llvm.support import OPS, agree, build, normal
from tests.backends.llvm.support import run as run_rule


def factorised(a: Any) -> Any:
    """Gauss's elimination, number by number."""
    a, n = a.copy(), a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    found = 0.0
    for k in range(n):
        found += np.log(a[k, k])
    return found


def eliminated(a: Any) -> Any:
    """The same row by row: rows that are read are kept for the derivative, and others written."""
    a, n = a.copy(), a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i] -= a[k] * (a[i, k] / a[k, k])
    return np.sum(np.log(np.diag(a)))


def swept(a: Any) -> Any:
    """Gauss and Seidel, in place."""
    a, (n, m) = a.copy(), a.shape
    for _ in range(3):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return np.sum(a**2)


def aligned(a: Any) -> Any:
    """A distance between rows and columns, by lists of lists as Python has them."""
    n, m = a.shape
    d = np.zeros((n + 1, m + 1))
    for i in range(n):
        for j in range(m):
            d[i + 1][j + 1] = min(d[i][j] + a[i][j] ** 2, d[i][j + 1] + 1, d[i + 1][j] + 1)
    return d[n][m]


def shifted(a: Any) -> Any:
    """Rows that are read before they are written, and used after it."""
    a, n = a.copy(), a.shape[0]
    found = 0.0
    for i in range(n - 1):
        row, other = a[i], a[i + 1].copy()
        a[i + 1] = row * 0.5 + other
        found += np.sum(other * row * a[i + 1])
    return found


PROGRAMS = {f.__name__: f for f in (factorised, eliminated, swept, aligned, shifted)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [4, 19])
def test_values_and_derivatives(name: str, n: int) -> None:
    f, x = PROGRAMS[name], 0.3 * normal(n, n) + n * np.eye(n)
    np.testing.assert_allclose(sg.jit(f, backend="llvm")(x), f(x), rtol=1e-12)
    found, wanted = (sg.grad(f, backend=backend)(x) for backend in ("llvm", "numpy"))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    _, slope = sg.jvp(f, (x,), (np.sin(x),), backend="llvm")
    np.testing.assert_allclose(slope, np.sum(wanted * np.sin(x)), rtol=1e-10)


COPIES = {"factorised": (1, 2), "eliminated": (1, 3), "swept": (1, 1), "aligned": (1, 3), "shifted": (1, 3)}
"""By program how often arrays are copied whole, in the value and in the gradient: before loops, and results."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_trip_copies_an_array(name: str) -> None:
    f, x = PROGRAMS[name], 0.3 * normal(41, 41) + 41 * np.eye(41)
    for function, most in zip((sg.jit(f, backend="llvm"), sg.grad(f, backend="llvm")), COPIES[name], strict=True):
        text = sg.explain(function)(x)["llvm source"]
        assert sum(text.count(f"i64 {n * n * 8}, i1 false") for n in (41, 42)) <= most


def test_a_part_that_is_read_after_its_array_is_written_over_is_copied() -> None:
    """Rather than the array; so is one that is written into the array itself."""
    x, v = normal(50, 60), normal(60, seed=1)

    def rule(x: Any, v: Any) -> Any:
        whole = x + 1.0
        two, three = (OPS["reduce_sum"](v * 0.0, axes=(0,)) for _ in range(2))
        two, three = (OPS["cast"](index, dtype=np.dtype(np.int64)) + k for index, k in ((two, 2), (three, 3)))
        row = OPS["gather"](whole, two, axis=0)
        first = OPS["scatter_set"](whole, v, two, axis=0)
        second = OPS["scatter_set"](first, row, three, axis=0)
        again = OPS["scatter_set"](second, OPS["gather"](second, two, axis=0), three + 1, axis=0)
        return again * 2.0, row * 3.0

    agree(rule, x, v)
    found, row = run_rule(rule, x, v)
    np.testing.assert_array_equal(found[3], 2 * (x[2] + 1))
    np.testing.assert_array_equal(found[[2, 4]], [2 * v, 2 * v])
    np.testing.assert_array_equal(row, 3 * (x[2] + 1))
    text = BACKEND.compile(build(rule, x, v)).source
    assert f"i64 {50 * 60 * 8}, i1 false" not in text and f"i64 {60 * 8}, i1 false" in text
