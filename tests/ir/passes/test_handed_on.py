"""Elements that a trip writes and the next one reads are numbers of the loop; what is read elsewhere is read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Function
from srcgrad.ir.passes.handed_on import elements_handed_on
from srcgrad.lowering import lower

X = np.cos(np.arange(36.0)) + 0.1


def smoothed(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.3 * x[i] + 0.7 * np.sin(y[i - 1])
    return y


def eliminated(x: Any) -> Any:
    """Two recurrences forwards and one backwards, as for a matrix with three diagonals."""
    n = len(x)
    c, d, y = np.zeros(n), np.zeros(n), np.zeros(n)
    c[0], d[0] = 0.3, x[0]
    for i in range(1, n):
        c[i] = 0.3 / (1.6 - 0.3 * c[i - 1])
        d[i] = (x[i] - 0.3 * d[i - 1]) / (1.6 - 0.3 * c[i - 1])
    y[n - 1] = d[n - 1]
    for i in range(n - 2, -1, -1):
        y[i] = d[i] - c[i] * y[i + 1]
    return y


def of_two_before(x: Any) -> Any:
    y = x.copy()
    for i in range(2, len(x)):
        y[i] = x[i] + 0.4 * y[i - 1] * y[i - 2]
    return y


def swept(x: Any) -> Any:
    """In place, with neighbours on both sides, from the end and by two."""
    y = x.copy()
    for i in range(1, len(y) - 1):
        y[i] = (y[i - 1] + y[i] * y[i] + y[i + 1]) / 3
    for i in range(2, len(y) - 2):
        y[-i] += 0.5 * y[1 - i]
    for i in range(0, len(y) - 2, 2):
        y[i + 2] -= 0.2 * y[i] * y[i + 1]
    return y


def table(x: Any) -> Any:
    n = len(x) // 2
    d = np.zeros((n + 1, n + 1))
    for i in range(1, n + 1):
        d[i, 0] = d[i - 1, 0] + 0.1 * i
        for j in range(1, n + 1):
            d[i, j] = (x[i - 1] - x[n + j - 1]) ** 2 + np.maximum(d[i - 1, j], d[i, j - 1]) - 0.5 * d[i - 1, j - 1]
    return d


def triangle(x: Any) -> Any:
    """A number of trips that another loop decides, also none."""
    y = x.copy()
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            y[j] = 0.9 * y[j] + 0.1 * np.tanh(y[j - 1])
    return y


def ladder(x: Any) -> Any:
    """The last of the inner loops has no trip, whose first one would read beside the array."""
    y = x.copy()
    for i in range(len(x)):
        for j in range(i + 1, len(x) - 1):
            y[j + 1] += 0.2 * np.sin(y[j])
    return y


CASES = [smoothed, eliminated, of_two_before, swept, table, triangle]


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.sum(np.sin(f(x)))


@pytest.mark.parametrize("f", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_gradients_are_those_of_numpys_programs(f: Callable[[Any], Any], dtype: Any) -> None:
    x = X.astype(dtype)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(sg.jit(f)(x), f(x), **close)
    np.testing.assert_allclose(sg.grad(total(f))(x), sg.grad(total(f), backend="numpy")(x), **close)


def changed(f: Callable[[Any], Any], *args: Any) -> Function:
    """The program of a function with elements handed on, if any are."""
    function = lower(f, args, {}).built.function
    found = elements_handed_on(function)
    assert found is not function
    return found


@pytest.mark.parametrize("f", CASES)
def test_what_the_trip_before_wrote_is_read_of_no_array(f: Callable[[Any], Any]) -> None:
    loops = [operation for operation in changed(sg.jit(f), X).walk() if operation.op.name == "for"]
    reads = [
        operation
        for loop in loops
        for operation in loop.regions[0].operations
        if operation.op.name == "gather"
        and operation.operands[0] in loop.regions[0].params[1 : 1 + loop.attrs["carries"]]
    ]
    left = {"swept": 4, "table": 2, "triangle": 2}  # on the other side, of rows above, and before an inner loop
    assert len(reads) == left.get(f.__name__, 0)


def at_known_places(x: Any) -> Any:
    y = x.copy()
    for i in range(1, len(x)):
        y[int(7 * abs(np.sin(i)))] += y[i - 1] * x[i]
    return y


def at_places_that_are_computed(x: Any) -> Any:
    y = x.copy()
    for i in range(1, len(x)):
        y[np.argmax(x[:5]) + i % 3] += 0.5 * y[i - 1]
    return y


def from_both_ends(x: Any) -> Any:
    """Where both meet, the one from the end writes last."""
    y = x.copy()
    for i in range(len(x) - 1):
        y[i + 1] = 0.5 * np.sin(y[i]) + x[i]
        y[len(x) - 1 - i] *= 0.7
    return y


@pytest.mark.parametrize("f", [at_known_places, at_places_that_are_computed, from_both_ends])
def test_what_may_be_written_in_between_is_read(f: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(sg.jit(f)(X), f(X), rtol=1e-13)
    np.testing.assert_allclose(sg.grad(total(f))(X), sg.grad(total(f), backend="numpy")(X), rtol=1e-12, atol=1e-14)


def scanned(x: Any, steps: list[tuple[int, int, int, bool]], backwards: bool, stride: int) -> Any:
    """A loop of updates of elements beside the one of its number."""
    y = x.copy()
    start, stop = (len(x) - 4, 3) if backwards else (3, len(x) - 3)
    for i in range(start, stop, -stride if backwards else stride):
        for target, source, other, adds in steps:
            new = 0.5 * np.sin(y[i + source]) + 0.3 * x[i + other]
            if adds:
                y[i + target] += new
            else:
                y[i + target] = new * y[i + other]
    return y


@pytest.mark.parametrize("seed", range(10))
def test_loops_of_random_updates(seed: int) -> None:
    random = np.random.default_rng(seed)
    steps = [(*map(int, random.integers(-3, 4, 3)), bool(random.integers(2))) for _ in range(random.integers(1, 4))]
    backwards, stride = bool(random.integers(2)), int(random.integers(1, 3))

    def f(x: Any) -> Any:
        return scanned(x, steps, backwards, stride)

    np.testing.assert_allclose(sg.jit(f)(X), f(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sg.grad(total(f))(X), sg.grad(total(f), backend="numpy")(X), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 30])
def test_of_few_elements(size: int) -> None:
    for f in (smoothed, triangle, ladder):
        x = X[:size]
        np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-13)
        np.testing.assert_allclose(sg.grad(total(f))(x), sg.grad(total(f), backend="numpy")(x), rtol=1e-12)


def test_an_element_that_is_not_there_is_not_read_before_the_loop() -> None:
    function = lower(sg.jit(ladder), (X,), {}).built.function
    assert elements_handed_on(function) is function

    def f(x: Any) -> Any:
        y = x.copy()
        for i in range(len(x), len(x) + 8):
            y[i + 1] = y[i] * 0.5
        return y

    with pytest.raises(IndexError):
        sg.jit(f)(X)


def test_machine_code_hands_elements_on() -> None:
    found = sg.explain(sg.jit(smoothed))(X)["llvm source"]
    loop = found.split("#   for ->")[1].split("# kernel")[0]
    assert loop.count("gather ->") == 1, "only x[i] is read"
