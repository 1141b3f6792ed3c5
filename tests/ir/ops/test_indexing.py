"""What samples of slices, gathers and scatters cannot show: their text, their errors, the policy on duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, literal
from srcgrad.ir.errors import AxisError, DTypeError, IndexingError, ShapeError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.ops.indexing import PAIRS, distinct, last_writes
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


# --- which of the writes to one place is the last ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.uint8])
@pytest.mark.parametrize(
    ("shape", "sizes", "way"),
    [
        ((7,), (50,), "reduce_or"),
        ((2, 3), (7, 9), "reduce_or"),
        ((70,), (90,), "scatter_set"),
        ((9, 8), (10, 9), "scatter_set"),
        ((66,), (66 * 65,), "argsort"),
        ((33, 2), (70, 3, 40), "argsort"),
    ],
)
def test_the_last_write_to_a_place(shape: tuple[int, ...], sizes: tuple[int, ...], way: str, dtype: type) -> None:
    builder, rng = Builder(), np.random.default_rng(1)
    params = [Term(builder, builder.param(ArrayType(np.dtype(dtype), shape))) for _ in sizes]
    function = builder.function("last", [last_writes(params, sizes).value])
    names = {operation.op.name for operation in function.operations}
    assert way in names
    assert way == "scatter_set" or all(v.type.size <= PAIRS for o in function.operations for v in o.results)
    few = [rng.integers(0 if dtype is np.uint8 else -2, 2, shape) for size in sizes]
    for index in few:
        index.flat[-1] = index.flat[0]
    indices = [index.astype(dtype) for index in few]
    places = np.ravel_multi_index([i % n for i, n in zip(few, sizes, strict=True)], sizes).ravel()
    expected = [place not in places[k + 1 :] for k, place in enumerate(places)]
    assert sum(expected) < len(places)
    np.testing.assert_array_equal(evaluate(function, indices)[0].ravel(), expected)


def added(v: Any, rows: Any, k: Any) -> Any:
    k = k.copy()
    for e in range(len(rows)):
        k[rows[e]] += v[e] * v[e - 1]
    return np.sum(k**2)


def replaced(v: Any, rows: Any, k: Any) -> Any:
    k = k.copy()
    for e in range(len(rows)):
        k[rows[e]] = np.sin(v[e]) * k[rows[e - 1]] + 1.0
    return np.sum(k**2)


def squares(v: Any, rows: Any, k: Any) -> Any:
    k = k.reshape(20, -1).copy()
    for e in range(len(rows)):
        k[np.ix_(rows[e] % 20, rows[e] % 7)] += v[e] * v[e - 1]
    return np.sum(k**3)


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("f", [added, replaced, squares], ids=lambda f: f.__name__)
def test_elements_that_a_loop_writes_by_index_arrays(f: Any, backend: str) -> None:
    """Some of them twice in a trip: the last write counts, in both modes, at second order and in batches."""
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((6, 3)) < 0.5, rng.integers(-4, 4, (6, 3)), rng.integers(0, 400, (6, 3)))
    rows[2], v, k, step = [5, 5, 3], rng.normal(size=6), rng.normal(size=400), 1e-5
    moved = [(f(v + step * e, rows, k) - f(v - step * e, rows, k)) / (2 * step) for e in np.eye(6)]
    reverse = sg.grad(f, backend=backend)(v, rows, k)
    np.testing.assert_allclose(reverse, moved, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sg.jacfwd(f, backend=backend)(v, rows, k), reverse, rtol=1e-10, atol=1e-12)
    plain = sg.grad(f, backend="numpy")
    turned = [(plain(v + step * e, rows, k) - plain(v - step * e, rows, k)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(sg.hessian(f, backend=backend)(v, rows, k), turned, rtol=1e-5, atol=1e-6)
    many = sg.vmap(sg.grad(f), in_axes=(0, 0, None), backend=backend)(
        np.stack([v, 2 * v]), np.stack([rows, rows[::-1]]), k
    )
    np.testing.assert_allclose(many, [reverse, plain(2 * v, rows[::-1], k)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [added, replaced, squares], ids=lambda f: f.__name__)
def test_a_trip_that_writes_by_an_index_array_handles_nothing_whole(f: Any) -> None:
    """Whatever has the array's size is an update of it, in place."""
    text = sg.explain(sg.grad(f))(np.ones(60), np.zeros((60, 3), np.int64), np.ones(4000))["optimised ir"]
    inside = [
        line
        for line in text.splitlines()
        if line.startswith("      %") and ("[4000] = " in line or "[20,200] = " in line)
    ]
    assert len(inside) > 3
    assert all(" scatter_" in line and "scatter_set 0" not in line for line in inside), inside
