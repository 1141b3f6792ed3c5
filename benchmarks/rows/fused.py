"""One fused pass: value and gradient of sum(tanh(x w + b)² exp(-x²)) in x, w and b, by size; and small calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Row, guarded, measured, module, on_jax, rebound

# isort: split
import numpy as np

import srcgrad as sg

SIZES = (10, 1_000, 100_000, 1_000_000, 10_000_000)
BOUNDS = {
    10: {"jax": 40.0},
    1_000: {"jax": 12.0, "numpy": 6.0},
    100_000: {"jax": 8.0, "numpy": 6.0},
    1_000_000: {"jax": 8.0, "numpy": 6.0},
    10_000_000: {"jax": 3.0, "numpy": 6.0},
}


def loss(x: Any, w: Any, b: Any) -> Any:
    return np.sum(np.tanh(x * w + b) ** 2 * np.exp(-(x**2)))


def by_hand(x: Any, w: Any, b: Any) -> Any:
    t = np.tanh(x * w + b)
    e = np.exp(-x * x)
    t2 = t * t
    value = t2 * e
    slope = e * t * 2 * (1 - t2)
    return value.sum(), (slope * w - 2 * value * x, slope * x, slope)


def by_jax(given: tuple[Any, ...]) -> Callable[[], Any] | None:
    return on_jax(lambda jnp: module("jax").value_and_grad(rebound(loss, np=jnp), (0, 1, 2)), given)


def by_torch(given: tuple[Any, ...]) -> Callable[[], Any] | None:
    torch = module("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)

    def call() -> Any:
        x, w, b = (torch.from_numpy(array).requires_grad_() for array in given)
        value = torch.sum(torch.tanh(x * w + b) ** 2 * torch.exp(-(x**2)))
        value.backward()
        return value, (x.grad, w.grad, b.grad)

    return call


def row(size: int, rounds: int) -> Row:
    found = Row(f"value and gradient n={size}", "us", bounds=BOUNDS[size])
    given = tuple(np.random.default_rng(0).normal(size=(3, size)))
    ours = partial(sg.value_and_grad(loss, (0, 1, 2), backend="llvm"), *given)
    value, slopes = ours()
    right, known = by_hand(*given)
    np.testing.assert_allclose(value, right, rtol=1e-12)
    for one, other in zip(slopes, known, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    calls: dict[str, Any] = {"srcgrad": ours, "numpy": partial(by_hand, *given)}
    for peer, make in (("jax", by_jax), ("torch", by_torch)):
        call = guarded(found, peer, partial(make, given))
        if call is not None:
            calls[peer] = call
    return measured(found, calls, min(rounds, 5) if size > 1_000_000 else rounds, 1e6)


ROWS: dict[str, Callable[[int], Row]] = {f"fused-{size}": partial(row, size) for size in SIZES}
