"""Whole derivatives: Jacobians of both modes, Hessian products, and what linear programs are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import srcgrad.ir.ops.calls  # noqa: F401  registers the ops
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Value, literal
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.transforms.derivatives import hvp, is_holomorphic, jacobian, value_and_grad
from srcgrad.ir.transforms.linearize import copy_params, record
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import ArrayType


def function_of(body: Callable[..., Any], arrays: Sequence[Any]) -> Function:
    """The program of a function of terms on parameters like the arrays."""
    builder = Builder()
    params = [Term(builder, builder.param(ArrayType(np.asarray(a).dtype, np.shape(a)))) for a in arrays]
    found = body(*params)
    return builder.function("f", [term.value for term in (found if isinstance(found, tuple) else (found,))])


def jacobians(body: Callable[..., Any], arrays: Sequence[Any], active: Sequence[bool], forward: bool) -> list[Any]:
    function = function_of(body, arrays)
    count = len(function.results)
    transformed = jacobian(function, active, list(range(count)), forward)
    return evaluate(transformed, [np.asarray(a)[()] for a in arrays])[count:]


def apply(name: str, *operands: Term, **attrs: Any) -> Term:
    return REGISTRY[name](*operands, **attrs)


BOTH = pytest.mark.parametrize("forward", [True, False])


@BOTH
def test_axes_of_a_jacobian(forward: bool) -> None:
    """The output's axes, then the parameter's: of x.T[:, :, None] * v[None, None, :], of 3 x 2 x 4."""
    x, v = np.arange(6.0).reshape(2, 3), np.arange(1.0, 5.0)

    def body(x: Term, v: Term) -> Term:
        return apply("broadcast", apply("transpose", x, perm=(1, 0)), shape=(3, 2, 4), dims=(0, 1)) * apply(
            "broadcast", v, shape=(3, 2, 4), dims=(2,)
        )

    by_x, by_v = jacobians(body, [x, v], [True, True], forward)
    identity = np.einsum("ai,bj->abij", np.eye(3), np.eye(2))
    np.testing.assert_array_equal(by_x, np.einsum("abij,k->abkji", identity, v))
    np.testing.assert_array_equal(by_v, np.einsum("ab,ck->abck", x.T, np.eye(4)))


@BOTH
def test_only_active_parameters_have_a_jacobian(forward: bool) -> None:
    found = jacobians(lambda x, y: x * y, [2.0, 3.0], [True, False], forward)
    assert found == [3.0]


@BOTH
def test_a_structural_zero_of_the_basis_stays_one(forward: bool) -> None:
    """The slope of sqrt at 0 is inf; beside the diagonal there is nothing to multiply it with."""
    (found,) = jacobians(lambda x: apply("sqrt", x), [np.array([0.0, 4.0])], [True], forward)
    np.testing.assert_array_equal(found, [[np.inf, 0.0], [0.0, 0.25]])


@BOTH
def test_what_is_joined_to_a_constant(forward: bool) -> None:
    """The constant's part of the tangent is absent, also where it is multiplied by inf."""

    def body(x: Term, w: Term) -> Term:
        return apply("concatenate", x, x.like(5.0), axis=0) * w

    (found,) = jacobians(body, [np.array([3.0]), np.array([2.0, np.inf])], [True, False], forward)
    np.testing.assert_array_equal(found, [[2.0], [0.0]])


@BOTH
def test_real_to_complex(forward: bool) -> None:
    """d exp(ix)/dx = i exp(ix)."""
    x = np.array([0.5, -1.0, 2.0])
    (found,) = jacobians(lambda x: apply("exp", apply("complex", x.like(0.0), x)), [x], [True], forward)
    np.testing.assert_allclose(found, np.diag(1j * np.exp(1j * x)), rtol=1e-15)


@BOTH
def test_complex_to_real(forward: bool) -> None:
    """Of |z|²: df/dx - 1j df/dy = 2 conj(z)."""
    z = np.array([1 + 2j, -0.5j])

    def body(z: Term) -> Term:
        return apply("square", apply("real", z)) + apply("square", apply("imag", z))

    (found,) = jacobians(body, [z], [True], forward)
    np.testing.assert_array_equal(found, np.diag(2 * z.conj()))


def test_a_gradient_sums_over_all_uses() -> None:
    x = np.array([0.5, 2.0])
    function = function_of(lambda x: apply("reduce_sum", x * x * x + x, axes=(0,)), [x])
    value, gradient = evaluate(value_and_grad(function, [True]), [x])
    assert value == np.sum(x**3 + x)
    np.testing.assert_array_equal(gradient, 3 * x**2 + 1)


def test_a_hessian_product_of_some_parameters() -> None:
    """Of sum(x**2 y**3) in x only: 2 y**3 t."""
    x, y, t = np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.array([0.5, 0.25])
    function = function_of(lambda x, y: apply("reduce_sum", x * x * y * y * y, axes=(0,)), [x, y])
    (found,) = evaluate(hvp(function, [True, False]), [x, y, t])
    np.testing.assert_array_equal(found, 2 * y**3 * t)


def test_a_result_without_a_batch_axis_gets_one_in_front() -> None:
    function = function_of(lambda x, y: (x + 1.0, y * 2.0), [1.0, np.zeros((3, 2))])
    y = np.arange(6.0).reshape(3, 2)
    first, second = evaluate(batch(function, [True, False], 4), [np.arange(4.0), y])
    np.testing.assert_array_equal(first, np.arange(1.0, 5.0))
    np.testing.assert_array_equal(second, np.broadcast_to(2 * y, (4, 3, 2)))


def test_a_product_of_linear_values_is_not_transposed() -> None:
    scalar = ArrayType(np.dtype(np.float64))
    builder = Builder()
    left, right = Value(scalar, None, "left", linear=True), Value(scalar, None, "right", linear=True)
    product = builder.emit(REGISTRY["mul"], [left, right])
    with pytest.raises(InternalError, match="not linear"):
        transpose(Function("f", [left, right], builder.operations, [product]))


@pytest.mark.parametrize(
    ("body", "holomorphic"),
    [
        (lambda z: z * z, True),
        (lambda z: apply("exp", z), True),
        (lambda z: apply("conj", z), False),
        (lambda z: apply("complex", apply("real", z), apply("imag", z)), False),
    ],
)
def test_structure_says_what_is_holomorphic(body: Callable[..., Any], holomorphic: bool) -> None:
    function = function_of(body, [1j])
    builder = Builder()
    _, program = record(builder, function, copy_params(builder, function), [True])
    assert is_holomorphic(program) == holomorphic


def test_a_checkpoint_computes_its_values_again() -> None:
    """Behind a barrier, so that no pass can take them for the first ones."""
    scalar = ArrayType(np.dtype(np.float64))
    inner = Builder()
    x = inner.param(scalar)
    body = inner.region([inner.emit(REGISTRY["sin"], [inner.emit(REGISTRY["sin"], [x])])])
    builder = Builder()
    x = builder.param(scalar)
    (result,) = builder.emit_operation(REGISTRY["checkpoint"], [x], {}, (body,)).results
    gradient = value_and_grad(builder.function("f", [result]), [True])
    behind: set[Value] = set()
    for operation in gradient.operations:
        if operation.op.name == "barrier" or any(value in behind for value in operation.operands):
            behind.update(operation.results)
    again = [operation for operation in gradient.operations if operation.op.name == "sin"]
    assert again and all(operation.results[0] in behind for operation in again)
    assert evaluate(gradient, [np.float64(0.5)])[1] == np.cos(np.sin(0.5)) * np.cos(0.5)


def test_a_literal_has_the_derivative_zero() -> None:
    function = function_of(lambda x: (Term(x.builder, literal(2.0, x.type)), x), [1.0])
    first, second = evaluate(jacobian(function, [True], [0, 1], True), [1.0])[2:]
    assert (first, second) == (0.0, 1.0)
