"""Speed of srcgrad beside its peers: one process, interleaved rounds, medians.

``python benchmarks/run.py [--only ROW ...] [--rounds N] [--json FILE]``; a ROW may be a pattern such as ``'fused-*'``

Each row times the same work by every peer that is installed. Rounds are interleaved (each round runs every peer once,
in an order that moves on by one), so that what else the machine does falls on all alike; the median over the rounds is
printed, and its ratio to srcgrad's (above 1: slower than srcgrad). A dash is a peer that is not installed or has no
such row; a row that fails prints its error and the others go on. All run on one thread, in float64 unless their names
say more. Without ``--only`` all run but the many of matrices and linear algebra: ``matrix-*``, ``algebra-*`` and
``gradients-*``.

Peers: NumPy with the gradient written by hand, HIPS autograd, JAX (jit, x64), PyTorch.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import (  # and sets one thread, before NumPy is imported
    PEERS,
    ROOT,
    Call,
    Row,
    guarded,
    header,
    installed,
    measured,
    module,
    seconds,
    show,
)

# isort: split
import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import algebra, calls, compiling, fused, gradients, in_place, loops, masks, matrices, threads

Array = NDArray[np.float64]

SIZES = (10, 1_000, 100_000)


def wave(x: Array) -> Array:
    return np.sum(np.sin(x) * np.exp(-(x**2)))


def wave_gradient_by_hand(x: Array) -> Array:
    return np.exp(-(x * x)) * (np.cos(x) - 2 * x * np.sin(x))


def fresh_gradient(peer: str) -> Callable[[Array], Any] | None:
    """The gradient of a new copy of `wave` by one peer, not compiled yet; None where the peer is missing."""
    if peer == "numpy":
        return wave_gradient_by_hand
    if peer == "srcgrad":
        return srcgrad_gradient()
    makers: dict[str, Callable[[], Callable[[Array], Any] | None]] = {
        "autograd": autograd_gradient,
        "jax": jax_gradient,
        "torch": torch_gradient,
    }
    return makers[peer]()


_serial = itertools.count()


def srcgrad_gradient(body: str = "return np.sum(np.sin(x) * np.exp(-x**2))") -> Callable[[Array], Any]:
    import srcgrad

    # A name of its own makes the code object unequal to all before it: no cache can hold its program.
    name = f"function_{next(_serial)}"
    namespace: dict[str, Any] = {"np": np}
    exec(f"def {name}(x):\n    {body}\n", namespace)
    gradient: Callable[[Array], Any] = srcgrad.grad(namespace[name])
    return gradient


def autograd_gradient() -> Callable[[Array], Any] | None:
    autograd = module("autograd")
    if autograd is None:
        return None
    anp = importlib.import_module("autograd.numpy")
    gradient: Callable[[Array], Any] = autograd.grad(lambda x: anp.sum(anp.sin(x) * anp.exp(-(x**2))))
    return gradient


def jax_gradient() -> Callable[[Array], Any] | None:
    jax = module("jax")
    if jax is None:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp = importlib.import_module("jax.numpy")
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) * jnp.exp(-(x**2)))))
    return lambda x: gradient(x).block_until_ready()


def torch_gradient() -> Callable[[Array], Any] | None:
    torch = module("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)

    def gradient(x: Array) -> Any:
        leaf = torch.from_numpy(x).requires_grad_()
        torch.sum(torch.sin(leaf) * torch.exp(-(leaf**2))).backward()
        return leaf.grad

    return gradient


def bound(gradient: Callable[[Array], Any], x: Array) -> Call:
    return lambda: gradient(x)


def gradient_row(size: int, rounds: int) -> Row:
    """Microseconds per call of a compiled gradient, whose value is checked first."""
    row = Row(f"gradient n={size}", "us")
    x = np.linspace(-2, 2, size)
    right = wave_gradient_by_hand(x)

    def prepare(peer: str) -> Call | None:
        gradient = fresh_gradient(peer)
        if gradient is None:
            return None
        np.testing.assert_allclose(np.asarray(gradient(x)), right, rtol=1e-9, atol=1e-12)
        return bound(gradient, x)

    prepared = {peer: guarded(row, peer, lambda peer=peer: prepare(peer)) for peer in PEERS}
    return measured(row, {peer: call for peer, call in prepared.items() if call is not None}, rounds, 1e6)


def first_call_row(rounds: int) -> Row:
    """Milliseconds of the first call of a gradient never seen before: tracing and compiling."""
    row = Row("first call", "ms")
    x = np.linspace(-2, 2, 10)

    def first_call(peer: str) -> float | None:
        gradient = fresh_gradient(peer)
        return None if gradient is None else seconds(bound(gradient, x))

    # The very first one also imports and warms up what all later ones share.
    present = [
        peer for peer in PEERS if peer != "numpy" and guarded(row, peer, lambda peer=peer: first_call(peer)) is not None
    ]
    samples: dict[str, list[float]] = {peer: [] for peer in present}
    for _ in range(rounds):
        for peer in present:
            taken = guarded(row, peer, lambda peer=peer: first_call(peer))
            if taken is not None:
                samples[peer].append(taken * 1e3)
    row.times = {peer: statistics.median(values) for peer, values in samples.items() if values}
    return row


def import_row(rounds: int) -> Row:
    """Milliseconds of `import` in a new interpreter, beyond an interpreter that imports nothing."""
    row = Row("import", "ms")

    def import_time(statement: str) -> float:
        command = [sys.executable, "-c", statement]
        return seconds(lambda: subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.PIPE))

    statements = {
        "nothing": "pass",
        "srcgrad, loaded": "import srcgrad; srcgrad.grad",  # names load when they are first used
        **{peer: f"import {peer}" for peer in PEERS if peer == "srcgrad" or installed(peer)},
    }
    samples: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(rounds):
        for name in list(samples):
            taken = guarded(row, name, lambda name=name: import_time(statements[name]))
            if taken is None:
                del samples[name]
            else:
                samples[name].append(taken * 1e3)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    row.times = {name: value - medians["nothing"] for name, value in medians.items() if name != "nothing"}
    if {"srcgrad", "numpy"} <= row.times.keys():
        loaded = row.times.pop("srcgrad, loaded")
        row.notes.append(f"with everything that a first gradient needs: {loaded:.0f} ms")
        row.notes.append(f"that is beyond numpy: {loaded - row.times['numpy']:.0f} ms")
    return row


def chain_seconds(operations: int) -> float:
    """Tracing, differentiating and compiling a straight chain: the first call of its gradient."""
    body = f"for _ in range({operations // 2}): x = np.sin(x) * 0.5\n    return np.sum(x)"
    return seconds(bound(srcgrad_gradient(body), np.full(3, 0.5)))


def chain_row(rounds: int) -> Row:
    """Seconds for chains of 1e4 and 1e5 operations, and their ratio: 10 is linear."""
    row = Row("chain 1e5 operations", "s")

    def measure() -> None:
        chain_seconds(1_000)  # imports and one-time work
        short, long = [], []
        for _ in range(min(rounds, 3)):
            short.append(chain_seconds(10_000))
            long.append(chain_seconds(100_000))
        row.times["srcgrad"] = statistics.median(long)
        ratio = statistics.median(long) / statistics.median(short)
        row.notes.append(f"1e4 operations: {statistics.median(short):.2f} s; ratio {ratio:.1f}")

    guarded(row, "srcgrad", measure)
    return row


ROWS: dict[str, Callable[[int], Row]] = {
    **{f"gradient-{size}": (lambda rounds, size=size: gradient_row(size, rounds)) for size in SIZES},
    "first-call": first_call_row,
    "import": import_row,
    "chain": chain_row,
    **calls.ROWS,
    **fused.ROWS,
    **compiling.ROWS,
    **loops.ROWS,
    **in_place.ROWS,
    **masks.ROWS,
    **threads.ROWS,
}
DETAILED: dict[str, Callable[[int], Row]] = {**matrices.ROWS, **algebra.ROWS, **gradients.ROWS}
"""What runs only where it is asked for."""


def chosen(patterns: list[str] | None) -> dict[str, Callable[[int], Row]]:
    """The rows that patterns name.

    Raises:
        ValueError: a pattern names none.
    """
    if patterns is None:
        return ROWS
    known = ROWS | DETAILED
    found: dict[str, Callable[[int], Row]] = {}
    for pattern in patterns:
        names = fnmatch.filter(known, pattern)
        if not names:
            raise ValueError(f"no row is named {pattern}: they are {', '.join(known)}")
        found |= {name: known[name] for name in names}
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Speed of srcgrad beside its peers.")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="names or patterns of rows to run")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds per row (default 15)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        wanted = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))

    about = header()
    for name, value in about.items():
        print(f"{name}: {value}")
    print(f"\n{'':<28}" + "".join(f"{peer:>10}{'':9}" for peer in PEERS))
    rows = []
    for name, make in wanted.items():
        try:
            row = make(options.rounds)
        except Exception as error:
            row = Row(name, "-", notes=[f"{type(error).__name__}: {error}"])
        show(row)
        rows.append(row)
    if options.json is not None:
        results = {"about": about, "rows": [vars(row) for row in rows]}
        options.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
