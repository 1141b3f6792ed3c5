"""Carries of loops that lie in a column, where each trip finds what the one before wrote: no trip copies them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.ir.core import Function
from tests.backends.llvm.test_control import loop_plan, require_agreement
from tests.ir.control.programs import trace
from tests.ir.control.tracing import for_, put, tanh, vector

SIZES = (3, 5_000)
"""Elements of a carry: tapes that share blocks of memory, and those that have their own."""


def steps(x: Any, n: Any) -> Any:
    """As many steps as a number says."""
    u = 0.1 * x
    for _ in range(n):
        u = u + 0.05 * np.sin(3.0 * u) * x
    return np.sum(u * u)


def until(x: Any, n: Any) -> Any:
    """Steps until what they give is large enough."""
    u = x * 1.0
    while np.max(np.abs(u)) < n:
        u = u * (1.2 + 0.1 * np.cos(u))
    return np.sum(u * np.sin(x))


def changing_places(x: Any, n: Any) -> Any:
    """Two carries, of which each is the other one in the next trip, and in the end."""
    a, b = np.sin(x), x * 0.5
    for _ in range(n):
        a, b = b, np.sin(a) * b + x
    return np.sum(a * b) + np.sum(a)


def partly_written(x: Any, n: Any) -> Any:
    """One element of a carry is written in a trip that reads all of it."""
    u = np.cos(x)
    for k in range(n):
        total = np.mean(np.sin(u))
        u[k % 3] = u[(k + 1) % 3] * total / (1.0 + u[k % 3] ** 2)
    return np.sum(u * x)


def within(x: Any, n: Any) -> Any:
    """A loop in each trip of another one."""
    u = 0.3 * x
    for _ in range(n):
        v = u * 1.0
        for _ in range(3):
            v = v + 0.1 * np.sin(v) * u
        u = np.tanh(v)
    return np.sum(u * u * x)


def with_branches(x: Any, n: Any) -> Any:
    """A trip that leaves the carry as it is, or not."""
    u = 0.2 * x
    for k in range(n):
        if k % 3 != 1:
            u = u * np.exp(-0.1 * u * u) + 0.05
    return np.sum(np.sin(u))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "steps": steps, "until": until, "changing places": changing_places, "partly written": partly_written,
    "within": within, "branches": with_branches,
}  # fmt: skip


def found(f: Callable[..., Any], x: Any, backend: str) -> list[Any]:
    """The value, the gradient, and the gradient's derivative along a direction."""
    v = np.cos(np.arange(x.size))
    return [*sg.value_and_grad(f, backend=backend)(x), sg.hvp(f, (x,), (v,), backend=backend)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_loops_whose_carries_are_kept(name: str, size: int) -> None:
    program, x = PROGRAMS[name], np.linspace(0.2, 0.9, size)
    for n in (0, 1, 9) if size == 3 else (9,):
        values = [found(functools.partial(program, n=n), x, backend) for backend in ("llvm", "numpy")]
        for a, b in zip(*values, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=f"{n} trips")


@pytest.mark.parametrize("name", PROGRAMS)
def test_trips_that_the_run_counts(name: str) -> None:
    program, x = PROGRAMS[name], np.linspace(0.2, 0.9, 40)
    gradients = [sg.value_and_grad(program, backend=backend) for backend in ("llvm", "numpy")]
    for n in (3, 0, 1, 30, 2):
        values = [gradient(x, np.int64(n)) for gradient in gradients]
        np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-11)
        np.testing.assert_allclose(values[0][1], values[1][1], rtol=1e-10, atol=1e-12)
        again = [sg.hvp(lambda x: program(x, np.int64(n)), (x,), (x,), backend=b) for b in ("llvm", "numpy")]  # noqa: B023
        np.testing.assert_allclose(again[0], again[1], rtol=1e-9, atol=1e-11)


def states(trips: Any, reverse: bool, also: bool = False) -> Callable[..., Any]:
    """The states of a recurrence as a column, and the last one."""

    def rule(x: Any, *count: Any) -> Any:
        def body(i: Any, u: Any) -> Any:
            after = tanh(u * 1.5) + x
            return (after, u, u, after) if also else (after, u)

        return tuple(for_(count[0] if count else trips, body, x, reverse=reverse))

    return rule


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 5, 300])
def test_states_are_written_where_they_are_kept(size: int, reverse: bool) -> None:
    for trips in (1, 2, 7):
        for also in (False, True):
            function = trace(states(trips, reverse, also), vector(size))
            assert loop_plan(function).modes == ["column"]
            require_agreement(function, np.linspace(-1.0, 1.0, size))
    empty = trace(states(0, reverse), vector(size))
    require_agreement(empty, np.linspace(-1.0, 1.0, size))


def test_a_state_that_is_kept_is_not_written_over() -> None:
    def rule(x: Any) -> Any:
        last, column = for_(6, lambda i, u: (put(u, i, 2.0), u), x * 2.0)
        return last, column

    function = trace(rule, vector(8))
    assert loop_plan(function).modes == ["column"], "each trip writes a copy"
    require_agreement(function, np.arange(8.0))


def test_a_column_that_nothing_reads_holds_no_carry() -> None:
    traced = trace(lambda x: for_(6, lambda i, u, v: (v, tanh(u) + x, u), x * 2.0, x), vector(8))
    assert loop_plan(traced).modes[0] == "column"
    function = Function(traced.name, traced.params, traced.operations, traced.results[:2])
    assert "column" not in loop_plan(function).modes
    require_agreement(function, np.arange(8.0))


def test_a_tape_that_moves_as_it_grows() -> None:
    """A long one is grown where it is, or moved, while a trip is to read what it begins with there."""
    x = np.linspace(0.2, 0.9, 100_000)
    values = [sg.value_and_grad(until, backend=backend)(x, 20.0) for backend in ("llvm", "numpy")]
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-11)
    np.testing.assert_allclose(values[0][1], values[1][1], rtol=1e-10)
