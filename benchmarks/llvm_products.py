"""Linear algebra of the llvm backend against NumPy and jax.jit, interleaved: medians of one process, one thread.

    python benchmarks/llvm_products.py [--only matmul]

`step` is the native code alone, called in a native loop; NumPy and jax are called from Python. A ratio above 1 is a
rival slower than `step`. All compute in the same dtype, and jax is waited for.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numpy as np
import scipy.linalg

import srcgrad.ir.ops  # noqa: F401  registers the ops
from srcgrad.backends.llvm.native import Library
from srcgrad.backends.llvm.steps import Step, step_for
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.core import Builder
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType

jax.config.update("jax_enable_x64", True)
ROUNDS, SECONDS = 9, 0.01
MATMUL = {"contract": ((1,), (0,)), "batch": ((), ())}
BATCHED = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}


class Case(NamedTuple):
    """An op on arrays, and what NumPy and jax call it."""

    label: str
    op: str
    attrs: dict[str, Any]
    arrays: tuple[Any, ...]
    by_numpy: Callable[..., Any]
    by_jax: Callable[..., Any]


def module_text(step: Step, pointers: int) -> str:
    """A module whose ``@run`` calls the step so many times."""
    places = [
        f"  %a{k} = getelementptr ptr, ptr %block, i64 {k}\n  %p{k} = load ptr, ptr %a{k}" for k in range(pointers)
    ]
    given = ", ".join(f"ptr %p{k}" for k in range(pointers))
    run = [
        "define void @run(ptr %block, i64 %count) {",
        "entry:",
        *places,
        "  br label %loop",
        "loop:",
        "  %k = phi i64 [ 0, %entry ], [ %next, %loop ]",
        f"  %status = call i32 @step({given})",
        "  %next = add i64 %k, 1",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join([*sorted(step.declarations), *step.definitions.values(), step.text, *run])


class Native:
    """A step on arrays of its own."""

    def __init__(self, case: Case) -> None:
        builder = Builder()
        params = [builder.param(ArrayType(array.dtype, array.shape)) for array in case.arrays]
        (*_, first) = results = builder.emit_operation(REGISTRY[case.op], params, case.attrs).results
        assert first.producer is not None
        step = step_for(first.producer, "step", TARGET)
        assert step is not None, case.label
        self.results = [np.empty(value.type.static_shape, value.type.dtype) for value in results]
        self.kept = (*case.arrays, *self.results, np.empty(step.scratch + 64, np.uint8))
        addresses = [array.ctypes.data for array in self.kept]
        addresses[-1] += -addresses[-1] % 64
        self.block = (ctypes.c_void_p * len(addresses))(*addresses)
        for name, address in step.symbols.items():
            llvm.add_symbol(name, address)
        self.library = Library(module_text(step, len(addresses)))
        self.address = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self.library.address("run"))

    def __call__(self, count: int = 1) -> None:
        self.address(ctypes.addressof(self.block), count)


def repeated(f: Callable[[], Any], count: int) -> None:
    for _ in range(count):
        f()


def waited(f: Callable[..., Any], *given: Any) -> Any:
    return jax.block_until_ready(f(*given))


def interleaved(subjects: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """Median seconds per call; the subjects, which take a number of calls, take turns."""
    counts = {}
    for name, subject in subjects.items():
        subject(1)
        count, spent = 1, 0.0
        while spent < SECONDS / 4:
            count *= 2
            start = time.perf_counter()
            subject(count)
            spent = time.perf_counter() - start
        counts[name] = max(1, int(count * SECONDS / spent))
    found: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            start = time.perf_counter()
            subject(counts[name])
            found[name].append((time.perf_counter() - start) / counts[name])
    return {name: median(times) for name, times in found.items()}


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    values = np.random.default_rng(len(shape)).normal(size=shape)
    return (values + 0.5j * values[..., ::-1] if np.dtype(dtype).kind == "c" else values).astype(dtype)


def products() -> Iterator[Case]:
    for dtype in (np.float64, np.float32, np.complex128):
        name = np.dtype(dtype).name
        for n in (4, 5, 8, 13, 16):
            arrays = (normal(1000, n, n, dtype=dtype), normal(1000, n, n, dtype=dtype))
            yield Case(f"matmul {name} 1000 x {n}", "dot_general", BATCHED, arrays, np.matmul, jnp.matmul)
    for n in (4, 8, 16, 32, 64, 128, 512):
        arrays = (normal(n, n), normal(n, n))
        yield Case(f"matmul {n}", "dot_general", MATMUL, arrays, np.matmul, jnp.matmul)
    for n in (4, 8, 16):
        attrs = {"contract": ((2,), (2,)), "batch": ((0,), (0,))}
        arrays = (normal(1000, n, n), normal(1000, n, n))
        yield Case(f"matmul b.T 1000 x {n}", "dot_general", attrs, arrays, lambda a, b: a @ b.mT, lambda a, b: a @ b.mT)
    for n in (4, 16, 64, 512):
        arrays = (normal(n, n), normal(n))
        yield Case(f"matvec {n}", "dot_general", MATMUL, arrays, np.matmul, jnp.matmul)
        yield Case(
            f"vecmat {n}", "dot_general", {**MATMUL, "contract": ((0,), (0,))}, arrays[::-1], np.matmul, jnp.matmul
        )
    for n in (16, 1000, 100_000):
        arrays = (normal(n), normal(n))
        yield Case(f"dot {n}", "dot_general", {**MATMUL, "contract": ((0,), (0,))}, arrays, np.matmul, jnp.matmul)
    attrs = {"contract": ((0,), (0,)), "batch": ((), ())}
    yield Case(
        "x.T y, 1000 x 8", "dot_general", attrs, (normal(1000, 8),) * 2, lambda a, b: a.T @ b, lambda a, b: a.T @ b
    )
    yield Case(
        "points x rotation, 1000 x 3", "dot_general", MATMUL, (normal(1000, 3), normal(3, 3)), np.matmul, jnp.matmul
    )
    arrays = (np.arange(10000, dtype=np.int64).reshape(100, 100),) * 2
    yield Case("matmul int64 100", "dot_general", MATMUL, arrays, np.matmul, jnp.matmul)


def definite(*shape: int) -> Any:
    a = normal(*shape)
    return a @ a.mT + shape[-1] * np.eye(shape[-1])


def regular(*shape: int) -> Any:
    return normal(*shape) + shape[-1] ** 0.5 * np.eye(shape[-1])


def systems() -> Iterator[Case]:
    for shape in ((1000, 3, 3), (1000, 8, 8), (64, 64), (500, 500)):
        label = " x ".join(map(str, shape[:-1]))
        a, b = regular(*shape), normal(*shape[:-1], 1)
        yield Case(f"cholesky {label}", "cholesky", {}, (definite(*shape),), np.linalg.cholesky, jnp.linalg.cholesky)
        yield Case(f"solve {label}", "solve", {}, (a, b), np.linalg.solve, jnp.linalg.solve)
        yield Case(f"inv {label}", "inv", {"strict": True}, (a,), np.linalg.inv, jnp.linalg.inv)
        yield Case(f"det {label}", "slogdet", {}, (a,), np.linalg.slogdet, jnp.linalg.slogdet)
        yield Case(f"qr {label}", "qr", {"mode": "reduced"}, (a,), np.linalg.qr, jnp.linalg.qr)
        yield Case(f"eigh {label}", "eigvalsh", {}, (definite(*shape),), np.linalg.eigvalsh, jnp.linalg.eigvalsh)
    attrs = {"lower": True, "trans": "N", "unit": False}
    for n, count in ((64, 1), (64, 64), (500, 1), (500, 500)):
        arrays = (definite(n, n), normal(n, count))
        yield Case(
            f"triangle {n}, {count}", "triangular_solve", attrs, arrays,
            lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False),
            lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        )  # fmt: skip


def show(cases: Iterator[Case]) -> None:
    print(f"{'microseconds':>28} {'step':>10} {'numpy':>10} {'jax.jit':>10} {'numpy/':>8} {'jax/':>8}")
    for case in cases:
        step = Native(case)
        step()
        wanted = case.by_numpy(*case.arrays)
        for actual, array in zip(step.results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(actual, array, rtol=1e-3, atol=1e-3 if array.dtype.itemsize < 8 else 1e-9)
        given = tuple(map(jnp.asarray, case.arrays))
        found = interleaved(
            {
                "step": step,
                "numpy": partial(repeated, partial(case.by_numpy, *case.arrays)),
                "jax": partial(repeated, partial(waited, jax.jit(case.by_jax), *given)),
            }
        )
        shown = " ".join(f"{1e6 * seconds:10.3f}" for seconds in found.values())
        ratios = [found[rival] / found["step"] for rival in ("numpy", "jax")]
        print(f"{case.label:>28} {shown} {ratios[0]:8.1f} {ratios[1]:8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the labels to show")
    options = parser.parse_args()
    show(case for case in (*products(), *systems()) if options.only in case.label)


if __name__ == "__main__":
    main()
