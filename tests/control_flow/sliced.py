"""What loops over slices are tested for: their values and derivatives on each backend, and that they stay loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.lowering import lower

Function = Callable[[Any], Any]
BACKENDS = ["numpy", "llvm", "xla"]


def on_backends(cases: Sequence[tuple[Function, Any]], on_xla: Sequence[Function]) -> list[Any]:
    """Each case on each backend; on XLA, which compiles for seconds, the others are for the slow run."""
    return [
        pytest.param(
            f,
            x,
            backend,
            marks=[pytest.mark.slow] * (backend == "xla" and f not in on_xla),
            id=f"{backend}-{f.__name__}",
        )
        for f, x in cases
        for backend in BACKENDS
    ]


def check(f: Function, x: Any, backend: str, rtol: float) -> None:
    """Compare values with Python's, the gradient with the jvp, and both with differences, to `rtol`."""
    np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x), rtol=1e-10, atol=1e-12)

    def total(x: Any) -> Any:
        return np.sum(np.sin(f(x)))

    slope, direction = sg.grad(total, backend=backend)(x), np.cos(np.arange(x.size)).reshape(x.shape)
    np.testing.assert_allclose(sg.jvp(total, (x,), (direction,), backend=backend)[1], np.sum(slope * direction))
    step = 1e-6 * direction
    difference = (total(x + step) - total(x - step)) / 2e-6
    np.testing.assert_allclose(np.sum(slope * direction), difference, rtol=rtol, atol=1e-6)


def check_second_order(f: Function, x: Any) -> None:
    """Compare the Hessian of a number at a vector with differences of the gradient, and examples with single ones."""
    examples = np.stack([x, 0.9 * x, 1.2 * x])
    np.testing.assert_allclose(sg.vmap(f)(examples), [f(x) for x in examples], rtol=1e-12)
    slope = sg.grad(f)
    differences = [(slope(x + 1e-6 * e) - slope(x - 1e-6 * e)) / 2e-6 for e in np.eye(len(x))]
    np.testing.assert_allclose(sg.hessian(f)(x), differences, rtol=1e-5, atol=1e-7)


def operations(f: Function, shape: tuple[int, ...]) -> int:
    """How many operations the function of an array of this shape is traced to, with those of all regions."""
    return len(list(lower(sg.jit(f), (np.ones(shape),), {}).traced.walk()))
