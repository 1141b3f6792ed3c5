"""Functions of matrices: against mpmath, jax and each other, to third order; where they are not defined."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg

from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.transforms.linearize import jvp
from srcgrad.ir.types import FLOAT64, ArrayType

Array = np.ndarray[Any, Any]
SEED = 5


def draw(*shape: int, seed: int = SEED) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def to_mpmath(a: Array) -> Any:
    return mpmath.matrix(a.tolist())


def to_numpy(a: Any) -> Array:
    numbers = [[complex(a[i, j]) for j in range(a.cols)] for i in range(a.rows)]
    return np.array(numbers)


def exact_slope(function: Callable[[Any], Any], a: Array, h: Array) -> Array:
    """The derivative by central differences with 60 digits."""
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -20
        plus, minus = (function(to_mpmath(a) + sign * step * to_mpmath(h)) for sign in (1, -1))
        return to_numpy((plus - minus) / (2 * step))


EXACT: dict[str, Any] = {
    "exp": lambda x: mpmath.expm(x, method="taylor"),
    "log": mpmath.logm,
    "sqrt": mpmath.sqrtm,
    "power": lambda x: mpmath.sqrtm(x) ** -1,
}


def function_of(a: Array, *kinds: str) -> Function:
    """The matrix functions one after the other; the power is that to -1/2."""
    builder = Builder()
    x = Term(builder, builder.param(ArrayType(a.dtype, a.shape)))
    for kind in kinds:
        x = REGISTRY["matrix_function"](x, kind=kind, exponent=-0.5)
    return builder.function("f", [x.value])


def along(a: Array, h: Array, order: int, *kinds: str) -> Array:
    """The derivative of this order in the direction."""
    function = function_of(a, *kinds)
    for _ in range(order):
        function = jvp(function, [True, *[False] * (len(function.params) - 1)])
    return evaluate(function, [a, *[h] * order])[-1]


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", EXACT)
def test_the_derivative_to_the_last_digits(kind: str, is_complex: bool) -> None:
    a = scipy.linalg.expm(draw(3, 3)) + (0.25j * draw(3, 3, seed=1) if is_complex else 0)
    h = draw(3, 3, seed=2) * (1 - 0.5j if is_complex else 1)
    expected = exact_slope(EXACT[kind], a, h)
    np.testing.assert_allclose(along(a, h, 1, kind), expected, atol=1e-13 * np.abs(expected).max())


def test_the_derivative_of_the_exponential_of_a_large_matrix() -> None:
    a, h = 8 * draw(3, 3), draw(3, 3, seed=2)
    expected = exact_slope(EXACT["exp"], a, h).real
    np.testing.assert_allclose(along(a, h, 1, "exp"), expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kind", EXACT)
def test_each_derivative_is_a_difference_of_the_one_before(kind: str) -> None:
    a, h = scipy.linalg.expm(draw(2, 2) / 2), draw(2, 2, seed=2)
    step = 1e-4
    for order in (1, 2, 3):
        expected = (along(a + step * h, h, order - 1, kind) - along(a - step * h, h, order - 1, kind)) / (2 * step)
        np.testing.assert_allclose(along(a, h, order, kind), expected, atol=1e-5 * np.abs(expected).max())


def test_the_exponential_agrees_with_jax_to_second_order() -> None:
    a, h = draw(3, 3), draw(3, 3, seed=2)

    def slope(x: Any) -> Any:
        return jax.jvp(jax.scipy.linalg.expm, (x,), (jnp.asarray(h),))[1]

    with jax.enable_x64(True):
        _, expected = jax.jvp(slope, (jnp.asarray(a),), (jnp.asarray(h),))
    np.testing.assert_allclose(along(a, h, 2, "exp"), np.asarray(expected), atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize(
    "a", [np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([[1.0, 5.0, 2.0], [0.0, 1.0, 3.0], [0.0, 0.0, 4.0]])]
)
def test_defective_and_triangular_matrices(a: Array) -> None:
    h = draw(*a.shape)
    for kind in ("log", "sqrt"):
        value = along(a, h, 0, kind)
        back = scipy.linalg.expm(value) if kind == "log" else value @ value
        np.testing.assert_allclose(back, a, atol=1e-13 * np.abs(a).max())
        np.testing.assert_allclose(along(a, h, 1, kind), exact_slope(EXACT[kind], a, h).real, atol=1e-12)


def test_the_logarithm_is_the_inverse_of_the_exponential() -> None:
    a, h = draw(4, 4) / 2, draw(4, 4, seed=2)
    np.testing.assert_allclose(along(a, h, 0, "exp", "log"), a, atol=1e-13)
    np.testing.assert_allclose(along(a, h, 1, "exp", "log"), h, atol=1e-12)
    np.testing.assert_allclose(along(a, h, 2, "exp", "log"), np.zeros((4, 4)), atol=1e-10)


@pytest.mark.parametrize("kind", ["log", "sqrt", "power"])
def test_a_negative_eigenvalue_of_a_real_matrix_is_an_error(kind: str) -> None:
    a = np.diag([1.0, -4.0])
    attrs = {"kind": kind, "exponent": 0.5}
    with pytest.raises(np.linalg.LinAlgError, match=rf"the {kind} of a real matrix .* pass a complex matrix"):
        evaluate_operation(REGISTRY["matrix_function"], [a], attrs)
    (found,) = evaluate_operation(REGISTRY["matrix_function"], [a + 0j], attrs)
    scalar = {"log": np.log, "sqrt": np.sqrt, "power": np.sqrt}[kind](np.array([1, -4 + 0j]))
    np.testing.assert_allclose(found, np.diag(scalar), atol=1e-14)


def test_the_root_of_a_singular_matrix_is_real() -> None:
    a = np.array([[1.0, 1.0], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        (found,) = evaluate_operation(REGISTRY["matrix_function"], [a], {"kind": "sqrt", "exponent": 0.0})
    np.testing.assert_allclose(found @ found, a, atol=1e-7)


@pytest.mark.parametrize("kind", EXACT)
def test_float32_is_kept(kind: str) -> None:
    a = np.eye(2, dtype=np.float32)
    assert [along(a, a, order, kind).dtype for order in (0, 1)] == [np.float32, np.float32]


# --- Sylvester's equation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
def test_sylvester_solves_its_equation(is_complex: bool) -> None:
    a, b, q = draw(4, 4) + 3 * np.eye(4), draw(2, 2, seed=1) + 3 * np.eye(2), draw(4, 2, seed=2)
    if is_complex:
        a, q = a + 1j * draw(4, 4, seed=3), q + 0j
        b = b * 1j
    (x,) = evaluate_operation(REGISTRY["sylvester"], [a + 0 * a, b, q])
    np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-13)


def test_sylvester_without_a_solution_is_nan() -> None:
    (x,) = evaluate_operation(REGISTRY["sylvester"], [np.diag([1.0, 2.0]), np.diag([-1.0, 3.0]), np.ones((2, 2))])
    assert np.isnan(x).all()
    (x,) = evaluate_operation(REGISTRY["sylvester"], [np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1))])
    assert not np.isfinite(x).any()


@pytest.mark.parametrize(
    ("op", "types", "attrs", "error"),
    [
        ("matrix_function", [ArrayType(FLOAT64, (2, 3))], {"kind": "exp", "exponent": 0.0}, ShapeError),
        ("matrix_function", [ArrayType(FLOAT64, (2, 2))], {"kind": "sin", "exponent": 0.0}, UnsupportedError),
        ("sylvester", [ArrayType(FLOAT64, (2, 2)), ArrayType(FLOAT64, (3, 3))] * 2, {}, ShapeError),
        ("sylvester", [ArrayType(FLOAT64, (n, n)) for n in (2, 3, 2)], {}, ShapeError),
        ("sylvester", [ArrayType(FLOAT64, (2, 2))] * 2 + [ArrayType(np.dtype(np.float32), (2, 2))], {}, DTypeError),
    ],
)
def test_operands_that_do_not_fit(op: str, types: list[ArrayType], attrs: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        REGISTRY[op].result_types(types, attrs)
