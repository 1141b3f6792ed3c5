"""Products with the unit vectors of a Jacobian are what these pick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.rewrite import RuleSet, rewrite
from srcgrad.ir.passes.unit_vectors import UNIT_RULES
from srcgrad.ir.types import INT64, ArrayType

GENERATOR = np.random.default_rng(5)
X, A, B = (GENERATOR.standard_normal(shape) for shape in ((5,), (7, 5), (6, 7)))
SQUARE, STACK = GENERATOR.standard_normal((5, 5)), GENERATOR.standard_normal((3, 5, 4))

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "the first product": (lambda x: np.tanh(A @ x), 1),
    "of rows": (lambda x: x @ SQUARE, 1),
    "of a stack": (lambda x: np.einsum("i,kij->kj", x, STACK), 1),
    "after elementwise functions": (lambda x: SQUARE @ (np.sin(x) * 3 - x**2 / 2), 1),
    "scaled by numbers": (lambda x: SQUARE @ (np.sum(SQUARE) * -x), 1),
    "scaled by a column": (lambda x: (x * SQUARE[:, 0]) @ SQUARE, 1),
    "where": (lambda x: SQUARE @ np.where(x > 0, x**2, 0.0), 1),
    "two layers": (lambda x: np.tanh(B @ np.tanh(A @ x)), 3),
    "of neighbours": (lambda x: SQUARE[:, 1:] @ (x[1:] * x[:-1]), 3),
    "of a sum": (lambda x: SQUARE @ (x - np.mean(x)), 3),
}
"""With the most products that the Jacobian has."""


def products(transformed: Callable[..., Any], *arguments: Any) -> int:
    text = str(sg.explain(transformed)(*arguments))
    optimised = text[text.index("optimised ir") : text.index("--- llvm")]
    summed = [line for line in optimised.splitlines() if "= dot_general " in line and "contract=[[],[]]" not in line]
    return len(summed)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_jacobians_are_those_of_differences(name: str, backend: str) -> None:
    f, _ = FUNCTIONS[name]
    apart = np.stack([(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(5)], axis=-1)
    for jacobian in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(jacobian(f, backend=backend)(X), apart, rtol=1e-7, atol=1e-8)
    second = sg.jacfwd(sg.jacrev(f, backend=backend), backend=backend)(X)
    by_rows = [(sg.jacrev(f)(X + 1e-5 * e) - sg.jacrev(f)(X - 1e-5 * e)) / 2e-5 for e in np.eye(5)]
    np.testing.assert_allclose(second, np.stack(by_rows, axis=-1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unit_vectors_are_not_multiplied(name: str) -> None:
    """Beside the products of the function itself, those with what is dense alone are left."""
    f, most = FUNCTIONS[name]
    assert products(sg.jacfwd(f), X) <= most


def test_a_quadratic_form_has_a_hessian_without_products() -> None:
    def f(x: Any, a: Any) -> Any:
        return x @ a @ x / 2 + np.sum(np.cos(x))

    assert products(sg.hessian(f), X, SQUARE) == 0
    expected = (SQUARE + SQUARE.T) / 2 - np.diag(np.cos(X))
    np.testing.assert_allclose(sg.hessian(f)(X, SQUARE), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes_stay(dtype: Any) -> None:
    x, a = X.astype(dtype), SQUARE.astype(dtype)
    complex_too = dtype is np.complex128
    if complex_too:
        x, a = x * (1 + 0.5j), a * (1 - 2j)
    f = sg.jacfwd(lambda x: a @ np.sin(x) + a @ x, holomorphic=complex_too)
    found = f(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, a * np.cos(x) + a, rtol=1e-5 if dtype is np.float32 else 1e-13)


def test_infinite_elements_count_where_they_are_picked() -> None:
    """The others are structural zeros times infinity."""
    a = SQUARE.copy()
    a[1, 2] = np.inf
    found = sg.jacfwd(lambda x: a @ (2 * x))(X)
    np.testing.assert_array_equal(np.isinf(found), a == np.inf)
    np.testing.assert_array_equal(sg.jacrev(lambda x: a @ (2 * x))(X), found)


def test_one_program_for_all_backends() -> None:
    pytest.importorskip("jax")
    f = FUNCTIONS["two layers"][0]
    np.testing.assert_allclose(sg.jacfwd(f, backend="xla")(X), sg.jacfwd(f)(X), rtol=1e-12)


# --- arguments that are arrays ----------------------------------------------------------------------------------------

W = GENERATOR.standard_normal((5, 4))
CUBE = GENERATOR.standard_normal((2, 5, 4))
ARRAYS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "rows of weights": (lambda w: np.tanh(A @ w), 1),
    "columns of weights": (lambda w: w @ STACK[0].T, 0),
    "both sides": (lambda w: w.T @ SQUARE @ w, 2),
    "all axes": (lambda w: np.tensordot(CUBE, w, ([1, 2], [0, 1])), 0),
    "axes in another order": (lambda w: np.tensordot(w, CUBE.transpose(2, 0, 1), ([1, 0], [0, 2])), 0),
    "two layers": (lambda w: np.tanh(np.tanh(A @ w) @ STACK[0].T), 3),
}
"""With the most products that the Jacobian has."""


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_jacobians_in_arrays_are_those_of_differences(name: str, backend: str) -> None:
    f, _ = ARRAYS[name]
    units = np.eye(W.size).reshape(W.size, *W.shape)
    apart = np.stack([(f(W + 1e-6 * e) - f(W - 1e-6 * e)) / 2e-6 for e in units], axis=-1)
    apart = apart.reshape(*apart.shape[:-1], *W.shape)
    for jacobian in (sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(jacobian(f, backend=backend)(W), apart, rtol=1e-7, atol=1e-8)

    def loss(w: Any) -> Any:
        return np.sum(f(w) ** 3)

    slopes = sg.grad(loss)
    rows = np.stack([(slopes(W + 1e-6 * e) - slopes(W - 1e-6 * e)) / 2e-6 for e in units])
    found = sg.hessian(loss, backend=backend)(W).reshape(rows.shape)
    np.testing.assert_allclose(found, rows, rtol=1e-5, atol=1e-6 * np.abs(rows).max())


@pytest.mark.parametrize("name", ARRAYS)
def test_unit_arrays_are_not_multiplied(name: str) -> None:
    f, most = ARRAYS[name]
    assert products(sg.jacfwd(f), W) <= most


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("over", "of_array"),
    [((1,), (0,)), ((2,), (1,)), ((3,), (2,)), ((1, 3), (0, 2)), ((3, 1), (2, 0)), ((1, 2, 3), (0, 1, 2))],
)
def test_products_with_unit_arrays_pick(over: tuple[int, ...], of_array: tuple[int, ...], turned: bool) -> None:
    """Of three axes, each of another size, so that none stands for another."""
    shape, builder = (2, 3, 4), Builder()
    array_shape = [5] * 4
    for axis, place in zip(over, of_array, strict=True):
        array_shape[place] = shape[axis - 1]
    a = builder.param(ArrayType(np.dtype(np.float64), tuple(array_shape)))
    units = builder.emit(REGISTRY["reshape"], [compared(builder, shape=(24, 24))], {"shape": (24, *shape)})
    pair, contract = (as_numbers(builder, units), a), (over, of_array)
    if turned:
        pair, contract = pair[::-1], contract[::-1]
    result = builder.emit(REGISTRY["dot_general"], pair, {"contract": contract, "batch": ((), ())})
    function = builder.function("f", [result])
    found, names = simplified(function)
    assert "dot_general" not in names
    numbers = [GENERATOR.standard_normal(array_shape)]
    np.testing.assert_array_equal(evaluate(found, numbers)[0], evaluate(function, numbers)[0])


@pytest.mark.parametrize("axes", [(1,), (2,), (3,), (1, 3), (2, 3), (1, 2, 3), (0,), (0, 2)])
def test_where_a_row_has_a_unit_is_known_of_arrays(axes: tuple[int, ...]) -> None:
    builder = Builder()
    units = builder.emit(REGISTRY["reshape"], [compared(builder, shape=(24, 24))], {"shape": (24, 2, 3, 4)})
    function = builder.function("f", [builder.emit(REGISTRY["reduce_or"], [units], {"axes": axes})])
    found, names = simplified(function)
    assert ("reduce_or" in names) == (axes != (1, 2, 3))
    np.testing.assert_array_equal(evaluate(found, [])[0], evaluate(function, [])[0])


def test_arrays_that_are_not_a_row_each_are_multiplied() -> None:
    builder = Builder()
    units = builder.emit(REGISTRY["reshape"], [compared(builder, shape=(12, 12))], {"shape": (6, 2, 12)})
    a = builder.param(ArrayType(np.dtype(np.float64), (12,)))
    result = builder.emit(
        REGISTRY["dot_general"], [as_numbers(builder, units), a], {"contract": ((2,), (0,)), "batch": ((), ())}
    )
    function = builder.function("f", [result])
    found, names = simplified(function)
    assert "dot_general" in names
    numbers = [GENERATOR.standard_normal(12)]
    np.testing.assert_allclose(evaluate(found, numbers)[0], evaluate(function, numbers)[0], rtol=1e-14)


# --- what is no diagonal matrix ---------------------------------------------------------------------------------------


def counted(builder: Builder, shape: tuple[int, ...], axis: int) -> Value:
    return builder.emit(REGISTRY["iota"], [], {"shape": shape, "axis": axis, "dtype": INT64})


def compared(builder: Builder, axes: tuple[int, int] = (0, 1), shape: tuple[int, ...] = (4, 4)) -> Value:
    return builder.emit(REGISTRY["equal"], [counted(builder, shape, axis) for axis in axes])


def as_numbers(builder: Builder, value: Value) -> Value:
    return builder.emit(REGISTRY["cast"], [value], {"dtype": np.dtype(np.float64)})


def plus_itself(builder: Builder, a: Value) -> Value:
    return builder.emit(REGISTRY["add"], [as_numbers(builder, compared(builder)), a])


def kept_beside(builder: Builder, a: Value) -> Value:
    one = literal(1.0, a.type)
    return builder.emit(REGISTRY["select"], [compared(builder), a, one])


def kept_outside(builder: Builder, a: Value) -> Value:
    return builder.emit(REGISTRY["select"], [compared(builder), literal(0.0, a.type), a])


def lower_triangle(builder: Builder, a: Value) -> Value:
    counts = [counted(builder, (4, 4), axis) for axis in (0, 1)]
    return as_numbers(builder, builder.emit(REGISTRY["less"], counts))


NEAR_MISSES: dict[str, Callable[[Builder, Value], Value]] = {
    "one axis twice": lambda builder, a: as_numbers(builder, compared(builder, (1, 1))),
    "a sum": plus_itself,
    "other elements": kept_beside,
    "the diagonal left out": kept_outside,
    "a triangle": lower_triangle,
}


def product(left: Value, right: Value, builder: Builder, axes: tuple[int, int]) -> Value:
    contract = ((axes[0],), (axes[1],))
    return builder.emit(REGISTRY["dot_general"], [left, right], {"contract": contract, "batch": ((), ())})


def simplified(function: Function) -> tuple[Function, list[str]]:
    found = dce(rewrite(function, RuleSet(UNIT_RULES)))
    return found, [operation.op.name for operation in found.operations]


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_other_matrices_are_multiplied(name: str) -> None:
    builder = Builder()
    a = builder.param(ArrayType(np.dtype(np.float64), (4, 4)))
    result = product(NEAR_MISSES[name](builder, a), a, builder, (1, 0))
    function = builder.function("f", [result])
    found, names = simplified(function)
    assert "dot_general" in names
    numbers = [GENERATOR.standard_normal((4, 4))]
    np.testing.assert_allclose(evaluate(found, numbers)[0], evaluate(function, numbers)[0], rtol=1e-14)


@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("diagonal", ["units", "part", "scaled", "negative"])
def test_products_on_either_side_are_picked(axes: tuple[int, int], turned: bool, diagonal: str) -> None:
    """Whatever axes they sum over; ``part``: the diagonal of the array itself is kept of it."""
    builder = Builder()
    a = builder.param(ArrayType(np.dtype(np.float64), (4, 4)))
    matrix = as_numbers(builder, compared(builder))
    if diagonal == "part":
        row = builder.emit(REGISTRY["reduce_sum"], [a], {"axes": (0,)})
        rows = builder.emit(REGISTRY["broadcast"], [row], {"shape": (4, 4), "dims": (1,)})
        waves = builder.emit(REGISTRY["sin"], [rows])
        matrix = builder.emit(REGISTRY["select"], [compared(builder), waves, literal(0.0, a.type)])
    if diagonal == "scaled":
        matrix = builder.emit(REGISTRY["mul"], [literal(np.arange(16.0).reshape(4, 4), a.type), matrix])
    if diagonal == "negative":
        matrix = builder.emit(REGISTRY["neg"], [matrix])
    pair = (a, matrix) if turned else (matrix, a)
    function = builder.function("f", [product(*pair, builder, axes)])
    found, names = simplified(function)
    assert "dot_general" not in names
    numbers = [GENERATOR.standard_normal((4, 4))]
    np.testing.assert_allclose(evaluate(found, numbers)[0], evaluate(function, numbers)[0], rtol=1e-14)


@pytest.mark.parametrize(
    ("shape", "axes", "known"), [((4, 4), (0,), True), ((4, 4), (1,), True), ((4, 3), (1,), False)]
)
def test_where_a_row_has_a_unit_is_known_of_square_ones(
    shape: tuple[int, ...], axes: tuple[int, ...], known: bool
) -> None:
    builder = Builder()
    flags = builder.emit(REGISTRY["reduce_or"], [compared(builder, shape=shape)], {"axes": axes})
    function = builder.function("f", [flags])
    found, names = simplified(function)
    assert (names == []) == known
    np.testing.assert_array_equal(evaluate(found, [])[0], evaluate(function, [])[0])
