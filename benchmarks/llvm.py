"""The llvm backend against NumPy by hand and jax.jit, interleaved: medians of one process, one thread.

    python benchmarks/llvm.py [--most 10000000]

`compiled` is the program alone, `called` the call from Python with what it watches. A ratio above 1 is a rival slower
than `called`; jax computes in float64 and is waited for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
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


def logsumexp(x: Any, v: Any) -> Any:
    most = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - most), axis=1)) + most[:, 0]


def layer_norm(np: Any, x: Any, v: Any) -> Any:
    d = x - np.mean(x, axis=1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=1, keepdims=True) + 1e-5) * v + v


def cube(np: Any, x: Any) -> Any:
    """The matrix as an array of three axes."""
    return np.reshape(x, (8, x.shape[0] // 8, x.shape[1]))


LOOPS: dict[str, tuple[Any, Any]] = {
    "sum": (lambda x, v: np.sum(x), lambda x, v: jnp.sum(x)),
    "sum, axis 1": (lambda x, v: np.sum(x, axis=1), lambda x, v: jnp.sum(x, axis=1)),
    "sum, axis 0": (lambda x, v: np.sum(x, axis=0), lambda x, v: jnp.sum(x, axis=0)),
    "max, axis 0": (lambda x, v: np.max(x, axis=0), lambda x, v: jnp.max(x, axis=0)),
    "sum, axes 0 2 of 3": (
        lambda x, v: np.sum(cube(np, x), axis=(0, 2)),
        lambda x, v: jnp.sum(cube(jnp, x), axis=(0, 2)),
    ),
    "sum, axis 1 of 3": (lambda x, v: np.sum(cube(np, x), axis=1), lambda x, v: jnp.sum(cube(jnp, x), axis=1)),
    "x*v + v[:, None]": (lambda x, v: x * v + v[:, None], lambda x, v: x * v + v[:, None]),
    "x + x.T": (lambda x, v: x + x.T, lambda x, v: x + x.T),
    "softmax of rows": (softmax, lambda x, v: jax.nn.softmax(x, axis=1)),
    "logsumexp of rows": (logsumexp, lambda x, v: jax.nn.logsumexp(x, axis=1)),
    "layer norm": (lambda x, v: layer_norm(np, x, v), lambda x, v: layer_norm(jnp, x, v)),
}


def loops(most: int, dtype: Any) -> None:
    print(f"\nloops over {np.dtype(dtype)} matrices, microseconds; the program alone; GB/s of input and output")
    print(f"{'':>18} {'n':>6} {'compiled':>10} {'numpy':>10} {'jax.jit':>10} {'numpy/':>8} {'jax/':>8} {'GB/s':>6}")
    for n in (64, 256, 3000):
        if n * n > most:
            break
        x = np.random.default_rng(0).normal(size=(n, n)).astype(dtype)
        v = np.random.default_rng(1).normal(size=n).astype(dtype)
        given = tuple(map(jnp.asarray, (x, v)))
        for name, (f, g) in LOOPS.items():
            run = backend("llvm").compile(optimised(lower(sg.jit(f), (x, v), {}).built.function)).run
            compiled = jax.jit(g)
            rtol = 1e-10 if dtype == np.float64 else 1e-3
            result = run(x, v)[0]
            np.testing.assert_allclose(result, f(x, v), rtol=rtol, atol=rtol)
            found = interleaved(
                {
                    "compiled": partial(run, x, v),
                    "numpy": partial(f, x, v),
                    "jax": partial(waited, compiled, given),
                }
            )
            shown = " ".join(f"{1e6 * seconds:10.2f}" for seconds in found.values())
            ratios = [found[rival] / found["compiled"] for rival in ("numpy", "jax")]
            rate = (x.nbytes + result.nbytes) / found["compiled"] / 1e9
            print(f"{name:>18} {n:>6} {shown} {ratios[0]:8.1f} {ratios[1]:8.1f} {rate:6.1f}")


def threads(most: int) -> None:
    """The fused example with one thread and with all: medians of two processes that take turns."""
    print("\nthe fused example with threads: microseconds of one, of all, and their ratio")
    for n in (4000, 16_000, 100_000, 1_000_000):
        if n > most:
            break
        found: dict[str, list[float]] = {"1": [], "": []}
        for _ in range(3):
            for count, times in found.items():
                environment = {**os.environ, "SRCGRAD_NUM_THREADS": count}
                command = [sys.executable, __file__, "--one", str(n)]
                times.append(float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))
        one, all_of_them = (statistics.median(times) for times in found.values())
        print(f"{n:>9} {1e6 * one:10.2f} {1e6 * all_of_them:10.2f} {one / all_of_them:8.2f}")


def one_size(n: int) -> None:
    """The median seconds of the fused example, compiled."""
    x, w, b = np.random.default_rng(0).normal(size=(3, n))
    ours = sg.value_and_grad(loss, (0, 1, 2), backend="llvm")
    run = backend("llvm").compile(optimised(lower(ours, (x, w, b), {}).built.function)).run
    print(interleaved({"compiled": partial(run, x, w, b)})["compiled"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000_000, help="the largest number of elements")
    parser.add_argument("--one", type=int, help="the fused example of this size alone, with as many threads as wanted")
    options = parser.parse_args()
    if options.one:
        one_size(options.one)
        return
    threads(options.most)
    os.environ["SRCGRAD_NUM_THREADS"] = "1"  # from here on
    fused_example(options.most)
    for dtype in (np.float64, np.float32):
        loops(options.most, dtype)


if __name__ == "__main__":
    main()
