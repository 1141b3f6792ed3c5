"""Matrices that several operations factor: once, with the results of the operations apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.expansions import written_out
from tests.backends.llvm.support import OPS, build

Program = Callable[..., Any]
ROWS = 7


def solutions(a: Any, b: Any) -> Any:
    return np.sum(np.linalg.solve(a, b) * np.linalg.solve(a.T, b) ** 2)


def log_density(a: Any, b: Any) -> Any:
    """Of a normal distribution, but for a constant; ``a`` need not be symmetric."""
    return -0.5 * b @ np.linalg.solve(a, b) - 0.5 * np.linalg.slogdet(a)[1]


def transposed_first(a: Any, b: Any) -> Any:
    return np.sum(np.linalg.inv(a.T) @ np.linalg.solve(a, b)) + np.linalg.det(a)


def all_of_the_transpose(a: Any, b: Any) -> Any:
    t = a.T
    sign, size = np.linalg.slogdet(t)
    return (
        np.sum(np.linalg.inv(t) ** 2) * sign + size * np.linalg.det(t) + np.linalg.solve(t, b) @ np.linalg.solve(a, b)
    )


def in_a_loop(a: Any, b: Any) -> Any:
    for k in range(5):
        c = a + k * np.eye(len(a))
        b = np.tanh(np.linalg.solve(c, b)) + np.linalg.solve(c.T, b) / np.abs(np.linalg.det(c)) ** 0.1
    return np.sum(b**2)


def several_columns(a: Any, b: Any) -> Any:
    right = np.stack([b, b**2, np.sin(b)], axis=1)
    return np.sum(np.linalg.solve(a, right) ** 2) + np.trace(np.linalg.inv(a) @ right @ right.T)


PROGRAMS = [solutions, log_density, transposed_first, all_of_the_transpose, in_a_loop, several_columns]


def matrix(rows: int, *stack: int, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(5)
    found = rng.normal(size=(*stack, rows, rows))
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.normal(size=found.shape)
    return (found[..., ::-1, :] + 2.0 * np.eye(rows)[::-1]).astype(dtype)


def vector(rows: int, *stack: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(6).normal(size=(*stack, rows)).astype(dtype)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("rows", [5, ROWS, 31])
def test_results_are_those_of_operations_apart(program: Program, rows: int) -> None:
    a, b = matrix(rows), vector(rows)
    found = sg.value_and_grad(program, argnums=(0, 1))(a, b)
    expected = sg.value_and_grad(program, argnums=(0, 1), backend="numpy")(a, b)
    for one, other in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * np.abs(other).max())


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_every_dtype(dtype: Any) -> None:
    a, b = matrix(ROWS, dtype=dtype), vector(ROWS, dtype=dtype)

    def program(a: Any, b: Any) -> Any:
        t = np.swapaxes(a, -1, -2)
        right = b[:, None]
        return np.linalg.solve(a, right), np.linalg.solve(t, right), np.linalg.inv(t), *np.linalg.slogdet(t)

    for one, other in zip(sg.jit(program)(a, b), program(a, b), strict=True):
        assert np.asarray(one).dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2000 * np.finfo(dtype).eps, atol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("stack", [(3,), (2, 2)])
def test_stacks(stack: tuple[int, ...]) -> None:
    a, b = matrix(ROWS, *stack), vector(ROWS, *stack)

    def program(a: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve(a, b[..., None]) ** 2) - np.sum(np.linalg.slogdet(a)[1])

    for one, other in zip(
        sg.grad(program, argnums=(0, 1))(a, b),
        sg.grad(program, argnums=(0, 1), backend="numpy")(a, b),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def names(rule: Callable[..., Any], *operands: Any) -> Counter[str]:
    return Counter(operation.op.name for operation in written_out(build(rule, *operands)).walk())


def test_a_matrix_and_its_transpose_are_factored_once() -> None:
    def rule(a: Any, b: Any) -> Any:
        x = OPS["solve"](a, b)
        t = OPS["transpose"](a, perm=(1, 0))
        return OPS["solve"](t, x) + OPS["inv"](t, strict=True)

    found = names(rule, matrix(ROWS), matrix(ROWS))
    assert (found["factors"], found["factored_solve"], found["factored_inv"], found["transpose"]) == (1, 2, 1, 0)


def test_small_matrices_and_stacks_in_registers_are_left_to_their_own_steps() -> None:
    def rule(a: Any, b: Any) -> Any:
        return OPS["solve"](a, b) + OPS["inv"](a, strict=True)

    assert "factors" not in names(rule, matrix(4), matrix(4))
    assert "factors" not in names(rule, matrix(ROWS, 64), matrix(ROWS, 64))


def test_other_transposes_are_no_transposed_matrices() -> None:
    """With the axes of the stack exchanged too."""

    def rule(a: Any, b: Any) -> Any:
        t = OPS["transpose"](a, perm=(1, 0, 3, 2))
        return OPS["solve"](a, b) + OPS["solve"](t, b)

    assert "factors" not in names(rule, matrix(ROWS, 2, 2), matrix(ROWS, 2, 2))


@pytest.mark.parametrize("first", ["solve", "slogdet"])
def test_singular_matrices_are_told_as_by_the_operations_apart(first: str) -> None:
    def program(a: Any, b: Any) -> Any:
        if first == "solve":
            return np.linalg.solve(a, b), np.linalg.solve(a.T, b)
        return np.linalg.slogdet(a), np.linalg.det(a.T), np.exp(np.linalg.slogdet(a)[1])

    compiled, a, b = sg.jit(program), matrix(ROWS), vector(ROWS)
    compiled(a, b)
    singular = np.diag([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 1.0])
    if first == "solve":
        with pytest.raises(np.linalg.LinAlgError):
            compiled(singular, b)
    else:
        (sign, size), det, exponential = compiled(singular, b)
        assert (sign, size, det, exponential) == (0.0, -np.inf, 0.0, 0.0)
    np.testing.assert_allclose(np.asarray(compiled(a, b)[1]), np.asarray(program(a, b)[1]), rtol=1e-12)


def test_the_gradient_of_the_logarithm_of_a_singular_determinant_is_infinite() -> None:
    singular = np.diag([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 1.0])
    found = sg.value_and_grad(lambda a: np.linalg.slogdet(a)[1])(singular)
    expected = sg.value_and_grad(lambda a: np.linalg.slogdet(a)[1], backend="numpy")(singular)
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[0] == -np.inf


def test_empty_stacks() -> None:
    a, b = matrix(ROWS, 3)[:0], vector(ROWS, 3)[:0, :, None]
    found = sg.jit(lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.slogdet(a)[1]))(a, b)
    assert [part.shape for part in found] == [(0, ROWS, 1), (0, ROWS, ROWS), (0,)]
