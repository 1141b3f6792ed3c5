"""Short loops are written out as long as that is not much; then the trips after the first are one region."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.opdef import REGISTRY
from srcgrad.lowering import lower
from srcgrad.testing import check_grads
from srcgrad.tracing.conversion.written_out import MOST_WRITTEN_OUT

Array = Any


def traced(function: Callable[..., Any], *args: Any) -> list[Any]:
    """All operations of the program, those in regions too."""
    return list(lower(sg.jit(function), args, {}).traced.walk())


def product(a: Array, b: Array) -> Array:
    rows, inner, columns = len(a), len(b), len(b[0])
    c = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            for k in range(inner):
                c[i, j] += a[i, k] * b[k, j]
    return c


def eliminated(a: Array) -> Array:
    """Rows get shorter with the trips of the outer loop, which cannot be a region; the inner one can."""
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return np.sum(np.log(np.abs(np.diag(a))))


def convolved(image: Array, kernel: Array) -> Array:
    rows, columns = kernel.shape
    out = np.zeros((image.shape[0] - rows + 1, image.shape[1] - columns + 1))
    for i, row in enumerate(kernel):
        for j, weight in enumerate(row):
            for k in range(3):
                out += weight * np.sin(image[i : i + out.shape[0], j : j + out.shape[1]] * k)
    return out


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_three_short_loops_in_each_other(backend: str) -> None:
    rng = np.random.default_rng(0)
    a, b, weights = rng.normal(size=(9, 8)), rng.normal(size=(8, 11)), rng.normal(size=(9, 11))
    slopes = sg.grad(lambda a, b: np.sum(product(a, b) * weights), (0, 1), backend=backend)(a, b)
    np.testing.assert_allclose(slopes[0], weights @ b.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(slopes[1], a.T @ weights, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sg.jit(product, backend=backend)(a, b), a @ b, rtol=1e-12, atol=1e-13)


def scattered(g: Array, d: Array, weights: Array) -> Array:
    """Loops of two trips and more in each other around products of small matrices, of which some are left out."""
    total = np.zeros_like(g)
    for k in range(len(g)):
        for w in range(2):
            for i in range(2):
                for j in range(2):
                    for a in range(d.shape[0]):
                        for b in range(d.shape[1]):
                            if k - w >= 0:
                                left = g[k - w] @ d[a, b, i]
                                right = d[a, b, j] * weights[w, i, j]
                                total[k] += left @ right
    return np.sum(total**2)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_loops_of_two_trips_in_each_other(backend: str) -> None:
    rng = np.random.default_rng(4)
    args = (rng.normal(size=(3, 3, 3)), rng.normal(size=(4, 3, 2, 3, 3)), rng.normal(size=(2, 2, 2)))
    check_grads(sg.jit(scattered, backend=backend), args, order=1)
    np.testing.assert_allclose(sg.jit(scattered, backend=backend)(*args), scattered(*args), rtol=1e-12)


def test_loops_of_two_trips_in_each_other_are_regions_where_there_is_much() -> None:
    rng = np.random.default_rng(4)
    args = (rng.normal(size=(3, 3, 3)), rng.normal(size=(8, 4, 2, 3, 3)), rng.normal(size=(2, 2, 2)))
    found = [operation.op.name for operation in traced(scattered, *args)]
    assert found.count("for") == 5 and found.count("dot_general") == 2 * 4


def test_a_loop_of_two_trips_is_written_out_however_long_they_are() -> None:
    def some(x: Array) -> Array:
        return np.sin(np.sin(np.sin(np.sin(x) * x) * x) * x) * x + 0.5

    def more(x: Array) -> Array:
        return some(some(some(some(x))))

    def f(x: Array) -> Array:
        for k in range(2):
            x = more(more(more(more(x)))) * k
        return x

    operations = traced(f, np.linspace(0.1, 0.5, 40))
    assert len(operations) > MOST_WRITTEN_OUT and all(found.op.name != "for" for found in operations)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_an_elimination_by_rows(backend: str) -> None:
    a = np.random.default_rng(1).normal(size=(10, 10)) + 5 * np.eye(10)
    np.testing.assert_allclose(sg.grad(eliminated, backend=backend)(a), np.linalg.inv(a).T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_short_loops_over_rows_and_numbers(backend: str) -> None:
    rng = np.random.default_rng(2)
    image, kernel = rng.normal(size=(12, 12)), rng.normal(size=(5, 6))
    np.testing.assert_allclose(sg.jit(convolved, backend=backend)(image, kernel), convolved(image, kernel), rtol=1e-12)
    compiled = sg.jit(lambda *given: np.sum(convolved(*given) ** 2), backend=backend)
    check_grads(compiled, (image, kernel), order=1)


@pytest.mark.parametrize("function", [product, eliminated])
def test_what_is_traced_does_not_grow_with_the_product_of_trips(function: Callable[..., Any]) -> None:
    counts = []
    for n in (8, 16):
        given = (np.eye(n), np.eye(n))[: function.__code__.co_argcount]
        counts.append(len(traced(function, *given)))
    assert counts[0] < 100
    assert counts[1] < 2.5 * counts[0]


def test_few_operations_are_written_out() -> None:
    def f(x: Array) -> Array:
        for k in range(8):
            x = np.sin(x) * k
        return x

    assert not any(operation.op is REGISTRY["for"] for operation in traced(f, np.ones(3)))


def rows_multiplied(a: Array, b: Array) -> Array:
    a = a.copy()
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q] = a[r, q] @ b
    return np.sin(a)


def gated(w: Array, x: Array) -> Array:
    h, c = np.zeros(3), np.zeros(3)
    for t in range(14):
        z = w @ np.concatenate([h, x[t]])
        i, f, o = (1 / (1 + np.exp(-z[3 * k : 3 * k + 3])) for k in range(3))
        c = f * c + i * np.tanh(z[9:])
        h = o * np.tanh(c)
    return h


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("f", "shapes"), [(rows_multiplied, ((8, 8, 4), (4, 4))), (gated, ((12, 5), (14, 2)))], ids=["rows", "gated"]
)
def test_trips_that_work_with_arrays_are_written_out_up_to_256_operations(
    f: Callable[..., Any], shapes: Any, backend: str
) -> None:
    """Up to 512 they took three times as long to compile, and calls were no faster."""
    random = np.random.default_rng(0)
    args = [0.5 * random.normal(size=shape) for shape in shapes]
    assert len(traced(f, *args)) < 100
    np.testing.assert_allclose(sg.jit(f, backend=backend)(*args), f(*args), rtol=1e-12)
    check_grads(sg.jit(f, backend=backend), args, order=1)


def test_the_loops_variables_after_one_that_was_not_written_out() -> None:
    def f(x: Array) -> Array:
        total = 0.0
        for i in range(2, 14, 3):
            for j, weight in enumerate(x):
                for k in range(5):
                    total = total + np.sin(weight * j) * k * i
        return total + i * 100 + j * 10 + k

    x = np.arange(12.0)
    assert len(traced(f, x)) < 600  # of 1,200 when it is all written out
    assert sg.jit(f)(x) == pytest.approx(f(x), rel=1e-12)


def test_effects_of_each_trip_happen_once() -> None:
    """The trips after the first cannot be one region: each appends another array."""

    def f(x: Array) -> Array:
        found = []
        for i in range(12):
            for j in range(12):
                y = np.sin(x * i) + np.cos(x * j)
                found.append(y * np.exp(-y) + i * j)
        return np.sum(np.stack(found), axis=0) + len(found)

    x = np.linspace(0, 1, 3)
    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)


def test_jumps_out_of_short_loops() -> None:
    def f(x: Array) -> Array:
        total = 0.0
        for i in range(10):
            for j in range(10):
                if j > i:
                    break
                for k in range(10):
                    if k == 7:
                        continue
                    total = total + np.sin(x * i) * np.cos(x * j) * k
        return total

    assert sg.grad(f)(0.3) == pytest.approx((f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6, rel=1e-6)


def smoothed(x: Array) -> Array:
    """What the first trip does before there is too much of it is undone: to arrays, lists, objects and numbers."""
    n = len(x)
    kept, seen, log = np.zeros((n, n)), [], {"sum": 0.0, "trips": 0}
    view = kept[:, ::-1]
    total = 0
    for i in range(n):
        kept[i] += x[i]
        view[i, 0] *= 2.0
        seen.append(x[i] * (i + 1))
        log["trips"] += 1
        for j in range(n):
            d = x[i] - x[j]
            if i != j and d * d < 1.0:
                w = np.exp(-d * d) * np.sin(d) ** 2 + np.cosh(d) / (1 + d * d) + np.sqrt(1 + d * d)
                kept[i, j] += w * (1 + w) * np.tanh(w) - np.log(1 + w * w) + np.arctan(w) * np.cos(w - d)
                log["sum"] = log["sum"] + w * kept[j, i]
        total = total + kept[i, i] * n
    return total + np.sum(kept * np.outer(np.arange(n), x)) + log["sum"] * log["trips"] + sum(seen) * len(seen)


def best_of(x: Array) -> Array:
    """A variable that is None before the loop: its first trip is written out."""
    best = None
    for i in range(9):
        found = 0.0
        for j in range(9):
            found = found + np.sin(x[i] * x[j]) * np.exp(-x[j]) / (1 + x[i] ** 2) + np.tanh(x[i] - x[j]) ** 3
            found = found + np.cos(x[i] * x[j]) * np.log(2 + x[j] ** 2) + np.arctan(x[i] + x[j])
        best = found if best is None else np.maximum(best, found)
    return best


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("f", [smoothed, best_of])
def test_a_first_trip_that_is_taken_back(f: Callable[..., Any], backend: str) -> None:
    x = np.random.default_rng(3).normal(size=9)
    value, slope = sg.value_and_grad(f, backend=backend)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    differences = [(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6 for d in np.eye(9)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([sg.jvp(f, (x,), (d,))[1] for d in np.eye(9)[:2]], slope[:2], rtol=1e-10)


def test_of_short_loops_in_each_other_there_is_one_body() -> None:
    """Each loop with a first trip of its own made two, four and eight."""
    once = len(traced(lambda x: smoothed_pair(x, 1, 1), np.ones(9)))
    assert len(traced(lambda x: smoothed_pair(x, 9, 9), np.ones(9))) < 2 * once
    assert len(traced(lambda x: smoothed_cube(x), np.ones(9))) < 2 * once


def smoothed_pair(x: Array, n: int, m: int) -> Array:
    total = 0.0
    for i in range(n):
        for j in range(m):
            total = total + much(x[i] * x[j])
    return total


def smoothed_cube(x: Array) -> Array:
    total = 0.0
    for i in range(9):
        for j in range(9):
            for k in range(9):
                total = total + much(x[i] * x[j] * x[k])
    return total


def much(d: Array) -> Array:
    for k in (1.0, 2.0):
        d = np.exp(-d * d) * np.sin(d) ** 2 + np.cosh(d) / (1 + d * d) + np.sqrt(1 + d * d) * k
        d = d * (1 + d) * np.tanh(d) - np.log(1 + d * d) + np.arctan(d) * np.cos(d - k)
    return d


def test_what_a_first_trip_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Array) -> Array:
        total = 0.0
        for i in range(5):
            print("row", i)
            for j in range(5):
                total = total + much(x[i] * x[j]) + much(x[i] - x[j])
        return total

    for _ in range(2):
        sg.grad(f)(np.linspace(0.1, 0.9, 5))
        assert capsys.readouterr().out.split() == [word for i in range(5) for word in ("row", str(i))]


def test_views_and_checks_that_a_first_trip_taken_back_was_the_first_to_use() -> None:
    def f(x: Array) -> Array:
        part = x[::-1][1:8]
        a, b = x.copy(), 2.0 * x
        either = a if x[1] > 0.0 else b
        if x[0] > 0.0:
            scale = x[0] * 3.0
        total = 0.0
        for i in range(6):
            either[i] += 1.0
            chosen = a if x[i] > 0.2 else b
            for j in range(6):
                total = total + much(part[i] * part[j]) * scale + chosen[j]
        return total + np.sum(a * b) + np.sum(either)

    x = np.random.default_rng(7).normal(size=9)
    x[0] = 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for first in (0.3, -0.3):
            x[1] = first
            value, slope = sg.value_and_grad(f)(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            differences = [(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6 for d in np.eye(9)]
            np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)
        x[0] = -0.4
        with pytest.raises(UnboundLocalError, match="scale"):
            sg.grad(f)(x)


def test_a_first_trip_that_is_made_once_more() -> None:
    """The region is given up at its first statement, before it comes to the view that the first trip has read."""
    rows = [np.ones(k + 1) for k in range(6)]

    def f(x: Array) -> Array:
        part, total = np.sin(x)[1:7], 0.0
        for i in range(6):
            row = rows[i]
            total = total + much(x[i]) * much(x[i] + 1.0) * much(x[i] + 2.0) * np.sum(part * part) * np.sum(row)
        return total

    x = np.linspace(0.1, 0.9, 9)
    value, slope = sg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    differences = [(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6 for d in np.eye(9)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-4)


def overlaps(x: Array) -> Array:
    """Integrals of contracted Gaussians: loops over short lists of tuples in each other."""
    places = [0.0, x[0]]
    gaussians = [(0.17, 0.44), (0.62, 0.54), (3.4, 0.15)]
    basis = [[(a, c * a**0.75, p) for a, c in gaussians] for p in places]
    total = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            for a, ca, p in basis[i]:
                for b, cb, q in basis[j]:
                    for scale in [0.5, 1.0, x[1]]:
                        m = a * b / (a + b)
                        total[i, j] += ca * cb * np.exp(-m * scale * (p - q) ** 2) / (a + b) * (1.0 + np.tanh(m * p))
    return np.sum(total**2)


def powers(x: Array) -> Array:
    """The numbers of short lists are sizes and exponents here, so that there is no region."""
    total = 0.0
    for n in [2, 3, 5]:
        for k in (1, 2, 4):
            for m in [1, 2, 3]:
                part = np.ones(n) * x[0] ** k
                for _ in range(3):
                    part = np.sin(part) * x[1] + np.cos(part * m) * x[2] + np.concatenate([part[1:], part[:1]])
                total += np.sum(part)
    return total


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("f", "most"), [(overlaps, 700), (powers, 10_000)])
def test_loops_over_short_lists_in_each_other(f: Callable[..., Any], most: int, backend: str) -> None:
    """They were all written out, however much that was: 30 s for the integrals of a molecule of two atoms."""
    x = np.array([1.4, 0.7, 0.3])
    assert len(traced(f, x)) < most
    for point in (x, x + 0.2):
        value, slope = sg.value_and_grad(f, backend=backend)(point)
        np.testing.assert_allclose(value, f(point), rtol=1e-12)
        differences = [(f(point + 1e-6 * d) - f(point - 1e-6 * d)) / 2e-6 for d in np.eye(3)]
        np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-6)


def grown(c: Array, a: Array) -> Array:
    """The first trip has nothing in its inner loops."""
    c = c.copy()
    for i in range(10, -1, -1):
        for j in range(i):
            for k in range(i + 1, 11):
                c[j, k] = 0.5 * c[j, k] + 0.3 * c[0, 10 - j] * a[k, j]
                c[i, k] += 0.3 * np.sin(c[k, 10 - i])
        c[-1, 2] -= 0.3 * c[i, (i + 1) % 11]
    return np.sum(np.sin(c) * a)


def grown_inside(c: Array, a: Array) -> Array:
    """The second loop has nothing in its first trip, and is one in all trips of the first one."""
    c = c.copy()
    for i in range(11):
        for j in range(11):
            for k in range(j):
                c[j, k] += 0.1 * np.sin(c[i, k]) * a[k, j]
    return np.sum(c * c)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(("f", "most"), [(grown, 150), (grown_inside, 40)])
def test_loops_whose_first_trips_are_small_are_regions_too(f: Callable[..., Any], most: int, backend: str) -> None:
    """All of their trips were written out, or had loops of their own: a first call took seconds."""
    rng = np.random.default_rng(5)
    c, a, d = (rng.normal(size=(11, 11)) for _ in range(3))
    assert len(traced(f, c, a)) < most
    value, slope = sg.value_and_grad(f, backend=backend)(c, a)
    np.testing.assert_allclose(value, f(c, a), rtol=1e-12)
    difference = (f(c + 1e-6 * d, a) - f(c - 1e-6 * d, a)) / 2e-6
    np.testing.assert_allclose(np.sum(slope * d), difference, rtol=1e-6, atol=1e-6)


def test_few_trips_that_grow_are_written_out() -> None:
    def f(x: Array) -> Array:
        for i in range(6):
            for k in range(i):
                x = x + np.sin(x[k])
        return x

    assert all(found.op.name != "for" for found in traced(f, np.ones(8)))
