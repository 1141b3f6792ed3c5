"""srcgrad as a tool of GradBench: JSON messages on standard input, a reply to each on standard output.

``python benchmarks/gradbench/tool.py [--backend NAME]``, or ``python -m benchmarks.gradbench`` from the root. Messages
are ``start``, ``define``, ``evaluate`` and ``analysis``, a line each; ``end`` ends. What a call needs once (arrays from
the input, tracing, compiling) is a timing of its own, ``prepare``; then the function runs until both ``min_runs`` and
``min_seconds`` of the input are reached, each run a timing ``evaluate``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a checkout that is not installed runs itself

import srcgrad as sg
from benchmarks.gradbench import evals

Input = dict[str, Any]
Run = Callable[[], Any]


class Task(NamedTuple):
    """One function of an eval."""

    prepare: Callable[[Input, str | None], Run]
    """From the input of a message and a backend to what is timed."""
    output: Callable[[Any], Any]
    """From a result to what JSON can hold."""


def array(values: Any) -> Any:
    return np.array(values, dtype=np.float64)


def numbers(result: Any) -> Any:
    return np.asarray(result).tolist()


def unary(f: Callable[..., Any], name: str, *others: Callable[[Input], Any]) -> Callable[[Input, str | None], Run]:
    """A function of an array, and of what ``others`` take from the input."""

    def prepare(given: Input, backend: str | None) -> Run:
        arguments = [array(given[name]), *(other(given) for other in others)]
        program = f(backend)
        return lambda: program(*arguments)

    return prepare


def compiled(f: Callable[..., Any]) -> Callable[[str | None], Any]:
    return lambda backend: sg.jit(f, backend=backend)


def gradient(f: Callable[..., Any], argnums: Any = 0) -> Callable[[str | None], Any]:
    return lambda backend: sg.grad(f, argnums=argnums, backend=backend)


def on_number(transform: Callable[[str | None], Any]) -> Callable[[Input, str | None], Run]:
    def prepare(given: Any, backend: str | None) -> Run:
        program, number = transform(backend), float(given)
        return lambda: program(number)

    return prepare


def mixture(transform: Callable[[str | None], Any]) -> Callable[[Input, str | None], Run]:
    def prepare(given: Input, backend: str | None) -> Run:
        k, d = int(given["k"]), int(given["d"])
        shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2), "x": (int(given["n"]), d)}
        arrays = [array(given[name]).reshape(shape) for name, shape in shapes.items()]
        program, gamma, m = transform(backend), float(given["gamma"]), int(given["m"])
        return lambda: program(*arrays, gamma, m)

    return prepare


def trajectory(outer: str, inner: str) -> Callable[[Input, str | None], Run]:
    """particle with a mode for the descent and one for the force: ``"f"`` forward, ``"r"`` reverse."""
    derivative = sg.grad if inner == "r" else sg.jacfwd

    def objective(w: Any) -> Any:
        return evals.distance_of_hit(w, derivative)

    def with_slope(w: float, backend: str | None) -> tuple[Any, Any]:
        if outer == "r":
            return sg.value_and_grad(objective, backend=backend)(w)  # type: ignore[no-any-return]
        return sg.jvp(objective, (w,), (1.0,), backend=backend)  # type: ignore[no-any-return]

    def prepare(given: Input, backend: str | None) -> Run:
        start = float(given["w"])
        return lambda: evals.argmin(objective, lambda w: with_slope(w, backend), start)

    return prepare


MODULES: dict[str, dict[str, Task]] = {
    "hello": {
        "square": Task(on_number(compiled(evals.square)), float),
        "double": Task(on_number(gradient(evals.square)), float),
    },
    "lse": {
        "primal": Task(unary(compiled(evals.lse), "x"), float),
        "gradient": Task(unary(gradient(evals.lse), "x"), numbers),
    },
    "llsq": {
        "primal": Task(unary(compiled(evals.llsq), "x", lambda given: evals.points(given["n"])), float),
        "gradient": Task(unary(gradient(evals.llsq), "x", lambda given: evals.points(given["n"])), numbers),
    },
    "gmm": {
        "objective": Task(mixture(compiled(evals.gmm)), float),
        "jacobian": Task(
            mixture(gradient(evals.gmm, (0, 1, 2, 3))),
            lambda result: dict(zip(("alpha", "mu", "q", "l"), map(numbers, result), strict=True)),
        ),
    },
    "ode": {
        "primal": Task(unary(compiled(evals.ode), "x", lambda given: int(given["s"])), numbers),
        "gradient": Task(unary(gradient(evals.ode_last), "x", lambda given: int(given["s"])), numbers),
    },
    "particle": {outer + inner: Task(trajectory(outer, inner), float) for outer in "fr" for inner in "fr"},
}


def evaluate(task: Task, given: Any, backend: str | None) -> dict[str, Any]:
    """Prepare, then run until the input's ``min_runs`` and ``min_seconds`` are reached."""
    limits = given if isinstance(given, dict) else {}
    least, duration = int(limits.get("min_runs", 1)), float(limits.get("min_seconds", 0.0))
    start = time.perf_counter_ns()
    run = task.prepare(given, backend)
    if "w" not in limits:  # particle traces at each call: nothing to prepare
        run()
    timings = [{"name": "prepare", "nanoseconds": time.perf_counter_ns() - start}]
    total, runs = 0, 0
    result: Any = None
    while runs < max(least, 1) or total < duration * 1e9:
        start = time.perf_counter_ns()
        result = run()
        taken = time.perf_counter_ns() - start
        timings.append({"name": "evaluate", "nanoseconds": taken})
        total, runs = total + taken, runs + 1
    return {"success": True, "output": task.output(result), "timings": timings}


def reply(message: dict[str, Any], backend: str | None) -> dict[str, Any] | None:
    """The answer to a message; None where there is none."""
    kind, known = message["kind"], MODULES.get(message.get("module", ""), {})
    if kind == "end":
        return None
    found: dict[str, Any] = {"id": message["id"]}
    if kind == "start":
        found["tool"] = "srcgrad"
        found["config"] = {"version": sg.__version__, "backend": backend or "default"}
    elif kind == "define":
        found["success"] = bool(known)
        if not known:
            found["error"] = f"srcgrad has no module {message.get('module')!r}: it has {', '.join(MODULES)}"
    elif kind == "evaluate":
        task = known.get(message.get("function", ""))
        if task is None:
            error = f"srcgrad has no function {message.get('function')!r} of {message.get('module')!r}"
            return found | {"success": False, "error": error}
        try:
            found |= evaluate(task, message["input"], backend)
        except Exception as error:
            found |= {"success": False, "error": "".join(traceback.format_exception(error))}
    return found


def serve(lines: Iterable[str], output: TextIO, backend: str | None) -> None:
    for line in lines:
        if line.strip():
            answer = reply(json.loads(line), backend)
            if answer is None:
                return
            output.write(json.dumps(answer) + "\n")
            output.flush()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="srcgrad as a tool of GradBench: JSON lines in, JSON lines out.")
    parser.add_argument("--backend", help="the backend that runs the programs")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", sg.RetraceWarning)
    serve(sys.stdin, sys.stdout, options.backend)


if __name__ == "__main__":
    main()
