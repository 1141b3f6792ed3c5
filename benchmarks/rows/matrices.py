"""Loops over matrices: reductions, broadcasts, a transpose, softmax and its like over rows, by size and dtype.

In the caches the best of the peers is the bound, beyond them the bandwidth of memory, of which a note speaks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Row, guarded, measured, module, on_jax, on_torch, seconds

# isort: split
import numpy as np

import srcgrad as sg

SIZES = (64, 256, 3000)
BOUND = 1.3
"""By how much the loops that stay in the caches should be ahead of each peer."""


def cube(x: Any) -> Any:
    """The matrix as an array of three axes."""
    return x.reshape(8, x.shape[0] // 8, x.shape[1])


def by_method(f: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """What is written alike for arrays of every peer."""
    return lambda xp: f


def largest_of_columns(xp: Any) -> Callable[..., Any]:
    return lambda x, v: xp.amax(x, 0)


def softmax(xp: Any) -> Callable[..., Any]:
    if xp is np:

        def by_hand(x: Any, v: Any) -> Any:
            e = np.exp(x - np.max(x, axis=1, keepdims=True))
            return e / np.sum(e, axis=1, keepdims=True)

        return by_hand
    its_own = module("jax").nn.softmax if xp is not module("torch") else xp.softmax
    return lambda x, v: its_own(x, 1)


def logsumexp(xp: Any) -> Callable[..., Any]:
    if xp is np:

        def by_hand(x: Any, v: Any) -> Any:
            most = np.max(x, axis=1, keepdims=True)
            return np.log(np.sum(np.exp(x - most), axis=1)) + most[:, 0]

        return by_hand
    its_own = module("jax").nn.logsumexp if xp is not module("torch") else xp.logsumexp
    return lambda x, v: its_own(x, 1)


def layer_norm(xp: Any) -> Callable[..., Any]:
    if xp is module("torch"):
        return lambda x, v: xp.nn.functional.layer_norm(x, v.shape, v, v, 1e-5)

    def by_hand(x: Any, v: Any) -> Any:
        d = x - xp.mean(x, axis=1, keepdims=True)
        return d / xp.sqrt(xp.mean(d * d, axis=1, keepdims=True) + 1e-5) * v + v

    return by_hand


CASES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "sum": by_method(lambda x, v: x.sum()),
    "sum-of-rows": by_method(lambda x, v: x.sum(1)),
    "sum-of-columns": by_method(lambda x, v: x.sum(0)),
    "max-of-columns": largest_of_columns,
    "sum-of-outer-axes": by_method(lambda x, v: cube(x).sum((0, 2))),
    "sum-of-middle-axis": by_method(lambda x, v: cube(x).sum(1)),
    "broadcast": by_method(lambda x, v: x * v + v[:, None]),
    "transposed": by_method(lambda x, v: x + x.T),
    "softmax": softmax,
    "logsumexp": logsumexp,
    "layer-norm": layer_norm,
}


def copying_rate() -> float:
    """GB/s, read and written, of copying what no cache holds."""
    source = np.ones(10_000_000)
    target = np.empty_like(source)
    return 2 * source.nbytes / min(seconds(partial(np.copyto, target, source)) for _ in range(5)) / 1e9


def row(name: str, size: int, dtype: str, rounds: int) -> Row:
    small = size < SIZES[-1]
    found = Row(f"{name} {size} {dtype}", "us")
    make, tolerance = CASES[name], 1e-10 if dtype == "float64" else 1e-3
    x = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    v = np.random.default_rng(1).normal(size=size).astype(dtype)
    ours, right = partial(sg.jit(make(np), backend="llvm"), x, v), make(np)(x, v)
    calls: dict[str, Any] = {"srcgrad": ours, "numpy": partial(make(np), x, v)}
    for peer, on_peer in (("jax", on_jax), ("torch", on_torch)):
        call = guarded(found, peer, partial(on_peer, make, (x, v)))
        if call is not None:
            calls[peer] = call
    for call in calls.values():
        np.testing.assert_allclose(np.asarray(call()), right, rtol=tolerance, atol=tolerance)
    if small:
        found.bounds = {peer: BOUND for peer in calls if peer != "srcgrad"}
    measured(found, calls, rounds if small else min(rounds, 5), 1e6)
    if not small:
        rate = (x.nbytes + right.nbytes) / found.times["srcgrad"] / 1e3
        found.notes.append(f"{rate:.1f} GB/s of input and output; a copy has {copying_rate():.1f}")
    return found


ROWS: dict[str, Callable[[int], Row]] = {
    f"matrix-{name}-{size}-{dtype}": partial(row, name, size, dtype)
    for dtype in ("float64", "float32")
    for size in SIZES
    for name in CASES
}
