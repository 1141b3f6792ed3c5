"""Inputs on which elementwise ops are tested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from srcgrad.ir.opdef import Elementwise, Sample


def elementwise_samples(op: Elementwise) -> Iterator[Sample]:
    """Smooth random points, 0-d, empty, float32, complex where legal, integers, and all pairs of the special points."""
    random = np.random.default_rng(len(op.name) * 1000 + op.arity)
    intervals = op.intervals * op.arity if len(op.intervals) == 1 else op.intervals

    def draw(shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[Any, ...]:
        return tuple(random.uniform(low, high, shape).astype(dtype) for low, high in intervals)

    if "f" in op.kinds:
        yield Sample(draw((3, 2)), label="smooth")
        yield Sample(draw(()), label="0-d")
        yield Sample(draw((0, 2)), label="empty")
        yield Sample(draw((4,), np.float32), label="float32")
        grid = np.meshgrid(*[np.array(op.points)] * op.arity, indexing="ij")
        yield Sample(tuple(axis.ravel() for axis in grid), smooth=False, label="special points")
    if "c" in op.kinds:
        yield Sample(tuple(a + 0.25j * b for a, b in zip(draw((3,)), draw((3,)), strict=True)), label="complex")
    if "i" in op.kinds:
        yield Sample(tuple(np.array([-2, 1, 3, 7]) + k for k in range(op.arity)), smooth=False, label="integers")
    if "b" in op.kinds:
        bools = np.meshgrid(*[np.array([False, True])] * op.arity, indexing="ij")
        yield Sample(tuple(axis.ravel() for axis in bools), smooth=False, label="booleans")
