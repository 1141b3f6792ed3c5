"""``np.interp`` between nodes that are a slice whose length changes from trip to trip."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.control_flow.sliced import Function, check, on_backends, operations

pytestmark = pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
TIMES = np.cumsum(np.random.default_rng(2).uniform(0.01, 0.07, size=24))
POINT = np.random.default_rng(3).normal(size=24)


def of_a_prefix(x: Any) -> Any:
    """From one node on, and places below, between and above."""
    found = np.zeros(23)
    for i in range(1, 24):
        found[i - 1] = np.interp(0.31, TIMES[:i], x[:i]) + np.interp(0.2 * x[i], TIMES[:i], x[:i])
    return found


def of_a_suffix(x: Any) -> Any:
    found = np.zeros(23)
    for i in range(23):
        found[i] = np.sum(np.interp(np.array([0.31, -1.0, 0.9, 2.0]), TIMES[i:], x[i:] * x[0]))
    return found


def of_traced_nodes(x: Any) -> Any:
    """Nodes that move, and ends that are given."""
    nodes = TIMES + 0.01 * np.sin(x)
    found = np.zeros(21)
    for i in range(21):
        found[i] = np.interp(0.4 + 0.01 * x[i], nodes[: i + 3], x[: i + 3], left=x[1], right=2.0)
    return found


def shifted(x: Any) -> Any:
    """Slices of one length at different places."""
    found = np.zeros(21)
    for i in range(2, 23):
        found[i - 2] = np.interp(0.03 * x[i], TIMES[:i] - TIMES[i], x[1 : i + 1])
    return found


def at_nodes(x: Any) -> Any:
    found = np.zeros(23)
    for i in range(1, 24):
        found[i - 1] = np.interp(TIMES[i - 1], TIMES[:i], x[:i]) + np.interp(TIMES[i], TIMES[:i], x[:i])
    return found


def long_axis(x: Any) -> Any:
    found, t = 0.0, np.linspace(0, 1, 40)
    y = np.outer(x, np.cos(t)).sum(axis=0)
    for i in range(3, 40):
        found = found + np.interp(0.37 * t[i], t[:i], y[:i])
    return np.array([found])


def of_what_is_filled(x: Any) -> Any:
    """A history, of which the rest is not there yet."""
    times, values, t = np.zeros(24), np.zeros(24), 0.0
    values[0] = x[0]
    for i in range(1, 24):
        past = np.interp(t - 0.2, times[:i], values[:i])
        t = t + 0.05 + 0.001 * x[1] * i
        times[i] = t
        values[i] = values[i - 1] + 0.1 * (x[i] - past)
    return values


FUNCTIONS = (of_what_is_filled, of_a_prefix, of_a_suffix, of_traced_nodes, shifted, long_axis)


@pytest.mark.parametrize(
    ("f", "x", "backend"), on_backends([(f, POINT) for f in (*FUNCTIONS, at_nodes)], (of_a_prefix,))
)
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-6)


def test_no_number_is_none_and_complex_values_are() -> None:
    def f(x: Any) -> Any:
        found = np.zeros(38, np.complex128)
        for i in range(2, 40):
            found[i - 2] = np.interp(x[i % 24], t[:i], y[:i])
        return found

    t = np.linspace(0, 1, 40)
    y = np.exp(3j * t)
    x = np.where(np.arange(24) == 4, np.nan, POINT)
    np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_loop_is_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(POINT)["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_operations_do_not_grow_with_the_trips() -> None:
    assert operations(long_axis, (24,)) < 120


def test_a_slice_that_may_be_empty_is_an_error_of_numpys() -> None:
    def f(x: Any) -> Any:
        total, t = 0.0, np.linspace(0, 1, 40)
        for i in range(40):
            total = total + np.interp(0.3, t[:i], t[:i] * x[0])
        return total

    with pytest.raises(ValueError, match="array of sample points is empty"):
        sg.jit(f)(POINT)
