"""From a transformed Function to something that runs: the passes, then a backend."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from os import environ
from typing import Any

from srcgrad.backends.base import backend as find_backend
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.boundary import checked
from srcgrad.ir.core import Function
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.pipeline import optimise, prepare
from srcgrad.tracing.function import inline_function
from srcgrad.tracing.tracer import Tracer, as_tracer

Runner = Callable[[Sequence[Any]], Sequence[Any]]
"""Runs a Function on the list of its arguments."""

BACKEND: ContextVar[str | None] = ContextVar("srcgrad_backend", default=None)
DEFAULT: list[str] = [environ.get("SRCGRAD_BACKEND") or "numpy"]
"""The backend where nothing else is said; the environment is read once, at import."""


@checked
def set_backend(name: str) -> None:
    """Choose the backend of every later call that names none, in all threads.

    Args:
        name: ``"numpy"``; ``"llvm"`` and ``"xla"`` are not in this version.

    Raises:
        UnknownBackendError: there is no backend of this name.
        BackendError: it needs an extra that is not installed; the message says which.

    >>> import srcgrad as sg
    >>> sg.set_backend("numpy")
    """
    find_backend(name)
    DEFAULT[:] = [name]


@checked
def use_backend(name: str) -> AbstractContextManager[None]:
    """Choose the backend inside a ``with`` block, in this thread or task.

    Raises:
        UnknownBackendError, BackendError: as `set_backend`.

    >>> import numpy as np, srcgrad as sg
    >>> with sg.use_backend("numpy"):
    ...     sg.grad(np.tanh)(0.0)
    np.float64(1.0)
    """
    find_backend(name)
    return chosen_backend(name)


@contextmanager
def chosen_backend(name: str) -> Iterator[None]:
    token = BACKEND.set(name)
    try:
        yield
    finally:
        BACKEND.reset(token)


def backend_name(asked: str | None) -> str:
    """The backend of a call: what it asks for, the innermost ``use_backend``, ``set_backend``, the environment."""
    return asked or BACKEND.get() or DEFAULT[0]


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause the cyclic collector: a program under construction is many long-lived objects, scanned for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compiled(function: Function, backend: str) -> Runner:
    """A Function through the optimising passes and a backend."""
    executable = find_backend(backend).compile(optimised(function))
    run = executable.run

    def runner(arguments: Sequence[Any]) -> Sequence[Any]:
        return run(*arguments)

    runner.__dict__["executable"] = executable  # which keeps the program's text, read where it fails
    return runner


def optimised(function: Function) -> Function:
    return optimise(function, evaluate_operation)


def prepared(function: Function) -> Function:
    """What differentiation is given: the traced function after the rewrites that must come first."""
    return prepare(function)


def interpreted(function: Function) -> Runner:
    """A Function that runs once, operation by operation."""
    live = dce(function)
    return lambda arguments: evaluate(live, arguments)


def inlined(function: Function) -> Runner:
    """A Function that becomes part of the trace in progress when it runs."""

    def run(arguments: Sequence[Any]) -> Sequence[Tracer]:
        return inline_function(function, [as_tracer(argument).read() for argument in arguments])

    return run
