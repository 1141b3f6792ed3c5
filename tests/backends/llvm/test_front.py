"""Calls answered in machine code are never stale, and give way to what is in progress."""

from __future__ import annotations

import contextvars
import random
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_cases import CHANGES, MANY, STEPS, Change, world
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served

pytest.importorskip("llvmlite")
from srcgrad import front, front_guards
from srcgrad.front_asked import Asked

pytestmark = needs_machine


# --- staleness -------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_a_change_of_what_is_read_is_seen(case: Change, guards: str, asked: list[Transformed]) -> None:
    names = world(case.source)
    f = served(sg.value_and_grad(names["f"], backend="llvm"), 0.7)
    asked.clear()
    first = f(0.7)
    assert not asked
    bound = any(getattr(kept, "__name__", "") == "bind" for kept in f._tables[1])
    assert bound == (guards == "bind")
    assert same(first, sg.value_and_grad(names["f"], backend="numpy")(0.7))
    exec(case.change, names)
    for _ in range(3 * SERVED_FROM):
        expected = outcome(sg.value_and_grad(f.f, backend="numpy"), 0.7)
        assert same(outcome(f, 0.7), expected)
    assert not same(expected, first)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("seed", range(2))
def test_changes_in_any_order_are_seen(seed: int, guards: str) -> None:
    names, steps = world(MANY), random.Random(seed)
    f = served(sg.grad(names["f"], backend="llvm"), 0.7)
    plain = sg.grad(names["f"], backend="numpy")
    for _ in range(60):
        step = steps.choice(STEPS)
        exec(step, names)
        for _ in range(steps.choice((1, 1, 6))):
            assert same(outcome(f, 0.7), outcome(plain, 0.7)), step


def test_changes_back_and_forth_are_seen(asked: list[Transformed]) -> None:
    names = world("n = 2\ns = 1.0\ndef f(x): return x**n * s")
    f = served(sg.grad(names["f"], backend="llvm"), 3.0)
    for n in (3, 2, 3, 2):
        names["n"] = n
        for s in (1.0, 2.0):
            names["s"] = s
            for _ in range(2 * SERVED_FROM):
                assert f(3.0) == n * 3.0 ** (n - 1) * s
    asked.clear()
    names["n"] = 2
    assert f(3.0) == 12.0
    assert not asked


def test_unrelated_globals_change_nothing(asked: list[Transformed]) -> None:
    names = world("def f(x): return np.sin(x) * x")
    f = served(sg.grad(names["f"], backend="llvm"), 0.5)
    asked.clear()
    for number in range(20):
        names[f"other{number}"] = number
        assert np.isclose(f(0.5), np.sin(0.5) + 0.5 * np.cos(0.5))
    assert not asked


def test_a_guard_that_changes_while_its_table_is_written_is_not_taken_as_it_is_then() -> None:
    names = world("n = 2\ndef f(x): return x**n")
    f = sg.grad(names["f"], backend="llvm")
    f(3.0)
    captures = next(iter(f.fast.values()))[0]
    names["n"] = 3
    guards = front_guards.Guards(front.Table(1), captures, names["f"], 0)
    asked = Asked(guards.statements, frozenset(guards.unknown), guards.constants)
    assert asked.function(names["f"]) is None
    names["n"] = 2
    assert asked.function(names["f"]) is not None


# --- what is chosen --------------------------------------------------------------------------------------------------
def test_the_backend_of_the_moment_is_asked(asked: list[Transformed]) -> None:
    sg.set_backend("llvm")
    f = served(sg.grad(lambda x: np.sin(x)), 0.5)
    asked.clear()
    with sg.use_backend("numpy"):
        f(0.5)
    assert len(asked) == 1
    sg.set_backend("numpy")
    f(0.5)
    assert len(asked) == 2
    sg.set_backend("llvm")
    f(0.5)
    assert len(asked) == 2


def test_a_table_made_where_a_backend_was_chosen_is_no_choice_afterwards(asked: list[Transformed]) -> None:
    sg.set_backend("numpy")
    f = sg.grad(lambda x: np.sin(x))
    with sg.use_backend("llvm"):
        served(f, 0.5)
    asked.clear()
    f(0.5)
    assert len(asked) == 1
    sg.set_backend("".join(["ll", "vm"]))
    f(0.5)
    assert len(asked) == 1


def test_a_backend_chosen_in_a_context_that_lasts_is_asked(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x), backend="llvm"), 0.5)
    with sg.use_backend("numpy"):
        context = contextvars.copy_context()
    asked.clear()
    f(0.5)
    assert len(asked) == 1
    del context
    f(0.5)
    assert len(asked) == 1


def test_debugging_looks_at_every_operation() -> None:
    f = served(sg.grad(lambda x: np.sqrt(x) * 2.0, backend="llvm"), 0.5)
    assert np.isinf(f(0.0))
    with sg.debug(), pytest.raises(sg.errors.NonFiniteError):
        f(0.0)
    assert np.isinf(f(0.0))


def test_calls_inside_traces_are_traced(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x) * x, backend="llvm"), 0.5)
    outer = sg.grad(lambda x: f(x) * x, backend="llvm")
    expected = sg.grad(lambda x: sg.grad(lambda y: np.sin(y) * y)(x) * x)(0.5)
    for _ in range(3 * SERVED_FROM):
        assert np.isclose(outer(0.5), expected)
    many = sg.vmap(f, backend="llvm")
    for _ in range(3 * SERVED_FROM):
        assert np.allclose(many(X), [f(x) for x in X])
    asked.clear()
    outer(0.5), many(X), f(0.5)
    assert not asked


def test_a_call_on_numbers_inside_a_trace_is_part_of_it() -> None:
    f = served(sg.jit(lambda x: x * 2.0, backend="llvm"), 3.0)
    seen = []

    def inside(x: Any) -> Any:
        seen.append(type(f(3.0)).__name__)
        return x * f(3.0)

    assert sg.grad(inside, backend="llvm")(1.0) == 6.0
    assert seen[0] != "float64"


def test_an_error_in_a_trace_leaves_nothing_in_progress(asked: list[Transformed]) -> None:
    f = served(sg.grad(lambda x: np.sin(x), backend="llvm"), 0.5)

    def fails(x: Any) -> Any:
        raise KeyError(1)

    with pytest.raises(KeyError):
        sg.grad(fails)(1.0)
    with pytest.raises(KeyError), sg.use_backend("numpy"):
        raise KeyError(2)
    with pytest.raises(KeyError), sg.debug():
        raise KeyError(3)
    asked.clear()
    f(0.5)
    assert not asked
