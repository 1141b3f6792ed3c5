"""What threads bring to the fused example: processes with one and with all of them that take turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from subprocess import PIPE

from benchmarks.measure import ROOT, Row, repeats_for, seconds

# isort: split
import numpy as np

import srcgrad as sg
from benchmarks.rows.fused import loss
from srcgrad.doctor import usable_cores

SIZES = (4_000, 16_000, 100_000, 1_000_000)
BOUND = 1.7
"""What two cores should bring from 1e5 elements on."""
PROGRAM = "from benchmarks.rows.threads import serve; serve({size})"
ROUNDS = 15


def serve(size: int) -> None:
    """Answer each line of the input with the seconds of one call, with as many threads as the environment says."""
    given = np.random.default_rng(0).normal(size=(3, size))
    call = partial(sg.value_and_grad(loss, (0, 1, 2), backend="llvm"), *given)
    repeats = repeats_for(call)
    for _ in sys.stdin:
        call()
        print(seconds(call, repeats), flush=True)


def server(size: int, threads: int) -> subprocess.Popen[str]:
    """A process of its own that answers with the seconds of a call on so many threads."""
    environment = {**os.environ, "SRCGRAD_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", PROGRAM.format(size=size)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True)


def asked(*processes: subprocess.Popen[str]) -> float:
    """The microseconds that servers take which answer at the same time: the longest of their answers."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return max(float(process.stdout.readline()) for process in processes if process.stdout is not None) * 1e6


def row(size: int, rounds: int) -> Row:
    """Microseconds with all threads; the column numpy is one thread.

    They take turns every few hundredths of a second, as what a core does in that time varies by a third. Two cores of
    a virtual machine may for a while be two threads of one: so each round also asks one process for each core at the
    same time, which is the most that threads can reach.
    """
    cores = usable_cores() or 1
    found = Row(f"threads, value and gradient n={size}", "us", bounds={"numpy": BOUND} if size >= 100_000 else {})
    times: dict[str, list[float]] = {"srcgrad": [], "numpy": [], "beside": []}
    with ExitStack() as stack:
        shared = stack.enter_context(server(size, cores))
        alone = [stack.enter_context(server(size, 1)) for _ in range(cores)]
        for _ in range(ROUNDS):
            times["srcgrad"].append(asked(shared))
            times["numpy"].append(asked(alone[0]))
            times["beside"].append(asked(*alone))
        for process in (shared, *alone):
            process.communicate()
    medians = {column: statistics.median(values) for column, values in times.items()}
    most = cores * medians["numpy"] / medians.pop("beside")
    found.times = medians
    found.notes.append(f"with {cores} threads; the column numpy is srcgrad with one")
    found.notes.append(f"{cores} processes side by side do {most:.2f} times the work of one")
    return found


ROWS: dict[str, Callable[[int], Row]] = {f"threads-{size}": partial(row, size) for size in SIZES}
