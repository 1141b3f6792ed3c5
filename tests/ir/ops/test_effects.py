"""Checks raise, host calls call, and both do so in order and are never merged; a barrier is never merged either."""

from __future__ import annotations

import builtins
import statistics
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.errors import DTypeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.ops.effects import ERROR_KINDS
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType

VECTOR = ArrayType(FLOAT64, (3,))
SCALAR = ArrayType(FLOAT64)


def checking(kind: str, type: ArrayType = VECTOR) -> Function:
    builder = Builder()
    x = Term(builder, builder.param(type))
    builder.emit_operation(REGISTRY["check"], [(x > 0).value], {"message": "not positive", "kind": kind})
    return builder.function("checking", [x.value])


@pytest.mark.parametrize("kind", ERROR_KINDS)
def test_a_check_raises_the_named_error(kind: str) -> None:
    module = {"LinAlgError": np.linalg, "StatisticsError": statistics}.get(kind, builtins)
    error: type[Exception] = getattr(module, kind)
    with pytest.raises(error, match="not positive") as found:
        evaluate(checking(kind), [np.array([1.0, 0.0, 2.0])])
    assert type(found.value) is error
    np.testing.assert_array_equal(evaluate(checking(kind), [np.ones(3)])[0], np.ones(3))


def test_a_batched_check_is_that_of_every_example() -> None:
    function = batch(checking("ValueError", SCALAR), [True], 3)
    evaluate(function, [np.array([1.0, 2.0, 3.0])])
    with pytest.raises(ValueError, match="not positive"):
        evaluate(function, [np.array([1.0, 2.0, -3.0])])


def test_a_check_refuses_what_it_cannot_mean() -> None:
    check = REGISTRY["check"]
    with pytest.raises(DTypeError, match="not bool"):
        check.result_types([VECTOR], {"message": "", "kind": "ValueError"})
    with pytest.raises(UnsupportedError, match="KeyboardInterrupt"):
        check.result_types([ArrayType(BOOL)], {"message": "", "kind": "KeyboardInterrupt"})


def calling(times: int, results: tuple[ArrayType, ...]) -> Function:
    builder = Builder()
    x = builder.param(VECTOR)
    found = [
        builder.emit_operation(REGISTRY["host_call"], [x], {"site": 0, "results": results}).results
        for _ in range(times)
    ]
    return builder.function("calling", [value for values in found for value in values])


def test_equal_host_calls_are_all_made_and_in_order() -> None:
    seen: list[float] = []

    def count(x: Any) -> Any:
        seen.append(float(x[0]))
        return x + len(seen)

    results = evaluate(calling(3, (VECTOR,)), [np.zeros(3)], [count])
    assert seen == [0.0, 0.0, 0.0]
    np.testing.assert_array_equal(results, [[1.0] * 3, [2.0] * 3, [3.0] * 3])


@pytest.mark.parametrize(
    "returned", [np.zeros(2), np.zeros(3, np.float32), None, (np.zeros(3), np.zeros(3))], ids=lambda value: str(value)
)
def test_a_host_call_guards_the_types_of_its_results(returned: Any) -> None:
    with pytest.raises(TypeError, match="host call 0 returned"):
        evaluate(calling(1, (VECTOR,)), [np.zeros(3)], [lambda x: returned])


def test_a_host_call_of_several_results_returns_as_many() -> None:
    with pytest.raises(TypeError, match="host call 0 returned"):
        evaluate(calling(1, (VECTOR, VECTOR)), [np.zeros(3)], [lambda x: (x,)])
    with pytest.raises(TypeError, match="host call 0 returned"):
        evaluate(calling(1, ()), [np.zeros(3)], [lambda x: (x,)])


def test_what_follows_a_barrier_is_not_merged_with_what_came_before() -> None:
    builder = Builder()
    x = builder.param(VECTOR)
    before = builder.emit(REGISTRY["sin"], [x])
    behind = builder.emit_operation(REGISTRY["barrier"], [x]).results[0]
    after = builder.emit(REGISTRY["sin"], [behind])
    assert after is not before
    assert len(builder.operations) == 3
