"""Random NumPy programs: values, both modes, second orders, differences, vmap, re-tracing, backends and errors agree.

The default run takes a small sample that is always the same; ``-m slow`` takes as many as the environment variable
``FUZZ_PROGRAMS`` says, from a new seed, which hypothesis prints when one fails (``--hypothesis-seed`` runs it again).
``python tests/fuzz/run.py`` takes as many as asked, goes on after a mismatch, and prints the totals.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import srcgrad as sg
from srcgrad.errors import SrcgradError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.lowering import lower
from tests.fuzz.checks import LOOPS, all_same, check, check_directions, check_error, check_values, documented
from tests.fuzz.loops import loop_program, runs
from tests.fuzz.programs import Program, programs, template_calls
from tests.fuzz.scipy_rules import special

PROGRAMS = int(os.environ.get("FUZZ_PROGRAMS", "1500"))
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


@settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=QUIET)
@given(programs())
def test_program(program: Program) -> None:
    check(program)


@pytest.mark.parametrize("seed", [3, 4, 7, 9])
def test_program_of_long_loops(seed: int) -> None:
    program = loop_program(seed)
    assert runs(program)
    check(program, oracles=(check_values, check_directions))


@settings(max_examples=6, derandomize=True, database=None, deadline=None, suppress_health_check=QUIET)
@given(programs(most=5))
def test_program_on_both_backends(program: Program) -> None:
    pytest.importorskip("jax")
    check(program, xla=True)


@settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=QUIET)
@given(programs(faulty=True))
def test_faulty_program(program: Program) -> None:
    check_error(program)


def test_the_templates_reach_most_ops() -> None:
    """Together the templates of expressions have most of the ops.

    The others stand in derivatives of higher order, hold regions, or are drawn as statements (writes, blocks).
    """
    reached, calls = set(), template_calls()
    for text, f, args in calls:
        try:
            reached |= {operation.op.name for operation in lower(sg.jit(f), args, {}).built.function.walk()}
        except SrcgradError as error:
            assert documented(error), f"{text}: {error!r}"
        if "special." in text:
            reached |= ops_of_derivative(f, args)
    assert len(calls) > 640
    missing = sorted(set(REGISTRY) - reached - {"is_indefinite"})  # that of a ``try``, which is a statement
    assert len(missing) < len(REGISTRY) / 8, f"no template reaches {', '.join(missing)}"


@pytest.mark.parametrize("part", range(20))
def test_values_of_the_templates(part: int) -> None:
    """The value of each template, once, is NumPy's."""
    wrong = []
    for text, f, args in template_calls()[part::20]:
        try:
            found = sg.jit(f)(*args)
        except SrcgradError as error:
            assert documented(error), f"{text}: {error!r}"
            continue
        with np.errstate(all="ignore"):
            expected = np.asarray(f(*args))
        if np.shape(found) != expected.shape or not np.allclose(found, expected, 1e-12, 1e-13, equal_nan=True):
            wrong.append(f"{text}: {found} instead of {expected}")
    assert not wrong, "\n".join(wrong)


def ops_of_derivative(f: Any, args: tuple[Any, ...]) -> set[str]:
    """The ops of the derivative in all arguments; none where there is no derivative."""
    tangents = tuple(np.ones_like(x) for x in args)
    try:
        lowered = lower(sg.jit(lambda *args: sg.jvp(f, args, tangents)[1]), args, {})
    except SrcgradError:
        return set()
    return {operation.op.name for operation in lowered.built.function.walk()}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_derivatives_of_the_templates(part: int) -> None:
    """Both modes and the four second orders of each template agree."""
    for text, f, args in template_calls()[part::8]:
        program = Program(text, (), args)

        def scalar(x: Any, y: Any, f: Any = f) -> Any:
            value = f(x, y)
            return 1.0 * np.sum(np.real(value)) + np.sum(np.imag(value))

        try:
            all_same(sg.jacfwd(scalar, (0, 1))(*args), sg.jacrev(scalar, (0, 1))(*args), text, program)
            orders = [outer(inner(scalar)) for outer in (sg.jacfwd, sg.jacrev) for inner in (sg.jacfwd, sg.jacrev)]
            for order in orders[1:]:
                all_same(order(*args), orders[0](*args), text, program, 100.0)
        except SrcgradError as error:
            assert documented(error), f"{text}: {error!r}"


def unstacked(x: Any) -> Any:
    """Scalars are no views of the vector, which changes later."""
    first = np.unstack(x)[0]
    x *= 2.0
    return first * x[0]


REGRESSIONS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "scalars taken off a vector that changes": (unstacked, np.array([3.0, 1.0]), np.array([12.0, 0.0])),
    "logsumexp of a number along an axis": (lambda x: 3.0 * special.logsumexp(x, axis=-1), np.float64(0.7), 3.0),
    "logsumexp of a number, the axis kept": (
        lambda x: np.sum(special.logsumexp(x, b=0.5, keepdims=True) * [1.0, 2.0]),
        np.float64(0.7),
        3.0,
    ),
    "an index array without elements": (
        lambda y: np.sum(np.delete(np.linalg.eigvalsh(y), 0)),
        np.eye(1),
        np.zeros((1, 1)),
    ),
}
REGRESSIONS |= {
    f"the norm {order} of nothing": (
        lambda x, order=order: np.linalg.norm(x[:0], order),
        np.ones((2, 3)),
        np.zeros((2, 3)),
    )
    for order in (1, np.inf)
}
"""What random programs have found: a function, its argument, its gradient."""


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regression(name: str) -> None:
    f, argument, expected = REGRESSIONS[name]
    np.testing.assert_allclose(sg.grad(f)(argument), expected, rtol=1e-12)
    np.testing.assert_allclose(sg.jacfwd(f)(argument), expected, rtol=1e-12)


@pytest.mark.parametrize("y", [np.array([[-3, 3], [1, -5]]), np.array([True, False]), np.int64(4)], ids=str)
def test_derivatives_of_integers_are_zeros_under_a_transform_too(y: Any) -> None:
    """Where nothing is differentiated hvp and vjp return zeros like the argument, traced or not."""

    def pushed(t: Any) -> Any:
        return sg.hvp(lambda u: np.sum(np.sin(u)), (t,), (np.zeros_like(t),))

    def pulled(t: Any) -> Any:
        return sg.vjp(lambda u: np.sin(u) * 2.0, t)[1](np.ones(np.shape(t)))[0]

    for f in (pushed, pulled):
        for found in (f(y), sg.jit(f)(y)):
            assert np.asarray(found).dtype == np.asarray(y).dtype and type(found) is type(y)
            np.testing.assert_array_equal(found, np.zeros_like(y))


@pytest.mark.slow
@settings(max_examples=PROGRAMS, database=None, deadline=None, print_blob=True, suppress_health_check=QUIET)
@given(programs())
def test_many_programs(program: Program) -> None:
    check(program)


@pytest.mark.slow
@settings(max_examples=PROGRAMS // 20 or 1, database=None, deadline=None, print_blob=True, suppress_health_check=QUIET)
@given(programs(most=6))
def test_many_programs_on_both_backends(program: Program) -> None:
    pytest.importorskip("jax")
    check(program, xla=True)


@pytest.mark.slow
@settings(max_examples=PROGRAMS, database=None, deadline=None, print_blob=True, suppress_health_check=QUIET)
@given(programs(faulty=True))
def test_many_faulty_programs(program: Program) -> None:
    check_error(program)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, PROGRAMS // 5, 25))
def test_many_programs_of_long_loops(start: int) -> None:
    for program in map(loop_program, range(start, start + 25)):
        if runs(program):
            check(program, oracles=LOOPS)
    sg.clear_caches()
