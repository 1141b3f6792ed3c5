"""Systems with many right sides, the columns of these in lanes: what is left over, which triangle is read, pivots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.backends.llvm.steps import wide_systems
from srcgrad.backends.llvm.steps.lapack import Lapack
from srcgrad.backends.llvm.steps.wide_systems import MOST_ROWS
from srcgrad.backends.llvm.target import TARGET, Target
from tests.backends.llvm import steps_support
from tests.backends.llvm.steps_support import make_operation, target_of
from tests.backends.llvm.test_linear_algebra_steps import agree, matrix, random, status_of

TRIANGLES = [("N", True, False), ("T", True, False), ("N", False, True), ("C", False, False), ("T", True, True)]


@pytest.fixture(autouse=True)
def nan_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What results and scratch memory hold before is nan."""
    monkeypatch.setattr(steps_support, "_FILL", 0xFF)


def counts(target: Target, dtype: Any) -> list[int]:
    lanes = target.vector_bytes // np.dtype(dtype).itemsize
    return [8, 2 * lanes + 1, 4 * lanes, 7 * lanes - 1]


def check_all(n: int, dtype: Any, stack: tuple[int, ...] = (), target: Target = TARGET) -> None:
    a, ulps = matrix(n, dtype, stack)[..., ::-1, :].copy(), 256.0
    for count in counts(target, dtype):
        right = random(*stack, n, count, dtype=dtype)
        agree("solve", a, right, target=target, ulps=ulps)
        for trans, lower, unit in TRIANGLES:
            read = np.tril(np.ones((n, n), bool), -int(unit))
            given = np.where(read if lower else read.T, a[..., ::-1, :] / (n if unit else 1), np.nan).astype(dtype)
            attrs = {"trans": trans, "lower": lower, "unit": unit}
            agree("triangular_solve", given, right, target=target, ulps=ulps, **attrs)
    agree("inv", a, target=target, ulps=ulps, strict=True)
    agree("inv", a, target=target, ulps=ulps, strict=False)
    agree("slogdet_gradient", a, target=target, ulps=ulps)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 5, 7, 8, 17, 33, 64])
def test_every_size(n: int, dtype: str) -> None:
    check_all(n, dtype)


def test_stacks() -> None:
    check_all(9, "float64", (3,))
    check_all(25, "float64", (2, 1))


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_other_registers(name: str) -> None:
    for n in (5, 8, 19):
        check_all(n, "float64", target=target_of(name))


def test_what_is_left_to_lapack() -> None:
    def is_wide(n: int, count: int, dtype: Any = np.float64) -> bool:
        operation, _ = make_operation("solve", matrix(n, dtype), random(n, count, dtype=dtype))
        return wide_systems.is_wide(Lapack(operation, TARGET), count)

    assert is_wide(MOST_ROWS, 8) and is_wide(1, 1000)
    assert not is_wide(MOST_ROWS + 1, 8)
    assert not is_wide(8, 7)
    assert not is_wide(8, 64, np.complex128)
    assert not is_wide(8, 64, np.float32)  # NumPy's is of float64


def test_singular_matrices_are_noticed() -> None:
    a, right = matrix(9, np.float64), random(9, 40)
    a[4] = 2 * a[3]
    a[:, 7] = 0
    assert status_of("solve", a, right) == 1
    assert status_of("triangular_solve", a, right, trans="N", lower=True, unit=False) == 1
    a = matrix(40, np.float64)
    a[:, 7] = 0
    assert status_of("inv", a, strict=True) == 1
    agree("inv", a, strict=False)


def test_rows_are_exchanged_more_than_once() -> None:
    """Each row is the next one's pivot, and small numbers stand where the pivots would be."""
    n = 12
    a = np.roll(np.diag(np.linspace(1.0, 2.0, n)), 1, 0) + 1e-9 * random(n, n)
    agree("solve", a, random(n, 64), ulps=64.0)


SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "solution": lambda a, b: np.linalg.solve(a, b),
    "of the transpose": lambda a, b: np.linalg.solve(a.T, b),
    "from the right": lambda a, b: b.T @ np.linalg.inv(a),
    "of factors": lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans=1),
    "with its determinant": lambda a, b: np.linalg.solve(a, b) * np.linalg.slogdet(a)[1],
}
"""Of one matrix, which is factored once."""


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize(("n", "count"), [(6, 40), (21, 40), (9, 3)])
def test_gradients_through_shared_factors(name: str, n: int, count: int) -> None:
    f, source = SHARED[name], np.random.default_rng(n)
    a, b = source.normal(size=(n, n)) + np.sqrt(n) * np.eye(n)[::-1], source.normal(size=(n, count))

    def loss(a: Any, b: Any) -> Any:
        return np.sum(np.sin(f(a, b)))

    direction = source.normal(size=a.shape), source.normal(size=b.shape)
    found = sg.grad(loss, argnums=(0, 1))(a, b)
    expected = sg.grad(loss, argnums=(0, 1), backend="numpy")(a, b)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9 * np.abs(other).max())
    _, along = sg.jvp(loss, (a, b), direction)
    both = sum(np.sum(x * y) for x, y in zip(found, direction, strict=True))
    np.testing.assert_allclose(along, both, rtol=1e-9)
    jacobian = sg.jacfwd(lambda a: f(a, b[:, :1]))(a)
    np.testing.assert_allclose(jacobian, sg.jacrev(lambda a: f(a, b[:, :1]))(a), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.complex128, np.float32])
@pytest.mark.parametrize("count", [2, 7])
def test_columns_that_are_solved_for_alone(dtype: Any, count: int) -> None:
    """Of factors that a solution and a determinant share, of numbers that lanes are not used for."""
    source = np.random.default_rng(2)
    a = (source.normal(size=(7, 7)) + 3 * np.eye(7)[::-1]).astype(dtype)
    b = source.normal(size=(7, count)).astype(dtype)
    if dtype is np.complex128:
        a, b = a * np.exp(1j * np.arange(7)), b * (1 + 2j)
    for trans in (0, 1):

        def f(a: Any, b: Any, trans: int = trans) -> Any:
            return np.linalg.solve(a.T if trans else a, b) * np.abs(np.linalg.det(a))

        rtol = 1e-4 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(sg.jit(f)(a, b), f(a, b), rtol=rtol)
