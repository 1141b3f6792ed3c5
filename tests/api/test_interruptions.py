"""Calls where others were left halfway: forks, signal handlers and finalizers come between any two statements."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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
