"""The xla backend against jax: what a call of a gradient costs where jax arrays come in and go out.

    python benchmarks/xla.py [--calls 2000] [--x64]

Per function and size, both are called in turn in one process, and waited for; printed are the medians in microseconds,
their difference and their ratio. ``jax`` is ``jax.jit(jax.grad(f))`` of the function written with jax.numpy.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout that is not installed measures itself

import jax
import jax.numpy as jnp
import numpy as np

import srcgrad as sg


def chain(xp: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = xp.tanh(x)
        for _ in range(4):
            y = xp.sin(y) * x + xp.cos(y)
        return xp.sum(y * y)

    return f


def branches(xp: Any) -> Callable[[Any], Any]:
    return lambda x: xp.sum(xp.where(x > 0.5, xp.exp(-x * x), xp.log1p(x * x)))


def norms(xp: Any) -> Callable[[Any], Any]:
    return lambda x: xp.sqrt(xp.sum(x * x)) + xp.max(x) + xp.mean(xp.abs(x - 0.33))


def softmax(xp: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        e = xp.exp(x - xp.max(x))
        p = e / xp.sum(e)
        return -xp.sum(p * xp.log(p))

    return f


def stencil(xp: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        d = x[1:] - x[:-1]
        return xp.sum(d * d * (x[1:] + x[:-1]))

    return f


def layers(xp: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        w = x.reshape(-1, 10)
        h = xp.tanh(w.T @ w)
        return xp.sum(h @ h)

    return f


FUNCTIONS = (chain, branches, norms, softmax, stencil, layers)


def medians(calls: list[Callable[[], Any]], count: int) -> list[float]:
    """Microseconds per call, of functions that are called in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for round in range(count):
        order = list(enumerate(calls))
        for k, call in order if round % 2 else reversed(order):
            start = time.perf_counter_ns()
            jax.block_until_ready(call())
            times[k].append((time.perf_counter_ns() - start) / 1000)
    return [statistics.median(column) for column in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--x64", action="store_true", help="in double precision")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)
    print(f"{'function':10} {'n':>7} {'jax':>10} {'srcgrad':>10} {'more':>8} {'ratio':>7}")
    for make in FUNCTIONS:
        for n in (10, 100_000):
            x = jnp.asarray(np.linspace(0.1, 1.0, n))
            theirs, ours = jax.jit(jax.grad(make(jnp))), sg.grad(make(np), backend="xla")
            assert np.allclose(theirs(x), ours(x), rtol=1e-3, atol=1e-5), make.__name__
            ours(x)
            count = options.calls if n < 1000 else 300
            jax_time, our_time = medians([partial(theirs, x), partial(ours, x)], count)
            print(
                f"{make.__name__:10} {n:7} {jax_time:10.2f} {our_time:10.2f} {our_time - jax_time:8.2f} "
                f"{our_time / jax_time:7.3f}"
            )


if __name__ == "__main__":
    main()
