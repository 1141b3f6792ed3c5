"""Determinants at matrices of any rank: against exact sums over permutations, and where nothing else is defined."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.pipeline import prepare
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.ir.types import ArrayType

Array = np.ndarray[Any, Any]
SEED = 20


def parity(permutation: tuple[int, ...]) -> int:
    return -1 if sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 else 1


def exact_derivative(a: Array, directions: list[Array]) -> Any:
    """The derivative of det at ``a`` in the directions: in each product, each direction takes one row. In integers."""
    size, total = len(a), 0
    numbers = [x.tolist() for x in (a, *directions)]
    for permutation in itertools.permutations(range(size)):
        for rows in itertools.permutations(range(size), len(directions)):
            product = parity(permutation)
            for row, column in enumerate(permutation):
                matrix = numbers[1 + rows.index(row)] if row in rows else numbers[0]
                product = product * matrix[row][column]
            total = total + product
    return total


def integer_matrix(size: int, rank: int, is_complex: bool, random: np.random.Generator) -> Array:
    """A matrix of small integers (or Gaussian integers) of at most this rank."""
    left, right = (random.integers(-2, 3, (2, *shape)) for shape in ((size, rank), (rank, size)))
    factors = [x[0] + 1j * x[1] if is_complex else x[0] for x in (left, right)]
    return np.asarray(factors[0] @ factors[1])


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(("size", "rank"), [(size, rank) for size in range(1, 6) for rank in range(size + 1)])
def test_derivatives_of_every_order_at_every_rank(size: int, rank: int, is_complex: bool) -> None:
    random = np.random.default_rng(SEED)
    dtype = np.complex128 if is_complex else np.float64
    a = integer_matrix(size, rank, is_complex, random)
    directions = [integer_matrix(size, size, is_complex, random) for _ in range(min(size + 1, 4))]
    for order in range(1, len(directions) + 1):
        operands = [x.astype(dtype) for x in (a, *directions[: order - 1])]
        (found,) = evaluate_operation(REGISTRY["det_derivative"], operands)
        expected = exact_derivative(a, directions[:order])
        scale = np.prod([max(1.0, float(np.linalg.norm(x))) for x in directions[:order]])
        scale *= max(1.0, float(np.linalg.norm(a))) ** max(size - order, 0)
        assert abs(np.sum(found * directions[order - 1]) - expected) <= 1e-14 * scale, f"seed {SEED}, order {order}"


def nested(function: Any, order: int) -> Any:
    """The derivative of this order as a function of the point and the directions."""
    current = function
    for _ in range(order):
        current = jvp(current, [True, *[False] * (len(current.params) - 1)])
    return current


@pytest.mark.parametrize(("size", "rank"), [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), *[(4, rank) for rank in range(5)]])
def test_nested_forward_mode_is_the_derivative_of_that_order(size: int, rank: int) -> None:
    random = np.random.default_rng(SEED)
    a = integer_matrix(size, rank, False, random)
    directions = [integer_matrix(size, size, False, random) for _ in range(3)]
    builder = Builder()
    x = Term(builder, builder.param(ArrayType(np.dtype(np.float64), (size, size))))
    function = builder.function("f", [REGISTRY["det"](x).value])
    for order in range(1, 4):
        found = evaluate(nested(function, order), [x.astype(float) for x in (a, *directions[:order])])
        np.testing.assert_allclose(found[-1], exact_derivative(a, directions[:order]), atol=1e-9, rtol=1e-12)


def test_the_hessian_of_a_singular_determinant_is_exact() -> None:
    a = np.outer([1.0, 2.0, -1.0], [3.0, 0.0, 1.0])
    hessian = sg.hessian(np.linalg.det)(a)
    units = np.eye(9).reshape(9, 3, 3)
    expected = [[exact_derivative(a, [first, second]) for second in units] for first in units]
    np.testing.assert_allclose(hessian.reshape(9, 9), expected, atol=1e-14)
    assert np.array_equal(sg.grad(np.linalg.det)(np.zeros((3, 3))), np.zeros((3, 3)))
    assert np.array_equal(sg.grad(np.linalg.det)(np.zeros((1, 1))), [[1.0]])


def test_a_large_determinant_agrees_with_the_inverse() -> None:
    a = np.random.default_rng(SEED).normal(size=(30, 30)) / 3
    inverse = np.linalg.inv(a)
    gradient = np.linalg.det(a) * inverse.T
    found = sg.grad(np.linalg.det)(a)
    np.testing.assert_allclose(found, gradient, rtol=1e-10, atol=1e-12 * np.abs(gradient).max())
    direction = a[::-1].copy()
    pushed = sg.jvp(sg.grad(np.linalg.det), (a,), (direction,))[1]
    moved = inverse @ direction
    expected = np.trace(moved) * gradient - gradient @ direction.T @ inverse.T
    np.testing.assert_allclose(pushed, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def test_a_stack_is_a_loop() -> None:
    random = np.random.default_rng(SEED)
    stack = np.stack([integer_matrix(4, rank, False, random) for rank in range(5)]).astype(float)
    found = sg.grad(lambda x: np.sum(np.linalg.det(x)))(stack)
    np.testing.assert_allclose(found, [sg.grad(np.linalg.det)(x) for x in stack], atol=1e-12)


def test_what_is_not_finite_is_nan_and_no_error() -> None:
    a = np.ones((4, 4))
    a[0, 0] = np.inf
    (found,) = evaluate_operation(REGISTRY["det_derivative"], [np.stack([a, np.eye(4)])])
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], np.eye(4), atol=1e-15)


def test_the_gradient_keeps_float32() -> None:
    assert sg.grad(np.linalg.det)(np.eye(4, dtype=np.float32)).dtype == np.float32


# --- slogdet ---------------------------------------------------------------------------------------------------------


def logarithm(x: Array) -> Any:
    return np.linalg.slogdet(x).logabsdet


def test_the_logarithm_has_the_gradient_of_log_at_zero() -> None:
    assert np.array_equal(sg.grad(logarithm)(np.zeros((1, 1))), [[np.inf]])
    found = sg.grad(logarithm)(np.diag([0.0, -2.0]))
    assert found[0, 0] == -np.inf
    assert not np.isfinite(found).any()
    second = sg.grad(lambda x: sg.grad(logarithm)(x)[0, 0])(np.zeros((1, 1)))
    assert np.array_equal(second, [[-np.inf]])


def test_the_logarithm_does_not_underflow() -> None:
    a = 1e-5 * np.eye(80)
    assert np.linalg.det(a) == 0.0
    np.testing.assert_allclose(sg.grad(logarithm)(a), 1e5 * np.eye(80), atol=1e-9)


def test_the_sign_of_a_complex_determinant_turns() -> None:
    a = np.array([[1.0 + 2j, 0.5], [-1j, 2.0 - 1j]])
    direction = np.array([[0.5, 1j], [1.0, -0.25 + 1j]])
    step = 1e-6
    plus, minus = (np.linalg.slogdet(a + sign * step * direction) for sign in (1, -1))
    _, (sign, logarithm) = sg.jvp(lambda x: tuple(np.linalg.slogdet(x)), (a,), (direction,))
    np.testing.assert_allclose(sign, (plus.sign - minus.sign) / (2 * step), rtol=1e-8)
    np.testing.assert_allclose(logarithm, (plus.logabsdet - minus.logabsdet) / (2 * step), rtol=1e-8)


def from_logarithm(x: Array) -> Any:
    sign, size = np.linalg.slogdet(x)
    return sign * np.exp(size)


@pytest.mark.parametrize("rank", range(4))
def test_a_determinant_from_its_logarithm_is_a_determinant(rank: int) -> None:
    a = integer_matrix(3, rank, False, np.random.default_rng(SEED)).astype(float)
    np.testing.assert_allclose(sg.grad(from_logarithm)(a), sg.grad(np.linalg.det)(a), atol=1e-13)
    np.testing.assert_allclose(sg.hessian(from_logarithm)(a), sg.hessian(np.linalg.det)(a), atol=1e-13)


def test_the_size_of_another_matrix_is_no_determinant() -> None:
    builder = Builder()
    x, y = (Term(builder, builder.param(ArrayType(np.dtype(np.float64), (2, 2)))) for _ in range(2))
    (sign, _), (_, size) = (builder.emit_operation(REGISTRY["slogdet"], [z.value]).results for z in (x, y))
    product = Term(builder, sign) * REGISTRY["exp"](Term(builder, size))
    function = prepare(builder.function("f", [product.value]))
    assert "det" not in {operation.op.name for operation in function.operations}


def test_the_condition_number_of_a_singular_matrix_is_infinite() -> None:
    for p in (1, -1, np.inf, -np.inf, "fro"):
        assert np.isinf(sg.jit(lambda x, p=p: np.linalg.cond(x, p))(np.ones((2, 2))))
        assert np.isnan(sg.jit(lambda x, p=p: np.linalg.cond(x, p))(np.full((2, 2), np.nan)))
