"""Every row of docs/control_flow.md of what has a program for each path, or is traced again at each call, is tested."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.page import POINTS, Function, on_the_page, table

BY_PATHS: dict[str, tuple[Function, str]] = {}
TRACED_AGAIN: dict[str, tuple[Function, str]] = {}


def again(row: str, reason: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        TRACED_AGAIN[row] = function, reason
        return function

    return register


def several(row: str, reason: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        BY_PATHS[row] = function, reason
        return function

    return register


@several(
    "the size of what a boolean mask selects: `np.median(x[x > 0])`", "a part of an array whose length is not known"
)
def mask(x: Any) -> Any:
    return np.median(x[x > 0]) if np.any(x > 0) else x[0]


@several("a size from a value", "needs the value of a traced i64[]")
def size(x: Any) -> Any:
    return np.sum(np.ones(round(abs(x[2])))) * np.sum(x)


@several("a slice from a value", "an index needs the value of a traced i64[]")
def part(x: Any) -> Any:
    return np.sum(x[: int(abs(x[2]))])


@several("shapes that differ between branches", "the shape of a conditional expression depends on a traced condition")
def shapes(x: Any) -> Any:
    return np.sum(x if x[0] > 0 else x[:2])


@several("dtypes that differ between branches", "the dtype of a conditional expression depends on a traced condition")
def dtypes(x: Any) -> Any:
    return (np.float32(x[0]) if x[1] > 0 else x[1]) * 2.0


@several("a truth value or a number", "is a truth value or a number, depending on a traced condition")
def truths(x: Any) -> Any:
    y = True
    if x[0] > 0:
        y = x[1]
    return y * x[2]


@several(
    "an array without axes or a number, changed by `c += 1`",
    "is an array or a number, depending on a traced condition",
)
def counted(x: Any) -> Any:
    c = np.array(x[0])
    if x[1] > 0:
        c = c + x[2]
    c += 1.0
    return c * x[1]


@several("None or a number", "what the function returns is a number or None, depending on a traced condition")
def nothing(x: Any) -> Any:
    def inner() -> Any:
        if x[0] > 0:
            return np.sum(x)

    return inner() or x[1]


@several(
    "a text chosen by a value that is printed, kept by an object or counted with",
    "a text at a traced place is asked for what no table holds",
)
def texts(x: Any) -> Any:
    mode = "sum" if x[0] > 0 else "prod"
    return getattr(np, mode)(x)


class Node:
    def __init__(self, value: Any) -> None:
        self.value = value


@several(
    "an object of a plain class that is one of several which the function holds in another way, and is asked which",
    "is one object or another, depending on a traced condition, and compared by what it is",
)
def one_of_several(x: Any) -> Any:
    nodes = [Node(x[0]), Node(x[1])]
    best = nodes[0] if x[0] > 0 else nodes[1]
    return best.value * x[2] + nodes.index(best)


@several(
    "`c is a` where a condition chose `c`",
    "is one object or another, depending on a traced condition, and compared by 'is'",
)
def identity(x: Any) -> Any:
    a, b = np.sin(x), np.cos(x)
    c = a if x[0] > 0 else b
    return np.sum(c) if c is a else np.prod(c)


@several(
    "a list that grows on one path",
    "a list, dict or set gets another size or other keys, depending on a traced condition",
)
def grows(x: Any) -> Any:
    kept = [0.0]
    for v in x:
        if v > 0:
            kept.append(v)
    return sum(kept)


@several(
    "a write into one of two parts of an array that overlap, kept on one path",
    "may or may not share, depending on a traced condition",
)
def overlapping(x: Any) -> Any:
    y, z = x[:2] * 1, x[1:] * 2
    if x[0] > 0:
        w = x * 3
        y, z = w[:2], w[1:]
    y[1] = 7.0
    return np.sum(y * z)


@several("a write into an array whose dtype differs between branches", "whose dtype depends on a traced condition")
def other_dtypes(x: Any) -> Any:
    y = np.zeros(3)
    if x[0] > 0:
        y = np.zeros(3, np.int64)
    y[0] = 2.0
    return np.sum((y + 1) * x)


@several(
    "reshaping an array whose layout differs between branches", "whose layout in memory depends on a traced condition"
)
def other_layouts(x: Any) -> Any:
    y = np.outer(x, np.arange(3.0))
    if x[0] > 0:
        y = y.T
    flat = y.ravel()
    flat[1] = 5.0
    return np.sum(y * np.outer(np.arange(3.0), x))


@several(
    "a list, dict or object that is one of several, changed later",
    "is one of several objects, depending on a traced condition, and changed",
)
def other_lists(x: Any) -> Any:
    one, other = [x[0], 1.0], [x[1], 2.0]
    picked = one if x[2] > 0 else other
    picked[0] = picked[0] * 5.0
    return one[0] * 3 + other[0]


@several("a recursion that a traced value ends", "a recursion ends where a traced value says")
def recursion(x: Any) -> Any:
    def halved(y: Any) -> Any:
        return y if y < 1 else halved(y / 2) * y

    return halved(abs(x[2])) + x[0]


@several(
    "an iterator that is read on behind a loop which a value ends: `for v in numbers: if v < 0: break`, then "
    "`next(numbers)`",
    "decides how far a loop moves an iterator on, which is kept",
)
def rest(x: Any) -> Any:
    numbers = iter([*x, 5.0])
    for v in numbers:
        if v > 1:
            break
    return v * next(numbers)


@several(
    "a generator that changes, prints or may fail, in such a loop or in `any`",
    "an iterator does more than to give its items",
)
def counting(x: Any) -> Any:
    n = 0

    def numbers() -> Any:
        nonlocal n
        for v in x:
            n += 1
            yield v

    for v in numbers():
        if v < 0:
            break
    return n * v


@several("a dict of texts and lists indexed by a value", "is indexed by a traced value")
def keyed(x: Any) -> Any:
    return np.sum(x) if {0: "sum", 1: [1.0]}[int(x[0] > 0)] == "sum" else np.prod(x)


@again("a `try` that prints or draws before it may fail", "a try has an effect before it may fail")
def prints_first(x: Any) -> Any:
    try:
        print("tried")
        if x[0] > 0:
            raise ValueError
        return np.sum(x)
    except ValueError:
        return np.sum(x**2)


@again("a `finally` that prints or draws, behind what may fail", "a finally has an effect, behind what may fail")
def prints_last(x: Any) -> Any:
    try:
        return np.sum(np.linalg.inv(np.outer(x, x) + np.eye(x.size)))
    finally:
        print("finished")


class Closing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, place: Any) -> None:
        print("left")


@again(
    "a context manager that prints or draws where it is left, around a `raise` or `assert`",
    "a with has an effect where it is left, behind what may fail",
)
def prints_where_left(x: Any) -> Any:
    with Closing():
        assert x[0] < 1e9
        return np.sum(x)


@again(
    "a `try` around `svd`, `eigh` and others that may fail in their own ways",
    "a try holds operations that may fail when the program runs",
)
def decomposed(x: Any) -> Any:
    try:
        return np.linalg.svd(np.outer(x, x) + np.eye(3))[1][0]
    except np.linalg.LinAlgError:
        return np.sum(x)


@again(
    "a text of a value of which more is asked than to print it, as its length",
    "formatting needs the value of a traced",
)
def length(x: Any) -> Any:
    return np.sum(x) * len(f"{x[0]:.1f}")


@again("a draw of what is no number", "gives a str_ at each call")
def drawn_word(x: Any) -> Any:
    rng = np.random.default_rng(0)
    return np.sum(x) * len(str(rng.choice(["one", "three"])))


@again("a call of what is not known to be pure (a file that is read, a function in C)", "is not known to be pure")
def read_file(x: Any) -> Any:
    return np.sum(x) * np.fromfile(__file__, np.uint8).size


@several("Python integers that may exceed 64 bits, which `(low + high) // 2` does not", "may exceed 64 bits")
def factorials(x: Any) -> Any:
    product, y = 1, abs(x[0]) + 0.5
    while y < 1e6:
        product = product * 3
        y = y * 2.0 + product
    return y / product


@several(
    "a `with` that handles errors (`contextlib.suppress`, an `__exit__` that may return something true, a context "
    "manager with a `try`), or a `try` in a generator, around what may fail",
    "an error that a with or a generator handles depends on a traced value",
)
def suppressed(x: Any) -> Any:
    y = x[1] * 2.0
    with contextlib.suppress(ValueError):
        if x[0] > 0.5:
            raise ValueError
        y = y**2
    return y


@on_the_page
def test_the_rows_of_a_program_for_each_path_are_tested() -> None:
    assert table("A program for each path") == {row: reason for row, (_, reason) in BY_PATHS.items()}


@pytest.mark.parametrize("row", list(BY_PATHS))
def test_a_program_for_each_path(row: str) -> None:
    """No warning while the paths suffice; `explain` and ``strict`` give the page's reason."""
    function, reason = BY_PATHS[row]
    sg.clear_caches()
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (*POINTS, *POINTS):
            found = sg.grad(function)(x.copy())
            differences = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-6 if row[:6] != "dtypes" else 0.2)
    text = sg.explain(sg.grad(function))(POINTS[0].copy())["how it runs"]
    assert re.match(r"Path \d of at most 8", text)
    assert reason in text
    with pytest.raises(sg.errors.ArgumentError, match=re.escape(reason)):
        sg.jit(function, strict=True)(POINTS[0].copy())


@pytest.mark.parametrize("row", list(BY_PATHS))
def test_a_program_for_each_path_on_xla(row: str) -> None:
    pytest.importorskip("jax")
    function, _ = BY_PATHS[row]
    slope = sg.grad(function, backend="xla")
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (POINTS[0], POINTS[1], POINTS[0]):
            found = slope(x.copy())
            np.testing.assert_allclose(found, sg.grad(function, backend="numpy")(x.copy()), rtol=1e-9, atol=1e-12)
    assert re.match(r"Path \d of at most 8", sg.explain(slope)(POINTS[0].copy())["how it runs"])


@on_the_page
def test_the_rows_that_are_traced_again_are_tested() -> None:
    assert table("Traced again at each call") == {row: reason for row, (_, reason) in TRACED_AGAIN.items()}


@pytest.mark.parametrize("row", list(TRACED_AGAIN))
def test_traced_again(row: str) -> None:
    """The reason is the page's, in the warning and under ``strict``; the derivative is right all the same."""
    function, reason = TRACED_AGAIN[row]
    sg.clear_caches()
    with pytest.warns(sg.RetraceWarning, match=re.escape(reason)):
        sg.grad(function)(POINTS[0].copy())
    with pytest.raises(sg.errors.ArgumentError, match=re.escape(reason)):
        sg.jit(function, strict=True)(POINTS[0].copy())
    for x in POINTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.RetraceWarning)
            found = sg.grad(function)(x.copy())
        differences = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-6)
