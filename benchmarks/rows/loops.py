"""A loop whose trips depend on the data, about a million of them: forward, and value with gradient, beside C and jax.

The derivative leaves out that the number of trips changes, as that of the loop as it ran does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Row, compiled_c, measured, module

# isort: split
from pathlib import Path

import numpy as np

import srcgrad as sg

START = (0.1, 0.7, 1e-5, 7.0)
"""The first state, the rate, the length of steps, and the end."""


def adaptive(y: Any, k: Any, c: Any, end: Any) -> Any:
    t = 0.0
    while t < end:
        h = c / (1.0 + y * y)
        y = y + h * (k * y * (1.0 - y))
        t = t + h
    return y


def trips() -> int:
    y, k, c, end = START
    t, count = 0.0, 0
    while t < end:
        h = c / (1.0 + y * y)
        y, t, count = y + h * (k * y * (1.0 - y)), t + h, count + 1
    return count


def in_c() -> dict[str, Callable[[], Any]]:
    """Nothing where there is no gcc."""
    library = compiled_c("gcc", Path(__file__).with_name("adaptive.c"), ("-O3", "-march=native"))
    if library is None:
        return {}
    numbers = [ctypes.c_double] * 4
    library.forward.argtypes, library.forward.restype = numbers, ctypes.c_double
    library.gradient.argtypes, library.gradient.restype = [*numbers, ctypes.c_void_p], ctypes.c_double
    slopes = np.empty(3)

    def gradient() -> Any:
        return library.gradient(*START, slopes.ctypes.data), tuple(slopes)

    return {"forward": partial(library.forward, *START), "gradient": gradient}


def by_jax(count: int) -> dict[str, Callable[[], Any]]:
    """``while_loop`` forward; for the gradient, which jax has of no such loop, a scan of as many trips."""
    jax = module("jax")
    if jax is None:
        return {}
    jax.config.update("jax_enable_x64", True)

    def step(state: Any, k: Any, c: Any) -> Any:
        y, t = state
        h = c / (1.0 + y * y)
        return y + h * (k * y * (1.0 - y)), t + h

    def forward(y: Any, k: Any, c: Any, end: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[1] < end, lambda s: step(s, k, c), (y, 0.0))[0]

    def scanned(y: Any, k: Any, c: Any) -> Any:
        return jax.lax.scan(lambda s, _: (step(s, k, c), None), (y, 0.0), None, length=count)[0][0]

    first, both = jax.jit(forward), jax.jit(jax.value_and_grad(scanned, (0, 1, 2)))
    return {
        "forward": lambda: jax.block_until_ready(first(*START)),
        "gradient": lambda: jax.block_until_ready(both(*START[:3])),
    }


def row(kind: str, rounds: int) -> Row:
    """Milliseconds; the column numpy is C."""
    found = Row(f"data-dependent loop, {kind}", "ms")
    found.bounds = {"numpy": 1 / 1.15} if kind == "forward" else {"jax": 3.0}
    count = trips()
    ours: Any = sg.jit(adaptive, backend="llvm")
    if kind == "gradient":
        ours = sg.value_and_grad(adaptive, (0, 1, 2), backend="llvm")
    calls: dict[str, Any] = {"srcgrad": partial(ours, *START)}
    for peer, table in (("numpy", in_c()), ("jax", by_jax(count))):
        if kind in table:
            calls[peer] = table[kind]
            np.testing.assert_allclose(flat(calls[peer]()), flat(ours(*START)), rtol=1e-6)
    measured(found, calls, min(rounds, 9), 1e3)
    found.notes.append(f"{count} trips; the column numpy is the same in C, gcc -O3 -march=native")
    if kind == "gradient":
        value = measured(Row("", ""), {"srcgrad": partial(sg.jit(adaptive, backend="llvm"), *START)}, 5, 1e3)
        found.notes.append(f"{found.times['srcgrad'] / value.times['srcgrad']:.2f} times the value alone (limit 2.5)")
    return found


def flat(result: Any) -> Any:
    value, slopes = result if isinstance(result, tuple) else (result, ())
    return np.array([float(value), *map(float, slopes)])


ROWS: dict[str, Callable[[int], Row]] = {f"loop-{kind}": partial(row, kind) for kind in ("forward", "gradient")}
