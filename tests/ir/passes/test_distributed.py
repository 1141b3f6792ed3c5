"""Sums of products that leave a loop which goes on without them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Function, Operation
from srcgrad.ir.parser import parse
from srcgrad.ir.passes import pipeline
from srcgrad.ir.passes.at_once import trips_at_once
from tests.ir.passes.programs_of_loops import before_loops_are_seen

SIZE = 24


def of_states(w: Any, b: Any, x: Any) -> Any:
    """A recurrent network: the cotangent of w is a sum of outer products."""
    h = x[0]
    for k in range(SIZE):
        h = np.tanh(w @ h + b[k])
    return h


def of_states_that_are_kept(w: Any, b: Any, x: Any) -> Any:
    """The same with its states and what they add to a matrix, in the loop itself."""
    h, c, kept = x[0], x.copy(), np.zeros_like(x)
    for k in range(SIZE - 1, -1, -1):
        h = w @ h * 0.5 + b[k]
        kept[k] = h
        c += np.outer(h, b[k])
    return c * kept


def of_two_triangles(w: Any, b: Any, x: Any) -> Any:
    """Rows and columns beside a diagonal, which masks leave out of the derivative (`covariance`)."""
    c = np.zeros_like(w)
    for k in range(SIZE):
        c[k:, k] = c[k, k:] = w[:, k] @ b[:, k:]
    return c


def of_states_beside_sums(w: Any, b: Any, x: Any) -> Any:
    """What is added is read by the next trip: it stays."""
    h, c = x[0], x.copy()
    for k in range(SIZE):
        c += np.outer(h, b[k])
        h = np.tanh(w @ h + c[k])
    return c


@cache
def traced(function: Callable[..., Any], argnums: Any) -> Function:
    return before_loops_are_seen(function, matrices(), argnums)


def matrices() -> Any:
    return 0.3 * np.random.default_rng(0).normal(size=(3, SIZE, SIZE))


def products(function: Function) -> list[Operation]:
    """Those that stand in no loop: what `cond` does where all is finite, too."""
    found = [operation for operation in function.operations if operation.op.name != "for"]
    found += [inner for operation in found if operation.op.name == "cond" for inner in operation.regions[0].operations]
    return [operation for operation in found if operation.op.name == "dot_general" and operation.attrs["contract"][0]]


@pytest.mark.parametrize(
    ("function", "argnums"),
    [(of_states, (0, 1)), (of_states_that_are_kept, None), (of_states_that_are_kept, (0, 1, 2)),
     (of_two_triangles, (0, 1))],
)  # fmt: skip
def test_sums_that_leave_a_loop_are_its_own(function: Callable[..., Any], argnums: Any) -> None:
    """Also where what is multiplied is not finite."""
    program = traced(function, argnums)
    flat = trips_at_once(program)
    assert not products(program)
    assert products(flat)
    assert any(operation.op.name == "for" for operation in flat.operations)
    random = np.random.default_rng(1)
    for special in (None, np.inf, -np.inf, np.nan):
        for _ in range(4):
            arrays = [np.array(each) for each in matrices()]
            for array in arrays:
                if special is not None:
                    array[tuple(random.integers(SIZE, size=2))] = special
                    array[tuple(random.integers(SIZE, size=2))] = 0.0
            given = arrays[: len(program.params)]
            for found, expected in zip(evaluate(flat, given), evaluate(program, given), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_sums_that_a_trip_reads_stay_in_their_loop() -> None:
    program = traced(of_states_beside_sums, None)
    assert trips_at_once(program) is program


def test_sums_that_a_loop_gives_for_each_trip_stay_in_it() -> None:
    program = parse("""func @f(%h: f64[16], %c: f64[16,16], %b: f64[20,16]) -> (f64[16], f64[16,16], f64[20,16,16]) {
      %0: f64[16], %1: f64[16,16], %2: f64[20,16,16] = for %h, %c, %b {trips=20, carries=2, consts=0, reverse=false}
        body (%k: i64[], %h: f64[16], %c: f64[16,16], %b: f64[16]) {
          %0: f64[16] = mul %h, %b
          %1: f64[16,16] = broadcast %b {shape=[16,16], dims=[0]}
          %2: f64[16,16] = broadcast %b {shape=[16,16], dims=[1]}
          %3: f64[16,16] = mul %1, %2
          %4: f64[16,16] = add %c, %3
          yield %0, %4, %4
        }
      return %0, %1, %2
    }""")
    assert trips_at_once(program) is program


def test_sums_of_numbers_stay_in_their_loop() -> None:
    """A column for each of them would be as large as what is added."""
    program = traced(lambda w, b, x: sum_of_numbers(w, x), None)
    assert trips_at_once(program) is program


def sum_of_numbers(w: Any, x: Any) -> Any:
    h, total = x[0], 0.0
    for k in range(SIZE):
        h = np.tanh(w @ h)
        total += h @ x[k]
    return h * total


def test_both_modes_agree_where_sums_leave_their_loops() -> None:
    sg.testing.check_grads(of_states, tuple(matrices()), order=2, modes=("fwd", "rev"))


def test_a_carry_that_each_trip_sets_to_what_it_was_is_that() -> None:
    """A zero that is read, and handed on again, is a literal; one of the other sign is not."""
    program = """func @f(%x: f64[4]) -> (f64[], f64[4]) {
      %0: f64[], %1: f64[4] = for ZERO, %x {trips=4, carries=1, consts=0, reverse=false}
        body (%k: i64[], %z: f64[], %x: f64[]) {
          %0: f64[] = add %z, %x
          yield 0.0, %0
        }
      return %0, %1
    }"""
    for zero, carries in (("0.0", 0), ("-0.0", 1)):
        tidied = pipeline.LOOPS.apply(parse(program.replace("ZERO", zero)), None)
        (loop,) = (operation for operation in tidied.operations if operation.op.name == "for")
        assert loop.attrs["carries"] == carries
        last, _ = evaluate(tidied, [np.full(4, -0.0)])
        assert last == 0.0
        assert not np.signbit(last)
