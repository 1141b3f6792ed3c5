"""What a call costs, with the checks of its arguments and of what the function reads: nanoseconds, and limits of them.

Each call stands in a loop of its own, whose cost is included; ``np`` is a global of the functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.measure import Row, interleaved, module, rebound

# isort: split
import numpy as np

import srcgrad as sg

TIMES = 2_000
"""How many calls stand in one loop."""


def of_one(x: Any) -> Any:
    return np.sin(x) * x


def of_three(x: Any, y: Any, z: Any) -> Any:
    return np.sum(np.tanh(x * y + z))


def of_ten(x: Any) -> Any:
    return np.sum(np.tanh(x) ** 2)


def repeated(f: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], None]:
    def one() -> None:
        (x,) = given
        for _ in itertools.repeat(None, TIMES):
            f(x)

    def three() -> None:
        x, y, z = given
        for _ in itertools.repeat(None, TIMES):
            f(x, y, z)

    return one if len(given) == 1 else three


def by_jax(f: Callable[..., Any], positions: Any, given: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same by jax, on what lies on its device."""
    jax = module("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = module("jax.numpy")
    return jax.jit(jax.grad(rebound(f, np=jnp), positions)), tuple(map(jnp.asarray, given))


CASES: dict[str, tuple[str, Callable[..., Any], Any, tuple[Any, ...], float]] = {
    "calls-number": ("gradient, one float in and out", of_one, 0, (1.5,), 100.0),
    "calls-three": ("gradient, three arrays in and out, n=8", of_three, (0, 1, 2), (np.linspace(0, 1, 8),) * 3, 350.0),
    "calls-ten": ("gradient, n=10", of_ten, 0, (np.linspace(0, 1, 10),), 500.0),
}


def row(name: str, rounds: int) -> Row:
    title, f, positions, given, limit = CASES[name]
    found = Row(title, "ns")
    ours = sg.grad(f, positions, backend="llvm")
    calls = {"srcgrad": repeated(ours, given)}
    if module("jax") is not None:
        calls["jax"] = repeated(*by_jax(f, positions, given))
    for call in calls.values():
        call()
    times = interleaved(calls, rounds, dict.fromkeys(calls, 1))
    found.times = {peer: value * 1e9 / TIMES for peer, value in times.items()}
    reached = "reached" if found.times["srcgrad"] <= limit else "missed"
    found.notes.append(f"limit {limit:g} ns: {reached}; a call of math.sin takes {floor(rounds):.0f} ns")
    return found


def floor(rounds: int) -> float:
    """Nanoseconds of a call that does next to nothing."""
    import math

    return interleaved({"": repeated(math.sin, (1.5,))}, rounds, {"": 1})[""] * 1e9 / TIMES


ROWS: dict[str, Callable[[int], Row]] = {name: partial(row, name) for name in CASES}
