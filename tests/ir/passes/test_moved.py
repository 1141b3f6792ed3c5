"""Loops that do nothing with an array but move its elements about: those are read where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Function, Operation
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.at_once import trips_at_once, without_moved
from srcgrad.ir.passes.moved import without_moves
from tests.ir.passes.programs_of_loops import before_loops_are_seen

SIZE = 24


def of_two_triangles(a: Any, b: Any, c: Any) -> Any:
    """Rows and columns from the diagonal on (`covariance`)."""
    c = np.zeros_like(c)
    for k in range(SIZE):
        c[k:, k] = c[k, k:] = a[:, k] @ b[:, k:] / 3.0
    return c


def of_two_triangles_beside_a_diagonal(a: Any, b: Any, c: Any) -> Any:
    """Rows and columns beside it (`correlation`)."""
    c = np.eye(SIZE)
    for k in range(SIZE - 1):
        c[k + 1 :, k] = c[k, k + 1 :] = a[:, k] @ b[:, k + 1 :]
    return c


def of_rows_that_are_columns(a: Any, b: Any, c: Any) -> Any:
    """What was written is read again in the same trip."""
    c = c.copy()
    for k in range(SIZE):
        c[k, :k] = a[:, k] @ b[:, :k]
        c[:k, k] = c[k, :k]
    return c


def of_rows_of_the_trip_before(a: Any, b: Any, c: Any) -> Any:
    """A recurrence: each row is made of the one that an earlier trip made."""
    c = c.copy()
    for k in range(SIZE - 1):
        c[k + 1, k:] = (c[k] @ a)[k:]
        c[k:, k + 1] = c[k + 1, k:]
    return c


def matrices(seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(3, SIZE, SIZE))


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.sum(function(*args) ** 2)


@cache
def traced(function: Callable[..., Any], argnums: Any) -> Function:
    return before_loops_are_seen(function, matrices(), argnums)


def loops(function: Function) -> list[Operation]:
    return [operation for operation in function.operations if operation.op.name == "for"]


def specials() -> list[Any]:
    """Matrices among whose numbers are some that are special."""
    random = np.random.default_rng(1)
    found = [matrices()]
    for special in (np.inf, -np.inf, np.nan, -0.0):
        arrays = matrices()
        for array in arrays:
            array[tuple(random.integers(SIZE, size=(2, 9)))] = special
            array[tuple(random.integers(SIZE, size=(2, 9)))] = 0.0
        found.append(arrays)
    return found


def require_same_bits(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(one[~np.isnan(one)]), np.signbit(other[~np.isnan(other)]))


CASES = [
    (of_two_triangles, None),
    (of_two_triangles, (0, 1)),
    (of_two_triangles_beside_a_diagonal, None),
    (of_two_triangles_beside_a_diagonal, (0, 1)),
    (of_rows_that_are_columns, None),
]


@pytest.mark.parametrize(("function", "argnums"), CASES)
def test_triangles_are_products(function: Callable[..., Any], argnums: Any) -> None:
    """Also where what is multiplied is not finite, and the loop runs."""
    program = traced(function, argnums)
    flat = trips_at_once(without_moved(program, evaluate_operation))
    assert loops(program) and not loops(flat)
    for arrays in specials():
        given = [np.array(each) for each in arrays][: len(program.params)]
        for found, expected in zip(evaluate(flat, given), evaluate(program, given), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("function", "argnums"), CASES)
def test_what_a_loop_hands_on_less_changes_no_bit(function: Callable[..., Any], argnums: Any) -> None:
    """A zero that was added to 0.0 has lost its sign."""
    program = traced(function, argnums)
    for loop in loops(program):
        changed = without_moves(loop, SIZE * SIZE, evaluate_operation)
        assert changed is not None
        (inner,) = [each for each in changed.operations if each.op.name == "for"]
        assert inner.attrs["carries"] < loop.attrs["carries"]
    moved = without_moved(program, evaluate_operation)
    for arrays in specials():
        given = [np.array(each) for each in arrays][: len(program.params)]
        require_same_bits(evaluate(moved, given), evaluate(program, given))


def test_what_another_trip_made_is_read_from_it() -> None:
    program = traced(of_rows_of_the_trip_before, None)
    assert without_moves(loops(program)[0], SIZE * SIZE, evaluate_operation) is None


def moved_in_a_loop(body: str) -> tuple[Function, Function | None]:
    program = parse(f"""func @f(%x: f64[20,20], %y: f64[20,20]) -> (f64[20,20], f64[20,20]) {{
      %0: f64[20,20], %1: f64[20,20] = for %x, %y {{trips=20, carries=1, consts=0, reverse=true}}
        body (%k: i64[], %x: f64[20,20], %y: f64[20]) {{
          {body}
        }}
      return %0, %1
    }}""")
    return program, without_moves(program.operations[0], 400, evaluate_operation)


@pytest.mark.parametrize(
    "body",
    [
        # Cleared, and added to: zeros lose their sign. What is there is read after it.
        """%0: f64[20] = gather %x, %k {axis=0}
           %1: f64[20,20] = scatter_set %x, 0.0:f64[20], %k {axis=0}
           %2: f64[20,20] = scatter_add %1, %0, %k {axis=1}
           %3: f64[20] = exp %y
           %4: f64[20,20] = scatter_set %1, %3, %k {axis=1}
           yield %4, %0""",
        # An element plus 0.0.
        """%0: f64[20,20] = scatter_add %x, 0.0:f64[20], %k {axis=1}
           yield %0, %y""",
        # -0.0 is written, which is no zero that anything may be added to for nothing.
        """%0: f64[20,20] = scatter_set %x, -0.0:f64[20], %k {axis=1}
           %1: f64[20,20] = scatter_add %0, -0.0:f64[20], %k {axis=1}
           yield %1, %y""",
    ],
)
def test_signs_of_zeros(body: str) -> None:
    program, moved = moved_in_a_loop(body)
    for arrays in specials():
        given = [each[:20, :20].copy() for each in arrays[:2]]
        if moved is not None:
            require_same_bits(evaluate(moved, given), evaluate(program, given))


def test_sums_of_two_elements_are_not_moved() -> None:
    _, moved = moved_in_a_loop("""%0: f64[20] = gather %x, %k {axis=0}
           %1: f64[20,20] = scatter_add %x, %0, %k {axis=1}
           yield %1, %0""")
    assert moved is None


def test_an_index_that_is_outside_raises_where_the_loop_runs() -> None:
    program, moved = moved_in_a_loop("""%0: i64[] = add %k, 1
           %1: f64[20] = gather %x, %0 {axis=0}
           %2: f64[20,20] = scatter_set %x, %1, %k {axis=1}
           yield %2, %y""")
    assert moved is None
    with pytest.raises(IndexError):
        evaluate(program, [each[:20, :20].copy() for each in matrices()[:2]])


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
@pytest.mark.parametrize("function", [of_two_triangles, of_two_triangles_beside_a_diagonal])
def test_derivatives_of_triangles(function: Callable[..., Any], backend: Any) -> None:
    """To second order, forward and reverse."""
    a, b, c = matrices()
    step = matrices(2)[0]
    loss = loss_of(function)
    gradient = sg.grad(loss, backend=backend)(a, b, c)
    forward = sg.jvp(lambda x: loss(x, b, c), (a,), (step,), backend=backend)[1]
    np.testing.assert_allclose(np.sum(gradient * step), forward, rtol=1e-10)
    second = sg.grad(lambda x: np.sum(sg.grad(loss, backend=backend)(x, b, c) * step), backend=backend)(a)
    ends = [sg.grad(loss, backend="numpy")(a + h * step, b, c) for h in (0.5, -0.5)]
    np.testing.assert_allclose(second, ends[0] - ends[1], rtol=1e-9, atol=1e-9)
