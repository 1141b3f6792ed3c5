"""Calls answered in machine code that change their arguments: what fits is copied back, all else is left to Python."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import world
from tests.backends.llvm.front_support import needs_machine, same, served, switching_often

pytest.importorskip("llvmlite")

pytestmark = needs_machine


def step(u: Any, v: Any) -> Any:
    u[1:-1] += 0.1 * (v[2:] - v[:-2])
    v *= 0.9
    return {"sum": u.sum(), "u": u, "none": None}


def sorted_in_place(u: Any) -> None:
    u.sort()


def with_a_number(u: Any, s: Any) -> Any:
    u *= s
    return s + 1.0


def crossed(u: Any, v: Any) -> Any:
    u[...] = v + 1.0
    v[...] = 2.0 * u[::-1]
    return u


def exchanged(u: Any, v: Any) -> Any:
    """What is no native function, as it computes nothing."""
    w = u.copy()
    u[...] = v
    v[...] = w
    return u


def of_bytes(u: Any, v: Any) -> None:
    u[:] = v > 2.5
    v[0] = u[1]


def tree(params: Any, grads: Any) -> None:
    for p, g in zip(params["p"], grads, strict=True):
        p -= 0.1 * g


def line(n: int = 6) -> Any:
    return np.arange(1.0, n + 1.0)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "two arrays": (step, lambda: (line(), line() ** 2)),
    "nothing returned": (sorted_in_place, lambda: (line()[::-1].copy(),)),
    "a number besides": (with_a_number, lambda: (line(), 1.5)),
    "without machine code": (exchanged, lambda: (line(), line() * 3.0)),
    "each from the other": (crossed, lambda: (line(), line() * 3.0)),
    "of bytes": (of_bytes, lambda: (np.zeros(5, bool), line(5).astype(np.float32))),
    "in containers": (tree, lambda: ({"p": [line(), line(3)]}, (line(), line(3)))),
    "of no elements": (with_a_number, lambda: (line(0), 1.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_arguments_are_changed_as_by_the_function(name: str, asked: list[Transformed]) -> None:
    f, make = CASES[name]
    compiled = served(sg.jit(f, backend="llvm"), *make())
    asked.clear()
    one, other = make(), make()
    for _ in range(5):
        assert same(compiled(*other), f(*one)) or isinstance(one[-1], float)
        assert same(list(other), list(one))
    assert not asked


def test_what_is_captured_is_changed(asked: list[Transformed]) -> None:
    names = world(
        "a = np.zeros(4)\nb = np.ones(4)\ndef f(x):\n    a[1:] += x * b[:3]\n    b[0] += 1.0\n    return a.sum()"
    )
    f = served(sg.jit(names["f"], backend="llvm"), 2.0)
    asked.clear()
    a, b = names["a"].copy(), names["b"].copy()
    found = f(2.0)
    a[1:] += 2.0 * b[:3]
    b[0] += 1.0
    assert np.array_equal(names["a"], a) and np.array_equal(names["b"], b) and found == a.sum() and not asked
    names["a"] = np.zeros(4)
    f(2.0)
    assert names["a"][1] == 2.0 * b[0] and not asked
    kept = names["b"]
    names["b"] = names["a"]
    f(2.0)
    assert asked and np.array_equal(kept[1:], b[1:])


def test_arrays_that_share_memory_or_are_read_only_go_to_python(asked: list[Transformed]) -> None:
    f = served(sg.jit(crossed, backend="llvm"), line(4), line(4))
    memory, plain = line(9), line(9)
    for first, second in ((0, 0), (0, 1), (1, 0), (0, 3), (3, 0), (0, 4), (4, 0), (0, 5), (5, 1)):
        asked.clear()
        f(memory[first : first + 4], memory[second : second + 4])
        crossed(plain[first : first + 4], plain[second : second + 4])
        assert np.array_equal(memory, plain)
        assert bool(asked) == (abs(first - second) < 4)
    u, v = line(4), line(4)
    v.flags.writeable = False
    for _ in range(3):
        with pytest.raises(ValueError, match="read-only"):
            f(u, v)
        assert np.array_equal(u, line(4) + 1.0)
        u[0] = 9.0
    v.flags.writeable = True
    f(u, v)
    assert np.array_equal(u, line(4) + 1.0) and np.array_equal(v, 2.0 * u[::-1])


def test_a_program_that_raises_has_changed_what_comes_before(asked: list[Transformed]) -> None:
    def f(x: Any, m: Any) -> None:
        x += 1.0
        x[:] = np.linalg.solve(m, x)

    g = served(sg.jit(f, backend="llvm"), line(3), np.eye(3))
    x = line(3)
    blocks = 0
    for turn in range(300):
        if turn == 100:
            gc.collect()
            blocks = sys.getallocatedblocks()
        x[:] = 1.0
        with pytest.raises(np.linalg.LinAlgError):
            g(x, np.zeros((3, 3)))
        assert np.array_equal(x, [2.0] * 3)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 100
    asked.clear()
    g(x, np.eye(3))
    assert np.array_equal(x, [3.0] * 3) and not asked


def test_dicts_and_lists_are_filled_behind_checks_in_machine_code() -> None:
    def f(d: Any, items: Any, x: Any, *, by: Any) -> Any:
        d["w"] = d["w"] - by * x
        d["t"] += 1.0
        items[0] = d["w"].sum()
        return d["t"]

    g, d, items, x = sg.jit(f, backend="llvm"), {"w": line(3), "t": 0.0}, [0.0], line(3)
    one, two = {"w": line(3), "t": 0.0}, [0.0]
    for _ in range(4 * SERVED_FROM):
        assert g(d, items, x, by=0.5) == f(one, two, x, by=0.5)
        assert same(d, one) and items[0] == two[0]
    assert hasattr(g, "_tables")
    fewer = {"w": line(3), "t": 1.0, "other": 2}
    g(fewer, items, x, by=0.5)
    assert list(fewer) == ["w", "t", "other"] and fewer["t"] == 2.0


def test_nothing_is_left_behind_by_changes() -> None:
    f = sg.jit(step, backend="llvm")
    u, v = line(), line()
    served(f, u, v)
    watched = [u, v, u.dtype, f, f._tables, *f._tables]
    counts = list(map(sys.getrefcount, watched))
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(20_000):
        f(u, v)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
    assert list(map(sys.getrefcount, watched)) == counts


def test_threads_change_arrays_of_their_own() -> None:
    f = served(sg.jit(step, backend="llvm"), line(), line())
    expected = [line(), line()]
    for _ in range(300):
        step(*expected)
    found: list[Any] = []

    def work() -> None:
        given = [line(), line()]
        for _ in range(300):
            f(*given)
        found.append(given)

    with switching_often():
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 6 and all(same(given, expected) for given in found)
