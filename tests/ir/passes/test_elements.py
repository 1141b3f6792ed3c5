"""Elements that all trips of a loop share are numbers while it runs: where they may be, and that results stay."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

SIZE = 17
"""More than the trips that are written out."""


def optimised(function: Callable[..., Any], *args: Any) -> str:
    return sg.explain(sg.jit(function))(*args)["optimised ir"]


def innermost(text: str) -> str:
    """The body of the innermost loop of a program."""
    lines = text.splitlines()
    first = max(range(len(lines)), key=lambda k: (lines[k].lstrip().startswith("body"), indent(lines[k])))
    last = next(k for k in range(first, len(lines)) if lines[k].lstrip() == "}")
    return "\n".join(lines[first:last])


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_a_sum_in_an_element_is_a_number() -> None:
    def distances(a: Any, b: Any) -> Any:
        c = np.zeros((SIZE, SIZE))
        for i in range(SIZE):
            for j in range(SIZE):
                for k in range(SIZE):
                    c[i, j] += np.abs(a[i, k] - b[k, j])
        return c

    a, b = np.random.default_rng(1).normal(size=(2, SIZE, SIZE))
    body = innermost(optimised(distances, a, b))
    assert body.count("gather") == 2 and "scatter" not in body
    np.testing.assert_allclose(sg.jit(distances)(a, b), np.abs(a[:, :, None] - b).sum(1), rtol=1e-13)


def test_what_trips_share_in_a_triangle_is_read_before_them() -> None:
    """``a[i, k]`` is there for all rows below the k-th, which the count of the rows alone does not tell."""

    def eliminated(a: Any) -> Any:
        a = a.copy()
        for k in range(SIZE):
            for i in range(k + 1, SIZE):
                a[i, k] /= a[k, k]
                for j in range(k + 1, SIZE):
                    a[i, j] -= a[i, k] * a[k, j]
        return a

    a = np.random.default_rng(2).normal(size=(SIZE, SIZE)) + SIZE * np.eye(SIZE)
    assert innermost(optimised(eliminated, a)).count("gather") == 2
    found = sg.jit(eliminated)(a)
    np.testing.assert_allclose((np.tril(found, -1) + np.eye(SIZE)) @ np.triu(found), a, rtol=1e-12, atol=1e-12)


def test_an_element_that_a_trip_may_read_by_another_index_is_none() -> None:
    def sums(c: Any) -> Any:
        for i in range(SIZE):
            for k in range(SIZE):
                c[i] += 0.5 * c[k]
        return c

    c = np.arange(1.0, SIZE + 1)
    np.testing.assert_array_equal(sg.jit(sums)(c.copy()), sums(c.copy()))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_same_element_by_two_indices(backend: str) -> None:
    def sums(c: Any, a: Any) -> Any:
        c = c.copy()
        for k in range(SIZE):
            c[-1] += a[k]
            c[SIZE - 1] *= 1.5
            c[k] -= c[-1]
        return c

    c, a = np.random.default_rng(3).normal(size=(2, SIZE))
    np.testing.assert_allclose(sg.jit(sums, backend=backend)(c, a), sums(c, a), rtol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_an_element_that_is_not_there_is_an_error_only_if_a_trip_reads_it(backend: str) -> None:
    def sums(c: Any, numbers: Any) -> Any:
        c = c.copy()
        for _ in range(numbers[1]):
            c[numbers[0]] += 1.0
        return np.sum(c * c)

    run = sg.value_and_grad(sums, backend=backend)
    c = np.ones(SIZE)
    value, slope = run(c, np.array([SIZE, 0]))
    assert value == SIZE and np.array_equal(slope, 2 * c)
    with pytest.raises(IndexError):
        run(c, np.array([SIZE, 1]))


@pytest.mark.parametrize("size", [0, 1])
def test_loops_without_trips(size: int) -> None:
    def sums(c: Any, a: Any) -> Any:
        c = c.copy()
        for i in range(len(c)):
            for k in range(i):
                c[i] += a[k] * c[k]
        return np.sum(c)

    c = np.full(size, 2.0)
    value, slope = sg.value_and_grad(sums)(c, c)
    assert value == 2.0 * size and np.array_equal(slope, np.ones(size))


def test_a_row_that_trips_read_is_kept_once_for_the_derivative() -> None:
    """``a[k]`` is no row of each trip in a tape, and its cotangent is added up outside the array's."""

    def eliminated(a: Any) -> Any:
        a = a.copy()
        for k in range(SIZE):
            for i in range(k + 1, SIZE):
                a[i] -= a[i, k] / a[k, k] * a[k]
        return np.sum(np.log(np.abs(np.diag(a))))

    a = np.random.default_rng(4).normal(size=(SIZE, SIZE)) + SIZE * np.eye(SIZE)
    run = sg.value_and_grad(eliminated)
    text = sg.explain(run)(a)["optimised ir"]
    assert "tape<tape<f64[]>>" in text and f"tape<tape<f64[{SIZE}]>>" not in text
    value, slope = run(a)
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1], rtol=1e-13)
    np.testing.assert_allclose(slope, np.linalg.inv(a).T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_rows_with_elements_and_columns(backend: str) -> None:
    """A column meets all rows; an element is one of its row."""

    def sums(c: Any, a: Any) -> Any:
        c = c.copy()
        for i in range(SIZE):
            for k in range(SIZE):
                c[i] += a[k] * c[i, 2]
                c[i, k] -= 0.5
                if k == 3:
                    c[i, 1] = 2.0
            for k in range(SIZE):
                c[k] *= 0.5
                c[:, i] += a[k, i]
        return c

    c, a = np.random.default_rng(5).normal(size=(2, SIZE, SIZE)) * 0.1
    np.testing.assert_allclose(sg.jit(sums, backend=backend)(c, a), sums(c, a), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_masks_of_rows_that_trips_share(backend: str) -> None:
    """What is never read of a row has a derivative of 0, whatever is computed there: its mask is a disjunction."""

    def sums(a: Any, b: Any) -> Any:
        a, n = a.copy(), len(b)
        for k in range(1, n):
            for i in range(k):
                a[i, k:] -= np.sqrt(a[k, k:]) * b[i]
        return np.sum(a[:, -1])

    a = np.full((SIZE, SIZE), 4.0)
    a[1:, 1] = 0.0  # on and below the diagonal
    b = np.full(SIZE, 0.1)
    found = sg.grad(sums, backend=backend)(a, b)
    assert np.all(np.isfinite(found)) and np.all(found[:, :-1] == 0.0)
    np.testing.assert_allclose(found[:, -1], 1.0 - 0.025 * np.arange(SIZE), rtol=1e-12)


# --- random programs --------------------------------------------------------------------------------------------------


class Writer:
    """A function that reads and writes elements of ``c`` in nested loops; indices may meet or be out of bounds."""

    def __init__(self, seed: int, rows: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.rows = rows
        """How many of the elements are rows instead."""
        self.counters: list[str] = []
        self.lines = ["def f(c, a):", "    c = c.copy()"]
        self.block(4)
        self.lines.append("    return np.sum(np.sin(c) * a)")

    def index(self) -> str:
        found = ["0", "-1", "2", "1"]
        for name in self.counters:
            found += [name] * 4 + [f"{SIZE - 1} - {name}", f"{name} - 1", f"-1 - {name}"]
        return self.random.choice(found)

    def element(self, array: str) -> str:
        if self.random.random() < self.rows:
            return f"{array}[{self.index()}]"
        return f"{array}[{self.index()}, {self.index()}]"

    def value(self, depth: int = 0) -> str:
        kind = self.random.random()
        if kind < 0.5 or depth > 1:
            return self.element(self.random.choice("cca"))
        if kind < 0.9:
            return f"np.sin({self.value(depth + 1)}) * {self.value(depth + 1)}"
        return f"np.sum({self.random.choice('ca')}[{self.index()}])"

    def block(self, indent: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            if len(self.counters) < 3 and (not self.counters or self.random.random() < 0.55):
                name = "ijk"[len(self.counters)]
                bounds = [f"{SIZE}", f"{SIZE - 1}, -1, -1"]
                for other in self.counters:
                    bounds += [f"{other} + 1, {SIZE}", other, f"{other}, -1, -1"]
                self.lines.append(" " * indent + f"for {name} in range({self.random.choice(bounds)}):")
                self.counters.append(name)
                self.block(indent + 4)
                self.counters.pop()
            else:
                sign = self.random.choice(["+=", "+=", "=", "-="])
                target, value = self.element("c"), f"0.05 * np.sin({self.value()})"
                if self.rows and "," in target:
                    value = f"np.sum({value})"
                self.lines.append(" " * indent + f"{target} {sign} {value}")

    def function(self, name: str) -> Callable[..., Any]:
        """With its source where srcgrad looks for it."""
        text = "\n".join(self.lines) + "\n"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names: dict[str, Any] = {"np": np}
        exec(compile(text, name, "exec"), names)
        return names["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(22))
def test_random_programs(seed: int) -> None:
    """Values and gradients, by complex steps; errors where NumPy has them."""
    function = Writer(seed, 0.5 * (seed >= 14)).function(f"<elements {seed}>")
    c, a, *ways = np.random.default_rng(seed).normal(size=(5, SIZE, SIZE))
    run = sg.value_and_grad(function, backend=("numpy", "llvm")[seed % 2])
    try:
        expected = function(c, a)
    except IndexError:
        with pytest.raises(IndexError):
            run(c, a)
        return
    value, found = run(c, a)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    for way in ways:
        slope = function(c + 1e-30j * way, a).imag / 1e-30
        np.testing.assert_allclose(np.sum(found * way), slope, rtol=1e-8, atol=1e-9 * np.abs(found).max())
