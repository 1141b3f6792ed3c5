"""How soon a gradient never seen before is there: compiling alone, the whole first call, a fresh process."""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from benchmarks.measure import ROOT, Row, module

# isort: split
import numpy as np

import srcgrad as sg
from srcgrad.backends.base import backend
from srcgrad.compiler import optimised
from srcgrad.lowering import lower

LIMITS = {10: (15, 20), 200: (40, 60), 5_000: (250, 600)}
"""By operations: the milliseconds to compile in, and those of the whole first call."""
WHOLE = {5_000: 2_505}
"""By the operations of a whole gradient, those of a function whose gradient has about so many."""
_serial = itertools.count()


MIXED = (
    "x = np.tanh(x)", "x = x * w", "x = x + b", "x = x - 0.5 * b", "x = x * 0.9", "x = x + w * b", "x = x * x",
    "x = 0.25 * x", "x = x - w",
)  # fmt: skip
"""A tenth of the operations is a tanh, and no two lines in a row are alike."""
SUMS = ("x = x * w", "x = x + b", "x = x / np.sum(x)", "x = np.tanh(x)")
"""Steps of an unrolled loop, each with a sum that the next one needs."""


def body(operations: int, given: tuple[str, ...] = MIXED) -> list[str]:
    """These lines in turn, of so many operations together."""
    found: list[str] = []
    count = 0
    for line in itertools.cycle(given):
        if count >= operations:
            return found
        found.append(line)
        count += sum(line.count(sign) for sign in "*+-/") + line.count("np.")
    return found


def chain(operations: int, np_like: Any = np, given: tuple[str, ...] = MIXED) -> Any:
    """A new function of so many operations, with a code object of its own."""
    name = f"chain_{next(_serial)}"
    names: dict[str, Any] = {"np": np_like}
    lines = "".join(f"    {line}\n" for line in body(operations, given))
    exec(f"def {name}(x, w, b):\n{lines}    return np.sum(x)\n", names)
    return names[name]


def arrays() -> tuple[Any, ...]:
    return tuple(np.random.default_rng(3).uniform(0.1, 0.9, size=(3, 1_000)))


def milliseconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


JAX = """
from benchmarks.rows.compiling import jax_first
jax_first(10)
print(jax_first({operations}))
"""
PATIENCE = 60.0
"""Seconds to wait for jax: XLA takes minutes for some long straight programs."""


def jax_first(operations: int, given: tuple[str, ...] = MIXED) -> float:
    """Milliseconds of the first call by jax."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    gradient = jax.jit(jax.grad(chain(operations, jnp, given), (0, 1, 2)))
    points = tuple(map(jnp.asarray, arrays()))
    return milliseconds(lambda: jax.block_until_ready(gradient(*points)))


def jax_time(operations: int, rounds: int, row: Row) -> float | None:
    """The median of first calls by jax; those of long programs in a process that can be given up."""
    if module("jax") is None:
        return None
    if operations < 1_000:
        return statistics.median([jax_first(operations) for _ in range(min(rounds, 5))])
    command = [sys.executable, "-c", JAX.format(operations=operations)]
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        row.notes.append(f"jax was not done after {PATIENCE:.0f} s, which is the time shown")
        return PATIENCE * 1e3
    return float(done.stdout.split()[-1])


@contextmanager
def kept_in(folder: str) -> Iterator[None]:
    """Machine code is kept in this folder; of an empty name nothing is kept."""
    before = os.environ.get("SRCGRAD_CACHE_DIR")
    os.environ["SRCGRAD_CACHE_DIR"] = folder
    try:
        yield
    finally:
        os.environ.pop("SRCGRAD_CACHE_DIR")
        if before is not None:
            os.environ["SRCGRAD_CACHE_DIR"] = before


class Samples(NamedTuple):
    """Medians in milliseconds of one program, and how many operations are compiled."""

    first: float
    compiled: float
    cached: float
    operations: int


def samples(operations: int, rounds: int) -> Samples:
    """Of functions never seen before: the first call, and compiling alone, with nothing and with all on disk."""
    given = arrays()
    compiled, first, cached = [], [], []
    with tempfile.TemporaryDirectory() as folder, kept_in(folder):
        sg.grad(chain(10), (0, 1, 2), backend="llvm")(*given)  # imports and one-time work
        for turn in range(min(rounds, 3 if operations >= 1_000 else 7)):
            fresh = sg.grad(chain(operations), (0, 1, 2), backend="llvm")
            first.append(milliseconds(lambda fresh=fresh: fresh(*given)))  # type: ignore[misc]
            os.environ["SRCGRAD_CACHE_DIR"] = f"{folder}/{turn}"
            function = optimised(lower(fresh, given, {}).built.function)
            compiled.append(milliseconds(lambda f=function: backend("llvm").compile(f)))  # type: ignore[misc]
            cached.append(milliseconds(lambda f=function: backend("llvm").compile(f)))  # type: ignore[misc]
            os.environ["SRCGRAD_CACHE_DIR"] = f"{folder}/{turn}/next"
    median = statistics.median
    return Samples(median(first), median(compiled), median(cached), len(function.operations))


ON_TWO = """
import os
from benchmarks.rows.compiling import samples
os.environ["SRCGRAD_NUM_THREADS"] = "2"
print(*samples({operations}, {rounds}))
"""


def samples_on_two(operations: int, rounds: int) -> tuple[float, float]:
    """The first call and compiling alone with two threads, which a process has or has not."""
    command = [sys.executable, "-c", ON_TWO.format(operations=operations, rounds=rounds)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    first, compiled, *_ = map(float, done.stdout.split())
    return first, compiled


def compile_row(operations: int, rounds: int, whole: bool = False) -> Row:
    """Milliseconds; the parts are notes: compiling alone, and loading what is cached.

    ``operations`` are those of the function, or of the ``whole`` gradient, which is what is compiled.
    """
    compile_limit, first_limit = LIMITS[operations]
    row = Row(f"first call, {operations} operations{' with their derivatives' if whole else ''}", "ms")
    if operations == 5_000:
        row.bounds = {"jax": 4.0}
    if whole:
        operations = WHOLE[operations]
    found = samples(operations, rounds)
    row.times["srcgrad"] = found.first
    theirs = jax_time(operations, rounds, row)
    if theirs is not None:
        row.times["jax"] = theirs
    row.notes.append(f"the limit is {first_limit} ms")
    row.notes.append(f"{operations} operations, {found.operations} with their derivatives")
    row.notes.append(f"compiling alone {found.compiled:.1f} ms (limit {compile_limit})")
    row.notes.append(f"compiling with the object cached {found.cached:.1f} ms")
    if operations >= 1_000:
        first, compiled = samples_on_two(operations, rounds)
        row.notes.append(f"with two threads {first:.0f} ms, compiling alone {compiled:.1f} ms")
    return row


def sums_row(operations: int, rounds: int) -> Row:
    """Milliseconds of the first call of a gradient of an unrolled loop with sums, with nothing on disk."""
    row, points = Row(f"first call, {operations} operations in steps with sums", "ms"), arrays()
    with kept_in(""):
        sg.grad(chain(10, given=SUMS), (0, 1, 2), backend="llvm")(*points)  # imports and one-time work
        times = []
        for _ in range(min(rounds, 5)):
            fresh = sg.grad(chain(operations, given=SUMS), (0, 1, 2), backend="llvm")
            times.append(milliseconds(lambda fresh=fresh: fresh(*points)))  # type: ignore[misc]
    row.times["srcgrad"] = statistics.median(times)
    if module("jax") is not None:
        row.times["jax"] = statistics.median([jax_first(operations, SUMS) for _ in range(min(rounds, 3))])
    return row


FRESH = """
import time
start = time.perf_counter()
import numpy as np
import srcgrad as sg
def loss(x):
    return np.sum(np.tanh(x) ** 2 * np.exp(-x))
sg.grad(loss, backend="llvm")(np.linspace(0.0, 1.0, 1000))
print(time.time(), time.perf_counter() - start)
"""


def process_row(rounds: int) -> Row:
    """Milliseconds from the start of a process to its first gradient, whose kernel is cached."""
    row = Row("fresh process, cached gradient", "ms")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"SRCGRAD_CACHE_DIR": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as with packages that are installed
        reached, inside, whole = [], [], []
        for _ in range(min(rounds, 7) + 1):
            start = time.time()  # which both processes have
            command = [sys.executable, "-c", FRESH]
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=environment)
            whole.append((time.time() - start) * 1e3)
            moment, since = map(float, done.stdout.split())
            reached.append((moment - start) * 1e3)
            inside.append(since * 1e3)
    row.times["srcgrad"] = statistics.median(reached[1:])
    row.notes.append(f"the limit is 350 ms; from the first import on {statistics.median(inside[1:]):.0f} ms")
    row.notes.append(f"until the process has ended {statistics.median(whole[1:]):.0f} ms")
    row.notes.append(f"the first process of all, which compiles: {reached[0]:.0f} ms")
    return row


def long_row(rounds: int) -> Row:
    """Seconds of the first call of a chain of 1e4 and of 1e5 operations."""
    row = Row("first call, 100000 operations", "s")
    given = tuple(array[:100] for array in arrays())
    times = {}
    for operations in (10_000, 100_000):
        fresh = sg.grad(chain(operations), (0, 1, 2), backend="llvm")
        times[operations] = milliseconds(lambda fresh=fresh: fresh(*given)) / 1e3  # type: ignore[misc]
    row.times["srcgrad"] = times[100_000]
    row.notes.append(f"1e4 operations: {times[10_000]:.2f} s; ratio {times[100_000] / times[10_000]:.1f}")
    return row


ROWS: dict[str, Callable[[int], Row]] = {
    **{f"first-{operations}": partial(compile_row, operations) for operations in LIMITS},
    **{f"first-whole-{operations}": partial(compile_row, operations, whole=True) for operations in WHOLE},
    **{f"first-sums-{operations}": partial(sums_row, operations) for operations in (50, 250)},
    "fresh-process": process_row,
    "first-100000": long_row,
}
