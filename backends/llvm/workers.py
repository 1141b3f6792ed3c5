"""Threads that run the chunks of kernels: made at the first kernel that has chunks to share, and never waited for.

Kernels with chunks look into a cell for the function that shares them (``workers_text.py``); it is empty where there is
one thread, and then they run one chunk after the other. What a chunk is depends on the program alone, so results are
the same in all cases. One call has the threads at a time; another that comes meanwhile, from another thread of Python,
runs its chunks alone. A process that was forked makes threads of its own at its first such call.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from srcgrad.backends.llvm.workers_text import needed_symbols, workers_text
from srcgrad.ir.errors import BackendError
from srcgrad.ir.locks import new_lock

VARIABLE: Final = "SRCGRAD_NUM_THREADS"
SYMBOL: Final = "srcgrad_workers"
"""The name of the cell in the IR of kernels."""
_CELL: Final = ctypes.c_void_p(None)
_LOCK: Final = new_lock()
_LIBRARIES: Final[list[Any]] = []
llvm.add_symbol(SYMBOL, ctypes.addressof(_CELL))


def prepare(load: Callable[[str], Any]) -> None:
    """Let kernels share their chunks; once, and only where more than one thread is wanted.

    ``load`` makes a library, with ``address(name)``, of a module's text.

    Raises:
        BackendError: ``SRCGRAD_NUM_THREADS`` is no number of threads.
    """
    with _LOCK:
        if _LIBRARIES or os.name != "posix":
            return
        count = wanted(os.environ.get(VARIABLE))
        if count == 1:
            return
        functions = ctypes.CDLL(None)
        for name in needed_symbols():
            llvm.add_symbol(name, ctypes.cast(getattr(functions, name), ctypes.c_void_p).value)
        library = load(workers_text())
        # Threads may sleep in this code when the interpreter ends: it is never freed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
        _LIBRARIES.append(library)
        ctypes.c_int32.from_address(library.address("srcgrad_wanted")).value = count
        os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(library.address("srcgrad_reset")))
        _CELL.value = library.address("srcgrad_run")


def wanted(text: str | None) -> int:
    """How many threads are wanted: what the variable says, or as many as there are cores for this process.

    Raises:
        BackendError: it is no whole number from 1 on.
    """
    if text is None or not text.strip():
        return available_cores()
    if not text.strip().isdecimal() or int(text) < 1:
        raise BackendError(f"{VARIABLE}={text} is no number of threads", hint="give a whole number from 1 on")
    return int(text)


def available_cores() -> int:
    """The physical cores that this process may run on, no more than its share of time amounts to."""
    try:
        processors = sorted(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # a system without it
        return os.cpu_count() or 1
    cores = {core_of(number) for number in processors}
    return max(1, min(len(cores), quota()))


def core_of(processor: int) -> tuple[str, str]:
    """The package and the core of a processor; one of its own where the system does not tell."""
    place = Path(f"/sys/devices/system/cpu/cpu{processor}/topology")
    try:
        return (place / "physical_package_id").read_text(), (place / "core_id").read_text()
    except OSError:
        return "", str(processor)


def quota(root: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processors' time the control group has, rounded up."""
    try:
        limit, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            limit = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return 1 << 16
    if not limit.isdecimal():  # "max", or -1
        return 1 << 16
    return max(1, math.ceil(int(limit) / int(period)))
