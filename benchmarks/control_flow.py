"""Loops written natively, srcgrad beside jax: the first call of a gradient, and later calls.

    python benchmarks/control_flow.py [--backend llvm] [--repeats 5] [--limit 120]

``jax`` is ``jax.jit(jax.grad(f))`` of the same function with jax.numpy, which unrolls Python's loops; ``scan`` is the
same recurrence written for it with ``lax.scan`` or ``lax.fori_loop``. First calls are of a fresh copy of the function
each, with cleared caches and nothing kept on disk, in turn with jax's; printed are medians in milliseconds, later
calls in microseconds. What jax has not compiled after ``--limit`` seconds, in a process of its own, is not waited
for: its column says so. Below stand what tracing costs per operation and converting per function.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout that is not installed measures itself

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import srcgrad as sg

Function = Callable[[Any], Any]


def pendulum(xp: Any) -> Function:
    """100 steps of the midpoint rule."""

    def f(start: Any) -> Any:
        angle, speed = start[0], start[1]
        for _ in range(100):
            middle_angle = angle + 0.025 * speed
            middle_speed = speed - 0.025 * (xp.sin(angle) + 0.1 * speed)
            angle = angle + 0.05 * middle_speed
            speed = speed - 0.05 * (xp.sin(middle_angle) + 0.1 * middle_speed)
        return angle * angle + speed * speed

    return f


def recurrence(xp: Any) -> Function:
    """128 terms of Bessel's series."""

    def f(x: Any) -> Any:
        term = total = x * 0.5
        for k in range(1, 128):
            term = -term * x * x / (4.0 * k * (k + 1))
            total = total + term
        return xp.sum(total)

    return f


def recurrent(xp: Any) -> Function:
    """An RNN over 100 time steps."""
    rng = np.random.default_rng(0)
    inputs = xp.asarray(rng.standard_normal((100, 8)))
    mix = xp.asarray(rng.standard_normal((8, 16)) / 4)

    def f(w: Any) -> Any:
        h = xp.zeros(16)
        for t in range(100):
            h = xp.tanh(inputs[t] @ mix + h @ w)
        return xp.sum(h * h)

    return f


def pendulum_scan() -> Function:
    def step(carry: Any, _: Any) -> Any:
        angle, speed = carry
        middle_angle = angle + 0.025 * speed
        middle_speed = speed - 0.025 * (jnp.sin(angle) + 0.1 * speed)
        return (angle + 0.05 * middle_speed, speed - 0.05 * (jnp.sin(middle_angle) + 0.1 * middle_speed)), None

    def f(start: Any) -> Any:
        angle, speed = lax.scan(step, (start[0], start[1]), None, 100)[0]
        return angle * angle + speed * speed

    return f


def recurrence_scan() -> Function:
    def f(x: Any) -> Any:
        def step(carry: Any, k: Any) -> Any:
            term, total = carry
            term = -term * x * x / (4.0 * k * (k + 1))
            return (term, total + term), None

        start = (x * 0.5, x * 0.5)
        return jnp.sum(lax.scan(step, start, jnp.arange(1.0, 128.0))[0][1])

    return f


def recurrent_scan() -> Function:
    rng = np.random.default_rng(0)
    inputs = jnp.asarray(rng.standard_normal((100, 8)))
    mix = jnp.asarray(rng.standard_normal((8, 16)) / 4)

    def f(w: Any) -> Any:
        h, _ = lax.scan(lambda h, x: (jnp.tanh(x @ mix + h @ w), None), jnp.zeros(16), inputs)
        return jnp.sum(h * h)

    return f


def factorised(xp: Any) -> Function:
    """The logarithm of the determinant of a matrix of 48 rows, factorised in place by slices."""

    def f(a: Any) -> Any:
        a = a.copy()
        for k in range(48):
            a[k, k] = np.sqrt(a[k, k])
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])
        return np.sum(np.log(np.diag(a)))

    def updated(a: Any) -> Any:
        """The same for arrays that are not changed in place."""
        for k in range(48):
            root = jnp.sqrt(a[k, k])
            column = a[k + 1 :, k] / root
            a = a.at[k, k].set(root).at[k + 1 :, k].set(column)
            a = a.at[k + 1 :, k + 1 :].add(-jnp.outer(column, column))
        return jnp.sum(jnp.log(jnp.diag(a)))

    return f if xp is np else updated


def factorised_scan() -> Function:
    places = jnp.arange(48)

    def step(k: Any, a: Any) -> Any:
        root = jnp.sqrt(a[k, k])
        column = jnp.where(places > k, a[:, k] / root, 0.0)
        return (a - jnp.outer(column, column)).at[:, k].set(jnp.where(places > k, column, a[:, k])).at[k, k].set(root)

    return lambda a: jnp.sum(jnp.log(jnp.diag(lax.fori_loop(0, 48, step, a))))


def tridiagonal(xp: Any) -> Function:
    """A system of 200 equations, eliminated into Python's lists and solved backwards."""

    def f(x: Any) -> Any:
        c, d = [0.0] * 200, [0.0] * 200
        c[0], d[0] = 1.0 / (4.0 + x[0]), 1.0 / (4.0 + x[0])
        for i in range(1, 200):
            pivot = 4.0 + x[i] - c[i - 1]
            c[i], d[i] = 1.0 / pivot, (x[i] + d[i - 1]) / pivot
        for i in range(198, -1, -1):
            d[i] = d[i] + c[i] * d[i + 1]
        return sum(d)

    return f


def tridiagonal_scan() -> Function:
    def eliminate(carry: Any, x: Any) -> Any:
        c, d = carry
        pivot = 4.0 + x - c
        now = 1.0 / pivot, (x + d) / pivot
        return now, now

    def substitute(above: Any, row: Any) -> Any:
        c, d = row
        return d + c * above, d + c * above

    def f(x: Any) -> Any:
        first = 1.0 / (4.0 + x[0]), 1.0 / (4.0 + x[0])
        last, (c, d) = lax.scan(eliminate, first, x[1:])
        c, d = (jnp.concatenate([jnp.stack([a]), b]) for a, b in zip(first, (c, d), strict=True))
        _, solved = lax.scan(substitute, last[1], (c[:-1], d[:-1]), reverse=True)
        return last[1] + jnp.sum(solved)

    return f


MATRIX = np.exp(-0.1 * np.subtract.outer(np.arange(48.0), np.arange(48.0)) ** 2) + np.eye(48)
CASES: list[tuple[Callable[[Any], Function], Callable[[], Function], Any]] = [
    (pendulum, pendulum_scan, np.array([1.0, 0.0])),
    (recurrence, recurrence_scan, np.linspace(0.1, 2.0, 16)),
    (recurrent, recurrent_scan, np.random.default_rng(1).standard_normal((16, 16)) / 4),
    (factorised, factorised_scan, MATRIX),
    (tridiagonal, tridiagonal_scan, np.linspace(0.0, 1.0, 200)),
]


def first_call(make: Callable[[], Function], x: Any) -> float:
    """Milliseconds to the first result."""
    call = make()
    start = time.perf_counter()
    jax.block_until_ready(call(x))
    return (time.perf_counter() - start) * 1e3


def later_calls(calls: list[Function], x: Any, count: int) -> list[float]:
    """Microseconds per call, of functions called in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(count):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            jax.block_until_ready(call(x))
            times[k].append((time.perf_counter() - start) * 1e6)
    return [statistics.median(column) for column in times]


_serial = itertools.count()


def ours(make: Callable[[Any], Function], backend: str, folder: str) -> Function:
    """The gradient of a new copy, with no machine code of an earlier one."""
    sg.clear_caches()
    os.environ["SRCGRAD_CACHE_DIR"] = f"{folder}/{next(_serial)}"
    return sg.grad(make(np), backend=backend)


def theirs(make: Callable[[Any], Function]) -> Function:
    jax.clear_caches()
    return jax.jit(jax.grad(make(jnp)))


def jax_compiles(name: str, limit: float) -> bool:
    """Whether jax compiles its gradient of a case within so many seconds."""
    try:
        subprocess.run([sys.executable, __file__, "--only-jax", name], timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return False
    return True


def straight_line(count: int) -> Function:
    """A function of so many operations."""
    lines = ["def f(x):", "    y = x"]
    lines += [f"    y = np.{('sin', 'cos', 'tanh')[k % 3]}(y) + x" for k in range(count // 2)]
    space: dict[str, Any] = {"np": np}
    exec("\n".join([*lines, "    return y.sum()"]), space)
    found: Function = space["f"]
    return found


def tracing_cost() -> float:
    """Microseconds per traced operation: the difference of two lengths of program."""
    from srcgrad.ir.types import ArrayType
    from srcgrad.tracing.function import LeafSpec, trace_function

    spec = LeafSpec(ArrayType(np.dtype(np.float64), (8,)), False, False)

    def seconds(count: int) -> float:
        f = straight_line(count)
        found = []
        for _ in range(7):
            start = time.perf_counter()
            trace_function(lambda leaves: f(*leaves), [None], [spec], ["x"], name="f", concrete=False, numbers=[None])
            found.append(time.perf_counter() - start)
        return statistics.median(found)

    return (seconds(4000) - seconds(2000)) / 2000 * 1e6


def conversion_cost() -> float:
    """Milliseconds to convert a function of the cases above."""
    from srcgrad.tracing.conversion.convert import compiled

    found = []
    for _ in range(7):
        for make, _, _ in CASES:
            start = time.perf_counter()
            compiled(make(np).__code__)
            found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found)


def measure(
    make: Callable[[Any], Function], scan: Callable[[], Function], x: Any, options: argparse.Namespace, folder: str
) -> str:
    """The row of one case."""
    repeats, limit = options.repeats, options.limit
    made: list[Callable[[], Function]] = [
        lambda: ours(make, options.backend, folder),
        lambda: theirs(make),
        lambda: jax.jit(jax.grad(scan())),
    ]
    unrolls = jax_compiles(make.__name__, limit)
    kept = [0, 1, 2] if unrolls else [0, 2]
    found = [made[k]()(x) for k in kept]
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-8, atol=1e-10)
    rows = [[first_call(made[k], x) for k in kept] for _ in range(repeats)]
    first = dict(zip(kept, [statistics.median(column) for column in zip(*rows, strict=True)], strict=True))
    later = dict(zip(kept, later_calls([made[k]() for k in kept], x, 200), strict=True))
    theirs_first = (
        f"{first[1]:10.1f} {first[1] / first[0]:9.1f}"
        if unrolls
        else (f"{f'> {1e3 * limit:.0f}':>10} {f'> {1e3 * limit / first[0]:.0f}':>9}")
    )
    theirs_later = f"{later[1]:10.1f}" if unrolls else f"{'-':>10}"
    return (
        f"{make.__name__:12} {first[0]:10.1f} {theirs_first} {first[2]:9.1f} "
        f"{later[0]:10.1f} {theirs_later} {later[2]:9.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="llvm")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that jax's first compilation may take")
    parser.add_argument("--only-jax", help=argparse.SUPPRESS)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.only_jax:
        for make, _, x in CASES:
            if make.__name__ == options.only_jax:
                jax.block_until_ready(theirs(make)(x))
        return
    print(f"{'':12} {'first call, ms':>30} {'':9} {'later calls, us':>30}")
    print(
        f"{'function':12} {'srcgrad':>10} {'jax':>10} {'jax/ours':>9} {'scan':>9} "
        f"{'srcgrad':>10} {'jax':>10} {'scan':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for make, scan, x in CASES:
            print(measure(make, scan, x, options, folder), flush=True)
    print(f"tracing: {tracing_cost():.1f} us per operation; converting: {conversion_cost():.2f} ms per function")


if __name__ == "__main__":
    main()
