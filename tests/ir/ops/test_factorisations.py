"""QR, LU, pseudo-inverses and least squares: properties of the factors, other systems, ranks, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.transforms.linearize import jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import FLOAT64, INT64, ArrayType
from tests.ir.ops.harness import type_of

Array = np.ndarray[Any, Any]
SEED = 3


def lu_of(a: Array) -> Function:
    """The packed factors and the pivots of a matrix like ``a``."""
    builder = Builder()
    return builder.function("f", builder.emit_operation(REGISTRY["lu"], [builder.param(type_of(a))]).results)


def draw(*shape: int, is_complex: bool = False, seed: int = SEED) -> Array:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape)
    return values + 1j * random.normal(size=shape) if is_complex else values


def differences(function: Callable[[Array], Any], at: Array, direction: Array, step: float = 1e-5) -> list[Array]:
    """Central differences, extrapolated once."""

    def slopes(h: float) -> list[Array]:
        return [
            (p - m) / (2 * h) for p, m in zip(function(at + h * direction), function(at - h * direction), strict=True)
        ]

    return [(4 * fine - coarse) / 3 for fine, coarse in zip(slopes(step / 2), slopes(step), strict=True)]


# --- QR --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (5, 1)])
def test_qr_agrees_with_jax(shape: tuple[int, int]) -> None:
    a, change = draw(*shape), draw(*shape, seed=SEED + 1)
    _, found = sg.jvp(lambda x: tuple(np.linalg.qr(x)), (a,), (change,))
    with jax.enable_x64(True):
        _, expected = jax.jvp(lambda x: tuple(jnp.linalg.qr(x)), (jnp.asarray(a),), (jnp.asarray(change),))
        for mine, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, np.asarray(other), atol=1e-11)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (7, 1), (1, 4)])
def test_qr_agrees_with_differences(shape: tuple[int, int], is_complex: bool, mode: str) -> None:
    a, change = draw(*shape, is_complex=is_complex), draw(*shape, is_complex=is_complex, seed=SEED + 1)

    def factors(x: Any) -> Any:
        found = np.linalg.qr(x, mode)
        return (found,) if mode == "r" else tuple(found)

    _, found = sg.jvp(factors, (a,), (change,))
    for mine, slope in zip(found, differences(factors, a, change), strict=True):
        np.testing.assert_allclose(mine, slope, atol=1e-7)


def test_the_tangents_of_a_complete_q_keep_it_unitary() -> None:
    a, change = draw(6, 2, is_complex=True), draw(6, 2, is_complex=True, seed=SEED + 1)
    (q, r), (dq, dr) = sg.jvp(lambda x: tuple(np.linalg.qr(x, "complete")), (a,), (change,))
    np.testing.assert_allclose(q.conj().T @ dq + dq.conj().T @ q, 0, atol=1e-13)
    np.testing.assert_allclose(dq @ r + q @ dr, change, atol=1e-13)
    assert not np.tril(dr, -1).any()


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_of_dependent_columns_is_nan_in_both_modes(mode: str) -> None:
    a = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])

    def triangle(x: Any) -> Any:
        found = np.linalg.qr(x, mode)
        return found if mode == "r" else found[1]

    np.testing.assert_array_equal(sg.jit(triangle)(a), triangle(a))
    assert np.isnan(sg.grad(lambda x: np.sum(triangle(x)))(a)).all()
    assert np.isnan(sg.jvp(triangle, (a,), (np.ones((3, 2)),))[1][:2][np.triu_indices(2)]).all()


def test_qr_of_two_rows_needs_one_column_only() -> None:
    found = sg.grad(lambda x: np.sum(np.linalg.qr(x)[1] ** 2))(np.ones((2, 4)))
    np.testing.assert_allclose(found, 2.0, rtol=1e-13)


def test_a_square_q_is_smooth_where_only_the_last_column_depends() -> None:
    a = draw(4, 4)
    a[:, 3] = a[:, 0] - 2 * a[:, 1]
    change = draw(4, 4, seed=SEED + 1)
    _, found = sg.jvp(lambda x: tuple(np.linalg.qr(x)), (a,), (change,))
    for mine, slope in zip(found, differences(np.linalg.qr, a, change), strict=True):
        np.testing.assert_allclose(mine, slope, atol=1e-7)


# --- LU --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (1, 3), (3, 1), (0, 2)])
def test_lu_is_that_of_scipy(shape: tuple[int, int]) -> None:
    a = draw(*shape)
    packed, pivots = evaluate_operation(REGISTRY["lu"], [a])
    (order,) = evaluate_operation(REGISTRY["permutation_of_pivots"], [pivots], {"size": shape[0]})
    rank = min(shape)
    lower = np.tril(packed[:, :rank], -1) + np.eye(shape[0], rank)
    np.testing.assert_allclose(lower @ np.triu(packed[:rank]), a[order], atol=1e-14)
    if a.size:
        np.testing.assert_allclose(packed, scipy.linalg.lu_factor(a)[0], rtol=1e-14)


def test_lu_is_smooth_where_only_the_last_pivot_is_zero() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 7.0], [4.0, 8.0, 12.0]])[:, [0, 2, 1]]
    change = draw(3, 3)
    packed, _, found, _ = evaluate(jvp(lu_of(a), [True]), [a, change])
    assert packed[2, 2] == 0.0
    lower, upper = np.tril(packed, -1) + np.eye(3), np.triu(packed)
    order = scipy.linalg.lu(a, p_indices=True)[0]
    np.testing.assert_allclose(
        np.tril(found, -1) @ upper + lower @ np.triu(found), change[np.argsort(order)], atol=1e-13
    )


def test_lu_without_a_pivot_is_nan_in_both_modes() -> None:
    a = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    function = lu_of(a)
    assert np.isnan(evaluate(jvp(function, [True]), [a, np.ones((3, 2))])[2]).all()
    linear = linearize(function, [True])
    residuals = evaluate(linear.primal, [a])[2:]
    cotangents = [np.ones((3, 2)), np.zeros(2, np.int32)]
    assert np.isnan(evaluate(transpose(linear.linear), [*residuals, *cotangents])[0]).all()


# --- pseudo-inverses and least squares -------------------------------------------------------------------------------


def constant_rank(rows: int, columns: int, rank: int, is_complex: bool) -> Callable[[float], Array]:
    """A curve of matrices of this rank."""
    parts = [draw(*shape, is_complex=is_complex, seed=k) for k, shape in enumerate(((rows, rank), (rank, columns)) * 2)]
    return lambda t: (parts[0] + t * parts[2]) @ (parts[1] + t * parts[3])


def velocity(curve: Callable[[float], Array]) -> Array:
    return (curve(1.0) - curve(-1.0)) / 2


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(("rows", "columns", "rank"), [(4, 4, 2), (5, 3, 1), (3, 5, 2), (4, 3, 3), (3, 3, 0)])
def test_the_pseudo_inverse_along_matrices_of_one_rank(rows: int, columns: int, rank: int, is_complex: bool) -> None:
    curve = constant_rank(rows, columns, rank, is_complex)
    step = 1e-5
    expected = (np.linalg.pinv(curve(step), 1e-10) - np.linalg.pinv(curve(-step), 1e-10)) / (2 * step)
    _, found = sg.jvp(lambda a: np.linalg.pinv(a, 1e-10), (curve(0.0),), (velocity(curve),))
    np.testing.assert_allclose(found, expected, atol=1e-7 * max(1.0, float(np.abs(expected).max())))


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(("rows", "columns", "rank"), [(4, 4, 2), (5, 3, 1), (3, 5, 2), (5, 3, 3), (3, 5, 3)])
def test_least_squares_along_matrices_of_one_rank(rows: int, columns: int, rank: int, is_complex: bool) -> None:
    curve = constant_rank(rows, columns, rank, is_complex)
    b, db = (draw(rows, 2, is_complex=is_complex, seed=seed) for seed in (8, 9))
    step = 1e-5
    plus, minus = (np.linalg.lstsq(curve(t), b + t * db, rcond=1e-10)[0] for t in (step, -step))
    _, found = sg.jvp(lambda a, b: np.linalg.lstsq(a, b, rcond=1e-10)[0], (curve(0.0), b), (velocity(curve), db))
    expected = (plus - minus) / (2 * step)
    np.testing.assert_allclose(found, expected, atol=1e-7 * max(1.0, float(np.abs(expected).max())))


def test_singular_values_below_the_cutoff_are_zeros() -> None:
    a = np.diag([2.0, 1e-3])
    found = sg.jacfwd(lambda x: np.linalg.pinv(x, 1e-2))(a)[0, 0]
    np.testing.assert_allclose(found, [[-0.25, 0.0], [0.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(sg.jit(lambda x: np.linalg.lstsq(x, np.ones(2), 1e-2)[0])(a), [0.5, 0.0], atol=1e-16)


def test_a_hermitian_pseudo_inverse_reads_one_triangle() -> None:
    a = np.array([[2.0, np.nan], [0.5, 1.0]])
    full = np.array([[2.0, 0.5], [0.5, 1.0]])
    change = np.array([[0.0, 1.0], [1.0, 0.5]])
    value, found = sg.jvp(lambda x: np.linalg.pinv(x, hermitian=True), (a,), (change,))
    np.testing.assert_allclose(value, np.linalg.inv(full), rtol=1e-13)
    np.testing.assert_allclose(found, -np.linalg.inv(full) @ change @ np.linalg.inv(full), atol=1e-14)


def test_residuals_of_dependent_columns_are_nan_where_numpy_has_none() -> None:
    a, b = np.ones((3, 2)), np.arange(3.0)
    assert np.linalg.lstsq(a, b)[1].shape == (0,)
    assert np.isnan(sg.jit(lambda a: np.linalg.lstsq(a, b)[1])(a)).all()
    assert sg.jit(lambda a: np.linalg.lstsq(a, b)[2])(a) == 1
    found = sg.grad(lambda a: np.linalg.lstsq(a, b)[1][0])(np.vander([1.0, 2.0, 4.0], 2))
    assert np.isfinite(found).all()


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "types", "attrs", "error"),
    [
        ("qr", [ArrayType(FLOAT64, (3,))], {"mode": "r"}, ShapeError),
        ("qr", [ArrayType(INT64, (3, 3))], {"mode": "r"}, DTypeError),
        ("qr", [ArrayType(FLOAT64, (3, 3))], {"mode": "raw"}, UnsupportedError),
        ("lu", [ArrayType(np.dtype(np.float16), (3, 3))], {}, DTypeError),
        ("permutation_of_pivots", [ArrayType(FLOAT64, (3,))], {"size": 3}, DTypeError),
        ("pinv", [ArrayType(FLOAT64, (3, 2))], {"rcond": 0.0, "hermitian": True}, ShapeError),
        ("lstsq", [ArrayType(FLOAT64, (3, 2)), ArrayType(FLOAT64, (2, 1))], {"rcond": 0.0}, ShapeError),
        ("lstsq", [ArrayType(FLOAT64, (3, 2)), ArrayType(INT64, (3, 1))], {"rcond": 0.0}, DTypeError),
        ("inv", [ArrayType(FLOAT64, (3, 2))], {"strict": True}, ShapeError),
        ("det", [ArrayType(FLOAT64, (3, 2))], {}, ShapeError),
        ("slogdet", [ArrayType(INT64, (2, 2))], {}, DTypeError),
        ("det_derivative", [ArrayType(FLOAT64, (2, 2)), ArrayType(FLOAT64, (3, 3))], {}, ShapeError),
    ],
)
def test_operands_that_do_not_fit(op: str, types: list[ArrayType], attrs: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        REGISTRY[op].result_types(types, attrs)


def test_errors_are_those_of_numpy_and_scipy() -> None:
    singular = np.diag([1.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError) as expected:
        np.linalg.inv(singular)
    with pytest.raises(np.linalg.LinAlgError, match=str(expected.value)):
        evaluate_operation(REGISTRY["inv"], [singular], {"strict": True})
    with pytest.raises(np.linalg.LinAlgError) as expected:
        scipy.linalg.solve_triangular(singular, np.ones(2))
    attrs = {"lower": False, "trans": "N", "unit": False}
    with pytest.raises(np.linalg.LinAlgError, match=str(expected.value)):
        evaluate_operation(REGISTRY["triangular_solve"], [singular, np.ones((2, 1))], attrs)
