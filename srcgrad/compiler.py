"""From a transformed Function to something that runs: the passes, then a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from os import environ
from sys import intern
from typing import Any

import numpy as np

from srcgrad.backends.base import backend as find_backend
from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.boundary import checked
from srcgrad.ir.core import Function
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.expand import expand
from srcgrad.ir.passes.kinks import has_slopes, smoothed
from srcgrad.ir.passes.pipeline import optimise, prepare
from srcgrad.ir.passes.products import combined_products, turned_products
from srcgrad.tracing.function import inline_function
from srcgrad.tracing.jax_arrays import JAX_TYPES, double_precision, lies_elsewhere, to_jax_array, to_numpy
from srcgrad.tracing.trace import marked
from srcgrad.tracing.tracer import Tracer, as_tracer

Runner = Callable[[Sequence[Any]], Sequence[Any]]
"""Runs a Function on the list of its arguments."""

ARRAYS = (np.ndarray, np.generic)
"""What programs give; the others are tapes, as they lie in memory."""
BACKEND: ContextVar[str | None] = ContextVar("srcgrad_backend", default=None)
DEFAULT: list[str] = [intern(environ.get("SRCGRAD_BACKEND") or "llvm")]
"""The backend where nothing else is said; the environment is read once, at import."""


@checked
def set_backend(name: str) -> None:
    """Choose the backend of every later call that names none, in all threads.

    Args:
        name: ``"numpy"``, ``"llvm"`` or ``"xla"``.

    Raises:
        UnknownBackendError: there is no backend of this name.
        BackendError: it needs an extra that is not installed; the message says which.

    >>> import srcgrad as sg
    >>> sg.set_backend("numpy")
    """
    find_backend(name)
    DEFAULT[:] = [intern(name)]


@checked
def use_backend(name: str) -> AbstractContextManager[None]:
    """Choose the backend inside a ``with`` block, in this thread or task.

    Args:
        name: as in `set_backend`; a transform that names a backend keeps it.

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
    with marked():
        token = BACKEND.set(name)
        try:
            yield
        finally:
            BACKEND.reset(token)


def backend_name(asked: str | None) -> str:
    """The backend of a call: what it asks for, the innermost ``use_backend``, ``set_backend``, the environment."""
    return asked or BACKEND.get() or DEFAULT[0]


def weight_of(name: str) -> int:
    """How many of the programs that are kept one of this backend counts for."""
    return find_backend(name).weight


def compiled(
    function: Function,
    backend: str,
    donate: tuple[int, ...] = (),
    given: Sequence[Any] = (),
    sites: Sequence[Any] = (),
) -> Runner:
    """A Function through the optimising passes and a backend.

    Given a jax array the runner returns jax arrays; without a host copy if the backend keeps arrays on the device.
    ``donate``: the parameters whose jax arrays the program may overwrite, where the backend can. ``given``: what the
    call was given, some of which may lie on devices of its own. ``sites``: what its ``host_call`` operations call.
    """
    program = optimised(function)
    if backend == "xla":  # which would make the product, then move it, and make two where one does
        program = combined_products(turned_products(program))
        if lies_elsewhere(given):
            return placed_runner(program, sites)
    options: dict[str, Any] = {"donate": donate} if donate and backend == "xla" else {}
    executable = find_backend(backend).compile(program, sites, **options)
    run_device: Callable[..., Any] | None = getattr(executable, "run_device", None)
    found = host_runner(executable.run) if run_device is None else device_runner(executable.run, run_device)
    found.__dict__["executable"] = executable  # which keeps the program's text, read where it fails
    return found


def placed_runner(function: Function, sites: Sequence[Any]) -> Runner:
    """A program for xla that runs where its arguments lie, which jax finds out at each call."""
    import jax

    from srcgrad.backends.xla.lowering import lower
    from srcgrad.backends.xla.program import grown, raise_first

    lowered = lower(function, sites, checks=True)
    calls = [jax.jit(lowered)]

    def run(*arguments: Any) -> Sequence[Any]:
        with lowered.recorded() as begin:
            while True:
                with double_precision():
                    results = calls[-1](*begin(), *arguments)
                if not (lowered.effects or lowered.demands):
                    return tuple(results)
                *results, status = results
                numbers = np.asarray(status)
                if not grown(numbers, lowered.demands, lowered.capacities):
                    break
                calls[:] = [jax.jit(lambda *given: lowered(*given))]  # traced again, with more room for tapes
        raise_first(numbers, lowered.effects, lowered.exceptions)
        return tuple(results)

    return device_runner(lambda *arguments: [np.array(result)[()] for result in run(*arguments)], run)


def host_runner(run: Callable[..., Any]) -> Runner:
    """What runs a program that takes NumPy arrays only. Its results are C-ordered, as a trace takes them to be."""

    def runner(arguments: Sequence[Any]) -> Sequence[Any]:
        if JAX_TYPES and not JAX_TYPES.isdisjoint(map(type, arguments)):
            found = run(*map(to_numpy, arguments))
            return [to_jax_array(result) if isinstance(result, ARRAYS) else result for result in found]
        results: Sequence[Any] = run(*arguments)
        for result in results:
            if type(result) is np.ndarray and not result.flags.c_contiguous:
                return [c_ordered(result) for result in results]
        return results

    return runner


def c_ordered(result: Any) -> Any:
    """The array, or a copy of it in C order; a NumPy scalar or a tape as it is."""
    return result.copy() if type(result) is np.ndarray and not result.flags.c_contiguous else result


def device_runner(run: Callable[..., Any], run_device: Callable[..., Any]) -> Runner:
    """What runs a program that has an entry for NumPy arrays and one for jax arrays."""

    def runner(arguments: Sequence[Any]) -> Sequence[Any]:
        count = sum([type(argument) in JAX_TYPES for argument in arguments]) if JAX_TYPES else 0
        if not count:
            return run(*arguments)  # type: ignore[no-any-return]
        if count == len(arguments):
            return run_device(*arguments)  # type: ignore[no-any-return]
        with double_precision():  # the copies: jax may read an array after the call, and users may write into it
            return run_device(  # type: ignore[no-any-return]
                *[a if type(a) in JAX_TYPES else np.array(a)[()] for a in arguments]
            )

    runner.__dict__["run_device"] = run_device
    return runner


def optimised(function: Function) -> Function:
    return optimise(function, evaluate_operation)


def prepared(function: Function) -> Function:
    """What differentiation is given: the traced function after the rewrites that must come first."""
    return prepare(function)


def interpreted(function: Function, sites: Sequence[Any] = ()) -> Runner:
    """A Function that runs once, operation by operation."""
    live = runnable(function)
    return host_runner(lambda *arguments: evaluate(live, arguments, sites))


def literally(function: Function, sites: Sequence[Any]) -> Runner:
    """A Function that computes what NumPy would, to the last bit, as the user's own code does."""
    return host_runner(find_backend("numpy").compile(runnable(function), sites).run)


def runnable(function: Function) -> Function:
    """What a backend can run, without any rewrites that are not needed for that."""
    live = dce(function)
    return expand(smoothed(live, None) if has_slopes(live) else live)


def inlined(function: Function) -> Runner:
    """A Function that becomes part of the trace in progress when it runs."""

    def run(arguments: Sequence[Any]) -> Sequence[Tracer]:
        return inline_function(function, [as_tracer(argument).read() for argument in arguments])

    return run
