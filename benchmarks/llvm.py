"""The llvm backend against NumPy by hand and jax.jit, interleaved: medians of one process, one thread.

    python benchmarks/llvm.py [--most 10000000]

`compiled` is the program alone, `called` the call from Python with what it watches. A ratio above 1 is a rival slower
than `called`; jax computes in float64 and is waited for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np

import srcgrad as sg
from srcgrad.backends.base import backend
from srcgrad.compiler import optimised
from srcgrad.lowering import lower

jax.config.update("jax_enable_x64", True)
ROUNDS, SECONDS = 9, 0.02


def interleaved(subjects: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds per call; the subjects take turns."""
    counts = {}
    for name, subject in subjects.items():
        subject()
        start = time.perf_counter()
        subject()
        counts[name] = max(1, int(SECONDS / max(time.perf_counter() - start, 1e-7)))
    found: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                subject()
            found[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(times) for name, times in found.items()}


def waited(f: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    return jax.block_until_ready(f(*given))


def loss(x: Any, w: Any, b: Any) -> Any:
    return np.sum(np.tanh(x * w + b) ** 2 * np.exp(-(x**2)))


def jax_loss(x: Any, w: Any, b: Any) -> Any:
    return jnp.sum(jnp.tanh(x * w + b) ** 2 * jnp.exp(-(x**2)))


def by_hand(x: Any, w: Any, b: Any) -> Any:
    t = np.tanh(x * w + b)
    e = np.exp(-x * x)
    t2 = t * t
    value = t2 * e
    slope = e * t * 2 * (1 - t2)
    return value.sum(), (slope * w - 2 * value * x, slope * x, slope)


def fused_example(most: int) -> None:
    ours, theirs = sg.value_and_grad(loss, (0, 1, 2), backend="llvm"), jax.jit(jax.value_and_grad(jax_loss, (0, 1, 2)))
    print("value and gradient of sum(tanh(x*w+b)**2 * exp(-x**2)), microseconds")
    print(f"{'n':>9} {'compiled':>10} {'called':>10} {'numpy':>10} {'jax.jit':>10} {'numpy/':>8} {'jax/':>8}")
    for n in (10, 1000, 100_000, 1_000_000, 10_000_000):
        if n > most:
            break
        x, w, b = np.random.default_rng(0).normal(size=(3, n))
        given = tuple(map(jnp.asarray, (x, w, b)))
        run = backend("llvm").compile(optimised(lower(ours, (x, w, b), {}).built.function)).run
        np.testing.assert_allclose(ours(x, w, b)[0], by_hand(x, w, b)[0], rtol=1e-12)
        found = interleaved(
            {
                "compiled": partial(run, x, w, b),
                "called": partial(ours, x, w, b),
                "numpy": partial(by_hand, x, w, b),
                "jax": partial(waited, theirs, given),
            }
        )
        shown = " ".join(f"{1e6 * found[name]:10.2f}" for name in found)
        print(f"{n:>9} {shown} {found['numpy'] / found['called']:8.1f} {found['jax'] / found['called']:8.1f}")


def softmax(x: Any, v: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


LOOPS: dict[str, tuple[Any, Any]] = {
    "sum, axis 1": (lambda x, v: np.sum(x, axis=1), lambda x, v: jnp.sum(x, axis=1)),
    "sum, axis 0": (lambda x, v: np.sum(x, axis=0), lambda x, v: jnp.sum(x, axis=0)),
    "x*v + v[:, None]": (lambda x, v: x * v + v[:, None], lambda x, v: x * v + v[:, None]),
    "x + x.T": (lambda x, v: x + x.T, lambda x, v: x + x.T),
    "softmax of rows": (softmax, lambda x, v: jax.nn.softmax(x, axis=1)),
}


def loops(most: int) -> None:
    print("\nloops over float64 matrices, microseconds; the program alone")
    print(f"{'':>18} {'n':>6} {'compiled':>10} {'numpy':>10} {'jax.jit':>10} {'numpy/':>8} {'jax/':>8}")
    for n in (64, 256, 3000):
        if n * n > most:
            break
        x, v = np.random.default_rng(0).normal(size=(n, n)), np.random.default_rng(1).normal(size=n)
        given = tuple(map(jnp.asarray, (x, v)))
        for name, (f, g) in LOOPS.items():
            run = backend("llvm").compile(optimised(lower(sg.jit(f), (x, v), {}).built.function)).run
            compiled = jax.jit(g)
            np.testing.assert_allclose(run(x, v)[0], f(x, v), rtol=1e-10)
            found = interleaved(
                {
                    "compiled": partial(run, x, v),
                    "numpy": partial(f, x, v),
                    "jax": partial(waited, compiled, given),
                }
            )
            shown = " ".join(f"{1e6 * seconds:10.2f}" for seconds in found.values())
            ratios = [found[rival] / found["compiled"] for rival in ("numpy", "jax")]
            print(f"{name:>18} {n:>6} {shown} {ratios[0]:8.1f} {ratios[1]:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000_000, help="the largest number of elements")
    options = parser.parse_args()
    fused_example(options.most)
    loops(options.most)


if __name__ == "__main__":
    main()
