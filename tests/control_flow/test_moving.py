"""Loops whose arrays get longer or shorter by as much in each trip are one region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations


# --- algorithms as textbooks have them -----------------------------------------------------------------------------
def option(x: Any) -> Any:
    """A binomial tree of a European option."""
    n, up = 30, np.exp(0.05 * (1 + x[1]))
    p = 0.5 + 0.1 * x[2]
    v = np.maximum(x[0] * up ** (2.0 * np.arange(n + 1) - n) - 0.9, 0.0)
    for _ in range(n):
        v = 0.99 * (p * v[1:] + (1 - p) * v[:-1])
    return v[0]


def american_option(x: Any) -> Any:
    n, up = 30, np.exp(0.05 * (1 + x[1]))
    p = 0.5 + 0.1 * x[2]
    v = np.maximum(1.05 - x[0] * up ** (2.0 * np.arange(n + 1) - n), 0.0)
    for i in range(n - 1, -1, -1):
        s = x[0] * up ** (2 * np.arange(i + 1) - i)
        v = np.maximum(0.99 * (p * v[1:] + (1 - p) * v[:-1]), 1.05 - s)
    return v[0]


def tree_of_spaced_prices(x: Any) -> Any:
    """Ranges by floats that are whole numbers, and evenly spaced numbers, as many as the number of a trip says."""
    n, up = 30, np.exp(0.05 * (1 + x[1]))
    v = np.maximum(1.05 - x[0] * up ** np.arange(n, -n - 1, -2.0), 0.0)
    for i in range(n - 1, -1, -1):
        s = x[0] * up ** np.arange(i, -i - 1, -2.0) + np.arange(2.0, 2 * i + 3, 2) * 0.01
        s = s + np.linspace(x[2], x[3], i + 1) + np.linspace(0, x[1], i + 1, endpoint=False)
        v = np.maximum(0.99 * (0.6 * v[1:] + 0.4 * v[:-1]), 1.05 - s)
    return v[0]


def de_casteljau(x: Any) -> Any:
    points, t = np.stack([np.tile(x, 5), np.sin(np.tile(x, 5))], axis=1), 0.3
    for _ in range(len(points) - 1):
        points = (1 - t) * points[:-1] + t * points[1:]
    return points[0]


def de_casteljau_by_length(x: Any) -> Any:
    points = np.tile(x, 6)
    while len(points) > 1:
        points = 0.7 * points[:-1] + 0.3 * points[1:]
    return points[0]


def filled_by_length(x: Any) -> Any:
    """Two lengths, of which one ends the loop; a number that Python counts beside."""
    y, v, trips = np.ones((1, 2)), np.tile(x, 9), 0
    while y.shape[0] < 23 and v.size > 2:
        y = np.vstack([y, np.sin(v[:2] + y[-1])[None, :]])
        v = v[1:] * 0.9
        trips += 1
    return np.append(y.ravel(), v) * trips


def de_casteljau_by_index(x: Any) -> Any:
    points, n = np.tile(x, 6), 24
    for j in range(1, n):
        points = 0.7 * points[: n - j] + 0.3 * points[1 : n - j + 1]
    return points[0]


def neville(x: Any) -> Any:
    nodes = np.linspace(0.0, 1.0, len(x))
    p = x
    for m in range(1, len(x)):
        p = ((0.37 - nodes[m:]) * p[:-1] - (0.37 - nodes[:-m]) * p[1:]) / (nodes[:-m] - nodes[m:])
    return p[0]


def divided_differences(x: Any) -> Any:
    nodes, d, found = np.linspace(0.0, 1.0, len(x)), x * x, np.zeros(len(x))
    found[0] = d[0]
    for m in range(1, len(x)):
        d = (d[1:] - d[:-1]) / (nodes[m:] - nodes[: len(x) - m])
        found[m] = d[0] * 0.05**m
    return found


def richardson(x: Any) -> Any:
    table = np.cumsum(x)
    for k in range(1, len(x)):
        table = (1.5**k * table[1:] - table[:-1]) / (1.5**k - 1)
    return table[-1]


def levinson(x: Any) -> Any:
    r = np.concatenate([[10.0], x])
    a, e = np.ones(1), r[0]
    for i in range(1, len(r)):
        k = -np.dot(a, r[i:0:-1]) / e
        a = np.concatenate([a, [0.0]])
        a = a + k * a[::-1]
        e = e * (1.0 - k * k)
    return a * e


def pascal(x: Any) -> Any:
    row = np.array([x[0], x[1]])
    for _ in range(18):
        row = np.concatenate([[x[2]], 0.5 * (row[1:] + row[:-1]), [x[3]]])
    return row


def polynomial(x: Any) -> Any:
    found = np.ones(1)
    for root in x:
        found = np.convolve(found, np.array([1.0, -root]))
    return found


def appended(x: Any) -> Any:
    y = x[:2]
    for i in range(20):
        y = np.append(y, np.sin(y[-1] + y[-2]) + 0.1 * np.sum(y) / (i + 2))
    return y


def stacked(x: Any) -> Any:
    y = x[None, :3]
    for _ in range(18):
        y = np.vstack([y, np.sin(y[-1])[None, :]])
    return y


def pyramid(x: Any) -> Any:
    v = np.outer(np.ones(20), np.arange(20.0)) * x[0] + x[1]
    v = np.sin(v)
    for _ in range(18):
        v = 0.3 * (v[1:, 1:] + v[:-1, :-1] + v[1:, :-1]) + 0.1 * v[:-1, 1:] ** 2
    return v


def ends_cut_off(x: Any) -> Any:
    v, total = np.tile(x, 12), 0.0
    for _ in range(20):
        v = v[1:-1] + 0.1 * (v[2:] - v[:-2])
        total = total + v.max() + v[0] * v[-1] + np.mean(v) + len(v)
    return np.append(v, total)


def two_at_once(x: Any) -> Any:
    v, w = np.tile(x, 5), np.ones(3) * x[0]
    for i in range(17):
        v, w = np.sin(v[:-1] * v[1:]) + w[0] / (i + 1), np.concatenate([w * 0.9, v[:1]])
    return np.concatenate([v, w])


def slices_of_itself(x: Any) -> Any:
    v, total = np.tile(np.sin(x), 10), 0.0
    for _ in range(18):
        total = total + np.sum(v) ** 2 + v[0]
        v = v[1:]
        total = total * 0.5 + np.prod(v[-3:])
        v = v[:-1] if len(x) > 3 else v
    return np.append(v, total)


def written_slices_of_itself(x: Any) -> Any:
    whole = np.tile(np.sin(x), 6)
    v = whole
    for i in range(18):
        v[0] += 0.5 * v[1] * np.cos(i)
        v[-1] *= 0.5 + 0.1 * v[0]
        v = v[1:]
    v[0] = 5.0
    return whole


def known_array_cut_off(x: Any) -> Any:
    weights, total = np.arange(30.0), x[0]
    for _ in range(20):
        total = np.sin(total) + np.sum(weights) * x[1]
        weights = weights[:-1]
    return np.append(weights * x[2], total)


class Holder:
    def __init__(self, v: Any) -> None:
        self.v = v


def in_an_attribute(x: Any) -> Any:
    held = Holder(np.tile(x, 5))
    for _ in range(17):
        held.v = 0.5 * (held.v[1:] + held.v[:-1])
    return held.v


def temporaries(x: Any) -> Any:
    v = np.tile(x, 5)
    for _ in range(17):
        up, down = v[1:], v[:-1]
        mean = 0.5 * (up + down)
        v = np.where(mean > 0, mean, 0.3 * mean)
    return v


def many_trees(x: Any) -> Any:
    found = np.zeros(20)
    for j in range(20):
        v = np.maximum(np.tile(x, 5) - 0.1 * j, 0.0)
        for _ in range(18):
            v = 0.6 * v[1:] + 0.39 * v[:-1]
        found[j] = np.sum(v)
    return found


def masked_singular(x: Any) -> Any:
    """What lies outside of the part is infinite, as are the derivatives there."""
    v = 1.0 + np.tile(np.abs(x), 5)
    for _ in range(18):
        v = np.log(1 + v[1:]) / np.sqrt(v[:-1]) + 1.0 / v[1:]
    return v


FUNCTIONS = [
    de_casteljau_by_index, option, american_option, de_casteljau, de_casteljau_by_length, filled_by_length, neville,
    divided_differences, richardson, levinson, pascal, polynomial, appended, stacked, pyramid, ends_cut_off,
    two_at_once, slices_of_itself, written_slices_of_itself, known_array_cut_off, in_an_attribute, temporaries,
    many_trees, masked_singular, tree_of_spaced_prices,
]  # fmt: skip
LONG = {neville, divided_differences, richardson, levinson, polynomial}


def vector(f: Function) -> Any:
    n = 18 if f in LONG else 4
    return 0.8 + 0.3 * np.cos(1.7 * np.arange(n))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_loops_of_moving_lengths_are_one_region(f: Function) -> None:
    x = vector(f)
    said = sg.explain(sg.jit(f))(x)["how it runs"]
    assert "one region" in said and "unrolled" not in said


@pytest.mark.parametrize(("f", "x", "backend"), on_backends([(f, vector(f)) for f in FUNCTIONS], [option, levinson]))
def test_values_and_slopes_are_pythons(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, 1e-4)


@pytest.mark.parametrize("f", [option, levinson, pascal, two_at_once, slices_of_itself, masked_singular])
def test_second_derivatives_and_examples(f: Function) -> None:
    x = vector(f)[:18]
    examples = np.stack([x, 0.9 * x, 1.1 * x])
    np.testing.assert_allclose(sg.vmap(f)(examples), np.stack([f(row) for row in examples]), rtol=1e-10)

    def total(x: Any) -> Any:
        return np.sum(np.sin(f(x)))

    hessian, direction = sg.hessian(total)(x), np.cos(np.arange(x.size))
    slope = sg.grad(total)
    difference = (slope(x + 1e-5 * direction) - slope(x - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(hessian @ direction, difference, rtol=1e-4, atol=1e-5)
    stacked = sg.vmap(slope)(examples)
    np.testing.assert_allclose(stacked, np.stack([slope(row) for row in examples]), rtol=1e-9, atol=1e-12)


def test_what_lies_outside_counts_nowhere() -> None:
    """0, that stands there, has an infinite logarithm; nan and inf that are cut off."""

    def f(x: Any) -> Any:
        v = np.concatenate([x, [0.0]])
        v = v[:-1]
        for _ in range(20):
            v = np.sqrt(v[1:] * v[:-1]) + 0.01 * np.log(v[:-1]) ** 2 + 0.01 / v[1:]
        return np.sum(v)

    def cut(x: Any) -> Any:
        v = np.where(np.arange(30) < 5, np.nan, np.inf) * x[0]
        v = np.concatenate([np.sin(x), v])
        for _ in range(30):
            v = v[:-1] * 1.01
        return v

    x = 1.0 + np.arange(25.0) / 7
    for backend in ("llvm", "numpy"):
        np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x))
        step = 1e-6 * np.cos(np.arange(25.0))
        slope = sg.grad(f, backend=backend)(x)
        np.testing.assert_allclose(slope @ step, (f(x + step) - f(x - step)) / 2, rtol=1e-5)
        assert np.isfinite(sg.hessian(f, backend=backend)(x)).all()
        np.testing.assert_allclose(sg.jacrev(cut, backend=backend)(x), np.diag(np.cos(x)) * 1.01**30)
        np.testing.assert_allclose(sg.jacfwd(cut, backend=backend)(x), np.diag(np.cos(x)) * 1.01**30)


def test_trees_of_hundreds_of_steps_are_small_programs() -> None:
    def tree(steps: int) -> Function:
        def f(x: Any) -> Any:
            v = np.maximum(x[0] * 1.01 ** np.arange(steps + 1.0) - 1.5, 0.0)
            for _ in range(steps):
                v = 0.6 * v[1:] + 0.4 * v[:-1]
            return v[0]

        return f

    assert operations(tree(400), (1,)) < 60


# --- what is not held so, and unrolled -------------------------------------------------------------------------------
def written_in_place(x: Any) -> Any:
    start = np.tile(x, 5)
    v = start
    for i in range(18):
        v[0] = v[1] * 0.1 * i
        v = np.sin(v[1:])
    return np.concatenate([v, start])


def shared_with_another(x: Any) -> Any:
    v, w = np.tile(x, 5), np.zeros(2)
    for _ in range(18):
        v = np.sin(v[1:])
        w[0] += v[0]
        w = v[-2:]
    return np.concatenate([v, w])


def of_another_array(x: Any) -> Any:
    memory = np.tile(x, 5)
    v = memory
    for i in range(18):
        memory[i] = memory[i + 1] * v[0]
        v = memory[: 18 - i]
        v = v[: len(v)] * 1.0 if i % 2 else v
    return np.append(v, memory)


def halved(x: Any) -> Any:
    v = np.tile(x, 32)
    while len(v) > 1:
        v = 0.5 * (v[::2] + v[1::2])
    return v


def shorter_by_more(x: Any) -> Any:
    v = np.tile(x, 30)
    for i in range(18):
        v = np.sin(v[1 : len(v) - i // 2]) * 1.1
    return v


def by_length_and_value(x: Any) -> Any:
    v, bound = np.tile(x, 8), 1
    while len(v) > bound:
        bound = bound + 1 if len(v) % 2 else bound
        v = np.sin(v[1:]) + 0.1 * v[0]
    return v


def by_a_length_that_jumps(x: Any) -> Any:
    v = np.tile(x, 10)
    while len(v) > 3:
        v = 0.9 * v[1:] if len(v) > 25 else 1.1 * v[2:]
    return v


def of_other_steps(x: Any) -> Any:
    v = np.tile(x, 60)
    for i in range(20):
        v = np.cos(v[i:]) if i % 3 else np.sin(v[1:])
    return v


def one_of_two(x: Any) -> Any:
    v = np.tile(x, 9)
    for _ in range(17):
        v = 0.9 * v[1:] if np.ndim(v) == 1 and v.shape[0] > 20 else 1.1 * v[:-1] + v[-1]
    return v


def appended_to_a_list(x: Any) -> Any:
    v, kept = np.tile(x, 6), []
    for _ in range(18):
        v = np.sin(v[1:]) + v[:-1]
        kept.append(v[:2])
    v[0] = 9.0
    return np.concatenate([v, *kept])


def read_afterwards(x: Any) -> Any:
    v = np.tile(x, 6)
    for _ in range(18):
        up, first = v[1:], v[0]
        v = np.sin(up) + 0.1 * first
    return np.concatenate([v, up, [first]])


OTHERS = [
    shorter_by_more, written_in_place, shared_with_another, of_another_array, halved, by_length_and_value,
    by_a_length_that_jumps, of_other_steps, one_of_two, appended_to_a_list, read_afterwards,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_other_changes_of_shape_are_pythons(f: Function) -> None:
    for backend in ("llvm", "numpy"):
        check(f, 0.8 + 0.3 * np.cos(1.7 * np.arange(4)), backend, 1e-4)


# --- random programs -----------------------------------------------------------------------------------------------
STEPS: dict[str, Function] = {
    "shorter": lambda v: np.sin(v[1:]) + 0.3 * v[:-1],
    "from the front": lambda v: 0.9 * v[1:] * np.cos(v[1:]),
    "from the end": lambda v: v[:-1] / (2 + v[1:] ** 2),
    "from both ends": lambda v: 0.2 * (v[2:] - v[:-2]) + 0.5 * v[1:-1],
    "turned": lambda v: 0.5 * v[::-1][1:] + 0.1 * np.max(v),
    "cumulated": lambda v: np.tanh(np.cumsum(v)[2:] * 0.3),
    "by the mean": lambda v: 0.5 * (v[1:] - np.mean(v)) + 0.25 * np.diff(v),
    "with an end": lambda v: np.concatenate([v, [0.7 * v[-1]]]) * 0.8,
    "with two ends": lambda v: np.concatenate([v[:1], 0.9 * v, np.sin(v[1:2])]),
    "with more": lambda v: np.append(np.sin(v), [0.1, 0.2]),
    "convolved": lambda v: np.convolve(v, np.array([0.5, 0.2, 0.1])),
    "padded": lambda v: np.pad(np.sin(v), (1, 0)),
    "one for one": lambda v: np.append(v[1:], 0.5 * v[0]),
}
"""None makes the rounding before it larger: there are up to 54 of them."""


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=3))
def test_random_steps(names: list[str]) -> None:
    def f(x: Any) -> Any:
        v, total = x, 0.0
        for i in range(18):
            for name in names:
                v = STEPS[name](v)
            total = total + v[0] * np.cos(i) + 0.1 * np.sum(v) / len(v)
        return np.append(v, total)

    check(f, np.cos(np.arange(115.0)), "llvm", 1e-4)
