"""The interpreter: every op on its samples, literals, regions, effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, literal
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Op, Sample
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType
from tests.backends.numpy.programs import SITES, arguments, on_every_sample, one_operation


@pytest.mark.whole
@on_every_sample
def test_results_have_the_declared_types(op: Op, sample: Sample) -> None:
    function = one_operation(op, sample)
    results = evaluate(function, arguments(sample), SITES)
    assert len(results) == len(function.results)
    for result, type in zip(results, function.result_types, strict=True):
        assert result.dtype == type.dtype
        assert result.shape == type.shape
        assert isinstance(result, np.ndarray if type.rank else np.generic)


def test_literals_fill_their_types() -> None:
    type = ArrayType(np.dtype(np.float32), (2, 3))
    builder = Builder()
    x = builder.param(type, "x")
    total = builder.emit(REGISTRY["add"], [x, literal(0.1, type)])
    constant = builder.emit(REGISTRY["mul"], [literal(2.0, type), literal(3.0, type)])
    joined = builder.emit(REGISTRY["concatenate"], [literal(1.0, type), x], {"axis": 0})
    function = builder.function("f", [total, constant, joined, literal(7.0, type)])
    found = evaluate(function, [np.ones((2, 3), np.float32)])
    expected = [np.float32(1) + np.float32(0.1), np.float32(6)]
    for array, number in zip(found, expected, strict=False):
        np.testing.assert_array_equal(array, np.full((2, 3), number))
    np.testing.assert_array_equal(found[2], np.ones((4, 3)))
    np.testing.assert_array_equal(found[3], np.full((2, 3), 7.0))
    assert {array.dtype for array in found} == {np.dtype(np.float32)}


def test_scalars_stand_for_filled_operands() -> None:
    type = ArrayType(FLOAT64, (3,))
    (found,) = evaluate_operation(REGISTRY["mul"], [np.float64(2), np.float64(3)], {}, [type, type], [type])
    np.testing.assert_array_equal(found, [6.0, 6.0, 6.0])


def test_no_warnings() -> None:
    with np.errstate(all="raise"):
        (found,) = evaluate_operation(REGISTRY["div"], [np.float64(1), np.float64(0)])
    assert found == np.inf


def test_effects_run_in_order_and_raise() -> None:
    calls: list[Any] = []
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64), "x")
    for site in (0, 1):
        builder.emit_operation(REGISTRY["host_call"], [x], {"site": site, "results": ()})
    positive = builder.emit(REGISTRY["greater"], [x, literal(0.0, x.type)])
    builder.emit_operation(REGISTRY["check"], [positive], {"message": "x must be positive", "kind": "ValueError"})
    function = builder.function("f", [x])
    sites = [lambda value: calls.append((0, value)), lambda value: calls.append((1, value))]
    assert evaluate(function, [np.float64(2)], sites) == [2.0]
    assert calls == [(0, 2.0), (1, 2.0)]
    with pytest.raises(ValueError, match="x must be positive"):
        evaluate(function, [np.float64(-2)], sites)


def test_transparent_regions() -> None:
    inner = Builder()
    y = inner.param(ArrayType(FLOAT64), "y")
    region = inner.region([inner.emit(REGISTRY["sin"], [y])])
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64), "x")
    found = builder.emit(REGISTRY["checkpoint"], [x], {}, [region])
    assert evaluate(builder.function("f", [found]), [np.float64(0.5)]) == [np.sin(0.5)]


def test_wrong_number_of_arguments() -> None:
    builder = Builder()
    builder.param(ArrayType(BOOL), "x")
    with pytest.raises(InternalError, match="0 arguments for 1 parameters"):
        evaluate(builder.function("f", []), [])
