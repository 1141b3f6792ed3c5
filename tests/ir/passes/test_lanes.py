"""Jacobians by columns: with the axis of the tangents last from the start, programs give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import srcgrad as sg
from srcgrad.ir.core import Function
from srcgrad.ir.parser import parse
from srcgrad.ir.passes import lanes
from srcgrad.ir.passes.lanes import tangents_last, turns_batch
from srcgrad.ir.verify import verify
from tests.ir.ops.harness import run

SIZE = 20
POINT = np.random.default_rng(3).normal(size=SIZE)


def stencil(x: Any) -> Any:
    u = x.reshape(4, 5)
    return np.sum((u[:, 1:] - u[:, :-1]) ** 4) + np.sum(np.pad(u, 1)[::2, 1:] ** 3) + np.sum(np.roll(u, 1, axis=1) * u)


def in_place(x: Any) -> Any:
    u = np.zeros((4, 7))
    u[:, 1:-1] = np.sin(x.reshape(4, 5))
    u[1:-1, 1:-1] *= u[1:-1, :-2] - u[:-2, 2:]
    return np.sum(u**3)


def by_elements(x: Any) -> Any:
    u, s = x.reshape(4, 5), 0.0
    for k in range(4):
        s += np.sin(u[k, 0]) * u[k, 1] + u[k, 2] * u[k - 1, 3] ** 2 * u[k, 4]
    return s


def rows_written(x: Any) -> Any:
    u, d = x.reshape(5, 4), np.zeros((5, 2))
    for k in range(1, 5):
        d[k] = np.array([np.sin(u[k, 0]) * u[k - 1, 1], u[k, 2] ** 2 * d[k - 1, 0]])
        if k % 2:
            d[k - 1, 1] += u[k, 3] * d[k, 1]
    return np.sum(d**2)


def recurrence(x: Any) -> Any:
    y, total = x[:3], 0.0
    for k in range(3, 17):
        y = np.tanh(y[::-1] * x[k]) + np.cumsum(y) * x[k + 1 : k + 4]
        if y[0] > 0:
            y = y * x[k]
        total += np.sum(y**2)
    return total


def index_arrays(x: Any) -> Any:
    u = x.reshape(5, 4)
    v = u[:, [3, 0, 0, 2]] * u[[1, 0, 4, 2, 2]]
    np.add.at(v, (slice(None), [0, 1, 1]), np.exp(u[:, :3]))
    v[[0, 0, 3]] = u[1:4]
    return np.sum(v**3)


def reductions(x: Any) -> Any:
    u = x.reshape(4, 5)
    spread = np.exp(u - u.mean(axis=1, keepdims=True))
    return np.sum(np.log(spread.sum(axis=0)) ** 2) + np.sum(np.concatenate([spread, u], axis=1).sum(axis=1) ** 3)


def of_one_size(x: Any) -> Any:
    """Arrays all of whose axes are as long as the batch."""
    m = np.outer(x, np.cos(x))
    return np.sum((m * m.T)[::-1] * np.sin(m + x)) + np.sum(m[3] * m[:, 3] ** 2)


CASES = [stencil, in_place, by_elements, rows_written, recurrence, index_arrays, reductions, of_one_size]
IDS = [f.__name__ for f in CASES]


def program(transform: Callable[..., Any], f: Callable[..., Any], *given: Any) -> Function:
    """The optimised program of a transform."""
    return sg.explain(transform(f, backend="llvm"))(POINT, *given).functions["optimised ir"]


def ends(function: Function) -> bool:
    """Whether tangents are turned last in the end."""
    (producer,) = (value.producer for value in function.results)
    return producer is not None and turns_batch(producer)


@pytest.mark.parametrize("f", CASES, ids=IDS)
def test_tangents_are_side_by_side(f: Callable[..., Any]) -> None:
    function = program(sg.hessian, f)
    assert ends(function)
    found = tangents_last(function)
    verify(found)
    assert not ends(found)
    (one,), (other,) = (run(each, [POINT]) for each in (function, found))
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", CASES, ids=IDS)
def test_hessians_with_tangents_side_by_side_are_those_of_rows(f: Callable[..., Any]) -> None:
    rows = sg.jacrev(sg.grad(f, backend="numpy"), backend="numpy")(POINT)
    np.testing.assert_allclose(sg.hessian(f, backend="llvm")(POINT), rows, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sg.jacfwd(sg.grad(f), backend="llvm")(POINT), rows, rtol=1e-9, atol=1e-11)


def drawn(rng: np.random.Generator) -> Callable[..., Any]:
    """A random function of 20 numbers, by way of arrays of 4 by 5 and of 20 by 20."""
    steps = tuple(rng.integers(0, 12, 6).tolist())

    def f(x: Any, weights: Any, places: Any) -> Any:
        u = x.reshape(4, 5)
        for step in steps:
            moves: list[Callable[[Any], Any]] = [
                lambda u: u[::-1] * u,
                lambda u: np.cumsum(u, axis=1),
                lambda u: u[places] + u,
                lambda u: np.concatenate([u[:, 2:], u[:, :2] ** 2], axis=1),
                lambda u: np.tanh(u) * u.sum(axis=0),
                lambda u: u * u.max(axis=1, keepdims=True),
                lambda u: np.where(u > 0, u, np.sin(u)),
                lambda u: (np.outer(x, x) * np.outer(x, x).T[::-1]).sum(axis=0).reshape(4, 5) + u,
                lambda u: u @ weights,
                lambda u: (u.T + x.reshape(5, 4)).T,
                lambda u: written(u, places),
                lambda u: np.sort(u, axis=1),
            ]
            u = np.tanh(moves[step](u))
        return u.ravel()

    def written(u: Any, places: Any) -> Any:
        u = u.copy()
        u[:, places] = u[:, 1:] * u[:, :1]
        u[1, ::2] += u[2, ::2] ** 2
        return u

    return f


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = [rng.normal(size=(5, 5)), rng.integers(-4, 4, 4)]
    function = program(sg.jacfwd, drawn(rng), *given)
    found = tangents_last(function)
    verify(found)
    (one,), (other,) = (run(each, [POINT, *given][: len(each.params)]) for each in (function, found))
    np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", [by_elements, rows_written], ids=lambda f: f.__name__)
def test_what_the_elements_of_tangents_are_read_from_is_turned_too(f: Callable[..., Any]) -> None:
    """It is another batch: between them the tangents are last already, in the numbers that a trip handles."""
    read = [
        o.operands[0].type.shape
        for o in tangents_last(program(sg.hessian, f)).walk()
        if o.op.name in lanes.KINDS and o.operands
    ]
    assert not [shape for shape in read if len(shape) == 3 and shape[0] == SIZE]


# --- what keeps its layout --------------------------------------------------------------------------------------------


def batch_of(body: str, size: int = 20, result: str = "%y") -> Function:
    return parse(f"""func @f(%x: f64[{size}], %w: f64[{size},6], %i: i64[3]) -> (f64[6,{size}]) {{
      %0: f64[{size},6] = broadcast %x {{shape=[{size},6], dims=[0]}}
      {body}
      %z: f64[6,{size}] = transpose {result} {{perm=[1,0]}}
      return %z
    }}""")


@pytest.mark.parametrize(
    ("function", "turned"),
    [
        pytest.param(batch_of("%y: f64[20,6] = sin %0"), True, id="elements"),
        pytest.param(batch_of("%y: f64[20,6] = sort %0 {axis=1}"), False, id="an op of rows"),
        pytest.param(batch_of("%y: f64[20,6] = mul %0, %w"), False, id="with a parameter"),
        pytest.param(batch_of("%y: f64[20,6] = reverse %0 {axes=[0,1]}"), False, id="along the batch"),
        pytest.param(batch_of("%y: f64[20,6] = reverse %0 {axes=[1]}"), True, id="along its rows"),
        pytest.param(batch_of("%y: f64[8,6] = sin %0", 8), False, id="few"),
    ],
)
def test_what_keeps_its_layout(function: Function, turned: bool) -> None:
    found = tangents_last(function)
    assert (found is not function) == turned
    size = function.params[0].type.static_shape[0]
    given = [POINT[:size], np.ones((size, 6)), np.arange(3)]
    np.testing.assert_array_equal(run(found, given)[0], run(function, given)[0])


def test_long_rows_keep_their_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    function = batch_of("%y: f64[20,6] = sin %0")
    monkeypatch.setattr(lanes, "LONGER", 0.25)
    assert tangents_last(function) is function


def test_an_array_that_is_a_batch_by_two_of_its_axes() -> None:
    """Such a one has no axis that could be last in all of its uses."""
    function = parse("""func @f(%x: f64[20]) -> (f64[20,20], f64[3,20]) {
      %0: i64[20,20] = iota {shape=[20,20], axis=0, dtype=i64}
      %1: f64[20,20] = cast %0 {dtype=f64}
      %2: f64[20,20] = transpose %1 {perm=[1,0]}
      %3: f64[20,20] = exp %1
      %4: f64[20,20] = mul %3, %2
      %5: f64[20,20] = transpose %4 {perm=[1,0]}
      %6: f64[20,3] = slice %3 {starts=[0,2], limits=[20,5], strides=[1,1]}
      %7: f64[3,20] = transpose %6 {perm=[1,0]}
      return %5, %7
    }""")
    found = tangents_last(function)
    verify(found)
    for one, another in zip(run(function, [POINT]), run(found, [POINT]), strict=True):
        np.testing.assert_array_equal(one, another)
    assert found is function


def test_rules_of_users_beside_batches_give_more_results_than_what_they_are_for() -> None:
    def solved(a: Any) -> Any:
        def equations(x: Any) -> Any:
            left, right = np.concatenate([[0.0], x[:-1]]), np.concatenate([x[1:], [1.0]])
            return (left - 2 * x + right) * 1681 - a * np.exp(x)

        return scipy.optimize.fsolve(equations, np.linspace(0, 1, 40), xtol=1e-13)[20]

    assert sg.jvp(solved, (1.0,), (1.0,))[1] == pytest.approx(sg.grad(solved)(1.0), rel=1e-9)
