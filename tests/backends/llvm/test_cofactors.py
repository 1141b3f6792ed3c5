"""Cofactors as steps: exact but for what a rounding of the matrix changes, whatever its rank and condition."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from tests.backends.llvm.steps_support import expected, make_operation, native

Array = np.ndarray[Any, Any]


def exact_cofactors(a: Array) -> Array:
    """det(A) times the transposed inverse in 80 digits; 0 for a matrix of zeros."""
    if not a.any():
        return a
    with mpmath.workdps(80):
        matrix = mpmath.matrix(a.astype(float).tolist())
        found = mpmath.det(matrix) * mpmath.inverse(matrix).T
        return np.array([[float(x) for x in row] for row in found.tolist()])


def cofactor_rounding(a: Array) -> float:
    """What a rounding of a matrix changes: its largest singular values but the last two, one of them twice."""
    values = np.linalg.svd(a.astype(float), compute_uv=False)
    return 8 * len(a) * 2.0**-52 * float(values[0] * np.prod(values[:-2]))


def cofactors_agree(a: Array) -> None:
    """With NumPy's: of a matrix of rank n - 2, cofactors are nothing but rounding."""
    operation, function = make_operation("det_derivative", a)
    compiled = native(operation)
    assert compiled is not None
    (wanted,), (status, (found,)) = expected(function, (a,)), compiled(a)
    assert status == 0
    for place in np.ndindex(a.shape[:-2]):
        bound = cofactor_rounding(a[place]) + 16 * np.finfo(a.dtype).eps * np.abs(wanted[place]).max()
        assert np.abs(found[place] - wanted[place]).max() <= bound


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [4, 5, 9, 14])
def test_cofactors_of_matrices_of_any_rank_and_condition(n: int, dtype: str) -> None:
    """By the inverse or by singular values: of rank n - 1 and less, nearly singular, graded, reflected."""
    rng = np.random.default_rng(n)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    kinds = [np.linspace(1, 2, n), np.r_[np.zeros(1), np.ones(n - 1)], np.r_[np.zeros(2), np.ones(n - 2)]]
    kinds += [np.r_[1e-9, np.ones(n - 1)], np.logspace(-3, 3, n), np.zeros(n), np.full(n, 3.0)]
    stack = np.stack([u * s @ v for s in kinds])
    stack = np.concatenate([stack, stack[:, ::-1]]).astype(dtype)
    for rows in ([0], [0, 6, 7, 13], range(len(stack)), [0, 6] * 20, list(range(len(stack))) * 3):
        given = stack[list(rows)]
        compiled = native(make_operation("det_derivative", given)[0])
        assert compiled is not None
        status, (found,) = compiled(given)
        assert status == 0
        for matrix, result in zip(given, found, strict=True):
            exact = exact_cofactors(matrix)
            bound = cofactor_rounding(matrix) + 2 * np.finfo(dtype).eps * np.abs(exact).max()
            assert np.abs(result - exact).max() <= bound


def status_of(a: Array) -> int:
    compiled = native(make_operation("det_derivative", a)[0])
    assert compiled is not None
    return compiled(a)[0]


def test_cofactors_of_what_is_not_finite_are_numpys() -> None:
    assert status_of(np.full((5, 5), np.nan)) == 1
    assert status_of(np.diag([np.inf, 1, 1, 1])) == 1


@pytest.mark.parametrize("n", [4, 7, 30])
def test_one_singular_matrix_of_a_stack_leaves_the_others_as_they_are(n: int) -> None:
    """It had all of them computed by singular values, which take thirty times as long."""
    stack = np.random.default_rng(n).normal(size=(50, n, n)) / 4 + 2 * np.eye(n)
    with_one = stack.copy()
    with_one[40] = 1.0
    compiled = native(make_operation("det_derivative", stack)[0])
    assert compiled is not None
    (_, (alone,)), (_, (beside,)) = compiled(stack), compiled(with_one)
    assert np.array_equal(alone[:32], beside[:32])
    assert np.abs(beside[40]).max() < 1e-12 * n**n
    for place in (0, 39, 41, 49):
        exact = exact_cofactors(stack[place])
        assert np.abs(beside[place] - exact).max() <= cofactor_rounding(stack[place]) + 1e-15 * np.abs(exact).max()


def test_cofactors_of_a_large_matrix_lose_no_more_than_those_of_a_small_one() -> None:
    """Of normal numbers, whose condition grows with their rows: by the inverse, and right to as many digits."""
    a = np.random.default_rng(2).normal(size=(60, 60)) / 7
    condition = np.linalg.norm(a) * np.linalg.norm(np.linalg.inv(a))
    assert 2.0**10 < condition < 60 * 2.0**8
    compiled = native(make_operation("det_derivative", a)[0])
    assert compiled is not None
    status, (found,) = compiled(a)
    exact = exact_cofactors(a)
    assert status == 0
    assert np.abs(found - exact).max() <= 1e-12 * np.abs(exact).max()
