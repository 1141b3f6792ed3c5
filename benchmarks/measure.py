"""What the benchmarks share: one thread, interleaved rounds, medians, and the table's lines.

Rounds are interleaved (each round runs every peer once, in an order that moves on by one), so that what else the
machine does falls on all alike; the median over the rounds is what counts, and its ratio to srcgrad's.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # read when NumPy is imported
os.environ.setdefault("SRCGRAD_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import ctypes
import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed measures itself

Call = Callable[[], object]
PEERS = ("srcgrad", "numpy", "autograd", "jax", "torch")
QUIET = 0.03
"""Seconds to wait before each sample: after a call with much memory has returned, threads of jax go on for 20 ms."""

WARM = 0.005
"""Seconds of calls after that wait, which are not counted: the first ones are slower by half."""


@dataclass
class Row:
    """One line of a table: the time of each peer, in `unit`; ``bounds``: the ratio that each peer should reach."""

    name: str
    unit: str
    times: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)


def module(name: str) -> Any:
    """The module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.partition(".")[0]:
            return None
        raise


def rebound(f: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """The same code with other globals, such as another module for ``np``."""
    code: Any = f.__code__
    return types.FunctionType(code, {**f.__globals__, **names}, f.__name__)


def on_jax(make: Callable[[Any], Callable[..., Any]], given: tuple[Any, ...]) -> Call | None:
    """The compiled function that ``make`` writes with jax.numpy, waited for, on arrays that lie on the device.

    None where jax is missing.
    """
    jax = module("jax")
    if jax is None:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp = module("jax.numpy")
    compiled, arrays = jax.jit(make(jnp)), tuple(map(jnp.asarray, given))
    return lambda: jax.block_until_ready(compiled(*arrays))


def on_torch(make: Callable[[Any], Callable[..., Any]], given: tuple[Any, ...]) -> Call | None:
    """The function that ``make`` writes with torch, on tensors, on one thread; None where torch is missing."""
    torch = module("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)
    f, tensors = make(torch), tuple(map(torch.from_numpy, given))
    return lambda: f(*tensors)


def compiled_c(compiler: str, source: Path, flags: tuple[str, ...]) -> ctypes.CDLL | None:
    """A shared library of a source file; None where there is no such compiler."""
    found = shutil.which(compiler)
    if found is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{source.stem}.so"
        subprocess.run([found, *flags, "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
        return ctypes.CDLL(str(path))


def seconds(call: Call, repeats: int = 1) -> float:
    """Seconds of one call, as the mean of `repeats` calls in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def repeats_for(call: Call, target: float = 0.02) -> int:
    """How many calls take about `target` seconds, once what only early calls do, such as compiling, is done."""
    call()
    count = 1
    while True:
        taken = min(seconds(call, count) for _ in range(3))
        if count * taken >= target / 8:
            return max(1, int(target / taken))
        count *= 4


def warm_up(call: Call) -> None:
    """Call until the processor is awake and has in its caches what the call needs."""
    end = time.perf_counter() + WARM
    call()
    while time.perf_counter() < end:
        call()


def interleaved(calls: dict[str, Call], rounds: int, repeats: dict[str, int]) -> dict[str, float]:
    """The median seconds per call of each, over rounds that run them in turn, each when the one before is quiet."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            time.sleep(QUIET)
            warm_up(calls[name])
            samples[name].append(seconds(calls[name], repeats[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def guarded(row: Row, peer: str, action: Callable[[], Any]) -> Any:
    """The action's result; its error becomes a note of the row."""
    try:
        return action()
    except Exception as error:
        row.notes.append(f"{peer}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
        return None


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "from the checkout" if name == "srcgrad" and installed(name) else "-"


def processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def header() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{peer: version(peer) for peer in PEERS},
        "cpu": f"{processor()}, {os.cpu_count()} cores, one thread used",
    }


def measured(row: Row, calls: dict[str, Call], rounds: int, scale: float) -> Row:
    """The row with the median of each call, times ``scale``."""
    repeats = {peer: repeats_for(call) for peer, call in calls.items()}
    row.times = {peer: value * scale for peer, value in interleaved(calls, rounds, repeats).items()}
    return row


def show(row: Row, peers: tuple[str, ...] = PEERS) -> None:
    """Print a row; a ratio below its bound has a mark."""
    base, cells = row.times.get("srcgrad"), []
    for peer in peers:
        value = row.times.get(peer)
        if value is None:
            cells.append(f"{'-':>20}")
            continue
        ratio = value / base if base and peer != "srcgrad" else None
        missed = "!" if ratio is not None and ratio < row.bounds.get(peer, 0.0) else " "
        cells.append(f"{value:>10.4g} {f'({ratio:.2f}x)' if ratio is not None else '':>8}{missed}")
    print(f"{row.name + ' [' + row.unit + ']':<34}" + "".join(cells), flush=True)
    if row.bounds:
        print("    bounds: " + ", ".join(f"{peer} {bound:g}x" for peer, bound in row.bounds.items()), flush=True)
    for note in row.notes:
        print(f"    {note}", flush=True)
