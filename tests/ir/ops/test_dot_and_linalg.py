"""What samples of products and linear algebra cannot show: their text, their errors, what is read of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.ir.errors import AxisError, DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import FLOAT64, INT64, ArrayType

NONE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
STACKED = ((0,), (0,))


def array(*shape: int, dtype: np.dtype[Any] = FLOAT64) -> ArrayType:
    return ArrayType(dtype, shape)


@pytest.mark.parametrize(
    ("left", "right", "contract", "batch", "text"),
    [
        (array(2, 3), array(3, 4), ((1,), (0,)), NONE, "a @ b"),
        (array(2, 3), array(4, 3), ((1,), (1,)), NONE, "a @ b.T"),
        (array(3, 2), array(3, 4), ((0,), (0,)), NONE, "a.T @ b"),
        (array(3), array(3), ((0,), (0,)), NONE, "a @ b"),
        (array(3), array(4, 3), ((0,), (1,)), NONE, "a @ b.T"),
        (array(2), array(3), NONE, NONE, "np.multiply.outer(a, b)"),
        (array(), array(3), NONE, NONE, "a * b"),
        (array(2, 3), array(2, 3), ((0, 1), (0, 1)), NONE, "np.tensordot(a, b, axes=((0, 1), (0, 1)))"),
        (array(5, 2, 3), array(5, 3, 4), ((2,), (1,)), STACKED, "a @ b"),
        (array(5, 3, 2), array(5, 4, 3), ((1,), (2,)), STACKED, "a.mT @ b.mT"),
        (array(5, 2, 3), array(5, 3), ((2,), (1,)), STACKED, "(a @ b[..., None])[..., 0]"),
        (array(5, 3), array(5, 3, 4), ((1,), (1,)), STACKED, "(a[..., None, :] @ b)[..., 0, :]"),
        (array(5, 3), array(5, 3), ((1,), (1,)), STACKED, 'np.einsum("ab,ab->a", a, b)'),
    ],
)
def test_products_read_as_one_would_write_them(
    left: ArrayType, right: ArrayType, contract: Any, batch: Any, text: str
) -> None:
    attrs = {"contract": contract, "batch": batch}
    result = REGISTRY["dot_general"].result_types([left, right], attrs)[0]
    assert REGISTRY["dot_general"].source(["a", "b"], [left, right], result, attrs) == text


@pytest.mark.parametrize(
    ("left", "right", "contract", "batch", "error"),
    [
        (array(2, 3), array(2, 3), ((1,), (0,)), NONE, ShapeError),
        (array(2, 3), array(3, 2), ((0,), (0,)), STACKED, AxisError),
        (array(2, 3), array(3, 2), ((2,), (0,)), NONE, AxisError),
        (array(2, 3), array(3, 2), ((0, 1), (0,)), NONE, AxisError),
        (array(2), array(2, dtype=INT64), ((0,), (0,)), NONE, DTypeError),
    ],
)
def test_products_that_do_not_fit(
    left: ArrayType, right: ArrayType, contract: Any, batch: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        REGISTRY["dot_general"].result_types([left, right], {"contract": contract, "batch": batch})


LOWER = {"lower": True, "trans": "N", "unit": False}


@pytest.mark.parametrize(
    ("op", "types", "attrs", "error"),
    [
        ("cholesky", [array(3)], {}, ShapeError),
        ("cholesky", [array(2, 3)], {}, ShapeError),
        ("cholesky", [array(2, 2, dtype=INT64)], {}, DTypeError),
        ("cholesky", [array(2, 2, dtype=np.dtype(np.float16))], {}, DTypeError),
        ("solve", [array(2, 2), array(2)], {}, ShapeError),
        ("solve", [array(2, 2), array(3, 1)], {}, ShapeError),
        ("solve", [array(2, 2), array(2, 1, dtype=np.dtype(np.float32))], {}, DTypeError),
        ("triangular_solve", [array(2, 2), array(2, 1)], {**LOWER, "trans": "H"}, UnsupportedError),
    ],
)
def test_systems_that_do_not_fit(op: str, types: list[ArrayType], attrs: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        REGISTRY[op].result_types(types, attrs)


def test_only_one_triangle_is_read() -> None:
    matrix = np.array([[4.0, np.nan], [2.0, 5.0]])
    np.testing.assert_allclose(evaluate_operation(REGISTRY["cholesky"], [matrix])[0], [[2, 0], [1, 2]])
    right = np.array([[4.0], [12.0]])
    np.testing.assert_allclose(evaluate_operation(REGISTRY["triangular_solve"], [matrix, right], LOWER)[0], [[1], [2]])
    unit = {**LOWER, "unit": True}
    np.testing.assert_allclose(evaluate_operation(REGISTRY["triangular_solve"], [matrix, right], unit)[0], [[4], [4]])


@pytest.mark.parametrize(
    ("op", "operands", "attrs"),
    [
        ("cholesky", [-np.eye(2)], {}),
        ("solve", [np.ones((2, 2)), np.ones((2, 1))], {}),
        ("triangular_solve", [np.zeros((2, 2)), np.ones((2, 1))], LOWER),
    ],
)
def test_singular_matrices_are_numpys_error(op: str, operands: list[Any], attrs: Any) -> None:
    with pytest.raises(np.linalg.LinAlgError):
        evaluate_operation(REGISTRY[op], operands, attrs)
