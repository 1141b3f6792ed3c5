"""Calls of one path answered in machine code: only where the arrays that Python asked for hold what they held."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM
from tests.backends.llvm.front_support import needs_machine, served, switching_often

pytest.importorskip("llvmlite")
from srcgrad import front, paths, transformed
from srcgrad.front_guards import UnknownGuard

pytestmark = needs_machine
VALUES = np.linspace(0.5, 1.5, 12)
X = np.linspace(-1.0, 1.0, 5)
BEGINS = (np.array([0, 3, 4, 9, 12]), np.array([0, 1, 6, 7, 12]), np.array([0, 5, 5, 6, 12]))


def rows(begins: Any, columns: Any) -> Any:
    """A product with a sparse matrix, row by row: the lengths of rows are asked for."""

    def f(values: Any, x: Any) -> Any:
        y = np.empty(len(begins) - 1)
        for i in range(len(begins) - 1):
            own = slice(begins[i], begins[i + 1])
            y[i] = values[own] @ x[columns[own]]
        return np.sum(np.tanh(y) ** 2)

    return f


def columns() -> Any:
    return np.random.default_rng(0).integers(0, X.size, VALUES.size)


def expected(begins: Any, where: Any) -> Any:
    matrix = np.zeros((len(begins) - 1, VALUES.size))
    for i in range(len(begins) - 1):
        matrix[i, begins[i] : begins[i + 1]] = 1.0
    y = matrix @ (VALUES * X[where])
    bar = 2 * np.tanh(y) / np.cosh(y) ** 2
    slope = np.zeros(X.size)
    np.add.at(slope, where, (bar @ matrix) * VALUES)
    return (bar @ matrix) * X[where], slope


def check(gradient: Any, begins: Any, where: Any) -> None:
    for found, wanted in zip(gradient(VALUES, X), expected(begins, where), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_the_path_is_that_of_what_captured_arrays_hold_now() -> None:
    begins, where = BEGINS[0].copy(), columns()
    gradient = served(sg.grad(rows(begins, where), (0, 1), backend="llvm"), VALUES, X)
    for _ in range(2 * SERVED_FROM):  # in place: what was compared must not change with it
        for held in BEGINS:
            begins[:] = held
            check(gradient, begins, where)
    where[:] = where[::-1].copy()  # no question was about these
    check(gradient, begins, where)


def test_paths_have_tables_of_their_own() -> None:
    begins, where = BEGINS[0].copy(), columns()
    gradient = sg.grad(rows(begins, where), (0, 1), backend="llvm")
    for held in BEGINS:
        begins[:] = held
        served(gradient, VALUES, X)
        check(gradient, begins, where)
    assert len(gradient._tables) == 2 * len(BEGINS)


def test_index_arrays_that_are_arguments_are_compared_too() -> None:
    def f(x: Any, begins: Any) -> Any:
        return np.sum(np.log(np.add.reduceat(x * x, begins)))

    gradient = served(sg.grad(f, backend="llvm"), VALUES, BEGINS[0][:-1])
    for _ in range(2 * SERVED_FROM):
        for begins in (BEGINS[0][:-1], BEGINS[1][:-1].copy()):
            sums = np.add.reduceat(VALUES**2, begins)
            lengths = np.diff([*begins, VALUES.size])
            np.testing.assert_allclose(gradient(VALUES, begins), 2 * VALUES / np.repeat(sums, lengths), rtol=1e-12)


def test_masks_of_numbers_that_change_are_asked_for_by_python() -> None:
    gradient = sg.grad(lambda x: np.sum(np.sort(x[x > 0])[-2:] ** 2), backend="llvm")
    for shift in (0.0, 0.25, 0.0, 0.75) * SERVED_FROM:
        x = X + shift
        found, order = gradient(x), np.argsort(x)[-2:]
        wanted = np.zeros(X.size)
        wanted[order] = np.where(x[order] > 0, 2 * x[order], 0.0)
        np.testing.assert_allclose(found, wanted)
    assert len(gradient._tables) == 2  # one for all paths


def lengths(x: Any, options: Any, *, floor: float, weights: Any) -> Any:
    kept = x[x > options["least"]]
    return np.sum(np.sort(kept)[-2:] ** 2 * weights[0]) * options["scale"] + floor


@pytest.mark.parametrize("guards", ["machine", "python"])
def test_calls_with_structures_keywords_and_static_values_find_their_path(
    guards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that Python does of them is to ask which path it is."""
    if guards == "python":
        monkeypatch.setattr(front, "Guards", unknown)
    gradient = sg.value_and_grad(lengths, backend="llvm")
    looked: list[int] = []
    found = transformed.find_captures
    monkeypatch.setattr(transformed, "find_captures", lambda *args: looked.append(1) or found(*args))
    for least in (-0.1, 0.4):
        for scale in (2, 3):
            for shift in (0.0, 0.25, 0.5):
                options, weights, x = {"least": least, "scale": scale}, [np.array(1.5)], X + shift
                for _ in range(2 * SERVED_FROM):
                    value, slope = gradient(x, options, floor=0.25, weights=weights)
                last, order = len(looked), np.argsort(x)[-2:]
                gradient(x, options, floor=0.25, weights=weights)
                wanted = np.where(x[order] > least, x[order], 0.0)
                np.testing.assert_allclose(value, np.sum(wanted**2) * 1.5 * scale + 0.25)
                np.testing.assert_allclose(slope[order], 3.0 * scale * wanted)
                assert len(looked) == last


def unknown(*_: Any) -> Any:
    raise UnknownGuard("none is known")


def test_a_call_on_a_new_path_is_traced_behind_the_table() -> None:
    gradient = served(sg.grad(lambda x, k: np.sum(np.sort(x[x > 0])[-2:] ** k), backend="llvm"), X, 2)
    for shift in (0.3, 0.6, 2.0):
        x = X + shift
        np.testing.assert_allclose(np.sort(gradient(x, 2))[-2:], 2 * np.sort(x[x > 0])[-2:])
    with pytest.raises(ValueError, match="nothing is left"):
        for _ in range(3):
            served(sg.grad(nothing_left, backend="llvm"), X, 2)(X - 9, 2)


def nothing_left(x: Any, k: int) -> Any:
    kept = x[x > 0]
    if not kept.size:
        raise ValueError("nothing is left")
    return np.sum(np.sort(kept) ** k)


def test_arrays_that_a_path_changes_are_changed() -> None:
    def halve(x: Any, options: Any) -> Any:
        positive = np.flatnonzero(x > 0)
        x[positive] *= options["by"]
        return np.sort(x[positive])

    halved = sg.jit(halve, backend="llvm")
    for _ in range(2 * SERVED_FROM):
        for shift in (0.0, 0.4):
            x, plain = X + shift, X + shift
            np.testing.assert_allclose(halved(x, {"by": 0.5}), halve(plain, {"by": 0.5}))
            np.testing.assert_array_equal(x, plain)


def test_large_arrays_are_compared_by_python() -> None:
    begins = np.arange(1 << 17)
    x = np.ones(begins.size)
    gradient = sg.grad(lambda x: np.sum(np.add.reduceat(x * x, begins)), backend="llvm")
    for _ in range(2 * SERVED_FROM):
        np.testing.assert_array_equal(gradient(x), 2 * x)
    held = sum(thing.nbytes for thing in gradient._tables[1] if isinstance(thing, np.ndarray) and thing is not begins)
    assert begins.nbytes >= paths.MOST_COMPARED > held


@pytest.mark.parametrize("kind", [np.int64, int], ids=lambda t: t.__name__)
def test_a_number_that_decides_is_asked_for_by_python(kind: type) -> None:
    gradient = sg.grad(lambda x, k: np.sum(np.sort(x[: int(k)]) ** 2), backend="llvm")
    for k in (1, 3, 5, 2) * SERVED_FROM:
        np.testing.assert_allclose(gradient(X, kind(k)), np.where(np.arange(X.size) < k, 2 * X, 0.0))


def test_what_is_compared_is_held_once_and_goes_with_the_object() -> None:
    begins, where = BEGINS[0].copy(), columns()
    gradient = served(sg.grad(rows(begins, where), (0, 1), backend="llvm"), VALUES, X)
    kept = [thing for thing in gradient._tables[1] if isinstance(thing, np.ndarray) and thing is not begins]
    (own,) = [thing for thing in kept if thing.shape == begins.shape]
    assert not np.shares_memory(own, begins) and not own.flags.writeable
    before = sys.getrefcount(begins), sys.getrefcount(own)
    for _ in range(1000):
        gradient(VALUES, X)
    assert (sys.getrefcount(begins), sys.getrefcount(own)) == before
    gc.collect()


def test_threads_that_change_what_decides() -> None:
    """Each thread has arrays of its own: none is given the path of another's."""
    wrong: list[Any] = []

    def work(held: Any) -> None:
        begins, where = held.copy(), columns()
        gradient = sg.grad(rows(begins, where), (0, 1), backend="llvm")
        wanted = expected(begins, where)
        for _ in range(200):
            if not all(map(np.allclose, gradient(VALUES, X), wanted)):
                wrong.append(held)

    with switching_often():
        threads = [threading.Thread(target=work, args=(held,)) for held in BEGINS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
