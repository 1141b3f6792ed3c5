"""Ops that hold regions, and how jax differentiates a lowered function: by the user's rules, by an op's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.backends.xla.lowering import lower
from srcgrad.ir.core import Function
from srcgrad.ir.errors import CustomRuleError
from srcgrad.ir.verify import verify
from tests.backends.xla.support import compiled, one_op, program

CHECKPOINT = program(
    """
func @f(%x: f64[3]) -> (f64[3], f64[]) {
  %y: f64[3], %s: f64[] = checkpoint %x
    body (%a: f64[3]) {
    %b: f64[3] = sin %a
    %c: f64[] = reduce_sum %b {axes=[0]}
    yield %b, %c
  }
  %z: f64[3] = mul %y, %x
  return %z, %s
}
"""
)

CUSTOM_JVP = program(
    """
func @f(%x: f64[3], %n: i64[3]) -> (f64[3], i64[3]) {
  %y: f64[3], %m: i64[3] = custom_jvp %x, %n {active=[true, false]}
    body (%a: f64[3], %k: i64[3]) {
    %b: f64[3] = sin %a
    yield %b, %k
  }
    rule (%a: f64[3], %k: i64[3], %t: f64[3]) {
    %b: f64[3] = sin %a
    %c: f64[3] = mul %t, 10.0:f64[3]
    yield %b, %k, %c, 0:i64[3]
  }
  return %y, %m
}
"""
)

CUSTOM_VJP = program(
    """
func @f(%x: f64[3], %n: i64[3]) -> (f64[3]) {
  %y: f64[3] = custom_vjp %x, %n {active=[true, false], outputs=[true]}
    body (%a: f64[3], %k: i64[3]) {
    %b: f64[3] = sin %a
    yield %b
  }
    forward (%a: f64[3], %k: i64[3]) {
    %b: f64[3] = sin %a
    %c: f64[3] = cos %a
    yield %b, %c
  }
    backward (%c: f64[3], %u: f64[3]) {
    %v: f64[3] = mul %c, %u
    %w: f64[3] = mul %v, 7.0:f64[3]
    yield %w
  }
  return %y
}
"""
)
X, N = np.array([0.1, 0.5, -0.3]), np.array([1, 2, 3])


@pytest.mark.parametrize("function", [CHECKPOINT, CUSTOM_JVP, CUSTOM_VJP])
def test_a_call_computes_its_body(function: Function) -> None:
    verify(function)
    arguments = [X, N][: len(function.params)]
    for found, expected in zip(compiled(function).run(*arguments), evaluate(function, arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def total(function: Function) -> Any:
    """The sum of the first result, in double precision, as a function for jax."""
    lowered = lower(function)
    return lambda *arguments: jnp.sum(lowered(*arguments)[0])


def test_jax_differentiates_a_checkpoint_by_computing_it_again() -> None:
    with jax.enable_x64(True):
        found = jax.grad(total(CHECKPOINT))(X)
        text = str(jax.make_jaxpr(total(CHECKPOINT))(X))
    np.testing.assert_allclose(found, np.sin(X) + X * np.cos(X), rtol=1e-14)
    assert "checkpoint" in text or "remat" in text


def test_jax_follows_a_forward_rule() -> None:
    lowered = lower(CUSTOM_JVP)
    with jax.enable_x64(True):
        values, tangents = jax.jvp(lambda x: lowered(x, N)[0], (X,), (np.ones(3),))
        reverse = jax.grad(lambda x: jnp.sum(lowered(x, N)[0]))(X)
        batched = jax.vmap(jax.grad(lambda x: jnp.sum(lowered(x, N)[0])))(np.stack([X, 2 * X]))
    np.testing.assert_allclose(values, np.sin(X), rtol=1e-15)
    np.testing.assert_array_equal(tangents, np.full(3, 10.0))
    np.testing.assert_array_equal(reverse, np.full(3, 10.0))
    np.testing.assert_array_equal(batched, np.full((2, 3), 10.0))


def test_jax_follows_a_reverse_rule() -> None:
    with jax.enable_x64(True):
        found = jax.grad(total(CUSTOM_VJP))(X, N)
        second = jax.jacrev(jax.grad(total(CUSTOM_VJP)))(X, N)
    np.testing.assert_allclose(found, 7 * np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(second, np.diag(-7 * np.sin(X)), rtol=1e-14)


def test_a_rule_that_jax_runs_later_is_in_double_precision() -> None:
    """The rule's own literals and casts are double, also where jax calls it outside of the function."""
    lowered = lower(CUSTOM_VJP)
    with jax.enable_x64(True):
        x = jax.device_put(X)
        value, pull = jax.vjp(lambda x: lowered(x, N)[0], x)
        seed = jnp.ones_like(value) / 3
    (found,) = pull(seed)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, 7 / 3 * np.cos(X), rtol=1e-15)


def test_a_closure_that_jax_differentiates_is_refused() -> None:
    function = program(
        """
func @f(%x: f64[], %c: f64[]) -> (f64[]) {
  %y: f64[] = custom_jvp %x, %c {active=[true, false]}
    body (%a: f64[], %k: f64[]) {
    %b: f64[] = mul %a, %k
    yield %b
  }
    rule (%a: f64[], %k: f64[], %t: f64[]) {
    %b: f64[] = mul %a, %k
    %d: f64[] = mul %t, %k
    yield %b, %d
  }
  return %y
}
"""
    )
    lowered = lower(function)
    with jax.enable_x64(True):
        assert jax.grad(lambda x: lowered(x, np.float64(3.0))[0])(2.0) == 3.0
        with pytest.raises(CustomRuleError, match="closes over a value that is differentiated"):
            jax.grad(lambda c: lowered(np.float64(2.0), c)[0])(3.0)


def test_jax_stops_where_the_language_does() -> None:
    function = program(
        "func @f(%x: f64[3]) -> (f64[3]) {\n  %a: f64[3] = stop_gradient %x\n  %b: f64[3] = mul %a, %x\n  return %b\n}"
    )
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.grad(total(function))(X), X)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_a_function_that_is_called_back_can_be_differentiated_batched_and_compiled(name: str) -> None:
    z = np.array([0.3 + 0.2j, -1.1 - 0.4j, 0.05 + 1j])
    lowered = lower(one_op(name, z))
    slope = (2 if name == "erf" else -2) / np.sqrt(np.pi)
    with jax.enable_x64(True):

        def line(z: Any) -> Any:
            return lowered(z)[0]

        value, tangent = jax.jit(lambda z: jax.jvp(line, (z,), (np.ones(3, complex),)))(z)
        gradient = jax.grad(lambda z: jnp.sum(line(z)), holomorphic=True)(z)
        second = jax.jvp(lambda z: jax.jvp(line, (z,), (np.ones(3, complex),))[1], (z,), (np.ones(3, complex),))[1]
        batched = jax.vmap(line)(np.stack([z, z / 2]))
    np.testing.assert_array_equal(value, getattr(scipy.special, name)(z))
    np.testing.assert_allclose(tangent, slope * np.exp(-z * z), rtol=1e-13)
    np.testing.assert_allclose(gradient, slope * np.exp(-z * z), rtol=1e-13)
    np.testing.assert_allclose(second, -2 * z * slope * np.exp(-z * z), rtol=1e-13)
    np.testing.assert_array_equal(batched, getattr(scipy.special, name)(np.stack([z, z / 2])))


def test_without_checks_a_failure_is_nan_as_jax_has_it() -> None:
    lowered = lower(one_op("cholesky", -np.eye(2)))
    with jax.enable_x64(True):
        found = jax.jit(lowered)(-np.eye(2))
    assert len(found) == 1 and np.isnan(found[0][0, 0])


def test_checks_inside_a_checkpoint_are_looked_at() -> None:
    function = program(
        """
func @f(%x: f64[2]) -> (f64[2]) {
  %y: f64[2] = checkpoint %x
    body (%a: f64[2]) {
    %p: bool[2] = greater %a, 0.0:f64[2]
    check %p {message="inside", kind="ValueError"}
    yield %a
  }
  return %y
}
"""
    )
    executable = compiled(function)
    np.testing.assert_array_equal(executable.run(np.ones(2))[0], np.ones(2))
    with pytest.raises(ValueError, match="inside"):
        executable.run(-np.ones(2))


def test_a_barrier_passes_its_operands() -> None:
    function = program(
        "func @f(%x: f64[3], %n: i64[3]) -> (f64[3], i64[3]) {\n"
        "  %a: f64[3], %m: i64[3] = barrier %x, %n\n  return %a, %m\n}"
    )
    found = compiled(function).run(X, N)
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[1], N)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(lower(function)(x, N)[0] ** 2))(X), 2 * X)
