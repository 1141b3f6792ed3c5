"""Programs that look like the left side of a rule, on numbers where a slip in the rule shows."""

from __future__ import annotations

import numpy as np
import pytest

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.pipeline import optimise
from srcgrad.ir.passes.rules import take_limits
from srcgrad.ir.types import ArrayType


def test_a_cast_through_a_narrower_dtype_rounds_twice() -> None:
    """1 + 2**-11 + 2**-30 is a tie in float32, which goes to 1 in float16; in one step it is above the tie."""
    x = np.array([1.0 + 2.0**-11 + 2.0**-30])
    builder = Builder()
    param = Term(builder, builder.param(ArrayType(x.dtype, x.shape)))
    cast = REGISTRY["cast"]
    result = cast(cast(param, dtype=np.dtype(np.float32)), dtype=np.dtype(np.float16))
    (found,) = evaluate(optimise(builder.function("f", [result.value])), [x])
    np.testing.assert_array_equal(found, x.astype(np.float32).astype(np.float16))
    assert found != x.astype(np.float16)


@pytest.mark.parametrize("form", ["mul", "integer_pow", "pow"])
def test_a_squared_norm_of_complex_numbers(form: str) -> None:
    x = np.array([[1 + 2j, -0.5j], [3.0, 0.25 - 1j]])
    builder = Builder()
    param = Term(builder, builder.param(ArrayType(x.dtype, x.shape)))
    norm = REGISTRY["reduce_norm"](param, axes=(1,))
    squares = {
        "mul": lambda: norm * norm,
        "integer_pow": lambda: REGISTRY["integer_pow"](norm, y=2),
        "pow": lambda: REGISTRY["pow"](norm, 2.0),
    }
    limited = take_limits(builder.function("f", [squares[form]().value]))
    assert "reduce_norm" not in {operation.op.name for operation in limited.operations[-1:]}
    np.testing.assert_allclose(evaluate(limited, [x])[0], np.sum(np.abs(x) ** 2, axis=1), rtol=1e-15)


def test_what_has_been_reshaped_from_another_shape_is_reshaped() -> None:
    """Only what is reshaped to where it came from is computed there."""
    x, y = np.arange(32.0).reshape(4, 8), np.arange(32.0, 64.0).reshape(8, 4)
    builder = Builder()
    a, b = (Term(builder, builder.param(ArrayType(z.dtype, z.shape))) for z in (x, y))
    reshape = REGISTRY["reshape"]
    flat_a, flat_b = reshape(a, shape=(32,)), reshape(b, shape=(32,))
    results = [reshape(f, shape=(4, 8)) for f in (flat_a * flat_b, flat_a - 2.0 * flat_a, REGISTRY["exp"](flat_a))]
    optimised = optimise(builder.function("f", [result.value for result in results]))
    assert [operation.op.name for operation in optimised.operations].count("reshape") == 4
    expected = (x * y.reshape(4, 8), x - 2.0 * x, np.exp(x))
    for found, known in zip(evaluate(optimised, [x, y]), expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-15)
