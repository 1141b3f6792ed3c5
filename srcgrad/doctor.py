"""``python -m srcgrad doctor``: what is installed, and what of it works."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import sys
import time
from typing import Any, Final

import numpy as np

import srcgrad as sg
from srcgrad.backends.base import available
from srcgrad.backends.base import backend as find_backend
from srcgrad.cache import CODES, PROGRAMS
from srcgrad.compiler import DEFAULT
from srcgrad.ir.passes.pipeline import VERIFY_VARIABLE

LIBRARIES: Final = ("numpy", "scipy", "llvmlite", "jax", "jaxlib")
VARIABLES: Final = {
    "SRCGRAD_BACKEND": "the backend of calls that name none",
    VERIFY_VARIABLE: "1: every pass is checked",
    "SRCGRAD_CPU": "the level of processor that the llvm backend writes for",
    "SRCGRAD_CACHE_DIR": "where machine code is kept on disk; empty: nowhere",
    "SRCGRAD_KEPT_MEMORY": "the megabytes that freed results may keep for others",
    "SRCGRAD_NUM_THREADS": "the threads that one call of the llvm backend may take",
    "OMP_NUM_THREADS": "threads of BLAS",
    "OPENBLAS_NUM_THREADS": "threads of OpenBLAS",
    "MKL_NUM_THREADS": "threads of MKL",
    "JAX_PLATFORMS": "the devices that jax looks for",
    "JAX_ENABLE_X64": "whether jax has float64 elsewhere too",
    "XLA_FLAGS": "options of XLA",
    "CUDA_VISIBLE_DEVICES": "the GPUs that jax may see",
}
"""The environment variables that decide how srcgrad or what it stands on runs."""


def diagnosis() -> dict[str, Any]:
    """Everything that ``doctor`` prints, as what JSON can hold."""
    backends = {name: try_backend(name) if present else absent(name) for name, present in available().items()}
    default = DEFAULT[0]
    return {
        "srcgrad": sg.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": f"{platform.system()} {platform.machine()}",
        "libraries": {name: version_of(name) for name in LIBRARIES},
        "default backend": default,
        "backends": backends,
        "devices": devices(),
        "cache": {
            "programs": len(PROGRAMS.entries),
            "functions": len(CODES.entries),
            "capacity": PROGRAMS.capacity,
            "on disk": kept_on_disk(),
        },
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "threads": {"cores": os.cpu_count(), "cores of this process": usable_cores(), "blas": blas()},
        "works": backends.get(default, {}).get("state") == "works",
    }


def kept_on_disk() -> str:
    """What machine code is kept, and where."""
    try:
        objects = importlib.import_module("srcgrad.backends.llvm.objects")
    except Exception as error:  # no llvmlite, or one that does not load
        return f"nothing ({type(error).__name__})"
    store = objects.current()
    if store.place is None:
        return "nothing"
    kept = store.kept()
    return f"{len(kept)} entries, {sum(entry.size for entry in kept) / 1e6:.1f} MB in {store.place}"


def version_of(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def absent(name: str) -> dict[str, Any]:
    """Why a backend cannot be had."""
    try:
        find_backend(name)
    except Exception as error:
        return {"state": "not available", "detail": str(error)}
    return {"state": "not available", "detail": ""}


def try_backend(name: str) -> dict[str, Any]:
    """Run a gradient whose value is known; ``state`` is "works", "fails" or "gives wrong numbers"."""
    matrix = np.array([[2.0, -1.0, 0.5], [0.0, 1.0, 3.0]])
    point = np.array([0.0, 0.5, -1.0])
    expected = matrix.T @ (2 * (matrix @ point)) + np.exp(-(point**2)) * (np.cos(point) - 2 * point * np.sin(point))
    start = time.perf_counter()
    try:
        found = sg.grad(lambda x: np.sum((matrix @ x) ** 2) + np.sum(np.sin(x) * np.exp(-(x**2))), backend=name)(point)
    except Exception as error:
        return {"state": "fails", "detail": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - start, 3)
    if np.shape(found) == expected.shape and np.allclose(found, expected, 1e-12, 1e-12):
        return {"state": "works", "detail": "", "seconds": seconds}
    return {"state": "gives wrong numbers", "detail": f"{found} instead of {expected}", "seconds": seconds}


def devices() -> list[str] | None:
    """What jax runs on; None where jax is not installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    try:
        jax = importlib.import_module("jax")
        return [f"{device.platform} {device.id}: {device.device_kind}" for device in jax.devices()]
    except Exception as error:  # jax is there, but its devices are not
        return [f"fails: {type(error).__name__}: {error}"]


def usable_cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def blas() -> str:
    """The BLAS that NumPy was built with."""
    config: Any = np.show_config(mode="dicts")
    found = (config or {}).get("Build Dependencies", {}).get("blas", {})
    return " ".join(str(found[key]) for key in ("name", "version") if found.get(key)) or "unknown"


def report(found: dict[str, Any]) -> str:
    """The diagnosis as text."""
    lines = [f"srcgrad {found['srcgrad']}, Python {found['python']} on {found['platform']} ({found['executable']})"]
    lines += [f"  {name}: {version or 'not installed'}" for name, version in found["libraries"].items()]
    for name, state in found["backends"].items():
        timed = f" ({state['seconds']} s for a first gradient)" if "seconds" in state else ""
        default = ", the default" if name == found["default backend"] else ""
        lines.append(f"backend {name}{default}: {state['state']}{timed}")
        lines += [f"  {text}" for text in state["detail"].splitlines()]
    if found["default backend"] not in found["backends"]:
        lines.append(f"backend {found['default backend']}, the default: there is none of this name")
    jax_devices = found["devices"]
    lines.append("devices of jax: " + ("jax is not installed" if jax_devices is None else ", ".join(jax_devices)))
    cache, threads = found["cache"], found["threads"]
    lines.append(
        f"cache: {cache['programs']} programs and {cache['functions']} functions in this process, "
        f"at most {cache['capacity']} each; on disk: {cache['on disk']}"
    )
    lines.append(f"cores: {threads['cores']}, {threads['cores of this process']} for this process")
    lines.append(f"BLAS: {threads['blas']}")
    lines.append("environment:")
    for name, value in found["environment"].items():
        lines.append(f"  {name}={value}" if value is not None else f"  {name} is not set ({VARIABLES[name]})")
    return "\n".join(lines)
