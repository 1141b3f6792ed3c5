"""Calls where others were left halfway: forks, signal handlers and finalizers come between any two statements."""

from __future__ import annotations

import importlib
import inspect
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import PROGRAMS
from srcgrad.paths import Paths
from srcgrad.tracing.conversion.convert import convert_code
from srcgrad.ways import Failed

ROOT = Path(__file__).resolve().parents[2]
LOCKS = (
    "srcgrad.cache:CODES.lock",
    "srcgrad.cache:PROGRAMS.lock",
    "srcgrad.paths:LOCK",
    "srcgrad.tracing.hosts:OBJECTS.lock",
    "srcgrad.torch.operation:LOCK",
    "srcgrad.backends.llvm.native:IN_LLVM",
    "srcgrad.backends.llvm.native:ASIDE_IN_LLVM",
    "srcgrad.backends.llvm.native:_CALLS",
    "srcgrad.backends.llvm.workers:_LOCK",
    "srcgrad.backends.llvm.front:_LOCK",
)
CALLS = """
import faulthandler, importlib, operator, os, signal, sys, threading
import numpy as np
import srcgrad as sg

def whole(x):
    return np.sum(np.tanh(x) * x)

def paths(x):
    terms = [x * x]
    if np.sum(x) < 0.0:
        terms.append(x)
    return np.sum(np.stack(terms))

def draws(x, generator):
    return np.sum(x * generator.standard_normal(x.shape))

def calls():
    slope = sg.grad(whole)
    for _ in range(6):
        assert np.allclose(slope(np.ones(4)), np.tanh(1.0) + 1.0 / np.cosh(1.0) ** 2)
        assert np.allclose(sg.grad(paths)(np.ones(4)), 2.0)
        assert np.allclose(sg.grad(paths)(-np.ones(4)), -1.0)
        assert sg.value_and_grad(draws)(np.ones(4), np.random.default_rng(0))[1].shape == (4,)
    assert sg.jit(lambda x: np.exp(x) * 2.0)(np.zeros(300_000))[0] == 2.0
    import srcgrad.torch as torch
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.sum(x * x).backward()
    assert x.grad.tolist() == [2.0, 4.0]

def lock(place):
    module, name = place.split(":")
    return operator.attrgetter(name)(importlib.import_module(module))
"""


def python(program: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", CALLS + textwrap.dedent(program), *LOCKS]
    environment = {**os.environ, "SRCGRAD_NUM_THREADS": "2"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_has_a_lock() -> None:
    program = """
    for place in sys.argv[1:]:
        held, taken, done = lock(place), threading.Event(), threading.Event()

        def hold():
            with held:
                taken.set()
                done.wait(0.2)

        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait()
        child = os.fork()
        if not child:
            signal.alarm(60)
            calls()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert not status, (place, status)
        done.set()
        thread.join()
    calls()
    print("fine")
    """
    assert python(program) == "fine"


def test_a_signal_handler_while_its_thread_has_all_locks() -> None:
    program = """
    faulthandler.dump_traceback_later(120, exit=True)
    for place in sys.argv[1:]:
        lock(place).__enter__()
    calls()
    print("fine")
    """
    assert python(program) == "fine"


class Late(ValueError):
    """What a handler of a signal raises: of a class that srcgrad's own code catches."""


def branching(x: Any) -> Any:
    if np.sum(x) > 0.0:
        return np.sum(x * x)
    return np.sum(x)


def guarded(x: Any) -> Any:
    try:
        found = np.sum(x * x)
    except ZeroDivisionError:
        found = np.sum(x)
    return found


def counted(x: Any) -> Any:
    return np.sum(np.sort(x[x > 0.0]) ** 2)


def by_method(signal_number: int, frame: Any) -> None:
    raise Late("too slow")


class Handler:
    def __call__(self, *given: Any) -> None:
        self.fail()

    def fail(self) -> None:
        raise Late("too slow")


PLACES: dict[str, tuple[Any, str]] = {
    "the trace": (branching, "srcgrad.building:trace_function"),
    "the source": (branching, "srcgrad.tracing.conversion.convert:find_source"),
    "a block": (branching, "srcgrad.tracing.conversion.branches:join_blocks"),
    "a try": (guarded, "srcgrad.tracing.ufuncs:apply_loop"),
    "compilation": (branching, "srcgrad.building:compiled"),
    "a path": (counted, "srcgrad.paths:guard_function"),
    "a path's compilation": (counted, "srcgrad.paths:compiled"),
}


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there is no signal for users")
@pytest.mark.parametrize(
    "handler", [by_method, Handler(), lambda *given: by_method(*given)], ids=["def", "call", "lambda"]
)
@pytest.mark.parametrize("place", PLACES)
def test_what_the_handler_of_a_signal_raises_goes_on_and_is_not_remembered(
    place: str, handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, where = PLACES[place]
    module, name = where.split(":")
    real = getattr(importlib.import_module(module), name)

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(where.replace(":", "."), real)
        signal.raise_signal(signal.SIGUSR1)
        return real(*args, **kwargs)

    sg.clear_caches()
    slope = sg.grad(function)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(where.replace(":", "."), interrupted)
        with pytest.raises(Late, match="too slow"):
            slope(np.ones(2))
    finally:
        signal.signal(signal.SIGUSR1, before)
    kept = list(PROGRAMS.entries.values())
    assert not verdicts_on("Late")
    assert not any(isinstance(verdict, Paths) and verdict.errors for verdict in kept)
    assert np.array_equal(slope(np.ones(2)), [2.0, 2.0])
    assert "program" in explained(slope, np.ones(2))


@pytest.mark.parametrize("error", [MemoryError, TimeoutError])
def test_memory_and_time_that_run_out_are_no_verdict(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error("once")

    sg.clear_caches()
    slope = sg.grad(branching)
    with monkeypatch.context() as patch:
        patch.setattr("srcgrad.tracing.conversion.branches.join_blocks", fail)
        with pytest.raises(error, match="once"):
            slope(np.ones(2))
    assert not verdicts_on(error.__name__)
    assert "program" in explained(slope, np.ones(2))


def verdicts_on(name: str) -> list[Failed]:
    """What is remembered of functions that raised an error of this name."""
    kept = PROGRAMS.entries.values()
    return [verdict for verdict in kept if isinstance(verdict, Failed) and verdict.reason.startswith(f"{name}:")]


def deep(frames: int, call: Any) -> Any:
    return call() if frames == 0 else deep(frames - 1, call)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_first_call_near_the_end_of_the_stack_is_not_remembered() -> None:
    sg.clear_caches()
    used = len(inspect.stack(0))
    for free in range(20, 300, 20):
        slope = sg.grad(branching)
        with suppress(RecursionError):
            deep(sys.getrecursionlimit() - used - free, lambda slope=slope: slope(np.ones(2)))
        assert "One program" in explained(slope, np.ones(2))
    assert not verdicts_on("RecursionError")
    assert np.array_equal(slope(-np.ones(2)), [1.0, 1.0])


def explained(slope: Any, *args: Any) -> str:
    how: str = sg.explain(slope)(*args)["how it runs"].splitlines()[0]
    return how


def test_a_conversion_near_the_end_of_the_stack_is_not_remembered() -> None:
    sg.clear_caches()
    code, used = branching.__code__, len(inspect.stack(0))
    for free in range(10, 100, 5):
        with suppress(RecursionError):
            deep(sys.getrecursionlimit() - used - free, lambda: convert_code(code, code.co_filename))
    assert not isinstance(convert_code(code, code.co_filename), str)
