"""Random programs with nested control flow against plain Python: values, and derivatives by complex steps."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.verify import verify
from tests.ir.control.programs import compiled, derivative, interpreted, trace
from tests.ir.control.tracing import F64, apply, at, cond, for_, put, sin, spread, tanh, while_

SCALARS, SIZE = 3, 4
Statement = tuple[Any, ...]

places = st.integers(0, SCALARS - 1)
cells = st.integers(0, SIZE - 1)
limits = st.floats(-1.5, 1.5).map(lambda number: round(number, 2) + 0.003)
simple = st.one_of(
    st.tuples(st.sampled_from(["add", "mul", "sin", "tanh"]), places, places, places),
    st.tuples(st.just("put"), cells, places),
    st.tuples(st.just("get"), places, cells),
)


def nested(inner: st.SearchStrategy[list[Statement]]) -> st.SearchStrategy[list[Statement]]:
    statement = st.one_of(
        simple,
        st.tuples(st.just("if"), places, limits, inner, inner),
        st.tuples(st.just("for"), st.integers(0, 3), st.booleans(), st.booleans(), inner),
        st.tuples(st.just("while"), places, limits, inner),
        st.tuples(st.just("sweep"), places, inner),
    )
    return st.lists(statement, min_size=1, max_size=4)


programs = st.recursive(st.lists(simple, min_size=1, max_size=3), nested, max_leaves=8)
MOST_TRIPS = 4


class Plain:
    """What a program means: Python statements on numbers, complex ones for complex steps."""

    def __init__(self, x: complex) -> None:
        self.s: list[Any] = [x, 0.5 * x + 0.3, 0.8 + 0j]
        self.v: list[Any] = [0.1 * k + x * 0.2 for k in range(SIZE)]

    def run(self, program: list[Statement]) -> None:
        s = self.s
        for name, *rest in program:
            if name == "add":
                s[rest[0]] = s[rest[1]] * 0.5 + s[rest[2]]
            elif name == "mul":
                s[rest[0]] = s[rest[1]] * s[rest[2]] * 0.7
            elif name == "sin":
                s[rest[0]] = cmath.sin(s[rest[1]]) + s[rest[2]] * 0.3
            elif name == "tanh":
                s[rest[0]] = cmath.tanh(s[rest[1]] * s[rest[2]])
            elif name == "put":
                self.v[rest[0]] = s[rest[1]]
            elif name == "get":
                s[rest[0]] = self.v[rest[1]]
            elif name == "if":
                self.run(rest[2] if s[rest[0]].real > rest[1] else rest[3])
            elif name == "for":
                for _ in range(rest[0]):
                    self.run(rest[3])
            elif name == "sweep":
                for index in range(SIZE):
                    s[rest[0]] = cmath.tanh(s[rest[0]] + self.v[index])
                    self.run(rest[1])
                    self.v[index] = s[rest[0]] * 0.9
            else:
                trips = 0
                while trips < MOST_TRIPS and s[rest[0]].real > rest[1]:
                    self.run(rest[2])
                    trips += 1

    def result(self) -> complex:
        return sum(self.s) + sum((k + 1) * cell for k, cell in enumerate(self.v))  # type: ignore[no-any-return]


def plain(program: list[Statement], x: complex) -> complex:
    state = Plain(x)
    state.run(program)
    return state.result()


State = tuple[Any, ...]


def traced(program: list[Statement], x: Any) -> Any:
    """The same on terms; what is changed in a region is a carry."""
    state: State = (x, x * 0.5 + 0.3, x * 0.0 + 0.8)
    cells_ = spread(x * 0.2, SIZE)
    for k in range(SIZE):
        cells_ = put(cells_, np.int64(k), at(cells_, np.int64(k)) + 0.1 * k)
    *s, v = run(program, (*state, cells_))
    total = s[0] + s[1] + s[2]
    for k in range(SIZE):
        total = total + at(v, np.int64(k)) * (k + 1.0)
    return total


def run(program: list[Statement], state: State) -> State:
    for name, *rest in program:
        *s, v = state
        if name == "add":
            s[rest[0]] = s[rest[1]] * 0.5 + s[rest[2]]
        elif name == "mul":
            s[rest[0]] = s[rest[1]] * s[rest[2]] * 0.7
        elif name == "sin":
            s[rest[0]] = sin(s[rest[1]]) + s[rest[2]] * 0.3
        elif name == "tanh":
            s[rest[0]] = tanh(s[rest[1]] * s[rest[2]])
        elif name == "put":
            v = put(v, np.int64(rest[0]), s[rest[1]])
        elif name == "get":
            s[rest[0]] = at(v, np.int64(rest[1]))
        else:
            state = structured(name, rest, (*s, v))
            continue
        state = (*s, v)
    return state


def structured(name: str, rest: list[Any], state: State) -> State:
    if name == "if":
        then, orelse = (lambda *inner, block=block: run(block, inner) for block in rest[2:])
        return tuple(cond(state[rest[0]] > rest[1], then, orelse, *state))
    if name == "for":
        count: Any = apply("cast", state[0] * 0.0, dtype=np.dtype(np.int64)) + rest[0] if rest[1] else rest[0]
        return tuple(for_(count, lambda i, *inner: run(rest[3], inner), *state, checkpoint=rest[2]))
    if name == "sweep":

        def sweep(index: Any, *inner: Any) -> State:
            *s, v = inner
            s[rest[0]] = tanh(s[rest[0]] + at(v, index))
            *s, v = run(rest[1], (*s, v))
            return (*s, put(v, index, s[rest[0]] * 0.9))

        return tuple(for_(SIZE, sweep, *state))

    def going(trips: Any, *inner: Any) -> Any:
        return (trips < MOST_TRIPS) & (inner[rest[0]] > rest[1])

    body = lambda trips, *inner: (trips + 1, *run(rest[2], inner))  # noqa: E731
    return tuple(while_(going, body, np.int64(0), *state)[1 : len(state) + 1])


PHASES = [phase for phase in Phase if phase is not Phase.explain]
OPTIONS: dict[str, Any] = {
    "deadline": None, "derandomize": True, "phases": PHASES, "suppress_health_check": list(HealthCheck),
}  # fmt: skip


@settings(max_examples=50, **OPTIONS)
@given(programs)
def test_programs_mean_what_python_means(program: list[Statement]) -> None:
    x = 0.4
    function = trace(lambda term: traced(program, term), F64)
    verify(function)
    expected = plain(program, complex(x))
    slope = plain(program, x + 1e-30j).imag / 1e-30
    np.testing.assert_allclose(interpreted(function, x)[0], expected.real, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled(function)(np.float64(x))[0], expected.real, rtol=1e-12, atol=1e-12)
    for mode in "FR":
        first = derivative(prepare(function), mode)
        np.testing.assert_allclose(interpreted(first, x)[0], slope, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(compiled(first)(np.float64(x))[0], slope, rtol=1e-10, atol=1e-11)


@settings(max_examples=30, **OPTIONS)
@given(programs)
def test_second_derivatives_agree(program: list[Statement]) -> None:
    function = prepare(trace(lambda term: traced(program, term), F64))
    found = []
    for one in "FR":
        first = derivative(function, one)
        for two in "FR":
            found.append(float(compiled(derivative(first, two))(np.float64(0.4))[0]))
    step = 1e-4
    slopes = [plain(program, 0.4 + sign * step + 1e-30j).imag / 1e-30 for sign in (-1, 1)]
    np.testing.assert_allclose(found, found[0], rtol=1e-9, atol=1e-10)
    near = plain(program, 0.4 + 2 * step + 1e-30j).imag / 1e-30 - plain(program, 0.4 - 2 * step + 1e-30j).imag / 1e-30
    estimate, wide = (slopes[1] - slopes[0]) / (2 * step), near / (4 * step)
    if abs(estimate - wide) < 1e-4 * (1 + abs(estimate)):  # no branch changes nearby
        np.testing.assert_allclose(found[0], estimate, rtol=1e-4, atol=1e-5)


@settings(max_examples=40, **OPTIONS)
@given(programs)
def test_batches_are_the_examples_one_by_one(program: list[Statement]) -> None:
    function = trace(lambda term: traced(program, term), F64)
    points = np.array([0.4, -0.9, 1.3])
    for each in (function, derivative(prepare(function), "R")):
        together = batch(each, [True], 3)
        verify(together)
        expected = [interpreted(each, x)[0] for x in points]
        np.testing.assert_allclose(compiled(together)(points)[0], expected, rtol=1e-10, atol=1e-11)


@settings(max_examples=3, **OPTIONS)
@given(programs)
def test_xla_agrees_on_random_programs(program: list[Statement]) -> None:
    pytest.importorskip("jax")
    function = trace(lambda term: traced(program, term), F64)
    gradient = derivative(prepare(function), "R")
    for each in (function, gradient):
        expected = interpreted(each, 0.4)[0]
        np.testing.assert_allclose(compiled(each, "xla")(np.float64(0.4))[0], expected, rtol=1e-10, atol=1e-11)
