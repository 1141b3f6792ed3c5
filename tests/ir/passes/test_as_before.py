"""Reads of an array before anything is written there, which are reads of the array as it was, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Function, Literal
from srcgrad.ir.passes import at_once
from srcgrad.ir.passes.as_before import as_before
from tests.ir.passes.programs_of_loops import before_loops_are_seen

SIZE = 24
"""More than the trips that are written out."""


def of_rows_below(a: Any, b: Any) -> Any:
    """A triangle times a matrix, in its place (`trmm`)."""
    b = b.copy()
    for i in range(SIZE):
        for j in range(SIZE):
            b[i, j] += a[i + 1 :, i] @ b[i + 1 :, j]
    return b


def of_rows_above(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(SIZE - 1, -1, -1):
        b[i] -= a[i, :i] @ b[:i]
    return b


def of_the_next_row(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(SIZE - 1):
        b[i] = np.sin(b[i + 1]) * a[i]
    return b


def of_two_arrays(a: Any, b: Any) -> Any:
    """Each of which is written behind what is read of it."""
    a, b = a.copy(), b.copy()
    for i in range(1, SIZE - 1):
        a[i, 1:] = b[i + 1, :-1] * 2.0
        b[i, 1:] = a[i + 1, :-1] + b[i + 1, 1:]
    return a * b


AHEAD = [of_rows_below, of_rows_above, of_the_next_row, of_two_arrays]


def of_rows_that_are_written(a: Any, b: Any) -> Any:
    """The row itself is among those that are read, for the trips in which it is written."""
    b = b.copy()
    for i in range(SIZE):
        for j in range(SIZE):
            b[i, j] += a[i:, i] @ b[i:, j]
    return b


def of_rows_behind(a: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(1, SIZE):
        b[i] = b[i - 1] * a[i]
    return b


def of_rows_that_come_back(a: Any, b: Any) -> Any:
    """The next row is written by the trip before, through an index that runs the other way."""
    b = b.copy()
    for i in range(SIZE - 1):
        b[SIZE - 1 - i] = np.cos(b[i + 1]) * a[i]
    return b


def of_the_whole_row(a: Any, b: Any) -> Any:
    """A mask leaves out what is written, and something else looks at all of it."""
    b, total = b.copy(), np.zeros(SIZE)
    for i in range(SIZE):
        below = a[i + 1 :, i] @ b[i + 1 :, i]
        total += b[:, i]
        b[i, 0] = below + total[i]
    return b


def traced(function: Callable[..., Any]) -> Function:
    """The program of a function before its reads are looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "as_before", lambda loop: None)
        return before_loops_are_seen(function, matrices())


def matrices() -> Any:
    return np.random.default_rng(0).normal(size=(2, SIZE, SIZE))


@pytest.mark.parametrize("function", AHEAD)
def test_what_is_read_ahead_is_read_of_the_array_as_it_was(function: Callable[..., Any]) -> None:
    program = traced(function)
    (loop,) = (operation for operation in program.operations if operation.op.name == "for")
    changed = as_before(loop)
    assert changed is not None
    values = dict(zip(program.params, matrices(), strict=True))
    given = [values[value] for value in loop.operands if not isinstance(value, Literal)]
    before = Function("loop", [v for v in loop.operands if not isinstance(v, Literal)], [loop], loop.results)
    for found, expected in zip(evaluate(changed, given), evaluate(before, given), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "function", [of_rows_that_are_written, of_rows_behind, of_rows_that_come_back, of_the_whole_row]
)
def test_what_may_be_written_before_is_read_as_it_is(function: Callable[..., Any]) -> None:
    (loop,) = (operation for operation in traced(function).operations if operation.op.name == "for")
    assert as_before(loop) is None


@pytest.mark.parametrize("function", [of_rows_below, of_rows_above])
def test_triangles_times_matrices_in_their_place_are_products(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are their gradients, which keep nothing of each trip; and both modes agree."""
    monkeypatch.setattr(at_once, "SMALL", 2 * SIZE * SIZE)
    given = matrices()
    gradient = sg.grad(lambda a, b: np.sum(function(a, b) ** 2), (0, 1))
    for text in (sg.explain(made)(*given)["optimised ir"] for made in (sg.jit(function), gradient)):
        assert "= cond" in text.split("= for")[0]
        assert f"f64[{SIZE},{SIZE},{SIZE}]" not in text
    np.testing.assert_allclose(sg.jit(function)(*given), function(*given), rtol=1e-10)
    sg.testing.check_grads(function, tuple(given), order=2, modes=("fwd", "rev"))
