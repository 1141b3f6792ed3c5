"""Functions of the language, compiled by XLA through jax."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np

from srcgrad.backends.base import Backend, Executable
from srcgrad.backends.xla.lowering import Lowered, lower
from srcgrad.backends.xla.program import raise_first
from srcgrad.ir.core import Function

OPTIONS: Final[dict[str, Any]] = {"xla_allow_excess_precision": False, "xla_disable_hlo_passes": "algsimp"}
"""Every operation is rounded to its dtype: float16 is not kept in float32 from one to the next.

XLA's algebraic simplifier is off. It rewrites ``x / y / y`` to ``x / (y * y)`` and ``exp(x) * exp(y)`` to
``exp(x + y)``, which overflow where the derivatives here are written not to. The passes of the language have simplified
the program already.
"""


class XlaExecutable(Executable):
    """A compiled function. ``run`` takes NumPy arrays; ``run_device`` takes jax arrays and returns jax arrays."""

    __slots__ = ("run_device",)

    run_device: Callable[..., tuple[Any, ...]]
    """Runs on arrays of jax (or NumPy), and returns arrays of jax without waiting for them, unless there are checks."""


class XlaBackend(Backend):
    """Runs functions on jax's default device."""

    name = "xla"

    def compile(self, function: Function, sites: Any = None, donate: Sequence[int] = ()) -> XlaExecutable:
        """Compile a function; ``donate``: positions of parameters whose buffers results may take over.

        Raises:
            DTypeError: it has long doubles.
            BackendError: an op that cannot run on jax's default device.
        """
        lowered = lower(function, sites, checks=True)
        literals = lowered.large_literals()
        count = len(literals)

        def traced(*arguments: Any) -> tuple[Any, ...]:
            return lowered.run(literals, arguments[:count], arguments[count:])

        traced.__name__ = traced.__qualname__ = lowered.__name__
        with jax.enable_x64(True):
            constants = [jax.device_put(np.asarray(literal.value)) for literal in literals]
            types = [value.type for value in (*literals, *function.params)]
            struct: Any = jax.ShapeDtypeStruct
            structs = [struct(type.static_shape, type.dtype) for type in types]
            donated = tuple(count + position for position in donate)
            stage = jax.jit(traced, donate_argnums=donated).lower(*structs)
            program = stage.compile(compiler_options=OPTIONS)
        call: Callable[..., tuple[Any, ...]] = functools.partial(program, *constants) if constants else program
        executable = XlaExecutable(host_runner(call, lowered), stage.as_text)
        executable.run_device = device_runner(call, lowered)
        return executable


def device_runner(call: Callable[..., tuple[Any, ...]], lowered: Lowered) -> Callable[..., tuple[Any, ...]]:
    """The compiled program; with effects, it is waited for and its status is looked at."""
    enable_x64 = jax.enable_x64
    if not lowered.effects:

        def run_plain(*arguments: Any) -> tuple[Any, ...]:
            try:
                return call(*arguments)
            except TypeError:  # NumPy arrays of double precision are taken only where that is on
                with enable_x64(True):
                    return call(*arguments)

        return run_plain
    effects, exceptions = lowered.effects, lowered.exceptions

    def run(*arguments: Any) -> tuple[Any, ...]:
        with enable_x64(True):
            *results, status = call(*arguments)
        raise_first(np.asarray(status), effects, exceptions)
        return tuple(results)

    return run


def host_runner(call: Callable[..., tuple[Any, ...]], lowered: Lowered) -> Callable[..., tuple[Any, ...]]:
    """The program on NumPy arrays: its results are copied to arrays of the caller's own."""
    enable_x64 = jax.enable_x64
    if not lowered.effects:

        def run(*arguments: Any) -> tuple[Any, ...]:
            with enable_x64(True):
                results = call(*arguments)
            return tuple([np.array(result)[()] for result in results])

        return run
    on_device = device_runner(call, lowered)

    def run_checked(*arguments: Any) -> tuple[Any, ...]:
        return tuple([np.array(result)[()] for result in on_device(*arguments)])

    return run_checked


BACKEND: Final = XlaBackend()
