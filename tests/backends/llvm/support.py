"""Programs for the tests of the llvm backend."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.partition import Partition, partitioned
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.types import ArrayType

OPS = REGISTRY


def build(rule: Callable[..., Any], *arguments: Any) -> Function:
    """The function that a rule on terms emits, for arrays of these types."""
    builder = Builder()
    arrays = [np.asarray(argument) for argument in arguments]
    terms = [Term(builder, builder.param(ArrayType(array.dtype, array.shape))) for array in arrays]
    results = rule(*terms)
    results = results if isinstance(results, tuple) else (results,)
    return dce(builder.function("program", [term.value for term in results]))


def run(rule: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    return BACKEND.compile(build(rule, *arguments)).run(*arguments)


def agree(rule: Callable[..., Any], *arguments: Any, rtol: float = 1e-13) -> None:
    """The llvm backend gives what the ops mean."""
    found, expected = run(rule, *arguments), evaluate(build(rule, *arguments), arguments)
    for actual, wanted in zip(found, map(np.asarray, expected), strict=True):
        assert actual.dtype == wanted.dtype and actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=rtol if wanted.dtype.kind == "f" else 0.0, atol=0.0)


def groups(rule: Callable[..., Any], *arguments: Any) -> Partition:
    return partitioned(build(rule, *arguments))


def names(partition: Partition) -> list[str]:
    return [operation.op.name for operation in partition.function.operations]


def total(term: Term, *axes: int) -> Term:
    return OPS["reduce_sum"](term, axes=axes or tuple(range(term.rank)))


def normal(*shape: int, seed: int = 0, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def ramps(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    return [normal(*shape, seed=k) for k, shape in enumerate(shapes)]


def traced_memory(call: Callable[[], Any]) -> tuple[int, int]:
    """The bytes that tracemalloc sees while the result of a call lives, and after it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        found = call()
        held = tracemalloc.get_traced_memory()[0] - before
        del found
        return held, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
