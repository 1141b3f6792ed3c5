"""Running NumPy code through a trace, and comparing with NumPy itself: value, dtype, shape, and array or scalar."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import srcgrad.ir.ops
import srcgrad.tracing.functions  # noqa: F401  (registers the rules)
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Function
from srcgrad.ir.transforms.linearize import jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import ArrayType
from srcgrad.tracing.trace import Trace, tracing
from srcgrad.tracing.tracer import Tracer, from_value

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (tuple, list)) else [x]


def parameter(trace: Trace, number: Any) -> Tracer:
    """A traced argument: Python floats and complex numbers are weak, NumPy scalars are scalars."""
    value = trace.param(ArrayType(np.asarray(number).dtype, np.shape(number)), None, number)
    return from_value(value, scalar=not isinstance(number, np.ndarray), weak=type(number) in (float, complex))


def trace_function(f: Callable[..., Any], arrays: Sequence[Any], concrete: bool = False) -> tuple[Function, list[Any]]:
    """The traced Function, and what Python saw of each result: a tracer, or another object."""
    trace = Trace(None, concrete, "f")
    with tracing(trace):
        results = leaves(f(*[parameter(trace, array) for array in arrays]))
        values = [result.read() for result in results if isinstance(result, Tracer)]
    params = [*trace.builder.params, *(value for value, _ in trace.captured)]
    function = Function("f", params, trace.builder.operations, values)
    function_captured[function] = [number for _, number in trace.captured]
    return function, results


function_captured: dict[Function, list[Any]] = {}
"""The arrays a concrete trace took as parameters of their own."""


def run(f: Callable[..., Any], arrays: Sequence[Any], concrete: bool = False) -> list[tuple[Any, bool]]:
    """The results, and whether each is a scalar (or no tracer at all)."""
    function, results = trace_function(f, arrays, concrete)
    numbers = iter(
        evaluate(
            function,
            [np.array(a)[()] if not np.ndim(a) else np.array(a) for a in arrays] + function_captured.pop(function),
        )
    )
    return [
        (next(numbers), result.scalar) if isinstance(result, Tracer) else (result, not isinstance(result, np.ndarray))
        for result in results
    ]


def tolerance(dtype: Any) -> float:
    return float(np.finfo(dtype).eps) * 64 if dtype.kind in "fc" else 0.0


def compare(f: Callable[..., Any], arrays: Sequence[Any], concrete: bool = False) -> None:
    """The same program run by NumPy and by the trace gives the same."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = leaves(f(*[np.array(a) if isinstance(a, np.ndarray) else a for a in arrays]))
    found = run(f, arrays, concrete)
    assert len(found) == len(expected)
    for (value, scalar), wanted in zip(found, expected, strict=True):
        compare_result(value, scalar, wanted)


def compare_result(value: Any, scalar: bool, wanted: Any) -> None:
    if not isinstance(wanted, (np.ndarray, np.generic)):
        assert value == wanted or (value != value and wanted != wanted), (value, wanted)
        return
    assert np.asarray(value).dtype == wanted.dtype, (np.asarray(value).dtype, wanted.dtype)
    assert np.shape(value) == wanted.shape, (np.shape(value), wanted.shape)
    assert scalar == isinstance(wanted, np.generic), f"a {type(wanted).__name__} in NumPy, {scalar=} here"
    scale = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)) if wanted.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(
        value, wanted, rtol=tolerance(wanted.dtype), atol=tolerance(wanted.dtype) * scale, equal_nan=True
    )


def directional(f: Callable[..., Any], arrays: Sequence[Any], seed: int = 0) -> None:
    """Forward mode equals central differences, and reverse mode is its transpose."""
    function, _ = trace_function(f, arrays)
    function_captured.pop(function)
    active = [np.asarray(a).dtype.kind in "fc" for a in arrays]
    outputs = [k for k, value in enumerate(function.results) if value.type.dtype.kind in "fc"]
    if not any(active) or not outputs:
        return
    random = np.random.default_rng(seed)

    def draw(type: Any, real: bool = False) -> Any:
        number = random.standard_normal(type.shape)
        if type.dtype.kind == "c":
            number = number + 1j * random.standard_normal(type.shape)
        return np.asarray(number).astype(type.dtype)[()] if not type.shape else number.astype(type.dtype)

    primals = [np.asarray(a)[()] if not np.ndim(a) else np.array(a) for a in arrays]
    tangents = [draw(p.type) for p, is_active in zip(function.params, active, strict=True) if is_active]
    count = len(function.results)
    forward = evaluate(jvp(function, active), [*primals, *tangents])[count:]
    cotangents = [
        draw(value.type) if value.type.dtype.kind in "fc" else np.zeros(value.type.static_shape, value.type.dtype)[()]
        for value in function.results
    ]
    linearized = linearize(function, active)
    residuals = evaluate(linearized.primal, primals)[count:]
    reverse = evaluate(transpose(linearized.linear), [*residuals, *cotangents])
    left = sum(np.sum(np.asarray(cotangents[k]) * forward[k]).real for k in outputs)
    right = sum(np.sum(u * t).real for u, t in zip(reverse, tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    step = 1e-6

    def shifted(sign: float) -> list[Any]:
        moved = iter(tangents)
        return evaluate(
            function,
            [p + sign * step * next(moved) if flag else p for p, flag in zip(primals, active, strict=True)],
        )

    for k, (plus, minus) in enumerate(zip(shifted(1.0), shifted(-1.0), strict=True)):
        if k in outputs:
            np.testing.assert_allclose(forward[k], (plus - minus) / (2 * step), rtol=2e-5, atol=2e-6)
