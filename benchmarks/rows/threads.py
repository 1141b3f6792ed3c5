"""What threads bring to the fused example: processes with one and with all of them that take turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from benchmarks.measure import ROOT, Row, repeats_for, seconds

# isort: split
import numpy as np

import srcgrad as sg
from benchmarks.rows.fused import loss

SIZES = (4_000, 16_000, 100_000, 1_000_000)
BOUND = 1.7
"""What two cores should bring from 1e5 elements on."""
PROGRAM = "from benchmarks.rows.threads import call_seconds; print(call_seconds({size}))"


def call_seconds(size: int) -> float:
    """The median of one call, with as many threads as the environment says."""
    given = np.random.default_rng(0).normal(size=(3, size))
    call = partial(sg.value_and_grad(loss, (0, 1, 2), backend="llvm"), *given)
    repeats = repeats_for(call)
    return statistics.median(seconds(call, repeats) for _ in range(9))


def row(size: int, rounds: int) -> Row:
    """Microseconds with all threads; the column numpy is one thread."""
    found = Row(f"threads, value and gradient n={size}", "us", bounds={"numpy": BOUND} if size >= 100_000 else {})
    times: dict[str, list[float]] = {"srcgrad": [], "numpy": []}
    for _ in range(min(rounds, 5)):
        for column, count in (("srcgrad", str(os.cpu_count())), ("numpy", "1")):
            environment = {**os.environ, "SRCGRAD_NUM_THREADS": count}
            command = [sys.executable, "-c", PROGRAM.format(size=size)]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
            times[column].append(float(done.stdout) * 1e6)
    found.times = {column: statistics.median(values) for column, values in times.items()}
    found.notes.append(f"with {os.cpu_count()} threads; the column numpy is srcgrad with one")
    return found


ROWS: dict[str, Callable[[int], Row]] = {f"threads-{size}": partial(row, size) for size in SIZES}
