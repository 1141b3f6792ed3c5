"""What is repeated is computed once, wherever the repetition comes from, and the numbers stay what they were."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY, Term
from srcgrad.ir.passes.pipeline import optimise
from srcgrad.ir.types import ArrayType

X = np.linspace(0.2, 1.4, 12)


def meshgrid(x: Any) -> Any:
    across, down = np.meshgrid(x, x)
    return np.sum(np.sin(np.pi * across) * np.cos(np.pi * down))


def waves(x: Any) -> Any:
    across, down = np.meshgrid(x, x)
    return np.sum(np.real(np.exp(1j * (across + across)) * down))


def powers(x: Any) -> Any:
    return np.sum(np.repeat(x, 3) ** 2.5 / np.repeat(x, 3))


def rows(x: Any) -> Any:
    return np.sum(np.log(np.broadcast_to(x[:4], (5, 4))).T * np.sqrt(np.broadcast_to(x[4:9, None], (5, 4))).T)


LOSSES = {
    "meshgrid": meshgrid,
    "waves": waves,
    "powers": powers,
    "rows": rows,
    "repeat": lambda x: np.sum(np.exp(np.repeat(x, 3))),
    "tile": lambda x: np.sum(np.exp(np.tile(x, (3, 2)))),
    "one number": lambda x: np.sum(np.tanh(np.full((6, 7), x[3])) * x[0]),
    "outer sum": lambda x: np.sum(np.mean(np.add.outer(np.exp(x), x), 1) ** 2),
}
HEAVY = {"sin", "cos", "exp", "tanh", "log", "sqrt", "pow", "div", "reciprocal"}


@pytest.mark.parametrize("name", LOSSES)
def test_functions_of_what_is_repeated_take_each_number_once(name: str) -> None:
    loss = LOSSES[name]
    for transform in (sg.jit, sg.grad):
        function = transform(loss, backend="numpy")
        text = sg.explain(function)(X)["optimised ir"]
        for shape, op in re.findall(r"^ *%\S+: \w+\[([\d,]*)\] = (\w+)", text, re.MULTILINE):
            assert op not in HEAVY or math.prod(int(size) for size in shape.split(",") if size) <= X.size, text
    np.testing.assert_allclose(sg.jit(loss)(X), loss(X), rtol=1e-14)
    step = 1e-6
    moved = [(loss(X + step * d) - loss(X - step * d)) / (2 * step) for d in np.eye(X.size)]
    for backend in ("numpy", "llvm"):
        np.testing.assert_allclose(sg.grad(loss, backend=backend)(X), moved, rtol=2e-8, atol=1e-8)
        np.testing.assert_allclose(sg.jacfwd(loss, backend=backend)(X), moved, rtol=2e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint16", "complex128"])
@pytest.mark.parametrize("axes", [(0,), (2,), (0, 2), (1, 2), (0, 1, 2), (1,)])
def test_sums_of_what_is_repeated_are_the_sums_of_the_repetition(dtype: str, axes: tuple[int, ...]) -> None:
    """Also where so many times is no number of the dtype."""
    wide = (np.arange(6).reshape(2, 3) * 7.25 - 9).astype(dtype)
    for shape, dims in (
        ((2, 3, 300), (0, 1)),
        ((70, 2, 3), (1, 2)),
        ((2, 0, 3), (0, 2)),
        ((2, 3, 1), (0, 1)),
        ((2, 3, 5), (0, 2)),
    ):
        x = wide if shape[2] != 5 else wide[:, :1]
        builder = Builder()
        term = REGISTRY["broadcast"](Term(builder, builder.param(ArrayType(x.dtype, x.shape))), shape=shape, dims=dims)
        function = optimise(builder.function("f", [REGISTRY["reduce_sum"](term, axes=axes).value]))
        whole = np.broadcast_to(x.reshape([x.shape[dims.index(k)] if k in dims else 1 for k in range(3)]), shape)
        known = np.sum(whole, axes, dtype=dtype)
        (found,) = evaluate(function, [x])
        assert found.dtype == known.dtype and found.shape == known.shape
        bound = 0 if x.dtype.kind in "iu" else 200 * np.finfo(x.dtype).eps
        np.testing.assert_allclose(found, known, rtol=bound, atol=9 * bound)


def test_sums_are_finite_where_the_number_of_times_is_not() -> None:
    """70,000 is no float16; a sum of so many quarters is."""
    x = np.full(3, 0.25, np.float16)
    builder = Builder()
    term = REGISTRY["broadcast"](Term(builder, builder.param(ArrayType(x.dtype, (3,)))), shape=(3, 70_000), dims=(0,))
    function = optimise(builder.function("f", [REGISTRY["reduce_sum"](term, axes=(1,)).value]))
    (found,) = evaluate(function, [x])
    np.testing.assert_allclose(found, 17_500.0, rtol=1e-3)
