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
from srcgrad import front

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
    assert len(gradient.tables) == 2 * len(BEGINS)


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
    assert not hasattr(gradient, "tables")


def test_large_arrays_are_compared_by_python() -> None:
    begins = np.arange(1 << 17)
    x = np.ones(begins.size)
    gradient = sg.grad(lambda x: np.sum(np.add.reduceat(x * x, begins)), backend="llvm")
    for _ in range(2 * SERVED_FROM):
        np.testing.assert_array_equal(gradient(x), 2 * x)
    assert begins.nbytes >= front.MOST_CONTENTS and not hasattr(gradient, "tables")


def test_what_is_compared_is_held_once_and_goes_with_the_object() -> None:
    begins, where = BEGINS[0].copy(), columns()
    gradient = served(sg.grad(rows(begins, where), (0, 1), backend="llvm"), VALUES, X)
    kept = [thing for thing in gradient.tables[1] if isinstance(thing, np.ndarray) and thing is not begins]
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
