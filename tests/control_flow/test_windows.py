"""Slices between numbers of loops: those whose length is known are windows, and their loops stay loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.tracing.affine import ZERO, Affine, between, extreme
from tests.control_flow.sliced import Function, check, on_backends, operations


def moving_mean(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        y[i] = np.mean(x[i - 1 : i + 2])
    return y


def largest(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 4):
        total += np.max(x[i : i + 5] * x[4 + i])
    return total


def chunks(x: Any) -> Any:
    total, w = 0.0, 4
    for k in range(len(x) // w):
        total += np.prod(x[k * w : (k + 1) * w]) ** 2
    return total


def regression(x: Any) -> Any:
    y, c = np.zeros(len(x)), np.array([0.5, 0.2, -0.1])
    y[:3] = x[:3]
    for t in range(3, len(x)):
        y[t] = c @ y[t - 3 : t] + x[t]
    return y


def in_place(x: Any) -> Any:
    x = x.copy()
    for i in range(0, len(x) - 5, 2):
        x[i : i + 3] += 0.5 * x[i + 2 : i + 5]
        x[i + 1 : i + 6 : 2] *= 0.9
    return x


def backwards(x: Any) -> Any:
    x, total = x.copy(), 0.0
    for i in range(len(x) - 3, -1, -1):
        x[i : i + 2] = np.cumsum(x[i + 1 : i + 3])
        total = total + x[i]
    return total * x


def counted(x: Any) -> Any:
    i, total = 0, 0.0
    while i + 3 <= len(x):
        total += np.prod(x[i : i + 3])
        i += 3
    return total


def reversed_and_counted(x: Any) -> Any:
    total = 0.0
    for k, i in enumerate(reversed(range(2, len(x) - 1))):
        total += np.sum(x[i - 2 : i + 1]) * np.sum(x[k : k + 1])
    return total


def left_early(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 2):
        total += np.sum(x[i : i + 3] ** 2)
        if total > 6:
            break
    return total


def empty(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total += x[i] * (1.0 + np.sum(x[i:i]) + np.sum(x[i : i - 1]))
    return total


def in_a_branch(x: Any) -> Any:
    y = x.copy()
    for i in range(len(x) - 3):
        if x[i] > 0:
            y[i : i + 3] = x[i + 1 : i + 4] * x[i]
    return y


VECTORS = [
    moving_mean, largest, chunks, regression, in_place, backwards, counted, reversed_and_counted, left_early, empty,
    in_a_branch,
]  # fmt: skip


def convolved(x: Any) -> Any:
    k, (h, w) = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]), x.shape
    out = np.zeros((h - 1, w - 2))
    for i in range(h - 1):
        for j in range(w - 2):
            out[i, j] = np.sum(x[i : i + 2, j : j + 3] * k)
    return out


def pooled(x: Any) -> Any:
    out = np.zeros((x.shape[0] // 2, x.shape[1] // 2))
    for i in range(0, x.shape[0] - 1, 2):
        for j in range(0, x.shape[1] - 1, 2):
            out[i // 2, j // 2] = np.max(x[i : i + 2, j : j + 2])
    return out


def in_rows(x: Any) -> Any:
    """Windows beside numbers, slices and each other, and of views."""
    x, n = x.copy(), x.shape[1]
    for i in range(1, x.shape[0]):
        for j in range(i, n - 1):
            x[i, j - 1 : j + 1] += 0.1 * x[0, j : j + 2]
            x[1:, j : j + 2][i - 1] *= 0.9
        x[i - 1 : i + 1, 1:-1] *= x[i - 1 : i + 1, 0][:, None]
    return x


def triangle(x: Any) -> Any:
    """Inner loops whose bounds are numbers of outer ones."""
    total, n = 0.0, x.shape[1]
    for i in range(n):
        for j in range(i + 1, n - 1):
            total = total + np.sum(x[:, j - i : j - i + 2] ** 2) * x[0, i]
        for j in range(i, 1, -1):
            total = total + np.prod(x[1, j - 2 : j + 1])
    return total


def along_other_axes(x: Any) -> Any:
    y = np.zeros((x.shape[1], x.shape[0]))
    for j in range(x.shape[1] - 1):
        y[j : j + 2] += x[[0, 1], j : j + 2][0][:, None] * x[..., j].T
        y.T[1, j : j + 2] *= 2.0
    return y


def with_new_axes(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[1] - 3):
        total = total + np.sum(x[1, None, i : i + 3] * x[:3, i, None] * x[..., i + 1 : i + 4, np.newaxis])
    return total


def of_views(x: Any) -> Any:
    """Parts of windows."""
    total = 0.0
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1] - 2):
            rows = x[i : i + 2]
            total = total + rows[i % 2, j] * np.sum(rows[:, j : j + 3]) * rows[:, j][1] * rows[i % 2][j + 1]
    return total


MATRICES = [of_views, with_new_axes, convolved, pooled, in_rows, triangle, along_other_axes]
CASES = [(f, np.random.default_rng(1).normal(size=83)) for f in VECTORS]
CASES += [(f, np.random.default_rng(2).normal(size=(36, 39) if f is pooled else (19, 21))) for f in MATRICES]


ON_XLA = (moving_mean, in_place, chunks, convolved, along_other_axes)


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, ON_XLA))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=2e-6)


@pytest.mark.parametrize(("f", "x"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_the_loops_are_one_region_however_long(f: Function, x: Any) -> None:
    assert operations(f, (200,) * x.ndim) == operations(f, (80,) * x.ndim)


@pytest.mark.parametrize(("f", "x"), CASES[:6] + CASES[-6:], ids=[f.__name__ for f, _ in CASES[:6] + CASES[-6:]])
def test_a_batch_is_its_members(f: Function, x: Any) -> None:
    both = np.stack([x, x[::-1]])
    np.testing.assert_allclose(sg.vmap(f)(both), np.stack([f(x), f(x[::-1])]), rtol=1e-12, atol=1e-13)


# --- what is no window -------------------------------------------------------------------------------------------
def cut_off(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.sum(x[i : i + 3])
    return total


def from_the_end(x: Any) -> Any:
    """The first slice is empty: -1 is the last element."""
    total = 0.0
    for i in range(len(x) - 1):
        total = total + np.sum(x[i - 1 : i + 2])
    return total


def to_the_end(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.prod(np.cos(x[i:])) + np.sum(x[:i]) + np.sum(x[i::-1])
    return total


def of_different_lengths(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) // 2):
        total = total + np.sum(x[i : 2 * i] ** 2)
    return total


def one_beyond(x: Any) -> Any:
    """Only the last slice is short, by one."""
    total = 0.0
    for i in range(len(x) - 2):
        total = total + np.mean(x[i : i + 4 : 1])
    return total


def one_before(x: Any) -> Any:
    """The end of only the first slice is counted from the end."""
    total = 0.0
    for i in range(len(x) - 1):
        total = total + np.sum(x[i + 2 : i - 1])
    return total


def kept(x: Any) -> Any:
    """Views of windows that outlive their trip."""
    last, total = x[:3], 0.0
    for i in range(len(x) - 4):
        total = total + np.sum(last * x[i + 1 : i + 4])
        last = x[i : i + 3]
    return total + np.sum(last**2)


def written_later(x: Any) -> Any:
    x = x.copy()
    last = x[:3]
    for i in range(len(x) - 4):
        last *= 0.5
        last = x[i : i + 3]
    last += 1.0
    return x


def chosen(x: Any) -> Any:
    """A view whose start is a number of one path."""
    y, z = x.copy(), x[-3:].copy()
    for i in range(len(x) - 5):
        if x[i] > 0:
            j = i + 1
            part = y[j : j + 3]
        else:
            part = z
        part *= 0.9
    return np.sum(y * x) + np.sum(z)


def one_before_in_an_inner_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) // 2):
        for j in range(i, len(x) - 1):
            total = total + np.sum(x[j - 1 : j + 1])
    return total


def one_beyond_in_an_inner_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        for j in range(i, 1, -1):
            total = total + np.mean(x[j : j + 3])
    return total


def one_beyond_before_a_break(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 2):
        total = total + np.mean(x[i : i + 4])
        if total > 1e9:
            break
    return total


@pytest.mark.parametrize(
    "f",
    [
        one_before_in_an_inner_loop,
        one_beyond_in_an_inner_loop,
        one_beyond_before_a_break,
        chosen,
        kept,
        written_later,
        cut_off,
        from_the_end,
        to_the_end,
        of_different_lengths,
        one_beyond,
        one_before,
    ],
    ids=lambda f: f.__name__,
)
def test_slices_of_changing_length_are_still_right(f: Function) -> None:
    x = np.random.default_rng(3).normal(size=40)
    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)
    sg.testing.check_grads(f, (x,), order=1)


def test_a_view_whose_start_ends_with_its_path_is_known_as_such() -> None:
    said = sg.explain(sg.jit(chosen))(np.random.default_rng(3).normal(size=40))["how it runs"]
    assert "a write into memory that 'part' may or may not share" in said


def test_a_bound_that_is_no_integer_is_refused_as_numpy_does() -> None:
    def f(x: Any) -> Any:
        for i in range(30):
            x = x + np.sum(x[i : i + 2.0])  # type: ignore[misc]
        return x

    with pytest.raises(sg.errors.UnsupportedError, match="slice indices must be integers"):
        sg.jit(f)(np.ones(40))


# --- sums of indices ------------------------------------------------------------------------------------------------
@st.composite
def nests(draw: st.DrawFn) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
    """Bounds of loops, each a sum of the indices around it and a number, and a sum of all."""
    small = st.integers(-3, 3)
    depth = draw(st.integers(1, 3))
    bounds = [
        (draw(st.lists(small, min_size=k + 1, max_size=k + 1)), draw(st.lists(small, min_size=k + 1, max_size=k + 1)))
        for k in range(depth)
    ]
    return bounds, draw(st.lists(small, min_size=depth + 1, max_size=depth + 1))


@given(nests())
def test_bounds_hold_for_all_indices(nest: Any) -> None:
    bounds, factors = nest
    counters: list[Affine] = []

    def total(factors: list[int]) -> Affine:
        found = Affine({}, factors[0])
        for factor, counter in zip(factors[1:], counters, strict=True):
            found = found.plus(counter, factor)
        return found

    for low, high in bounds:
        counters.append(between(total(low), total(high)))
    found = total(factors)

    def values(indices: tuple[int, ...]) -> list[int]:
        at = [sum(a * b for a, b in zip(f, (1, *indices), strict=True)) for f in bounds_at(len(indices))]
        if not at:
            return [sum(a * b for a, b in zip(factors, (1, *indices), strict=True))]
        return [value for k in range(at[0], at[1] + 1) for value in values((*indices, k))]

    def bounds_at(depth: int) -> tuple[list[int], ...]:
        return bounds[depth] if depth < len(bounds) else ()

    seen = values(())
    assert all(found.least() <= value <= found.most() for value in seen)


@given(st.data())
def test_bounds_of_sums_of_extremes_hold_for_all_indices(data: st.DataObject) -> None:
    """They are numbers that lie between two, and also what they are the larger or the smaller of."""
    i = between(ZERO, Affine({}, 6))
    found: list[tuple[Affine, list[list[int]]]] = [(i, [[k] * 7 for k in range(7)])]
    j = between(i, Affine({}, 6))
    found.append((j, [[max(m, k) for m in range(7)] for k in range(7)]))
    small = st.integers(-2, 2)

    def total() -> tuple[Affine, list[list[int]]]:
        affine, values = Affine({}, data.draw(small)), [[0] * 7 for _ in range(7)]
        values = [[affine.constant] * 7 for _ in range(7)]
        for part, numbers in found:
            factor = data.draw(small)
            affine = affine.plus(part, factor)
            values = [[a + factor * b for a, b in zip(x, y, strict=True)] for x, y in zip(values, numbers, strict=True)]
        return affine, values

    for _ in range(data.draw(st.integers(1, 4))):
        pick, (a, some), (b, others) = data.draw(st.sampled_from([max, min])), total(), total()
        picked = [[pick(m, k) for m, k in zip(x, y, strict=True)] for x, y in zip(some, others, strict=True)]
        found.append((extreme(a, b, pick), picked))
        for affine, values in (found[-1], total()):
            assert affine.least() <= min(map(min, values)) and affine.most() >= max(map(max, values))


def test_what_is_between_an_index_and_its_extremes_is_known() -> None:
    i, n = between(ZERO, Affine({}, 99)), Affine({}, 100)
    start = extreme(ZERO, i.plus(Affine({}, 5), -1), max)
    stop = extreme(n, i.plus(Affine({}, 6)), min)
    assert (i.plus(start, -1).least(), i.plus(start, -1).most()) == (0, 5)
    assert (stop.plus(start, -1).least(), stop.plus(start, -1).most()) == (6, 11)
    many = i
    for k in range(200):  # each is of the one before
        many = extreme(many.plus(i, -1), Affine({}, k % 7).plus(many), max)
    assert many.least() <= many.most()


def test_bounds_of_a_triangle_are_its_corners() -> None:
    i = between(ZERO, Affine({}, 9))
    j = between(i.plus(Affine({}, 1)), Affine({}, 10))
    assert (j.least(), j.most()) == (1, 10)
    assert (j.plus(i, -1).least(), j.plus(i, -1).most()) == (1, 10)
    assert j.plus(i, -1).plus(j, -1).plus(i) == ZERO
