"""Batched control flow: each example as if it were alone, whatever the others do."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.passes.dce import dce
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.transforms.derivatives import hvp, value_and_grad
from srcgrad.ir.verify import verify
from tests.ir.control.programs import PROGRAMS, compiled, derivative, interpreted, nestings, summed, trace
from tests.ir.control.tracing import F64, I64, at, check, cond, for_, log, sqrt, vector, while_

POINTS = {
    "newton": [2.0, 3.0, 100.0],
    "power": [3.0, 50.0, 1.1],
    "loop in cond, taken": [0.5, -0.5, 3.0],
    "two loops in cond": [-0.6, 0.7, -0.9],
    "counted at run time": [0.65, 0.05, 0.33],
}


def points(name: str) -> np.ndarray:  # type: ignore[type-arg]
    x = PROGRAMS[name][1]
    return np.array(POINTS.get(name, [x, x * 0.9, x * 1.1]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_are_the_examples(name: str) -> None:
    function, xs = trace(PROGRAMS[name][0], F64), points(name)
    for each in (function, *(nested for order in (1, 2) for _, nested in nestings(function, order))):
        together = batch(each, [True], len(xs))
        verify(together)
        expected = [interpreted(each, x)[0] for x in xs]
        np.testing.assert_allclose(interpreted(together, xs)[0], expected, rtol=1e-11, err_msg=each.name)
        np.testing.assert_allclose(compiled(together)(xs)[0], expected, rtol=1e-11, err_msg=each.name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_are_differentiated(name: str) -> None:
    function, xs = trace(PROGRAMS[name][0], F64), points(name)
    together = summed(dce(batch(function, [True], len(xs))))
    slopes = [interpreted(derivative(function, "R"), x)[0] for x in xs]
    curvatures = [interpreted(derivative(derivative(function, "R"), "F"), x)[0] for x in xs]
    np.testing.assert_allclose(compiled(value_and_grad(together, [True]))(xs)[1], slopes, rtol=1e-11)
    np.testing.assert_allclose(compiled(hvp(together, [True]))(xs, np.ones(len(xs)))[0], curvatures, rtol=1e-10)


@pytest.mark.parametrize("name", ["power", "while in for", "two loops in cond", "counted at run time"])
def test_xla_agrees_on_batches(name: str) -> None:
    pytest.importorskip("jax")
    function, xs = trace(PROGRAMS[name][0], F64), points(name)
    for each in (function, derivative(function, "R")):
        expected = [interpreted(each, x)[0] for x in xs]
        found = compiled(batch(each, [True], len(xs)), "xla")(xs)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def endless_elsewhere(x):  # type: ignore[no-untyped-def]
    """A loop that would never end for an example that does not run it."""
    return cond(x > 1.0, lambda y: while_(lambda c: c < 100.0, lambda c: c * y, 1.0)[0], lambda y: y * 2.0, x)[0]


def raises_elsewhere(x):  # type: ignore[no-untyped-def]
    def checked(y):  # type: ignore[no-untyped-def]
        check(y > 0.0, "only positive numbers have a logarithm")
        return log(y)

    return cond(x > 0.0, checked, lambda y: y * 3.0, x)[0]


def index_runs_out(n, x):  # type: ignore[no-untyped-def]
    """The finished examples have an index past the end."""
    return while_(lambda i, s: i < n, lambda i, s: (i + 1, s + at(x, i) * at(x, i)), np.int64(0), 0.0)[1]


@pytest.mark.parametrize("program", [endless_elsewhere, raises_elsewhere])
def test_what_an_example_does_not_run_is_not_noticed(program) -> None:  # type: ignore[no-untyped-def]
    function, xs = trace(program, F64), np.array([2.0, -0.5, 3.0])
    for each in (function, derivative(function, "R"), derivative(function, "F")):
        expected = [interpreted(each, x)[0] for x in xs]
        np.testing.assert_allclose(compiled(batch(each, [True], 3))(xs)[0], expected)
        none = np.array([-1.0, -2.0, -3.0])
        expected = [interpreted(each, x)[0] for x in none]
        np.testing.assert_allclose(compiled(batch(each, [True], 3))(none)[0], expected)


def test_what_an_example_runs_is_noticed() -> None:
    def raising(x):  # type: ignore[no-untyped-def]
        def checked(y):  # type: ignore[no-untyped-def]
            check(y > 1.0, "too small")
            return y

        return cond(x > 0.0, checked, lambda y: y * 3.0, x)[0]

    together = compiled(batch(trace(raising, F64), [True], 2))
    np.testing.assert_allclose(together(np.array([2.0, -1.0]))[0], [2.0, -3.0])
    with pytest.raises(ValueError, match="too small"):
        together(np.array([0.5, -1.0]))


def test_finished_examples_index_nothing() -> None:
    function = trace(index_runs_out, I64, vector(4))
    counts, x = np.array([1, 4, 0]), np.arange(1.0, 5.0)
    together = batch(function, [True, False], 3)
    np.testing.assert_allclose(compiled(together)(counts, x)[0], [1.0, 30.0, 0.0])
    gradient = batch(value_and_grad(function, [False, True]), [True, False], 3)
    np.testing.assert_allclose(compiled(gradient)(counts, x)[1], [[2, 0, 0, 0], [2, 4, 6, 8], [0, 0, 0, 0]])


def test_masks_keep_examples_apart() -> None:
    """One example's infinite derivative does not reach the weights that all share."""

    def model(w, x):  # type: ignore[no-untyped-def]
        return for_(2, lambda i, s: cond(s > 0.0, lambda a: sqrt(a) * w, lambda a: a * w, s)[0], x)[0]

    together = summed(batch(trace(model, F64, F64), [False, True], 3))
    found = compiled(value_and_grad(together, [True, False]))(np.float64(2.0), np.array([0.0, 4.0, -1.0]))
    alone = [interpreted(value_and_grad(trace(model, F64, F64), [True, False]), 2.0, x)[1] for x in (0.0, 4.0, -1.0)]
    np.testing.assert_allclose(found[1], sum(alone))


def test_columns_have_the_examples_first() -> None:
    def scan(x, xs):  # type: ignore[no-untyped-def]
        made = for_(3, lambda i, s, e: (s + e, s * e), x, columns=[xs])[1]
        return made

    function = trace(scan, F64, vector(3))
    xs = np.arange(6.0).reshape(2, 3)
    for flags, arguments in (
        ([True, True], (np.array([1.0, 2.0]), xs)),
        ([True, False], (np.array([1.0, 2.0]), xs[0])),
    ):
        found = compiled(batch(function, flags, 2))(*arguments)[0]
        rows = [[a[k] if flag else a for a, flag in zip(arguments, flags, strict=True)] for k in range(2)]
        np.testing.assert_allclose(found, [interpreted(function, *row)[0] for row in rows])
