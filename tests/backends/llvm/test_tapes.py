"""Tapes that kernels give and take: machine code on both sides, lists of Python where NumPy has made them."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any, cast

import numpy as np
import pytest

from srcgrad.backends.llvm import native
from srcgrad.backends.llvm.tapes import Tape, kernel
from srcgrad.ir.core import Function
from srcgrad.ir.parser import parse
from srcgrad.ir.types import FLOAT64, ArrayType, TapeType
from tests.ir.control.programs import compiled

KEEPS = """
func @keeps(%x: f64[2], %n: i64[]) -> (tape<tape<f64[2]>>, tape<f64[]>, f64[2]) {
  %z: f64[2], %all: tape<tape<f64[2]>>, %t: tape<f64[]> = for %n, %x {trips=none, carries=1, consts=0, reverse=false}
    body (%i: i64[], %y: f64[2]) {
      %z: f64[2], %rows: tape<f64[2]> = for %i, %y {trips=none, carries=1, consts=0, reverse=false}
        body (%k: i64[], %y: f64[2]) {
          %s: f64[2] = sin %y
          %a: f64[2] = add %y, %s
          yield %a, %y
        }
      %t: f64[] = reduce_sum %z {axes=[0]}
      yield %z, %rows, %t
    }
  return %all, %t, %z
}
"""
READS = """
func @reads(%n: i64[], %all: tape<tape<f64[2]>>, %sums: tape<f64[]>) -> (f64[2], tape<tape<f64[2]>>) {
  %found: f64[2] = for %n, 0.0:f64[2], %all, %sums {trips=none, carries=1, consts=0, reverse=true}
    body (%i: i64[], %y: f64[2], %rows: tape<f64[2]>, %t: f64[]) {
      %w: f64[2] = broadcast %t {shape=[2], dims=[]}
      %z: f64[2] = for %i, %y, %w, %rows {trips=none, carries=1, consts=1, reverse=true}
        body (%k: i64[], %y: f64[2], %w: f64[2], %row: f64[2]) {
          %p: f64[2] = mul %row, %w
          %q: f64[2] = mul %y, %w
          %a: f64[2] = add %p, %q
          yield %a
        }
      yield %z
    }
  return %found, %all
}
"""
FILLED = """
func @filled(%x: f64[], %p: bool[]) -> (tape<f64[]>, tape<tape<f64[]>>) {
  %t: tape<f64[]> = cond %p, %x
    then (%x: f64[]) {
      yield 2.0:tape<f64[]>
    }
    else (%x: f64[]) {
      %r: f64[], %made: tape<f64[]> = for 3, %x {trips=none, carries=1, consts=0, reverse=false}
        body (%i: i64[], %s: f64[]) {
          %d: f64[] = mul %s, 2.0
          yield %d, %s
        }
      yield %made
    }
  %u: tape<tape<f64[]>> = for 2, %t {trips=none, carries=0, consts=1, reverse=false}
    body (%i: i64[], %t: tape<f64[]>) {
      yield %t
    }
  return %t, %u
}
"""
X = np.array([0.25, -0.5])


def given(trips: int) -> tuple[Any, ...]:
    return compiled(parse(KEEPS), "llvm").run(X, np.int64(trips))


def as_lists(value: Any) -> Any:
    return [*map(as_lists, value)] if isinstance(value, (list, Tape)) else value


def lines_of_python(function: Function) -> str:
    text = compiled(function, "llvm").source
    return text[text.index("# callbacks into Python:") :]


@pytest.mark.parametrize("trips", [0, 1, 2, 9])
def test_tapes_leave_and_enter_machine_code(trips: int) -> None:
    expected = compiled(parse(KEEPS), "numpy").run(X, np.int64(trips))
    found = given(trips)
    assert isinstance(found[0], Tape) and isinstance(found[1], Tape)
    assert len(found[0]) == len(found[1]) == trips
    assert [len(rows) for rows in found[0]] == [*range(trips)]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-14)
    for rows, wanted in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(np.reshape([*rows], (-1, 2)), np.reshape(wanted, (-1, 2)), rtol=1e-14)
    reads = parse(READS)
    wanted = compiled(reads, "numpy").run(np.int64(trips), *expected[:2])[0]
    for tapes in (found[:2], expected[:2], as_lists(found[:2])):  # those of Python too
        np.testing.assert_allclose(compiled(reads, "llvm").run(np.int64(trips), *tapes)[0], wanted, rtol=1e-14)
        np.testing.assert_allclose(compiled(reads, "numpy").run(np.int64(trips), *tapes)[0], wanted, rtol=1e-14)
    assert lines_of_python(parse(KEEPS)).startswith("# callbacks into Python: 0")
    assert lines_of_python(reads).startswith("# callbacks into Python: 0")


def test_a_tape_that_is_handed_on_keeps_its_memory() -> None:
    run = compiled(parse(READS), "llvm").run
    another = compiled(parse(KEEPS), "llvm").run
    handed = run(np.int64(5), *given(5)[:2])[1]
    gc.collect()
    others = [another(X + 1.0, np.int64(5)) for _ in range(20)]  # would lie where it did
    assert len(others) == 20
    row = handed[4][3]
    del handed
    gc.collect()
    others += [another(X + 1.0, np.int64(5)) for _ in range(20)]
    np.testing.assert_array_equal(row, compiled(parse(KEEPS), "numpy").run(X, np.int64(5))[0][4][3])
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1.0


@pytest.mark.parametrize("result", [np.float64(2.0), np.array([1.0, 2.0])], ids=["number", "array"])
def test_one_result_may_be_given_as_it_is_and_not_in_a_tuple(monkeypatch: pytest.MonkeyPatch, result: Any) -> None:
    """By machine code that was written for parts of a program, which take one result so."""
    monkeypatch.setattr(native, "kernel", lambda *given: lambda *tapes: result)
    types = [TapeType(ArrayType(FLOAT64, ()))], [ArrayType(FLOAT64, result.shape)]
    call = kernel(cast(Any, None), "part", types[0], [0], types[1], [0], False)
    assert call([np.float64(1.0)]) is result


def test_the_memory_of_tapes_goes_back_with_the_last_that_reads_it() -> None:
    """Where one call has its blocks, the next one has them again."""
    places = set()
    for _ in range(400):
        found = given(3)
        places.add(int(found[0].words[0]))
        del found
    assert len(places) < 100
    assert native.POOL.waiting >= 0


@pytest.mark.parametrize("filled", [True, False])
def test_tapes_with_one_element_at_every_index(filled: bool) -> None:
    for backend in ("llvm", "numpy"):
        one, two = compiled(parse(FILLED), backend).run(np.float64(1.5), np.bool_(filled))
        assert len(two) == 2
        for tape in (one, *two):
            assert hasattr(tape, "fills") == filled
            assert [tape[k] for k in range(3)] == ([2.0, 2.0, 2.0] if filled else [1.5, 3.0, 6.0])


def test_copies_of_tapes_are_lists() -> None:
    tapes, sums, _ = given(4)
    for found in (copy.deepcopy(tapes), pickle.loads(pickle.dumps(tapes))):
        assert type(found) is list and [len(rows) for rows in found] == [0, 1, 2, 3]
        np.testing.assert_array_equal(found[3][1], tapes[3][1])
    assert pickle.loads(pickle.dumps(sums)) == [*sums]


SOLVES = """
func @solves(%n: i64[], %x: f64[2,1], %rows: tape<f64[2,2]>) -> (tape<f64[2,1]>, f64[2,1]) {
  %y: f64[2,1], %kept: tape<f64[2,1]> = for %n, %x, %rows {trips=none, carries=1, consts=0, reverse=false}
    body (%i: i64[], %y: f64[2,1], %row: f64[2,2]) {
      %v: f64[2,1] = solve %row, %y
      yield %v, %y
    }
  return %kept, %y
}
"""


def test_what_fails_in_machine_code_raises_as_in_numpy() -> None:
    run = compiled(parse(SOLVES), "llvm").run
    rows = [np.eye(2) * 2.0, np.eye(2) * 4.0]
    kept, total = run(np.int64(2), np.ones((2, 1)), rows)
    assert isinstance(kept, Tape) and kept.type == TapeType(ArrayType(FLOAT64, (2, 1)))
    np.testing.assert_allclose(total, [[0.125], [0.125]])
    np.testing.assert_allclose(kept[1], [[0.5], [0.5]])
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            run(np.int64(2), np.ones((2, 1)), [np.eye(2), np.zeros((2, 2))])
