"""What samples of slices, gathers and scatters cannot show: their text, their errors, the policy on duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.ir.core import Builder, literal
from srcgrad.ir.errors import AxisError, DTypeError, IndexingError, ShapeError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.ops.indexing import distinct
from srcgrad.ir.types import FLOAT64, INT64, ArrayType

MATRIX, VECTOR = ArrayType(FLOAT64, (5, 3)), ArrayType(FLOAT64, (5,))
INDEX, OTHER_INDEX = ArrayType(INT64, (2,)), ArrayType(INT64, (4,))


def bounds(*axes: tuple[int, int, int]) -> dict[str, tuple[int, ...]]:
    starts, limits, strides = zip(*axes, strict=True)
    return {"starts": starts, "limits": limits, "strides": strides}


@pytest.mark.parametrize(
    ("type", "axes", "text"),
    [
        (MATRIX, [(1, 5, 2), (0, 3, 1)], "x[1::2]"),
        (MATRIX, [(1, 4, 2), (0, 2, 1)], "x[1:4:2, :2]"),
        (MATRIX, [(0, 5, 1), (2, 3, 1)], "x[:, 2:]"),
        (VECTOR, [(0, 5, 1)], "x[:]"),
        (VECTOR, [(0, 0, 1)], "x[:0]"),
    ],
)
def test_slice_text(type: ArrayType, axes: list[tuple[int, int, int]], text: str) -> None:
    attrs = bounds(*axes)
    result = REGISTRY["slice"].result_types([type], attrs)[0]
    assert REGISTRY["slice"].source(["x"], [type], result, attrs) == text


def test_gather_text() -> None:
    assert REGISTRY["gather"].source(["x", "i", "j"], [], MATRIX, {"axis": 1}) == "x[:, i, j]"


@pytest.mark.parametrize(
    ("op", "types", "attrs", "error"),
    [
        ("slice", [VECTOR], bounds((0, 6, 1)), IndexingError),
        ("slice", [VECTOR], bounds((-1, 5, 1)), IndexingError),
        ("slice", [VECTOR], bounds((3, 2, 1)), IndexingError),
        ("slice", [VECTOR], bounds((0, 5, 0)), IndexingError),
        ("slice", [MATRIX], bounds((0, 5, 1)), ShapeError),
        ("slice_set", [VECTOR, VECTOR], bounds((0, 4, 1)), ShapeError),
        ("slice_set", [VECTOR, VECTOR.with_dtype(INT64)], bounds((0, 5, 1)), DTypeError),
        ("gather", [VECTOR], {"axis": 0}, ShapeError),
        ("gather", [VECTOR, VECTOR], {"axis": 0}, DTypeError),
        ("gather", [MATRIX, INDEX, OTHER_INDEX], {"axis": 0}, ShapeError),
        ("gather", [MATRIX, INDEX, INDEX], {"axis": 1}, AxisError),
        ("gather", [VECTOR, INDEX], {"axis": -1}, AxisError),
        ("scatter_add", [VECTOR, VECTOR, INDEX], {"axis": 0}, ShapeError),
        ("scatter_set", [VECTOR, INDEX, INDEX], {"axis": 0}, DTypeError),
    ],
)
def test_operands_that_do_not_fit(op: str, types: list[ArrayType], attrs: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        REGISTRY[op].result_types(types, attrs)


@pytest.mark.parametrize("index", [5, -6])
@pytest.mark.parametrize("op", ["gather", "scatter_add", "scatter_set"])
def test_an_index_out_of_bounds_is_an_index_error(op: str, index: int) -> None:
    operands = [np.zeros(5), np.array([index, 0])]
    if op != "gather":
        operands.insert(1, np.ones(2))
    with pytest.raises(IndexError, match="out of bounds"):
        evaluate_operation(REGISTRY[op], operands, {"axis": 0})


def test_equal_indices() -> None:
    operands = [np.zeros(3), np.array([1.0, 2.0, 4.0]), np.array([0, -3, 2])]
    np.testing.assert_array_equal(evaluate_operation(REGISTRY["scatter_add"], operands, {"axis": 0})[0], [3, 0, 4])
    np.testing.assert_array_equal(evaluate_operation(REGISTRY["scatter_set"], operands, {"axis": 0})[0], [2, 0, 4])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([[0, 1, 2]], True),
        ([[0, 1, 0]], False),
        ([[0, 1, -5]], False),
        ([[3, 3, 3]], False),
        ([[3]], True),
        ([[0, 0, 1], [0, 1, 0]], True),
        ([[0, -5, 1], [2, -1, 0]], False),
    ],
)
def test_indices_known_to_be_distinct(columns: list[list[int]], expected: bool) -> None:
    builder = Builder()
    indices = [Term(builder, literal(column, ArrayType(INT64, (len(column),)))) for column in columns]
    assert distinct(indices, MATRIX.static_shape) is expected


def test_unknown_indices_are_not_known_to_be_distinct() -> None:
    builder = Builder()
    assert not distinct([Term(builder, builder.param(INDEX))], (5,))
