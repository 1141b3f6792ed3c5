"""GradBench's evals by srcgrad on its backends, and by peers: one process, interleaved rounds, medians.

``python benchmarks/gradbench/run.py [--only EVAL ...] [--rounds N] [--large] [--json FILE]``

Milliseconds of one gradient and of one value, after a check against those by hand; in brackets how often srcgrad's time
on llvm goes into it. "first" is the first call, tracing and compiling too, with nothing kept on disk and after other
work of the library. jax is given its own loops in llsq, ode and particle; "by hand" is NumPy, C++ is by_hand.cpp where
there is g++. particle's gradient is one derivative of the outer function with its value, in each nesting; jax's reverse
mode of it has a bound of the number of steps. A dash is a peer that is not installed or not asked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a checkout that is not installed runs itself

from benchmarks.measure import (
    Call,
    header,
    interleaved,
    module,
    repeats_for,
)  # and sets one thread, before NumPy is imported

# isort: split
import numpy as np

import srcgrad as sg
from benchmarks.gradbench import by_hand, evals, native, peers

COLUMNS = ("llvm", "numpy", "xla", "C++", "by hand", "autograd", "jax")
BACKENDS = ("llvm", "numpy", "xla")
EVALS = ("hello", "lse", "llsq", "gmm", "ode", "particle")
Function = Callable[..., Any]


class Row:
    """The times of one gradient or value, in milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.times: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.notes: list[str] = []


def on_backends(transform: Callable[[str], Function]) -> dict[str, Function]:
    """srcgrad's, by backend."""
    found = {}
    for backend in BACKENDS:
        try:
            found[backend] = transform(backend)
        except sg.errors.BackendError as error:
            warnings.warn(f"no srcgrad on {backend}: {error}", stacklevel=2)
    return found


def gradients(name: str) -> dict[str, Function]:
    """The gradient of one eval by everyone who is there."""
    f, argnums = getattr(evals, name), (0, 1, 2, 3) if name == "gmm" else 0
    found = {"by hand": getattr(by_hand, "double" if name == "square" else name)}
    found |= on_backends(lambda backend: sg.grad(f, argnums=argnums, backend=backend))
    others = {"autograd": peers.autograd_gradients(), "jax": peers.jax_gradients(), "C++": native.gradients()}
    return found | {peer: table[name] for peer, table in others.items() if table is not None and name in table}


def values(name: str) -> dict[str, Function]:
    f, theirs = getattr(evals, name), peers.jax_values()
    found = {"by hand": f} | on_backends(lambda backend: sg.jit(f, backend=backend))
    return found if theirs is None else found | {"jax": theirs[name]}


def leaves(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def measured(name: str, subjects: dict[str, Function], given: tuple[Any, ...], rounds: int) -> Row:
    """The times of the subjects whose results are those by hand."""
    row, calls = Row(name), dict[str, Call]()
    right = leaves(subjects["by hand"](*given))
    sg.clear_caches()
    if "jax" in subjects:
        module("jax").clear_caches()
    for peer, subject in subjects.items():
        try:
            start = time.perf_counter()
            found = subject(*given)
            row.first[peer] = (time.perf_counter() - start) * 1e3
            for one, other in zip(leaves(found), right, strict=True):
                np.testing.assert_allclose(np.asarray(one), other, rtol=1e-8, atol=1e-10)
            calls[peer] = partial(subject, *given)
        except Exception as error:
            row.notes.append(f"{peer}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
    repeats = {peer: repeats_for(call) for peer, call in calls.items()}
    row.times = {peer: value * 1e3 for peer, value in interleaved(calls, rounds, repeats).items()}
    return row


def both(label: str, name: str, given: tuple[Any, ...], rounds: int, skip: tuple[str, ...] = ()) -> Iterator[Row]:
    """The rows of an eval's gradient and of its value."""
    found = {peer: gradient for peer, gradient in gradients(name).items() if peer not in skip}
    yield measured(label, found, given, rounds)
    yield measured(f"{label} value", values(name), given, rounds)


def mixture(d: int, k: int) -> tuple[Any, ...]:
    given = evals.generate_gmm(d, k, 1000)
    return (*(given[name] for name in ("alpha", "mu", "q", "l", "x")), 1.0, 0)


def particle_value(inner: str) -> dict[str, Function]:
    derivative = sg.grad if inner == "r" else sg.jacfwd

    def objective(w: Any) -> Any:
        return evals.distance_of_hit(w, derivative)

    found: dict[str, Function] = {"by hand": lambda w: by_hand.distance_of_hit(w)[0]}
    found |= on_backends(lambda backend: sg.jit(objective, backend=backend))
    theirs = peers.jax_particle_value(inner)
    return found if theirs is None else found | {"jax": theirs}


def particle_slope(outer: str, inner: str) -> dict[str, Function]:
    derivative = sg.grad if inner == "r" else sg.jacfwd

    def objective(w: Any) -> Any:
        return evals.distance_of_hit(w, derivative)

    def forward(w: Any) -> Any:
        return sg.jvp(objective, (w,), (1.0,))

    def ours(backend: str) -> Function:
        return sg.value_and_grad(objective, backend=backend) if outer == "r" else sg.jit(forward, backend=backend)

    found = {"by hand": by_hand.distance_of_hit} | on_backends(ours)
    theirs = peers.jax_particle_slope(outer, inner)
    return found if theirs is None else found | {"jax": theirs}


def warm_up() -> None:
    """The imports and the one-time work of all who are there: their first calls shall be those of the function."""

    def other(x: Any) -> Any:
        return np.sum(np.cos(x) * x)

    for backend in BACKENDS:
        with contextlib.suppress(sg.errors.BackendError):
            sg.grad(other, backend=backend)(np.ones(7))
    for table in (peers.autograd_gradients(), peers.jax_gradients(), native.gradients()):
        if table is not None:
            table["lse"](np.ones(7))


def uniform(n: int) -> Any:
    return np.random.default_rng(31337).uniform(size=n)


def rows(only: list[str] | None, rounds: int, large: bool) -> Iterator[Row]:
    """The rows of the table, measured as they are asked for."""
    chosen = set(only or EVALS)
    if "hello" in chosen:
        yield from both("hello", "square", (3.0,), rounds)
    for n in (2_500, 160_000, 1_280_000) if "lse" in chosen else ():
        yield from both(f"lse {n}", "lse", (uniform(n),), rounds)
    for n in (64, 1_024, *((16_392,) if large else ())) if "llsq" in chosen else ():
        yield from both(f"llsq {n}", "llsq", (uniform(128), evals.points(n)), rounds)
    for d, k in ((2, 5), (10, 25), *(((32, 50),) if large else ())) if "gmm" in chosen else ():
        yield from both(f"gmm {d},{k}", "gmm", mixture(d, k), rounds)
    for n, steps in ((8, 20), (1_000, 100), *(((10_000, 100),) if large else ())) if "ode" in chosen else ():
        skip = ("autograd",) if n > 1_000 else ()
        yield from both(f"ode {n},{steps}", "ode_last", (uniform(n), steps), rounds, skip)
    if "particle" in chosen:
        for outer, inner in ("ff", "fr", "rf", "rr"):
            yield measured(f"particle {outer}{inner}", particle_slope(outer, inner), (0.1,), rounds)
        for inner in "fr":
            yield measured(f"particle {inner} value", particle_value(inner), (0.1,), rounds)


def show(row: Row) -> None:
    base, cells = row.times.get("llvm"), []
    for peer in COLUMNS:
        value = row.times.get(peer)
        ratio = f"({value / base:.2f}x)" if value and base and peer != "llvm" else ""
        cells.append(f"{value:>10.4g} {ratio:>8}" if value is not None else f"{'-':>19}")
    print(f"{row.name:<18}" + "".join(cells), flush=True)
    if row.first:
        firsts = ", ".join(
            f"{peer} {row.first[peer]:.0f}" for peer in COLUMNS if peer in row.first and peer not in ("by hand", "C++")
        )
        print(f"    first: {firsts}", flush=True)
    for note in row.notes:
        print(f"    {note}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="GradBench's evals by srcgrad and its peers.")
    parser.add_argument("--only", nargs="+", choices=EVALS, help="the evals to run")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds per row (default 7)")
    parser.add_argument("--large", action="store_true", help="also the sizes that take minutes")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", sg.RetraceWarning)
    about = header()
    for name, value in about.items():
        print(f"{name}: {value}")
    print(f"\n{'gradient [ms]':<18}" + "".join(f"{peer:>10}{'':9}" for peer in COLUMNS))
    done = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SRCGRAD_CACHE_DIR"] = folder
        warm_up()
        for row in rows(options.only, options.rounds, options.large):
            show(row)
            done.append(row)
    if options.json is not None:
        options.json.write_text(json.dumps({"about": about, "rows": [vars(row) for row in done]}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
