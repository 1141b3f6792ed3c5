"""Vector math of the LLVM backend against NumPy, SciPy and jax: nanoseconds an element.

    python benchmarks/vector_math.py [--size 100000] [--dtype float64] [--names exp,sin] [--no-jax]

All run in turn in one process, each for some milliseconds a turn; printed are the medians of the processor's time, and
the ratios to the first. The loops are what the emitter writes, compiled for the host without LLVM passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

sys.path.insert(0, str(Path(__file__).parents[1]))

from srcgrad.backends.llvm.vector_math import FUNCTIONS
from tests.backends.llvm.kernels import Kernel, host

# Of every function, the intervals of its operands.
RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-20, 20),),
    "exp2": ((-20, 20),),
    "expm1": ((-5, 5),),
    "log": ((0.01, 100),),
    "log2": ((0.01, 100),),
    "log10": ((0.01, 100),),
    "log1p": ((-0.9, 10),),
    "sin": ((-30, 30),),
    "cos": ((-30, 30),),
    "tan": ((-30, 30),),
    "sinh": ((-5, 5),),
    "cosh": ((-5, 5),),
    "tanh": ((-5, 5),),
    "expit": ((-20, 20),),
    "erf": ((-4, 4),),
    "erfc": ((-4, 10),),
    "arcsin": ((-1, 1),),
    "arccos": ((-1, 1),),
    "arctan": ((-5, 5),),
    "arcsinh": ((-5, 5),),
    "arccosh": ((1, 20),),
    "arctanh": ((-0.99, 0.99),),
    "cbrt": ((-100, 100),),
    "sqrt": ((0, 100),),
    "hypot": ((-5, 5), (-5, 5)),
    "arctan2": ((-5, 5), (-5, 5)),
    "pow": ((0.01, 20), (-5, 5)),
    "logaddexp": ((-5, 5), (-5, 5)),
    "maximum": ((-5, 5), (-5, 5)),
    "gammaln": ((0.1, 20),),
    "digamma": ((0.1, 20),),
    "i0": ((-20, 20),),
    "i1": ((-20, 20),),
    "i0e": ((-20, 20),),
    "i1e": ((-20, 20),),
}
SCIPY = {"digamma": "psi", "i0": "i0"}
JAX = {"pow": "power"}


def rivals(name: str, arrays: list[Any], with_jax: bool) -> dict[str, Callable[[], Any]]:
    ours = None if name in SCIPY else getattr(np, JAX.get(name, name), None)
    known = ours or getattr(scipy.special, SCIPY.get(name, name))
    result = np.empty_like(arrays[0])
    found: dict[str, Callable[[], Any]] = {"numpy": lambda: known(*arrays, out=result)}
    if with_jax:
        import jax
        import jax.scipy.special

        jax.config.update("jax_enable_x64", True)
        function = getattr(jax.numpy, JAX.get(name, name), None) or getattr(jax.scipy.special, name)
        compiled, given = jax.jit(function), [jax.device_put(array) for array in arrays]
        found["jax"] = lambda: compiled(*given).block_until_ready()
    return found


def medians(functions: Mapping[str, Callable[[], Any]], turns: int, least: float) -> dict[str, float]:
    """Seconds a call, by name; each runs for ``least`` seconds a turn."""
    counts = {}
    for name, function in functions.items():
        function()
        start = time.process_time()
        function()
        counts[name] = max(1, int(least / max(time.process_time() - start, 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(turns):
        for name, function in functions.items():
            start = time.process_time()
            for _ in range(counts[name]):
                function()
            times[name].append((time.process_time() - start) / counts[name])
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--names", default=",".join(RANGES))
    parser.add_argument("--no-jax", action="store_true")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    dtype = np.dtype(options.dtype)
    machine = host()
    width = 64 if "avx512f" in machine.features else 32 if "avx2" in machine.features else 16
    lanes = width // dtype.itemsize
    size = options.size // lanes * lanes
    for name in options.names.split(","):
        arrays = [random.uniform(low, high, size).astype(dtype) for low, high in RANGES[name]]
        kernel, result = Kernel(FUNCTIONS[name], dtype, len(arrays), lanes, machine), np.empty(size, dtype)
        # The pointers are found once: that takes longer than the call.
        pointers = [array.ctypes.data for array in (*arrays, result)]
        functions: dict[str, Callable[[], Any]] = {"own": partial(kernel.address, *pointers, size)}
        functions.update(rivals(name, arrays, not options.no_jax))
        found = medians(functions, 9, 0.003)
        row = [f"{which} {seconds / size * 1e9:6.2f}" for which, seconds in found.items()]
        ratios = [f"{which}/own {found[which] / found['own']:5.2f}" for which in found if which != "own"]
        print(f"{name:10}", "  ".join(row + ratios), flush=True)


if __name__ == "__main__":
    main()
