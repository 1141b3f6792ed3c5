"""Loops over rows whose bounds stand in an array of integers: sparse matrices, ragged data, graphs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower
from tests.control_flow.sliced import check, on_backends

N, NNZ = 80, 200
RNG = np.random.default_rng(0)
ROW = np.sort(RNG.integers(0, N, NNZ))
COLS = RNG.integers(0, N, NNZ)
PTR = np.searchsorted(ROW, np.arange(N + 1))
"""Some rows are empty."""
FULL = np.concatenate([[0], np.cumsum(RNG.integers(1, 5, N))])
"""None is."""
SMALL = FULL.astype(np.int32)
EVEN = np.arange(0, 3 * N + 1, 3)
TILES = np.array([0, 3, 4, 9])
EDGES = RNG.integers(0, N, (150, 2))
X = RNG.normal(size=NNZ + N)
LONG = RNG.normal(size=int(FULL[-1]))


def csr(z: Any) -> Any:
    vals, x = z[:NNZ], z[NNZ:]
    y = np.empty(N)
    for i in range(N):
        c = COLS[PTR[i] : PTR[i + 1]]
        v = vals[PTR[i] : PTR[i + 1]]
        y[i] = v @ x[c]
    return y


def csc(z: Any) -> Any:
    vals, x = z[:NNZ], z[NNZ:]
    y = np.zeros(N)
    for j in range(N):
        first, last = PTR[j], PTR[j + 1]
        y[COLS[first:last]] += vals[first:last] * x[j]
    return y


def added(z: Any) -> Any:
    y = np.zeros(N)
    for j in range(N):
        part = slice(PTR[j], PTR[j + 1])
        np.add.at(y, COLS[part], z[:NNZ][part] * z[NNZ + j])
        np.subtract.at(y, COLS[part], 0.5)
    return y


def assigned(z: Any) -> Any:
    y = z[NNZ:].copy()
    for j in range(N):
        y[COLS[PTR[j] : PTR[j + 1]]] = z[PTR[j] : PTR[j + 1]] ** 2
    return y


def softmax_rows(x: Any) -> Any:
    y = np.zeros_like(x)
    for s, e in zip(FULL[:-1], FULL[1:]):  # noqa: B905, RUF007
        row = np.exp(x[s:e] - x[s:e].max())
        y[s:e] = row / row.sum()
    return y


def rows_of_int32(x: Any) -> Any:
    y = np.zeros(N)
    for i in range(N):
        y[i] = np.mean(x[SMALL[i] : SMALL[i + 1]]) + np.var(x[SMALL[i] : SMALL[i + 1]])
    return y


def backwards(x: Any) -> Any:
    x = x.copy()
    for i in range(N - 1, 0, -1):
        x[FULL[i] : FULL[i + 1]] *= x[FULL[i] - 1]
        x[FULL[i - 1] : FULL[i]] += 0.1 * np.sum(x[FULL[i] : FULL[i + 1]])
    return x


def even_rows(x: Any) -> Any:
    y = np.zeros((N, 3))
    for i in range(N):
        y[i] = np.sort(x[EVEN[i] : EVEN[i + 1]]) * x[EVEN[i]]
    return y


def to_the_end(x: Any) -> Any:
    total = 0.0
    for i in range(N):
        total = total + np.mean(x[FULL[i] :]) / len(x[FULL[i] :]) + np.prod(x[: FULL[i + 1] - FULL[i]])
    return total


def of_matrix(x: Any) -> Any:
    x = x.reshape(-1, 2)
    y = np.zeros((N, 2))
    for i in range(N):
        rows = x[COLS[PTR[i] : PTR[i + 1]]]
        y[i] = rows.sum(axis=0) + x[COLS[PTR[i] : PTR[i + 1]], 1].sum() - np.sum(x[i, :] * rows)
    return y


def tiles(x: Any) -> Any:
    """Bounds of two loops."""
    y = x.reshape(9, -1)[:, :9].copy()
    for k in range(30):
        for i in range(3):
            for j in range(3):
                block = y[TILES[i] : TILES[i + 1], TILES[j] : TILES[j + 1]]
                block *= 1.0 - 0.1 * np.sin(block) * (k % 2)
    return y


def differences_of_counts(x: Any) -> Any:
    """Counts, whose sums are computed in the function."""
    counts = np.diff(FULL)
    stops = np.cumsum(counts)
    y = np.zeros(N)
    for i in range(N):
        part = x[stops[i] - counts[i] : stops[i]]
        y[i] = np.max(part) * len(part)
    return y


def cut_off(x: Any) -> Any:
    """Slices that reach over the end, and some that end before they begin."""
    y = x[:N].copy()
    for i in range(N):
        y[i] = np.sum(x[FULL[i] : FULL[i] + 40] ** 2) + np.sum(x[FULL[i] : 2 * FULL[i // 2] + 30])
        y[FULL[i] // 2 : FULL[i]] *= 0.99
    return y


def known_here(x: Any) -> Any:
    """Bounds that are no inputs: there is one program for all calls."""
    starts = np.cumsum([0] + [1, 2, 4] * 20)
    y = np.zeros(60)
    for i in range(60):
        y[i] = np.linalg.norm(x[starts[i] : starts[i + 1]]) + x[starts[i] : starts[i + 1]].min()
    return y


def edges(x: Any) -> Any:
    y = x[:N].copy()
    for i, j in EDGES:
        y[i] += 0.1 * np.sin(x[j])
        y[j] -= 0.1 * x[i]
    return y


CASES = [
    (csr, X), (csc, X), (added, X), (assigned, X), (softmax_rows, LONG), (rows_of_int32, LONG), (backwards, LONG),
    (even_rows, RNG.normal(size=3 * N)), (to_the_end, 1.0 + 0.1 * LONG), (of_matrix, RNG.normal(size=2 * N)),
    (tiles, RNG.normal(size=108)), (differences_of_counts, LONG), (edges, X),
    (cut_off, LONG), (known_here, LONG),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, [csr]))
def test_values_and_derivatives(f: Any, x: Any, backend: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        check(f, x, backend, 1e-6)


@pytest.mark.parametrize(("f", "x"), [pytest.param(f, x, id=f.__name__) for f, x in CASES])
def test_loops_over_rows_stay_loops(f: Any, x: Any) -> None:
    """They were written out, or traced again at each call."""
    traced = lower(sg.jit(f), (x,), {}).traced
    assert len(list(traced.walk())) < 2 * N


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_rows_that_change_are_seen_by_the_next_call(backend: str) -> None:
    ptr, cols = PTR.copy(), COLS.copy()

    def f(ptr: Any, vals: Any, x: Any) -> Any:
        y = np.zeros(N)
        for i in range(N):
            y[i] = vals[ptr[i] : ptr[i + 1]] @ x[cols[ptr[i] : ptr[i + 1]]]
        return np.sum(np.tanh(y) ** 2)

    def dense(ptr: Any, vals: Any, x: Any) -> Any:
        rows, a = np.repeat(np.arange(N), np.diff(ptr)), np.zeros((N, N))
        np.add.at(a, (rows, cols), vals)
        y = np.tanh(a @ x)
        back = 2 * y * (1 - y**2)
        return np.sum(y**2), back[rows] * x[cols], a.T @ back

    g = sg.value_and_grad(f, argnums=(1, 2), backend=backend)
    other = np.searchsorted(np.sort(np.random.default_rng(5).integers(0, N, NNZ)), np.arange(N + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for k, given in enumerate([ptr, ptr, other, ptr, other]):
            cols[:] = np.roll(cols, k)
            value, slopes = g(given, X[:NNZ], X[NNZ:])
            for ours, expected in zip((value, *slopes), dense(given, X[:NNZ], X[NNZ:]), strict=True):
                np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-12)


def test_second_derivatives_of_rows() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(N):
            total = total + np.prod(np.sin(x[FULL[i] : FULL[i + 1]])) * x[COLS[PTR[i] : PTR[i + 1]]].sum()
        return total

    slope = sg.grad(f)
    x, d = LONG, np.cos(np.arange(len(LONG)))
    expected = (slope(x + 1e-6 * d) - slope(x - 1e-6 * d)) / 2e-6
    np.testing.assert_allclose(sg.hvp(f, (x,), (d,)), expected, rtol=1e-5, atol=1e-7)


def test_places_out_of_bounds_are_an_error() -> None:
    """Those that count; there is none of those that do not."""

    def f(k: Any, x: Any) -> Any:
        total = 0.0
        for i in range(N):
            total = total + np.sum(x[k[PTR[i] : PTR[i + 1]] + i - i])
        return total

    rest = PTR[N // 2]
    for bad in (False, True):
        k = COLS.copy()
        k[rest] += N * bad
        g = sg.grad(f, argnums=1)
        if bad:
            with pytest.raises(IndexError):
                g(k, X[:N])
        else:
            np.testing.assert_array_equal(g(k, X[:N]), np.bincount(k, minlength=N))
