"""Derivatives of control flow: every nesting of forward and reverse, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from srcgrad.ir.core import Builder
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.transforms.derivatives import hvp, is_holomorphic, jacobian, value_and_grad
from srcgrad.ir.transforms.linearize import copy_params, linearize, record
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import ArrayType
from srcgrad.ir.verify import verify
from tests.ir.control.programs import PROGRAMS, compiled, derivative, differences, interpreted, nestings, power, trace
from tests.ir.control.tracing import F64, apply, at, for_, put, sin, tanh, total, vector, while_

CLOSED = {"newton": (2.0, [0.5 / 2**0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5]), "power": (3.0, [405.0, 540.0, 540.0])}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_nestings_agree_with_differences(name: str, order: int) -> None:
    program, x = PROGRAMS[name]
    function = trace(program, F64)
    lower = function
    for _ in range(order - 1):
        lower = derivative(lower, "F")
    expected = differences(lower, x)
    found = []
    for _, nested in nestings(function, order):
        found.append(float(interpreted(nested, np.float64(x))[0]))
        found.append(float(compiled(nested)(np.float64(x))[0]))
    np.testing.assert_allclose(found, found[0], rtol=1e-13)
    np.testing.assert_allclose(found[0], expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name: str) -> None:
    x, expected = CLOSED[name]
    function = trace(PROGRAMS[name][0], F64)
    for order, value in enumerate(expected, start=1):
        for modes, nested in nestings(function, order):
            np.testing.assert_allclose(compiled(nested)(np.float64(x))[0], value, rtol=1e-14, err_msg=modes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_xla_agrees(name: str) -> None:
    pytest.importorskip("jax")
    program, x = PROGRAMS[name]
    function = trace(program, F64)
    programs = [function, *(nested for _, nested in nestings(function, 1)), dict(nestings(function, 2))["RF"]]
    for nested in programs:
        expected = interpreted(nested, np.float64(x))[0]
        np.testing.assert_allclose(compiled(nested, "xla")(np.float64(x))[0], expected, rtol=1e-12, err_msg=nested.name)


def test_xla_makes_room_for_the_trips_of_a_call() -> None:
    pytest.importorskip("jax")
    gradient = compiled(derivative(trace(power, F64), "R"), "xla")
    for x in (3.0, 1.01, 1.001, 3.0):
        trips = int(np.ceil(np.log(100.0) / np.log(x)))
        np.testing.assert_allclose(gradient(np.float64(x))[0], trips * x ** (trips - 1), rtol=1e-9)


@pytest.mark.parametrize("name", ["power", "newton", "while in for", "two loops in cond", "loop in cond, not taken"])
@pytest.mark.parametrize("backend", ["numpy", "xla"])
def test_residuals_may_be_tapes(name: str, backend: str) -> None:
    """A linear map whose residuals are tapes: they leave one program, and enter another."""
    if backend == "xla":
        pytest.importorskip("jax")
    program, x = PROGRAMS[name]
    function = trace(program, F64)
    parts = linearize(function, [True])
    verify(parts.linear, "linear")
    back = dce(transpose(parts.linear))
    verify(back)
    residuals = compiled(parts.primal, backend)(np.float64(x))[parts.results :]
    (found,) = compiled(back, backend)(*residuals, np.float64(1.0))
    np.testing.assert_allclose(found, interpreted(derivative(function, "R"), np.float64(x))[0], rtol=1e-13)


def rnn(w, x):  # type: ignore[no-untyped-def]
    """h = tanh(W h), seven times; the weights are a constant of the loop."""
    contract = {"contract": ((1,), (0,)), "batch": ((), ())}
    (h,) = for_(7, lambda i, h: tanh(apply("dot_general", w, h, **contract)), x)
    return total(h * h)


def test_arrays_are_carries_and_constants() -> None:
    random = np.random.default_rng(0)
    w, x, v, u = random.normal(size=(3, 3)) * 0.5, random.normal(size=3), random.normal(size=(3, 3)), np.zeros(3)
    function = trace(rnn, vector(3).with_shape((3, 3)), vector(3))
    gradient = value_and_grad(function, [True, True])
    step = 1e-6

    def slope(weights, start):  # type: ignore[no-untyped-def]
        return interpreted(gradient, weights, start)

    value = interpreted(function, w + step * v, x)[0] - interpreted(function, w - step * v, x)[0]
    np.testing.assert_allclose(np.sum(slope(w, x)[1] * v), value / (2 * step), rtol=1e-8)
    expected = (slope(w + step * v, x)[1] - slope(w - step * v, x)[1]) / (2 * step)
    product = compiled(hvp(function, [True, True]))(w, x, v, u)
    np.testing.assert_allclose(product[0], expected, rtol=1e-6, atol=1e-8)
    pytest.importorskip("jax")
    np.testing.assert_allclose(compiled(gradient, "xla")(w, x)[1], slope(w, x)[1], rtol=1e-12)
    np.testing.assert_allclose(compiled(hvp(function, [True, True]), "xla")(w, x, v, u)[0], product[0], rtol=1e-11)


def in_place(x):  # type: ignore[no-untyped-def]
    """a[i + 1] = sin(a[i]) + x[i], with each element written once and read twice."""

    def body(i, a):  # type: ignore[no-untyped-def]
        return put(a, i + 1, sin(at(a, i)) * at(x, i) + at(x, i + 1))

    a = for_(5, body, x * 0.5)[0]
    return total(a * a)


def in_place_while(x):  # type: ignore[no-untyped-def]
    def body(i, a):  # type: ignore[no-untyped-def]
        return i + 1, put(a, i, at(a, i) * at(x, i) + at(a, i - 1))

    return total(sin(while_(lambda i, a: i < 6, body, np.int64(1), x * 0.5)[1]))


@pytest.mark.parametrize("program", [in_place, in_place_while])
@pytest.mark.parametrize("forward", [True, False])
def test_arrays_are_written_in_place(program, forward) -> None:  # type: ignore[no-untyped-def]
    x = np.linspace(0.3, 1.4, 6)
    function = trace(program, vector(6))
    matrix = jacobian(function, [True], [0], forward)
    verify(matrix)
    found = compiled(matrix)(x)
    rows = np.eye(6) * 1e-6
    expected = [(interpreted(function, x + row)[0] - interpreted(function, x - row)[0]) / 2e-6 for row in rows]
    np.testing.assert_allclose(found[1], expected, rtol=1e-8)
    second = compiled(hvp(function, [True]))(x, np.cos(x))[0]
    gradient = value_and_grad(function, [True])
    shifted = [interpreted(gradient, x + sign * 1e-6 * np.cos(x))[1] for sign in (1, -1)]
    np.testing.assert_allclose(second, (shifted[0] - shifted[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    pytest.importorskip("jax")
    np.testing.assert_allclose(compiled(matrix, "xla")(x)[1], found[1], rtol=1e-11)


def test_complex_loops_are_holomorphic() -> None:
    complex_type = ArrayType(np.dtype(np.complex128))
    function = trace(lambda z: for_(3, lambda i, s: s * z + apply("exp", s), z)[0], complex_type)
    builder = Builder()
    _, program = record(builder, function, copy_params(builder, function), [True])
    assert is_holomorphic(program)
    z = np.complex128(0.3 + 0.2j)
    gradient = compiled(value_and_grad(function, [True]))(z)[1]
    expected = (interpreted(function, z + 1e-6)[0] - interpreted(function, z - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(gradient, expected, rtol=1e-8)
    mixed = trace(lambda z: for_(3, lambda i, s: s * z + apply("conj", s), z)[0], complex_type)
    _, program = record(builder, mixed, copy_params(builder, mixed), [True])
    assert not is_holomorphic(program)


def test_long_programs_hold_loops() -> None:
    """Beyond some length a program is several Python functions."""

    def program(x):  # type: ignore[no-untyped-def]
        total_ = x
        for k in range(1200):
            total_ = sin(total_) + x * (k / 1000)
            if k % 400 == 0:
                total_ = for_(2, lambda i, s, base=total_: s * 0.5 + base, total_)[0]
        return total_

    function = trace(program, F64)
    gradient = value_and_grad(function, [True])
    found = compiled(gradient)(np.float64(0.3))
    np.testing.assert_allclose(found[0], interpreted(function, 0.3)[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], interpreted(gradient, 0.3)[1], rtol=1e-12)
